/* SPDX-License-Identifier: Apache-2.0 */
/* data.h - public test data, which is not part of the tree: $CS_DATA, or shared/data beside it. */
#pragma once
#include "base/buf.h"
#include "harness/t.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The path of a part of it; the test is skipped without. */
static inline const char *t_data(const char *part)
{
	static char path[4096];
	const char *root = getenv("CS_DATA");

	snprintf(path, sizeof path, "%s/%s", root && *root ? root : "../shared/data", part);
	if (access(path, R_OK))
		T_ABSENT("there is no %s (CS_DATA says where the test data is)", path);
	return path;
}

static inline void t_slurp(struct cs_buf *b, const char *path)
{
	struct cs_err err;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		T_FAIL("%s: %s", path, strerror(errno));
	b->len = 0;
	if (cs_buf_read_fd(b, fd, path, &err) < 0)
		T_FAIL("%s", err.msg);
	close(fd);
}
