/* SPDX-License-Identifier: Apache-2.0 */
/* escape.c - runs and verdicts of the attack tests; see escape.h. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

const char *escape_env(const char *name)
{
	const char *v = getenv(name);

	if (!v || !*v)
		T_FAIL("%s is not set: start the suite with tests/escape/run MODE", name);
	return v;
}

const char *mode_name(void)
{
	return escape_env("CS_MODE");
}

enum mode mode(void)
{
	const char *m = mode_name();

	return !strcmp(m, "root") ? MODE_ROOT : !strcmp(m, "userns") ? MODE_USERNS : MODE_USER;
}

/* ---- runs ---------------------------------------------------------------- */

enum { ARGV_MAX = 48 };

static void build(const struct place *p, const struct run *how, const char *argv[ARGV_MAX])
{
	int n = 0;

	argv[n++] = escape_env(how->off ? "CS_CAISSON_TEST" : "CS_CAISSON");
	argv[n++] = "run";
	argv[n++] = "--quiet";
	if (how->off && *how->off) {
		argv[n++] = "--off";
		argv[n++] = how->off;
	}
	for (const char *const *f = how->flags; f && *f && n < ARGV_MAX - 12; f++)
		argv[n++] = place_text(p, *f);
	argv[n++] = "--";
	for (const char *const *c = how->cmd; *c && n < ARGV_MAX - 1; c++)
		argv[n++] = place_text(p, *c);
	argv[n] = NULL;
}

void run_in(const struct place *p, struct t_result *r, const struct run *how)
{
	const char *argv[ARGV_MAX];
	struct t_run_opts o = how->opts;

	if (!o.cwd)
		o.cwd = p->work;
	build(p, how, argv);
	t_run_with(r, argv, &o);
}

static void live_exec(struct live *l, const char *const argv[], const char *cwd)
{
	int in[2], out[2];

	memset(l, 0, sizeof *l);
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		T_FAIL("pipe: %s", strerror(errno));
	fflush(stdout);
	l->pid = fork();
	if (l->pid < 0)
		T_FAIL("fork: %s", strerror(errno));
	if (l->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (cwd && chdir(cwd) < 0)
			_exit(127);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	l->in = in[1];
	l->out = out[0];
}

void live_start(const struct place *p, struct live *l, const struct run *how)
{
	const char *argv[ARGV_MAX];

	build(p, how, argv);
	live_exec(l, argv, p->work);
}

void live_start_bare(struct live *l, const char *const cmd[])
{
	live_exec(l, cmd, NULL);
}

void live_wait(struct live *l, const char *text, int ms)
{
	long end = t_now_ms() + ms;

	while (!strstr(l->seen, text)) {
		struct pollfd p = { l->out, POLLIN, 0 };
		long left = end - t_now_ms();
		ssize_t n;

		if (left <= 0)
			T_FAIL("no '%s' within %d ms, only '%s'", text, ms, l->seen);
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(l->out, l->seen + l->len, sizeof l->seen - 1 - l->len);
		if (n <= 0)
			T_FAIL("it ended without '%s': '%s'", text, l->seen);
		l->len += (size_t)n;
	}
}

void live_say(struct live *l, const char *text)
{
	(void)!write(l->in, text, strlen(text));
}

static bool ended(pid_t pid, int ms, int *st)
{
	long end = t_now_ms() + ms;

	for (;;) {
		if (waitpid(pid, st, WNOHANG) == pid)
			return true;
		if (t_now_ms() >= end)
			return false;
		usleep(1000);
	}
}

int live_end(struct live *l, int ms)
{
	int st;

	if (!ended(l->pid, ms, &st))
		return -1;
	for (;;) { /* what it still said */
		struct pollfd p = { l->out, POLLIN, 0 };
		ssize_t n;

		if (l->len >= sizeof l->seen - 1 || poll(&p, 1, 50) <= 0)
			break;
		n = read(l->out, l->seen + l->len, sizeof l->seen - 1 - l->len);
		if (n <= 0)
			break;
		l->len += (size_t)n;
	}
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

void live_kill(struct live *l)
{
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	close(l->in);
	close(l->out);
}

bool is_on(const struct place *p, const char *protection)
{
	static struct t_result r;
	static char text[16384];
	char want[64];

	run_in(p, &r, &(struct run){ .flags = WORDLIST("--json", "@O/is-on.json"), .cmd = WORDLIST("@P", "id") });
	get_file(place_text(p, "@O/is-on.json"), text, sizeof text);
	(void)unlink(place_text(p, "@O/is-on.json"));
	snprintf(want, sizeof want, "\"%s\": \"on\"", protection);
	return strstr(text, want) != NULL;
}

/* ---- verdicts ------------------------------------------------------------ */

static const char *answer_in(const char *text)
{
	static char line[1024];
	const char *best = "";

	for (const char *p = text; *p; ) {
		size_t n = strcspn(p, "\n");

		if (!strncmp(p, "OK", 2) || !strncmp(p, "NO ", 3) || !strncmp(p, "CANT", 4)) {
			snprintf(line, sizeof line, "%.*s", n > 1000 ? 1000 : (int)n, p);
			best = line;
		}
		p += n + (p[n] == '\n');
	}
	return best;
}

const char *answer(const struct t_result *r)
{
	return answer_in(r->out);
}

bool said(const struct t_result *r, const char *start)
{
	return !strncmp(answer(r), start, strlen(start));
}

static bool in_words(const char *words, const char *w)
{
	size_t n = strcspn(w, " ");

	for (const char *p = words; *p; p += strcspn(p, " "), p += strspn(p, " "))
		if (strcspn(p, " ") == n && !strncmp(p, w, n))
			return true;
	return false;
}

static void no_answer(const struct t_result *r, const char *what)
{
	T_FAIL("%s: no answer (exit status %d%s): '%.300s' '%.600s'", what, r->status, r->timed_out ? ", timed out" : "",
	       r->out, r->err);
}

void must_refuse(const struct t_result *r, const char *errnos, const char *what)
{
	const char *a = answer(r);

	if (!strncmp(a, "OK", 2))
		T_FAIL("%s: the attack worked: %s", what, a);
	if (strncmp(a, "NO ", 3))
		no_answer(r, what);
	if (!in_words(errnos, a + 3))
		T_FAIL("%s: refused, but not as it should be (%s): %s", what, errnos, a);
}

void must_work(const struct t_result *r, const char *what)
{
	const char *a = answer(r);

	if (!strncmp(a, "NO ", 3) || !strncmp(a, "CANT", 4))
		T_FAIL("%s: the control did not work: %s", what, a);
	if (strncmp(a, "OK", 2))
		no_answer(r, what);
}

static void row_words(const struct place *p, const struct row *row, bool control, bool ns, const char *cmd[WORDS + 4])
{
	const char *const *w = control && row->control[0] ? row->control : row->probe;
	int n = 0;

	cmd[n++] = p->probe;
	if (ns)
		cmd[n++] = "--ns";
	for (; *w && n < WORDS + 3; w++)
		cmd[n++] = place_text(p, *w);
	cmd[n] = NULL;
}

/* Where a limit is sampled, the sample and the kernel's own refusal race, and either may be first:
 * what ended the program is then taken from the result, not guessed from its silence. */
static bool ended_by(const struct t_result *r, const char *limit, const char *result)
{
	return limit && !*answer(r) && !strcmp(json_reason(result), limit);
}

static void attack_row(const void *arg)
{
	const struct row *row = arg;
	struct place *p = place_make();
	static struct t_result r;
	const char *cmd[WORDS + 4], *flags[WORDS + 3] = { NULL };
	char result[200];
	int n = 0;

	snprintf(result, sizeof result, "%s/result.json", p->top);
	for (; n < WORDS && row->flags[n]; n++)
		flags[n] = row->flags[n];
	if (row->ended) {
		flags[n++] = "--json";
		flags[n++] = result;
	}
	row_words(p, row, false, false, cmd);
	run_in(p, &r, &(struct run){ .off = row->with, .flags = flags, .cmd = cmd });
	if (!ended_by(&r, row->ended, result))
		must_refuse(&r, row->refused, row->probe[0]);
	if (row->flag & TOUCHES ? place_print(p, 0) != p->before_out : place_print(p, 1) != p->before)
		T_FAIL("the host's files changed, although the probe says: %s", answer(&r));
	if (row->flag & NO_SUID && place_has_suid(p))
		T_FAIL("there is a set-id file on the host now: %s", answer(&r));
}

/* A kernel or machine without the thing; the words it says so with. */
#define LACKING "ENOSYS EAFNOSUPPORT EPROTONOSUPPORT EOPNOTSUPP ESOCKTNOSUPPORT ENODEV"

static void control_row(const void *arg)
{
	const struct row *row = arg;
	struct place *p = place_make();
	static struct t_result r;
	const char *cmd[WORDS + 4];
	bool outside = row->how == BARE || row->how == BY_NS;

	if (row->flag & ROOT_ONLY && mode() != MODE_ROOT)
		T_ABSENT("outside too only the host's root may do this");
	if (row->cap && (mode() != MODE_ROOT || !have_cap(row->cap - 1)))
		T_ABSENT("needs capability %d over the host, which this caller has not", row->cap - 1);
	row_words(p, row, true, row->how == BY_NS, cmd);
	if (outside)
		t_run_with(&r, cmd, &(struct t_run_opts){ .cwd = p->work });
	else
		run_in(p, &r, &(struct run){ .off = row->how == BY_OFF ? row->off : row->with,
					     .flags = row->how == BY_FLAGS ? row->instead : row->flags, .cmd = cmd });
	if (said(&r, "NO ")) {
		static struct t_result again;
		const char *kernel = answer(&r) + 3;

		if (!outside) { /* who says no: the kernel, or we? */
			row_words(p, row, true, false, cmd);
			t_run_with(&again, cmd, &(struct t_run_opts){ .cwd = p->work });
			kernel = said(&again, "NO ") ? answer(&again) + 3 : "";
		}
		if (in_words(LACKING, kernel))
			T_ABSENT("this kernel has no such thing: %s", kernel);
		if (row->flag & MAY_LACK && *kernel)
			T_ABSENT("nothing to attack here, outside too: %s", kernel);
	}
	must_work(&r, row->probe[0]);
	if (row->flag & CHANGES && place_print(p, 1) == p->before)
		T_FAIL("it says %s, but the host's files are as before", answer(&r));
	if (row->flag & NO_SUID && !place_has_suid(p))
		T_FAIL("it says %s, but there is no set-id file", answer(&r));
}

void add_rows(const struct row *r, size_t n)
{
	char name[400];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "%s %s (%s): attack", r[i].id, r[i].name, r[i].class);
		t_add(name, attack_row, &r[i]);
		snprintf(name, sizeof name, "%s %s (%s): control", r[i].id, r[i].name, r[i].class);
		t_add(name, control_row, &r[i]);
	}
}

static void scene_attack(const void *arg) { ((const struct scene *)arg)->attack(); }
static void scene_control(const void *arg) { ((const struct scene *)arg)->control(); }

void add_scenes(const struct scene *s, size_t n)
{
	char name[400];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "%s %s (%s): attack", s[i].id, s[i].name, s[i].class);
		t_add(name, scene_attack, &s[i]);
		if (!s[i].control)
			continue;
		snprintf(name, sizeof name, "%s %s (%s): control", s[i].id, s[i].name, s[i].class);
		t_add(name, scene_control, &s[i]);
	}
}
