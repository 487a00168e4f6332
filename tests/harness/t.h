/* SPDX-License-Identifier: Apache-2.0 */
/* t.h - test harness.  Every test runs in its own forked child, because a
 * namespace, a seccomp filter or a Landlock domain can be entered but not left.
 *
 * Output      TAP, then `N passed, M failed` (`, K skipped`).  `./test_x WORD`
 *             runs the tests whose name holds WORD; `--list` prints the names.
 * Time        60 s per test (CS_TEST_SECONDS), enforced by the runner.
 * Leftovers   a test is its own process group and the runner is its subreaper:
 *             whatever a test leaves running is killed, by id, when it ends.
 * Skips       T_SKIP says that something a test needs is missing; with
 *             CS_TESTS_MUST_RUN=1 (CI) that is a failure, because a suite that
 *             skips everything must not look green.  T_ABSENT says that the
 *             running kernel was asked and has no such feature at all: there
 *             is nothing to test, in CI neither.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct t_case { const char *name; void (*fn)(void); };
struct t_table { void (*expand)(void); };

#define TEST(id)                                                                                  \
	static void id(void);                                                                     \
	static const struct t_case t_##id                                                         \
		__attribute__((used, section("t_cases"), aligned(sizeof(void *)))) = { #id, id }; \
	static void id(void)

/* Tests made from rows: the body calls t_add() once for each. */
#define TEST_TABLE(id)                                                                            \
	static void id(void);                                                                     \
	static const struct t_table t_##id                                                        \
		__attribute__((used, section("t_tables"), aligned(sizeof(void *)))) = { id };     \
	static void id(void)

/* name is copied. */
void t_add(const char *name, void (*fn)(const void *arg), const void *arg);

enum { T_EXIT_FAIL = 1, T_EXIT_SKIP = 77, T_EXIT_ABSENT = 78 };

#define T_FAIL(...) (printf("# %s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), \
		     putchar('\n'), fflush(stdout), _exit(T_EXIT_FAIL))
#define T_SKIP(...)   t_leave(T_EXIT_SKIP, __VA_ARGS__)
#define T_ABSENT(...) t_leave(T_EXIT_ABSENT, __VA_ARGS__)
#define T_TRUE(e)   ((e) ? (void)0 : T_FAIL("not true: %s", #e))
#define T_INT(a, b) do { long a_ = (long)(a), b_ = (long)(b);                \
		if (a_ != b_) T_FAIL("%s is %ld, want %ld", #a, a_, b_); } while (0)
#define T_STR(a, b) do { const char *a_ = (a), *b_ = (b);                    \
		if (strcmp(a_, b_)) T_FAIL("%s is \"%s\", want \"%s\"", #a, a_, b_); } while (0)

void t_leave(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
/* A `# ...` line beside the result; newlines and control bytes are shown as `?`. */
void t_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int t_count_fds(void);
/* A fresh directory (mode 0755) below $TMPDIR or /tmp, removed when the test ends. */
const char *t_tmpdir(void);

enum { T_OUTPUT_MAX = 64 * 1024 };

struct t_result {
	int status;      /* exit status, or 128+n for a signal; 127: could not be executed */
	int signal;      /* 0 when it exited */
	bool timed_out;  /* killed by t_run */
	bool held;       /* a process it left behind still held its output open */
	long ms;         /* from start to the end of the program */
	size_t out_len, err_len;    /* what was kept; always NUL-terminated */
	size_t out_total, err_total;
	char out[T_OUTPUT_MAX + 1], err[T_OUTPUT_MAX + 1];
};

struct t_run_opts {
	const char *cwd;
	const char *const *env;   /* NULL: ours */
	const char *input;        /* NULL: /dev/null */
	int timeout_ms;           /* 0: 30 s */
	void (*prepare)(void *);  /* in the child, before exec */
	void *arg;
	void (*started)(pid_t, void *); /* in the parent, after the fork */
};

void t_run(struct t_result *r, const char *const argv[]);
void t_run_with(struct t_result *r, const char *const argv[], const struct t_run_opts *o);

long t_now_ms(void); /* CLOCK_MONOTONIC */
