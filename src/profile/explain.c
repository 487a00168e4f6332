/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - a profile in words, for the person who has to trust it. */
#include "profile/internal.h"

#include "base/text.h"
#include "netpolicy/netpolicy.h"

#include <string.h>

enum { LABEL = 16, WIDTH = 78 };

static void label(struct cs_buf *out, const char *word)
{
	cs_buf_fmt(out, "  %-*s", LABEL, word);
}

/* One more word of a wrapped paragraph whose first line began after a label. */
static void put_word(struct cs_buf *out, size_t *col, const char *word, const char *end)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 16);

	cs_escape(&text, word);
	cs_buf_str(&text, end);
	if (*col && *col + 1 + text.len > WIDTH - LABEL - 2) {
		cs_buf_fmt(out, "\n%*s", LABEL + 2, "");
		*col = 0;
	}
	if (*col) {
		cs_buf_char(out, ' ');
		++*col;
	}
	cs_buf_str(out, cs_buf_text(&text));
	*col += text.len;
}

static void put_list(struct cs_buf *out, const char *name, const struct cs_strv *list, const char *when_empty)
{
	size_t col = 0;

	label(out, name);
	for (size_t i = 0; i < list->n; i++)
		put_word(out, &col, list->v[i], i + 1 < list->n ? "," : "");
	cs_buf_fmt(out, "%s\n", list->n ? "" : when_empty);
}

static void put_word_of(struct cs_buf *out, const struct profile *p, const char *path, const char *called)
{
	const struct key *k = key_find(path);
	unsigned value = *(unsigned *)key_at(k, p);

	label(out, called);
	for (const struct key_word *w = k->words; w->name; w++)
		if (w->value == value)
			cs_buf_fmt(out, "%s: %s\n", w->name, w->doc);
}

static void put_key_word(struct cs_buf *out, const struct profile *p, const char *path)
{
	put_word_of(out, p, path, path);
}

static void put_limits(struct cs_buf *out, const struct profile *p)
{
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];
		const char *name = key_below(k, "limits");
		char value[48];

		if (!name)
			continue;
		key_format_limit(k, p, value, sizeof value);
		label(out, name);
		cs_buf_fmt(out, "%s\n", value);
	}
}

static void port_words(const struct net_rule *r, bool deny, struct cs_buf *out)
{
	if (r->default_ports && !deny)
		cs_buf_str(out, " on ports 443 and 80");
	else if (r->default_ports || r->port_lo == 0)
		cs_buf_str(out, " on every port");
	else if (r->port_lo != r->port_hi)
		cs_buf_fmt(out, " on ports %u to %u", r->port_lo, r->port_hi);
	else
		cs_buf_fmt(out, " on port %u", r->port_lo);
	if (r->proto != NET_AUTO)
		cs_buf_fmt(out, " by %s", net_proto_name(r->proto));
}

/* "api.example.com on ports 443 and 80" */
static void rule_words(const char *text, bool deny, struct cs_buf *out)
{
	struct net_rule r = { 0 };

	if (net_rule_parse(text, &r, NULL) < 0) {
		cs_buf_str(out, text); /* cannot be: it was parsed when it was taken */
		return;
	}
	if (r.net.family) {
		char addr[64];

		net_addr_format(&r.net, addr, sizeof addr);
		cs_buf_fmt(out, "%s/%u", addr, r.bits);
	} else {
		cs_buf_fmt(out, "%s%s%s", r.wildcard ? "*." : "", r.name, strcmp(r.name, "*") ? "" : " (every public name)");
	}
	port_words(&r, deny, out);
	if (r.path)
		cs_buf_fmt(out, " for %s %s", r.methods ? r.methods : "any method and", r.path);
	net_rule_done(&r);
}

static void put_rules(struct cs_buf *out, const char *name, const struct cs_strv *rules, bool deny)
{
	struct cs_strv words = { 0 };

	for (size_t i = 0; i < rules->n; i++) {
		struct cs_buf one CS_BUF_AUTO = CS_BUF(1 << 16);

		rule_words(rules->v[i], deny, &one);
		cs_strv_add(&words, cs_buf_text(&one));
	}
	put_list(out, name, &words, "nothing");
	cs_strv_done(&words);
}

static void put_published(struct cs_buf *out, const struct cs_strv *ports)
{
	struct cs_strv words = { 0 };

	for (size_t i = 0; i < ports->n; i++) {
		const char *inside = strrchr(ports->v[i], ':');

		cs_strv_take(&words, cs_printf("%.*s (port %s inside)", (int)(inside - ports->v[i]), ports->v[i], inside + 1));
	}
	put_list(out, "reached at", &words, "");
	cs_strv_done(&words);
}

static void put_secrets(struct cs_buf *out, const struct profile_network *net)
{
	for (size_t i = 0; i < net->n_secrets; i++) {
		const struct profile_secret *s = &net->secrets[i];
		size_t col = 0;

		label(out, i ? "" : "secrets");
		put_word(out, &col, s->name, " is a placeholder;");
		put_word(out, &col, s->from, " is added outside as header");
		put_word(out, &col, s->header, " for");
		for (size_t h = 0; h < s->hosts.n; h++)
			put_word(out, &col, s->hosts.v[h], h + 1 < s->hosts.n ? "," : "");
		cs_buf_char(out, '\n');
	}
}

static void put_budgets(struct cs_buf *out, const struct profile *p)
{
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];
		char value[48];

		if (!key_below(k, "network.budgets") || !*(uint64_t *)key_at(k, p))
			continue;
		key_format_limit(k, p, value, sizeof value);
		label(out, "budget");
		cs_buf_fmt(out, "%s %s\n", key_below(k, "network.budgets"), value);
	}
}

static void put_network(struct cs_buf *out, const struct profile *p)
{
	const struct profile_network *net = &p->network;

	if (!profile_has_network(p)) {
		label(out, "network");
		cs_buf_str(out, "none: nothing but a loopback of its own\n");
		return;
	}
	put_rules(out, "may connect to", &net->allow, /* deny= */ false);
	if (net->deny.n)
		put_rules(out, "but never to", &net->deny, /* deny= */ true);
	if (net->hosts.n)
		put_list(out, "host names", &net->hosts, "");
	if (net->publish.n)
		put_published(out, &net->publish);
	if (net->ech_deny)
		put_key_word(out, p, "network.ech");
	put_secrets(out, net);
	put_budgets(out, p);
}

/* Which rows it brings, and why some of them may only narrow.  What the workspace is nobody knows here. */
static void put_commands(struct cs_buf *out, const struct profile *p)
{
	bool first = true;

	for (size_t i = 0; i < p->shell.n_rows; i++) {
		const struct profile_row *r = &p->shell.rows[i];
		const char *doubt = profile_row_trust(p, r, /* workspace= */ NULL);
		size_t col = 0;

		if (!profile_row_counts(p, i, /* workspace= */ NULL))
			continue;
		label(out, first ? "commands" : "");
		first = false;
		put_word(out, &col, r->name, doubt ? ": may only be called less safe:" : ": in the place of our row, unless the file lies in the workspace");
		if (doubt)
			put_word(out, &col, doubt, "");
		cs_buf_char(out, '\n');
	}
}

static void put_shell(struct cs_buf *out, const struct profile *p)
{
	cs_buf_str(out, "\nOf a shell command (caisson sh), what is\n");
	put_word_of(out, p, "shell.unsafe", "unsafe");
	put_word_of(out, p, "shell.uncertain", "uncertain");
	put_word_of(out, p, "shell.unexpected", "unexpected");
	put_commands(out, p);
}

static void put_require(struct cs_buf *out, protection_set set)
{
	if (!set) {
		cs_buf_str(out, "\nIt is started with whatever protections the host can give.\n");
		return;
	}
	cs_buf_str(out, "\nIt is not started without:\n");
	for (int i = 0; i < PROT_MAX; i++) {
		if (!(set & PROT_BIT(i)))
			continue;
		label(out, protection_name((enum protection)i));
		cs_buf_fmt(out, "%s\n", protection_what((enum protection)i));
	}
}

void profile_explain(const struct profile *p, struct cs_buf *out)
{
	cs_buf_fmt(out, "profile %s", p->name ? p->name : "unnamed");
	if (p->description) {
		cs_buf_str(out, ": ");
		cs_escape(out, p->description);
	}
	cs_buf_str(out, "\n\nA program under this profile:\n");
	put_key_word(out, p, "isolation");
	put_key_word(out, p, "workspace");
	put_key_word(out, p, "proc");
	put_network(out, p);
	put_list(out, "may read", &p->files_read, "nothing of the host's system");
	put_list(out, "may change", &p->files_write,
		 p->workspace == PROFILE_WS_WRITE ? "nothing on the host but the workspace" : "nothing on the host");
	put_list(out, "never sees", &p->files_hide, "nothing is hidden from it");
	put_list(out, "env kept", &p->env_pass, "nothing");
	put_list(out, "env set", &p->env_set, "nothing");
	cs_buf_str(out, "\nIt may use at most:\n");
	put_limits(out, p);
	put_shell(out, p);
	put_require(out, p->require);
	cs_buf_str(out, p->locked ? "\nLocked: flags and extending profiles can only narrow it.\n" :
				    "\nNot locked: flags can widen it.\n");
}
