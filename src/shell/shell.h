/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h - what would this command do?
 *
 * What it knows      the shell's grammar (syntax.h), a table of commands (table.h), and how the words of a script
 *                    become effects.  Nothing is run, opened or looked at, but for links, by who asks, if the policy
 *                    wants that (sh_look).
 * May include        base/ only.
 * Trust              the command is hostile; the policy is the operator's.
 * Ownership          a verdict owns its effects and reasons; sh_verdict_done() frees.
 * Failure            what is not understood is uncertain, never safe.
 *
 * safe       proved: every effect is a read within the policy's roots, and every word that matters is literal
 * unsafe     a forbidden effect on some path that constants do not rule out
 * uncertain  everything else
 *
 * Values are followed through variables, pipes of constants and files of constants.  What is learnt that way can make
 * a command unsafe; it never makes one safe.  So with links: where one leads comes on top of what the words say. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "shell/table.h"

enum sh_class { SH_SAFE, SH_UNCERTAIN, SH_UNSAFE };
const char *sh_class_name(enum sh_class c);

#define SH_EFFECTS(X)                \
	X(READ, "read")              \
	X(WRITE, "write")            \
	X(DELETE, "delete")          \
	X(EXECUTE, "execute")        \
	X(NETWORK, "network")        \
	X(PRIVILEGE, "privilege")    \
	X(PERSISTENCE, "persistence") \
	X(PROCESS, "process")        \
	X(DEVICE, "device")          \
	X(SECRET, "secret")          \
	X(SYSTEM, "system")

enum sh_effect_kind {
#define X(id, name) SH_EFFECT_##id,
	SH_EFFECTS(X)
#undef X
	SH_EFFECT_MAX
};
const char *sh_effect_name(enum sh_effect_kind k);

struct sh_effect {
	enum sh_effect_kind kind;
	char *object;        /* a path, a host, a program; "" if it is not known */
	char *by;            /* the command: "rm" */
	uint32_t at, len;    /* the words it comes from, in the text; of nested text the word that holds it */
	bool forbidden;
	const char *why;     /* of what is forbidden: constant text */
};

struct sh_reason {
	char *text;          /* "$x is not known here", "unknown option --foo of tar" */
	uint32_t at, len;
};

struct sh_verdict {
	enum sh_class class;
	struct sh_effect *effects;
	size_t n_effects;
	struct sh_reason *reasons; /* what made it uncertain */
	size_t n_reasons;
	bool parsed;
	bool complete; /* all that it does is among the effects: nothing had to be guessed */
	size_t work;               /* what it took, in units of the walk's budget (walk.h) */
};

/* Follows links, for a policy that wants to know where paths really lead.  path is absolute and may hold `..` and links; found()
 * is called for every real path that it stands for.  What is not there stands for what would be made.  false: it could not be
 * looked at, or not in full. */
enum { SH_LOOK_PATTERN = 1,  /* * ? [ stand for names that are there */
       SH_LOOK_LAST = 2 };   /* the last name is meant itself, even if it is a link */
typedef void (*sh_found)(void *to, const char *real);
typedef bool (*sh_look)(void *arg, const char *path, unsigned how, sh_found found, void *to);

struct sh_policy {
	const char *cwd;            /* absolute; where the command would run */
	const char *workspace;      /* below which it may write; NULL: cwd */
	const char *home;
	const char *const *roots;   /* what may be read; NULL: everything but secrets */
	size_t n_roots;
	const char *const *secrets; /* patterns of names, as files.hide has them; beside those that are built in */
	size_t n_secrets;
	const char *const *own;     /* the policy's own files: writing them is forbidden */
	size_t n_own;
	unsigned forbid;            /* bits of sh_effect_kind beyond what is always so */
	sh_look look;               /* NULL: paths are words, and no more */
	void *look_arg;
	const struct sh_table *table; /* NULL: the built-in one */
};

void sh_classify(const char *text, size_t len, const struct sh_policy *p, struct sh_verdict *ret);
void sh_verdict_done(struct sh_verdict *v);

/* Is it one command, or a pipeline, of literal words and no builtins?  Then ret has the words of each, and no shell is needed
 * to run it.  How many, or 0. */
enum { SH_STAGES_MAX = 32 };
size_t sh_direct(const char *text, size_t len, struct cs_strv ret[SH_STAGES_MAX]);
