/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - shared by the files of the reader of scripts.
 *
 * One struct reader goes over the text once, from left to right; what it finds it takes from the arena of the script.
 * Where bash itself reads a text twice (a here-document, the inside of `..`, `((` that turns out to be two
 * parentheses), so do we; every byte read again is paid for from `work`, and when that is used up the script is
 * refused: this is what keeps time linear.
 *
 * Errors leave by longjmp() to sh_parse(): nothing but the arena and one scratch buffer is ever owned, and no caller in
 * between can forget to look at a result and go on with half a tree. */
#pragma once
#include "shell/syntax.h"

#include <setjmp.h>
#include <string.h>

struct sh_arena;
struct sh_arena *sh_arena_new(void);                  /* NULL: no memory */
void *sh_arena_take(struct sh_arena *a, size_t size); /* zeroed; NULL: no memory */
void sh_arena_free(struct sh_arena *a);

/* A text being read: the script, or a part of it that bash reads as a text of its own. */
struct source {
	const char *t;
	size_t pos, end;
	const uint32_t *map; /* place of each byte in the script; NULL: the byte's own index */
};

/* A here-document whose body is after the next newline. */
struct pending {
	struct pending *next;
	struct sh_redirect *redirect;
};

struct reader {
	struct source s;
	struct sh_arena *arena;
	size_t nodes;
	unsigned depth;
	size_t work;               /* bytes that may be read again */
	struct pending *here, **here_end;
	unsigned substitutions;    /* $(..), <(..) around what is read now */
	unsigned late;             /* within what bash reads only when it runs: an error there stops but that command */
	bool first_in_substitution; /* the next command is the first of $(..) */
	size_t inner, inner_close; /* of "((" that is two parentheses: where the second stands and must close */
	char *scratch;             /* the literal that is being put together */
	size_t n, room;
	jmp_buf out;
	enum cs_code code;
	size_t at;                 /* of the error, in the script */
	struct cs_err *err;
};

/* lex.c */
void rd_fail(struct reader *r, enum cs_code code, size_t pos, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 4, 5), cold));
void *rd_new(struct reader *r, size_t size);          /* a node: counted */
void *rd_room(struct reader *r, size_t size);         /* not counted */
char *rd_copy(struct reader *r, const char *text, size_t len);
void rd_enter(struct reader *r);
#define rd_leave(r) ((void)(r)->depth--)
void rd_pay(struct reader *r, size_t bytes);
struct sh_place rd_place(const struct reader *r, size_t from, size_t to);
void rd_put(struct reader *r, char c);
void rd_check_text(struct reader *r);
void rd_blanks(struct reader *r);                     /* blanks and a comment, not the newline */
bool rd_newline(struct reader *r);                    /* a newline, and the here-documents that begin after it */
void rd_newlines(struct reader *r);
void rd_refuse_waiting(struct reader *r);
size_t rd_bare(const struct reader *r, char *dst, size_t size, size_t *ret_end); /* the word here if it is all plain characters */
void rd_dollar_quote(struct reader *r);               /* after $': what it means into scratch */
void rd_single(struct reader *r);                     /* after ': into scratch */
size_t rd_close_paren(struct reader *r, size_t pos);  /* as bash matches pairs, from after the opening one; SIZE_MAX: none */
void rd_no_close(struct reader *r, size_t from, const char *what) __attribute__((noreturn, cold));
void rd_refuse_continuation(struct reader *r, size_t from, size_t to);
bool rd_shown(const char *text, size_t len);          /* UTF-8, and all of it is seen */
bool rd_is_name(const char *s, size_t len);
static inline bool rd_name_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool rd_is_break(int c)
{
	switch (c) {
	case -1: case ' ': case '\t': case '\n': case ';': case '&': case '|': case '<': case '>': case '(': case ')':
		return true;
	default:
		return false;
	}
}
static inline bool rd_digit(int c)
{
	return c >= '0' && c <= '9';
}
static inline bool rd_name_char(int c)
{
	return rd_name_start(c) || rd_digit(c);
}
static inline int rd_peek(const struct reader *r, size_t pos)
{
	return pos < r->s.end ? (unsigned char)r->s.t[pos] : -1;
}
/* The byte at pos or after line continuations there; -1 at the end. */
static inline int rd_after(const struct reader *r, size_t pos, size_t *ret_pos)
{
	while (rd_peek(r, pos) == '\\' && rd_peek(r, pos + 1) == '\n')
		pos += 2;
	if (ret_pos)
		*ret_pos = pos;
	return rd_peek(r, pos);
}
/* The next byte, likewise. */
static inline int rd_cur(struct reader *r)
{
	if (r->s.pos < r->s.end && r->s.t[r->s.pos] != '\\')
		return (unsigned char)r->s.t[r->s.pos];
	return rd_after(r, r->s.pos, &r->s.pos);
}

/* word.c */
enum word_kind {
	WORD_COMMAND,  /* braces, tilde, patterns */
	WORD_PLAIN,    /* the same without braces: here-string, subject and patterns of case, [[ ]] */
	WORD_VALUE,    /* of an assignment: tilde also after ':' */
	WORD_PATTERN,  /* after == in [[ ]]: extended patterns */
	WORD_REGEX,    /* after =~ */
	WORD_PARAM,    /* within ${..}, to '}' */
	WORD_PARAM_QUOTED, /* within "${x:-..}" */
	WORD_REPLACE,  /* the pattern of ${x/../..}, to '/' or '}' */
	WORD_SUBSTRING, /* of ${x:..:..}, to ':' or '}' */
	WORD_INDEX,    /* to ']' */
};
struct sh_word *rd_word(struct reader *r, enum word_kind kind);
struct sh_word *rd_literal(struct reader *r, const char *text, size_t len, size_t from, size_t to);
struct sh_word *rd_body(struct reader *r, bool quoted); /* all of the source as the body of a here-document */
/* From after "((" or "$[" to and over the closing; the text as written, and the expansions in it. */
const char *rd_arith(struct reader *r, const char *close, struct sh_word **ret_words);
bool rd_assign_follows(struct reader *r, bool compound_only);
struct sh_assign *rd_assign(struct reader *r);

/* brace.c */
struct sh_part *rd_braces(struct reader *r, struct sh_part *parts, bool lone_dollar);
void rd_globs(struct reader *r, struct sh_part **parts);

/* parse.c */
bool rd_reserved(const char *word);
struct sh_script *rd_script(struct reader *r, int close); /* to ')' (not taken) or the end (-1) */
struct sh_command *rd_list(struct reader *r);
struct sh_command *rd_function_body(struct reader *r, const char *name, size_t from);
const char *rd_keyword(struct reader *r, size_t *ret_end); /* the reserved word that stands here, where one can; NULL: none */
bool rd_is(const char *keyword, const char *word);
bool rd_accept(struct reader *r, const char *word);
void rd_expect(struct reader *r, const char *word);
void rd_unexpected(struct reader *r, const char *want) __attribute__((noreturn, cold));
bool rd_two(struct reader *r, int a, int b, size_t *ret_end); /* an operator of two bytes here? */
struct sh_command *rd_command(struct reader *r, enum sh_command_kind kind, size_t from); /* a new one, to be filled */
struct sh_command *rd_end(const struct reader *r, struct sh_command *c); /* it ends here */
struct sh_command *rd_cover(struct sh_command *c, struct sh_place last); /* ... or at the end of what is last in it */

/* parse_compound.c: NULL: none begins here */
struct sh_command *rd_compound(struct reader *r);

/* parse_condition.c: from after [[ */
struct sh_command *rd_condition(struct reader *r, size_t from);

/* parse_redirect.c */
bool rd_descriptor(struct reader *r, int *ret_fd, const char **ret_name); /* 2> or {fd}> here?  Then r stands on the operator */
struct sh_redirect *rd_redirect(struct reader *r); /* one, if one is here */
void rd_redirects(struct reader *r, struct sh_command *c); /* those after a compound command */
const char *rd_literal_of(const struct sh_word *w); /* the text of a word that is one literal; NULL: it is not */
