/* SPDX-License-Identifier: Apache-2.0 */
/* table_words.c - the words of a command, parsed as the command itself would.
 *
 * First the options are parsed as the command itself would parse them; they leave findings, modes and a list of
 * operands.  Then the first pattern of operands whose modes and count fit says what the operands are.
 *
 * What is not known of a word never makes it harmless: a word that may be an option is UNKNOWN unless the row says that
 * no option of that command can do more than read, and where words may be several, each gets every role that it may
 * have. */
#include "shell/table_run.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct option {
	const struct sh_table *t;
	const struct sh_opt *o;
};

static const struct sh_opt *option_in(const struct tbl_hit *h, const char *name, size_t len)
{
	const struct sh_opt *v = h->t->opts + h->row->opt;
	size_t lo = 0, hi = h->row->n_opts;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const char *s = h->t->strings + v[mid].name;
		int c = strncmp(s, name, len);

		if (c == 0 && s[len])
			c = 1;
		if (c == 0)
			return v[mid].prefix ? NULL : &v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool find_option(const struct tbl_run *r, const char *name, size_t len, struct option *ret)
{
	for (size_t k = 0; k <= r->n_chain; k++) {
		const struct tbl_hit *h = k ? &r->chain[k - 1] : &r->hit;

		ret->o = option_in(h, name, len);
		ret->t = h->t;
		if (ret->o)
			return true;
	}
	return false;
}

/* The longest -X* that the word begins with. */
static bool find_prefix(const struct tbl_run *r, const char *word, struct option *ret)
{
	const struct tbl_hit *h = &r->hit;
	size_t best = 0;

	for (size_t i = 0; i < h->row->n_opts; i++) {
		const struct sh_opt *o = &h->t->opts[h->row->opt + i];
		const char *s = h->t->strings + o->name;
		size_t n = strlen(s);

		if (o->prefix && n > best && !strncmp(word, s, n)) {
			best = n;
			*ret = (struct option){ h->t, o };
		}
	}
	return best > 0;
}

/* ---- options ---- */

static void operand(struct tbl_run *r, size_t i)
{
	r->operands[r->n_operands++] = (uint32_t)i;
}

static bool has_effect(const struct sh_table *t, const struct sh_opt *o)
{
	bool effect = o->modes || o->does;

	for (size_t k = 0; k < o->n_slots; k++) {
		const struct sh_slot *s = &t->slots[o->slot + k];

		effect |= s->role2 || (s->role != SH_ROLE_INERT && s->role != SH_ROLE_READ) || s->form != SH_FORM_PLAIN;
	}
	return effect;
}

/* A word of find is an option only as a whole: whether the pattern matches the name of one that does something.  (Every
 * such option of find is in the row.) */
static bool pattern_may_act(const struct tbl_run *r, const char *pattern)
{
	const struct tbl_hit *h = &r->hit;

	if (strpbrk(pattern, "(\\[") || strlen(pattern) > 256)
		return true;
	for (size_t k = 0; k < h->row->n_opts; k++) {
		const struct sh_opt *o = &h->t->opts[h->row->opt + k];

		if (has_effect(h->t, o) && cs_glob(pattern, h->t->strings + o->name))
			return true;
	}
	return false;
}

static void maybe_option(struct tbl_run *r, size_t i)
{
	uint32_t flags = r->hit.row->flags;

	if ((flags & SH_ROW_FIND) && r->argv[i].known == SH_PATTERN && !pattern_may_act(r, r->argv[i].text))
		return;
	if (flags & SH_ROW_INERT)
		return;
	/* A file's name out of a pattern names, as an option, files beside it. */
	if ((flags & SH_ROW_PURE) && !(flags & SH_ROW_READS) && r->argv[i].known == SH_PATTERN) {
		sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_READ_TREE, .arg = i, .text = r->argv[i].text, .known = SH_PATTERN });
		return;
	}
	if (flags & SH_ROW_PURE) {
		sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_READ, .arg = i, .text = "", .known = SH_DYNAMIC });
		return;
	}
	if (r->unsure) /* once is enough, and many would be the caller's time */
		return;
	r->unsure = true;
	tbl_unknown(r, i, "%s may be an option of %s");
}

/* The words of find -exec. Returns the index of its last. */
static size_t until(struct tbl_run *r, size_t i)
{
	size_t end = i, braces = 0;

	r->f->replace = "{}";
	r->f->replace_paths = true;
	for (; end < r->n; end++) {
		const struct sh_arg *a = &r->argv[end];

		if (tbl_is_literal(a, ";") || (end > i && tbl_is_literal(a, "+") && tbl_is_literal(a - 1, "{}")))
			break;
		braces = tbl_is_literal(a, "{}") ? end : braces;
	}
	for (size_t k = i; k < end; k++) {
		const struct sh_arg *a = &r->argv[k];

		/* It may be the ';' itself; were that so, a {} behind it would be an error. */
		if (a->known == SH_DYNAMIC || (a->known == SH_PREFIX && !*a->text && k > braces)) {
			tbl_unknown(r, k, "%s may end the command of %s");
			break;
		}
	}
	if (end == r->n && i < r->n)
		tbl_unknown(r, i, "'%s': the command of %s has no end");
	tbl_command(r, i, end);
	return end;
}

/* The arguments of an option that stand in words of their own, from word i on. Returns the last word used. */
static size_t arguments(struct tbl_run *r, const struct option *o, size_t i, size_t from)
{
	for (size_t k = from; k < o->o->n_slots; k++) {
		const struct sh_slot *s = &o->t->slots[o->o->slot + k];
		const struct sh_arg *a;

		if (i + 1 >= r->n)
			return i;
		a = &r->argv[++i];
		if (s->form == SH_FORM_UNTIL) {
			i = until(r, i);
			return i < r->n ? i : r->n - 1;
		}
		tbl_value(r, o->t, s, i, a->text);
		/* More words than one, or none: what follows may be options, and operands may be here. */
		if (a->known == SH_DYNAMIC || (a->known == SH_PATTERN && tbl_may_begin(a, '-')))
			maybe_option(r, i);
		if (tbl_is_many(a) && !(r->hit.row->flags & SH_ROW_FIND))
			operand(r, i);
	}
	return i;
}

static void take(struct tbl_run *r, const struct option *o)
{
	/* Modes are the row's own: an option from above has none here. */
	if (o->o >= o->t->opts + r->hit.row->opt && o->o < o->t->opts + r->hit.row->opt + r->hit.row->n_opts)
		r->modes |= o->o->modes;
	if (o->o->does)
		tbl_take_does(r, o->o->does, &r->hit);
}

/* An option whose argument, if it has one, is `attached` or (NULL) in the next word. Returns the last word used. */
static size_t option(struct tbl_run *r, const struct option *o, size_t i, const char *attached)
{
	take(r, o);
	if (o->o->arg == SH_ARG_NONE)
		return i;
	if (attached && o->t->slots[o->o->slot].form == SH_FORM_UNTIL) {
		tbl_unknown(r, i, "%s: the command of %s stands in words of its own");
		return i;
	}
	if (attached) {
		tbl_value(r, o->t, &o->t->slots[o->o->slot], i, attached);
		return arguments(r, o, i, 1);
	}
	if (o->o->arg == SH_ARG_NEEDED)
		return arguments(r, o, i, 0);
	if (o->t->slots[o->o->slot].form == SH_FORM_REPLACE)
		r->f->replace = "{}";
	return i;
}

static bool same_effect(const struct option *a, const struct option *b)
{
	const struct sh_slot *x = &a->t->slots[a->o->slot], *y = &b->t->slots[b->o->slot];

	return a->o->arg == b->o->arg && a->o->modes == b->o->modes && a->o->does == b->o->does && a->o->n_slots == b->o->n_slots &&
	       (!a->o->n_slots || !memcmp(x, y, sizeof *x));
}

/* An abbreviation, as getopt_long takes it: of one option, or of several that are the same to us. */
static bool abbreviated(const struct tbl_run *r, const char *name, size_t len, struct option *ret)
{
	const struct tbl_hit *h = &r->hit;
	bool found = false;

	if (!(h->row->flags & SH_ROW_GNU) || len < 3)
		return false;
	for (size_t i = 0; i < h->row->n_opts; i++) {
		struct option o = { h->t, &h->t->opts[h->row->opt + i] };

		if (strncmp(h->t->strings + o.o->name, name, len) != 0)
			continue;
		if (found && !same_effect(ret, &o))
			return false;
		*ret = o;
		found = true;
	}
	return found;
}

static bool is_help(const struct tbl_run *r, const char *text)
{
	return (r->hit.row->flags & SH_ROW_GNU) && (!strcmp(text, "--help") || !strcmp(text, "--version"));
}

static size_t long_option(struct tbl_run *r, size_t i)
{
	const struct sh_arg *a = &r->argv[i];
	const char *equal = strchr(a->text, '=');
	size_t len = equal ? (size_t)(equal - a->text) : strlen(a->text);
	struct option o;

	if (!equal && a->known != SH_LITERAL) {
		tbl_unknown(r, i, "'%s...': the rest of this option of %s is not known");
		return i;
	}
	if (is_help(r, a->text))
		return i;
	if (!find_option(r, a->text, len, &o) && !abbreviated(r, a->text, len, &o)) {
		tbl_unknown(r, i, "unknown option %s of %s");
		return i;
	}
	if (equal && o.o->arg == SH_ARG_NONE) {
		tbl_unknown(r, i, "option %s of %s takes no value");
		return i;
	}
	return option(r, &o, i, equal ? equal + 1 : NULL);
}

static bool is_number(const char *s)
{
	const char *p = s;

	while (isdigit((unsigned char)*p))
		p++;
	return p > s && !*p;
}

/* -name, -name VALUE, -name=VALUE, -nameVALUE where the row has -name*. */
static size_t word_option(struct tbl_run *r, size_t i)
{
	const struct sh_arg *a = &r->argv[i];
	const char *equal = strchr(a->text, '=');
	struct option o;

	if (a->known == SH_LITERAL && find_option(r, a->text, strlen(a->text), &o))
		return option(r, &o, i, NULL);
	if (a->known == SH_LITERAL && is_number(a->text + 1) && find_option(r, "-#", 2, &o))
		return option(r, &o, i, NULL);
	if (find_prefix(r, a->text, &o)) {
		const char *rest = a->text + strlen(o.t->strings + o.o->name);

		return option(r, &o, i, *rest || a->known != SH_LITERAL || o.o->arg == SH_ARG_ATTACHED ? rest : NULL);
	}
	if (equal && find_option(r, a->text, (size_t)(equal - a->text), &o) && o.o->arg != SH_ARG_NONE)
		return option(r, &o, i, equal + 1);
	tbl_unknown(r, i, "unknown option %s of %s");
	return i;
}

/* Letters behind one dash. ends: where the row's last option (/end) was among them. */
static size_t short_options(struct tbl_run *r, size_t i, bool *ends)
{
	const struct sh_arg *a = &r->argv[i];
	struct option o;

	if (a->known == SH_LITERAL && is_number(a->text + 1) && find_option(r, "-#", 2, &o))
		return option(r, &o, i, NULL);
	for (const char *p = a->text + 1; *p; p++) {
		char name[3] = { '-', *p, '\0' };

		if (!find_option(r, name, 2, &o)) {
			if (p == a->text + 1 && find_prefix(r, a->text, &o))
				return option(r, &o, i, a->text + strlen(o.t->strings + o.o->name));
			tbl_unknown(r, i, "unknown option %s of %s");
			return i;
		}
		*ends |= (o.o->last & SH_LAST_END) != 0;
		if (o.o->arg == SH_ARG_NONE) {
			take(r, &o);
			continue;
		}
		if (p[1] || a->known != SH_LITERAL)
			return option(r, &o, i, p + 1);
		return option(r, &o, i, NULL);
	}
	if (a->known != SH_LITERAL)
		tbl_unknown(r, i, "'%s...': the rest of these options of %s is not known");
	return i;
}

/* tar xzf: letters without a dash, whose arguments follow in order. */
static size_t old_options(struct tbl_run *r, size_t i)
{
	const char *letters = r->argv[i].text;
	size_t at = i;

	for (const char *p = letters; *p; p++) {
		char name[3] = { '-', *p, '\0' };
		struct option o;

		if (!find_option(r, name, 2, &o)) {
			tbl_unknown(r, i, "unknown option in %s of %s");
			return at;
		}
		take(r, &o);
		if (o.o->arg == SH_ARG_NEEDED)
			at = arguments(r, &o, at, 0);
	}
	return at;
}

static void keyed(struct tbl_run *r, size_t i)
{
	const struct sh_arg *a = &r->argv[i];
	const char *equal = a->known == SH_LITERAL || a->known == SH_PREFIX ? strchr(a->text, '=') : NULL;
	struct option o;

	if (equal && find_option(r, a->text, (size_t)(equal + 1 - a->text), &o))
		(void)option(r, &o, i, equal + 1);
	else
		tbl_unknown(r, i, "unknown operand %s of %s");
}

/* ---- kinds of commands ---- */

/* test: -v and -R evaluate the subscript of what follows them. */
static void test_words(struct tbl_run *r)
{
	for (size_t i = 1; i + 1 < r->n; i++) {
		const struct sh_arg *a = &r->argv[i], *b = a + 1;
		bool may = a->known == SH_DYNAMIC || (a->known == SH_PREFIX && (!*a->text || !strcmp(a->text, "-"))) ||
			   (a->known == SH_PATTERN && tbl_pattern_may_begin(a->text, '-')) || tbl_is_literal(a, "-v") || tbl_is_literal(a, "-R");

		if (may && (b->known != SH_LITERAL || strpbrk(b->text, "[$`")) && !tbl_is_literal(b, "[")) {
			tbl_unknown(r, i + 1, "%s for %s: a subscript may be evaluated");
			return;
		}
	}
	/* Of two words the first is the operator. */
	if (r->n == (tbl_is_literal(&r->argv[0], "[") ? 4 : 3) && r->argv[1].known == SH_PREFIX && !*r->argv[1].text)
		tbl_unknown(r, 1, "'%s...': the operator of %s is not known");
	/* Alone it can be several words. */
	for (size_t i = 1; i < r->n; i++)
		if (tbl_is_many(&r->argv[i])) {
			tbl_unknown(r, i, "%s may be an expression of %s");
			return;
		}
}

static bool is_expression(const struct sh_arg *a)
{
	return a->known == SH_LITERAL &&
	       ((a->text[0] == '-' && a->text[1]) || !strcmp(a->text, "(") || !strcmp(a->text, ")") || !strcmp(a->text, "!") || !strcmp(a->text, ","));
}

static void find_words(struct tbl_run *r)
{
	bool expression = false;

	for (size_t i = 1; i < r->n; i++) {
		const struct sh_arg *a = &r->argv[i];
		/* -H -L -P -O3 -D x stand before the paths. */
		bool leading = a->known == SH_LITERAL && !expression &&
			       (!strcmp(a->text, "-H") || !strcmp(a->text, "-L") || !strcmp(a->text, "-P") || !strncmp(a->text, "-O", 2));

		if (leading)
			continue;
		if (is_expression(a)) {
			expression = true;
			if (a->text[0] == '-')
				i = word_option(r, i);
			continue;
		}
		if (a->known != SH_LITERAL && (tbl_may_begin(a, '-') || tbl_may_begin(a, '(') || tbl_may_begin(a, '!')))
			maybe_option(r, i);
		if (expression && !(a->known == SH_PATTERN && !tbl_may_begin(a, '-')))
			tbl_unknown(r, i, "%s: paths come before the expression of %s");
		else
			operand(r, i);
	}
}

/* --include=*.c: whatever files it stands for, all of them are this option. */
static bool pattern_is_option(const struct sh_arg *a)
{
	size_t sure = strcspn(a->text, "*?[\\(");

	return a->known == SH_PATTERN && a->text[0] == '-' && a->text[1] == '-' && a->text[2] && memchr(a->text, '=', sure);
}

/* Options and operands from word i on. */
static void ordinary_words(struct tbl_run *r, size_t i)
{
	uint32_t flags = r->hit.row->flags;
	bool over = flags & SH_ROW_NOOPT;
	struct option plus, at;
	bool has_plus = find_option(r, "+", 1, &plus), has_at = find_option(r, "@", 1, &at);

	if ((flags & SH_ROW_OLD) && i < r->n && r->argv[i].known == SH_LITERAL && r->argv[i].text[0] != '-')
		i = old_options(r, i) + 1;
	for (; i < r->n; i++) {
		const struct sh_arg *a = &r->argv[i];
		bool known_start = a->known == SH_LITERAL || a->known == SH_PREFIX || pattern_is_option(a);

		if (!over && known_start && a->text[0] == '-' && (a->text[1] || a->known == SH_PREFIX)) {
			if (tbl_is_literal(a, "--")) {
				over = true;
			} else if (a->text[1] == '-' && !(flags & SH_ROW_WORDS && !a->text[2])) {
				struct option o;
				bool last = find_option(r, a->text, strcspn(a->text, "="), &o) && (o.o->last & SH_LAST_END);

				i = long_option(r, i);
				over |= last;
			} else if (flags & SH_ROW_WORDS) {
				struct option o;
				bool last = a->known == SH_LITERAL && find_option(r, a->text, strlen(a->text), &o) && (o.o->last & SH_LAST_END);

				i = word_option(r, i);
				over |= last;
			} else {
				i = short_options(r, i, &over);
			}
			continue;
		}
		if (has_plus && (!over || plus.o->last & SH_LAST_ALWAYS) && known_start && a->text[0] == '+') {
			i = option(r, &plus, i, a->text + 1);
			continue;
		}
		if (has_at && known_start && a->text[0] == '@') {
			i = option(r, &at, i, a->text + 1);
			continue;
		}
		if (!over && (tbl_may_begin(a, '-') || (has_at && tbl_may_begin(a, '@')) || (has_plus && tbl_may_begin(a, '+'))) && !tbl_is_literal(a, "-"))
			maybe_option(r, i);
		if (flags & SH_ROW_KEYED)
			keyed(r, i);
		else
			operand(r, i);
		if (flags & SH_ROW_STOP) {
			/* NAME=VALUE before a command: options are over there too. */
			over = true;
			if (flags & SH_ROW_SUB)
				for (i++; i < r->n; i++)
					operand(r, i);
		}
	}
}

/* The row of a subcommand, from the first operand. Returns where its words begin, or 0 when there is none. */
static size_t subcommand(struct tbl_run *r)
{
	size_t at = r->operands[0], len = strlen(r->name);
	const struct sh_arg *a = &r->argv[at];
	struct tbl_hit h;

	if (a->known != SH_LITERAL) {
		tbl_unknown(r, at, "%s: the subcommand of %s is not known");
		return 0;
	}
	if (len + strlen(a->text) + 2 > sizeof r->name || !*a->text || strchr(a->text, ' ')) {
		tbl_unknown(r, at, "unknown subcommand %s of %s");
		return 0;
	}
	snprintf(r->name + len, sizeof r->name - len, " %s", a->text);
	if (!tbl_find_row(r->t, r->name, &h)) {
		r->name[len] = '\0';
		tbl_unknown(r, at, "unknown subcommand %s of %s");
		return 0;
	}
	if ((r->hit.row->flags & SH_ROW_INHERIT) && r->n_chain < CHAIN_MAX)
		r->chain[r->n_chain++] = r->hit;
	else if (!(r->hit.row->flags & SH_ROW_INHERIT))
		r->n_chain = 0;
	r->hit = h;
	return at + 1;
}

/* gcc --version and nothing else: the effects of the row are not those of this. */
static bool only_shows(const struct tbl_run *r)
{
	struct option o;

	return r->n == 2 && r->argv[1].known == SH_LITERAL && r->argv[1].text[0] == '-' &&
	       find_option(r, r->argv[1].text, strlen(r->argv[1].text), &o) && (o.o->last & SH_LAST_ONLY);
}

void tbl_apply_row(struct tbl_run *r)
{
	size_t from = 1;

	if (only_shows(r))
		return;
	for (;;) {
		uint32_t flags = r->hit.row->flags;

		r->modes = 0;
		r->n_operands = 0;
		tbl_take_does(r, r->hit.row->does, &r->hit);
		if (flags & SH_ROW_TEST) {
			test_words(r);
			return;
		}
		if (flags & SH_ROW_FIND)
			find_words(r);
		else
			ordinary_words(r, from);
		tbl_settle(r);
		if (!(flags & SH_ROW_SUB) || !r->n_operands) {
			tbl_operands(r);
			return;
		}
		from = subcommand(r);
		if (!from)
			return;
	}
}
