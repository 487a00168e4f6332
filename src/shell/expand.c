/* SPDX-License-Identifier: Apache-2.0 */
/* expand.c - words to arguments.
 *
 * A word that is literal in the text stays so.  What comes through a variable or a substitution is followed when
 * it is a constant, and marked: it may show that something is forbidden, and never that all is well. */
#include "shell/places.h"
#include "shell/walk.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A word that is being put together: finished fields, and the one that grows. */
struct piece {
	struct args *out;
	struct cs_buf text;
	bool any;              /* there is a field, even if it is empty */
	bool pattern, dynamic, followed, prefix_only;
	bool words;            /* ... of something unknown that may be several words, or none */
	bool split;            /* fields may be split off */
	uint32_t at, len;
	const char *ifs;       /* NULL: the usual; known constants only */
};

void args_add(struct walk *w, struct args *a, struct arg arg)
{
	work(w, 1);
	if (a->n >= SHW_ARGS_MAX) {
		a->endless = true;
		return;
	}
	if (a->n == a->room) {
		size_t room = a->room ? a->room * 2 : 8;
		struct arg *v = keep_bytes(w->mem, room * sizeof *v);

		if (a->n)
			memcpy(v, a->v, a->n * sizeof *v);
		a->v = v;
		a->room = room;
	}
	a->v[a->n++] = arg;
}

void set_positional(struct walk *w, struct state *s, const struct args *a, size_t from)
{
	s->positional = (struct args){ 0 };
	s->positional_known = !a->endless && !a->vanished;
	for (size_t i = from; i < a->n; i++) {
		args_add(w, &s->positional, a->v[i]);
		if (a->v[i].known != SH_LITERAL && a->v[i].known != SH_PREFIX) /* of how many words is not known */
			s->positional_known = false;
	}
}

static void finish_field(struct walk *w, struct piece *p)
{
	struct arg a = { .at = p->at, .len = p->len, .followed = p->followed };

	a.text = keep_text(w->mem, cs_buf_text(&p->text), p->text.len);
	a.known = p->dynamic ? (!p->words ? SH_PREFIX : SH_DYNAMIC) : p->pattern ? SH_PATTERN : SH_LITERAL;
	if (p->text.over)
		a.known = SH_DYNAMIC, a.text = keep_text(w->mem, "", 0);
	args_add(w, p->out, a);
	p->text.len = 0;
	if (p->text.data)
		p->text.data[0] = 0;
	p->any = p->pattern = p->dynamic = p->prefix_only = p->words = false;
}

static void add_text(struct piece *p, const char *s, size_t n)
{
	/* After something unknown only what came before is sure. */
	if (!p->dynamic)
		cs_buf_add(&p->text, s, n);
	p->any = true;
}

static void add_unknown(struct piece *p)
{
	if (!p->dynamic)
		p->prefix_only = p->text.len > 0;
	p->dynamic = p->any = true;
}

/* A constant that is not in quotes is split as bash would. */
static void add_split(struct walk *w, struct piece *p, const struct value *v)
{
	const char *ifs = p->ifs ? p->ifs : " \t\n";
	const char *s = v->text, *end = v->text + v->len;

	work(w, v->len / 32);
	while (s < end && !w->spent) {
		size_t n = p->split ? strcspn(s, ifs) : (size_t)(end - s);

		if (n > (size_t)(end - s))
			n = (size_t)(end - s);
		if (!n) {
			if (p->any)
				finish_field(w, p);
			s++;
			continue;
		}
		for (size_t i = 0; i < n && !p->pattern; i++)
			p->pattern = strchr("*?[", s[i]) != NULL;
		add_text(p, s, n);
		p->followed = true;
		s += n;
	}
}

/* "$@" and "${a[@]}": words of their own. */
static bool add_list(struct walk *w, struct state *s, struct piece *p, const struct sh_part *part)
{
	const struct sh_param *q = part->param;
	bool at = !strcmp(q->name, "@") || !strcmp(q->name, "*");
	const struct var *v = at ? NULL : var_find(s, q->name);
	struct arg index = { 0 };

	if (q->length || q->indirect || (q->op && *q->op))
		return false;
	if (at) {
		if (!s->positional_known)
			return false;
		p->followed = true;
		for (size_t i = 0; i < s->positional.n && !w->spent; i++) {
			const struct arg *a = &s->positional.v[i];

			if (a->known == SH_LITERAL)
				add_text(p, a->text, strlen(a->text));
			else
				add_unknown(p), p->words = true;
			p->followed = true;
			if (i + 1 < s->positional.n)
				finish_field(w, p);
		}
		return true;
	}
	if (!q->index || !v || !v->array)
		return false;
	index = expand_one(w, s, q->index);
	if (index.known != SH_LITERAL)
		return false;
	if (!strcmp(index.text, "@") || !strcmp(index.text, "*")) {
		p->followed = true;
		for (size_t i = 0; i < v->n_items && !w->spent; i++) {
			if (!v->items[i].known)
				add_unknown(p), p->words = true;
			else
				add_text(p, v->items[i].text, v->items[i].len);
			p->followed = true;
			if (i + 1 < v->n_items)
				finish_field(w, p);
		}
		return true;
	}
	return false;
}

static struct value lookup(struct walk *w, struct state *s, const struct sh_param *q, bool *is_set)
{
	const struct var *v = var_find(s, q->name);
	char *end;
	long n = strtol(q->name, &end, 10);

	*is_set = v != NULL && v->set;
	if (q->indirect)
		return *is_set = true, value_unknown();
	if (*q->name && !*end) { /* a positional */
		*is_set = !s->positional_known || (n >= 1 && (size_t)n <= s->positional.n);
		if (!s->positional_known || n < 1 || (size_t)n > s->positional.n)
			return s->positional_known && n >= 1 ? value_of(w, "", 0) : (*is_set = true, value_unknown());
		if (s->positional.v[n - 1].known != SH_LITERAL)
			return value_unknown();
		return value_text(w, s->positional.v[n - 1].text);
	}
	if (!v) {
		/* Of the environment, or not set: nobody knows. */
		*is_set = true;
		return value_unknown();
	}
	if (q->index) {
		struct arg i = expand_one(w, s, q->index);
		long k;

		if (!v->array || !arg_number(&i, &k) || k < 0 || (size_t)k >= v->n_items)
			return value_unknown();
		return v->items[k];
	}
	return v->array ? (v->n_items ? v->items[0] : value_unknown()) : v->value;
}

/* Of an array: "b[$(command)]" in a name that stands here would be run. */
void scan_index(struct walk *w, struct state *s, const struct sh_word *index)
{
	struct arg a = expand_one(w, s, index);

	if (a.known == SH_LITERAL && !a.followed && strspn(a.text, "0123456789") == strlen(a.text))
		return;
	if ((a.known == SH_LITERAL || a.known == SH_PATTERN) && !a.followed && (!strcmp(a.text, "@") || !strcmp(a.text, "*")))
		return;
	uncertain(w, &a, "an index is evaluated as arithmetic");
}

/* Expansions that evaluate a value, whatever it is used for. */
static void doubt_param(struct walk *w, struct state *s, const struct sh_param *q, const struct sh_place *place)
{
	const struct arg at = { .at = w->nested ? w->at : place->at, .len = w->nested ? w->len : place->len };
	const char *op = q->op ? q->op : "";

	if (q->indirect && strcmp(op, "*") && strcmp(op, "@") && !q->index)
		uncertain(w, &at, "the value of %s is evaluated as the name of another variable", q->name);
	if (*op == '@' && op[1] == 'P')
		uncertain(w, &at, "the value of %s is expanded again, as a prompt", q->name);
	if (!strcmp(op, ":"))
		for (int i = 0; i < 2; i++) {
			const struct sh_word *x = i ? q->arg2 : q->arg;
			struct arg a = x ? expand_one(w, s, x) : (struct arg){ .known = SH_LITERAL, .text = keep_text(w->mem, "", 0) };

			if (a.known != SH_LITERAL || a.followed || strspn(a.text, "0123456789- ") != strlen(a.text))
				uncertain(w, &at, "a value that is not known here is evaluated as arithmetic");
		}
	if (!q->length && !var_find(s, q->name) && sh_names_secret(q->name))
		uncertain(w, &at, "%s may hold a secret", q->name);
}

/* Of several words even in quotes. */
static bool is_list(const struct sh_param *q)
{
	const struct sh_part *i = q->index ? q->index->parts : NULL;

	return !strcmp(q->name, "@") || !strcmp(q->name, "*") || q->indirect || (i && (i->next || !i->text || i->len != 1 || !isdigit((unsigned char)i->text[0])));
}

static void add_param(struct walk *w, struct state *s, struct piece *p, const struct sh_part *part)
{
	const struct sh_param *q = part->param;
	struct value v;
	bool is_set;

	/* What runs inside of it runs whether or not the value is known. */
	if (q->index)
		scan_index(w, s, q->index);
	doubt_param(w, s, q, &part->place);
	if (add_list(w, s, p, part))
		return;
	v = lookup(w, s, q, &is_set);
	v = param_apply(w, s, q, v, is_set);
	if (q->arg && !v.known) {
		scan_word(w, s, q->arg);
		if (q->arg2)
			scan_word(w, s, q->arg2);
	}
	p->followed = true;
	if (!v.known || v.packed) {
		add_unknown(p);
		p->words |= (!part->quoted && p->split) || is_list(q);
		return;
	}
	if (part->quoted || !p->split)
		add_text(p, v.text, v.len);
	else
		add_split(w, p, &v);
}

static void add_command(struct walk *w, struct state *s, struct piece *p, const struct sh_part *part)
{
	struct state sub = state_copy(w, s);
	bool was_piped = w->piped;
	struct outcome o;

	w->piped = true;
	o = walk_script(w, &sub, part->script, NULL);
	w->piped = was_piped;
	p->followed = true;
	if (!o.out.known || o.out.packed) {
		add_unknown(p);
		p->words |= !part->quoted && p->split;
		return;
	}
	while (o.out.len && o.out.text[o.out.len - 1] == '\n')
		o.out.len--;
	if (part->quoted || !p->split)
		add_text(p, o.out.text, o.out.len);
	else
		add_split(w, p, &o.out);
}

static void add_parts(struct walk *w, struct state *s, struct piece *p, const struct sh_part *part);

static void add_part(struct walk *w, struct state *s, struct piece *p, const struct sh_part *part)
{
	switch (part->kind) {
	case SH_LIT:
	case SH_QUOTED:
		add_text(p, part->text, part->len);
		break;
	case SH_GLOB:
		p->pattern = true;
		add_text(p, part->text, part->len);
		break;
	case SH_TILDE:
		if (part->len == 0 && w->policy->home && !var_find(s, "HOME")) {
			add_text(p, w->policy->home, strlen(w->policy->home));
		} else if (part->len == 1 && *part->text == '+' && s->cwd) {
			add_text(p, s->cwd, strlen(s->cwd));
		} else {
			add_unknown(p);
		}
		break;
	case SH_PARAM:
		add_param(w, s, p, part);
		break;
	case SH_COMMAND:
		add_command(w, s, p, part);
		break;
	case SH_ARITH:
		for (const struct sh_word *x = part->words; x; x = x->next)
			scan_word(w, s, x);
		scan_arithmetic(w, s, part->text, part->place.at, part->place.len);
		p->followed = true;
		add_unknown(p);
		p->words |= !part->quoted && p->split; /* IFS may be a digit */
		break;
	case SH_PROCESS: {
		struct state sub = state_copy(w, s);
		struct outcome o = walk_script(w, &sub, part->script, NULL);
		char *path = keep_printf(w->mem, "/dev/fd/63.%u", part->place.at);

		if (part->direction == '<')
			file_set(w, s, path, o.out, NULL);
		add_text(p, path, strlen(path));
		break;
	}
	case SH_ARRAY: /* name=(..) after declare: the name is set to something */
		scan_assign(w, s, part->assign);
		add_text(p, part->assign->name, strlen(part->assign->name));
		break;
	case SH_BRACE: /* taken apart before */
		add_unknown(p);
		p->words = true;
		break;
	}
}

static void add_parts(struct walk *w, struct state *s, struct piece *p, const struct sh_part *part)
{
	for (; part; part = part->next) {
		work(w, 1);
		if (w->spent) {
			add_unknown(p);
			p->words = true;
			return;
		}
		add_part(w, s, p, part);
	}
}

static const char *ifs_of(struct walk *w, struct state *s)
{
	const struct var *v = var_find(s, "IFS");

	(void)w;
	return v && v->value.known ? v->value.text : NULL;
}

static bool ifs_unknown(const struct state *s)
{
	const struct var *v = var_find(s, "IFS");

	return v && !v->value.known;
}

/* ---- words ---- */

void expand_word(struct walk *w, struct state *s, const struct sh_word *word, struct args *out)
{
	struct piece p = { .out = out, .text = CS_BUF(SHW_VALUE_MAX), .split = true, PLACE(w, word), .ifs = ifs_of(w, s) };
	const struct sh_part *brace = brace_find(word->parts);
	size_t before = out->n;

	if (brace) {
		expand_braces(w, s, word, brace, out, 0);
		return;
	}
	if (ifs_unknown(s))
		p.ifs = "";
	add_parts(w, s, &p, word->parts);
	if (!p.any && out->n == before && p.followed)
		out->vanished = true;
	if (p.any)
		finish_field(w, &p);
	cs_buf_done(&p.text);
}

struct arg expand_one(struct walk *w, struct state *s, const struct sh_word *word)
{
	struct args out = { 0 };
	struct piece p = { .out = &out, .text = CS_BUF(SHW_VALUE_MAX), PLACE(w, word) };
	struct arg a;

	add_parts(w, s, &p, word->parts);
	p.any = true;
	finish_field(w, &p);
	cs_buf_done(&p.text);
	a = out.v[0];
	if (out.n > 1)
		a.known = SH_DYNAMIC;
	return a;
}

void scan_word(struct walk *w, struct state *s, const struct sh_word *word)
{
	(void)expand_one(w, s, word);
}

/* A name in arithmetic stands for its value, which is arithmetic again: "a[$(command)]" is run. */
void scan_arithmetic(struct walk *w, struct state *s, const char *text, uint32_t at, uint32_t len)
{
	const struct arg place = { .at = w->nested ? w->at : at, .len = w->nested ? w->len : len };

	work(w, strlen(text) / 32);
	for (const char *c = text; *c && !spent(w);) {
		size_t n = strspn(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
		const struct var *v;
		char *name;

		if (!n || isdigit((unsigned char)*c)) {
			c += n ? n : 1;
			continue;
		}
		name = keep_text(w->mem, c, n);
		c += n;
		work(w, 2);
		v = var_find(s, name);
		if (!v) {
			uncertain(w, &place, "the value of %s, which arithmetic would evaluate, is not known here", name);
			continue;
		}
		if (v->value.known && strspn(v->value.text, "0123456789-+ ") == v->value.len)
			continue;
		if (v->value.known && strpbrk(v->value.text, "$`") && w->depth < SHW_DEPTH) {
			struct cs_buf script CS_BUF_AUTO = CS_BUF(SHW_VALUE_MAX);
			struct state sub = state_copy(w, s);

			cs_buf_fmt(&script, "echo \"%s\"", v->value.text);
			(void)walk_text(w, &sub, cs_buf_text(&script), script.len, place.at, place.len, NULL);
		}
		uncertain(w, &place, "the value of %s is evaluated as arithmetic", name);
	}
}
