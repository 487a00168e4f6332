/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h - how a script becomes a verdict.
 *
 *   lex.c parse.c word.c ...  text to a tree (syntax.h)
 *   state.c             what is known while a script is walked: variables, files, the directory; and the budget
 *   expand.c            words to arguments
 *   expand_param.c      ${x#..} and the like
 *   expand_brace.c      {a,b} and {1..9}
 *   walk.c              the tree, in the order in which it would run
 *   walk_simple.c       simple commands: functions, and which program a name stands for
 *   walk_redirect.c     redirections
 *   builtin.c           commands that change the shell
 *   builtin_variable.c  ... that set variables
 *   builtin_run.c       ... that run text
 *   output.c            what commands of constants print
 *   judge.c             what the table found becomes effects
 *   judge_code.c        programs in other languages
 *   effect.c            effects on paths, and whether they are forbidden
 *   really.c            the same for where links lead
 *   places.c            where secrets and start-up files lie
 *   classify.c          the verdict
 *   table.c ...         what commands do with their arguments (table.h) */
#pragma once
#include "base/mem.h"
#include "shell/shell.h"
#include "shell/syntax.h"

enum {
	SHW_DEPTH = 24,        /* scripts within scripts, functions, carriers */
	SHW_WORK = 1 << 17,    /* in all; see work() */
	SHW_VALUE_MAX = 65536, /* of a constant that is followed */
	SHW_ARGS_MAX = 4096,
	SHW_ALTERNATIVES = 256,
	SHW_NAMES = 200,       /* of variables, of functions, of files: every branch has its own list of them */
	SHW_EFFECTS = 512,
	SHW_REASONS = 64,
};

/* Text that is known, or not. */
struct value {
	bool known;
	char *text;            /* owned by the walk's memory */
	size_t len;
	const char *packed;    /* "gzip": text is what it holds, packed so */
};

/* One argument after expansion. */
struct arg {
	char *text;
	enum sh_known known;
	bool followed;         /* its value came through a variable or a substitution: never enough for safe */
	uint32_t at, len;
};

struct args {
	struct arg *v;
	size_t n, room;
	bool endless;          /* more words than are here */
	bool vanished;         /* a value that was followed was no word at all */
};

struct var {
	struct var *next;
	const char *name;
	uint32_t hash;         /* of the name: lists are searched by it */
	bool set, array;
	struct value value;    /* of an array its first item */
	struct value *items;
	size_t n_items;
	bool exported;
};

struct file {                  /* that the script itself has written */
	struct file *next;
	const char *path;
	uint32_t hash;
	struct value content;
	const char *program;   /* it is a copy of, or a link to, this one; or NULL */
};

struct function {
	struct function *next;
	const char *name;
	uint32_t hash;
	const struct sh_command *body;
	bool nested;           /* defined in text of a word: of the walk, then */
	uint32_t at, len;
};

struct state {
	struct var *vars;
	struct file *files;
	struct function *functions;
	const char *cwd;       /* NULL: not known any more */
	const char *also;      /* ... or here, if cd failed; "": or anywhere; or NULL */
	struct args positional;
	bool positional_known;
	bool path_changed;     /* names may mean other programs now */
	bool shadowed;         /* a definition that could not be followed: any name may be a function */
	bool exported_functions; /* shells that are started get them */
	const char *umbrella;  /* reason why nothing after this is sure, or NULL */
};

struct memory;
struct memory *memory_new(void);
void memory_free(struct memory *m);
size_t memory_taken(const struct memory *m); /* bytes */
void *keep_bytes(struct memory *m, size_t n);
char *keep_text(struct memory *m, const char *s, size_t n);
char *keep_printf(struct memory *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct walk {
	const struct sh_policy *policy;
	const struct sh_table *table;
	struct sh_verdict *v;
	struct memory *mem;
	size_t room_effects, room_reasons;
	unsigned depth;
	size_t work;           /* done so far, beside what memory was taken */
	bool spent;            /* no more: nothing is looked at any further, and a reason says so */
	unsigned n_vars, n_functions, n_files;
	uint32_t effect_hash[SHW_EFFECTS], reason_hash[SHW_REASONS];
	bool looking;          /* links are being followed: not again */
	bool piped;            /* standard output is a pipe, not a terminal */
	/* Within text of a word, places are that word's. */
	bool nested;
	uint32_t at, len;
};

/* Where something of the tree stands in the text, for a struct arg: of nested text it is the word that holds it. */
#define PLACE(w, x) .at = (w)->nested ? (w)->at : (x)->place.at, .len = (w)->nested ? (w)->len : (x)->place.len

/* What hostile text can make us do is paid for, so that time is bounded: a unit is about a quarter of a microsecond, and memory counts
 * by itself.  Whoever repeats something as often as the text says pays and asks whether to go on; what is left out
 * then is uncertain, and that has been said. */
enum { WORK_COMMAND = 8, WORK_PARSE = 16, WORK_BYTES = 256 /* of memory for one */ };
void work(struct walk *w, size_t units);
bool spent(struct walk *w);
uint32_t hash_text(uint32_t seed, const char *s);

/* state.c */
struct var *var_find(const struct state *s, const char *name);
struct var *var_make(struct walk *w, struct state *s, const char *name);
void var_set(struct walk *w, struct state *s, const char *name, struct value v);
void var_forget(struct walk *w, struct state *s, const char *name);
struct state state_copy(struct walk *w, const struct state *s);
void state_join(struct walk *w, struct state *into, const struct state *other); /* what differs is not known */
struct file *file_find(const struct state *s, const char *path);
void file_set(struct walk *w, struct state *s, const char *path, struct value content, const char *program);
struct value value_of(struct walk *w, const char *text, size_t len);
struct value value_join(struct walk *w, const struct value *a, const struct value *b); /* both known */
static inline struct value value_unknown(void)
{
	return (struct value){ 0 };
}

/* expand.c */
void expand_word(struct walk *w, struct state *s, const struct sh_word *word, struct args *out);
/* One word, without splitting: the value of an assignment, a redirection's target, a here-document. */
struct arg expand_one(struct walk *w, struct state *s, const struct sh_word *word);
void scan_word(struct walk *w, struct state *s, const struct sh_word *word); /* for what is run in it only */
void scan_arithmetic(struct walk *w, struct state *s, const char *text, uint32_t at, uint32_t len);
void scan_index(struct walk *w, struct state *s, const struct sh_word *index); /* of an array: arithmetic, unless it is a number */
void scan_assign(struct walk *w, struct state *s, const struct sh_assign *a); /* walk.c: an array in an argument */
/* expand_param.c: the value after the operator; is_set: the variable may be */
struct value param_apply(struct walk *w, struct state *s, const struct sh_param *p, struct value v, bool is_set);
bool arg_number(const struct arg *a, long *ret);
struct value value_text(struct walk *w, const char *t); /* NULL: not known */
/* expand_brace.c */
const struct sh_part *brace_find(const struct sh_part *p); /* the first, or NULL */
void expand_braces(struct walk *w, struct state *s, const struct sh_word *word, const struct sh_part *brace, struct args *out, unsigned depth);
void args_add(struct walk *w, struct args *a, struct arg arg);
void set_positional(struct walk *w, struct state *s, const struct args *a, size_t from); /* $1 and so on */

/* walk.c: status 0, 1 (not zero), -1 (not known) */
struct outcome {
	int status;
	struct value out;
	bool stops;            /* exit, return, exec: what follows does not run */
};
struct outcome walk_script(struct walk *w, struct state *s, const struct sh_script *script, const struct value *in);
struct outcome walk_command(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in);
/* Text that a shell runs. */
struct outcome walk_text(struct walk *w, struct state *s, const char *text, size_t len, uint32_t at, uint32_t at_len, const struct value *in);
/* A command given as words. */
struct outcome walk_args(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
/* ... whose name is no function's. */
struct outcome walk_program(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
/* Text for /bin/sh, which need not be bash. */
void doubt_bashisms(struct walk *w, const struct arg *a, const char *text);

void script_keep(struct walk *w, struct sh_script *take_script); /* until the walk ends: classify.c */

/* Is it beyond the limits?  Then that has been said. */
bool too_much(struct walk *w, const struct arg *a);
/* walk_simple.c */
struct outcome walk_simple(struct walk *w, struct state *s, const struct sh_command *c, const struct value *in);
struct function *function_find(const struct state *s, const char *name);

/* walk_redirect.c */
struct plumbing {
	struct value in;       /* what is read, if it is redirected */
	bool has_in;
	const char *out;       /* where standard output goes, or NULL: on */
	bool drops_out, appends;
};

void plumb(struct walk *w, struct state *s, const struct sh_redirect *r, struct plumbing *p);
void drain(struct walk *w, struct state *s, const struct plumbing *p, struct outcome *o); /* what it printed is in the file now */

/* builtin.c: false: it is none of ours */
bool arg_literal(const struct args *a, size_t i);
bool is_one_of(const char *name, const char *const *list); /* ends with NULL */
struct outcome outcome_quiet(struct walk *w, int status); /* prints nothing */
bool run_builtin(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in, struct outcome *ret);
/* builtin_run.c */
struct outcome run_eval(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
struct outcome run_source(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
struct outcome run_trap(struct walk *w, struct state *s, const struct args *a, size_t first);
struct outcome run_shell(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
/* builtin_variable.c */
struct outcome run_declare(struct walk *w, struct state *s, const struct args *a, size_t first);
struct outcome run_read(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
struct outcome run_mapfile(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
void look_at_exported(struct walk *w, const char *name, const struct arg *value); /* that programs see */
void look_at_variable(struct walk *w, struct state *s, const char *name, const struct arg *value); /* some of them are code */

/* output.c: what it prints, if that is known for certain */
struct value output_of(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);

/* effect.c */
const char *path_resolve(struct walk *w, const struct state *s, const char *path); /* absolute, without . and ..; NULL: not known */
void effect_path(struct walk *w, struct state *s, enum sh_effect_kind kind, const struct arg *a, const char *text, const char *by, bool tree);
void effect_add(struct walk *w, enum sh_effect_kind kind, const char *object, const char *by, const struct arg *a, const char *forbidden);
void uncertain(struct walk *w, const struct arg *a, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A reason, too, but one that an effect of the list has in full. */
void acts(struct walk *w, const struct arg *a, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* really.c: the same with links followed */
void effect_really(struct walk *w, struct state *s, enum sh_effect_kind kind, const struct arg *a, const char *text, const char *by, bool tree);
void effect_change(struct walk *w, enum sh_effect_kind kind, const struct arg *a, const char *path, const char *by);

/* judge.c: what the table has found */
void judge_role(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct value *in);
/* judge_code.c: that nothing is done cannot be told, but for sed, awk and jq; true: it was one of them */
void judge_code(struct walk *w, struct state *s, const struct arg *a, const struct sh_finding *f, const char *by);
bool judge_small_code(struct walk *w, struct state *s, const struct args *a, size_t first, const struct sh_finding *f, const struct arg *at,
		      const struct value *in);
struct outcome apply_findings(struct walk *w, struct state *s, const struct args *a, size_t first, const struct value *in);
