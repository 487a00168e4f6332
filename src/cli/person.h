/* SPDX-License-Identifier: Apache-2.0 */
/* person.h - answers that only a person may give, or a program that speaks for one.
 *
 * A person is who has a terminal (/dev/tty).  A program that answers for one says who it is
 * (--by NAME) and is recorded as that.  An agent's commands have neither a terminal nor, in a
 * sandbox, the store; one that runs outside as the same user is not held by this, see docs/approvals.md.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Fills who: "alice (terminal)", or "NAME (program, uid 1000)".  At a terminal the question is asked first, unless
 * `yes`.  CS_E_DENIED: nobody is there, or the answer was no. */
int person_confirm(const char *question, bool yes, const char *by, char *who, size_t size, struct cs_err *err);
