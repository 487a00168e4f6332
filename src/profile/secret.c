/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - network.secrets: credentials that are added outside.
 *
 * In a file each is a mapping, in a flag one line of text; both become the same
 * struct through the same setters.  Never the value of a secret: that is read
 * by the boundary, when it starts. */
#include "profile/internal.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "netpolicy/netpolicy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 96, NAME_MAX_LEN = 64, HEADER_MAX = 64, FORMAT_MAX = 256, COMMAND_MAX = 4096, TLS_PORT = 443 };
static const char default_header[] = "Authorization", default_format[] = "Bearer {}";

/* What is being filled in: freed unless it is taken. */
struct draft {
	const struct key *key;
	struct profile_secret s;
	struct place at; /* of the value that is being read */
	struct cs_err *err;
};

void profile_secret_done(struct profile_secret *s)
{
	free(s->name);
	free(s->from);
	free(s->header);
	free(s->format);
	cs_strv_done(&s->hosts);
	*s = (struct profile_secret){ 0 };
}

static void draft_done(struct draft *d)
{
	profile_secret_done(&d->s);
}

static int wrong(struct draft *d, const char *what, const char *text, const char *why)
{
	char shown[SHOWN];

	return profile_fail(d->err, CS_E_INVALID, &d->at, "%s: %s '%s' %s", d->key->path, what, cs_escape_to(shown, sizeof shown, text), why);
}

/* ---- the parts ---- */

static int set_name(struct draft *d, const char *text)
{
	if (value_why_not_name(text, "") || strlen(text) > NAME_MAX_LEN)
		return wrong(d, "name", text, "is not a variable's name: inside, that variable holds the placeholder");
	free(d->s.name);
	d->s.name = cs_strdup(text);
	return 0;
}

static int set_from_file(struct draft *d, const char *text, const char *path)
{
	CS_FREE char *clean = NULL;

	if (*path != '/' && strncmp(path, "~/", 2) != 0)
		return wrong(d, "from", text, "is not an absolute path: file:/path or file:~/path");
	if (strlen(path) >= PATH_MAX)
		return wrong(d, "from", text, "is longer than a path can be");
	clean = value_clean_path(path);
	if (!clean)
		return wrong(d, "from", text, "has a '..' in it");
	if (!strcmp(clean, "/") || !strcmp(clean, "~"))
		return wrong(d, "from", text, "names no file");
	d->s.from = cs_printf("file:%s", clean);
	return 0;
}

static int set_from(struct draft *d, const char *text)
{
	const char *rest = strchr(text, ':');

	rest = rest ? rest + 1 : "";
	if (value_has_control(text) || strchr(text, '\t'))
		return wrong(d, "from", text, "holds a newline or another control byte");
	if (!profile_is_utf8(text))
		return wrong(d, "from", text, "is not UTF-8");
	free(d->s.from);
	d->s.from = NULL;
	if (!strncmp(text, "file:", 5))
		return set_from_file(d, text, rest);
	if (!strncmp(text, "env:", 4) && value_why_not_name(rest, ""))
		return wrong(d, "from", text, "does not name a variable: env:VARIABLE");
	if (!strncmp(text, "command:", 8) && !rest[strspn(rest, " ")])
		return wrong(d, "from", text, "names no command: command:LINE, which a shell runs");
	if (strlen(rest) > COMMAND_MAX)
		return wrong(d, "from", text, "is too long");
	if (strcmp(text, "env") != 0 && strncmp(text, "env:", 4) != 0 && strncmp(text, "command:", 8) != 0)
		return wrong(d, "from", text, "is not one of: env, env:VARIABLE, file:/path, command:LINE");
	d->s.from = cs_strdup(text);
	return 0;
}

static int bad_host(struct draft *d, const char *text)
{
	if (strchr(text, '*'))
		return wrong(d, "host", text, "is a pattern: a secret goes to hosts that are named one by one");
	if (strpbrk(text, "/ "))
		return wrong(d, "host", text, "is not NAME or NAME:PORT: a secret goes to a name, with no protocol, path or range");
	return wrong(d, "host", text, "is not NAME or NAME:PORT; an address cannot be verified by TLS, a name can");
}

static int add_host(struct draft *d, const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	char name[NET_NAME_MAX];
	uint64_t port = TLS_PORT;
	CS_FREE char *item = NULL;

	if (strpbrk(text, "*/ ") || net_name_canonical(text, len, name, NULL) < 0)
		return bad_host(d, text);
	if (colon && (cs_parse_u64(colon + 1, &port) < 0 || port == 0 || port > 65535))
		return wrong(d, "host", text, "has no port that is a number from 1 to 65535");
	item = port == TLS_PORT ? cs_strdup(name) : cs_printf("%s:%u", name, (unsigned)port);
	if (cs_strv_has(&d->s.hosts, item))
		return 0;
	if (d->s.hosts.n >= PROFILE_MAX_SECRET_HOSTS)
		return profile_fail(d->err, CS_E_LIMIT, &d->at, "%s: more than %d hosts of one secret", d->key->path, PROFILE_MAX_SECRET_HOSTS);
	cs_strv_take(&d->s.hosts, CS_TAKE_PTR(item));
	return 0;
}

/* Headers that say where a request goes, where it ends or how it is sent: ours to write. */
static bool is_framing(const char *header)
{
	static const char *const names[] = { "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection",
					     "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade", "http2-settings",
					     "expect", "content-encoding", "accept-encoding" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcasecmp(header, names[i]))
			return true;
	return false;
}

static int set_header(struct draft *d, const char *text)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (!*text || text[strspn(text, token)] || strlen(text) > HEADER_MAX)
		return wrong(d, "header", text, "is not a header's name, such as Authorization");
	if (is_framing(text))
		return wrong(d, "header", text, "steers the connection and cannot hold a secret; use Authorization or another");
	free(d->s.header);
	d->s.header = cs_strdup(text);
	return 0;
}

static int set_format(struct draft *d, const char *text)
{
	const char *hole = strstr(text, "{}");
	size_t n = strlen(text);

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			return wrong(d, "format", text, "holds a byte that is not printable ASCII");
	if (!hole || strstr(hole + 2, "{}"))
		return wrong(d, "format", text, "must have {} once, where the secret goes, such as \"Bearer {}\"");
	if (text[0] == ' ' || text[n - 1] == ' ')
		return wrong(d, "format", text, "begins or ends with a space, which HTTP does not carry");
	if (n > FORMAT_MAX)
		return wrong(d, "format", text, "is too long");
	free(d->s.format);
	d->s.format = cs_strdup(text);
	return 0;
}

/* ---- into the profile ---- */

static struct profile_secret *find(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->network.n_secrets; i++)
		if (!strcmp(p->network.secrets[i].name, name))
			return &p->network.secrets[i];
	return NULL;
}

static bool same(const struct profile_secret *a, const struct profile_secret *b)
{
	if (strcmp(a->from, b->from) || strcmp(a->header, b->header) || strcmp(a->format, b->format) || a->hosts.n != b->hosts.n)
		return false;
	for (size_t i = 0; i < a->hosts.n; i++)
		if (!cs_strv_has(&b->hosts, a->hosts.v[i]))
			return false;
	return true;
}

static int locked(struct draft *d, const struct profile *p, const char *name)
{
	struct change c = { .at = d->at };
	struct cs_strv names = { 0 };
	int r;

	for (size_t i = 0; i < p->network.n_secrets; i++)
		cs_strv_add(&names, p->network.secrets[i].name);
	r = value_locked(d->key, &names, name, &c, d->err);
	cs_strv_done(&names);
	return r;
}

/* The draft is whole: it replaces the one of its name, or is added. */
static int put(struct draft *d, struct profile *p, bool is_locked)
{
	struct profile_network *n = &p->network;
	struct profile_secret *old = find(p, d->s.name), *grown;

	if (!strcmp(d->s.from, "env")) {
		free(d->s.from);
		d->s.from = cs_printf("env:%s", d->s.name);
	}
	if (!d->s.header)
		d->s.header = cs_strdup(default_header);
	if (!d->s.format)
		d->s.format = cs_strdup(default_format);
	if (old && same(old, &d->s))
		return 0;
	if (is_locked)
		return locked(d, p, d->s.name);
	if (!old) {
		if (n->n_secrets >= PROFILE_MAX_SECRETS)
			return profile_fail(d->err, CS_E_LIMIT, &d->at, "%s: more than %d", d->key->path, PROFILE_MAX_SECRETS);
		grown = cs_calloc(n->n_secrets + 1, sizeof *grown);
		for (size_t i = 0; i < n->n_secrets; i++)
			grown[i] = n->secrets[i];
		free(n->secrets);
		n->secrets = grown;
		old = &grown[n->n_secrets++];
	}
	profile_secret_done(old);
	*old = d->s;
	d->s = (struct profile_secret){ 0 };
	return 0;
}

static int take_away(struct draft *d, struct profile *p, const char *name, bool inherited)
{
	struct profile_network *n = &p->network;
	struct profile_secret *s = inherited ? find(p, name) : NULL;
	const char *names[PROFILE_MAX_SECRETS];
	char shown[SHOWN], hint[SHOWN + 32];
	size_t i;

	if (!s) {
		for (i = 0; inherited && i < n->n_secrets; i++)
			names[i] = n->secrets[i].name;
		return profile_fail(d->err, CS_E_INVALID, &d->at, "%s: '%s' is not inherited, so it cannot be removed%s", d->key->path,
				    cs_escape_to(shown, sizeof shown, name), profile_hint(hint, sizeof hint, cs_nearest(name, names, i)));
	}
	profile_secret_done(s);
	n->n_secrets--;
	for (i = (size_t)(s - n->secrets); i < n->n_secrets; i++)
		n->secrets[i] = n->secrets[i + 1];
	return 0;
}

/* ---- from a file ---- */

static int want_scalar(struct draft *d, const struct node *n)
{
	if (n->kind == NODE_SCALAR && !node_is_null(n))
		return 0;
	return profile_fail(d->err, CS_E_INVALID, &d->at, "%s: %s wants a single value", d->key->path, n->key ? n->key->text : "every host");
}

static int read_hosts(struct draft *d, const struct node *n)
{
	int r = 0;

	if (n->kind != NODE_LIST || !n->child)
		return profile_fail(d->err, CS_E_INVALID, &d->at, "%s: hosts wants a list of names: hosts: [api.example.com]", d->key->path);
	for (const struct node *i = n->child; i && r >= 0; i = i->next) {
		d->at = (struct place){ d->at.origin, i->line, i->col };
		r = want_scalar(d, i);
		if (r >= 0)
			r = add_host(d, i->text);
	}
	return r;
}

typedef int (*read_part)(struct draft *d, const struct node *n);

static int read_name(struct draft *d, const struct node *n)
{
	int r = want_scalar(d, n);

	return r < 0 ? r : set_name(d, n->text);
}

static int read_from(struct draft *d, const struct node *n)
{
	int r = want_scalar(d, n);

	return r < 0 ? r : set_from(d, n->text);
}

static int read_header(struct draft *d, const struct node *n)
{
	int r = want_scalar(d, n);

	return r < 0 ? r : set_header(d, n->text);
}

static int read_format(struct draft *d, const struct node *n)
{
	int r = want_scalar(d, n);

	return r < 0 ? r : set_format(d, n->text);
}

struct part {
	const char *name;
	read_part read;
	const char *fix; /* what to write when it is missing; NULL: it may be */
};

static int read_inject(struct draft *d, const struct node *n);

static const struct part secret_parts[] = {
	{ "name", read_name, "name: GITHUB_TOKEN" },
	{ "from", read_from, "from: env" },
	{ "hosts", read_hosts, "hosts: [api.example.com]" },
	{ "inject", read_inject, NULL },
	{ 0 },
};
static const struct part inject_parts[] = {
	{ "header", read_header, "header: Authorization" },
	{ "format", read_format, "format: \"Bearer {}\"" },
	{ 0 },
};

static int unknown_part(struct draft *d, const struct part *parts, const struct node *key)
{
	const char *names[4];
	char shown[SHOWN], hint[64];
	size_t n = 0;

	for (; parts[n].name; n++)
		names[n] = parts[n].name;
	d->at = (struct place){ d->at.origin, key->line, key->col };
	if (key->kind != NODE_SCALAR)
		return profile_fail(d->err, CS_E_INVALID, &d->at, "a key must be a single word");
	return profile_fail(d->err, CS_E_INVALID, &d->at, "unknown key '%s' in %s%s", cs_escape_to(shown, sizeof shown, key->text),
			    d->key->path, profile_hint(hint, sizeof hint, cs_nearest(key->text, names, n)));
}

/* A mapping that has each of these at most once and nothing else. */
static int read_parts(struct draft *d, const struct part *parts, const struct node *map)
{
	struct place whole = d->at;
	unsigned seen[4] = { 0 }; /* the line, plus one */

	for (const struct node *n = map->child; n; n = n->next) {
		size_t i = 0;
		int r;

		while (parts[i].name && (n->key->kind != NODE_SCALAR || strcmp(parts[i].name, n->key->text) != 0))
			i++;
		if (!parts[i].name)
			return unknown_part(d, parts, n->key);
		d->at = (struct place){ d->at.origin, n->key->line, n->key->col };
		if (seen[i])
			return profile_fail(d->err, CS_E_INVALID, &d->at, "duplicate key '%s', first in line %u", parts[i].name, seen[i]);
		seen[i] = n->key->line;
		d->at = (struct place){ d->at.origin, n->line, n->col };
		r = parts[i].read(d, n);
		if (r < 0)
			return r;
	}
	d->at = whole;
	for (size_t i = 0; parts[i].name; i++)
		if (!seen[i] && parts[i].fix)
			return profile_fail(d->err, CS_E_INVALID, &d->at, "%s: %s is missing, such as %s", d->key->path, parts[i].name,
					    parts[i].fix);
	return 0;
}

static int read_inject(struct draft *d, const struct node *n)
{
	if (n->kind != NODE_MAP)
		return profile_fail(d->err, CS_E_INVALID, &d->at, "%s: inject wants {header: NAME, format: TEXT}", d->key->path);
	return read_parts(d, inject_parts, n);
}

/* The item before `end` (NULL: of all) that is a secret of this name. */
static const struct node *find_node(const struct node *list, const struct node *end, const char *name)
{
	for (const struct node *o = list->child; o != end; o = o->next)
		for (const struct node *n = o->kind == NODE_MAP ? o->child : NULL; n; n = n->next)
			if (n->key->kind == NODE_SCALAR && n->kind == NODE_SCALAR && !strcmp(n->key->text, "name") && !strcmp(n->text, name))
				return o;
	return NULL;
}

const struct node *secrets_node(const struct node *list, const char *name)
{
	return list->kind == NODE_LIST ? find_node(list, /* end= */ NULL, name) : NULL;
}

static int apply_one(const struct key *k, struct profile *p, const struct node *list, const struct node *n, const struct change *c,
		     struct cs_err *err)
{
	struct draft d __attribute__((__cleanup__(draft_done))) = { .key = k, .at = { c->at.origin, n->line, n->col }, .err = err };
	const struct node *first;
	int r;

	if (n->kind == NODE_SCALAR && n->text[0] == '!')
		return take_away(&d, p, n->text + 1, /* inherited= */ !find_node(list, n, n->text + 1));
	if (n->kind != NODE_MAP)
		return profile_fail(err, CS_E_INVALID, &d.at, "%s: every item is a mapping: {name: GH, from: env, hosts: [api.example.com]}", k->path);
	r = read_parts(&d, secret_parts, n);
	if (r < 0)
		return r;
	/* Two of one name in one file: the first would be lost without a word. */
	first = find_node(list, n, d.s.name);
	if (first)
		return profile_fail(err, CS_E_INVALID, &d.at, "%s: a second secret '%s', the first is in line %u", k->path, d.s.name, first->line);
	return put(&d, p, c->locked);
}

int secrets_apply(const struct key *k, struct profile *p, const struct node *list, struct change *c, struct cs_err *err)
{
	int r = 0;

	for (const struct node *n = list->child; n && r >= 0; n = n->next)
		r = apply_one(k, p, list, n, c, err);
	return r;
}

/* ---- from a flag ---- */

/* NAME=FROM@HOST[,HOST].  FROM may hold an '@', hosts cannot: so the last one counts. */
static int read_line(struct draft *d, const char *text)
{
	const char *eq = strchr(text, '='), *at = strrchr(text, '@');
	CS_FREE char *name = NULL, *from = NULL;
	int r;

	if (!eq || !at || at < eq)
		return wrong(d, "secret", text, "is not NAME=FROM@HOST[,HOST], such as GH=env@api.example.com");
	name = cs_strndup(text, (size_t)(eq - text));
	from = cs_strndup(eq + 1, (size_t)(at - eq) - 1);
	r = set_name(d, name);
	if (r >= 0)
		r = set_from(d, from);
	for (const char *h = at + 1; r >= 0; h += strcspn(h, ",") + 1) {
		CS_FREE char *host = cs_strndup(h, strcspn(h, ","));

		r = add_host(d, host);
		if (!h[strcspn(h, ",")])
			break;
	}
	return r;
}

static int expand_file(char **from, const struct place *at, struct cs_err *err);

int secrets_set(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err)
{
	struct draft d __attribute__((__cleanup__(draft_done))) = { .key = k, .at = c->at, .err = err };
	int r;

	if (*text == '!')
		return take_away(&d, p, text + 1, /* inherited= */ true);
	r = read_line(&d, text);
	if (r >= 0)
		r = expand_file(&d.s.from, &d.at, err);
	if (r >= 0)
		r = secret_check_env(&d.s, p, &d.at, err);
	return r < 0 ? r : put(&d, p, c->locked);
}

/* ---- ~/ ---- */

static int expand_file(char **from, const struct place *at, struct cs_err *err)
{
	char shown[SHOWN];
	bool homeless = false, file = *from && !strncmp(*from, "file:", 5);
	char *path = file ? profile_expand_item(*from + 5, &homeless) : NULL;

	if (homeless)
		return profile_fail(err, CS_E_INVALID, at, "network.secrets: '%s' means nothing: HOME is not an absolute path",
				    cs_escape_to(shown, sizeof shown, *from));
	if (path) {
		free(*from);
		*from = cs_printf("file:%s", path);
		free(path);
	}
	return 0;
}

int secrets_expand_home(struct profile *p, const struct place *at, struct cs_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->network.n_secrets && r >= 0; i++)
		r = expand_file(&p->network.secrets[i].from, at, err);
	return r;
}
