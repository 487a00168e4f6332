/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.c - help on the terminal, and the same tables as roff for the manual
 * pages: `caisson help --roff WHAT` is what scripts/make-man puts into man/.in files. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/text.h"
#include "profile/profile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void cli_overview(void)
{
	printf("caisson - run what nobody trusts\n\nUsage: caisson COMMAND [OPTION...]\n\nCommands\n");
	for (size_t i = 0; i < cli_n_commands; i++)
		printf("  %-12s %s\n", cli_commands[i].name, cli_commands[i].summary);
	printf("\nExamples\n  $ caisson run -- python3 agent.py     in a sandbox made of this directory\n"
	       "  $ caisson doctor                      what this host can protect\n"
	       "  $ caisson run --help                  every option\n");
}

/* ---- roff ---- */

/* What has a meaning of its own in roff: backslash, minus, quotes, and a dot at a line's start. */
static void roff(const char *s)
{
	bool line_start = true;

	for (; *s; s++) {
		if (line_start && *s == '.')
			fputs("\\&", stdout);
		line_start = *s == '\n';
		if (*s == '\\')
			fputs("\\e", stdout);
		else if (*s == '-')
			fputs("\\-", stdout);
		else if (*s == '`')
			fputs("\\(ga", stdout);
		else if (*s == '\'')
			fputs("\\(aq", stdout);
		else
			putchar(*s);
	}
}

/* The tables' words begin small, for --help; in a manual page they are sentences. */
static void roff_sentence(const char *s)
{
	if (*s)
		putchar(toupper((unsigned char)*s++));
	roff(s);
	fputs(".\n", stdout);
}

static void roff_option(const struct cli_opt *o)
{
	fputs(".TP\n", stdout);
	if (o->letter)
		printf("\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", stdout);
	roff(o->name);
	fputs("\\fR", stdout);
	if (o->arg) {
		fputs(" \\fI", stdout);
		roff(o->arg);
		fputs("\\fR", stdout);
	}
	putchar('\n');
	roff_sentence(o->help);
	if (o->key)
		printf("Profile key: \\fB%s\\fR.\n", o->key);
}

static void roff_options(const struct cli_command *c)
{
	for (const struct cli_opt *o = c->opts; o->name; o++) {
		if (o->group)
			printf(".SS %s\n", o->group);
		roff_option(o);
	}
}

/* Those that caisson(1) only names. */
static bool has_own_page(const char *name)
{
	static const char *const names[] = { "run", "txn", "diff", "commit", "rollback", "undo", "log", "begin", "exec", "steps", "fork", "end" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void roff_commands(void)
{
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *c = &cli_commands[i];

		printf(".TP\n\\fB%s\\fR ", c->name);
		roff(c->args);
		putchar('\n');
		roff_sentence(c->summary);
		if (!has_own_page(c->name) && *c->about) {
			roff(c->about);
			putchar('\n');
		}
		for (const struct cli_opt *o = c->opts; !has_own_page(c->name) && o->name; o++) {
			if (!strcmp(o->name, "help"))
				continue;
			fputs(".RS\n", stdout);
			roff_option(o);
			fputs(".RE\n", stdout);
		}
	}
}

static void roff_protections(void)
{
	for (int p = 0; p < PROT_MAX; p++) {
		printf(".TP\n.B ");
		roff(protection_name((enum protection)p));
		putchar('\n');
		roff_sentence(protection_what((enum protection)p));
	}
}

static int write_roff(const char *what, struct cs_err *err)
{
	const struct cli_command *c = cli_find(what);
	struct cs_buf keys CS_BUF_AUTO = CS_BUF(1 << 20);

	if (!strcmp(what, "commands")) {
		roff_commands();
	} else if (!strcmp(what, "protections")) {
		roff_protections();
	} else if (!strcmp(what, "profile-keys")) {
		profile_write_keys_roff(&keys);
		fputs(cs_buf_text(&keys), stdout);
	} else if (c) {
		roff_options(c);
	} else {
		return cs_fail(err, CS_E_INVALID, 0, "help --roff: a command, commands, protections or profile-keys");
	}
	return 0;
}

/* ---- the command ---- */

static int help_on(const char *word, struct cs_err *err)
{
	const struct cli_command *c = cli_find(word);
	const char *names[64], *near;
	char shown[80];

	if (c)
		return cli_help(c), 0;
	for (size_t i = 0; i < cli_n_commands; i++)
		names[i] = cli_commands[i].name;
	near = cs_nearest(word, names, cli_n_commands);
	return cs_fail(err, CS_E_INVALID, 0, "no command '%s'%s%s%s; `caisson help` lists them", cs_escape_to(shown, sizeof shown, word),
		       near ? " (did you mean `" : "", near ? near : "", near ? "`?)" : "");
}

int cmd_help(int argc, char **argv)
{
	struct cs_err err = { 0 };
	int r, first;

	if (argc == 3 && !strcmp(argv[1], "--roff")) {
		r = write_roff(argv[2], &err);
	} else {
		r = first = cli_parse(cli_find("help"), argc, argv, NULL, NULL, &err);
		if (first >= 0 && first < argc)
			r = help_on(argv[first], &err);
		else if (first >= 0)
			cli_overview();
	}
	return r < 0 ? cli_usage_error(&err) : 0;
}

int cmd_version(int argc, char **argv)
{
	(void)argc, (void)argv;
	printf("caisson " CAISSON_VERSION "\n");
	return 0;
}
