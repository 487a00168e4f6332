/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_completion.c - completion for three shells, from the tables in commands.c. */
#include "cli/cli.h"

#include "profile/profile.h"

#include <stdio.h>
#include <string.h>

static void words_of_options(const struct cli_command *c)
{
	for (const struct cli_opt *o = c->opts; o->name; o++)
		printf("--%s ", o->name);
}

static void words_of_profiles(void)
{
	for (size_t i = 0; i < profile_builtin_count(); i++)
		printf("%s ", profile_builtin_name(i));
}

static const char *subwords(const struct cli_command *c)
{
	if (!strcmp(c->name, "profile"))
		return "list show check schema explain";
	if (!strcmp(c->name, "txn"))
		return "list show";
	if (!strcmp(c->name, "net"))
		return "show allow deny";
	if (!strcmp(c->name, "tools"))
		return "check list pin diff approve";
	if (!strcmp(c->name, "approvals"))
		return "list show allow always deny withdraw";
	if (!strcmp(c->name, "hook"))
		return "claude-code codex generic";
	if (!strcmp(c->name, "rules"))
		return "check test explain prove";
	if (!strcmp(c->name, "completion"))
		return "bash zsh fish";
	return "";
}

static void bash(void)
{
	printf("_caisson() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd=${COMP_WORDS[1]} i\n"
	       "  COMPREPLY=()\n  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W '");
	for (size_t i = 0; i < cli_n_commands; i++)
		printf("%s ", cli_commands[i].name);
	printf("' -- \"$cur\")); return; fi\n"
	       "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
	       "    if [ \"${COMP_WORDS[i]}\" = -- ]; then COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\")); return; fi\n  done\n"
	       "  case $prev in\n    --profile|-p) COMPREPLY=($(compgen -W '");
	words_of_profiles();
	printf("' -- \"$cur\") $(compgen -f -X '!*.y*ml' -- \"$cur\")); return ;;\n"
	       "    --ro|--rw|--json|--learn|--net-log|--pins|--tools|--against|--plan|--solver) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
	       "    --workspace|-w|--cwd) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
	       "    --workspace-mode) COMPREPLY=($(compgen -W 'layer read write none' -- \"$cur\")); return ;;\n"
	       "    --commit) COMPREPLY=($(compgen -W 'ask keep always on-success never' -- \"$cur\")); return ;;\n"
	       "    diff|commit|rollback|undo) COMPREPLY=($(compgen -W \"$(caisson txn list 2>/dev/null | sed -n '2,$s/ .*//p')\" -- \"$cur\") $(compgen -f -- \"$cur\")); return ;;\n"
	       "    exec|steps|fork|end) COMPREPLY=($(compgen -W \"$(caisson ps 2>/dev/null | sed -n '2,$s/ .*//p' | grep ^t-)\" -- \"$cur\")); return ;;\n"
	       "    --net-budget) COMPREPLY=($(compgen -S = -W 'bytes_out bytes_in connections requests per_host.bytes_out per_host.bytes_in per_host.connections per_host.requests' -- \"$cur\")); return ;;\n"
	       "    kill|net) COMPREPLY=($(compgen -W \"$(caisson ps 2>/dev/null | sed -n '2,$s/ .*//p')\" -- \"$cur\")); return ;;\n  esac\n  case $cmd in\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		printf("    %s) COMPREPLY=($(compgen -W '%s ", cli_commands[i].name, subwords(&cli_commands[i]));
		words_of_options(&cli_commands[i]);
		printf("' -- \"$cur\")) ;;\n");
	}
	printf("  esac\n}\ncomplete -o default -F _caisson caisson\n");
}

/* Inside single quotes, and without what else has a meaning there. */
static void plain(const char *s, const char *special)
{
	for (; *s; s++)
		if (*s == '\'' || strchr(special, *s))
			putchar(*s == ':' ? ',' : '"');
		else
			putchar(*s);
}

static void zsh_plain(const char *s) { plain(s, "[]:"); }
static void fish_plain(const char *s) { plain(s, "\\"); }

static void zsh(void)
{
	printf("#compdef caisson\n_caisson() {\n  local -a commands\n  commands=(\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		printf("    '%s:", cli_commands[i].name);
		zsh_plain(cli_commands[i].summary);
		printf("'\n");
	}
	printf("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case $words[2] in\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *c = &cli_commands[i];

		printf("    %s) shift words; (( CURRENT-- )); _arguments ", c->name);
		for (const struct cli_opt *o = c->opts; o->name; o++) {
			printf("'--%s[", o->name);
			zsh_plain(o->help);
			printf("]%s%s' ", o->arg ? ":" : "", !o->arg ? "" : !strcmp(o->name, "profile") ? "profile:_files" : strstr(o->arg, "DIR") ? "dir:_files -/" : "value:_files");
		}
		if (*subwords(c)) /* of `net` the id comes first */
			printf("'%d:what:(%s)' ", strcmp(c->name, "net") ? 1 : 2, subwords(c));
		printf("'*::arg:_normal' ;;\n");
	}
	printf("  esac\n}\ncompdef _caisson caisson\n");
}

static void fish(void)
{
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *c = &cli_commands[i];

		printf("complete -c caisson -n __fish_use_subcommand -a %s -d '", c->name);
		fish_plain(c->summary);
		printf("'\n");
		for (const struct cli_opt *o = c->opts; o->name; o++) {
			printf("complete -c caisson -n '__fish_seen_subcommand_from %s' -l %s ", c->name, o->name);
			if (o->letter)
				printf("-s %c ", o->letter);
			printf("%s-d '", o->arg ? "-r " : "");
			fish_plain(o->help);
			printf("'\n");
		}
		if (*subwords(c))
			printf("complete -c caisson -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name, subwords(c));
	}
}

int cmd_completion(int argc, char **argv)
{
	struct cs_err err = { 0 };
	int first = cli_parse(cli_find("completion"), argc, argv, NULL, NULL, &err);

	if (first >= 0 && first + 1 == argc && !strcmp(argv[first], "bash"))
		return bash(), 0;
	if (first >= 0 && first + 1 == argc && !strcmp(argv[first], "zsh"))
		return zsh(), 0;
	if (first >= 0 && first + 1 == argc && !strcmp(argv[first], "fish"))
		return fish(), 0;
	if (first >= 0)
		(void)cs_fail(&err, CS_E_INVALID, 0, "for which shell? caisson completion bash|zsh|fish");
	return cli_usage_error(&err);
}
