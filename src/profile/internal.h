/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files of the profile module share.
 *
 * table.c   every key once: type, place in struct profile, what widens it, doc
 * tree.c    bytes to a small tree of nodes that know their line and column
 * value.c   one value of one key into a profile; the `locked` rules
 * list.c    the same for items of lists
 * network.c the same for what is below `network`; secret.c for its secrets
 * rows.c    the same for rows of the table of commands; trust.c whose they are
 * copy.c    another of the same
 * check.c   what only the whole can tell
 * load.c    a tree (and what it extends) into a profile
 * builtin.c the built-in profiles; tools/gen_profiles.c takes its place while
 *           they are being generated
 */
#pragma once
#include "profile/profile.h"

#include <sys/types.h>

enum {
	PROFILE_MAX_BYTES = 256 * 1024,
	PROFILE_MAX_NEST = 16,
	PROFILE_MAX_ITEMS = 8192,
	PROFILE_MAX_EXTENDS = 8,
	PROFILE_MAX_HOSTS = 256,  /* network.hosts */
	PROFILE_MAX_PUBLISH = 64,
	PROFILE_MAX_SECRETS = 64,
	PROFILE_MAX_SECRET_HOSTS = 16, /* of each */
	PROFILE_MAX_ROWS = 256,   /* shell.commands, of all files together */
};

enum key_type {
	KEY_NAME,        /* a short word */
	KEY_TEXT,        /* one line for people */
	KEY_EXTENDS,     /* a profile's name or path */
	KEY_BOOL,
	KEY_WORD,        /* one of key.words */
	KEY_NETWORK,     /* the word none; also a section */
	KEY_RULES,       /* list of rules as in netpolicy.h */
	KEY_HOSTS,       /* mapping NAME: ADDRESS[:PORT], held as NAME=ADDRESS[:PORT] */
	KEY_PUBLISH,     /* list of [ADDRESS:]PORT:PORT */
	KEY_SECRETS,     /* list of mappings */
	KEY_ROWS,        /* mapping NAME: row, or NAME: list of rows */
	KEY_PATHS,       /* list of absolute paths */
	KEY_PATTERNS,    /* list of hide patterns */
	KEY_ENVNAMES,    /* list of variable names or patterns */
	KEY_ENVVARS,     /* mapping NAME: value, held as NAME=VALUE */
	KEY_SIZE,
	KEY_TIME,
	KEY_COUNT,
	KEY_CPUS,
	KEY_PROTECTIONS, /* list of protection names, or the word all */
	KEY_GATE,    /* read by the gate; any shape here */
};

/* Which change of a key gives the program more than before.  A locked profile
 * refuses exactly these. */
enum key_widen {
	WIDEN_NEVER,
	WIDEN_ALWAYS, /* any change */
	WIDEN_MORE,   /* a higher limit, or none */
	WIDEN_WORD,   /* a word of greater width */
	WIDEN_FALSE,  /* true to false */
	WIDEN_ADD,    /* an item more */
	WIDEN_REMOVE, /* an item less */
};

struct key_word {
	const char *name; /* NULL ends the list */
	unsigned value;
	unsigned width; /* for WIDEN_WORD */
	const char *doc;
};

struct key {
	const char *path;
	enum key_type type;
	enum key_widen widen;
	size_t offset; /* in struct profile */
	const struct key_word *words;
	uint64_t min, max; /* of limits */
	const char *fallback; /* what holds when no profile says anything */
	const char *doc;
};

extern const struct key profile_keys[];
extern const size_t profile_keys_n;

const struct key *key_find(const char *path);
/* "files" is a section because keys begin with "files."; rest of the path, or NULL. */
const char *key_below(const struct key *k, const char *section);
bool key_is_section(const char *word);
bool key_is_list(const struct key *k); /* of single values */
const char *key_type_words(const struct key *k); /* "a size (such as 64M or 2GiB)" */
const char *key_word_name(const struct key *k, unsigned value);

static inline void *key_at(const struct key *k, const struct profile *p)
{
	return (char *)(uintptr_t)p + k->offset;
}
/* A limit as a person writes it: "64MiB", "10m", "unlimited". */
void key_format_limit(const struct key *k, const struct profile *p, char *dst, size_t size);

/* Where a value was written.  line 0: not in a file, origin alone says it. */
struct place {
	const char *origin;
	unsigned line, col;
};
int profile_fail(struct cs_err *err, enum cs_code code, const struct place *at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));
/* " (did you mean 'x'?)" or "". */
const char *profile_hint(char *dst, size_t size, const char *nearest);

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };
struct node {
	enum node_kind kind;
	unsigned line, col;
	bool plain;         /* a scalar without quotes: may mean null or true */
	char *text;         /* of a scalar; holds no NUL inside */
	struct node *key;   /* of a member of a mapping */
	struct node *child; /* first member */
	struct node *next;
};
bool profile_is_utf8(const char *s);
int tree_read(const char *text, size_t len, const char *origin, struct node **ret, struct cs_err *err);
void tree_free(struct node *n);
bool node_is_null(const struct node *n);

struct load;
/* One change to one key. */
struct change {
	struct place at;
	bool locked;
	const struct load *file; /* NULL: a flag */
	size_t inherited; /* the first so many items of a list may be removed with '!' */
};
int value_apply(const struct key *k, struct profile *p, const char *text, struct change *c, struct cs_err *err);
/* One item of a list of paths, patterns or names: list.c. */
int value_apply_item(const struct key *k, struct profile *p, const char *text, struct change *c, struct cs_err *err);
/* value NULL takes an inherited variable away. */
int value_apply_var(const struct key *k, struct profile *p, const char *name, const char *value, const struct change *c,
		    struct cs_err *err);
/* list.c: for messages and for the forms in which things are kept. */
int value_bad(const struct key *k, const char *text, const struct change *c, struct cs_err *err, const char *why);
int value_locked(const struct key *k, const struct cs_strv *list, const char *text, const struct change *c, struct cs_err *err);
const char *value_why_not_name(const char *s, const char *also); /* of a variable; NULL: it is one */
char *value_clean_path(const char *s); /* NULL if it has ".." */
size_t value_find_var(const struct cs_strv *list, const char *name); /* SIZE_MAX: not there */
void value_remove_at(struct cs_strv *list, size_t i);
bool value_has_control(const char *s); /* a tab is none */

/* network.c.  The item of a list of rules or ports in its canonical form; whether the list can take it. */
int network_tidy(const struct key *k, const char *text, const struct change *c, char **ret, struct cs_err *err);
int network_check_room(const struct key *k, const struct cs_strv *list, const char *item, const struct change *c, struct cs_err *err);
/* address NULL takes an inherited host away. */
int network_apply_host(const struct key *k, struct profile *p, const char *name, const char *address, const struct change *c,
		       struct cs_err *err);
bool network_is_none(const struct profile_network *n); /* nothing was said */
void profile_network_done(struct profile_network *n);

/* secret.c */
int secrets_apply(const struct key *k, struct profile *p, const struct node *list, struct change *c, struct cs_err *err);
const struct node *secrets_node(const struct node *list, const char *name); /* where one is written, or NULL */
/* NAME=FROM@HOST[,HOST], or !NAME. */
int secrets_set(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err);
int secrets_expand_home(struct profile *p, const struct place *at, struct cs_err *err);
void profile_secret_done(struct profile_secret *s);

/* rows.c */
int rows_apply(const struct key *k, struct profile *p, const struct node *map, struct change *c, struct cs_err *err);
/* NAME=ROW, or !NAME. */
int rows_set(const struct key *k, struct profile *p, const char *text, const struct change *c, struct cs_err *err);
void profile_shell_done(struct profile_shell *s);
/* The names that have rows, in order, each once; and those of one name that count, first the one that takes the place of ours
 * (NULL: none does), then those that narrow.  Pointers into the profile; the arrays are the caller's to free. */
size_t rows_names(const struct profile *p, const char ***ret);
size_t rows_of(const struct profile *p, const char *name, const char ***ret);

/* trust.c: why others could have written this, or NULL; *ret_real is its path, the caller's to free. */
const char *trust_doubt(int fd, char **ret_real);

/* check.c.  Does a list of the environment take this secret inside? */
int secret_check_env(const struct profile_secret *s, const struct profile *p, const struct place *at, struct cs_err *err);
/* Would this name or pattern of env.pass, or this name of env.set? */
int secrets_check_env(const struct profile *p, const char *item, bool set, const struct place *at, struct cs_err *err);
/* The whole; when it fails, *ret_which is the secret that is wrong. */
int secrets_check(const struct profile *p, const struct place *at, const struct profile_secret **ret_which, struct cs_err *err);

/* "~/x" becomes "$HOME/x" in every list of paths.  Last of all, so that the
 * built-in profiles can be compiled in without anybody's home. */
char *profile_expand_item(const char *text, bool *ret_homeless); /* NULL: nothing to expand, or no home */
int profile_expand_home(struct profile *p, const char *origin, struct cs_err *err);

/* The chain of profiles being loaded, innermost first. */
struct load {
	const struct load *up;
	const char *origin;
	dev_t dev;
	ino_t ino;
	char *real;        /* path without links; NULL: it is no file */
	const char *doubt; /* why it is not trusted; NULL: it is */
};
/* Without the expansion of ~/. */
int profile_read_file(const char *path, const struct load *up, struct profile *ret, struct cs_err *err);
/* 1: found; 0: no such built-in.  ~/ is not expanded. */
int profile_find_builtin(const char *name, const struct load *up, struct profile *ret, struct cs_err *err);
