/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.h - resources that free themselves at the end of their scope. */
#pragma once
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CS_CLEANUP(fn) __attribute__((__cleanup__(fn)))
#define CS_FD   CS_CLEANUP(cs_close_p)  /* CS_FD int fd = -1;        */
#define CS_FREE CS_CLEANUP(cs_free_p)   /* CS_FREE char *s = NULL;   */
#define CS_DIR  CS_CLEANUP(cs_closedir_p)

/* Hand ownership on: the variable is reset, so its cleanup does nothing. */
#define CS_TAKE_FD(v)  ({ int *p_ = &(v); int t_ = *p_; *p_ = -1; t_; })
#define CS_TAKE_PTR(v) ({ __typeof__(v) *p_ = &(v), t_ = *p_; *p_ = NULL; t_; })

static inline void cs_close_p(int *fd)
{
	if (*fd >= 0) {
		int saved = errno; /* a cleanup must never eat the errno being returned */
		close(*fd);
		errno = saved;
	}
}

static inline void cs_free_p(void *p)
{
	free(*(void **)p);
}

static inline void cs_closedir_p(DIR **d)
{
	if (*d)
		closedir(*d);
}
