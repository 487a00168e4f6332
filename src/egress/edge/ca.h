/* SPDX-License-Identifier: Apache-2.0 */
/* ca.h - a certificate authority that lives as long as the boundary does.
 *
 * Its key never leaves this process and is not written anywhere.  Certificates
 * are for one name each and are made when first asked for. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#include <openssl/ssl.h>

struct ca;
int ca_new(const char *session_id, struct ca **ret, struct cs_err *err); /* EC P-256, valid from a day ago for 30 days */
void ca_free(struct ca *ca);
/* A server context with a certificate for the name (SAN, the same key for all names); cached, owned by
 * the ca, at most 256 names (the oldest goes).  NULL: err.  TLS 1.2 and newer; no tickets, no ALPN set. */
SSL_CTX *ca_context(struct ca *ca, const char *name, struct cs_err *err);
void ca_pem(const struct ca *ca, struct cs_buf *out);
/* What programs inside are to trust: the host's bundle (a PEM text, may be empty) and this CA. */
void ca_bundle_pem(const struct ca *ca, const char *host_bundle, struct cs_buf *out);
/* The same as a Java key store (JKS, trusted entries only, password "changeit"). */
int ca_bundle_jks(const struct ca *ca, const char *host_bundle, struct cs_buf *out, struct cs_err *err);
