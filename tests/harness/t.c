/* SPDX-License-Identifier: Apache-2.0 */
/* t.c - the runner behind t.h. */
#include "t.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

extern const struct t_case __start_t_cases[] __attribute__((weak));
extern const struct t_case __stop_t_cases[] __attribute__((weak));
extern const struct t_table __start_t_tables[] __attribute__((weak));
extern const struct t_table __stop_t_tables[] __attribute__((weak));

struct job {
	char *name;
	void (*fn)(void);
	void (*fn_arg)(const void *);
	const void *arg;
};

enum { DIRS_MAX = 8 };

/* What a test tells the runner; shared, since it may end at any moment. */
struct shared {
	char why[256];
	int n_dirs;
	char dirs[DIRS_MAX][256];
};

static struct job *jobs;
static size_t n_jobs;
static struct shared *shared;

static void add_job(struct job j)
{
	if (n_jobs % 64 == 0)
		jobs = realloc(jobs, (n_jobs + 64) * sizeof *jobs);
	if (!jobs || !(j.name = strdup(j.name)))
		abort();
	jobs[n_jobs++] = j;
}

void t_add(const char *name, void (*fn)(const void *), const void *arg)
{
	add_job((struct job){ .name = (char *)(uintptr_t)name, .fn_arg = fn, .arg = arg });
}

void t_leave(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(shared->why, sizeof shared->why, fmt, ap);
	va_end(ap);
	fflush(stdout);
	_exit(status);
}

void t_note(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = p[1] ? '?' : '\0';
	printf("# %s\n", line);
}

long t_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int t_count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

const char *t_tmpdir(void)
{
	const char *base = getenv("TMPDIR");
	char *d;

	if (shared->n_dirs == DIRS_MAX)
		T_FAIL("more than %d temporary directories", DIRS_MAX);
	d = shared->dirs[shared->n_dirs];
	snprintf(d, sizeof shared->dirs[0], "%s/cstest.XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(d) || chmod(d, 0755) < 0)
		T_FAIL("mkdtemp %s: %s", d, strerror(errno));
	shared->n_dirs++;
	return d;
}

/* A directory without its x bit cannot be walked into: give it back first. */
static int open_up(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)f;
	if ((type == FTW_D || type == FTW_DNR) && (st->st_mode & 0700) != 0700)
		(void)chmod(path, 0700);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st; (void)type; (void)f;
	(void)remove(path);
	return 0;
}

static void remove_dirs(void)
{
	for (int i = 0; i < shared->n_dirs; i++) {
		(void)nftw(shared->dirs[i], open_up, 32, FTW_PHYS | FTW_MOUNT);
		(void)nftw(shared->dirs[i], remove_one, 32, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
		if (access(shared->dirs[i], F_OK) == 0)
			printf("# could not remove %s\n", shared->dirs[i]);
	}
	shared->n_dirs = 0;
}

/* Kill and reap every process that became our child because its parent, a
 * process of the finished test, is gone.  The group kill misses those that
 * called setsid. */
static void end_orphans(void)
{
	char path[64], list[4096], *p, *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	for (int round = 0; round < 200; round++) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		n = read(fd, list, sizeof list - 1);
		close(fd);
		if (n <= 0)
			return;
		list[n] = '\0';
		for (p = list; ; p = end) {
			long pid = strtol(p, &end, 10);

			if (end == p)
				break;
			if (pid > 1)
				kill((pid_t)pid, SIGKILL);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(5000);
	}
}

static int wait_until(pid_t pid, long deadline, int *status)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int r = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long left = deadline - t_now_ms();
		pid_t w = waitpid(pid, status, WNOHANG);

		if (w == pid)
			break;
		if (left <= 0) {
			r = -1;
			break;
		}
		/* Without pidfd_open (enosys tests) poll is a plain sleep. */
		(void)poll(&p, fd >= 0, fd >= 0 ? (int)left : 5);
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static void test_child(const struct job *j)
{
	int null;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A shell's background job is started with SIGINT ignored, and that is inherited. */
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null > 0) {
		dup2(null, 0);
		close(null);
	}
	if (j->fn)
		j->fn();
	else
		j->fn_arg(j->arg);
	fflush(stdout);
	_exit(0);
}

enum outcome { PASSED, FAILED, SKIPPED };

static enum outcome run_one(const struct job *j, int nr)
{
	const char *lim = getenv("CS_TEST_SECONDS"), *must = getenv("CS_TESTS_MUST_RUN");
	long seconds = lim ? atol(lim) : 60;
	int status = 0, timed_out;
	pid_t pid;

	memset(shared, 0, sizeof *shared);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		printf("not ok %d - %s\n# fork: %s\n", nr, j->name, strerror(errno));
		return FAILED;
	}
	if (pid == 0)
		test_child(j);
	setpgid(pid, pid);
	timed_out = wait_until(pid, t_now_ms() + seconds * 1000, &status) < 0;
	kill(-pid, SIGKILL);
	if (timed_out)
		waitpid(pid, &status, 0);
	end_orphans();
	remove_dirs();

	if (timed_out) {
		printf("not ok %d - %s\n# timed out after %ld s\n", nr, j->name, seconds);
		return FAILED;
	}
	if (WIFSIGNALED(status)) {
		printf("not ok %d - %s\n# killed by signal %d (%s)\n", nr, j->name, WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
		return FAILED;
	}
	switch (WEXITSTATUS(status)) {
	case 0:
		printf("ok %d - %s\n", nr, j->name);
		return PASSED;
	case T_EXIT_SKIP:
		if (must && !strcmp(must, "1")) {
			printf("not ok %d - %s\n# skipped, but it must run here: %s\n", nr, j->name, shared->why);
			return FAILED;
		}
		/* fall through */
	case T_EXIT_ABSENT:
		printf("ok %d - %s # SKIP %s\n", nr, j->name, shared->why);
		return SKIPPED;
	default:
		printf("not ok %d - %s\n", nr, j->name);
		return FAILED;
	}
}

enum { DEFAULT_TIMEOUT_MS = 30000, DRAIN_MS = 300 };

static int input_fd(const char *text)
{
	int p[2];
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (len > 60000)
		T_FAIL("t_run: input of %zu bytes does not fit a pipe", len);
	if (pipe2(p, O_CLOEXEC) < 0 || write(p[1], text, len) != (ssize_t)len)
		T_FAIL("t_run: pipe: %s", strerror(errno));
	close(p[1]);
	return p[0];
}

static void run_child(const char *const argv[], const struct t_run_opts *o, const int fds[3])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			_exit(127);
	if (o->cwd && chdir(o->cwd) < 0)
		_exit(127);
	if (o->prepare)
		o->prepare(o->arg);
	if (o->env)
		execvpe(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)o->env);
	else
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	dprintf(2, "t_run: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Returns false at end of file. */
static bool take(int fd, char *buf, size_t *len, size_t *total)
{
	char bin[8192];
	size_t room = T_OUTPUT_MAX - *len;
	ssize_t n = read(fd, bin, sizeof bin);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	*total += (size_t)n;
	if ((size_t)n < room)
		room = (size_t)n;
	memcpy(buf + *len, bin, room);
	*len += room;
	return true;
}

void t_run_with(struct t_result *r, const char *const argv[], const struct t_run_opts *o)
{
	static const struct t_run_opts none;
	int out[2], err[2], in, st = 0;
	long start = t_now_ms(), deadline, drain_end = 0;
	bool ended = false;
	pid_t pid;

	if (!o)
		o = &none;
	memset(r, 0, sizeof *r);
	deadline = start + (o->timeout_ms ? o->timeout_ms : DEFAULT_TIMEOUT_MS);
	in = input_fd(o->input);
	if (in < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		T_FAIL("t_run: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		T_FAIL("t_run: fork: %s", strerror(errno));
	if (pid == 0)
		run_child(argv, o, (const int[3]){ in, out[1], err[1] });
	close(in);
	close(out[1]);
	close(err[1]);
	if (o->started)
		o->started(pid, o->arg);

	while (!ended || out[0] >= 0 || err[0] >= 0) {
		struct pollfd p[2] = { { out[0], POLLIN, 0 }, { err[0], POLLIN, 0 } };
		long now = t_now_ms();

		if (!ended && waitpid(pid, &st, WNOHANG) == pid) {
			ended = true;
			r->ms = now - start;
			drain_end = now + DRAIN_MS;
		}
		if (!ended && now >= deadline) {
			r->timed_out = true;
			kill(pid, SIGKILL);
			waitpid(pid, &st, 0);
			ended = true;
			r->ms = now - start;
			drain_end = now + DRAIN_MS;
		}
		if (ended && now >= drain_end) {
			r->held = true;
			break;
		}
		(void)poll(p, 2, ended ? 20 : 2);
		if (p[0].revents && !take(out[0], r->out, &r->out_len, &r->out_total)) {
			close(out[0]);
			out[0] = -1;
		}
		if (p[1].revents && !take(err[0], r->err, &r->err_len, &r->err_total)) {
			close(err[0]);
			err[0] = -1;
		}
	}
	if (out[0] >= 0)
		close(out[0]);
	if (err[0] >= 0)
		close(err[0]);
	r->signal = WIFSIGNALED(st) ? WTERMSIG(st) : 0;
	r->status = r->signal ? 128 + r->signal : WEXITSTATUS(st);
}

void t_run(struct t_result *r, const char *const argv[])
{
	t_run_with(r, argv, NULL);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct job *)a)->name, ((const struct job *)b)->name);
}

static void collect(const char *filter)
{
	size_t kept = 0;

	for (const struct t_case *c = __start_t_cases; c < __stop_t_cases; c++)
		add_job((struct job){ .name = (char *)(uintptr_t)c->name, .fn = c->fn });
	for (const struct t_table *t = __start_t_tables; t < __stop_t_tables; t++)
		t->expand();
	for (size_t i = 0; i < n_jobs; i++) {
		if (filter && !strstr(jobs[i].name, filter))
			free(jobs[i].name);
		else
			jobs[kept++] = jobs[i];
	}
	n_jobs = kept;
	if (n_jobs)
		qsort(jobs, n_jobs, sizeof *jobs, by_name);
}

int main(int argc, char **argv)
{
	int count[3] = { 0 };
	bool list = argc > 1 && !strcmp(argv[1], "--list");

	setvbuf(stdout, NULL, _IOLBF, 0);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return perror("mmap"), 1;
	collect(list || argc < 2 ? NULL : argv[1]);
	if (list) {
		for (size_t i = 0; i < n_jobs; i++)
			puts(jobs[i].name);
		return 0;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_DFL);
	printf("1..%zu\n", n_jobs);
	for (size_t i = 0; i < n_jobs; i++)
		count[run_one(&jobs[i], (int)i + 1)]++;
	printf("%d passed, %d failed", count[PASSED], count[FAILED]);
	if (count[SKIPPED])
		printf(", %d skipped", count[SKIPPED]);
	putchar('\n');
	for (size_t i = 0; i < n_jobs; i++)
		free(jobs[i].name);
	free(jobs);
	/* A filter that matches nothing is a mistake, not a success. */
	return count[FAILED] || !n_jobs ? 1 : 0;
}
