/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/compat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int http, exit;
} codes[CS_CODE_MAX] = {
	[CS_OK] = { "ok", 200, 0 },
#define X(c, n, h, e) [CS_E_##c] = { n, h, e },
	CS_CODES(X)
#undef X
};

/* strerrordesc_np() and not strerror(): no locale, no allocation, no lock. */
static void append_errno(struct cs_err *err, int sys)
{
	size_t used = strlen(err->msg);
	const char *desc = strerrordesc_np(sys);

	snprintf(err->msg + used, sizeof err->msg - used, ": %s", desc ? desc : "unknown error");
}

int cs_fail(struct cs_err *err, enum cs_code code, int sys, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -(int)code;
	err->code = code;
	err->sys = sys;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	if (sys)
		append_errno(err, sys);
	return -(int)code;
}

int cs_wrap(struct cs_err *err, int r, const char *fmt, ...)
{
	char outer[sizeof err->msg];
	va_list ap;
	size_t n;

	if (!err)
		return r;
	va_start(ap, fmt);
	vsnprintf(outer, sizeof outer, fmt, ap);
	va_end(ap);
	n = strlen(outer);
	if (n + 2 < sizeof outer) {
		memcpy(outer + n, ": ", 3);
		n += 2;
		/* The outer words say where; if room runs out it is the inner text that is cut. */
		snprintf(outer + n, sizeof outer - n, "%.*s", (int)(sizeof outer - n - 1), err->msg);
	}
	memcpy(err->msg, outer, sizeof err->msg);
	return r;
}

const char *cs_code_name(enum cs_code code)
{
	return code < CS_CODE_MAX ? codes[code].name : "unknown";
}

int cs_code_http(enum cs_code code)
{
	return code < CS_CODE_MAX ? codes[code].http : 500;
}

int cs_code_exit(enum cs_code code)
{
	return code < CS_CODE_MAX ? codes[code].exit : 125;
}
