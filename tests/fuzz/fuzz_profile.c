/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_profile.c - hostile bytes as a profile.  What is accepted must also
 * survive being written and read back. */
#include "base/buf.h"
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_read_back(const struct profile *p)
{
	struct cs_buf a = CS_BUF(8 << 20), b = CS_BUF(8 << 20);
	struct cs_err err = { 0 };
	struct profile q;

	profile_write_yaml(p, &a);
	/* A profile on top of another can be longer than one file may be. */
	if (profile_load_text(cs_buf_text(&a), a.len, "again", &q, &err) < 0) {
		if (err.code != CS_E_LIMIT)
			abort();
		cs_buf_done(&a);
		return;
	}
	profile_write_yaml(&q, &b);
	if (strcmp(cs_buf_text(&a), cs_buf_text(&b)) != 0)
		abort();
	profile_done(&q);
	cs_buf_done(&a);
	cs_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cs_buf out = CS_BUF(8 << 20);
	struct cs_err err = { 0 };
	struct profile p;

	setenv("HOME", "/home/fuzz", 1);
	if (profile_load_text((const char *)data, size, "fuzz.yaml", &p, &err) < 0) {
		if (!err.code || !*err.msg || strchr(err.msg, '\n'))
			abort();
		return 0;
	}
	must_read_back(&p);
	profile_explain(&p, &out);
	profile_write_json(&p, &out);
	(void)profile_set(&p, "limits.memory", "64M", "--memory", &err);
	(void)profile_set(&p, "files.read", "/opt", "--ro", &err);
	profile_done(&p);
	cs_buf_done(&out);
	return 0;
}
