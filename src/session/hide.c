/* SPDX-License-Identifier: Apache-2.0 */
/* hide.c - finding the secrets that lie about in a workspace.
 *
 * Patterns without a slash match any name at any depth, patterns with one match
 * from the workspace's root, "except:" takes names out again.  The walk is the
 * one part of a start whose cost grows with what exists, so it is bounded, does
 * not enter directories that hold other people's code by the ten thousand, and
 * says so when it gave up.  Unix sockets are hidden too, whatever their name.
 * What a long search found is written down, and holds until a directory changes.
 */
#include "session/session.h"
#include "session/known.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { ENTRIES_MAX = 20000, DEPTH_MAX = 8, HIDDEN_MAX = 1000, SKIPPED_MAX = 2000, LONG = 500 };

static const char *const skipped[] = { "node_modules", ".git", ".hg", ".venv", "venv", "site-packages", "target", "__pycache__", "vendor" };

/* Patterns sorted by what a name must look like to match at all: nearly every name is turned
 * away by its first letter and its extension, without one comparison of a pattern. */
struct matcher {
	const struct cs_strv *patterns;
	bool first[256];          /* a plain or prefix pattern starts with this byte */
	const char *suffix[64];   /* of "*.pem": ".pem" */
	size_t n_suffix;
	bool hard;                /* some pattern starts with ? or [, or * in another way */
};

struct search {
	const char *root;
	struct matcher m;
	struct cs_strv *ret;
	unsigned entries, seen; /* seen: in all */
	struct known known;
	bool partly;
	bool second;     /* in what was skipped at first */
	struct cs_strv skipped; /* relative paths */
	char path[4096]; /* relative to root */
};

/* A socket is a way to whoever listens outside, a FIFO to whoever reads; no wall of ours stands in them. */
static bool is_channel(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_SOCK || e->d_type == DT_FIFO;
	return fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode));
}

static void compile(struct matcher *m, const struct cs_strv *patterns)
{
	m->patterns = patterns;
	for (size_t i = 0; i < patterns->n; i++) {
		const char *p = patterns->v[i];

		if (*p == '/' || !strncmp(p, "except:", 7))
			continue;
		if (strrchr(p, '/')) /* its last component is what a name is compared with first */
			p = strrchr(p, '/') + 1;
		if (p[0] == '*' && p[1] == '.' && !strpbrk(p + 1, "*?[\\") && m->n_suffix < sizeof m->suffix / sizeof *m->suffix)
			m->suffix[m->n_suffix++] = p + 1;
		else if (strchr("*?[\\", *p))
			m->hard = true;
		else
			m->first[(unsigned char)*p] = true;
	}
}

static bool may_match(const struct matcher *m, const char *name)
{
	const char *dot = NULL;

	if (m->hard || m->first[(unsigned char)*name])
		return true;
	for (const char *at = name; *at; at++)
		if (*at == '.')
			dot = at;
	for (size_t i = 0; dot && i < m->n_suffix; i++)
		if (!strcmp(m->suffix[i], dot) || strchr(m->suffix[i] + 1, '.')) /* "*.tar.key": look closer */
			return true;
	return false;
}

static bool match_one(const char *pattern, const char *name, const char *rel)
{
	return *pattern != '/' && cs_glob(pattern, strchr(pattern, '/') ? rel : name);
}

static bool matches(const struct search *s, const char *name, const char *rel)
{
	bool hit = false;

	if (!may_match(&s->m, name))
		return false;
	for (size_t i = 0; i < s->m.patterns->n; i++) {
		const char *p = s->m.patterns->v[i];

		if (!strncmp(p, "except:", 7)) {
			if (match_one(p + 7, name, rel))
				return false;
		} else if (!hit) {
			hit = match_one(p, name, rel);
		}
	}
	return hit;
}

static bool is_skipped(const char *name)
{
	for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++)
		if (!strcmp(name, skipped[i]))
			return true;
	return false;
}

static void walk(struct search *s, int take_dir, size_t used, unsigned depth);

/* Could not be looked into: it may be opened later. */
static void note_closed(struct search *s, int dir, const char *name)
{
	struct stat st;
	int sys = errno;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		known_note(&s->known, s->path, strlen(s->path), &st);
	errno = sys;
}

static void enter(struct search *s, int dir, const char *name, size_t used, unsigned depth)
{
	int sub;

	if (!s->second && is_skipped(name)) {
		cs_strv_add(&s->skipped, s->path);
		return;
	}
	if (depth + 1 >= DEPTH_MAX) {
		s->partly = true;
		return;
	}
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		note_closed(s, dir, name);
	if (sub < 0 && errno == EACCES) /* we may not look, its owner inside may: all of it is hidden */
		cs_strv_take(s->ret, cs_printf("%s/%s", s->root, s->path));
	if (sub < 0)
		return;
	s->path[used] = '/';
	walk(s, sub, used + 1, depth + 1);
}

/* Nearly every name is a plain file's that no pattern could be meant for. */
static bool is_dull(const struct search *s, const struct dirent *e)
{
	return (e->d_type == DT_REG || e->d_type == DT_LNK) && !may_match(&s->m, e->d_name);
}

/* False when there is too much to go on. */
static bool look_at(struct search *s, int dir, const struct dirent *e, size_t used, unsigned depth)
{
	size_t n;

	if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
		return true;
	s->seen++;
	if (++s->entries > ENTRIES_MAX || s->ret->n > HIDDEN_MAX) {
		s->partly = true;
		return false;
	}
	if (is_dull(s, e)) /* before its path is put together: that would be most of the work */
		return true;
	n = strlen(e->d_name);
	if (used + n + 2 > sizeof s->path) {
		s->partly = true;
		return false;
	}
	memcpy(s->path + used, e->d_name, n + 1);
	if (is_channel(dir, e) || matches(s, e->d_name, s->path))
		cs_strv_take(s->ret, cs_printf("%s/%s", s->root, s->path));
	else if (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)
		enter(s, dir, e->d_name, used + n, depth);
	return true;
}

static void walk(struct search *s, int take_dir, size_t used, unsigned depth)
{
	static struct sys_dir levels[DEPTH_MAX];
	CS_FD int dir = take_dir;
	const struct dirent *e;
	struct stat st;

	if (fstat(dir, &st) == 0) /* before it is read: what changes meanwhile shows the next time */
		known_note(&s->known, s->path, used ? used - 1 : 0, &st);
	sys_dir_start(&levels[depth], dir);
	while ((e = sys_dir_next(&levels[depth])) && look_at(s, dir, e, used, depth))
		;
}

/* Other people's code comes last and gets a small share: enough to find what was put there to be
 * overlooked, not enough to slow every start. */
static void walk_skipped(struct search *s)
{
	s->second = true;
	s->entries = ENTRIES_MAX - SKIPPED_MAX;
	for (size_t i = 0; i < s->skipped.n; i++) {
		CS_FREE char *path = cs_printf("%s/%s", s->root, s->skipped.v[i]);
		size_t n = strlen(s->skipped.v[i]);
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			continue;
		memcpy(s->path, s->skipped.v[i], n);
		s->path[n] = '/';
		walk(s, fd, n + 1, 1);
	}
}

int session_find_hidden(const char *dir, const struct cs_strv *patterns, struct cs_strv *ret, bool *ret_partly, struct cs_err *err)
{
	struct search s = { .root = dir, .ret = ret, .known = { .dirs = CS_BUF(8 << 20) } };
	size_t before = ret->n;
	bool partly;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR) /* a single file was given on purpose */
		return 0;
	if (fd < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "search '%s' for secrets to hide", dir);
	if (known_load(dir, patterns, ret, ret_partly)) {
		close(fd);
		return 0;
	}
	compile(&s.m, patterns);
	walk(&s, fd, 0, 0);
	partly = s.partly;
	*ret_partly |= partly;
	walk_skipped(&s);
	if (s.seen > LONG)
		known_save(dir, patterns, &s.known, ret, before, partly);
	cs_buf_done(&s.known.dirs);
	cs_strv_done(&s.skipped);
	return 0;
}
