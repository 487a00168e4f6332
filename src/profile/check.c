/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - what only the whole of a profile can tell about its secrets.
 *
 * A secret that nobody could use, that would go out in the clear, or that would
 * be inside after all, is an error: its hosts must be allowed and not by plain
 * HTTP, and neither its name nor the variable it comes from may be in env.pass
 * or env.set. */
#include "profile/internal.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "netpolicy/netpolicy.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 96, TLS_PORT = 443 };

static const char *source_variable(const struct profile_secret *s)
{
	if (!strcmp(s->from, "env"))
		return s->name;
	return !strncmp(s->from, "env:", 4) ? s->from + 4 : "";
}

static int clash(const struct profile_secret *s, const char *item, bool set, const struct place *at, struct cs_err *err)
{
	const char *source = source_variable(s), *key = set ? "env.set" : "env.pass";
	char shown[SHOWN];

	cs_escape_to(shown, sizeof shown, item);
	if (*source && (set ? !strcmp(item, source) : cs_glob(item, source)))
		return profile_fail(err, CS_E_INVALID, at,
				    "%s: '%s' would put variable %s inside, which holds the secret '%s'; take it out of %s: inside, %s "
				    "holds a placeholder",
				    key, shown, source, s->name, key, s->name);
	if (set ? !strcmp(item, s->name) : cs_glob(item, s->name))
		return profile_fail(err, CS_E_INVALID, at, "%s: '%s' covers %s, the variable that holds the placeholder of that secret; take it out of %s",
				    key, shown, s->name, key);
	return 0;
}

int secret_check_env(const struct profile_secret *s, const struct profile *p, const struct place *at, struct cs_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->env_pass.n && r >= 0; i++)
		r = clash(s, p->env_pass.v[i], /* set= */ false, at, err);
	for (size_t i = 0; i < p->env_set.n && r >= 0; i++) {
		CS_FREE char *name = cs_strndup(p->env_set.v[i], strcspn(p->env_set.v[i], "="));

		r = clash(s, name, /* set= */ true, at, err);
	}
	return r;
}

int secrets_check_env(const struct profile *p, const char *item, bool set, const struct place *at, struct cs_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->network.n_secrets && r >= 0; i++)
		r = clash(&p->network.secrets[i], item, set, at, err);
	return r;
}

/* May this host be reached, and not by plain HTTP, where anybody could read the secret?  (Where the
 * rule says tcp, the boundary expects TLS of a host with a secret.) */
static int check_host(const struct profile_secret *s, const char *host, const struct net_policy *policy, const struct place *at,
		      struct cs_err *err)
{
	size_t len = strcspn(host, ":");
	unsigned port = host[len] ? (unsigned)strtoul(host + len + 1, NULL, 10) : TLS_PORT;
	CS_FREE char *name = cs_strndup(host, len);
	struct net_verdict v;

	net_judge_name(policy, name, (uint16_t)port, &v);
	if (v.ok && v.proto == NET_HTTP)
		return profile_fail(err, CS_E_INVALID, at, "network.secrets: '%s' is for %s, where the rule '%s' has plain HTTP and everybody could "
							   "read it; a rule with TLS is '%s/tls'",
				    s->name, host, v.rule ? v.rule->text : "", host);
	if (v.ok)
		return 0;
	if (v.rule)
		return profile_fail(err, CS_E_INVALID, at, "network.secrets: '%s' is for %s, which the rule '%s' denies", s->name, host, v.rule->text);
	return profile_fail(err, CS_E_INVALID, at, "network.secrets: '%s' is for %s, which no rule allows; add '%s%s' to network.allow", s->name, host,
			    host, port == TLS_PORT ? "" : "/tls");
}

static int check_hosts(const struct profile *p, const struct place *at, const struct profile_secret **ret_which, struct cs_err *err)
{
	const struct profile_network *net = &p->network;
	struct net_policy policy = { 0 };
	int r = 0;

	for (size_t i = 0; i < net->allow.n && r >= 0; i++)
		r = net_policy_add(&policy, net->allow.v[i], /* deny= */ false, err);
	for (size_t i = 0; i < net->deny.n && r >= 0; i++)
		r = net_policy_add(&policy, net->deny.v[i], /* deny= */ true, err);
	for (size_t i = 0; i < net->n_secrets && r >= 0; i++) {
		*ret_which = &net->secrets[i];
		for (size_t h = 0; h < net->secrets[i].hosts.n && r >= 0; h++)
			r = check_host(&net->secrets[i], net->secrets[i].hosts.v[h], &policy, at, err);
	}
	net_policy_done(&policy);
	return r;
}

int secrets_check(const struct profile *p, const struct place *at, const struct profile_secret **ret_which, struct cs_err *err)
{
	*ret_which = NULL;
	if (!p->network.n_secrets)
		return 0;
	for (size_t i = 0; i < p->network.n_secrets; i++) {
		int r;

		*ret_which = &p->network.secrets[i];
		r = secret_check_env(*ret_which, p, at, err);
		if (r < 0)
			return r;
	}
	return check_hosts(p, at, ret_which, err);
}

int profile_check(const struct profile *p, const char *origin, struct cs_err *err)
{
	const struct profile_secret *which;

	return secrets_check(p, &(struct place){ .origin = origin }, &which, err);
}
