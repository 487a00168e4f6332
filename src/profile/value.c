/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - one scalar into a profile, and what a locked profile says to it. */
#include "profile/internal.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 96 }; /* of a value in a message */

static int locked_at(const struct key *k, const char *text, const struct change *c, const char *value, struct cs_err *err)
{
	char shown[SHOWN];

	return profile_fail(err, CS_E_DENIED, &c->at, "%s: the profile is locked at '%s'; '%s' would widen it", k->path, value,
			    cs_escape_to(shown, sizeof shown, text));
}

static int apply_string(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	char **at = key_at(k, p);
	size_t n = strlen(text);

	/* A folded block of text ends in a newline that nobody means. */
	while (k->type == KEY_TEXT && n && text[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return value_bad(k, text, c, err, "holds a newline or another control byte");
	if (n == 0)
		return value_bad(k, text, c, err, "is empty");
	if (k->type == KEY_NAME && (n > 64 || text[0] == '-' || text[0] == '.' ||
				    text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")]))
		return value_bad(k, text, c, err, "is not a name (letters, digits, '.', '_' and '-', at most 64)");
	free(*at);
	*at = cs_strndup(text, n);
	return 0;
}

static int apply_bool(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	static const char *const words[] = { "true", "false" };
	char shown[SHOWN], hint[64];
	bool *at = key_at(k, p), v = !strcmp(text, "true");

	if (!v && strcmp(text, "false"))
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' is not true or false%s", k->path,
				    cs_escape_to(shown, sizeof shown, text),
				    profile_hint(hint, sizeof hint, cs_nearest(text, words, 2)));
	if (c->locked && k->widen == WIDEN_FALSE && *at && !v)
		return locked_at(k, text, c, "true", err);
	*at = v;
	return 0;
}

/* "layer, read, write, none" */
static void list_words(const struct key *k, char *dst, size_t size)
{
	size_t n = 0;

	*dst = 0;
	for (const struct key_word *w = k->words; w->name && n < size; w++)
		n += (size_t)snprintf(dst + n, size - n, "%s%s", w == k->words ? "" : ", ", w->name);
}

static const struct key_word *find_word(const struct key *k, const char *text)
{
	for (const struct key_word *w = k->words; w->name; w++)
		if (!strcmp(w->name, text))
			return w;
	return NULL;
}

static int not_a_word(const struct key *k, const char *text, const struct change *c, struct cs_err *err)
{
	char shown[SHOWN], all[128], hint[64];
	const char *names[8];
	size_t n = 0;

	for (const struct key_word *w = k->words; w->name && n < sizeof names / sizeof *names; w++)
		names[n++] = w->name;
	list_words(k, all, sizeof all);
	return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' is not one of: %s%s", k->path,
			    cs_escape_to(shown, sizeof shown, text), all,
			    profile_hint(hint, sizeof hint, cs_nearest(text, names, n)));
}

static int apply_word(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	const struct key_word *w = find_word(k, text), *now;
	unsigned *at = key_at(k, p);

	if (!w)
		return not_a_word(k, text, c, err);
	now = find_word(k, key_word_name(k, *at));
	if (c->locked && w->value != *at && (k->widen == WIDEN_ALWAYS || !now || w->width > now->width))
		return locked_at(k, text, c, key_word_name(k, *at), err);
	*at = w->value;
	return 0;
}

/* The word takes away whatever was inherited, so it narrows always. */
static int apply_network(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	if (strcmp(text, "none") != 0)
		return value_bad(k, text, c, err, "is not 'none'; to allow something, write keys below it: network: {allow: [NAME]}");
	profile_network_done(&p->network);
	return 0;
}

/* The number in text as the key's type reads it: 0, or -ERANGE, or -EINVAL. */
static int parse_limit(const struct key *k, const char *text, uint64_t *ret, double *ret_cpus)
{
	int r;

	*ret = 0;
	*ret_cpus = 0;
	if (!strcmp(text, "unlimited"))
		return 0;
	switch (k->type) {
	case KEY_SIZE: r = cs_parse_size(text, ret); break;
	case KEY_TIME: r = cs_parse_duration(text, ret); break;
	case KEY_CPUS: return cs_parse_cpus(text, ret_cpus);
	default: r = cs_parse_u64(text, ret); break;
	}
	return r < 0 ? r : *ret < k->min || *ret > k->max ? -ERANGE : 0;
}

static int not_a_limit(const struct key *k, const char *text, const struct change *c, int r, struct cs_err *err)
{
	static const char *const word = "unlimited";
	char shown[SHOWN], hint[64], least[32] = "0.01";
	struct profile edge = { 0 };

	cs_escape_to(shown, sizeof shown, text);
	if (r != -ERANGE)
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' is not %s%s", k->path, shown, key_type_words(k),
				    profile_hint(hint, sizeof hint, cs_nearest(text, &word, 1)));
	if (k->type != KEY_CPUS) {
		*(uint64_t *)key_at(k, &edge) = k->min;
		key_format_limit(k, &edge, least, sizeof least);
	}
	return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' is out of range: at least %s, or 'unlimited'", k->path, shown,
			    least);
}

static int apply_limit(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	char now[32];
	uint64_t v, *at = key_at(k, p);
	double cpus, *at_cpus = key_at(k, p);
	int r = parse_limit(k, text, &v, &cpus);
	bool wider;

	if (r < 0)
		return not_a_limit(k, text, c, r, err);
	if (k->type == KEY_CPUS)
		wider = *at_cpus != 0 && (cpus == 0 || cpus > *at_cpus);
	else
		wider = *at != 0 && (v == 0 || v > *at);
	if (c->locked && wider) {
		key_format_limit(k, p, now, sizeof now);
		return locked_at(k, text, c, now, err);
	}
	if (k->type == KEY_CPUS)
		*at_cpus = cpus;
	else
		*at = v;
	return 0;
}

static int protection_of(const struct key *k, const char *name, const struct change *c, struct cs_err *err)
{
	const char *names[PROT_MAX];
	char shown[SHOWN], hint[64];
	int id = protection_by_name(name);

	if (id >= 0)
		return id;
	for (int i = 0; i < PROT_MAX; i++)
		names[i] = protection_name((enum protection)i);
	return profile_fail(err, CS_E_INVALID, &c->at, "%s: there is no protection '%s'%s", k->path,
			    cs_escape_to(shown, sizeof shown, name),
			    profile_hint(hint, sizeof hint, cs_nearest(name, names, PROT_MAX)));
}

static int apply_protection(const struct key *k, struct profile *p, const char *text, const struct change *c,
			    struct cs_err *err)
{
	bool remove = *text == '!';
	protection_set *at = key_at(k, p);
	int id;

	if (!strcmp(text, "all")) {
		*at = PROT_ALL;
		return 0;
	}
	id = protection_of(k, text + remove, c, err);
	if (id < 0)
		return id;
	if (!remove) {
		*at |= PROT_BIT(id);
		return 0;
	}
	if (!(*at & PROT_BIT(id)))
		return value_bad(k, text + 1, c, err, "is not inherited, so it cannot be removed");
	if (c->locked)
		return locked_at(k, text, c, text + 1, err);
	*at &= ~PROT_BIT(id);
	return 0;
}

int value_apply(const struct key *k, struct profile *p, const char *text, struct change *c, struct cs_err *err)
{
	switch (k->type) {
	case KEY_NAME:
	case KEY_TEXT:
	case KEY_EXTENDS: return apply_string(k, p, text, c, err);
	case KEY_BOOL: return apply_bool(k, p, text, c, err);
	case KEY_WORD: return apply_word(k, p, text, c, err);
	case KEY_NETWORK: return apply_network(k, p, text, c, err);
	case KEY_SIZE:
	case KEY_TIME:
	case KEY_COUNT:
	case KEY_CPUS: return apply_limit(k, p, text, c, err);
	case KEY_PROTECTIONS: return apply_protection(k, p, text, c, err);
	case KEY_PATHS:
	case KEY_PATTERNS:
	case KEY_ENVNAMES:
	case KEY_RULES:
	case KEY_PUBLISH: return value_apply_item(k, p, text, c, err);
	case KEY_ENVVARS: /* these four have functions of their own */
	case KEY_HOSTS:
	case KEY_SECRETS:
	case KEY_ROWS:
	case KEY_GATE: break;
	}
	return value_bad(k, text, c, err, "cannot be set by a flag: write it into the profile");
}
