/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - from a profile's network to what a sandbox is to have for it. */
#include "egress/internal.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <netinet/in.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BUNDLE "/run/caisson/ca-certificates.crt"
#define JKS    "/run/caisson/cacerts"

static struct sys_net_range range_of(const struct net_addr *a, unsigned bits)
{
	struct sys_net_range r = { .family = a->family, .bits = (uint8_t)bits };

	memcpy(r.addr, a->b, sizeof r.addr);
	return r;
}

static int add_range(struct egress_box *b, const struct net_addr *a, unsigned bits, struct cs_err *err)
{
	if (b->plan.n_ranges == EGRESS_RANGES_MAX)
		return cs_fail(err, CS_E_LIMIT, 0, "more than %d networks are allowed by address", EGRESS_RANGES_MAX - 2);
	b->ranges[b->plan.n_ranges++] = range_of(a, bits);
	return 0;
}

bool egress_plan_covers(const struct egress_box *b, const void *sockaddr, size_t len)
{
	struct sockaddr_in6 in6 = { 0 };
	struct sockaddr_in in4;
	struct net_addr a;

	memcpy(&in6, sockaddr, len < sizeof in6 ? len : sizeof in6);
	memcpy(&in4, &in6, sizeof in4);
	a = in6.sin6_family == AF_INET ? net_addr_of(AF_INET, &in4.sin_addr) : net_addr_of(AF_INET6, &in6.sin6_addr);
	for (size_t i = 0; i < b->plan.n_ranges; i++) {
		struct net_addr net = { .family = b->ranges[i].family };

		memcpy(net.b, b->ranges[i].addr, sizeof net.b);
		if (net_addr_within(&a, &net, b->ranges[i].bits))
			return true;
	}
	return false;
}

/* Ports that no program inside could bind anyway are listened on from the start; the others when
 * a program is about to connect, at that one address, so that its own servers stay possible. */
static void add_port(struct egress_box *b, unsigned port)
{
	for (size_t i = 0; i < b->plan.n_ports; i++)
		if (b->ports[i] == port)
			return;
	if (port >= 1 && port < 1024 && b->plan.n_ports < EGRESS_PORTS_MAX)
		b->ports[b->plan.n_ports++] = (uint16_t)port;
}

static void add_ports(struct egress_box *b, const struct net_rule *r)
{
	if (r->default_ports) {
		add_port(b, 443);
		add_port(b, 80);
		return;
	}
	if (r->port_hi - r->port_lo < 16)
		for (unsigned port = r->port_lo; port <= r->port_hi; port++)
			add_port(b, port);
}

static int plan_rules(struct egress_box *b, const struct cs_strv *rules, bool deny, struct cs_err *err)
{
	int e = 0;

	for (size_t i = 0; e == 0 && i < rules->n; i++) {
		struct net_rule r;

		e = net_rule_parse(rules->v[i], &r, err);
		if (e < 0)
			return e;
		b->intercepts |= net_rule_reads_tls(&r);
		if (!deny)
			add_ports(b, &r);
		if (!deny && r.net.family)
			e = add_range(b, &r.net, r.bits, err);
		net_rule_done(&r);
	}
	return e;
}

/* Programs look for an address that is not loopback's before they ask for names of a family. */
static void plan_own(struct egress_box *b)
{
	struct net_addr a4, a6;

	(void)net_addr_parse(EGRESS_NET4, &a4); /* constants */
	(void)net_addr_parse(EGRESS_NET6, &a6);
	(void)add_range(b, &a4, EGRESS_BITS4, NULL); /* the first: there is room */
	(void)add_range(b, &a6, EGRESS_BITS6, NULL);
	a4.b[3] = 1;
	a6.b[15] = 1;
	b->addresses[0] = range_of(&a4, 32);
	b->addresses[1] = range_of(&a6, 128);
	b->plan.addresses = b->addresses;
	b->plan.n_addresses = 2;
	b->plan.ranges = b->ranges;
	b->plan.ports = b->ports;
}

static void add_file(struct egress_box *b, const char *path, const char *data, size_t len)
{
	b->plan.files[b->plan.n_files++] = (struct egress_file){ path, data, len };
}

static void plan_resolver(struct egress_box *b)
{
	static const char text[] = "# Names that the profile allows; everything else is refused.\nnameserver 127.0.0.1\n";

	add_file(b, "/etc/resolv.conf", text, sizeof text - 1);
	/* Where it is a link, to what the link names. */
	b->resolv = realpath("/etc/resolv.conf", NULL);
	if (b->resolv && strcmp(b->resolv, "/etc/resolv.conf") && strncmp(b->resolv, "/proc/", 6) && strncmp(b->resolv, "/dev/", 5))
		add_file(b, b->resolv, text, sizeof text - 1);
}

static int plan_placeholders(struct egress_box *b, const struct profile_network *n, struct cs_err *err)
{
	for (size_t i = 0; i < n->n_secrets; i++) {
		unsigned char r[16];
		char hex[33];

		if (getrandom(r, sizeof r, 0) != sizeof r)
			return cs_fail(err, CS_E_SYSTEM, errno, "get random bytes");
		for (size_t k = 0; k < sizeof r; k++)
			snprintf(hex + 2 * k, 3, "%02x", r[k]);
		cs_strv_take(&b->placeholders, cs_printf("%s=caisson-secret-%s-%s", n->secrets[i].name, n->secrets[i].name, hex));
		cs_strv_add(&b->plan.env, b->placeholders.v[i]);
	}
	return 0;
}

/* Ours in the place of a file of the system's; false: there is none, or it lies where a sandbox may not have it. */
static bool stand_in(struct egress_box *b, const char *path, const struct cs_buf *with)
{
	static const char *const system[] = { "/usr/", "/etc/", "/opt/" };
	CS_FREE char *real = realpath(path, NULL);
	bool inside = false;

	for (size_t i = 0; real && i < sizeof system / sizeof *system; i++)
		inside |= strncmp(real, system[i], strlen(system[i])) == 0;
	if (!inside)
		return false;
	if (cs_strv_has(&b->trusting, real))
		return true;
	if (b->plan.n_files == EGRESS_FILES_MAX)
		return false;
	cs_strv_add(&b->trusting, real);
	add_file(b, b->trusting.v[b->trusting.n - 1], with->data, with->len);
	return true;
}

/* A Java's own store, where it has one: since 9, and before. */
static bool stand_in_java(struct egress_box *b, const char *home)
{
	CS_FREE char *now = cs_printf("%s/lib/security/cacerts", home), *before = cs_printf("%s/jre/lib/security/cacerts", home);

	return stand_in(b, now, &b->jks) || stand_in(b, before, &b->jks);
}

/* The one that programs would start: $JAVA_HOME's, and the first on the path.  0: there is none, -1: it stays as it is. */
static int stand_in_default_java(struct egress_box *b)
{
	const char *home = getenv("JAVA_HOME"), *dir = getenv("PATH");
	int found = 0;

	if (home && *home)
		found = stand_in_java(b, home) ? 1 : -1;
	for (size_t n; dir && *dir; dir += n + (dir[n] == ':')) {
		CS_FREE char *name = NULL, *java = NULL;

		n = strcspn(dir, ":");
		name = cs_printf("%.*s/java", (int)n, dir);
		java = realpath(name, NULL);
		if (!java || access(java, X_OK) < 0)
			continue;
		/* HOME/bin/java */
		for (int i = 0; i < 2 && strrchr(java, '/'); i++)
			*strrchr(java, '/') = 0;
		return stand_in_java(b, java) && found >= 0 ? 1 : -1;
	}
	return found;
}

/* Java reads no variable without saying so on standard error, so its own stores are covered; only
 * where that does not do it is it told. */
static void plan_java(struct egress_box *b)
{
	int covered = stand_in_default_java(b);
	glob_t others;

	stand_in(b, "/etc/ssl/certs/java/cacerts", &b->jks);
	stand_in(b, "/etc/pki/java/cacerts", &b->jks);
	if (glob("/usr/lib/jvm/*/bin", GLOB_NOSORT, NULL, &others) == 0) {
		for (size_t i = 0; i < others.gl_pathc; i++) {
			*strrchr(others.gl_pathv[i], '/') = 0;
			stand_in_java(b, others.gl_pathv[i]);
		}
		globfree(&others);
	}
	if (covered <= 0)
		cs_strv_add(&b->plan.env, "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=" JKS " -Djavax.net.ssl.trustStoreType=JKS");
}

/* Where OpenSSL, Python, Node, curl, git, Go and others look for whom to trust. */
void egress_plan_trust(struct egress_box *b)
{
	static const char *const names[] = { "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
					     "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT", "NIX_SSL_CERT_FILE", "npm_config_cafile" };
	/* For programs that do not read their environment: Debian, Fedora, SUSE, Alpine. */
	static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
					       "/etc/ssl/cert.pem" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		cs_strv_take(&b->plan.env, cs_printf("%s=%s", names[i], BUNDLE));
	add_file(b, BUNDLE, b->bundle.data, b->bundle.len);
	add_file(b, JKS, b->jks.data, b->jks.len);
	for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++)
		stand_in(b, bundles[i], &b->bundle);
	plan_java(b);
}

int egress_plan_make(struct egress_box *b, const struct profile_network *n, struct cs_err *err)
{
	int r;

	plan_own(b);
	plan_resolver(b);
	r = plan_rules(b, &n->allow, false, err);
	if (r == 0)
		r = plan_rules(b, &n->deny, true, err);
	if (b->learn) {
		add_port(b, 443);
		add_port(b, 80);
	}
	b->intercepts |= n->n_secrets > 0;
	return r < 0 ? r : plan_placeholders(b, n, err);
}
