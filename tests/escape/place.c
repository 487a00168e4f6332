/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - the directories an attack test takes place in, and what the host
 * looks like before and after. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- small things -------------------------------------------------------- */

void put_file(const char *path, const char *text, unsigned file_mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, file_mode) < 0)
		T_FAIL("write %s: %s", path, strerror(errno));
	close(fd);
}

void get_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : 0;

	buf[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

bool lock_held(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool held;

	if (fd < 0)
		return false;
	held = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

bool lock_free_within(const char *path, int ms)
{
	long end = t_now_ms() + ms;

	while (lock_held(path)) {
		if (t_now_ms() > end)
			return false;
		usleep(2000);
	}
	return true;
}

const char *json_reason(const char *path)
{
	static char text[16384];
	char *p;

	get_file(path, text, sizeof text);
	p = strstr(text, "\"reason\"");
	if (!p || !(p = strchr(p + 8, '"')))
		return "";
	p++;
	p[strcspn(p, "\"")] = '\0';
	return p;
}

bool have_cap(int cap)
{
	char text[4096], *p;

	get_file("/proc/self/status", text, sizeof text);
	p = strstr(text, "CapEff:");
	return p && strtoull(p + 7, NULL, 16) >> cap & 1;
}

static void put_proc(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		T_FAIL("write %s: %s", path, strerror(errno));
	close(fd);
}

void own_mounts(bool shared)
{
	int flags = CLONE_NEWNS;
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (!have_cap(21 /* CAP_SYS_ADMIN */))
		flags |= CLONE_NEWUSER;
	if (unshare(flags) < 0)
		T_FAIL("unshare: %s", strerror(errno));
	if (flags & CLONE_NEWUSER) {
		put_proc("/proc/self/setgroups", "deny");
		snprintf(map, sizeof map, "0 %u 1", uid);
		put_proc("/proc/self/uid_map", map);
		snprintf(map, sizeof map, "0 %u 1", gid);
		put_proc("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    (shared && mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0))
		T_FAIL("propagation: %s", strerror(errno));
}

/* ---- leftovers ----------------------------------------------------------- */

enum { GROUPS_MAX = 4096 };
static char *groups_before[GROUPS_MAX];
static size_t n_groups_before;
static int mounts_before;
static char *groups_now[GROUPS_MAX];
static size_t n_groups_now;

static int mounts_now(void)
{
	static char text[1 << 18];
	int n = 0;

	get_file("/proc/self/mountinfo", text, sizeof text);
	for (char *p = text; *p; p++)
		n += *p == '\n';
	return n;
}

static bool is_empty_group(const char *path)
{
	char procs[4200], text[64];

	snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
	get_file(procs, text, sizeof text);
	return exists(procs) && !*text;
}

static bool was_before(const char *path)
{
	for (size_t i = 0; i < n_groups_before; i++)
		if (!strcmp(groups_before[i], path))
			return true;
	return false;
}

static int note_group(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	if (type == FTW_D && strstr(path + f->base, "caisson") && n_groups_now < GROUPS_MAX && !was_before(path) && is_empty_group(path))
		groups_now[n_groups_now++] = strdup(path);
	return 0;
}

static void find_groups(void)
{
	n_groups_now = 0;
	nftw("/sys/fs/cgroup", note_group, 32, FTW_PHYS);
}

void leftovers_before(void)
{
	mounts_before = mounts_now();
	find_groups();
	memcpy(groups_before, groups_now, sizeof groups_now);
	n_groups_before = n_groups_now;
}

/* Somebody else's sandbox may be starting or ending at this very moment, so a
 * group counts only if it is still there, and empty, a while later. */
void leftovers_none(void)
{
	size_t stay = 0;

	T_INT(mounts_now(), mounts_before);
	find_groups();
	if (!n_groups_now)
		return;
	usleep(700000);
	for (size_t i = 0; i < n_groups_now; i++)
		if (is_empty_group(groups_now[i])) {
			t_note("left: %s", groups_now[i]);
			stay++;
		}
	if (stay)
		T_FAIL("%zu control groups stay behind", stay);
}

/* That the counting counts: a group of ours that nobody is in. */
void leftovers_control(void)
{
	static const char *const tops[] = { "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	char path[128];
	pid_t pid;
	int st;

	if (mode() != MODE_ROOT)
		T_ABSENT("this caller can make no control group at all");
	leftovers_before();
	for (size_t i = 0; i < COUNT(tops); i++) {
		snprintf(path, sizeof path, "%s/caisson-test-%d", tops[i], (int)getpid());
		if (mkdir(path, 0755) == 0)
			break;
		path[0] = '\0';
	}
	if (!path[0])
		T_ABSENT("no control group can be made here: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		fclose(stdout);
		leftovers_none();
		_exit(0);
	}
	waitpid(pid, &st, 0);
	rmdir(path);
	T_INT(WEXITSTATUS(st), T_EXIT_FAIL);
}

/* ---- places -------------------------------------------------------------- */

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	static char buf[1 << 18];
	ssize_t n;

	if (in < 0 || out < 0)
		T_FAIL("copy %s to %s: %s", from, to, strerror(errno));
	while ((n = read(in, buf, sizeof buf)) > 0)
		if (write(out, buf, (size_t)n) != n)
			T_FAIL("copy to %s: %s", to, strerror(errno));
	fchmod(out, 0755);
	close(in);
	close(out);
}

static void sub(char *out, size_t size, const char *top, const char *name, unsigned dir_mode)
{
	snprintf(out, size, "%s/%s", top, name);
	if (mkdir(out, 0700) < 0 || chmod(out, dir_mode) < 0)
		T_FAIL("mkdir %s: %s", out, strerror(errno));
}

struct place *place_make(void)
{
	static struct place p;
	char path[300];

	snprintf(p.top, sizeof p.top, "%s", t_tmpdir());
	sub(p.work, sizeof p.work, p.top, "work", 0755);
	sub(p.out, sizeof p.out, p.top, "outside", 0755);
	sub(p.share, sizeof p.share, p.top, "shared", 0777);
	sub(p.home, sizeof p.home, p.top, "home", 0755);
	snprintf(p.probe, sizeof p.probe, "%s/probe", p.work);
	copy_file(escape_env("CS_PROBE"), p.probe);
	snprintf(p.name, sizeof p.name, "caisson-test-%d", (int)getpid());

	snprintf(path, sizeof path, "%s/secret", p.out);
	put_file(path, "HOST-SECRET", 0644);
	snprintf(path, sizeof path, "%s/small.yaml", p.out);
	put_file(path, "name: small\nextends: default\nlimits:\n  inodes: 4000\n", 0644);
	snprintf(path, sizeof path, "%s/pid.yaml", p.out);
	put_file(path, "name: pid\nextends: default\nproc: pid\n", 0644);
	snprintf(path, sizeof path, "%s/scratch.yaml", p.out);
	put_file(path, "name: scratch\nextends: default\nsystem: scratch\n", 0644);
	snprintf(path, sizeof path, "%s/file", p.share);
	put_file(path, "host", 0666);
	snprintf(path, sizeof path, "%s/sub", p.share);
	mkdir(path, 0777);
	chmod(path, 0777);
	snprintf(path, sizeof path, "%s/file", p.work);
	put_file(path, "work", 0666);
	snprintf(path, sizeof path, "%s/.env", p.work);
	put_file(path, "HIDDEN-SECRET", 0644);
	snprintf(path, sizeof path, "%s/conf", p.work);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/conf/server.key", p.work);
	put_file(path, "HIDDEN-SECRET", 0644);
	snprintf(path, sizeof path, "%s/.ssh", p.home);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/.ssh/id_ed25519", p.home);
	put_file(path, "HOME-SECRET", 0600);
	setenv("HOME", p.home, 1);
	if (chdir(p.work) < 0)
		T_FAIL("chdir: %s", strerror(errno));
	p.before = place_print(&p, 1);
	p.before_out = place_print(&p, 0);
	return &p;
}

static uint64_t print;

static void mix(const void *data, size_t len)
{
	const unsigned char *b = data;

	while (len--)
		print = (print ^ *b++) * 0x100000001b3ull;
}

static int print_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	char buf[4096] = "";

	(void)f;
	mix(path, strlen(path));
	mix(&st->st_mode, sizeof st->st_mode);
	mix(&st->st_uid, sizeof st->st_uid);
	mix(&st->st_ino, sizeof st->st_ino);
	mix(&st->st_nlink, sizeof st->st_nlink);
	mix(&st->st_mtim, sizeof st->st_mtim);
	if (type == FTW_F && S_ISREG(st->st_mode)) {
		mix(&st->st_ctim, sizeof st->st_ctim);
		get_file(path, buf, sizeof buf);
		mix(buf, strlen(buf));
	}
	return 0;
}

uint64_t place_print(const struct place *p, int with_share)
{
	print = 0xcbf29ce484222325ull;
	nftw(p->out, print_one, 16, FTW_PHYS);
	if (with_share)
		nftw(p->share, print_one, 16, FTW_PHYS);
	return print;
}

static int suid_found;

static int suid_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)path; (void)type; (void)f;
	if (S_ISREG(st->st_mode) && st->st_mode & 06000)
		suid_found = 1;
	return 0;
}

bool place_has_suid(const struct place *p)
{
	suid_found = 0;
	nftw(p->share, suid_one, 16, FTW_PHYS);
	return suid_found;
}

/* The host's own line, as a text to look for. */
static const char *mem_total(void)
{
	static char text[128];

	get_file("/proc/meminfo", text, sizeof text);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

const char *place_text(const struct place *p, const char *text)
{
	static char ring[32][1024];
	static int next;
	char *out = ring[next++ % 32];
	size_t len = 0;

	if (!text)
		return NULL;
	for (; *text && len + 300 < sizeof ring[0]; text++) {
		const char *v = NULL;
		char num[16];

		if (*text == '@')
			switch (text[1]) {
			case 'W': v = p->work; break;
			case 'O': v = p->out; break;
			case 'S': v = p->share; break;
			case 'H': v = p->home; break;
			case 'P': v = p->probe; break;
			case 'A': v = p->name; break;
			case 'M': v = mem_total(); break;
			case 'I': snprintf(num, sizeof num, "%d", (int)getpid()); v = num; break;
			default: break;
			}
		if (v) {
			len += (size_t)snprintf(out + len, sizeof ring[0] - len, "%s", v);
			text++;
		} else {
			out[len++] = *text;
		}
	}
	out[len] = '\0';
	return out;
}

