/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - from the text of a file to rules that were checked. */
#include "rules/internal.h"
#include "rules/monitor_internal.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)256 << 20)

/* Bytes of the UTF-8 sequence at s, or 0. */
static size_t utf8_at(const unsigned char *s, size_t left)
{
	uint32_t c = s[0];
	size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;

	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] >= 0xa0) || (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

static void check_text(struct parser *p, size_t len)
{
	const unsigned char *s = (const unsigned char *)p->text;
	struct rl_pos pos = { 1, 1 };

	if (len > RL_MAX_TEXT) {
		rl_fail_limit(p, pos, "the file has %zu bytes; the most is %d", len, RL_MAX_TEXT);
		return;
	}
	for (size_t i = 0, n; i < len; i += n) {
		n = s[i] ? utf8_at(s + i, len - i) : 0;
		if (!n) {
			rl_fail(p, pos, "the byte 0x%02x is not UTF-8 text", s[i]);
			return;
		}
		pos.column = s[i] == '\n' ? 1 : pos.column + 1;
		pos.line += s[i] == '\n';
	}
}

static void copy_tools(struct parser *p, const struct rules_tool *tools, size_t n)
{
	struct rl_pos pos = { 1, 1 };

	if (n > RL_MAX_TOOLS) {
		rl_fail_limit(p, pos, "%zu tools; the most is %d", n, RL_MAX_TOOLS);
		return;
	}
	for (uint32_t i = 0; i < n && !p->failed; i++) {
		struct rules_tool *t;
		const char *name = tools[i].name;

		if (rl_tool_find(p, name) >= 0) {
			rl_fail(p, pos, "two tools have the name `%s`; a rule could not tell them apart", rl_escape(p, name));
			return;
		}
		p->tools = rl_grow(p, p->tools, i, sizeof *p->tools);
		if (p->failed)
			return;
		t = &p->tools[i];
		t->name = cs_arena_dup(p->a, name, strlen(name));
		t->input = tools[i].input ? json_copy(p->a, tools[i].input) : NULL;
		t->output = tools[i].output ? json_copy(p->a, tools[i].output) : NULL;
		t->effects = tools[i].effects;
		if (p->a->over) {
			rl_get(p, 1, 1);
			return;
		}
		p->r->n_tools = i + 1;
		rl_map_add(p, &p->tool_names, t->name, i);
	}
	p->r->tools = p->tools;
}

int rules_load(const char *name, const char *text, size_t len, const struct rules_tool *tools, size_t n_tools,
	       struct rules **ret, struct cs_err *err)
{
	struct cs_err unused = { 0 };
	struct parser p = { .name = name, .text = text, .end = text + len, .at = text, .at_pos = { 1, 1 }, .err = err ? err : &unused };
	struct rules *r = cs_new(struct rules);

	r->arena.max = ARENA_MAX;
	p.r = r;
	p.a = &r->arena;
	p.tok.pos = p.at_pos;
	r->name = cs_arena_dup(p.a, name, strlen(name));
	check_text(&p, len);
	if (!p.failed)
		copy_tools(&p, tools, n_tools);
	if (!p.failed)
		rl_parse(&p);
	if (!p.failed)
		rl_check(&p);
	if (!p.failed) {
		r->plan = rl_plan_new(r);
		if (!r->plan)
			rl_fail_limit(&p, p.tok.pos, "the rules need more memory than a monitor's plan may have; use fewer rules or tools");
	}
	if (p.failed) {
		int code = -(int)p.err->code;

		rules_free(r);
		return code;
	}
	*ret = r;
	return 0;
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	rl_plan_free(r->plan);
	cs_arena_done(&r->arena);
	free(r);
}

size_t rules_warnings(const struct rules *r, const struct rules_warning **ret)
{
	*ret = r->warnings;
	return r->n_warnings;
}

void rules_set_parts(struct rules *r, const struct rules_part *parts, size_t n)
{
	struct rules_part *copy = cs_arena_get(&r->arena, n + 1, sizeof *copy);

	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = parts[i];
		copy[i].name = cs_arena_dup(&r->arena, parts[i].name, strlen(parts[i].name));
		if (!copy[i].name)
			return;
	}
	r->parts = copy;
	r->n_parts = copy ? n : 0;
}

const char *rules_place(const struct rules *r, uint32_t line, uint32_t *ret_line)
{
	const struct rules_part *in = NULL;

	for (size_t i = 0; i < r->n_parts; i++)
		if (r->parts[i].from <= line)
			in = &r->parts[i];
	if (ret_line)
		*ret_line = in ? line - in->from + in->first : line;
	return in ? in->name : r->name;
}

/* Tools are few and this is asked once per call: no index. */
int rules_tool_index(const struct rules *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_tools; i++)
		if (!strcmp(r->tools[i].name, name))
			return (int)i;
	return -1;
}

size_t rules_tool_count(const struct rules *r)
{
	return r->n_tools;
}

static bool is_about(const struct rl_rule *rule, int index)
{
	const struct rl_tools *t = rule->call ? &rule->call->tools : NULL;

	for (uint32_t k = 0; t && k < t->n; k++)
		if ((int)t->ids[k] == index)
			return true;
	return false;
}

bool rules_tool_mentioned(const struct rules *r, int index)
{
	for (uint32_t i = 0; i < r->n_rules; i++)
		if (is_about(&r->rules[i], index))
			return true;
	return false;
}

bool rules_tool_allowable(const struct rules *r, int index)
{
	for (uint32_t i = 0; i < r->n_rules; i++)
		if (r->rules[i].verb == RULES_ALLOW && is_about(&r->rules[i], index))
			return true;
	return false;
}

const char *rules_tool_name(const struct rules *r, size_t index)
{
	return index < r->n_tools ? r->tools[index].name : NULL;
}

enum rules_verdict rules_fallback(const struct rules *r, enum rules_verdict otherwise)
{
	return r->has_fallback ? r->fallback : otherwise;
}
