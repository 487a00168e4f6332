/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe.h"

#include "base/cleanup.h"
#include "sys/sys.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

/* ---- attempts in a child ---- */

typedef int (*attempt)(const void *arg); /* 0, or -1 with errno */

/* 0 or the errno of what was tried. */
static int try_in_child(attempt fn, const void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		int r = fn(arg) < 0 ? errno : 0;

		_exit(r < 0 || r > 250 ? EIO : r);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (WIFSIGNALED(status)) /* a filter that kills instead of refusing */
		return WTERMSIG(status) == SIGSYS ? EPERM : EIO;
	return WEXITSTATUS(status);
}

static int map_self(unsigned uid, unsigned gid)
{
	char text[64];

	if (sys_put(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		return -1;
	snprintf(text, sizeof text, "0 %u 1", gid);
	if (sys_put(AT_FDCWD, "/proc/self/gid_map", text) < 0)
		return -1;
	snprintf(text, sizeof text, "0 %u 1", uid);
	return sys_put(AT_FDCWD, "/proc/self/uid_map", text);
}

static int own_userns(void)
{
	unsigned uid = geteuid(), gid = getegid();

	return unshare(CLONE_NEWUSER) < 0 ? -1 : map_self(uid, gid);
}

/* The power to make namespaces: root has it, others get it from a user namespace. */
static int builder(int flags)
{
	if (geteuid() != 0 && own_userns() < 0)
		return -1;
	if (flags && unshare(flags) < 0)
		return -1;
	return flags & CLONE_NEWNS ? mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) : 0;
}

/* ---- the results ---- */

struct list {
	struct sys_probe *p;
	size_t n, max;
};

static struct sys_probe *add(struct list *l, const char *name, int err)
{
	static struct sys_probe spare;
	struct sys_probe *p = l->n < l->max ? &l->p[l->n++] : &spare;

	*p = (struct sys_probe){ .name = name, .ok = err == 0, .err = err };
	snprintf(p->detail, sizeof p->detail, "%s", err ? strerrordesc_np(err) : "works");
	return p;
}

static void detail(struct sys_probe *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void detail(struct sys_probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->detail, sizeof p->detail, fmt, ap);
	va_end(ap);
}

static void fix(struct sys_probe *p, const char *text)
{
	if (!p->ok)
		snprintf(p->fix, sizeof p->fix, "%s", text);
}

const struct sys_probe *sys_probe_find(const struct sys_probe *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].name, name))
			return &p[i];
	return NULL;
}

static void kernel(struct list *l)
{
	struct utsname u;
	int err = uname(&u) < 0 ? errno : 0;
	struct sys_probe *p = add(l, "kernel", err);

	if (!err)
		detail(p, "%.40s %.64s %.40s", u.sysname, u.release, u.machine);
}

/* ---- user namespaces ---- */

static int try_clone_userns(const void *arg)
{
	struct clone_args a = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t pid = sys_clone3(&a);
	int status;

	(void)arg;
	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : 0;
}

static int try_userns_map(const void *arg)
{
	(void)arg;
	return own_userns();
}

static int try_userns_power(const void *arg)
{
	(void)arg;
	if (own_userns() < 0 || unshare(CLONE_NEWNS) < 0)
		return -1;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static bool setting_is(const char *path, uint64_t value)
{
	uint64_t v;

	return sys_get_u64(AT_FDCWD, path, &v) == 0 && v == value;
}

static bool is_filtered(void)
{
	char text[8192];

	return sys_get(AT_FDCWD, "/proc/self/status", text, sizeof text) > 0 && strstr(text, "\nSeccomp:\t2");
}

static void explain_userns(struct sys_probe *p, const char *step)
{
	const char *because = "refused, and no setting that is known says why (a security module?)";
	const char *how = "look for denials with: sudo journalctl -k --grep 'apparmor|selinux|userns'";

	if (setting_is("/proc/sys/user/max_user_namespaces", 0)) {
		because = "user.max_user_namespaces is 0";
		how = "sudo sysctl -w user.max_user_namespaces=15000";
	} else if (p->err == ENOSPC || p->err == EUSERS) {
		because = "the number or depth of user namespaces is used up";
		how = "sudo sysctl -w user.max_user_namespaces=15000";
	} else if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", 0)) {
		because = "kernel.unprivileged_userns_clone is 0";
		how = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
	} else if (is_filtered() && !strcmp(step, "clone")) {
		because = "a system-call filter is on this process: a container's";
		how = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined ...";
	} else if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1)) {
		because = "AppArmor takes the capabilities away (kernel.apparmor_restrict_unprivileged_userns is 1)";
		how = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for caisson with `userns,`";
	} else if (p->err == EINVAL || p->err == ENOSYS) {
		because = "this kernel was built without user namespaces";
		how = "a kernel with CONFIG_USER_NS=y";
	}
	detail(p, "%s: %s: %s", step, strerrordesc_np(p->err), because);
	fix(p, how);
}

static void userns(struct list *l)
{
	static const struct {
		attempt fn;
		const char *step;
	} steps[] = { { try_clone_userns, "clone" }, { try_userns_map, "write id maps" }, { try_userns_power, "use its capabilities" } };
	struct sys_probe *p = add(l, "user namespaces", 0);

	detail(p, "made, ids mapped, capabilities usable");
	for (size_t i = 0; p->ok && i < sizeof steps / sizeof *steps; i++) {
		p->err = try_in_child(steps[i].fn, NULL);
		p->ok = p->err == 0;
		if (!p->ok)
			explain_userns(p, steps[i].step);
	}
}

static int try_namespace(const void *arg)
{
	return builder(*(const int *)arg);
}

static void namespaces(struct list *l)
{
	static const struct {
		const char *name, *config;
		int flag;
		bool extra;
	} ns[] = { { "mount namespace", "CONFIG_NAMESPACES", CLONE_NEWNS, false },
		   { "pid namespace", "CONFIG_PID_NS", CLONE_NEWPID, false },
		   { "ipc namespace", "CONFIG_IPC_NS", CLONE_NEWIPC, false },
		   { "uts namespace", "CONFIG_UTS_NS", CLONE_NEWUTS, false },
		   { "cgroup namespace", "CONFIG_CGROUPS", CLONE_NEWCGROUP, false },
		   { "network namespace", "CONFIG_NET_NS", CLONE_NEWNET, false },
		   { "time namespace", "CONFIG_TIME_NS", CLONE_NEWTIME, true } };

	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
		struct sys_probe *p = add(l, ns[i].name, try_in_child(try_namespace, &ns[i].flag));
		char how[96];

		snprintf(how, sizeof how, p->err == EPERM ? "allow user namespaces (see above)" : "a kernel with %s=y", ns[i].config);
		fix(p, how);
		p->extra = ns[i].extra;
	}
}

/* ---- single calls ---- */

static int try_fsopen(const void *arg)
{
	CS_FD int fs = -1, fd = -1;

	(void)arg;
	if (builder(CLONE_NEWNS) < 0)
		return -1;
	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "65536", 0) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	return fd < 0 ? -1 : move_mount(fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
}

static int try_mount_setattr(const void *arg)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	CS_FD int fd = -1;

	(void)arg;
	if (builder(CLONE_NEWNS) < 0)
		return -1;
	fd = open_tree(AT_FDCWD, "/usr", AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return fd < 0 ? -1 : mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &a, sizeof a);
}

static int try_openat2(const void *arg)
{
	(void)arg;
	return sys_openat2(AT_FDCWD, "/", O_PATH | O_CLOEXEC, RESOLVE_NO_MAGICLINKS) < 0 ? -1 : 0;
}

static int try_clone3(const void *arg)
{
	int pidfd = -1, status;
	struct clone_args a = { .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uint64_t)(uintptr_t)&pidfd };
	pid_t pid = sys_clone3(&a);

	(void)arg;
	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid(pid, &status, 0) < 0 || pidfd < 0 ? -1 : 0;
}

static int try_pidfd(const void *arg)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)arg;
	return fd < 0 ? -1 : sys_pidfd_send_signal(fd, 0);
}

static int try_close_range(const void *arg)
{
	(void)arg;
	return close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* ---- file systems ---- */

static int try_procfs(const void *arg)
{
	const char *subset = arg;
	int status = 0;
	pid_t pid;

	if (builder(CLONE_NEWNS | CLONE_NEWPID) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int fs = fsopen("proc", FSOPEN_CLOEXEC);
		bool bad = fs < 0 || (*subset && fsconfig(fs, FSCONFIG_SET_STRING, "subset", subset, 0) < 0) ||
			   fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 || fsmount(fs, FSMOUNT_CLOEXEC, 0) < 0;

		_exit(bad ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	return errno ? -1 : 0;
}

static int try_overlay(const void *arg)
{
	const char *option = arg;
	char text[128];

	if (builder(CLONE_NEWNS) < 0 || mount("tmpfs", "/tmp", "tmpfs", 0, "size=1m") < 0 || chdir("/tmp") < 0)
		return -1;
	if (mkdir("low", 0755) < 0 || mkdir("low/d", 0755) < 0 || mkdir("up", 0755) < 0 || mkdir("work", 0755) < 0 || mkdir("all", 0755) < 0)
		return -1;
	snprintf(text, sizeof text, "lowerdir=/tmp/low,upperdir=/tmp/up,workdir=/tmp/work,%s", option);
	return mount("overlay", "/tmp/all", "overlay", 0, text);
}

/* A directory of the base, removed and made again: the layer must note that it is another one. */
static int try_replace(const void *arg)
{
	return try_overlay(arg) < 0 || rmdir("/tmp/all/d") < 0 ? -1 : mkdir("/tmp/all/d", 0755);
}

static int try_tmpfs(const void *arg)
{
	(void)arg;
	return builder(CLONE_NEWNS) < 0 ? -1 : mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=16");
}

/* A descriptor of a user namespace that maps our own id to another. */
static int mapping_userns(void)
{
	char path[64], text[64];
	int gate[2], fd = -1;
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) == 0 && write(gate[1], "u", 1) == 1)
			pause();
		_exit(1);
	}
	close(gate[1]);
	if (pid > 0 && read(gate[0], text, 1) == 1) {
		snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
		(void)sys_put(AT_FDCWD, path, "0 65534 1"); /* judged by the mount below */
		snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
		(void)sys_put(AT_FDCWD, path, "0 65534 1");
		snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(gate[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return fd;
}

static int try_idmap(const void *arg)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_IDMAP };
	CS_FD int fd = -1, ns = mapping_userns();

	(void)arg;
	if (ns < 0 || builder(CLONE_NEWNS) < 0)
		return -1;
	a.userns_fd = (uint64_t)ns;
	fd = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return fd < 0 ? -1 : mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof a);
}

/* Refused because nothing of the kind can be done without namespaces. */
static bool for_want_of_userns(const struct list *l, const struct sys_probe *p)
{
	const struct sys_probe *ns = sys_probe_find(l->p, l->n, "mount namespace");

	return !p->ok && ns && !ns->ok;
}

static const char allow_userns[] = "allow user namespaces (see above)";

static void filesystems(struct list *l)
{
	const char *option = "redirect_dir=on";
	struct sys_probe *p;
	int err = try_in_child(try_procfs, "");

	fix(add(l, "tmpfs", try_in_child(try_tmpfs, NULL)), allow_userns);
	p = add(l, "procfs", err);
	if (err && try_in_child(try_procfs, "pid") == 0) {
		p->ok = true;
		detail(p, "only processes can be shown (subset=pid): the outer /proc is partly covered");
	} else if (err && !for_want_of_userns(l, p)) {
		detail(p, "%s: an outer container has covered parts of its /proc", strerrordesc_np(err));
	}
	fix(p, for_want_of_userns(l, p) ? allow_userns : "docker run --security-opt systempaths=unconfined ...  (podman: --security-opt unmask=ALL)");
	err = try_in_child(try_overlay, option);
	if (err) /* for those who are not the host's root */
		err = try_in_child(try_overlay, option = "userxattr");
	p = add(l, "overlayfs", err);
	if (p->ok && try_in_child(try_replace, option) == 0)
		detail(p, "works with a layer in memory");
	else if (p->ok)
		detail(p, "works, but a directory removed in a layer cannot be made again (needs Linux 6.6, or root)");
	fix(p, for_want_of_userns(l, p) ? allow_userns : p->err == ENODEV ? "sudo modprobe overlay" : "a kernel from 5.11 on; until then `--workspace-mode read`");
	p = add(l, "idmapped mounts", try_in_child(try_idmap, NULL));
	p->extra = true;
	if (!p->ok && geteuid())
		detail(p, "only root needs and may do this");
	else
		fix(p, "a workspace on ext4, xfs, btrfs or, from Linux 6.3 on, tmpfs");
}

static void calls(struct list *l)
{
	static const struct {
		const char *name;
		attempt fn;
		const char *since;
	} of[] = { { "new mount API", try_fsopen, "5.2" },	  { "mount_setattr", try_mount_setattr, "5.12" },
		   { "openat2", try_openat2, "5.6" },		  { "clone3", try_clone3, "5.3" },
		   { "pidfd", try_pidfd, "5.3" },		  { "close_range", try_close_range, "5.11" } };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct sys_probe *p = add(l, of[i].name, try_in_child(of[i].fn, NULL));
		char how[96];

		if (p->err == EPERM || is_filtered())
			snprintf(how, sizeof how, "allow user namespaces (see above), or a container filter that knows the call");
		else
			snprintf(how, sizeof how, "a kernel from %s on", of[i].since);
		fix(p, how);
	}
}

/* ---- filters ---- */

static int try_seccomp(const void *arg)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &pass };
	unsigned flags = *(const unsigned *)arg;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &prog) < 0 ? -1 : 0;
}

static int try_no_nesting(const void *arg)
{
	(void)arg;
	if (own_userns() < 0 || sys_put(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0") < 0)
		return -1;
	errno = EIO;
	return unshare(CLONE_NEWUSER) == 0 ? -1 : 0;
}

static int try_landlock(const void *arg)
{
	int abi = sys_landlock_abi(), fd;

	(void)arg;
	if (!abi)
		return errno = EOPNOTSUPP, -1;
	fd = sys_landlock_create(abi);
	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sys_landlock_enter(fd) < 0)
		return -1;
	errno = EIO; /* entered, and yet a file can be opened */
	return open("/", O_RDONLY | O_CLOEXEC) < 0 ? 0 : -1;
}

static void filters(struct list *l)
{
	static const unsigned plain = 0, notify = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	struct sys_probe *p = add(l, "landlock", try_in_child(try_landlock, NULL));
	int abi = (int)syscall(444 /* landlock_create_ruleset */, NULL, 0, 1);

	if (p->ok)
		detail(p, "ABI %d%s", abi, abi >= 6 ? "" : abi >= 3 ? ": files, but not signals and sockets" : ": files, but not truncation");
	else
		detail(p, "%s", abi < 0 && errno == EOPNOTSUPP ? "built in, but not switched on" : strerrordesc_np(p->err));
	fix(p, "boot with lsm=landlock,... before the modules of /sys/kernel/security/lsm; a kernel from 5.13 on");
	fix(add(l, "seccomp filter", try_in_child(try_seccomp, &plain)), "a kernel with CONFIG_SECCOMP_FILTER=y");
	p = add(l, "seccomp notification", try_in_child(try_seccomp, &notify));
	p->extra = true;
	fix(p, p->err == EBUSY ? "an outer filter has the only notifier: refused calls are not named" : "a kernel from 5.0 on");
	p = add(l, "nesting sysctl", try_in_child(try_no_nesting, NULL));
	p->extra = true;
	if (p->ok)
		detail(p, "a user namespace can bar others below it");
	fix(p, "a writable /proc/sys; without it the system-call filter bars nesting alone");
}

/* ---- control groups ---- */

static void control_groups(struct list *l)
{
	static const char *const names[] = { "cgroup memory", "cgroup pids", "cgroup cpu" };
	struct sys_probe *p = add(l, "cgroups", 0);
	struct sys_cgroup cg;
	char name[64];

	snprintf(name, sizeof name, "caisson-probe-%d", (int)getpid());
	sys_cgroup_make(&cg, name, 1u << SYS_CG_MEMORY | 1u << SYS_CG_PIDS | 1u << SYS_CG_CPU);
	p->ok = cg.mode != SYS_CGROUP_NONE;
	detail(p, "%s", sys_cgroup_mode_name(cg.mode));
	fix(p, "mount control groups: sudo mount -t cgroup2 none /sys/fs/cgroup");
	for (int c = 0; c <= SYS_CG_CPU; c++) {
		bool has = sys_cgroup_has(&cg, cg.mode == SYS_CGROUP_V2 ? SYS_CG_UNIFIED : (enum sys_cgroup_ctl)c);

		p = add(l, names[c], has ? 0 : cg.why[c] ? cg.why[c] : EACCES);
		detail(p, has ? "a group was made and removed" : "no group can be made: %s", strerrordesc_np(p->err));
		if (cg.mode == SYS_CGROUP_V2)
			fix(p, "sudo systemctl set-property user@$(id -u).service Delegate='memory pids cpu', then log in again");
		else
			fix(p, "run as root, or boot with systemd.unified_cgroup_hierarchy=1 and delegate the controllers");
	}
	sys_cgroup_remove(&cg);
}

/* ---- other things on the host ---- */

static void kvm(struct list *l)
{
	CS_FD int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int err = fd < 0 ? errno : 0;
	struct sys_probe *p = add(l, "/dev/kvm", err);

	p->extra = true;
	if (p->ok)
		detail(p, "can be opened");
	fix(p, err == EACCES ? "sudo usermod -aG kvm $(id -un), then log in again" : "switch virtualisation on in the firmware, or nesting in the host");
}

/* From the file itself: the C library's way would load libraries into a static program. */
static void user_name(char *ret, size_t size, const char *otherwise)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)) && pw->pw_uid != geteuid())
		;
	snprintf(ret, size, "%s", pw ? pw->pw_name : otherwise);
	if (f)
		fclose(f);
}

static bool has_map_tools(void)
{
	char path[64];

	return sys_find_tool("newuidmap", path) && sys_find_tool("newgidmap", path);
}

static void subuid(struct list *l)
{
	char text[16384], id[16], user[64];
	struct sys_probe *p = add(l, "subuid", 0);
	const char *found = NULL, *words[2] = { user, id };

	snprintf(id, sizeof id, "%u", (unsigned)geteuid());
	user_name(user, sizeof user, id);
	if (sys_get(AT_FDCWD, "/etc/subuid", text, sizeof text) < 0)
		text[0] = 0;
	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		for (int i = 0; i < 2; i++)
			if (!strncmp(at, words[i], strlen(words[i])) && at[strlen(words[i])] == ':')
				found = at;
	p->ok = found && has_map_tools();
	p->extra = true;
	if (p->ok)
		detail(p, "%.*s", (int)strcspn(found, "\n"), found);
	else if (geteuid() == 0)
		detail(p, "root needs none: it has ids of its own for `system: scratch`");
	else
		detail(p, "%s: with `system: scratch` packages with files of other users cannot be installed; nothing else needs it",
		       found ? "newuidmap and newgidmap are not there" : "no line for you in /etc/subuid");
	fix(p, geteuid() == 0 || p->ok ? "" : found ? "install the package uidmap" : "sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $(id -un)");
}

size_t sys_probe_host(struct sys_probe *ret, size_t max)
{
	struct list l = { ret, 0, max };

	kernel(&l);
	userns(&l);
	namespaces(&l);
	calls(&l);
	filesystems(&l);
	filters(&l);
	control_groups(&l);
	kvm(&l);
	subuid(&l);
	return l.n;
}
