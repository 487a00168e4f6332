/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - how long does it take to start something, compared with others?
 *
 *     start [--rounds N] [--warmup N] [--peer NAME]... [--json] [--file FILE] ['LINE'...]
 *
 * A LINE is  NAME [key=value]... -- WORD...   with '...' and \ quoting in words:
 *     uid=N      run as this user and group, without supplementary groups
 *     cwd=DIR    in this directory
 *     drop=DIR   in a private mount namespace where DIR is unmounted
 *     bind=A:B   in a private mount namespace where A is to be found at B
 *     env=N=V    with this in its environment (may be repeated)
 *     every=N    only in every Nth round, for what is too slow for all of them
 *
 * Every round runs each command once, in an order shuffled anew, so that a
 * machine that slows down slows all of them down; a time is the wall clock from
 * before posix_spawn() to after wait4().  Each command has a resident runner, a
 * process that has changed user, directory and mount namespace already: what
 * `setpriv` or `unshare` would cost is in nobody's time.
 *
 * Rejected: hyperfine.  It runs one command after the other (so drift becomes
 * difference), spawns from a process of several MiB and cannot change user
 * without the cost of another exec. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CMDS = 64, MAX_WORDS = 128, MAX_ENV = 16, MAX_PEERS = 4, LIMIT_SECONDS = 30 };

/* One run, as a runner reports it through its pipe. */
struct sample {
	uint64_t wall_ns;
	uint64_t cpu_ns; /* user + system of everything that was waited for */
	uint32_t faults; /* page faults without I/O, likewise */
	int status;      /* as of waitpid(2); -errno-256 if nothing was started */
};

struct cmd {
	char *name;
	char *words[MAX_WORDS + 1];
	char *env[MAX_ENV + 1];
	char *cwd, *drop, *bind;
	long uid;
	unsigned every;
	int to, from;          /* pipes of its runner */
	int err_fd;            /* what it says on standard error, in the warm-up */
	char why[160];         /* not measured, and why */
	struct sample *samples;
	size_t n;
};

static struct cmd cmds[MAX_CMDS];
static size_t n_cmds;
static const char *peers[MAX_PEERS];
static size_t n_peers;
extern char **environ;

static void die(const char *what)
{
	fprintf(stderr, "start: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
	exit(2);
}

/* Cuts the next word off *text, in place; NULL at the end. */
static char *next_word(char **text)
{
	char *in = *text, *out, *word;
	char quote = 0;

	while (*in == ' ' || *in == '\t')
		in++;
	if (!*in)
		return NULL;
	for (word = out = in; *in && (quote || (*in != ' ' && *in != '\t')); in++) {
		if (*in == '\'')
			quote = quote ? 0 : *in;
		else if (*in == '\\' && !quote && in[1])
			*out++ = *++in;
		else
			*out++ = *in;
	}
	*text = *in ? in + 1 : in;
	*out = 0;
	return word;
}

static void take_key(struct cmd *c, char *key)
{
	char *value = strchr(key, '=');
	size_t n = 0;

	errno = 0;
	if (!value)
		die("a key without a value");
	*value++ = 0;
	if (!strcmp(key, "uid"))
		c->uid = atol(value);
	else if (!strcmp(key, "cwd"))
		c->cwd = value;
	else if (!strcmp(key, "drop"))
		c->drop = value;
	else if (!strcmp(key, "bind"))
		c->bind = value;
	else if (!strcmp(key, "every"))
		c->every = (unsigned)atoi(value);
	else if (!strcmp(key, "env")) {
		while (c->env[n])
			n++;
		if (n == MAX_ENV)
			die("too many env=");
		c->env[n] = value;
	} else
		die("unknown key (uid, cwd, drop, bind, every, env)");
}

static void add_line(const char *line)
{
	struct cmd *c = &cmds[n_cmds];
	char *text = strdup(line), *word;
	size_t n = 0;

	errno = 0;
	c->name = next_word(&text);
	if (!c->name || c->name[0] == '#')
		return;
	if (n_cmds + 1 == MAX_CMDS)
		die("too many commands");
	c->uid = -1;
	c->every = 1;
	while ((word = next_word(&text)) && strcmp(word, "--"))
		take_key(c, word);
	while (n < MAX_WORDS && (word = next_word(&text)))
		c->words[n++] = word;
	if (!n || !c->every)
		die("a line is: NAME [key=value]... -- WORD...");
	n_cmds++;
}

static void add_file(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char *line = NULL;
	size_t size = 0;

	if (!f)
		die(path);
	while (getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		add_line(line);
	}
	free(line);
	if (f != stdin)
		fclose(f);
}

/* ---- the runner ---- */

static volatile pid_t running;

static void on_alarm(int sig)
{
	(void)sig;
	if (running > 0)
		kill(running, SIGKILL);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t tv_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static void measure(struct cmd *c, const posix_spawn_file_actions_t *fa, char **env, struct sample *s)
{
	struct rusage ru = { 0 };
	uint64_t begin;
	pid_t pid;
	int r;

	alarm(LIMIT_SECONDS);
	begin = now_ns();
	r = posix_spawnp(&pid, c->words[0], fa, /* attr= */ NULL, c->words, env);
	if (r) {
		*s = (struct sample){ .status = -r - 256 };
		return;
	}
	running = pid;
	while (wait4(pid, &s->status, 0, &ru) < 0 && errno == EINTR)
		;
	s->wall_ns = now_ns() - begin;
	running = 0;
	alarm(0);
	s->cpu_ns = tv_ns(ru.ru_utime) + tv_ns(ru.ru_stime);
	s->faults = (uint32_t)ru.ru_minflt;
}

static void prepare_runner(struct cmd *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (c->drop || c->bind) {
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			die("private mount namespace");
	}
	/* Several mounts may lie upon one another. */
	while (c->drop && umount2(c->drop, MNT_DETACH) == 0)
		;
	if (c->bind) {
		char *at = strchr(c->bind, ':');

		if (!at)
			die("bind=A:B");
		*at++ = 0;
		if (mount(c->bind, at, NULL, MS_BIND, NULL) < 0)
			die(at);
	}
	if (c->uid >= 0) {
		if (setgroups(0, NULL) < 0 || setresgid((gid_t)c->uid, (gid_t)c->uid, (gid_t)c->uid) < 0 ||
		    setresuid((uid_t)c->uid, (uid_t)c->uid, (uid_t)c->uid) < 0)
			die("change user");
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user cleared it */
	}
	if (c->cwd && chdir(c->cwd) < 0)
		die(c->cwd);
}

static char **runner_env(struct cmd *c)
{
	size_t n = 0, i;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + MAX_ENV + 1, sizeof *env);
	if (!env)
		die("memory");
	for (i = 0; i < MAX_ENV && c->env[i]; i++)
		putenv(c->env[i]);
	for (n = 0; environ[n]; n++)
		env[n] = environ[n];
	return env;
}

/* Reads one byte per run: 'w' warm up, 'm' measure. */
_Noreturn static void runner(struct cmd *c, int in, int out)
{
	posix_spawn_file_actions_t quiet, warm;
	struct sample s;
	char **env, what;

	prepare_runner(c);
	env = runner_env(c);
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_init(&warm);
	posix_spawn_file_actions_addopen(&warm, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&warm, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&warm, c->err_fd, 2);
	signal(SIGALRM, on_alarm);
	while (read(in, &what, 1) == 1) {
		measure(c, what == 'w' ? &warm : &quiet, env, &s);
		if (write(out, &s, sizeof s) != (ssize_t)sizeof s)
			break;
	}
	_exit(0);
}

static void start_runner(struct cmd *c)
{
	int to[2], from[2];
	pid_t pid;

	c->err_fd = memfd_create("stderr", MFD_CLOEXEC);
	if (c->err_fd < 0 || pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		die("pipes");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0)
		runner(c, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
}

static bool ask(struct cmd *c, char what, struct sample *s)
{
	return write(c->to, &what, 1) == 1 && read(c->from, s, sizeof *s) == (ssize_t)sizeof *s;
}

/* ---- rounds ---- */

static void note_failure(struct cmd *c, const struct sample *s)
{
	char text[120] = "";
	ssize_t n = pread(c->err_fd, text, sizeof text - 1, 0);

	if (n > 0)
		text[strcspn(text, "\n")] = 0;
	if (s->status < -255)
		snprintf(c->why, sizeof c->why, "%s", strerror(-s->status - 256));
	else if (WIFSIGNALED(s->status))
		snprintf(c->why, sizeof c->why, "signal %d %s", WTERMSIG(s->status), text);
	else
		snprintf(c->why, sizeof c->why, "exit %d %s", WEXITSTATUS(s->status), text);
}

static void warm_up(struct cmd *c, unsigned times)
{
	struct sample s = { 0 };

	for (unsigned i = 0; i < times && !c->why[0]; i++) {
		if (!ask(c, 'w', &s))
			snprintf(c->why, sizeof c->why, "its runner ended");
		else if (s.status != 0)
			note_failure(c, &s);
	}
}

static void one_round(unsigned round)
{
	size_t order[MAX_CMDS], n = 0;

	for (size_t i = 0; i < n_cmds; i++)
		if (!cmds[i].why[0] && round % cmds[i].every == 0)
			order[n++] = i;
	for (size_t i = n; i > 1; i--) {
		size_t j = (size_t)random() % i, t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
	for (size_t i = 0; i < n; i++) {
		struct cmd *c = &cmds[order[i]];
		struct sample s;

		if (!ask(c, 'm', &s))
			snprintf(c->why, sizeof c->why, "its runner ended");
		else if (s.status != 0)
			note_failure(c, &s);
		else
			c->samples[c->n++] = s;
	}
}

/* ---- report ---- */

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct summary { double min, p50, p90, cpu; uint64_t faults; };

static void summarise(const struct cmd *c, struct summary *ret)
{
	uint64_t *v = calloc(c->n + 1, sizeof *v);

	if (!v)
		die("memory");
	*ret = (struct summary){ 0 };
	if (c->n) {
		for (size_t i = 0; i < c->n; i++)
			v[i] = c->samples[i].cpu_ns;
		qsort(v, c->n, sizeof *v, by_u64);
		ret->cpu = (double)v[c->n / 2] / 1e3;
		for (size_t i = 0; i < c->n; i++)
			v[i] = c->samples[i].faults;
		qsort(v, c->n, sizeof *v, by_u64);
		ret->faults = v[c->n / 2];
		for (size_t i = 0; i < c->n; i++)
			v[i] = c->samples[i].wall_ns;
		qsort(v, c->n, sizeof *v, by_u64);
		ret->min = (double)v[0] / 1e3;
		ret->p50 = (double)v[c->n / 2] / 1e3;
		ret->p90 = (double)v[c->n * 9 / 10] / 1e3;
	}
	free(v);
}

static const struct summary *peer_summary(const struct summary *all, const char *name)
{
	for (size_t i = 0; i < n_cmds; i++)
		if (!strcmp(cmds[i].name, name) && cmds[i].n)
			return &all[i];
	return NULL;
}

static void print_table(const struct summary *all)
{
	printf("| command | runs | min ms | p50 ms | p90 ms | CPU ms | faults |");
	for (size_t p = 0; p < n_peers; p++)
		printf(" of %s: p50 | min |", peers[p]);
	printf("\n|---|--:|--:|--:|--:|--:|--:|");
	for (size_t p = 0; p < n_peers; p++)
		printf("--:|--:|");
	putchar('\n');
	for (size_t i = 0; i < n_cmds; i++) {
		const struct summary *s = &all[i];

		if (!cmds[i].n) {
			printf("| %s | 0 | not measured: %s |\n", cmds[i].name, cmds[i].why);
			continue;
		}
		printf("| %s | %zu | %.2f | %.2f | %.2f | %.2f | %llu |", cmds[i].name, cmds[i].n, s->min / 1e3,
		       s->p50 / 1e3, s->p90 / 1e3, s->cpu / 1e3, (unsigned long long)s->faults);
		for (size_t p = 0; p < n_peers; p++) {
			const struct summary *o = peer_summary(all, peers[p]);

			if (o)
				printf(" %.2f | %.2f |", s->p50 / o->p50, s->min / o->min);
			else
				printf(" – | – |");
		}
		printf("%s%s\n", cmds[i].why[0] ? " stopped: " : "", cmds[i].why);
	}
}

static void print_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		putchar((unsigned char)*s < 32 ? ' ' : *s);
	}
	putchar('"');
}

static void print_json(const struct summary *all)
{
	printf("{\"unit\":\"us\",\"commands\":[");
	for (size_t i = 0; i < n_cmds; i++) {
		const struct summary *s = &all[i];
		size_t ratios = 0;

		printf("%s\n{\"name\":", i ? "," : "");
		print_string(cmds[i].name);
		printf(",\"runs\":%zu,\"error\":", cmds[i].n);
		if (cmds[i].why[0])
			print_string(cmds[i].why);
		else
			printf("null");
		if (cmds[i].n)
			printf(",\"min\":%.1f,\"p50\":%.1f,\"p90\":%.1f,\"cpu\":%.1f,\"faults\":%llu", s->min, s->p50,
			       s->p90, s->cpu, (unsigned long long)s->faults);
		for (size_t p = 0; p < n_peers && cmds[i].n; p++) {
			const struct summary *o = peer_summary(all, peers[p]);

			if (!o)
				continue;
			printf("%s", ratios++ ? "," : ",\"ratio\":{");
			print_string(peers[p]);
			printf(":{\"p50\":%.4f,\"min\":%.4f}", s->p50 / o->p50, s->min / o->min);
		}
		if (ratios)
			putchar('}');
		putchar('}');
	}
	printf("\n]}\n");
}

int main(int argc, char **argv)
{
	unsigned rounds = 200, warm = 3;
	bool json = false;
	struct summary all[MAX_CMDS];

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--rounds"))
			rounds = (unsigned)atoi(value), i++;
		else if (!strcmp(argv[i], "--warmup"))
			warm = (unsigned)atoi(value), i++;
		else if (!strcmp(argv[i], "--file"))
			add_file(value), i++;
		else if (!strcmp(argv[i], "--peer") && n_peers < MAX_PEERS)
			peers[n_peers++] = value, i++;
		else if (!strcmp(argv[i], "--json"))
			json = true;
		else
			add_line(argv[i]);
	}
	errno = 0;
	if (!n_cmds || !rounds)
		die("usage: start [--rounds N] [--warmup N] [--peer NAME]... [--json] [--file FILE] ['LINE'...]");
	signal(SIGPIPE, SIG_IGN);
	srandom((unsigned)now_ns());
	for (size_t i = 0; i < n_cmds; i++) {
		cmds[i].samples = calloc(rounds, sizeof *cmds[i].samples);
		if (!cmds[i].samples)
			die("memory");
		start_runner(&cmds[i]);
		warm_up(&cmds[i], warm);
	}
	for (unsigned r = 0; r < rounds; r++)
		one_round(r);
	for (size_t i = 0; i < n_cmds; i++)
		summarise(&cmds[i], &all[i]);
	if (json)
		print_json(all);
	else
		print_table(all);
	return 0;
}
