/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "base/buf.h"
#include "base/mem.h"
#include "gate/approval.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { T0 = 1000000, HOUR = 3600000 };
#define EFFECT "{\"tool\":\"send\",\"args\":{\"to\":\"bob\"}}"

static char *store_path(void)
{
	static const char *dir;
	static unsigned n;

	if (!dir)
		dir = t_tmpdir();
	return cs_printf("%s/store%u", dir, n++);
}

static struct approvals *open_store(const char *dir)
{
	struct approvals *s = NULL;
	struct cs_err err = { 0 };

	if (approvals_open(dir, &s, &err) < 0)
		T_FAIL("%s", err.msg);
	return s;
}

static const struct json *parse(struct cs_arena *a, const char *text)
{
	const struct json *v = NULL;

	T_INT(json_read(a, text, strlen(text), NULL, &v, NULL), 0);
	return v;
}

/* All of these return what the function did. */
static int ask_until(struct approvals *s, const char *effect, uint64_t until, char id[40])
{
	struct approval a = { .effect = cs_strdup(effect), .session = cs_strdup("s1"), .reason = cs_strdup("because"), .asked_ms = T0, .expires_ms = until };
	struct cs_err err = { 0 };
	int r = approval_ask(s, &a, &err);

	if (id)
		memcpy(id, a.id, 40);
	approval_done(&a);
	return r;
}

static int ask(struct approvals *s, const char *effect, char id[40])
{
	return ask_until(s, effect, T0 + HOUR, id);
}

static int take(struct approvals *s, const char *effect, uint64_t t)
{
	struct cs_arena a CS_ARENA_AUTO = CS_ARENA(1 << 20);
	struct cs_err err = { 0 };

	return approval_take(s, parse(&a, effect), t, NULL, &err);
}

static int answer(struct approvals *s, const char *id, bool allow, bool always)
{
	struct cs_err err = { 0 };

	return approval_answer(s, id, allow, always, "alice", T0 + 1, &err);
}

/* ---- what it does ---- */

TEST(an_answer_is_used_once)
{
	struct approvals *s = open_store(store_path());
	char id[40];

	T_INT(take(s, EFFECT, T0), 0);
	T_INT(ask(s, EFFECT, id), 0);
	T_INT(take(s, EFFECT, T0), 0); /* a question is no answer */
	T_INT(answer(s, id, true, false), 0);
	T_INT(take(s, EFFECT, T0), 1);
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(answer(s, id, true, false), -CS_E_CONFLICT); /* and cannot be given again */
	approvals_close(s);
}

TEST(it_is_there_for_another_process)
{
	char *dir = store_path(), id[40];
	struct approvals *s = open_store(dir);

	T_INT(ask(s, EFFECT, id), 0);
	approvals_close(s);
	s = open_store(dir);
	T_INT(answer(s, id, true, false), 0);
	approvals_close(s);
	s = open_store(dir);
	T_INT(take(s, EFFECT, T0), 1);
	approvals_close(s);
}

TEST(a_denial_stands_until_it_expires)
{
	struct approvals *s = open_store(store_path());
	char id[40], again[40];

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(answer(s, id, false, false), 0);
	T_INT(take(s, EFFECT, T0), -CS_E_DENIED);
	T_INT(take(s, EFFECT, T0 + 2), -CS_E_DENIED);
	T_INT(take(s, EFFECT, T0 + HOUR), 0);
	T_INT(ask(s, EFFECT, again), 0);
	T_TRUE(strcmp(id, again) != 0);
	approvals_close(s);
}

TEST(the_same_question_is_asked_once)
{
	struct approvals *s = open_store(store_path());
	char id[40], again[40], other[40];

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(ask(s, "{\"args\":{\"to\":\"bob\"}, \"tool\":\"send\"}", again), 0); /* in another order it is the same */
	T_STR(id, again);
	T_INT(ask(s, "{\"tool\":\"send\",\"args\":{\"to\":\"eve\"}}", other), 0);
	T_TRUE(strcmp(id, other) != 0);
	approvals_close(s);
}

TEST(always_is_the_exact_effect_and_can_be_withdrawn)
{
	struct approvals *s = open_store(store_path());
	struct cs_err err = { 0 };
	char id[40];

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(answer(s, id, true, true), 0);
	for (int i = 0; i < 3; i++)
		T_INT(take(s, EFFECT, T0 + (uint64_t)i * HOUR), 1);
	T_INT(take(s, "{\"tool\":\"send\",\"args\":{\"to\":\"bobb\"}}", T0), 0);
	T_INT(approval_withdraw(s, id, &err), 0);
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(approval_withdraw(s, id, &err), -CS_E_CONFLICT);
	approvals_close(s);
}

TEST(an_id_may_be_cut_short_while_it_is_the_only_one)
{
	struct approvals *s = open_store(store_path());
	struct approval a = { 0 };
	struct cs_err err = { 0 };
	char id[40], start[40];

	T_INT(ask(s, EFFECT, id), 0);
	snprintf(start, sizeof start, "%.5s", id);
	T_INT(approval_get(s, start, &a, &err), 0);
	T_STR(a.id, id);
	T_STR(a.session, "s1");
	approval_done(&a);
	T_INT(ask(s, "{\"tool\":\"x\"}", NULL), 0);
	T_INT(approval_get(s, "a-", &a, &err), -CS_E_NOT_FOUND);
	T_INT(approval_get(s, "../../etc/passwd", &a, &err), -CS_E_NOT_FOUND);
	T_INT(approval_get(s, "", &a, &err), -CS_E_NOT_FOUND);
	approvals_close(s);
}

/* ---- what it must not ---- */

TEST(an_effect_that_differs_in_one_byte_is_another)
{
	static const char *const others[] = { "{\"tool\":\"send\",\"args\":{\"to\":\"boc\"}}", "{\"tool\":\"send\",\"args\":{\"to\":\"bob\",\"cc\":1}}",
					      "{\"tool\":\"sent\",\"args\":{\"to\":\"bob\"}}", "{\"tool\":\"send\",\"args\":{\"to\":[\"bob\"]}}",
					      "{\"tool\":\"send\",\"args\":{\"to\":\"bob \"}}", "{\"tool\":\"send\",\"args\":{\"To\":\"bob\"}}" };
	struct approvals *s = open_store(store_path());
	char id[40];

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(answer(s, id, true, false), 0);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		T_INT(take(s, others[i], T0), 0);
	T_INT(take(s, EFFECT, T0), 1);
	approvals_close(s);
}

TEST(what_has_expired_counts_for_nothing)
{
	struct approvals *s = open_store(store_path());
	struct cs_err err = { 0 };
	char id[40], late[40];

	T_INT(ask_until(s, EFFECT, T0 + 100, id), 0);
	T_INT(answer(s, id, true, false), 0);
	T_INT(take(s, EFFECT, T0 + 100), 0);
	T_INT(take(s, EFFECT, T0 + 99), 1);
	T_INT(ask_until(s, EFFECT, T0 + 100, late), 0);
	T_INT(approval_answer(s, late, true, false, "alice", T0 + 100, &err), -CS_E_CONFLICT);
	approvals_close(s);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	T_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static char *effect_of(const char *cwd, const char *command, const char *args)
{
	struct cs_arena a CS_ARENA_AUTO = CS_ARENA(4 << 20);
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);
	struct approval_call c = { .tool = "shell", .args = parse(&a, args), .command = command, .cwd = cwd };
	const struct json *e;
	struct cs_err err = { 0 };

	if (approval_effect(&a, &c, &e, &err) < 0)
		return cs_strdup(err.msg);
	json_write_canonical(&text, e);
	return cs_strdup(cs_buf_text(&text));
}

TEST(the_content_of_the_files_it_names_is_part_of_the_effect)
{
	static const struct { const char *command, *args; bool names; } rows[] = {
		{ "sh deploy.sh", "{}", true }, { "cat < deploy.sh", "{}", true }, { "bash -c 'sh deploy.sh'", "{}", true }, { "FOO=1 ./deploy.sh -x", "{}", true },
		{ NULL, "{\"path\":\"deploy.sh\"}", true }, { NULL, "{\"a\":[{\"b\":\"./deploy.sh\"}]}", true }, { "ls", "{\"x\":\"deploy\"}", false },
	};
	const char *dir = t_tmpdir();
	char *path = cs_printf("%s/deploy.sh", dir);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *first, *same, *other;

		write_file(path, "echo one\n");
		first = effect_of(dir, rows[i].command, rows[i].args);
		same = effect_of(dir, rows[i].command, rows[i].args);
		write_file(path, "echo two\n");
		other = effect_of(dir, rows[i].command, rows[i].args);
		T_STR(first, same);
		if ((strcmp(first, other) != 0) != rows[i].names)
			T_FAIL("row %zu: %s, then %s", i, first, other);
	}
	/* The whole way: an answer for the old content is none for the new. */
	{
		struct approvals *s = open_store(store_path());
		char id[40], *e;

		write_file(path, "echo one\n");
		e = effect_of(dir, "sh deploy.sh", "{}");
		T_INT(ask(s, e, id), 0);
		T_INT(answer(s, id, true, true), 0);
		write_file(path, "echo 0ne\n");
		T_INT(take(s, effect_of(dir, "sh deploy.sh", "{}"), T0), 0);
		write_file(path, "echo one\n");
		T_INT(take(s, effect_of(dir, "sh deploy.sh", "{}"), T0), 1);
		approvals_close(s);
	}
}

/* In a directory whose name is no UTF-8 one can be asked, too; and what its name is written as is another's name. */
TEST(a_path_need_not_be_utf8)
{
	struct approvals *s = open_store(store_path());
	const char *dir = t_tmpdir();
	char *odd = cs_printf("%s/\xff", dir), *written = cs_printf("%s/\\xff", dir), *file = cs_printf("%s/deploy.sh", odd), *a, *b, id[40];

	T_INT(mkdir(odd, 0700), 0);
	T_INT(mkdir(written, 0700), 0);
	write_file(file, "echo one\n");
	a = effect_of(odd, "sh deploy.sh; cat deploy.sh", "{}");
	b = effect_of(written, "sh deploy.sh; cat deploy.sh", "{}");
	T_TRUE(strstr(a, "\\\\xff/deploy.sh") != NULL);
	T_INT(ask(s, a, id), 0);
	T_INT(answer(s, id, true, false), 0);
	T_INT(take(s, b, T0), 0);
	T_INT(take(s, a, T0), 1);
	approvals_close(s);
	free(odd);
	free(written);
	free(file);
	free(a);
	free(b);
}

TEST(a_store_that_others_can_reach_is_refused)
{
	char *dir = store_path(), *link = store_path();
	struct approvals *s = open_store(dir);
	struct cs_err err = { 0 };
	struct stat st;

	T_INT(stat(dir, &st), 0);
	T_INT(st.st_mode & 07777, 0700);
	approvals_close(s);
	for (mode_t m = 0701; m <= 0777; m = m == 0701 ? 0710 : m == 0710 ? 0755 : m + 022) {
		T_INT(chmod(dir, m), 0);
		T_INT(approvals_open(dir, &s, &err), -CS_E_DENIED);
		T_TRUE(strstr(err.msg, "chmod 700"));
	}
	T_INT(chmod(dir, 0700), 0);
	approvals_close(open_store(dir)); /* the control */
	T_INT(symlink(dir, link), 0);
	T_INT(approvals_open(link, &s, &err), -CS_E_DENIED);
	if (geteuid() == 0) {
		T_INT(chown(dir, 1234, 1234), 0);
		T_INT(approvals_open(dir, &s, &err), -CS_E_DENIED);
		T_TRUE(strstr(err.msg, "1234"));
	}
}

/* A file that is in the store and did not come there by it. */
TEST(links_and_forgeries_in_the_store_count_for_nothing)
{
	char *dir = store_path(), *outside = cs_printf("%s/outside", t_tmpdir()), id[40], *path, *other;
	struct approvals *s = open_store(dir);
	struct approval a = { 0 }, *all;
	struct cs_err err = { 0 };
	size_t n;

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(answer(s, id, true, false), 0);
	path = cs_printf("%s/%s", dir, id);
	other = cs_printf("%s/a-bbbbbbbb", dir);
	T_INT(rename(path, outside), 0);
	T_INT(symlink(outside, path), 0); /* the right file, by a link */
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(approval_get(s, id, &a, &err), -CS_E_DENIED);
	T_INT(approval_list(s, &all, &n, &err), 0);
	T_INT(n, 0);
	T_INT(answer(s, id, true, false), -CS_E_DENIED);
	T_INT(unlink(path), 0);
	T_INT(link(outside, path), 0); /* by a second name: somebody else may hold the first */
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(unlink(path), 0);
	T_INT(mkfifo(path, 0600), 0); /* nothing to wait for */
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(unlink(path), 0);
	T_INT(rename(outside, other), 0); /* under another id */
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(rename(other, path), 0);
	T_INT(take(s, EFFECT, T0), 1); /* the control: the very same file where it belongs */
	approvals_close(s);
}

TEST(a_file_whose_effect_was_changed_counts_for_nothing)
{
	char *dir = store_path(), id[40], *path;
	struct approvals *s = open_store(dir);
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 16);
	char *at;
	int fd;

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(answer(s, id, true, false), 0);
	path = cs_printf("%s/%s", dir, id);
	fd = open(path, O_RDWR);
	T_INT(cs_buf_read_fd(&text, fd, path, NULL), 0);
	at = strstr(text.data, "bob");
	T_TRUE(at != NULL);
	T_INT(pwrite(fd, "eve", 3, at - text.data), 3);
	T_INT(take(s, "{\"tool\":\"send\",\"args\":{\"to\":\"eve\"}}", T0), 0);
	T_INT(take(s, EFFECT, T0), 0);
	T_INT(pwrite(fd, "bob", 3, at - text.data), 3);
	T_INT(take(s, EFFECT, T0), 1);
	close(fd);
	approvals_close(s);
}

TEST(questions_without_end_fill_no_disk)
{
	struct approvals *s = open_store(store_path());
	int r = 0, n = 0;

	for (; r == 0 && n < 2000; n++) {
		char effect[64];

		snprintf(effect, sizeof effect, "{\"n\":%d}", n);
		r = ask(s, effect, NULL);
	}
	T_INT(r, -CS_E_LIMIT);
	T_INT(n, 1025);
	approvals_close(s);
}

TEST(nothing_that_is_shown_acts_on_a_terminal)
{
	struct approval a = { .id = "a-aaaaaaaa", .reason = cs_strdup("x\x1b]0;t\a\r\ny"), .session = cs_strdup("\xe2\x80\xae"), .rule = cs_strdup("r\n"),
			      .effect = cs_strdup("{\"args\":{\"a\\u001b[2Jb\":\"\\u001b[31m\\u0000hidden\\n\\u202e\\u200b\"}}") };
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 16);

	approval_show(&a, &out);
	for (size_t i = 0; i < out.len; i++)
		if ((unsigned char)out.data[i] < 0x20 && out.data[i] != '\n')
			T_FAIL("byte %02x at %zu", out.data[i], i);
	T_TRUE(!strstr(out.data, "\xe2\x80\xae") && !strstr(out.data, "\xe2\x80\x8b"));
	T_TRUE(strstr(out.data, "\\x00hidden")); /* what stands behind a NUL is seen */
	T_TRUE(strstr(out.data, "args.a\\x1b[2Jb"));
	approval_done(&a);
}

/* ---- many at once ---- */

static int winners(bool always)
{
	char *dir = store_path(), id[40];
	struct approvals *s = open_store(dir);
	int go[2], won = 0;
	pid_t pids[20];

	T_INT(ask(s, EFFECT, id), 0);
	T_INT(answer(s, id, true, always), 0);
	T_INT(pipe(go), 0);
	for (int i = 0; i < 20; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct approvals *mine = open_store(dir);
			char c;

			close(go[1]);
			(void)!read(go[0], &c, 1); /* all start when the other end closes */
			_exit(take(mine, EFFECT, T0) == 1 ? 0 : 1);
		}
	}
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < 20; i++) {
		int status;

		T_INT(waitpid(pids[i], &status, 0), pids[i]);
		won += status == 0;
	}
	approvals_close(s);
	return won;
}

TEST(of_twenty_that_take_one_answer_one_wins)
{
	for (int round = 0; round < 10; round++)
		T_INT(winners(false), 1);
	T_INT(winners(true), 20); /* the control: they all do take it */
}

/* ---- killed at every step ---- */

#ifdef CS_TEST_SWITCHES
struct step {
	const char *name;
	int (*run)(struct approvals *s, const char *id);
	bool (*prepare)(struct approvals *s, char id[40]);
};

static bool asked(struct approvals *s, char id[40])
{
	return ask(s, EFFECT, id) == 0;
}
static bool allowed(struct approvals *s, char id[40])
{
	return asked(s, id) && answer(s, id, true, false) == 0;
}
static bool always_allowed(struct approvals *s, char id[40])
{
	return asked(s, id) && answer(s, id, true, true) == 0;
}
static bool nothing(struct approvals *s, char id[40])
{
	(void)s;
	id[0] = 0;
	return true;
}
static int run_ask(struct approvals *s, const char *id)
{
	(void)id;
	return ask(s, EFFECT, NULL);
}
static int run_allow(struct approvals *s, const char *id)
{
	return answer(s, id, true, false);
}
static int run_deny(struct approvals *s, const char *id)
{
	return answer(s, id, false, false);
}
static int run_always(struct approvals *s, const char *id)
{
	return answer(s, id, true, true);
}
static int run_take(struct approvals *s, const char *id)
{
	(void)id;
	return take(s, EFFECT, T0) == 1 ? 0 : -1;
}
static int run_withdraw(struct approvals *s, const char *id)
{
	return approval_withdraw(s, id, NULL);
}

/* In a process of its own, since fault points are counted from its start: 0 done, 1 failed, 2 killed. */
static int in_child(const char *dir, const char *fault, char id[40], bool (*prepare)(struct approvals *, char *),
		    int (*run)(struct approvals *, const char *))
{
	int out[2], status;
	pid_t pid;

	T_INT(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		struct approvals *s;

		if (fault)
			setenv("CAISSON_FAULT", fault, 1);
		s = open_store(dir);
		if (prepare)
			_exit(prepare(s, id) && write(out[1], id, 40) == 40 ? 0 : 1);
		_exit(run(s, id) == 0 ? 0 : 1);
	}
	close(out[1]);
	if (prepare)
		T_INT(read(out[0], id, 40), 40);
	close(out[0]);
	T_INT(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 2 : WEXITSTATUS(status);
}

/* What a person would see: "asked", "used", ...; "" for none, "?" for more than one or a damaged one. */
static const char *state(const char *dir, uint64_t *files)
{
	struct approvals *s = open_store(dir);
	struct approval *all = NULL;
	struct cs_err err = { 0 };
	const char *ret;
	size_t n = 0;

	T_INT(approval_list(s, &all, &n, &err), 0);
	*files = n;
	ret = n > 1 ? "?" : !n ? "" : all[0].always ? "always" : all[0].answered_ms && all[0].expires_ms == all[0].asked_ms ? "withdrawn" :
	      all[0].used_ms ? "used" : !all[0].answered_ms ? "asked" : all[0].by ? "answered" : "?";
	approvals_close(s);
	return ret;
}

static void sweep(const struct step *step, const char *errno_text, const char *before, const char *after)
{
	int done = 2;
	unsigned points = 0;

	for (unsigned n = 1; done && n < 50; n++) {
		char *dir = store_path(), id[40] = "", fault[32];
		const char *now;
		uint64_t files;

		T_INT(in_child(dir, NULL, id, step->prepare, NULL), 0);
		snprintf(fault, sizeof fault, "%u%s%s", n, *errno_text ? ":" : "", errno_text);
		done = in_child(dir, fault, id, NULL, step->run);
		now = state(dir, &files);
		if (strcmp(now, before) && strcmp(now, after))
			T_FAIL("%s, fault %s: it is \"%s\", neither \"%s\" nor \"%s\"", step->name, fault, now, before, after);
		if (!done && strcmp(now, after))
			T_FAIL("%s, fault %s: reported, and lost: \"%s\"", step->name, fault, now);
		points += done != 0;
		/* Whoever comes next is not held up, and an answer is never used by two. */
		if (!strcmp(step->name, "take")) {
			int again = in_child(dir, NULL, id, NULL, run_take);

			if ((!done + !again) > 1)
				T_FAIL("take, fault %s: used twice", fault);
			if (!strcmp(now, "answered") && again)
				T_FAIL("take, fault %s: an answer that is there cannot be used", fault);
		} else if (done && !strcmp(now, before)) {
			T_INT(in_child(dir, NULL, id, NULL, step->run), 0);
			T_STR(state(dir, &files), after);
		}
	}
	T_INT(done, 0);
	if (points < 4)
		T_FAIL("%s: only %u fault points", step->name, points);
}

static const struct step steps[] = { { "ask", run_ask, nothing }, { "allow", run_allow, asked }, { "deny", run_deny, asked }, { "always", run_always, asked },
				     { "take", run_take, allowed }, { "withdraw", run_withdraw, always_allowed } };
static const char *const befores[] = { "", "asked", "asked", "asked", "answered", "always" };
static const char *const afters[] = { "asked", "answered", "answered", "always", "used", "withdrawn" };

TEST(killed_at_every_step_it_is_before_or_after)
{
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		sweep(&steps[i], "", befores[i], afters[i]);
}

TEST(refused_by_the_disk_at_every_step_it_is_before_or_after)
{
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		sweep(&steps[i], "28", befores[i], afters[i]);
		sweep(&steps[i], "5", befores[i], afters[i]);
	}
}
#endif

/* ---- who answers ---- */

static struct approval *sample(void)
{
	static struct approval a;

	a = (struct approval){ .id = "a-aaaaaaaa", .effect = cs_strdup(EFFECT), .reason = cs_strdup("because"), .asked_ms = T0, .expires_ms = T0 + HOUR };
	return &a;
}

/* Types `typed` when the question stands there; `early` before that. */
static enum approval_reply at_terminal(struct approval *a, const char *early, const char *typed, uint64_t ms, struct cs_buf *seen)
{
	int master, status;
	pid_t pid = forkpty(&master, NULL, NULL, NULL);
	char block[4096];
	ssize_t n;

	if (pid == 0) {
		usleep(early ? 200000 : 0);
		_exit((int)approval_prompt(a, ms));
	}
	T_TRUE(pid > 0);
	if (early)
		T_INT(write(master, early, strlen(early)), (ssize_t)strlen(early));
	while ((n = read(master, block, sizeof block)) > 0) {
		cs_buf_add(seen, block, (size_t)n);
		if (typed && strstr(cs_buf_text(seen), "no > ")) {
			T_INT(write(master, typed, strlen(typed)), (ssize_t)strlen(typed));
			typed = NULL;
		}
	}
	T_INT(waitpid(pid, &status, 0), pid);
	close(master);
	return (enum approval_reply)WEXITSTATUS(status);
}

TEST(at_a_terminal_a_person_says_yes_always_or_no)
{
	static const struct { const char *typed; enum approval_reply reply; } rows[] = {
		{ "yes\n", APPROVAL_REPLY_ALLOW }, { "y\n", APPROVAL_REPLY_ALLOW }, { "always\n", APPROVAL_REPLY_ALWAYS }, { "no\n", APPROVAL_REPLY_DENY },
		{ "\n", APPROVAL_REPLY_DENY }, { "yess\n", APPROVAL_REPLY_DENY }, { "Y E S\n", APPROVAL_REPLY_DENY }, { "\004", APPROVAL_REPLY_DENY },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cs_buf seen CS_BUF_AUTO = CS_BUF(1 << 16);
		enum approval_reply r = at_terminal(sample(), NULL, rows[i].typed, 5000, &seen);

		if (r != rows[i].reply)
			T_FAIL("row %zu: %d; seen: %s", i, (int)r, cs_buf_text(&seen));
		T_TRUE(strstr(cs_buf_text(&seen), "args.to: \"bob\"") != NULL);
	}
}

TEST(silence_is_a_denial_and_what_was_typed_before_is_no_answer)
{
	struct cs_buf seen CS_BUF_AUTO = CS_BUF(1 << 16), before CS_BUF_AUTO = CS_BUF(1 << 16);

	T_INT(at_terminal(sample(), NULL, NULL, 300, &seen), APPROVAL_REPLY_DENY);
	T_INT(at_terminal(sample(), "yes\nyes\n", NULL, 700, &before), APPROVAL_REPLY_DENY);
}

TEST(the_terminal_gets_no_escape_sequence_of_the_agents)
{
	struct cs_buf seen CS_BUF_AUTO = CS_BUF(1 << 16);
	struct approval *a = sample();

	a->effect = cs_strdup("{\"args\":{\"x\":\"\\u001b[2J\\u001b]0;gone\\u0007 and \\u202e\"}}");
	a->reason = cs_strdup("\x1b[8m");
	T_INT(at_terminal(a, NULL, "n\n", 5000, &seen), APPROVAL_REPLY_DENY);
	T_TRUE(!strchr(cs_buf_text(&seen), '\x1b') && !strchr(cs_buf_text(&seen), '\a'));
}

TEST(what_is_too_long_to_be_seen_is_not_answered_at_a_prompt)
{
	struct cs_buf seen CS_BUF_AUTO = CS_BUF(1 << 16), effect CS_BUF_AUTO = CS_BUF(1 << 16);
	struct approval *a = sample();

	cs_buf_str(&effect, "{\"args\":{\"x\":\"");
	for (int i = 0; i < APPROVAL_PROMPT_MAX; i++)
		cs_buf_char(&effect, 'a');
	cs_buf_str(&effect, "\",\"y\":\"rm -rf /\"}}");
	a->effect = cs_strdup(cs_buf_text(&effect));
	T_INT(at_terminal(a, NULL, "yes\n", 2000, &seen), APPROVAL_NO_REPLY);
}

TEST(without_a_terminal_nobody_replies)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)setsid();
		_exit((int)approval_prompt(sample(), 1000));
	}
	T_INT(waitpid(pid, &status, 0), pid);
	T_INT(WEXITSTATUS(status), APPROVAL_NO_REPLY);
}

static enum approval_reply by_program(const char *script, uint64_t ms)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };

	return approval_hook(argv, sample(), ms, NULL);
}

TEST(an_approvers_program_answers_by_its_status)
{
	const char *none[] = { "/nonexistent/approver", NULL }, *words[] = { "true; false", NULL };
	struct cs_err why = { 0 };
	long start = t_now_ms();

	T_INT(by_program("exit 0", 5000), APPROVAL_REPLY_ALLOW);
	T_INT(by_program("exit 1", 5000), APPROVAL_REPLY_DENY);
	T_INT(by_program("exit 2", 5000), APPROVAL_NO_REPLY);
	T_INT(by_program("kill -9 $$", 5000), APPROVAL_NO_REPLY);
	T_INT(by_program("grep -q '\"to\":\"bob\"'", 5000), APPROVAL_REPLY_ALLOW); /* it is told what it is about */
	T_INT(by_program("grep -q eve", 5000), APPROVAL_REPLY_DENY);
	T_INT(approval_hook(none, sample(), 5000, &why), APPROVAL_NO_REPLY);
	T_TRUE(strstr(why.msg, "/nonexistent/approver"));
	T_INT(approval_hook(words, sample(), 5000, NULL), APPROVAL_NO_REPLY); /* no shell reads it */
	T_TRUE(t_now_ms() - start < 5000);
	start = t_now_ms();
	T_INT(by_program("sleep 30 & sleep 30", 300), APPROVAL_NO_REPLY);
	T_TRUE(t_now_ms() - start < 3000);
}
