/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - a profile as YAML that reads back as the same profile, and as JSON. */
#include "profile/internal.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Code point of the UTF-8 sequence at *s, which moves behind it; a byte that
 * is no UTF-8 (only a flag can bring one) stands for itself. */
static uint32_t next_point(const unsigned char **s)
{
	const unsigned char *p = *s;
	unsigned n = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : p[0] < 0xf5 ? 3 : 0;
	uint32_t cp = n ? p[0] & (0x3fu >> n) : p[0];

	for (unsigned i = 1; i <= n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			*s = p + 1;
			return p[0];
		}
		cp = cp << 6 | (p[i] & 0x3f);
	}
	*s = p + n + 1;
	return cp;
}

/* What YAML would take for a line break, or would not take at all, or a person would not see. */
static bool needs_escape(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad || (cp >= 0x200b && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x206f) || (cp >= 0xd800 && cp < 0xe000) ||
	       cp == 0xfeff || (cp >= 0xfff0 && cp <= 0xffff);
}

static void put_quoted(struct cs_buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	cs_buf_char(out, '"');
	while (*s) {
		const unsigned char *start = s;
		uint32_t cp = next_point(&s);

		if (cp == '"' || cp == '\\')
			cs_buf_fmt(out, "\\%c", (char)cp);
		else if (s == start + 1 && cp >= 0x7f)
			cs_buf_fmt(out, "\\x%02X", (unsigned)cp);
		else if (needs_escape(cp))
			cs_buf_fmt(out, "\\u%04X", (unsigned)cp);
		else
			cs_buf_add(out, start, (size_t)(s - start));
	}
	cs_buf_char(out, '"');
}

/* Without quotes only what cannot mean anything else to any YAML reader. */
static void put_scalar(struct cs_buf *out, const char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-";
	static const char *const taken[] = { "true", "false", "null", "yes", "no", "on", "off", "y", "n" };
	bool plain = *text && !strchr("0123456789+-", *text) && !text[strspn(text, safe)];

	for (size_t i = 0; plain && i < sizeof taken / sizeof *taken; i++)
		plain = strcasecmp(text, taken[i]) != 0;
	if (plain)
		cs_buf_str(out, text);
	else
		put_quoted(out, text);
}

static void put_items(struct cs_buf *out, const struct cs_strv *list, const char *indent)
{
	for (size_t i = 0; i < list->n; i++) {
		cs_buf_fmt(out, "\n%s- ", indent);
		put_scalar(out, list->v[i]);
	}
	cs_buf_str(out, list->n ? "\n" : " []\n");
}

static void put_vars(struct cs_buf *out, const struct cs_strv *list, const char *indent)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *eq = strchr(list->v[i], '=');

		cs_buf_fmt(out, "\n%s\"%.*s\": ", indent, (int)(eq - list->v[i]), list->v[i]);
		put_quoted(out, eq + 1);
	}
	cs_buf_str(out, list->n ? "\n" : " {}\n");
}

static void put_secrets(struct cs_buf *out, const struct profile_network *net)
{
	for (size_t i = 0; i < net->n_secrets; i++) {
		const struct profile_secret *s = &net->secrets[i];

		cs_buf_str(out, "\n    - name: ");
		put_scalar(out, s->name);
		cs_buf_str(out, "\n      from: ");
		put_scalar(out, s->from);
		cs_buf_str(out, "\n      hosts:");
		put_items(out, &s->hosts, "        ");
		cs_buf_str(out, "      inject: {header: ");
		put_quoted(out, s->header);
		cs_buf_str(out, ", format: ");
		put_quoted(out, s->format);
		cs_buf_char(out, '}');
	}
	cs_buf_str(out, net->n_secrets ? "\n" : " []\n");
}

/* NAME: ROW, or NAME: [the row that takes the place of ours, those that narrow it]. */
static void put_rows(struct cs_buf *out, const struct profile *p)
{
	const char **names = NULL;
	size_t n = rows_names(p, &names);

	for (size_t i = 0; i < n; i++) {
		const char **rows = NULL;
		size_t m = rows_of(p, names[i], &rows);

		cs_buf_str(out, "\n    ");
		put_quoted(out, names[i]);
		cs_buf_str(out, m > 1 ? ": [" : ": ");
		for (size_t k = 0; k < m; k++) {
			cs_buf_str(out, k ? ", " : "");
			if (rows[k])
				put_quoted(out, rows[k]);
			else
				cs_buf_str(out, "null");
		}
		cs_buf_str(out, m > 1 ? "]" : "");
		free(rows);
	}
	free(names);
	cs_buf_str(out, n ? "\n" : " {}\n");
}

static void put_protections(struct cs_buf *out, protection_set set)
{
	if (set == PROT_ALL) {
		cs_buf_str(out, " all\n");
		return;
	}
	for (int i = 0; i < PROT_MAX; i++)
		if (set & PROT_BIT(i))
			cs_buf_fmt(out, "\n  - %s", protection_name((enum protection)i));
	cs_buf_str(out, set ? "\n" : " []\n");
}

static void put_value(struct cs_buf *out, const struct key *k, const struct profile *p)
{
	const void *at = key_at(k, p);
	char text[48];

	switch (k->type) {
	case KEY_NAME:
	case KEY_TEXT:
	case KEY_EXTENDS:
		cs_buf_char(out, ' ');
		put_scalar(out, *(char *const *)at);
		break;
	case KEY_BOOL: cs_buf_str(out, *(const bool *)at ? " true" : " false"); break;
	case KEY_WORD: cs_buf_fmt(out, " %s", key_word_name(k, *(const unsigned *)at)); break;
	case KEY_NETWORK: cs_buf_str(out, " none"); break;
	case KEY_SIZE:
	case KEY_TIME:
	case KEY_COUNT:
	case KEY_CPUS:
		key_format_limit(k, p, text, sizeof text);
		cs_buf_fmt(out, " %s", text);
		break;
	case KEY_PATHS:
	case KEY_PATTERNS:
	case KEY_ENVNAMES:
	case KEY_RULES:
	case KEY_PUBLISH: put_items(out, at, "    "); return;
	case KEY_ENVVARS:
	case KEY_HOSTS: put_vars(out, at, "    "); return;
	case KEY_SECRETS: put_secrets(out, &p->network); return;
	case KEY_ROWS: put_rows(out, p); return;
	case KEY_PROTECTIONS: put_protections(out, *(const protection_set *)at); return;
	case KEY_GATE: break;
	}
	cs_buf_char(out, '\n');
}

/* Length of "files" in "files.read", of "a.b" in "a.b.c"; 0 for a key at the top. */
static size_t section_of(const struct key *k)
{
	const char *dot = strrchr(k->path, '.');

	return dot ? (size_t)(dot - k->path) : 0;
}

static unsigned depth_of(const char *section, size_t n)
{
	unsigned depth = n ? 1 : 0;

	for (size_t i = 0; i < n; i++)
		depth += section[i] == '.';
	return depth;
}

/* How many whole names the two have in common at their start. */
static unsigned common_depth(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned depth = 0;

	for (size_t i = 0;; i++) {
		bool a_ends = i >= a_len || a[i] == '.', b_ends = i >= b_len || b[i] == '.';

		if (a_ends != b_ends || (!a_ends && a[i] != b[i]) || (i == 0 && a_ends))
			return depth;
		depth += a_ends;
		if (i >= a_len || i >= b_len)
			return depth;
	}
}

/* Name number `depth` of a dotted path. */
static const char *name_at(const char *path, unsigned depth, size_t *ret_len)
{
	while (depth--)
		path += strcspn(path, ".") + 1;
	*ret_len = strcspn(path, ".");
	return path;
}

/* `network` is one word while it says nothing, and a section otherwise. */
static bool is_unsaid(const struct key *k, const struct profile *p)
{
	if (k->type == KEY_NAME || k->type == KEY_TEXT)
		return !*(char *const *)key_at(k, p);
	if (k->type == KEY_NETWORK)
		return !network_is_none(&p->network);
	if (key_below(k, "network"))
		return network_is_none(&p->network);
	return k->type == KEY_GATE;
}

/* Writes keys in the table's order, and a section's name when it begins. */
struct yaml {
	struct cs_buf *out;
	const struct key *last;
};

static void put_key(struct yaml *y, const struct key *k, const struct profile *p)
{
	size_t n = section_of(k), last_n = y->last ? section_of(y->last) : 0;
	unsigned depth = depth_of(k->path, n), open = common_depth(y->last ? y->last->path : "", last_n, k->path, n);

	for (; open < depth; open++) {
		size_t len;
		const char *name = name_at(k->path, open, &len);

		cs_buf_fmt(y->out, "%*s%.*s:\n", (int)open * 2, "", (int)len, name);
	}
	cs_buf_fmt(y->out, "%*s%s:", (int)depth * 2, "", n ? k->path + n + 1 : k->path);
	put_value(y->out, k, p);
	y->last = k;
}

void profile_write_yaml(const struct profile *p, struct cs_buf *out)
{
	struct yaml y = { .out = out };

	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];

		if (is_unsaid(k, p))
			continue;
		if (k->type == KEY_EXTENDS)
			cs_buf_str(out, "extends: none\n"); /* what it extended is part of it now */
		else
			put_key(&y, k, p);
	}
}

int profile_network_text(const struct profile *p, struct cs_buf *out)
{
	struct yaml y = { .out = out };
	size_t before = out->len;

	cs_buf_str(out, "extends: none\n");
	if (p->locked)
		cs_buf_str(out, "locked: true\n"); /* binds whoever changes it later */
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];

		if ((k->type == KEY_NETWORK || key_below(k, "network")) && !is_unsaid(k, p))
			put_key(&y, k, p);
	}
	return out->over || out->len - before > PROFILE_MAX_BYTES ? -CS_E_LIMIT : 0;
}

static void json_strings(struct cs_json *j, const char *key, const struct cs_strv *list)
{
	cs_json_array(j, key);
	for (size_t i = 0; i < list->n; i++)
		cs_json_str(j, NULL, list->v[i]);
	cs_json_end(j, ']');
}

static void json_vars(struct cs_json *j, const char *key, const struct cs_strv *list)
{
	cs_json_object(j, key);
	for (size_t i = 0; i < list->n; i++) {
		const char *eq = strchr(list->v[i], '=');
		char *name = cs_strndup(list->v[i], (size_t)(eq - list->v[i]));

		cs_json_str(j, name, eq + 1);
		free(name);
	}
	cs_json_end(j, '}');
}

static void json_secrets(struct cs_json *j, const char *key, const struct profile_network *net)
{
	cs_json_array(j, key);
	for (size_t i = 0; i < net->n_secrets; i++) {
		const struct profile_secret *s = &net->secrets[i];

		cs_json_object(j, NULL);
		cs_json_str(j, "name", s->name);
		cs_json_str(j, "from", s->from);
		json_strings(j, "hosts", &s->hosts);
		cs_json_object(j, "inject");
		cs_json_str(j, "header", s->header);
		cs_json_str(j, "format", s->format);
		cs_json_end(j, '}');
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
}

static void json_rows(struct cs_json *j, const char *key, const struct profile *p)
{
	const char **names = NULL;
	size_t n = rows_names(p, &names);

	cs_json_object(j, key);
	for (size_t i = 0; i < n; i++) {
		const char **rows = NULL;
		size_t m = rows_of(p, names[i], &rows);

		if (m > 1)
			cs_json_array(j, names[i]);
		for (size_t k = 0; k < m; k++)
			cs_json_str(j, m > 1 ? NULL : names[i], rows[k]);
		if (m > 1)
			cs_json_end(j, ']');
		free(rows);
	}
	free(names);
	cs_json_end(j, '}');
}

static void json_value(struct cs_json *j, const char *key, const struct key *k, const struct profile *p)
{
	const void *at = key_at(k, p);

	switch (k->type) {
	case KEY_NAME:
	case KEY_TEXT:
	case KEY_EXTENDS: cs_json_str(j, key, *(char *const *)at); break;
	case KEY_BOOL: cs_json_bool(j, key, *(const bool *)at); break;
	case KEY_WORD: cs_json_str(j, key, key_word_name(k, *(const unsigned *)at)); break;
	case KEY_NETWORK: cs_json_str(j, key, "none"); break;
	case KEY_CPUS: cs_json_num(j, key, *(const double *)at); break;
	case KEY_SIZE:
	case KEY_TIME:
	case KEY_COUNT: cs_json_u64(j, key, *(const uint64_t *)at); break;
	case KEY_PATHS:
	case KEY_PATTERNS:
	case KEY_ENVNAMES:
	case KEY_RULES:
	case KEY_PUBLISH: json_strings(j, key, at); break;
	case KEY_ENVVARS:
	case KEY_HOSTS: json_vars(j, key, at); break;
	case KEY_SECRETS: json_secrets(j, key, &p->network); break;
	case KEY_ROWS: json_rows(j, key, p); break;
	case KEY_PROTECTIONS:
		cs_json_array(j, key);
		for (int i = 0; i < PROT_MAX; i++)
			if (*(const protection_set *)at & PROT_BIT(i))
				cs_json_str(j, NULL, protection_name((enum protection)i));
		cs_json_end(j, ']');
		break;
	case KEY_GATE: break;
	}
}

void profile_write_json(const struct profile *p, struct cs_buf *out)
{
	struct cs_json j;
	const char *last = "";
	size_t last_n = 0;

	cs_json_begin(&j, out, /* pretty= */ true);
	cs_json_object(&j, NULL);
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];
		size_t n = section_of(k);
		unsigned depth = depth_of(k->path, n), open = depth_of(last, last_n), common = common_depth(last, last_n, k->path, n);

		/* A name or description that nobody gave is null here. */
		if (is_unsaid(k, p) && k->type != KEY_NAME && k->type != KEY_TEXT)
			continue;
		for (; open > common; open--)
			cs_json_end(&j, '}');
		for (; open < depth; open++) {
			char section[32];
			size_t len;
			const char *name = name_at(k->path, open, &len);

			snprintf(section, sizeof section, "%.*s", (int)len, name);
			cs_json_object(&j, section);
		}
		json_value(&j, n ? k->path + n + 1 : k->path, k, p);
		last = k->path;
		last_n = n;
	}
	for (unsigned open = depth_of(last, last_n); open > 0; open--)
		cs_json_end(&j, '}');
	cs_json_end(&j, '}');
}
