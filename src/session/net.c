/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - a session's part in its network boundary. */
#include "session/net.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct session_net {
	const struct session_opts *o;
	int learn;              /* where what was learnt goes, or -1 */
	struct egress *egress;
	struct egress_box *box;
	struct sandbox_network network;
	struct sandbox_file files[EGRESS_FILES_MAX];
};

static bool connecting(const void *sockaddr, size_t len, bool stream, void *arg)
{
	struct session_net *n = arg;

	return egress_box_connecting(n->box, sockaddr, len, stream);
}

/* Only what can be appended to without ever waiting. */
static int open_log(const char *path, int *ret, struct cs_err *err)
{
	char shown[256];
	CS_FD int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600) : -1;
	struct stat st;

	*ret = -1;
	if (!path)
		return 0;
	cs_escape_to(shown, sizeof shown, path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "--net-log %s", shown);
	if (!S_ISREG(st.st_mode))
		return cs_fail(err, CS_E_INVALID, 0, "--net-log %s: not a regular file", shown);
	*ret = CS_TAKE_FD(fd);
	return 0;
}

static int open_learn(const char *path, int *ret, struct cs_err *err)
{
	char shown[256];

	*ret = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644) : -1;
	if (path && *ret < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "--learn %s", cs_escape_to(shown, sizeof shown, path));
	return 0;
}

static bool is_builtin(const char *name)
{
	for (size_t i = 0; i < profile_builtin_count(); i++)
		if (!strcmp(profile_builtin_name(i), name))
			return true;
	return false;
}

/* The profile that would have sufficed. */
static void write_learnt(const struct session_net *n, struct session_network *ret)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);
	size_t reached = 0;

	cs_buf_fmt(&text, "# What one run reached. Read it before you use it: what is not needed goes, and\n"
			  "# *.NAME stands for many names.\n%sextends: %s\nnetwork:\n  allow:",
		   is_builtin(n->o->profile->name) ? "" : "# It ran under another profile: say which here.\n",
		   is_builtin(n->o->profile->name) ? n->o->profile->name : "default");
	for (size_t i = 0; i < ret->n_told; i++) {
		if (ret->told[i].kind != EGRESS_REACHED)
			continue;
		reached++;
		cs_buf_fmt(&text, "\n    - \"%s\"", ret->told[i].fix);
	}
	cs_buf_str(&text, reached ? "\n" : " []\n");
	if (ftruncate(n->learn, 0) < 0 || cs_write_all(n->learn, cs_buf_text(&text), text.len) < 0)
		snprintf(ret->trouble, sizeof ret->trouble, "what was learnt could not be written: %s", strerror(errno));
	ret->learnt = reached;
}

static void add_plan(struct session_net *n, struct session_spec *s)
{
	const struct egress_plan *p = egress_box_plan(n->box);

	n->network = (struct sandbox_network){ .addresses = p->addresses, .n_addresses = p->n_addresses, .ranges = p->ranges, .n_ranges = p->n_ranges,
					       .ports = p->ports, .n_ports = p->n_ports, .connecting = connecting, .arg = n };
	for (size_t i = 0; i < p->n_files; i++)
		n->files[i] = (struct sandbox_file){ p->files[i].path, p->files[i].data, p->files[i].len };
	s->spec.files = n->files;
	s->spec.n_files = p->n_files;
	s->spec.network = &n->network;
	for (size_t i = 0; i < p->env.n; i++)
		session_spec_env(s, p->env.v[i]);
}

int session_net_open(const struct session_opts *o, int rules, const char *id, struct session_spec *s, struct session_net **ret, struct cs_err *err)
{
	struct egress_box_opts bo = { .id = id, .profile = o->profile, .learn = o->learn != NULL, .reached = o->reached, .rules = rules >= 0 ? &rules : NULL };
	char path[256];
	struct session_net *n;
	CS_FD int log = -1, learn = -1;
	int r;

	*ret = NULL;
	if (!profile_has_network(o->profile) && !o->learn)
		return 0;
	r = open_log(o->net_log, &log, err);
	if (r == 0)
		r = open_learn(o->learn, &learn, err);
	if (r == 0)
		r = session_net_path(id, path, sizeof path, err);
	if (r < 0)
		return r;
	bo.log = log;
	bo.control = path;
	n = cs_new(struct session_net);
	n->egress = egress_new();
	r = egress_box_new(n->egress, &bo, &n->box, err);
	if (r < 0) {
		egress_free(n->egress);
		free(n);
		return r;
	}
	n->o = o;
	n->learn = CS_TAKE_FD(learn);
	add_plan(n, s);
	*ret = n;
	return 0;
}

int session_net_fd(const struct session_net *n)
{
	return n ? egress_fd(n->egress) : -1;
}

void session_net_handle(struct session_net *n)
{
	egress_handle(n->egress);
}

void session_net_take(struct session_net *n, struct sandbox *box)
{
	int fds[SANDBOX_NET_FDS];
	size_t got = n ? sandbox_take_network(box, fds) : 0;

	if (got)
		egress_box_serve(n->box, fds, got);
}

static void take_told(const struct egress_told *t, void *arg)
{
	struct session_network *ret = arg;

	if (ret->n_told == SESSION_TOLD_MAX) {
		ret->told_cut = true;
		return;
	}
	if (!ret->told)
		ret->told = cs_calloc(SESSION_TOLD_MAX, sizeof *ret->told);
	ret->told[ret->n_told++] = *t;
}

static void done(struct session_net *n)
{
	egress_box_free(n->box);
	egress_free(n->egress);
	cs_close_p(&n->learn);
	free(n);
}

void session_net_end(struct session_net *n, struct session_network *ret)
{
	if (!n)
		return;
	ret->on = true;
	egress_box_end(n->box, &ret->totals, take_told, ret);
	if (egress_trouble(n->egress))
		snprintf(ret->trouble, sizeof ret->trouble, "%s", egress_trouble(n->egress));
	if (n->learn >= 0)
		write_learnt(n, ret);
	done(n);
}

int session_net_forget(struct session_net *n)
{
	int rules = -1;

	if (!n)
		return -1;
	rules = egress_box_rules(n->box);
	egress_forget(n->egress);
	done(n);
	return rules;
}

int session_net_call(const char *id, const char *request, struct cs_buf *reply, struct cs_err *err)
{
	char path[256];
	int r = session_net_path(id, path, sizeof path, err);

	return r < 0 ? r : egress_control(path, request, reply, err);
}
