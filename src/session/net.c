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
	struct egress *egress;
	struct egress_box *box;
	struct sandbox_network network;
	struct sandbox_file files[8];
};

static bool connecting(const void *sockaddr, size_t len, void *arg)
{
	struct session_net *n = arg;

	return egress_box_connecting(n->box, sockaddr, len);
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

int session_net_open(const struct session_opts *o, const char *id, struct session_spec *s, struct session_net **ret, struct cs_err *err)
{
	struct egress_box_opts bo = { .id = id, .profile = o->profile, .learn = o->learn != NULL };
	char path[256];
	struct session_net *n;
	CS_FD int log = -1;
	int r;

	*ret = NULL;
	if (!profile_has_network(o->profile) && !o->learn)
		return 0;
	r = open_log(o->net_log, &log, err);
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

	if (ret->n_told == SESSION_TOLD_MAX)
		return;
	if (!ret->told)
		ret->told = cs_calloc(SESSION_TOLD_MAX, sizeof *ret->told);
	ret->told[ret->n_told++] = *t;
}

static void done(struct session_net *n)
{
	egress_box_free(n->box);
	egress_free(n->egress);
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
	done(n);
}

void session_net_forget(struct session_net *n)
{
	if (!n)
		return;
	egress_forget(n->egress);
	done(n);
}

int session_net_call(const char *id, const char *request, struct cs_buf *reply, struct cs_err *err)
{
	char path[256];
	int r = session_net_path(id, path, sizeof path, err);

	return r < 0 ? r : egress_control(path, request, reply, err);
}
