/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - --dry-run: what would be done, in words, from the same spec a run uses. */
#include "session/session.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void escaped(struct cs_buf *out, const char *label, const char *text)
{
	cs_buf_fmt(out, "  %-11s ", label);
	cs_escape(out, text);
	cs_buf_char(out, '\n');
}

static void files(const struct session_opts *o, const struct session_spec *s, struct cs_buf *out)
{
	static const char *const kinds[] = { [SANDBOX_RO] = "read-only", [SANDBOX_RW] = "writable", [SANDBOX_LAYER] = "layer" };

	cs_buf_str(out, "Files\n");
	for (size_t i = 0; i < s->spec.n_binds; i++)
		if (!s->binds[i].optional || access(s->binds[i].source, F_OK) == 0)
			escaped(out, kinds[s->binds[i].kind], s->binds[i].source);
	cs_buf_str(out, "  private     /home/agent, /tmp, /var/tmp, /dev/shm (gone at the end)\n"
			"  own         /proc (others' processes hidden, kernel files masked), /dev (null zero full random urandom tty pts)\n"
			"  own         /etc/passwd, /etc/group, /etc/hosts, /etc/hostname\n"
			"  absent      everything else, /sys among it\n");
	if (s->layer)
		cs_buf_fmt(out, "  changes     to the workspace are a transaction: commit.mode is %s\n", profile_commit_name(o->profile->commit));
	for (size_t i = 0; i < s->hide.n; i++)
		if (s->hide.v[i][0] == '/' && access(s->hide.v[i], F_OK) == 0)
			escaped(out, "hidden", s->hide.v[i]);
}

static void size(struct cs_buf *out, const char *label, uint64_t v, const char *how)
{
	char n[32] = "unlimited";

	if (v)
		cs_format_size(n, sizeof n, v);
	cs_buf_fmt(out, "  %-11s %s%s%s\n", label, n, v && *how ? ", " : "", v ? how : "");
}

static void count(struct cs_buf *out, const char *label, uint64_t v, const char *how)
{
	if (v)
		cs_buf_fmt(out, "  %-11s %llu, %s\n", label, (unsigned long long)v, how);
	else
		cs_buf_fmt(out, "  %-11s unlimited\n", label);
}

static void duration(struct cs_buf *out, const char *label, uint64_t v)
{
	char n[32] = "unlimited";

	if (v)
		cs_format_duration(n, sizeof n, v);
	cs_buf_fmt(out, "  %-11s %s\n", label, n);
}

static void limits(const struct profile_limits *l, struct cs_buf *out)
{
	cs_buf_str(out, "Limits\n");
	if (l->cpus > 0)
		cs_buf_fmt(out, "  %-11s %g\n", "cpus", l->cpus);
	else
		cs_buf_fmt(out, "  %-11s unlimited\n", "cpus");
	size(out, "memory", l->memory, "by control group, or by sampling where there is none");
	count(out, "pids", l->pids, "by control group and RLIMIT_NPROC");
	size(out, "disk", l->disk, "by the private tmpfs");
	count(out, "inodes", l->inodes, "by the private tmpfs");
	count(out, "files", l->files, "by RLIMIT_NOFILE");
	size(out, "output", l->output, "");
	duration(out, "wall", l->wall);
	duration(out, "cpu_time", l->cpu_time);
}

static void protections(const struct session_spec *s, struct cs_buf *out)
{
	cs_buf_str(out, "Protections (* required)\n");
	for (int p = 0; p < PROT_MAX; p++)
		if (!(s->spec.off & PROT_BIT(p)))
			cs_buf_fmt(out, " %c%-12s %s\n", s->spec.require & PROT_BIT(p) ? '*' : ' ', protection_name((enum protection)p),
				   protection_what((enum protection)p));
}

int session_explain(const struct session_opts *o, struct cs_buf *out, struct cs_err *err)
{
	struct session_spec s;
	int r = session_spec_make(o, &s, err);

	if (r < 0)
		return r;
	cs_buf_str(out, "Program\n");
	for (char *const *a = o->argv; *a; a++)
		escaped(out, a == o->argv ? "command" : "", *a);
	escaped(out, "in", s.spec.cwd);
	escaped(out, "profile", o->profile->name ? o->profile->name : "");
	files(o, &s, out);
	cs_buf_str(out, "Environment\n");
	for (size_t i = 0; i < s.env.n; i++)
		escaped(out, "", s.env.v[i]);
	cs_buf_str(out, "Network\n  none        a network namespace with loopback only\n");
	limits(&o->profile->limits, out);
	protections(&s, out);
	cs_buf_str(out, "Nothing was started.\n");
	session_spec_done(&s);
	return 0;
}
