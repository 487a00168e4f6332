/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the command line: one table of commands, each with its table of options.
 *
 * The tables drive parsing, `--help`, completion and the man pages' option
 * lists, so none of those can disagree.  A command lives in cmd_<name>.c.
 *
 * Exit status: 0, the program's own for `run`, 1 where a check failed, 125 for
 * usage errors and refusals (CS_CODES in base/err.h has the rest).
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct cli_opt {
	const char *name;       /* long name without dashes */
	char letter;            /* 0: none */
	const char *arg;        /* NULL: takes none */
	const char *key;        /* profile key it sets, or NULL */
	const char *help;
	const char *group;      /* heading in --help; NULL: as the one before */
};

struct cli_command {
	const char *name, *args, *summary;
	int (*run)(int argc, char **argv);
	const struct cli_opt *opts;  /* ends with name NULL */
	const char *about;           /* a paragraph */
	const char *examples;        /* lines, "  $ ..." */
};

extern const struct cli_command cli_commands[];
extern const size_t cli_n_commands;
const struct cli_command *cli_find(const char *name);

/* Called for each option; value is NULL for those without.  A negative return stops parsing. */
typedef int (*cli_handler)(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err);

/* Parses argv[1..]; stops at "--" or the first word that is no option.  Returns its index.
 * `--help` prints and exits 0. */
int cli_parse(const struct cli_command *c, int argc, char **argv, cli_handler handle, void *arg, struct cs_err *err);
/* The same, but options may stand between and after the words, which are collected; after "--" all are words. */
struct cs_strv;
int cli_parse_words(const struct cli_command *c, int argc, char **argv, cli_handler handle, void *arg, struct cs_strv *ret_words,
		    struct cs_err *err);
void cli_help(const struct cli_command *c);
void cli_overview(void); /* every command in a line */
int cli_usage_error(const struct cs_err *err); /* says it, returns 125 */

int cmd_run(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_net(int argc, char **argv);
int cmd_classify(int argc, char **argv);
int cmd_sh(int argc, char **argv);
int cmd_tools(int argc, char **argv);
int cmd_approvals(int argc, char **argv);
int cmd_hook(int argc, char **argv);
int cmd_rules(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_gc(int argc, char **argv);
int cmd_txn(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_commit(int argc, char **argv);
int cmd_rollback(int argc, char **argv);
int cmd_undo(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_begin(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_steps(int argc, char **argv);
int cmd_fork(int argc, char **argv);
int cmd_end(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);
