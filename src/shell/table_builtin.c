/* SPDX-License-Identifier: Apache-2.0 */
/* table_builtin.c - the rows of table/, parsed when we were built by tools/gen_shell_table.c. */
#include "shell/table_internal.h"

#include "gen/shell_table.inc"

const struct sh_table *sh_table_builtin(void)
{
	return &builtin;
}
