/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - must X before Y: rules over the history of calls.
 *
 * Knows      the rule language (docs/rules.md), its types, and how to watch a
 *            trace in time and space that do not grow with its length.
 * Does not   know processes, files, clocks: time comes with the events, and what
 *            a rule asks of the world (provenance, shell classes, session state)
 *            comes from the caller's rules_world.
 * Trusts     the text of a rules file for meaning, never for size; arguments and
 *            results of calls not at all.
 * Owns       `struct rules` owns its tree and is never changed after loading: many
 *            monitors, in many threads, may share it.  A monitor owns its state.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/* In the order of strictness. */
enum rules_verdict { RULES_ALLOW, RULES_SANDBOX, RULES_ASK, RULES_DENY };
const char *rules_verdict_name(enum rules_verdict v); /* allow sandbox ask deny */

enum { RULES_READ = 1, RULES_WRITE = 2, RULES_NET = 4, RULES_EXEC = 8, RULES_SPEND = 16 };

/* What the rules are checked against. Owned by the caller of rules_load(), copied by it. */
struct rules_tool {
	const char *name;
	const struct json *input;  /* JSON Schema of the arguments, or NULL: any */
	const struct json *output; /* of the result, or NULL: any */
	unsigned effects;
};

struct rules;
struct rules_warning {
	uint32_t line, column;
	const char *text;
};

/* Errors are "NAME:LINE:COLUMN: what is wrong; what to write instead". A file may declare
 * tools of its own (`tool t(a: string) -> {b: number} writes;`), which are added to `tools`. */
int rules_load(const char *name, const char *text, size_t len, const struct rules_tool *tools, size_t n_tools,
	       struct rules **ret, struct cs_err *err);
void rules_free(struct rules *r);
/* Its lines are those of the text: rules_place() tells the file's. */
size_t rules_warnings(const struct rules *r, const struct rules_warning **ret);

/* Where a part of a text that was put together comes from, for messages. */
struct rules_part {
	const char *name;
	uint32_t from;  /* its first line in the whole */
	uint32_t first; /* that line's number in its own file */
};
/* Copied. In their order; once, right after rules_load(). */
void rules_set_parts(struct rules *r, const struct rules_part *parts, size_t n);
/* The file of a line of the text, and its line there (ret_line may be NULL). */
const char *rules_place(const struct rules *r, uint32_t line, uint32_t *ret_line);
/* The inline tests, each on a fresh monitor; what failed is told in `out`, a line each.
 * Returns how many failed. */
size_t rules_test(const struct rules *r, size_t *ret_run, struct cs_buf *out);
/* A rule in plain words; NULL: all of them, a line each, with their names. */
int rules_explain(const struct rules *r, const char *rule, struct cs_buf *out, struct cs_err *err);
/* The tool's index in what was loaded, or -1. */
int rules_tool_index(const struct rules *r, const char *name);
size_t rules_tool_count(const struct rules *r);
/* Is there a rule that is asked about calls of it? */
bool rules_tool_mentioned(const struct rules *r, int index);
/* Is one of them an `allow` rule? */
bool rules_tool_allowable(const struct rules *r, int index);
const char *rules_tool_name(const struct rules *r, size_t index);
/* The verdict of `default V;`, or `otherwise`. */
enum rules_verdict rules_fallback(const struct rules *r, enum rules_verdict otherwise);

/* ---- watching a trace ---- */

/* What only the host knows. Each callback may be NULL: the answer is then unknown, which satisfies nothing.
 * They give values in `a`, or NULL for unknown. */
struct rules_world {
	void *ctx;
	const struct json *(*session)(void *ctx, struct cs_arena *a, const char *name);
	const struct json *(*from)(void *ctx, struct cs_arena *a, const struct json *value); /* an array of classes */
	const struct json *(*shell)(void *ctx, struct cs_arena *a, const struct json *command);
	const struct json *(*shell_effect)(void *ctx, struct cs_arena *a, const char *effect, const struct json *command);
};

struct rules_event {
	enum { RULES_EV_USER, RULES_EV_CONFIRM, RULES_EV_CALL, RULES_EV_OK, RULES_EV_FAIL, RULES_EV_END } kind;
	int tool;                  /* index; CALL, OK, FAIL */
	const struct json *args;   /* CALL, OK, FAIL: an object */
	const struct json *result; /* OK, FAIL; may be NULL */
	uint64_t t_ms;             /* never runs backwards: an older time counts as the latest seen */
};

struct rules_hit {
	enum rules_verdict verdict;
	const char *rule, *because, *fix; /* of the strictest rule that fired, the first of equals; NULL: none did */
	uint32_t line;
	bool unknown; /* it fired because something was absent or not known */
	bool allowed; /* some `allow` rule fired */
	const char *sandbox; /* the first `sandbox` rule that fired, whatever else did: a question's yes does not lift it */
	bool over;    /* unknown because a limit of the monitor was passed */
	/* END, of an obligation with variables: the values for which it does not hold; NULL with n_values 0: for all that no
	 * event had. Until the monitor is used again. */
	const struct json *values;
	uint32_t n_values;
};

struct rules_limits {
	uint32_t tuples;      /* per formula; 0: 65,536 */
	uint32_t value_bytes; /* of one remembered field; 0: 16 KiB */
	uint64_t bytes;       /* of a monitor in all; 0: 64 MiB */
};

struct rules_monitor;
struct rules_monitor *rules_monitor_new(const struct rules *r, const struct rules_limits *limits);
void rules_monitor_free(struct rules_monitor *m);
/* Asks; changes nothing. `e` is a CALL or an END. */
void rules_monitor_check(struct rules_monitor *m, const struct rules_event *e, const struct rules_world *w,
			 struct rules_hit *ret);
/* It happened. */
void rules_monitor_note(struct rules_monitor *m, const struct rules_event *e, const struct rules_world *w);
/* Tools that may be allowed now, whatever their arguments: never too few. `may` has rules_tool_count() places.
 * A tool may be called if no forbid rule is sure to fire. */
void rules_monitor_next(struct rules_monitor *m, const struct rules_world *w, bool *may);
uint64_t rules_monitor_bytes(const struct rules_monitor *m);
/* A copy with all its state: the plan gate tries a plan on one. */
struct rules_monitor *rules_monitor_fork(const struct rules_monitor *m);
