/* SPDX-License-Identifier: Apache-2.0 */
/* session_find_hidden(): which names of a directory are secrets. */
#include "harness/t.h"

#include "base/mem.h"
#include "profile/profile.h"
#include "session/known.h"
#include "session/session.h"

#include <fcntl.h>
#include <sys/stat.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *root;

/* The file and the directories above it. */
static void put(const char *rel)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/%s", root, rel);
	for (char *p = path + strlen(root) + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			(void)mkdir(path, 0755);
			*p = '/';
		}
	if (path[strlen(path) - 1] == '/')
		return;
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	T_TRUE(fd >= 0);
	close(fd);
}

static bool partly;

static struct cs_strv find(const char *const *patterns, size_t n)
{
	struct cs_strv p = { 0 }, found = { 0 };
	struct cs_err err = { 0 };

	for (size_t i = 0; i < n; i++)
		cs_strv_add(&p, patterns[i]);
	partly = false;
	if (session_find_hidden(root, &p, &found, &partly, &err) < 0)
		T_FAIL("%s", err.msg);
	cs_strv_done(&p);
	return found;
}
#define FIND(...) find((const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ })))

/* Exactly these were found, in any order. */
static void found_are(struct cs_strv found, const char *const *want, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *path = cs_printf("%s/%s", root, want[i]);

		if (!cs_strv_has(&found, path))
			T_FAIL("'%s' was not found", want[i]);
		free(path);
	}
	for (size_t i = 0; i < found.n && found.n != n; i++)
		printf("# found %s\n", found.v[i]);
	T_INT(found.n, n);
	cs_strv_done(&found);
}
#define FOUND(found, ...) found_are(found, (const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ })))

/* A record that says what no search would find: whoever gets it did not search. */
static void pretend(const char *pattern)
{
	struct known k = { .dirs = CS_BUF(1 << 20) };
	struct cs_strv patterns = { 0 }, found = { 0 };
	struct stat st;

	cs_strv_add(&patterns, pattern);
	cs_strv_take(&found, cs_printf("%s/pretended", root));
	T_INT(stat(root, &st), 0);
	known_note(&k, "", 0, &st);
	T_TRUE(!k.fresh);
	known_save(root, &patterns, &k, &found, 0, false);
	cs_buf_done(&k.dirs);
	cs_strv_done(&patterns);
	cs_strv_done(&found);
}

static void flip_records(const char *state)
{
	char cmd[4096];

	snprintf(cmd, sizeof cmd, "for f in %s/seen/*; do printf X | dd of=$f bs=1 seek=90 conv=notrunc 2>/dev/null; done", state);
	T_INT(system(cmd), 0);
}

TEST(what_was_found_is_known_until_a_directory_changes)
{
	const char *state = t_tmpdir();
	char path[4096];

	T_INT(setenv("CAISSON_STATE", state, 1), 0);
	root = t_tmpdir();
	for (int i = 0; i < 600; i++) {
		snprintf(path, sizeof path, "d%d/f%d", i % 3, i);
		put(path);
	}
	put(".env"), put("d1/.env");
	FOUND(FIND(".env"), ".env", "d1/.env"); /* just made: not written down */
	snprintf(path, sizeof path, "%s/seen", state);
	T_INT(access(path, F_OK), -1);
	sleep(4);
	FOUND(FIND(".env"), ".env", "d1/.env");
	T_INT(access(path, F_OK), 0);
	FOUND(FIND(".env"), ".env", "d1/.env");
	pretend(".env");
	FOUND(FIND(".env"), "pretended"); /* it is used ... */
	FOUND(FIND("*.env"), ".env", "d1/.env"); /* ... for these patterns, */
	put("new");
	FOUND(FIND(".env"), ".env", "d1/.env"); /* and until something changes */
	put("d2/.env");
	FOUND(FIND(".env"), ".env", "d1/.env", "d2/.env");
	sleep(4);
	pretend(".env");
	flip_records(state);
	FOUND(FIND(".env"), ".env", "d1/.env", "d2/.env");
}

TEST(a_name_matches_at_any_depth)
{
	root = t_tmpdir();
	put(".env"), put("a/.env"), put("a/b/c/.env"), put("a/env"), put(".env2"), put("x.env");
	FOUND(FIND(".env"), ".env", "a/.env", "a/b/c/.env");
	T_TRUE(!partly);
}

TEST(a_pattern_matches_names_and_not_paths)
{
	root = t_tmpdir();
	put("k.pem"), put("d/e/server.pem"), put("d.pem/inner"), put("pem"), put("a.pem.txt");
	FOUND(FIND("*.pem"), "k.pem", "d/e/server.pem", "d.pem");
}

TEST(a_pattern_with_a_slash_matches_from_the_root)
{
	root = t_tmpdir();
	put(".docker/config.json"), put("sub/.docker/config.json"), put("config.json"), put(".config/gcloud/x"), put(".config/other");
	FOUND(FIND(".docker/config.json", ".config/gcloud"), ".docker/config.json", ".config/gcloud");
}

TEST(except_takes_a_name_out_again_wherever_it_stands)
{
	root = t_tmpdir();
	put(".env.local"), put(".env.example"), put("a/.env.example"), put("a/.env.prod"), put("keep/x.key"), put("y.key");
	FOUND(FIND(".env.*", "except:.env.example"), ".env.local", "a/.env.prod");
	FOUND(FIND("except:.env.example", ".env.*"), ".env.local", "a/.env.prod");
	FOUND(FIND("*.key", "except:keep/x.key"), "y.key");
}

TEST(a_hidden_directory_is_not_searched_itself)
{
	root = t_tmpdir();
	put(".ssh/id_rsa"), put(".ssh/deep/er"), put("id_rsa");
	FOUND(FIND(".ssh", "id_rsa", "er"), ".ssh", "id_rsa");
}

TEST(absolute_patterns_are_not_for_the_walk)
{
	char *absolute;

	root = t_tmpdir();
	put("etc/shadow"), put("f");
	absolute = cs_printf("%s/f", root);
	T_INT(FIND("/etc/shadow", absolute).n, 0);
	free(absolute);
}

TEST(nothing_matches_in_an_empty_directory_or_without_patterns)
{
	root = t_tmpdir();
	T_INT(FIND("*").n, 0);
	put("x");
	T_INT(find(NULL, 0).n, 0);
}

TEST(every_secret_of_the_default_profile_is_found)
{
	static const char *const secrets[] = { ".env", ".env.local", "id_rsa", "id_ed25519", "x/server.pem", "x/y/tls.key", ".npmrc", ".pypirc", ".netrc",
					       ".git-credentials", ".aws", ".kube", "service-account-7.json", "x/.bash_history", "secrets.yaml", ".vault-token" };
	static const char *const open[] = { ".env.example", ".env.sample", "id_rsa.pub", "main.c", "x/pem", "README.md", "package.json", "x/y/keys.txt" };
	struct profile p;
	struct cs_err err = { 0 };
	struct cs_strv found = { 0 };

	root = t_tmpdir();
	for (size_t i = 0; i < COUNT(secrets); i++)
		put(secrets[i]);
	for (size_t i = 0; i < COUNT(open); i++)
		put(open[i]);
	T_INT(profile_load("default", &p, &err), 0);
	T_INT(session_find_hidden(root, &p.files_hide, &found, &partly, &err), 0);
	found_are(found, secrets, COUNT(secrets));
	profile_done(&p);
}

TEST(a_name_with_a_newline_or_odd_bytes_is_found_as_it_is)
{
	root = t_tmpdir();
	put("d\n\xff/id_rsa"), put("x\033[31m.pem");
	FOUND(FIND("id_rsa", "*.pem"), "d\n\xff/id_rsa", "x\033[31m.pem");
}

TEST(symlinks_are_not_followed_and_loops_end)
{
	char path[4096];

	root = t_tmpdir();
	put("real/.env"), put("sub/");
	snprintf(path, sizeof path, "%s/link", root);
	T_INT(symlink("real", path), 0);
	snprintf(path, sizeof path, "%s/sub/up", root);
	T_INT(symlink("..", path), 0);
	snprintf(path, sizeof path, "%s/self", root);
	T_INT(symlink("self", path), 0);
	snprintf(path, sizeof path, "%s/out", root);
	T_INT(symlink("/etc", path), 0);
	FOUND(FIND(".env", "hostname"), "real/.env");
	T_TRUE(!partly);
}

TEST(a_symlink_with_a_secret_name_is_hidden_too)
{
	char path[4096];

	root = t_tmpdir();
	snprintf(path, sizeof path, "%s/id_rsa", root);
	T_INT(symlink("/etc/hostname", path), 0);
	FOUND(FIND("id_rsa"), "id_rsa");
}

TEST(the_search_ends_at_a_depth_and_says_so)
{
	root = t_tmpdir();
	put("1/2/3/4/5/6/7/.env");
	FOUND(FIND(".env"), "1/2/3/4/5/6/7/.env");
	T_TRUE(!partly);
	put("1/2/3/4/5/6/7/8/9/.env");
	FOUND(FIND(".env"), "1/2/3/4/5/6/7/.env");
	T_TRUE(partly);
}

TEST(other_peoples_code_is_searched_last_and_a_little)
{
	char path[4096];

	root = t_tmpdir();
	put("node_modules/a/.env"), put(".git/x/.env"), put("venv/.env"), put("src/.env");
	FOUND(FIND(".env"), "src/.env", "node_modules/a/.env", ".git/x/.env", "venv/.env");
	T_TRUE(!partly);
	/* However much of it there is: it is not the person's, so nothing is said, and the rest is found. */
	put("big/node_modules/x");
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof path, "%s/big/node_modules/f%d", root, i);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	}
	FOUND(FIND("src"), "src");
	T_TRUE(!partly);
}

TEST(the_number_of_entries_is_bounded_and_it_says_so)
{
	char path[4096];

	root = t_tmpdir();
	for (int i = 0; i < 20500; i++) {
		snprintf(path, sizeof path, "%s/f%d", root, i);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	}
	(void)FIND("nothing");
	T_TRUE(partly);
}

TEST(the_number_of_hidden_names_is_bounded_and_it_says_so)
{
	char path[4096];
	struct cs_strv found;

	root = t_tmpdir();
	for (int i = 0; i < 1500; i++) {
		snprintf(path, sizeof path, "%s/f%d.pem", root, i);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	}
	found = FIND("*.pem");
	T_TRUE(found.n >= 1000 && found.n < 1500);
	T_TRUE(partly);
	cs_strv_done(&found);
}

TEST(a_file_has_nothing_to_search_and_a_missing_directory_is_an_error)
{
	struct cs_strv p = { 0 }, found = { 0 };
	struct cs_err err = { 0 };
	char path[4096];

	root = t_tmpdir();
	put("id_rsa");
	cs_strv_add(&p, "*");
	snprintf(path, sizeof path, "%s/id_rsa", root);
	T_INT(session_find_hidden(path, &p, &found, &partly, &err), 0);
	T_INT(found.n, 0);
	snprintf(path, sizeof path, "%s/none", root);
	T_INT(session_find_hidden(path, &p, &found, &partly, &err), -CS_E_SYSTEM);
	T_TRUE(strstr(err.msg, "none") != NULL);
	cs_strv_done(&p);
}

TEST(no_descriptor_is_left_open)
{
	int before;

	root = t_tmpdir();
	put("a/b/c/.env"), put("a/x/y/z/w"), put("1/2/3/4/5/6/7/8/9/.env");
	before = t_count_fds();
	for (int i = 0; i < 50; i++) {
		struct cs_strv found = FIND(".env");

		cs_strv_done(&found);
	}
	T_INT(t_count_fds(), before);
}
