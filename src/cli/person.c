/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/person.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

static bool ask(int tty, const char *question)
{
	char line[64];
	ssize_t n;

	(void)tcflush(tty, TCIFLUSH); /* what was typed before the question is no answer to it */
	if (cs_write_all(tty, question, strlen(question)) < 0 || cs_write_all(tty, " [y/n] ", 7) < 0)
		return false;
	do
		n = read(tty, line, sizeof line - 1);
	while (n < 0 && errno == EINTR);
	return n > 0 && (line[0] == 'y' || line[0] == 'Y');
}

int person_confirm(const char *question, bool yes, const char *by, char *who, size_t size, struct cs_err *err)
{
	CS_FD int tty = -1;
	struct passwd *pw;
	char shown[96];

	if (by) {
		snprintf(who, size, "%s (program, uid %u)", cs_escape_to(shown, sizeof shown, by), (unsigned)getuid());
		return 0;
	}
	tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (tty < 0)
		return cs_fail(err, CS_E_DENIED, 0, "only a person at a terminal answers this; a program that answers for one says who it is with --by NAME");
	if (!yes && !ask(tty, question))
		return cs_fail(err, CS_E_DENIED, 0, "not confirmed: nothing was changed");
	pw = getpwuid(getuid());
	if (pw)
		snprintf(who, size, "%s (terminal)", pw->pw_name);
	else
		snprintf(who, size, "uid %u (terminal)", (unsigned)getuid());
	return 0;
}
