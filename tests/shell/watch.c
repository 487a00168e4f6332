/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - preloaded into what test_sound.py runs: every program that is started and every connection is a line in
 * $WATCH_LOG.  Not seen: programs without the dynamic linker, and system calls that are made without libc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char log_path[256];

__attribute__((constructor)) static void begin(void)
{
	const char *p = getenv("WATCH_LOG");

	if (p)
		snprintf(log_path, sizeof log_path, "%s", p);
}

static void note(const char *what, const char *text)
{
	char line[1024];
	int saved = errno, n = snprintf(line, sizeof line, "%s %s\n", what, text ? text : "");
	int fd = log_path[0] ? (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CLOEXEC, 0) : -1;

	if (n > (int)sizeof line - 1)
		n = (int)sizeof line - 1;
	if (fd >= 0) {
		(void)!write(fd, line, (size_t)n);
		close(fd);
	}
	errno = saved;
}

/* Only what is there is started: a search along PATH tries many names. */
static void note_exec(const char *path)
{
	if (path && !access(path, X_OK))
		note("exec", path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int execve(const char *path, char *const argv[], char *const envp[])
{
	note_exec(path);
	return REAL(execve)(path, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	note_exec(path);
	return REAL(execv)(path, argv);
}

int execvp(const char *file, char *const argv[])
{
	note("exec", file);
	return REAL(execvp)(file, argv);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	note("exec", file);
	return REAL(execvpe)(file, argv, envp);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	note("exec", "(a descriptor)");
	return REAL(fexecve)(fd, argv, envp);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *t, char *const argv[], char *const envp[])
{
	note_exec(path);
	return REAL(posix_spawn)(pid, path, a, t, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *t, char *const argv[], char *const envp[])
{
	note("exec", file);
	return REAL(posix_spawnp)(pid, file, a, t, argv, envp);
}

int system(const char *command)
{
	note("exec", "sh");
	return REAL(system)(command);
}

FILE *popen(const char *command, const char *mode)
{
	note("exec", "sh");
	return REAL(popen)(command, mode);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	if (to && (to->sa_family == AF_INET || to->sa_family == AF_INET6))
		note("connect", "");
	return REAL(connect)(fd, to, len);
}

ssize_t sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
	if (to && (to->sa_family == AF_INET || to->sa_family == AF_INET6))
		note("connect", "");
	return REAL(sendto)(fd, data, n, flags, to, len);
}
