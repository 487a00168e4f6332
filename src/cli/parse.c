/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/say.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_opt *by_name(const struct cli_command *c, const char *name, size_t len)
{
	for (const struct cli_opt *o = c->opts; o->name; o++)
		if (strlen(o->name) == len && !memcmp(o->name, name, len))
			return o;
	return NULL;
}

static const struct cli_opt *by_letter(const struct cli_command *c, char letter)
{
	for (const struct cli_opt *o = c->opts; o->name; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

static int unknown(const struct cli_command *c, const char *word, struct cs_err *err)
{
	const char *names[64], *near;
	char shown[80], name[64];
	size_t n = 0;

	for (const struct cli_opt *o = c->opts; o->name && n < 64; o++)
		names[n++] = o->name;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + strspn(word, "-"), "="), word + strspn(word, "-"));
	near = cs_nearest(name, names, n);
	cs_escape_to(shown, sizeof shown, word);
	if (near)
		return cs_fail(err, CS_E_INVALID, 0, "unknown option '%s' of `%s` (did you mean --%s?)", shown, c->name, near);
	return cs_fail(err, CS_E_INVALID, 0, "unknown option '%s'; `caisson %s --help` lists them", shown, c->name);
}

static int give(const struct cli_command *c, const struct cli_opt *o, const char *value, cli_handler handle, void *arg, struct cs_err *err)
{
	if (!strcmp(o->name, "help")) {
		cli_help(c);
		exit(0);
	}
	return handle ? handle(o, value, arg, err) : 0;
}

static int long_option(const struct cli_command *c, int argc, char **argv, int *i, cli_handler handle, void *arg, struct cs_err *err)
{
	const char *word = argv[*i] + 2, *eq = strchr(word, '=');
	const struct cli_opt *o = by_name(c, word, eq ? (size_t)(eq - word) : strlen(word));

	if (!o)
		return unknown(c, argv[*i], err);
	if (!o->arg && eq)
		return cs_fail(err, CS_E_INVALID, 0, "--%s takes no value", o->name);
	if (o->arg && !eq && *i + 1 >= argc)
		return cs_fail(err, CS_E_INVALID, 0, "--%s needs a value: --%s %s", o->name, o->name, o->arg);
	return give(c, o, !o->arg ? NULL : eq ? eq + 1 : argv[++*i], handle, arg, err);
}

static int short_options(const struct cli_command *c, int argc, char **argv, int *i, cli_handler handle, void *arg, struct cs_err *err)
{
	const char *word = argv[*i];
	int r = 0;

	for (const char *p = word + 1; r >= 0 && *p; p++) {
		const struct cli_opt *o = by_letter(c, *p);
		const char *value = NULL;

		if (!o)
			return unknown(c, word, err);
		if (o->arg) {
			if (!p[1] && *i + 1 >= argc)
				return cs_fail(err, CS_E_INVALID, 0, "-%c needs a value: -%c %s", o->letter, o->letter, o->arg);
			value = p[1] ? p + 1 : argv[++*i];
		}
		r = give(c, o, value, handle, arg, err);
		if (o->arg)
			break;
	}
	return r;
}

int cli_parse(const struct cli_command *c, int argc, char **argv, cli_handler handle, void *arg, struct cs_err *err)
{
	int i, r;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			return i + 1;
		if (argv[i][0] != '-' || !argv[i][1])
			return i;
		r = argv[i][1] == '-' ? long_option(c, argc, argv, &i, handle, arg, err)
				      : short_options(c, argc, argv, &i, handle, arg, err);
		if (r < 0)
			return r;
	}
	return i;
}

void cli_help(const struct cli_command *c)
{
	bool paint = say_colour(1);
	const char *bold = paint ? "\033[1m" : "", *plain = paint ? "\033[0m" : "";

	printf("%scaisson %s%s %s\n%s\n", bold, c->name, plain, c->args, c->summary);
	if (*c->about)
		printf("\n%s\n", c->about);
	printf("\n%sOptions%s\n", bold, plain);
	for (const struct cli_opt *o = c->opts; o->name; o++) {
		char left[64];

		if (o->group)
			printf(" %s%s%s\n", bold, o->group, plain);
		snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? ", " : "  ",
			 o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		/* A long one has its words on the next line. */
		printf("  %-28s%s%s\n", left, strlen(left) > 28 ? "\n                               " : " ", o->help);
	}
	if (*c->examples)
		printf("\n%sExamples%s\n%s", bold, plain, c->examples);
}

int cli_usage_error(const struct cs_err *err)
{
	say_error("%s", err->msg);
	return 125;
}

int cli_parse_words(const struct cli_command *c, int argc, char **argv, cli_handler handle, void *arg, struct cs_strv *ret_words,
		    struct cs_err *err)
{
	int i = 0;

	while (i + 1 < argc) {
		int n = cli_parse(c, argc - i, argv + i, handle, arg, err);
		bool ended = n > 1 && !strcmp(argv[i + n - 1], "--");

		if (n < 0)
			return n;
		i += n;
		for (int first = i; i < argc && (ended || i == first); i++)
			cs_strv_add(ret_words, argv[i]);
		i--; /* cli_parse() starts behind its first word */
	}
	return 0;
}
