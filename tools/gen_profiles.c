/* SPDX-License-Identifier: Apache-2.0 */
/* gen_profiles.c - reads profiles/NAME.yaml at build time and prints them as the
 * initialisers that src/profile/builtin.c includes.
 *
 * It takes builtin.c's place in the parser: here a built-in profile's name
 * means the file of that name among the arguments. */
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static char **paths;
static size_t paths_n;

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

size_t profile_builtin_count(void)
{
	return paths_n;
}

const char *profile_builtin_name(size_t i)
{
	return base_of(paths[i]);
}

const char *profile_builtin_summary(size_t i)
{
	return base_of(paths[i]);
}

const char *profile_builtin_text(size_t i)
{
	return base_of(paths[i]);
}

int profile_find_builtin(const char *name, const struct load *up, struct profile *ret, struct cs_err *err)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < paths_n; i++) {
		const char *base = base_of(paths[i]);

		if (!strncmp(base, name, n) && !strcmp(base + n, ".yaml")) {
			int r = profile_read_file(paths[i], up, ret, err);

			return r < 0 ? r : 1;
		}
	}
	return 0;
}

/* Three octal digits always: "\0" before a digit would swallow it. */
static void put_bytes(const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			printf("\\n\"\n\t  \"");
		else if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '?')
			printf("\\%03o", c);
		else
			putchar(c);
	}
}

static void put_string(const char *field, const char *s)
{
	printf("\t  .%s = ", field);
	if (!s) {
		printf("NULL,\n");
		return;
	}
	putchar('"');
	put_bytes(s);
	printf("\",\n");
}

static void put_list(const char *field, const struct cs_strv *list)
{
	printf("\t  .%s =", field);
	for (size_t i = 0; i < list->n; i++) {
		printf(" \"");
		put_bytes(list->v[i]);
		printf("\\000\"");
	}
	printf(" \"\",\n");
}

static void put_limits(const struct profile_limits *l)
{
	printf("\t  .limits = { %a, %llu, %llu, %llu, %llu, %llu, %llu, %llu, %llu },\n", l->cpus, (unsigned long long)l->memory,
	       (unsigned long long)l->disk, (unsigned long long)l->inodes, (unsigned long long)l->pids,
	       (unsigned long long)l->files, (unsigned long long)l->output, (unsigned long long)l->wall,
	       (unsigned long long)l->cpu_time);
}

static void put_profile(const struct profile *p, const char *text)
{
	printf("\t{\n");
	put_string("name", p->name);
	put_string("description", p->description);
	put_string("extends", p->extends);
	put_list("read", &p->files_read);
	put_list("write", &p->files_write);
	put_list("hide", &p->files_hide);
	put_list("protect", &p->commit_protect);
	put_list("allow", &p->commit_allow);
	put_list("pass", &p->env_pass);
	put_list("set", &p->env_set);
	printf("\t  .locked = %d, .isolation = %d, .workspace = %d, .proc = %d, .require = 0x%xu,\n", p->locked,
	       (int)p->isolation, (int)p->workspace, (int)p->proc, (unsigned)p->require);
	printf("\t  .system = %d, .commit = %d, .commit_age = %llu, .commit_size = %llu,\n", (int)p->system, (int)p->commit, (unsigned long long)p->commit_age,
	       (unsigned long long)p->commit_size);
	printf("\t  .unsafe = %d, .uncertain = %d, .unexpected = %d,\n", (int)p->shell.unsafe, (int)p->shell.uncertain, (int)p->shell.unexpected);
	put_limits(&p->limits);
	put_string("text", text);
	printf("\t},\n");
}

static int generate(const char *path, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(PROFILE_MAX_BYTES);
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct profile p = { 0 };
	int r = profile_read_file(path, /* up= */ NULL, &p, err);

	if (r < 0)
		return r;
	r = cs_buf_read_fd(&text, fd, path, err);
	/* None has a network or rows, so struct builtin has no place for them: say so rather than lose them. */
	if (r >= 0 && !network_is_none(&p.network))
		r = cs_fail(err, CS_E_UNSUPPORTED, 0, "%s: a built-in profile with a network", path);
	if (r >= 0 && p.shell.n_rows)
		r = cs_fail(err, CS_E_UNSUPPORTED, 0, "%s: a built-in profile with rows: src/shell/table/ is the place for them", path);
	if (r >= 0)
		put_profile(&p, cs_buf_text(&text));
	profile_done(&p);
	return r;
}

int main(int argc, char **argv)
{
	struct cs_err err;

	paths = argv + 1;
	paths_n = (size_t)argc - 1;
	printf("/* Made by tools/gen_profiles.c. */\n");
	for (size_t i = 0; i < paths_n; i++)
		if (generate(paths[i], &err) < 0) {
			fprintf(stderr, "gen_profiles: %s\n", err.msg);
			return 1;
		}
	return fflush(stdout) ? 1 : 0;
}
