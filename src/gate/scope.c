/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/scope.h"
#include "gate/internal.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH = 16 };

struct teller {
	scope_tell tell;
	void *arg;
};

static void __attribute__((format(printf, 3, 4))) finding(const struct teller *t, const char *check, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	t->tell(check, what, t->arg);
}

/* ---- annotations ---- */

void scope_annotations(const struct manifest_tool *t, scope_tell tell, void *arg)
{
	static const char *const hints[] = { "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint" };
	struct teller to = { tell, arg };

	if (!t->annotations || !t->annotations->n) {
		finding(&to, "annotations", "it has no annotations: nobody can tell whether it only reads");
		return;
	}
	if (!json_get(t->annotations, "readOnlyHint"))
		finding(&to, "annotations", "it does not say readOnlyHint");
	for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
		if (json_get(t->annotations, hints[i]) && !json_is(json_get(t->annotations, hints[i]), JSON_BOOL))
			finding(&to, "annotations", "%s is neither true nor false", hints[i]);
}

static bool hint(const struct manifest_tool *t, const char *name, bool otherwise)
{
	const struct json *v = json_get(t->annotations, name);

	return json_is(v, JSON_BOOL) ? v->b : otherwise;
}

/* ---- effects ---- */

static void check_effects(const struct teller *to, const struct gate_tool *declared, const struct manifest_tool *t)
{
	bool reads = hint(t, "readOnlyHint", false), destroys = !reads && hint(t, "destructiveHint", true), world = hint(t, "openWorldHint", true);
	unsigned changes = declared->effects & (RULES_WRITE | RULES_EXEC | RULES_SPEND);

	if (!declared->effects)
		finding(to, "scope", "no effects are declared: write tools.each.%s.effects", declared->name);
	else if (destroys && !changes)
		finding(to, "scope", "it may destroy things%s; no write, exec or spend is declared",
			json_get(t->annotations, "destructiveHint") ? "" : " (destructiveHint is not said, which means true)");
	else if (!reads && !changes)
		finding(to, "scope", "it changes things (readOnlyHint is not true); no write, exec or spend is declared");
	if (declared->effects && world && !(declared->effects & (RULES_NET | RULES_EXEC)))
		finding(to, "scope", "it reaches the outside world%s; no net is declared",
			json_get(t->annotations, "openWorldHint") ? "" : " (openWorldHint is not said, which means true)");
}

/* ---- arguments ---- */

/* Parts of names, between _, - and changes of case. */
static const struct {
	const char *part, *is;
} parts[] = {
	{ "command", "a command" }, { "cmd", "a command" }, { "script", "a command" }, { "shell", "a command" }, { "code", "a command" },
	{ "sql", "a command" }, { "url", "an address" }, { "uri", "an address" }, { "urls", "an address" }, { "endpoint", "an address" },
	{ "webhook", "an address" }, { "host", "an address" }, { "hostname", "an address" }, { "path", "a path" }, { "paths", "a path" },
	{ "file", "a path" }, { "filename", "a path" }, { "filepath", "a path" }, { "directory", "a path" }, { "dir", "a path" },
	{ "folder", "a path" }, { "recipient", "a recipient" }, { "recipients", "a recipient" }, { "email", "a recipient" },
	{ "emails", "a recipient" }, { "to", "a recipient" }, { "cc", "a recipient" }, { "bcc", "a recipient" }, { "phone", "a recipient" },
	{ "iban", "a recipient" }, { "participants", "a recipient" }, { "attendees", "a recipient" },
};

static bool ends_part(const char *p)
{
	return !*p || *p == '_' || *p == '-' || *p == '.' || (*p >= 'A' && *p <= 'Z');
}

static const char *meaning_of_name(const char *name)
{
	for (const char *p = name; *p;) {
		size_t n = 1;

		while (!ends_part(p + n))
			n++;
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			if (strlen(parts[i].part) == n && !strncasecmp(parts[i].part, p, n))
				return parts[i].is;
		p += n;
		p += strspn(p, "_-.");
	}
	return NULL;
}

static const char *meaning_of(const char *name, const struct json *schema)
{
	const char *format = json_str(json_get(schema, "format"));

	if (format && (!strncmp(format, "uri", 3) || !strncmp(format, "iri", 3) || !strcmp(format, "hostname")))
		return "an address";
	if (format && (!strcmp(format, "email") || !strcmp(format, "idn-email")))
		return "a recipient";
	if (json_is(json_get(schema, "enum"), JSON_ARRAY) || json_get(schema, "const"))
		return NULL; /* one of a few, which the schema names */
	if (json_str(json_get(schema, "type")) && (!strcmp(json_str(json_get(schema, "type")), "boolean") ||
						   !strcmp(json_str(json_get(schema, "type")), "integer") || !strcmp(json_str(json_get(schema, "type")), "number")))
		return NULL;
	return meaning_of_name(name);
}

static bool is_declared(const struct gate_tool *t, const char *arg)
{
	if ((t->shell && !strcmp(t->shell, arg)))
		return true;
	for (size_t i = 0; i < t->n_sinks; i++)
		if (!strcmp(t->sinks[i].arg, arg))
			return true;
	return false;
}

struct walk {
	const struct teller *to;
	const struct gate_tool *declared;
	const char *top; /* the argument that it lies in */
};

static void check_schema(const struct walk *w, const struct json *schema, unsigned depth);

static void check_property(const struct walk *w, const struct json_member *m, unsigned depth)
{
	struct walk inner = *w;
	const char *is = meaning_of(m->key, &m->value);
	char shown[80], top[80];

	if (!inner.top)
		inner.top = m->key;
	if (is_declared(w->declared, inner.top))
		return;
	if (is)
		finding(w->to, "scope", "the argument '%s'%s%s is %s, and no sink is declared for it", cs_escape_to(shown, sizeof shown, m->key),
			inner.top == m->key ? "" : " in ", inner.top == m->key ? "" : cs_escape_to(top, sizeof top, inner.top), is);
	check_schema(&inner, &m->value, depth + 1);
}

static void check_schema(const struct walk *w, const struct json *schema, unsigned depth)
{
	static const char *const unions[] = { "anyOf", "oneOf", "allOf" };
	const struct json *properties = json_get(schema, "properties");

	if (depth > DEPTH)
		return;
	for (size_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->n; i++)
		check_property(w, &properties->members[i], depth);
	if (json_get(schema, "items"))
		check_schema(w, json_get(schema, "items"), depth + 1);
	for (size_t u = 0; u < sizeof unions / sizeof *unions; u++)
		for (size_t i = 0; json_at(json_get(schema, unions[u]), i); i++)
			check_schema(w, json_at(json_get(schema, unions[u]), i), depth + 1);
}

static void check_open(const struct teller *to, const struct gate_tool *declared, const struct manifest_tool *t)
{
	const struct json *more = json_get(t->input, "additionalProperties");

	if (hint(t, "readOnlyHint", false) && !(declared->effects & ~(unsigned)RULES_READ))
		return;
	if (!t->input)
		finding(to, "scope", "it has no schema of its input, and does not only read");
	else if (!json_is(more, JSON_BOOL) || more->b)
		finding(to, "scope", "it takes arguments that its schema does not name (additionalProperties is not false), and does not only read");
}

void scope_check(const struct gate_policy *p, const struct manifest_tool *t, scope_tell tell, void *arg)
{
	const struct gate_tool *declared = gate_tool_find(p, t->name);
	struct teller to = { tell, arg };
	struct walk w = { &to, declared, NULL };

	if (!declared || !declared->annotated) {
		finding(&to, "scope", "the profile declares nothing of it: write it under tools.each");
		return;
	}
	check_effects(&to, declared, t);
	check_schema(&w, t->input, 0);
	check_open(&to, declared, t);
}

const char *scope_shell(const struct gate_policy *p, const char *tool)
{
	const struct gate_tool *t = gate_tool_find(p, tool);

	return t ? t->shell : NULL;
}

uint64_t scope_approval_ms(const struct gate_policy *p)
{
	return p->approval_ms;
}
