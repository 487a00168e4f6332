/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_refusal.c - the address of a refused connect(2): the only bytes of the program's memory that
 * the supervisor reads.  Whatever they are, the name is short, whole and harmless to a terminal. */
#include "base/text.h"
#include "sandbox/native/internal.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[96];

	memset(name, 'x', sizeof name);
	if (!native_name_destination(data, size, name, sizeof name))
		return 0;
	if (!memchr(name, 0, sizeof name))
		abort();
	for (const char *p = name; *p; p++)
		if (!isprint((unsigned char)*p))
			abort();
	return 0;
}
