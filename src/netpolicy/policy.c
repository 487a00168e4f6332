/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - rules together, and the verdict on a name, an address or a request.
 *
 * A reason says what was refused and why; a fix is what would allow exactly that
 * and nothing more, ready for a shell.  Both quote hostile text, so both escape
 * it; a fix that does not fit is left out, because half a name is another name. */
#include "base/cleanup.h"
#include "base/text.h"
#include "netpolicy/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rules --------------------------------------------------------------------------------- */

static int check_deny(const struct net_rule *r, struct cs_err *err)
{
	if (r->net.family && r->path)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a network is denied whole; leave out the method and the path",
			       SHOWN(r->text));
	if (r->proto != NET_AUTO && !r->path)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a denial is of every protocol; leave out '/%s'", SHOWN(r->text),
			       net_proto_name(r->proto));
	return 0;
}

int net_policy_add(struct net_policy *p, const char *rule, bool deny, struct cs_err *err)
{
	struct net_rule **list = deny ? &p->deny : &p->allow, *grown;
	size_t *n = deny ? &p->n_deny : &p->n_allow;
	CS_CLEANUP(net_rule_done) struct net_rule r = { 0 };
	int e;

	e = net_rule_parse(rule, &r, err);
	if (e < 0)
		return e;
	e = deny ? check_deny(&r, err) : 0;
	if (e < 0)
		return e;
	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*list)[i].text, r.text))
			return 0;
	if (*n >= NET_RULES_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "'%s': there are %d rules already, which is the most", SHOWN(rule), NET_RULES_MAX);
	grown = realloc(*list, (*n + 1) * sizeof **list);
	if (!grown)
		return cs_fail(err, CS_E_LIMIT, 0, "no memory for a rule");
	*list = grown;
	grown[(*n)++] = r;
	memset(&r, 0, sizeof r); /* the policy's now */
	return 0;
}

int net_policy_add_host(struct net_policy *p, const char *text, struct cs_err *err)
{
	struct net_host h, *grown;
	const struct net_host *old;
	int e;

	e = net_host_parse(text, &h, err);
	if (e < 0)
		return e;
	old = net_policy_host(p, h.name);
	if (old && net_addr_equal(&old->addr, &h.addr) && old->port == h.port)
		return 0;
	if (old)
		return cs_fail(err, CS_E_CONFLICT, 0, "'%s': %s already has another address; leave one of them out", SHOWN(text),
			       SHOWN(h.name));
	if (p->n_hosts >= NET_RULES_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "there are more than %d hosts", NET_RULES_MAX);
	grown = realloc(p->hosts, (p->n_hosts + 1) * sizeof *grown);
	if (!grown)
		return cs_fail(err, CS_E_LIMIT, 0, "no memory for a host");
	p->hosts = grown;
	grown[p->n_hosts++] = h;
	return 0;
}

void net_policy_done(struct net_policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_allow; i++)
		net_rule_done(&p->allow[i]);
	for (size_t i = 0; i < p->n_deny; i++)
		net_rule_done(&p->deny[i]);
	free(p->allow);
	free(p->deny);
	free(p->hosts);
	memset(p, 0, sizeof *p);
}

const struct net_host *net_policy_host(const struct net_policy *p, const char *name)
{
	for (size_t i = 0; i < p->n_hosts; i++)
		if (!strcmp(p->hosts[i].name, name))
			return &p->hosts[i];
	return NULL;
}

/* --- what is said -------------------------------------------------------------------------- */

static void allow(struct net_verdict *v, const struct net_rule *rule, enum net_proto proto)
{
	*v = (struct net_verdict){ .ok = true, .rule = rule, .proto = proto };
}

static void refuse(struct net_verdict *v, const struct net_rule *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void refuse(struct net_verdict *v, const struct net_rule *rule, const char *fmt, ...)
{
	va_list ap;
	int n;

	*v = (struct net_verdict){ .rule = rule };
	va_start(ap, fmt);
	n = vsnprintf(v->reason, sizeof v->reason, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof v->reason)
		memcpy(v->reason + sizeof v->reason - 4, "...", 4);
	cs_blunt(v->reason);
}

/* Short enough that a reason holds two of them. */
#define BRIEF(s)  net_shown((char[64]){ 0 }, 64, s)
#define LONGER(s) net_shown((char[104]){ 0 }, 104, s)

static void set_fix(struct net_verdict *v, const char *rule)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/,-@%+=";
	struct cs_buf b CS_BUF_AUTO = CS_BUF(sizeof v->fix - 1);

	cs_buf_str(&b, "--allow ");
	if (rule[strspn(rule, plain)] == 0) {
		cs_buf_str(&b, rule);
	} else {
		cs_buf_char(&b, '\'');
		for (const char *s = rule; *s; s++)
			cs_buf_str(&b, *s == '\'' ? "'\\''" : (char[]){ *s, 0 });
		cs_buf_char(&b, '\'');
	}
	if (!b.over)
		snprintf(v->fix, sizeof v->fix, "%s", cs_buf_text(&b));
}

void net_place_write(const char *host, uint16_t port, enum net_proto proto, char *ret, size_t size)
{
	enum net_proto usual = port == 443 ? NET_TLS : port == 80 ? NET_HTTP : NET_TCP;
	const char *slash = proto == NET_AUTO || proto == usual ? "" : "/";
	const char *name = *slash ? net_proto_name(proto) : "";
	struct net_addr a;

	if (net_addr_parse(host, &a) == 0)
		snprintf(ret, size, a.family == 6 ? "[%s/128]:%u%s%s" : "%s/32:%u%s%s", host, port, slash, name);
	else if (port == 443 || port == 80 || port == 0)
		snprintf(ret, size, "%s%s%s", host, slash, name);
	else
		snprintf(ret, size, "%s:%u%s%s", host, port, slash, name);
}

static void fix_place(struct net_verdict *v, const char *host, uint16_t port)
{
	char rule[NET_NAME_MAX + 32];

	net_place_write(host, port, NET_AUTO, rule, sizeof rule);
	set_fix(v, rule);
}

static void fix_address(struct net_verdict *v, const struct net_addr *a, uint16_t port)
{
	char text[48];

	net_addr_format(a, text, sizeof text);
	fix_place(v, text, port);
}

/* --- names --------------------------------------------------------------------------------- */

/* A denial without ports is of all of them; otherwise `port`, 0 standing for all. */
static bool denies_port(const struct net_rule *r, uint16_t port)
{
	if (r->default_ports)
		return true;
	return port ? net_rule_has_port(r, port) : r->port_lo <= 1 && r->port_hi == 65535;
}

static const struct net_rule *find_deny(const struct net_policy *p, const char *name, uint16_t port)
{
	for (size_t i = 0; i < p->n_deny; i++) {
		const struct net_rule *r = &p->deny[i];

		if (!r->path && net_rule_denies_name(r, name) && denies_port(r, port))
			return r;
	}
	return NULL;
}

/* How closely a rule names what it names: `*`, then `*.name` by length, then the name. */
static size_t closeness(const struct net_rule *r)
{
	return !strcmp(r->name, "*") ? 1 : r->wildcard ? strlen(r->name) + 2 : NET_NAME_MAX * 2;
}

/* The closest rule, the first of equals; port 0: any. */
static const struct net_rule *find_allow(const struct net_policy *p, const char *name, uint16_t port)
{
	const struct net_rule *best = NULL;

	for (size_t i = 0; i < p->n_allow; i++) {
		const struct net_rule *r = &p->allow[i];

		if (net_rule_has_name(r, name) && (!port || net_rule_has_port(r, port)) &&
		    (!best || closeness(r) > closeness(best)))
			best = r;
	}
	return best;
}

static bool learns(const struct net_policy *p, const char *name)
{
	return p->learn && strchr(name, '.') && !net_name_is_metadata(name);
}

/* What the first of these rules that is about requests there says is spoken; otherwise tcp. */
static enum net_proto proto_read(const struct net_rule *rules, size_t n, const char *name, uint16_t port)
{
	for (size_t i = 0; rules && i < n; i++)
		if (rules[i].path && net_rule_denies_name(&rules[i], name) && net_rule_has_port(&rules[i], port))
			return net_rule_proto(&rules[i], port);
	return NET_TCP;
}

/* What is spoken there.  A rule about requests wins over tcp, in which none could be seen. */
static enum net_proto proto_for(const struct net_policy *p, const struct net_rule *chosen, const char *name, uint16_t port)
{
	static const struct net_rule usual = { .proto = NET_AUTO };
	enum net_proto proto = net_rule_proto(chosen ? chosen : &usual, port);

	if (proto == NET_TCP)
		proto = proto_read(p->allow, p->n_allow, name, port);
	if (proto == NET_TCP)
		proto = proto_read(p->deny, p->n_deny, name, port);
	return proto;
}

/* Everything but ports is said here for a lookup (port 0) and a connection. */
static void judge(const struct net_policy *p, const char *name, uint16_t port, struct net_verdict *ret)
{
	char canonical[NET_NAME_MAX], at[8] = "";
	const struct net_rule *r;

	if (port)
		snprintf(at, sizeof at, ":%u", port);
	if (net_name_canonical(name, strlen(name), canonical, NULL) < 0 || strcmp(name, canonical) != 0) {
		refuse(ret, NULL, "'%s' is not the name of a host", LONGER(name));
		return;
	}
	r = find_deny(p, name, port);
	if (r) {
		refuse(ret, r, "%s%s is denied by the rule '%s'", BRIEF(name), at, BRIEF(r->text));
		return;
	}
	r = find_allow(p, name, port);
	if (r || learns(p, name)) {
		allow(ret, r, proto_for(p, r, name, port));
		return;
	}
	if (net_name_is_metadata(name)) {
		refuse(ret, NULL, "%s is a cloud metadata service, which gives out credentials; only a rule with that very name allows it",
		       BRIEF(name));
		return;
	}
	refuse(ret, NULL, "no rule allows %s%s", LONGER(name), at);
	fix_place(ret, name, port);
}

void net_judge_lookup(const struct net_policy *p, const char *name, struct net_verdict *ret)
{
	judge(p, name, 0, ret);
}

void net_judge_name(const struct net_policy *p, const char *name, uint16_t port, struct net_verdict *ret)
{
	if (port == 0)
		refuse(ret, NULL, "there is no port 0 to connect to at %s", LONGER(name));
	else
		judge(p, name, port, ret);
}

/* --- addresses ----------------------------------------------------------------------------- */

static const struct net_rule *find_denied_network(const struct net_policy *p, const struct net_addr *a, uint16_t port)
{
	struct net_addr inner[4];
	size_t n = net_addr_inner(a, inner);

	for (size_t i = 0; i < p->n_deny; i++) {
		const struct net_rule *r = &p->deny[i];

		if (!r->net.family || !denies_port(r, port))
			continue;
		if (net_addr_within(a, &r->net, r->bits))
			return r;
		for (size_t j = 0; j < n; j++)
			if (net_addr_within(&inner[j], &r->net, r->bits))
				return r;
	}
	return NULL;
}

static struct net_addr last_of(const struct net_rule *r)
{
	struct net_addr a = r->net;

	for (unsigned i = r->bits; i < (a.family == 4 ? 32u : 128u); i++)
		a.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return a;
}

/* Does a network that covers an address open it, too?  What is special must be meant: the network
 * lies wholly in that kind of space (0.0.0.0/0 is every public address; no network but itself is of
 * a metadata service), and this machine's public address is named alone. */
static bool opens(const struct net_rule *r, const struct net_addr *a, bool own)
{
	enum net_class c = net_addr_class(a);
	struct net_addr last = last_of(r);

	if (c == NET_PUBLIC && own)
		return r->bits == (a->family == 4 ? 32 : 128);
	return c == NET_PUBLIC || (net_addr_class(&r->net) == c && net_addr_class(&last) == c);
}

/* The closest allowed network with this address and port.  *ret_wide: one that covers it but does
 * not open it. */
static const struct net_rule *find_network(const struct net_policy *p, const struct net_addr *a, uint16_t port, bool own,
					   bool requests, const struct net_rule **ret_wide)
{
	const struct net_rule *best = NULL;

	*ret_wide = NULL;
	for (size_t i = 0; i < p->n_allow; i++) {
		const struct net_rule *r = &p->allow[i];

		if (!net_addr_within(a, &r->net, r->bits) || !net_rule_has_port(r, port) || (r->path && !requests))
			continue;
		if (!opens(r, a, own))
			*ret_wide = r;
		else if (!best || r->bits > best->bits)
			best = r;
	}
	return best;
}

/* subject: "10.0.0.5 is" or "db.example.com is at 10.0.0.5,". */
static void refuse_special(struct net_verdict *ret, const char *subject, const struct net_addr *a, uint16_t port, bool own,
			   const struct net_rule *wide)
{
	enum net_class c = net_addr_class(a);

	if (c == NET_METADATA)
		refuse(ret, NULL, "%s %s; it gives out credentials, so opening it is dangerous", subject, net_class_name(c));
	else if (own && c == NET_PUBLIC)
		refuse(ret, NULL, "%s an address of this machine itself", subject);
	else if (wide)
		refuse(ret, NULL, "%s %s, and the rule '%s' is wider than those", subject, net_class_name(c), BRIEF(wide->text));
	else
		refuse(ret, NULL, "%s %s", subject, net_class_name(c));
	if (c != NET_MULTICAST && c != NET_UNSPECIFIED)
		fix_address(ret, a, port);
}

void net_judge_literal(const struct net_policy *p, const struct net_addr *a, uint16_t port, struct net_verdict *ret)
{
	const struct net_rule *r, *wide;
	char text[48], subject[64];

	net_addr_format(a, text, sizeof text);
	if (!a->family || port == 0) {
		refuse(ret, NULL, "there is no port %u to connect to at %s", port, text);
		return;
	}
	r = find_denied_network(p, a, port);
	if (r) {
		refuse(ret, r, "%s port %u is denied by the rule '%s'", text, port, BRIEF(r->text));
		return;
	}
	r = find_network(p, a, port, /* own= */ false, /* requests= */ true, &wide);
	if (r) {
		allow(ret, r, net_rule_proto(r, port));
		return;
	}
	if (net_addr_class(a) == NET_PUBLIC) {
		refuse(ret, NULL, "no rule allows the address %s port %u; rules for names do not hold for bare addresses", text, port);
		fix_address(ret, a, port);
		return;
	}
	snprintf(subject, sizeof subject, "%s is", text);
	refuse_special(ret, subject, a, port, /* own= */ false, wide);
}

void net_judge_address(const struct net_policy *p, const char *name, const struct net_addr *a, uint16_t port, bool own,
		       struct net_verdict *ret)
{
	const struct net_rule *r, *wide;
	char text[48], subject[128];
	bool named = name && *name;

	net_addr_format(a, text, sizeof text);
	if (named)
		snprintf(subject, sizeof subject, "%s is at %s,", BRIEF(name), text);
	else
		snprintf(subject, sizeof subject, "%s is", text);
	if (!a->family || port == 0) {
		refuse(ret, NULL, "%s which is no address to connect to", subject);
		return;
	}
	r = find_denied_network(p, a, port);
	if (r) {
		refuse(ret, r, "%s denied by the rule '%s'", subject, BRIEF(r->text));
		return;
	}
	r = find_network(p, a, port, own, /* requests= */ false, &wide);
	if (!r && (own || net_addr_class(a) != NET_PUBLIC)) {
		refuse_special(ret, subject, a, port, own, wide);
		return;
	}
	/* The protocol is still what the name's rule says. */
	allow(ret, r, named ? proto_for(p, find_allow(p, name, port), name, port) : r ? net_rule_proto(r, port) : NET_TCP);
}

/* --- requests ------------------------------------------------------------------------------ */

/* Rules about requests that were given no port are about every port on which HTTP is spoken. */
static bool denies_requests(const struct net_rule *r, const char *name, uint16_t port, enum net_proto proto)
{
	return r->path && net_rule_denies_name(r, name) &&
	       (net_rule_has_port(r, port) || (r->default_ports && proto != NET_TCP));
}

/* Of a name, or of an address in text. */
static bool allows_place(const struct net_rule *r, const char *name, const struct net_addr *a, uint16_t port)
{
	if (!net_rule_has_port(r, port))
		return false;
	return a->family ? net_addr_within(a, &r->net, r->bits) && opens(r, a, /* own= */ false) : net_rule_has_name(r, name);
}

bool net_policy_has_requests(const struct net_policy *p, const char *name, uint16_t port)
{
	struct net_addr a = { 0 };
	enum net_proto proto;

	(void)net_addr_parse(name, &a); /* none: a name */
	for (size_t i = 0; i < p->n_allow; i++)
		if (p->allow[i].path && allows_place(&p->allow[i], name, &a, port))
			return true;
	proto = proto_for(p, find_allow(p, name, port), name, port);
	for (size_t i = 0; i < p->n_deny; i++)
		if (denies_requests(&p->deny[i], name, port, proto))
			return true;
	return false;
}

static void refuse_request(const char *name, uint16_t port, enum net_proto proto, const char *method, const char *path,
			   struct net_verdict *ret)
{
	char read[PATH_READ_MAX], place[NET_NAME_MAX + 32], rule[PATH_READ_MAX + NET_NAME_MAX + 80];
	struct net_rule parsed;

	if (net_path_read(path, /* pattern= */ false, read, sizeof read) < 0) {
		refuse(ret, NULL, "the path %s could be read in two ways; send it without '..', '//', '\\' and %%2F", BRIEF(path));
		return;
	}
	refuse(ret, NULL, "no rule allows %s %s at %s", net_shown((char[20]){ 0 }, 20, method), BRIEF(path), BRIEF(name));
	net_place_write(name, port, proto, place, sizeof place);
	snprintf(rule, sizeof rule, "%s %s %s", place, method, read);
	if (net_rule_parse(rule, &parsed, NULL) < 0) /* an odd method, a path with parameters */
		return;
	if (net_rule_has_request(&parsed, method, path, /* deny= */ false))
		set_fix(ret, rule);
	net_rule_done(&parsed);
}

void net_judge_request(const struct net_policy *p, const char *name, uint16_t port, const char *method, const char *path,
		       struct net_verdict *ret)
{
	struct net_addr a = { 0 };
	enum net_proto proto;

	if (net_addr_parse(name, &a) == 0)
		net_judge_literal(p, &a, port, ret);
	else
		net_judge_name(p, name, port, ret);
	if (!ret->ok)
		return;
	proto = ret->proto;
	for (size_t i = 0; i < p->n_deny; i++) {
		const struct net_rule *r = &p->deny[i];

		if (denies_requests(r, name, port, proto) && net_rule_has_request(r, method, path, /* deny= */ true)) {
			refuse(ret, r, "%s %s is denied by the rule '%s'", net_shown((char[20]){ 0 }, 20, method), BRIEF(path),
			       BRIEF(r->text));
			return;
		}
	}
	for (size_t i = 0; i < p->n_allow; i++) {
		const struct net_rule *r = &p->allow[i];

		if (allows_place(r, name, &a, port) && net_rule_has_request(r, method, path, /* deny= */ false)) {
			allow(ret, r, proto);
			return;
		}
	}
	if (!a.family && learns(p, name))
		return;
	refuse_request(name, port, proto, method, path, ret);
}
