/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - what is held back at a commit unless it is allowed by name.
 *
 * Each thing here would let a program act later, outside its sandbox, through
 * somebody else's hands: a hook that git runs, a link that leads a backup out of
 * the workspace, a bit that makes a file run as its owner.
 */
#include "txn/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

const char *txn_hold_text(enum txn_hold h)
{
	static const char *const text[] = {
		[TXN_FREE] = "",
#define X(id, t) [TXN_##id] = t,
		TXN_HOLDS(X)
#undef X
	};
	return text[h];
}

const char *txn_conflict_text(enum txn_conflict c)
{
	static const char *const text[] = {
		[TXN_CLEAN] = "",
#define X(id, t) [TXN_##id] = t,
		TXN_CONFLICTS(X)
#undef X
	};
	return text[c];
}

bool txn_hold_can_allow(enum txn_hold h)
{
	return h != TXN_SPECIAL && h != TXN_RESERVED;
}

/* ---- names ---- */

/* One component of a pattern against one of a path; case does not count, since it does not on
 * every file system that the tree may be copied to. */
static bool component(const char *pattern, size_t p_len, const char *name, size_t n_len)
{
	char p[256], n[256];

	if (p_len >= sizeof p || n_len >= sizeof n)
		return false;
	for (size_t i = 0; i < p_len; i++)
		p[i] = (char)tolower((unsigned char)pattern[i]);
	for (size_t i = 0; i < n_len; i++)
		n[i] = (char)tolower((unsigned char)name[i]);
	p[p_len] = n[n_len] = 0;
	return cs_glob(p, n);
}

static size_t word(const char *s)
{
	return strcspn(s, "/");
}

/* Nearly every name is turned away by its first letter. */
static bool may_match(const char *pattern, const char *name)
{
	return strchr("*?[\\", *pattern) || tolower((unsigned char)*pattern) == tolower((unsigned char)*name);
}

/* All of the pattern from here on; the path may go on beneath. */
static bool matches_here(const char *pattern, const char *path)
{
	while (*pattern) {
		size_t p, n;

		if (!may_match(pattern, path))
			return false;
		p = word(pattern), n = word(path);
		if (!n || !component(pattern, p, path, n))
			return false;
		pattern += p + (pattern[p] == '/');
		path += n + (path[n] == '/');
	}
	return true;
}

static bool matches(const char *pattern, const char *path)
{
	if (*pattern == '/')
		return matches_here(pattern + 1, path);
	for (;;) {
		if (matches_here(pattern, path))
			return true;
		path += word(path);
		if (!*path++)
			return false;
	}
}

bool judge_matches(const struct cs_strv *patterns, const char *path)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (matches(patterns->v[i], path))
			return true;
	return false;
}

static bool is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	return !n || (!strncmp(path, dir, n) && (path[n] == 0 || path[n] == '/'));
}

bool judge_listed(const struct cs_strv *paths, const char *path)
{
	for (size_t i = 0; i < paths->n; i++)
		if (is_beneath(path, paths->v[i]))
			return true;
	return false;
}

static bool is_protected(const struct txn *t, const char *path)
{
	return judge_matches(&t->about.protect, path) && !judge_matches(&t->about.allow, path);
}

/* Hidden itself, in something hidden, or, when a whole directory goes, holding something hidden. */
static bool touches_hidden(const struct txn *t, const char *path, bool whole)
{
	for (size_t i = 0; i < t->about.hidden.n; i++)
		if (is_beneath(path, t->about.hidden.v[i]) || (whole && is_beneath(t->about.hidden.v[i], path)))
			return true;
	return false;
}

/* ---- symlinks ---- */

/* Does "target", seen from the directory that holds "path", stay in the workspace?  By its words
 * alone: what the directories on its way are may change.  A ".." after a name is the parent of what
 * the name stands for, and that may be a link: only those at the front say where they lead. */
static bool leads_out(const struct txn *t, const char *path, const char *target)
{
	bool named = false;
	long depth = 0;

	if (*target == '/')
		return !is_beneath(target, t->about.workspace) || strstr(target, "/..");
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	while (*target) {
		size_t n = word(target);

		if (n == 2 && !strncmp(target, "..", 2))
			depth--;
		else if (n && !(n == 1 && *target == '.'))
			named = true;
		if (depth < 0 || (named && n == 2 && !strncmp(target, "..", 2)))
			return true;
		target += n + (target[n] == '/');
	}
	return false;
}

static bool link_leads_out(const struct txn *t, const struct txn_change *c)
{
	char target[PATH_MAX];
	ssize_t n = txn_link_new(t, c, target, sizeof target - 1);

	if (n < 0)
		return true;
	target[n] = 0;
	return leads_out(t, c->path, target);
}

/* ---- attributes ---- */

static enum txn_hold held_for_attrs(unsigned attrs)
{
	if (attrs & ATTR_CAPS)
		return TXN_CAPS;
	return attrs & (ATTR_POSES | ATTR_MANY) ? TXN_OVERLAY : TXN_FREE; /* what cannot be read cannot be moved either */
}

/* A directory takes its parent's set-group-id bit by itself; nothing else may appear. */
static bool gains_setid(const struct txn_change *c)
{
	mode_t bits = c->new.mode & (S_ISUID | S_ISGID);

	if (S_ISDIR(c->new.mode))
		bits &= S_ISUID;
	if (c->kind == TXN_CHANGED && !(c->differs & (TXN_CONTENT | TXN_OWNER)))
		bits &= ~c->old.mode;
	return bits != 0;
}

static bool is_special(mode_t m)
{
	return S_ISCHR(m) || S_ISBLK(m) || S_ISFIFO(m) || S_ISSOCK(m);
}

/* ---- one change ---- */

/* A renamed directory brings names that the list does not show. */
static bool brings_protected(const struct txn *t, int dir, const char *as, unsigned depth)
{
	struct cs_strv names = { 0 };
	bool found = depth > TXN_DEPTH_MAX || scan_names(dir, &names) < 0;

	for (size_t i = 0; !found && i < names.n; i++) {
		CS_FREE char *path = cs_printf("%s/%s", as, names.v[i]);
		CS_FD int sub = openat(dir, names.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		found = is_protected(t, path) || (sub >= 0 && brings_protected(t, sub, path, depth + 1));
	}
	cs_strv_done(&names);
	return found;
}

/* A link of the base that stayed in the workspace where it was, and leads out where it is now. */
static bool brings_link_out(const struct txn *t, int dir, const char *was, const char *as, unsigned depth)
{
	struct cs_strv names = { 0 };
	bool found = depth > TXN_DEPTH_MAX || scan_names(dir, &names) < 0;

	for (size_t i = 0; !found && i < names.n; i++) {
		CS_FREE char *old = cs_printf("%s/%s", was, names.v[i]), *new = cs_printf("%s/%s", as, names.v[i]), *target = cs_calloc(1, PATH_MAX);
		CS_FD int sub = openat(dir, names.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (sub >= 0)
			found = brings_link_out(t, sub, old, new, depth + 1);
		else if (readlinkat(dir, names.v[i], target, PATH_MAX - 1) > 0)
			found = leads_out(t, new, target) && !leads_out(t, old, target);
	}
	cs_strv_done(&names);
	return found;
}

static bool moves_link_out(const struct txn *t, const struct txn_change *c)
{
	CS_FD int dir = act_open_dir(t->ws, c->from);

	return dir >= 0 && brings_link_out(t, dir, c->from, c->path, 0);
}

static bool moves_protected(const struct txn *t, const struct txn_change *c)
{
	CS_FD int dir = act_open_dir(t->ws, c->from);

	return is_protected(t, c->from) || dir < 0 || brings_protected(t, dir, c->path, 0) || brings_protected(t, dir, c->from, 0);
}

/* .git as a file or a link names the directory whose hooks and settings git obeys. */
static bool points_git_elsewhere(const struct txn_change *c)
{
	const char *slash = strrchr(c->path, '/');

	return !strcasecmp(slash ? slash + 1 : c->path, ".git") && c->new.mode && !S_ISDIR(c->new.mode);
}

static enum txn_hold judge(const struct txn *t, const struct txn_change *c)
{
	bool times_only = c->kind == TXN_CHANGED && S_ISDIR(c->new.mode) && !(c->differs & ~(unsigned)TXN_TIMES);

	if (is_beneath(c->path, ".caisson"))
		return TXN_RESERVED;
	if (is_special(c->new.mode))
		return TXN_SPECIAL;
	if (times_only)
		return TXN_FREE;
	if (is_protected(t, c->path) || points_git_elsewhere(c) || (c->kind == TXN_RENAMED && moves_protected(t, c)))
		return TXN_PROTECTED;
	if (touches_hidden(t, c->path, c->kind == TXN_DELETED || c->kind == TXN_TYPE) || (c->from && touches_hidden(t, c->from, true)))
		return TXN_HIDDEN;
	if (c->kind == TXN_DELETED)
		return TXN_FREE;
	if (gains_setid(c))
		return TXN_SETID;
	if ((S_ISLNK(c->new.mode) && link_leads_out(t, c)) || (c->kind == TXN_RENAMED && moves_link_out(t, c)))
		return TXN_LINK_OUT;
	return held_for_attrs(c->attrs);
}

void judge_holds(const struct txn *t, struct txn_changes *c)
{
	c->held = 0;
	for (size_t i = 0; i < c->n; i++) {
		c->v[i].hold = judge(t, &c->v[i]);
		c->held += c->v[i].hold != TXN_FREE;
	}
}
