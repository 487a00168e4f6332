/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#ifdef CS_TEST_SWITCHES
#include "base/buf.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *where)
{
	const char *file = getenv("CAISSON_FAULT_LIST");
	char line[128];
	int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	(void)cs_write_all(fd, line, (size_t)snprintf(line, sizeof line, "%.100s\n", where));
	close(fd);
}

int cs_fault(const char *where)
{
	static unsigned long at, passed;
	static int fail;
	static int state; /* 0: not looked, 1: off, 2: on */

	if (!state) {
		const char *text = getenv("CAISSON_FAULT");
		char *end = NULL;

		at = text ? strtoul(text, &end, 10) : 0;
		fail = end && *end == ':' ? atoi(end + 1) : 0;
		state = at || getenv("CAISSON_FAULT_LIST") ? 2 : 1;
	}
	if (state == 1)
		return 0;
	note(where);
	if (++passed != at)
		return 0;
	if (fail)
		return fail;
	(void)kill(getpid(), SIGKILL);
	for (;;)
		pause();
}
#endif
