/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - verdicts for programs: JSON in, JSON out. */
#include "act/act.h"

#include "base/arena.h"
#include "json/json.h"

void act_verdict_json(struct cs_json *j, const struct sh_verdict *v)
{
	cs_json_array(j, "effects");
	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];

		cs_json_object(j, NULL);
		cs_json_str(j, "effect", sh_effect_name(e->kind));
		cs_json_str(j, "object", e->object[0] ? e->object : NULL);
		cs_json_str(j, "by", e->by);
		cs_json_bool(j, "forbidden", e->forbidden);
		cs_json_str(j, "why", e->why);
		cs_json_u64(j, "at", e->at);
		cs_json_u64(j, "length", e->len);
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
	cs_json_array(j, "because");
	for (size_t i = 0; i < v->n_effects; i++)
		if (v->effects[i].forbidden)
			cs_json_str(j, NULL, v->effects[i].why);
	for (size_t i = 0; i < v->n_reasons; i++)
		cs_json_str(j, NULL, v->reasons[i].text);
	cs_json_end(j, ']');
}

void act_verdict_write(const struct sh_verdict *v, const char *text, bool pretty, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, pretty);
	cs_json_object(&j, NULL);
	if (text)
		cs_json_str(&j, "command", text);
	cs_json_str(&j, "class", sh_class_name(v->class));
	act_verdict_json(&j, v);
	cs_json_end(&j, '}');
}

int act_classify_line(struct act_policy *p, const char *line, size_t len, struct cs_buf *out, struct cs_err *err)
{
	struct cs_arena a CS_ARENA_AUTO = CS_ARENA(ACT_LINE_MAX + 4096);
	const struct json *v = NULL;
	struct sh_verdict verdict;
	int r = json_read(&a, line, len, /* limits= */ NULL, &v, err);

	if (r < 0)
		return r;
	if (!json_is(v, JSON_STRING))
		return cs_fail(err, CS_E_INVALID, 0, "this is %s %s", json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT) ? "an" : "a", json_type_name((enum json_type)v->type));
	act_classify(p, v->s, v->n, &verdict);
	act_verdict_write(&verdict, NULL, /* pretty= */ false, out);
	sh_verdict_done(&verdict);
	return 0;
}
