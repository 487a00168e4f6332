/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - items of the lists in a profile: paths, patterns, variables. */
#include "profile/internal.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 96 };
static const char except[] = "except:";

int value_bad(const struct key *k, const char *text, const struct change *c, struct cs_err *err, const char *why)
{
	char shown[SHOWN];

	return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' %s", k->path, cs_escape_to(shown, sizeof shown, text), why);
}

int value_locked(const struct key *k, const struct cs_strv *list, const char *text, const struct change *c, struct cs_err *err)
{
	struct cs_buf now CS_BUF_AUTO = CS_BUF(1 << 16);
	char shown[SHOWN], value[SHOWN * 2];

	for (size_t i = 0; i < list->n; i++)
		cs_buf_fmt(&now, "%s%s", i ? " " : "", list->v[i]);
	return profile_fail(err, CS_E_DENIED, &c->at, "%s: the profile is locked at '%s'; '%s' would widen it", k->path,
			    cs_escape_to(value, sizeof value, cs_buf_text(&now)), cs_escape_to(shown, sizeof shown, text));
}

/* The path without doubled slashes, "." and a slash at the end; NULL if it has "..". */
char *value_clean_path(const char *s)
{
	char *out = cs_calloc(strlen(s) + 2, 1), *o = out;
	bool absolute = *s == '/';

	while (*s) {
		size_t n = strcspn(s, "/");

		if (n == 2 && !strncmp(s, "..", 2)) {
			free(out);
			return NULL;
		}
		if (n && !(n == 1 && *s == '.')) {
			if (o != out || absolute)
				*o++ = '/';
			memcpy(o, s, n);
			o += n;
		}
		s += n + (s[n] == '/');
	}
	if (o == out && absolute)
		*o++ = '/';
	*o = 0;
	return out;
}

bool value_has_control(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
			return true;
	return false;
}

static const char *why_not_path(const char *s)
{
	if (!*s)
		return "is empty";
	if (value_has_control(s) || strchr(s, '\t'))
		return "holds a newline or another control byte";
	if (strlen(s) >= PATH_MAX)
		return "is longer than a path can be";
	return NULL;
}

static const char *why_not_pattern(const char *s)
{
	if (strstr(s, "**"))
		return "has '**': a name without '/' matches at any depth already";
	if ((*s == '/' || !strncmp(s, "~/", 2)) && strpbrk(s, "*?"))
		return "is absolute and so taken as it is, without * and ?";
	if (!strcmp(s, "/"))
		return "would hide everything";
	return NULL;
}

const char *value_why_not_name(const char *s, const char *also)
{
	if (!*s || isdigit((unsigned char)*s))
		return "is not a variable's name";
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_' && !strchr(also, *s))
			return "is not a variable's name";
	return NULL;
}

/* The item in the one form in which it is kept and compared. */
static int tidy(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err)
{
	size_t skip = k->type == KEY_PATTERNS && !strncmp(text, except, sizeof except - 1) ? sizeof except - 1 : 0;
	const char *body = text + skip;
	const char *why = k->type == KEY_ENVNAMES ? value_why_not_name(body, "*?") : why_not_path(body);
	CS_FREE char *clean = NULL;

	if (!why && k->type == KEY_PATHS && *body != '/' && strncmp(body, "~/", 2) != 0)
		why = "is not an absolute path";
	if (!why && k->type == KEY_PATTERNS)
		why = why_not_pattern(body);
	if (why)
		return value_bad(k, text, c, err, why);
	if (k->type == KEY_ENVNAMES) {
		*ret = cs_strdup(text);
		return 0;
	}
	clean = value_clean_path(body);
	if (!clean || !*clean)
		return value_bad(k, text, c, err, clean ? "names nothing" : "has a '..' in it");
	*ret = cs_printf("%s%s", skip ? except : "", clean);
	return 0;
}

void value_remove_at(struct cs_strv *list, size_t i)
{
	free(list->v[i]);
	memmove(list->v + i, list->v + i + 1, (list->n - i) * sizeof *list->v); /* the NULL too */
	list->n--;
}

static int remove_item(const struct key *k, struct cs_strv *list, const char *item, struct change *c, struct cs_err *err)
{
	bool is_except = !strncmp(item, except, sizeof except - 1);
	size_t n = c->inherited < list->n ? c->inherited : list->n;
	char shown[SHOWN], hint[SHOWN + 32];

	for (size_t i = 0; i < n; i++) {
		if (strcmp(list->v[i], item) != 0)
			continue;
		if (c->locked && k->widen == WIDEN_REMOVE && !is_except)
			return value_locked(k, list, item, c, err);
		value_remove_at(list, i);
		if (c->inherited != SIZE_MAX)
			c->inherited--;
		return 0;
	}
	profile_hint(hint, sizeof hint, cs_nearest(item, (const char *const *)list->v, n));
	return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' is not inherited, so it cannot be removed%s", k->path,
			    cs_escape_to(shown, sizeof shown, item), hint);
}

int value_apply_item(const struct key *k, struct profile *p, const char *text, struct change *c, struct cs_err *err)
{
	struct cs_strv *list = key_at(k, p);
	bool is_except = !strncmp(text, except, sizeof except - 1) && k->type == KEY_PATTERNS;
	CS_FREE char *item = NULL;
	bool network = k->type == KEY_RULES || k->type == KEY_PUBLISH;
	int r;

	r = network ? network_tidy(k, text + (*text == '!'), c, &item, err) : tidy(k, text + (*text == '!'), c, &item, err);
	if (r < 0 || !item)
		return r;
	if (*text == '!')
		return remove_item(k, list, item, c, err);
	if (cs_strv_has(list, item))
		return 0;
	/* An exception is the one thing that shows more when it is added to a hide list. */
	if (c->locked && (k->widen == WIDEN_ADD || is_except))
		return value_locked(k, list, item, c, err);
	r = network ? network_check_room(k, list, item, c, err) : 0;
	if (r < 0)
		return r;
	cs_strv_take(list, CS_TAKE_PTR(item));
	return 0;
}

size_t value_find_var(const struct cs_strv *list, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < list->n; i++)
		if (!strncmp(list->v[i], name, n) && list->v[i][n] == '=')
			return i;
	return SIZE_MAX;
}

int value_apply_var(const struct key *k, struct profile *p, const char *name, const char *value, const struct change *c,
		    struct cs_err *err)
{
	struct cs_strv *list = key_at(k, p);
	const char *why = value_why_not_name(name, "");
	CS_FREE char *text = NULL;
	size_t i;

	if (why)
		return value_bad(k, name, c, err, why);
	if (value && value_has_control(value))
		return value_bad(k, value, c, err, "holds a newline or another control byte");
	i = value_find_var(list, name);
	if (!value && i == SIZE_MAX)
		return value_bad(k, name, c, err, "is not inherited, so it cannot be removed");
	text = cs_printf("%s=%s", name, value ? value : "");
	if (value && i != SIZE_MAX && !strcmp(list->v[i], text))
		return 0;
	if (c->locked)
		return value_locked(k, list, text, c, err);
	if (i == SIZE_MAX) {
		cs_strv_take(list, CS_TAKE_PTR(text));
	} else if (!value) {
		value_remove_at(list, i);
	} else {
		free(list->v[i]);
		list->v[i] = CS_TAKE_PTR(text);
	}
	return 0;
}

static const char *home_dir(void)
{
	const char *home = getenv("HOME");

	return home && *home == '/' && !value_has_control(home) && strlen(home) < PATH_MAX ? home : NULL;
}

char *profile_expand_item(const char *text, bool *ret_homeless)
{
	size_t lead = *text == '!';
	const char *home = home_dir();
	CS_FREE char *joined = NULL, *clean = NULL;

	*ret_homeless = false;
	if (!strncmp(text + lead, except, sizeof except - 1))
		lead += sizeof except - 1;
	if (strncmp(text + lead, "~/", 2) != 0)
		return NULL;
	if (home) {
		joined = cs_printf("%s/%s", home, text + lead + 2);
		clean = value_clean_path(joined);
	}
	*ret_homeless = !clean;
	return clean ? cs_printf("%.*s%s", (int)lead, text, clean) : NULL;
}

/* Without a home, a path to read is one that is missing: skipped.  One to
 * write or hide is an error, or the profile would do less than it says. */
static int expand_list(const struct key *k, struct profile *p, const char *origin, struct cs_err *err)
{
	struct cs_strv *list = key_at(k, p);
	struct change c = { .at = { .origin = origin } };

	for (size_t i = 0; i < list->n; i++) {
		bool homeless;
		char *full = profile_expand_item(list->v[i], &homeless);

		if (full) {
			free(list->v[i]);
			list->v[i] = full;
		} else if (homeless && strcmp(k->path, "files.read") != 0) {
			return value_bad(k, list->v[i], &c, err, "means nothing: HOME is not an absolute path");
		} else if (homeless) {
			value_remove_at(list, i--);
		}
	}
	return 0;
}

int profile_expand_home(struct profile *p, const char *origin, struct cs_err *err)
{
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];
		int r = k->type == KEY_PATHS || k->type == KEY_PATTERNS ? expand_list(k, p, origin, err) : 0;

		if (r < 0)
			return r;
	}
	return secrets_expand_home(p, &(struct place){ .origin = origin }, err);
}
