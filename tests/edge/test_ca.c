/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "egress/edge/ca.h"
#include "harness/t.h"

#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

static struct ca *new_ca(void)
{
	struct cs_err err = { 0 };
	struct ca *ca = NULL;

	if (ca_new("7f3a", &ca, &err) < 0)
		T_FAIL("%s", err.msg);
	return ca;
}

static X509 *x509_of(const char *pem, size_t n)
{
	BIO *b = BIO_new_mem_buf(pem, (int)n);
	X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);

	BIO_free(b);
	T_TRUE(x);
	return x;
}

static X509 *root_of(const struct ca *ca)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 16);

	ca_pem(ca, &b);
	return x509_of(b.data, b.len);
}

/* As strict as OpenSSL can be. */
static int verify(X509 *root, X509 *leaf, const char *name)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *p;
	int e;

	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	p = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE | X509_V_FLAG_POLICY_CHECK);
	X509_VERIFY_PARAM_set1_host(p, name, 0);
	X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	e = X509_verify_cert(ctx) == 1 ? 0 : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return e;
}

TEST(a_certificate_is_good_for_its_name_and_no_other)
{
	struct ca *ca = new_ca(), *other = new_ca();
	X509 *root = root_of(ca), *stranger = root_of(other);
	X509 *leaf = SSL_CTX_get0_certificate(ca_context(ca, "api.example.com", NULL));

	T_INT(verify(root, leaf, "api.example.com"), 0);
	T_INT(verify(root, leaf, "example.com"), X509_V_ERR_HOSTNAME_MISMATCH);
	T_INT(verify(root, leaf, "x.api.example.com"), X509_V_ERR_HOSTNAME_MISMATCH);
	T_TRUE(verify(stranger, leaf, "api.example.com") != 0);
	X509_free(root);
	X509_free(stranger);
	ca_free(ca);
	ca_free(other);
}

TEST(names_longer_than_a_common_name_are_good_too)
{
	static const char name[] = "a-label-of-some-length.another-label-of-some-length.a-third-one-of-them.example.com";
	struct ca *ca = new_ca();
	X509 *root = root_of(ca);

	T_TRUE(strlen(name) > 64);
	T_INT(verify(root, SSL_CTX_get0_certificate(ca_context(ca, name, NULL)), name), 0);
	X509_free(root);
	ca_free(ca);
}

TEST(the_authority_signs_and_does_nothing_else)
{
	struct ca *ca = new_ca();
	X509 *root = root_of(ca), *leaf = SSL_CTX_get0_certificate(ca_context(ca, "a.example.com", NULL));
	X509 *leaf2 = SSL_CTX_get0_certificate(ca_context(ca, "b.example.com", NULL));
	char cn[80];

	X509_NAME_get_text_by_NID(X509_get_subject_name(root), NID_commonName, cn, sizeof cn);
	T_STR(cn, "Caisson session 7f3a");
	T_INT(X509_get_key_usage(root), KU_KEY_CERT_SIGN);
	T_INT(X509_get_pathlen(root), 0);
	T_INT(X509_check_ca(root), 1);
	T_INT(X509_check_ca(leaf), 0);
	T_INT(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
	T_INT(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
	T_TRUE(EVP_PKEY_eq(X509_get0_pubkey(leaf), X509_get0_pubkey(leaf2)) == 1);
	T_TRUE(EVP_PKEY_eq(X509_get0_pubkey(leaf), X509_get0_pubkey(root)) == 0);
	T_TRUE(ASN1_INTEGER_cmp(X509_get0_serialNumber(leaf), X509_get0_serialNumber(leaf2)) != 0);
	T_INT(X509_cmp_time(X509_get0_notBefore(leaf), &(time_t){ time(NULL) - 23 * 3600 }), -1);
	T_INT(X509_cmp_time(X509_get0_notAfter(leaf), &(time_t){ time(NULL) + 28L * 86400 }), 1);
	T_INT(X509_cmp_time(X509_get0_notAfter(root), &(time_t){ time(NULL) + 30L * 86400 }), -1);
	X509_free(root);
	ca_free(ca);
}

TEST(contexts_are_kept_and_the_oldest_goes)
{
	struct ca *ca = new_ca();
	SSL_CTX *first = ca_context(ca, "first.example.com", NULL);
	SSL *in_use = SSL_new(first);
	char name[64];

	T_TRUE(ca_context(ca, "first.example.com", NULL) == first);
	for (int i = 0; i < 256; i++) {
		snprintf(name, sizeof name, "n%d.example.com", i);
		T_TRUE(ca_context(ca, name, NULL));
	}
	T_TRUE(ca_context(ca, "n255.example.com", NULL) == ca_context(ca, "n255.example.com", NULL));
	T_TRUE(ca_context(ca, "first.example.com", NULL) != first); /* which lives on, by its connection */
	T_TRUE(SSL_get_SSL_CTX(in_use) == first);
	SSL_free(in_use);
	ca_free(ca);
}

TEST(what_is_no_name_gets_no_certificate)
{
	static const char *const bad[] = { "", "*.example.com", "a b", "a,DNS:b", "a\nb", ".a", "caf\xc3\xa9.fr" };
	struct ca *ca = new_ca();
	char long_name[300];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct cs_err err = { 0 };

		T_TRUE(!ca_context(ca, bad[i], &err));
		T_INT(err.code, CS_E_INVALID);
	}
	memset(long_name, 'a', sizeof long_name);
	long_name[254] = 0;
	T_TRUE(!ca_context(ca, long_name, NULL));
	ca_free(ca);
}

/* A handshake through memory; 0, or the client's verdict on the certificate. */
static long handshake(struct ca *ca, int max_version, const char *version)
{
	SSL_CTX *cctx = SSL_CTX_new(TLS_client_method());
	SSL *c, *s = SSL_new(ca_context(ca, "api.example.com", NULL));
	BIO *a, *b;
	X509 *root = root_of(ca);
	long verdict;
	int done = 0;

	X509_STORE_add_cert(SSL_CTX_get_cert_store(cctx), root);
	SSL_CTX_set_verify(cctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_security_level(cctx, 0);
	SSL_CTX_set_max_proto_version(cctx, max_version);
	c = SSL_new(cctx);
	SSL_set1_host(c, "api.example.com");
	BIO_new_bio_pair(&a, 0, &b, 0);
	SSL_set_bio(c, a, a);
	SSL_set_bio(s, b, b);
	SSL_set_connect_state(c);
	SSL_set_accept_state(s);
	for (int i = 0; i < 10 && !done; i++) {
		int one = SSL_do_handshake(c), two = SSL_do_handshake(s);

		done = one == 1 && two == 1;
	}
	if (done && *version)
		T_STR(SSL_get_version(c), version);
	verdict = done ? SSL_get_verify_result(c) : -1;
	SSL_free(c);
	SSL_free(s);
	SSL_CTX_free(cctx);
	X509_free(root);
	return verdict;
}

TEST(tls_1_2_and_newer_are_spoken)
{
	struct ca *ca = new_ca();

	T_INT(handshake(ca, TLS1_3_VERSION, "TLSv1.3"), 0);
	T_INT(handshake(ca, TLS1_2_VERSION, "TLSv1.2"), 0);
	T_INT(handshake(ca, TLS1_1_VERSION, ""), -1);
	ca_free(ca);
}

/* A bundle as hosts have them, and worse: comments, a key, the same certificate twice, rubbish. */
static char *host_bundle(void)
{
	struct cs_buf b = CS_BUF(1 << 20);
	struct ca *one = new_ca(), *two = new_ca();

	cs_buf_str(&b, "# Some authority\nsubject=CN = x\n");
	ca_pem(one, &b);
	cs_buf_str(&b, "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqG\n-----END PRIVATE KEY-----\n");
	ca_pem(one, &b);
	cs_buf_str(&b, "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n");
	cs_buf_str(&b, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	cs_buf_str(&b, "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END CERTIFICATE-----\n");
	ca_pem(two, &b);
	cs_buf_str(&b, "-----BEGIN CERTIFICATE-----\ncut off");
	ca_free(one);
	ca_free(two);
	return b.data;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text++;
	}
	return n;
}

TEST(the_bundle_is_certificates_and_nothing_else)
{
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20), own = CS_BUF(1 << 16), alone = CS_BUF(1 << 16);
	struct ca *ca = new_ca();
	char *host = host_bundle();

	ca_pem(ca, &own);
	ca_bundle_pem(ca, "", &alone);
	T_STR(cs_buf_text(&alone), cs_buf_text(&own));
	ca_bundle_pem(ca, host, &b);
	T_TRUE(!strncmp(b.data, own.data, own.len));
	T_INT(count(b.data, "-----BEGIN CERTIFICATE-----\n"), 5); /* ours, three, and the one that only OpenSSL can tell */
	T_INT(count(b.data, "-----END CERTIFICATE-----\n"), 5);
	T_INT(count(b.data, "PRIVATE"), 0);
	T_INT(count(b.data, "Some authority"), 0);
	T_INT(count(b.data, "cut off"), 0);
	free(host);
	ca_free(ca);
}

TEST(a_bundle_without_end_is_cut)
{
	CS_BUF_AUTO struct cs_buf host = CS_BUF(16 << 20), b = CS_BUF(16 << 20);
	struct ca *ca = new_ca();

	while (host.len < 6 << 20) {
		cs_buf_str(&host, "-----BEGIN CERTIFICATE-----\n");
		for (int i = 0; i < 8000; i++)
			cs_buf_str(&host, "AAAAAAAAAAAAAAA\n");
		cs_buf_str(&host, "-----END CERTIFICATE-----\n");
	}
	ca_bundle_pem(ca, cs_buf_text(&host), &b);
	T_TRUE(b.len <= (4 << 20) + 4096 && b.len > 3 << 20);
	T_STR(b.data + b.len - 26, "-----END CERTIFICATE-----\n");
	ca_free(ca);
}

static unsigned be(const unsigned char **p, unsigned bytes)
{
	unsigned v = 0;

	while (bytes--)
		v = v << 8 | *(*p)++;
	return v;
}

TEST(the_key_store_holds_each_certificate_once)
{
	static const char salt[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20), all = CS_BUF(1 << 20);
	static const char *const alias[] = { "caisson", "host-0001", "host-0002" };
	unsigned char md[SHA_DIGEST_LENGTH];
	struct ca *ca = new_ca();
	char *host = host_bundle();
	const unsigned char *p;

	T_INT(ca_bundle_jks(ca, host, &b, NULL), 0);
	p = (unsigned char *)b.data;
	T_INT(be(&p, 4), 0xfeedfeed);
	T_INT(be(&p, 4), 2);
	T_INT(be(&p, 4), 3);
	for (int i = 0; i < 3; i++) {
		unsigned n;
		X509 *x;

		T_INT(be(&p, 4), 2);
		n = be(&p, 2);
		T_TRUE(n == strlen(alias[i]) && !memcmp(p, alias[i], n));
		p += n + 8;
		T_INT(be(&p, 2), 5);
		T_TRUE(!memcmp(p, "X.509", 5));
		p += 5;
		n = be(&p, 4);
		x = d2i_X509(NULL, &p, n);
		T_TRUE(x);
		X509_free(x);
	}
	cs_buf_add(&all, salt, sizeof salt - 1);
	cs_buf_add(&all, b.data, b.len - sizeof md);
	SHA1((unsigned char *)all.data, all.len, md);
	T_TRUE((const char *)p == b.data + b.len - sizeof md && !memcmp(p, md, sizeof md));
	free(host);
	ca_free(ca);
}

TEST(java_reads_the_key_store)
{
	const char *dir = t_tmpdir();
	CS_BUF_AUTO struct cs_buf b = CS_BUF(1 << 20);
	struct t_result *r = cs_new(struct t_result);
	struct ca *ca = new_ca();
	char path[300], *host = host_bundle();
	const char *const argv[] = { "keytool", "-list", "-keystore", path, "-storepass", "changeit", NULL };
	FILE *f;

	T_INT(ca_bundle_jks(ca, host, &b, NULL), 0);
	snprintf(path, sizeof path, "%s/store.jks", dir);
	f = fopen(path, "w");
	T_TRUE(f && fwrite(b.data, b.len, 1, f) == 1 && fclose(f) == 0);
	t_run(r, argv);
	if (r->status == 127)
		T_ABSENT("no keytool");
	T_INT(r->status, 0);
	T_INT(count(r->out, "trustedCertEntry"), 3);
	free(host);
	free(r);
	ca_free(ca);
}
