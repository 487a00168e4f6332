/* SPDX-License-Identifier: Apache-2.0 */
/* probe_res.c - using up what there is, and not going away.  Every amount is an
 * argument, so that a control can ask for one that is allowed. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MB = 1 << 20 };

static int do_forks(int argc, char **argv)
{
	int want = atoi(argv[1]), n;
	pid_t *kid = calloc((size_t)want + 1, sizeof *kid);
	int err = 0;

	(void)argc;
	for (n = 0; n < want; n++) {
		kid[n] = fork();
		if (kid[n] < 0) {
			err = errno;
			break;
		}
		if (kid[n] == 0) {
			pause();
			_exit(0);
		}
	}
	for (int i = 0; i < n; i++)
		kill(kid[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(kid[i], NULL, 0);
	return n < want ? p_no(err, "%d of %d processes", n, want) : p_ok("%d processes", n);
}

/* Does not end by itself. */
static int do_bomb(int argc, char **argv)
{
	(void)argc; (void)argv;
	puts("READY");
	fflush(stdout);
	for (;;)
		if (fork() < 0)
			sched_yield();
	return P_WORKED;
}

static void *spin(void *arg)
{
	volatile unsigned long n = 0;

	(void)arg;
	for (;;)
		n++;
	return NULL;
}

static void *rest(void *arg)
{
	pause();
	return arg;
}

static int do_threads(int argc, char **argv)
{
	int want = atoi(argv[1]), n, err = 0;
	pthread_attr_t a;

	(void)argc;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (n = 0; n < want; n++) {
		pthread_t t;

		err = pthread_create(&t, &a, rest, NULL);
		if (err)
			break;
	}
	return n < want ? p_no(err, "%d of %d threads", n, want) : p_ok("%d threads", n);
}

static int touch(char *p, size_t len)
{
	if (p == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < len; i += 4096)
		p[i] = 1;
	return 0;
}

/* Memory in one of its disguises.  The 1 MiB steps let a sampler see it grow. */
static int do_eat(int argc, char **argv)
{
	const char *kind = argv[1];
	long want = atol(argv[2]);
	int fd = -1, id = -1;
	char *seg = NULL;

	(void)argc;
	if (!strcmp(kind, "memfd"))
		fd = memfd_create("probe", 0);
	else if (!strcmp(kind, "shm"))
		fd = open("/dev/shm/probe", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	else if (!strcmp(kind, "sysv")) {
		id = shmget(IPC_PRIVATE, (size_t)want * MB, IPC_CREAT | 0600);
		seg = id >= 0 ? shmat(id, NULL, 0) : MAP_FAILED;
		if (id >= 0)
			shmctl(id, IPC_RMID, NULL);
		if (seg == MAP_FAILED)
			return p_no(errno, "shmget");
	}
	if ((!strcmp(kind, "memfd") || !strcmp(kind, "shm")) && fd < 0)
		return p_no(errno, "%s", kind);
	for (long m = 0; m < want; m++) {
		int r;

		if (fd >= 0) {
			static char block[MB];

			memset(block, 1, sizeof block);
			r = write(fd, block, sizeof block) == (ssize_t)sizeof block ? 0 : -1;
		} else if (seg) {
			r = touch(seg + m * MB, MB);
		} else {
			int shared = !strcmp(kind, "shared");

			r = touch(mmap(NULL, MB, PROT_READ | PROT_WRITE,
				       (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0), MB);
		}
		if (r < 0)
			return p_no(errno ? errno : ENOMEM, "%ld of %ld MiB of %s", m, want, kind);
		usleep(200);
	}
	/* It must stay in use long enough for a sampler to notice. */
	usleep(100000);
	return p_ok("%ld MiB of %s", want, kind);
}

/* Memory that hides in the kernel: pipe and socket buffers. */
static int do_eat_buffers(int argc, char **argv)
{
	long want = atol(argv[1]) * MB, have = 0;
	static char block[65536];

	(void)argc;
	while (have < want) {
		int fd[2];
		long before = have;
		ssize_t n;

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) < 0)
			return p_no(errno, "%ld of %ld bytes in socket buffers", have, want);
		while ((n = write(fd[0], block, sizeof block)) > 0)
			have += n;
		if (have == before)
			return p_no(errno, "%ld of %ld bytes in socket buffers", have, want);
	}
	usleep(100000);
	return p_ok("%ld bytes in socket buffers", have);
}

static int do_fill(int argc, char **argv)
{
	static char block[MB];
	long want = atol(argv[2]), n;
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	(void)argc;
	if (fd < 0)
		return p_no(errno, "create %s", argv[1]);
	memset(block, 'x', sizeof block);
	for (n = 0; n < want; n++) {
		ssize_t w = write(fd, block, sizeof block);

		if (w != (ssize_t)sizeof block)
			return p_no(w < 0 ? errno : ENOSPC, "%ld of %ld MiB", n, want);
		usleep(300);
	}
	usleep(100000);
	return p_ok("%ld MiB written", want);
}

static int do_inodes(int argc, char **argv)
{
	char path[4096];
	long want = atol(argv[2]), n;

	(void)argc;
	for (n = 0; n < want; n++) {
		int fd;

		snprintf(path, sizeof path, "%s/f%ld", argv[1], n);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return p_no(errno, "%ld of %ld files", n, want);
		close(fd);
		if (n % 500 == 0)
			usleep(1000);
	}
	usleep(100000);
	return p_ok("%ld files", want);
}

/* A file that claims to be huge, then wants the blocks. */
static int do_sparse(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	off_t size = (off_t)1 << 40;

	(void)argc;
	if (fd < 0)
		return p_no(errno, "create");
	if (!strcmp(argv[2], "hole"))
		return p_result(ftruncate(fd, size), "ftruncate 1 TiB");
	if (fallocate(fd, 0, 0, (off_t)atol(argv[2]) * MB) < 0)
		return p_no(errno, "fallocate %s MiB", argv[2]);
	usleep(100000);
	return p_ok("fallocate %s MiB", argv[2]);
}

static int do_deep(int argc, char **argv)
{
	long want = atol(argv[2]), n;

	(void)argc;
	if (chdir(argv[1]) < 0)
		return p_no(errno, "chdir");
	for (n = 0; n < want; n++)
		if (mkdir("d", 0755) < 0 || chdir("d") < 0)
			return p_no(errno, "%ld levels", n);
	return p_ok("%ld levels", want);
}

static int do_fds_many(int argc, char **argv)
{
	int want = atoi(argv[1]), n;

	(void)argc;
	for (n = 0; n < want; n++)
		if (open("/dev/null", O_RDONLY) < 0)
			return p_no(errno, "%d of %d descriptors", n, want);
	return p_ok("%d descriptors", want);
}

static int do_flood(int argc, char **argv)
{
	static char block[65536];
	long want = atol(argv[1]) * MB, n = 0;
	int fd = argc > 2 ? atoi(argv[2]) : 1;

	memset(block, 'y', sizeof block);
	block[sizeof block - 1] = '\n';
	while (n < want) {
		ssize_t w = write(fd, block, sizeof block);

		if (w <= 0)
			return p_no(errno, "after %ld bytes", n);
		n += w;
	}
	fprintf(stderr, "\nflooded %ld\n", n);
	return P_WORKED;
}

static int do_spin(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;

	puts("READY");
	fflush(stdout);
	for (int i = 1; i < threads; i++) {
		pthread_t t;

		(void)pthread_create(&t, NULL, spin, NULL);
	}
	if (atoi(argv[1]) > 0) {
		struct timespec end, now;
		volatile unsigned long k = 0;

		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_sec += atoi(argv[1]);
		do {
			for (int i = 0; i < 100000; i++)
				k++;
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
		return p_ok("spun %s s", argv[1]);
	}
	spin(NULL);
	return P_WORKED;
}

static void hold(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || flock(fd, LOCK_SH) < 0) {
		printf("CANT lock %s: %s\n", path, strerror(errno));
		fflush(stdout);
		_exit(P_UNCLEAR);
	}
	/* Kept open until the process ends: that is what the test looks at. */
}

static void sleep_for(int seconds)
{
	struct timespec t = { seconds, 0 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* sleep SECONDS [LOCK] */
static int do_sleep(int argc, char **argv)
{
	if (argc > 2)
		hold(argv[2]);
	puts("READY");
	fflush(stdout);
	sleep_for(atoi(argv[1]));
	return p_ok("slept %s s", argv[1]);
}

static int do_ignore(int argc, char **argv)
{
	for (int s = 1; s < 65; s++)
		signal(s, SIG_IGN);
	return do_sleep(argc, argv);
}

static int do_stop(int argc, char **argv)
{
	if (argc > 1)
		hold(argv[1]);
	puts("READY");
	fflush(stdout);
	raise(SIGSTOP);
	return p_ok("went on");
}

/* Away from parent, session, group, signals and death signal; keeps 1 and 2 open. */
static void detach(const char *lock, int seconds)
{
	setsid();
	if (fork() > 0)
		_exit(0);
	prctl(PR_SET_PDEATHSIG, 0);
	for (int s = 1; s < 65; s++)
		signal(s, SIG_IGN);
	hold(lock);
	sleep_for(seconds);
	_exit(0);
}

static int do_daemon(int argc, char **argv)
{
	pid_t pid = fork();

	(void)argc;
	if (pid < 0)
		return p_no(errno, "fork");
	if (pid == 0)
		detach(argv[1], atoi(argv[2]));
	waitpid(pid, NULL, 0);
	/* Until it holds its lock. */
	for (int i = 0; i < 200; i++) {
		int fd = open(argv[1], O_RDWR | O_CLOEXEC);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
			return p_ok("daemon runs");
		if (fd >= 0)
			close(fd);
		usleep(5000);
	}
	return p_cant("the daemon has not got its lock");
}

/* A family that holds the lock in many ways and then waits. */
static int do_brood(int argc, char **argv)
{
	(void)argc;
	if (fork() == 0)
		detach(argv[1], 60);
	for (int i = 0; i < 5; i++)
		if (fork() == 0) {
			hold(argv[1]);
			if (i == 1)
				raise(SIGSTOP);
			sleep_for(60);
			_exit(0);
		}
	usleep(50000);
	return do_sleep(3, (char *[]){ argv[0], (char *)(uintptr_t)"60", argv[1], NULL });
}

/* Children that end while nobody waits for them; `orphans`: while their parent is gone too. */
static int do_zombies(int argc, char **argv)
{
	int want = atoi(argv[1]), n, err = 0;

	(void)argc;
	for (n = 0; n < want; n++) {
		pid_t pid = fork();

		if (pid < 0) {
			err = errno;
			break;
		}
		if (pid == 0)
			_exit(0);
	}
	return n < want ? p_no(err, "%d of %d", n, want) : p_ok("%d zombies", n);
}

static int do_orphans(int argc, char **argv)
{
	int want = atoi(argv[1]);

	(void)argc;
	for (int n = 0; n < want; n++) {
		pid_t pid = fork();

		if (pid < 0)
			return p_no(errno, "%d of %d orphans", n, want);
		if (pid == 0) {
			if (fork() == 0)
				_exit(0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return p_ok("%d orphans came and went", want);
}

static int do_exec_loop(int argc, char **argv)
{
	(void)argc; (void)argv;
	execl("/proc/self/exe", "probe", "exec-loop", NULL);
	return p_no(errno, "exec");
}

static int do_suicide(int argc, char **argv)
{
	(void)argc;
	signal(atoi(argv[1]), SIG_DFL);
	kill(getpid(), atoi(argv[1]));
	usleep(100000);
	return p_ok("survived");
}

/* A dump of us must not be written: argv[1] is where it would go. */
static int do_core(int argc, char **argv)
{
	(void)argc;
	if (chdir(argv[1]) < 0)
		return p_cant("chdir: %s", strerror(errno));
	abort();
}

static int do_core_limit(int argc, char **argv)
{
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };

	(void)argc; (void)argv;
	return p_result(setrlimit(RLIMIT_CORE, &l), "raise RLIMIT_CORE");
}

static int do_raise_limit(int argc, char **argv)
{
	static const struct { const char *name; int which; } all[] = {
		{ "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "memlock", RLIMIT_MEMLOCK },
		{ "rtprio", RLIMIT_RTPRIO }, { "nice", RLIMIT_NICE }, { "msgqueue", RLIMIT_MSGQUEUE },
	};
	struct rlimit l;

	(void)argc;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].name, argv[1])) {
			if (getrlimit(all[i].which, &l) < 0)
				return p_cant("getrlimit");
			if (l.rlim_max == RLIM_INFINITY)
				return p_ok("%s is unlimited already", argv[1]);
			l.rlim_max = l.rlim_max + 1;
			return p_result(setrlimit(all[i].which, &l), argv[1]);
		}
	return p_cant("no such limit");
}

static int do_priority(int argc, char **argv)
{
	struct sched_param p = { .sched_priority = 1 };

	(void)argc;
	if (!strcmp(argv[1], "fifo"))
		return p_result(sched_setscheduler(0, SCHED_FIFO, &p), "SCHED_FIFO");
	if (!strcmp(argv[1], "nice"))
		return p_result(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 5), "nice -5");
	if (!strcmp(argv[1], "ionice"))
		return p_result(syscall(SYS_ioprio_set, 1, 0, 1 << 13 | 0), "real-time I/O");
	if (!strcmp(argv[1], "mlock")) {
		size_t len = (size_t)64 * MB;
		void *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		return p_result(mlock(m, len), "mlock 64 MiB");
	}
	return p_cant("no such way");
}

/* System V and POSIX objects by name: left by one, looked for by another. */
static int do_ipc(int argc, char **argv)
{
	int make = !strcmp(argv[2], "make");
	key_t key = (key_t)atol(argv[3]);
	char name[64], c;
	long r;

	(void)argc;
	snprintf(name, sizeof name, "/probe%ld", atol(argv[3]));
	umask(0);
	if (!strcmp(argv[1], "shm"))
		r = shmget(key, 4096, make ? IPC_CREAT | IPC_EXCL | 0666 : 0);
	else if (!strcmp(argv[1], "mq"))
		r = mq_open(name, make ? O_CREAT | O_EXCL | O_RDWR : O_RDWR, 0666, NULL);
	else if (!strcmp(argv[1], "posix"))
		r = shm_open(name, make ? O_CREAT | O_EXCL | O_RDWR : O_RDWR, 0666);
	else
		return p_cant("no such kind");
	if (r < 0)
		return p_no(errno, "%s %s", argv[1], argv[2]);
	if (argc > 4) {
		puts("READY");
		fflush(stdout);
		(void)!read(0, &c, 1);
	}
	if (make && argc > 5) {
		if (!strcmp(argv[1], "shm"))
			shmctl((int)r, IPC_RMID, NULL);
		else if (!strcmp(argv[1], "mq"))
			mq_unlink(name);
		else
			shm_unlink(name);
	}
	return p_ok("%s %s", argv[1], argv[2]);
}

/* Other things that are counted. */
static int do_objects(int argc, char **argv)
{
	long want = atol(argv[2]), n;

	(void)argc;
	for (n = 0; n < want; n++) {
		long r = -1;

		if (!strcmp(argv[1], "inotify"))
			r = inotify_init();
		else if (!strcmp(argv[1], "epoll"))
			r = epoll_create1(0);
		else if (!strcmp(argv[1], "timer")) {
			timer_t t;
			struct sigevent e = { .sigev_notify = SIGEV_NONE };

			r = timer_create(CLOCK_MONOTONIC, &e, &t);
		} else if (!strcmp(argv[1], "signal")) {
			sigset_t all;
			union sigval v = { 0 };

			sigfillset(&all);
			sigprocmask(SIG_BLOCK, &all, NULL);
			r = sigqueue(getpid(), SIGRTMIN, v);
		}
		if (r < 0)
			return p_no(errno, "%ld of %ld %s", n, want, argv[1]);
	}
	return p_ok("%ld %s", want, argv[1]);
}

#define BOMB "exhaustion"
const struct probe probes_res[] = {
	{ "forks", "R01", BOMB ": processes", do_forks, 1, "N" },
	{ "bomb", "R01", BOMB ": fork bomb", do_bomb, 0, NULL },
	{ "threads", "R01", BOMB ": threads", do_threads, 1, "N" },
	{ "eat", "R02", BOMB ": memory", do_eat, 2, "anon|shared|memfd|shm|sysv MIB" },
	{ "eat-buffers", "R03", BOMB ": kernel memory", do_eat_buffers, 1, "MIB" },
	{ "fill", "R04", BOMB ": disk", do_fill, 2, "PATH MIB" },
	{ "inodes", "R05", BOMB ": files", do_inodes, 2, "DIR N" },
	{ "sparse", "R06", BOMB ": blocks promised", do_sparse, 2, "PATH hole|MIB" },
	{ "deep", "R07", BOMB ": depth", do_deep, 2, "DIR N" },
	{ "fds-many", "R09", BOMB ": descriptors", do_fds_many, 1, "N" },
	{ "objects", "R09", BOMB ": kernel objects", do_objects, 2, "inotify|epoll|timer|signal N" },
	{ "ipc", "R09", "objects that outlive or are shared", do_ipc, 3, "shm|mq|posix make|find KEY [wait [remove]]" },
	{ "flood", "R10", BOMB ": output", do_flood, 1, "MIB [FD]" },
	{ "spin", "R11", BOMB ": CPU", do_spin, 1, "SECONDS|0 [THREADS]" },
	{ "sleep", "R12", "past the time limit", do_sleep, 1, "SECONDS [LOCK]" },
	{ "ignore", "R12", "past the time limit, deaf to signals", do_ignore, 1, "SECONDS [LOCK]" },
	{ "stop", "R12", "stopped at the time limit", do_stop, 0, "[LOCK]" },
	{ "daemon", "R13", "outliving the command", do_daemon, 2, "LOCK SECONDS" },
	{ "brood", "R20", "outliving the supervisor", do_brood, 1, "LOCK" },
	{ "zombies", "R14", BOMB ": process numbers", do_zombies, 1, "N" },
	{ "orphans", "R14", BOMB ": work for the first process", do_orphans, 1, "N" },
	{ "exec-loop", "R15", "a target that keeps changing", do_exec_loop, 0, NULL },
	{ "suicide", "R16", "an end that looks like somebody else's doing", do_suicide, 1, "SIGNAL" },
	{ "core", "R17", "a core dump on the host", do_core, 1, "DIR" },
	{ "core-limit", "R17", "a core dump on the host", do_core_limit, 0, NULL },
	{ "raise-limit", "R18", "a limit is raised", do_raise_limit, 1, "NAME" },
	{ "priority", "R18", "priority over everybody else", do_priority, 1, "fifo|nice|ionice|mlock" },
	{ 0 },
};
