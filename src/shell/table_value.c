/* SPDX-License-Identifier: Apache-2.0 */
/* table_value.c - from a word and its place to findings. */
#include "shell/places.h"
#include "shell/table_run.h"

#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- findings ---- */

void sh_findings_add(struct sh_findings *f, struct sh_finding x)
{
	if (f->n == f->room) {
		size_t room = f->room ? f->room * 2 : 16;
		struct sh_finding *v = cs_calloc(room, sizeof *v);

		if (f->n)
			memcpy(v, f->v, f->n * sizeof *v);
		free(f->v);
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
void tbl_unknown(struct tbl_run *r, size_t i, const char *fmt)
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

void tbl_take_does(struct tbl_run *r, uint32_t does, const struct tbl_hit *h)
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

bool tbl_pattern_may_begin(const char *p, char with)
{
	if (*p == '[')
		return with != '-' || bracket_may_be_dash(p);
	if (*p == '*' || *p == '?' || *p == '\\' || *p == '\0')
		return true;
	if (p[1] == '(' && strchr("@+!", *p))
		return true;
	return *p == with;
}

bool tbl_may_begin(const struct sh_arg *a, char with)
{
	switch (a->known) {
	case SH_LITERAL:
		return a->text[0] == with;
	case SH_PREFIX:
		return !a->text[0] || a->text[0] == with;
	case SH_PATTERN:
		return tbl_pattern_may_begin(a->text, with);
	case SH_DYNAMIC:
		break;
	}
	return true;
}

bool tbl_is_literal(const struct sh_arg *a, const char *s)
{
	return a->known == SH_LITERAL && !strcmp(a->text, s);
}

bool tbl_is_many(const struct sh_arg *a)
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

bool tbl_is_assignment(const char *s)
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

void tbl_emit(struct tbl_run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text, enum sh_known known)
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

static void emit_remote(struct tbl_run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text, enum sh_known known)
{
	static const struct sh_slot host = { .role = SH_ROLE_HOST };
	size_t n = known == SH_DYNAMIC ? 0 : strcspn(text, ":/");

	if (known != SH_DYNAMIC && text[n] == ':')
		tbl_emit(r, t, &host, i, text, known);
	else if (known == SH_LITERAL || (known != SH_DYNAMIC && text[n] == '/'))
		tbl_emit(r, t, s, i, text, known);
	else {
		tbl_emit(r, t, s, i, text, known);
		tbl_emit(r, t, &host, i, text, known);
	}
}

static void value_count(struct tbl_run *r, size_t i, const char *text, enum sh_known known)
{
	if (known != SH_LITERAL || !*text || strlen(text) > 8 || strspn(text, "0123456789.-+") != strlen(text))
		tbl_unknown(r, i, "'%s': how long %s goes on is not known here");
}

/* ps aux: whether it is a word of such letters, or the argument of one that came before. */
static void value_letters(struct tbl_run *r, const char *lang, size_t i, const char *text, enum sh_known known)
{
	const char *takes = strchr(lang, '/') + 1;
	const struct sh_arg *before = &r->argv[i - 1];

	if (known != SH_LITERAL) {
		tbl_unknown(r, i, "'%s' may be an option of %s");
		return;
	}
	if (i > 1 && before->known == SH_LITERAL && isalpha((unsigned char)before->text[0])) {
		size_t n = strcspn(before->text, takes);

		if (before->text[n] && !before->text[n + 1])
			return;
	}
	for (; *text && !strchr(takes, *text); text++)
		if (memchr(lang, *text, (size_t)(takes - 1 - lang))) {
			tbl_unknown(r, i, "'%s': an option of %s that is not followed");
			return;
		}
}

/* text is the part of word i that is meant. */
void tbl_value(struct tbl_run *r, const struct sh_table *t, const struct sh_slot *s, size_t i, const char *text)
{
	static const struct sh_slot data = { .role = SH_ROLE_READ };
	const struct sh_arg *a = &r->argv[i];
	enum sh_known known = a->known;
	const char *p;

	switch ((enum sh_form)s->form) {
	case SH_FORM_AT:
		if (known == SH_LITERAL ? *text == '@' : known == SH_DYNAMIC || tbl_pattern_may_begin(text, '@'))
			tbl_emit(r, t, s, i, *text == '@' ? text + 1 : text, *text == '@' ? known : SH_DYNAMIC);
		return;
	case SH_FORM_DATA:
		p = known == SH_DYNAMIC ? NULL : strchr(text, '=');
		if (p && (p[1] == '@' || p[1] == '<'))
			tbl_emit(r, t, &data, i, p + 2, known);
		else if (known != SH_LITERAL && !(p && p[1]))
			tbl_emit(r, t, &data, i, "", SH_DYNAMIC);
		/* `;type=`, `;filename=` are text; `;headers=@FILE` and a list of files are not */
		if (known == SH_LITERAL && p && (strchr(p, ',') || strstr(p, "headers")))
			tbl_unknown(r, i, "'%s': more than one file for %s");
		return;
	case SH_FORM_SSH:
		if (known != SH_LITERAL || !ssh_option_is_harmless(text))
			tbl_unknown(r, i, "'%s': what this setting of %s does is not in the table");
		return;
	case SH_FORM_NAME:
		if (!plain_name(a))
			tbl_unknown(r, i, "%s for %s: a subscript is evaluated");
		if (s->role != SH_ROLE_INERT)
			tbl_emit(r, t, s, i, text, known);
		return;
	case SH_FORM_REMOTE:
		emit_remote(r, t, s, i, text, known);
		return;
	case SH_FORM_REPLACE:
		if (known != SH_LITERAL || !*text)
			tbl_unknown(r, i, "'%s': what %s replaces is not known");
		r->f->replace = known == SH_LITERAL && *text ? text : "{}";
		return;
	case SH_FORM_BY_MODE:
		if (r->n_deferred == DEFERRED_MAX)
			tbl_unknown(r, i, "%s: too many of these for %s");
		else
			r->deferred[r->n_deferred++] = (struct deferred){ t, s, i, text };
		return;
	case SH_FORM_COUNT:
		value_count(r, i, text, known);
		return;
	case SH_FORM_SHOWN:
		if (known != SH_LITERAL || sh_names_secret(text))
			tbl_unknown(r, i, "'%s' may hold a secret, and %s shows it");
		return;
	case SH_FORM_LETTERS:
		value_letters(r, t->strings + s->lang, i, text, known);
		return;
	case SH_FORM_PLAIN:
	case SH_FORM_ENVS:
	case SH_FORM_REST:
	case SH_FORM_REST_C:
	case SH_FORM_JOIN:
	case SH_FORM_UNTIL:
	case SH_FORM_FIXED:
	case SH_FORM_MAX:
		break;
	}
	tbl_emit(r, t, s, i, text, known);
}

/* Once the modes are known: the first role, or the second if the row's first mode is set. */
void tbl_settle(struct tbl_run *r)
{
	for (size_t k = 0; k < r->n_deferred; k++) {
		const struct deferred *d = &r->deferred[k];
		struct sh_slot s = { .role = r->modes & 1 ? d->slot->role2 : d->slot->role, .dash = 1 };

		emit_remote(r, d->t, &s, d->arg, d->text, r->argv[d->arg].known);
	}
	r->n_deferred = 0;
}

void tbl_command(struct tbl_run *r, size_t i, size_t end)
{
	if (i >= end) /* a carrier without a command */
		return;
	if (!r->f->command_at)
		r->f->command_at = i;
	sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_COMMAND, .arg = i, .end = end, .text = r->argv[i].text, .known = r->argv[i].known });
}

/* The words from operand `op` on, as the one text that a shell gets: as far as it is known. */
static void join(struct tbl_run *r, size_t op)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(16 << 20);
	enum sh_known known = SH_LITERAL;
	const char *joined;

	if (op + 1 == r->n_operands) {
		const struct sh_arg *a = &r->argv[r->operands[op]];

		sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_SHELL, .arg = r->operands[op], .end = r->n, .text = a->text, .known = a->known });
		return;
	}
	for (size_t k = op; k < r->n_operands && known == SH_LITERAL; k++) {
		const struct sh_arg *a = &r->argv[r->operands[k]];

		if (k > op)
			cs_buf_char(&text, ' ');
		if (a->known == SH_LITERAL || a->known == SH_PREFIX)
			cs_buf_str(&text, a->text);
		if (a->known != SH_LITERAL)
			known = SH_PREFIX;
	}
	if (text.over) /* then it is only the beginning */
		known = SH_PREFIX;
	joined = sh_findings_copy(r->f, cs_buf_text(&text), text.len);
	sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_SHELL, .arg = r->operands[op], .end = r->n, .text = joined, .known = known });
}

bool tbl_takes_rest(struct tbl_run *r, const struct sh_slot *s, size_t op)
{
	/* flock FILE -c TEXT */
	if (s->form == SH_FORM_REST_C && r->n_operands == op + 2 && (tbl_is_literal(&r->argv[r->operands[op]], "-c") || tbl_is_literal(&r->argv[r->operands[op]], "--command"))) {
		const struct sh_arg *a = &r->argv[r->operands[op + 1]];

		sh_findings_add(r->f, (struct sh_finding){ .role = SH_ROLE_SHELL, .arg = r->operands[op + 1], .text = a->text, .known = a->known });
		return true;
	}
	/* kubectl exec POD -- COMMAND */
	if (s->form == SH_FORM_REST || s->form == SH_FORM_REST_C)
		tbl_command(r, r->operands[op] + tbl_is_literal(&r->argv[r->operands[op]], "--"), r->n);
	else if (s->form == SH_FORM_JOIN)
		join(r, op);
	else
		return false;
	return true;
}
