/* SPDX-License-Identifier: Apache-2.0 */
/* decl.c - tools and sets of tools.
 *
 * Both are read before everything else, in passes of their own, so that a rule
 * may stand above what it speaks of.
 */
#include "rules/internal.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

const char *const rl_effect_names[5] = { "reads", "writes", "net", "runs", "spends" };

unsigned rl_effect(const char *word)
{
	for (unsigned i = 0; i < 5; i++)
		if (!strcmp(word, rl_effect_names[i]))
			return 1u << i;
	return 0;
}

/* By bytes, not tokens: what is wrong in there is for the pass that reads it. */
void rl_skip_statement(struct parser *p)
{
	int depth = 0;
	bool in_string = false, in_comment = false;

	if (p->failed)
		return;
	for (p->at = p->tok.start, p->at_pos = p->tok.pos; p->at < p->end; p->at++) {
		char c = *p->at;

		if (c == '\n') {
			p->at_pos.line++;
			p->at_pos.column = 0;
			in_string = in_comment = false;
		}
		if (((unsigned char)c & 0xc0) != 0x80)
			p->at_pos.column++;
		if (in_comment)
			continue;
		if (in_string && c == '\\' && p->at + 1 < p->end && p->at[1] != '\n') {
			p->at++;
			p->at_pos.column++;
		} else if (c == '"') {
			in_string = !in_string;
		} else if (!in_string) {
			in_comment = c == '#';
			depth += c == '(' || c == '[' || c == '{';
			depth -= c == ')' || c == ']' || c == '}';
			if (c == ';' && depth <= 0)
				break;
		}
	}
	if (p->at < p->end) {
		p->at++;
		rl_next(p);
		return;
	}
	p->tok = (struct token){ .kind = TK_END, .pos = p->at_pos, .start = p->end, .text = "" };
}

/* ---- types, as the schema that means the same ---- */

static void put(struct parser *p, struct json *object, const char *key, const struct json *value)
{
	struct json_member *m;

	if (!object)
		return; /* schema_new() had no memory, and said so */
	m = (struct json_member *)object->members;
	m = rl_grow(p, m, object->n, sizeof *m);
	if (p->failed || !value)
		return;
	m[object->n++] = (struct json_member){ .key = key, .key_len = (uint32_t)strlen(key), .value = *value };
	object->members = m;
}

static void push(struct parser *p, struct json *array, const struct json *value)
{
	struct json *items = (struct json *)array->items;

	items = rl_grow(p, items, array->n, sizeof *items);
	if (p->failed || !value)
		return;
	items[array->n++] = *value;
	array->items = items;
}

static struct json *schema_new(struct parser *p, const char *type)
{
	struct json *s = rl_get(p, 1, sizeof *s);

	if (!s)
		return NULL;
	*s = (struct json){ .type = JSON_OBJECT };
	if (type)
		put(p, s, "type", rl_json_str(p, type));
	return s;
}

static const struct json *read_type(struct parser *p);

static void read_field(struct parser *p, struct json *properties, struct json *required, const char *what)
{
	const char *name = p->tok.text;
	bool optional;

	if (p->tok.kind != TK_NAME && p->tok.kind != TK_STRING) {
		rl_fail(p, p->tok.pos, "expected the name of %s", what);
		return;
	}
	if (strlen(name) != p->tok.text_len || json_get(properties, name)) {
		rl_fail(p, p->tok.pos, "`%s` is declared twice", rl_escape(p, name));
		return;
	}
	if (properties->n >= 1000) {
		rl_fail_limit(p, p->tok.pos, "more than 1000 names");
		return;
	}
	rl_next(p);
	optional = rl_take(p, '?');
	rl_expect(p, ':', "and a type after the name, as in `id: string`");
	put(p, properties, name, read_type(p));
	if (!optional)
		push(p, required, rl_json_str(p, name));
}

/* Behind the opening bracket; takes the closing one. */
static struct json *read_fields(struct parser *p, int close, const char *what)
{
	struct json *s = schema_new(p, "object"), properties = { .type = JSON_OBJECT }, required = { .type = JSON_ARRAY };

	for (bool more = false; !p->failed && !rl_is(p, close); more = true) {
		if (more)
			rl_expect(p, ',', "before the next name");
		if (!p->failed)
			read_field(p, &properties, &required, what);
	}
	rl_expect(p, close, "at the end of the names");
	if (p->failed)
		return NULL;
	if (properties.n || close == ')')
		put(p, s, "properties", &properties);
	if (required.n)
		put(p, s, "required", &required);
	return s;
}

static const struct json *read_enum(struct parser *p)
{
	struct json *s = schema_new(p, "string"), words = { .type = JSON_ARRAY }, v;

	do {
		if (p->tok.kind != TK_STRING) {
			rl_fail(p, p->tok.pos, "expected a string after `|`");
			return NULL;
		}
		rl_literal(p, &v);
		push(p, &words, &v);
	} while (rl_take(p, '|'));
	if (p->failed)
		return NULL;
	put(p, s, "enum", &words);
	return s;
}

static const struct json *read_type_atom(struct parser *p)
{
	static const char *const names[] = { "string", "number", "integer", "boolean", "any" };
	const char *word = p->tok.text;
	char got[80];

	if (p->tok.kind == TK_STRING)
		return read_enum(p);
	if (rl_take(p, '{'))
		return read_fields(p, '}', "a field");
	for (size_t i = 0; i < 5; i++)
		if (rl_take_word(p, names[i]))
			return schema_new(p, i == 4 ? NULL : names[i]);
	rl_fail(p, p->tok.pos, "expected a type (string, number, integer, boolean, any, {...}, \"a\" | \"b\"), got %s%s",
		rl_show_token(p, got, sizeof got), p->tok.kind == TK_NAME ? rl_suggest(p, word, names, 5) : "");
	return NULL;
}

static const struct json *read_type(struct parser *p)
{
	const struct json *t = NULL;

	if (!rl_enter(p))
		return NULL;
	t = read_type_atom(p);
	for (unsigned dims = 0; !p->failed && rl_take(p, '['); dims++) {
		struct json *array = schema_new(p, "array");

		rl_expect(p, ']', "after `[`: a list is written `string[]`");
		if (dims >= 8)
			rl_fail_limit(p, p->tok.pos, "more than 8 lists in one another");
		if (p->failed)
			return NULL;
		put(p, array, "items", t);
		t = array;
	}
	rl_leave(p);
	return t;
}

/* ---- tools ---- */

int rl_tool_find(const struct parser *p, const char *name)
{
	uint32_t i;

	return rl_map_find(&p->tool_names, name, &i) ? (int)i : -1;
}

/* Tools and sets. */
const char *rl_tool_suggest(struct parser *p, const char *word)
{
	size_t n = 0;
	const char **names = rl_get(p, p->r->n_tools + (size_t)p->set_names.n + 1, sizeof *names);

	if (!names)
		return "";
	for (uint32_t i = 0; i < p->r->n_tools; i++)
		names[n++] = p->tools[i].name;
	for (uint32_t i = 0; i < p->set_names.cap; i++)
		if (p->set_names.slots[i].name)
			names[n++] = p->set_names.slots[i].name;
	return rl_suggest(p, word, names, n);
}

static bool good_tool_name(struct parser *p)
{
	rl_retake_word(p);
	if (p->tok.kind != TK_NAME && p->tok.kind != TK_STRING)
		rl_fail(p, p->tok.pos, "expected the name of a tool");
	else if (strpbrk(p->tok.text, "*?") || !p->tok.text_len || strlen(p->tok.text) != p->tok.text_len)
		rl_fail(p, p->tok.pos, "a tool's name has no * or ?");
	else if (!strcmp(p->tok.text, "end"))
		rl_fail(p, p->tok.pos, "`end` is the end of the session; a tool cannot have that name");
	return !p->failed;
}

/* The server's own description is the truth about a tool; what a file says of the same one
 * fills gaps, and can only add effects. */
static void add_tool(struct parser *p, const struct rules_tool *t, uint32_t given, struct rl_pos pos)
{
	int at = rl_tool_find(p, t->name);

	if (at >= 0 && (uint32_t)at >= given) {
		rl_fail(p, pos, "tool `%s` is declared twice; remove one", rl_escape(p, t->name));
		return;
	}
	if (at >= 0) {
		struct rules_tool *old = &p->tools[at];

		old->input = old->input ? old->input : t->input;
		old->output = old->output ? old->output : t->output;
		old->effects |= t->effects;
		return;
	}
	if (p->r->n_tools >= RL_MAX_TOOLS) {
		rl_fail_limit(p, pos, "more than %d tools", RL_MAX_TOOLS);
		return;
	}
	p->tools = rl_grow(p, p->tools, p->r->n_tools, sizeof *p->tools);
	if (p->failed)
		return;
	p->tools[p->r->n_tools] = *t;
	rl_map_add(p, &p->tool_names, t->name, p->r->n_tools++);
	p->r->tools = p->tools;
}

static void read_tool(struct parser *p, uint32_t given)
{
	struct rules_tool t = { 0 };
	struct rl_pos pos = p->tok.pos;
	struct json *input;
	unsigned e;

	if (!good_tool_name(p))
		return;
	t.name = p->tok.text;
	rl_next(p);
	rl_expect(p, '(', "after the tool's name");
	t.input = input = read_fields(p, ')', "an argument");
	if (!p->failed)
		put(p, input, "additionalProperties", &(struct json){ .type = JSON_BOOL, .b = false });
	if (rl_take(p, RL_TWO('-', '>')))
		t.output = read_type(p);
	for (; p->tok.kind == TK_NAME; rl_next(p)) {
		e = rl_effect(p->tok.text);
		if (!e) {
			rl_fail(p, p->tok.pos, "unknown effect `%s`%s", rl_escape(p, p->tok.text),
				*rl_suggest(p, p->tok.text, rl_effect_names, 5) ? rl_suggest(p, p->tok.text, rl_effect_names, 5) :
				"; effects are reads, writes, net, runs, spends");
			return;
		}
		t.effects |= e;
	}
	rl_expect(p, ';', "after the tool");
	if (!p->failed)
		add_tool(p, &t, given, pos);
}

/* ---- sets ---- */

static const struct rl_tools *keep_set(struct parser *p, struct rl_map *map, const char *name, const struct rl_tools *set)
{
	struct rl_tools *kept = rl_get(p, 1, sizeof *kept);

	if (p->n_sets >= RL_MAX_TOOL_SETS)
		rl_fail_limit(p, p->tok.pos, "more than %d different sets of tools", RL_MAX_TOOL_SETS);
	p->sets = rl_grow(p, p->sets, p->n_sets, sizeof *p->sets);
	if (p->failed)
		return NULL;
	*kept = *set;
	p->sets[p->n_sets] = kept;
	rl_map_add(p, map, name, p->n_sets++);
	return kept;
}

/* The tools that `in` marks; text is theirs. */
static const struct rl_tools *marked(struct parser *p, struct rl_map *map, const char *text, const bool *in)
{
	struct rl_tools set = { .text = text };
	uint32_t *ids, n = 0;

	for (uint32_t i = 0; i < p->r->n_tools; i++)
		n += in[i];
	ids = rl_get(p, n, sizeof *ids);
	if (!ids)
		return NULL;
	for (uint32_t i = 0; i < p->r->n_tools; i++)
		if (in[i])
			ids[set.n++] = i;
	set.ids = ids;
	return keep_set(p, map, text, &set);
}

static void resolve_glob(struct parser *p, const char *glob, struct rl_tools *ret)
{
	const struct rl_tools *set = NULL;
	bool *in = calloc(p->r->n_tools + 1, 1);
	bool some = false;

	if (!in) {
		rl_fail_limit(p, p->tok.pos, "no memory");
		return;
	}
	for (uint32_t i = 0; i < p->r->n_tools; i++)
		some |= in[i] = cs_glob(glob, p->tools[i].name);
	/* A glob that fits nothing is a rule that never speaks: a slip, and an unsafe one. `*` is at home in an empty file. */
	if (!some && strcmp(glob, "*") != 0)
		rl_fail(p, p->tok.pos, "no tool fits `%s`%s", rl_escape(p, glob), rl_tool_suggest(p, glob));
	else
		set = marked(p, &p->tool_sets, glob, in);
	free(in);
	if (set)
		*ret = *set;
}

static void resolve_one(struct parser *p, const char *name, struct rl_tools *ret)
{
	int tool = rl_tool_find(p, name);
	uint32_t *id = NULL;

	if (tool < 0) {
		rl_fail(p, p->tok.pos, "unknown tool `%s`%s", rl_escape(p, name), rl_tool_suggest(p, name));
		return;
	}
	id = rl_get(p, 1, sizeof *id);
	if (!id)
		return;
	*id = (uint32_t)tool;
	*ret = (struct rl_tools){ .text = name, .ids = id, .n = 1 };
}

void rl_tool_ref(struct parser *p, struct rl_tools *ret)
{
	const char *word;
	uint32_t i;
	char got[80];

	rl_retake_word(p);
	word = p->tok.text;
	if (p->tok.kind == TK_STRING) {
		resolve_one(p, word, ret);
	} else if (p->tok.kind != TK_NAME) {
		rl_fail(p, p->tok.pos, "expected a tool, a set or a glob, got %s", rl_show_token(p, got, sizeof got));
	} else if (rl_map_find(&p->set_names, word, &i) || rl_map_find(&p->tool_sets, word, &i)) {
		*ret = *p->sets[i];
	} else if (strpbrk(word, "*?")) {
		resolve_glob(p, word, ret);
	} else {
		resolve_one(p, word, ret);
	}
	if (!p->failed)
		rl_next(p);
}

/* Marks what stands in braces, up to the closing one, and writes it down as it is to be shown. */
static void mark_list(struct parser *p, bool *in, struct cs_buf *text)
{
	for (bool more = false; !p->failed && !rl_is(p, '}'); more = true) {
		struct rl_tools one = { 0 };

		if (more)
			rl_expect(p, ',', "between tools");
		if (!p->failed)
			rl_tool_ref(p, &one);
		for (uint32_t i = 0; i < one.n; i++)
			in[one.ids[i]] = true;
		cs_buf_fmt(text, "%s%s", more ? ", " : "{", one.text ? one.text : "");
	}
	cs_buf_str(text, "}");
	if (!p->failed && text->len == 1)
		rl_fail(p, p->tok.pos, "an empty set of tools");
	rl_expect(p, '}', "after the tools");
}

static const struct rl_tools *read_braces(struct parser *p, struct rl_map *map, const char *name)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF(RL_MAX_TEXT * 2);
	const struct rl_tools *set = NULL;
	bool *in = calloc(p->r->n_tools + 1, 1);
	uint32_t at;

	if (!in) {
		rl_fail_limit(p, p->tok.pos, "no memory");
		return NULL;
	}
	mark_list(p, in, &text);
	if (!p->failed && !name && rl_map_find(map, cs_buf_text(&text), &at))
		set = p->sets[at];
	else if (!p->failed) {
		const char *shown = name ? name : cs_arena_dup(p->a, cs_buf_text(&text), text.len);

		set = shown ? marked(p, map, shown, in) : rl_get(p, 1, 1);
	}
	free(in);
	return set;
}

void rl_tool_list(struct parser *p, struct rl_tools *ret)
{
	const struct rl_tools *set;

	if (!rl_take(p, '{')) {
		rl_tool_ref(p, ret);
		return;
	}
	set = read_braces(p, &p->tool_sets, NULL);
	if (set && !p->failed)
		*ret = *set;
}

static void read_effect_set(struct parser *p, const char *name)
{
	unsigned e = p->tok.kind == TK_NAME ? rl_effect(p->tok.text) : 0;
	bool *in;

	if (!e) {
		rl_fail(p, p->tok.pos, "expected an effect: reads, writes, net, runs or spends");
		return;
	}
	in = calloc(p->r->n_tools + 1, 1);
	for (uint32_t i = 0; in && i < p->r->n_tools; i++)
		in[i] = p->tools[i].effects & e;
	if (in)
		marked(p, &p->set_names, name, in);
	else
		rl_fail_limit(p, p->tok.pos, "no memory");
	free(in);
	rl_next(p);
}

static void read_set(struct parser *p)
{
	const char *name = p->tok.text;

	if (p->tok.kind != TK_NAME) {
		rl_fail(p, p->tok.pos, "expected the name of the set");
		return;
	}
	if (rl_tool_find(p, name) >= 0 || rl_map_find(&p->set_names, name, NULL) || !strcmp(name, "end")) {
		rl_fail(p, p->tok.pos, "the name `%s` is taken; choose another for the set", name);
		return;
	}
	rl_next(p);
	rl_expect(p, '=', "after the set's name");
	if (rl_take_word(p, "effect")) {
		read_effect_set(p, name);
	} else {
		rl_expect(p, '{', "and tools, or `effect` and one of reads, writes, net, runs, spends");
		if (!p->failed)
			read_braces(p, &p->set_names, name);
	}
	rl_expect(p, ';', "after the set");
}

static void rewind_file(struct parser *p)
{
	p->at = p->text;
	p->at_pos = (struct rl_pos){ 1, 1 };
	rl_next(p);
}

void rl_declare(struct parser *p)
{
	uint32_t given = p->r->n_tools;

	for (rewind_file(p); p->tok.kind != TK_END;)
		if (rl_take_word(p, "tool"))
			read_tool(p, given);
		else
			rl_skip_statement(p);
	p->r->tools = p->tools;
	for (rewind_file(p); p->tok.kind != TK_END;)
		if (rl_take_word(p, "set"))
			read_set(p);
		else
			rl_skip_statement(p);
	rewind_file(p);
}
