/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *tmp(void)
{
	static const char *dir; /* t_tmpdir() makes another one each time */

	return dir ? dir : (dir = t_tmpdir());
}

static void path_in(char *ret, size_t size, const char *name)
{
	snprintf(ret, size, "%s/%s", tmp(), name);
}

/* ---- descriptors beside a message ---- */

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Room for one is, rounded up, room for two: a sender who is not to be trusted fills it. */
TEST(of_descriptors_too_many_are_closed)
{
	_Alignas(struct cmsghdr) char out[SYS_FDS_ROOM(3)] = { 0 }, in[SYS_FDS_ROOM(1)];
	int pair[2], given[3] = { 0, 1, 2 }, taken[1] = { -1 }, before;
	char word = 'w';
	struct iovec iov = { &word, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 }, got = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = in };

	T_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = open_fds();
	for (size_t n = 1; n <= 3; n++) {
		sys_put_fds(&m, out, given, n);
		T_INT(sendmsg(pair[0], &m, 0), 1);
		got.msg_controllen = sizeof in;
		T_INT(recvmsg(pair[1], &got, MSG_CMSG_CLOEXEC), 1);
		T_INT((long)sys_take_fds(&got, taken, 1), 1);
		T_TRUE(fcntl(taken[0], F_GETFD) == FD_CLOEXEC);
		T_INT(open_fds(), before + 1);
		close(taken[0]);
	}
	sys_put_fds(&m, out, given, 0);
	T_INT(sendmsg(pair[0], &m, 0), 1);
	got.msg_controllen = sizeof in;
	T_INT(recvmsg(pair[1], &got, MSG_CMSG_CLOEXEC), 1);
	T_INT((long)sys_take_fds(&got, taken, 1), 0);
	close(pair[0]);
	close(pair[1]);
}

/* ---- files ---- */

TEST(what_is_put_is_what_is_got)
{
	char path[512], got[64];
	int fd;

	path_in(path, sizeof path, "f");
	T_INT(sys_put(AT_FDCWD, path, "x"), -1); /* it never makes one */
	T_INT(errno, ENOENT);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	close(fd);
	T_INT(sys_put(AT_FDCWD, path, "hello\n"), 0);
	T_INT(sys_get(AT_FDCWD, path, got, sizeof got), 6);
	T_STR(got, "hello\n");
	T_INT(sys_get(AT_FDCWD, path, got, 4), 3); /* cut, and still a string */
	T_STR(got, "hel");
	T_INT(sys_get(AT_FDCWD, "/nonexistent", got, sizeof got), -1);
	T_INT(errno, ENOENT);
	T_INT(sys_get(AT_FDCWD, "/", got, sizeof got), -1);
	T_INT(sys_put(AT_FDCWD, "/dev/full", "x"), -1);
	T_INT(errno, ENOSPC);
	T_INT(sys_put(AT_FDCWD, path, ""), 0);
}

TEST(put_and_get_work_below_a_directory_and_leave_no_descriptor)
{
	int dir = open(tmp(), O_PATH | O_DIRECTORY | O_CLOEXEC), before;
	char got[16];

	close(openat(dir, "g", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	before = t_count_fds();
	for (int i = 0; i < 20; i++) {
		T_INT(sys_put(dir, "g", "42"), 0);
		T_INT(sys_get(dir, "g", got, sizeof got), 2);
		T_INT(sys_get(dir, "none", got, sizeof got), -1);
		T_INT(sys_put(dir, "none", "x"), -1);
	}
	T_INT(t_count_fds(), before);
}

TEST(numbers_of_kernel_files)
{
	static const struct {
		const char *text;
		int r;
		uint64_t v;
	} rows[] = { { "0\n", 0, 0 }, { "4096", 0, 4096 }, { "max\n", 0, UINT64_MAX }, { "18446744073709551615\n", 0, UINT64_MAX },
		     { "18446744073709551616\n", -1, 0 }, { "", -1, 0 }, { "x", -1, 0 }, { "12 34", 0, 12 } };
	char path[512];

	path_in(path, sizeof path, "n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t v = 7;
		FILE *f = fopen(path, "we");

		fputs(rows[i].text, f);
		fclose(f);
		T_INT(sys_get_u64(AT_FDCWD, path, &v), rows[i].r);
		T_TRUE(v == (rows[i].r ? 7 : rows[i].v));
	}
	T_INT(sys_get_u64(AT_FDCWD, "/nonexistent", &(uint64_t){ 0 }), -1);
}

TEST(a_path_is_opened_through_symlinks_but_not_through_magic_ones)
{
	char link[512], magic[64];
	struct stat a, b;
	int fd;

	path_in(link, sizeof link, "link");
	T_INT(symlink("/etc", link), 0);
	fd = sys_open_path(link);
	T_TRUE(fd >= 0);
	T_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	T_TRUE(fcntl(fd, F_GETFL) & O_PATH);
	T_TRUE(fstat(fd, &a) == 0 && stat("/etc", &b) == 0 && a.st_ino == b.st_ino);
	T_INT(sys_open_path("/nonexistent"), -1);
	T_INT(errno, ENOENT);
	snprintf(magic, sizeof magic, "/proc/self/fd/%d", fd);
	T_INT(sys_open_path(magic), -1);
	T_INT(errno, ELOOP);
	T_INT(sys_open_path("/proc/self/root/etc"), -1);
	T_INT(errno, ELOOP);
}

/* ---- control groups ---- */

TEST(the_kind_of_control_groups_is_found)
{
	enum sys_cgroup_mode m = sys_cgroup_mode();

	T_TRUE(m >= SYS_CGROUP_NONE && m <= SYS_CGROUP_V2);
	T_INT(m == SYS_CGROUP_V2, access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0);
	if (m == SYS_CGROUP_HYBRID)
		T_INT(access("/sys/fs/cgroup/unified/cgroup.procs", F_OK), 0);
	t_note("control groups: %s", sys_cgroup_mode_name(m));
	for (int i = SYS_CGROUP_NONE; i <= SYS_CGROUP_V2; i++)
		T_TRUE(*sys_cgroup_mode_name((enum sys_cgroup_mode)i));
	for (int c = 0; c < SYS_CG_MAX; c++)
		T_TRUE(*sys_cgroup_ctl_name((enum sys_cgroup_ctl)c));
}

TEST(groups_are_made_or_the_reason_is_known_and_they_go_again)
{
	struct sys_cgroup cg;
	char name[64], path[SYS_CG_MAX][256];
	int made = 0, before = t_count_fds();

	snprintf(name, sizeof name, "cs-test-sys-%d", (int)getpid());
	sys_cgroup_make(&cg, name, 1u << SYS_CG_MEMORY | 1u << SYS_CG_PIDS);
	memcpy(path, cg.path, sizeof path);
	for (int c = 0; c < SYS_CG_MAX; c++) {
		T_INT(sys_cgroup_has(&cg, (enum sys_cgroup_ctl)c), cg.path[c][0] != 0);
		made += cg.path[c][0] != 0;
		if (cg.path[c][0])
			T_INT(access(cg.path[c], F_OK), 0);
	}
	T_TRUE(!cg.path[SYS_CG_CPU][0]); /* was not asked for */
	T_TRUE(made || cg.why[SYS_CG_MEMORY] || cg.why[SYS_CG_UNIFIED]);
	sys_cgroup_remove(&cg);
	sys_cgroup_remove(&cg);
	for (int c = 0; c < SYS_CG_MAX; c++)
		if (path[c][0])
			T_INT(access(path[c], F_OK), -1);
	T_INT(t_count_fds(), before);
	t_note("%d groups made", made);
}

TEST(a_name_that_exists_or_is_too_long_is_not_taken_over)
{
	struct sys_cgroup first, second;
	char name[64], endless[400];

	snprintf(name, sizeof name, "cs-test-dup-%d", (int)getpid());
	sys_cgroup_make(&first, name, 1u << SYS_CG_PIDS);
	sys_cgroup_make(&second, name, 1u << SYS_CG_PIDS);
	if (first.mode != SYS_CGROUP_V2 && sys_cgroup_has(&first, SYS_CG_PIDS)) {
		T_TRUE(!sys_cgroup_has(&second, SYS_CG_PIDS));
		T_INT(second.why[SYS_CG_PIDS], EEXIST);
	}
	sys_cgroup_remove(&second);
	T_TRUE(!first.path[SYS_CG_PIDS][0] || access(first.path[SYS_CG_PIDS], F_OK) == 0);
	sys_cgroup_remove(&first);
	memset(endless, 'x', sizeof endless - 1);
	endless[sizeof endless - 1] = 0;
	sys_cgroup_make(&first, endless, 1u << SYS_CG_PIDS);
	T_TRUE(!sys_cgroup_has(&first, SYS_CG_PIDS) && !sys_cgroup_has(&first, SYS_CG_UNIFIED));
	sys_cgroup_remove(&first);
}

TEST(no_control_groups_are_wanted_and_none_are_made)
{
	struct sys_cgroup cg;

	sys_cgroup_make(&cg, "cs-test-none", 0);
	for (int c = 0; c < SYS_CG_MAX; c++)
		T_TRUE(!sys_cgroup_has(&cg, (enum sys_cgroup_ctl)c) && !cg.path[c][0]);
	sys_cgroup_remove(&cg);
}

/* ---- Landlock ---- */

TEST(rights_grow_with_the_abi)
{
	static const struct {
		int abi;
		uint64_t all;
	} rows[] = { { 1, 0x1fff }, { 2, 0x3fff }, { 3, 0x7fff }, { 4, 0x7fff }, { 5, 0xffff }, { 6, 0xffff }, { 7, 0xffff } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t all = sys_landlock_fs_all(rows[i].abi), file = sys_landlock_fs_file(rows[i].abi);

		T_INT(all, rows[i].all);
		T_INT(file & ~all, 0);
		T_INT(sys_landlock_fs_read() & ~all, 0);
		T_INT(file & (1 << 3 | 1 << 7 | 1 << 8), 0); /* a directory's: list, make directories and files */
	}
	T_INT(sys_landlock_fs_read(), 1 << 0 | 1 << 2 | 1 << 3);
}

TEST(the_kernel_takes_the_rights_of_its_abi_and_holds_to_them)
{
	int abi = sys_landlock_abi(), ruleset, dir, etc;
	char inside[512], outside[64] = "/tmp/cs-test-landlock-XXXXXX";

	if (abi <= 0)
		T_ABSENT("this kernel has no Landlock");
	T_TRUE(abi <= SYS_LANDLOCK_ABI_MAX);
	t_note("Landlock ABI %d", abi);
	path_in(inside, sizeof inside, "f");
	close(open(inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	close(mkstemp(outside));
	ruleset = sys_landlock_create(abi);
	T_TRUE(ruleset >= 0);
	dir = open(tmp(), O_PATH | O_CLOEXEC);
	etc = open("/etc/passwd", O_PATH | O_CLOEXEC);
	T_INT(sys_landlock_allow(ruleset, dir, sys_landlock_fs_all(abi)), 0);
	T_INT(sys_landlock_allow(ruleset, etc, sys_landlock_fs_all(abi)), -1); /* a directory's rights on a file */
	T_INT(sys_landlock_allow(ruleset, etc, sys_landlock_fs_read() & sys_landlock_fs_file(abi)), 0);
	if (fork() == 0) {
		bool good = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && sys_landlock_enter(ruleset) == 0 && open(inside, O_RDWR) >= 0 &&
			    open("/etc/passwd", O_RDONLY) >= 0 && open("/etc/passwd", O_WRONLY) < 0 && open("/etc/group", O_RDONLY) < 0 &&
			    open(outside, O_RDWR) < 0;
		_exit(good ? 0 : 1);
	}
	int status = -1;
	T_TRUE(wait(&status) > 0);
	unlink(outside);
	T_INT(status, 0);
}

/* ---- capabilities ---- */

TEST(capabilities_are_given_up_for_good)
{
	char text[4096], *at;

	if (geteuid() != 0)
		T_SKIP("needs root");
	T_INT(sys_drop_caps(), 0);
	T_TRUE(sys_get(AT_FDCWD, "/proc/self/status", text, sizeof text) > 0);
	for (int i = 0; i < 5; i++) {
		static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };

		at = strstr(text, sets[i]);
		T_TRUE(at != NULL);
		if (strtoull(at + 7, NULL, 16) != 0)
			T_FAIL("%.24s", at);
	}
	T_TRUE(prctl(PR_GET_SECUREBITS) & 2); /* NOROOT is locked */
	T_INT(prctl(PR_SET_SECUREBITS, 0), -1);
}

/* ---- network ---- */

TEST(a_network_namespace_has_loopback_and_nothing_else)
{
	static struct sys_netns n;
	char text[4096];

	if (geteuid() != 0)
		T_SKIP("needs root");
	T_INT(sys_netns_make(&n), 0);
	T_INT(sys_netns_enter(&n), 0);
	T_TRUE(sys_get(AT_FDCWD, "/proc/thread-self/net/dev", text, sizeof text) > 0);
	T_TRUE(strstr(text, "lo:") != NULL);
	T_TRUE(strstr(text, "eth") == NULL && strstr(text, "ens") == NULL);
}
