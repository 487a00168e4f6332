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
		{ "allow: [x.org]\n", "p.yaml:1:1: unknown key 'allow' (did you mean 'allow' under 'commit' or 'network'?)" },
		{ "network: {alow: []}\n", "p.yaml:1:11: unknown key 'alow' in network (did you mean 'allow'?)" },
		{ "network: {budget: {}}\n", "p.yaml:1:11: unknown key 'budget' in network (did you mean 'budgets'?)" },
		{ "network: {budgets: {bytes: 1}}\n", "p.yaml:1:21: unknown key 'bytes' in network.budgets" },
		{ "network: {budgets: {per_host: {byte_in: 1}}}\n",
		  "p.yaml:1:32: unknown key 'byte_in' in network.budgets.per_host (did you mean 'bytes_in'?)" },
		{ "network: {budgets.bytes_in: 1}\n", "p.yaml:1:11: unknown key 'budgets.bytes_in' in network" },
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
		{ "network:\n", "p.yaml:1:9: network: wants the word none or a mapping of keys, but this is null" },
		{ "network: [a]\n", "p.yaml:1:10: network: wants the word none or a mapping of keys, but this is a list" },
		{ "network: {allow: x.org}\n", "p.yaml:1:18: network.allow: wants a list of rules, but this is a single value" },
		{ "network: {budgets: 3}\n", "p.yaml:1:20: network.budgets: wants a mapping of keys, but this is a single value" },
		{ "network: {hosts: [a]}\n",
		  "p.yaml:1:18: network.hosts: wants a mapping of names to ADDRESS or ADDRESS:PORT, but this is a list" },
		{ "network: {hosts: {a.org: [\"::1\"]}}\n",
		  "p.yaml:1:26: network.hosts: every value must be a single value; one that begins with '[' needs quotes" },
		{ "network: {secrets: {}}\n", "p.yaml:1:20: network.secrets: wants a list of mappings, but this is a mapping" },
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
		{ "network: host\n", "p.yaml:1:10: network: 'host' is not 'none'; to allow something, write keys below it: network: "
				     "{allow: [NAME]}" },
		{ "network: {ech: maybe}\n", "p.yaml:1:16: network.ech: 'maybe' is not one of: allow, deny" },
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
	for (int i = 0; i < 9000; i++)
		cs_buf_fmt(&b, "    - f%d\n", i);
	T_INT(load(cs_buf_text(&b), &p, &err), -CS_E_LIMIT);
	T_STR(err.msg, "p.yaml:8190:7: more than 8192 items");

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
		{ "tools", "x", "--flag: tools: 'x' cannot be set by a flag: write it into the profile" },
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

/* ---- network ---- */

static const char network_text[] = "extends: none\n"
				   "network:\n"
				   "  allow: [API.Example.com., \"*.example.org:8000-8010\", \"10.0.0.0/8:5432\", \"x.org GET,HEAD /repos/**\"]\n"
				   "  deny: [evil.example.org]\n"
				   "  hosts: {DB.internal: 10.1.2.3:5432, six.internal: \"[fd00::1]\"}\n"
				   "  publish: [8080:80, \"0.0.0.0:9090:90\", \"[::1]:8443:443\"]\n"
				   "  ech: deny\n"
				   "  budgets:\n"
				   "    bytes_out: 10M\n"
				   "    requests: 1000\n"
				   "    per_host: {bytes_in: 1G, connections: 5}\n"
				   "  secrets:\n"
				   "    - {name: GH, from: env, hosts: [api.example.com], inject: {header: X-Key, format: \"k={}\"}}\n"
				   "    - name: CI\n"
				   "      from: \"command: pass show 'a: b' | head -n1 # x\"\n"
				   "      hosts: [x.org:443, API.example.com]\n";

TEST(a_network_section_is_read_into_its_canonical_form)
{
	const struct profile_network *n;
	struct profile p;

	must_load(network_text, &p);
	n = &p.network;
	T_TRUE(profile_has_network(&p));
	T_INT(n->allow.n, 4);
	T_STR(n->allow.v[0], "api.example.com");
	T_STR(n->allow.v[1], "*.example.org:8000-8010");
	T_STR(n->allow.v[2], "10.0.0.0/8:5432");
	T_STR(n->allow.v[3], "x.org GET,HEAD /repos/**");
	T_STR(n->deny.v[0], "evil.example.org");
	T_STR(n->hosts.v[0], "db.internal=10.1.2.3:5432");
	T_STR(n->hosts.v[1], "six.internal=[fd00::1]");
	T_STR(n->publish.v[0], "127.0.0.1:8080:80");
	T_STR(n->publish.v[1], "0.0.0.0:9090:90");
	T_STR(n->publish.v[2], "[::1]:8443:443");
	T_TRUE(n->ech_deny);
	T_INT(n->budget.bytes_out, 10 << 20);
	T_INT(n->budget.bytes_in + n->budget.connections, 0);
	T_INT(n->budget.requests, 1000);
	T_INT(n->per_host.bytes_in, 1 << 30);
	T_INT(n->per_host.connections, 5);
	T_INT(n->n_secrets, 2);
	T_STR(n->secrets[0].from, "env:GH");
	T_STR(n->secrets[0].header, "X-Key");
	T_STR(n->secrets[0].format, "k={}");
	T_STR(n->secrets[1].from, "command: pass show 'a: b' | head -n1 # x");
	T_STR(n->secrets[1].header, "Authorization");
	T_STR(n->secrets[1].format, "Bearer {}");
	T_INT(n->secrets[1].hosts.n, 2);
	T_STR(n->secrets[1].hosts.v[0], "x.org");
	profile_done(&p);
	T_TRUE(!p.network.secrets && !p.network.allow.v);
}

TEST(a_network_section_reads_back_as_the_same)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20), again CS_BUF_AUTO = CS_BUF(1 << 20), none CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p, q;

	round_trip(network_text);
	round_trip("network: {deny: [a.org]}\n");
	round_trip("network: {budgets: {per_host: {requests: 1}}}\n");
	must_load(network_text, &p);
	T_INT(profile_network_text(&p, &text), 0);
	must_load(cs_buf_text(&text), &q);
	T_INT(q.files_read.n + q.env_pass.n, 0);
	T_INT(profile_network_text(&q, &again), 0);
	T_STR(cs_buf_text(&text), cs_buf_text(&again));
	T_INT(q.network.n_secrets, 2);
	T_STR(q.network.secrets[1].from, p.network.secrets[1].from);
	T_TRUE(!memcmp(&p.network.budget, &q.network.budget, sizeof p.network.budget));
	T_TRUE(!memcmp(&p.network.per_host, &q.network.per_host, sizeof p.network.per_host));
	profile_done(&p);
	profile_done(&q);
	T_INT(profile_load("coding", &p, NULL), 0);
	T_TRUE(!profile_has_network(&p));
	T_INT(profile_set(&p, "locked", "true", "--flag", NULL), 0);
	T_INT(profile_network_text(&p, &none), 0);
	T_STR(cs_buf_text(&none), "extends: none\nlocked: true\nnetwork: none\n");
	profile_done(&p);
}

TEST(a_network_too_large_to_be_handed_on_is_said_so)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	char path[401], rule[512];
	struct profile p;

	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = 0;
	must_load("extends: none\n", &p);
	for (int i = 0; i < 1000; i++) {
		snprintf(rule, sizeof rule, "h%d.example.com GET /%s", i, path);
		T_INT(profile_set(&p, "network.allow", rule, "--allow", NULL), 0);
	}
	T_INT(profile_network_text(&p, &out), -CS_E_LIMIT);
	profile_done(&p);
}

TEST(bad_rules_hosts_and_ports_are_refused_with_their_place)
{
	static const struct row rows[] = {
		{ "network: {publish: [80]}\n", "p.yaml:1:21: network.publish: '80' has one port: wants [ADDRESS:]PORT:PORT, the host's port "
						"and then the one inside" },
		{ "network: {publish: [\"0:80\"]}\n", "p.yaml:1:21: network.publish: '0:80' is not [ADDRESS:]PORT:PORT, the host's port and "
						      "then the one inside, each 1 to 65535" },
		{ "network: {publish: [\"80:65536\"]}\n", "p.yaml:1:21: network.publish: '80:65536' is not [ADDRESS:]PORT:PORT, the host's "
							  "port and then the one inside, each 1 to 65535" },
		{ "network: {publish: [\"localhost:80:80\"]}\n",
		  "p.yaml:1:21: network.publish: 'localhost:80:80' does not begin with an address of this host, such as 127.0.0.1, 0.0.0.0 or "
		  "[::1]" },
		{ "network: {publish: [\"::1:80:80\"]}\n", "p.yaml:1:21: network.publish: '::1:80:80' does not begin with an address of this "
							   "host, such as 127.0.0.1, 0.0.0.0 or [::1]" },
		{ "network: {publish: [\":80:80\"]}\n", "p.yaml:1:21: network.publish: ':80:80' does not begin with an address of this "
							"host, such as 127.0.0.1, 0.0.0.0 or [::1]" },
		{ "network: {publish: [\"8080:80\", \"127.0.0.1:8080:81\"]}\n",
		  "p.yaml:1:32: network.publish: '127.0.0.1:8080:81' takes a port of the host that '127.0.0.1:8080:80' has already" },
		{ "network: {hosts: {\"a=b\": 1.2.3.4}}\n", "p.yaml:1:26: network.hosts: 'a=b' is not a host's name" },
		{ "network: {hosts: {a.org: }}\n", "p.yaml:1:26: network.hosts: 'a.org' is not inherited, so it cannot be removed" },
		{ "network: {allow: [\"!a.org\"]}\n", "p.yaml:1:19: network.allow: 'a.org' is not inherited, so it cannot be removed" },
		{ "network: {budgets: {requests: 0}}\n",
		  "p.yaml:1:31: network.budgets.requests: '0' is out of range: at least 1, or 'unlimited'" },
		{ "network: {budgets: {per_host: {bytes_in: lots}}}\n",
		  "p.yaml:1:42: network.budgets.per_host.bytes_in: 'lots' is not a size (such as 64M or 2GiB, or unlimited)" },
	};
	static const char *const rules[] = { "", " ", "http://a.org/", "a.org:", "a.org:0", "a.org:70000", "a..org", "0x7f.1", "2130706433",
					     "10.0.0.1/8", "a.org/udp", "*.*", "a*.org", "a.org GET", "a.org:99 GET /", "\xc3\xa4.org", "a.org:22/tcp" };
	struct cs_err err = { 0 };
	struct profile p;

	REFUSE_ROWS(rows);
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		char text[128];

		snprintf(text, sizeof text, "name: x\nnetwork:\n  deny:\n    - \"%s\"\n", rules[i]);
		T_INT(load(text, &p, &err), -CS_E_INVALID);
		if (strncmp(err.msg, "p.yaml:4:7: network.deny: ", 26) != 0)
			T_FAIL("%s", err.msg);
	}
	T_INT(load("network: {hosts: {a.org: b.org}}\n", &p, &err), -CS_E_INVALID);
	T_TRUE(!strncmp(err.msg, "p.yaml:1:26: network.hosts: ", 28));
	T_INT(load("network: {hosts: {1.2.3.4: 1.2.3.4}}\n", &p, &err), -CS_E_INVALID);
}

#define SECRET(item) "network:\n  allow: [a.org, b.org:8443/tls, c.org:80, d.org:9000]\n  secrets:\n    - " item "\n"
#define AT_ITEM      "p.yaml:4:7: network.secrets: "

TEST(bad_secrets_are_refused_with_the_fix)
{
	static const struct row rows[] = {
		{ SECRET("GH"), AT_ITEM "every item is a mapping: {name: GH, from: env, hosts: [api.example.com]}" },
		{ SECRET("[GH]"), AT_ITEM "every item is a mapping: {name: GH, from: env, hosts: [api.example.com]}" },
		{ SECRET("{}"), AT_ITEM "name is missing, such as name: GITHUB_TOKEN" },
		{ SECRET("{name: GH, from: env}"), AT_ITEM "hosts is missing, such as hosts: [api.example.com]" },
		{ SECRET("{name: GH, hosts: [a.org]}"), AT_ITEM "from is missing, such as from: env" },
		{ SECRET("{name: GH, from: env, hosts: []}"),
		  "p.yaml:4:36: network.secrets: hosts wants a list of names: hosts: [api.example.com]" },
		{ SECRET("{nam: GH}"), "p.yaml:4:8: unknown key 'nam' in network.secrets (did you mean 'name'?)" },
		{ SECRET("{name: GH, name: X}"), "p.yaml:4:18: duplicate key 'name', first in line 4" },
		{ SECRET("{? [a] : b}"), "p.yaml:4:10: a key must be a single word" },
		{ SECRET("{name: [GH]}"), "p.yaml:4:14: network.secrets: name wants a single value" },
		{ SECRET("{name: G-H}"), "p.yaml:4:14: network.secrets: name 'G-H' is not a variable's name: inside, that variable holds "
					 "the placeholder" },
		{ SECRET("{name: GH, from: token}"),
		  "p.yaml:4:24: network.secrets: from 'token' is not one of: env, env:VARIABLE, file:/path, command:LINE" },
		{ SECRET("{name: GH, from: file}"),
		  "p.yaml:4:24: network.secrets: from 'file' is not one of: env, env:VARIABLE, file:/path, command:LINE" },
		{ SECRET("{name: GH, from: \"env:A B\"}"), "p.yaml:4:24: network.secrets: from 'env:A B' does not name a variable: env:VARIABLE" },
		{ SECRET("{name: GH, from: \"file:x\"}"),
		  "p.yaml:4:24: network.secrets: from 'file:x' is not an absolute path: file:/path or file:~/path" },
		{ SECRET("{name: GH, from: \"file:/a/../b\"}"), "p.yaml:4:24: network.secrets: from 'file:/a/../b' has a '..' in it" },
		{ SECRET("{name: GH, from: \"file:~/\"}"), "p.yaml:4:24: network.secrets: from 'file:~/' names no file" },
		{ SECRET("{name: GH, from: \"command: \"}"),
		  "p.yaml:4:24: network.secrets: from 'command: ' names no command: command:LINE, which a shell runs" },
		{ SECRET("{name: GH, from: \"command:a\\nb\"}"),
		  "p.yaml:4:24: network.secrets: from 'command:a\\nb' holds a newline or another control byte" },
		{ SECRET("{name: GH, from: env, hosts: [\"*\"]}"),
		  "p.yaml:4:37: network.secrets: host '*' is a pattern: a secret goes to hosts that are named one by one" },
		{ SECRET("{name: GH, from: env, hosts: [\"*.a.org\"]}"),
		  "p.yaml:4:37: network.secrets: host '*.a.org' is a pattern: a secret goes to hosts that are named one by one" },
		{ SECRET("{name: GH, from: env, hosts: [10.0.0.0/8]}"), "p.yaml:4:37: network.secrets: host '10.0.0.0/8' is not NAME or "
									"NAME:PORT: a secret goes to a name, with no protocol, path "
									"or range" },
		{ SECRET("{name: GH, from: env, hosts: [10.0.0.1]}"), "p.yaml:4:37: network.secrets: host '10.0.0.1' is not NAME or NAME:PORT; "
								      "an address cannot be verified by TLS, a name can" },
		{ SECRET("{name: GH, from: env, hosts: [\"a.org:0\"]}"),
		  "p.yaml:4:37: network.secrets: host 'a.org:0' has no port that is a number from 1 to 65535" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: x}"),
		  "p.yaml:4:53: network.secrets: inject wants {header: NAME, format: TEXT}" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: X}}"),
		  "p.yaml:4:53: network.secrets: format is missing, such as format: \"Bearer {}\"" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: \"a b\"}}"),
		  "p.yaml:4:62: network.secrets: header 'a b' is not a header's name, such as Authorization" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: hOst}}"),
		  "p.yaml:4:62: network.secrets: header 'hOst' steers the connection and cannot hold a secret; use Authorization or another" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: X, format: x}}"),
		  "p.yaml:4:73: network.secrets: format 'x' must have {} once, where the secret goes, such as \"Bearer {}\"" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: X, format: \"{}{}\"}}"),
		  "p.yaml:4:73: network.secrets: format '{}{}' must have {} once, where the secret goes, such as \"Bearer {}\"" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: X, format: \"{}\\r\"}}"),
		  "p.yaml:4:73: network.secrets: format '{}\\x0d' holds a byte that is not printable ASCII" },
		{ SECRET("{name: GH, from: env, hosts: [a.org], inject: {header: X, format: \"{} \"}}"),
		  "p.yaml:4:73: network.secrets: format '{} ' begins or ends with a space, which HTTP does not carry" },
		{ SECRET("{name: GH, from: env, hosts: [a.org]}\n    - {name: GH, from: env, hosts: [a.org]}"),
		  "p.yaml:5:7: network.secrets: a second secret 'GH', the first is in line 4" },
		{ SECRET("{name: GH, from: env, hosts: [a.org]}\n    - \"!GH\""),
		  "p.yaml:5:7: network.secrets: 'GH' is not inherited, so it cannot be removed" },
	};

	REFUSE_ROWS(rows);
}

TEST(a_secret_without_a_rule_for_its_host_names_the_rule)
{
	static const struct row rows[] = {
		{ SECRET("{name: GH, from: env, hosts: [x.org]}"),
		  AT_ITEM "'GH' is for x.org, which no rule allows; add 'x.org' to network.allow" },
		{ SECRET("{name: GH, from: env, hosts: [a.org, \"a.org:444\"]}"),
		  AT_ITEM "'GH' is for a.org:444, which no rule allows; add 'a.org:444/tls' to network.allow" },
		{ SECRET("{name: GH, from: env, hosts: [\"c.org:80\"]}"),
		  AT_ITEM "'GH' is for c.org:80, where the rule 'c.org:80' has plain HTTP and everybody could read it; a rule with TLS is "
			  "'c.org:80/tls'" },
		{ "network:\n  allow: [a.org]\n  deny: [\"*.org\"]\n  secrets:\n    - {name: GH, from: env, hosts: [a.org]}\n",
		  "p.yaml:5:7: network.secrets: 'GH' is for a.org, which the rule '*.org' denies" },
	};
	const char *dir = t_tmpdir();
	struct cs_err err = { 0 };
	struct profile p;

	REFUSE_ROWS(rows);
	must_load(SECRET("{name: GH, from: env, hosts: [a.org, \"b.org:8443\", \"d.org:9000\"]}"), &p);
	profile_done(&p);
	/* What an extending file takes away is that file's mistake. */
	put_file(dir, "base.yaml", SECRET("{name: GH, from: env, hosts: [a.org]}"));
	put_file(dir, "top.yaml", "extends: base.yaml\nnetwork:\n  allow: [\"!a.org\"]\n");
	T_INT(load_in(dir, "top.yaml", &p, &err), -CS_E_INVALID);
	T_STR(after_dir(&err, dir), "top.yaml:3:3: network.secrets: 'GH' is for a.org, which no rule allows; add 'a.org' to network.allow");
}

TEST(a_secret_cannot_come_in_through_the_environment)
{
	static const struct row rows[] = {
		{ "env: {pass: [GH]}\n" SECRET("{name: GH, from: env, hosts: [a.org]}"),
		  "p.yaml:5:7: env.pass: 'GH' would put variable GH inside, which holds the secret 'GH'; take it out of env.pass: inside, GH "
		  "holds a placeholder" },
		{ "env: {pass: [\"GITHUB_*\"]}\n" SECRET("{name: GH, from: \"env:GITHUB_TOKEN\", hosts: [a.org]}"),
		  "p.yaml:5:7: env.pass: 'GITHUB_*' would put variable GITHUB_TOKEN inside, which holds the secret 'GH'; take it out of "
		  "env.pass: inside, GH holds a placeholder" },
		{ "env: {set: {GH: x}}\n" SECRET("{name: GH, from: \"file:/x\", hosts: [a.org]}"),
		  "p.yaml:5:7: env.set: 'GH' covers GH, the variable that holds the placeholder of that secret; take it out of env.set" },
		{ "env: {pass: [\"*\"]}\n" SECRET("{name: GH, from: \"command:x\", hosts: [a.org]}"),
		  "p.yaml:5:7: env.pass: '*' covers GH, the variable that holds the placeholder of that secret; take it out of env.pass" },
	};
	static const struct set_row flags[] = {
		{ "env.pass", "G*", "--flag: env.pass: 'G*' covers GH, the variable that holds the placeholder of that secret; take it out of "
				    "env.pass" },
		{ "env.pass", "TOKEN", "--flag: env.pass: 'TOKEN' would put variable TOKEN inside, which holds the secret 'GH'; take it out of "
				       "env.pass: inside, GH holds a placeholder" },
		{ "env.set", "GH=1", "--flag: env.set: 'GH' covers GH, the variable that holds the placeholder of that secret; take it out of "
				     "env.set" },
		{ "network.secrets", "TERM=env:X@a.org", "--flag: env.pass: 'TERM' covers TERM, the variable that holds the placeholder of "
							 "that secret; take it out of env.pass" },
	};
	struct profile p;
	size_t n;

	REFUSE_ROWS(rows);
	must_load(SECRET("{name: GH, from: \"env:TOKEN\", hosts: [a.org]}"), &p);
	n = p.env_pass.n;
	SET_ROWS(&p, flags, CS_E_INVALID);
	T_INT(p.env_pass.n, n);
	T_INT(p.env_set.n, 0);
	T_INT(p.network.n_secrets, 1);
	profile_done(&p);
}

TEST(network_flags_follow_the_rules_of_files)
{
	static const struct set_row rows[] = {
		{ "network.secrets", "GH=env@a.org,b.org:8443", NULL },
		{ "network.secrets", "K=command:ssh u@h cat k@a.org", NULL },
		{ "network.secrets", "F=file:~/k@a.org", NULL },
		{ "network.allow", "a.org", NULL },
		{ "network.allow", "A.org.", NULL },
		{ "network.allow", "b.org:8443/tls", NULL },
		{ "network.deny", "*.a.org", NULL },
		{ "network.hosts", "a.org=192.0.2.1", NULL },
		{ "network.hosts", "A.ORG=192.0.2.2:99", NULL },
		{ "network.publish", "8080:80", NULL },
		{ "network.ech", "deny", NULL },
		{ "network.budgets.bytes_out", "1M", NULL },
		{ "network.budgets.per_host.requests", "7", NULL },
	};
	static const struct set_row bad[] = {
		{ "network.secrets", "GH", "--flag: network.secrets: secret 'GH' is not NAME=FROM@HOST[,HOST], such as GH=env@api.example.com" },
		{ "network.secrets", "G=env", "--flag: network.secrets: secret 'G=env' is not NAME=FROM@HOST[,HOST], such as "
					      "GH=env@api.example.com" },
		{ "network.secrets", "G=env@", "--flag: network.secrets: host '' is not NAME or NAME:PORT; an address cannot be verified by TLS, "
					       "a name can" },
		{ "network.secrets", "G=@a.org", "--flag: network.secrets: from '' is not one of: env, env:VARIABLE, file:/path, command:LINE" },
		{ "network.secrets", "G=file:/\xff@a.org", "--flag: network.secrets: from 'file:/\\xff' is not UTF-8" },
		{ "network.secrets", "!XYZ", "--flag: network.secrets: 'XYZ' is not inherited, so it cannot be removed" },
		{ "network.hosts", "a.org", "--flag: network.hosts: wants NAME=ADDRESS[:PORT]" },
		{ "network.budgets.bytes", "1", "--flag: unknown key 'network.budgets.bytes' (did you mean 'network.budgets.bytes_in'?)" },
	};
	struct cs_err err = { 0 };
	struct profile p;

	setenv("HOME", "/home/ada", 1);
	must_load("extends: none\n", &p);
	SET_ROWS(&p, rows, CS_E_INVALID);
	SET_ROWS(&p, bad, CS_E_INVALID);
	T_INT(profile_check(&p, "flags", &err), 0);
	T_INT(p.network.allow.n, 2);
	T_INT(p.network.hosts.n, 1);
	T_STR(p.network.hosts.v[0], "a.org=192.0.2.2:99");
	T_INT(p.network.n_secrets, 3);
	T_STR(p.network.secrets[0].from, "env:GH");
	T_STR(p.network.secrets[0].hosts.v[1], "b.org:8443");
	T_STR(p.network.secrets[1].from, "command:ssh u@h cat k");
	T_STR(p.network.secrets[2].from, "file:/home/ada/k");
	T_INT(profile_set(&p, "network.secrets", "GH=env:T@a.org", "--secret", NULL), 0);
	T_INT(p.network.n_secrets, 3);
	T_STR(p.network.secrets[0].from, "env:T");
	T_INT(profile_set(&p, "network.secrets", "!K", "--secret", NULL), 0);
	T_INT(p.network.n_secrets, 2);
	T_INT(profile_set(&p, "network.allow", "!a.org", "--allow", NULL), 0);
	T_INT(profile_check(&p, "flags", &err), -CS_E_INVALID);
	T_STR(err.msg, "flags: network.secrets: 'GH' is for a.org, which no rule allows; add 'a.org' to network.allow");
	T_INT(profile_set(&p, "network.hosts", "!a.org", "--host", NULL), 0);
	T_INT(p.network.hosts.n, 0);
	T_INT(profile_set(&p, "network", "none", "--network", NULL), 0);
	T_TRUE(!profile_has_network(&p) && p.network.n_secrets == 0 && !p.network.ech_deny && !p.network.budget.bytes_out);
	profile_done(&p);
}

static const char locked_network[] = "extends: none\nlocked: true\nnetwork:\n"
				     "  allow: [a.org, b.org]\n  deny: [c.a.org]\n  hosts: {a.org: 192.0.2.1}\n  publish: [8080:80]\n  ech: deny\n"
				     "  budgets: {requests: 10, per_host: {bytes_in: 1M}}\n"
				     "  secrets: [{name: GH, from: env, hosts: [a.org]}]\n";

TEST(a_locked_network_refuses_to_be_widened)
{
	static const struct set_row rows[] = {
		{ "network.allow", "x.org", "--flag: network.allow: the profile is locked at 'a.org b.org'; 'x.org' would widen it" },
		{ "network.deny", "!c.a.org", "--flag: network.deny: the profile is locked at 'c.a.org'; 'c.a.org' would widen it" },
		{ "network.hosts", "x.org=192.0.2.1",
		  "--flag: network.hosts: the profile is locked at 'a.org=192.0.2.1'; 'x.org=192.0.2.1' would widen it" },
		{ "network.hosts", "a.org=192.0.2.9",
		  "--flag: network.hosts: the profile is locked at 'a.org=192.0.2.1'; 'a.org=192.0.2.9' would widen it" },
		{ "network.hosts", "!a.org", "--flag: network.hosts: the profile is locked at 'a.org=192.0.2.1'; 'a.org' would widen it" },
		{ "network.publish", "81:81",
		  "--flag: network.publish: the profile is locked at '127.0.0.1:8080:80'; '127.0.0.1:81:81' would widen it" },
		{ "network.ech", "allow", "--flag: network.ech: the profile is locked at 'deny'; 'allow' would widen it" },
		{ "network.budgets.requests", "11", "--flag: network.budgets.requests: the profile is locked at '10'; '11' would widen it" },
		{ "network.budgets.per_host.bytes_in", "unlimited",
		  "--flag: network.budgets.per_host.bytes_in: the profile is locked at '1MiB'; 'unlimited' would widen it" },
		{ "network.secrets", "X=env@a.org", "--flag: network.secrets: the profile is locked at 'GH'; 'X' would widen it" },
		{ "network.secrets", "GH=env@a.org,b.org", "--flag: network.secrets: the profile is locked at 'GH'; 'GH' would widen it" },
		{ "network.secrets", "GH=env:X@a.org", "--flag: network.secrets: the profile is locked at 'GH'; 'GH' would widen it" },
	};
	static const struct set_row narrower[] = {
		{ "network.allow", "b.org", NULL },           { "network.allow", "!b.org", NULL },
		{ "network.deny", "x.a.org", NULL },          { "network.hosts", "a.org=192.0.2.1", NULL },
		{ "network.publish", "!8080:80", NULL },      { "network.budgets.requests", "9", NULL },
		{ "network.budgets.bytes_out", "1G", NULL },  { "network.secrets", "GH=env@a.org", NULL },
		{ "network.secrets", "!GH", NULL },           { "network", "none", NULL },
	};
	static const struct set_row back[] = {
		{ "network.allow", "a.org", "--flag: network.allow: the profile is locked at ''; 'a.org' would widen it" },
		{ "network.secrets", "GH=env@a.org", "--flag: network.secrets: the profile is locked at ''; 'GH' would widen it" },
	};
	struct cs_buf a CS_BUF_AUTO = CS_BUF(1 << 20), b CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p;

	must_load(locked_network, &p);
	profile_write_yaml(&p, &a);
	SET_ROWS(&p, rows, CS_E_DENIED);
	profile_write_yaml(&p, &b);
	T_STR(cs_buf_text(&b), cs_buf_text(&a));
	SET_ROWS(&p, narrower, CS_E_INVALID);
	T_TRUE(!profile_has_network(&p));
	SET_ROWS(&p, back, CS_E_DENIED);
	profile_done(&p);
}

TEST(who_extends_a_locked_network_is_bound_by_it)
{
	static const char *const wider[] = {
		"network: {allow: [x.org]}\n",
		"network: {hosts: {a.org: null}}\n",
		"network: {budgets: {per_host: {bytes_in: 2M}}}\n",
		"network: {secrets: [{name: GH, from: env, hosts: [b.org]}]}\n",
		"network: {secrets: [{name: N, from: env, hosts: [a.org]}]}\n",
		"network: {ech: allow}\n",
	};
	static const char *const narrower[] = {
		"network: none\n",
		"network: {allow: [\"!b.org\"], deny: [x.org], secrets: [\"!GH\"]}\n",
		"network: {secrets: [{name: GH, from: \"env:GH\", hosts: [A.org]}]}\n",
		"network: {budgets: {per_host: {bytes_in: 1K, requests: 4}}}\n",
	};
	const char *dir = t_tmpdir();
	struct cs_err err = { 0 };
	struct profile p;
	char text[256];

	put_file(dir, "base.yaml", locked_network);
	for (size_t i = 0; i < sizeof wider / sizeof *wider; i++) {
		snprintf(text, sizeof text, "extends: base.yaml\n%s", wider[i]);
		put_file(dir, "top.yaml", text);
		if (load_in(dir, "top.yaml", &p, &err) != -CS_E_DENIED)
			T_FAIL("%s: %s", wider[i], err.msg);
		T_TRUE(!strncmp(after_dir(&err, dir), "top.yaml:2:", 11));
	}
	for (size_t i = 0; i < sizeof narrower / sizeof *narrower; i++) {
		snprintf(text, sizeof text, "extends: base.yaml\n%s", narrower[i]);
		put_file(dir, "top.yaml", text);
		if (load_in(dir, "top.yaml", &p, &err) < 0)
			T_FAIL("%s", err.msg);
		profile_done(&p);
	}
}

TEST(an_extending_profile_replaces_a_secret_of_the_same_name)
{
	const char *dir = t_tmpdir();
	struct cs_err err = { 0 };
	struct profile p;

	put_file(dir, "base.yaml", network_text);
	put_file(dir, "top.yaml", "extends: base.yaml\nnetwork:\n  allow: [\"!*.example.org:8000-8010\", new.org]\n  deny: [\"!evil.example.org\"]\n"
				  "  publish: [\"!8080:80\"]\n  hosts: {db.INTERNAL: null}\n"
				  "  secrets:\n    - {name: GH, from: \"file:/k\", hosts: [new.org]}\n    - \"!CI\"\n");
	if (load_in(dir, "top.yaml", &p, &err) < 0)
		T_FAIL("%s", err.msg);
	T_INT(p.network.allow.n, 4);
	T_STR(p.network.allow.v[3], "new.org");
	T_INT(p.network.deny.n, 0);
	T_INT(p.network.publish.n, 2);
	T_INT(p.network.hosts.n, 1);
	T_INT(p.network.n_secrets, 1);
	T_STR(p.network.secrets[0].from, "file:/k");
	T_STR(p.network.secrets[0].header, "Authorization");
	profile_done(&p);
	put_file(dir, "none.yaml", "extends: base.yaml\nnetwork: none\n");
	T_INT(load_in(dir, "none.yaml", &p, &err), 0);
	T_TRUE(!profile_has_network(&p) && !p.network.n_secrets && !p.network.hosts.n);
	profile_done(&p);
}

TEST(the_numbers_of_rules_ports_hosts_and_secrets_are_bounded)
{
	struct cs_err err = { 0 };
	struct profile p;
	char text[64];

	must_load("extends: none\n", &p);
	for (int i = 0; i <= 1024; i++) {
		snprintf(text, sizeof text, "h%d.org", i);
		T_INT(profile_set(&p, "network.allow", text, "--allow", &err), i < 1024 ? 0 : -CS_E_LIMIT);
		*text = 'd';
		T_INT(profile_set(&p, "network.deny", text, "--deny", NULL), i < 1024 ? 0 : -CS_E_LIMIT);
	}
	T_STR(err.msg, "--allow: network.allow: more than 1024");
	for (int i = 0; i <= 256; i++) {
		snprintf(text, sizeof text, "h%d.org=192.0.2.1", i);
		T_INT(profile_set(&p, "network.hosts", text, "--host", &err), i < 256 ? 0 : -CS_E_LIMIT);
	}
	T_STR(err.msg, "--host: network.hosts: more than 256");
	for (int i = 0; i <= 64; i++) {
		snprintf(text, sizeof text, "%d:80", 1000 + i);
		T_INT(profile_set(&p, "network.publish", text, "--publish", &err), i < 64 ? 0 : -CS_E_LIMIT);
		snprintf(text, sizeof text, "S%d=env@h1.org", i);
		T_INT(profile_set(&p, "network.secrets", text, "--secret", &err), i < 64 ? 0 : -CS_E_LIMIT);
	}
	T_STR(err.msg, "--secret: network.secrets: more than 64");
	T_INT(profile_check(&p, "flags", NULL), 0);
	{
		struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
		struct profile q;

		/* All of it still fits into what is handed on. */
		T_INT(profile_network_text(&p, &out), 0);
		must_load(cs_buf_text(&out), &q);
		T_INT(q.network.n_secrets, 64);
		profile_done(&q);
	}
	T_INT(profile_set(&p, "network.secrets",
			  "S0=env@h0.org,h1.org,h2.org,h3.org,h4.org,h5.org,h6.org,h7.org,h8.org,h9.org,h10.org,h11.org,h12.org,h13.org,"
			  "h14.org,h15.org,h16.org",
			  "--secret", &err),
	      -CS_E_LIMIT);
	T_STR(err.msg, "--secret: network.secrets: more than 16 hosts of one secret");
	profile_done(&p);
}

TEST(a_network_is_explained_and_written_as_json)
{
	static const char *const said[] = {
		"may connect to  api.example.com on ports 443 and 80,", "*.example.org on ports 8000 to 8010", "10.0.0.0/8 on port 5432",
		"x.org on ports 443 and 80 for GET,HEAD /repos/**", "but never to    evil.example.org on every port",
		"127.0.0.1:8080 (port 80 inside)", "GH is a placeholder;", "env:GH is added outside as header", "per_host.bytes_in 1GiB",
	};
	static const char *const words[] = { "\"allow\": [", "\"per_host\": {", "\"bytes_out\": 10485760", "\"db.internal\": \"10.1.2.3:5432\"",
					     "\"inject\": {" };
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20), json CS_BUF_AUTO = CS_BUF(1 << 20), schema CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p;

	must_load(network_text, &p);
	profile_explain(&p, &out);
	profile_write_json(&p, &json);
	profile_write_schema(&schema);
	profile_done(&p);
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		if (!strstr(cs_buf_text(&out), said[i]))
			T_FAIL("'%s' is not in: %s", said[i], cs_buf_text(&out));
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strstr(cs_buf_text(&json), words[i]))
			T_FAIL("%s is not in: %s", words[i], cs_buf_text(&json));
	T_TRUE(strstr(cs_buf_text(&schema), "\"per_host\"") && strstr(cs_buf_text(&schema), "\"inject\""));
}

/* ---- shell ---- */

TEST(rows_of_commands_are_read_or_refused_with_their_place)
{
	static const struct row rows[] = {
		{ "shell:\n  commands: [x]\n", "p.yaml:2:13: shell.commands: wants a mapping of commands to rows, but this is a list" },
		{ "shell:\n  commands:\n    deploy: --x | raed\n",
		  "p.yaml:3:13: shell.commands: deploy: 'raed' is not a role; write read, write, delete, inert, ... (see the README)" },
		{ "shell:\n  commands:\n    a: -x\n    b,a: -y\n", "p.yaml:4:10: shell.commands: b,a: 'a' has a row already; keep one" },
		{ "shell:\n  commands:\n    a: -x\n    a: -y\n", "p.yaml:4:5: duplicate key 'a', first in line 3" },
		{ "shell:\n  commands:\n    \"a: b\": -x\n", "p.yaml:3:5: shell.commands: 'a: b' is not a command's name (as in: deploy, 'git "
							 "frob', 'pip,pip3 sync')" },
		{ "shell:\n  commands:\n    \"%set\": -x\n",
		  "p.yaml:3:5: shell.commands: '%set' would be a set of options; write them out in each row" },
		{ "shell:\n  commands:\n    a: {x: y}\n", "p.yaml:3:8: shell.commands: wants a row, or a list of rows, but this is a mapping" },
		{ "shell:\n  commands:\n    a: []\n", "p.yaml:3:8: shell.commands: an empty list; null takes inherited rows away" },
		{ "shell:\n  commands:\n    a: [-x, null]\n", "p.yaml:3:13: shell.commands: every item must be a row; the first may be null" },
		{ "shell:\n  commands:\n    a: null\n", "p.yaml:3:8: shell.commands: 'a' is not inherited, so it cannot be removed" },
		{ "shell:\n  commands:\n    a: \"-x \\x01\"\n", "p.yaml:3:8: shell.commands: '-x \\x01' holds a control byte" },
		{ "shell: {unsafe: allow}\n", "p.yaml:1:17: shell.unsafe: 'allow' is not one of: refuse, ask" },
		{ "shell: {uncertain: comit}\n", "p.yaml:1:20: shell.uncertain: 'comit' is not one of: commit, ask, refuse (did you mean 'commit'?)" },
		{ "shell: {unexpected: never}\n", "p.yaml:1:21: shell.unexpected: 'never' is not one of: ask, commit, rollback" },
	};
	struct profile p;

	REFUSE_ROWS(rows);
	must_load("shell:\n  commands:\n    deploy: gnu --env=inert\n      | read...\n    git frob: |\n      -x\n      | write\n", &p);
	T_INT(p.shell.n_rows, 2);
	T_STR(p.shell.rows[0].row, "gnu --env=inert | read...");
	T_STR(p.shell.rows[1].row, "-x | write");
	T_TRUE(p.shell.unsafe == PROFILE_UNSAFE_REFUSE && p.shell.uncertain == PROFILE_UNCERTAIN_COMMIT && p.shell.unexpected == PROFILE_UNEXPECTED_ASK);
	profile_done(&p);
}

TEST(many_rows_are_refused_and_not_lost)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_err err = { 0 };
	struct profile p;

	cs_buf_str(&text, "shell:\n  commands:\n");
	for (int i = 0; i < 256; i++)
		cs_buf_fmt(&text, "    c%d: -x\n", i);
	must_load(cs_buf_text(&text), &p);
	T_INT(p.shell.n_rows, 256);
	profile_done(&p);
	cs_buf_str(&text, "    more: -x\n");
	T_TRUE(load(cs_buf_text(&text), &p, &err) < 0);
	T_STR(err.msg, "p.yaml:259:11: shell.commands: more than 256 rows");
}

TEST(rows_are_inherited_replaced_and_taken_away)
{
	const char *dir = t_tmpdir();
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20), again CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_err err = { 0 };
	struct profile p, copy;

	put_file(dir, "base.yaml", "extends: none\nshell: {commands: {a: -a, b: -b, c: [-c, -n]}}\n");
	put_file(dir, "top.yaml", "extends: base.yaml\nshell: {commands: {a: -z, b: null, d: -d}}\n");
	T_INT(load_in(dir, "top.yaml", &p, &err), 0);
	profile_write_yaml(&p, &out);
	T_TRUE(strstr(cs_buf_text(&out), "  commands:\n    \"c\": [\"-c\", \"-n\"]\n    \"a\": \"-z\"\n    \"d\": \"-d\"\n"));
	/* A copy is the same, and its own. */
	profile_copy(&p, &copy);
	profile_done(&p);
	profile_write_yaml(&copy, &again);
	T_STR(cs_buf_text(&again), cs_buf_text(&out));
	profile_done(&copy);
}

TEST(a_profile_that_is_not_trusted_only_adds_rows)
{
	const char *dir = t_tmpdir();
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_err err = { 0 };
	struct profile p;
	char path[512];

	put_file(dir, "base.yaml", "extends: none\nshell: {commands: {a: -a}}\n");
	put_file(dir, "top.yaml", "extends: base.yaml\nshell: {commands: {a: -z, d: -d}}\n");
	snprintf(path, sizeof path, "%s/top.yaml", dir);
	T_INT(chmod(path, 0666), 0);
	T_INT(load_in(dir, "top.yaml", &p, &err), 0);
	profile_write_yaml(&p, &out);
	T_TRUE(strstr(cs_buf_text(&out), "  commands:\n    \"a\": [\"-a\", \"-z\"]\n    \"d\": [null, \"-d\"]\n"));
	profile_explain(&p, &out);
	T_TRUE(strstr(cs_buf_text(&out), "others may write it"));
	profile_done(&p);
	put_file(dir, "top.yaml", "extends: base.yaml\nshell: {commands: {a: null}}\n");
	T_TRUE(load_in(dir, "top.yaml", &p, &err) < 0);
	T_STR(after_dir(&err, dir), "top.yaml:2:23: shell.commands: only a trusted profile takes the row of 'a' away, and this one is not: others "
				    "may write it (chmod go-w)");
}

TEST(a_locked_profile_binds_what_sh_does)
{
	static const struct set_row narrow[] = {
		{ "shell.uncertain", "ask", NULL }, { "shell.uncertain", "refuse", NULL }, { "shell.unexpected", "rollback", NULL },
		{ "shell.unsafe", "refuse", NULL }, { "shell.commands", "x=-a | read", NULL },
	};
	static const struct set_row wide[] = {
		{ "shell.unsafe", "ask", "--flag: shell.unsafe: the profile is locked at 'refuse'; 'ask' would widen it" },
		{ "shell.uncertain", "commit", "--flag: shell.uncertain: the profile is locked at 'refuse'; 'commit' would widen it" },
		{ "shell.unexpected", "ask", "--flag: shell.unexpected: the profile is locked at 'rollback'; 'ask' would widen it" },
		{ "shell.commands", "!y", "--flag: shell.commands: the profile is locked; to take the row of 'y' away would widen it" },
	};
	struct profile p;

	must_load("extends: none\nlocked: true\nshell: {commands: {y: -x}}\n", &p);
	SET_ROWS(&p, narrow, CS_E_INVALID);
	T_TRUE(p.shell.rows[1].careful); /* taken, and only to narrow */
	SET_ROWS(&p, wide, CS_E_DENIED);
	profile_done(&p);
}

TEST(a_profile_with_rows_reads_back_as_the_same)
{
	round_trip("shell:\n  unsafe: ask\n  uncertain: refuse\n  unexpected: commit\n  commands: {a: -x, 'git b': [null, '-y \"why\"'], 'c,d': [-z, -w]}\n");
}
