/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - the verdict. */
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

struct kept {
	struct kept *next;
	struct sh_script *script;
};

/* Scripts within the script, until the end: functions point into them. */
static _Thread_local struct kept *kept_scripts;

const char *sh_class_name(enum sh_class c)
{
	return c == SH_SAFE ? "safe" : c == SH_UNSAFE ? "unsafe" : "uncertain";
}

const char *sh_effect_name(enum sh_effect_kind k)
{
	static const char *const names[] = {
#define X(id, name) [SH_EFFECT_##id] = name,
		SH_EFFECTS(X)
#undef X
	};
	return k < SH_EFFECT_MAX ? names[k] : "?";
}

void script_keep(struct walk *w, struct sh_script *take_script)
{
	struct kept *k = keep_bytes(w->mem, sizeof *k);

	*k = (struct kept){ kept_scripts, take_script };
	kept_scripts = k;
}

static void judge(struct sh_verdict *v)
{
	v->class = v->n_reasons ? SH_UNCERTAIN : SH_SAFE;
	for (size_t i = 0; i < v->n_effects; i++) {
		if (v->effects[i].forbidden)
			v->class = SH_UNSAFE;
		else if (v->effects[i].kind != SH_EFFECT_READ && v->class == SH_SAFE)
			v->class = SH_UNCERTAIN;
	}
	if (!v->parsed)
		v->class = SH_UNCERTAIN;
}

void sh_classify(const char *text, size_t len, const struct sh_policy *p, struct sh_verdict *ret)
{
	struct walk w = { .policy = p, .table = p->table ? p->table : sh_table_builtin(), .v = ret };
	struct state s = { .cwd = p->cwd, .positional_known = true };
	struct sh_script *script = NULL;
	struct cs_err err = { 0 };
	uint32_t at = 0;

	*ret = (struct sh_verdict){ 0 };
	w.mem = memory_new();
	if (sh_parse(text, len, &script, &at, &err) < 0) {
		uncertain(&w, &(struct arg){ .at = at, .len = at < len }, "cannot be read: %s", err.msg);
	} else {
		ret->parsed = ret->complete = true;
		(void)walk_script(&w, &s, script, NULL);
		sh_free(script);
	}
	for (; kept_scripts; kept_scripts = kept_scripts->next)
		sh_free(kept_scripts->script);
	ret->work = w.work + memory_taken(w.mem) / WORK_BYTES;
	memory_free(w.mem);
	judge(ret);
}

void sh_verdict_done(struct sh_verdict *v)
{
	for (size_t i = 0; i < v->n_effects; i++) {
		free(v->effects[i].object);
		free(v->effects[i].by);
	}
	for (size_t i = 0; i < v->n_reasons; i++)
		free(v->reasons[i].text);
	free(v->effects);
	free(v->reasons);
	*v = (struct sh_verdict){ 0 };
}
