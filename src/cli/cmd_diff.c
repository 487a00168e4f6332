/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - caisson diff: what a transaction would change, or has changed. */
#include "cli/cmd_diff.h"

#include "base/cleanup.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/change.h"
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_REFUSED = 125, FLUSH_AT = 64 << 10, OUT_MAX = 600 << 20 };

struct opts {
	enum diff_form form;
	unsigned forms;             /* how many were asked for */
	enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } colour;
	bool no_pager, no_renames;
	struct cs_strv words;       /* paths as given */
};

/* ---- output ---- */

static void write_out(struct diff *d)
{
	int r = d->out.over ? -EFBIG : d->closed ? 0 : cs_write_all(STDOUT_FILENO, cs_buf_text(&d->out), d->out.len);

	d->out.len = 0;
	if (r == 0)
		return;
	d->closed = true;
	if (r != -EPIPE) { /* a reader that has seen enough is no error */
		say_error("cannot write to standard output: %s", strerror(-r));
		d->failed = true;
	}
}

void diff_flush(struct diff *d)
{
	if (d->out.len >= FLUSH_AT || d->out.over)
		write_out(d);
}

/* ---- the pager ---- */

/* What a missing pager would have done. */
static void copy_input(void)
{
	char buf[1 << 16];
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && cs_write_all(STDOUT_FILENO, buf, (size_t)n) < 0)
			break;
}

static void run_pager(const char *pager, const int in[2])
{
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(in[0], STDIN_FILENO) < 0)
		_exit(127);
	close(in[0]);
	close(in[1]);
	(void)setenv("LESS", "FRX", /* overwrite= */ 0);
	if (pager)
		execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	else
		execlp("less", "less", "-FRX", (char *)NULL);
	copy_input();
	_exit(0);
}

/* Standard output goes through it from now on. Returns its process, or -1 without one. */
static pid_t start_pager(void)
{
	const char *pager = getenv("PAGER");
	int p[2];
	pid_t pid;

	if (pager && (!*pager || !strcmp(pager, "cat")))
		return -1;
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run_pager(pager, p);
	if (pid > 0) {
		(void)dup2(p[1], STDOUT_FILENO); /* both are open */
		signal(SIGINT, SIG_IGN);         /* the pager's, while it runs */
		signal(SIGQUIT, SIG_IGN);
	}
	close(p[0]);
	close(p[1]);
	return pid;
}

static void wait_for_pager(pid_t pid)
{
	close(STDOUT_FILENO);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- which changes ---- */

static bool beneath(const char *path, const char *top)
{
	size_t n = strlen(top);

	return n == 0 || (!strncmp(path, top, n) && (!path[n] || path[n] == '/'));
}

bool diff_shows(const struct diff *d, const struct txn_change *c)
{
	/* A directory's times change with every name in it. */
	if (c->kind == TXN_CHANGED && S_ISDIR(c->new.mode) && !(c->differs & ~(unsigned)TXN_TIMES) && !c->hold && !c->conflict)
		return false;
	for (size_t i = 0; i < d->paths.n; i++)
		if (beneath(c->path, d->paths.v[i]) || (c->from && beneath(c->from, d->paths.v[i])))
			return true;
	return d->paths.n == 0;
}

static void note_unchanged(const struct diff *d)
{
	for (size_t i = 0; i < d->changes.n; i++)
		if (diff_shows(d, &d->changes.v[i]))
			return;
	if (txn_state(d->t) == TXN_COMMITTED)
		say_note("%s is committed: what it changed is in the workspace", txn_about(d->t)->id);
	else
		say_note("%s changes nothing%s", txn_about(d->t)->id, d->paths.n ? " there" : "");
}

/* ---- the command ---- */

static int take_option(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	static const struct {
		const char *name;
		enum diff_form form;
	} forms[] = { { "stat", DIFF_STAT }, { "name-status", DIFF_NAMES }, { "json", DIFF_JSON } };
	struct opts *o = arg;
	char shown[64];

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (!strcmp(opt->name, forms[i].name)) {
			o->forms += !o->forms || o->form != forms[i].form;
			o->form = forms[i].form;
		}
	o->no_pager |= !strcmp(opt->name, "no-pager");
	o->no_renames |= !strcmp(opt->name, "no-renames");
	if (o->forms > 1)
		return cs_fail(err, CS_E_INVALID, 0, "--stat, --name-status and --json: one of them");
	if (strcmp(opt->name, "color"))
		return 0;
	if (!strcmp(value, "auto"))
		o->colour = COLOUR_AUTO;
	else if (!strcmp(value, "always"))
		o->colour = COLOUR_ALWAYS;
	else if (!strcmp(value, "never"))
		o->colour = COLOUR_NEVER;
	else
		return cs_fail(err, CS_E_INVALID, 0, "--color %s: it is auto, always or never", cs_escape_to(shown, sizeof shown, value));
	return 0;
}

static void set_up_output(struct diff *d, const struct opts *o)
{
	bool terminal = isatty(STDOUT_FILENO);
	const char *cols = getenv("COLUMNS");
	struct winsize w;
	uint64_t n;

	d->colour = o->form != DIFF_JSON && (o->colour == COLOUR_ALWAYS || (o->colour == COLOUR_AUTO && say_colour(STDOUT_FILENO)));
	d->escape = terminal || d->colour; /* who asks for colour is a person */
	d->width = 80;
	if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
		d->width = w.ws_col;
	else if (cols && cs_parse_u64(cols, &n) == 0 && n > 0 && n < 10000)
		d->width = (unsigned)n;
}

static int look(struct diff *d, bool renames, struct cs_err *err)
{
	int r = txn_scan(d->t, &d->changes, err);

	if (r < 0)
		return r;
	if (renames)
		txn_find_renames(d->t, &d->changes);
	diff_expand(d);
	return 0;
}

static int prepare(struct diff *d, struct opts *o, struct cs_err *err)
{
	CS_FREE char *id = change_take_id(&o->words);
	int r = txn_find(id, ".", &d->t, err);

	if (r >= 0)
		r = change_paths(d->t, &o->words, &d->paths, err);
	return r < 0 ? r : look(d, !o->no_renames, err);
}

static void show(struct diff *d, bool paged)
{
	static void (*const forms[])(struct diff *) = {
		[DIFF_PATCH] = diff_patch, [DIFF_STAT] = diff_stat, [DIFF_NAMES] = diff_names, [DIFF_JSON] = diff_json,
	};
	pid_t pager = -1;

	signal(SIGPIPE, SIG_IGN);
	if ((d->escape || d->paths.n) && d->form != DIFF_JSON)
		note_unchanged(d);
	if (paged)
		pager = start_pager();
	forms[d->form](d);
	write_out(d);
	txn_close(d->t); /* whoever reads may take their time; others need not wait */
	d->t = NULL;
	if (pager > 0)
		wait_for_pager(pager);
}

int cmd_diff(int argc, char **argv)
{
	struct diff d = { .out = CS_BUF(OUT_MAX) };
	struct opts o = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("diff"), argc, argv, take_option, &o, &o.words, &err);

	d.form = o.form;
	if (r >= 0) {
		change_recover(NULL);
		r = prepare(&d, &o, &err);
	}
	if (r >= 0) {
		set_up_output(&d, &o);
		show(&d, isatty(STDOUT_FILENO) && !o.no_pager && o.form != DIFF_JSON);
	}
	if (d.t)
		txn_close(d.t);
	txn_changes_done(&d.changes);
	cs_strv_done(&d.paths);
	cs_strv_done(&o.words);
	cs_buf_done(&d.out);
	return r < 0 ? cli_usage_error(&err) : d.failed ? EXIT_REFUSED : 0;
}

/* In a process of its own: the pager takes over standard output, and the question comes after it. */
void change_show_diff(struct txn *t)
{
	struct diff d = { .out = CS_BUF(OUT_MAX), .t = t };
	struct opts o = { 0 };
	struct cs_err err = { 0 };
	pid_t pid = fork();

	if (pid < 0) {
		say_error("cannot show the changes: %s", strerror(errno));
	} else if (pid > 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	} else {
		if (look(&d, true, &err) < 0) {
			say_error("%s", err.msg);
			_exit(EXIT_REFUSED);
		}
		set_up_output(&d, &o);
		show(&d, isatty(STDOUT_FILENO));
		_exit(0);
	}
}
