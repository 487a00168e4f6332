/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - the caller's side of the native back end. */
#include "sandbox/native/internal.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

uint64_t native_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void native_step(struct native_plan *p, enum native_step s)
{
	p->report->step_ns[s] = native_now() - p->start_ns;
}

void native_active(struct native_plan *p, enum protection prot)
{
	p->report->active |= PROT_BIT(prot);
	p->report->why[prot] = 0;
}

/* ---- before clone ---- */

static int by_target_length(const void *a, const void *b)
{
	const struct sandbox_bind *x = *(const struct sandbox_bind *const *)a, *y = *(const struct sandbox_bind *const *)b;
	size_t lx = strlen(x->target ? x->target : x->source), ly = strlen(y->target ? y->target : y->source);

	return lx < ly ? -1 : lx > ly;
}

/* Parents before children; which of them need their owner mapped. */
static int plan_binds(struct native_plan *p, const struct sandbox_bind **binds, int *idmap, bool *maps, struct native_owner *owners, struct cs_err *err)
{
	const struct sandbox_spec *spec = p->spec;

	for (size_t i = 0; i < spec->n_binds; i++) {
		binds[i] = &spec->binds[i];
		idmap[i] = -1;
	}
	qsort(binds, spec->n_binds, sizeof *binds, by_target_length);
	for (size_t i = 0; i < spec->n_binds; i++) {
		struct stat st;

		maps[i] = p->ids.ranged && binds[i]->kind != SANDBOX_RO;
		if (!maps[i])
			continue;
		if (stat(binds[i]->source, &st) < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "open '%s'", binds[i]->source);
		owners[i] = (struct native_owner){ st.st_uid, st.st_gid };
	}
	p->binds = binds;
	p->idmap = idmap;
	p->maps = maps;
	p->owners = owners;
	return 0;
}

/* A child that has ended says itself why; any other failure would leave it waiting. */
static int hand_over(int sock, char what, int fd, struct cs_err *err)
{
	if (native_send_fd(sock, what, fd) == 0 || errno == EPIPE || errno == ECONNRESET)
		return 0;
	return cs_fail(err, CS_E_SYSTEM, errno, "hand process 1 what it waits for");
}

/* In the order the child asks for them: as bound, those in nothing read-only last. */
static int send_idmaps(struct native_plan *p, int sock, struct native_holder *holders, struct cs_err *err)
{
	for (size_t i = 0; i < p->spec->n_binds; i++) {
		CS_FD int fd = -1;

		if (!p->maps[i]) /* NOLINT(clang-analyzer-core.NullDereference): plan_binds() set it */
			continue;
		fd = native_idmap_userns(&p->ids, p->owners[i].uid, p->owners[i].gid, p->binds[i]->scratch, holders++, err);
		if (fd < 0)
			return fd;
		if (hand_over(sock, 'I', fd, err) < 0)
			return -CS_E_SYSTEM;
		if (p->spec->stem) /* for the layers to come */
			p->idmap[i] = CS_TAKE_FD(fd);
	}
	return 0;
}

static uint64_t clone_flags(const struct native_plan *p)
{
	static const struct {
		enum protection prot;
		uint64_t flag;
	} ns[] = { { PROT_PIDNS, CLONE_NEWPID }, { PROT_IPCNS, CLONE_NEWIPC }, { PROT_UTSNS, CLONE_NEWUTS } };
	uint64_t flags = CLONE_NEWNS | CLONE_PIDFD;

	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
		if (native_on(p, ns[i].prot))
			flags |= ns[i].flag;
	if (p->builder_userns)
		flags |= CLONE_NEWUSER;
	return flags;
}

static int clone_failed(struct cs_err *err, int sys)
{
	if (sys == EPERM || sys == ENOSPC || sys == EUSERS || sys == ENOSYS)
		return cs_fail(err, CS_E_UNSUPPORTED, sys,
			       "new namespaces are refused here (user namespaces switched off, or a container's filter; "
			       "`caisson doctor` says which and how to allow them)");
	return cs_fail(err, CS_E_SYSTEM, sys, "start the sandbox's first process");
}

static int clone_init(struct native_plan *p, struct sandbox *s, int child_sock, struct cs_err *err)
{
	struct clone_args a = { .flags = clone_flags(p), .exit_signal = SIGCHLD, .pidfd = (uint64_t)(uintptr_t)&s->pidfd };

	if (s->cgroup->dir[SYS_CG_UNIFIED] >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = (uint64_t)s->cgroup->dir[SYS_CG_UNIFIED];
	}
	s->pid = sys_clone3(&a);
	if (s->pid == 0) {
		p->sock = child_sock;
		close(s->sock);
		for (size_t i = 0; i < s->n_net; i++)
			close(s->net[i]);
		native_stem_done(s);
		native_init(p);
	}
	if (s->pid < 0)
		return clone_failed(err, errno);
	return 0;
}

static bool is_v2(const struct sandbox *s)
{
	return s->cgroup->mode == SYS_CGROUP_V2;
}

static void record_cgroups(const struct sandbox_spec *spec, const struct sys_cgroup *cg)
{
	const char *paths[SYS_CG_MAX];
	size_t n = 0;

	for (int c = 0; c < SYS_CG_MAX; c++)
		if (cg->path[c][0])
			paths[n++] = cg->path[c];
	spec->record(paths, n, spec->record_arg);
}

static int make_cgroups(struct native_plan *p, struct sandbox *s, struct cs_err *err)
{
	unsigned want = native_cgroup_wanted(p->spec->limits, p->spec->off);
	char name[64];

	snprintf(name, sizeof name, "caisson-%s", p->spec->id);
	if (want)
		sys_cgroup_plan(s->cgroup, name, want);
	if (p->spec->record)
		record_cgroups(p->spec, s->cgroup);
	sys_cgroup_create(s->cgroup);
	s->report->cgroup = *s->cgroup;
	return native_cgroup_limit(s->cgroup, p->spec->limits, native_own_processes(p->spec), err);
}

static size_t count_maps(const struct native_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->spec->n_binds; i++)
		n += p->maps[i]; /* NOLINT(clang-analyzer-core.NullDereference): plan_binds() set it */
	return n;
}

/* Which binds of a stem can be given another layer, and where they stand in the plan. */
static void note_layers(struct sandbox *s, const struct native_plan *p)
{
	const struct sandbox_spec *spec = p->spec;

	if (!spec->stem)
		return;
	s->n_binds = spec->n_binds;
	s->layers = cs_calloc(s->n_binds, sizeof *s->layers);
	s->order = cs_calloc(s->n_binds, sizeof *s->order);
	for (size_t i = 0; i < s->n_binds; i++) {
		const struct sandbox_bind *b = p->binds[i]; /* NOLINT(clang-analyzer-core.NullDereference): plan_binds() set it */
		size_t at = (size_t)(b - spec->binds);

		s->order[at] = i;
		if (b->kind == SANDBOX_LAYER && b->store)
			s->layers[at] = NATIVE_LAYER;
		for (size_t k = 0; s->layers[at] && k < s->n_binds; k++)
			if (native_below(native_target(p->binds[k]), native_target(b)))
				s->layers[at] = NATIVE_LAYER_COVERED;
	}
}

static bool has_layers(const struct sandbox *s)
{
	for (size_t i = 0; i < s->n_binds; i++)
		if (s->layers[i])
			return true;
	return false;
}

/* What the caller does while the child builds: on a second CPU it is free. */
static int build_alongside(struct native_plan *p, struct sandbox *s, struct cs_err *err)
{
	size_t n = count_maps(p);
	CS_FREE struct native_holder *holders = cs_calloc(n, sizeof *holders);
	int r = send_idmaps(p, s->sock, holders, err);

	if (r == 0 && !is_v2(s))
		r = make_cgroups(p, s, err);
	if (r == 0)
		r = hand_over(s->sock, 'C', -1, err);
	if (r == 0 && has_layers(s))
		r = native_mounter_start(s, p, err);
	for (size_t i = 0; p->spec->stem && i < p->spec->n_binds; i++)
		cs_close_p(&p->idmap[i]);
	for (size_t i = 0; i < n; i++)
		native_idmap_reap(&holders[i]); /* last: it waits for them to be scheduled */
	return r;
}

static struct sandbox *new_sandbox(const struct sandbox_spec *spec)
{
	struct sandbox *s = cs_new(struct sandbox);

	s->pid = -1;
	s->pidfd = s->sock = s->tmpfs = s->listener = s->ids.lock_fd = -1;
	s->ctl = s->exec = s->epoll = s->mount_sock = -1;
	s->limits = *spec->limits;
	s->network = spec->off & PROT_BIT(PROT_NETNS) ? NULL : spec->network;
	s->want_net = s->network ? SANDBOX_NET_FDS - SANDBOX_PORTS_MAX + s->network->n_ports : 0;
	if (spec->off & PROT_BIT(PROT_LIMIT_MEMORY))
		s->limits.memory = 0; /* not sampled either */
	if (spec->off & PROT_BIT(PROT_LIMIT_DISK))
		s->limits.disk = s->limits.inodes = 0;
	s->report = mmap(NULL, sizeof *s->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->report == MAP_FAILED) {
		free(s);
		return NULL;
	}
	s->cgroup = &s->cgroup_store;
	sys_cgroup_init(s->cgroup);
	return s;
}

static int launch(struct native_plan *p, struct sandbox *s, struct cs_err *err)
{
	int pair[2], r = 0;

	if (sys_cgroup_mode() == SYS_CGROUP_V2) /* there the child is born in it */
		r = make_cgroups(p, s, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make a socket pair");
	s->sock = pair[0];
	if (p->spec->stem && native_stem_open(s, p) < 0)
		r = cs_fail(err, CS_E_SYSTEM, errno, "make the stem's sockets");
	native_step(p, STEP_PREPARE);
	if (r == 0)
		r = clone_init(p, s, pair[1], err);
	close(pair[1]);
	cs_close_p(&p->stem_ctl);
	cs_close_p(&p->stem_exec);
	if (r == 0 && p->ids.wide && p->builder_userns) {
		r = native_subids_map(&p->ids, s->pid, err);
		if (r == 0)
			r = hand_over(s->sock, 'M', -1, err);
	}
	return r < 0 ? r : build_alongside(p, s, err);
}

/* What lands in the layers on disk is counted by us. */
static int open_quotas(struct sandbox *s, const struct sandbox_spec *spec, struct cs_err *err)
{
	s->quotas = cs_calloc(spec->n_binds, sizeof *s->quotas);
	for (size_t i = 0; i < spec->n_binds; i++)
		if (spec->binds[i].kind == SANDBOX_LAYER && spec->binds[i].store &&
		    native_quota_open(&s->quotas[s->n_quotas++], i, spec->binds[i].store) < 0)
			return cs_fail(err, CS_E_SYSTEM, errno, "look at the layer on disk over '%s'", spec->binds[i].source);
	return 0;
}

/* Whether a layer can be kept where it was asked for is known before anything runs inside: then
 * the first message comes, or the end. */
static int wait_for_layers(struct sandbox *s, struct cs_err *err)
{
	struct pollfd first = { .fd = s->sock, .events = POLLIN };
	struct sandbox_exit end;

	if (!s->n_quotas)
		return 0;
	while (poll(&first, 1, -1) < 0 && errno == EINTR)
		;
	if (atomic_load(&s->report->state) != NATIVE_FAILED || !s->report->bad_store)
		return 0;
	sandbox_wait(s, &end);
	if (err)
		*err = end.err;
	return -(int)end.err.code;
}

/* As root every place that lasts is mapped for one id.  Rootless a file that is written for real, or kept, could be
 * given to a subordinate id, and its owner could neither read nor remove it. */
static bool may_be_wide(const struct sandbox_spec *spec)
{
	for (size_t i = 0; i < spec->n_binds && geteuid() != 0; i++)
		if (spec->binds[i].kind != SANDBOX_RO && !spec->binds[i].scratch)
			return false;
	return spec->installs && !spec->one_id;
}

int sandbox_start(const struct sandbox_spec *spec, struct sandbox **ret, struct cs_err *err)
{
	struct native_plan plan = { .spec = spec, .start_ns = native_now(), .tmpfs_fd = -1, .ro_fd = -1, .root_fd = -1, .proc_fd = -1,
				    .stem_ctl = -1, .stem_exec = -1, .program_userns = -1 };
	CS_FREE const struct sandbox_bind **binds = cs_calloc(spec->n_binds, sizeof *binds);
	CS_FREE int *idmap = cs_calloc(spec->n_binds, sizeof *idmap);
	CS_FREE bool *maps = cs_calloc(spec->n_binds, sizeof *maps);
	CS_FREE struct native_owner *owners = cs_calloc(spec->n_binds, sizeof *owners);
	struct sandbox *s = new_sandbox(spec);
	int r;

	if (!s)
		return cs_fail(err, CS_E_SYSTEM, errno, "get a page to report through");
	s->start_ns = plan.start_ns;
	plan.report = s->report;
	plan.landlock_abi = sys_landlock_abi();
	r = native_ids_pick(&s->ids, spec->installs, may_be_wide(spec), err);
	if (r == 0) {
		plan.ids = s->ids;
		plan.builder_userns = !s->ids.ranged;
		r = plan_binds(&plan, binds, idmap, maps, owners, err);
		if (r == 0)
			r = open_quotas(s, spec, err);
		if (r == 0)
			note_layers(s, &plan);
		if (r == 0)
			r = launch(&plan, s, err);
		if (r == 0)
			r = wait_for_layers(s, err);
	}
	if (r < 0) {
		sandbox_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* ---- while it runs ---- */

int sandbox_pidfd(const struct sandbox *s)
{
	return s->pidfd;
}

pid_t sandbox_pid(const struct sandbox *s)
{
	return s->pid;
}

int sandbox_event_fd(const struct sandbox *s)
{
	return s->epoll >= 0 ? s->epoll : s->sock;
}

static void take_messages(struct sandbox *s)
{
	int fd;
	char what;

	while (s->sock >= 0 && (what = native_receive(s->sock, false, &fd))) {
		int *slot = what == 'T' ? &s->tmpfs : what == 'L' ? &s->listener : NULL;

		if (what == 'S')
			s->stopped = true;
		if (what == 'N' && fd >= 0 && s->n_net < s->want_net)
			s->net[s->n_net++] = CS_TAKE_FD(fd);
		if (slot && *slot < 0)
			*slot = CS_TAKE_FD(fd);
		if (fd >= 0)
			close(fd);
	}
}

bool sandbox_take_stop(struct sandbox *s)
{
	bool stopped;

	take_messages(s);
	stopped = s->stopped;
	s->stopped = false;
	return stopped;
}

int sandbox_refusal_fd(struct sandbox *s)
{
	return s->listener;
}

int sandbox_next_refusal(struct sandbox *s, struct sandbox_refusal *ret)
{
	int r = s->listener < 0 ? 0 : native_refusal(s->listener, s->network, ret);

	if (r < 0) {
		close(s->listener);
		s->listener = -1;
	}
	return r > 0;
}

size_t sandbox_take_network(struct sandbox *s, int ret[SANDBOX_NET_FDS])
{
	size_t n = s->want_net;

	take_messages(s);
	if (!n || s->n_net < n)
		return 0;
	memcpy(ret, s->net, n * sizeof *ret);
	s->want_net = s->n_net = 0;
	return n;
}

int sandbox_layer(struct sandbox *s)
{
	CS_FD int top = -1;
	CS_DIR DIR *d = NULL;
	struct dirent *e;

	take_messages(s);
	top = s->tmpfs < 0 ? -1 : openat(s->tmpfs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = top < 0 ? NULL : fdopendir(top);
	if (!d)
		return -1;
	(void)CS_TAKE_FD(top); /* the stream's now */
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, "up", 2))
			return openat(s->tmpfs, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return -1;
}

void sandbox_signal(struct sandbox *s, int sig)
{
	if (!s->waited)
		(void)sys_pidfd_send_signal(s->pidfd, sig); /* fails only when it has ended */
}

static void keep_most(struct sandbox *s, const struct sandbox_usage *u)
{
	if (u->cpu_ms > s->seen_cpu_ms)
		s->seen_cpu_ms = u->cpu_ms;
	if (u->memory_now > s->seen_memory)
		s->seen_memory = u->memory_now;
}

void sandbox_kill(struct sandbox *s)
{
	const struct profile_limits count_all = { .memory = UINT64_MAX, .cpu_time = UINT64_MAX };
	struct sandbox_usage u = { 0 };

	/* Who is killed with the namespace is reaped by the kernel and counted by nobody: look now. */
	if (!s->waited && s->pid > 0) {
		native_usage_procs(s->pid, &count_all, true, true, &u);
		keep_most(s, &u);
	}
	sandbox_signal(s, SIGKILL);
}

static int unified(const struct sandbox *s, enum sys_cgroup_ctl c)
{
	return s->cgroup->mode == SYS_CGROUP_V2 ? s->cgroup->dir[SYS_CG_UNIFIED] : s->cgroup->dir[c];
}

/* "word N" in a file of such lines. */
static uint64_t keyed(int dir, const char *file, const char *word)
{
	char text[4096], *at;
	unsigned long long v = 0;

	if (dir < 0 || sys_get(dir, file, text, sizeof text) < 0)
		return 0;
	for (at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, word, strlen(word)) && at[strlen(word)] == ' ')
			v = strtoull(at + strlen(word) + 1, NULL, 10);
	return v;
}

static void usage_disk(struct sandbox *s, struct sandbox_usage *u)
{
	struct statfs fs;

	take_messages(s);
	if (s->tmpfs < 0 || fstatfs(s->tmpfs, &fs) < 0)
		return;
	u->disk_limit = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	u->disk_now = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	u->inodes_limit = fs.f_files;
	u->inodes_now = fs.f_files - fs.f_ffree;
}

/* After memory has been measured: what lies on disk is none. */
static void usage_stores(struct sandbox *s, bool last, struct sandbox_usage *u)
{
	struct native_room limit = { s->limits.disk ? s->limits.disk : UINT64_MAX, s->limits.inodes ? s->limits.inodes : UINT64_MAX };

	for (size_t i = 0; i < s->n_quotas; i++)
		native_quota_add(&s->quotas[i], &limit, last ? -1 : s->pid, last, u);
	if (s->n_quotas && s->limits.disk)
		u->disk_limit = limit.bytes;
	u->disk_sampled = s->n_quotas > 0;
	if (s->n_quotas && s->limits.inodes)
		u->inodes_limit = limit.inodes;
}

static bool oom_killed(const struct sandbox *s)
{
	return keyed(unified(s, SYS_CG_MEMORY), is_v2(s) ? "memory.events" : "memory.oom_control", "oom_kill") > 0;
}

static void usage_cgroup(struct sandbox *s, struct sandbox_usage *u)
{
	int mem = unified(s, SYS_CG_MEMORY), pids = unified(s, SYS_CG_PIDS), uni = s->cgroup->dir[SYS_CG_UNIFIED];
	uint64_t ns;

	if (mem >= 0) {
		(void)sys_get_u64(mem, is_v2(s) ? "memory.current" : "memory.usage_in_bytes", &u->memory_now);
		u->oom = oom_killed(s);
	}
	if (pids >= 0)
		(void)sys_get_u64(pids, "pids.current", &u->processes);
	if (uni >= 0)
		u->cpu_ms = keyed(uni, "cpu.stat", "usage_usec") / 1000;
	else if (sys_get_u64(s->cgroup->dir[SYS_CG_CPUACCT], "cpuacct.usage", &ns) == 0)
		u->cpu_ms = ns / 1000000;
}

/* What is told at the end, and no more: each file read is time the caller waits. */
void sandbox_look_last(struct sandbox *s)
{
	struct sandbox_usage *u = &s->last;
	int mem = unified(s, SYS_CG_MEMORY), pids = unified(s, SYS_CG_PIDS);
	bool well = atomic_load(&s->report->state) == NATIVE_ENDED && s->report->status == 0;

	if (s->looked)
		return;
	s->looked = true;
	if (mem >= 0)
		(void)sys_get_u64(mem, is_v2(s) ? "memory.peak" : "memory.max_usage_in_bytes", &u->memory_peak);
	if (mem >= 0 && !well)
		u->oom = oom_killed(s);
	if (pids >= 0)
		u->pids_denied = keyed(pids, "pids.events", "max");
	usage_disk(s, u);
	usage_stores(s, true, u);
}

static void usage_final(struct sandbox *s, const struct rusage *ru)
{
	struct sandbox_usage *u = &s->last;

	sandbox_look_last(s);
	/* What process 1 reaped; who was killed with it was looked at before. */
	u->cpu_ms = (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000 +
		    (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec) / 1000;
	if (u->cpu_ms < s->seen_cpu_ms)
		u->cpu_ms = s->seen_cpu_ms;
	if (!u->memory_peak)
		u->memory_peak = (uint64_t)ru->ru_maxrss << 10 > s->seen_memory ? (uint64_t)ru->ru_maxrss << 10 : s->seen_memory;
}

void sandbox_usage(struct sandbox *s, struct sandbox_usage *ret)
{
	if (s->waited) {
		*ret = s->last;
		return;
	}
	*ret = (struct sandbox_usage){ 0 };
	usage_cgroup(s, ret);
	usage_disk(s, ret);
	native_usage_procs(s->pid, &s->limits, unified(s, SYS_CG_MEMORY) < 0,
			   s->cgroup->dir[SYS_CG_UNIFIED] < 0 && s->cgroup->dir[SYS_CG_CPUACCT] < 0, ret);
	usage_stores(s, false, ret);
	keep_most(s, ret);
	if (ret->pids_denied && unified(s, SYS_CG_PIDS) < 0)
		s->last.pids_denied = ret->pids_denied; /* remembered: nothing counts on */
}

bool sandbox_unmapped(const struct sandbox *s)
{
	return s->report->unmapped;
}

bool sandbox_has_block(const struct sandbox *s)
{
	return s->ids.wide;
}

bool sandbox_cleared(const struct sandbox *s)
{
	return !s->left;
}

protection_set sandbox_active(const struct sandbox *s)
{
	return s->report->active & PROT_ALL;
}

const char *sandbox_why_off(const struct sandbox *s, enum protection p)
{
	int why = s->report->why[p];

	if (s->report->active & PROT_BIT(p) || why == 0)
		return NULL;
	if (why == ENODATA)
		return "no such limit is set";
	if (p == PROT_IDRANGE)
		return why == EPERM ? "only root can give a sandbox ids of its own" : "too few ids are mapped here";
	if (p == PROT_LIMIT_MEMORY || p == PROT_LIMIT_CPU)
		return p == PROT_LIMIT_MEMORY ? "no control group can be made here: sampled" : "no control group can be made here: whole CPUs";
	return strerrordesc_np(why);
}

static const char *const step_names[STEP_MAX] = {
#define X(id, text) [STEP_##id] = text,
	NATIVE_STEPS(X)
#undef X
};

size_t sandbox_steps(const struct sandbox *s, struct sandbox_step *ret, size_t max)
{
	size_t n = 0;

	for (int i = 0; i < STEP_MAX && n < max; i++)
		if (s->report->step_ns[i])
			ret[n++] = (struct sandbox_step){ step_names[i], s->report->step_ns[i] };
	return n;
}

/* ---- the end ---- */

static void judge_end(struct sandbox *s, struct sandbox_exit *ret)
{
	enum native_state state = atomic_load(&s->report->state);

	*ret = (struct sandbox_exit){ 0 };
	if (state == NATIVE_FAILED) {
		ret->err = s->report->err;
		ret->err.msg[sizeof ret->err.msg - 1] = 0;
		if (ret->err.code <= CS_OK || ret->err.code >= CS_CODE_MAX)
			ret->err.code = CS_E_SYSTEM;
		return;
	}
	ret->started = state != NATIVE_BUILDING;
	ret->status = s->report->status;
	ret->killed_outside = state != NATIVE_ENDED;
	if (!ret->started)
		(void)cs_fail(&ret->err, CS_E_SYSTEM, 0, "the sandbox was killed while it was being built");
}

void sandbox_wait(struct sandbox *s, struct sandbox_exit *ret)
{
	struct rusage ru = { 0 };

	if (!s->waited) {
		while (wait4(s->pid, &s->status, 0, &ru) < 0 && errno == EINTR)
			;
		s->report->step_ns[STEP_GONE] = native_now() - s->start_ns;
		usage_final(s, &ru);
		s->waited = true;
		s->left = !sys_cgroup_remove(s->cgroup);
		s->report->step_ns[STEP_CLEARED] = native_now() - s->start_ns;
	}
	judge_end(s, ret);
}

void sandbox_free(struct sandbox *s)
{
	struct sandbox_exit end;
	int *fds[4];

	if (!s)
		return;
	if (s->pid > 0 && !s->waited) {
		sandbox_kill(s);
		sandbox_wait(s, &end);
	}
	for (size_t i = 0; i < s->n_quotas; i++)
		native_quota_done(&s->quotas[i]);
	free(s->quotas);
	native_stem_done(s);
	native_mounter_done(s);
	free(s->ended);
	free(s->layers);
	free(s->order);
	(void)sys_cgroup_remove(s->cgroup);
	native_ids_done(&s->ids);
	fds[0] = &s->pidfd, fds[1] = &s->sock, fds[2] = &s->tmpfs, fds[3] = &s->listener;
	for (int i = 0; i < 4; i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	if (s->report)
		munmap(s->report, sizeof *s->report);
	free(s);
}

void sandbox_forget(struct sandbox *s)
{
	/* Descriptors and memory are ours; processes and control groups are not. */
	s->waited = true;
	s->mounter = 0;
	for (int c = 0; c < SYS_CG_MAX; c++) {
		if (s->cgroup->dir[c] >= 0)
			close(s->cgroup->dir[c]);
		s->cgroup->dir[c] = -1;
		s->cgroup->path[c][0] = 0;
	}
	sandbox_free(s);
}
