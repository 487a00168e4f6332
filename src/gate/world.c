/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - what rules ask of the gate: provenance, shell classes, session state. */
#include "gate/internal.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

static const struct json *boolean(struct cs_arena *a, bool b)
{
	struct json *v = cs_arena_new(a, struct json);

	if (v) {
		v->type = JSON_BOOL;
		v->b = b;
	}
	return v;
}

static const struct json *words(struct cs_arena *a, const char *const *list, size_t n)
{
	struct json *v = cs_arena_new(a, struct json), *items = cs_arena_get(a, n, sizeof *items);

	if (!v || !items)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct json *s = json_new_str(a, list[i], strlen(list[i]));

		if (!s)
			return NULL;
		items[i] = *s;
	}
	v->type = JSON_ARRAY;
	v->n = (uint32_t)n;
	v->items = items;
	return v;
}

/* session.NAME; docs/gates.md has the list. */
static const struct json *session(void *ctx, struct cs_arena *a, const char *name)
{
	struct gate *g = ctx;

	if (!strcmp(name, "untrusted"))
		return boolean(a, g->untrusted);
	if (!strcmp(name, "sensitive"))
		return boolean(a, g->sensitive);
	if (!strcmp(name, "secret"))
		return boolean(a, g->secret);
	if (!strcmp(name, "planned"))
		return boolean(a, g->plan != NULL);
	if (!strcmp(name, "suspicion"))
		return json_new_int(a, g->suspicion);
	if (!strcmp(name, "role"))
		return g->role ? json_new_str(a, g->role, strlen(g->role)) : NULL;
	if (!strcmp(name, "agent"))
		return g->agent ? json_new_str(a, g->agent, strlen(g->agent)) : NULL;
	if (!strcmp(name, "workspace"))
		return json_new_str(a, g->policy->shell.workspace, strlen(g->policy->shell.workspace));
	return NULL;
}

static const struct json *from(void *ctx, struct cs_arena *a, const struct json *value)
{
	struct gate *g = ctx;
	const char *name = origin_name(origin_of(g->origin, value, g->tool ? g->tool->input_doc : NULL, NULL));

	return words(a, &name, 1);
}

static const struct json *shell(void *ctx, struct cs_arena *a, const struct json *command)
{
	struct gate *g = ctx;
	const char *name;

	if (!json_str(command))
		return NULL;
	name = sh_class_name(gate_classify(g, command)->class);
	return json_new_str(a, name, strlen(name));
}

static enum sh_effect_kind kind_of(const char *effect)
{
	static const struct {
		const char *name;
		enum sh_effect_kind kind;
	} kinds[] = { { "reads", SH_EFFECT_READ }, { "writes", SH_EFFECT_WRITE }, { "deletes", SH_EFFECT_DELETE },
		      { "hosts", SH_EFFECT_NETWORK }, { "runs", SH_EFFECT_EXECUTE } };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, effect))
			return kinds[i].kind;
	return SH_EFFECT_MAX;
}

/* The host of "https://user@host:port/path", of "host:path" and of "host". */
static const char *host_of(struct cs_arena *a, const char *object)
{
	const char *s = strstr(object, "://"), *at;
	size_t n;

	s = s ? s + 3 : object;
	at = memrchr(s, '@', strcspn(s, "/?#"));
	if (at)
		s = at + 1;
	if (*s == '[')
		n = strcspn(s, "]") + 1;
	else
		n = strcspn(s, ":/?#");
	return cs_arena_dup(a, s, n);
}

/* The command that is said to do such a thing to nothing in particular has said elsewhere what it does it to. */
static bool named_by(const struct sh_verdict *v, enum sh_effect_kind kind, const char *by)
{
	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].kind == kind && v->effects[i].object[0] && !strcmp(v->effects[i].by, by))
			return true;
	return false;
}

/* The objects of such effects. A command that was not wholly understood may have others: that is unknown. */
static const struct json *shell_effect(void *ctx, struct cs_arena *a, const char *effect, const struct json *command)
{
	struct gate *g = ctx;
	const struct sh_verdict *v;
	enum sh_effect_kind kind = kind_of(effect);
	const char **list;
	size_t n = 0;

	if (!json_str(command) || kind == SH_EFFECT_MAX)
		return NULL;
	v = gate_classify(g, command);
	list = cs_arena_get(a, v->n_effects + 1, sizeof *list);
	if (!list || !v->parsed || !v->complete)
		return NULL;
	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];

		if (e->kind != kind)
			continue;
		if (!e->object[0] && !named_by(v, kind, e->by))
			return NULL;
		if (!e->object[0])
			continue;
		list[n] = kind == SH_EFFECT_NETWORK ? host_of(a, e->object) : e->object;
		if (!list[n++])
			return NULL;
	}
	return words(a, list, n);
}

/* One command is looked at by many rules: the last verdict is kept. */
const struct sh_verdict *gate_classify(struct gate *g, const struct json *command)
{
	if (g->shell_text && !strcmp(g->shell_text, command->s))
		return &g->shell_verdict;
	gate_classify_done(g);
	g->shell_text = cs_strndup(command->s, command->n);
	if (g->options.classify)
		g->options.classify(g->options.classify_ctx, g->shell_text, command->n, &g->shell_verdict);
	else
		sh_classify(g->shell_text, command->n, &g->policy->shell, &g->shell_verdict);
	return &g->shell_verdict;
}

void gate_classify_done(struct gate *g)
{
	if (!g->shell_text)
		return;
	sh_verdict_done(&g->shell_verdict);
	memset(&g->shell_verdict, 0, sizeof g->shell_verdict);
	free(g->shell_text);
	g->shell_text = NULL;
}

void world_init(struct gate *g)
{
	g->world = (struct rules_world){ .ctx = g, .session = session, .from = from, .shell = shell, .shell_effect = shell_effect };
}
