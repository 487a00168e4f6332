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

/* Pins: a JSON file {"version":1,"tools":{NAME:{"hash":..., "tool":{...whole...}, "approved":{"by","at"}}}}.
 * The whole is kept so that a difference can be shown. */
struct pins;
int pins_load(const char *path, struct pins **ret, struct cs_err *err); /* a missing file: no pins */
void pins_free(struct pins *p);
/* Puts into quarantine what is not pinned, or pinned otherwise. Returns how many. */
size_t pins_apply(const struct pins *p, struct manifest *m);
/* What changed in one tool, line by line, escaped. */
void pins_diff(const struct pins *p, const struct manifest_tool *t, bool colour, struct cs_buf *out);
void pins_approve(struct pins *p, const struct manifest_tool *t, const char *by, const char *at);
int pins_save(const struct pins *p, const char *path, struct cs_err *err); /* atomically */
