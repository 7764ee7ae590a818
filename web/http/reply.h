/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply - one answer to one HTTP request, at once or later, also when the client has
 * gone.
 *
 * Every reply has the security headers of the page, a request id, and for GET an ETag;
 * HEAD gets the same headers without the body. A reply is ended by exactly one of
 * _json, _problem, _bytes, _asset or _stream_end, which also free it.
 *
 * Owner:   the loop thread.
 * Units:   bytes.
 * Errors:  failures of memory become a 500 or a closed connection.
 * Limits:  LS_HTTP_EXPORT_BEHIND_MAX_BYTES not yet read by the client of a stream: then
 *          its owner is to wait.
 * Source:  RFC 9110 (ETag, HEAD), RFC 9457 (problems), W3C CSP 3.
 */
#ifndef LS_WEB_REPLY_H
#define LS_WEB_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "web/api/api.h"

struct evbuffer;
struct evhttp_connection;
struct evhttp_request;
struct ls_asset;
struct ls_reply;

/*
 * Called once when the answer is on its way (status 1xx..5xx), before the reply is
 * freed.
 */
typedef void ls_reply_sent(void *arg, int status);

/* New reply to req; NULL when out of memory. sent(arg, ...) may be NULL. */
struct ls_reply *ls_reply_new(struct evhttp_request *req, const char *request_id,
	ls_reply_sent *sent, void *arg);

/*
 * The request is no longer ours to answer (the connection went): what follows goes
 * nowhere.
 */
void ls_reply_detach(struct ls_reply *r);

/*
 * Answers 503 now because the backend took too long; what the backend says later goes
 * nowhere.
 * False: a stream has begun, only closing the connection can end it.
 */
bool ls_reply_expire(struct ls_reply *r);

/* True while somebody waits for the answer. */
bool ls_reply_wanted(const struct ls_reply *r);

/* What ls_reply_new was given: whose reply it is. */
void *ls_reply_owner(const struct ls_reply *r);

/* The request, NULL once detached. */
struct evhttp_request *ls_reply_request(const struct ls_reply *r);

/* Adds a header to the reply. */
void ls_reply_header(struct ls_reply *r, const char *name, const char *value);

/* Ends with JSON (borrowed). */
void ls_reply_json(struct ls_reply *r, int status, const json_t *body);

/* Ends with application/problem+json. */
void ls_reply_problem(struct ls_reply *r, const struct ls_problem *p);

/* Ends with the bytes of `body`, which is drained. */
void ls_reply_bytes(struct ls_reply *r, int status, const char *mime,
	struct evbuffer *body);

/*
 * Ends with an embedded file, compressed if the client takes it; root "" or where to
 * read it.
 */
void ls_reply_asset(struct ls_reply *r, const struct ls_asset *a, const char *root);

/*
 * A piece of a stream; the first begins it. False: stop, nobody reads. `taken` is called
 * with the owner when the client has taken this and all before, unless the connection
 * went or the stream was ended.
 */
bool ls_reply_stream_piece(struct ls_reply *r, const char *mime, const char *text,
	size_t len, void (*taken)(struct evhttp_connection *evcon, void *arg));

/* Has the client more than LS_HTTP_EXPORT_BEHIND_MAX_BYTES to take? */
bool ls_reply_is_behind(const struct ls_reply *r);

/*
 * Ends a stream. False: it is not complete, the caller must close the connection to
 * show that.
 */
bool ls_reply_stream_end(struct ls_reply *r, const char *mime, int rc);

#endif
