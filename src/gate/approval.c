/* SPDX-License-Identifier: Apache-2.0 */
/* approval.c - the store.
 *
 * One file per approval, named by its id, holding one JSON object:
 *
 *   {"version":1,"id","hash","state","session","agent","role","rule","reason","effect":{...},
 *    "asked_ms","expires_ms","answered_ms","used_ms","by","always"}
 *
 * state is asked, allowed, denied or used; that one has expired is told by the clock.
 * Every change is: take the store's lock, read, write a new file, sync it, rename it over
 * the old one, sync the directory.  So a crash at any point leaves the file as it was or
 * as it was to be.  An answer counts from its rename on; a use is told to the caller only
 * after the rename that makes it used, so a crash in between can lose a use and never
 * make two of one.  The lock is the directory's flock(2), which dies with its holder.
 *
 * What is read is checked all the same: name and id, hash and effect must agree. */
#include "gate/approval.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/state.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum {
	EFFECT_MAX = 1 << 20,  /* bytes of one effect, */
	FILE_MAX = EFFECT_MAX + (64 << 10), /* and of one file */
	TEXT_MAX = 4096,       /* of a reason, a name */
	KEEP_MAX = 1024,       /* approvals; an agent that asks and asks fills no disk */
	HOUR_MS = 3600 * 1000,
	ID_LEN = 10,           /* "a-" and eight letters and digits */
};

struct approvals {
	int dir;
	char *path;
};

static const char *const names[] = {
	[APPROVAL_ASKED] = "asked", [APPROVAL_ALLOWED] = "allowed", [APPROVAL_DENIED] = "denied", [APPROVAL_USED] = "used", [APPROVAL_EXPIRED] = "expired",
};

const char *approval_state_name(enum approval_state s)
{
	return names[s];
}

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void approval_done(struct approval *a)
{
	free(a->session);
	free(a->agent);
	free(a->role);
	free(a->rule);
	free(a->reason);
	free(a->effect);
	free(a->by);
	*a = (struct approval){ 0 };
}

/* ---- opening ---- */

int approvals_open(const char *dir, struct approvals **ret, struct cs_err *err)
{
	CS_FREE char *state = dir ? NULL : cs_state_dir(), *path = dir ? cs_strdup(dir) : state ? cs_printf("%s/approvals", state) : NULL;
	int fd;

	if (!path)
		return cs_fail(err, CS_E_SYSTEM, 0, "there is no place for approvals: set HOME, XDG_STATE_HOME or CAISSON_STATE");
	fd = cs_private_dir(path, err);
	if (fd < 0)
		return cs_wrap(err, fd, "approvals");
	*ret = cs_new(struct approvals);
	**ret = (struct approvals){ fd, CS_TAKE_PTR(path) };
	return 0;
}

void approvals_close(struct approvals *a)
{
	if (!a)
		return;
	close(a->dir);
	free(a->path);
	free(a);
}

static int lock(struct approvals *a, struct cs_err *err)
{
	while (flock(a->dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return cs_fail(err, CS_E_SYSTEM, errno, "lock '%s'", a->path);
	return 0;
}

static void unlock(struct approvals *a)
{
	(void)flock(a->dir, LOCK_UN);
}

/* ---- writing ---- */

void approval_write(const struct approval *a, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, false);
	cs_json_object(&j, NULL);
	cs_json_u64(&j, "version", 1);
	cs_json_str(&j, "id", a->id);
	cs_json_str(&j, "hash", a->hash);
	cs_json_str(&j, "state", names[a->state]);
	cs_json_str(&j, "session", a->session);
	cs_json_str(&j, "agent", a->agent);
	cs_json_str(&j, "role", a->role);
	cs_json_str(&j, "rule", a->rule);
	cs_json_str(&j, "reason", a->reason);
	cs_json_u64(&j, "asked_ms", a->asked_ms);
	cs_json_u64(&j, "expires_ms", a->expires_ms);
	cs_json_u64(&j, "answered_ms", a->answered_ms);
	cs_json_u64(&j, "used_ms", a->used_ms);
	cs_json_str(&j, "by", a->by);
	cs_json_bool(&j, "always", a->always);
	cs_buf_fmt(out, ",\"effect\":%s", a->effect); /* JSON already */
	cs_json_end(&j, '}');
	if (!out->over)
		out->data[--out->len] = 0; /* the writer's newline: this may stand inside an array */
}

static int put_file(int fd, const struct cs_buf *text)
{
	CS_FAULT("approval write");
	if (cs_write_all(fd, cs_buf_text(text), text->len) < 0)
		return -1;
	CS_FAULT("approval sync");
	return fsync(fd);
}

static int move_file(int dir, const char *from, const char *to)
{
	CS_FAULT("approval rename");
	return renameat(dir, from, dir, to);
}

/* From here on the change has happened; only a loss of power could still take it back. */
static int settle(int dir)
{
	CS_FAULT("approval sync of the directory");
	return fsync(dir);
}

static int replace_file(int dir, const char *name, const struct cs_buf *text)
{
	char temporary[64];
	CS_FD int fd = -1;
	int e = cs_fault("approval create");

	snprintf(temporary, sizeof temporary, ".new-%d", (int)getpid());
	(void)unlinkat(dir, temporary, 0); /* of a process that had our number and was killed */
	fd = e ? -1 : openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (e)
		errno = e;
	if (fd < 0)
		return -1;
	if (put_file(fd, text) < 0 || move_file(dir, temporary, name) < 0) {
		e = errno;
		(void)unlinkat(dir, temporary, 0);
		return errno = e, -1;
	}
	return settle(dir);
}

static int save(struct approvals *s, const struct approval *a, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);

	approval_write(a, &text);
	if (text.over)
		return cs_fail(err, CS_E_LIMIT, 0, "the approval is larger than %d bytes", FILE_MAX);
	if (replace_file(s->dir, a->id, &text) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "write approval '%s/%s'", s->path, a->id);
	return 0;
}

/* ---- reading ---- */

static bool is_id(const char *name)
{
	return strlen(name) == ID_LEN && !strncmp(name, "a-", 2) && name[2 + strspn(name + 2, "abcdefghijklmnopqrstuvwxyz234567")] == 0;
}

static char *text_of(const struct json *v, const char *key)
{
	const char *s = json_str(json_get(v, key));

	return s ? cs_strdup(s) : NULL;
}

static bool number_of(const struct json *v, const char *key, uint64_t *ret)
{
	int64_t i;

	if (!json_int(json_get(v, key), &i) || i < 0)
		return false;
	*ret = (uint64_t)i;
	return true;
}

static bool hash_effect(const struct json *effect, struct approval *a)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(EFFECT_MAX);
	uint8_t hash[CS_SHA256_SIZE];

	json_write_canonical(&text, effect);
	if (text.over)
		return false;
	cs_sha256(cs_buf_text(&text), text.len, hash);
	cs_sha256_hex(hash, a->hash);
	free(a->effect);
	a->effect = cs_strdup(cs_buf_text(&text));
	return true;
}

static bool take_state(const struct json *v, struct approval *a)
{
	const char *state = json_str(json_get(v, "state"));

	for (enum approval_state s = APPROVAL_ASKED; state && s <= APPROVAL_USED; s++)
		if (!strcmp(names[s], state)) {
			a->state = s;
			return true;
		}
	return false;
}

/* What its parts say must agree; one that was changed by hand is nobody's answer. */
static bool take_parts(const struct json *v, const char *id, struct approval *a)
{
	const char *own = json_str(json_get(v, "id")), *hash = json_str(json_get(v, "hash"));
	const struct json *effect = json_get(v, "effect"), *always = json_get(v, "always");
	uint64_t version;

	snprintf(a->id, sizeof a->id, "%s", id);
	a->session = text_of(v, "session");
	a->agent = text_of(v, "agent");
	a->role = text_of(v, "role");
	a->rule = text_of(v, "rule");
	a->reason = text_of(v, "reason");
	a->by = text_of(v, "by");
	a->always = json_is(always, JSON_BOOL) && always->b;
	return number_of(v, "version", &version) && version == 1 && own && !strcmp(own, id) && take_state(v, a) &&
	       number_of(v, "asked_ms", &a->asked_ms) && number_of(v, "expires_ms", &a->expires_ms) &&
	       number_of(v, "answered_ms", &a->answered_ms) && number_of(v, "used_ms", &a->used_ms) &&
	       json_is(effect, JSON_OBJECT) && hash_effect(effect, a) && hash && !strcmp(hash, a->hash);
}

static int read_file(struct approvals *s, const char *id, struct cs_buf *text, struct cs_err *err)
{
	CS_FD int fd = openat(s->dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cs_fail(err, errno == ENOENT ? CS_E_NOT_FOUND : CS_E_DENIED, errno, "open approval '%s/%s'", s->path, id);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return cs_fail(err, CS_E_DENIED, 0, "'%s/%s' is not a file of yours alone: remove it", s->path, id);
	return cs_buf_read_fd(text, fd, id, err);
}

static int load(struct approvals *s, const char *id, struct approval *ret, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(FILE_MAX);
	struct cs_arena arena CS_ARENA_AUTO = CS_ARENA(64 << 20);
	struct approval a = { 0 };
	const struct json *v;
	int r = read_file(s, id, &text, err);

	if (r >= 0)
		r = json_read(&arena, cs_buf_text(&text), text.len, NULL, &v, err);
	if (r < 0)
		return cs_wrap(err, r, "approval %s", id);
	if (!take_parts(v, id, &a)) {
		approval_done(&a);
		return cs_fail(err, CS_E_INVALID, 0, "approval '%s/%s' is damaged: it counts for nothing; remove it", s->path, id);
	}
	*ret = a;
	return 0;
}

static bool is_over(const struct approval *a, uint64_t now_ms)
{
	return a->state != APPROVAL_USED && !a->always && now_ms >= a->expires_ms;
}

/* ---- many ---- */

static int by_time(const void *x, const void *y)
{
	const struct approval *a = x, *b = y;

	return a->asked_ms != b->asked_ms ? (a->asked_ms < b->asked_ms ? -1 : 1) : strcmp(a->id, b->id);
}

struct set {
	struct approval *v;
	size_t n, damaged;
};

static void set_done(struct set *s)
{
	for (size_t i = 0; i < s->n; i++)
		approval_done(&s->v[i]);
	free(s->v);
	*s = (struct set){ 0 };
}

#define SET_AUTO __attribute__((__cleanup__(set_done)))

/* All that can be read, the oldest first.  What cannot counts for nothing, and keeps no other from counting. */
static int load_all(struct approvals *s, bool locked, struct set *ret, struct cs_err *err)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CS_DIR DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return cs_fail(err, CS_E_SYSTEM, errno, "read '%s'", s->path);
	}
	ret->v = cs_calloc(KEEP_MAX, sizeof *ret->v);
	for (const struct dirent *e; ret->n < KEEP_MAX && (e = readdir(d));) {
		if (locked && !strncmp(e->d_name, ".new-", 5))
			(void)unlinkat(s->dir, e->d_name, 0); /* of someone who was killed: who writes has the lock */
		if (!is_id(e->d_name))
			continue;
		if (load(s, e->d_name, &ret->v[ret->n], NULL) < 0)
			ret->damaged++;
		else
			ret->n++;
	}
	qsort(ret->v, ret->n, sizeof *ret->v, by_time);
	return 0;
}

int approval_list(struct approvals *s, struct approval **ret, size_t *ret_n, struct cs_err *err)
{
	struct set all = { 0 };
	uint64_t t = now();
	int r = load_all(s, false, &all, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++)
		if (is_over(&all.v[i], t))
			all.v[i].state = APPROVAL_EXPIRED;
	*ret = all.v;
	*ret_n = all.n;
	return 0;
}

/* An id, or what only one begins with. */
static int find_id(struct approvals *s, const char *id, char ret[40], struct cs_err *err)
{
	struct set all SET_AUTO = { 0 };
	size_t found = 0;
	char shown[80];
	int r;

	cs_escape_to(shown, sizeof shown, id);
	if (is_id(id))
		return snprintf(ret, 40, "%s", id), 0;
	r = strncmp(id, "a-", 2) ? 0 : load_all(s, false, &all, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++)
		if (!strncmp(all.v[i].id, id, strlen(id))) {
			memcpy(ret, all.v[i].id, 40);
			found++;
		}
	if (found == 1)
		return 0;
	return cs_fail(err, CS_E_NOT_FOUND, 0, found ? "more than one approval begins with '%s'; `caisson approvals list` has them" :
						       "no approval '%s'; `caisson approvals list` has them", shown);
}

int approval_get(struct approvals *s, const char *id, struct approval *ret, struct cs_err *err)
{
	char whole[40];
	int r = find_id(s, id, whole, err);

	if (r >= 0)
		r = load(s, whole, ret, err);
	if (r >= 0 && is_over(ret, now()))
		ret->state = APPROVAL_EXPIRED;
	return r;
}

/* ---- asking ---- */

/* Those that are over make room, the oldest first; questions, answers and "always" are never dropped. */
static int make_room(struct approvals *s, const struct set *all, uint64_t t, struct cs_err *err)
{
	if (all->n + all->damaged < KEEP_MAX)
		return 0;
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].state == APPROVAL_USED || is_over(&all->v[i], t)) {
			if (cs_fault("approval unlink") || unlinkat(s->dir, all->v[i].id, 0) < 0)
				break;
			return 0;
		}
	return cs_fail(err, CS_E_LIMIT, 0, "there are %d approvals that wait or hold: answer or withdraw some (caisson approvals list)", KEEP_MAX);
}

static void make_id(struct approvals *s, char ret[40])
{
	unsigned char random[8];
	struct stat st;

	do {
		if (getrandom(random, sizeof random, 0) != sizeof random)
			memset(random, (int)getpid(), sizeof random);
		memcpy(ret, "a-", 3);
		for (size_t i = 0; i < sizeof random; i++)
			ret[2 + i] = "abcdefghijklmnopqrstuvwxyz234567"[random[i] & 31];
		ret[ID_LEN] = 0;
	} while (fstatat(s->dir, ret, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool is_long(const char *s)
{
	return s && strlen(s) > TEXT_MAX;
}

static int check_question(struct approval *a, struct cs_err *err)
{
	struct cs_arena arena CS_ARENA_AUTO = CS_ARENA(64 << 20);
	const struct json *effect;
	int r;

	if (!a->effect)
		return cs_fail(err, CS_E_INVALID, 0, "an approval needs an effect");
	r = json_read(&arena, a->effect, strlen(a->effect), NULL, &effect, err);
	if (r < 0)
		return cs_wrap(err, r, "the effect of an approval");
	if (!json_is(effect, JSON_OBJECT))
		return cs_fail(err, CS_E_INVALID, 0, "the effect of an approval is not an object");
	if (!hash_effect(effect, a) || is_long(a->session) || is_long(a->agent) || is_long(a->role) || is_long(a->rule) || is_long(a->reason))
		return cs_fail(err, CS_E_LIMIT, 0, "too much to approve: an effect has at most %d bytes, a reason %d", EFFECT_MAX, TEXT_MAX);
	return 0;
}

static int ask_locked(struct approvals *s, struct approval *a, struct cs_err *err)
{
	struct set all SET_AUTO = { 0 };
	int r = load_all(s, true, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++)
		if (all.v[i].state == APPROVAL_ASKED && !is_over(&all.v[i], a->asked_ms) && !strcmp(all.v[i].hash, a->hash)) {
			memcpy(a->id, all.v[i].id, sizeof a->id); /* it is asked already */
			return 0;
		}
	if (r >= 0)
		r = make_room(s, &all, a->asked_ms, err);
	if (r < 0)
		return r;
	make_id(s, a->id);
	return save(s, a, err);
}

int approval_ask(struct approvals *s, struct approval *a, struct cs_err *err)
{
	int r = check_question(a, err);

	if (r < 0)
		return r;
	a->state = APPROVAL_ASKED;
	a->always = false;
	a->answered_ms = a->used_ms = 0;
	a->asked_ms = a->asked_ms ? a->asked_ms : now();
	a->expires_ms = a->expires_ms ? a->expires_ms : a->asked_ms + HOUR_MS;
	r = lock(s, err);
	if (r < 0)
		return r;
	r = ask_locked(s, a, err);
	unlock(s);
	return r;
}

/* ---- answering ---- */

static int answer_locked(struct approvals *s, const char *id, bool allow, bool always, const char *by, uint64_t now_ms, struct cs_err *err)
{
	struct approval a = { 0 };
	int r = load(s, id, &a, err);

	if (r < 0)
		return r;
	if (a.state == APPROVAL_USED)
		r = cs_fail(err, CS_E_CONFLICT, 0, "%s has been used already", id);
	else if (is_over(&a, now_ms))
		r = cs_fail(err, CS_E_CONFLICT, 0, "%s has expired: the agent has to ask again", id);
	if (r >= 0) {
		free(a.by);
		a.by = cs_strdup(by);
		a.state = allow ? APPROVAL_ALLOWED : APPROVAL_DENIED;
		a.always = allow && always;
		a.answered_ms = now_ms;
		r = save(s, &a, err);
	}
	approval_done(&a);
	return r;
}

int approval_answer(struct approvals *s, const char *id, bool allow, bool always, const char *by, uint64_t now_ms, struct cs_err *err)
{
	char whole[40];
	int r = find_id(s, id, whole, err);

	if (r >= 0 && (!by || !*by || is_long(by)))
		r = cs_fail(err, CS_E_INVALID, 0, "an answer needs a name, of at most %d bytes", TEXT_MAX);
	if (r >= 0)
		r = lock(s, err);
	if (r < 0)
		return r;
	r = answer_locked(s, whole, allow, always, by, now_ms, err);
	unlock(s);
	return r;
}

int approval_withdraw(struct approvals *s, const char *id, struct cs_err *err)
{
	struct approval a = { 0 };
	char whole[40];
	int r = find_id(s, id, whole, err);

	if (r >= 0)
		r = lock(s, err);
	if (r < 0)
		return r;
	r = load(s, whole, &a, err);
	if (r >= 0 && a.state != APPROVAL_ALLOWED)
		r = cs_fail(err, CS_E_CONFLICT, 0, "%s allows nothing: it is %s", whole, names[a.state]);
	if (r >= 0) {
		a.state = APPROVAL_DENIED; /* and over, so that it can be asked again */
		a.always = false;
		a.expires_ms = a.asked_ms;
		r = save(s, &a, err);
	}
	unlock(s);
	approval_done(&a);
	return r;
}

/* ---- using ---- */

/* Of many for one effect: "always" first, so that no single answer is used up for nothing; then a denial, then an answer. */
static struct approval *choose(const struct set *all, const char *hash, uint64_t now_ms)
{
	struct approval *found = NULL;

	for (size_t i = 0; i < all->n; i++) {
		struct approval *a = &all->v[i];

		if (strcmp(a->hash, hash) || is_over(a, now_ms) || (a->state != APPROVAL_ALLOWED && a->state != APPROVAL_DENIED))
			continue;
		if (a->always)
			return a;
		if (!found || a->answered_ms >= found->answered_ms)
			found = a; /* the last word */
	}
	return found;
}

static int take_locked(struct approvals *s, const char *hash, uint64_t now_ms, struct approval *ret, struct cs_err *err)
{
	struct set all SET_AUTO = { 0 };
	struct approval *a;
	int r = load_all(s, true, &all, err);

	a = r < 0 ? NULL : choose(&all, hash, now_ms);
	if (!a)
		return r < 0 ? r : 0;
	if (a->state == APPROVAL_DENIED) {
		char shown[80];

		return cs_fail(err, CS_E_DENIED, 0, "%s was denied by %s", a->id, cs_escape_to(shown, sizeof shown, a->by ? a->by : "nobody"));
	}
	if (!a->always) {
		a->state = APPROVAL_USED;
		a->used_ms = now_ms;
		r = save(s, a, err);
	}
	if (r < 0)
		return r;
	if (ret) {
		*ret = *a;
		*a = (struct approval){ 0 }; /* it is the caller's now */
	}
	return 1;
}

int approval_take(struct approvals *s, const struct json *effect, uint64_t now_ms, struct approval *ret, struct cs_err *err)
{
	struct approval key = { 0 };
	int r = hash_effect(effect, &key) ? lock(s, err) : cs_fail(err, CS_E_LIMIT, 0, "an effect has at most %d bytes", EFFECT_MAX);

	if (r >= 0) {
		r = take_locked(s, key.hash, now_ms, ret, err);
		unlock(s);
	}
	approval_done(&key);
	return r;
}
