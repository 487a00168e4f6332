/* SPDX-License-Identifier: Apache-2.0 */
#include "act/act.h"
#include "cli/cli.h"

#include "base/say.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static int unknown(const char *word)
{
	const char *names[64], *near;
	char shown[80];

	for (size_t i = 0; i < cli_n_commands; i++)
		names[i] = cli_commands[i].name;
	near = cs_nearest(word, names, cli_n_commands);
	say_error("unknown command '%s'%s%s%s; `caisson help` lists them", cs_escape_to(shown, sizeof shown, word),
		  near ? " (did you mean `" : "", near ? near : "", near ? "`?)" : "");
	return 125;
}

int main(int argc, char **argv)
{
	const struct cli_command *c;

	if (argc < 2) {
		cli_overview();
		return 125;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cli_overview(), 0;
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return cmd_version(argc, argv);
	if (!strcmp(argv[1], ACT_STAGES))
		return act_stages_main(argc, argv);
	c = cli_find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	return c->run(argc - 1, argv + 1);
}
