/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - a profile's keys tools, roles, rules and gate into a struct gate_policy. */
#include "gate/policy.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int policy_bad(struct reading *r, const struct json *v, const char *fmt, ...)
{
	const struct json_place *at = json_place_of(&r->places, v);
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return cs_fail(r->err, CS_E_INVALID, 0, "%s:%u:%u: %s", r->path, at ? at->line : 1, at ? at->column : 1, what);
}

/* ---- words ---- */

struct word {
	const char *name;
	unsigned value;
};

static const struct word verdicts[] = { { "allow", RULES_ALLOW }, { "sandbox", RULES_SANDBOX }, { "ask", RULES_ASK },
					{ "deny", RULES_DENY }, { NULL, 0 } };
static const struct word rule_of_two[] = { { "off", RULES_ALLOW }, { "ask", RULES_ASK }, { "deny", RULES_DENY }, { NULL, 0 } };

static int one_of(struct reading *r, const struct json *v, const char *what, const struct word *words, unsigned *ret)
{
	const char *names[16], *s = json_str(v), *near;
	char list[128] = "", given[80] = "", shown[60];
	size_t n = 0;

	for (; n < 16 && words[n].name; n++) {
		if (s && !strcmp(words[n].name, s)) {
			*ret = words[n].value;
			return 0;
		}
		names[n] = words[n].name;
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? ", " : "", words[n].name);
	}
	near = s ? cs_nearest(s, names, n) : NULL;
	if (s)
		snprintf(given, sizeof given, ", not '%s'", cs_escape_to(shown, sizeof shown, s));
	return policy_bad(r, v, "%s must be one of %s%s%s%s%s", what, list, given, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int policy_verdict(struct reading *r, const struct json *v, const char *what, enum rules_verdict *ret)
{
	unsigned w = *ret;
	int k = v ? one_of(r, v, what, verdicts, &w) : 0;

	*ret = (enum rules_verdict)w;
	return k;
}

/* Every key of v is one of these, and v is a mapping. NULL is none. */
int policy_keys(struct reading *r, const struct json *v, const char *what, const char *const *keys)
{
	size_t n = 0;

	if (!v || v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_OBJECT)
		return policy_bad(r, v, "%s must be a mapping", what);
	while (keys[n])
		n++;
	for (uint32_t i = 0; i < v->n; i++) {
		const char *key = v->members[i].key, *near;
		size_t k = 0;

		while (k < n && strcmp(keys[k], key))
			k++;
		if (k < n)
			continue;
		near = cs_nearest(key, keys, n);
		return policy_bad(r, &v->members[i].value, "%s has no key '%.60s'%s%s%s", what, key, near ? "; did you mean '" : "",
				  near ? near : "", near ? "'?" : "");
	}
	return 0;
}

static int truth(struct reading *r, const struct json *v, const char *what, bool *ret)
{
	if (!v)
		return 0;
	if (v->type != JSON_BOOL)
		return policy_bad(r, v, "%s must be true or false", what);
	*ret = v->b;
	return 0;
}

static int count(struct reading *r, const struct json *v, const char *what, uint64_t *ret)
{
	int64_t i;

	if (!v)
		return 0;
	if (!json_int(v, &i) || i < 0)
		return policy_bad(r, v, "%s must be a whole number, 0 or more", what);
	*ret = (uint64_t)i;
	return 0;
}

static int duration(struct reading *r, const struct json *v, const char *what, uint64_t *ret)
{
	int64_t i;

	if (!v)
		return 0;
	if (json_int(v, &i) && i > 0) {
		*ret = (uint64_t)i * 1000;
		return 0;
	}
	if (!json_str(v) || cs_parse_duration(json_str(v), ret) < 0)
		return policy_bad(r, v, "%s must be a time such as 30s, 10m or 1h", what);
	return 0;
}

/* A word or a list of words. */
int policy_strings(struct reading *r, const struct json *v, const char *what, const char *const **ret, size_t *ret_n)
{
	size_t n = !v || v->type == JSON_NULL ? 0 : v->type == JSON_ARRAY ? v->n : 1;
	const char **list = cs_arena_get(&r->p->arena, n + 1, sizeof *list);

	if (!list)
		return policy_bad(r, v, "%s: too large", what);
	for (size_t i = 0; i < n; i++) {
		const struct json *one = v->type == JSON_ARRAY ? json_at(v, i) : v;

		list[i] = json_str(one);
		if (!list[i] || !*list[i])
			return policy_bad(r, one, "%s must be words", what);
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ---- lists of tools ---- */

/* Spaces around a name or a value are the writer's, not the value's: a refusal of " secret" would refuse nothing. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " ");
	for (n = strlen(s); n && s[n - 1] == ' '; n--)
		s[n - 1] = 0;
	return s;
}

/* NAME=VALUE or NAME~PATTERN, up to a comma or the closing bracket. */
static int read_cond(struct reading *r, const struct json *at, char **text, struct gate_cond *ret)
{
	char *s = *text + strspn(*text, " "), *op = strpbrk(s, "=~,"), *end, mark;
	struct cs_err inner = { 0 };

	if (!op || op == s || *op == ',')
		return policy_bad(r, at, "write arguments as (NAME=VALUE) or (NAME~PATTERN)");
	mark = *op;
	*op = 0;
	ret->arg = trim(s);
	s = op + 1;
	end = s + strcspn(s, ",");
	*text = *end ? end + 1 : end;
	*end = 0;
	s = trim(s);
	if (mark == '=')
		return json_read(&r->p->arena, s, strlen(s), NULL, &ret->value, NULL) == 0 ||
				       (ret->value = json_new_str(&r->p->arena, s, strlen(s)))
			       ? 0
			       : policy_bad(r, at, "too large");
	if (pattern_compile(&r->p->arena, s, &ret->pattern, &inner) < 0)
		return policy_bad(r, at, "the pattern of %s: %s", ret->arg, inner.msg);
	return 0;
}

static int read_pattern(struct reading *r, const struct json *v, struct gate_pattern *ret)
{
	const char *s = json_str(v);
	const struct json_place *at = json_place_of(&r->places, v);
	char *text, *open;

	if (!s || !*s)
		return policy_bad(r, v, "a list of tools holds names, such as read_* or send(channel=general)");
	text = cs_arena_dup(&r->p->arena, s, strlen(s));
	ret->conds = cs_arena_get(&r->p->arena, strlen(s) + 1, sizeof *ret->conds);
	if (!text || !ret->conds)
		return policy_bad(r, v, "too large");
	ret->glob = text;
	ret->line = at ? at->line : 0;
	ret->file = r->path;
	ret->at = v;
	open = strchr(text, '(');
	if (!open)
		return 0;
	if (text[strlen(text) - 1] != ')')
		return policy_bad(r, v, "'%.80s': a bracket is not closed", s);
	text[strlen(text) - 1] = 0;
	*open++ = 0;
	while (*open) {
		int k = read_cond(r, v, &open, &ret->conds[ret->n_conds]);

		if (k < 0)
			return k;
		ret->n_conds++;
	}
	return 0;
}

/* Appends: what a profile extends comes first. */
static int read_list(struct reading *r, const struct json *v, struct gate_list *ret)
{
	size_t n = !v || v->type == JSON_NULL ? 0 : v->type == JSON_ARRAY ? v->n : 1;
	struct gate_pattern *list = cs_arena_get(&r->p->arena, ret->n + n, sizeof *list);

	if (!list)
		return policy_bad(r, v, "too large");
	if (ret->n)
		memcpy(list, ret->v, ret->n * sizeof *list);
	for (size_t i = 0; i < n; i++) {
		int k = read_pattern(r, v->type == JSON_ARRAY ? json_at(v, i) : v, &list[ret->n + i]);

		if (k < 0)
			return k;
	}
	ret->v = list;
	ret->n += n;
	return 0;
}

static int read_access(struct reading *r, const struct json *v, struct gate_access *ret)
{
	const struct json *d = json_get(v, "default");
	int k = policy_verdict(r, d, "default", &ret->otherwise);

	if (d)
		ret->has_otherwise = true;
	if (k >= 0)
		k = read_list(r, json_get(v, "allow"), &ret->allow);
	if (k >= 0)
		k = read_list(r, json_get(v, "ask"), &ret->ask);
	return k < 0 ? k : read_list(r, json_get(v, "deny"), &ret->deny);
}

static int read_roles(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "default", "allow", "ask", "deny", NULL };
	struct gate_role *list;

	if (!v || v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_OBJECT)
		return policy_bad(r, v, "roles must be a mapping from a role's name to what it may call");
	list = cs_arena_get(&r->p->arena, r->p->n_roles + v->n, sizeof *list);
	if (!list)
		return policy_bad(r, v, "too many roles");
	if (r->p->n_roles)
		memcpy(list, r->p->roles, r->p->n_roles * sizeof *list);
	r->p->roles = list;
	for (uint32_t i = 0; i < v->n; i++) {
		const struct json *one = &v->members[i].value;
		struct gate_role *role = &list[r->p->n_roles];
		int k;

		role->name = v->members[i].key;
		role->access.otherwise = RULES_DENY;
		if ((k = policy_keys(r, one, "a role", keys)) < 0 || (k = read_access(r, one, &role->access)) < 0)
			return k;
		r->p->n_roles++;
	}
	return 0;
}

/* ---- what a tool is ---- */

static const struct word effects[] = { { "read", RULES_READ }, { "write", RULES_WRITE }, { "net", RULES_NET },
				       { "exec", RULES_EXEC }, { "spend", RULES_SPEND }, { NULL, 0 } };
static const struct word formats[] = { { "auto", GATE_FORMAT_AUTO }, { "json", GATE_FORMAT_JSON }, { "yaml", GATE_FORMAT_YAML },
				       { "lines", GATE_FORMAT_LINES }, { "text", GATE_FORMAT_TEXT }, { NULL, 0 } };

static int read_effects(struct reading *r, const struct json *v, struct gate_tool *t)
{
	for (size_t i = 0; v && i < (v->type == JSON_ARRAY ? v->n : 1); i++) {
		unsigned e = 0;
		int k = one_of(r, v->type == JSON_ARRAY ? json_at(v, i) : v, "an effect", effects, &e);

		if (k < 0)
			return k;
		t->effects |= e;
	}
	return 0;
}

static int read_sink(struct reading *r, const struct json *v, struct gate_sink *s)
{
	static const char *const keys[] = { "arg", "links", "user", "trusted", "structured", "free", "nowhere", NULL };
	int k;

	memcpy(s->verdict, r->p->origin, sizeof s->verdict);
	s->arg = json_str(v);
	if (s->arg)
		return 0;
	if ((k = policy_keys(r, v, "a sink", keys)) < 0)
		return k;
	s->arg = json_str(json_get(v, "arg"));
	if (!s->arg)
		return policy_bad(r, v, "a sink is the name of an argument, or a mapping with 'arg'");
	if ((k = truth(r, json_get(v, "links"), "links", &s->links)) < 0)
		return k;
	for (int c = 0; c < ORIGIN_MAX && k >= 0; c++)
		k = policy_verdict(r, json_get(v, origin_name((enum origin_class)c)), origin_name((enum origin_class)c), &s->verdict[c]);
	return k;
}

static int read_sinks(struct reading *r, const struct json *v, struct gate_tool *t)
{
	size_t n = !v ? 0 : v->type == JSON_ARRAY ? v->n : 1;

	if (!v)
		return 0;
	t->sinks = cs_arena_get(&r->p->arena, n, sizeof *t->sinks);
	if (!t->sinks)
		return policy_bad(r, v, "too many sinks");
	for (t->n_sinks = 0; t->n_sinks < n; t->n_sinks++) {
		int k = read_sink(r, v->type == JSON_ARRAY ? json_at(v, t->n_sinks) : v, &t->sinks[t->n_sinks]);

		if (k < 0)
			return k;
	}
	return 0;
}

/* "10 per 1m" */
static int read_rate(struct reading *r, const struct json *v, struct gate_tool *t)
{
	char time[32];
	unsigned long n;

	if (!v)
		return 0;
	if (!json_str(v) || sscanf(json_str(v), "%lu per %31s", &n, time) != 2 || n == 0 || cs_parse_duration(time, &t->rate_ms) < 0)
		return policy_bad(r, v, "rate must be such as '10 per 1m'");
	t->rate_n = n;
	return 0;
}

static int read_results(struct reading *r, const struct json *v, struct gate_tool *t)
{
	static const struct word words[] = { { "untrusted", 0 }, { "trusted", 1 }, { NULL, 0 } };
	unsigned w = t->trusted;
	int k = v ? one_of(r, v, "results", words, &w) : 0;

	t->trusted = w;
	return k;
}

static int word_of(struct reading *r, const struct json *v, const char *what, const char **ret)
{
	if (!v)
		return 0;
	*ret = json_str(v);
	return *ret ? 0 : policy_bad(r, v, "%s must be the name of an argument", what);
}

static int compile_schema(struct reading *r, const struct json *doc, const char *tool, const char *what, struct schema **ret)
{
	struct cs_err inner = { 0 };

	if (!doc)
		return 0;
	schema_free(*ret);
	*ret = NULL;
	if (schema_compile(doc, NULL, ret, &inner) < 0)
		return cs_fail(r->err, CS_E_INVALID, 0, "%s: tool %s: its %s schema: %s", r->path, tool, what, inner.msg);
	return 0;
}

static int read_schemas(struct reading *r, const struct json *v, struct gate_tool *t)
{
	const struct json *in = json_get(v, "input"), *out = json_get(v, "output");
	int k = compile_schema(r, in, t->name, "input", &t->input);

	if (in)
		t->input_doc = in;
	if (out)
		t->output_doc = out;
	return k < 0 ? k : compile_schema(r, out, t->name, "output", &t->output);
}

static int read_tool(struct reading *r, const struct json *v, struct gate_tool *t)
{
	static const char *const keys[] = { "effects", "sinks", "shell", "money", "results", "format", "free", "trusted", "sensitive",
					    "secret", "rate", "before", "after", "input", "output", NULL };
	unsigned format = t->format;
	int k = policy_keys(r, v, "a tool", keys);

	t->annotated = true;
	if (k >= 0)
		k = read_effects(r, json_get(v, "effects"), t);
	if (k >= 0)
		k = read_sinks(r, json_get(v, "sinks"), t);
	if (k >= 0)
		k = word_of(r, json_get(v, "shell"), "shell", &t->shell);
	if (k >= 0)
		k = word_of(r, json_get(v, "money"), "money", &t->money);
	if (k >= 0)
		k = read_results(r, json_get(v, "results"), t);
	if (k >= 0 && json_get(v, "format"))
		k = one_of(r, json_get(v, "format"), "format", formats, &format);
	t->format = (enum gate_format)format;
	if (k >= 0 && json_get(v, "free"))
		k = policy_strings(r, json_get(v, "free"), "free", &t->free_fields, &t->n_free);
	if (k >= 0 && json_get(v, "trusted"))
		k = policy_strings(r, json_get(v, "trusted"), "trusted", &t->trusted_fields, &t->n_trusted);
	if (k >= 0)
		k = truth(r, json_get(v, "sensitive"), "sensitive", &t->sensitive);
	if (k >= 0)
		k = truth(r, json_get(v, "secret"), "secret", &t->secret);
	if (k >= 0)
		k = read_rate(r, json_get(v, "rate"), t);
	if (k >= 0)
		k = policy_condition(r, json_get(v, "before"), t->name, /* after= */ false);
	if (k >= 0)
		k = policy_condition(r, json_get(v, "after"), t->name, /* after= */ true);
	return k < 0 ? k : read_schemas(r, v, t);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct gate_tool *)a)->name, ((const struct gate_tool *)b)->name);
}

/* The tools of the manifest. */
static int from_manifest(struct reading *r)
{
	struct manifest *m = r->p->manifest;

	for (size_t i = 0; m && i < m->n; i++) {
		struct gate_tool *t = &r->p->tools[r->p->n_tools];
		int k;

		*t = (struct gate_tool){ .name = m->tools[i].name, .in = &m->tools[i], .index = -1 };
		t->input_doc = m->tools[i].input;
		t->output_doc = m->tools[i].output;
		r->p->n_tools++;
		if ((k = compile_schema(r, t->input_doc, t->name, "input", &t->input)) < 0 ||
		    (k = compile_schema(r, t->output_doc, t->name, "output", &t->output)) < 0)
			return k;
	}
	if (r->p->n_tools)
		qsort(r->p->tools, r->p->n_tools, sizeof *r->p->tools, by_name);
	for (size_t i = 1; i < r->p->n_tools; i++)
		if (!strcmp(r->p->tools[i - 1].name, r->p->tools[i].name))
			return cs_fail(r->err, CS_E_INVALID, 0, "%s: the tool '%s' is in the manifest twice", r->path, r->p->tools[i].name);
	return 0;
}

static int check_argument(struct reading *r, const struct json *v, const struct gate_tool *t, const char *arg, const char *what)
{
	const struct json *properties = json_get(t->input_doc, "properties");
	const char **names = cs_arena_get(&r->p->arena, properties ? properties->n + 1 : 1, sizeof *names), *near;

	if (!arg || !names || !json_is(properties, JSON_OBJECT) || json_get(properties, arg))
		return 0;
	for (uint32_t i = 0; i < properties->n; i++)
		names[i] = properties->members[i].key;
	near = cs_nearest(arg, names, properties->n);
	return policy_bad(r, v, "the tool %s has no argument '%.80s' to be %s%s%s%s", t->name, arg, what, near ? "; did you mean '" : "", near ? near : "",
			  near ? "'?" : "");
}

/* A sink that the tool does not have watches nothing, and a sum that it does not have is never counted: a slip of the pen. A
 * pattern's are for the tools that have them. */
static int check_sinks(struct reading *r, const struct json *v, const struct gate_tool *t)
{
	int k = 0;

	for (size_t i = 0; i < t->n_sinks && k >= 0; i++)
		k = check_argument(r, v, t, t->sinks[i].arg, "a sink");
	if (k >= 0)
		k = check_argument(r, v, t, t->shell, "its command");
	return k < 0 ? k : check_argument(r, v, t, t->money, "its sum");
}

/* A name, or a pattern over the manifest's. */
static int read_each(struct reading *r, const struct json *v)
{
	size_t known = r->p->n_tools;

	if (!v || v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_OBJECT)
		return policy_bad(r, v, "each must be a mapping from a tool's name to what it is");
	for (uint32_t i = 0; i < v->n; i++) {
		const char *name = v->members[i].key;
		bool glob = strpbrk(name, "*?["), hit = false;
		struct gate_tool *added;
		int k;

		for (size_t t = 0; t < known; t++) {
			if (glob ? !cs_glob(name, r->p->tools[t].name) : strcmp(name, r->p->tools[t].name))
				continue;
			hit = true;
			if ((k = read_tool(r, &v->members[i].value, &r->p->tools[t])) < 0 ||
			    (!glob && (k = check_sinks(r, &v->members[i].value, &r->p->tools[t])) < 0))
				return k;
		}
		if (hit)
			continue;
		if (glob || r->p->manifest) {
			const char **names = cs_arena_get(&r->p->arena, known + 1, sizeof *names), *near;

			for (size_t t = 0; names && t < known; t++)
				names[t] = r->p->tools[t].name;
			near = names ? cs_nearest(name, names, known) : NULL;
			return policy_bad(r, &v->members[i].value, "%s '%.80s'%s%s%s", glob && !r->p->manifest ? "without a manifest there are no tools for the pattern" : "the manifest has no tool", name,
					  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
		}
		added = &r->p->tools[r->p->n_tools++];
		*added = (struct gate_tool){ .name = name, .index = -1 };
		if ((k = read_tool(r, &v->members[i].value, added)) < 0 || (k = check_sinks(r, &v->members[i].value, added)) < 0)
			return k;
	}
	if (r->p->n_tools)
		qsort(r->p->tools, r->p->n_tools, sizeof *r->p->tools, by_name);
	return 0;
}

/* A name that stands in the profile is of a file beside it. */
static char *beside(const struct reading *r, const char *name)
{
	const char *slash = strrchr(r->path, '/');

	return name[0] == '/' || !slash ? cs_strdup(name) : cs_printf("%.*s/%s", (int)(slash - r->path), r->path, name);
}

static void note_own(struct reading *r, const char *path)
{
	char *real = realpath(path, NULL);

	cs_strv_take(&r->p->own, real ? real : cs_strdup(path));
}

static int read_beside(struct reading *r, const struct json *at, const char *name, struct cs_buf *text, char **ret_path)
{
	struct cs_err inner = { 0 };
	CS_FD int fd = -1;

	*ret_path = beside(r, name);
	note_own(r, *ret_path);
	fd = open(*ret_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return policy_bad(r, at, "%s: %s", *ret_path, strerror(errno));
	return cs_buf_read_fd(text, fd, *ret_path, &inner) < 0 ? policy_bad(r, at, "%s", inner.msg) : 0;
}

static int read_manifest(struct reading *r, const struct json *tools)
{
	const struct json *v = json_get(tools, "manifest"), *pins = json_get(tools, "pins");
	CS_BUF_AUTO struct cs_buf text = CS_BUF(GATE_POLICY_MAX);
	CS_FREE char *path = NULL, *pins_path = NULL;
	struct cs_err inner = { 0 };
	int k;

	if (!v)
		return 0;
	if (!json_str(v))
		return policy_bad(r, v, "manifest must be a file's name");
	if (r->p->manifest)
		return policy_bad(r, v, "the profile that this one extends has a manifest already");
	if ((k = read_beside(r, v, json_str(v), &text, &path)) < 0)
		return k;
	if (manifest_read(path, text.data, text.len, &r->p->manifest, &inner) < 0)
		return policy_bad(r, v, "%s", inner.msg);
	(void)manifest_screen(r->p->manifest);
	if (!pins)
		return 0;
	if (!json_str(pins))
		return policy_bad(r, pins, "pins must be a file's name");
	pins_path = beside(r, json_str(pins));
	note_own(r, pins_path);
	if (pins_load(pins_path, &r->p->pins, &inner) < 0)
		return policy_bad(r, pins, "%s", inner.msg);
	(void)pins_apply(r->p->pins, r->p->manifest);
	return 0;
}

/* For so many tools more than those of the profiles before. */
static int room_for(struct reading *r, const struct json *at, size_t more)
{
	struct gate_tool *tools = cs_arena_get(&r->p->arena, r->p->n_tools + more + 1, sizeof *tools);

	if (!tools)
		return policy_bad(r, at, "too many tools");
	if (r->p->n_tools)
		memcpy(tools, r->p->tools, r->p->n_tools * sizeof *tools);
	r->p->tools = tools;
	return 0;
}

static int read_tools(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "manifest", "pins", "default", "allow", "ask", "deny", "each", NULL };
	const struct json *each = json_get(v, "each");
	int k = policy_keys(r, v, "tools", keys);

	if (k < 0 || (k = read_manifest(r, v)) < 0)
		return k;
	if ((k = room_for(r, v, (json_get(v, "manifest") ? r->p->manifest->n : 0) + (each ? each->n : 0))) < 0)
		return k;
	if (json_get(v, "manifest") && (k = from_manifest(r)) < 0)
		return k;
	if ((k = read_each(r, each)) < 0)
		return k;
	return read_access(r, v, &r->p->access);
}

/* ---- gate: ---- */

static int read_origin(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "user", "trusted", "structured", "free", "nowhere", NULL };
	int k = policy_keys(r, v, "origin", keys);

	for (int c = 0; c < ORIGIN_MAX && k >= 0; c++)
		k = policy_verdict(r, json_get(v, keys[c]), keys[c], &r->p->origin[c]);
	return k;
}

static int read_plan(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "required", "extra_reads", "extra_writes", NULL };
	int k = policy_keys(r, v, "plan", keys);

	if (k >= 0)
		k = truth(r, json_get(v, "required"), "required", &r->p->plan_required);
	if (k >= 0)
		k = policy_verdict(r, json_get(v, "extra_reads"), "extra_reads", &r->p->extra_read);
	return k < 0 ? k : policy_verdict(r, json_get(v, "extra_writes"), "extra_writes", &r->p->extra_write);
}

static int read_shell(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "safe", "uncertain", "unsafe", NULL };
	int k = policy_keys(r, v, "shell", keys);

	for (int c = 0; c < 3 && k >= 0; c++)
		k = policy_verdict(r, json_get(v, keys[c]), keys[c], &r->p->shell_verdict[c]);
	return k;
}

static int read_budget(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "calls", "tokens", "money", "time", NULL };
	const struct json *money = json_get(v, "money");
	int k = policy_keys(r, v, "budget", keys);

	if (k >= 0)
		k = count(r, json_get(v, "calls"), "calls", &r->p->budget.calls);
	if (k >= 0)
		k = count(r, json_get(v, "tokens"), "tokens", &r->p->budget.tokens);
	if (k >= 0)
		k = duration(r, json_get(v, "time"), "time", &r->p->budget.time_ms);
	if (k < 0 || !money)
		return k;
	if (money->type != JSON_NUMBER || json_num(money) < 0)
		return policy_bad(r, money, "money must be a number, 0 or more");
	r->p->budget.money = json_num(money);
	return 0;
}

static int read_gate(struct reading *r, const struct json *v)
{
	static const char *const keys[] = { "origin", "plan", "shell", "rule_of_two", "budget", "loop", "denials", "approvals", NULL };
	static const char *const approval_keys[] = { "expire", NULL };
	uint64_t loop = r->p->loop, denials = r->p->denials;
	unsigned two = r->p->rule_of_two;
	int k = policy_keys(r, v, "gate", keys);

	if (k >= 0)
		k = read_origin(r, json_get(v, "origin"));
	if (k >= 0)
		k = read_plan(r, json_get(v, "plan"));
	if (k >= 0)
		k = read_shell(r, json_get(v, "shell"));
	if (k >= 0)
		k = read_budget(r, json_get(v, "budget"));
	if (k >= 0 && json_get(v, "rule_of_two"))
		k = one_of(r, json_get(v, "rule_of_two"), "rule_of_two", rule_of_two, &two);
	if (k >= 0)
		k = count(r, json_get(v, "loop"), "loop", &loop);
	if (k >= 0)
		k = count(r, json_get(v, "denials"), "denials", &denials);
	if (k >= 0)
		k = policy_keys(r, json_get(v, "approvals"), "approvals", approval_keys);
	if (k >= 0)
		k = duration(r, json_get(json_get(v, "approvals"), "expire"), "expire", &r->p->approval_ms);
	r->p->rule_of_two = (enum rules_verdict)two;
	r->p->loop = (unsigned)loop;
	r->p->denials = (unsigned)denials;
	return k;
}

/* ---- the whole ---- */

static void defaults(struct gate_policy *p)
{
	p->access.otherwise = RULES_DENY;
	p->origin[ORIGIN_FREE] = p->origin[ORIGIN_NOWHERE] = RULES_ASK;
	p->shell_verdict[SH_UNCERTAIN] = RULES_SANDBOX;
	p->shell_verdict[SH_UNSAFE] = RULES_DENY;
	p->extra_write = RULES_ASK;
	p->budget.money = -1;
	p->loop = 3;
	p->denials = 3;
	p->approval_ms = 10 * 60 * 1000;
}

static int read_rules(struct reading *r, const struct json *v)
{
	size_t n = !v || v->type == JSON_NULL ? 0 : v->type == JSON_ARRAY ? v->n : 1;

	if (n && v->type != JSON_ARRAY && v->type != JSON_STRING)
		return policy_bad(r, v, "rules must be the text of rules, or a list of files");
	for (size_t i = 0; i < n; i++) {
		CS_BUF_AUTO struct cs_buf text = CS_BUF(GATE_POLICY_MAX);
		const struct json *one = v->type == JSON_ARRAY ? json_at(v, i) : v;
		const struct json_place *at = json_place_of(&r->places, one);
		CS_FREE char *path = NULL;
		int k;

		if (!json_str(one))
			return policy_bad(r, one, "a file's name is missing");
		if (v->type == JSON_STRING) {
			/* Block text begins on the line after its key. */
			policy_rules_add(r, r->path, at ? at->line + 1 : 1, v->s, v->n);
			continue;
		}
		if ((k = read_beside(r, one, json_str(one), &text, &path)) < 0)
			return k;
		policy_rules_add(r, cs_arena_dup(&r->p->arena, path, strlen(path)), 1, text.data ? text.data : "", text.len);
	}
	return 0;
}

/* On top of a locked profile only what refuses more. */
static int only_narrows(struct reading *r, const struct json *root)
{
	static const char *const may[] = { "ask", "deny", NULL };
	const struct json *tools = json_get(root, "tools");

	if (json_get(root, "gate") || json_get(root, "roles"))
		return policy_bad(r, json_get(root, "gate") ? json_get(root, "gate") : json_get(root, "roles"),
				  "the profile that this one extends is locked: only rules, tools: ask: and tools: deny: may be added");
	for (uint32_t i = 0; json_is(tools, JSON_OBJECT) && i < tools->n; i++)
		if (strcmp(tools->members[i].key, may[0]) && strcmp(tools->members[i].key, may[1]))
			return policy_bad(r, &tools->members[i].value,
					  "the profile that this one extends is locked: only rules, tools: ask: and tools: deny: may be added");
	return 0;
}

static int read_sections(struct reading *r, const struct json *root)
{
	const struct json *locked = json_get(root, "locked");
	int k = r->locked ? only_narrows(r, root) : 0;

	if (k < 0)
		return k;
	if (r->locked && json_get(root, "rules"))
		r->p->no_allow = true;
	r->locked |= json_is(locked, JSON_BOOL) && locked->b;

	/* gate: first, since sinks begin from its verdicts. */
	if ((k = read_gate(r, json_get(root, "gate"))) < 0 || (k = read_tools(r, json_get(root, "tools"))) < 0 ||
	    (k = read_roles(r, json_get(root, "roles"))) < 0)
		return k;
	return read_rules(r, json_get(root, "rules"));
}

/* A file is found beside the one that names it; a built-in profile has nothing for the gate. */
static const char *extended(struct reading *r, const struct json *root)
{
	const char *name = json_str(json_get(root, "extends")), *dot = name ? strrchr(name, '.') : NULL;
	CS_FREE char *path = NULL;

	if (!name || (!strchr(name, '/') && (!dot || (strcmp(dot, ".yaml") && strcmp(dot, ".yml")))))
		return NULL;
	path = beside(r, name);
	return cs_arena_dup(&r->p->arena, path, strlen(path));
}

/* What it extends first. That there is no circle, and that it is not too deep, profile_load_file() has seen to. */
static int read_file(struct reading *r, int depth)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF(GATE_POLICY_MAX);
	CS_FD int fd = open(r->path, O_RDONLY | O_CLOEXEC);
	const char *self = r->path;
	const struct json *root = NULL;
	struct cs_err inner = { 0 };
	int k;

	note_own(r, self);
	if (fd < 0 || depth > 8)
		return cs_fail(r->err, CS_E_NOT_FOUND, errno, "%s", r->path);
	if ((k = cs_buf_read_fd(&text, fd, r->path, r->err)) < 0)
		return k;
	if (json_read_yaml(&r->p->arena, cs_buf_text(&text), text.len, NULL, &r->places, &root, &inner) < 0)
		return cs_fail(r->err, CS_E_INVALID, 0, "%s:%s", r->path, inner.msg);
	r->path = extended(r, root);
	k = r->path ? read_file(r, depth + 1) : 0;
	r->path = self;
	return k < 0 ? k : read_sections(r, root);
}

/* The names of built-in profiles are taken elsewhere, so somebody will try one here. */
static int no_builtin(const char *path, int k, struct cs_err *err)
{
	for (size_t i = 0; k == -CS_E_NOT_FOUND && i < profile_builtin_count(); i++)
		if (!strcmp(profile_builtin_name(i), path))
			return cs_fail(err, CS_E_NOT_FOUND, 0, "'%s' is a built-in profile, which says nothing of tools: the gate wants the path of a policy file, such as ./policy.yaml (docs/gates.md)", path);
	return k;
}

int gate_policy_load(const char *path, struct gate_policy **ret, struct cs_err *err)
{
	struct gate_policy *p = cs_new(struct gate_policy);
	struct reading r = { .p = p, .err = err };
	int k;

	p->arena = (struct cs_arena)CS_ARENA((size_t)64 << 20);
	p->path = r.path = cs_arena_dup(&p->arena, path, strlen(path));
	defaults(p);
	k = no_builtin(path, profile_load_file(path, &p->profile, err), err);
	if (k >= 0)
		p->loaded = true;
	if (k >= 0)
		k = read_file(&r, 0);
	if (k >= 0)
		k = policy_lists_check(&r);
	if (k >= 0)
		k = policy_rules_load(&r);
	if (k >= 0 && !p->access.has_otherwise)
		p->access.otherwise = p->no_allow ? RULES_DENY : rules_fallback(p->rules, RULES_DENY);
	if (k >= 0)
		k = policy_shell(p, err);
	json_places_done(&r.places);
	policy_rules_done(&r);
	if (k < 0) {
		gate_policy_free(p);
		return k;
	}
	*ret = p;
	return 0;
}

int gate_policy_rules(const char *path, struct rules **ret, struct cs_err *err)
{
	struct gate_policy *p = NULL;
	int k = gate_policy_load(path, &p, err);

	if (k < 0)
		return k;
	*ret = p->rules; /* which have copies of all that they need */
	p->rules = NULL;
	gate_policy_free(p);
	return 0;
}

const struct cs_strv *gate_policy_own(const struct gate_policy *p)
{
	return &p->own;
}

bool gate_policy_place(struct gate_policy *p, const char *workspace, const char *cwd)
{
	const char *dir = cs_arena_dup(&p->arena, cwd, strlen(cwd));

	if (!dir)
		return false;
	free(p->roots.v[0]);
	p->roots.v[0] = cs_strdup(workspace);
	p->shell.workspace = p->roots.v[0];
	p->shell.cwd = dir;
	return true;
}

const struct profile *gate_policy_profile(const struct gate_policy *p)
{
	return &p->profile;
}

void gate_policy_free(struct gate_policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_tools; i++) {
		schema_free(p->tools[i].input);
		schema_free(p->tools[i].output);
	}
	rules_free(p->rules);
	rules_free(p->after);
	manifest_free(p->manifest);
	pins_free(p->pins);
	if (p->loaded)
		profile_done(&p->profile);
	cs_strv_done(&p->roots);
	cs_strv_done(&p->own);
	cs_arena_done(&p->arena);
	free(p);
}
