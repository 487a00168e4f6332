/* SPDX-License-Identifier: Apache-2.0 */
/* test_diff.c - what `caisson diff` shows, and which files it takes for renamed.
 *
 * A layer is written by hand, as overlayfs would: no mount is needed, and no privilege. */
#include "harness/t.h"

#include "base/buf.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "txn/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static const char *top;
static struct txn *txn;

/* ---- a workspace and a layer ---- */

static char *at(const char *place, const char *rel)
{
	char *path = cs_printf("%s/%s/%s", top, place, rel);

	for (char *p = path + strlen(top) + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			(void)mkdir(path, 0755);
			*p = '/';
		}
	return path;
}

static void put_bytes(const char *place, const char *rel, const void *data, size_t len, mode_t mode)
{
	char *path = at(place, rel);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || cs_write_all(fd, data, len) < 0 || fchmod(fd, mode) < 0)
		T_FAIL("write %s: %s", path, strerror(errno));
	close(fd);
	free(path);
}

static void put(const char *place, const char *rel, const char *text)
{
	put_bytes(place, rel, text, strlen(text), 0644);
}

static void put_link(const char *place, const char *rel, const char *target)
{
	char *path = at(place, rel);

	T_INT(symlink(target, path), 0);
	free(path);
}

/* The program deletes it. */
static void wipe(const char *rel)
{
	char *path = at("up", rel);

	if (mknod(path, S_IFCHR, makedev(0, 0)) < 0)
		T_SKIP("no whiteouts here: mknod: %s", strerror(errno));
	free(path);
}

static void setup(void)
{
	char *path;

	top = t_tmpdir();
	path = cs_printf("%s/state", top);
	T_INT(setenv("CAISSON_STATE", path, 1), 0);
	free(path);
	path = cs_printf("%s/ws", top);
	T_INT(mkdir(path, 0755), 0);
	free(path);
}

/* From here on put("up", ...) is what the program writes. */
static void begin(void)
{
	struct cs_err err = { 0 };
	struct txn_about a = { .workspace = cs_printf("%s/ws", top), .profile = cs_strdup("default"), .command = cs_strdup("true") };
	char link[64], dir[4096] = "", *up, *here = cs_printf("%s/up", top);
	struct stat st;

	T_INT(stat(a.workspace, &st), 0);
	a.ino = st.st_ino;
	cs_strv_add(&a.protect, ".envrc");
	if (txn_begin(&a, &txn, &err) < 0)
		T_FAIL("begin: %s", err.msg);
	txn_settle(txn);
	snprintf(link, sizeof link, "/proc/self/fd/%d", txn_dir(txn));
	T_TRUE(readlink(link, dir, sizeof dir - 1) > 0);
	up = cs_printf("%s/up", dir);
	T_INT(symlink(up, here), 0);
	free(up);
	free(here);
}

static void scan(struct txn_changes *c)
{
	struct cs_err err = { 0 };

	if (txn_scan(txn, c, &err) < 0)
		T_FAIL("scan: %s", err.msg);
}

/* "A:x M:y R:z<w", directories with what is beneath them as "D:dir(3)". */
static void must_list(const struct txn_changes *c, const char *want)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

	for (size_t i = 0; i < c->n; i++) {
		const struct txn_change *x = &c->v[i];

		if (x->kind == TXN_CHANGED && S_ISDIR(x->new.mode))
			continue;
		cs_buf_fmt(&out, "%s%c:%s", out.len ? " " : "", x->kind, x->path);
		if (x->from)
			cs_buf_fmt(&out, "<%s", x->from);
		if (S_ISDIR(x->new.mode ? x->new.mode : x->old.mode))
			cs_buf_fmt(&out, "(%u)", x->subtree);
	}
	T_STR(cs_buf_text(&out), want);
}

static const struct txn_change *entry(const struct txn_changes *c, const char *path)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->v[i].path, path))
			return &c->v[i];
	T_FAIL("no change of %s", path);
	return NULL;
}

/* `caisson diff ...` as the command is called; what it prints, NUL-terminated. */
static int diff(struct cs_buf *out, ...)
{
	const char *argv[12] = { "diff" };
	struct txn_changes c = { 0 };
	int argc = 1, p[2], status;
	va_list ap;
	pid_t pid;

	va_start(ap, out);
	while ((argv[argc] = va_arg(ap, const char *)))
		argc++;
	va_end(ap);
	if (txn) {
		scan(&c);
		T_INT(txn_keep(txn, &c, NULL), 0);
		txn_changes_done(&c);
		txn_close(txn);
		txn = NULL;
	}
	T_INT(pipe(p), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		char *ws = cs_printf("%s/ws", top);

		if (chdir(ws) < 0)
			_exit(99);
		free(ws);
		dup2(p[1], 1);
		close(p[0]);
		close(p[1]);
		exit(cmd_diff(argc, (char **)(uintptr_t)argv));
	}
	close(p[1]);
	T_INT(cs_buf_read_fd(out, p[0], "pipe", NULL), 0);
	close(p[0]);
	T_INT(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must_show(const char *option, const char *want)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

	T_INT(diff(&out, option, NULL), 0);
	T_STR(cs_buf_text(&out), want);
}

/* ---- renames ---- */

static const char ten[] = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
static const char near_ten[] = "one\ntwo\nTHREE\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

static void must_find(const char *want)
{
	struct txn_changes c = { 0 };
	size_t added, changed, deleted;

	scan(&c);
	added = c.added, changed = c.changed, deleted = c.deleted;
	txn_find_renames(txn, &c);
	must_list(&c, want);
	T_INT(c.added + c.changed, added + changed);
	T_INT(deleted - c.deleted, added - c.added);
	txn_changes_done(&c);
	txn_close(txn);
}

TEST(a_file_of_equal_content_was_renamed)
{
	setup();
	put("ws", "old", ten);
	begin();
	wipe("old");
	put("up", "new", ten);
	must_find("R:new<old");
}

TEST(a_file_of_nearly_equal_content_was_renamed)
{
	setup();
	put("ws", "old", ten);
	begin();
	wipe("old");
	put("up", "new", near_ten);
	must_find("R:new<old");
}

TEST(a_file_of_other_content_was_not_renamed)
{
	setup();
	put("ws", "old", ten);
	begin();
	wipe("old");
	put("up", "new", "one\ntwo\nthree\nquite\nanother\ntext\nfrom\nhere\nto\nthe end\n");
	must_find("A:new D:old");
}

TEST(empty_files_are_not_paired)
{
	setup();
	put("ws", "old", "");
	begin();
	wipe("old");
	put("up", "new", "");
	must_find("A:new D:old");
}

TEST(binary_files_are_paired_only_when_equal)
{
	setup();
	put_bytes("ws", "a", "\0\1\2\3\n\n\n\n", 8, 0644);
	put_bytes("ws", "b", "\0\1\2\4\n\n\n\n", 8, 0644);
	begin();
	wipe("a");
	wipe("b");
	put_bytes("up", "c", "\0\1\2\3\n\n\n\n", 8, 0644);
	put_bytes("up", "d", "\0\1\2\5\n\n\n\n", 8, 0644);
	must_find("D:b R:c<a A:d");
}

TEST(of_equal_files_the_one_with_the_same_name_is_taken)
{
	setup();
	put("ws", "a/x", ten);
	put("ws", "a/y", ten);
	put("ws", "a/z", ten);
	begin();
	wipe("a");
	put("up", "b/z", ten);
	put("up", "b/y", ten);
	must_find("D:a(1) D:a/x A:b(2) R:b/y<a/y R:b/z<a/z");
}

TEST(the_nearest_of_several_is_taken_and_each_only_once)
{
	setup();
	put("ws", "far", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n1\n2\n3\n");
	put("ws", "near", near_ten);
	begin();
	wipe("far");
	wipe("near");
	put("up", "new", ten);
	must_find("D:far R:new<near");
}

TEST(what_is_beneath_directories_is_counted_anew)
{
	setup();
	put("ws", "a/1", "first\n");
	put("ws", "a/b/2", "second\n");
	put("ws", "a/b/3", "third\n");
	put("ws", "a/c/4", "fourth\n");
	begin();
	wipe("a");
	put("up", "n/2", "second\n");
	put("up", "n/4", "fourth\n");
	put("up", "n/5", "fifth and new\n");
	must_find("D:a(4) D:a/1 D:a/b(1) D:a/b/3 D:a/c(0) A:n(3) R:n/2<a/b/2 R:n/4<a/c/4 A:n/5");
}

TEST(a_renamed_file_says_what_else_differs)
{
	struct txn_changes c = { 0 };

	setup();
	put("ws", "same", ten);
	put("ws", "other", "a text of its own\nin two lines\n");
	begin();
	wipe("same");
	wipe("other");
	put_bytes("up", "x", ten, strlen(ten), 0755);
	put("up", "y", "a text of its own\nin two lines\n\n");
	scan(&c);
	txn_find_renames(txn, &c);
	must_list(&c, "R:x<same R:y<other");
	T_INT(entry(&c, "x")->differs, TXN_MODE);
	T_INT(entry(&c, "x")->old.mode & 07777, 0644);
	T_INT(entry(&c, "y")->differs, TXN_CONTENT);
	txn_changes_done(&c);
	txn_close(txn);
}

TEST(hundreds_of_equal_files_are_paired_and_none_is_lost)
{
	struct txn_changes c = { 0 };
	size_t renamed = 0, before;

	setup();
	for (int i = 0; i < 400; i++) {
		char name[32];

		snprintf(name, sizeof name, "a/%d", i);
		put("ws", name, ten);
	}
	begin();
	wipe("a");
	for (int i = 0; i < 400; i++) {
		char name[32];

		snprintf(name, sizeof name, "b/%d", 1000 - i);
		put("up", name, ten);
	}
	scan(&c);
	before = c.n; /* a, b, and what each holds; perhaps the workspace itself */
	txn_find_renames(txn, &c);
	for (size_t i = 0; i < c.n; i++)
		renamed += c.v[i].kind == TXN_RENAMED;
	T_INT(renamed, 400);
	T_INT(before - c.n, 400);
	T_INT(entry(&c, "a")->subtree, 0);
	T_INT(entry(&c, "b")->subtree, 400);
	txn_changes_done(&c);
	txn_close(txn);
}

/* ---- the command ---- */

TEST(a_change_is_shown_as_git_shows_it)
{
	setup();
	put("ws", "x", "a\nb\n");
	begin();
	put("up", "x", "a\nc\n");
	must_show(NULL, "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
}

TEST(files_come_and_go)
{
	setup();
	put("ws", "gone", "a\n");
	put("ws", "gone_empty", "");
	begin();
	wipe("gone");
	wipe("gone_empty");
	put("up", "new_empty", "");
	put_bytes("up", "run", "b", 1, 0755);
	must_show(NULL, "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
			"diff --git a/gone_empty b/gone_empty\ndeleted file mode 100644\n"
			"diff --git a/new_empty b/new_empty\nnew file mode 100644\n"
			"diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n");
}

TEST(a_mode_is_shown_to_git_if_it_has_a_word_for_it)
{
	setup();
	put("ws", "odd", "a\n");
	put("ws", "run", "a\n");
	begin();
	put_bytes("up", "odd", "a\n", 2, 0600);
	put_bytes("up", "run", "a\n", 2, 0755);
	must_show(NULL, "# caisson: odd: mode 0644 -> 0600\n"
			"diff --git a/run b/run\nold mode 100644\nnew mode 100755\n");
}

TEST(a_symlink_is_a_file_of_its_own_kind)
{
	setup();
	put_link("ws", "l", "a");
	put("ws", "t", "text\n");
	begin();
	put_link("up", "l", "b");
	put_link("up", "t", "a");
	must_show(NULL, "diff --git a/l b/l\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
			"# caisson: t: was a file, is a symlink\n"
			"diff --git a/t b/t\ndeleted file mode 100644\n--- a/t\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n"
			"diff --git a/t b/t\nnew file mode 120000\n--- /dev/null\n+++ b/t\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
}

TEST(what_a_replaced_directory_held_is_deleted)
{
	setup();
	put("ws", "d/x", "a\n");
	put("ws", "d/e/y", "b\n");
	begin();
	put("up", "d", "file\n");
	must_show("--name-status", "T\td\nD\td/e/\nD\td/e/y\nD\td/x\n");
}

TEST(a_rename_is_shown_with_what_changed)
{
	setup();
	put("ws", "old", ten);
	begin();
	wipe("old");
	put("up", "new", near_ten);
	must_show(NULL, "diff --git a/old b/new\nrename from old\nrename to new\n--- a/old\n+++ b/new\n"
			"@@ -1,6 +1,6 @@\n one\n two\n-three\n+THREE\n four\n five\n six\n");
	must_show("--name-status", "R\told\tnew\n");
	must_show("--stat", " old => new | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n");
}

TEST(no_renames_means_one_deleted_and_one_added)
{
	setup();
	put("ws", "old", ten);
	begin();
	wipe("old");
	put("up", "new", ten);
	{
		struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

		T_INT(diff(&out, "--no-renames", "--name-status", NULL), 0);
		T_STR(cs_buf_text(&out), "A\tnew\nD\told\n");
	}
}

TEST(names_are_quoted_as_git_does)
{
	setup();
	begin();
	put("up", "a b", "x\n");
	put("up", "n\n\033\xc3\xbc\"", "x\n");
	must_show("--name-status", "A\ta b\nA\t\"n\\n\\033\\303\\274\\\"\"\n");
	must_show(NULL, "diff --git a/a b b/a b\nnew file mode 100644\n--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+x\n"
			"diff --git \"a/n\\n\\033\\303\\274\\\"\" \"b/n\\n\\033\\303\\274\\\"\"\nnew file mode 100644\n"
			"--- /dev/null\n+++ \"b/n\\n\\033\\303\\274\\\"\"\n@@ -0,0 +1 @@\n+x\n");
}

TEST(for_a_person_names_and_content_are_escaped)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

	setup();
	begin();
	put("up", "n\n\033\xc3\xbc", "\033[2J\xe2\x80\xae\n");
	T_INT(diff(&out, "--color=always", NULL), 0);
	T_STR(cs_buf_text(&out), "\033[1mdiff --git a/n\\n\\x1b\xc3\xbc b/n\\n\\x1b\xc3\xbc\033[m\n\033[1mnew file mode 100644\033[m\n"
				 "\033[1m--- /dev/null\033[m\n\033[1m+++ b/n\\n\\x1b\xc3\xbc\033[m\n\033[36m@@ -0,0 +1 @@\033[m\n"
				 "\033[32m+\\x1b[2J\\u{202e}\033[m\n");
}

TEST(what_is_held_back_says_why)
{
	setup();
	begin();
	put("up", ".envrc", "x\n");
	must_show(NULL, "# caisson: .envrc: held back: a protected name: others execute or obey it\n"
			"diff --git a/.envrc b/.envrc\nnew file mode 100644\n--- /dev/null\n+++ b/.envrc\n@@ -0,0 +1 @@\n+x\n");
	must_show("--stat", " .envrc | 1 +\n 1 file changed, 1 insertion(+)\n"
			    "# caisson: .envrc: held back: a protected name: others execute or obey it\n");
}

TEST(binary_and_large_files_are_only_named)
{
	static char large[(16 << 20) + 1];

	setup();
	put_bytes("ws", "b", "\0", 1, 0644);
	put("ws", "l", "x\n");
	begin();
	put_bytes("up", "b", "\0\0", 2, 0644);
	put_bytes("up", "l", large, sizeof large, 0644);
	must_show(NULL, "diff --git a/b b/b\nBinary files a/b and b/b differ\n"
			"diff --git a/l b/l\nBinary files a/l and b/l differ (2B -> 16.0MiB)\n");
	must_show("--stat", " b | Bin 1 -> 2 bytes\n l | Bin 2 -> 16777217 bytes\n 2 files changed, 0 insertions(+), 0 deletions(-)\n");
}

TEST(directories_appear_only_where_git_would_miss_something)
{
	char *path;

	setup();
	put("ws", "d/x", "a\n");
	begin();
	put("up", "d/x", "b\n");
	put("up", "n/y", "c\n");
	path = at("up", "empty/");
	free(path);
	must_show(NULL, "diff --git a/d/x b/d/x\n--- a/d/x\n+++ b/d/x\n@@ -1 +1 @@\n-a\n+b\n"
			"# caisson: empty/: new empty directory, mode 0755\n"
			"diff --git a/n/y b/n/y\nnew file mode 100644\n--- /dev/null\n+++ b/n/y\n@@ -0,0 +1 @@\n+c\n");
	must_show("--name-status", "M\td/x\nA\tempty/\nA\tn/\nA\tn/y\n");
}

TEST(paths_choose_what_is_shown)
{
	struct cs_buf one CS_BUF_AUTO = CS_BUF(1 << 20), two CS_BUF_AUTO = CS_BUF(1 << 20), bad CS_BUF_AUTO = CS_BUF(1 << 20);
	char *full;

	setup();
	begin();
	put("up", "a/x", "1\n");
	put("up", "ab", "2\n");
	put("up", "t-1", "3\n");
	T_INT(diff(&one, "--name-status", "a", NULL), 0);
	T_STR(cs_buf_text(&one), "A\ta/\nA\ta/x\n");
	full = cs_printf("%s/ws/./a/../ab", top);
	T_INT(diff(&two, full, "--name-status", "--", "t-1", NULL), 0);
	T_STR(cs_buf_text(&two), "A\tab\nA\tt-1\n");
	free(full);
	T_INT(diff(&bad, "..", NULL), 125);
	T_STR(cs_buf_text(&bad), "");
}

TEST(an_unknown_transaction_is_refused)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);

	setup();
	T_INT(diff(&out, NULL), 125);
	T_INT(diff(&out, "t-nosuch", NULL), 125);
	T_INT(diff(&out, "t-a", "t-b", NULL), 125);
	T_INT(diff(&out, "--stat", "--json", NULL), 125);
	T_INT(diff(&out, "--color", "pink", NULL), 125);
	T_STR(cs_buf_text(&out), "");
}

TEST(json_says_it_all)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	static const char *const want[] = {
		"\"state\": \"pending\"", "\"added\": 1,", "\"changed\": 1,", "\"deleted\": 0,", "\"path_base64\": \"bv8=\"", "\"kind\": \"added\"",
		"\"old\": null", "\"mode\": \"0644\"", "\"differs\": [\n        \"content\"", "\"lines_added\": 2", "\"lines_removed\": 1",
		"\"hold\": null", "\"conflict\": null", "\"type\": \"file\"",
	};

	setup();
	put("ws", "m", "a\nb\n");
	begin();
	put("up", "m", "a\nc\nd\n");
	put("up", "n\xff", "x\n");
	T_INT(diff(&out, "--json", NULL), 0);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		if (!strstr(cs_buf_text(&out), want[i]))
			T_FAIL("no %s in %s", want[i], cs_buf_text(&out));
}

TEST(a_reader_that_goes_away_is_no_error)
{
	struct cs_err err = { 0 };
	struct txn_changes c = { 0 };
	int p[2], status;
	pid_t pid;

	setup();
	begin();
	put("up", "x", ten);
	scan(&c);
	T_INT(txn_keep(txn, &c, &err), 0);
	txn_changes_done(&c);
	txn_close(txn);
	T_INT(pipe(p), 0);
	close(p[0]);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		char *ws = cs_printf("%s/ws", top), *argv[] = { cs_strdup("diff"), NULL };

		if (chdir(ws) < 0)
			_exit(99);
		dup2(p[1], 1);
		close(p[1]);
		_exit(cmd_diff(1, argv));
	}
	close(p[1]);
	T_INT(waitpid(pid, &status, 0), pid);
	T_INT(status, 0);
}

/* ---- what git makes of it ---- */

TEST(git_applies_the_patch)
{
	static const struct {
		const char *name, *old, *new; /* NULL: not there */
	} rows[] = {
		{ "a", ten, near_ten }, { "sp ace", "1\n", "2\n" }, { "q\"uo\\te", "1\n", "2" }, { "n\nl\t", "1", "2\n" }, { "\xc3\xbc\xff", "1\n", "" },
		{ "gone", "1\n", NULL }, { "gone_empty", "", NULL }, { "new_empty", NULL, "" }, { "d/e/new", NULL, "x\r\ny\r\n" },
		{ "moved", ten, NULL }, { "d/here", NULL, ten }, { "ctl", "\1\2\n", "\33[2J\n\\ No newline at end of file\n" },
	};
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	static struct t_result r;
	char *ws;

	setup();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].old)
			put("ws", rows[i].name, rows[i].old);
	begin();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].new)
			put("up", rows[i].name, rows[i].new);
		else
			wipe(rows[i].name);
	}
	T_INT(diff(&out, NULL), 0);
	ws = cs_printf("%s/ws", top);
	T_INT(setenv("GIT_CEILING_DIRECTORIES", ws, 1), 0);
	t_run_with(&r, (const char *const[]){ "git", "apply", "-", NULL }, &(struct t_run_opts){ .cwd = ws, .input = cs_buf_text(&out) });
	if (r.status == 127)
		T_SKIP("git is not here");
	if (r.status)
		T_FAIL("git apply: %s\n%s", r.err, cs_buf_text(&out));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cs_buf got CS_BUF_AUTO = CS_BUF(1 << 20);
		char *path = at("ws", rows[i].name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		T_INT(fd >= 0, rows[i].new != NULL);
		if (fd >= 0) {
			T_INT(cs_buf_read_fd(&got, fd, path, NULL), 0);
			T_STR(cs_buf_text(&got), rows[i].new);
			close(fd);
		}
		free(path);
	}
	free(ws);
}
