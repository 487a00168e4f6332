/* SPDX-License-Identifier: Apache-2.0 */
#include "base/say.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum say_level level = SAY_NORMAL;

void say_set_level(enum say_level l)
{
	level = l;
}

enum say_level say_get_level(void)
{
	return level;
}

bool say_colour(int fd)
{
	const char *term = getenv("TERM");
	const char *no = getenv("NO_COLOR");

	return !(no && *no) && term && strcmp(term, "dumb") && isatty(fd);
}

/* One write(2) per message, so that lines of several processes do not mix. */
static void put(const char *colour, const char *fmt, va_list ap)
{
	char text[2048], out[2304];
	bool paint = say_colour(STDERR_FILENO);
	int n;

	vsnprintf(text, sizeof text, fmt, ap);
	cs_blunt(text);
	n = snprintf(out, sizeof out, "%scaisson:%s %s\n", paint ? colour : "", paint ? "\033[0m" : "", text);
	if (n >= (int)sizeof out)
		n = (int)sizeof out - 1;
	(void)cs_write_all(STDERR_FILENO, out, (size_t)n); /* nowhere left to report a broken stderr */
}

void say_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put("\033[1;31m", fmt, ap);
	va_end(ap);
}

void say_note(const char *fmt, ...)
{
	va_list ap;

	if (level < SAY_NORMAL)
		return;
	va_start(ap, fmt);
	put("\033[1;33m", fmt, ap);
	va_end(ap);
}

void say_verbose(const char *fmt, ...)
{
	va_list ap;

	if (level < SAY_VERBOSE)
		return;
	va_start(ap, fmt);
	put("\033[2m", fmt, ap);
	va_end(ap);
}
