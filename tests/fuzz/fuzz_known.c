/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_known.c - the record of a search for secrets, as found on a disk that forgets: whatever the bytes,
 * it is not believed, or what it says was found are absolute paths.
 *
 * A checksum keeps a fuzzer out, so an input that starts with 'F' has its magic, its patterns and its
 * checksum made right first; 'S' also puts in what the directory is like now. */
#include "base/crc.h"
#include "session/known.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 32, ENTRY = 48 }; /* struct head, struct entry */

/* As known.c names a search of "/" without patterns: FNV-1a of the path. */
static uint64_t patterns_of_root(void)
{
	uint64_t h = (0xcbf29ce484222325u ^ '/') * 0x100000001b3u;

	return (h ^ 0xff) * 0x100000001b3u;
}

static void put_state(char *p)
{
	struct stat st;
	uint64_t v[4];
	uint32_t ns[2];

	if (stat("/", &st) < 0)
		return;
	v[0] = st.st_dev, v[1] = st.st_ino, v[2] = (uint64_t)st.st_mtim.tv_sec, v[3] = (uint64_t)st.st_ctim.tv_sec;
	ns[0] = (uint32_t)st.st_mtim.tv_nsec, ns[1] = (uint32_t)st.st_ctim.tv_nsec;
	memcpy(p, v, sizeof v);
	memcpy(p + sizeof v, ns, sizeof ns);
}

static void make_right(char *p, size_t n, bool state)
{
	uint64_t patterns = patterns_of_root();
	uint32_t crc;

	if (n < HEAD)
		return;
	memcpy(p, "CSNSEEN1", 8);
	memcpy(p + 8, &patterns, sizeof patterns);
	if (state && n >= HEAD + ENTRY)
		put_state(p + HEAD);
	crc = cs_crc32c(0, p + HEAD, n - HEAD);
	memcpy(p + 28, &crc, sizeof crc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool fix = size && (data[0] == 'F' || data[0] == 'S'), partly = false;
	struct cs_strv none = { 0 }, found = { 0 };
	char *copy = malloc(size + 1);

	memcpy(copy, data + fix, size - fix);
	if (fix)
		make_right(copy, size - fix, data[0] == 'S');
	if (!known_parse(copy, size - fix, "/", &none, &found, &partly) && (found.n || partly))
		abort();
	for (size_t i = 0; i < found.n; i++)
		if (found.v[i][0] != '/')
			abort();
	cs_strv_done(&found);
	free(copy);
	return 0;
}
