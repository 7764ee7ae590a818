/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpd - the HTTP side of the collector: API, page, /metrics, health, on the caller's
 * loop.
 *
 *     evhttp -> api (what is asked) -> backend -> answer -> reply
 *
 * Only GET and HEAD, and POST for writes. With `access` it is HTTPS, and each request but
 * those for the page and for health needs a token. Without, the Host header must be one
 * of ours (ls_http_host_is_ours), so that a page from elsewhere cannot reach us by
 * rebinding its own name (421 otherwise); with it the certificate does that. There is no
 * CORS. A client that sends no whole request within LS_HTTP_TIMEOUT_S is dropped; an
 * answer that takes the backend longer than that is a 503. At LS_HTTP_CONNECTIONS_MAX the
 * idlest connection of whoever holds most makes room.
 *
 * Owner:   the loop thread.
 * Units:   as in web/api/backend.h.
 * Errors:  -EPERM not a loopback address, not `insecure` and no `access`; -EADDRINUSE and
 *          its like; -ENOMEM.
 * Limits:  LS_HTTP_HEADER_MAX_BYTES, LS_HTTP_BODY_MAX_BYTES, LS_HTTP_TIMEOUT_S,
 *          LS_HTTP_CONNECTIONS_MAX.
 */
#ifndef LS_WEB_HTTPD_H
#define LS_WEB_HTTPD_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"
#include "web/api/backend.h"

struct ls_access;
struct ls_httpd;
struct ls_loop;

struct ls_httpd_options {
	char address[64]; /* numeric: "127.0.0.1", "::1", "0.0.0.0" */
	uint16_t port; /* 0: any free one */
	/* Where to read the page, for work on it; "" = the embedded one. */
	char web_root[LS_CONF_VALUE_MAX_BYTES];
	char names
		[LS_CONF_VALUE_MAX_BYTES]; /* "NAME,...": of ours in the Host header */
	unsigned timeout_s; /* 0: LS_HTTP_TIMEOUT_S */
	bool insecure; /* an address that others can reach, without a password */
	struct ls_access *access; /* NULL: plain, and no tokens; outlives the server */
};

/*
 * Starts to serve. `options` and `backend` are copied; what backend->arg points at must
 * live until ls_httpd_free. Replies that the backend still owes then go nowhere, but
 * must still come or the memory behind them is lost.
 */
int ls_httpd_new(struct ls_loop *loop, const struct ls_httpd_options *options,
	const struct ls_backend *backend, struct ls_httpd **ret) LS_MUSTCHECK;

/* Stops; accepts NULL. Call before ls_loop_free. */
void ls_httpd_free(struct ls_httpd *h);

/* The port that is served. */
int ls_httpd_port(const struct ls_httpd *h);

#endif
