/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_netrule.c - text as a rule, a name, a host and an address, and requests judged by it.
 *
 * The input is up to four lines: a rule, a name, a path, a host. */
#include "netpolicy/netpolicy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void must_say(const struct cs_err *err)
{
	must(err->code && *err->msg && !strchr(err->msg, '\n') && !strchr(err->msg, '\033'));
}

/* What is said of a verdict is short, printable, and a fix is a whole rule. */
static void check_verdict(const struct net_verdict *v)
{
	struct net_rule r;
	char text[256];
	size_t n = 0;

	must(v->ok ? !*v->reason && !*v->fix : *v->reason != 0);
	for (const unsigned char *s = (const unsigned char *)v->reason; *s; s++)
		must(*s >= 0x20 && *s != 0x7f);
	if (!*v->fix)
		return;
	must(!strncmp(v->fix, "--allow ", 8));
	/* as a shell would read it */
	for (const char *s = v->fix + 8, *quote = NULL; *s; s++) {
		if (*s == '\'')
			quote = quote ? NULL : s;
		else if (*s == '\\' && !quote)
			text[n++] = *++s;
		else
			text[n++] = *s;
	}
	text[n] = 0;
	must(net_rule_parse(text, &r, NULL) == 0);
	net_rule_done(&r);
}

static void check_rule(const char *text)
{
	struct cs_err err = { 0 };
	struct net_rule r, again;

	if (net_rule_parse(text, &r, &err) < 0) {
		must_say(&err);
		return;
	}
	must(net_rule_parse(r.text, &again, NULL) == 0);
	must(!strcmp(r.text, again.text) && !strcmp(r.name, again.name) && r.wildcard == again.wildcard);
	must(net_addr_equal(&r.net, &again.net) && r.bits == again.bits && r.default_ports == again.default_ports);
	must(r.port_lo == again.port_lo && r.port_hi == again.port_hi && r.port_lo <= r.port_hi && r.proto == again.proto);
	must(same_text(r.methods, again.methods) && same_text(r.path, again.path));
	must((r.net.family != 0) != (*r.name != 0));
	must(net_rule_proto(&r, 443) != NET_AUTO);
	net_rule_done(&r);
	net_rule_done(&again);
}

static void check_name(const char *text, size_t len)
{
	char name[NET_NAME_MAX], again[NET_NAME_MAX];
	struct cs_err err = { 0 };
	struct net_addr a;
	struct in_addr in;

	if (net_name_canonical(text, len, name, &err) < 0) {
		must_say(&err);
	} else {
		must(net_addr_parse(name, &a) < 0 && inet_aton(name, &in) == 0);
		must(net_name_canonical(name, strlen(name), again, NULL) == 0 && !strcmp(name, again));
		must(strlen(name) == len || strlen(name) + 1 == len);
	}
	if (net_addr_parse(text, &a) == 0) {
		char shown[48];
		struct net_addr b;

		net_addr_format(&a, shown, sizeof shown);
		must(net_addr_parse(shown, &b) == 0 && net_addr_equal(&a, &b) && net_addr_class(&a) == net_addr_class(&b));
	}
}

static void judge(const char *rule, const char *name, const char *path)
{
	struct net_policy allow = { 0 }, deny = { 0 };
	struct net_verdict v, d;
	struct net_addr a;

	if (net_policy_add(&allow, rule, false, NULL) == 0 && net_policy_add(&deny, rule, true, NULL) == 0) {
		(void)net_policy_add(&deny, "*:*", false, NULL);
		net_judge_lookup(&allow, name, &v);
		check_verdict(&v);
		net_judge_name(&allow, name, 443, &v);
		check_verdict(&v);
		net_judge_request(&allow, name, 443, "GET", path, &v);
		check_verdict(&v);
		net_judge_request(&deny, name, 443, "GET", path, &d);
		check_verdict(&d);
		must(!v.ok || !d.ok); /* what a rule allows it denies, too */
		(void)net_policy_has_requests(&allow, name, 443);
	}
	if (net_addr_parse(name, &a) == 0) {
		net_judge_literal(&allow, &a, 443, &v);
		check_verdict(&v);
		net_judge_address(&allow, "a.example.com", &a, 443, true, &v);
		check_verdict(&v);
	}
	net_policy_done(&allow);
	net_policy_done(&deny);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cs_err err = { 0 };
	struct net_host h;
	char *text = malloc(size + 1), *line[4] = { "", "", "", "" };
	size_t lens[4] = { 0 };
	char *at = text;

	memcpy(text, data, size);
	text[size] = 0;
	for (int i = 0; i < 4; i++) {
		char *end = memchr(at, '\n', (size_t)(text + size - at));

		line[i] = at;
		lens[i] = (size_t)((end ? end : text + size) - at);
		at[lens[i]] = 0;
		at = end ? end + 1 : text + size;
	}
	check_rule(line[0]);
	check_name(line[1], lens[1]);
	judge(line[0], line[1], line[2]);
	if (net_host_parse(line[3], &h, &err) < 0)
		must_say(&err);
	free(text);
	return 0;
}
