/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "egress/edge/secret.h"
#include "harness/t.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

static char secret_name[] = "GH", secret_from[512], host_1[] = "api.example.com", host_2[] = "*.example.org:8443";
static char *two_hosts[] = { host_1, host_2, NULL };
static const char ph[] = "caisson-secret-GH-0123456789abcdef0123456789abcdef";

static struct profile_secret from(const char *where)
{
	snprintf(secret_from, sizeof secret_from, "%s", where);
	return (struct profile_secret){ .name = secret_name, .from = secret_from, .hosts = { two_hosts, 2 } };
}

static int load(const char *where, struct secret *s, struct cs_err *err)
{
	struct profile_secret p = from(where);

	return secret_load(&p, ph, s, err);
}

static void refused(const char *where, int code, const char *msg)
{
	struct secret s = { .value_len = 42 };
	struct cs_err err = { 0 };
	int fds = t_count_fds();

	T_INT(load(where, &s, &err), -code);
	T_STR(err.msg, msg);
	T_INT(s.value_len, 42);
	T_INT(t_count_fds(), fds);
}

/* One for the whole test. */
static const char *dir(void)
{
	static const char *d;

	return d ? d : (d = t_tmpdir());
}

static const char *file_with(const char *text)
{
	static char where[300];
	FILE *f;

	snprintf(where, sizeof where, "file:%s/secret", dir());
	f = fopen(where + 5, "w");
	T_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
	return where;
}

TEST(a_variable_is_read_and_gone)
{
	struct cs_err err = { 0 };
	struct secret s, again;
	char *where;

	setenv("CS_T_TOKEN", "hunter2-secret", 1);
	where = getenv("CS_T_TOKEN");
	T_INT(load("env:CS_T_TOKEN", &s, &err), 0);
	T_STR(s.value, "hunter2-secret");
	T_INT(s.value_len, 14);
	T_STR(s.header, "Authorization");
	T_STR(s.format, "Bearer {}");
	T_TRUE(!getenv("CS_T_TOKEN"));
	T_TRUE(where[0] == 0 && where[7] == 0); /* also where it was */
	/* A second secret from the same variable, after which it is nowhere. */
	T_INT(load("env:CS_T_TOKEN", &again, &err), 0);
	T_STR(again.value, "hunter2-secret");
	secret_done(&s);
	T_STR(again.value, "hunter2-secret");
	secret_done(&again);
	refused("env:CS_T_TOKEN", CS_E_NOT_FOUND, "secret GH: the variable CS_T_TOKEN is not set");
}

TEST(a_value_is_in_locked_memory_that_is_not_dumped)
{
	struct secret s;
	char line[512], flags[512] = "";
	unsigned long lo, hi;
	bool here = false;
	FILE *f;

	setenv("CS_T_TOKEN", "hunter2-secret", 1);
	T_INT(load("env:CS_T_TOKEN", &s, NULL), 0);
	f = fopen("/proc/self/smaps", "r");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
			here = (unsigned long)s.value >= lo && (unsigned long)s.value < hi;
		if (here && !strncmp(line, "VmFlags:", 8))
			strcpy(flags, line);
	}
	if (f)
		fclose(f);
	if (!*flags)
		T_ABSENT("no VmFlags in smaps");
	T_TRUE(strstr(flags, " dd"));
#ifndef __SANITIZE_ADDRESS__ /* whose mlock() does nothing */
	T_TRUE(strstr(flags, " lo"));
#endif
	secret_done(&s);
}

TEST(a_file_gives_its_first_line)
{
	struct secret s;
	char link[300];

	T_INT(load(file_with("hunter2-secret\r\nmore\n"), &s, NULL), 0);
	T_STR(s.value, "hunter2-secret");
	secret_done(&s);
	T_INT(load(file_with("no line end at all"), &s, NULL), 0);
	T_STR(s.value, "no line end at all");
	secret_done(&s);
	/* Secret files are often symbolic links. */
	snprintf(link, sizeof link, "file:%s/link", dir());
	T_INT(symlink(file_with("by a symbolic link\n") + 5, link + 5), 0);
	T_INT(load(link, &s, NULL), 0);
	T_STR(s.value, "by a symbolic link");
	secret_done(&s);
}

TEST(a_pipe_is_waited_for)
{
	char where[300];
	struct secret s;
	pid_t pid;

	snprintf(where, sizeof where, "file:%s/fifo", dir());
	T_INT(mkfifo(where + 5, 0600), 0);
	pid = fork();
	if (pid == 0) {
		int fd;

		usleep(200000);
		fd = open(where + 5, O_WRONLY);
		_exit(write(fd, "out-of-", 7) != 7 || usleep(100000) || write(fd, "a-pipe\n", 7) != 7);
	}
	T_INT(load(where, &s, NULL), 0);
	T_STR(s.value, "out-of-a-pipe");
	secret_done(&s);
}

TEST(files_that_are_none_are_refused)
{
	refused("file:/nonexistent/x", CS_E_NOT_FOUND, "secret GH: open '/nonexistent/x': No such file or directory");
	refused("file:/dev/zero", CS_E_INVALID, "secret GH: '/dev/zero' is neither a file nor a pipe");
	refused("file:relative", CS_E_INVALID, "secret GH: it comes from neither env:VARIABLE, file:/PATH nor command:LINE");
	refused("file:/proc/self", CS_E_INVALID, "secret GH: '/proc/self' is neither a file nor a pipe");
}

TEST(values_that_cannot_be_secrets_are_refused_and_not_shown)
{
	char *big = malloc(20001);
	struct secret s;

	refused(file_with("hunter2\n"), CS_E_INVALID, "secret GH: too short: it must have at least 8 bytes");
	refused(file_with(""), CS_E_INVALID, "secret GH: empty: it must have at least 8 bytes");
	refused(file_with("\nhunter2-secret"), CS_E_INVALID, "secret GH: empty: it must have at least 8 bytes");
	refused(file_with("hunter2\tsecret"), CS_E_INVALID, "secret GH: it holds a control byte (at 7)");
	refused(file_with("hunter2\rsecret"), CS_E_INVALID, "secret GH: it holds a control byte (at 7)");
	refused(file_with("hunter2-secret\x7f"), CS_E_INVALID, "secret GH: it holds a control byte (at 14)");
	memset(big, 'x', 20000);
	big[20000] = 0;
	refused(file_with(big), CS_E_LIMIT, "secret GH: longer than 16384 bytes");
	setenv("CS_T_BIG", big, 1);
	refused("env:CS_T_BIG", CS_E_LIMIT, "secret GH: longer than 16384 bytes");
	big[16385] = 0;
	refused(file_with(big), CS_E_LIMIT, "secret GH: longer than 16384 bytes");
	big[16384] = '\n';
	T_INT(load(file_with(big), &s, NULL), 0);
	T_INT(s.value_len, 16384);
	secret_done(&s);
}

TEST(a_command_gives_its_first_line)
{
	struct cs_err err = { 0 };
	struct secret s;

	signal(SIGPIPE, SIG_IGN);
	T_INT(load("command:printf 'from-a-%s\\n' command; echo more; test ! -t 0 && cat", &s, &err), 0);
	T_STR(s.value, "from-a-command");
	secret_done(&s);
	/* What goes on in the background with the pipe is not waited for. */
	T_INT(load("command:sleep 30 & echo in-the-background", &s, &err), 0);
	T_STR(s.value, "in-the-background");
	secret_done(&s);
	T_INT(load("command:printf half-; sleep 0.2; printf and-half; exec 1>&-; sleep 0.1", &s, &err), 0);
	T_STR(s.value, "half-and-half");
	secret_done(&s);
}

TEST(a_command_that_fails_says_how_but_not_what_it_printed)
{
	refused("command:echo hunter2-secret; exit 3", CS_E_SYSTEM, "secret GH: its command ended with status 3");
	refused("command:kill -9 $$", CS_E_SYSTEM, "secret GH: its command was ended by signal 9");
	refused("command:nonexistent-program 2>&1", CS_E_SYSTEM, "secret GH: its command ended with status 127");
	refused("command:", CS_E_INVALID, "secret GH: it comes from neither env:VARIABLE, file:/PATH nor command:LINE");
	refused("command:true", CS_E_INVALID, "secret GH: empty: it must have at least 8 bytes");
	refused("command:yes hunter2-secret", CS_E_LIMIT, "secret GH: its command prints more than 65536 bytes");
	refused("command:tr '\\0' x </dev/zero", CS_E_LIMIT, "secret GH: its command prints more than 65536 bytes");
}

TEST(a_command_that_does_not_end_is_killed_with_what_it_started)
{
	char where[400], line[32] = "";
	long t = t_now_ms();
	FILE *f;
	pid_t pid;

	snprintf(where, sizeof where, "command:sleep 300 & echo $! > %s/pid; wait", dir());
	refused(where, CS_E_LIMIT, "secret GH: its command has not ended within 10 s");
	T_TRUE(t_now_ms() - t < 15000);
	snprintf(where, sizeof where, "%s/pid", dir());
	f = fopen(where, "r");
	T_TRUE(f && fgets(line, sizeof line, f));
	fclose(f);
	pid = atoi(line);
	for (int i = 0; i < 100 && pid > 1; i++) {
		char stat[64], state = 0;

		snprintf(stat, sizeof stat, "/proc/%d/stat", (int)pid);
		f = fopen(stat, "r");
		if (!f || fscanf(f, "%*d %*s %c", &state) != 1 || state == 'Z')
			return;
		fclose(f);
		usleep(10000);
	}
	T_FAIL("what the command started still runs");
}

TEST(hosts_are_names_with_ports)
{
	struct secret s;

	setenv("CS_T_TOKEN", "hunter2-secret", 1);
	T_INT(load("env:CS_T_TOKEN", &s, NULL), 0);
	T_TRUE(secret_is_for(&s, "api.example.com", 443));
	T_TRUE(!secret_is_for(&s, "api.example.com", 80));
	T_TRUE(!secret_is_for(&s, "api.example.com", 8443));
	T_TRUE(!secret_is_for(&s, "x.api.example.com", 443));
	T_TRUE(!secret_is_for(&s, "example.com", 443));
	T_TRUE(secret_is_for(&s, "a.example.org", 8443));
	T_TRUE(!secret_is_for(&s, "a.example.org", 443));
	T_TRUE(!secret_is_for(&s, "example.org", 8443));
	T_TRUE(!secret_is_for(&s, "example.org.evil.com", 8443));
	secret_done(&s);
}

TEST(hosts_that_are_too_wide_are_refused)
{
	static const char *const bad[] = { "*", "*:443", "10.0.0.0/8", "192.0.2.1", "[2001:db8::1]:443", "a.example.com/tcp",
					   "a.example.com GET /x", "", "a b", "a.example.com:0" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct profile_secret p = from("env:CS_T_TOKEN");
		CS_FREE char *host = strdup(bad[i]);
		char *list[] = { host_1, host, NULL };
		struct cs_err err = { 0 };
		struct secret s;

		setenv("CS_T_TOKEN", "hunter2-secret", 1);
		p.hosts = (struct cs_strv){ list, 2 };
		if (secret_load(&p, ph, &s, &err) != -CS_E_INVALID)
			T_FAIL("'%s' was taken", bad[i]);
		T_TRUE(!strncmp(err.msg, "secret GH: ", 11));
		T_TRUE(getenv("CS_T_TOKEN")); /* refused before it was read */
	}
}

TEST(headers_and_formats_that_break_a_message_are_refused)
{
	static const char *const bad[][2] = {
		{ "Host", "{}" }, { "content-length", "{}" }, { "X Y", "{}" }, { "X:", "{}" }, { "", "{}" },
		{ "X", "" }, { "X", "Bearer" }, { "X", "{} {}" }, { "X", "{}\r\nY: z" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct profile_secret p = from("env:CS_T_TOKEN");
		CS_FREE char *h = strdup(bad[i][0]), *f = strdup(bad[i][1]);
		struct secret s;

		setenv("CS_T_TOKEN", "hunter2-secret", 1);
		p.header = h;
		p.format = f;
		T_INT(secret_load(&p, ph, &s, NULL), -CS_E_INVALID);
	}
}

static void sends(const char *sent, const char *want)
{
	struct secret s = { .value = (char[]){ "hunter2-secret" }, .value_len = 14, .placeholder = (char[]){ "PLACEHOLDER" },
			    .format = (char[]){ "token {}!" } };
	CS_FREE char *got = secret_header(&s, sent);

	T_STR(got, want);
}

TEST(the_placeholder_is_replaced_wherever_it_is)
{
	sends(NULL, "token hunter2-secret!");
	sends("", "token hunter2-secret!");
	sends("Bearer other", "token hunter2-secret!");
	sends("Bearer PLACEHOLDER", "Bearer hunter2-secret");
	sends("a=PLACEHOLDER, b=PLACEHOLDER;", "a=hunter2-secret, b=hunter2-secret;");
	/* user:PLACEHOLDER, user:hunter2-secret */
	sends("Basic dXNlcjpQTEFDRUhPTERFUg==", "Basic dXNlcjpodW50ZXIyLXNlY3JldA==");
	sends("basic  dXNlcjpQTEFDRUhPTERFUg", "Basic dXNlcjpodW50ZXIyLXNlY3JldA==");
	sends("Basic dXNlcjpvdGhlcg==", "token hunter2-secret!");
	sends("Basic dXNl*", "token hunter2-secret!");
	sends("Basic", "token hunter2-secret!");
	/* It cannot make a second header of it. */
	sends("PLACEHOLDER\r\nX: y", "token hunter2-secret!");
}

TEST(a_header_full_of_placeholders_does_not_grow_without_end)
{
	char *sent = calloc(1, 60001), value[8001];
	struct secret s = { .value = value, .value_len = 8000, .placeholder = (char[]){ "PLACEHOLDER" }, .format = (char[]){ "{}" } };
	CS_FREE char *got = NULL;

	memset(value, 'v', 8000);
	value[8000] = 0;
	for (size_t i = 0; i + 11 <= 60000; i += 11)
		memcpy(sent + i, "PLACEHOLDER", 11);
	got = secret_header(&s, sent);
	T_INT(strlen(got), 8000);
	free(sent);
}
