/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - simple commands, functions, lists and scripts. */
#include "shell/internal.h"

#include <stdlib.h>

static const char *const reserved[] = { "if",    "then", "else", "elif", "fi",   "case", "esac", "for", "select", "while", "until",
					"do",    "done", "in",   "function", "time", "{",  "}",    "!",   "[[",     "]]",    "coproc" };

bool rd_reserved(const char *word)
{
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (!strcmp(word, reserved[i]))
			return true;
	return false;
}

/* The reserved word that stands here, where one can; NULL: none. */
const char *rd_keyword(struct reader *r, size_t *ret_end)
{
	char word[12];
	int c;

	rd_blanks(r);
	c = rd_cur(r);
	if (c < 0 || !strchr("itefcswud{}![]", c) || !rd_bare(r, word, sizeof word, ret_end))
		return NULL;
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (!strcmp(word, reserved[i]))
			return reserved[i];
	return NULL;
}

bool rd_is(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

bool rd_accept(struct reader *r, const char *word)
{
	size_t end;

	if (!rd_is(rd_keyword(r, &end), word))
		return false;
	r->s.pos = end;
	return true;
}

void rd_unexpected(struct reader *r, const char *want)
{
	char word[24];
	int c = rd_cur(r);

	if (c < 0)
		rd_fail(r, CS_E_INVALID, r->s.pos, "the end comes too early: %s is missing", want);
	if (c == '\n')
		rd_fail(r, CS_E_INVALID, r->s.pos, "unexpected end of line: %s is missing", want);
	if (rd_bare(r, word, sizeof word, NULL))
		rd_fail(r, CS_E_INVALID, r->s.pos, "unexpected '%s': %s is missing", word, want);
	rd_fail(r, CS_E_INVALID, r->s.pos, "unexpected '%c': %s is missing", c > 0x20 && c < 0x7f ? c : '?', want);
}

void rd_expect(struct reader *r, const char *word)
{
	if (!rd_accept(r, word))
		rd_unexpected(r, word);
}

/* An operator of two bytes here? */
bool rd_two(struct reader *r, int a, int b, size_t *ret_end)
{
	size_t pos;

	if (rd_cur(r) != a || rd_after(r, r->s.pos + 1, &pos) != b)
		return false;
	if (ret_end)
		*ret_end = pos + 1;
	return true;
}

struct sh_command *rd_command(struct reader *r, enum sh_command_kind kind, size_t from)
{
	struct sh_command *c = rd_new(r, sizeof *c);

	c->kind = kind;
	c->place.at = rd_place(r, from, from).at;
	return c;
}

struct sh_command *rd_end(const struct reader *r, struct sh_command *c)
{
	c->place.len = rd_place(r, r->s.pos, r->s.pos).at - c->place.at;
	return c;
}

/* To the end of what is last in it: blanks and a comment may have been read since. */
struct sh_command *rd_cover(struct sh_command *c, struct sh_place last)
{
	c->place.len = last.at + last.len - c->place.at;
	return c;
}

/* ---- simple commands and functions ---- */

static bool takes_arrays(const char *name)
{
	static const char *const all[] = { "declare", "typeset", "local", "export", "readonly", "alias", "eval", "let" };

	for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
		if (!strcmp(name, all[i]))
			return true;
	return false;
}

/* declare x=(..) */
static struct sh_word *array_argument(struct reader *r, const char *command)
{
	struct sh_word *w = rd_new(r, sizeof *w);
	struct sh_part *p = rd_new(r, sizeof *p);

	if (rd_is(command, "alias") || rd_is(command, "eval") || rd_is(command, "let"))
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "an array as an argument of %s", command);
	p->kind = SH_ARRAY;
	p->assign = rd_assign(r);
	p->place = w->place = p->assign->place;
	w->parts = p;
	return w;
}

static const char *function_name(struct reader *r, const struct sh_word *w)
{
	const struct sh_part *p = w->parts;

	if (p->kind != SH_LIT || p->next)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "the name of a function is not plain");
	return p->text;
}

struct sh_command *rd_function_body(struct reader *r, const char *name, size_t from)
{
	struct sh_command *c = rd_command(r, SH_FUNCTION, from);

	c->name = name;
	rd_newlines(r);
	rd_enter(r);
	c->child = rd_compound(r);
	if (!c->child)
		rd_unexpected(r, "the body of a function");
	rd_leave(r);
	return rd_cover(c, c->child->place);
}

/* After its first word: "()" makes it a function. */
static struct sh_command *maybe_function(struct reader *r, const struct sh_command *c, size_t from)
{
	rd_blanks(r);
	if (rd_cur(r) != '(')
		return NULL;
	if (c->assigns || c->redirects || !c->words || c->words->next)
		rd_unexpected(r, "an end of the command");
	r->s.pos++;
	rd_blanks(r);
	if (rd_cur(r) != ')')
		rd_unexpected(r, "an end of the command");
	r->s.pos++;
	return rd_function_body(r, function_name(r, c->words), from);
}

static struct sh_command *simple(struct reader *r)
{
	size_t from = (rd_blanks(r), r->s.pos);
	struct sh_command *c = rd_command(r, SH_SIMPLE, from), *function;
	struct sh_assign **assigns = &c->assigns;
	struct sh_redirect **redirs = &c->redirects;
	struct sh_word **words = &c->words;
	bool arrays = false, blocked = false, mixed = false, assigned;
	const char *name = NULL;
	size_t after = from;

	for (;; after = r->s.pos) {
		if ((*redirs = rd_redirect(r))) {
			redirs = &(*redirs)->next;
			mixed = mixed || c->assigns;
			blocked = true; /* bash forgets by then that arrays are welcome */
			continue;
		}
		if (rd_is_break(rd_cur(r)) && !((rd_cur(r) == '<' || rd_cur(r) == '>')))
			break;
		r->late += mixed; /* bash does not look for an index any more */
		assigned = !c->words && rd_assign_follows(r, false);
		r->late -= mixed;
		if (assigned) {
			*assigns = rd_assign(r);
			if (mixed && ((*assigns)->array || (*assigns)->index))
				rd_fail(r, CS_E_UNSUPPORTED, after, "an array after an assignment and a redirection");
			assigns = &(*assigns)->next;
			continue;
		}
		if (arrays && !blocked && rd_assign_follows(r, true)) {
			*words = array_argument(r, name);
		} else {
			bool first = !c->words;
			char bare[12];

			if (first && rd_bare(r, bare, sizeof bare, NULL))
				arrays = takes_arrays(bare);
			blocked = blocked || rd_cur(r) == '<' || rd_cur(r) == '>';
			*words = rd_word(r, WORD_COMMAND);
			if (!*words)
				rd_unexpected(r, "a word");
			if (first) {
				name = rd_literal_of(*words);
				blocked = false;
			}
		}
		words = &(*words)->next;
	}
	function = maybe_function(r, c, from);
	if (function)
		return function;
	if (!c->words && !c->assigns && !c->redirects)
		rd_unexpected(r, "a command");
	c->place.len = rd_place(r, after, after).at - c->place.at;
	return c;
}

/* ---- commands ---- */

static struct sh_command *function_command(struct reader *r, size_t from)
{
	struct sh_word *w;
	const char *name;
	size_t close;

	rd_blanks(r);
	w = rd_word(r, WORD_PLAIN);
	if (!w)
		rd_unexpected(r, "the name of a function");
	name = function_name(r, w);
	rd_blanks(r);
	if (rd_cur(r) == '(') {
		size_t pos = r->s.pos + 1;
		int c;

		while ((c = rd_after(r, pos, &pos)) == ' ' || c == '\t')
			pos++;
		close = pos;
		if (c == ')')
			r->s.pos = close + 1;
	}
	return rd_function_body(r, name, from);
}

static struct sh_command *coproc_command(struct reader *r, size_t from)
{
	struct sh_command *c = rd_command(r, SH_COPROC, from);
	struct source save;
	struct sh_word *w;
	const char *word;

	rd_enter(r);
	c->child = rd_compound(r);
	if (!c->child) {
		word = rd_keyword(r, NULL);
		if (word && strcmp(word, "time"))
			rd_unexpected(r, "a command after coproc");
		save = r->s;
		if (!rd_is_break(rd_cur(r)) && !rd_assign_follows(r, false)) {
			char bare[64];
			size_t after, n = rd_bare(r, bare, sizeof bare, &after);

			if (n && rd_peek(r, after) != '<' && rd_peek(r, after) != '>') {
				r->s.pos = after;
				word = rd_keyword(r, NULL);
				c->child = rd_compound(r);
				if (!c->child && word && strcmp(word, "time"))
					rd_unexpected(r, "a command after coproc");
				if (c->child && !rd_is_name(bare, n))
					rd_fail(r, CS_E_UNSUPPORTED, from, "the name of a coproc is not a name");
				if (c->child)
					c->name = rd_copy(r, bare, n);
			} else if (!n) {
				w = rd_word(r, WORD_COMMAND);
				rd_pay(r, r->s.pos - save.pos);
				word = w ? rd_keyword(r, NULL) : NULL;
				if ((word && strcmp(word, "time")) || rd_cur(r) == '(')
					rd_fail(r, CS_E_UNSUPPORTED, from, "the name of a coproc is not plain");
			}
		}
		if (!c->child) {
			r->s = save;
			c->child = simple(r);
			if (c->child->kind != SH_SIMPLE)
				rd_fail(r, CS_E_INVALID, from, "a function as a coproc");
		}
	}
	rd_leave(r);
	return rd_cover(c, c->child->place);
}

static struct sh_command *command(struct reader *r)
{
	size_t after, from;
	const char *word = rd_keyword(r, &after);
	struct sh_command *c;

	from = r->s.pos;
	if (word && !strcmp(word, "function")) {
		r->s.pos = after;
		return function_command(r, from);
	}
	if (word && !strcmp(word, "coproc")) {
		r->s.pos = after;
		return coproc_command(r, from);
	}
	c = rd_compound(r);
	if (c)
		return c;
	if (word && strcmp(word, "time") != 0)
		rd_unexpected(r, "a command");
	return simple(r);
}

static struct sh_command *pipeline(struct reader *r)
{
	struct sh_command *first = command(r), *pipe, **tail;
	size_t after;

	rd_blanks(r);
	if (rd_cur(r) != '|' || rd_two(r, '|', '|', NULL))
		return first;
	pipe = rd_command(r, SH_PIPE, r->s.pos);
	pipe->place.at = first->place.at;
	pipe->child = first;
	tail = &first->next;
	while (rd_cur(r) == '|' && !rd_two(r, '|', '|', NULL)) {
		bool both = rd_two(r, '|', '&', &after), line;

		if (both)
			first->both = true;
		r->s.pos = both ? after : r->s.pos + 1;
		rd_blanks(r);
		line = rd_cur(r) == '\n';
		rd_newlines(r);
		if (both && line && rd_is(rd_keyword(r, NULL), "time"))
			rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "time after |&");
		*tail = first = command(r);
		tail = &first->next;
		rd_blanks(r);
	}
	return rd_cover(pipe, first->place);
}

/* bash 5.2 takes "time" as the first word of $(..) for a plain word, and for the reserved one when it runs that; later versions
 * for the reserved one at once.  Only what is the same to both is certain. */
static void check_first_time(struct reader *r, const struct sh_command *c, size_t from)
{
	while (c && c->kind == SH_PIPE)
		c = c->child;
	if (!c || c->kind != SH_SIMPLE || c->assigns || !c->words || c->words->parts->kind == SH_ARRAY)
		rd_fail(r, CS_E_UNSUPPORTED, from, "time before something else than a simple command in a substitution");
	for (const struct sh_word *w = c->words; w; w = w->next)
		if (w->parts->kind == SH_ARRAY)
			rd_fail(r, CS_E_UNSUPPORTED, from, "time before an array in a substitution");
}

static void time_options(struct reader *r, struct sh_command *c)
{
	char word[4];
	size_t after;

	rd_blanks(r);
	if (rd_bare(r, word, sizeof word, &after) == 2 && !strcmp(word, "-p")) {
		c->posix_time = true;
		r->s.pos = after;
		rd_blanks(r);
	}
	if (rd_bare(r, word, sizeof word, &after) == 2 && !strcmp(word, "--")) {
		c->posix_time = true; /* so does bash */
		r->s.pos = after;
	}
}

/* !, time and a pipeline. */
static struct sh_command *timed(struct reader *r)
{
	struct sh_command *top = NULL, **where = &top, *c;
	bool first = r->first_in_substitution;
	size_t start = r->s.pos;
	unsigned depth = r->depth;
	size_t after;

	r->first_in_substitution = false;
	for (;;) {
		size_t from = (rd_blanks(r), r->s.pos);

		if (rd_is(rd_keyword(r, &after), "time")) {
			c = rd_command(r, SH_TIME, from);
			r->s.pos = after;
			time_options(r, c);
			if (first && !top && (rd_blanks(r), rd_is_break(rd_cur(r))))
				check_first_time(r, NULL, start);
		} else if (rd_is(rd_keyword(r, &after), "!")) {
			c = rd_command(r, SH_NOT, from);
			r->s.pos = after;
		} else {
			break;
		}
		rd_enter(r);
		*where = c;
		where = &c->child;
		rd_blanks(r);
		if (rd_cur(r) < 0 || rd_cur(r) == '\n' || (rd_cur(r) == ';' && !rd_two(r, ';', ';', NULL) && !rd_two(r, ';', '&', NULL))) {
			if (first && top->kind == SH_TIME)
				check_first_time(r, NULL, start);
			for (struct sh_command *k = top; k; k = k->child)
				rd_end(r, k);
			r->depth = depth;
			return top;
		}
	}
	*where = pipeline(r);
	if (first && top->kind == SH_TIME)
		check_first_time(r, top->child, start);
	for (c = top; c && c != *where; c = c->child)
		rd_cover(c, (*where)->place);
	r->depth = depth;
	return top;
}

static struct sh_command *and_or(struct reader *r)
{
	struct sh_command *left = timed(r), *last = NULL;
	unsigned depth = r->depth;
	size_t after;

	for (;;) {
		enum sh_command_kind kind;
		struct sh_command *node;

		rd_blanks(r);
		if (rd_two(r, '&', '&', &after))
			kind = SH_AND;
		else if (rd_two(r, '|', '|', &after))
			kind = SH_OR;
		else
			break;
		r->s.pos = after;
		rd_newlines(r);
		if (last && left->kind == kind) {
			last = last->next = timed(r);
		} else {
			rd_enter(r);
			node = rd_command(r, kind, r->s.pos);
			node->place.at = left->place.at;
			node->child = left;
			left = node;
			last = node->child->next = timed(r);
		}
		rd_cover(left, last->place);
	}
	r->depth = depth;
	return left;
}

/* Nothing that could be a command: the end, or what closes something. */
static bool at_close(struct reader *r)
{
	static const char *const closers[] = { "then", "else", "elif", "fi", "do", "done", "esac", "}" };
	const char *word = rd_keyword(r, NULL);
	int c = rd_cur(r);

	if (c < 0 || c == ')' || rd_two(r, ';', ';', NULL) || rd_two(r, ';', '&', NULL))
		return true;
	for (size_t i = 0; word && i < sizeof closers / sizeof *closers; i++)
		if (!strcmp(word, closers[i]))
			return true;
	return false;
}

/* One or more commands with what separates them. */
struct sh_command *rd_list(struct reader *r)
{
	struct sh_command *first = NULL, **tail = &first, *c, *node;

	rd_enter(r);
	rd_newlines(r);
	if (at_close(r))
		rd_unexpected(r, "a command");
	do {
		c = and_or(r);
		rd_blanks(r);
		if (rd_cur(r) == '&') {
			node = rd_command(r, SH_BACKGROUND, r->s.pos);
			node->place.at = c->place.at;
			node->child = c;
			c = node;
			r->s.pos++;
			rd_end(r, c);
		} else if (rd_cur(r) == ';' && !rd_two(r, ';', ';', NULL) && !rd_two(r, ';', '&', NULL)) {
			r->s.pos++;
		} else if (!rd_newline(r)) {
			*tail = c;
			break;
		}
		*tail = c;
		tail = &c->next;
		rd_newlines(r);
	} while (!at_close(r));
	rd_leave(r);
	if (!first->next)
		return first;
	node = rd_command(r, SH_SEQUENCE, r->s.pos);
	node->place.at = first->place.at;
	node->child = first;
	return rd_cover(node, c->place);
}

struct sh_script *rd_script(struct reader *r, int close)
{
	struct pending *here = r->here, **here_end = r->here_end;
	struct sh_script *s = rd_new(r, sizeof *s);
	size_t from = r->s.pos;

	r->here = NULL;
	r->here_end = &r->here;
	rd_newlines(r);
	if (rd_cur(r) >= 0 && rd_cur(r) != close)
		s->first = rd_list(r);
	rd_blanks(r);
	if (r->here)
		rd_fail(r, CS_E_UNSUPPORTED, r->s.pos, "here-document without its end, '%.40s'", r->here->redirect->delimiter);
	if (rd_cur(r) >= 0 && rd_cur(r) != close)
		rd_unexpected(r, close == ')' ? ")" : "an end of the command");
	s->text = r->s.t + from;
	s->len = r->s.pos - from;
	r->first_in_substitution = false;
	r->here = here;
	r->here_end = here ? here_end : &r->here;
	return s;
}

/* Apart from sh_parse(), so that nothing here is of its frame: what longjmp() may do to that is not defined. */
static int read_all(struct reader *r, struct sh_script **ret)
{
	size_t len = r->s.end;

	if (setjmp(r->out))
		return -(int)r->code;
	rd_check_text(r);
	r->s.t = rd_copy(r, r->s.t, len);
	*ret = rd_script(r, -1);
	(*ret)->arena = r->arena;
	(*ret)->text = r->s.t;
	(*ret)->len = r->s.end;
	return 0;
}

int sh_parse(const char *text, size_t len, struct sh_script **ret, uint32_t *ret_at, struct cs_err *err)
{
	struct reader r = { .err = err, .s = { .t = text, .end = len }, .work = len * 4 + 4096, .inner = SIZE_MAX };
	struct sh_script *s = NULL;
	int result;

	if (len > SH_TEXT_MAX) {
		if (ret_at)
			*ret_at = SH_TEXT_MAX;
		return cs_fail(err, CS_E_LIMIT, 0, "longer than %d bytes", SH_TEXT_MAX);
	}
	r.here_end = &r.here;
	r.arena = sh_arena_new();
	if (!r.arena)
		return cs_fail(err, CS_E_LIMIT, 0, "out of memory");
	result = read_all(&r, &s);
	free(r.scratch);
	if (result < 0) {
		sh_arena_free(r.arena);
		if (ret_at)
			*ret_at = (uint32_t)r.at;
		return result;
	}
	*ret = s;
	return 0;
}

void sh_free(struct sh_script *s)
{
	if (s)
		sh_arena_free(s->arena);
}
