/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include <signal.h>
#include <sys/signalfd.h>

int session_open_signals(void)
{
	static const int mine[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2 };
	struct sigaction now;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
		/* What the caller has us ignore (nohup) stays ignored. */
		if (sigaction(mine[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&set, mine[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
