/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "base/buf.h"
#include "profile/profile.h"

#include <fcntl.h>
#include <sys/stat.h>

static int load(const char *text, struct profile *p, struct cs_err *err)
{
	return profile_load_text(text, strlen(text), "p.yaml", p, err);
}

static void must_load(const char *text, struct profile *p)
{
	struct cs_err err = { 0 };

	if (load(text, p, &err) < 0)
		T_FAIL("does not load: %s", err.msg);
}

/* Refused with exactly this message, and the output is left alone. */
static void refused(const char *text, size_t len, const char *message)
{
	struct profile p, before;
	struct cs_err err = { 0 };

	memset(&p, 0x5a, sizeof p);
	memcpy(&before, &p, sizeof p);
	if (profile_load_text(text, len, "p.yaml", &p, &err) >= 0)
		T_FAIL("accepted: %s", text);
	T_STR(err.msg, message);
	T_TRUE(!memcmp(&p, &before, sizeof p));
	T_TRUE(profile_load_text(text, len, "p.yaml", &p, NULL) < 0);
}

struct row {
	const char *text, *message;
};

static void refuse_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		refused(rows[i].text, strlen(rows[i].text), rows[i].message);
}
#define REFUSE_ROWS(rows) refuse_rows(rows, sizeof rows / sizeof *rows)

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "we");
	T_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int load_in(const char *dir, const char *name, struct profile *p, struct cs_err *err)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return profile_load(path, p, err);
}

/* The message without the directory it begins with. */
static const char *after_dir(const struct cs_err *err, const char *dir)
{
	T_TRUE(!strncmp(err->msg, dir, strlen(dir)));
	return err->msg + strlen(dir) + 1;
}

TEST(every_built_in_profile_loads_under_its_name)
{
	static const char *const want[] = { "default", "offline", "coding", "strict" };

	T_INT(profile_builtin_count(), 4);
	for (size_t i = 0; i < 4; i++) {
		struct profile p;

		T_STR(profile_builtin_name(i), want[i]);
		T_TRUE(*profile_builtin_summary(i));
		T_INT(profile_load(want[i], &p, NULL), 0);
		T_STR(p.name, want[i]);
		T_TRUE(cs_strv_has(&p.files_read, "/usr"));
		T_TRUE(cs_strv_has(&p.files_hide, ".ssh"));
		T_TRUE(cs_strv_has(&p.files_hide, "except:.env.example"));
		T_TRUE(p.require & PROT_BIT(PROT_SECCOMP));
		profile_done(&p);
	}
}

TEST(the_text_of_a_built_in_profile_loads_as_the_same_profile)
{
	for (size_t i = 0; i < profile_builtin_count(); i++) {
		struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 20), b CS_BUF_AUTO = CS_BUF(1 << 20);
		struct profile p, q;

		T_INT(profile_load(profile_builtin_name(i), &p, NULL), 0);
		must_load(profile_builtin_text(i), &q);
		profile_write_yaml(&p, &a);
		profile_write_yaml(&q, &b);
		T_STR(cs_buf_text(&a), cs_buf_text(&b));
		profile_done(&p);
		profile_done(&q);
	}
}

TEST(the_default_profile_has_the_documented_values)
{
	struct profile p;

	T_INT(profile_load("default", &p, NULL), 0);
	T_TRUE(!p.locked && p.workspace == PROFILE_WS_LAYER && p.proc == PROFILE_PROC_FULL);
	T_INT(p.limits.memory, 4L << 30);
	T_INT(p.limits.pids, 512);
	T_INT(p.limits.disk, 1L << 30);
	T_INT(p.limits.inodes, 262144);
	T_INT(p.limits.files, 4096);
	T_INT(p.limits.wall, 0);
	T_TRUE(p.limits.cpus == 0);
	T_TRUE(cs_strv_has(&p.env_pass, "LC_*"));
	T_INT(p.files_write.n, 0);
	T_INT(p.env_set.n, 0);
	profile_done(&p);
}

TEST(the_strict_profile_is_locked_and_wants_everything)
{
	struct profile p;

	T_INT(profile_load("strict", &p, NULL), 0);
	T_TRUE(p.locked && p.proc == PROFILE_PROC_PID && p.workspace == PROFILE_WS_LAYER);
	T_TRUE(p.require == PROT_ALL);
	T_TRUE(!cs_strv_has(&p.files_read, "/etc") && cs_strv_has(&p.files_read, "/etc/ld.so.cache"));
	T_INT(p.limits.wall, 300000);
	T_TRUE(p.limits.cpus == 1.0);
	profile_done(&p);
}

TEST(home_is_expanded_when_a_profile_is_loaded)
{
	struct profile p;

	setenv("HOME", "/home//ada/", 1);
	T_INT(profile_load("coding", &p, NULL), 0);
	T_TRUE(cs_strv_has(&p.files_read, "/home/ada/.rustup"));
	T_INT(profile_set(&p, "files.read", "~/x", "--ro", NULL), 0);
	T_TRUE(cs_strv_has(&p.files_read, "/home/ada/x"));
	T_INT(profile_set(&p, "files.hide", "except:~/y/", "--hide", NULL), 0);
	T_TRUE(cs_strv_has(&p.files_hide, "except:/home/ada/y"));
	profile_done(&p);
}

TEST(without_a_home_reading_is_skipped_and_writing_is_refused)
{
	struct profile p;
	struct cs_err err = { 0 };

	unsetenv("HOME");
	T_INT(profile_load("coding", &p, NULL), 0);
	for (size_t i = 0; i < p.files_read.n; i++)
		T_TRUE(p.files_read.v[i][0] == '/');
	T_INT(profile_set(&p, "files.read", "~/x", "--ro", &err), -CS_E_INVALID);
	T_STR(err.msg, "--ro: files.read: '~/x' means nothing: HOME is not an absolute path");
	profile_done(&p);
	T_INT(load("files: {write: [~/x]}", &p, &err), -CS_E_INVALID);
	T_STR(err.msg, "p.yaml: files.write: '~/x' means nothing: HOME is not an absolute path");
}

TEST(unknown_keys_are_named_with_the_nearest_right_one)
{
	static const struct row rows[] = {
		{ "limts:\n  pids: 3\n", "p.yaml:1:1: unknown key 'limts' (did you mean 'limits'?)" },
		{ "name: x\nlimits:\n  memroy: 1G\n", "p.yaml:3:3: unknown key 'memroy' in limits (did you mean 'memory'?)" },
		{ "memory: 1G\n", "p.yaml:1:1: unknown key 'memory' (did you mean 'memory' under 'limits'?)" },
		{ "limits.memory: 1G\n", "p.yaml:1:1: unknown key 'limits.memory' (did you mean 'memory' under 'limits'?)" },
		{ "files: {workspace: none}\n", "p.yaml:1:9: unknown key 'workspace' in files (did you mean 'workspace' at the top?)" },
		{ "xyzzy: 1\n", "p.yaml:1:1: unknown key 'xyzzy'" },
		{ "\"a\\e[31m\": 1\n", "p.yaml:1:1: unknown key 'a\\x1b[31m'" },
		{ "? [a]\n: b\n", "p.yaml:1:3: a key must be a single word" },
		{ "files:\n  read: []\n  rite: []\n", "p.yaml:3:3: unknown key 'rite' in files (did you mean 'write'?)" },
		{ "env: {pass: [], sett: {}}\n", "p.yaml:1:17: unknown key 'sett' in env (did you mean 'set'?)" },
	};

	REFUSE_ROWS(rows);
}

TEST(duplicate_keys_are_refused_everywhere)
{
	static const struct row rows[] = {
		{ "name: a\nname: b\n", "p.yaml:2:1: duplicate key 'name', first in line 1" },
		{ "limits:\n  pids: 3\n  pids: 4\n", "p.yaml:3:3: duplicate key 'pids', first in line 2" },
		{ "env:\n  set: {A: 1, A: 2}\n", "p.yaml:2:15: duplicate key 'A', first in line 2" },
	};

	REFUSE_ROWS(rows);
}

TEST(a_value_of_the_wrong_type_says_what_is_wanted)
{
	static const struct row rows[] = {
		{ "name: [a]\n", "p.yaml:1:7: name: wants a name, but this is a list" },
		{ "name:\n", "p.yaml:1:6: name: wants a name, but this is null" },
		{ "limits: 3\n", "p.yaml:1:9: limits: wants a mapping of keys, but this is a single value" },
		{ "limits: [3]\n", "p.yaml:1:9: limits: wants a mapping of keys, but this is a list" },
		{ "limits: {memory: {}}\n",
		  "p.yaml:1:18: limits.memory: wants a size (such as 64M or 2GiB, or unlimited), but this is a mapping" },
		{ "files: {read: /opt}\n", "p.yaml:1:15: files.read: wants a list of absolute paths, but this is a single value" },
		{ "files: {read: [[/opt]]}\n", "p.yaml:1:16: files.read: every item must be a single value" },
		{ "files: {read: [~]}\n", "p.yaml:1:16: files.read: every item must be a single value" },
		{ "env: {set: [A=1]}\n", "p.yaml:1:12: env.set: wants a mapping of names to values, but this is a list" },
		{ "env: {set: {A: [1]}}\n", "p.yaml:1:16: env.set: every value must be a single value" },
		{ "locked: \"true\"\n", "p.yaml:1:9: locked: wants true or false, but this is a single value" },
		{ "locked: ture\n", "p.yaml:1:9: locked: 'ture' is not true or false (did you mean 'true'?)" },
		{ "require: seccomp\n",
		  "p.yaml:1:10: require: wants a list of protections, or the word all, but this is a single value" },
		{ "extends: [default]\n", "p.yaml:1:10: extends: wants a profile's name or path, but this is a list" },
		{ "- a\n", "p.yaml:1:1: a profile is a mapping of keys to values" },
		{ "word\n", "p.yaml:1:1: a profile is a mapping of keys to values" },
	};

	REFUSE_ROWS(rows);
}

TEST(words_outside_a_list_of_words_are_refused_with_the_list)
{
	static const struct row rows[] = {
		{ "workspace: lyaer\n",
		  "p.yaml:1:12: workspace: 'lyaer' is not one of: layer, read, write, none (did you mean 'layer'?)" },
		{ "proc: everything\n", "p.yaml:1:7: proc: 'everything' is not one of: full, pid" },
		{ "isolation: vm\n", "p.yaml:1:12: isolation: 'vm' is not one of: native" },
		{ "network: host\n", "p.yaml:1:10: network: 'host' is not possible: the network boundary is not there yet, and "
				     "only 'none' is accepted" },
		{ "require: [secomp]\n", "p.yaml:1:11: require: there is no protection 'secomp' (did you mean 'seccomp'?)" },
		{ "name: a/b\n", "p.yaml:1:7: name: 'a/b' is not a name (letters, digits, '.', '_' and '-', at most 64)" },
	};

	REFUSE_ROWS(rows);
}

TEST(impossible_limits_are_refused)
{
	static const struct row rows[] = {
		{ "limits: {pids: 0}\n", "p.yaml:1:16: limits.pids: '0' is out of range: at least 1, or 'unlimited'" },
		{ "limits: {pids: -1}\n", "p.yaml:1:16: limits.pids: '-1' is not a whole number (or unlimited)" },
		{ "limits: {pids: 1.5}\n", "p.yaml:1:16: limits.pids: '1.5' is not a whole number (or unlimited)" },
		{ "limits: {pids: 99999999999999999999}\n",
		  "p.yaml:1:16: limits.pids: '99999999999999999999' is out of range: at least 1, or 'unlimited'" },
		{ "limits: {memory: 4K}\n", "p.yaml:1:18: limits.memory: '4K' is out of range: at least 1MiB, or 'unlimited'" },
		{ "limits: {memory: lots}\n",
		  "p.yaml:1:18: limits.memory: 'lots' is not a size (such as 64M or 2GiB, or unlimited)" },
		{ "limits: {memory: unlimted}\n", "p.yaml:1:18: limits.memory: 'unlimted' is not a size (such as 64M or 2GiB, "
						  "or unlimited) (did you mean 'unlimited'?)" },
		{ "limits: {wall: 10x}\n", "p.yaml:1:16: limits.wall: '10x' is not a time (such as 1s or 10m, or unlimited)" },
		{ "limits: {wall: 0s}\n", "p.yaml:1:16: limits.wall: '0s' is out of range: at least 1ms, or 'unlimited'" },
		{ "limits: {cpus: 0}\n", "p.yaml:1:16: limits.cpus: '0' is out of range: at least 0.01, or 'unlimited'" },
		{ "limits: {cpus: nan}\n",
		  "p.yaml:1:16: limits.cpus: 'nan' is not a number of processors (such as 0.5 or 2, or unlimited)" },
		{ "limits: {files: 3}\n", "p.yaml:1:17: limits.files: '3' is out of range: at least 16, or 'unlimited'" },
	};

	REFUSE_ROWS(rows);
}

TEST(bad_paths_patterns_and_names_are_refused)
{
	static const struct row rows[] = {
		{ "files: {read: [opt]}\n", "p.yaml:1:16: files.read: 'opt' is not an absolute path" },
		{ "files: {write: [/a/../b]}\n", "p.yaml:1:17: files.write: '/a/../b' has a '..' in it" },
		{ "files: {read: [\"/a\\nb\"]}\n", "p.yaml:1:16: files.read: '/a\\nb' holds a newline or another control byte" },
		{ "files: {read: [\"/a\\0b\"]}\n", "p.yaml:1:16: a value may not hold a NUL byte" },
		{ "files: {read: [\"\"]}\n", "p.yaml:1:16: files.read: '' is empty" },
		{ "files: {hide: [\"**/x\"]}\n",
		  "p.yaml:1:16: files.hide: '**/x' has '**': a name without '/' matches at any depth already" },
		{ "files: {hide: [\"/etc/*.key\"]}\n",
		  "p.yaml:1:16: files.hide: '/etc/*.key' is absolute and so taken as it is, without * and ?" },
		{ "files: {hide: [./]}\n", "p.yaml:1:16: files.hide: './' names nothing" },
		{ "files: {hide: [/]}\n", "p.yaml:1:16: files.hide: '/' would hide everything" },
		{ "files: {hide: [\"except:\"]}\n", "p.yaml:1:16: files.hide: 'except:' is empty" },
		{ "env: {pass: [\"A=B\"]}\n", "p.yaml:1:14: env.pass: 'A=B' is not a variable's name" },
		{ "env: {pass: [1A]}\n", "p.yaml:1:14: env.pass: '1A' is not a variable's name" },
		{ "env: {set: {\"A B\": 1}}\n", "p.yaml:1:20: env.set: 'A B' is not a variable's name" },
		{ "env: {set: {A: \"x\\ny\"}}\n", "p.yaml:1:16: env.set: 'x\\ny' holds a newline or another control byte" },
		{ "description: \"a\\nb\"\n", "p.yaml:1:14: description: 'a\\nb' holds a newline or another control byte" },
	};

	REFUSE_ROWS(rows);
}

TEST(what_is_not_enforced_is_refused_rather_than_ignored)
{
	static const struct row rows[] = {
		{ "tools: [x]\n", "p.yaml:1:8: tools: not enforced by this version: refusing rather than ignoring" },
		{ "rules: {a: b}\n", "p.yaml:1:8: rules: not enforced by this version: refusing rather than ignoring" },
		{ "rules: word\n", "p.yaml:1:8: rules: not enforced by this version: refusing rather than ignoring" },
	};
	struct profile p;

	REFUSE_ROWS(rows);
	must_load("tools:\nrules: []\n", &p);
	profile_done(&p);
	must_load("tools: {}\nrules: null\nfiles:\nenv: {set: }\nlimits: {}\nrequire:\n", &p);
	profile_done(&p);
}

TEST(broken_and_fancy_yaml_is_refused_with_its_place)
{
	static const struct row rows[] = {
		{ "", "p.yaml:1:1: empty: a profile is a mapping of keys to values" },
		{ "# nothing\n", "p.yaml:1:1: empty: a profile is a mapping of keys to values" },
		{ "name: a\n---\nname: b\n", "p.yaml:2:1: a second document: a profile is one" },
		{ "name: &a b\n", "p.yaml:1:7: anchors are not allowed; a value that begins with '&' needs quotes" },
		{ "files: {read: &x [/a]}\n", "p.yaml:1:15: anchors are not allowed; a value that begins with '&' needs quotes" },
		{ "files: {read: [*x]}\n", "p.yaml:1:16: aliases are not allowed; a value that begins with '*' needs quotes" },
		{ "files:\n  read:\n    - !/etc\n", "p.yaml:3:7: tags are not allowed; a value that begins with '!' needs quotes" },
		{ "name: !!str x\n", "p.yaml:1:7: tags are not allowed; a value that begins with '!' needs quotes" },
		{ "name: [a\n", "p.yaml:2:1: not YAML: did not find expected ',' or ']' while parsing a flow sequence" },
		{ "name: \"a\n", "p.yaml:2:1: not YAML: found unexpected end of stream while scanning a quoted scalar" },
		{ "files:\n  hide:\n    - *.pem\n", "p.yaml:3:8: not YAML: did not find expected alphabetic or numeric character "
						    "while scanning an alias; a value that begins with '*' needs quotes" },
		{ "name: a\xff\n", "p.yaml:1:8: byte 0xff is not UTF-8" },
		{ "name: \xc3\xa4\xed\xa0\x80\n", "p.yaml:1:8: byte 0xed is not UTF-8" },
		{ "name: a\n# \x1b[31m\n", "p.yaml:2:3: control byte 0x1b" },
	};

	REFUSE_ROWS(rows);
	refused("name: a\0b", 9, "p.yaml:1:8: control byte 0x00");
	refused("\xff\xfen\0a\0", 6, "p.yaml:1:1: byte 0xff is not UTF-8");
}

TEST(size_depth_and_number_of_items_are_bounded)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_err err = { 0 };
	struct profile p;

	for (int i = 0; i < 40; i++)
		cs_buf_char(&b, '[');
	refused(cs_buf_text(&b), b.len, "p.yaml:1:17: nested deeper than 16");

	cs_buf_done(&b);
	cs_buf_str(&b, "files:\n  hide:\n");
	for (int i = 0; i < 5000; i++)
		cs_buf_fmt(&b, "    - f%d\n", i);
	T_INT(load(cs_buf_text(&b), &p, &err), -CS_E_LIMIT);
	T_STR(err.msg, "p.yaml:4094:7: more than 4096 items");

	cs_buf_done(&b);
	while (b.len <= 256 * 1024)
		cs_buf_str(&b, "# padding padding padding padding\n");
	T_INT(load(cs_buf_text(&b), &p, &err), -CS_E_LIMIT);
	T_STR(err.msg, "p.yaml: larger than 262144 bytes");
}

TEST(a_file_that_says_nothing_of_extends_starts_from_default)
{
	struct profile p;

	must_load("limits: {pids: 7}\n", &p);
	T_STR(p.name, "p");
	T_TRUE(!p.extends && !p.description);
	T_INT(p.limits.pids, 7);
	T_INT(p.limits.memory, 4L << 30);
	T_TRUE(cs_strv_has(&p.files_hide, ".ssh"));
	profile_done(&p);
	must_load("extends: none\n", &p);
	T_INT(p.files_hide.n + p.files_read.n + p.env_pass.n, 0);
	T_INT(p.require, 0);
	profile_done(&p);
}

TEST(lists_append_and_an_exclamation_mark_takes_away)
{
	struct profile p;

	must_load("extends: default\n"
		  "files: {read: [\"!/opt\", /srv/data/, /srv//data], hide: [\"!.envrc\"]}\n"
		  "require: [landlock, \"!pdeath\"]\n",
		  &p);
	T_TRUE(!cs_strv_has(&p.files_read, "/opt"));
	T_TRUE(cs_strv_has(&p.files_read, "/usr"));
	T_STR(p.files_read.v[p.files_read.n - 1], "/srv/data");
	T_STR(p.files_read.v[p.files_read.n - 2], "/etc");
	T_TRUE(!cs_strv_has(&p.files_hide, ".envrc"));
	T_TRUE(p.require & PROT_BIT(PROT_LANDLOCK));
	T_TRUE(!(p.require & PROT_BIT(PROT_PDEATH)));
	profile_done(&p);
}

TEST(only_what_is_inherited_can_be_taken_away)
{
	static const struct row rows[] = {
		{ "files: {read: [\"!/otp\"]}\n",
		  "p.yaml:1:16: files.read: '/otp' is not inherited, so it cannot be removed (did you mean '/opt'?)" },
		{ "files: {read: [/srv/x, \"!/srv/x\"]}\n",
		  "p.yaml:1:24: files.read: '/srv/x' is not inherited, so it cannot be removed" },
		{ "require: [\"!landlock\"]\n", "p.yaml:1:11: require: 'landlock' is not inherited, so it cannot be removed" },
		{ "env: {set: {A: null}}\n", "p.yaml:1:16: env.set: 'A' is not inherited, so it cannot be removed" },
	};

	REFUSE_ROWS(rows);
}

TEST(extends_is_relative_to_the_extending_file)
{
	const char *dir = t_tmpdir();
	char sub[512];
	struct profile p;
	struct cs_err err = { 0 };

	snprintf(sub, sizeof sub, "%s/sub", dir);
	T_INT(mkdir(sub, 0700), 0);
	put_file(dir, "base.yaml", "extends: none\nname: base\nenv: {set: {A: one, B: two}}\nlimits: {wall: 1s}\n");
	put_file(dir, "sub/top.yaml", "extends: ../base.yaml\nenv: {set: {A: x=y, B: null}}\nlimits: {wall: 1m}\n");
	if (load_in(dir, "sub/top.yaml", &p, &err) < 0)
		T_FAIL("%s", err.msg);
	T_STR(p.name, "top");
	T_STR(p.extends, "../base.yaml");
	T_INT(p.env_set.n, 1);
	T_STR(p.env_set.v[0], "A=x=y");
	T_INT(p.limits.wall, 60000);
	profile_done(&p);
}

TEST(an_error_in_the_base_names_both_files)
{
	const char *dir = t_tmpdir();
	struct profile p;
	struct cs_err err = { 0 };
	char want[512];

	put_file(dir, "base.yaml", "extends: none\nnmae: x\n");
	put_file(dir, "top.yaml", "name: top\nextends: base.yaml\n");
	T_INT(load_in(dir, "top.yaml", &p, &err), -CS_E_INVALID);
	snprintf(want, sizeof want, "top.yaml:2:10: extends: %s/base.yaml:2:1: unknown key 'nmae' (did you mean 'name'?)", dir);
	T_STR(after_dir(&err, dir), want);
}

TEST(missing_circular_and_endless_bases_are_refused)
{
	const char *dir = t_tmpdir();
	struct profile p;
	struct cs_err err = { 0 };
	char name[32], text[64];

	put_file(dir, "missing.yaml", "extends: ./nowhere.yaml\n");
	T_INT(load_in(dir, "missing.yaml", &p, &err), -CS_E_NOT_FOUND);
	T_TRUE(strstr(err.msg, "missing.yaml:1:10: extends: "));
	T_TRUE(strstr(err.msg, "/nowhere.yaml: no such file"));
	put_file(dir, "word.yaml", "extends: strct\n");
	T_INT(load_in(dir, "word.yaml", &p, &err), -CS_E_NOT_FOUND);
	T_STR(after_dir(&err, dir), "word.yaml:1:10: there is no built-in profile 'strct' (did you mean 'strict'?); a file's name "
				    "has a '/' or ends in .yaml");
	put_file(dir, "a.yaml", "extends: b.yaml\n");
	put_file(dir, "b.yaml", "extends: a.yaml\n");
	T_INT(load_in(dir, "a.yaml", &p, &err), -CS_E_CONFLICT);
	T_TRUE(strstr(err.msg, "a.yaml: extends itself in a circle"));
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof name, "c%d.yaml", i);
		snprintf(text, sizeof text, "extends: c%d.yaml\n", i + 1);
		put_file(dir, name, text);
	}
	put_file(dir, "c12.yaml", "extends: none\n");
	T_INT(load_in(dir, "c0.yaml", &p, &err), -CS_E_LIMIT);
	T_INT(load_in(dir, "c4.yaml", &p, &err), 0);
	profile_done(&p);
}

TEST(what_is_no_profile_file_is_refused_and_leaks_nothing)
{
	const char *dir = t_tmpdir();
	struct profile p;
	struct cs_err err = { 0 };
	int before = t_count_fds();
	char path[512];

	T_INT(profile_load(dir, &p, &err), -CS_E_INVALID);
	T_STR(err.msg + strlen(dir), ": a directory, not a profile");
	T_INT(profile_load("/dev/null", &p, &err), -CS_E_INVALID);
	T_STR(err.msg, "/dev/null: not a regular file, not a profile");
	snprintf(path, sizeof path, "%s/fifo.yaml", dir);
	T_INT(mkfifo(path, 0600), 0);
	T_INT(profile_load(path, &p, &err), -CS_E_INVALID);
	T_INT(profile_load("strict.yml", &p, &err), -CS_E_NOT_FOUND);
	T_STR(err.msg, "strict.yml: no such file (did you mean 'strict'?)");
	T_INT(profile_load("/no\n/such\x1b.yaml", &p, &err), -CS_E_NOT_FOUND);
	T_STR(err.msg, "/no\\n/such\\x1b.yaml: no such file");
	T_INT(profile_load("defualt", &p, &err), -CS_E_NOT_FOUND);
	T_STR(err.msg, "profile: there is no built-in profile 'defualt' (did you mean 'default'?); a file's name has a '/' or ends "
		       "in .yaml");
	T_INT(t_count_fds(), before);
}

struct set_row {
	const char *key, *value, *message; /* NULL: accepted */
};

static void set_rows(struct profile *p, const struct set_row *rows, size_t n, int code)
{
	for (size_t i = 0; i < n; i++) {
		struct cs_err err = { 0 };
		int r = profile_set(p, rows[i].key, rows[i].value, "--flag", &err);

		if (!rows[i].message && r < 0)
			T_FAIL("%s=%s: %s", rows[i].key, rows[i].value, err.msg);
		if (!rows[i].message)
			continue;
		if (r != -code)
			T_FAIL("%s=%s gave %d (%s)", rows[i].key, rows[i].value, r, err.msg);
		T_STR(err.msg, rows[i].message);
	}
}
#define SET_ROWS(p, rows, code) set_rows(p, rows, sizeof rows / sizeof *rows, code)

TEST(flags_override_an_unlocked_profile)
{
	static const struct set_row rows[] = {
		{ "limits.memory", "64M", NULL },
		{ "limits.pids", "unlimited", NULL },
		{ "limits.cpus", "0.5", NULL },
		{ "limits.wall", "1h", NULL },
		{ "files.read", "/srv", NULL },
		{ "files.write", "/srv/out/", NULL },
		{ "files.hide", "*.secret", NULL },
		{ "env.pass", "FOO_*", NULL },
		{ "env.set", "A=b=c", NULL },
		{ "env.set", "A=", NULL },
		{ "workspace", "write", NULL },
		{ "require", "landlock,keyring", NULL },
		{ "network", "none", NULL },
	};
	struct profile p;

	T_INT(profile_load("default", &p, NULL), 0);
	SET_ROWS(&p, rows, CS_E_INVALID);
	T_INT(p.limits.memory, 64 << 20);
	T_INT(p.limits.pids, 0);
	T_TRUE(p.limits.cpus == 0.5);
	T_INT(p.limits.wall, 3600000);
	T_STR(p.files_write.v[0], "/srv/out");
	T_INT(p.env_set.n, 1);
	T_STR(p.env_set.v[0], "A=");
	T_TRUE(p.workspace == PROFILE_WS_WRITE);
	T_TRUE(p.require & PROT_BIT(PROT_KEYRING) && p.require & PROT_BIT(PROT_LANDLOCK));
	T_INT(profile_set(&p, "env.set", "!A", "--flag", NULL), 0);
	T_INT(p.env_set.n, 0);
	profile_done(&p);
}

TEST(bad_flags_are_refused_under_their_own_name)
{
	static const struct set_row rows[] = {
		{ "limits.memory", "x", "--flag: limits.memory: 'x' is not a size (such as 64M or 2GiB, or unlimited)" },
		{ "limits.memroy", "1G", "--flag: unknown key 'limits.memroy' (did you mean 'limits.memory'?)" },
		{ "files.read", "srv", "--flag: files.read: 'srv' is not an absolute path" },
		{ "env.set", "A", "--flag: env.set: wants NAME=VALUE" },
		{ "env.set", "=x", "--flag: env.set: '' is not a variable's name" },
		{ "extends", "coding", "--flag: extends: only a profile file can extend another" },
		{ "require", "landlock,nope", "--flag: require: there is no protection 'nope' (did you mean 'nnp'?)" },
		{ "require", "landlock,", "--flag: require: there is no protection ''" },
		{ "tools", "x", "--flag: tools: 'x' is not enforced by this version: refusing rather than ignoring" },
	};
	struct profile p;

	T_INT(profile_load("default", &p, NULL), 0);
	SET_ROWS(&p, rows, CS_E_INVALID);
	T_TRUE(!(p.require & PROT_BIT(PROT_LANDLOCK))); /* all of a flag or nothing */
	profile_done(&p);
}

static const char locked_text[] = "extends: none\nlocked: true\nworkspace: layer\n"
				  "files: {read: [/usr], hide: [.env]}\nenv: {pass: [TERM], set: {A: b}}\n"
				  "limits: {memory: 512M, cpus: 1, pids: 64}\nrequire: [seccomp]\n";

TEST(a_locked_profile_refuses_to_be_widened)
{
	static const struct set_row rows[] = {
		{ "limits.memory", "1G", "--flag: limits.memory: the profile is locked at '512MiB'; '1G' would widen it" },
		{ "limits.memory", "unlimited",
		  "--flag: limits.memory: the profile is locked at '512MiB'; 'unlimited' would widen it" },
		{ "limits.cpus", "2", "--flag: limits.cpus: the profile is locked at '1'; '2' would widen it" },
		{ "limits.pids", "65", "--flag: limits.pids: the profile is locked at '64'; '65' would widen it" },
		{ "files.read", "/opt", "--flag: files.read: the profile is locked at '/usr'; '/opt' would widen it" },
		{ "files.write", "/srv", "--flag: files.write: the profile is locked at ''; '/srv' would widen it" },
		{ "files.hide", "!.env", "--flag: files.hide: the profile is locked at '.env'; '.env' would widen it" },
		{ "files.hide", "except:.env",
		  "--flag: files.hide: the profile is locked at '.env'; 'except:.env' would widen it" },
		{ "env.pass", "HOME", "--flag: env.pass: the profile is locked at 'TERM'; 'HOME' would widen it" },
		{ "env.set", "A=c", "--flag: env.set: the profile is locked at 'A=b'; 'A=c' would widen it" },
		{ "env.set", "!A", "--flag: env.set: the profile is locked at 'A=b'; 'A=' would widen it" },
		{ "workspace", "write", "--flag: workspace: the profile is locked at 'layer'; 'write' would widen it" },
		{ "require", "!seccomp", "--flag: require: the profile is locked at 'seccomp'; '!seccomp' would widen it" },
		{ "locked", "false", "--flag: locked: the profile is locked at 'true'; 'false' would widen it" },
	};
	struct profile p;
	struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 20), b CS_BUF_AUTO = CS_BUF(1 << 20);

	must_load(locked_text, &p);
	profile_write_yaml(&p, &a);
	SET_ROWS(&p, rows, CS_E_DENIED);
	profile_write_yaml(&p, &b);
	T_STR(cs_buf_text(&b), cs_buf_text(&a));
	profile_done(&p);
}

TEST(a_locked_profile_can_be_narrowed)
{
	static const struct set_row rows[] = {
		{ "limits.memory", "512M", NULL }, { "limits.memory", "64M", NULL },  { "limits.wall", "1s", NULL },
		{ "limits.cpus", "0.5", NULL },    { "files.hide", ".envrc", NULL },  { "files.read", "/usr/", NULL },
		{ "files.read", "!/usr", NULL },   { "env.pass", "!TERM", NULL },     { "env.set", "A=b", NULL },
		{ "workspace", "read", NULL },     { "workspace", "none", NULL },     { "proc", "pid", NULL },
		{ "require", "all", NULL },        { "locked", "true", NULL },        { "name", "mine", NULL },
	};
	static const struct set_row back[] = {
		{ "workspace", "read", "--flag: workspace: the profile is locked at 'none'; 'read' would widen it" },
		{ "proc", "full", "--flag: proc: the profile is locked at 'pid'; 'full' would widen it" },
		{ "limits.wall", "2s", "--flag: limits.wall: the profile is locked at '1s'; '2s' would widen it" },
	};
	struct profile p;

	must_load(locked_text, &p);
	SET_ROWS(&p, rows, CS_E_INVALID);
	SET_ROWS(&p, back, CS_E_DENIED);
	T_INT(p.files_read.n, 0);
	profile_done(&p);
}

TEST(who_extends_a_locked_profile_is_bound_by_it)
{
	static const struct row rows[] = {
		{ "extends: strict\nlimits:\n  memory: 1G\n",
		  "p.yaml:3:11: limits.memory: the profile is locked at '512MiB'; '1G' would widen it" },
		{ "locked: false\nextends: strict\n", "p.yaml:1:9: locked: the profile is locked at 'true'; 'false' would widen it" },
		{ "extends: strict\nworkspace: write\n",
		  "p.yaml:2:12: workspace: the profile is locked at 'layer'; 'write' would widen it" },
		{ "extends: strict\nrequire: [\"!caps\"]\n",
		  "p.yaml:2:11: require: the profile is locked at 'caps'; '!caps' would widen it" },
	};
	struct profile p;

	REFUSE_ROWS(rows);
	must_load("extends: strict\nlimits: {memory: 64M}\nfiles: {hide: [x]}\nworkspace: none\n", &p);
	T_TRUE(p.locked);
	T_INT(p.limits.memory, 64 << 20);
	profile_done(&p);
}

TEST(locked_binds_others_and_not_the_file_that_says_it)
{
	struct profile p;

	must_load("locked: true\nlimits: {memory: 64G}\nfiles: {read: [/srv]}\n", &p);
	T_TRUE(p.locked && cs_strv_has(&p.files_read, "/srv"));
	profile_done(&p);
}

static void round_trip(const char *text)
{
	struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 20), b CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p, q;

	must_load(text, &p);
	profile_write_yaml(&p, &a);
	must_load(cs_buf_text(&a), &q);
	profile_write_yaml(&q, &b);
	T_STR(cs_buf_text(&a), cs_buf_text(&b));
	T_STR(p.name, q.name);
	T_TRUE(!memcmp(&p.limits, &q.limits, sizeof p.limits));
	T_TRUE(p.require == q.require && p.locked == q.locked && p.workspace == q.workspace && p.proc == q.proc);
	T_INT(p.files_hide.n, q.files_hide.n);
	for (size_t i = 0; i < p.files_hide.n; i++)
		T_STR(p.files_hide.v[i], q.files_hide.v[i]);
	for (size_t i = 0; i < p.env_set.n; i++)
		T_STR(p.env_set.v[i], q.env_set.v[i]);
	profile_done(&p);
	profile_done(&q);
}

TEST(a_written_profile_reads_back_as_the_same)
{
	for (size_t i = 0; i < profile_builtin_count(); i++)
		round_trip(profile_builtin_text(i));
	round_trip(locked_text);
	round_trip("extends: none\nname: \"null\"\n"
		   "description: \"it's \\\"so\\\": [x] # \\\\ \\u2028 \\u0085 \\uFEFF \xc3\xa4 \xf0\x9f\x98\x80\"\n"
		   "files: {hide: [\"true\", \"- x\", \"a: b\", \"#x\", \"  x \", \"0\", \"\xc3\xa4*\", \"\\u202E\", \"'\"]}\n"
		   "env: {set: {A: \"\", N: \"null\", T: \"a\\tb\", Y: \"yes\"}}\n"
		   "limits: {memory: 1234567, cpus: 0.25, wall: 90s, cpu_time: 1ms, output: 1536K, disk: 3G}\n");
}

TEST(json_and_schema_are_balanced_and_name_every_key)
{
	static const char *const words[] = { "\"limits\"", "\"cpu_time\"", "\"hide\"", "\"require\"", "\"workspace\"", "\"set\"" };
	struct cs_buf schema CS_BUF_AUTO = CS_BUF(1 << 20), json CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p;

	T_INT(profile_load("default", &p, NULL), 0);
	profile_write_schema(&schema);
	profile_write_json(&p, &json);
	profile_done(&p);
	T_TRUE(!schema.over && !json.over);
	T_TRUE(schema.len > 100 && !strcmp(schema.data + schema.len - 3, "\n}\n"));
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		T_TRUE(strstr(cs_buf_text(&schema), words[i]));
		T_TRUE(strstr(cs_buf_text(&json), words[i]));
	}
}

TEST(explain_says_what_matters_and_escapes_what_it_shows)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p;

	must_load("extends: strict\ndescription: \"x\\u202Ey\"\n", &p);
	profile_explain(&p, &out);
	T_TRUE(strstr(cs_buf_text(&out), "x\\u{202e}y"));
	T_TRUE(strstr(cs_buf_text(&out), "512MiB"));
	T_TRUE(strstr(cs_buf_text(&out), "Locked"));
	T_TRUE(strstr(cs_buf_text(&out), "seccomp"));
	profile_done(&p);
	cs_buf_done(&out);
	profile_write_keys_roff(&out);
	T_TRUE(strstr(cs_buf_text(&out), ".B limits.memory\n"));
	T_TRUE(!strstr(cs_buf_text(&out), "\n'"));
}

TEST(protections_are_found_by_their_names)
{
	for (int i = 0; i < PROT_MAX; i++)
		T_INT(protection_by_name(protection_name((enum protection)i)), i);
	T_INT(protection_by_name("nothing"), -1);
	T_INT(protection_by_name(""), -1);
}
