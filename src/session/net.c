/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - a session's part in its network boundary. */
#include "session/net.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "netpolicy/netpolicy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct session_net {
	const struct session_opts *o;
	int learn;              /* where what was learnt goes, or -1 */
	bool learn_made;        /* that file was not there before */
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

/* Before anything starts; what stands there is left alone until there is something to write. */
static int open_learn(const char *path, int *ret, bool *ret_made, struct cs_err *err)
{
	enum { FLAGS = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };
	CS_FD int fd = path ? open(path, FLAGS | O_CREAT | O_EXCL, 0644) : -1;
	char shown[256];
	struct stat st;

	*ret = -1;
	*ret_made = fd >= 0;
	if (!path)
		return 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, FLAGS);
	cs_escape_to(shown, sizeof shown, path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "--learn %s: the file cannot be written", shown);
	if (!S_ISREG(st.st_mode))
		return cs_fail(err, CS_E_INVALID, 0, "--learn %s: not a regular file", shown);
	*ret = CS_TAKE_FD(fd);
	return 0;
}

static bool is_builtin(const char *name)
{
	for (size_t i = 0; i < profile_builtin_count(); i++)
		if (!strcmp(profile_builtin_name(i), name))
			return true;
	return false;
}

/* The address that the operator gave a name is needed again. */
static void add_host_of(const struct profile *p, const char *name, struct cs_strv *ret)
{
	const struct cs_strv *hosts = &p->network.hosts;

	for (size_t i = 0; i < hosts->n; i++) {
		struct net_host h;

		if (net_host_parse(hosts->v[i], &h, NULL) == 0 && !strcmp(h.name, name) && !cs_strv_has(ret, hosts->v[i]))
			cs_strv_add(ret, hosts->v[i]);
	}
}

/* The profile that would have sufficed. */
static void learnt_text(const struct profile *p, const struct cs_strv *rules, const struct cs_strv *hosts, struct cs_buf *text)
{
	cs_buf_fmt(text, "# What one run reached. Read it before you use it: what is not needed goes, and\n"
			 "# *.NAME stands for many names.\n%sextends: %s\nnetwork:\n",
		   is_builtin(p->name) ? "" : "# It ran under another profile: say which here.\n", is_builtin(p->name) ? p->name : "default");
	cs_buf_fmt(text, "  allow:%s\n", rules->n ? "" : " []");
	for (size_t i = 0; i < rules->n; i++)
		cs_buf_fmt(text, "    - \"%s\"\n", rules->v[i]);
	cs_buf_str(text, hosts->n ? "  hosts:\n" : "");
	for (size_t i = 0; i < hosts->n; i++) {
		int name = (int)strcspn(hosts->v[i], "=");

		cs_buf_fmt(text, "    \"%.*s\": \"%s\"\n", name, hosts->v[i], hosts->v[i] + name + 1);
	}
}

/* A run that reached nothing says nothing of what others need: what an earlier one learnt stays. */
static bool keeps_old(const struct session_net *n, size_t reached)
{
	struct stat st;

	return !reached && (fstat(n->learn, &st) < 0 || st.st_size > 0);
}

static void write_learnt(const struct session_net *n, struct session_network *ret)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 20);
	struct cs_strv rules = { 0 }, hosts = { 0 };

	for (size_t i = 0; i < ret->n_told; i++) {
		if (ret->told[i].kind != EGRESS_REACHED)
			continue;
		cs_strv_add(&rules, ret->told[i].fix);
		add_host_of(n->o->profile, ret->told[i].what, &hosts);
	}
	learnt_text(n->o->profile, &rules, &hosts, &text);
	ret->learnt = rules.n;
	if (keeps_old(n, rules.n))
		ret->learn = SESSION_LEARN_KEPT;
	else if (ftruncate(n->learn, 0) < 0 || cs_write_all(n->learn, cs_buf_text(&text), text.len) < 0)
		snprintf(ret->trouble, sizeof ret->trouble, "what was learnt could not be written: %s", strerror(errno));
	else
		ret->learn = SESSION_LEARN_WRITTEN;
	cs_strv_done(&rules);
	cs_strv_done(&hosts);
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
	bool made = false;
	int r;

	*ret = NULL;
	if (!profile_has_network(o->profile) && !o->learn)
		return 0;
	r = session_net_path(id, path, sizeof path, err);
	if (r == 0)
		r = open_log(o->net_log, &log, err);
	if (r == 0)
		r = open_learn(o->learn, &learn, &made, err);
	if (r < 0)
		return r;
	bo.log = log;
	bo.control = path;
	n = cs_new(struct session_net);
	n->egress = egress_new();
	r = egress_box_new(n->egress, &bo, &n->box, err);
	if (r < 0) {
		if (made)
			(void)unlink(o->learn);
		egress_free(n->egress);
		free(n);
		return r;
	}
	n->o = o;
	n->learn = CS_TAKE_FD(learn);
	n->learn_made = made;
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

void session_net_end(struct session_net *n, bool ran, struct session_network *ret)
{
	if (!n)
		return;
	ret->on = true;
	egress_box_end(n->box, &ret->totals, take_told, ret);
	if (egress_trouble(n->egress))
		snprintf(ret->trouble, sizeof ret->trouble, "%s", egress_trouble(n->egress));
	if (n->learn >= 0 && ran)
		write_learnt(n, ret);
	else if (n->learn_made)
		(void)unlink(n->o->learn);
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
