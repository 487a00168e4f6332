/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on disk: where writes land, whose they are, and what stays hidden. */
#include "harness/box.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>

BOX_TEST(writes_land_in_the_store_and_belong_to_the_owner)
{
	struct box b;
	struct stat st, ws, up;

	box_init(&b);
	box_put(&b, "ws/old", "old\n");
	box_put(&b, "ws/gone", "gone\n");
	box_ws(&b)->store = box_store(&b, "s1");
	box_stat(&b, "ws", &ws);
	T_INT(box_sh(&b, "echo new >made && echo more >>old && rm gone && mkdir d && ln -s x d/l && test -w . && test -O old"), 0);
	T_TRUE(!box_has(&b, "ws/made"));
	T_TRUE(box_has(&b, "ws/gone"));
	box_stat(&b, "s1/up/made", &st);
	T_INT(st.st_size, 4);
	T_INT(st.st_uid, b.uid);
	T_INT(st.st_gid, b.uid);
	box_stat(&b, "s1/up/old", &st);
	T_INT(st.st_size, 9);
	T_INT(st.st_uid, b.uid);
	box_stat(&b, "s1/up/d/l", &st);
	T_INT(st.st_uid, b.uid);
	box_stat(&b, "s1/up/gone", &st);
	T_TRUE(S_ISCHR(st.st_mode) && st.st_rdev == 0);
	box_stat(&b, "ws/old", &st);
	T_INT(st.st_size, 4);
	box_stat(&b, "s1/up", &up);
	T_INT(up.st_mode, ws.st_mode);
	T_INT(up.st_uid, b.uid);
}

BOX_TEST(the_workspace_keeps_its_mode_and_time)
{
	struct timespec t[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	struct box b;

	box_init(&b);
	T_INT(utimensat(AT_FDCWD, b.ws, t, 0), 0);
	T_INT(box_sh(&b, "test $(stat -c %Y.%a.%u /ws) = 1000000000.755.1000"), 0);
	box_ws(&b)->store = box_store(&b, "s1");
	T_INT(box_sh(&b, "test $(stat -c %Y.%a.%u /ws) = 1000000000.755.1000"), 0);
	T_INT(box_sh(&b, "touch x; test $(stat -c %Y /ws) != 1000000000"), 0);
	T_INT(box_sh(&b, "test $(stat -c %Y /ws) != 1000000000"), 0);
}

BOX_TEST(the_same_store_starts_a_second_time)
{
	struct box b;

	box_init(&b);
	box_put(&b, "ws/old", "old\n");
	box_ws(&b)->store = box_store(&b, "s1");
	T_INT(box_sh(&b, "echo 1 >a; rm old"), 0);
	T_INT(box_sh(&b, "test $(cat a) = 1 && test ! -e old && echo 2 >a && mkdir old"), 0);
	T_INT(box_sh(&b, "test $(cat a) = 2 && test -d old && rmdir old"), 0);
}

BOX_TEST(three_layers_stack)
{
	struct box b;

	box_init(&b);
	box_put(&b, "ws/base", "base\n");
	close(box_dir(&b, "ws/sub"));
	box_put(&b, "ws/sub/f", "f\n");
	box_ws(&b)->store = box_store(&b, "s1");
	T_INT(box_sh(&b, "echo 1 >one; echo 1 >both; rm -r sub; mkdir sub; echo mine >sub/g"), 0);
	box_ws(&b)->store = box_store(&b, "s2");
	box_ws(&b)->lowers = b.lowers;
	box_ws(&b)->n_lowers = 1;
	b.lowers[0] = box_upper(&b, "s1");
	T_INT(box_sh(&b, "test $(cat one) = 1 && test ! -e sub/f && test -e sub/g && echo 2 >both && rm base"), 0);
	box_ws(&b)->store = box_store(&b, "s3");
	box_ws(&b)->n_lowers = 2;
	b.lowers[0] = box_upper(&b, "s2");
	b.lowers[1] = box_upper(&b, "s1");
	T_INT(box_sh(&b, "test $(cat both) = 2 && test $(cat one) = 1 && test ! -e base && test ! -e sub/f && echo 3 >one && mv sub/g h"), 0);
	T_TRUE(box_has(&b, "s3/up/one") && box_has(&b, "s3/up/h") && box_has(&b, "ws/base"));
}

BOX_TEST(forty_layers_stack)
{
	struct box b;
	char name[16];

	box_init(&b);
	box_put(&b, "ws/base", "base\n");
	for (int i = 0; i < 40; i++) {
		char rel[32], text[16];

		snprintf(name, sizeof name, "s%d", i);
		close(box_store(&b, name));
		snprintf(rel, sizeof rel, "%s/up/f%d", name, i);
		snprintf(text, sizeof text, "%d\n", i);
		box_put(&b, rel, text);
		b.lowers[39 - i] = box_upper(&b, name);
	}
	box_ws(&b)->store = box_store(&b, "top");
	box_ws(&b)->lowers = b.lowers;
	box_ws(&b)->n_lowers = 40;
	T_INT(box_sh(&b, "for i in 0 7 39; do test $(cat f$i) = $i || exit 1; done; test -e base && echo x >>f3"), 0);
	T_TRUE(box_has(&b, "top/up/f3"));
}

BOX_TEST(hidden_names_stay_hidden_in_every_layer)
{
	struct box b;

	box_init(&b);
	box_put(&b, "ws/.env", "secret\n");
	close(box_dir(&b, "ws/sub"));
	box_put(&b, "ws/sub/.env", "secret\n");
	close(box_dir(&b, "ws/deleted"));
	box_put(&b, "ws/deleted/.env", "secret\n");
	b.hide[0] = "/ws/.env";
	b.hide[1] = "/ws/sub/.env";
	b.hide[2] = "/ws/deleted/.env";
	b.n_hide = 3;
	box_ws(&b)->store = box_store(&b, "s1");
	T_INT(box_sh(&b, "test ! -e .env && test ! -e sub/.env && echo x >sub/f && rm -r deleted"), 0);
	box_ws(&b)->store = box_store(&b, "s2");
	box_ws(&b)->lowers = b.lowers;
	box_ws(&b)->n_lowers = 1;
	b.lowers[0] = box_upper(&b, "s1");
	T_INT(box_sh(&b, "test ! -e .env && test ! -e sub/.env && test -e sub/f && test ! -e deleted && ! grep -rq secret ."), 0);
}

BOX_TEST(a_store_may_lie_hidden_in_the_workspace)
{
	struct box b;

	box_init(&b);
	close(box_dir(&b, "ws/.caisson"));
	box_ws(&b)->store = box_store(&b, "ws/.caisson/s1");
	b.hide[b.n_hide++] = "/ws/.caisson";
	T_INT(box_sh(&b, "echo x >y && test $(ls -A) = y"), 0);
	T_TRUE(box_has(&b, "ws/.caisson/s1/up/y"));
	T_TRUE(!box_has(&b, "ws/y"));
}

BOX_TEST(a_directory_is_probed_and_left_as_it_was)
{
	struct cs_err err = { 0 };
	struct box b;
	int fd;

	box_init(&b);
	fd = box_dir(&b, "s");
	if (sandbox_layer_probe(fd, &err) < 0)
		T_FAIL("%s", err.msg);
	T_INT(unlinkat(AT_FDCWD, strcat(b.dir, "/s"), AT_REMOVEDIR), 0);
}

TEST(a_file_system_that_cannot_hold_layers_is_said_to_be_one)
{
	char *argv[] = { (char *)"true", NULL }, options[1024];
	struct sandbox_spec spec;
	struct cs_err err = { 0 };
	struct sandbox *s;
	struct box b;
	int fd;

	if (geteuid() != 0)
		T_ABSENT("not root");
	box_init(&b);
	close(box_dir(&b, "lo"));
	close(box_dir(&b, "at"));
	close(box_store(&b, "s"));
	snprintf(options, sizeof options, "lowerdir=%s/lo,upperdir=%s/s/up,workdir=%s/s/wk", b.dir, b.dir, b.dir);
	T_INT(unshare(CLONE_NEWNS), 0);
	T_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	if (mount("overlay", strcat(strcpy(b.ws, b.dir), "/at"), "overlay", 0, options) < 0)
		T_SKIP("no overlayfs here");
	fd = box_store(&b, "at/s");
	T_INT(sandbox_layer_probe(fd, &err), -CS_E_UNSUPPORTED);
	snprintf(b.ws, sizeof b.ws, "%s/ws", b.dir);
	box_ws(&b)->store = fd;
	spec = box_spec(&b, argv);
	T_INT(sandbox_start(&spec, &s, &err), -CS_E_UNSUPPORTED);
	box_ws(&b)->store = 0; /* what the caller falls back to */
	T_INT(box_sh(&b, "echo x >y"), 0);
}

/* ---- limits ---- */

struct watched {
	bool disk;      /* it was ended for it */
	uint64_t most, inodes; /* on disk when all had ended */
};

static uint64_t du(const struct box *b, const char *rel, bool inodes)
{
	char command[700];
	unsigned long long n = 0;
	FILE *f;

	snprintf(command, sizeof command, "du %s -s %s/%s 2>/dev/null", inodes ? "--inodes" : "-k", b->dir, rel);
	f = popen(command, "r");
	if (!f || fscanf(f, "%llu", &n) != 1)
		T_FAIL("du");
	pclose(f);
	return inodes ? n : n << 10;
}

/* Samples as a session does, only at a fixed pace. */
static struct watched watch(struct box *b, const char *command)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)command, NULL };
	struct sandbox_spec spec = box_spec(b, argv);
	struct cs_err err = { 0 };
	struct watched w = { 0 };
	struct sandbox_usage u;
	struct sandbox_exit end;
	struct sandbox *s;

	if (sandbox_start(&spec, &s, &err) < 0)
		T_FAIL("start: %s", err.msg);
	for (;;) {
		siginfo_t si = { 0 };

		if (waitid(P_PID, (id_t)sandbox_pid(s), &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid)
			break;
		sandbox_usage(s, &u);
		T_TRUE(u.disk_sampled);
		if (u.disk_now + 65536 > u.disk_limit || u.inodes_now + 1 > u.inodes_limit) {
			w.disk = true;
			sandbox_kill(s);
		}
		usleep(5000);
	}
	sandbox_wait(s, &end);
	sandbox_usage(s, &u);
	w.most = du(b, "s1/up", false);
	w.inodes = du(b, "s1/up", true);
	t_note("on disk %llu KiB in %llu files; told %llu KiB in %llu", (unsigned long long)w.most >> 10, (unsigned long long)w.inodes,
	       (unsigned long long)u.disk_now >> 10, (unsigned long long)u.inodes_now);
	sandbox_free(s);
	return w;
}

BOX_TEST(the_disk_limit_ends_it)
{
	struct watched w;
	struct box b;

	box_init(&b);
	b.limits.disk = 64 << 20;
	box_ws(&b)->store = box_store(&b, "s1");
	/* The writer pauses, so that a machine that holds the watcher up for a second does not decide this. */
	w = watch(&b, "i=0; while :; do dd if=/dev/zero of=f$i bs=1M count=4 2>/dev/null; i=$((i+1)); sleep 0.05; done");
	T_TRUE(w.disk);
	T_TRUE(w.most >= (62u << 20) && w.most < (160u << 20));
}

BOX_TEST(the_inode_limit_ends_it)
{
	struct watched w;
	struct box b;

	box_init(&b);
	b.limits.inodes = 3000;
	box_ws(&b)->store = box_store(&b, "s1");
	w = watch(&b, "i=0; while :; do mkdir d$i; : >d$i/f; i=$((i+1)); [ $((i % 100)) -ne 0 ] || sleep 0.1; done");
	T_TRUE(w.disk);
	T_TRUE(w.inodes > 2500 && w.inodes < 6000);
}

BOX_TEST(files_without_a_name_count)
{
	struct watched w;
	struct box b;

	box_init(&b);
	b.limits.disk = 64 << 20;
	box_ws(&b)->store = box_store(&b, "s1");
	w = watch(&b, "i=3; while [ $i -lt 9 ]; do eval \"exec $i>x\"; rm x; dd if=/dev/zero bs=1M count=30 >&$i 2>/dev/null; i=$((i+1)); done; sleep 10");
	T_TRUE(w.disk);
}

BOX_TEST(what_was_there_before_counts)
{
	struct watched w;
	struct box b;

	box_init(&b);
	b.limits.disk = 64 << 20;
	box_ws(&b)->store = box_store(&b, "s1");
	T_INT(box_sh(&b, "dd if=/dev/zero of=a bs=1M count=40 2>/dev/null"), 0);
	w = watch(&b, "sleep 0.1; dd if=/dev/zero of=b bs=1M count=40 2>/dev/null; sleep 10");
	T_TRUE(w.disk);
}

BOX_TEST(what_cannot_be_read_counts_too)
{
	struct watched w;
	struct box b;

	box_init(&b);
	b.limits.disk = 64 << 20;
	box_ws(&b)->store = box_store(&b, "s1");
	w = watch(&b, "mkdir d; i=0; cd d; chmod 300 .; while [ $i -lt 10 ]; do dd if=/dev/zero of=f$i bs=1M count=20 2>/dev/null; i=$((i+1)); done; sleep 10");
	T_TRUE(w.disk);
}

BOX_TEST(hard_links_count_once)
{
	struct watched w;
	struct box b;

	box_init(&b);
	b.limits.disk = 64 << 20;
	box_ws(&b)->store = box_store(&b, "s1");
	w = watch(&b, "dd if=/dev/zero of=a bs=1M count=30 2>/dev/null; for i in 1 2 3 4 5 6 7 8; do ln a a$i; done; sleep 1.5");
	T_TRUE(!w.disk);
}

BOX_TEST(space_cannot_be_reserved_without_writing)
{
	struct box b;

	box_init(&b);
	T_INT(box_sh(&b, "fallocate -l 100M f"), 0); /* in memory the file system holds the limit itself */
	box_ws(&b)->store = box_store(&b, "s1");
	T_INT(box_sh(&b, "fallocate -l 256K f && fallocate -n -l 4K f"), 0); /* a little */
	T_INT(box_sh(&b, "fallocate -l 257K f 2>/dev/null"), 1);
	T_INT(box_sh(&b, "fallocate -l 4G f 2>/dev/null"), 1);
	T_INT(box_sh(&b, "fallocate -l 1M f 2>/dev/null && exit 1; dd if=/dev/zero of=g bs=1M count=2 2>/dev/null && fallocate -p -l 1M g"), 0);
	b.limits.disk = 0;
	T_INT(box_sh(&b, "fallocate -l 1M f"), 0);
}
