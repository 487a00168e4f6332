/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_record.c - the record of verifications, for an operator to read.
 *
 * JSON lines, appended, one write(2) per line:
 *     {"time":"2026-01-31T12:00:00Z","verify":4711,"check":"network","verdict":"held","how":...,"ms":12,"runs":["s-4k2q7xw"]}
 *     {"time":...,"verify":4711,"run":"success","id":"s-...","argv":[...],"reason":"exited","exit_code":0,...}
 * Validity: every line that ends in a newline.  Crash reasoning: a line that
 * was cut by a full disk stays without one and is skipped by readers.  A file
 * that has grown past 4 MiB is kept as verify.jsonl.1 and a new one begun.
 */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/state.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_MAX = 4 << 20 };

struct record {
	int fd;
	off_t start; /* where this verification begins */
	bool failed;
};

/* Root does not write into a place that somebody else could bend. */
static bool is_own(const char *dir)
{
	struct stat st;

	return geteuid() != 0 || (stat(dir, &st) == 0 && st.st_uid == 0 && !(st.st_mode & 022));
}

static int state_dir(char *ret, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME"), *named = getenv("CAISSON_STATE");
	CS_FREE char *own = named && *named == '/' ? cs_state_dir() : NULL;
	int n;

	if (own)
		n = snprintf(ret, size, "%s", own);
	else if (state && *state == '/' && is_own(state))
		n = snprintf(ret, size, "%s/caisson", state);
	else if (geteuid() == 0 && access("/var/lib", W_OK) == 0)
		n = snprintf(ret, size, "/var/lib/caisson");
	else if (state && *state == '/')
		n = snprintf(ret, size, "%s/caisson", state);
	else if (home && *home == '/')
		n = snprintf(ret, size, "%s/.local/state/caisson", home);
	else
		return errno = ENOENT, -1;
	return n >= (int)size ? (errno = ENAMETOOLONG, -1) : 0;
}

static int make_dirs(char *path)
{
	for (char *p = path + 1;; p++) {
		char was = *p;

		if (was != '/' && was != 0)
			continue;
		*p = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return -1;
		*p = was;
		if (!was)
			return access(path, W_OK);
	}
}

struct record *record_open(char *ret_path, size_t size, struct cs_err *err)
{
	char dir[4000], old[4096];
	struct record *r;
	struct stat st;
	int fd;

	if (state_dir(dir, sizeof dir) < 0 || make_dirs(dir) < 0 || snprintf(ret_path, size, "%s/verify.jsonl", dir) >= (int)size) {
		(void)cs_fail(err, CS_E_SYSTEM, errno, "make a directory for the record (XDG_STATE_HOME or HOME)");
		return NULL;
	}
	if (stat(ret_path, &st) == 0 && st.st_size > RECORD_MAX && snprintf(old, sizeof old, "%s.1", ret_path) < (int)sizeof old)
		(void)rename(ret_path, old); /* then it goes on growing, which is no harm */
	fd = open(ret_path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)cs_fail(err, CS_E_SYSTEM, errno, "open '%s'", ret_path);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	r = cs_new(struct record);
	r->fd = fd;
	r->start = st.st_size;
	return r;
}

void record_close(struct record *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r);
}

static void begin(struct cs_json *j, struct cs_buf *out)
{
	char when[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	cs_json_begin(j, out, false);
	cs_json_object(j, NULL);
	cs_json_str(j, "time", when);
	cs_json_i64(j, "verify", getpid());
}

static void append(struct record *r, struct cs_json *j)
{
	cs_json_end(j, '}');
	if (j->out->over || cs_write_all(r->fd, cs_buf_text(j->out), j->out->len) < 0)
		r->failed = true;
}

void record_check(struct record *r, const struct check *c, const struct verdict *v)
{
	static const char *const names[] = { "held", "broken", "not judged" };
	struct cs_buf out CS_BUF_AUTO = CS_BUF(8192);
	struct cs_json j;

	if (!r)
		return;
	begin(&j, &out);
	cs_json_str(&j, "check", c->name);
	cs_json_str(&j, "guarantee", c->guarantee);
	cs_json_str(&j, "verdict", names[v->state]);
	cs_json_str(&j, "how", v->how);
	cs_json_u64(&j, "ms", v->ms);
	cs_json_array(&j, "runs");
	for (size_t i = 0; i < v->n_runs; i++)
		cs_json_str(&j, NULL, v->runs[i]);
	cs_json_end(&j, ']');
	append(r, &j);
}

void record_run(struct record *r, const char *what, const char *word, const struct session_result *res)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(16384);
	struct cs_json j;

	begin(&j, &out);
	cs_json_str(&j, "run", what);
	cs_json_str(&j, "id", res->id);
	cs_json_str(&j, "probe", word);
	cs_json_str(&j, "reason", session_reason_name(res->reason));
	cs_json_i64(&j, "exit_code", res->exit_code);
	cs_json_str(&j, "error", res->err.code ? res->err.msg : NULL);
	cs_json_u64(&j, "wall_ms", res->wall_ms);
	cs_json_array(&j, "protections");
	for (int p = 0; p < PROT_MAX; p++)
		if (res->active & PROT_BIT(p))
			cs_json_str(&j, NULL, protection_name((enum protection)p));
	cs_json_end(&j, ']');
	cs_json_array(&j, "refused");
	for (size_t i = 0; i < res->n_refusals; i++)
		cs_json_str(&j, NULL, res->refusals[i].what.what);
	cs_json_end(&j, ']');
	append(r, &j);
}

/* Read back what an operator would: whole lines with both ids. */
static bool is_recorded(const struct record *r, const char *id)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(RECORD_MAX);
	char part[1 << 14];
	ssize_t n;

	for (off_t at = r->start; (n = pread(r->fd, part, sizeof part, at)) > 0; at += n)
		cs_buf_add(&text, part, (size_t)n);
	return !text.over && text.len && cs_buf_text(&text)[text.len - 1] == '\n' && strstr(cs_buf_text(&text), id);
}

void check_record(struct verify *v, struct record *r, const char *path, struct verdict *ret)
{
	struct job good = { .words = { "nnp" } }, bad = { .words = { "nnp" }, .workspace = "/" };
	struct outcome yes, no;

	if (!r) {
		verdict_set(ret, VERDICT_BROKEN, "no record can be written");
		return;
	}
	job_inside(v, &good, &yes);
	job_inside(v, &bad, &no);
	record_run(r, "success", "nnp", &yes.res);
	record_run(r, "refused", "nnp", &no.res);
	verdict_run(ret, &yes);
	verdict_run(ret, &no);
	if (!yes.ran || no.res.reason != SESSION_REFUSED)
		verdict_set(ret, VERDICT_BROKEN, "one run should succeed and one be refused: %s, %s", session_reason_name(yes.res.reason),
			    session_reason_name(no.res.reason));
	else if (r->failed || !is_recorded(r, yes.res.id) || !is_recorded(r, no.res.id))
		verdict_set(ret, VERDICT_BROKEN, "%s does not hold both runs", path);
	else
		verdict_set(ret, VERDICT_HELD, "%s (ran) and %s (refused: / as workspace) are in the record", yes.res.id, no.res.id);
}
