/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - a flag overrides a key, by the rules that files follow too. */
#include "profile/internal.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdint.h>
#include <string.h>

static int unknown_key(const char *key, const struct change *c, struct cs_err *err)
{
	const char *paths[80];
	char shown[96], hint[96];
	size_t n = 0;

	for (; n < profile_keys_n && n < sizeof paths / sizeof *paths; n++)
		paths[n] = profile_keys[n].path;
	return profile_fail(err, CS_E_INVALID, &c->at, "unknown key '%s'%s", cs_escape_to(shown, sizeof shown, key),
			    profile_hint(hint, sizeof hint, cs_nearest(key, paths, n)));
}

static int set_var(const struct key *k, struct profile *p, const char *value, const struct change *c, struct cs_err *err)
{
	const char *eq = strchr(value, '=');
	CS_FREE char *name = cs_strndup(value, eq ? (size_t)(eq - value) : strlen(value));

	if (!eq && *value != '!')
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: wants NAME=%s", k->path, k->type == KEY_HOSTS ? "ADDRESS[:PORT]" : "VALUE");
	if (k->type == KEY_HOSTS)
		return network_apply_host(k, p, eq ? name : value + 1, eq ? eq + 1 : NULL, c, err);
	if (eq && secrets_check_env(p, name, /* set= */ true, &c->at, err) < 0)
		return -CS_E_INVALID;
	return value_apply_var(k, p, eq ? name : value + 1, eq ? eq + 1 : NULL, c, err);
}

static int set_protections(const struct key *k, struct profile *p, const char *value, struct change *c, struct cs_err *err)
{
	protection_set before = p->require;
	int r = 0;

	while (r >= 0) {
		size_t n = strcspn(value, ",");
		CS_FREE char *name = cs_strndup(value, n);

		r = value_apply(k, p, name, c, err);
		if (!value[n])
			break;
		value += n + 1;
	}
	if (r < 0)
		p->require = before; /* all of the flag or nothing */
	return r;
}

static int set_path(const struct key *k, struct profile *p, const char *value, struct change *c, struct cs_err *err)
{
	char shown[96];
	bool homeless;
	CS_FREE char *full = profile_expand_item(value, &homeless);

	if (homeless)
		return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' means nothing: HOME is not an absolute path", k->path,
				    cs_escape_to(shown, sizeof shown, value));
	return value_apply(k, p, full ? full : value, c, err);
}

static int set_env_name(const struct key *k, struct profile *p, const char *value, struct change *c, struct cs_err *err)
{
	if (*value != '!' && secrets_check_env(p, value, /* set= */ false, &c->at, err) < 0)
		return -CS_E_INVALID;
	return value_apply(k, p, value, c, err);
}

int profile_set(struct profile *p, const char *key, const char *value, const char *origin, struct cs_err *err)
{
	const struct key *k = key_find(key);
	struct change c = { .at = { .origin = origin }, .locked = p->locked, .inherited = SIZE_MAX };

	if (!k)
		return unknown_key(key, &c, err);
	switch (k->type) {
	case KEY_EXTENDS: return profile_fail(err, CS_E_INVALID, &c.at, "extends: only a profile file can extend another");
	case KEY_ENVVARS:
	case KEY_HOSTS: return set_var(k, p, value, &c, err);
	case KEY_ENVNAMES: return set_env_name(k, p, value, &c, err);
	case KEY_SECRETS: return secrets_set(k, p, value, &c, err);
	case KEY_ROWS: return rows_set(k, p, value, &c, err);
	case KEY_PROTECTIONS: return set_protections(k, p, value, &c, err);
	case KEY_PATHS:
	case KEY_PATTERNS: return set_path(k, p, value, &c, err);
	default: return value_apply(k, p, value, &c, err);
	}
}
