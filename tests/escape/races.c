/* SPDX-License-Identifier: Apache-2.0 */
/* races.c - what the launcher looks at changes while it looks. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RACE "races, CVE-2021-30465, CVE-2025-31133"

static pid_t racer;

/* a and b change places until killed. */
static void swap_forever(const char *a, const char *b)
{
	racer = fork();
	if (racer < 0)
		T_FAIL("fork: %s", strerror(errno));
	if (racer)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
		usleep(120);
	}
}

static void stop_racer(void)
{
	kill(racer, SIGKILL);
	waitpid(racer, NULL, 0);
}

enum { ROUNDS = 40 };

/* A directory of the workspace is at times a symlink to the outside. */
static void swap_inside(void)
{
	struct place *p = place_make();
	static struct t_result r;

	mkdir(place_text(p, "@W/sub"), 0777);
	put_file(place_text(p, "@W/sub/.env"), "HIDDEN-SECRET", 0644);
	put_file(place_text(p, "@W/sub/name"), "inside", 0644);
	T_INT(symlink(p->out, place_text(p, "@W/alt")), 0);
	p->before = place_print(p, 1);
	swap_forever(place_text(p, "@W/sub"), place_text(p, "@W/alt"));
	for (int i = 0; i < ROUNDS; i++) {
		run_in(p, &r, &(struct run){ .cmd = i % 2 ? WORDLIST("@P", "read", "@W/sub/secret") : WORDLIST("@P", "create", "@W/sub/pwned", "x") });
		if (i % 2 && said(&r, "OK"))
			T_FAIL("round %d: %s", i, answer(&r));
		if (!said(&r, "OK") && !said(&r, "NO ") && r.status != 125)
			T_FAIL("round %d: status %d, '%s'", i, r.status, r.err);
	}
	stop_racer();
	T_TRUE(place_print(p, 1) == p->before);
	T_TRUE(!exists(place_text(p, "@W/sub/pwned")) && !exists(place_text(p, "@W/alt/pwned")));
}

/* Look, then use: what everybody does who is not careful. */
static void swap_naive(void)
{
	struct place *p = place_make();
	char text[64] = "";
	long end = t_now_ms() + 20000;

	mkdir(place_text(p, "@W/sub"), 0777);
	T_INT(symlink(p->out, place_text(p, "@W/alt")), 0);
	swap_forever(place_text(p, "@W/sub"), place_text(p, "@W/alt"));
	while (!*text && t_now_ms() < end) {
		struct stat st;

		if (lstat(place_text(p, "@W/sub"), &st) == 0 && S_ISDIR(st.st_mode)) {
			usleep(60);
			get_file(place_text(p, "@W/sub/secret"), text, sizeof text);
		}
	}
	stop_racer();
	T_STR(text, "HOST-SECRET");
}

/* The workspace itself, and a shared directory, are at times symlinks to the outside. */
static void source_inside(void)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *dir = place_text(p, "@W/ws"), *link_ = place_text(p, "@W/ln");
	int ran = 0;

	mkdir(dir, 0777);
	put_file(place_text(p, "@W/ws/name"), "inside", 0644);
	T_INT(symlink(p->out, link_), 0);
	p->before = place_print(p, 1);
	swap_forever(dir, link_);
	for (int i = 0; i < ROUNDS; i++) {
		run_in(p, &r, &(struct run){ .flags = WORDLIST("-w", "@W/ws", "--ro", "@P"), .cmd = WORDLIST("@P", "create", "pwned", "x") });
		if (!said(&r, "OK") && !said(&r, "NO ") && r.status != 125)
			T_FAIL("round %d: status %d, '%s'", i, r.status, r.err);
		ran += said(&r, "OK");
	}
	stop_racer();
	/* Whichever it was given, what is written there stays in the layer. */
	T_TRUE(place_print(p, 1) == p->before);
	T_TRUE(!exists(place_text(p, "@W/ws/pwned")) && !exists(place_text(p, "@W/ln/pwned")));
	t_note("%d of %d runs started", ran, ROUNDS);
}

/* --rw: it is one or the other as a whole, never the name of one and the files of the other. */
static void source_rw(void)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *dir = place_text(p, "@S/a"), *other = place_text(p, "@S/b");

	mkdir(dir, 0777);
	mkdir(other, 0777);
	chmod(dir, 0777);
	chmod(other, 0777);
	put_file(place_text(p, "@S/a/name"), "one", 0644);
	put_file(place_text(p, "@S/b/name"), "two", 0644);
	swap_forever(dir, other);
	for (int i = 0; i < ROUNDS; i++) {
		char cmd[200];

		snprintf(cmd, sizeof cmd, "read n < name; echo $n > mark%d; echo OK $n", i);
		run_in(p, &r, &(struct run){ .flags = WORDLIST("--rw", "@S/a", "--cwd", "@S/a"), .cmd = WORDLIST("/bin/sh", "-c", cmd) });
		if (r.status != 0 && r.status != 125)
			T_FAIL("round %d: status %d, '%s'", i, r.status, r.err);
	}
	stop_racer();
	for (int i = 0; i < ROUNDS; i++)
		for (int d = 0; d < 2; d++) {
			char path[300], name[64], mark[64];

			snprintf(path, sizeof path, "%s/mark%d", d ? dir : other, i);
			get_file(path, mark, sizeof mark);
			snprintf(path, sizeof path, "%s/name", d ? dir : other);
			get_file(path, name, sizeof name);
			mark[strcspn(mark, "\n")] = '\0';
			if (*mark && strcmp(mark, name))
				T_FAIL("round %d: read '%s', wrote beside '%s'", i, mark, name);
		}
}

/* Between two looks by name the directory is another one. */
static void source_naive(void)
{
	struct place *p = place_make();
	const char *dir = place_text(p, "@S/a"), *other = place_text(p, "@S/b");
	long end = t_now_ms() + 20000;
	bool fooled = false;

	mkdir(dir, 0777);
	mkdir(other, 0777);
	swap_forever(dir, other);
	while (!fooled && t_now_ms() < end) {
		struct stat a, b;

		if (stat(dir, &a) == 0) {
			usleep(60);
			fooled = stat(dir, &b) == 0 && a.st_ino != b.st_ino;
		}
	}
	stop_racer();
	T_TRUE(fooled);
}

/* The program's file is replaced while it is started: whatever runs, runs inside. */
static void exe_inside(void)
{
	struct place *p = place_make();
	static struct t_result r;
	static const char script[] = "#!/bin/sh\nread u rest < /proc/self/uid_map; echo \"OK script uid $u\"\n";
	int ran = 0;

	put_file(place_text(p, "@W/tool"), script, 0755);
	t_run(&r, WORDLIST("cp", p->probe, place_text(p, "@W/other")));
	swap_forever(place_text(p, "@W/tool"), place_text(p, "@W/other"));
	for (int i = 0; i < ROUNDS; i++) {
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@W/tool", "id") });
		if (said(&r, "OK script uid 1000") || said(&r, "OK uid=1000,"))
			ran++;
		else if (r.status < 125 || r.status > 127)
			T_FAIL("round %d: status %d '%s' '%s'", i, r.status, r.out, r.err);
	}
	stop_racer();
	T_TRUE(ran > 0);
}

static void exe_outside(void)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "id"));
	T_TRUE(said(&r, "OK uid=") && !said(&r, "OK uid=1000,1000,1000,1000 gid=1000"));
}

/* The workspace is moved away while the program stands in it. */
static void moved(bool sandbox)
{
	struct place *p = place_make();
	struct live l;

	if (sandbox)
		live_start(p, &l, &(struct run){ .cmd = WORDLIST("@P", "dotdot-moved", "@O/secret", "@W") });
	else
		live_start_bare(&l, WORDLIST(p->probe, "dotdot-moved", place_text(p, "@O/secret"), p->work));
	live_wait(&l, "READY", 5000);
	if (chdir("/") < 0 || rename(p->work, place_text(p, "@O/work")) < 0)
		T_FAIL("rename: %s", strerror(errno));
	live_say(&l, "\n");
	live_end(&l, 5000);
	if (sandbox ? !strstr(l.seen, "NO ENOENT") && !strstr(l.seen, "NO EACCES") && !strstr(l.seen, "NO ESTALE")
		    : !strstr(l.seen, "OK"))
		T_FAIL("'%s'", l.seen);
}

static void moved_in(void) { moved(true); }
static void moved_out(void) { moved(false); }

/* The file that we write the result to is replaced by a symlink meanwhile. */
static void result(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *script = "rm -f \"$1\"; ln -s \"$0\" \"$1\"; echo OK";

	if (sandbox)
		run_in(p, &r, &(struct run){ .flags = WORDLIST("--rw", "@S", "--json", "@S/result.json"),
					     .cmd = WORDLIST("/bin/sh", "-c", script, "@O/secret", "@S/result.json") });
	else
		t_run(&r, WORDLIST("/bin/sh", "-c", "ln -s \"$0\" \"$1\"; echo '{}' > \"$1\"; echo OK", place_text(p, "@O/secret"),
				   place_text(p, "@S/result.json")));
	must_work(&r, "replace the result file");
	if ((place_print(p, 0) == p->before_out) != sandbox)
		T_FAIL("the host's file is %s", sandbox ? "changed" : "as before");
}

static void result_in(void) { result(true); }
static void result_out(void) { result(false); }

static const struct scene scenes[] = {
	{ "T01", "a directory that is swapped for a symlink does not lead out", RACE, swap_inside, swap_naive },
	{ "T02", "a workspace that is swapped for a symlink is not written", RACE, source_inside, swap_naive },
	{ "T02", "a shared directory is one directory as a whole", RACE, source_rw, source_naive },
	{ "T03", "a program that is replaced runs inside all the same", RACE, exe_inside, exe_outside },
	{ "T05", "a workspace that is moved does not lead out", RACE, moved_in, moved_out },
	{ "T09", "the result is not written through a symlink", RACE, result_in, result_out },
};

TEST_TABLE(races)
{
	add_scenes(scenes, COUNT(scenes));
}
