/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify_checks.c - what must not be possible. */
#include "cli/cmd_verify.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the common shape ---- */

static bool control(const struct verify *v, const struct job *j, struct verdict *ret)
{
	struct outcome o;

	job_outside(v, j, &o);
	if (o.ran && o.status == PROBE_DID)
		return true;
	verdict_set(ret, VERDICT_UNJUDGED, "the attack fails without a sandbox too (%.160s), so it shows nothing", o.text);
	return false;
}

/* False: it was not refused, and *ret says so. */
static bool is_refused(const struct verify *v, const struct job *j, struct verdict *ret, struct outcome *o)
{
	job_inside(v, j, o);
	if (!verdict_ran(ret, o))
		return false;
	if (o->status == PROBE_REFUSED)
		return true;
	verdict_set(ret, VERDICT_BROKEN, "inside: %.200s", o->text);
	return false;
}

/* Refused inside, works outside. */
static void attack(const struct verify *v, const struct job *j, struct verdict *ret)
{
	struct outcome o;

	if (control(v, j, ret) && is_refused(v, j, ret, &o))
		verdict_set(ret, VERDICT_HELD, "inside: %.150s; works without a sandbox", o.text);
}

/* ---- files ---- */

/* Straight, by a link in the workspace, through the workspace's parent, through /proc. */
static void check_host_files(struct verify *v, struct verdict *ret)
{
	char path[256], link[256], up[256], root[300], cwd[256];
	struct job j = { .words = { "read", v->token, path, link, up, root, cwd } };

	snprintf(path, sizeof path, "%s/sentinel", v->host);
	snprintf(link, sizeof link, "%s/link", v->ws);
	snprintf(up, sizeof up, "%s/../host/sentinel", v->ws);
	snprintf(root, sizeof root, "/proc/1/root%s", path);
	snprintf(cwd, sizeof cwd, "/proc/self/cwd/../host/sentinel");
	if (symlink(path, link) < 0) {
		verdict_set(ret, VERDICT_UNJUDGED, "a link cannot be made in %s", v->ws);
		return;
	}
	attack(v, &j, ret);
	(void)unlink(link);
}

static void check_home(struct verify *v, struct verdict *ret)
{
	char key[4200];
	struct job j = { .words = { "read", v->token, key } };

	if (!v->home[0]) {
		verdict_set(ret, VERDICT_UNJUDGED, "no file can be made in the home directory (HOME)");
		return;
	}
	snprintf(key, sizeof key, "%s/.ssh/id_ed25519", v->home);
	attack(v, &j, ret);
}

static void check_secrets(struct verify *v, struct verdict *ret)
{
	char env[256], pem[256], deep[256], notes[256];
	struct job hidden = { .words = { "read", v->token, env, pem, deep } }, listed = { .words = { "list", v->ws, ".env" } };
	struct job normal = { .words = { "read", v->token, notes } };
	struct outcome o;

	snprintf(env, sizeof env, "%s/.env", v->ws);
	snprintf(pem, sizeof pem, "%s/server.pem", v->ws);
	snprintf(deep, sizeof deep, "%s/deep/.env", v->ws);
	snprintf(notes, sizeof notes, "%s/deep/notes.txt", v->ws);
	if (!control(v, &hidden, ret) || !control(v, &listed, ret) || !is_refused(v, &hidden, ret, &o) || !is_refused(v, &listed, ret, &o))
		return;
	job_inside(v, &normal, &o);
	if (!verdict_ran(ret, &o))
		return;
	if (o.status == PROBE_DID)
		verdict_set(ret, VERDICT_HELD, ".env, server.pem, deep/.env are not there; deep/notes.txt beside them is");
	else
		verdict_set(ret, VERDICT_UNJUDGED, "an ordinary file of the workspace cannot be read either: %.150s", o.text);
}

/* A place given read-only, and one not given at all. */
static void check_write(struct verify *v, struct verdict *ret)
{
	char sentinel[256], scratch[256], only_read[256], self[256];
	struct job out = { .words = { "write", "overwritten", scratch } };
	struct job in = { .words = { "write", "overwritten", sentinel, only_read }, .set = { { "files.read", self } } };
	struct outcome o;

	snprintf(sentinel, sizeof sentinel, "%s/sentinel", v->host);
	snprintf(scratch, sizeof scratch, "%s/scratch", v->host);
	snprintf(self, sizeof self, "%s", v->other);
	snprintf(only_read, sizeof only_read, "%s/read-only", v->other);
	if (place_put(only_read, v->token) < 0 || !control(v, &out, ret) || place_holds(scratch, v->token)) {
		verdict_set(ret, VERDICT_UNJUDGED, "a file in %s cannot be changed without a sandbox", v->dir);
		return;
	}
	if (!is_refused(v, &in, ret, &o))
		return;
	if (place_holds(sentinel, v->token) && place_holds(only_read, v->token))
		verdict_set(ret, VERDICT_HELD, "inside: %.120s; both sentinels are unchanged outside", o.text);
	else
		verdict_set(ret, VERDICT_BROKEN, "a sentinel outside was changed");
	(void)unlink(only_read);
}

static void check_layer(struct verify *v, struct verdict *ret)
{
	char notes[256], made[256];
	struct job j = { .words = { "change", "changed", notes, made } };
	struct job real = { .words = { "change", "changed", notes, made }, .set = { { "workspace", "write" } } };
	struct outcome o;
	bool clean;

	snprintf(notes, sizeof notes, "%s/notes.txt", v->ws);
	snprintf(made, sizeof made, "%s/made", v->ws);
	job_inside(v, &j, &o);
	if (!verdict_ran(ret, &o))
		return;
	clean = place_holds(notes, v->token) && access(made, F_OK) < 0;
	if (o.status != PROBE_DID) {
		verdict_set(ret, VERDICT_UNJUDGED, "the workspace cannot be written inside: %.150s", o.text);
	} else if (!clean) {
		verdict_set(ret, VERDICT_BROKEN, "the workspace outside was changed");
	} else {
		job_inside(v, &real, &o); /* the control: bound for real, the same change is seen outside */
		if (!verdict_ran(ret, &o))
			return;
		if (place_holds(notes, "changed") && place_holds(made, "changed"))
			verdict_set(ret, VERDICT_HELD, "changed inside, unchanged outside; `workspace: write` does change it");
		else
			verdict_set(ret, VERDICT_UNJUDGED, "`workspace: write` changes nothing either (%.120s)", o.text);
	}
	(void)unlink(made);
	(void)place_put(notes, v->token);
}

/* ---- processes ---- */

/* Above the numbers that processes inside a fresh namespace have. */
static pid_t make_decoy(void)
{
	for (int i = 0; i < 64; i++) {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				pause();
		if (pid < 0 || pid > 32)
			return pid;
		kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return -1;
}

static bool is_alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void end_decoy(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0); /* or it was reaped by is_alive() */
}

static void check_processes(struct verify *v, struct verdict *ret)
{
	char first[16], second[16];
	pid_t one = make_decoy(), two = make_decoy();
	struct job out = { .words = { "signal", first } }, in = { .words = { "signal", second } };
	struct outcome o;

	snprintf(first, sizeof first, "%d", (int)one);
	snprintf(second, sizeof second, "%d", (int)two);
	if (one < 0 || two < 0 || !control(v, &out, ret)) {
		verdict_set(ret, VERDICT_UNJUDGED, "a process cannot be killed without a sandbox");
	} else if (is_refused(v, &in, ret, &o)) {
		if (is_alive(two))
			verdict_set(ret, VERDICT_HELD, "inside: %.120s; a process of ours lives on, its twin was killed without a sandbox", o.text);
		else
			verdict_set(ret, VERDICT_BROKEN, "a process outside was killed");
	}
	end_decoy(one);
	end_decoy(two);
}

/* The numbers of all processes below pid. */
static size_t descendants(pid_t pid, char ret[][16], size_t max)
{
	pid_t all[16] = { pid };
	size_t n = 1;

	for (size_t i = 0; i < n; i++) {
		char path[64], text[512], *at = text, *end;

		snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)all[i], (int)all[i]);
		if (sys_get(AT_FDCWD, path, text, sizeof text) <= 0)
			continue;
		for (long c; c = strtol(at, &end, 10), end != at && n <= max && n < 16; at = end) {
			all[n] = (pid_t)c;
			snprintf(ret[n++ - 1], sizeof ret[0], "%ld", c);
		}
	}
	return n - 1;
}

static void attack_neighbour(const struct verify *v, pid_t neighbour, struct verdict *ret)
{
	char pids[6][16], mark[256], proc[3][64];
	size_t n = descendants(neighbour, pids, 6);
	struct job files = { .words = { "read", v->token, "/tmp/neighbour", mark, proc[0], proc[1], proc[2] } };
	struct job signal = { .words = { "signal" } };
	struct outcome o;

	snprintf(mark, sizeof mark, "%s/mark", v->other);
	for (size_t i = 0; i < 3; i++)
		snprintf(proc[i], sizeof proc[i], "/proc/%.15s/root/tmp/neighbour", i < n ? pids[i] : "2");
	for (size_t i = 0; i < n && i < 6; i++)
		signal.words[i + 1] = pids[i];
	if (n == 0)
		verdict_set(ret, VERDICT_UNJUDGED, "the neighbour's processes cannot be found from outside");
	else if (is_refused(v, &files, ret, &o) && is_refused(v, &signal, ret, &o))
		verdict_set(ret, VERDICT_HELD, "a second sandbox sees none of the first one's 2 files and %zu processes", n);
}

static void check_sibling(struct verify *v, struct verdict *ret)
{
	char mark[256];
	struct job hold = { .words = { "hold", v->token, "/tmp/neighbour", mark }, .workspace = v->other, .talk = true };
	struct running r;
	struct outcome o;

	snprintf(mark, sizeof mark, "%s/mark", v->other);
	if (job_start_inside(v, &hold, &r) == 0 && job_expect(&r, "ready"))
		attack_neighbour(v, r.pid, ret);
	else
		verdict_set(ret, VERDICT_UNJUDGED, "the first of two sandboxes did not start");
	job_finish(&r, &o);
	verdict_run(ret, &o);
	/* It ended when told to, and not before: the signals did not reach it. */
	if (ret->state == VERDICT_HELD && (!o.ran || o.status != PROBE_DID))
		verdict_set(ret, VERDICT_BROKEN, "the neighbour was ended (%s)", session_reason_name(o.res.reason));
}

/* Is id 0 as we see it the host's real root? */
static bool is_real_root(void)
{
	char map[128];
	unsigned long long in, out, count;

	return sys_get(AT_FDCWD, "/proc/self/uid_map", map, sizeof map) > 0 && sscanf(map, "%llu %llu %llu", &in, &out, &count) == 3 && in == 0 &&
	       out == 0 && count > 65536;
}

/* The four ids of a process as seen from here, and its user namespace. */
static bool look_at(const char *pid, unsigned uid[4], char *ns, size_t size)
{
	char path[64], text[8192], *at;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%s/status", pid);
	if (sys_get(AT_FDCWD, path, text, sizeof text) <= 0 || !(at = strstr(text, "\nUid:")) ||
	    sscanf(at + 5, "%u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) != 4)
		return false;
	snprintf(path, sizeof path, "/proc/%s/ns/user", pid);
	n = readlink(path, ns, size - 1);
	if (n <= 0)
		return false;
	ns[n] = 0;
	return true;
}

static void judge_identity(const char pids[][16], size_t n, struct verdict *ret)
{
	char ours[64], theirs[64];
	unsigned uid[4], mine[4];
	bool root = is_real_root();

	if (n < 2 || !look_at("self", mine, ours, sizeof ours)) {
		verdict_set(ret, VERDICT_UNJUDGED, "the processes of a sandbox cannot be found from outside");
		return;
	}
	for (size_t i = 1; i < n; i++) { /* the first is process 1, which is ours */
		if (!look_at(pids[i], uid, theirs, sizeof theirs))
			verdict_set(ret, VERDICT_UNJUDGED, "process %s of the sandbox cannot be looked at", pids[i]);
		else if (root && (!uid[0] || !uid[1] || !uid[2] || !uid[3]))
			verdict_set(ret, VERDICT_BROKEN, "seen from outside, the program runs as root");
		else if (!strcmp(ours, theirs))
			verdict_set(ret, VERDICT_BROKEN, "the program is in the host's user namespace");
		else
			continue;
		return;
	}
	verdict_set(ret, VERDICT_HELD, "seen from outside, the program has user id %u and a user namespace that is not ours", uid[0]);
}

static void check_identity(struct verify *v, struct verdict *ret)
{
	struct job hold = { .words = { "hold", v->token, "/tmp/mark" }, .talk = true };
	char pids[6][16];
	struct running r;
	struct outcome o;

	if (job_start_inside(v, &hold, &r) == 0 && job_expect(&r, "ready"))
		judge_identity(pids, descendants(r.pid, pids, 6), ret);
	else
		verdict_set(ret, VERDICT_UNJUDGED, "the sandbox did not start");
	job_finish(&r, &o);
	verdict_run(ret, &o);
}

static void check_env(struct verify *v, struct verdict *ret)
{
	attack(v, &(struct job){ .words = { "env", VERIFY_SECRET } }, ret);
}

static void check_fds(struct verify *v, struct verdict *ret)
{
	int fd = open(v->host, O_RDONLY | O_DIRECTORY); /* on purpose without O_CLOEXEC */
	int high = fcntl(fd, F_DUPFD, 77);

	attack(v, &(struct job){ .words = { "fds" } }, ret);
	close(fd);
	close(high);
}

static void check_ipc(struct verify *v, struct verdict *ret)
{
	char key[16];
	int id = -1, k = 0x43530000 | (getpid() & 0xffff);

	id = shmget(k, 4096, IPC_CREAT | IPC_EXCL | 0666);
	if (id < 0) {
		verdict_set(ret, VERDICT_UNJUDGED, "no shared memory segment can be made: %s", strerrordesc_np(errno));
		return;
	}
	snprintf(key, sizeof key, "%d", k);
	attack(v, &(struct job){ .words = { "ipc", key } }, ret);
	(void)shmctl(id, IPC_RMID, NULL);
}

static void check_proc(struct verify *v, struct verdict *ret)
{
	attack(v, &(struct job){ .words = { "proc" } }, ret);
}

/* ---- network ---- */

struct listener {
	const char *kind;
	int fd;
	char name[160]; /* as the probe is told */
};

static int listen_inet(struct listener *l, int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;

	l->fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || bind(l->fd, (const void *)&a, sizeof a) < 0 || getsockname(l->fd, (void *)&a, &n) < 0)
		return -1;
	snprintf(l->name, sizeof l->name, "%u", ntohs(a.sin_port));
	return type == SOCK_STREAM ? listen(l->fd, 8) : 0;
}

static int listen_unix(struct listener *l, bool abstract, const struct verify *v)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n;

	if (abstract)
		snprintf(l->name, sizeof l->name, "caisson-verify-%s", v->token);
	else
		snprintf(l->name, sizeof l->name, "%.80s/socket", v->host);
	n = strlen(l->name);
	if (n + 1 >= sizeof a.sun_path)
		return -1;
	memcpy(a.sun_path + abstract, l->name, n);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || bind(l->fd, (const void *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0)
		return -1;
	if (!abstract && chmod(l->name, 0666) < 0)
		return -1;
	return listen(l->fd, 8);
}

/* Has anybody come?  What came is taken. */
static bool was_reached(const struct listener *l)
{
	char c;
	int fd;

	if (!strcmp(l->kind, "udp"))
		return recv(l->fd, &c, 1, MSG_DONTWAIT) == 1;
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Judged by the listener alone: an UDP datagram into the void looks sent from inside. */
static bool cannot_reach(const struct verify *v, const struct listener *l, struct verdict *ret)
{
	struct job j = { .words = { "connect", l->kind, l->name } };
	struct outcome o;

	job_outside(v, &j, &o);
	if (!was_reached(l)) {
		verdict_set(ret, VERDICT_UNJUDGED, "the %s listener on the host is not reached without a sandbox either", l->kind);
		return false;
	}
	job_inside(v, &j, &o);
	if (!verdict_ran(ret, &o))
		return false;
	if (!was_reached(l))
		return true;
	verdict_set(ret, VERDICT_BROKEN, "the %s listener on the host was reached from inside", l->kind);
	return false;
}

static void check_network(struct verify *v, struct verdict *ret)
{
	struct listener l[4] = { { .kind = "tcp", .fd = -1 }, { .kind = "udp", .fd = -1 }, { .kind = "abstract", .fd = -1 }, { .kind = "unix", .fd = -1 } };
	bool ok = listen_inet(&l[0], SOCK_STREAM) == 0 && listen_inet(&l[1], SOCK_DGRAM) == 0 && listen_unix(&l[2], true, v) == 0 &&
		  listen_unix(&l[3], false, v) == 0;

	if (!ok)
		verdict_set(ret, VERDICT_UNJUDGED, "listeners on the host's loopback: %s", strerrordesc_np(errno));
	for (size_t i = 0; ok && i < 4; i++)
		ok = cannot_reach(v, &l[i], ret);
	if (ok)
		verdict_set(ret, VERDICT_HELD, "host listeners (TCP, UDP, abstract and path socket) got nothing; reached without a sandbox");
	for (size_t i = 0; i < 4; i++)
		if (l[i].fd >= 0)
			close(l[i].fd);
}

/* ---- privileges ---- */

static void check_caps(struct verify *v, struct verdict *ret)
{
	attack(v, &(struct job){ .words = { "caps" } }, ret);
}

/* Where the caller is bound already there is no control, and no need of one. */
static void or_already(const struct verify *v, const struct job *j, struct verdict *ret, const char *already)
{
	struct outcome out, in;

	job_outside(v, j, &out);
	if (out.ran && out.status == PROBE_DID) {
		attack(v, j, ret);
		return;
	}
	if (is_refused(v, j, ret, &in))
		verdict_set(ret, VERDICT_HELD, "inside: %.120s; %s", in.text, already);
}

static void check_nnp(struct verify *v, struct verdict *ret)
{
	or_already(v, &(struct job){ .words = { "nnp" } }, ret, "the caller has it already");
}

static void check_seccomp(struct verify *v, struct verdict *ret)
{
	attack(v, &(struct job){ .words = { "seccomp" } }, ret);
}

static void check_mount(struct verify *v, struct verdict *ret)
{
	struct job out = { .words = { "mount", "apart", v->host } }, in = { .words = { "mount", "here", "/tmp" } };
	struct outcome o;

	if (control(v, &out, ret) && is_refused(v, &in, ret, &o))
		verdict_set(ret, VERDICT_HELD, "inside: %.150s; works without a sandbox", o.text);
}

static void check_userns(struct verify *v, struct verdict *ret)
{
	attack(v, &(struct job){ .words = { "userns" } }, ret);
}

static void check_ptrace(struct verify *v, struct verdict *ret)
{
	struct job j = { .words = { "ptrace" } };
	uint64_t yama = 0;

	if (sys_get_u64(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", &yama) == 0 && yama >= 2)
		or_already(v, &j, ret, "this host refuses it to everybody (yama)");
	else
		attack(v, &j, ret);
}

static void check_setuid(struct verify *v, struct verdict *ret)
{
	struct job out = { .words = { "setuid", v->host } }, in = { .words = { "setuid", "/tmp" } }, ws = { .words = { "setuid", v->ws } };
	struct outcome o;

	if (control(v, &out, ret) && is_refused(v, &in, ret, &o) && is_refused(v, &ws, ret, &o))
		verdict_set(ret, VERDICT_HELD, "inside: %.150s; works without a sandbox", o.text);
}

const struct check verify_attacks[] = {
	{ "host-files", "host files cannot be read", check_host_files, false },
	{ "home", "keys in the home directory cannot be read", check_home, false },
	{ "secrets", "secrets in the workspace are hidden", check_secrets, false },
	{ "write", "host files cannot be changed", check_write, false },
	{ "layer", "writes to the workspace stay private", check_layer, false },
	{ "processes", "host processes cannot be seen or ended", check_processes, false },
	{ "sibling", "sandboxes cannot see one another", check_sibling, false },
	{ "identity", "the program is not root on the host", check_identity, false },
	{ "environment", "the caller's environment is not visible", check_env, false },
	{ "descriptors", "open files are not inherited", check_fds, false },
	{ "ipc", "the host's shared memory is out of reach", check_ipc, false },
	{ "proc", "kernel files in /proc are covered", check_proc, false },
	{ "network", "the network is closed", check_network, false },
	{ "caps", "no capability can be had", check_caps, false },
	{ "nnp", "privileges cannot be gained by exec", check_nnp, false },
	{ "seccomp", "system calls are filtered", check_seccomp, false },
	{ "mount", "nothing can be mounted", check_mount, false },
	{ "userns", "no user namespace inside", check_userns, false },
	{ "ptrace", "processes cannot be traced", check_ptrace, false },
	{ "setuid", "no set-user-id file can be made", check_setuid, false },
	{ NULL, NULL, NULL, false },
};
