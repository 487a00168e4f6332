/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - from a profile file to what a sandbox may do.
 *
 * What it knows      the YAML format, the table of keys, merging, built-in
 *                    profiles.  Nothing of kernels, mounts or processes.
 * May include        base/, netpolicy/; of shell/ whether a row can be read.
 * Trust              a profile comes from the operator, but may be broken or
 *                    hostile in form: size, depth and counts are bounded.
 * Ownership          profile_load*() fill caller's storage; profile_done() frees.
 *                    A loaded profile is immutable but for profile_set().
 * Failure            every error names file:line:column, the value and the
 *                    nearest right word; a profile never silently weakens.
 *
 * Rejected: parsing the built-in profiles at start.  They are ordinary YAML
 * files under profiles/, read by this same parser at build time and compiled
 * in as data, so that the common start needs no YAML at all.
 */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "profile/protection.h"

#include <stdbool.h>
#include <stdint.h>

struct profile_limits {
	double cpus;       /* 0: unlimited, here and below */
	uint64_t memory;   /* bytes, swap included */
	uint64_t disk;     /* bytes written to private files */
	uint64_t inodes;   /* files created there */
	uint64_t pids;     /* processes and threads */
	uint64_t files;    /* open descriptors per process */
	uint64_t output;   /* bytes on standard output and error together */
	uint64_t wall;     /* ms */
	uint64_t cpu_time; /* ms, all processes together */
};

enum profile_proc { PROFILE_PROC_FULL, PROFILE_PROC_PID };
enum profile_workspace { PROFILE_WS_LAYER, PROFILE_WS_READ, PROFILE_WS_WRITE, PROFILE_WS_NONE };
enum profile_commit { PROFILE_COMMIT_AUTO, PROFILE_COMMIT_ASK, PROFILE_COMMIT_KEEP, PROFILE_COMMIT_ALWAYS, PROFILE_COMMIT_ON_SUCCESS, PROFILE_COMMIT_NEVER };
enum profile_system { PROFILE_SYSTEM_READ, PROFILE_SYSTEM_SCRATCH };
/* What `caisson sh` does. */
enum profile_unsafe { PROFILE_UNSAFE_REFUSE, PROFILE_UNSAFE_ASK };
enum profile_uncertain { PROFILE_UNCERTAIN_COMMIT, PROFILE_UNCERTAIN_ASK, PROFILE_UNCERTAIN_REFUSE };
enum profile_unexpected { PROFILE_UNEXPECTED_ASK, PROFILE_UNEXPECTED_COMMIT, PROFILE_UNEXPECTED_ROLLBACK };
enum profile_isolation { PROFILE_ISO_NATIVE, PROFILE_ISO_MAX };

/* Limits of a session's network use, or of each host's part in it. */
struct profile_budget {
	uint64_t bytes_out, bytes_in, connections, requests; /* 0: unlimited */
};

/* A credential that is added outside: the program sees a placeholder. */
struct profile_secret {
	char *name;              /* also the variable that holds the placeholder inside */
	char *from;              /* "env:VARIABLE", "file:/path", "command:LINE" */
	struct cs_strv hosts;    /* NAME[:PORT], canonical; without a port 443 */
	char *header, *format;   /* "Authorization", "Bearer {}" */
};

struct profile_network {
	struct cs_strv allow, deny;  /* rules, canonical (netpolicy.h) */
	struct cs_strv hosts;        /* NAME=ADDRESS[:PORT] */
	struct cs_strv publish;      /* ADDRESS:PORT:PORT, the host's port first; IPv6 in brackets */
	unsigned ech_deny;           /* 0 or 1; unsigned because it is a word in the table of keys */
	struct profile_budget budget, per_host;
	struct profile_secret *secrets;
	size_t n_secrets;
};

/* One row for the table of commands, as it was written; all of them are kept, in order, because only who knows the
 * workspace can tell which count (profile_row_trust()). */
struct profile_row {
	char *name;              /* "deploy", "git frob", "a,b" */
	char *row;               /* NULL: those of this name before it are taken away */
	char *file;              /* its real path; NULL: a flag, or text */
	const char *doubt;       /* why the file is not trusted, constant text; NULL: it is */
	bool careful;            /* may only narrow, whoever wrote it */
	unsigned source;         /* which file, counted from the one that was loaded first */
};

struct profile_shell {
	enum profile_unsafe unsafe;         /* of a command that is unsafe */
	enum profile_uncertain uncertain;   /* ... uncertain, and did what was predicted */
	enum profile_unexpected unexpected; /* ... did something else */
	struct profile_row *rows;
	size_t n_rows;
	unsigned sources;
};

struct profile {
	char *name;
	char *description;
	char *extends;           /* as written; merged already */
	bool locked;             /* flags may only narrow */
	enum profile_isolation isolation;
	enum profile_workspace workspace; /* layer: writes are private; write: bound for real */
	enum profile_proc proc;  /* proc: full | pid */
	struct cs_strv files_read;  /* absolute paths, bound read-only; a missing one is skipped */
	struct cs_strv files_write; /* absolute paths, bound writable; a missing one is an error */
	struct cs_strv files_hide;  /* patterns: "/abs/path", "name", "*.pem", "dir/name" (workspace-relative) */
	struct cs_strv env_pass;    /* names or patterns (LC_*) taken from the caller */
	struct cs_strv env_set;     /* NAME=VALUE */
	struct profile_limits limits;
	enum profile_system system;      /* read: /usr and the like cannot be written; scratch: until the end */
	enum profile_commit commit;      /* what becomes of changes to the workspace */
	struct cs_strv commit_protect;   /* names that are asked for one by one */
	struct cs_strv commit_allow;     /* those of them that are not */
	uint64_t commit_age, commit_size; /* ms, bytes: how long and how much is kept for an undo */
	struct profile_shell shell;
	struct profile_network network; /* all empty: none but a loopback of its own */
	protection_set require;
	bool gate;               /* it, or one that it extends, has keys that only the gate reads */
};
/* Has it any network at all (something to reach, or to be reached at)? */
bool profile_has_network(const struct profile *p);
void profile_close_network(struct profile *p); /* takes it all away */

/* name: a built-in profile's name, or a path if it holds a '/' or ends in .yaml/.yml. */
int profile_load(const char *name, struct profile *ret, struct cs_err *err);
int profile_load_file(const char *path, struct profile *ret, struct cs_err *err);
/* text of at most 256 KiB; origin is what errors call it.  Used by the fuzzer and tests. */
int profile_load_text(const char *text, size_t len, const char *origin, struct profile *ret, struct cs_err *err);
void profile_done(struct profile *p);
void profile_copy(const struct profile *p, struct profile *ret);

/* NULL: the row may say that a command does less than we know.  Else why it may only say that it does more: its file can be
 * changed by others, or lies where the program may write (the workspace, files.write).  workspace NULL: not known. */
const char *profile_row_trust(const struct profile *p, const struct profile_row *r, const char *workspace);
/* Does it count, or has a row behind it that is trusted taken its place? */
bool profile_row_counts(const struct profile *p, size_t i, const char *workspace);

/* Override one key by its dotted path as a flag would: ("limits.memory", "64M"),
 * ("files.read", "/opt") appends.  origin is what errors call it ("--memory").
 * On a locked profile a value that widens is CS_E_DENIED. */
int profile_set(struct profile *p, const char *key, const char *value, const char *origin, struct cs_err *err);
/* What only the whole can tell, so after the last profile_set(): every host of a secret is allowed, and no
 * variable takes a secret inside.  A profile that was loaded has been checked. */
int profile_check(const struct profile *p, const char *origin, struct cs_err *err);

/* Built-in profiles, in the order `profile list` shows them. */
size_t profile_builtin_count(void);
const char *profile_builtin_name(size_t i);
const char *profile_builtin_summary(size_t i);
const char *profile_builtin_text(size_t i); /* its YAML */
const char *profile_proc_name(enum profile_proc v);
const char *profile_workspace_name(enum profile_workspace v);
const char *profile_commit_name(enum profile_commit v);

struct cs_buf;
/* The merged profile as YAML that loads back to the same profile. */
void profile_write_yaml(const struct profile *p, struct cs_buf *out);
/* The same of a profile that has this one's network, and its lock, and nothing else.  CS_E_LIMIT: more than a profile may hold. */
int profile_network_text(const struct profile *p, struct cs_buf *out);
/* A JSON Schema (2020-12) for editors, made from the parser's own table. */
void profile_write_schema(struct cs_buf *out);
/* In words: what a program under this profile can and cannot do. */
void profile_explain(const struct profile *p, struct cs_buf *out);
/* Every key with type, default and meaning, as roff for caisson-profile(5). */
void profile_write_keys_roff(struct cs_buf *out);
/* The merged profile as one JSON object, with the keys of the YAML form. */
void profile_write_json(const struct profile *p, struct cs_buf *out);
/* Every key with type, default and meaning, as plain text. */
void profile_write_keys_text(struct cs_buf *out);
