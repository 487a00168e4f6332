/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - how the native back end is put together.
 *
 *   start.c     the caller's side: prepare, clone, watch, end
 *   ids.c       which host ids the sandbox runs under
 *   subids.c    ... and of the caller's subordinate ids, rootless
 *   limits.c    control groups, rlimits, usage
 *   init.c      process 1 inside: order of the set-up, then reaping
 *   root.c      the new root: tmpfs, binds, pivot
 *   layer.c     a directory whose writes go to a private layer
 *   store.c     such a layer on disk
 *   layer_probe.c  whether one could be kept somewhere
 *   overlay.c   one overlayfs mount from descriptors
 *   quota.c     what such a layer takes up
 *   proc.c      /proc: masks, and files that show the sandbox's own limits
 *   net.c       a network that ends at the caller
 *   etc.c       the few files of /etc that are ours
 *   system.c    /var, /run and accounts where packages are installed
 *   payload.c   from process 1's child to the program's first instruction
 *   stem.c      a sandbox that waits for commands: inside
 *   commands.c  ... and the caller's side of it
 *   mounter.c   the helper that gives it new layers
 *   filter.c    the system-call filter, made at build time
 *   refusal.c   naming what the filter refused
 *
 * Two user namespaces.  The *builder* is the caller's own (as root) or a new
 * one that maps the caller to its root (rootless); it owns the mount, network
 * and other namespaces.  The program runs in a second one below it, so even
 * full capabilities there give it no power over its mounts or its network.
 *
 * Code that runs after clone: init.c, root.c, layer.c, store.c, overlay.c,
 * proc.c, etc.c, system.c, payload.c, stem.c, mounter.c, filter.c.  The process was single-threaded, so it may allocate, but what
 * payload.c does shares memory with process 1 (vfork) and must leave it sane.
 *
 * Everything the inside reports goes through one shared page, as numbers and
 * bounded text and never as pointers: process 1 is ours, but it lives next to
 * the program, and what it says is checked like anything from there.
 */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"
#include "sys/sys.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define NATIVE_STEPS(X)                                                                       \
	X(PREPARE, "prepare: limits, ids, control groups")                                    \
	X(CLONE, "clone into new namespaces")                                                 \
	X(IDS, "ids, keyring, host name, cgroup")                                             \
	X(NETNS, "helper for the network namespace started")                                  \
	X(TMPFS, "private root (tmpfs)")                                                      \
	X(BINDS, "system directories, read-only")                                             \
	X(LAYER, "workspace and --rw")                                                        \
	X(ETC, "/etc: passwd, group, hosts")                                                  \
	X(DEV, "/dev")                                                                        \
	X(PROC, "/proc and its masks")                                                        \
	X(JOIN, "join control groups and network namespace")                                  \
	X(PIVOT, "pivot_root, old root gone")                                                 \
	X(FORK, "fork the program's process")                                                 \
	X(USERNS, "its user namespace, none below it")                                        \
	X(CAPS, "capabilities, limits, descriptors")                                          \
	X(LANDLOCK, "Landlock")                                                               \
	X(SECCOMP, "system-call filter")                                                      \
	X(PROGRAM, "exec and the program itself")                                             \
	X(GONE, "process 1, its mounts and namespaces gone")                                  \
	X(CLEARED, "control groups removed")

enum native_step {
#define X(id, text) STEP_##id,
	NATIVE_STEPS(X)
#undef X
	STEP_MAX
};

enum native_state { NATIVE_BUILDING, NATIVE_EXECING, NATIVE_FAILED, NATIVE_RUNNING, NATIVE_ENDED };

/* The shared page. */
struct native_report {
	_Atomic uint32_t state;
	int status;                /* the program's, as of waitpid */
	protection_set active;
	int why[PROT_MAX];         /* errno for what is off */
	bool unmapped;             /* a layer's base is on a file system that cannot map ids */
	bool bad_store;            /* the error is that a layer cannot be kept where the caller wants it */
	_Atomic uint64_t taken;    /* of a stem: the last request that was taken up; by which nursery, above bit 32 */
	uint64_t step_ns[STEP_MAX];
	struct cs_err err;
	struct sys_cgroup cgroup;  /* a copy of the caller's, for the inside to read; the caller never does */
};

struct native_ids {
	bool ranged;        /* true: base is ours alone; false: the caller's own id */
	uint32_t uid, gid;  /* host ids (in the caller's user namespace) the program runs under */
	bool root;          /* the program is root inside; else NATIVE_UID */
	bool wide;          /* ... among NATIVE_BLOCK ids; else it is the only one */
	uint32_t block;     /* wide: id n > 0 inside is block + n in the builder's numbering; 0 is the program's own */
	uint32_t sub_uid, sub_gid; /* wide and not ranged: the builder's ids from 1 on, as the host numbers them */
	int lock_fd;        /* holds them; closing it gives them back */
	int why;            /* errno when not ranged */
};

struct native_owner {
	uid_t uid;
	gid_t gid;
};

/* A bind's layers on disk, opened in the sandbox's own mount namespace. */
struct native_store {
	int dir;     /* holds `up` and `wk` */
	int *lowers; /* as many as the bind has */
};

/* What the set-up works from: data, complete before clone. */
struct native_plan {
	const struct sandbox_spec *spec;
	struct native_report *report;
	struct native_ids ids;
	bool builder_userns;       /* clone made one: write its maps */
	int sock;                  /* to the caller */
	int landlock_abi;
	uint64_t start_ns;
	const struct sandbox_bind *const *binds; /* spec's, parents before children */
	int *idmap;                /* per bind: user namespace to map its owner with, or -1 */
	const bool *maps;          /* per bind: one is to be waited for from the caller */
	const struct native_owner *owners; /* per bind that is mapped: whose files it holds */
	/* set while building */
	struct native_store *stores; /* per bind */
	int tmpfs_fd;              /* the private tmpfs, outside the new root */
	bool tmpfs_on_root;        /* attached on the old / itself */
	int root_fd;               /* the new root */
	int proc_fd;               /* the host's /proc, for our own writes; outlives the old root */
	mode_t umask;              /* the caller's */
	bool own_clock;            /* time since boot counts from the start */
	int stem_ctl, stem_exec;   /* the stem's ends of its sockets, or -1 */
	int ro_fd;                 /* the tmpfs once more, read-only: where covers come from */
	int program_userns;        /* with a block of ids: the program's user namespace; else -1 */
};

/* A message between the caller and the stem: commands.c says what they mean. */
struct native_note {
	uint32_t what;
	int32_t a, b;
	uint32_t sequence; /* of the request it answers, if it does */
};

/* A command for the nursery, before its words: arguments, environment, directory, PATH; each ends
 * in a NUL.  Three descriptors come with it, and a fourth that holds the words if they are many. */
struct native_request {
	uint32_t sequence; /* from 1 on */
	uint32_t size;     /* of the words */
	uint32_t argc, envc, tty;
};
enum { NATIVE_WORDS_MAX = 16384, NATIVE_INLINE_MAX = 32768, NATIVE_BLOB_MAX = 2 << 20 };
enum native_failed { NATIVE_FAILED_SETUP, NATIVE_FAILED_CWD, NATIVE_FAILED_EXEC };

struct native_end {
	pid_t pid; /* inside */
	int status;
};

enum native_layer { NATIVE_NO_LAYER, NATIVE_LAYER, NATIVE_LAYER_COVERED };
enum { NATIVE_FAILED_MAX = 16, NATIVE_ENDED_MAX = 65536 };

struct native_quota;

/* The caller's side. */
struct sandbox {
	pid_t pid;
	int pidfd, sock, tmpfs, listener;
	struct native_report *report;
	struct sys_cgroup cgroup_store, *cgroup; /* ours; the inside has a copy to read */
	struct native_ids ids;
	struct profile_limits limits;
	struct sandbox_usage last; /* kept after the end */
	struct native_quota *quotas; /* per layer on disk */
	size_t n_quotas;
	bool waited, stopped, looked, left; /* left: a control group could not be removed */
	uint64_t seen_cpu_ms, seen_memory; /* the most that samples saw */
	int status;
	uint64_t start_ns;
	/* of a stem */
	int ctl, exec, epoll;            /* -1: it is none */
	pid_t stem_pid, nursery_pid;     /* as we number them */
	uint32_t sequence;               /* of the last request */
	int generation, hello;           /* of nurseries: the latest, and the latest that stands */
	bool renewing, interrupted, answered;
	bool swept, empty;               /* there is no nursery; and nothing else that was not ours */
	struct native_note answer;
	pid_t begun;                     /* inside: perhaps not executed yet */
	struct native_end *ended;
	size_t n_ended, max_ended;
	pid_t failed[NATIVE_FAILED_MAX]; /* inside: attempts that were told already */
	size_t next_failed;
	int mount_sock;
	pid_t mounter;
	size_t n_binds;
	enum native_layer *layers;       /* per bind of the spec */
	size_t *order;                   /* per bind of the spec: which of the plan */
	const struct sandbox_network *network;
	int net[SANDBOX_NET_FDS];
	size_t n_net, want_net;
};

enum { NATIVE_UID = 1000, NATIVE_GID = 1000, NATIVE_BLOCK = 65536 };
#define NATIVE_USER "agent"
#define NATIVE_HOME "/home/agent"
#define NATIVE_HOST "caisson"

static inline bool native_on(const struct native_plan *p, enum protection prot)
{
	return !(p->spec->off & PROT_BIT(prot));
}

/* Processes that are there besides the program's: process 1; the stem and its nursery. */
static inline unsigned native_own_processes(const struct sandbox_spec *spec)
{
	return spec->stem ? 3 : 1;
}

/* What a terminal would send goes to the program's group, as a terminal would. */
static inline bool native_is_for_group(uint32_t sig)
{
	return sig == 1 /* HUP */ || sig == 2 /* INT */ || sig == 3 /* QUIT */ || sig == 18 /* CONT */ || sig == 20 /* TSTP */;
}

/* The program's own ids in the builder's numbering: there the caller of a rootless sandbox is 0. */
static inline uint32_t native_own_uid(const struct native_plan *p)
{
	return p->builder_userns ? 0 : p->ids.uid;
}

static inline uint32_t native_own_gid(const struct native_plan *p)
{
	return p->builder_userns ? 0 : p->ids.gid;
}

/* Where a bind stands inside. */
static inline const char *native_target(const struct sandbox_bind *b)
{
	return b->target ? b->target : b->source;
}

/* The part of path below dir, or NULL if it does not lie there. */
static inline const char *native_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (!strcmp(dir, "/"))
		return path[1] ? path + 1 : NULL;
	return !strncmp(path, dir, n) && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

uint64_t native_now(void);
void native_step(struct native_plan *p, enum native_step s);
void native_active(struct native_plan *p, enum protection prot);
/* prot could not be had: fails if the spec requires it, else notes why and goes on. */
int native_missing(struct native_plan *p, enum protection prot, int sys, const char *what);

/* ids.c */
/* For a program that is root inside, or not; with a block, if it can be had. */
int native_ids_pick(struct native_ids *ids, bool root, bool block, struct cs_err *err);
void native_ids_done(struct native_ids *ids);
int native_write_maps(int proc_dir, const char *pid, unsigned inside_uid, unsigned outside_uid, unsigned inside_gid,
		      unsigned outside_gid);
/* A user namespace that says "files of owner are files of ids" (with a block and system: everybody's are
 * those of the same id inside) for idmapped mounts, and the process that made it, to be reaped once the descriptor has been handed on. */
struct native_holder {
	pid_t pid;
	char stack[1024] __attribute__((aligned(16))); /* it shares our memory, and lives until it is reaped */
};
int native_idmap_userns(const struct native_ids *ids, uid_t owner, gid_t group, bool system, struct native_holder *holder, struct cs_err *err);
void native_idmap_reap(struct native_holder *holder);
/* By process 1: a user namespace for the program in which it is root and has the block; or -1. */
int native_program_userns(const struct native_plan *p);

/* subids.c: of the caller's in /etc/subuid and /etc/subgid, if they and the programs that map them are there. */
bool native_subids_find(struct native_ids *ids);
int native_subids_map(const struct native_ids *ids, pid_t builder, struct cs_err *err);

/* net.c */
int native_open_network(struct native_plan *p);

/* limits.c */
unsigned native_cgroup_wanted(const struct profile_limits *l, protection_set off);
int native_cgroup_limit(struct sys_cgroup *cg, const struct profile_limits *l, unsigned own, struct cs_err *err);
int native_rlimits(const struct native_plan *p);
int native_limit_processes(const struct native_plan *p, unsigned more); /* only that */

/* usage.c: adds what no control group tells. */
void native_usage_procs(pid_t init, const struct profile_limits *l, bool memory, bool cpu, struct sandbox_usage *u);

/* ... and what files without a name hold on disk (a process has them open). */
uint64_t native_usage_unlinked(pid_t init);
/* The live descendants of init that are not in ours: how many, and the first max of them. */
size_t native_usage_list(pid_t init, const pid_t *ours, size_t n_ours, pid_t *ret, size_t max);
/* Its name (hostile text) and its number inside; 0: it has ended. */
pid_t native_usage_name(pid_t pid, char *comm, size_t size);

/* quota.c */
enum { NATIVE_DISK_SLACK = 65536 }; /* this near the limit counts as having reached it */
struct native_room {
	uint64_t bytes, inodes;
};
struct native_free {
	uint64_t bytes, inodes;
};
struct native_frozen {
	dev_t dev;
	ino_t ino; /* of an `up` that was the topmost once */
	struct native_room used;
};
struct native_quota {
	size_t bind;             /* of the spec */
	struct native_room below; /* what older layers of this sandbox hold */
	struct native_frozen *frozen;
	size_t n_frozen;
	int dir;                 /* the store; -1: none */
	struct native_room used; /* at the last walk */
	struct native_free free; /* of the file system, then */
	uint64_t walked_ns, took_ns;
	bool known;              /* used means something */
};
int native_quota_open(struct native_quota *q, size_t bind, int store);
/* The bind has a new topmost layer. */
void native_quota_push(struct sandbox *s, size_t bind, int store, const int *lowers, size_t n_lowers);
void native_quota_done(struct native_quota *q);
/* Adds the store to what u holds already.  init: whose processes may hold files open, or -1; last:
 * nothing writes any more. */
void native_quota_add(struct native_quota *q, const struct native_room *limit, pid_t init, bool last, struct sandbox_usage *u);

/* init.c */
_Noreturn void native_init(struct native_plan *p);
void native_own_stdio(const struct native_ids *ids, const int stdio[3], bool tty);
int native_wipe_strings(const struct native_plan *p);
/* Every descriptor but those (-1 is none).  Keeps its hands off the order of keep. */
int native_close_but(const int *keep, size_t n);

/* root.c */
int native_build_root(struct native_plan *p);
int native_enter_root(struct native_plan *p);
/* Bind the private tmpfs' entry onto path in the new root. */
int native_attach(struct native_plan *p, const char *entry, const char *path, bool writable);
int native_attach_fd(struct native_plan *p, int mount, const char *path, bool dir);
/* path inside holds text: made if the parent is ours, else covered. */
int native_provide(struct native_plan *p, const char *name, const char *path, const char *data, size_t len);

/* layer.c */
struct native_layers {
	int upper, work, base;
	const int *lowers; /* between upper and base, topmost first */
	size_t n_lowers;
	bool disk;
};
int native_open_base(struct native_plan *p, size_t i, int src, int userns);
/* The overlay of these, and of a mask for what is hidden; st: of the base. */
int native_layer_mount(struct native_plan *p, size_t i, const struct stat *st, const struct native_layers *l);
int native_bind_layer(struct native_plan *p, size_t i, int src, const struct stat *st, int userns);

/* store.c */
/* The caller's descriptors are of its mount namespace, and a layer must be of ours: the same
 * directories, opened anew.  Before anything covers their paths. */
int native_open_stores(struct native_plan *p);
int native_reopen(int proc_dir, int fd);
int native_store_open(struct native_plan *p, size_t i, const struct stat *base, int userns, int *ret_upper, int *ret_work);
/* `up` and `wk` below dir. */
int native_store_parts(struct native_plan *p, const struct sandbox_bind *b, int dir, int *ret_upper, int *ret_work);
/* Can they be what they are for?  If nothing was written yet, gives them the times of what is below. */
int native_store_check(struct native_plan *p, const struct sandbox_bind *b, int dir, int upper, int work, const struct stat *below);
int native_store_unmapped(struct native_plan *p, int sys, const char *source);
int native_store_refused(struct native_plan *p, int sys, const char *source);
const char *native_store_lacks(int dir, int work, bool userxattr); /* NULL: nothing */

/* overlay.c */
enum { NATIVE_LOWERS_MAX = 498 }; /* the kernel's 500, less the mask and the base */
struct native_overlay {
	int upper, work;
	const int *lowers;  /* topmost first */
	size_t n_lowers;
	int scratch;        /* a directory of ours to mount in for a moment; -1: none */
	bool userxattr;     /* mounted from a user namespace */
	bool redirect;      /* directories of the base can be renamed without copying them */
	bool disk;          /* the upper is on disk: nothing is synced, the caller does that */
};
/* A detached mount, or -1. */
int native_overlay_mount(const struct native_overlay *o);
/* Takes away what an earlier mount left in the store's work directory. */
void native_overlay_unmark(int work);
/* A clone of src whose owner's files belong to the sandbox's user; -1: not possible there. */
int native_clone_mapped(int src, int userns);
int native_clone_attached(int src, int userns, int scratch, const char *name);

/* Its own files in /dev, /etc and /proc. */
int native_build_proc(struct native_plan *p);
int native_build_etc(struct native_plan *p);
int native_build_dev(struct native_plan *p);

/* system.c: where the program is root. */
int native_make_var(struct native_plan *p);      /* /var and /run can be written: once the root is made, before any bind */
int native_make_accounts(struct native_plan *p); /* /etc/passwd and the like: after the binds, before /etc is built */

/* payload.c */
int native_spawn_payload(struct native_plan *p, pid_t *ret);
/* Parts of that, in this order, for the stem. */
int native_payload_userns(struct native_plan *p);
int native_payload_give_up(struct native_plan *p);
int native_payload_ruleset(struct native_plan *p, int *ret); /* -1: no Landlock */
int native_payload_seccomp(struct native_plan *p);
int native_allow(struct native_plan *p, int ruleset, const char *path, uint64_t rights);
/* Returns why not. */
int native_exec(char *const *argv, char *const *env, const char *dir);
enum { NATIVE_NO_INTERPRETER = 0xfff0 }; /* beside errno, of native_exec() */
int native_not_executed(struct cs_err *err, const char *name, const char *path, int sys);

/* stem.c, commands.c */
int native_spawn_stem(struct native_plan *p, pid_t *ret);
int native_stem_open(struct sandbox *s, struct native_plan *p);
void native_stem_done(struct sandbox *s);

/* mounter.c */
int native_mounter_start(struct sandbox *s, struct native_plan *p, struct cs_err *err);
int native_mounter_push(struct sandbox *s, size_t bind, int store, const int *lowers, size_t n_lowers, struct cs_err *err);
void native_mounter_done(struct sandbox *s);

/* filter.c */
int native_filter_payload(struct native_plan *p, int *ret_listener);
int native_filter_affinity(void);
int native_filter_reserving(void);
int native_filter_init(void);

/* refusal.c: answer one waiting notification. 1: *ret says what was refused,
 * 0: nothing to tell, -1: the notifier is gone. */
int native_refusal(int listener, const struct sandbox_network *net, struct sandbox_refusal *ret);
/* A socket address as the program gave it, hostile bytes: true when the empty network will refuse
 * it, and ret names it. */
bool native_name_destination(const void *addr, size_t len, char *ret, size_t size);

/* message.c: one byte and perhaps a descriptor over the socket to the caller. */
int native_send_fd(int sock, char what, int fd);
/* Returns the byte, 0 when nothing waits or the peer is gone; *ret_fd is -1 or the receiver's to close. */
char native_receive(int sock, bool wait, int *ret_fd);
/* init.c: block for one message of the caller's kind; anything else fails. */
int native_expect(struct native_plan *p, char what, int *ret_fd);
