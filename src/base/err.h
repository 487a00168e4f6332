/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - the one error type of the project.
 *
 * Why a caller-owned fixed-size struct and not a heap object: errors are born
 * between clone() and execve(), where malloc() may deadlock, and they travel
 * to the parent through one shared page.
 *
 * Contract: a function that takes `struct cs_err *err` returns 0 or a positive
 * value on success and leaves *err alone, or returns a negative -enum cs_code
 * and has filled *err.  err may be NULL when the caller only wants the code.
 */
#pragma once
#include <limits.h>

/* code, machine name, HTTP status, CLI exit status: the only such table. */
#define CS_CODES(X)                             \
	X(INVALID, "invalid", 400, 125)         \
	X(DENIED, "denied", 403, 125)           \
	X(NOT_FOUND, "not_found", 404, 125)     \
	X(CONFLICT, "conflict", 409, 1)         \
	X(LIMIT, "limit", 429, 125)             \
	X(UNSUPPORTED, "unsupported", 501, 125) \
	X(NOEXEC, "cannot_execute", 422, 126)   \
	X(NOCMD, "command_not_found", 404, 127) \
	X(SYSTEM, "system", 500, 125)

enum cs_code {
	CS_OK = 0,
#define X(c, n, h, e) CS_E_##c,
	CS_CODES(X)
#undef X
	CS_CODE_MAX
};

struct cs_err {
	enum cs_code code;
	int sys;       /* errno at the failing call, 0 if none */
	char msg[744]; /* "outer: inner", never ends in a newline */
};
_Static_assert(sizeof(struct cs_err) < PIPE_BUF, "must fit one atomic pipe write");

int cs_fail(struct cs_err *err, enum cs_code code, int sys, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));
int cs_wrap(struct cs_err *err, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));
const char *cs_code_name(enum cs_code code);
int cs_code_http(enum cs_code code);
int cs_code_exit(enum cs_code code);
