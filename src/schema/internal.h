/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - a compiled schema, and what the files of schema/ share. */
#pragma once
#include "schema/schema.h"

/* ---- a compiled schema ---- */

enum schema_kind { KIND_RULES, KIND_ANY, KIND_NONE };

struct node;
struct pattern;

/* "$dynamicAnchor" of a resource. */
struct dynamic {
	const char *name;
	const struct json *at;     /* only while compiling */
	const struct node *node;   /* NULL if no reference can lead here */
	struct dynamic *next;
};

/* A document, or a part of one with an "$id". */
struct resource {
	const char *uri; /* without fragment; "" for a document that has none */
	const struct json *root; /* only while compiling */
	enum schema_draft draft;
	unsigned vocabularies;
	bool used;
	struct dynamic *dynamics;
	struct resource *next;
};

struct nodes {
	const struct node **v;
	uint32_t n;
};

/* Values of "enum" or "const", with their hashes. */
struct choices {
	const struct json *values;
	const uint64_t *hashes;
	uint32_t n;
	bool single; /* "const" */
	uint64_t seed;
};

struct numbers {
	const struct json *minimum, *maximum, *above, *below, *multiple;
};

struct strings {
	uint64_t min, max;
	const struct pattern *pattern;
	const char *format;
};

struct arrays {
	uint64_t min, max;
	bool unique;
	struct nodes prefix;
	const struct node *rest; /* of what is behind the prefix */
	const char *rest_keyword;
	const struct node *contains, *unevaluated;
	uint64_t min_contains, max_contains;
	bool contains_marks; /* for "unevaluatedItems": 2020-12 */
};

struct property {
	const char *key;
	uint32_t len;
	bool required;
	const struct node *node; /* NULL: only required */
};

struct matched {
	const struct pattern *pattern;
	const struct node *node;
};

struct dependency {
	const char *key;
	uint32_t len;
	const struct json *names; /* either these strings are required */
	const struct node *node;  /* or this holds of the object */
};

struct objects {
	uint64_t min, max;
	struct property *properties;
	uint32_t n, required;
	uint32_t *table; /* hashed, if there are more than a few; entries are 1 + index */
	uint32_t table_size;
	uint64_t seed;
	struct matched *patterns;
	uint32_t n_patterns;
	const struct node *rest, *names, *unevaluated;
	struct dependency *dependencies;
	uint32_t n_dependencies;
};

struct logic {
	struct nodes all, any, one;
	const struct node *no, *when, *then, *otherwise;
	const struct node *ref, *dynamic;
	const char *dynamic_name; /* NULL: "$dynamicRef" is as good as "$ref" */
};

enum { TYPE_INTEGER = 1 << 6 }; /* the others are 1 << enum json_type */

struct node {
	enum schema_kind kind;
	uint8_t types; /* 0: any */
	bool tracks;   /* has an "unevaluated..." */
	const struct resource *resource;
	const char *path;
	const struct choices *choices, *constant;
	struct numbers *numbers;
	struct strings *strings;
	struct arrays *arrays;
	struct objects *objects;
	struct logic *logic;
};

struct schema {
	struct cs_arena arena;
	const struct node *root;
	struct pattern *patterns; /* all, to be freed */
	struct matcher *matcher;
	bool formats;
};

/* ---- pattern.c ---- */

struct matcher *schema_matcher_new(void);
void schema_matcher_free(struct matcher *m);
int schema_pattern_new(struct schema *s, const char *text, size_t len, const struct pattern **ret, struct cs_err *err);
const char *schema_pattern_text(const struct pattern *p);
void schema_patterns_free(struct pattern *p);
/* 1, 0, or -1 if it takes more than *steps, from which the work is taken. */
int schema_pattern_matches(struct matcher *m, const struct pattern *p, const char *s, size_t len, uint32_t *steps);
/* Whether the text is an ECMAScript regular expression. */
bool schema_pattern_valid(const char *text, size_t len);

/* ---- uri.c ---- */

/* A reference against a base, as RFC 3986 has it. The fragment is left out and given apart, decoded. */
char *schema_uri_resolve(struct cs_arena *a, const char *base, const char *ref, size_t len, const char **fragment);

/* ---- meta.c ---- */

/* The text of a metaschema or of a part of one; NULL if it is not one of ours. */
const char *schema_meta_text(const char *uri);

/* ---- map.c ---- */

/* Bytes to pointers. */
struct map {
	struct map_entry *v;
	size_t n, cap;
};

void *schema_map_get(const struct map *m, const void *key, size_t len);
/* False if there is no memory. The key is not copied. */
bool schema_map_put(struct cs_arena *a, struct map *m, const void *key, size_t len, void *value);

/* ---- resource.c: which part of which document a reference means ---- */

enum {
	VOCAB_APPLICATOR = 1,
	VOCAB_VALIDATION = 2,
	VOCAB_UNEVALUATED = 4,
	VOCAB_FORMAT = 8, /* as a rule */
	VOCAB_ALL = VOCAB_APPLICATOR | VOCAB_VALIDATION | VOCAB_UNEVALUATED,
};

/* A schema in a document. */
struct place {
	const struct json *at;
	struct resource *resource;
	struct node *node; /* once it is compiled, or is to be */
	const struct place *up;
	const char *keyword, *key; /* the way from there; key may be NULL */
	uint32_t key_len;
	struct place *next; /* of those to be compiled */
};

struct registry_entry {
	const char *uri;
	const struct json *doc;
	struct registry_entry *next;
};

struct schema_registry {
	struct cs_arena arena;
	struct registry_entry *entries;
};

struct compiler {
	struct schema *schema;
	struct cs_arena tmp;
	const struct schema_options *options;
	struct map places;    /* address of the value -> struct place */
	struct map resources; /* URI -> struct resource */
	struct map anchors;   /* URI#name -> struct place */
	struct resource *list;
	struct place *waiting, **waiting_end;
	struct cs_err *err;
};

enum { SCHEMA_WORDS = 400 };

int schema_fail_memory(struct compiler *c);
/* "at PATH: ..." */
int schema_fail_at(struct compiler *c, const struct place *at, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));
char *schema_place_path(struct cs_arena *a, const struct place *p);
int schema_scan_document(struct compiler *c, const struct json *doc, const char *uri, struct place **ret);
/* The place that a "$ref" in `from` leads to; its fragment, if that is an anchor, else NULL. */
int schema_resolve(struct compiler *c, const struct place *from, const struct json *ref, struct place **ret, const char **anchor);

/* ---- keywords.c ---- */

int schema_compile_place(struct compiler *c, struct place *p);
/* The node of a place, which is compiled sooner or later. */
const struct node *schema_node_of(struct compiler *c, struct place *p);
