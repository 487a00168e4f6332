/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - the tools that a server says it has, and whether they are what was approved.
 *
 * A manifest is hostile: descriptions speak to the model, names imitate others,
 * schemas smuggle defaults.  A tool is known by the SHA-256 over the canonical JSON of
 * {name, description, inputSchema, outputSchema, annotations}.  One whose hash is not
 * the pinned one, or that fails the screening, is in quarantine: it cannot be called
 * until a person has seen the difference and approved.  A pin is never renewed by itself.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

struct manifest_tool {
	const char *name, *description;
	const char *server;              /* may be NULL */
	const struct json *input, *output, *annotations; /* may be NULL */
	const struct json *whole;        /* the canonical object that is hashed */
	char hash[65];                   /* hex */
	char quarantine[256];            /* why it may not be called; empty: it may */
	const char *title;               /* may be NULL */
	bool refused;                    /* of one in quarantine: no approval helps */
};

struct manifest {
	struct cs_arena arena;
	const char *origin;
	struct manifest_tool *tools;
	size_t n;
};

/* MCP's tools/list result ({"tools": [...]}), a bare array, or an array of OpenAI functions
 * ({"type":"function","function":{...}} or {name, description, parameters}). */
int manifest_read(const char *origin, const char *text, size_t len, struct manifest **ret, struct cs_err *err);
void manifest_free(struct manifest *m);
struct manifest_tool *manifest_find(const struct manifest *m, const char *name);
/* Puts into quarantine: hidden or confusing characters, names within two edits of another tool's,
 * one name from two servers, text that speaks to the model.  Returns how many. */
size_t manifest_screen(struct manifest *m);
/* The same between manifests, each of which is another server's: one name in two of them, or nearly one,
 * and a description that names the other's tools.  Each must have been screened. */
size_t manifest_screen_across(struct manifest *const *all, size_t n);
/* Keeps the first reason, unless the new one refuses and that one did not. */
void manifest_quarantine(struct manifest_tool *t, bool refused, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Pins: a JSON file {"version":1,"tools":{NAME:{"hash":..., "tool":{...whole...}, "approved":{"by","at"}}}}.
 * The whole is kept so that a difference can be shown. */
struct pins;
enum pin_state { PIN_NONE, PIN_SAME, PIN_CHANGED };
enum pin_state pins_state(const struct pins *p, const struct manifest_tool *t);
/* Names that are pinned and that the manifest no longer has: called for each. */
void pins_missing(const struct pins *p, const struct manifest *m, void (*tell)(const char *name, void *arg), void *arg);
int pins_load(const char *path, struct pins **ret, struct cs_err *err); /* a missing file: no pins */
void pins_free(struct pins *p);
/* Puts into quarantine what is not pinned, or pinned otherwise; takes out what the screening only suspected
 * and a person has approved as it is.  After the screening.  Returns how many are in quarantine. */
size_t pins_apply(const struct pins *p, struct manifest *m);
/* What changed in one tool, line by line, escaped. */
void pins_diff(const struct pins *p, const struct manifest_tool *t, bool colour, struct cs_buf *out);
void pins_approve(struct pins *p, const struct manifest_tool *t, const char *by, const char *at);
int pins_save(const struct pins *p, const char *path, struct cs_err *err); /* atomically */
