/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_classify.c - hostile bytes as a command that is classified: reading, the walk and the table together.
 *
 * It says the same twice; what it says is what the effects and reasons say; places are within the text; the work stays within its
 * limit; and a deletion in front makes whatever follows unsafe, so that nothing behind can talk it away. */
#include "base/buf.h"
#include "shell/shell.h"
#include "shell/syntax.h"
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const roots[] = { "/srv/ws", "/tmp", "/usr" };
static const char *const secrets[] = { "*.secret", "/srv/ws/private" };
static const struct sh_policy policies[] = {
	{ .cwd = "/srv/ws", .home = "/home/u" },
	{ .cwd = "/srv/ws", .home = "/home/u", .roots = roots, .n_roots = 3, .secrets = secrets, .n_secrets = 2, .forbid = 1u << SH_EFFECT_NETWORK },
};

static void check(const struct sh_verdict *v, size_t size)
{
	bool more = v->n_reasons > 0, forbidden = false;

	for (size_t i = 0; i < v->n_effects; i++) {
		const struct sh_effect *e = &v->effects[i];

		if (!e->object || !e->by || e->at > size || e->len > size - e->at || e->forbidden != (e->why != NULL))
			abort();
		more |= e->kind != SH_EFFECT_READ;
		forbidden |= e->forbidden;
	}
	for (size_t i = 0; i < v->n_reasons; i++)
		if (!v->reasons[i].text[0] || v->reasons[i].at > size || v->reasons[i].len > size - v->reasons[i].at)
			abort();
	if (!v->parsed && (v->class != SH_UNCERTAIN || !v->n_reasons))
		abort();
	if (v->class != (forbidden ? SH_UNSAFE : more ? SH_UNCERTAIN : SH_SAFE))
		abort();
	/* What was begun when the limit came was finished: that is one step, and no step is as long as all of them. */
	if (v->work > 2 * SHW_WORK || v->n_effects > SHW_EFFECTS || v->n_reasons > SHW_REASONS)
		abort();
}

static void check_same(const struct sh_verdict *a, const struct sh_verdict *b)
{
	if (a->class != b->class || a->n_effects != b->n_effects || a->n_reasons != b->n_reasons || a->work != b->work)
		abort();
	for (size_t i = 0; i < a->n_effects; i++)
		if (a->effects[i].kind != b->effects[i].kind || strcmp(a->effects[i].object, b->effects[i].object) != 0)
			abort();
	for (size_t i = 0; i < a->n_reasons; i++)
		if (strcmp(a->reasons[i].text, b->reasons[i].text) != 0)
			abort();
}

static void check_behind_deletion(const uint8_t *data, size_t size, const struct sh_policy *p)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(SH_TEXT_MAX);
	struct sh_verdict v;

	cs_buf_str(&text, "rm -rf /srv/other\n");
	cs_buf_add(&text, data, size);
	if (text.over)
		return;
	sh_classify(text.data, text.len, p, &v);
	check(&v, text.len);
	if (v.class != (v.parsed ? SH_UNSAFE : SH_UNCERTAIN))
		abort();
	sh_verdict_done(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		struct sh_verdict a, b;

		sh_classify((const char *)data, size, &policies[i], &a);
		sh_classify((const char *)data, size, &policies[i], &b);
		check(&a, size);
		check_same(&a, &b);
		sh_verdict_done(&a);
		sh_verdict_done(&b);
		check_behind_deletion(data, size, &policies[i]);
	}
	return 0;
}
