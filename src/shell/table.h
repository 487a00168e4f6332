/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - what commands do with their arguments.
 *
 * One row per command (and per subcommand of git, docker, ...), written once, in the .rows files of table/, in a small
 * language that is described in table/README.md, compiled in by tools/gen_shell_table.c, and the same that a
 * profile can extend it with.  A row says which options there are, what their arguments are, and what the operands
 * are; from that and a vector of words come effects.
 *
 * An unknown command, option, abbreviation that is not unique, or an operand too many is `unknown`, never nothing.
 * Words without an effect (INERT), and `-` where it means standard input, have no finding.  A word can have several:
 * what mv moves is read and deleted, and where `*` may be many words each can stand in more than one place.
 *
 * What it knows      the rows.  Nothing about paths, variables or the script around the command.
 * May include        base/ only.
 * Trust              the words are hostile; time is linear in them.  Rows come from us or from a profile.
 * Ownership          findings point into the words and the table; sh_findings_done() frees what was made.
 * Threads            a table is immutable.
 *
 * Rejected: a list of harmless commands.  `uniq IN OUT` and `sort -o` show what that is worth. */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a word of a command is to it. */
enum sh_role {
	SH_ROLE_INERT,    /* text, a number, a pattern: no effect whatever it says */
	SH_ROLE_READ,     /* a file that is read (or a directory that is listed) */
	SH_ROLE_READ_TREE, /* ... with all below it */
	SH_ROLE_WRITE,    /* a file that is written or made */
	SH_ROLE_WRITE_DIR, /* a directory below which files are made */
	SH_ROLE_DELETE, SH_ROLE_DELETE_TREE,
	SH_ROLE_EXEC,     /* a program that is run, named by this word alone */
	SH_ROLE_COMMAND,  /* this and the words that follow are a command (a carrier): env, nice, xargs, sudo */
	SH_ROLE_SHELL,    /* text that a shell runs: sh -c, watch, find -exec sh -c goes through COMMAND */
	SH_ROLE_CODE,     /* a program in another language: python -c, awk, perl -e; `lang` says which */
	SH_ROLE_HOST,     /* [user@]host[:path] or a host */
	SH_ROLE_URL,
	SH_ROLE_PROCESS,  /* a pid, a job or a name of processes that are signalled */
	SH_ROLE_USER, SH_ROLE_SERVICE, SH_ROLE_PACKAGE,
	SH_ROLE_ENV,      /* NAME=VALUE that changes how what follows runs */
	SH_ROLE_CWD,      /* a directory that the rest works in: -C DIR */
	SH_ROLE_UNKNOWN,  /* what it does is not known to the table: uncertain */
};

/* What a command does whatever its words are. */
enum sh_does {
	SH_DOES_NETWORK = 1 << 0,
	SH_DOES_PRIVILEGE = 1 << 1,
	SH_DOES_PERSIST = 1 << 2,    /* start-up files, cron, services */
	SH_DOES_PROCESS = 1 << 3,
	SH_DOES_DEVICE = 1 << 4,
	SH_DOES_WRITE_CWD = 1 << 5,  /* files in the working directory, with names of its own */
	SH_DOES_EXEC_CWD = 1 << 6,   /* runs what it finds there: make, npm, git hooks */
	SH_DOES_READ_STDIN_CODE = 1 << 7, /* runs what comes from standard input: sh, python without operands */
	SH_DOES_SYSTEM = 1 << 8,     /* changes the system's own state: date -s, hostname NAME, sysctl -w */
	SH_DOES_UNKNOWN = 1 << 9,
	SH_DOES_BUILTIN_STATE = 1 << 10, /* changes the shell itself: cd, export, alias, set */
	SH_DOES_TERMINAL = 1 << 12,  /* on a terminal it runs a pager, or takes commands as pagers do; not when its output is a pipe */
	SH_DOES_ENVIRONMENT = 1 << 13, /* shows the environment, unless it runs a command */
	SH_DOES_SECRET = 1 << 11,    /* shows secrets: printenv and the like do not; gpg --export-secret-keys does */
};

/* One word given to a command. */
struct sh_arg {
	const char *text;   /* its literal, or what is known of it; "" */
	enum sh_known {
		SH_LITERAL, /* text is all of it */
		SH_PATTERN, /* a glob: text is the pattern; it stands for files that are there, at least one word */
		SH_PREFIX,  /* one word that begins with text: "$x" has the prefix "" */
		SH_DYNAMIC, /* nothing is known, not even that it is one word: text is not looked at */
	} known;
	uint32_t at, len;   /* in the script */
};

struct sh_finding {
	enum sh_role role;
	const char *lang;      /* of CODE: "python", "perl", "awk", "sed", "node", "ruby", "php", "lua", "jq", "sql" ... */
	size_t arg;            /* index of the word; 0: of none, the command does so by itself */
	size_t end;            /* of COMMAND, and of SHELL made of several words: index after its last; else 0 */
	const char *text;      /* the part of it that is meant: after -o, after of= ; of SHELL with an end, the words with blanks between */
	enum sh_known known;
	const char *why;       /* of UNKNOWN: short text for people, "unknown option --foo of tar"; owned by the result */
};

struct sh_findings {
	struct sh_finding *v;
	size_t n, room;
	unsigned does;         /* enum sh_does */
	const char *does_why;  /* constant text: "runs hooks and programs that its configuration names" */
	size_t command_at;     /* of the first COMMAND: index of its first word; 0: there is none (a carrier without a command) */
	bool appends_words;    /* the command gets more words that are not here: xargs */
	bool stdin_words;      /* ... which come from standard input */
	const char *replace;   /* where the command's words hold this text they are not what is run: {} of find and xargs -I; or NULL */
	bool replace_paths;    /* ... and what comes in its place are paths below find's operands, not text from standard input */
	struct sh_made *made;  /* owns what is made */
};

struct sh_table;
const struct sh_table *sh_table_builtin(void);
/* More rows, over the built-in ones; origin:line in errors.  Unless trusted, a row for a command that the table has may
 * only make it more careful. */
int sh_table_extend(const struct sh_table *base, const char *rows, size_t len, const char *origin, bool trusted, struct sh_table **ret,
		    struct cs_err *err);
/* Only whether they can be read; the message has no place. */
int sh_rows_check(const char *rows, size_t len, struct cs_err *err);
void sh_table_free(struct sh_table *t);
bool sh_table_has(const struct sh_table *t, const char *command);
size_t sh_table_count(const struct sh_table *t);

/* argv[0] is the command's name (literal, without a directory); at least one word. Always fills *ret. */
void sh_table_apply(const struct sh_table *t, const struct sh_arg *argv, size_t n, struct sh_findings *ret);
void sh_findings_done(struct sh_findings *f);

/* What a program for sed, awk or jq does besides printing.  What it names with certainty is added to *ret (may be NULL) as
 * READ, WRITE and SHELL findings of word `arg`; what it names in another way, as DYNAMIC ones.  The answer is the worst of
 * all; UNKNOWN means that the program was not understood, and then *ret is not complete. */
enum sh_code_verdict { SH_CODE_HARMLESS, SH_CODE_READS, SH_CODE_WRITES, SH_CODE_EXECUTES, SH_CODE_UNKNOWN };
enum sh_code_verdict sh_sed_judge(const char *script, size_t arg, struct sh_findings *ret);
enum sh_code_verdict sh_awk_judge(const char *script, size_t arg, struct sh_findings *ret);
enum sh_code_verdict sh_jq_judge(const char *script, size_t arg, struct sh_findings *ret);
