/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - applies the table of commands to an argument vector.
 *
 * First the options are parsed as the command itself would parse them; they leave findings, modes and a list of
 * operands.  Then the first pattern of operands whose modes and count fit says what the operands are.
 *
 * What is not known of a word never makes it harmless: a word that may be an option is UNKNOWN unless the row says that
 * no option of that command can do more than read, and where words may be several, each gets every role that it may
 * have. */
#include "shell/table_internal.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_MAX = 4, OPERANDS_INLINE = 64, DEFERRED_MAX = 8 };

struct hit {
	const struct sh_table *t;
	const struct sh_row *row;
};

struct run {
	const struct sh_table *t;
	const struct sh_arg *argv;
	size_t n;
	struct sh_findings *f;
	char name[128];            /* "git remote" */
	struct hit hit;
	struct hit chain[CHAIN_MAX]; /* rows above whose options are valid here too */
	size_t n_chain;
	unsigned modes;
	uint32_t *operands;
	size_t n_operands;
	bool no_pager;
	bool unsure;               /* a word may be an option: said once */
	struct deferred {          /* arguments whose role the mode decides */
		const struct sh_table *t;
		const struct sh_slot *slot;
		size_t arg;
		const char *text;
	} deferred[DEFERRED_MAX];
	size_t n_deferred;
};

struct sh_made {
	struct sh_made *next;
	char text[];
};

/* ---- findings ---- */

void sh_findings_add(struct sh_findings *f, struct sh_finding x)
{
	if (f->n == f->room) {
		size_t room = f->room ? f->room * 2 : 16;
		struct sh_finding *v = realloc(f->v, room * sizeof *v);

		if (!v)
			abort(); /* as cs_calloc: to go on without a finding would be to call it harmless */
		f->v = v;
		f->room = room;
	}
	f->v[f->n++] = x;
}

const char *sh_findings_copy(struct sh_findings *f, const char *s, size_t len)
{
	struct sh_made *m = cs_calloc(1, sizeof *m + len + 1);

	memcpy(m->text, s, len);
	m->next = f->made;
	f->made = m;
	return m->text;
}

static const char *make(struct sh_findings *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *make(struct sh_findings *f, const char *fmt, ...)
{
	struct sh_made *m = cs_calloc(1, sizeof *m + 200);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(m->text, 200, fmt, ap);
	va_end(ap);
	m->next = f->made;
	f->made = m;
	return m->text;
}

/* fmt has one %s for the word and one for the command. */
static void unknown(struct run *r, size_t i, const char *fmt)
{
	const struct sh_arg *a = &r->argv[i];
	char word[64];
	const char *why;

	cs_escape_to(word, sizeof word, a->known == SH_DYNAMIC ? "" : a->text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	why = make(r->f, fmt, *word ? word : "a word that is not known", r->name);
#pragma GCC diagnostic pop
	sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_UNKNOWN, .arg = i, .text = a->text, .known = a->known, .why = why });
}

static void take_does(struct run *r, uint32_t does, const struct hit *h)
{
	r->f->does |= does & 0xffff;
	r->f->appends_words |= (does & SH_ALSO_APPENDS) != 0;
	r->f->stdin_words |= (does & SH_ALSO_STDIN_WORDS) != 0;
	r->no_pager |= (does & SH_ALSO_NO_PAGER) != 0;
	if (does && h->row->why && !r->f->does_why)
		r->f->does_why = h->t->strings + h->row->why;
}

/* ---- what is known of a word ---- */

/* Could a file's name that the bracket at p matches begin with '-'? Only letters, digits and ranges of them cannot. */
static bool bracket_may_be_dash(const char *p)
{
	if (!isalnum((unsigned char)p[1]))
		return true;
	for (p++; *p && *p != ']'; p++) {
		if (*p == '-' && (!isalnum((unsigned char)p[-1]) || !isalnum((unsigned char)p[1])))
			return true;
		if (*p != '-' && !isalnum((unsigned char)*p))
			return true;
	}
	return *p != ']';
}

static bool pattern_may_begin(const char *p, char with)
{
	if (*p == '[')
		return with != '-' || bracket_may_be_dash(p);
	if (*p == '*' || *p == '?' || *p == '\\' || *p == '\0')
		return true;
	if (p[1] == '(' && strchr("@+!", *p))
		return true;
	return *p == with;
}

static bool may_begin(const struct sh_arg *a, char with)
{
	switch (a->known) {
	case SH_LITERAL:
		return a->text[0] == with;
	case SH_PREFIX:
		return !a->text[0] || a->text[0] == with;
	case SH_PATTERN:
		return pattern_may_begin(a->text, with);
	case SH_DYNAMIC:
		break;
	}
	return true;
}

static bool is_literal(const struct sh_arg *a, const char *s)
{
	return a->known == SH_LITERAL && !strcmp(a->text, s);
}

static bool is_many(const struct sh_arg *a)
{
	return a->known == SH_PATTERN || a->known == SH_DYNAMIC;
}

/* NAME, NAME=.., NAME+=.., NAME[1]=..: the text up to '=' or the end; false for any other subscript. */
static bool plain_name(const struct sh_arg *a)
{
	const char *p = a->text;

	if (a->known == SH_DYNAMIC || a->known == SH_PATTERN || !(isalpha((unsigned char)*p) || *p == '_'))
		return false;
	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	if (*p == '[') {
		for (p++; isdigit((unsigned char)*p); p++)
			;
		if (p[-1] == '[' || *p++ != ']')
			return false;
	}
	if (*p == '+' && p[1] == '=')
		p++;
	return *p == '=' || (*p == '\0' && a->known == SH_LITERAL);
}

static bool is_assignment(const char *s)
{
	const char *p = s;

	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	return p > s && *p == '=';
}

/* ---- one word in one place ---- */

/* ssh -o: what neither runs a program, reads a file we do not see, nor opens ports. */
static const char *const ssh_harmless[] = {
	"addressfamily", "batchmode", "checkhostip", "ciphers", "compression", "connectionattempts", "connecttimeout",
	"escapechar", "exitonforwardfailure", "forwardagent", "forwardx11", "hashknownhosts", "hostkeyalgorithms",
	"identitiesonly", "kbdinteractiveauthentication", "kexalgorithms", "loglevel", "macs", "numberofpasswordprompts",
	"passwordauthentication", "port", "preferredauthentications", "pubkeyauthentication", "requesttty",
	"serveralivecountmax", "serveraliveinterval", "stricthostkeychecking", "tcpkeepalive", "user", "verifyhostkeydns",
};

static bool ssh_option_is_harmless(const char *text)
{
	size_t n = strcspn(text, "= \t");

	for (size_t i = 0; i < sizeof ssh_harmless / sizeof *ssh_harmless; i++)
		if (strlen(ssh_harmless[i]) == n && !strncasecmp(text, ssh_harmless[i], n))
			return text[n] != '\0';
	/* Files that are read or written: /dev/null is neither. */
	if (n == 18 && !strncasecmp(text, "UserKnownHostsFile", n))
		return !strcmp(text + n, "=/dev/null");
	return false;
}

static void emit(struct run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text, enum sh_known known)
{
	struct sh_finding x = { .arg = i, .text = text, .known = known };

	for (int k = 0; k < 2; k++) {
		x.role = k ? s->role2 : s->role;
		/* Standard input or output; as a program, what comes from there is run. */
		if (known == SH_LITERAL && !strcmp(text, "-") && (s->dash || x.role == SH_ROLE_READ || x.role == SH_ROLE_READ_TREE)) {
			if (x.role == SH_ROLE_EXEC)
				r->f->does |= SH_DOES_READ_STDIN_CODE;
			continue;
		}
		x.lang = x.role == SH_ROLE_CODE ? t->strings + s->lang : NULL;
		x.why = NULL;
		if (x.role == SH_ROLE_UNKNOWN)
			x.why = make(r->f, "what %s does with this is not in the table", r->name);
		if (x.role != SH_ROLE_INERT)
			sh_findings_add(r->f, x);
	}
}

static void emit_remote(struct run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text, enum sh_known known)
{
	static const struct sh_slot host = { .role = SH_ROLE_HOST };
	size_t n = known == SH_DYNAMIC ? 0 : strcspn(text, ":/");

	if (known != SH_DYNAMIC && text[n] == ':')
		emit(r, t, &host, i, text, known);
	else if (known == SH_LITERAL || (known != SH_DYNAMIC && text[n] == '/'))
		emit(r, t, s, i, text, known);
	else {
		emit(r, t, s, i, text, known);
		emit(r, t, &host, i, text, known);
	}
}

/* text is the part of word i that is meant. */
static void value(struct run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text)
{
	static const struct sh_slot data = { .role = SH_ROLE_READ };
	const struct sh_arg *a = &r->argv[i];
	enum sh_known known = a->known;
	const char *p;

	switch ((enum sh_form)s->form) {
	case SH_FORM_AT:
		if (known == SH_LITERAL ? *text == '@' : known == SH_DYNAMIC || pattern_may_begin(text, '@'))
			emit(r, t, s, i, *text == '@' ? text + 1 : text, *text == '@' ? known : SH_DYNAMIC);
		return;
	case SH_FORM_DATA:
		p = known == SH_DYNAMIC ? NULL : strchr(text, '=');
		if (p && (p[1] == '@' || p[1] == '<'))
			emit(r, t, &data, i, p + 2, known);
		else if (known != SH_LITERAL && !(p && p[1]))
			emit(r, t, &data, i, "", SH_DYNAMIC);
		/* `;type=`, `;filename=` are text; `;headers=@FILE` and a list of files are not */
		if (known == SH_LITERAL && p && (strchr(p, ',') || strstr(p, "headers")))
			unknown(r, i, "'%s': more than one file for %s");
		return;
	case SH_FORM_SSH:
		if (known != SH_LITERAL || !ssh_option_is_harmless(text))
			unknown(r, i, "'%s': what this setting of %s does is not in the table");
		return;
	case SH_FORM_NAME:
		if (!plain_name(a))
			unknown(r, i, "%s for %s: a subscript is evaluated");
		if (s->role != SH_ROLE_INERT)
			emit(r, t, s, i, text, known);
		return;
	case SH_FORM_REMOTE:
		emit_remote(r, t, s, i, text, known);
		return;
	case SH_FORM_REPLACE:
		if (known != SH_LITERAL || !*text)
			unknown(r, i, "'%s': what %s replaces is not known");
		r->f->replace = known == SH_LITERAL && *text ? text : "{}";
		return;
	case SH_FORM_BY_MODE:
		if (r->n_deferred == DEFERRED_MAX)
			unknown(r, i, "%s: too many of these for %s");
		else
			r->deferred[r->n_deferred++] = (struct deferred){ t, s, i, text };
		return;
	case SH_FORM_PLAIN:
	case SH_FORM_ENVS:
	case SH_FORM_REST:
	case SH_FORM_JOIN:
	case SH_FORM_UNTIL:
	case SH_FORM_FIXED:
	case SH_FORM_MAX:
		break;
	}
	emit(r, t, s, i, text, known);
}

/* Once the modes are known: the first role, or the second if the row's first mode is set. */
static void settle(struct run *r)
{
	for (size_t k = 0; k < r->n_deferred; k++) {
		const struct deferred *d = &r->deferred[k];
		struct sh_slot s = { .role = r->modes & 1 ? d->slot->role2 : d->slot->role, .dash = 1 };

		emit_remote(r, d->t, &s, d->arg, d->text, r->argv[d->arg].known);
	}
	r->n_deferred = 0;
}

static void command(struct run *r, size_t i, size_t end)
{
	if (i >= end) /* a carrier without a command */
		return;
	if (!r->f->command_at)
		r->f->command_at = i;
	sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_COMMAND, .arg = i, .end = end, .text = r->argv[i].text, .known = r->argv[i].known });
}

/* The words from operand `op` on, as the one text that a shell gets: as far as it is known. */
static void join(struct run *r, size_t op)
{
	size_t size = 0, len = 0;
	struct sh_made *m;
	enum sh_known known = SH_LITERAL;

	if (op + 1 == r->n_operands) {
		const struct sh_arg *a = &r->argv[r->operands[op]];

		sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_SHELL, .arg = r->operands[op], .end = r->n, .text = a->text, .known = a->known });
		return;
	}
	for (size_t k = op; k < r->n_operands; k++)
		size += strlen(r->argv[r->operands[k]].text) + 1;
	m = cs_calloc(1, sizeof *m + size + 1);
	for (size_t k = op; k < r->n_operands && known == SH_LITERAL; k++) {
		const struct sh_arg *a = &r->argv[r->operands[k]];
		size_t n = a->known == SH_LITERAL || a->known == SH_PREFIX ? strlen(a->text) : 0;

		if (len)
			m->text[len++] = ' ';
		memcpy(m->text + len, a->text, n);
		len += n;
		if (a->known != SH_LITERAL)
			known = SH_PREFIX;
	}
	m->next = r->f->made;
	r->f->made = m;
	sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_SHELL, .arg = r->operands[op], .end = r->n, .text = m->text, .known = known });
}

static bool takes_rest(struct run *r, const struct sh_slot *s, size_t op)
{
	/* kubectl exec POD -- COMMAND */
	if (s->form == SH_FORM_REST)
		command(r, r->operands[op] + is_literal(&r->argv[r->operands[op]], "--"), r->n);
	else if (s->form == SH_FORM_JOIN)
		join(r, op);
	else
		return false;
	return true;
}

/* ---- rows ---- */

static const struct sh_row *find_in(const struct sh_table *t, const char *name)
{
	size_t lo = 0, hi = t->n_names;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = strcmp(t->strings + t->names[mid].name, name);

		if (c == 0)
			return &t->rows[t->names[mid].row];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool find_row(const struct sh_table *t, const char *name, struct hit *ret)
{
	for (; t; t = t->base) {
		const struct sh_row *row = find_in(t, name);

		if (row) {
			*ret = (struct hit){ t, row };
			return true;
		}
	}
	return false;
}

struct option {
	const struct sh_table *t;
	const struct sh_opt *o;
};

static const struct sh_opt *option_in(const struct hit *h, const char *name, size_t len)
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

static bool find_option(const struct run *r, const char *name, size_t len, struct option *ret)
{
	for (size_t k = 0; k <= r->n_chain; k++) {
		const struct hit *h = k ? &r->chain[k - 1] : &r->hit;

		ret->o = option_in(h, name, len);
		ret->t = h->t;
		if (ret->o)
			return true;
	}
	return false;
}

/* The longest -X* that the word begins with. */
static bool find_prefix(const struct run *r, const char *word, struct option *ret)
{
	const struct hit *h = &r->hit;
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

static void operand(struct run *r, size_t i)
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
static bool pattern_may_act(const struct run *r, const char *pattern)
{
	const struct hit *h = &r->hit;

	if (strpbrk(pattern, "(\\[") || strlen(pattern) > 256)
		return true;
	for (size_t k = 0; k < h->row->n_opts; k++) {
		const struct sh_opt *o = &h->t->opts[h->row->opt + k];

		if (has_effect(h->t, o) && cs_glob(pattern, h->t->strings + o->name))
			return true;
	}
	return false;
}

static void maybe_option(struct run *r, size_t i)
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
	unknown(r, i, "%s may be an option of %s");
}

/* The words of find -exec. Returns the index of its last. */
static size_t until(struct run *r, size_t i)
{
	size_t end = i, braces = 0;

	r->f->replace = "{}";
	r->f->replace_paths = true;
	for (; end < r->n; end++) {
		const struct sh_arg *a = &r->argv[end];

		if (is_literal(a, ";") || (end > i && is_literal(a, "+") && is_literal(a - 1, "{}")))
			break;
		braces = is_literal(a, "{}") ? end : braces;
	}
	for (size_t k = i; k < end; k++) {
		const struct sh_arg *a = &r->argv[k];

		/* It may be the ';' itself; were that so, a {} behind it would be an error. */
		if (a->known == SH_DYNAMIC || (a->known == SH_PREFIX && !*a->text && k > braces)) {
			unknown(r, k, "%s may end the command of %s");
			break;
		}
	}
	if (end == r->n && i < r->n)
		unknown(r, i, "'%s': the command of %s has no end");
	command(r, i, end);
	return end;
}

/* The arguments of an option that stand in words of their own, from word i on. Returns the last word used. */
static size_t arguments(struct run *r, const struct option *o, size_t i, size_t from)
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
		value(r, o->t, s, i, a->text);
		/* More words than one, or none: what follows may be options, and operands may be here. */
		if (a->known == SH_DYNAMIC || (a->known == SH_PATTERN && may_begin(a, '-')))
			maybe_option(r, i);
		if (is_many(a) && !(r->hit.row->flags & SH_ROW_FIND))
			operand(r, i);
	}
	return i;
}

static void take(struct run *r, const struct option *o)
{
	/* Modes are the row's own: an option from above has none here. */
	if (o->o >= o->t->opts + r->hit.row->opt && o->o < o->t->opts + r->hit.row->opt + r->hit.row->n_opts)
		r->modes |= o->o->modes;
	if (o->o->does)
		take_does(r, o->o->does, &r->hit);
}

/* An option whose argument, if it has one, is `attached` or (NULL) in the next word. Returns the last word used. */
static size_t option(struct run *r, const struct option *o, size_t i, const char *attached)
{
	take(r, o);
	if (o->o->arg == SH_ARG_NONE)
		return i;
	if (attached) {
		value(r, o->t, &o->t->slots[o->o->slot], i, attached);
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
static bool abbreviated(const struct run *r, const char *name, size_t len, struct option *ret)
{
	const struct hit *h = &r->hit;
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

static bool is_help(const struct run *r, const char *text)
{
	return (r->hit.row->flags & SH_ROW_GNU) && (!strcmp(text, "--help") || !strcmp(text, "--version"));
}

static size_t long_option(struct run *r, size_t i)
{
	const struct sh_arg *a = &r->argv[i];
	const char *equal = strchr(a->text, '=');
	size_t len = equal ? (size_t)(equal - a->text) : strlen(a->text);
	struct option o;

	if (!equal && a->known != SH_LITERAL) {
		unknown(r, i, "'%s...': the rest of this option of %s is not known");
		return i;
	}
	if (is_help(r, a->text))
		return i;
	if (!find_option(r, a->text, len, &o) && !abbreviated(r, a->text, len, &o)) {
		unknown(r, i, "unknown option %s of %s");
		return i;
	}
	if (equal && o.o->arg == SH_ARG_NONE) {
		unknown(r, i, "option %s of %s takes no value");
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
static size_t word_option(struct run *r, size_t i)
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
	unknown(r, i, "unknown option %s of %s");
	return i;
}

/* Letters behind one dash. ends: where the row's last option (/end) was among them. */
static size_t short_options(struct run *r, size_t i, bool *ends)
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
			unknown(r, i, "unknown option %s of %s");
			return i;
		}
		*ends |= o.o->last;
		if (o.o->arg == SH_ARG_NONE) {
			take(r, &o);
			continue;
		}
		if (p[1] || a->known != SH_LITERAL)
			return option(r, &o, i, p + 1);
		return option(r, &o, i, NULL);
	}
	if (a->known != SH_LITERAL)
		unknown(r, i, "'%s...': the rest of these options of %s is not known");
	return i;
}

/* tar xzf: letters without a dash, whose arguments follow in order. */
static size_t old_options(struct run *r, size_t i)
{
	const char *letters = r->argv[i].text;
	size_t at = i;

	for (const char *p = letters; *p; p++) {
		char name[3] = { '-', *p, '\0' };
		struct option o;

		if (!find_option(r, name, 2, &o)) {
			unknown(r, i, "unknown option in %s of %s");
			return at;
		}
		take(r, &o);
		if (o.o->arg == SH_ARG_NEEDED)
			at = arguments(r, &o, at, 0);
	}
	return at;
}

static void keyed(struct run *r, size_t i)
{
	const struct sh_arg *a = &r->argv[i];
	const char *equal = a->known == SH_LITERAL || a->known == SH_PREFIX ? strchr(a->text, '=') : NULL;
	struct option o;

	if (equal && find_option(r, a->text, (size_t)(equal + 1 - a->text), &o))
		(void)option(r, &o, i, equal + 1);
	else
		unknown(r, i, "unknown operand %s of %s");
}

/* ---- operands ---- */

/* A pattern of operands: `lead` slots before the one that repeats, `trail` after. */
struct layout {
	const struct sh_table *t;
	const struct sh_slot *slot;
	size_t n, lead, trail;
	bool many;
};

static void lay_out(const struct run *r, const struct sh_pattern *p, struct layout *ret)
{
	*ret = (struct layout){ .t = r->hit.t, .slot = r->hit.t->slots + p->slot, .n = p->n_slots, .lead = p->n_slots };
	while (ret->n && ret->slot[ret->n - 1].form == SH_FORM_FIXED)
		ret->lead = --ret->n;
	for (size_t k = 0; k < ret->n; k++)
		if (ret->slot[k].repeat == SH_MANY && ret->slot[k].form != SH_FORM_ENVS) {
			ret->many = true;
			ret->lead = k;
			ret->trail = ret->n - k - 1;
			break;
		}
}

static const char *text_of(const struct run *r, size_t op)
{
	return r->argv[r->operands[op]].text;
}

/* Every operand is one word: each has one place. from: how many are dealt with already (NAME=VALUE of env). */
static void assign(struct run *r, const struct layout *l, size_t from)
{
	size_t n = r->n_operands, trail = l->trail;
	/* Too few for all: those at the front come first. */
	if (n - from < l->lead + trail)
		trail = n - from > l->lead ? n - from - l->lead : 0;
	for (size_t i = from, k = 0; i < n; i++) {
		const struct sh_slot *s = NULL;

		if (k < l->lead && l->slot[k].form == SH_FORM_ENVS)
			k++;
		if (k < l->lead)
			s = &l->slot[k++];
		else if (l->many && i >= n - trail)
			s = &l->slot[l->n - (n - i)];
		else if (l->many)
			s = &l->slot[l->lead];
		if (!s) {
			unknown(r, r->operands[i], "%s is one operand too many for %s");
			return;
		}
		if (takes_rest(r, s, i))
			return;
		value(r, l->t, s, r->operands[i], text_of(r, i));
	}
}

/* The same where words may be several but a command follows: its place is known, or it is not known where it begins. */
static void assign_before_rest(struct run *r, const struct layout *l, size_t from)
{
	for (size_t i = from; i < r->n_operands && i - from < l->lead; i++)
		if (is_many(&r->argv[r->operands[i]])) {
			unknown(r, r->operands[i], "%s may be several words: what %s runs is not known");
			break;
		}
	assign(r, l, from);
}

/* Some operand may be several words, or none: each gets every role that it may have. */
static void assign_unsure(struct run *r, const struct layout *l, int count)
{
	size_t n = r->n_operands, first = n, last = 0, fixed_after = 0;

	for (size_t i = 0; i < n; i++)
		if (is_many(&r->argv[r->operands[i]])) {
			first = first == n ? i : first;
			last = i;
		}
	for (size_t i = 0; i < n; i++)
		fixed_after += r->argv[r->operands[i]].known != SH_DYNAMIC;
	for (size_t i = 0, before = 0; i < n; i++) {
		const struct sh_arg *a = &r->argv[r->operands[i]];
		bool counted = a->known != SH_DYNAMIC;
		size_t after = fixed_after - before - counted, given = 0;
		bool more_before = i >= first, more_after = i <= last && (i < last || is_many(a));
		uint8_t seen[64];

		for (size_t k = 0; k < l->n; k++) {
			const struct sh_slot *s = &l->slot[k];
			size_t back = l->n - 1 - k;
			bool may, dup = false;

			if (k < l->lead)
				may = s->form == SH_FORM_ENVS || k == before || (k > before && more_before && (count < 0 || k + after < (size_t)count));
			else if (k == l->lead && l->many)
				may = (before >= l->lead || more_before) && (after >= l->trail || more_after);
			else
				may = back == after || (back > after && more_after);
			for (size_t d = 0; d < given; d++)
				dup |= !memcmp(&l->slot[seen[d]], s, sizeof *s);
			if (!may || dup)
				continue;
			if (given < sizeof seen)
				seen[given++] = (uint8_t)k;
			value(r, l->t, s, r->operands[i], text_of(r, i));
		}
		if (count < 0 && !l->many && (before >= l->n || (more_after && l->n)) && !(r->hit.row->flags & SH_ROW_INERT)) {
			unknown(r, r->operands[i], "%s may be one operand too many for %s");
			return;
		}
		before += counted;
	}
}

static bool ends_in_rest(const struct layout *l)
{
	return l->n && (l->slot[l->n - 1].form == SH_FORM_REST || l->slot[l->n - 1].form == SH_FORM_JOIN);
}

/* NAME=VALUE before a command. Returns how many. */
static size_t take_env(struct run *r, const struct layout *l)
{
	size_t n = 0;

	if (!l->n || l->slot[0].form != SH_FORM_ENVS)
		return 0;
	for (; n < r->n_operands; n++) {
		const struct sh_arg *a = &r->argv[r->operands[n]];

		if (is_many(a) || !is_assignment(a->text))
			break;
		emit(r, l->t, &l->slot[0], r->operands[n], a->text, a->known);
	}
	return n;
}

static bool condition_holds(const struct run *r, const struct sh_pattern *p, size_t least, bool exact)
{
	if ((p->modes & r->modes) != p->modes)
		return false;
	if (p->count < 0)
		return true;
	return exact ? (size_t)p->count == least : (size_t)p->count >= least;
}

static void operands(struct run *r)
{
	const struct sh_pattern *p = r->hit.t->patterns + r->hit.row->pattern;
	size_t least = 0;
	bool exact = true, any = false;

	for (size_t i = 0; i < r->n_operands; i++) {
		const struct sh_arg *a = &r->argv[r->operands[i]];

		least += a->known != SH_DYNAMIC;
		exact &= !is_many(a);
	}
	for (size_t k = 0; k < r->hit.row->n_patterns; k++, p++) {
		struct layout l;

		if (!condition_holds(r, p, least, exact))
			continue;
		any = true;
		lay_out(r, p, &l);
		take_does(r, p->does, &r->hit);
		for (size_t x = l.n; x < p->n_slots; x++)
			sh_findings_add(r->f, (struct sh_finding){ .role = l.slot[x].role, .text = l.t->strings + l.slot[x].lang, .known = SH_LITERAL });
		if (exact)
			assign(r, &l, take_env(r, &l));
		else if (ends_in_rest(&l))
			assign_before_rest(r, &l, take_env(r, &l));
		else
			assign_unsure(r, &l, p->count);
		if (exact)
			return;
		/* With another number of words another pattern may be the one. */
		if (p->count < 0)
			return;
	}
	if (!any && r->n_operands)
		unknown(r, r->operands[0], "%s: the table has no such operands of %s");
}

/* ---- kinds of commands ---- */

/* test: -v and -R evaluate the subscript of what follows them. */
static void test_words(struct run *r)
{
	for (size_t i = 1; i + 1 < r->n; i++) {
		const struct sh_arg *a = &r->argv[i], *b = a + 1;
		bool may = a->known == SH_DYNAMIC || (a->known == SH_PREFIX && (!*a->text || !strcmp(a->text, "-"))) ||
			   (a->known == SH_PATTERN && pattern_may_begin(a->text, '-')) || is_literal(a, "-v") || is_literal(a, "-R");

		if (may && (b->known != SH_LITERAL || strpbrk(b->text, "[$`")) && !is_literal(b, "[")) {
			unknown(r, i + 1, "%s for %s: a subscript may be evaluated");
			return;
		}
	}
	/* Alone it can be several words. */
	for (size_t i = 1; i < r->n; i++)
		if (r->argv[i].known == SH_DYNAMIC) {
			unknown(r, i, "%s may be an expression of %s");
			return;
		}
}

static bool is_expression(const struct sh_arg *a)
{
	return a->known == SH_LITERAL &&
	       ((a->text[0] == '-' && a->text[1]) || !strcmp(a->text, "(") || !strcmp(a->text, ")") || !strcmp(a->text, "!") || !strcmp(a->text, ","));
}

static void find_words(struct run *r)
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
		if (a->known != SH_LITERAL && (may_begin(a, '-') || may_begin(a, '(') || may_begin(a, '!')))
			maybe_option(r, i);
		if (expression && !(a->known == SH_PATTERN && !may_begin(a, '-')))
			unknown(r, i, "%s: paths come before the expression of %s");
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
static void ordinary_words(struct run *r, size_t i)
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
			if (is_literal(a, "--")) {
				over = true;
			} else if (a->text[1] == '-' && !(flags & SH_ROW_WORDS && !a->text[2])) {
				struct option o;
				bool last = find_option(r, a->text, strcspn(a->text, "="), &o) && o.o->last;

				i = long_option(r, i);
				over |= last;
			} else if (flags & SH_ROW_WORDS) {
				struct option o;
				bool last = a->known == SH_LITERAL && find_option(r, a->text, strlen(a->text), &o) && o.o->last;

				i = word_option(r, i);
				over |= last;
			} else {
				i = short_options(r, i, &over);
			}
			continue;
		}
		if (!over && has_plus && known_start && a->text[0] == '+') {
			i = option(r, &plus, i, a->text + 1);
			continue;
		}
		if (has_at && known_start && a->text[0] == '@') {
			i = option(r, &at, i, a->text + 1);
			continue;
		}
		if (!over && (may_begin(a, '-') || (has_at && may_begin(a, '@')) || (has_plus && may_begin(a, '+'))) && !is_literal(a, "-"))
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
static size_t subcommand(struct run *r)
{
	size_t at = r->operands[0], len = strlen(r->name);
	const struct sh_arg *a = &r->argv[at];
	struct hit h;

	if (a->known != SH_LITERAL) {
		unknown(r, at, "%s: the subcommand of %s is not known");
		return 0;
	}
	if (len + strlen(a->text) + 2 > sizeof r->name || !*a->text || strchr(a->text, ' ')) {
		unknown(r, at, "unknown subcommand %s of %s");
		return 0;
	}
	snprintf(r->name + len, sizeof r->name - len, " %s", a->text);
	if (!find_row(r->t, r->name, &h)) {
		r->name[len] = '\0';
		unknown(r, at, "unknown subcommand %s of %s");
		return 0;
	}
	if ((r->hit.row->flags & SH_ROW_INHERIT) && r->n_chain < CHAIN_MAX)
		r->chain[r->n_chain++] = r->hit;
	else if (!(r->hit.row->flags & SH_ROW_INHERIT))
		r->n_chain = 0;
	r->hit = h;
	return at + 1;
}

static void apply_row(struct run *r)
{
	size_t from = 1;

	for (;;) {
		uint32_t flags = r->hit.row->flags;

		r->modes = 0;
		r->n_operands = 0;
		take_does(r, r->hit.row->does, &r->hit);
		if (flags & SH_ROW_TEST) {
			test_words(r);
			return;
		}
		if (flags & SH_ROW_FIND)
			find_words(r);
		else
			ordinary_words(r, from);
		settle(r);
		if (!(flags & SH_ROW_SUB) || !r->n_operands) {
			operands(r);
			return;
		}
		from = subcommand(r);
		if (!from)
			return;
	}
}

/* ---- the whole ---- */

static void apply_with(const struct sh_table *t, const struct sh_arg *argv, size_t n, struct sh_findings *ret)
{
	uint32_t inline_operands[OPERANDS_INLINE];
	struct run r = { .t = t, .argv = argv, .n = n, .f = ret };
	CS_FREE uint32_t *heap = NULL;

	if (argv[0].known != SH_LITERAL || strlen(argv[0].text) >= sizeof r.name - 1 || strchr(argv[0].text, ' ') ||
	    !find_row(t, argv[0].text, &r.hit)) {
		snprintf(r.name, sizeof r.name, "the table");
		ret->does |= SH_DOES_UNKNOWN;
		unknown(&r, 0, "%s is not a command of %s");
		return;
	}
	snprintf(r.name, sizeof r.name, "%s", argv[0].text);
	/* An argument that may be many words is both an argument and an operand. */
	r.operands = inline_operands;
	if (n > OPERANDS_INLINE)
		r.operands = heap = cs_calloc(n, sizeof *heap);
	apply_row(&r);
	if (r.no_pager)
		ret->does &= ~(unsigned)SH_DOES_TERMINAL;
}

/* Whether this layer alone says anything of the command or its subcommands. */
static bool touches(const struct sh_table *t, const char *command)
{
	size_t len = strlen(command);

	for (size_t i = 0; i < t->n_names; i++) {
		const char *s = t->strings + t->names[i].name;

		if (!strncmp(s, command, len) && (!s[len] || s[len] == ' '))
			return true;
	}
	return false;
}

static bool same(const struct sh_finding *a, const struct sh_finding *b)
{
	return a->role == b->role && a->arg == b->arg && a->end == b->end && a->text == b->text && a->known == b->known &&
	       (a->lang == b->lang || (a->lang && b->lang && !strcmp(a->lang, b->lang))) &&
	       (a->role != SH_ROLE_UNKNOWN || (a->why && b->why && !strcmp(a->why, b->why)));
}

/* Everything of both. */
static void merge(struct sh_findings *to, struct sh_findings *from)
{
	size_t had = to->n;
	struct sh_made **tail = &to->made;

	for (size_t i = 0; i < from->n; i++) {
		bool dup = false;

		for (size_t k = 0; k < had && had <= 64 && !dup; k++)
			dup = same(&to->v[k], &from->v[i]);
		if (!dup)
			sh_findings_add(to, from->v[i]);
	}
	to->does |= from->does;
	to->does_why = to->does_why ? to->does_why : from->does_why;
	to->command_at = to->command_at ? to->command_at : from->command_at;
	to->appends_words |= from->appends_words;
	to->stdin_words |= from->stdin_words;
	to->replace_paths &= from->replace_paths;
	to->replace = to->replace ? to->replace : from->replace;
	while (*tail)
		tail = &(*tail)->next;
	*tail = from->made;
	from->made = NULL;
	sh_findings_done(from);
}

void sh_table_apply(const struct sh_table *t, const struct sh_arg *argv, size_t n, struct sh_findings *ret)
{
	*ret = (struct sh_findings){ 0 };
	if (!n) {
		ret->does |= SH_DOES_UNKNOWN;
		return;
	}
	/* Rows that may only narrow: what the table below says stays, and theirs comes on top. */
	if (!t->trusted && t->base) {
		sh_table_apply(t->base, argv, n, ret);
		if (argv[0].known == SH_LITERAL && touches(t, argv[0].text)) {
			struct sh_findings more = { 0 };

			apply_with(t, argv, n, &more);
			merge(ret, &more);
		}
		return;
	}
	apply_with(t, argv, n, ret);
}

void sh_findings_done(struct sh_findings *f)
{
	while (f->made) {
		struct sh_made *next = f->made->next;

		free(f->made);
		f->made = next;
	}
	free(f->v);
	*f = (struct sh_findings){ 0 };
}

struct extended {
	struct sh_table table; /* first */
	struct sh_rows rows;
};

int sh_table_extend(const struct sh_table *base, const char *rows, size_t len, const char *origin, bool trusted, struct sh_table **ret,
		    struct cs_err *err)
{
	struct extended *e = cs_new(struct extended);
	int r;

	sh_rows_init(&e->rows);
	r = sh_rows_add(&e->rows, rows, len, origin, err);
	if (r < 0) {
		sh_rows_done(&e->rows);
		free(e);
		return r;
	}
	sh_rows_table(&e->rows, &e->table);
	e->table.base = base;
	e->table.trusted = trusted;
	*ret = &e->table;
	return 0;
}

void sh_table_free(struct sh_table *t)
{
	struct extended *e = (struct extended *)(void *)t;

	if (!e)
		return;
	sh_rows_done(&e->rows);
	free(e);
}

bool sh_table_has(const struct sh_table *t, const char *name)
{
	struct hit h;

	return find_row(t, name, &h);
}

size_t sh_table_count(const struct sh_table *t)
{
	size_t n = 0;

	for (; t; t = t->base)
		for (size_t i = 0; i < t->n_names; i++)
			n += !strchr(t->strings + t->names[i].name, ' ');
	return n;
}
