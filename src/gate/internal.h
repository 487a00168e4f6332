/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files of the gate share.
 *
 * policy.c    a profile's keys tools, roles, rules and gate into a struct gate_policy
 * policy_lists.c  what allow:, ask: and deny: name is there
 * tools.c     which tool a call means, who may call it
 * session.c   one session: its life, its calls in flight, its results
 * check.c     the checks of one call, in their order; the strictest answer wins
 * origin.c    where the values of a call come from
 * plan.c      a plan is judged, and calls are held to it
 * budget.c    how often, how much, how long; loops; too many refusals
 * world.c     what rules ask of the gate: provenance, shell classes, session state
 * protocol.c  lines of JSON in and out
 * manifest.c, screen.c, pins.c, approval*.c: see their headers
 */
#pragma once
#include "gate/gate.h"
#include "gate/manifest.h"
#include "gate/origin.h"
#include "gate/plan.h"
#include "profile/profile.h"
#include "rules/pattern.h"
#include "schema/schema.h"
#include "shell/shell.h"

enum {
	GATE_LINE_MAX = 4 << 20,    /* bytes of one event */
	GATE_CALLS_MAX = 4096,      /* in flight: asked or running */
	GATE_FLIGHTS_MAX = 64 << 20, /* bytes of their arguments; the last may pass it */
	GATE_POLICY_MAX = 4 << 20,
	GATE_NAME_MAX = 128,        /* bytes of a tool's, an agent's, a role's name, an id */
};

/* A pattern of names, with conditions on arguments: "send_*(channel=general)". */
struct gate_pattern {
	const char *glob;
	struct gate_cond {
		const char *arg;
		const struct json *value;      /* equal to, or */
		const struct pattern *pattern; /* the whole of the string */
	} *conds;
	size_t n_conds;
	uint32_t line;
	const char *file;      /* for messages while it is read */
	const struct json *at;
};

struct gate_list {
	struct gate_pattern *v;
	size_t n;
};

struct gate_access {
	struct gate_list allow, ask, deny;
	enum rules_verdict otherwise; /* for what no list names */
	bool has_otherwise;
};

struct gate_role {
	const char *name;
	struct gate_access access;
};

enum gate_format { GATE_FORMAT_AUTO, GATE_FORMAT_JSON, GATE_FORMAT_YAML, GATE_FORMAT_LINES, GATE_FORMAT_TEXT };

/* An argument that decides where something goes, or what is acted on. */
struct gate_sink {
	const char *arg;
	bool links; /* only what looks like an address in its text: links, e-mail addresses */
	enum rules_verdict verdict[ORIGIN_MAX]; /* by the class of its value */
};

struct gate_tool {
	const char *name;
	const struct manifest_tool *in; /* NULL: only the profile speaks of it */
	struct schema *input, *output;  /* NULL: any */
	const struct json *input_doc, *output_doc;
	unsigned effects;               /* RULES_READ ... */
	bool annotated;                 /* the profile has an entry */
	struct gate_sink *sinks;
	size_t n_sinks;
	const char *shell;              /* the argument that is a shell command */
	const char *money;              /* the argument that is an amount */
	bool trusted, sensitive, secret; /* its results: may be believed; are private; are secrets */
	enum gate_format format;
	const char *const *free_fields; /* of its results: text that anyone may have written */
	size_t n_free;
	const char *const *trusted_fields;
	size_t n_trusted;
	uint64_t rate_n, rate_ms;       /* at most n calls in so many ms; 0: any */
	int index;                      /* in the rules */
};

struct gate_budget {
	uint64_t calls, tokens, time_ms; /* 0: any */
	double money;                    /* below 0: any */
};

struct gate_policy {
	struct cs_arena arena;
	const char *path;
	struct profile profile;
	bool loaded;                     /* the profile */
	struct cs_strv roots, own;
	struct sh_policy shell;
	struct manifest *manifest;       /* may be NULL */
	struct pins *pins;
	struct gate_tool *tools;         /* sorted by name */
	size_t n_tools;
	struct gate_access access;
	struct gate_role *roles;
	size_t n_roles;
	struct rules *rules;             /* never NULL */
	bool no_allow;                   /* rules came on top of a locked profile: none of them lifts the default */
	struct rules *after;             /* post-conditions, a rule per tool; NULL: none */
	enum rules_verdict origin[ORIGIN_MAX];
	enum rules_verdict shell_verdict[3];  /* by sh_class */
	enum rules_verdict extra_read, extra_write; /* calls outside an approved plan */
	bool plan_required;
	enum rules_verdict rule_of_two;  /* RULES_ALLOW: off */
	struct gate_budget budget;
	unsigned loop, denials;          /* 0: off */
	uint64_t approval_ms;
};

/* ---- tools.c ---- */
const struct gate_tool *gate_tool_find(const struct gate_policy *p, const char *name);
bool gate_pattern_matches(const struct gate_pattern *p, const char *tool, const struct json *args);
/* What the lists of the policy and of the role say. */
struct gate_leave {
	enum rules_verdict verdict;
	bool by_default; /* no list of the policy's names it: an `allow` rule may */
	bool sandbox;    /* the policy or the role says so, be the other stricter */
	char reason[256];
	char fix[256];   /* what would allow it */
};
void gate_access(const struct gate_policy *p, const char *role, const char *tool, const struct json *args, struct gate_leave *ret);
/* Does it do more than read? One that does not say may do anything. */
bool gate_acts(const struct gate_tool *t);
/* May it be, with some arguments? */
bool gate_may_access(const struct gate_policy *p, const char *role, const char *tool);
bool gate_role_known(const struct gate_policy *p, const char *role);

/* ---- a session ---- */
enum gate_state { GATE_ASKED, GATE_RUNNING };

/* A call that was let through, or waits for an answer. */
struct gate_flight {
	char id[GATE_NAME_MAX + 1];
	char agent[GATE_NAME_MAX + 1], role[GATE_NAME_MAX + 1];
	enum gate_state state;
	const struct gate_tool *tool;
	struct cs_arena arena; /* its arguments */
	const struct json *args;
	int step;              /* of the plan; -1: none */
	uint64_t tokens;
	struct gate_answer answer; /* what was asked about it */
	struct gate_flight *next;
};

struct gate_denial {
	char rule[64];
	unsigned n;
};

struct gate {
	const struct gate_policy *policy;
	struct gate_options options;
	struct rules_monitor *monitor, *after;
	struct origin *origin;
	struct plan *plan;                /* NULL: none approved */
	struct gate_flight *flights;
	unsigned n_flights;
	size_t flight_bytes;              /* of their arguments */
	struct budget *budget;
	uint64_t t_ms, t_first;
	uint64_t made;                    /* ids for calls that had none */
	bool begun, ended;
	bool untrusted, sensitive, secret; /* what it has read so far */
	bool heard;                       /* something untrusted since the user last wrote */
	unsigned suspicion;               /* how much read text looked like an injection; decides nothing */
	struct gate_denial denials[64];
	unsigned n_denials;
	struct cs_arena scratch;          /* of one event */
	struct rules_world world;
	const char *role, *agent;         /* of the call being judged */
	const struct gate_tool *tool;     /* that it calls; NULL: a plan is judged */
	char *shell_text;                 /* the command whose verdict is kept */
	struct sh_verdict shell_verdict;
};

/* ---- check.c ---- */
struct gate_probe {
	const struct gate_call *call;
	const struct gate_tool *tool;
	const struct gate_answer *confirmed; /* a person has said yes to these questions; refusals stand, and so do others */
	int step;       /* of the plan it was found to be; -1 */
	struct gate_leave leave;
};
void gate_judge(struct gate *g, struct gate_probe *p, struct gate_answer *ret);
/* The stricter of what is there and this. */
void gate_raise(struct gate_answer *a, enum rules_verdict v, const char *rule, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* One or more values of an argument as short text, escaped. */
const char *gate_show(struct gate *g, const struct json *v);

/* ---- budget.c ---- */
struct budget *budget_new(const struct gate_policy *p);
void budget_free(struct budget *b);
void budget_check(struct gate *g, const struct gate_probe *p, struct gate_answer *ret);
void budget_note(struct gate *g, const struct gate_call *c, const struct gate_tool *t);
void budget_result(struct gate *g, const struct gate_flight *f, const struct json *result);

/* ---- world.c ---- */
void world_init(struct gate *g);
const struct sh_verdict *gate_classify(struct gate *g, const struct json *command);
void gate_classify_done(struct gate *g);

/* ---- session.c ---- */
/* An event at this time begins. */
void gate_at(struct gate *g, uint64_t t_ms);
void gate_grant(struct gate *g, const struct gate_call *c, const struct gate_tool *t, int step);
struct gate_flight *gate_flight_find(struct gate *g, const char *id);
/* A result as a value: a string that is JSON, YAML or lines becomes what it says. */
const struct json *gate_structure(struct cs_arena *a, enum gate_format format, const struct json *v);
