/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify.c - caisson verify: the operator's checklist, run live. */
#include "cli/cmd_verify.h"

#include "base/compat.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHECKS_MAX = 64 };

struct report {
	const struct check *checks[CHECKS_MAX];
	struct verdict verdicts[CHECKS_MAX];
	size_t n, held;
	struct record *record;
	char path[4096];
};

static const char *const words[] = { "held", "BROKEN", "NOT JUDGED" };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- telling ---- */

static void show(const struct check *c, const struct verdict *d)
{
	bool colour = say_colour(1);
	const char *paint = !colour ? "" : d->state == VERDICT_HELD ? "\033[32m" : d->state == VERDICT_BROKEN ? "\033[1;31m" : "\033[33m";

	printf("%-43s %s%-10s%s %5llu ms  %s\n", c->guarantee, paint, words[d->state], colour ? "\033[0m" : "", (unsigned long long)d->ms, d->how);
	(void)fflush(stdout);
}

static int print_json(const struct report *r)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_json j;

	cs_json_begin(&j, &out, true);
	cs_json_array(&j, NULL);
	for (size_t i = 0; i < r->n; i++) {
		const struct verdict *d = &r->verdicts[i];

		cs_json_object(&j, NULL);
		cs_json_str(&j, "name", r->checks[i]->name);
		cs_json_str(&j, "guarantee", r->checks[i]->guarantee);
		cs_json_bool(&j, "held", d->state == VERDICT_HELD);
		cs_json_str(&j, "verdict", words[d->state]);
		cs_json_str(&j, "how", d->how);
		cs_json_u64(&j, "ms", d->ms);
		cs_json_array(&j, "runs");
		for (size_t k = 0; k < d->n_runs; k++)
			cs_json_str(&j, NULL, d->runs[k]);
		cs_json_end(&j, ']');
		cs_json_end(&j, '}');
	}
	cs_json_end(&j, ']');
	return cs_write_all(1, cs_buf_text(&out), out.len);
}

/* ---- the checks ---- */

static struct verdict *add(struct report *r, const struct check *c)
{
	struct verdict *d = &r->verdicts[r->n];

	*d = (struct verdict){ .state = VERDICT_UNJUDGED };
	r->checks[r->n++] = c;
	return d;
}

static void settle(const struct verify *v, struct report *r, struct verdict *d, uint64_t started)
{
	d->ms = now_ms() - started;
	r->held += d->state == VERDICT_HELD;
	record_check(r->record, r->checks[r->n - 1], d);
	if (!v->json)
		show(r->checks[r->n - 1], d);
	place_end_orphans();
}

static void run_checks(struct verify *v, struct report *r, const struct check *list)
{
	for (const struct check *c = list; c->name && r->n < CHECKS_MAX - 1 && !verify_interrupted(); c++) {
		uint64_t started = now_ms();
		struct verdict *d;

		if (v->quick && c->slow)
			continue;
		d = add(r, c);
		c->run(v, d);
		settle(v, r, d, started);
	}
}

static void run_record_check(struct verify *v, struct report *r)
{
	static const struct check c = { "record", "runs and refusals are recorded", NULL, false };
	uint64_t started = now_ms();
	struct verdict *d;

	if (verify_interrupted())
		return;
	d = add(r, &c);
	check_record(v, r->record, r->path, d);
	settle(v, r, d, started);
}

static int summary(const struct verify *v, const struct report *r)
{
	if (verify_interrupted()) {
		say_error("stopped; %zu of %zu guarantees were shown to hold", r->held, r->n);
		return 130;
	}
	if (v->json && print_json(r) < 0)
		return 125;
	if (!v->json && r->held == r->n)
		printf("\n%zu of %zu guarantees hold on this host, right now\n", r->held, r->n);
	else if (!v->json)
		printf("\n%zu of %zu guarantees hold on this host: %zu DO NOT\n", r->held, r->n, r->n - r->held);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		say_error("the table could not be written");
		return 125;
	}
	if (r->record)
		say_note("recorded in %s", r->path);
	return r->held == r->n ? 0 : 1;
}

static int verify(struct verify *v)
{
	static struct report r;
	struct cs_err err = { 0 };
	int code;

	verify_catch_signals();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* what outlives a sandbox comes to us, and is ended */
	r.record = record_open(r.path, sizeof r.path, &err);
	if (!r.record)
		say_error("%s", err.msg);
	if (place_make(v, &err) < 0) {
		place_remove(v);
		record_close(r.record);
		return cli_usage_error(&err);
	}
	run_checks(v, &r, verify_attacks);
	run_checks(v, &r, verify_limits);
	run_record_check(v, &r);
	place_remove(v);
	code = summary(v, &r);
	record_close(r.record);
	return code;
}

/* ---- the command ---- */

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct verify *v = arg;

	(void)value, (void)err;
	v->json |= !strcmp(opt->name, "json");
	v->quick |= !strcmp(opt->name, "quick");
	return 0;
}

/* The secret must be where a caller's secrets are: in the strings the kernel
 * gave us at exec, which setenv(3) would not change. */
static int enter_again(const char *self, int argc, char **argv)
{
	static char name[] = "caisson";
	CS_FREE char **again = cs_calloc((size_t)argc + 2, sizeof *again);

	again[0] = name;
	memcpy(again + 1, argv, (size_t)argc * sizeof *again);
	if (setenv(VERIFY_SECRET, "for nobody to see", 1) == 0)
		execv(self, again);
	say_error("cannot start '%s' again: %s", self, strerrordesc_np(errno));
	return 125;
}

static int find_self(struct verify *v, struct cs_err *err)
{
	struct stat st;

	v->self = realpath("/proc/self/exe", NULL);
	if (!v->self || stat(v->self, &st) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "find our own program file");
	if (geteuid() == 0 && (st.st_mode & 0005) != 0005)
		return cs_fail(err, CS_E_DENIED, 0, "'%s' cannot be run by a sandbox's user: chmod o+rx it", v->self);
	return 0;
}

#ifdef CS_TEST_SWITCHES
/* --off NAME,... first: leave protections out, to see that verify notices. */
static int take_off(struct verify *v, int *argc, char ***argv, struct cs_err *err)
{
	char *save = NULL;

	if (*argc < 3 || strcmp((*argv)[1], "--off"))
		return 0;
	CS_FREE char *copy = cs_strdup((*argv)[2]);

	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		int p = protection_by_name(w);

		if (p < 0)
			return cs_fail(err, CS_E_INVALID, 0, "--off: no protection '%s'", w);
		v->off |= PROT_BIT(p);
	}
	*argc -= 2;
	*argv += 2;
	return 0;
}
#endif

/* A closed standard output must not become the record. */
static void fill_stdio(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3)
		;
	if (fd >= 3)
		close(fd);
}

int cmd_verify(int argc, char **argv)
{
	static struct verify v;
	struct cs_err err = { 0 };
	int r;

	if (argc > 2 && !strcmp(argv[1], "--probe"))
		return verify_probe(argc - 2, argv + 2);
	fill_stdio();
	r = find_self(&v, &err);
	if (r == 0 && !getenv(VERIFY_SECRET))
		return enter_again(v.self, argc, argv);
#ifdef CS_TEST_SWITCHES
	if (r == 0)
		r = take_off(&v, &argc, &argv, &err);
#endif
	if (r == 0)
		r = cli_parse(cli_find("verify"), argc, argv, take, &v, &err);
	if (r >= 0 && r < argc)
		r = cs_fail(&err, CS_E_INVALID, 0, "`caisson verify` takes no argument '%s'", argv[r]);
	r = r < 0 ? cli_usage_error(&err) : verify(&v);
	free(v.self);
	return r;
}
