/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_manifest.c - a manifest as a server sends it: it is refused, or every tool has a name and a hash, the same each time;
 * whatever is said about it has no byte that acts on a terminal.  A file of pins, likewise, by an input that begins with 'P'. */
#include "gate/manifest.h"

#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((text[i] >= 0 && text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f)
			abort();
}

static void look(struct manifest *m, struct pins *none)
{
	(void)manifest_screen(m);
	(void)manifest_screen(m);
	for (size_t i = 0; i < m->n; i++) {
		struct manifest_tool *t = &m->tools[i];
		struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 24);

		if (!t->name || !*t->name || strlen(t->hash) != 64 || !manifest_find(m, t->name))
			abort();
		must_be_plain(t->quarantine, strlen(t->quarantine));
		pins_diff(none, t, false, &out);
		must_be_plain(cs_buf_text(&out), out.len);
		pins_approve(none, t, "f", "f");
		if (pins_state(none, t) != PIN_SAME)
			abort();
	}
}

static void read_pins(const uint8_t *data, size_t size)
{
	struct pins *p = NULL;
	char path[64];
	int fd = memfd_create("pins", 0);

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size && pins_load(path, &p, NULL) == 0)
		pins_free(p);
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest *m = NULL, *again = NULL;
	struct pins *none = NULL;
	struct cs_err err = { 0 };

	if (size && data[0] == 'P') {
		read_pins(data + 1, size - 1);
		return 0;
	}
	if (manifest_read("fuzz", (const char *)data, size, &m, &err) < 0) {
		must_be_plain(err.msg, strlen(err.msg));
		return 0;
	}
	if (manifest_read("fuzz", (const char *)data, size, &again, &err) < 0 || again->n != m->n)
		abort();
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->tools[i].hash, again->tools[i].hash))
			abort();
	if (pins_load("/nonexistent/pins", &none, NULL) == 0)
		look(m, none);
	pins_free(none);
	manifest_free(m);
	manifest_free(again);
	return 0;
}
