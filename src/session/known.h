/* SPDX-License-Identifier: Apache-2.0 */
/* known.h - what a search for secrets found, for as long as no directory it looked into changed.
 *
 * Trust       the record lies in the user's own state directory, which no sandbox can write.  A
 *             directory counts as unchanged if it is the same inode with the same mtime and ctime;
 *             nobody can set a ctime.  One that was changed within the last seconds could change
 *             again without a trace on kernels with coarse times: then nothing is written down.
 */
#pragma once
#include "base/buf.h"
#include "base/mem.h"

#include <stdbool.h>
#include <sys/stat.h>

struct known {
	struct cs_buf dirs;   /* as they go to the file */
	unsigned n;
	bool fresh;           /* one was changed just now */
};
void known_note(struct known *k, const char *path, size_t len, const struct stat *st);
/* True: ret has what was found then (absolute paths), and *ret_partly. */
bool known_load(const char *dir, const struct cs_strv *patterns, struct cs_strv *ret, bool *ret_partly);
/* The same from memory: what the fuzzer calls. */
bool known_parse(const char *data, size_t len, const char *dir, const struct cs_strv *patterns, struct cs_strv *ret, bool *ret_partly);
/* found from the given index on; what cannot be written down is searched again. */
void known_save(const char *dir, const struct cs_strv *patterns, const struct known *k, const struct cs_strv *found, size_t from, bool partly);
