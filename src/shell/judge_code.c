/* SPDX-License-Identifier: Apache-2.0 */
/* judge_code.c - programs in other languages among the words of a command. */
#include "shell/walk.h"

#include <string.h>

/* Programs in other languages: what is plainly there can be told; that nothing is cannot. */
void judge_code(struct walk *w, struct state *s, const struct arg *a, const struct sh_finding *f, const char *by)
{
	static const char *const deletes[] = { "rmtree", "unlink", "os.remove", "rmdir", "rmSync", "rm(", "unlinkSync", "rimraf", "File.delete", "FileUtils.rm", "remove(" };
	static const char *const runs[] = { "system", "exec", "popen", "spawn", "subprocess", "child_process", "qx", "`", "| \"", "|\"", "|&" };
	bool deleting = false, running = false;
	const char *path = NULL;

	effect_add(w, SH_EFFECT_EXECUTE, keep_printf(w->mem, "%s code", f->lang ? f->lang : "other"), by, a, NULL);
	uncertain(w, a, "%s: a program in %s is not looked into for a proof", by, f->lang ? f->lang : "another language");
	if (f->known != SH_LITERAL || !f->text)
		return;
	work(w, strlen(f->text) / 8);
	for (size_t i = 0; i < sizeof deletes / sizeof *deletes; i++)
		deleting |= strstr(f->text, deletes[i]) != NULL;
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		running |= strstr(f->text, runs[i]) != NULL;
	/* The constants in quotes that it names. */
	for (const char *c = f->text; !spent(w) && (c = strpbrk(c, "'\"")) && *c; c++) {
		size_t n = strcspn(c + 1, (char[]){ *c, 0 });
		char *word = keep_text(w->mem, c + 1, n);

		if (deleting && *word == '/' && (path = path_resolve(w, s, word)))
			effect_change(w, SH_EFFECT_DELETE, a, path, by);
		if (running && n > 2) {
			struct state sub = state_copy(w, s);

			(void)walk_text(w, &sub, word, n, a->at, a->len, NULL);
		}
		if (!c[1 + n])
			break;
		c += n + 1;
	}
}

/* sed, awk and jq are small enough to be read: true if this is one of them, and all that it does has been told. */
bool judge_small_code(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct arg *at,
			     const struct value *in)
{
	static const struct {
		const char *lang;
		enum sh_code_verdict (*judge)(const char *script, size_t arg, struct sh_findings *ret);
	} of[] = { { "sed", sh_sed_judge }, { "awk", sh_awk_judge }, { "jq", sh_jq_judge } };
	struct sh_findings found = { 0 };
	enum sh_code_verdict verdict = SH_CODE_UNKNOWN;
	size_t i = 0;

	if (!f->lang || f->known != SH_LITERAL || !f->text)
		return false;
	while (i < sizeof of / sizeof *of && strcmp(of[i].lang, f->lang))
		i++;
	if (i == sizeof of / sizeof *of)
		return false;
	work(w, strlen(f->text) / 8);
	verdict = of[i].judge(f->text, f->arg, &found);
	if (strstr(f->text, strcmp(f->lang, "jq") ? "ENVIRON" : "env") || (!strcmp(f->lang, "jq") && strstr(f->text, "ENV")))
		uncertain(w, at, "a program in %s that sees the environment, which may hold secrets", f->lang);
	for (size_t k = 0; k < found.n && !spent(w); k++)
		judge_role(w, s, a, first, &found.v[k], in);
	if (at->followed && verdict != SH_CODE_HARMLESS)
		uncertain(w, at, "a program in %s comes through a variable or a substitution", f->lang);
	if (verdict == SH_CODE_EXECUTES || verdict == SH_CODE_UNKNOWN) {
		struct state sub = state_copy(w, s);

		uncertain(w, at, verdict == SH_CODE_UNKNOWN ? "a program in %s that cannot be read" : "a program in %s that runs commands", f->lang);
		/* sed's `e` without a command runs the line itself. */
		if (verdict == SH_CODE_EXECUTES && !strcmp(f->lang, "sed") && in && in->known && !in->packed)
			(void)walk_text(w, &sub, in->text, in->len, at->at, at->len, NULL);
		/* ... and s///e what has been put in. */
		if (verdict == SH_CODE_EXECUTES && !strcmp(f->lang, "sed") && *f->text == 's' && f->text[1]) {
			struct cs_buf with CS_BUF_AUTO = CS_BUF(SHW_VALUE_MAX);
			const char *c = f->text + 2;

			for (; *c && *c != f->text[1]; c++)
				c += *c == '\\' && c[1];
			for (c += *c != 0; *c && *c != f->text[1]; c++) {
				c += *c == '\\' && c[1];
				cs_buf_char(&with, *c);
			}
			(void)walk_text(w, &sub, cs_buf_text(&with), with.len, at->at, at->len, NULL);
		}
		judge_code(w, s, at, f, f->lang);
	}
	sh_findings_done(&found);
	return true;
}
