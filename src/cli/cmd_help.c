/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>

void cli_overview(void)
{
	printf("caisson - run what nobody trusts\n\nUsage: caisson COMMAND [OPTION...]\n\nCommands\n");
	for (size_t i = 0; i < cli_n_commands; i++)
		printf("  %-12s %s\n", cli_commands[i].name, cli_commands[i].summary);
	printf("\nExamples\n  $ caisson run -- python3 agent.py     in a sandbox made of this directory\n"
	       "  $ caisson doctor                      what this host can protect\n"
	       "  $ caisson run --help                  every option\n");
}

int cmd_help(int argc, char **argv)
{
	const struct cli_command *c = argc > 1 ? cli_find(argv[1]) : NULL;

	if (c)
		cli_help(c);
	else
		cli_overview();
	return 0;
}

int cmd_version(int argc, char **argv)
{
	(void)argc, (void)argv;
	printf("caisson " CAISSON_VERSION "\n");
	return 0;
}
