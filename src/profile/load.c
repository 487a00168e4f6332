/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - a profile file, on top of what it extends, into struct profile. */
#include "profile/internal.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN = 96 };

static struct place place_of(const char *origin, const struct node *n)
{
	return (struct place){ origin, n->line, n->col };
}

static int wrong_type(const struct key *k, const struct node *n, const char *origin, struct cs_err *err)
{
	static const char *const kinds[] = { "a single value", "a list", "a mapping" };
	struct place at = place_of(origin, n);

	return profile_fail(err, CS_E_INVALID, &at, "%s: wants %s, but this is %s", k->path, key_type_words(k),
			    node_is_null(n) ? "null" : kinds[n->kind]);
}

/* A key of another section, or a dotted one: say where it belongs. */
static bool hint_elsewhere(char *dst, size_t size, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < profile_keys_n && n < size; i++) {
		const char *path = profile_keys[i].path, *dot = strrchr(path, '.');

		if (strcmp(path, word) != 0 && !(dot && !strcmp(dot + 1, word)))
			continue;
		if (n)
			n += (size_t)snprintf(dst + n, size - n, " or '%.*s'", dot ? (int)(dot - path) : 0, path);
		else if (dot)
			n = (size_t)snprintf(dst, size, " (did you mean '%s' under '%.*s'", dot + 1, (int)(dot - path), path);
		else
			n = (size_t)snprintf(dst, size, " (did you mean '%s' at the top", path);
	}
	if (n && n < size)
		snprintf(dst + n, size - n, "?)");
	return n;
}

/* Into dst, because a section's name stands nowhere by itself. */
static const char *nearest_key(const char *section, const char *word, char *dst, size_t size)
{
	char names[64][24];
	const char *list[64], *near;
	size_t n = 0;

	for (size_t i = 0; i < profile_keys_n && n < sizeof names / sizeof *names; i++) {
		const char *name = key_below(&profile_keys[i], section);

		if (!name)
			continue;
		snprintf(names[n], sizeof names[n], "%.*s", (int)strcspn(name, "."), name);
		list[n] = names[n];
		n += n == 0 || strcmp(names[n], names[n - 1]) != 0;
	}
	near = cs_nearest(word, list, n);
	snprintf(dst, size, "%s", near ? near : "");
	return near ? dst : NULL;
}

static int unknown_key(const char *section, const struct node *key, const char *origin, struct cs_err *err)
{
	struct place at = place_of(origin, key);
	char shown[SHOWN], hint[160], near[24];

	if (!hint_elsewhere(hint, sizeof hint, key->text))
		profile_hint(hint, sizeof hint, nearest_key(section, key->text, near, sizeof near));
	return profile_fail(err, CS_E_INVALID, &at, "unknown key '%s'%s%s%s", cs_escape_to(shown, sizeof shown, key->text),
			    *section ? " in " : "", section, hint);
}

/* Every mapping: keys are single values, and each is there once. */
static int check_keys(const struct node *map, const char *origin, struct cs_err *err)
{
	char shown[SHOWN];

	for (const struct node *n = map->child; n; n = n->next) {
		struct place at = place_of(origin, n->key);

		if (n->key->kind != NODE_SCALAR)
			return profile_fail(err, CS_E_INVALID, &at, "a key must be a single word");
		for (const struct node *o = map->child; o != n; o = o->next)
			if (!strcmp(o->key->text, n->key->text))
				return profile_fail(err, CS_E_INVALID, &at, "duplicate key '%s', first in line %u",
						    cs_escape_to(shown, sizeof shown, n->key->text), o->key->line);
	}
	return 0;
}

static int apply_list(const struct key *k, struct profile *p, const struct node *n, struct change *c, struct cs_err *err)
{
	if (k->type == KEY_PROTECTIONS && n->kind == NODE_SCALAR && !strcmp(n->text, "all"))
		return value_apply(k, p, n->text, c, err);
	if (n->kind != NODE_LIST)
		return wrong_type(k, n, c->at.origin, err);
	c->inherited = k->type == KEY_PROTECTIONS ? 0 : ((struct cs_strv *)key_at(k, p))->n;
	for (const struct node *i = n->child; i; i = i->next) {
		int r;

		c->at = place_of(c->at.origin, i);
		if (i->kind != NODE_SCALAR || node_is_null(i))
			return profile_fail(err, CS_E_INVALID, &c->at, "%s: every item must be a single value", k->path);
		r = value_apply(k, p, i->text, c, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_vars(const struct key *k, struct profile *p, const struct node *n, struct change *c, struct cs_err *err)
{
	int r;

	if (n->kind != NODE_MAP)
		return wrong_type(k, n, c->at.origin, err);
	r = check_keys(n, c->at.origin, err);
	for (const struct node *i = n->child; i && r >= 0; i = i->next) {
		c->at = place_of(c->at.origin, i);
		if (i->kind != NODE_SCALAR)
			return profile_fail(err, CS_E_INVALID, &c->at, "%s: every value must be a single value%s", k->path,
					    k->type == KEY_HOSTS ? "; one that begins with '[' needs quotes" : "");
		if (k->type == KEY_HOSTS)
			r = network_apply_host(k, p, i->key->text, node_is_null(i) ? NULL : i->text, c, err);
		else
			r = value_apply_var(k, p, i->key->text, node_is_null(i) ? NULL : i->text, c, err);
	}
	return r;
}

static int apply_secrets(const struct key *k, struct profile *p, const struct node *n, struct change *c, struct cs_err *err)
{
	if (n->kind != NODE_LIST)
		return wrong_type(k, n, c->at.origin, err);
	return secrets_apply(k, p, n, c, err);
}

static int apply_rows(const struct key *k, struct profile *p, const struct node *n, struct change *c, struct cs_err *err)
{
	int r;

	if (n->kind != NODE_MAP)
		return wrong_type(k, n, c->at.origin, err);
	r = check_keys(n, c->at.origin, err);
	return r < 0 ? r : rows_apply(k, p, n, c, err);
}

static int apply_value(const struct key *k, struct profile *p, const struct node *n, struct change *c, struct cs_err *err)
{
	c->at = place_of(c->at.origin, n);
	if (k->type == KEY_GATE) {
		p->gate = true;
		return 0; /* gate/policy.c reads it, and says what is wrong in it */
	}
	if (key_is_list(k) || k->type == KEY_ENVVARS || k->type == KEY_HOSTS || k->type == KEY_SECRETS || k->type == KEY_ROWS) {
		if (node_is_null(n))
			return 0;
		if (k->type == KEY_ROWS)
			return apply_rows(k, p, n, c, err);
		if (k->type == KEY_SECRETS)
			return apply_secrets(k, p, n, c, err);
		return key_is_list(k) ? apply_list(k, p, n, c, err) : apply_vars(k, p, n, c, err);
	}
	if (n->kind != NODE_SCALAR || node_is_null(n) || (k->type == KEY_BOOL && !n->plain))
		return wrong_type(k, n, c->at.origin, err);
	return value_apply(k, p, n->text, c, err);
}

static int apply_map(struct profile *p, const struct node *map, const char *section, struct change *c, struct cs_err *err)
{
	int r = check_keys(map, c->at.origin, err);

	for (const struct node *n = map->child; n && r >= 0; n = n->next) {
		struct place at = place_of(c->at.origin, n);
		char path[64];
		int len = snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", n->key->text);
		bool whole = len < (int)sizeof path && !strchr(n->key->text, '.'); /* "limits.memory" is no key of the top */
		const struct key *k = whole ? key_find(path) : NULL;

		if (whole && n->kind == NODE_MAP && key_is_section(path))
			r = apply_map(p, n, path, c, err);
		else if (k)
			r = apply_value(k, p, n, c, err);
		else if (!whole || !key_is_section(path))
			r = unknown_key(section, n->key, c->at.origin, err);
		else if (!node_is_null(n))
			r = profile_fail(err, CS_E_INVALID, &at, "%s: wants a mapping of keys, but this is %s", path,
					 n->kind == NODE_LIST ? "a list" : "a single value");
	}
	return r;
}

static bool is_path(const char *name)
{
	const char *dot = strrchr(name, '.');

	return strchr(name, '/') || (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")));
}

static const char *nearest_builtin(const char *name)
{
	const char *names[16];
	size_t n = 0;

	for (; n < profile_builtin_count() && n < sizeof names / sizeof *names; n++)
		names[n] = profile_builtin_name(n);
	return cs_nearest(name, names, n);
}

static int load_named(const char *name, const struct place *at, const struct load *up, struct profile *ret, struct cs_err *err)
{
	char shown[SHOWN], hint[64];
	int r = profile_find_builtin(name, up, ret, err);

	if (r)
		return r < 0 ? r : 0;
	return profile_fail(err, CS_E_NOT_FOUND, at, "there is no built-in profile '%s'%s; a file's name has a '/' or ends in .yaml",
			    cs_escape_to(shown, sizeof shown, name), profile_hint(hint, sizeof hint, nearest_builtin(name)));
}

static int load_base_file(const char *name, const struct place *at, const struct load *up, struct profile *ret,
			  struct cs_err *err)
{
	const char *slash = strrchr(at->origin, '/');
	int dir = *name == '/' || !slash ? 0 : (int)(slash - at->origin) + 1;
	CS_FREE char *path = cs_printf("%.*s%s", dir, at->origin, name);
	struct cs_err inner = { 0 };
	int r = profile_read_file(path, up, ret, &inner);

	/* Both places: where the base is named, and what is wrong with it. */
	return r < 0 ? profile_fail(err, inner.code, at, "extends: %s", inner.msg) : 0;
}

static const struct node *find_child(const struct node *map, const char *key)
{
	for (const struct node *n = map->child; n; n = n->next)
		if (n->key->kind == NODE_SCALAR && !strcmp(n->key->text, key))
			return n;
	return NULL;
}

/* What the file starts from.  Without `extends` that is the default profile
 * and not nothing: a file that forgets the key must not lose the hide list. */
static int load_base(const struct node *root, const struct load *self, struct profile *ret, struct cs_err *err)
{
	const struct node *n = find_child(root, "extends");
	struct place at = place_of(self->origin, n ? n : root);
	const char *name = n ? n->text : "default";
	unsigned depth = 0;

	if (n && (n->kind != NODE_SCALAR || node_is_null(n)))
		return wrong_type(key_find("extends"), n, self->origin, err);
	if (!strcmp(name, "none"))
		return 0;
	for (const struct load *l = self; l; l = l->up)
		depth++;
	if (depth > PROFILE_MAX_EXTENDS)
		return profile_fail(err, CS_E_LIMIT, &at, "extends: more than %d profiles deep", PROFILE_MAX_EXTENDS);
	if (is_path(name))
		return load_base_file(name, &at, self, ret, err);
	return load_named(name, &at, self, ret, err);
}

/* What a profile is called that does not say: its file's name without the ending. */
static char *name_from_origin(const char *origin)
{
	const char *slash = strrchr(origin, '/'), *base = slash ? slash + 1 : origin, *dot = strrchr(base, '.');
	char *name = cs_strndup(base, dot && dot != base ? (size_t)(dot - base) : 64);

	if (strlen(name) > 64)
		name[64] = 0;
	for (char *c = name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c) ||
		    (c == name && (*c == '-' || *c == '.')))
			*c = '_';
	if (!*name) {
		free(name);
		return cs_strdup("unnamed");
	}
	return name;
}

/* Where this file says what is wrong with a secret: its item, or else what changed around it. */
static struct place place_of_secret(const struct node *root, const char *origin, const char *name)
{
	const struct node *net = find_child(root, "network"), *env = find_child(root, "env"), *n = NULL;

	if (net && net->kind == NODE_MAP)
		n = find_child(net, "secrets");
	n = n ? secrets_node(n, name) : NULL;
	if (!n)
		n = env ? env : net ? net : root;
	return place_of(origin, n);
}

static int check_whole(const struct node *root, const char *origin, const struct profile *p, struct cs_err *err)
{
	const struct profile_secret *which = NULL;
	struct place at = place_of(origin, root);

	if (secrets_check(p, &at, &which, /* err= */ NULL) >= 0)
		return 0;
	at = which ? place_of_secret(root, origin, which->name) : at;
	return secrets_check(p, &at, &which, err);
}

static int apply_tree(const struct node *root, const struct load *self, struct profile *p, struct cs_err *err)
{
	struct change c = { .at = { .origin = self->origin }, .file = self };
	int r = check_keys(root, self->origin, err);

	if (r < 0)
		return r;
	r = load_base(root, self, p, err);
	if (r < 0)
		return r;
	c.locked = p->locked; /* the base's word, whatever this file says of itself */
	free(p->name);
	free(p->description);
	free(p->extends);
	p->name = name_from_origin(self->origin);
	p->description = p->extends = NULL;
	r = apply_map(p, root, "", &c, err);
	return r < 0 ? r : check_whole(root, self->origin, p, err);
}

static int read_text(const char *text, size_t len, const struct load *self, struct profile *ret, struct cs_err *err)
{
	struct place at = { self->origin, 1, 1 };
	struct profile p = { 0 };
	struct node *root = NULL;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): every caller sets origin */
	int r = tree_read(text, len, self->origin, &root, err);

	if (r < 0)
		return r;
	if (root->kind == NODE_MAP)
		r = apply_tree(root, self, &p, err);
	else
		r = profile_fail(err, CS_E_INVALID, &at, "a profile is a mapping of keys to values");
	tree_free(root);
	if (r < 0) {
		profile_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

static int open_profile(const char *path, const struct load *up, struct load *self, int *ret_fd, struct cs_err *err)
{
	char shown[192], hint[64];
	const char *near;
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO must not hold us up */
	CS_FREE char *stem = NULL;
	struct stat st;

	cs_escape_to(shown, sizeof shown, path);
	if (fd < 0 && errno == ENOENT) {
		stem = name_from_origin(path);
		near = nearest_builtin(stem);
		return cs_fail(err, CS_E_NOT_FOUND, 0, "%s: no such file%s", shown,
			       profile_hint(hint, sizeof hint, near && strcmp(near, path) ? near : NULL));
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return cs_fail(err, errno == ENOTDIR ? CS_E_NOT_FOUND : CS_E_SYSTEM, errno, "%s", shown);
	if (!S_ISREG(st.st_mode))
		return cs_fail(err, CS_E_INVALID, 0, "%s: %s, not a profile", shown,
			       S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
	for (const struct load *l = up; l; l = l->up)
		if (l->ino == st.st_ino && l->dev == st.st_dev)
			return cs_fail(err, CS_E_CONFLICT, 0, "%s: extends itself in a circle", shown);
	*self = (struct load){ .up = up, .origin = path, .dev = st.st_dev, .ino = st.st_ino };
	self->doubt = trust_doubt(fd, &self->real);
	*ret_fd = CS_TAKE_FD(fd);
	return 0;
}

int profile_read_file(const char *path, const struct load *up, struct profile *ret, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(PROFILE_MAX_BYTES);
	CS_FD int fd = -1;
	char shown[192];
	struct load self = { 0 };
	int r = open_profile(path, up, &self, &fd, err);

	if (r < 0)
		return r;
	r = cs_buf_read_fd(&text, fd, cs_escape_to(shown, sizeof shown, path), err);
	if (r >= 0)
		r = read_text(cs_buf_text(&text), text.len, &self, ret, err);
	free(self.real);
	return r;
}

static int finish(struct profile *take_p, const char *origin, struct profile *ret, struct cs_err *err)
{
	int r = profile_expand_home(take_p, origin, err);

	if (r < 0)
		profile_done(take_p);
	else
		*ret = *take_p;
	return r;
}

int profile_load_file(const char *path, struct profile *ret, struct cs_err *err)
{
	struct profile p = { 0 };
	int r = profile_read_file(path, /* up= */ NULL, &p, err);

	return r < 0 ? r : finish(&p, path, ret, err);
}

int profile_load_text(const char *text, size_t len, const char *origin, struct profile *ret, struct cs_err *err)
{
	struct load self = { .origin = origin, .doubt = "it comes from no file" };
	struct profile p = { 0 };
	int r = read_text(text, len, &self, &p, err);

	return r < 0 ? r : finish(&p, origin, ret, err);
}

int profile_load(const char *name, struct profile *ret, struct cs_err *err)
{
	struct place at = { .origin = "profile" };
	struct profile p = { 0 };
	int r;

	if (is_path(name))
		return profile_load_file(name, ret, err);
	r = load_named(name, &at, /* up= */ NULL, &p, err);
	return r < 0 ? r : finish(&p, name, ret, err);
}

void profile_done(struct profile *p)
{
	free(p->name);
	free(p->description);
	free(p->extends);
	cs_strv_done(&p->files_read);
	cs_strv_done(&p->files_write);
	cs_strv_done(&p->files_hide);
	cs_strv_done(&p->commit_protect);
	cs_strv_done(&p->commit_allow);
	cs_strv_done(&p->env_pass);
	cs_strv_done(&p->env_set);
	profile_shell_done(&p->shell);
	profile_network_done(&p->network);
	*p = (struct profile){ 0 };
}
