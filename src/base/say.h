/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - messages to the person: one line, standard error, "caisson: ...".
 *
 * Only executables say things, and only where an error stops travelling.
 * Text from outside must have been through cs_escape() before it comes here;
 * say() escapes control bytes once more as a second wall.
 */
#pragma once
#include <stdbool.h>

enum say_level { SAY_QUIET = -1, SAY_NORMAL = 0, SAY_VERBOSE = 1 };

void say_set_level(enum say_level level);
enum say_level say_get_level(void);
bool say_colour(int fd); /* a terminal, NO_COLOR unset, TERM not dumb */

void say_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));   /* always shown */
void say_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* not with --quiet */
void say_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with --verbose */
