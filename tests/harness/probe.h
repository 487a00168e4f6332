/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what the files of the probe share.
 *
 * The probe is the hostile program of the attack tests: one word, one question,
 * one line of answer.  It is static, so it runs in any root, and it is harmless
 * when it wins: a file is opened for writing but not written unless it is the
 * test's own, a dangerous call gets arguments the kernel refuses after the
 * permission check, and nothing is sent to an address that is not loopback
 * unless there is no other interface to send it through.
 *
 * Answer      `OK detail`        it worked                      exit status 0
 *             `NO ERRNO detail`  it was refused                 exit status 1
 *             `CANT detail`      the question makes no sense    exit status 2
 */
#pragma once
#include <stddef.h>

struct probe {
	const char *word;
	const char *group;  /* F: files, P: proc and sys, D: devices, N: network, S: calls,
	                     * R: resources, T: supervisor, I: identity */
	const char *what;   /* the class, and the instances that made it famous */
	int (*fn)(int argc, char **argv); /* argv[0] is the word */
	int min_args;
	const char *args;
};

enum { P_WORKED, P_DENIED, P_UNCLEAR };

int p_ok(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int p_no(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int p_word(const char *instead_of_errno, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int p_cant(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* r < 0: errno says why. */
int p_result(long r, const char *what);
/* As p_result, but any error that only the called code itself gives (bad pointer,
 * bad descriptor ...) means that the call was reached: worked. */
int p_reached(long r, const char *what);

/* Runs fn in a child; answers with its result, or `NO SIGSYS` and the like when
 * a signal ended it.  For calls that may kill. */
int p_in_child(int (*fn)(void *), void *arg);

/* Every page a kernel must refuse to read or write. */
#define P_BAD ((void *)8)

extern const struct probe probes_fs[], probes_proc[], probes_dev[], probes_net[], probes_sys[],
	probes_ns[], probes_res[], probes_id[];
