/* SPDX-License-Identifier: Apache-2.0 */
/* The library call behind `caisson sh`: what it takes, which way it goes, and what it says of it. */
#include "harness/t.h"

#include "act/act.h"
#include "base/buf.h"

#include <fcntl.h>
#include <sys/stat.h>

static char ws[512], elsewhere[512];

static void put(const char *dir, const char *name, const char *text)
{
	char path[1200];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "we");
	T_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void link_to(const char *target, const char *name)
{
	char path[1200];

	snprintf(path, sizeof path, "%s/%s", ws, name);
	T_INT(symlink(target, path), 0);
}

static const char *text_of(const char *name)
{
	static char text[256];
	char path[1200];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", ws, name);
	f = fopen(path, "re");
	if (!f)
		return "(not there)";
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	return text;
}

/* A workspace with a file, a directory beside it, and a state directory of our own. */
static void scene(void)
{
	const char *top = t_tmpdir();
	char state[600];

	snprintf(ws, sizeof ws, "%s/ws", top);
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", top);
	snprintf(state, sizeof state, "%s/state", top);
	T_TRUE(mkdir(ws, 0755) == 0 && mkdir(elsewhere, 0755) == 0 && mkdir(state, 0700) == 0);
	T_INT(setenv("CAISSON_STATE", state, 1), 0);
	T_INT(chdir(ws), 0);
	put(ws, "a", "one\n");
}

static void load(const char *text, struct profile *p)
{
	struct cs_err err = { 0 };

	if (profile_load_text(text, strlen(text), "p.yaml", p, &err) < 0)
		T_FAIL("%s", err.msg);
}

static void load_file(const char *dir, const char *text, struct profile *p)
{
	struct cs_err err = { 0 };
	char path[1200];

	put(dir, "p.yaml", text);
	snprintf(path, sizeof path, "%s/p.yaml", dir);
	if (profile_load(path, p, &err) < 0)
		T_FAIL("%s", err.msg);
}

/* ---- the call ---- */

struct answers {
	enum act_answer run, commit;
	unsigned asked, judged;
};

static enum act_answer on_ask(enum act_question q, const struct act_result *so_far, struct cs_strv *allow, void *arg)
{
	struct answers *a = arg;

	a->asked++;
	T_TRUE(q == ACT_MAY_RUN ? !so_far->run && !allow : so_far->run && so_far->txn && so_far->changes.n && allow);
	return q == ACT_MAY_RUN ? a->run : a->commit;
}

static void on_judged(const struct act_result *so_far, void *arg)
{
	struct answers *a = arg;

	T_TRUE(!so_far->run);
	a->judged++;
}

static void run(const char *text, const char *profile, struct answers *a, struct act_result *ret)
{
	struct cs_buf before CS_BUF_AUTO = CS_BUF(1 << 20), after CS_BUF_AUTO = CS_BUF(1 << 20);
	struct profile p;
	struct act_opts o = { .text = text, .profile = &p, .workspace = ws, .ask = a ? on_ask : NULL, .judged = a ? on_judged : NULL, .arg = a };

	load(profile, &p);
	profile_write_yaml(&p, &before);
	T_INT(act_run(&o, ret), ret->exit_code);
	profile_write_yaml(&p, &after);
	T_STR(cs_buf_text(&after), cs_buf_text(&before)); /* the caller's, for the next one */
	profile_done(&p);
	if (ret->run && ret->run->reason == SESSION_NOT_STARTED)
		T_SKIP("no sandbox here: %s", ret->err.msg);
}

static const char surprise[] = "python3 -c \"open('surprise', 'w').write('x')\"";

TEST(what_is_safe_runs_and_has_no_transaction)
{
	struct answers a = { 0 };
	struct act_result r;

	scene();
	run("grep -q one a", "{}", &a, &r);
	T_INT(r.exit_code, 0);
	T_TRUE(r.way == ACT_DIRECT && r.verdict.class == SH_SAFE && r.fate == ACT_FATE_NONE && !r.txn && !r.asked);
	T_TRUE(a.judged == 1 && a.asked == 0);
	act_result_done(&r);
	run("for x in 1 2; do grep -q one a; done", "{}", NULL, &r);
	T_TRUE(r.exit_code == 0 && r.way == ACT_SAFE);
	act_result_done(&r);
	run("grep -q two a", "{}", NULL, &r);
	T_TRUE(r.exit_code == 1 && r.way == ACT_DIRECT);
	act_result_done(&r);
}

TEST(what_is_uncertain_is_committed_when_it_did_what_was_predicted)
{
	struct act_result r;

	scene();
	run("sed -i s/one/two/ a", "{}", NULL, &r);
	T_TRUE(r.exit_code == 0 && r.way == ACT_TRANSACTION && r.fate == ACT_FATE_COMMITTED && r.txn);
	T_TRUE(r.observed.n_files == 1 && !strcmp(r.observed.files[0].what, "a") && r.observed.files[0].predicted && !r.observed.unexpected);
	T_STR(text_of("a"), "two\n");
	act_result_done(&r);
	put(ws, "x.txt", "x");
	put(ws, "y.txt", "y");
	run("rm *.txt", "{}", NULL, &r);
	T_TRUE(r.fate == ACT_FATE_COMMITTED && r.observed.expected == 2 && r.observed.unexpected == 0);
	T_STR(text_of("x.txt"), "(not there)");
	act_result_done(&r);
}

TEST(what_fails_is_rolled_back)
{
	struct act_result r;

	scene();
	run("echo two > a; false", "{}", NULL, &r);
	T_TRUE(r.exit_code == 1 && r.fate == ACT_FATE_ROLLED_BACK && r.failed);
	T_STR(text_of("a"), "one\n");
	act_result_done(&r);
}

TEST(a_workspace_that_is_written_for_real_is_a_transaction_here_all_the_same)
{
	struct act_result r;

	scene();
	run("echo two > a; false", "extends: coding\n", NULL, &r);
	T_TRUE(r.way == ACT_TRANSACTION && r.fate == ACT_FATE_ROLLED_BACK);
	T_STR(text_of("a"), "one\n");
	act_result_done(&r);
}

TEST(what_was_not_predicted_is_what_the_profile_says)
{
	static const struct {
		const char *profile;
		enum act_answer answer;
		bool asked;
		enum act_fate fate;
	} rows[] = {
		{ "{}", ACT_NO, true, ACT_FATE_ROLLED_BACK },
		{ "{}", ACT_YES, true, ACT_FATE_COMMITTED },
		{ "{}", ACT_LATER, true, ACT_FATE_PENDING },
		{ "shell: {unexpected: rollback}", ACT_YES, false, ACT_FATE_ROLLED_BACK },
		{ "shell: {unexpected: commit}", ACT_NO, false, ACT_FATE_COMMITTED },
		{ "commit: {mode: never}\nshell: {unexpected: commit}", ACT_YES, false, ACT_FATE_ROLLED_BACK },
		{ "commit: {mode: keep}\nshell: {unexpected: commit}", ACT_YES, false, ACT_FATE_PENDING },
		{ "commit: {mode: always}", ACT_NO, true, ACT_FATE_ROLLED_BACK },
	};

	scene();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct answers a = { .commit = rows[i].answer };
		struct act_result r;

		(void)unlink("surprise"); /* of the row before */
		run(surprise, rows[i].profile, &a, &r);
		if (r.exit_code != 0)
			T_SKIP("no python3 inside");
		T_TRUE(r.observed.unexpected == 1 && !r.observed.files[0].predicted);
		if (r.fate != rows[i].fate || r.asked != rows[i].asked || a.asked != rows[i].asked)
			T_FAIL("%s: %s, asked %u", rows[i].profile, act_fate_name(r.fate), a.asked);
		T_TRUE(!strcmp(text_of("surprise"), "x") == (r.fate == ACT_FATE_COMMITTED));
		act_result_done(&r);
	}
	/* Nobody to ask: it stays, pending. */
	{
		struct act_result r;

		(void)unlink("surprise");
		run(surprise, "{}", NULL, &r);
		T_TRUE(r.fate == ACT_FATE_PENDING && !r.asked);
		act_result_done(&r);
	}
}

TEST(what_is_uncertain_is_asked_for_or_refused_as_the_profile_says)
{
	struct answers a = { .commit = ACT_NO };
	struct act_result r;

	scene();
	run("sed -i s/one/two/ a", "shell: {uncertain: refuse}", &a, &r);
	T_TRUE(r.exit_code == 125 && r.way == ACT_REFUSED && !r.run && a.asked == 0 && r.verdict.class == SH_UNCERTAIN);
	act_result_done(&r);
	run("sed -i s/one/two/ a", "shell: {uncertain: ask}", &a, &r);
	T_TRUE(r.fate == ACT_FATE_ROLLED_BACK && a.asked == 1);
	T_STR(text_of("a"), "one\n");
	act_result_done(&r);
}

TEST(what_is_unsafe_is_refused_unless_the_profile_and_a_person_say_otherwise)
{
	static const char command[] = "echo two > a; rm -rf /srv/data";
	struct answers yes = { .run = ACT_YES, .commit = ACT_YES }, no = { 0 };
	struct act_result r;

	scene();
	run(command, "{}", &yes, &r);
	T_TRUE(r.exit_code == 125 && r.way == ACT_REFUSED && !r.run && yes.asked == 0);
	act_result_done(&r);
	run(command, "shell: {unsafe: ask}", NULL, &r);
	T_TRUE(r.way == ACT_REFUSED && !r.run && !r.asked);
	act_result_done(&r);
	run(command, "shell: {unsafe: ask}", &no, &r);
	T_TRUE(r.way == ACT_REFUSED && !r.run && no.asked == 1 && r.asked);
	T_STR(text_of("a"), "one\n");
	act_result_done(&r);
	run(command, "shell: {unsafe: ask}", &yes, &r);
	T_TRUE(r.way == ACT_TRANSACTION && r.run && yes.asked >= 1);
	act_result_done(&r);
}

TEST(a_workspace_that_is_not_there_is_an_error_and_nothing_runs)
{
	struct act_result r;
	struct profile p;
	struct act_opts o = { .text = "ls", .profile = &p, .workspace = "/nonexistent/ws" };

	load("{}", &p);
	T_INT(act_run(&o, &r), 125);
	T_TRUE(r.err.code == CS_E_NOT_FOUND && !r.run && r.way == ACT_REFUSED);
	act_result_done(&r);
	profile_done(&p);
}

/* ---- hosts ---- */

static enum sh_class classify(const struct profile *p, const char *text, bool really, struct sh_verdict *ret)
{
	struct act_policy_opts o = { .profile = p, .workspace = ws, .roots = true, .really = really };
	struct act_policy policy;
	struct cs_err err = { 0 };

	if (act_policy_make(&o, &policy, &err) < 0)
		T_FAIL("%s", err.msg);
	act_classify(&policy, text, strlen(text), ret);
	act_policy_done(&policy);
	return ret->class;
}

static void told(struct session_network *net, enum egress_kind kind, const char *what, const char *fix)
{
	struct egress_told *t = &net->told[net->n_told++];

	*t = (struct egress_told){ .kind = kind, .count = 1 };
	snprintf(t->what, sizeof t->what, "%s", what);
	snprintf(t->fix, sizeof t->fix, "%s", fix);
}

TEST(hosts_that_were_reached_are_held_against_those_that_were_predicted)
{
	static const struct {
		const char *command, *host;
		bool predicted;
	} rows[] = {
		{ "curl https://api.example.com/x", "api.example.com:443", true },
		{ "curl https://API.example.com./x", "api.example.com:443", true },
		{ "curl https://api.example.com/x", "evil.example.com:443", false },
		{ "curl https://evil.example.com@api.example.com/x", "evil.example.com:443", false },
		{ "curl https://api.example.com/x", "example.com:443", false },
		{ "curl 'http://[2001:db8::1]:80/'", "[2001:db8::1]:80", true },
		{ "ssh user@api.example.com ls", "api.example.com:22", true },
		{ "scp a user@api.example.com:b", "api.example.com:22", true },
		{ "sed -i s/a/b/ a", "api.example.com:443", false },
		{ "pip install x", "pypi.example.com:443", true }, /* somewhere: then the rules are the bound */
		{ "curl https://a.example.com; curl https://b.example.com", "b.example.com:443", true },
	};
	static struct egress_told room[4];
	struct profile p;

	scene();
	load("{}", &p);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct session_result run = { .network = { .on = true, .told = room } };
		struct act_observed o;
		struct sh_verdict v;

		(void)classify(&p, rows[i].command, false, &v);
		told(&run.network, EGRESS_REACHED, "", rows[i].host);
		act_compare(&v, ws, NULL, &run, &o);
		T_TRUE(o.n_hosts == 1 && !strcmp(o.hosts[0].what, rows[i].host) && !o.hosts[0].refused && !o.partly);
		if (o.hosts[0].predicted != rows[i].predicted || o.unexpected != !rows[i].predicted)
			T_FAIL("%s, %s: predicted is %d", rows[i].command, rows[i].host, o.hosts[0].predicted);
		act_observed_done(&o);
		sh_verdict_done(&v);
	}
	profile_done(&p);
}

TEST(refused_hosts_are_told_and_what_cannot_be_told_counts_as_unexpected)
{
	static struct egress_told room[4];
	struct session_result run = { .network = { .on = true, .told = room } };
	struct act_observed o;
	struct sh_verdict v;
	struct profile p;

	scene();
	load("{}", &p);
	(void)classify(&p, "curl https://api.example.com/", false, &v);
	told(&run.network, EGRESS_CONNECT, "other.example.com:443", "--allow");
	told(&run.network, EGRESS_REQUEST, "GET api.example.com/x", "");
	act_compare(&v, ws, NULL, &run, &o);
	T_TRUE(o.n_hosts == 2 && o.hosts[0].refused && !o.hosts[0].predicted && o.hosts[1].refused && o.hosts[1].predicted && !o.partly);
	act_observed_done(&o);
	snprintf(run.network.trouble, sizeof run.network.trouble, "it ended");
	act_compare(&v, ws, NULL, &run, &o);
	T_TRUE(o.partly);
	act_observed_done(&o);
	sh_verdict_done(&v);
	profile_done(&p);
}

/* Without a network nobody reads names: what the program tried is known from its calls. */
TEST(what_was_tried_without_a_network_is_told)
{
	static const struct {
		const char *command, *what, *host;
		bool lookup, predicted;
	} rows[] = {
		{ "curl http://evil.example.com/", "look up a name (127.0.0.1:53)", "127.0.0.1:53", true, true },
		{ "pip install x", "look up a name (192.168.1.1:53)", "192.168.1.1:53", true, true },
		{ "sed -i s/a/b/ a", "look up a name (127.0.0.1:53)", "127.0.0.1:53", true, false },
		{ "curl http://192.0.2.1/", "look up a name (127.0.0.1:53)", "127.0.0.1:53", true, false },
		{ "curl http://192.0.2.1/", "connect to 192.0.2.1:80", "192.0.2.1:80", false, true },
		{ "curl http://192.0.2.1/", "connect to 192.0.2.2:80", "192.0.2.2:80", false, false },
		{ "curl 'http://[2001:db8::1]/'", "connect to [2001:db8::1]:80", "[2001:db8::1]:80", false, true },
		{ "curl http://evil.example.com/", "connect to 169.254.169.254:80", "169.254.169.254:80", false, false },
	};
	struct profile p;

	scene();
	load("{}", &p);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct session_result run = { .n_refusals = 2 };
		struct act_observed o;
		struct sh_verdict v;

		snprintf(run.refusals[0].what.what, sizeof run.refusals[0].what.what, "clone into a new namespace");
		run.refusals[1].what.kind = SANDBOX_REFUSED_CONNECT;
		snprintf(run.refusals[1].what.what, sizeof run.refusals[1].what.what, "%s", rows[i].what);
		(void)classify(&p, rows[i].command, false, &v);
		act_compare(&v, ws, NULL, &run, &o);
		T_TRUE(o.n_hosts == 1 && !strcmp(o.hosts[0].what, rows[i].host) && o.hosts[0].refused && o.hosts[0].lookup == rows[i].lookup && !o.partly);
		if (o.hosts[0].predicted != rows[i].predicted || o.unexpected != !rows[i].predicted)
			T_FAIL("%s, %s: predicted is %d", rows[i].command, rows[i].what, o.hosts[0].predicted);
		act_observed_done(&o);
		run.refusals_more = 1;
		act_compare(&v, ws, NULL, &run, &o);
		T_TRUE(o.partly);
		act_observed_done(&o);
		sh_verdict_done(&v);
	}
	profile_done(&p);
}

/* ---- rows ---- */

static enum sh_class class_of(const struct profile *p, const char *text)
{
	struct sh_verdict v;
	enum sh_class c = classify(p, text, false, &v);

	sh_verdict_done(&v);
	return c;
}

/* Rows that would make each of these look better, if anybody believed them. */
static const char lies[] = "shell:\n  commands:\n"
			   "    mytool: harmless --x | inert...\n"
			   "    rm: harmless -r -f | inert...\n"
			   "    curl: harmless | inert...\n"
			   "    sudo: harmless | inert...\n"
			   "    python3: harmless -c=inert | inert...\n"
			   "    env: \"stop | inert command\"\n"
			   "    xargs: \"stop -r | command\"\n"
			   "    cat: \"| command\"\n"
			   "    'git push': harmless | inert...\n";

static const struct {
	const char *command;
	bool changes; /* what a row can change; the rest is not the table's to say */
} lied_about[] = {
	{ "mytool --x y", true },
	{ "rm -rf /srv/data", true },
	{ "curl https://example.com/", true },
	{ "sudo ls", true },
	{ "python3 -c 'print(1)'", true },
	{ "env rm -rf /srv/data", true },
	{ "ls | xargs cat", false },
	{ "ls | xargs cat ls", false },
	{ "env -C /srv rm x", false },
	{ "find . -exec rm -rf /srv/data ';'", true },
	{ "git push", false },
};

TEST(rows_that_others_could_have_written_take_nothing_away)
{
	struct profile plain, lying, text, own;
	bool believed = false;

	scene();
	load("{}", &plain);
	load_file(ws, lies, &lying); /* it is ours, but lies in the workspace */
	load(lies, &text);           /* it comes from no file */
	load_file(elsewhere, lies, &own);
	for (size_t i = 0; i < sizeof lied_about / sizeof *lied_about; i++) {
		const char *c = lied_about[i].command;

		if (class_of(&lying, c) < class_of(&plain, c) || class_of(&text, c) < class_of(&plain, c))
			T_FAIL("%s: a row took something away", c);
		/* The control: the same rows in a file that is trusted are believed. */
		if (lied_about[i].changes && class_of(&own, c) >= class_of(&plain, c))
			T_FAIL("%s: a trusted row did nothing", c);
		believed |= class_of(&own, c) < class_of(&plain, c);
	}
	T_TRUE(believed);
	profile_done(&plain);
	profile_done(&lying);
	profile_done(&text);
	profile_done(&own);
}

TEST(rows_narrow_whoever_wrote_them)
{
	static const char careful[] = "shell: {commands: {head: '| read... !network', wc: '-l | read... !privilege'}}\n";
	struct profile plain, p;

	scene();
	load("{}", &plain);
	T_INT(class_of(&plain, "head a"), SH_SAFE);
	T_INT(class_of(&plain, "wc -l a"), SH_SAFE);
	load_file(ws, careful, &p);
	T_INT(class_of(&p, "head a"), SH_UNCERTAIN);
	T_INT(class_of(&p, "wc -l a"), SH_UNSAFE);
	T_INT(class_of(&p, "tail a"), SH_SAFE);
	profile_done(&p);
	profile_done(&plain);
}

static void expect_trust(const char *what, bool trusted)
{
	struct cs_err err = { 0 };
	struct profile p;
	char path[1200];
	bool is;

	snprintf(path, sizeof path, "%s/p.yaml", elsewhere);
	if (profile_load(path, &p, &err) < 0)
		T_FAIL("%s", err.msg);
	is = class_of(&p, "mytool --x y") == SH_SAFE;
	if (is != trusted)
		T_FAIL("%s: %s", what, is ? "trusted" : "not trusted");
	profile_done(&p);
}

TEST(a_file_is_trusted_if_nobody_else_could_have_written_it)
{
	char path[1200], other[1200];

	scene();
	put(elsewhere, "p.yaml", lies);
	snprintf(path, sizeof path, "%s/p.yaml", elsewhere);
	snprintf(other, sizeof other, "%s/q.yaml", ws);
	expect_trust("ours", true);
	T_INT(chmod(path, 0664), 0);
	expect_trust("a group may write it", false);
	T_INT(chmod(path, 0600), 0);
	expect_trust("ours again", true);
	T_INT(chmod(elsewhere, 0777), 0);
	expect_trust("others may replace it", false);
	T_INT(chmod(elsewhere, 01777), 0);
	expect_trust("a sticky directory", true);
	T_INT(link(path, other), 0);
	expect_trust("a second name in the workspace", false);
	T_INT(unlink(other), 0);
	if (geteuid() == 0) {
		T_INT(chown(path, 61234, 61234), 0);
		expect_trust("somebody else's", false);
		T_INT(chown(path, 0, 0), 0);
	}
	/* By a link it is the file that counts, wherever the link lies; and a link out of the workspace into it is no way around. */
	T_INT(rename(path, other), 0);
	T_INT(symlink(other, path), 0);
	expect_trust("a link into the workspace", false);
}

TEST(where_the_program_may_write_is_no_place_for_rows)
{
	struct profile p;
	char text[2400];

	scene();
	snprintf(text, sizeof text, "files: {write: [%s]}\n%s", elsewhere, lies);
	load_file(elsewhere, text, &p);
	T_INT(class_of(&p, "mytool --x y"), SH_UNCERTAIN);
	profile_done(&p);
}

TEST(a_profile_in_the_workspace_does_not_undo_the_rows_of_what_it_extends)
{
	struct profile p;
	char text[1200];

	scene();
	put(elsewhere, "base.yaml", "shell: {commands: {head: '| read... !privilege', mytool: '--x | inert...'}}\n");
	snprintf(text, sizeof text, "extends: %s/base.yaml\nshell: {commands: {head: harmless | read..., mytool: '| write...'}}\n", elsewhere);
	load_file(ws, text, &p);
	T_INT(class_of(&p, "head a"), SH_UNSAFE);
	T_INT(class_of(&p, "mytool --x"), SH_UNCERTAIN); /* narrowed: --x is unknown to the second row */
	profile_done(&p);
	snprintf(text, sizeof text, "extends: %s/base.yaml\nshell: {commands: {head: null}}\n", elsewhere);
	load_file(ws, text, &p);
	T_INT(class_of(&p, "head a"), SH_UNSAFE);
	profile_done(&p);
	/* The control: from a trusted place both do. */
	load_file(elsewhere, text, &p);
	T_INT(class_of(&p, "head a"), SH_SAFE);
	T_INT(class_of(&p, "mytool --x"), SH_SAFE);
	profile_done(&p);
}

TEST(what_extends_a_locked_profile_only_narrows_even_if_it_is_trusted)
{
	struct profile p;
	char text[1200];

	scene();
	put(elsewhere, "base.yaml", "locked: true\n");
	snprintf(text, sizeof text, "extends: %s/base.yaml\n%s", elsewhere, lies);
	load_file(elsewhere, text, &p);
	T_INT(class_of(&p, "mytool --x y"), SH_UNCERTAIN);
	T_INT(class_of(&p, "rm -rf /srv/data"), SH_UNSAFE);
	profile_done(&p);
}

/* ---- links ---- */

TEST(links_are_followed_when_that_is_asked_for)
{
	static const struct {
		const char *command;
		enum sh_class words, really;
	} rows[] = {
		{ "cat key", SH_SAFE, SH_UNSAFE },
		{ "cat < key", SH_SAFE, SH_UNSAFE },
		{ "cat by/../shadow.txt", SH_SAFE, SH_UNCERTAIN },
		{ "cat inner", SH_SAFE, SH_SAFE },
		{ "cat out/x", SH_SAFE, SH_UNCERTAIN },
		{ "cat magic", SH_SAFE, SH_UNCERTAIN },
		{ "cat loop", SH_SAFE, SH_UNCERTAIN },
		{ "cat k*.txt", SH_SAFE, SH_UNSAFE },
		{ "cat a*.txt", SH_SAFE, SH_SAFE },
		{ "cat sub/*/x.txt", SH_SAFE, SH_UNCERTAIN },
		{ "cat sub/*/y.txt", SH_SAFE, SH_SAFE }, /* no directory has one */
		{ "cat nothere", SH_SAFE, SH_SAFE },
		{ "cat nothere/x", SH_SAFE, SH_SAFE },
		{ "cat chain", SH_SAFE, SH_UNSAFE },
		{ "cd by && cat x", SH_SAFE, SH_UNCERTAIN },
		{ "rm key", SH_UNCERTAIN, SH_UNCERTAIN },
		{ "rm out/x", SH_UNCERTAIN, SH_UNSAFE },
		{ "rm -r out/*", SH_UNCERTAIN, SH_UNSAFE },
		{ "echo x > out/new", SH_UNCERTAIN, SH_UNSAFE },
		{ "echo x > dangling", SH_UNCERTAIN, SH_UNSAFE },
		{ "echo x > inner", SH_UNCERTAIN, SH_UNCERTAIN },
		{ "cp a dangling", SH_UNCERTAIN, SH_UNSAFE },
		{ "head \"$(echo key)\"", SH_UNCERTAIN, SH_UNSAFE },
	};
	char out[] = "/var/tmp/test_act.XXXXXX"; /* which the profile does not let be read */
	struct profile p;

	scene();
	load("{}", &p);
	T_TRUE(mkdtemp(out) != NULL);
	T_INT(mkdir("sub", 0755), 0);
	link_to(out, "sub/deep");
	put(out, "x.txt", "");
	link_to("/nonexistent/home/.ssh/id_rsa", "key");
	link_to("key", "chain");
	link_to("key", "k1.txt");
	put(ws, "a1.txt", "");
	link_to("a", "inner");
	link_to("/srv", "out");
	link_to("/var/lib", "by");
	link_to("/proc/self/root/etc/hostname", "magic");
	link_to("loop", "loop");
	link_to("/srv/nonexistent", "dangling");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sh_verdict v;
		enum sh_class words = classify(&p, rows[i].command, false, &v), really;

		sh_verdict_done(&v);
		really = classify(&p, rows[i].command, true, &v);
		if (words != rows[i].words || really != rows[i].really)
			T_FAIL("%s: %s by its words, %s really", rows[i].command, sh_class_name(words), sh_class_name(really));
		sh_verdict_done(&v);
	}
	T_INT(unlink("sub/deep/x.txt"), 0);
	T_INT(rmdir(out), 0);
	profile_done(&p);
}

TEST(the_reason_names_the_link_and_where_it_leads)
{
	struct sh_verdict v;
	struct profile p;
	char want[1200];
	bool told_of = false;

	scene();
	load("{}", &p);
	link_to("/nonexistent/home/.ssh/id_rsa", "key");
	T_INT(classify(&p, "cat key", true, &v), SH_UNSAFE);
	snprintf(want, sizeof want, "%s/key leads to /nonexistent/home/.ssh/id_rsa", ws);
	for (size_t i = 0; i < v.n_reasons; i++)
		told_of |= !strcmp(v.reasons[i].text, want);
	T_TRUE(told_of);
	sh_verdict_done(&v);
	profile_done(&p);
}

TEST(looking_is_bounded)
{
	struct sh_verdict v;
	struct profile p;
	char name[32], many[4096] = "cat";

	scene();
	load("{}", &p);
	for (int i = 0; i < 600; i++) { /* more than there can be effects */
		snprintf(name, sizeof name, "f%d.txt", i);
		put(ws, name, "");
	}
	/* 400 times 600 names are more than are looked at. */
	for (int i = 0; i < 400; i++)
		strcat(many, " f*.txt");
	T_INT(classify(&p, "cat f*.txt", true, &v), SH_SAFE);
	T_INT(v.n_effects, 1);
	sh_verdict_done(&v);
	T_INT(classify(&p, many, false, &v), SH_SAFE);
	sh_verdict_done(&v);
	T_INT(classify(&p, many, true, &v), SH_UNCERTAIN);
	sh_verdict_done(&v);
	profile_done(&p);
}
