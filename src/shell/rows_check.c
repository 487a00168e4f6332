/* SPDX-License-Identifier: Apache-2.0 */
/* rows_check.c - are these rows?  For who keeps them and does not apply them: profiles. */
#include "shell/table_internal.h"

#include <stdio.h>
#include <string.h>

int sh_rows_check(const char *rows, size_t len, struct cs_err *err)
{
	static const char origin[] = "rows";
	struct cs_err inner = { 0 };
	struct sh_rows b;
	const char *msg = inner.msg;
	int r;

	sh_rows_init(&b);
	r = sh_rows_add(&b, rows, len, origin, &inner);
	sh_rows_done(&b);
	if (r >= 0)
		return 0;
	/* Where it stands in the file is the caller's to say. */
	if (!strncmp(msg, origin, sizeof origin - 1) && msg[sizeof origin - 1] == ':') {
		msg += sizeof origin;
		msg += strspn(msg, "0123456789");
		msg += strspn(msg, ": ");
	}
	return cs_fail(err, inner.code, 0, "%s", msg);
}
