/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files on the caller's side of the boundary share.
 *
 * plan.c     what a sandbox is to have
 * client.c   starting caisson-edge and speaking to it
 * wire.c     messages, for both sides
 * edge/      the boundary itself: another program
 */
#pragma once
#include "egress/egress.h"
#include "netpolicy/netpolicy.h"

enum { EGRESS_RANGES_MAX = 64, EGRESS_PORTS_MAX = 64, EGRESS_BOX_FDS = 3 + EGRESS_PORTS_MAX, EGRESS_RESTARTS_MAX = 8 };

struct egress {
	int epoll, sock;       /* sock -1: the boundary does not run */
	pid_t pid;
	unsigned starts;
	struct egress_box *boxes;
	uint32_t last_box;
	char trouble[256];
};

struct egress_box {
	struct egress *egress;
	struct egress_box *next;
	uint32_t number;
	char *id;
	bool learn, intercepts, publishes;
	bool reached;          /* whom it reached is to be told, and known to the boundary alone */
	bool budgets;          /* how much was used is known to the boundary alone */
	bool open;             /* the running boundary knows it */
	bool served;           /* ... and has its sockets */
	bool lost;             /* the boundary that had its certificate, or its account, is gone */
	int yaml;              /* its network's profile; the boundary writes changes of rules back */
	int log, control;
	char *control_path;
	int fds[EGRESS_BOX_FDS];
	size_t n_fds;
	struct egress_plan plan;
	struct sys_net_range addresses[2], ranges[EGRESS_RANGES_MAX];
	uint16_t ports[EGRESS_PORTS_MAX];
	struct cs_strv placeholders;
	struct cs_buf bundle, jks;
	char *resolv;
	struct cs_strv trusting; /* files of the host that ours stand in for */
	/* Addresses and ports that the boundary has said to listen on; a program connects to the same ones again and again. */
	struct egress_listening {
		uint8_t sockaddr[28];
		size_t len;
	} listening[16];
	size_t next_listening;
	uint32_t dropped;      /* as the boundary counts those that it listens on no more */
};

int egress_plan_make(struct egress_box *b, const struct profile_network *n, struct cs_err *err);
void egress_plan_trust(struct egress_box *b);
bool egress_plan_covers(const struct egress_box *b, const void *sockaddr, size_t len); /* is the address in a range? */
