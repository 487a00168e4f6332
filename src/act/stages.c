/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - a pipeline without a shell, inside a sandbox.
 *
 * `caisson __stages 2 sort names 2 uniq -c`: how many words, then the words, for each. */
#include "act/act.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Becomes a stage: reads from in, writes to out. */
static _Noreturn void become(char **words, int in, int out)
{
	if ((in != 0 && dup2(in, 0) < 0) || (out != 1 && dup2(out, 1) < 0))
		_exit(125);
	execvp(words[0], words);
	fprintf(stderr, "%s: %s\n", words[0], errno == ENOENT ? "command not found" : strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int act_stages_main(int argc, char **argv)
{
	int in = 0, status = 0, left = 0;
	pid_t last = -1, pid;

	(void)signal(SIGPIPE, SIG_DFL);
	for (int i = 2; i < argc;) {
		int n = atoi(argv[i]), pair[2] = { -1, 1 };
		bool more = i + 1 + n < argc;
		char **words = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *words);

		if (!words || n < 1 || i + 1 + n > argc || (more && pipe(pair) < 0)) {
			free(words);
			return 125;
		}
		memcpy(words, argv + i + 1, (size_t)n * sizeof *words);
		last = fork();
		if (last == 0) {
			if (more)
				close(pair[0]);
			become(words, in, more ? pair[1] : 1);
		}
		free(words);
		if (last < 0)
			return 125;
		left++;
		if (in != 0)
			close(in);
		if (more)
			close(pair[1]);
		in = pair[0];
		i += 1 + n;
	}
	for (int one; left > 0 && (pid = wait(&one)) > 0; left--)
		if (pid == last)
			status = one;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
