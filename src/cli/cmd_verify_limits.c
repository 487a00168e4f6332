/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_limits.c - each limit is hit, and what follows is looked at from outside.
 *
 * The probe leaves a daemon behind that holds a lock, and waits until we have
 * seen the lock held; then it uses more than it may.  The result must name the
 * limit, and the lock must be free: everything inside is dead.  The control
 * runs beside it: the same amount of the same thing, without a sandbox.
 */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct limit {
	const char *kind, *amount;  /* what the probe uses */
	const char *key, *value;    /* the limit, below that */
	enum session_reason reason; /* EXITED: the call fails and the program is told */
	const char *where;          /* inside, for files */
};

static bool is_free(const char *path)
{
	CS_FD int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void judge(const struct limit *l, const struct outcome *in, const char *lock, struct verdict *ret)
{
	const struct session_result *r = &in->res;
	bool named = r->reason == l->reason;

	if (l->reason == SESSION_EXITED)
		named = named && in->status == PROBE_REFUSED;
	if (r->err.code)
		verdict_set(ret, VERDICT_UNJUDGED, "the sandbox did not start: %.180s", r->err.msg);
	else if (!named)
		verdict_set(ret, VERDICT_BROKEN, "%s %s is used up: ended as '%s', status %d", l->key, l->value, session_reason_name(r->reason), r->exit_code);
	else if (!is_free(lock))
		verdict_set(ret, VERDICT_BROKEN, "'%s' was named, but a process of the sandbox lives on", session_reason_name(r->reason));
	else if (l->reason == SESSION_EXITED)
		verdict_set(ret, VERDICT_HELD, "%s %s: %.120s; the daemon it left is dead", l->key, l->value, strchr(in->text, ' ') ? in->text : "refused");
	else
		verdict_set(ret, VERDICT_HELD, "%s %s: ended after %llu ms, reason '%s', status %d; the daemon it left is dead", l->key, l->value,
			    (unsigned long long)r->wall_ms, session_reason_name(r->reason), r->exit_code);
}

/* Skip what the probe said before the bomb. */
static void after_lock(struct running *r)
{
	memset(r->raw, 0, sizeof r->raw);
	r->len = 0;
}

static void attack_limit(const struct verify *v, const struct limit *l, const char *lock, struct verdict *ret)
{
	struct job j = { .words = { "bomb", l->kind, l->amount, lock, l->where ? l->where : "/tmp" },
			 .set = { { "files.write", v->rw }, { l->key, l->value } },
			 .talk = true };
	struct running r;
	struct outcome o;
	bool held;

	if (job_start_inside(v, &j, &r) < 0 || !job_expect(&r, "locked\n")) {
		job_finish(&r, &o);
		verdict_set(ret, VERDICT_UNJUDGED, "the probe did not start: %.100s %.100s", o.res.err.msg, o.text);
		return;
	}
	held = !is_free(lock);
	after_lock(&r);
	(void)!write(r.in, "g", 1); /* it may have been ended already, which the result says */
	job_finish(&r, &o);
	verdict_run(ret, &o);
	if (held)
		judge(l, &o, lock, ret);
	else
		verdict_set(ret, VERDICT_UNJUDGED, "the daemon inside did not hold its lock, so its end cannot be seen");
}

static void check_limit(struct verify *v, const struct limit *l, struct verdict *ret)
{
	char lock[256];
	struct job out = { .words = { "bomb", l->kind, l->amount, "-", v->host } };
	struct running control;
	struct outcome o;

	snprintf(lock, sizeof lock, "%s/lock", v->rw);
	(void)job_start_outside(v, &out, &control);
	attack_limit(v, l, lock, ret);
	job_finish(&control, &o);
	if (!o.ran || o.status != PROBE_DID)
		verdict_set(ret, VERDICT_UNJUDGED, "%s %s cannot be used without a sandbox either: %.150s", l->amount, l->kind, o.text);
}

#define LIMIT(name, ...)                                                        \
	static void check_##name(struct verify *v, struct verdict *ret)         \
	{                                                                       \
		static const struct limit l = { __VA_ARGS__ };                  \
		check_limit(v, &l, ret);                                        \
	}

LIMIT(memory, "memory", "192", "limits.memory", "64M", SESSION_MEMORY, NULL)
LIMIT(pids, "pids", "64", "limits.pids", "24", SESSION_EXITED, NULL)
LIMIT(disk, "disk", "24", "limits.disk", "8M", SESSION_DISK, "/tmp")
LIMIT(inodes, "inodes", "900", "limits.inodes", "512", SESSION_DISK, "/tmp")
LIMIT(files, "files", "200", "limits.files", "64", SESSION_EXITED, NULL)
LIMIT(output, "output", "512", "limits.output", "64K", SESSION_OUTPUT, NULL)
LIMIT(wall, "wall", "500", "limits.wall", "250ms", SESSION_TIMEOUT, NULL)
LIMIT(cpu, "cpu", "600", "limits.cpu_time", "200ms", SESSION_CPU_TIME, NULL)

const struct check verify_limits[] = {
	{ "limit-memory", "the memory limit ends everything", check_memory, true },
	{ "limit-pids", "the process limit holds", check_pids, false },
	{ "limit-disk", "the disk limit ends everything", check_disk, false },
	{ "limit-inodes", "the limit of private files ends everything", check_inodes, false },
	{ "limit-files", "the limit of open files holds", check_files, false },
	{ "limit-output", "the output limit ends everything", check_output, false },
	{ "limit-wall", "the time limit ends everything", check_wall, true },
	{ "limit-cpu-time", "the CPU time limit ends everything", check_cpu, true },
	{ NULL, NULL, NULL, false },
};
