/* SPDX-License-Identifier: Apache-2.0 */
/* protection.h - the names of everything that can stand between a program and
 * the host.  One list: the sandbox says which were active, a profile says
 * which it requires, `doctor` says which this host can give and why not.
 *
 * id, name in profiles and JSON, what it does in a few words.
 */
#pragma once
#include <stdint.h>

#define PROTECTIONS(X)                                                                         \
	X(USERNS, "userns", "own user namespace, host root is never mapped")                   \
	X(MOUNTNS, "mountns", "own mount namespace, private propagation")                      \
	X(PIDNS, "pidns", "own process namespace, ends with its first process")                \
	X(IPCNS, "ipcns", "own System V IPC and message queues")                               \
	X(UTSNS, "utsns", "own host name")                                                     \
	X(CGROUPNS, "cgroupns", "own view of control groups")                                  \
	X(NETNS, "netns", "own network with nothing but loopback")                             \
	X(IDRANGE, "idrange", "runs under a host id that nobody else has")                     \
	X(ROOTFS, "rootfs", "fresh read-only root, the host's files are gone")                 \
	X(PROCFS, "procfs", "own /proc, other processes hidden, kernel files masked")          \
	X(DEVFS, "devfs", "a /dev of harmless devices")                                        \
	X(NESTING, "nesting", "no further user namespaces")                                    \
	X(CAPS, "caps", "no capabilities, empty bounding set, locked securebits (with system: scratch, an installer's over its own ids)")              \
	X(NNP, "nnp", "no new privileges through set-id files")                                \
	X(KEYRING, "keyring", "own session keyring")                                           \
	X(FDS, "fds", "no inherited descriptors, 0 to 2 are judged")                           \
	X(ENV, "env", "clean environment")                                                     \
	X(NOCORE, "nocore", "no core dumps")                                                   \
	X(LANDLOCK, "landlock", "Landlock: a second wall around files and signals")            \
	X(SECCOMP, "seccomp", "a small list of system calls, foreign ABIs killed")             \
	X(INIT, "init", "process 1 is ours and is confined itself")                            \
	X(PDEATH, "pdeath", "everything ends with its parent")                                 \
	X(LIMIT_MEMORY, "limit-memory", "memory is bounded by a control group")                \
	X(LIMIT_PIDS, "limit-pids", "the number of processes is bounded by the kernel")        \
	X(LIMIT_CPU, "limit-cpu", "CPU share is bounded by a control group")                   \
	X(LIMIT_DISK, "limit-disk", "bytes and files written are bounded by the file system")

enum protection {
#define X(id, name, what) PROT_##id,
	PROTECTIONS(X)
#undef X
	PROT_MAX
};

typedef uint32_t protection_set;
#define PROT_BIT(p) ((protection_set)1 << (p))
#define PROT_ALL    ((protection_set)(((uint64_t)1 << PROT_MAX) - 1))
_Static_assert(PROT_MAX <= 32, "protection_set is 32 bits");

const char *protection_name(enum protection p);
const char *protection_what(enum protection p);
int protection_by_name(const char *name); /* -1: no such name */
