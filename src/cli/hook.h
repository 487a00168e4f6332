/* SPDX-License-Identifier: Apache-2.0 */
/* hook.h - what the files of `caisson hook` share.
 *
 * hook_client.c  what clients send, and how each is answered
 * hook_log.c     a session's events, kept between processes
 * cmd_hook.c     one event judged
 *
 * Trusts the client's envelope (which event, which session); what the model chose in it
 * (tool, arguments) and what tools returned is hostile.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "gate/gate.h"
#include "json/json.h"

#include <stdbool.h>

enum hook_client { HOOK_CLAUDE_CODE, HOOK_CODEX, HOOK_GENERIC };
enum hook_kind { HOOK_OTHER, HOOK_CALL, HOOK_RESULT, HOOK_USER };

struct hook_event {
	enum hook_kind kind;
	const char *name;    /* as the client calls it */
	const char *session; /* never NULL */
	const char *id, *tool, *agent, *cwd; /* may be NULL; tool never of a call */
	const struct json *args;   /* of a call: an object */
	const struct json *result; /* may be NULL */
	const struct json *text;   /* of the user */
	bool ok;
	bool refused; /* a result: the client did not make the call */
};

struct hook_answer {
	enum rules_verdict verdict;
	char rule[64], fix[256], reason[768], approval[40];
	const struct json *args; /* to be used instead; NULL: as they are */
	bool rewritten;          /* args are the sandboxed form */
};

struct hook_style {
	bool rewrite; /* the client takes changed arguments */
	bool defer;   /* what is allowed is left to the client's own rules */
};

bool hook_client_of(const char *name, enum hook_client *ret);
int hook_parse(enum hook_client c, struct cs_arena *a, const char *input, size_t len, struct hook_event *ret, struct cs_err *err);
/* What goes to standard output; may be nothing. */
void hook_write(enum hook_client c, const struct hook_style *s, const struct hook_event *e, const struct hook_answer *a, struct cs_buf *out);
/* Whether this client can ask its user. */
bool hook_can_ask(enum hook_client c);

/* ---- hook_log.c ---- */
struct hook_log {
	int fd;
	struct cs_buf text; /* what it holds, whole lines */
	char name[64];
};

/* Locked until it is closed. */
int hook_log_open(enum hook_client c, const char *session, struct hook_log *ret, struct cs_err *err);
int hook_log_add(struct hook_log *l, const char *line, size_t len, struct cs_err *err);
void hook_log_close(struct hook_log *l);
/* Every line through the gate: `next` is called with its value before, and `seen` after, with the gate's answer. */
typedef int (*hook_next)(const struct json *line, void *arg, struct cs_err *err);
typedef void (*hook_seen)(const struct json *line, const char *answer, size_t len, void *arg);
int hook_log_replay(const struct hook_log *l, struct gate *g, hook_next next, hook_seen seen, void *arg, struct cs_err *err);
