/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - the table of keys as a JSON Schema, as roff and as plain text. */
#include "profile/internal.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

static void one_of_words(struct cs_json *j, const struct key *k)
{
	cs_json_array(j, "enum");
	for (const struct key_word *w = k->words; w->name; w++)
		cs_json_str(j, NULL, w->name);
	cs_json_end(j, ']');
}

static void types(struct cs_json *j, const char *a, const char *b)
{
	cs_json_array(j, "type");
	cs_json_str(j, NULL, a);
	cs_json_str(j, NULL, b);
	cs_json_end(j, ']');
}

static void number_or(struct cs_json *j, const char *number, const char *pattern)
{
	types(j, "string", number);
	cs_json_str(j, "pattern", pattern);
	cs_json_num(j, "exclusiveMinimum", 0);
}

static void list_of(struct cs_json *j, const char *pattern)
{
	types(j, "array", "null");
	cs_json_object(j, "items");
	cs_json_str(j, "type", "string");
	cs_json_str(j, "pattern", pattern);
	cs_json_end(j, '}');
}

static void protections(struct cs_json *j)
{
	cs_json_array(j, "anyOf");
	cs_json_object(j, NULL);
	cs_json_str(j, "const", "all");
	cs_json_end(j, '}');
	cs_json_object(j, NULL);
	types(j, "array", "null");
	cs_json_object(j, "items");
	cs_json_array(j, "enum");
	cs_json_str(j, NULL, "all");
	for (int i = 0; i < PROT_MAX; i++) {
		char removed[40];

		snprintf(removed, sizeof removed, "!%s", protection_name((enum protection)i));
		cs_json_str(j, NULL, removed + 1);
		cs_json_str(j, NULL, removed);
	}
	cs_json_end(j, ']');
	cs_json_end(j, '}');
	cs_json_end(j, '}');
	cs_json_end(j, ']');
}

static void variables(struct cs_json *j, const char *names)
{
	types(j, "object", "null");
	cs_json_object(j, "propertyNames");
	cs_json_str(j, "pattern", names);
	cs_json_end(j, '}');
	cs_json_object(j, "additionalProperties");
	cs_json_array(j, "type");
	cs_json_str(j, NULL, "string");
	cs_json_str(j, NULL, "number");
	cs_json_str(j, NULL, "boolean");
	cs_json_str(j, NULL, "null");
	cs_json_end(j, ']');
	cs_json_end(j, '}');
}

static void text_member(struct cs_json *j, const char *name, const char *pattern)
{
	cs_json_object(j, name);
	cs_json_str(j, "type", "string");
	cs_json_str(j, "pattern", pattern);
	cs_json_end(j, '}');
}

static void begin_members(struct cs_json *j, const char *const *required)
{
	cs_json_str(j, "type", "object");
	cs_json_bool(j, "additionalProperties", false);
	cs_json_array(j, "required");
	for (; *required; required++)
		cs_json_str(j, NULL, *required);
	cs_json_end(j, ']');
	cs_json_object(j, "properties");
}

static void secrets(struct cs_json *j)
{
	static const char *const secret[] = { "name", "from", "hosts", NULL }, *const inject[] = { "header", "format", NULL };

	types(j, "array", "null");
	cs_json_u64(j, "maxItems", PROFILE_MAX_SECRETS);
	cs_json_object(j, "items");
	cs_json_array(j, "anyOf");
	cs_json_object(j, NULL);
	cs_json_str(j, "type", "string");
	cs_json_str(j, "pattern", "^![A-Za-z_][A-Za-z0-9_]*$");
	cs_json_end(j, '}');
	cs_json_object(j, NULL);
	begin_members(j, secret);
	text_member(j, "name", "^[A-Za-z_][A-Za-z0-9_]{0,63}$");
	text_member(j, "from", "^(env|env:[A-Za-z_][A-Za-z0-9_]*|file:(/|~/).+|command:.+)$");
	cs_json_object(j, "hosts");
	cs_json_str(j, "type", "array");
	cs_json_u64(j, "minItems", 1);
	cs_json_u64(j, "maxItems", PROFILE_MAX_SECRET_HOSTS);
	text_member(j, "items", "^[A-Za-z0-9_.-]+(:[0-9]+)?$");
	cs_json_end(j, '}');
	cs_json_object(j, "inject");
	begin_members(j, inject);
	text_member(j, "header", "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$");
	text_member(j, "format", "^[^{}]*\\{\\}[^{}]*$");
	cs_json_end(j, '}');
	cs_json_end(j, '}');
	cs_json_end(j, '}');
	cs_json_end(j, '}');
	cs_json_end(j, ']');
	cs_json_end(j, '}');
}

static void row_member(struct cs_json *j)
{
	types(j, "string", "null");
	cs_json_str(j, "pattern", "^[^\\x00-\\x08\\x0b-\\x1f\\x7f]*$");
}

static void rows(struct cs_json *j)
{
	types(j, "object", "null");
	cs_json_object(j, "propertyNames");
	cs_json_str(j, "pattern", "^[A-Za-z0-9_.][A-Za-z0-9_.+, -]*$");
	cs_json_end(j, '}');
	cs_json_object(j, "additionalProperties");
	cs_json_array(j, "anyOf");
	cs_json_object(j, NULL);
	row_member(j);
	cs_json_end(j, '}');
	cs_json_object(j, NULL);
	cs_json_str(j, "type", "array");
	cs_json_u64(j, "minItems", 1);
	cs_json_object(j, "items");
	row_member(j);
	cs_json_end(j, '}');
	cs_json_end(j, '}');
	cs_json_end(j, ']');
	cs_json_end(j, '}');
}

static void key_schema(struct cs_json *j, const char *name, const struct key *k)
{
	cs_json_object(j, name);
	cs_json_str(j, "description", k->doc);
	switch (k->type) {
	case KEY_NAME:
		cs_json_str(j, "type", "string");
		cs_json_str(j, "pattern", "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$");
		break;
	case KEY_TEXT:
	case KEY_EXTENDS:
		cs_json_str(j, "type", "string");
		cs_json_u64(j, "minLength", 1);
		break;
	case KEY_BOOL: cs_json_str(j, "type", "boolean"); break;
	case KEY_WORD:
	case KEY_NETWORK: one_of_words(j, k); break;
	case KEY_RULES: list_of(j, "^!?[^ ]+( +[A-Z_*,-]+ +/[^ ]*)?$"); break;
	case KEY_HOSTS: variables(j, "^[A-Za-z0-9_.-]+$"); break;
	case KEY_PUBLISH: list_of(j, "^!?((\\[[0-9A-Fa-f:.]+\\]|[0-9.]+):)?[0-9]+:[0-9]+$"); break;
	case KEY_SECRETS: secrets(j); break;
	case KEY_ROWS: rows(j); break;
	case KEY_PATHS: list_of(j, "^!?(/|~/)"); break;
	case KEY_PATTERNS: list_of(j, "^!?[^\\x00-\\x1f]+$"); break;
	case KEY_ENVNAMES: list_of(j, "^!?[A-Za-z_*?][A-Za-z0-9_*?]*$"); break;
	case KEY_ENVVARS: variables(j, "^[A-Za-z_][A-Za-z0-9_]*$"); break;
	case KEY_SIZE: number_or(j, "integer", "^([0-9]+(\\.[0-9]*)?([kKmMgGtT]i?)?[bB]?|unlimited)$"); break;
	case KEY_TIME: number_or(j, "number", "^([0-9]+(\\.[0-9]*)?(ms|s|m|min|h|d)?|unlimited)$"); break;
	case KEY_COUNT: number_or(j, "integer", "^([0-9]+|unlimited)$"); break;
	case KEY_CPUS: number_or(j, "number", "^([0-9]+(\\.[0-9]*)?|unlimited)$"); break;
	case KEY_PROTECTIONS: protections(j); break;
	case KEY_GATE: break; /* any shape: the gate has words of its own for what is wrong */
	}
	cs_json_end(j, '}');
}

static void begin_object(struct cs_json *j, const char *key, bool may_be_null)
{
	cs_json_object(j, key);
	if (may_be_null)
		types(j, "object", "null");
	else
		cs_json_str(j, "type", "object");
	cs_json_bool(j, "additionalProperties", false);
	cs_json_object(j, "properties");
}

static void section_schema(struct cs_json *j, const char *key, const char *section);

/* Every key and section right below this one. */
static void members_schema(struct cs_json *j, const char *section)
{
	char last[32] = "";

	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];
		const char *name = key_below(k, section);
		char word[32], path[64];

		if (!name)
			continue;
		snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "."), name);
		if (!strcmp(word, last))
			continue;
		snprintf(last, sizeof last, "%s", word);
		snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", word);
		if (!key_is_section(path)) {
			key_schema(j, word, k);
		} else if (key_find(path)) { /* a word or a section */
			cs_json_object(j, word);
			cs_json_array(j, "anyOf");
			key_schema(j, NULL, key_find(path));
			section_schema(j, NULL, path);
			cs_json_end(j, ']');
			cs_json_end(j, '}');
		} else {
			section_schema(j, word, path);
		}
	}
}

static void section_schema(struct cs_json *j, const char *key, const char *section)
{
	begin_object(j, key, /* may_be_null= */ !key_find(section));
	members_schema(j, section);
	cs_json_end(j, '}');
	cs_json_end(j, '}');
}

void profile_write_schema(struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, /* pretty= */ true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	cs_json_str(&j, "title", "Caisson profile");
	cs_json_str(&j, "type", "object");
	cs_json_bool(&j, "additionalProperties", false);
	cs_json_object(&j, "properties");
	members_schema(&j, "");
	cs_json_end(&j, '}');
	cs_json_end(&j, '}');
}

/* Backslash and minus have a meaning of their own in roff, and so have a dot and a quote at a line's start. */
static void roff(struct cs_buf *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		cs_buf_str(out, "\\&");
	for (; *s; s++) {
		if (*s == '\\')
			cs_buf_str(out, "\\e");
		else if (*s == '-')
			cs_buf_str(out, "\\-");
		else
			cs_buf_char(out, *s);
	}
}

void profile_write_keys_roff(struct cs_buf *out)
{
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];

		cs_buf_str(out, ".TP\n.B ");
		roff(out, k->path);
		cs_buf_char(out, '\n');
		roff(out, k->doc);
		for (const struct key_word *w = k->words; w && w->name; w++) {
			cs_buf_fmt(out, "\n.br\n.BR %s :\n", w->name);
			roff(out, w->doc);
		}
		cs_buf_str(out, "\n.br\nType: ");
		roff(out, key_type_words(k));
		cs_buf_str(out, ". Default: ");
		roff(out, k->fallback);
		cs_buf_str(out, ".\n");
	}
}

void profile_write_keys_text(struct cs_buf *out)
{
	for (size_t i = 0; i < profile_keys_n; i++) {
		const struct key *k = &profile_keys[i];

		cs_buf_fmt(out, "%s\n    %s\n", k->path, k->doc);
		for (const struct key_word *w = k->words; w && w->name; w++)
			cs_buf_fmt(out, "      %-8s %s\n", w->name, w->doc);
		cs_buf_fmt(out, "    Type: %s. Default: %s.\n", key_type_words(k), k->fallback);
	}
}
