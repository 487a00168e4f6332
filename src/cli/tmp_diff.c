#include "cli/change.h"
#include "cli/cli.h"
int cmd_diff(int c, char **v){(void)c;(void)v;return 0;}
void change_show_diff(struct txn *t){(void)t;}
