/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_wire.c - what a client may send to a session's keeper: frames, and the words of an EXEC.
 *
 * The input is a stream: the first byte says how many descriptors come with it.  Whatever it is, frames
 * are whole or refused, no more descriptors come out than there is room for and none stays open, and
 * every word of a request that is taken ends within its payload. */
#include "session/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void check(bool good)
{
	if (!good)
		abort();
}

static bool is_within(const char *p, const char *data, size_t len)
{
	return p >= data && p < data + len && memchr(p, 0, (size_t)(data + len - p));
}

static void judge_words(struct cs_buf *payload)
{
	char one[] = "A=1", *own[] = { one, NULL };
	struct wire_words w;
	struct cs_err err = { 0 };

	if (wire_words(payload->data, payload->len, own, &w, &err) == 0) {
		check(w.argc && w.argv[0] && !w.argv[w.argc] && w.env[0] == one && !w.env[1 + w.envc]);
		for (uint32_t i = 0; i < w.argc; i++)
			check(is_within(w.argv[i], payload->data, payload->len));
		for (uint32_t i = 0; i < w.envc; i++)
			check(is_within(w.env[1 + i], payload->data, payload->len));
		check(is_within(w.cwd, payload->data, payload->len));
	} else {
		check(err.code && err.msg[0]);
	}
	wire_words_done(&w);
}

/* More than the keeper has room for, too. */
static void send_stream(int to, const uint8_t *data, size_t size, unsigned n_fds)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int) * 8)];
	} u = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (n_fds) {
		m.msg_control = u.room;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		u.h.cmsg_level = SOL_SOCKET;
		u.h.cmsg_type = SCM_RIGHTS;
		u.h.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		for (unsigned i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(&u.h) + i * sizeof(int), &null, sizeof null);
	}
	(void)!sendmsg(to, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before = open_descriptors();
	int pair[2];

	if (size < 2 || size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	send_stream(pair[1], data + 1, size - 1, data[0] % 9);
	close(pair[1]);
	for (int r = 1; r > 0;) {
		struct cs_buf payload = CS_BUF(WIRE_MAX);
		struct wire w;
		int fds[3];
		size_t n = 3;

		r = wire_receive(pair[0], &w, &payload, fds, &n);
		check(n <= 3);
		if (r > 0) {
			check(payload.len == w.len);
			judge_words(&payload);
		}
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
		cs_buf_done(&payload);
	}
	close(pair[0]);
	check(open_descriptors() == before);
	return 0;
}
