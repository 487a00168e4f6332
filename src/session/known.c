/* SPDX-License-Identifier: Apache-2.0 */
#include "session/known.h"

#include "base/cleanup.h"
#include "base/crc.h"
#include "txn/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KNOWN_MAX = 16 << 20, SETTLED_S = 3 };

struct head {
	char magic[8];
	uint64_t patterns;
	uint32_t dirs, found, partly, crc; /* crc of all that follows */
};

struct entry {
	uint64_t dev, ino;
	int64_t mtime, ctime;
	uint32_t mtime_ns, ctime_ns, len, zero;
};

static const char magic[8] = "CSNSEEN1";

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a */
	return (h ^ 0xff) * 0x100000001b3u;
}

static uint64_t hash_all(const char *dir, const struct cs_strv *patterns)
{
	uint64_t h = hash(0xcbf29ce484222325u, dir);

	for (size_t i = 0; i < patterns->n; i++)
		h = hash(h, patterns->v[i]);
	return h;
}

/* Ours alone, or it is not believed. */
static int open_seen(bool make)
{
	CS_FREE char *state = txn_state_dir(), *path = state ? cs_printf("%s/seen", state) : NULL;
	CS_FD int fd = -1;
	struct stat st;

	if (!path || (make && mkdir(path, 0700) < 0 && errno != EEXIST)) /* without a state directory nothing is kept */
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 022)
		return -1;
	return CS_TAKE_FD(fd);
}

static void name_of(char ret[32], const char *dir, const struct cs_strv *patterns)
{
	snprintf(ret, 32, "%016llx", (unsigned long long)hash_all(dir, patterns));
}

static struct entry entry_of(const struct stat *st)
{
	return (struct entry){ .dev = st->st_dev, .ino = st->st_ino, .mtime = st->st_mtim.tv_sec, .ctime = st->st_ctim.tv_sec,
			       .mtime_ns = (uint32_t)st->st_mtim.tv_nsec, .ctime_ns = (uint32_t)st->st_ctim.tv_nsec };
}

void known_note(struct known *k, const char *path, size_t len, const struct stat *st)
{
	struct entry e = entry_of(st);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	k->fresh |= st->st_mtim.tv_sec + SETTLED_S > now.tv_sec || st->st_ctim.tv_sec + SETTLED_S > now.tv_sec;
	e.len = (uint32_t)len;
	if (k->fresh)
		return;
	cs_buf_add(&k->dirs, &e, sizeof e);
	cs_buf_add(&k->dirs, path, len);
	cs_buf_char(&k->dirs, 0);
	k->n++;
}

void known_save(const char *dir, const struct cs_strv *patterns, const struct known *k, const struct cs_strv *found, size_t from, bool partly)
{
	struct cs_buf all CS_BUF_AUTO = CS_BUF(KNOWN_MAX);
	struct head h = { .patterns = hash_all(dir, patterns), .dirs = k->n, .found = (uint32_t)(found->n - from), .partly = partly };
	CS_FD int seen = -1, fd = -1;
	char name[32], new_name[64];

	if (k->fresh || k->dirs.over || (seen = open_seen(true)) < 0)
		return;
	memcpy(h.magic, magic, sizeof magic);
	cs_buf_add(&all, &h, sizeof h);
	cs_buf_add(&all, k->dirs.data, k->dirs.len);
	for (size_t i = from; i < found->n; i++)
		cs_buf_add(&all, found->v[i], strlen(found->v[i]) + 1);
	if (all.over)
		return;
	h.crc = cs_crc32c(0, all.data + sizeof h, all.len - sizeof h);
	memcpy(all.data, &h, sizeof h);
	name_of(name, dir, patterns);
	snprintf(new_name, sizeof new_name, "%s.%d", name, (int)getpid());
	fd = openat(seen, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || cs_write_all(fd, all.data, all.len) < 0 || renameat(seen, new_name, seen, name) < 0)
		(void)unlinkat(seen, new_name, 0);
}

/* ---- reading ---- */

/* One directory's entry: is it still as it was? Moves *at behind it; false also where the bytes make no sense. */
static bool is_unchanged(int root, const char **at, const char *end)
{
	struct entry was, is;
	struct stat st;
	const char *path = *at + sizeof was;

	if ((size_t)(end - *at) < sizeof was)
		return false;
	memcpy(&was, *at, sizeof was);
	if ((size_t)(end - path) <= was.len || path[was.len] || strlen(path) != was.len)
		return false;
	*at = path + was.len + 1;
	if (fstatat(root, *path ? path : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	is = entry_of(&st);
	is.len = was.len;
	return !memcmp(&was, &is, sizeof was);
}

static bool take_found(const char *at, const char *end, uint32_t n, struct cs_strv *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;

		if (!nul || *at != '/')
			return false;
		cs_strv_add(ret, at);
		at = nul + 1;
	}
	return at == end;
}

bool known_parse(const char *data, size_t len, const char *dir, const struct cs_strv *patterns, struct cs_strv *ret, bool *ret_partly)
{
	CS_FD int root = -1;
	struct cs_strv found = { 0 };
	const char *at, *end;
	struct head h;
	bool good;

	if (len < sizeof h)
		return false;
	memcpy(&h, data, sizeof h);
	at = data + sizeof h;
	end = data + len;
	if (memcmp(h.magic, magic, sizeof magic) || h.patterns != hash_all(dir, patterns) || h.crc != cs_crc32c(0, at, (size_t)(end - at)))
		return false;
	root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	good = root >= 0;
	for (uint32_t i = 0; good && i < h.dirs; i++)
		good = is_unchanged(root, &at, end);
	good = good && take_found(at, end, h.found, &found);
	if (good) {
		cs_strv_copy(ret, &found);
		*ret_partly |= h.partly;
	}
	cs_strv_done(&found);
	return good;
}

bool known_load(const char *dir, const struct cs_strv *patterns, struct cs_strv *ret, bool *ret_partly)
{
	struct cs_buf all CS_BUF_AUTO = CS_BUF(KNOWN_MAX);
	CS_FD int seen = open_seen(false), fd = -1;
	char name[32];

	name_of(name, dir, patterns);
	fd = seen < 0 ? -1 : openat(seen, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && cs_buf_read_fd(&all, fd, "seen", NULL) == 0 && known_parse(cs_buf_text(&all), all.len, dir, patterns, ret, ret_partly);
}
