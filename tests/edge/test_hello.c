/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "egress/edge/hello.h"

struct bytes {
	uint8_t b[70000];
	size_t n;
};

static void put(struct bytes *o, const void *p, size_t n)
{
	T_TRUE(o->n + n <= sizeof o->b);
	if (n)
		memcpy(o->b + o->n, p, n);
	o->n += n;
}

static void put_number(struct bytes *o, size_t v, int bytes)
{
	while (bytes--)
		put(o, &(uint8_t){ (uint8_t)(v >> 8 * bytes) }, 1);
}

static void put_vector(struct bytes *o, const void *p, size_t n, int bytes)
{
	put_number(o, n, bytes);
	put(o, p, n);
}

static void put_ext(struct bytes *o, unsigned type, const void *p, size_t n)
{
	put_number(o, type, 2);
	put_vector(o, p, n, 2);
}

/* server_name with one host name */
static void put_sni(struct bytes *o, const char *name, size_t n)
{
	static struct bytes list, ext;

	list.n = ext.n = 0;
	put_number(&list, 0, 1);
	put_vector(&list, name, n, 2);
	put_vector(&ext, list.b, list.n, 2);
	put_ext(o, 0, ext.b, ext.n);
}

/* A handshake message around these extensions; NULL: a hello without any. */
static void handshake(struct bytes *o, const struct bytes *exts)
{
	static struct bytes body;

	body.n = 0;
	put_number(&body, 0x0303, 2);
	put(&body, "0123456789abcdef0123456789abcdef", 32);
	put_vector(&body, "session", 7, 1);
	put_vector(&body, "\x13\x01\x13\x02", 4, 2);
	put_vector(&body, "\x00", 1, 1);
	if (exts)
		put_vector(&body, exts->b, exts->n, 2);
	o->n = 0;
	put_number(o, 1, 1);
	put_vector(o, body.b, body.n, 3);
}

/* The message in records of at most `size` bytes. */
static void records(struct bytes *o, const struct bytes *msg, size_t size)
{
	o->n = 0;
	for (size_t at = 0; at < msg->n; at += size) {
		size_t n = msg->n - at < size ? msg->n - at : size;

		put(o, "\x16\x03\x01", 3);
		put_vector(o, msg->b + at, n, 2);
	}
}

static struct bytes exts, msg, wire;

static enum hello_state parse(struct hello *h)
{
	handshake(&msg, &exts);
	records(&wire, &msg, 16384);
	return hello_parse(wire.b, wire.n, h);
}

static void name_is(const char *name, size_t n, const char *want)
{
	struct hello h;
	enum hello_state s;

	exts.n = 0;
	put_sni(&exts, name, n);
	s = parse(&h);
	if (want) {
		T_INT(s, HELLO_DONE);
		T_TRUE(h.has_name);
		T_STR(h.name, want);
	} else {
		if (s != HELLO_BAD)
			T_FAIL("accepted: %.*s", (int)n, name);
		T_STR(h.why, "the server name is not a name");
		T_STR(h.name, "");
		T_TRUE(!h.has_name);
	}
}
#define NAME(text, want) name_is(text, sizeof(text) - 1, want)

TEST(a_name_is_found_and_lower_case)
{
	NAME("example.com", "example.com");
	NAME("API.Example.com", "api.example.com");
	NAME("localhost", "localhost");
}

TEST(a_name_that_needs_interpretation_is_bad)
{
	NAME("", NULL);
	NAME(".", NULL);
	NAME("example.com.", NULL);
	NAME("example.com\0", NULL);
	NAME("example.com\0.evil.com", NULL);
	NAME("127.0.0.1", NULL);
	NAME("0x7f.1", NULL);
	NAME("2130706433", NULL);
	NAME("::1", NULL);
	NAME("[::1]", NULL);
	NAME("a b.com", NULL);
	NAME("a@b.com", NULL);
	NAME("a.com:443", NULL);
	NAME("*.a.com", NULL);
	NAME("b\xc3\xbc" "cher.de", NULL);
	NAME("a\xe3\x80\x82" "com", NULL);
	NAME("a%00.com", NULL);
	NAME("a..com", NULL);
}

TEST(a_hello_without_a_name_or_without_extensions_is_one)
{
	struct hello h;

	exts.n = 0;
	T_INT(parse(&h), HELLO_DONE);
	T_TRUE(!h.has_name && !h.alpn && !h.ech);
	handshake(&msg, NULL);
	records(&wire, &msg, 16384);
	T_INT(hello_parse(wire.b, wire.n, &h), HELLO_DONE);
	T_TRUE(!h.has_name);
}

TEST(every_beginning_of_a_hello_asks_for_more)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 64, 16384 };
	struct hello h;

	exts.n = 0;
	put_sni(&exts, "example.com", 11);
	handshake(&msg, &exts);
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		records(&wire, &msg, sizes[s]);
		for (size_t n = 0; n < wire.n; n++)
			T_INT(hello_parse(wire.b, n, &h), HELLO_MORE);
		T_INT(hello_parse(wire.b, wire.n, &h), HELLO_DONE);
		T_STR(h.name, "example.com");
	}
}

TEST(early_data_behind_the_hello_is_not_looked_at)
{
	struct hello h;

	exts.n = 0;
	put_sni(&exts, "example.com", 11);
	parse(&h);
	put(&wire, "\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x05" "early", 16);
	T_INT(hello_parse(wire.b, wire.n, &h), HELLO_DONE);
	T_STR(h.name, "example.com");
}

TEST(a_second_message_in_the_same_record_is_bad)
{
	struct hello h;

	exts.n = 0;
	put_sni(&exts, "good.com", 8);
	handshake(&msg, &exts);
	put(&msg, msg.b, msg.n);
	records(&wire, &msg, 16384);
	for (size_t n = 0; n <= wire.n; n++) { /* never done first and bad later */
		enum hello_state s = hello_parse(wire.b, n, &h);

		T_TRUE(n < 9 ? s == HELLO_MORE : s == HELLO_BAD);
	}
	T_STR(h.why, "something follows the hello in its record");
}

TEST(what_is_not_tls_is_told_from_the_first_bytes)
{
	static const char *const rows[] = { "GET / HTTP/1.1", "SSH-2.0", "\x80\x2e\x01\x03\x01", "\x15\x03\x01", "\x17\x03\x03",
					    "\x16\x02\x00", "PRI * HTTP/2.0", "\x16\xfe\xff" };
	struct hello h;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		T_INT(hello_parse((const uint8_t *)rows[i], strlen(rows[i] + 2) + 2, &h), HELLO_NOT_TLS);
	T_INT(hello_parse((const uint8_t *)"\x00", 1, &h), HELLO_NOT_TLS);
	T_INT(hello_parse((const uint8_t *)"", 0, &h), HELLO_MORE);
}

static void raw_is_bad(const char *p, size_t n, const char *why)
{
	struct hello h;

	T_INT(hello_parse((const uint8_t *)p, n, &h), HELLO_BAD);
	T_STR(h.why, why);
}
#define RAW_BAD(p, why) raw_is_bad(p, sizeof(p) - 1, why)

TEST(broken_records_and_messages_are_bad_as_soon_as_seen)
{
	RAW_BAD("\x16\x03\x07", "a record is of no version of TLS");
	RAW_BAD("\x16\x03\x01\x00\x00", "a record is empty or too long");
	RAW_BAD("\x16\x03\x01\x40\x01", "a record is empty or too long");
	RAW_BAD("\x16\x03\x01\x00\x05\x02", "the first message is not a hello");
	RAW_BAD("\x16\x03\x01\x00\x05\x01\x00\x44\x00", "the hello is too long");
	RAW_BAD("\x16\x03\x01\x40\x00\x01\xff\xff\xff", "the hello is too long");
	RAW_BAD("\x16\x03\x01\x00\x04\x01\x00\x00\x00", "the version is none of TLS");
	RAW_BAD("\x16\x03\x01\x00\x01\x01\x15\x03\x01", "another record is amid the hello");
	RAW_BAD("\x16\x03\x01\x00\x01\x01\x14", "another record is amid the hello");
	RAW_BAD("\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x00", "a record is empty or too long");
}

static void exts_are_bad(const char *why)
{
	struct hello h;

	T_INT(parse(&h), HELLO_BAD);
	T_STR(h.why, why);
	T_TRUE(!h.has_name && !*h.name);
}

TEST(an_ambiguous_name_is_bad)
{
	exts.n = 0;
	put_sni(&exts, "a.com", 5);
	put_sni(&exts, "a.com", 5);
	exts_are_bad("an extension is there twice");
	exts.n = 0;
	put_ext(&exts, 0, "\x00\x10\x00\x00\x05" "a.com\x00\x00\x05" "b.com", 18);
	exts_are_bad("there is more than one server name");
	exts.n = 0;
	put_ext(&exts, 0, "\x00\x08\x01\x00\x05" "a.com", 10);
	exts_are_bad("the server name is not a host name");
	static const struct {
		const char *p;
		size_t n;
	} lengths[] = { { "", 0 }, { "\x00\x00", 2 }, { "\x00\x09\x00\x00\x05" "a.com", 10 }, { "\x00\x07\x00\x00\x05" "a.com", 10 },
			{ "\x00\x08\x00\x00\x06" "a.com", 10 }, { "\x00\x08\x00\x00\x05" "a.comx", 11 } };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		exts.n = 0;
		put_ext(&exts, 0, lengths[i].p, lengths[i].n);
		exts_are_bad("the server name extension has wrong lengths");
	}
	exts.n = 0;
	put_ext(&exts, 0x0a0a, "", 0);
	put_ext(&exts, 0x0a0a, "", 0);
	exts_are_bad("an extension is there twice");
}

TEST(alpn_and_ech_are_seen)
{
	struct hello h;

	exts.n = 0;
	put_ext(&exts, 16, "\x00\x0c\x02h2\x08http/1.1", 14);
	put_ext(&exts, 0xfe0d, "anything", 8);
	T_INT(parse(&h), HELLO_DONE);
	T_TRUE(h.alpn && h.h2 && h.http11 && h.ech);
	exts.n = 0;
	put_ext(&exts, 16, "\x00\x05\x04" "h2xx", 7);
	T_INT(parse(&h), HELLO_DONE);
	T_TRUE(h.alpn && !h.h2 && !h.http11 && !h.ech);
	exts.n = 0;
	put_ext(&exts, 16, "\x00\x00", 2);
	exts_are_bad("the ALPN extension has wrong lengths");
	exts.n = 0;
	put_ext(&exts, 16, "\x00\x01\x00", 3);
	exts_are_bad("the ALPN extension has wrong lengths");
	exts.n = 0;
	put_ext(&exts, 16, "\x00\x03\x03h2", 5);
	exts_are_bad("the ALPN extension has wrong lengths");
}

TEST(the_longest_hello_fits_and_one_byte_more_does_not)
{
	static uint8_t padding[HELLO_MAX];
	struct hello h;

	exts.n = 0;
	put_sni(&exts, "a.com", 5);
	handshake(&msg, &exts);
	put_ext(&exts, 21, padding, HELLO_MAX - msg.n - 4);
	T_INT(parse(&h), HELLO_DONE);
	T_INT(msg.n, HELLO_MAX);
	T_STR(h.name, "a.com");
	put_ext(&exts, 22, padding, 1);
	exts_are_bad("the hello is too long");
}

TEST(lengths_that_do_not_meet_are_bad_wherever_they_are)
{
	struct hello h;
	size_t bad = 0;

	exts.n = 0;
	put_sni(&exts, "a.com", 5);
	put_ext(&exts, 16, "\x00\x03\x02h2", 5);
	parse(&h);
	/* Every byte a little off; those of lengths, types and names are noticed. */
	for (size_t i = 0; i < wire.n; i++)
		for (int d = -2; d <= 2; d++) {
			uint8_t was = wire.b[i];

			wire.b[i] = (uint8_t)(was + d);
			if (hello_parse(wire.b, wire.n, &h) == HELLO_BAD)
				bad++;
			wire.b[i] = was;
		}
	T_TRUE(bad > 60);
}

static void body_is_bad(const char *session_and_more, size_t n, const char *why)
{
	static struct bytes body;
	struct hello h;

	body.n = msg.n = 0;
	put_number(&body, 0x0301, 2);
	put(&body, "0123456789abcdef0123456789abcdef", 32);
	put(&body, session_and_more, n);
	put_number(&msg, 1, 1);
	put_vector(&msg, body.b, body.n, 3);
	records(&wire, &msg, 16384);
	if (hello_parse(wire.b, wire.n, &h) != HELLO_BAD)
		T_FAIL("accepted where it should be: %s", why);
	T_STR(h.why, why);
}
#define BODY_BAD(p, why) body_is_bad(p, sizeof(p) - 1, why)

TEST(a_body_that_is_not_made_as_it_should_be_is_bad)
{
	BODY_BAD("\x21" "0123456789abcdef0123456789abcdefx" "\x00\x02\x13\x01\x01\x00", "the hello has wrong lengths");
	BODY_BAD("\x00\x00\x03\x13\x01\x13\x01\x00", "the hello has wrong lengths");
	BODY_BAD("\x00\x00\x00\x01\x00", "the hello has wrong lengths");
	BODY_BAD("\x00\x00\x02\x13\x01\x00", "the hello has wrong lengths");
	BODY_BAD("\x00\x00\x02\x13\x01\x01", "the hello has wrong lengths");
	BODY_BAD("\x00\x00\x02\x13\x01\x01\x00\x00\x00\x00", "the extensions have a wrong length");
	BODY_BAD("\x00\x00\x02\x13\x01\x01\x00\x00", "the extensions have a wrong length");
	BODY_BAD("\x00\x00\x02\x13\x01\x01\x00\x00\x05\x00\x10\x00\x00", "the extensions have a wrong length");
	BODY_BAD("\x00\x00\x02\x13\x01\x01\x00\x00\x04\x00\x17\x00\x01", "an extension has a wrong length");
}

/* Captured on loopback from the programs they are named after. */
TEST(hellos_of_real_clients_are_understood)
{
	static const struct {
		const char *file, *name;
		bool alpn, h2, http11;
	} rows[] = {
		{ "openssl-tls13", "api.example.com", false, false, false }, { "openssl-alpn", "api.example.com", true, true, true },
		{ "openssl-tls12", "example.com", false, false, false },     { "openssl-tls1", "example.com", false, false, false },
		{ "openssl-nosni", "", false, false, false },                { "curl-h2", "curl.example.com", true, true, true },
		{ "curl-h1", "curl.example.com", true, false, true },        { "curl-ip", "", true, true, true },
		{ "python-ssl", "py.example.com", false, false, false },     { "python-tls12", "py.example.com", true, false, true },
		{ "node", "node.example.com", true, true, false },           { "java", "java.example.com", true, true, true },
		{ "git", "localhost", true, true, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hello h;
		char path[128];
		FILE *f;

		snprintf(path, sizeof path, "tests/fuzz/corpus/hello/%s", rows[i].file);
		f = fopen(path, "re");
		if (!f)
			T_FAIL("%s cannot be read", path);
		wire.n = fread(wire.b, 1, sizeof wire.b, f);
		fclose(f);
		for (size_t n = 0; n < wire.n; n++)
			T_INT(hello_parse(wire.b, n, &h), HELLO_MORE);
		if (hello_parse(wire.b, wire.n, &h) != HELLO_DONE)
			T_FAIL("%s: %s", rows[i].file, h.why);
		T_STR(h.name, rows[i].name);
		T_INT(h.has_name, *rows[i].name != 0);
		T_TRUE(h.alpn == rows[i].alpn && h.h2 == rows[i].h2 && h.http11 == rows[i].http11 && !h.ech);
	}
}
