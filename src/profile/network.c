/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - what stands below `network`: rules, hosts and published ports.
 * What a rule means is netpolicy's to say; here it is checked and kept in its
 * canonical form, so that '!' finds it however it was written. */
#include "profile/internal.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "netpolicy/netpolicy.h"

#include <stdio.h>
#include <string.h>

enum { ITEM_MAX = 4096 };

static int full(const struct key *k, int most, const struct change *c, struct cs_err *err)
{
	return profile_fail(err, CS_E_LIMIT, &c->at, "%s: more than %d", k->path, most);
}

static int tidy_rule(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err)
{
	bool deny = k->widen == WIDEN_REMOVE;
	struct net_policy alone = { 0 }; /* takes what the boundary will take */
	struct cs_err inner = { 0 };
	int r = net_policy_add(&alone, text, deny, &inner);

	if (r < 0)
		return profile_fail(err, inner.code, &c->at, "%s: %s", k->path, inner.msg);
	*ret = cs_strdup(deny ? alone.deny[0].text : alone.allow[0].text);
	net_policy_done(&alone);
	return 0;
}

/* Digits and nothing else, 1 to 65535. */
static bool parse_port(const char *text, size_t len, unsigned *ret)
{
	unsigned v = 0;

	if (len == 0 || len > 5 || *text == '0')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (unsigned)(text[i] - '0');
	}
	*ret = v;
	return v <= 65535;
}

/* "127.0.0.1" or "[::1]" or, when nothing was written, loopback. */
static bool publish_address(const char *text, size_t len, char *ret, size_t size)
{
	struct net_addr a = { 0 };
	char bare[64], form[64];
	bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';

	if (len == 0) {
		snprintf(ret, size, "127.0.0.1");
		return true;
	}
	if (len >= sizeof bare)
		return false;
	snprintf(bare, sizeof bare, "%.*s", (int)(len - 2 * brackets), text + brackets);
	if (net_addr_parse(bare, &a) < 0 || brackets != (strchr(bare, ':') != NULL))
		return false;
	net_addr_format(&a, form, sizeof form);
	snprintf(ret, size, a.family == 6 ? "[%s]" : "%s", form);
	return true;
}

static int tidy_publish(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err)
{
	const char *inside = strrchr(text, ':'), *outside;
	unsigned in, out;
	char address[80];
	size_t len;

	if (!inside)
		return value_bad(k, text, c, err, "has one port: wants [ADDRESS:]PORT:PORT, the host's port and then the one inside");
	for (outside = inside; outside > text && outside[-1] != ':' && outside[-1] != ']'; outside--)
		;
	len = outside == text ? 0 : (size_t)(outside - text) - 1;
	if (!parse_port(outside, (size_t)(inside - outside), &out) || !parse_port(inside + 1, strlen(inside + 1), &in) ||
	    (outside != text && outside[-1] != ':'))
		return value_bad(k, text, c, err, "is not [ADDRESS:]PORT:PORT, the host's port and then the one inside, each 1 to 65535");
	if ((outside != text && len == 0) || !publish_address(text, len, address, sizeof address))
		return value_bad(k, text, c, err, "does not begin with an address of this host, such as 127.0.0.1, 0.0.0.0 or [::1]");
	*ret = cs_printf("%s:%u:%u", address, out, in);
	return 0;
}

int network_tidy(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err)
{
	if (strlen(text) > ITEM_MAX)
		return value_bad(k, text, c, err, "is too long");
	return k->type == KEY_RULES ? tidy_rule(k, text, c, ret, err) : tidy_publish(k, text, c, ret, err);
}

/* Two ports inside cannot share one of the host's. */
static int check_port_is_free(const struct key *k, const struct cs_strv *list, const char *item, const struct change *c, struct cs_err *err)
{
	size_t n = (size_t)(strrchr(item, ':') - item) + 1;

	for (size_t i = 0; i < list->n; i++)
		if (!strncmp(list->v[i], item, n))
			return profile_fail(err, CS_E_INVALID, &c->at, "%s: '%s' takes a port of the host that '%s' has already", k->path, item,
					    list->v[i]);
	return 0;
}

int network_check_room(const struct key *k, const struct cs_strv *list, const char *item, const struct change *c, struct cs_err *err)
{
	int most = k->type == KEY_RULES ? NET_RULES_MAX : PROFILE_MAX_PUBLISH;

	if (list->n >= (size_t)most)
		return full(k, most, c, err);
	return k->type == KEY_PUBLISH ? check_port_is_free(k, list, item, c, err) : 0;
}

/* NAME=ADDRESS[:PORT] in its canonical form. */
static int tidy_host(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err)
{
	struct cs_err inner = { 0 };
	struct net_host h = { 0 };
	char address[64], port[16] = "";
	bool brackets;
	int r;

	if (strlen(text) > ITEM_MAX)
		return value_bad(k, text, c, err, "is too long");
	r = net_host_parse(text, &h, &inner);
	if (r < 0)
		return profile_fail(err, inner.code, &c->at, "%s: %s", k->path, inner.msg);
	net_addr_format(&h.addr, address, sizeof address);
	if (h.port)
		snprintf(port, sizeof port, ":%u", h.port);
	brackets = h.addr.family == 6;
	*ret = cs_printf("%s=%s%s%s%s", h.name, brackets ? "[" : "", address, brackets ? "]" : "", port);
	return 0;
}

int network_apply_host(const struct key *k, struct profile *p, const char *name, const char *address, const struct change *c,
		       struct cs_err *err)
{
	struct cs_strv *list = key_at(k, p);
	CS_FREE char *raw = cs_printf("%s=%s", name, address ? address : "0.0.0.0"), *text = NULL, *canonical = NULL;
	size_t i;
	int r;

	if (!*name || strchr(name, '='))
		return value_bad(k, name, c, err, "is not a host's name");
	r = tidy_host(k, raw, c, &text, err);
	if (r < 0 || !text)
		return r;
	canonical = cs_strndup(text, strcspn(text, "="));
	i = value_find_var(list, canonical);
	if (!address && i == SIZE_MAX)
		return value_bad(k, name, c, err, "is not inherited, so it cannot be removed");
	if (address && i != SIZE_MAX && !strcmp(list->v[i], text))
		return 0;
	if (c->locked)
		return value_locked(k, list, address ? text : canonical, c, err);
	if (!address) {
		value_remove_at(list, i);
	} else if (i != SIZE_MAX) {
		free(list->v[i]);
		list->v[i] = CS_TAKE_PTR(text);
	} else if (list->n >= PROFILE_MAX_HOSTS) {
		return full(k, PROFILE_MAX_HOSTS, c, err);
	} else {
		cs_strv_take(list, CS_TAKE_PTR(text));
	}
	return 0;
}

bool profile_has_network(const struct profile *p)
{
	return p->network.allow.n || p->network.publish.n;
}

static bool no_budget(const struct profile_budget *b)
{
	return !b->bytes_out && !b->bytes_in && !b->connections && !b->requests;
}

void profile_close_network(struct profile *p)
{
	profile_network_done(&p->network);
}

bool network_is_none(const struct profile_network *n)
{
	return !n->allow.n && !n->deny.n && !n->hosts.n && !n->publish.n && !n->ech_deny && !n->n_secrets && no_budget(&n->budget) &&
	       no_budget(&n->per_host);
}

void profile_network_done(struct profile_network *n)
{
	cs_strv_done(&n->allow);
	cs_strv_done(&n->deny);
	cs_strv_done(&n->hosts);
	cs_strv_done(&n->publish);
	for (size_t i = 0; i < n->n_secrets; i++)
		profile_secret_done(&n->secrets[i]);
	free(n->secrets);
	*n = (struct profile_network){ 0 };
}
