/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - what a command was seen to do, beside what was predicted. */
#include "act/act.h"

#include "base/cleanup.h"
#include "netpolicy/netpolicy.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void add_seen(struct act_observed *o, struct act_seen **list, size_t *n, size_t room, struct act_seen take_s)
{
	if (!*list)
		*list = cs_calloc(room, sizeof **list);
	(*list)[(*n)++] = take_s;
	*(take_s.predicted ? &o->expected : &o->unexpected) += 1;
}

/* ---- files ---- */

static bool is_at_or_below(const char *path, const char *object)
{
	size_t n = strlen(object);

	return n && !strncmp(path, object, n) && (!path[n] || path[n] == '/');
}

/* rm *.txt is predicted as that; what it stands for is known now. */
static bool matches(const char *path, const char *object)
{
	return strpbrk(object, "*?[") && fnmatch(object, path, FNM_PATHNAME | FNM_PERIOD | FNM_LEADING_DIR) == 0;
}

static bool file_predicted(const struct sh_verdict *v, const char *workspace, const char *beneath)
{
	CS_FREE char *path = cs_printf("%s/%s", workspace, beneath);

	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];

		if ((e->kind == SH_EFFECT_WRITE || e->kind == SH_EFFECT_DELETE) && (is_at_or_below(path, e->object) || matches(path, e->object)))
			return true;
	}
	return false;
}

/* A directory in which something came or went. */
static bool is_echo(const struct txn_change *c)
{
	return c->kind == TXN_CHANGED && S_ISDIR(c->new.mode) && !(c->differs & ~(unsigned)(TXN_TIMES | TXN_LINKS));
}

/* ---- hosts ---- */

/* Of https://user@host:8080/x, user@host:path, [::1]:80, host:443, bash's /dev/tcp/host/80: the host. */
static char *host_of(const char *text)
{
	const char *scheme = strstr(text, "://"), *at;
	size_t n;

	if (!strncmp(text, "/dev/tcp/", 9) || !strncmp(text, "/dev/udp/", 9))
		text += 9;
	else if (scheme)
		text = scheme + 3;
	n = strcspn(text, "/?#");
	at = memrchr(text, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	if (*text == '[') {
		text++;
		n = strcspn(text, "]");
	} else if (memchr(text, ':', n) == memrchr(text, ':', n)) { /* with two it is an IPv6 address without brackets */
		n = strcspn(text, ":/?#");
	}
	while (n && text[n - 1] == '.')
		n--;
	return cs_strndup(text, n);
}

/* Does this command name a host anywhere?  Then that it goes over the network says nothing of others. */
static bool names_hosts(const struct sh_verdict *v, const char *by)
{
	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].kind == SH_EFFECT_NETWORK && v->effects[i].object[0] && !strcmp(v->effects[i].by, by))
			return true;
	return false;
}

static bool host_predicted(const struct sh_verdict *v, const char *host)
{
	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];
		CS_FREE char *of = NULL;

		if (e->kind != SH_EFFECT_NETWORK)
			continue;
		/* That it goes over the network was predicted, and to whom nobody can tell: then the profile's rules are the bound. */
		if (!e->object[0] && !names_hosts(v, e->by))
			return true;
		of = host_of(e->object);
		if (*of && !strcasecmp(of, host))
			return true;
	}
	return false;
}

/* Of a refused request, "GET host/path", the host comes behind the method. */
static const char *place_of(const struct egress_told *t)
{
	const char *blank = t->kind == EGRESS_REQUEST ? strchr(t->what, ' ') : NULL;

	return t->kind == EGRESS_REACHED ? t->fix : blank ? blank + 1 : t->what;
}

static void compare_told(const struct sh_verdict *v, const struct session_network *net, size_t room, struct act_observed *ret)
{
	for (size_t i = 0; i < net->n_told; i++) {
		const struct egress_told *t = &net->told[i];
		const char *place = place_of(t);
		CS_FREE char *host = host_of(place);
		struct act_seen seen = { .predicted = host_predicted(v, host), .refused = t->kind != EGRESS_REACHED, .lookup = t->kind == EGRESS_LOOKUP };

		seen.what = cs_strdup(place);
		add_seen(ret, &ret->hosts, &ret->n_hosts, room, seen);
	}
}

/* Which name it was nobody has read; that some name would be looked up follows from a command that goes to one. */
static bool lookup_predicted(const struct sh_verdict *v)
{
	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];
		CS_FREE char *of = host_of(e->object);
		struct net_addr a;

		if (e->kind == SH_EFFECT_NETWORK && net_addr_parse(of, &a) < 0 && (*of || !names_hosts(v, e->by)))
			return true;
	}
	return false;
}

/* What never came to the boundary, or there is none: "connect to PLACE", "look up a name (PLACE)". */
static void compare_tried(const struct sh_verdict *v, const struct session_result *run, size_t room, struct act_observed *ret)
{
	for (size_t i = 0; i < run->n_refusals; i++) {
		const struct sandbox_refusal *f = &run->refusals[i].what;
		const char *open = strchr(f->what, '('), *place = open ? open + 1 : strrchr(f->what, ' ');
		struct act_seen seen = { .refused = true, .lookup = open != NULL };
		CS_FREE char *host = NULL;

		if (f->kind != SANDBOX_REFUSED_CONNECT || !place)
			continue;
		place += strspn(place, " ");
		seen.what = cs_strndup(place, strcspn(place, ")"));
		host = host_of(seen.what);
		seen.predicted = (seen.lookup && lookup_predicted(v)) || host_predicted(v, host);
		add_seen(ret, &ret->hosts, &ret->n_hosts, room, seen);
	}
}

static void compare_hosts(const struct sh_verdict *v, const struct session_result *run, struct act_observed *ret)
{
	const struct session_network *net = &run->network;
	size_t room = net->n_told + run->n_refusals;

	compare_told(v, net, room, ret);
	compare_tried(v, run, room, ret);
	/* What could not be told may be anything. */
	if (net->on && (net->trouble[0] || net->told_cut || net->totals.more))
		ret->partly = true;
	if (run->refusals_more)
		ret->partly = true;
}

void act_compare(const struct sh_verdict *v, const char *workspace, const struct txn_changes *changes, const struct session_result *run,
		 struct act_observed *ret)
{
	*ret = (struct act_observed){ 0 };
	for (size_t i = 0; changes && i < changes->n; i++) {
		struct act_seen seen = { 0 };

		if (is_echo(&changes->v[i]))
			continue;
		seen.what = cs_strdup(changes->v[i].path);
		seen.predicted = file_predicted(v, workspace, seen.what);
		add_seen(ret, &ret->files, &ret->n_files, changes->n, seen);
	}
	compare_hosts(v, run, ret);
}

void act_observed_done(struct act_observed *o)
{
	for (size_t i = 0; i < o->n_files; i++)
		free(o->files[i].what);
	for (size_t i = 0; i < o->n_hosts; i++)
		free(o->hosts[i].what);
	free(o->files);
	free(o->hosts);
	*o = (struct act_observed){ 0 };
}
