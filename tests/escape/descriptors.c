/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - what the launcher was started with: open descriptors, a
 * working directory that is one, and 0 to 2. */
#include "escape.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define LEAK "leaked descriptors, CVE-2024-21626, CVE-2016-9962"

enum { FIRST = 3, LAST = 30 };

/* Descriptors 3 to 30: all kinds, none of them close-on-exec. */
static void leak(void *arg)
{
	const struct place *p = arg;

	for (int fd = FIRST; fd <= LAST; fd++) {
		int got = -1, pair[2];

		switch (fd % 7) {
		case 0: got = open("/", O_RDONLY | O_DIRECTORY); break;
		case 1: got = open(p->out, O_RDONLY | O_DIRECTORY); break;
		case 2: got = open(place_text(p, "@O/secret"), O_RDONLY); break;
		case 3: got = open(p->out, O_PATH); break;
		case 4: got = (int)syscall(SYS_memfd_create, "leak", 0); break;
		case 5: got = socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? pair[0] : -1; break;
		case 6: got = open("/proc/self/ns/net", O_RDONLY); break;
		}
		if (got >= 0 && got != fd) {
			dup2(got, fd);
			close(got);
		}
	}
}

static void leaked(const char *off, const char *const cmd[], bool refused)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .off = off, .cmd = cmd, .opts = { .prepare = leak, .arg = p } });
	if (refused)
		must_refuse(&r, "EBADF EACCES", "descriptors of the launcher");
	else
		must_work(&r, "descriptors of the launcher");
}

static void fds_in(void) { leaked(NULL, WORDLIST("@P", "fds"), true); }
static void fds_out(void) { leaked("fds", WORDLIST("@P", "fds"), false); }
static void climb_in(void) { leaked(NULL, WORDLIST("@P", "dotdot-fds", "@O/secret"), true); }
static void climb_landlock(void) { leaked("fds", WORDLIST("@P", "dotdot-fds", "@O/secret"), true); }
static void climb_out(void) { leaked("fds,landlock", WORDLIST("@P", "dotdot-fds", "@O/secret"), false); }

/* A working directory that is a descriptor of the launcher's. */
static void cwd_in(void)
{
	struct place *p = place_make();
	static struct t_result r;
	static const char *const ways[] = { "/proc/self/fd/%d", "/proc/thread-self/fd/%d", "/dev/fd/%d", "/proc/self/fd/%d/." };

	for (size_t w = 0; w < COUNT(ways); w++)
		for (int fd = 0; fd <= 12; fd++) {
			char path[64];

			if (w && fd % 7 > 3)
				continue;
			snprintf(path, sizeof path, w == 0 ? "/proc/self/fd/%d" : w == 1 ? "/proc/thread-self/fd/%d" :
				 w == 2 ? "/dev/fd/%d" : "/proc/self/fd/%d/.", fd);
			run_in(p, &r, &(struct run){ .flags = WORDLIST("--cwd", path), .cmd = WORDLIST("@P", "dotdot", "@O/secret"),
						     .opts = { .prepare = leak, .arg = p } });
			if (r.status == 125 && !*answer(&r))
				continue; /* refused at the start */
			must_refuse(&r, "ENOENT EACCES", path);
		}
}

static void cwd_out(void)
{
	struct place *p = place_make();
	static struct t_result r;
	char line[600];

	snprintf(line, sizeof line, "cd /proc/self/fd/7 && exec %s dotdot %s/secret", p->probe, p->out);
	t_run_with(&r, WORDLIST("sh", "-c", line), &(struct t_run_opts){ .prepare = leak, .arg = p });
	must_work(&r, "working directory by descriptor");
}

/* ---- descriptors 0 to 2 -------------------------------------------------------------- */

struct stdio { int fd, flags; const char *path; };

static void use_stdio(void *arg)
{
	const struct stdio *s = arg;
	int fd = open(s->path, s->flags, 0666);

	if (fd < 0)
		_exit(120);
	dup2(fd, s->fd);
}

static void refused_stdio(int fd, int flags, const char *path)
{
	struct place *p = place_make();
	static struct t_result r;
	struct stdio s = { fd, flags, place_text(p, path) };

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "dotdot-fds", "@O/secret"), .opts = { .prepare = use_stdio, .arg = &s } });
	if (r.status == 120)
		T_ABSENT("this caller cannot open %s", s.path);
	if (r.status != 125)
		T_FAIL("descriptor %d is %s: exit status %d, not 125: '%s'", fd, s.path, r.status, r.out);
}

static void stdio_bare(int fd, int flags, const char *path)
{
	struct place *p = place_make();
	static struct t_result r;
	struct stdio s = { fd, flags, place_text(p, path) };

	t_run_with(&r, WORDLIST(p->probe, "dotdot-fds", place_text(p, "@O/secret")), &(struct t_run_opts){ .prepare = use_stdio, .arg = &s });
	if (r.status == 120)
		T_ABSENT("this caller cannot open %s", s.path);
	must_work(&r, "a directory as descriptor");
}

static void dir_in(void) { refused_stdio(0, O_RDONLY | O_DIRECTORY, "@O"); }
static void dir_out(void) { stdio_bare(0, O_RDONLY | O_DIRECTORY, "@O"); }
static void direrr_in(void) { refused_stdio(2, O_RDONLY | O_DIRECTORY, "/"); }
static void direrr_out(void) { stdio_bare(2, O_RDONLY | O_DIRECTORY, "/"); }
static void opath_in(void) { refused_stdio(0, O_PATH, "@O"); }
static void opath_out(void) { stdio_bare(0, O_PATH, "@O"); }
static void block_in(void) { refused_stdio(0, O_RDONLY, "/dev/loop0"); }

static void block_out(void)
{
	struct place *p = place_make();
	static struct t_result r;
	struct stdio s = { 0, O_RDONLY, "/dev/loop0" };

	t_run_with(&r, WORDLIST(p->probe, "id"), &(struct t_run_opts){ .prepare = use_stdio, .arg = &s });
	if (r.status == 120)
		T_ABSENT("this caller cannot open %s", s.path);
	must_work(&r, "a block device as standard input");
}

/* Given for reading (or appending) only, opened again for more. */
static void reopen(int fd, int flags, bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	struct stdio s = { fd, flags | O_CLOEXEC, place_text(p, "@O/given") };
	char text[4096], nr[2] = { (char)('0' + fd), '\0' };

	put_file(s.path, "given\n", 0666);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "reopen", nr), .opts = { .prepare = use_stdio, .arg = &s } });
	else
		t_run_with(&r, WORDLIST(p->probe, "reopen", nr), &(struct t_run_opts){ .prepare = use_stdio, .arg = &s });
	if (fd == 1) { /* the answer went into the file */
		get_file(s.path, text, sizeof text);
		snprintf(r.out, sizeof r.out, "%s", text);
	}
	if (sandbox && said(&r, "OK")) {
		/* A pipe in its place gives no right over the file. */
		get_file(s.path, text, sizeof text);
		T_FAIL("%s", answer(&r));
	}
	if (sandbox)
		must_refuse(&r, "EACCES EPERM EROFS ENXIO ENOENT", "reopen");
	else
		must_work(&r, "reopen");
}

static void again_in(void) { reopen(0, O_RDONLY, true); }
static void again_out(void) { reopen(0, O_RDONLY, false); }
static void append_in(void) { reopen(1, O_WRONLY | O_APPEND, true); }
static void append_out(void) { reopen(1, O_WRONLY | O_APPEND, false); }

/* The same without Landlock: whatever stands there, the host's file is not writable through it. */
static void again_pipe(void)
{
	struct place *p = place_make();
	static struct t_result r;
	struct stdio s = { 0, O_RDONLY | O_CLOEXEC, place_text(p, "@O/given") };
	char text[64];

	put_file(s.path, "given\n", 0666);
	run_in(p, &r, &(struct run){ .off = "landlock", .cmd = WORDLIST("/bin/sh", "-c", "echo pwned > /proc/self/fd/0; cat > /dev/null; echo OK ended"),
				     .opts = { .prepare = use_stdio, .arg = &s } });
	get_file(s.path, text, sizeof text);
	T_STR(text, "given\n");
}

static void again_pipe_out(void)
{
	struct place *p = place_make();
	static struct t_result r;
	struct stdio s = { 0, O_RDONLY | O_CLOEXEC, place_text(p, "@O/given") };
	char text[64];

	put_file(s.path, "given\n", 0666);
	t_run_with(&r, WORDLIST("/bin/sh", "-c", "echo pwned > /proc/self/fd/0"), &(struct t_run_opts){ .prepare = use_stdio, .arg = &s });
	get_file(s.path, text, sizeof text);
	T_STR(text, "pwned\n");
}

static const struct scene scenes[] = {
	{ "F06", "descriptors 3 to 30 of the launcher are not inside", LEAK, fds_in, fds_out },
	{ "F06", "no descriptor of the launcher leads outside", LEAK, climb_in, climb_out },
	{ "F06", "with descriptors leaked Landlock bars the way", LEAK ", second wall", climb_landlock, climb_out },
	{ "F12", "a working directory by descriptor is refused", LEAK, cwd_in, cwd_out },
	{ "F12", "a directory as standard input is refused", LEAK, dir_in, dir_out },
	{ "F12", "a directory as standard error is refused", LEAK, direrr_in, direrr_out },
	{ "F12", "a path handle as standard input is refused", LEAK, opath_in, opath_out },
	{ "F12", "a block device as standard input is refused", LEAK, block_in, block_out },
	{ "F12", "standard input is not reopened with more rights", LEAK, again_in, again_out },
	{ "F12", "standard output is not reopened with more rights", LEAK, append_in, append_out },
	{ "F12", "without Landlock standard input is not the host's file", LEAK ", second wall", again_pipe, again_pipe_out },
};

TEST_TABLE(descriptors)
{
	add_scenes(scenes, COUNT(scenes));
}
