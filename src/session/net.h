/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - a session's part in its network boundary: private to the session module. */
#pragma once
#include "egress/egress.h"
#include "session/session.h"

struct session_net;

/* *ret NULL: the profile has no network.  Adds to the spec what the sandbox is to have.
 * rules: from session_net_forget(), or -1: the profile's; stays the caller's. */
int session_net_open(const struct session_opts *o, int rules, const char *id, struct session_spec *s, struct session_net **ret, struct cs_err *err);
int session_net_fd(const struct session_net *n);           /* -1 without one; readable: session_net_handle() */
void session_net_handle(struct session_net *n);
void session_net_take(struct session_net *n, struct sandbox *box); /* when the sandbox has said something */
/* Ends it; *ret tells what it did. */
void session_net_end(struct session_net *n, bool ran, struct session_network *ret); /* ran: the program was started */
/* In a forked child: what is the parent's stays the parent's.  Returns the rules as they are now, or -1: there is no network. */
int session_net_forget(struct session_net *n);
