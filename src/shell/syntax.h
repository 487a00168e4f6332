/* SPDX-License-Identifier: Apache-2.0 */
/* syntax.h - a command line as bash would read it.
 *
 * What it knows      the grammar of bash: words and their parts, expansions, commands, lists,
 *                    redirections, here-documents.  Nothing is expanded or run.
 * May include        base/ only.
 * Trust              the text is hostile: length, depth and work are bounded, and time is linear.
 * Ownership          a script owns all below it (one arena); sh_free() frees.
 * Failure            what bash would not read, or would read in a way that we do not know for certain
 *                    (an alias, a history expansion), is an error with the place and a reason; never a guess.
 *
 * The reference is `bash -c TEXT` of bash 5.2, not interactive, with its options as they are at the start.  bash reads a line,
 * runs it, and reads the next: a script that has more than one line and changes how bash reads (shopt, alias, set -o posix, +B,
 * enable; eval and source are scripts of their own) is for the caller to notice.  So is POSIXLY_CORRECT and BASH_ENV.
 *
 * Rejected: a tree for [[ ]] and for arithmetic.  What matters of both is which words are expanded in them.
 *
 * Every node knows where in the text it stands.  sh_print() writes a script so that reading it again gives
 * the same tree. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SH_TEXT_MAX = 1 << 20, SH_DEPTH_MAX = 128, SH_NODES_MAX = 1 << 18 };

struct sh_place {
	uint32_t at, len; /* bytes of the text */
};

enum sh_part_kind {
	SH_LIT,     /* unquoted literal text; backslashes are gone */
	SH_QUOTED,  /* literal text out of '..', "..", $'..' or a backslash: never a pattern, never split */
	SH_GLOB,    /* unquoted * ? [..] or an extended pattern: text is as written */
	SH_TILDE,   /* ~ or ~user where it would be expanded: text is what is after ~ */
	SH_PARAM,   /* $x ${x...} */
	SH_COMMAND, /* $(..) or `..` */
	SH_ARITH,   /* $((..)) or $[..] */
	SH_PROCESS, /* <(..) or >(..) */
	SH_BRACE,   /* {a,b} or {1..9}: alternatives */
	SH_ARRAY,   /* of declare, export, local, readonly, typeset: an argument name=(..); the word's only part */
};

struct sh_word;
struct sh_script;

struct sh_part {
	struct sh_part *next;
	struct sh_place place;
	enum sh_part_kind kind;
	bool quoted;            /* of PARAM, COMMAND, ARITH: within "..": not split, not a pattern */
	bool bad;               /* SH_GLOB: a bracket that never closes and so on: as bash takes it, but be careful */
	const char *text;       /* of LIT, QUOTED, GLOB, TILDE; of ARITH as written; ends in a NUL, holds none */
	size_t len;
	struct sh_param *param;
	bool bare;              /* of PARAM: written $x, without braces */
	struct sh_script *script; /* of COMMAND, PROCESS */
	char direction;         /* of PROCESS: '<', '>' */
	bool backtick;          /* of COMMAND: written `..` */
	bool bracket;           /* of ARITH: written $[..] */
	struct sh_word *words;  /* of BRACE: the alternatives (of a sequence its ends, and step); of ARITH the expansions found in it */
	bool sequence;          /* {1..9} */
	struct sh_assign *assign; /* of ARRAY */
};

struct sh_word {
	struct sh_word *next;
	struct sh_place place;
	struct sh_part *parts;  /* NULL: the empty word '' has one SH_QUOTED part of no length instead */
};

struct sh_param {
	const char *name;       /* "x", "1", "@", "#", "!" ... */
	bool length;            /* ${#x} */
	bool indirect;          /* ${!x}, ${!x*}, ${!x[@]} */
	struct sh_word *index;  /* ${x[..]} */
	const char *op;         /* never NULL: "", ":-", "-", ":=", "=", ":+", "+", ":?", "?", "#", "##", "%", "%%", "/", "//", "/#", "/%", ":", "^", "^^", ",", ",,", "@Q"...; of ${!x*} and ${!x@} "*" and "@" */
	struct sh_word *arg, *arg2; /* after the operator; after the second '/' or ':'.  NULL: nothing */
	bool empty2;            /* the second '/' or ':' is there, and nothing after it */
};

struct sh_redirect {
	struct sh_redirect *next;
	struct sh_place place;
	enum sh_redirect_kind {
		SH_IN, SH_OUT, SH_APPEND, SH_CLOBBER, SH_INOUT,   /* < > >> >| <> */
		SH_DUP_IN, SH_DUP_OUT,                            /* <& >& with a number, number-, - or a word that is not literal (it may
		                                                     be a file: >& $x) */
		SH_BOTH, SH_BOTH_APPEND,                          /* &> &>> and >& FILE with a literal FILE */
		SH_HEREDOC, SH_HERESTRING,
	} kind;
	int fd;                 /* -1: the operator's own */
	const char *fd_name;    /* {name}>, or NULL */
	struct sh_word *target; /* of HEREDOC the body, as a word in quotes; its expansions are parts of it */
	bool heredoc_quoted, heredoc_tabs;
	const char *delimiter;  /* of HEREDOC, without its quotes */
};

struct sh_assign {
	struct sh_assign *next;
	struct sh_place place;
	const char *name;
	struct sh_word *index;  /* x[..]= */
	bool append;            /* += */
	struct sh_word *value;  /* NULL: empty, or an array */
	bool array;
	struct sh_word *items;      /* of an array none of whose elements has a key */
	struct sh_assign *keyed;    /* of an array where one has [key]=: all elements in order (name is ""; index NULL: no key) */
};

enum sh_command_kind {
	SH_SIMPLE,   /* assigns words */
	SH_PIPE,     /* children: first | next ...  (one before |& has `both` set) */
	SH_AND, SH_OR, /* children: two or more; a && b || c is OR(AND(a, b), c) */
	SH_SEQUENCE, SH_BACKGROUND, /* children: two or more; one */
	SH_NOT,      /* ! child (maybe none) */
	SH_TIME,     /* time child (maybe none) */
	SH_SUBSHELL, SH_GROUP,
	SH_IF,       /* children: condition, then, [condition, then,] ... [else] */
	SH_WHILE, SH_UNTIL, /* children: condition, body */
	SH_FOR, SH_SELECT,  /* name, words (has_in), child: body */
	SH_FOR_ARITH,       /* words: the expansions in the three expressions, one each; text is as written, with its ';'; child: body */
	SH_CASE,     /* words: the subject; items */
	SH_FUNCTION, /* name, child */
	SH_CONDITION, /* [[ .. ]]: words, operators included as literals (SH_LIT), in order; what is unquoted after =~ is SH_GLOB */
	SH_ARITHMETIC, /* (( .. )): words: the expansions in it, one each; text is as written */
	SH_COPROC,   /* name or NULL, child */
};

struct sh_case_item {
	struct sh_case_item *next;
	struct sh_word *patterns;
	struct sh_command *body;   /* NULL: empty */
	char end;                  /* ';' ;;   '&' ;&   '+' ;;& */
};

struct sh_command {
	struct sh_command *next;   /* sibling */
	struct sh_place place;
	enum sh_command_kind kind;
	struct sh_assign *assigns;
	struct sh_word *words;
	struct sh_redirect *redirects; /* of any command */
	struct sh_command *child;      /* first */
	const char *name;
	const char *text;          /* of FOR_ARITH, ARITHMETIC */
	struct sh_case_item *items;
	bool has_in, both, posix_time;
};

struct sh_script {
	struct sh_command *first;  /* NULL: nothing but blanks and comments */
	const char *text;
	size_t len;
	struct sh_arena *arena;    /* NULL of a nested script: its parent's */
};

/* 0, or -CS_E_INVALID (not bash), -CS_E_UNSUPPORTED (not known for certain), -CS_E_LIMIT; *ret_at: where. */
int sh_parse(const char *text, size_t len, struct sh_script **ret, uint32_t *ret_at, struct cs_err *err);
void sh_free(struct sh_script *s);
void sh_print(const struct sh_script *s, struct cs_buf *out);
/* Equal but for places and for how a thing was quoted. */
bool sh_same(const struct sh_script *a, const struct sh_script *b);
