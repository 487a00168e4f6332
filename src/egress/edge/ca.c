/* SPDX-License-Identifier: Apache-2.0 */
/* ca.c - one key for the authority, one for all of its certificates.
 *
 * What strict verifiers ask for is there: key identifiers on both sides, key
 * usage, critical basic constraints, a random serial.  Extensions are built as
 * structures and never from configuration text, so that no name can add one. */
#include "egress/edge/ca.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/time.h>

enum {
	NAMES_MAX = 256,
	DAY = 24 * 60 * 60,
	VALID_DAYS = 30,
	CN_MAX = 64, /* ub-common-name */
	NAME_MAX_LEN = 253,
	BUNDLE_MAX = 4 << 20,
	BUNDLE_CERTS_MAX = 4096,
};

struct leaf {
	char *name;
	SSL_CTX *ctx;
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	char *pem;
	unsigned char *der;
	size_t der_len;
	struct leaf leaves[NAMES_MAX]; /* a ring: the next to go is where the next one comes */
	size_t next;
};

static int fail_ssl(struct cs_err *err, const char *what)
{
	char text[160];
	unsigned long e = ERR_get_error();

	ERR_error_string_n(e, text, sizeof text);
	ERR_clear_error();
	return cs_fail(err, CS_E_SYSTEM, 0, "%s: %s", what, e ? text : "out of memory");
}

/* ---- certificates ---- */

/* 127 random bits: positive, and as long for everybody. */
static bool set_serial(X509 *x)
{
	unsigned char b[16];
	BIGNUM *n;
	bool ok;

	if (RAND_bytes(b, sizeof b) != 1)
		return false;
	b[0] = (unsigned char)((b[0] & 0x7f) | 0x40);
	n = BN_bin2bn(b, sizeof b, NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
	BN_free(n);
	return ok;
}

static bool set_names(X509 *x, const char *cn, const X509_NAME *issuer)
{
	X509_NAME *n = X509_get_subject_name(x);

	if (!X509_NAME_add_entry_by_NID(n, NID_organizationName, MBSTRING_ASC, (const unsigned char *)"Caisson", -1, -1, 0))
		return false;
	/* A longer name is in the alternative names, where everybody looks. */
	if (strlen(cn) <= CN_MAX &&
	    !X509_NAME_add_entry_by_NID(n, NID_commonName, MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0))
		return false;
	return X509_set_issuer_name(x, issuer ? issuer : n);
}

static bool add_basic(X509 *x, bool is_ca)
{
	BASIC_CONSTRAINTS *bc = BASIC_CONSTRAINTS_new();
	bool ok = bc;

	if (ok && is_ca) {
		bc->ca = 0xff;
		bc->pathlen = ASN1_INTEGER_new();
		ok = bc->pathlen && ASN1_INTEGER_set(bc->pathlen, 0);
	}
	ok = ok && X509_add1_ext_i2d(x, NID_basic_constraints, bc, /* crit= */ 1, X509V3_ADD_DEFAULT);
	BASIC_CONSTRAINTS_free(bc);
	return ok;
}

static bool add_usage(X509 *x, int bit)
{
	ASN1_BIT_STRING *bits = ASN1_BIT_STRING_new();
	bool ok = bits && ASN1_BIT_STRING_set_bit(bits, bit, 1) &&
		  X509_add1_ext_i2d(x, NID_key_usage, bits, /* crit= */ 1, X509V3_ADD_DEFAULT);

	ASN1_BIT_STRING_free(bits);
	return ok;
}

static bool add_server_auth(X509 *x)
{
	EXTENDED_KEY_USAGE *eku = EXTENDED_KEY_USAGE_new();
	bool ok = eku && sk_ASN1_OBJECT_push(eku, OBJ_nid2obj(NID_server_auth)) &&
		  X509_add1_ext_i2d(x, NID_ext_key_usage, eku, /* crit= */ 0, X509V3_ADD_DEFAULT);

	EXTENDED_KEY_USAGE_free(eku);
	return ok;
}

/* RFC 5280, 4.2.1.2, method 1: SHA-1 of the public key; a name for it, not a protection. */
static bool add_key_ids(X509 *x, X509 *issuer)
{
	ASN1_OCTET_STRING *ski = ASN1_OCTET_STRING_new();
	AUTHORITY_KEYID *akid = AUTHORITY_KEYID_new();
	unsigned char own[EVP_MAX_MD_SIZE], theirs[EVP_MAX_MD_SIZE];
	unsigned n_own = 0, n_theirs = 0;
	bool ok = ski && akid && X509_pubkey_digest(x, EVP_sha1(), own, &n_own) &&
		  X509_pubkey_digest(issuer, EVP_sha1(), theirs, &n_theirs) &&
		  ASN1_OCTET_STRING_set(ski, own, (int)n_own) && (akid->keyid = ASN1_OCTET_STRING_new()) &&
		  ASN1_OCTET_STRING_set(akid->keyid, theirs, (int)n_theirs) &&
		  X509_add1_ext_i2d(x, NID_subject_key_identifier, ski, /* crit= */ 0, X509V3_ADD_DEFAULT) &&
		  X509_add1_ext_i2d(x, NID_authority_key_identifier, akid, /* crit= */ 0, X509V3_ADD_DEFAULT);

	ASN1_OCTET_STRING_free(ski);
	AUTHORITY_KEYID_free(akid);
	return ok;
}

static bool add_dns_name(X509 *x, const char *name)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *g = GENERAL_NAME_new();
	ASN1_IA5STRING *s = ASN1_IA5STRING_new();
	bool ok = names && g && s && ASN1_STRING_set(s, name, -1);

	if (ok) {
		GENERAL_NAME_set0_value(g, GEN_DNS, s);
		s = NULL;
		ok = sk_GENERAL_NAME_push(names, g);
		if (ok)
			g = NULL;
	}
	ok = ok && X509_add1_ext_i2d(x, NID_subject_alt_name, names, /* crit= */ 0, X509V3_ADD_DEFAULT);
	ASN1_IA5STRING_free(s);
	GENERAL_NAME_free(g);
	GENERAL_NAMES_free(names);
	return ok;
}

/* What both kinds have.  Clocks inside may be behind: valid since yesterday. */
static bool begin_cert(X509 *x, const char *cn, EVP_PKEY *key, X509 *issuer)
{
	return X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
	       X509_gmtime_adj(X509_getm_notBefore(x), -DAY) &&
	       X509_gmtime_adj(X509_getm_notAfter(x), (long)(VALID_DAYS - 1) * DAY) && X509_set_pubkey(x, key) &&
	       set_names(x, cn, issuer ? X509_get_subject_name(issuer) : NULL) && add_key_ids(x, issuer ? issuer : x);
}

static X509 *make_root(const char *session_id, EVP_PKEY *key)
{
	CS_FREE char *cn = cs_printf("Caisson session %.*s", CN_MAX - 16, session_id);
	X509 *x = X509_new();

	if (x && begin_cert(x, cn, key, NULL) && add_basic(x, true) && add_usage(x, 5 /* keyCertSign */) &&
	    X509_sign(x, key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

static X509 *make_leaf(const struct ca *ca, const char *name)
{
	X509 *x = X509_new();

	if (x && begin_cert(x, name, ca->leaf_key, ca->cert) &&
	    /* A certificate that outlives its issuer helps nobody. */
	    X509_set1_notAfter(x, X509_get0_notAfter(ca->cert)) && add_basic(x, false) &&
	    add_usage(x, 0 /* digitalSignature */) && add_server_auth(x) && add_dns_name(x, name) &&
	    X509_sign(x, ca->key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

/* ---- the authority ---- */

static bool write_out(struct ca *ca)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *text;
	long n;
	int der_len = i2d_X509(ca->cert, &ca->der);

	if (b && PEM_write_bio_X509(b, ca->cert) && (n = BIO_get_mem_data(b, &text)) > 0)
		ca->pem = cs_strndup(text, (size_t)n);
	BIO_free(b);
	ca->der_len = der_len > 0 ? (size_t)der_len : 0;
	return ca->pem && ca->der_len;
}

int ca_new(const char *session_id, struct ca **ret, struct cs_err *err)
{
	struct ca *ca = cs_new(struct ca);

	ca->key = EVP_EC_gen("P-256");
	ca->leaf_key = EVP_EC_gen("P-256");
	if (ca->key && ca->leaf_key)
		ca->cert = make_root(session_id, ca->key);
	if (!ca->cert || !write_out(ca)) {
		ca_free(ca);
		return fail_ssl(err, "make a certificate authority");
	}
	*ret = ca;
	return 0;
}

static void leaf_done(struct leaf *l)
{
	free(l->name);
	SSL_CTX_free(l->ctx);
	*l = (struct leaf){ 0 };
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	for (size_t i = 0; i < NAMES_MAX; i++)
		leaf_done(&ca->leaves[i]);
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key); /* OpenSSL wipes private keys */
	EVP_PKEY_free(ca->leaf_key);
	OPENSSL_free(ca->der);
	free(ca->pem);
	free(ca);
}

static SSL_CTX *make_context(const struct ca *ca, const char *name)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	X509 *x = make_leaf(ca, name);

	if (ctx && x && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) && SSL_CTX_set_num_tickets(ctx, 0) &&
	    SSL_CTX_use_certificate(ctx, x) == 1 && SSL_CTX_use_PrivateKey(ctx, ca->leaf_key) == 1) {
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
		SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
		X509_free(x);
		return ctx;
	}
	X509_free(x);
	SSL_CTX_free(ctx);
	return NULL;
}

static bool name_is_fit(const char *name)
{
	size_t n = strlen(name);

	return n && n <= NAME_MAX_LEN && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

SSL_CTX *ca_context(struct ca *ca, const char *name, struct cs_err *err)
{
	struct leaf *l = &ca->leaves[ca->next];
	SSL_CTX *ctx;

	for (size_t i = 0; i < NAMES_MAX && ca->leaves[i].name; i++)
		if (!strcmp(ca->leaves[i].name, name))
			return ca->leaves[i].ctx;
	if (!name_is_fit(name))
		return cs_fail(err, CS_E_INVALID, 0, "not a name for a certificate"), NULL;
	ctx = make_context(ca, name);
	if (!ctx)
		return fail_ssl(err, "make a certificate"), NULL;
	/* Connections that use the one that goes hold references of their own. */
	leaf_done(l);
	*l = (struct leaf){ cs_strdup(name), ctx };
	ca->next = (ca->next + 1) % NAMES_MAX;
	return ctx;
}

/* ---- what is trusted inside ---- */

void ca_pem(const struct ca *ca, struct cs_buf *out)
{
	cs_buf_str(out, ca->pem);
}

static const char pem_begin[] = "-----BEGIN CERTIFICATE-----", pem_end[] = "-----END CERTIFICATE-----";

struct block {
	const char *whole, *body; /* from BEGIN; from the line after it */
	size_t whole_len, body_len;
};

/* The next CERTIFICATE block whose body is base64 and nothing else.  What lies between blocks (text, keys,
 * lists of revoked certificates) is nobody's business inside. */
static bool next_block(const char **at, struct block *ret)
{
	const char *b, *e, *body;

	while ((b = strstr(*at, pem_begin))) {
		body = b + sizeof pem_begin - 1;
		*at = body;
		e = body + strspn(body, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \t\r\n");
		if (e == body || strncmp(e, pem_end, sizeof pem_end - 1) != 0)
			continue;
		*at = e + sizeof pem_end - 1;
		*ret = (struct block){ b, body, (size_t)(*at - b), (size_t)(e - body) };
		return true;
	}
	return false;
}

/* Ours first: a bundle that has to be cut is cut at the other end. */
void ca_bundle_pem(const struct ca *ca, const char *host_bundle, struct cs_buf *out)
{
	size_t room = BUNDLE_MAX;
	struct block k;

	ca_pem(ca, out);
	while (next_block(&host_bundle, &k) && k.whole_len < room) {
		cs_buf_add(out, k.whole, k.whole_len);
		cs_buf_char(out, '\n');
		room -= k.whole_len + 1;
	}
}

/* A Java key store: u32 magic FEEDFEED, u32 version 2, u32 count; for each
 * trusted certificate u32 tag 2, UTF alias, u64 ms since 1970, UTF "X.509",
 * u32 length and the DER; then SHA-1 over the password in UTF-16BE, "Mighty
 * Aphrodite" and all that came before.  UTF is u16 length and the bytes.
 *
 * Rejected: PKCS#12.  Java takes certificates in it as trusted only with an
 * attribute that OpenSSL 3.0 cannot write; JKS is read by every Java. */

static void put(struct cs_buf *b, uint64_t v, unsigned bytes)
{
	while (bytes--)
		cs_buf_char(b, (char)(v >> 8 * bytes & 0xff));
}

static void put_utf(struct cs_buf *b, const char *s)
{
	put(b, strlen(s), 2);
	cs_buf_str(b, s);
}

static void put_entry(struct cs_buf *b, const char *alias, uint64_t now_ms, const unsigned char *der, size_t len)
{
	put(b, 2, 4);
	put_utf(b, alias);
	put(b, now_ms, 8);
	put_utf(b, "X.509");
	put(b, len, 4);
	cs_buf_add(b, der, len);
}

/* The end of the object that begins at p, if it has this tag and lies within; NULL if not. */
static const unsigned char *object_end(const unsigned char *p, const unsigned char *end, int want, const unsigned char **ret_body)
{
	long len;
	int tag, class;
	const unsigned char *at = p;

	/* 0x80 is an error, 1 an indefinite length, which DER does not know. */
	if (p >= end || ASN1_get_object(&at, &len, &tag, &class, end - p) & 0x81 || tag != want || class != V_ASN1_UNIVERSAL)
		return NULL;
	if (ret_body)
		*ret_body = at;
	return at + len;
}

/* Certificate ::= SEQUENCE { SEQUENCE, SEQUENCE, BIT STRING }.  One that is not would cost Java the whole store.
 * Decoding them all would take tens of milliseconds, at every start. */
static bool is_certificate(const unsigned char *der, size_t n)
{
	const unsigned char *p, *end = object_end(der, der + n, V_ASN1_SEQUENCE, &p);
	static const int parts[] = { V_ASN1_SEQUENCE, V_ASN1_SEQUENCE, V_ASN1_BIT_STRING };

	if (!end || end != der + n)
		return false;
	for (size_t i = 0; i < 3 && p; i++)
		p = object_end(p, end, parts[i], NULL);
	return p == end;
}

/* NULL: not a certificate. */
static unsigned char *block_der(const struct block *k, size_t *ret_len)
{
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	CS_FREE unsigned char *der = k->body_len <= 1 << 20 ? cs_calloc(k->body_len + 64, 1) : NULL;
	int n = 0, tail = 0;
	bool ok;

	if (ctx)
		EVP_DecodeInit(ctx);
	ok = ctx && der && EVP_DecodeUpdate(ctx, der, &n, (const unsigned char *)k->body, (int)k->body_len) >= 0 &&
	     EVP_DecodeFinal(ctx, der + n, &tail) == 1 && is_certificate(der, (size_t)n + (size_t)tail);
	*ret_len = ok ? (size_t)n + (size_t)tail : 0;
	EVP_ENCODE_CTX_free(ctx);
	ERR_clear_error();
	return ok ? CS_TAKE_PTR(der) : NULL;
}

struct seen {
	unsigned char (*v)[SHA256_DIGEST_LENGTH];
	size_t n;
};

static bool is_new(struct seen *s, const unsigned char *der, size_t len)
{
	SHA256(der, len, s->v[s->n]);
	for (size_t i = 0; i < s->n; i++)
		if (!memcmp(s->v[i], s->v[s->n], sizeof *s->v))
			return false;
	s->n++;
	return true;
}

static void put_entries(const struct ca *ca, const char *host_bundle, struct seen *seen, struct cs_buf *b)
{
	struct timeval tv;
	uint64_t now_ms;
	struct block k;

	gettimeofday(&tv, NULL);
	now_ms = (uint64_t)tv.tv_sec * 1000;
	(void)is_new(seen, ca->der, ca->der_len);
	put_entry(b, "caisson", now_ms, ca->der, ca->der_len);
	while (seen->n < BUNDLE_CERTS_MAX && next_block(&host_bundle, &k)) {
		size_t len;
		CS_FREE unsigned char *der = block_der(&k, &len);
		char alias[24];

		if (!der || !is_new(seen, der, len))
			continue;
		snprintf(alias, sizeof alias, "host-%04zu", seen->n - 1);
		put_entry(b, alias, now_ms, der, len);
	}
}

static void put_digest(struct cs_buf *b)
{
	static const unsigned char salt[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";
	unsigned char md[SHA_DIGEST_LENGTH];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (ctx && EVP_DigestInit_ex(ctx, EVP_sha1(), NULL) && EVP_DigestUpdate(ctx, salt, sizeof salt - 1) &&
	    EVP_DigestUpdate(ctx, b->data, b->len) && EVP_DigestFinal_ex(ctx, md, NULL))
		cs_buf_add(b, md, sizeof md);
	else
		b->over = true;
	EVP_MD_CTX_free(ctx);
}

int ca_bundle_jks(const struct ca *ca, const char *host_bundle, struct cs_buf *out, struct cs_err *err)
{
	CS_BUF_AUTO struct cs_buf entries = CS_BUF(BUNDLE_MAX), whole = CS_BUF(BUNDLE_MAX + 64);
	struct seen seen = { cs_calloc(BUNDLE_CERTS_MAX + 1, sizeof *seen.v), 0 };

	put_entries(ca, host_bundle, &seen, &entries);
	free(seen.v);
	put(&whole, 0xfeedfeed, 4);
	put(&whole, 2, 4);
	put(&whole, seen.n, 4);
	cs_buf_add(&whole, cs_buf_text(&entries), entries.len);
	put_digest(&whole);
	cs_buf_add(out, cs_buf_text(&whole), whole.len);
	if (entries.over || whole.over || out->over)
		return cs_fail(err, CS_E_LIMIT, 0, "the certificates make a key store of more than %d bytes", BUNDLE_MAX);
	return 0;
}
