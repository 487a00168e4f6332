/* SPDX-License-Identifier: Apache-2.0 */
/* effect.c - from a role and a word to an effect, and whether it is forbidden. */
#include "shell/places.h"
#include "shell/walk.h"

#include "base/text.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_reason(struct walk *w, const struct arg *a, const char *fmt, va_list ap)
{
	struct sh_verdict *v = w->v;
	char text[256], shown[300];
	uint32_t hash;

	w->work += 2; /* not work(): that would say so here */
	if (v->n_reasons == SHW_REASONS)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	hash = hash_text(0, text);
	for (size_t i = 0; i < v->n_reasons; i++)
		if (w->reason_hash[i] == hash) /* two that look alike to it: one is enough to be uncertain */
			return;
	cs_escape_to(shown, sizeof shown, text);
	if (v->n_reasons == w->room_reasons)
		v->reasons = cs_grow(v->reasons, &w->room_reasons, sizeof *v->reasons);
	w->reason_hash[v->n_reasons] = hash;
	v->reasons[v->n_reasons++] = (struct sh_reason){ .text = cs_strdup(shown), .at = a ? a->at : 0, .len = a ? a->len : 0 };
}

void uncertain(struct walk *w, const struct arg *a, const char *fmt, ...)
{
	va_list ap;

	w->v->complete = false;
	va_start(ap, fmt);
	add_reason(w, a, fmt, ap);
	va_end(ap);
}

void acts(struct walk *w, const struct arg *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_reason(w, a, fmt, ap);
	va_end(ap);
}

void effect_add(struct walk *w, enum sh_effect_kind kind, const char *object, const char *by, const struct arg *a, const char *forbidden)
{
	struct sh_verdict *v = w->v;
	uint32_t hash;

	work(w, 2);
	if (!forbidden && w->policy->forbid & 1u << kind)
		forbidden = "the policy forbids it";
	hash = hash_text((uint32_t)kind << 1 | (forbidden != NULL), object);
	for (size_t i = 0; i < v->n_effects; i++)
		if (w->effect_hash[i] == hash && v->effects[i].kind == kind && !strcmp(v->effects[i].object, object) && v->effects[i].forbidden == (forbidden != NULL))
			return;
	if (v->n_effects == SHW_EFFECTS) {
		uncertain(w, a, "more than %d effects", SHW_EFFECTS);
		if (!forbidden)
			return;
		v->n_effects--; /* one that counts takes the place of one that does not */
		free(v->effects[v->n_effects].object);
		free(v->effects[v->n_effects].by);
	}
	if (v->n_effects == w->room_effects)
		v->effects = cs_grow(v->effects, &w->room_effects, sizeof *v->effects);
	w->effect_hash[v->n_effects] = hash;
	v->effects[v->n_effects++] = (struct sh_effect){ .kind = kind, .object = cs_strdup(object), .by = cs_strdup(by), .at = a ? a->at : 0,
							 .len = a ? a->len : 0, .forbidden = forbidden != NULL, .why = forbidden };
}

/* ---- paths ---- */

const char *path_resolve(struct walk *w, const struct state *s, const char *path)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(8192);
	const char *parts[2] = { *path == '/' ? "" : s->cwd, path };

	if (*path != '/' && !s->cwd)
		return NULL;
	work(w, 2 + strlen(path) / 16);
	for (int i = 0; i < 2; i++) {
		for (const char *c = parts[i]; *c;) {
			size_t n = strcspn(c, "/");

			if (n == 2 && c[0] == '.' && c[1] == '.') {
				while (out.len && out.data[out.len - 1] != '/')
					out.len--;
				if (out.len)
					out.len--;
				if (out.data)
					out.data[out.len] = 0;
			} else if (n && !(n == 1 && *c == '.')) {
				cs_buf_char(&out, '/');
				cs_buf_add(&out, c, n);
			}
			c += n + (c[n] == '/');
		}
	}
	if (out.over)
		return NULL;
	/* Another way to the same root. */
	if (!strncmp(cs_buf_text(&out), "/proc/self/root", 15) && (out.data[15] == '/' || !out.data[15]))
		return keep_text(w->mem, out.data[15] ? out.data + 15 : "/", out.data[15] ? out.len - 15 : 1);
	return keep_text(w->mem, out.len ? cs_buf_text(&out) : "/", out.len ? out.len : 1);
}

static bool is_harmless_device(const char *path)
{
	static const char *const ok[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random",
					  "/dev/urandom" };

	for (size_t i = 0; i < sizeof ok / sizeof *ok; i++)
		if (!strcmp(path, ok[i]))
			return true;
	/* 63.N is a process substitution's (expand.c); others could be open on anything. */
	return !strncmp(path, "/dev/fd/63.", 11) || !strcmp(path, "/dev/fd/0") || !strcmp(path, "/dev/fd/1") || !strcmp(path, "/dev/fd/2");
}

/* Commands that show names, sizes and times of files, and nothing of what they hold. */
static bool only_lists(const char *by)
{
	static const char *const names[] = { "ls", "dir", "vdir", "find", "stat", "du", "df", "tree", "test", "[", "readlink", "realpath", "wc", "file", "lsattr", "getfacl", "namei", "locate" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(by, names[i]))
			return true;
	return false;
}

static bool is_secret(const struct walk *w, const char *path, bool pattern)
{
	const char *base = strrchr(path, '/');

	if (sh_is_secret(path, pattern))
		return true;
	for (size_t i = 0; i < w->policy->n_secrets; i++) {
		const char *p = w->policy->secrets[i];

		if (*p == '/' ? sh_within(path, p) : !strchr(p, '/') && base && (cs_glob(p, base + 1) || (pattern && fnmatch(base + 1, p, FNM_PERIOD) == 0)))
			return true;
	}
	return false;
}

/* A tree that would be gone through holds secrets if one could lie in it. */
static bool holds_secrets(const struct walk *w, const char *path)
{
	static const char *const places[] = { "/etc/shadow", "/root", "/home", "/proc", "/run/secrets" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (sh_within(places[i], path) || sh_within(path, "/proc"))
			return true;
	return w->policy->home && sh_within(w->policy->home, path);
}

static bool may_read(const struct walk *w, const char *path)
{
	if (!w->policy->roots)
		return true;
	for (size_t i = 0; i < w->policy->n_roots; i++)
		if (sh_within(path, w->policy->roots[i]))
			return true;
	return false;
}

static bool is_own(const struct walk *w, const char *path)
{
	for (size_t i = 0; i < w->policy->n_own; i++)
		if (sh_within(path, w->policy->own[i]))
			return true;
	return false;
}

static bool is_scratch(const struct walk *w, const char *path)
{
	const char *ws = w->policy->workspace ? w->policy->workspace : w->policy->cwd;

	return (ws && sh_within(path, ws) && strcmp(ws, "/")) || (sh_within(path, "/tmp") && strcmp(path, "/tmp")) ||
	       (sh_within(path, "/var/tmp") && strcmp(path, "/var/tmp")) || (sh_within(path, "/dev/shm") && strcmp(path, "/dev/shm"));
}

static bool is_endless(const char *path)
{
	return !strcmp(path, "/dev/zero") || !strcmp(path, "/dev/full") || !strcmp(path, "/dev/random") || !strcmp(path, "/dev/urandom");
}

static void effect_read(struct walk *w, const struct arg *a, const char *path, const char *by, bool tree, bool pattern)
{
	if (pattern) /* it is matched against the names of all secrets */
		work(w, 16 + strlen(path) / 2);
	if (is_endless(path) && strcmp(by, "head"))
		uncertain(w, a, "%s does not end", path);
	if (is_harmless_device(path))
		return;
	if (!strncmp(path, "/inet", 5) && (strstr(by, "awk"))) { /* gawk's own: no file */
		effect_add(w, SH_EFFECT_NETWORK, path, by, a, NULL);
		uncertain(w, a, "%s is a connection over the network", path);
	}
	if (is_secret(w, path, false) && only_lists(by)) {
		effect_add(w, SH_EFFECT_READ, path, by, a, NULL);
		uncertain(w, a, "%s is where secrets are", path);
		return;
	}
	if (is_secret(w, path, false)) {
		effect_add(w, SH_EFFECT_SECRET, path, by, a, "secrets may not be read");
		return;
	}
	if (sh_within(path, "/dev") && strcmp(path, "/dev"))
		effect_add(w, SH_EFFECT_DEVICE, path, by, a, NULL), uncertain(w, a, "%s is a device", path);
	effect_add(w, SH_EFFECT_READ, path, by, a, NULL);
	if (!may_read(w, path))
		uncertain(w, a, "%s is outside of what may be read", path);
	if (tree && !only_lists(by))
		uncertain(w, a, "secrets can lie below %s", path);
	/* A pattern stands for names that nobody has seen; a name that begins with a dot needs a dot. */
	if (pattern && !only_lists(by) && (is_secret(w, path, true) || strstr(path, "/.")))
		uncertain(w, a, "secrets can be among %s", path);
}

void effect_change(struct walk *w, enum sh_effect_kind kind, const struct arg *a, const char *path, const char *by)
{
	const char *why = NULL;

	if (is_harmless_device(path) && kind == SH_EFFECT_WRITE)
		return;
	if (is_own(w, path))
		why = "the policy's own files may not be changed";
	else if (sh_within(path, "/dev") && !sh_within(path, "/dev/shm"))
		kind = SH_EFFECT_DEVICE, why = "devices may not be written";
	else if (kind == SH_EFFECT_WRITE && sh_is_persistent(path))
		kind = SH_EFFECT_PERSISTENCE, why = "what others run or obey by themselves may not be changed";
	else if (sh_within(path, "/proc") || sh_within(path, "/sys"))
		kind = SH_EFFECT_SYSTEM, why = "the kernel's settings may not be changed";
	else if (!is_scratch(w, path) && kind == SH_EFFECT_DELETE)
		why = "nothing outside of the workspace may be deleted";
	else if (!is_scratch(w, path))
		why = "nothing outside of the workspace may be written";
	effect_add(w, kind, path, by, a, why);
	if (!why)
		acts(w, a, kind == SH_EFFECT_DELETE ? "deletes %s" : "writes %s", path);
}

void effect_path(struct walk *w, struct state *s, enum sh_effect_kind kind, const struct arg *a, const char *text, const char *by, bool tree)
{
	const char *path = text && *text ? path_resolve(w, s, text) : NULL;

	if (w->policy->look && !w->looking) {
		effect_really(w, s, kind, a, text, by, tree);
		return;
	}
	if (a->known == SH_DYNAMIC || !path) {
		effect_add(w, kind, "", by, a, NULL);
		uncertain(w, a, a->known == SH_DYNAMIC ? "%s: which file is meant is not known here" : "%s: the working directory is not known here", by);
		return;
	}
	if (s->also && *text != '/' && kind == SH_EFFECT_READ) { /* if cd failed */
		struct state there = *s;
		const char *other;

		there.cwd = *s->also ? s->also : NULL;
		other = path_resolve(w, &there, text);
		if (!other || is_secret(w, other, a->known == SH_PATTERN) || (tree && holds_secrets(w, other)))
			uncertain(w, a, "%s: if cd fails, this is another file", by);
	}
	if (a->followed)
		uncertain(w, a, "%s: %s comes through a variable or a substitution", by, path);
	if (a->known == SH_PREFIX || (a->known == SH_PATTERN && strpbrk(path, "*?["))) {
		/* What is certain is the directory that it lies in: a forbidden one stays forbidden. */
		char *dir = keep_text(w->mem, path, strcspn(path, "*?["));
		char *slash = strrchr(dir, '/');
		bool covers = kind == SH_EFFECT_DELETE || kind == SH_EFFECT_WRITE;

		if (a->known == SH_PREFIX)
			uncertain(w, a, "%s: the end of the name is not known here", by);
		if (!covers) {
			effect_read(w, a, path, by, tree, true);
			return;
		}
		if (slash)
			slash[slash == dir] = 0;
	}
	if (kind == SH_EFFECT_READ)
		effect_read(w, a, path, by, tree, false);
	else
		effect_change(w, kind, a, path, by);
}
