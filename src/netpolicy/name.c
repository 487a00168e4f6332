/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "netpolicy/internal.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 63 };

char *net_shown(char *dst, size_t size, const char *s)
{
	cs_escape_to(dst, size, s);
	cs_blunt(dst); /* cutting may have left half a character */
	return dst;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Would a program take a name whose last label this is for an address?  inet_aton() and the URL
 * standard both do when the last part is a number: decimal, octal, or 0x and any hex digits. */
static bool is_number(const char *label)
{
	size_t n = strlen(label);

	if (strspn(label, "0123456789") == n)
		return true;
	return !strncmp(label, "0x", 2) && strspn(label + 2, "0123456789abcdef") == n - 2;
}

static int bad_byte(const char *shown, unsigned char c, struct cs_err *err)
{
	if (c >= 0x80)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a name is written in ASCII; write the xn-- form of it", shown);
	if (c == '*')
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '*' stands for whole labels at the start only, as in *.example.com",
			       shown);
	if (c == '@')
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a name has no user in it; leave out what is before the '@'", shown);
	if (c == 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a NUL byte is in the name", shown);
	if (c > 0x20 && c < 0x7f)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': '%c' cannot be in a name", shown, c);
	return cs_fail(err, CS_E_INVALID, 0, "'%s': the byte 0x%02x cannot be in a name", shown, c);
}

static int check_label(const char *shown, const char *label, size_t n, struct cs_err *err)
{
	if (n == 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a part between dots is empty", shown);
	if (n > LABEL_MAX)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the part '%.*s...' is longer than %d bytes", shown, 16, label,
			       LABEL_MAX);
	return 0;
}

/* Lower case into low, and every byte one that a name may have. */
static int fold(const char *shown, const char *name, size_t len, char *low, struct cs_err *err)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c >= 'A' && c <= 'Z')
			c = (unsigned char)(c - 'A' + 'a');
		if (!(c >= 'a' && c <= 'z') && !is_digit((char)c) && c != '-' && c != '_' && c != '.')
			return bad_byte(shown, c, err);
		low[i] = (char)c;
	}
	low[len] = 0;
	return 0;
}

int net_name_canonical(const char *name, size_t len, char ret[NET_NAME_MAX], struct cs_err *err)
{
	char low[NET_NAME_MAX] = "", copy[NET_NAME_MAX + 8], shown[160] = "";
	const char *label;
	int r;

	if (err) {
		snprintf(copy, sizeof copy, "%.*s", len < NET_NAME_MAX + 4 ? (int)len : NET_NAME_MAX + 4, name);
		net_shown(shown, sizeof shown, copy);
	}
	if (len > 0 && name[len - 1] == '.')
		len--;
	if (len == 0)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': the name is empty", shown);
	if (len >= NET_NAME_MAX)
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a name has at most %d bytes, this one has %zu", shown,
			       NET_NAME_MAX - 1, len);
	r = fold(shown, name, len, low, err);
	if (r < 0)
		return r;
	label = low;
	for (const char *dot; (dot = strchr(label, '.')); label = dot + 1) {
		r = check_label(shown, label, (size_t)(dot - label), err);
		if (r < 0)
			return r;
	}
	r = check_label(shown, label, strlen(label), err);
	if (r < 0)
		return r;
	if (low[0] == '-')
		return cs_fail(err, CS_E_INVALID, 0, "'%s': a name does not begin with '-'", shown);
	if (is_number(label))
		return cs_fail(err, CS_E_INVALID, 0,
			       "'%s' is not a name but would be read as an address; an address is four decimal numbers from 0 to "
			       "255 without leading zeros, as in 192.0.2.1",
			       shown);
	memcpy(ret, low, len + 1);
	return 0;
}

/* Names by which the metadata services of clouds are known.  What is below one of them counts too. */
static const char *const metadata_names[] = {
	"metadata",
	"instance-data",
	"metadata.google.internal",
	"metadata.goog",
	"instance-data.ec2.internal",
	"metadata.azure.internal",
	"metadata.tencentyun.com",
	"metadata.packet.net",
	"metadata.platformequinix.com",
	"metadata.cloud.ibm.com",
};

static bool ends_in(const char *name, const char *tail)
{
	size_t n = strlen(name), t = strlen(tail);

	return n >= t && !strcmp(name + n - t, tail) && (n == t || name[n - t - 1] == '.');
}

bool net_name_is_metadata(const char *name)
{
	size_t first = strcspn(name, ".");

	for (size_t i = 0; i < sizeof metadata_names / sizeof *metadata_names; i++)
		if (ends_in(name, metadata_names[i]))
			return true;
	/* Through a search list: metadata.c.PROJECT.internal. */
	return ends_in(name, "internal") && ((first == 8 && !strncmp(name, "metadata", 8)) ||
					     (first == 13 && !strncmp(name, "instance-data", 13)));
}
