/* SPDX-License-Identifier: Apache-2.0 */
/* intercept.h - HTTP, read and passed on request by request.
 *
 * For a host with secrets or with rules about requests: TLS is ended here with a
 * certificate of our own (ca.h), each request is judged, the named header is set,
 * and the request goes on over TLS that is verified for the same name.  For plain
 * HTTP the same without TLS.  HTTP/1.1, and HTTP/2 when both ends want it: what
 * the server chooses is what the client gets, so nothing is translated.
 *
 * Every request must be for the name that was resolved: Host or :authority, and
 * SNI before it, agree or it is refused.  Nothing of the program's framing is
 * passed on: heads are written anew and bodies are framed by us.
 *
 * Trust              both ends are hostile; the owner's callbacks are ours.
 * Ownership          intercept_new() takes the client's descriptor; the object frees
 *                    itself (loop_defer) after `closed` was called, once.  A dial that
 *                    is under way then is the owner's to end; nothing answers it.
 * Process            SIGPIPE must be ignored: TLS writes with write(2).
 * Failure            a refused request gets a 403 with a JSON body; whatever cannot be
 *                    understood ends the connection.
 */
#pragma once
#include "egress/edge/ca.h"
#include "egress/edge/hello.h"
#include "egress/edge/loop.h"
#include "egress/edge/mask.h"
#include "egress/edge/secret.h"

struct intercept;

struct intercept_owner {
	void *arg;
	/* Wants an upstream connection: answered by intercept_dialled(), at once or later.  Called at most
	 * once at a time; again if the server closed an idle HTTP/1.1 connection. */
	void (*dial)(void *arg);
	/* Is this request allowed?  Also counts it.  Fills *ret. */
	void (*judge)(void *arg, const char *method, const char *path, struct net_verdict *ret);
	/* Bytes that went on, as HTTP content and heads, to and from the server.  false: a budget is used
	 * up, and the connection is to be cut with that reason. */
	bool (*count)(void *arg, uint64_t out, uint64_t in);
	/* A request has its answer (or was refused: status 403, why is the reason). masked: echoes found. */
	void (*done)(void *arg, const char *method, const char *path, int status, const char *why, size_t masked);
	/* The connection is over. why: NULL, or constant or short text ("the server's certificate is not for this name: ..."). */
	void (*closed)(void *arg, const char *why);
	/* The server's certificate was not accepted, so nothing goes there.  fix: what would have it accepted, or NULL. */
	void (*untrusted)(void *arg, const char *why, const char *fix);
};

struct intercept_opts {
	struct loop *loop;
	const char *name;          /* canonical; copied */
	uint16_t port;
	int client;                /* connected, non-blocking; nothing has been read from it */
	struct ca *ca;             /* NULL: plain HTTP/1.1 */
	const struct hello *hello; /* with a ca: what the client offered */
	SSL_CTX *upstream;         /* with a ca: how servers are verified */
	const struct secret *const *secrets; /* those for this host; live as long as the box. */
	size_t n_secrets;
	struct intercept_owner owner;
};
struct intercept *intercept_new(const struct intercept_opts *o);
/* fd: connected, non-blocking, taken.  -1: it could not be; the client gets a 502 with why. */
void intercept_dialled(struct intercept *i, int take_fd, const char *why);
void intercept_cut(struct intercept *i, const char *why); /* now; closed() is called */
/* A client context that verifies: system roots, or the given PEM file (tests, operators). */
SSL_CTX *intercept_upstream_context(const char *ca_file, struct cs_err *err);
