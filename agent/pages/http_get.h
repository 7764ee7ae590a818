/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_get - reads a small page of a local server, without ever making the loop wait.
 *
 * One request at a time, a connection each: the servers asked are on this host or the
 * next one, and are asked every few seconds at most. Names are resolved without
 * blocking. The whole exchange has one deadline, header and body each a maximum.
 * Redirects are not followed.
 *
 * Owner:   the loop's thread. Not thread-safe.
 * Units:   ns, bytes.
 * Errors:  -LS_EPARSE no http:// URL, -LS_EBUSY, -ENOMEM. Of an exchange: see
 *          ls_http_get_done.
 * Limits:  LS_HTTP_GET_HEADER_MAX_BYTES; the body's is the caller's; all bytes of an
 *          exchange, chunk lines included: the header's maximum and twice the body's.
 *          LS_HTTP_INTERIM_MAX times "100 Continue" before an answer.
 * Source:  HTTP/1.1: RFC 9112, through libevent's evhttp.
 */
#ifndef LS_AGENT_HTTP_GET_H
#define LS_AGENT_HTTP_GET_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/loop.h"

struct ls_http_get;

/*
 * How it ended. rc 0: an answer with this status came, and its body. Else there is no
 * body, and rc is -LS_EABSENT nobody listens there (or the name is unknown), -ETIMEDOUT
 * the deadline passed, -LS_ELIMIT the body is too long, -LS_EPARSE no HTTP, cut short,
 * or a header too long, -LS_EUNKNOWN without the header that is expected. The body
 * holds during the call; the call may start the next request, or free.
 */
typedef void ls_http_get_done(void *arg, int rc, int status, const char *body,
	size_t len);

struct ls_http_get_options {
	const char *url; /* http://host[:port][/path[?query]] */
	const char *header, *value; /* sent with each request; NULL: none */
	/* an answer without this header is not believed; NULL: any */
	const char *expect, *expect_value;
	size_t body_max_bytes;
	uint64_t deadline_ns;
	ls_http_get_done *done;
	void *arg;
};

/* Whether a getter can be made for this URL: 0, -LS_EPARSE, -ENOMEM. */
int ls_http_get_check(const char *url) LS_MUSTCHECK;

/* Checks the URL and makes the getter; nothing is sent yet. -LS_EPARSE, -ENOMEM. */
int ls_http_get_new(struct ls_loop *loop, const struct ls_http_get_options *options,
	struct ls_http_get **ret_get) LS_MUSTCHECK;

/* Ends what is under way without telling. Accepts NULL. */
void ls_http_get_free(struct ls_http_get *g);

/*
 * Asks; done is told later, never during this call. path: instead of the URL's (NULL:
 * the URL's). -LS_EBUSY: one is under way. -ENOMEM.
 */
int ls_http_get_start(struct ls_http_get *g, const char *path) LS_MUSTCHECK;

#endif
