/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - JSON Schema: draft 2020-12 and draft-07.
 *
 * Knows the keywords of both, all of them. A schema is compiled once and then
 * checks any number of values; compiling refuses what it does not understand
 * of what it should (a reference that leads nowhere, a pattern that is none,
 * "minimum": "5"), so that no rule is silently without effect.
 * Trusts neither the schema nor the value: size and depth are limited, a check
 * has a budget of steps in which the work of patterns is counted too, and what
 * runs out of it does not validate.
 * Owns what it compiled: the documents may go.
 * Never reads a file or the network: a reference leads into the document, to a
 * document of the registry, or to the metaschemas of the two drafts.
 *
 * One schema may be used by one thread at a time (it keeps PCRE2's memory).
 */
#pragma once
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

struct schema;
struct schema_registry;

enum schema_draft { SCHEMA_2020_12, SCHEMA_DRAFT_7 };

struct schema_options {
	const struct schema_registry *registry; /* may be NULL */
	enum schema_draft draft;                /* for documents without "$schema" */
	bool formats;                           /* "format" is a rule; otherwise it is a remark, as 2020-12 has it */
};

/* Documents that references may lead to, by this URI or by their own "$id". Both are copied. */
struct schema_registry *schema_registry_new(void);
int schema_registry_add(struct schema_registry *reg, const char *uri, const struct json *doc, struct cs_err *err);
void schema_registry_free(struct schema_registry *reg);

/* `options` may be NULL. Errors name the place in the document. */
int schema_compile(const struct json *doc, const struct schema_options *options, struct schema **ret, struct cs_err *err);
void schema_free(struct schema *s);

enum { SCHEMA_FAILURES = 8, SCHEMA_STEPS = 1000000 };

struct schema_failure {
	char instance[256]; /* JSON pointer into the value */
	char keyword[320];  /* where the rule is: a URI with a JSON pointer */
	char message[512];  /* "args.amount: 12 is more than the maximum 10" */
};

struct schema_report {
	const char *name; /* in: what messages call the value, "args"; NULL: "value" */
	uint32_t steps;   /* in: the budget; 0: SCHEMA_STEPS */
	bool too_costly;  /* out */
	unsigned n;       /* out: failures that are told; at least one if it does not validate */
	struct schema_failure failures[SCHEMA_FAILURES];
};

/* `report` may be NULL. Its texts cannot act on a terminal, and are UTF-8. */
bool schema_validate(const struct schema *s, const struct json *value, struct schema_report *report);

/* Whether a string is of a format; true for formats that are not known. For tests. */
bool schema_format(const char *format, const char *s, size_t len);
