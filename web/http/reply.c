/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/reply.h"
#include "proto/base/text.h"
#include "web/http/assets.h"
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LS_ETAG_BYTES 16

struct ls_reply {
	struct evhttp_request *req; /* NULL: nobody waits */
	char request_id[40];
	bool streaming;
	ls_reply_sent *sent;
	void *arg;
};

static const struct {
	const char *name, *value;
} reply_headers[] = {
	/* No inline script or style, nothing from elsewhere, no frame around us. */
	{ "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src "
		"'self'; img-src 'self' data:; "
		"connect-src 'self'; frame-ancestors 'none'; "
		"base-uri 'none'; form-action 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cache-Control", "no-cache" },
};

struct ls_reply *
ls_reply_new(struct evhttp_request *req, const char *request_id, ls_reply_sent *sent,
	void *arg)
{
	struct ls_reply *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->req = req;
	r->sent = sent;
	r->arg = arg;
	(void)snprintf(r->request_id, sizeof(r->request_id), "%s", request_id);
	for (size_t i = 0; i < sizeof(reply_headers) / sizeof(reply_headers[0]); i++)
		ls_reply_header(r, reply_headers[i].name, reply_headers[i].value);
	ls_reply_header(r, "X-Request-Id", r->request_id);
	return r;
}

void
ls_reply_detach(struct ls_reply *r)
{
	r->req = NULL;
	r->sent = NULL;
}

bool
ls_reply_wanted(const struct ls_reply *r)
{
	return r->req != NULL;
}

void *
ls_reply_owner(const struct ls_reply *r)
{
	return r->arg;
}

struct evhttp_request *
ls_reply_request(const struct ls_reply *r)
{
	return r->req;
}

void
ls_reply_header(struct ls_reply *r, const char *name, const char *value)
{
	struct evkeyvalq *headers;

	if (!r->req)
		return;
	headers = evhttp_request_get_output_headers(r->req);
	(void)evhttp_remove_header(headers, name);
	(void)evhttp_add_header(headers, name, value); /* refuses line breaks */
}

static const struct {
	int status;
	const char *reason;
} reply_reasons[] = {
	{ 200, "OK" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 415, "Unsupported Media Type" },
	{ 421, "Misdirected Request" },
	{ 429, "Too Many Requests" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
};

static const char *
reply_reason(int status)
{
	for (size_t i = 0; i < sizeof(reply_reasons) / sizeof(reply_reasons[0]); i++)
		if (reply_reasons[i].status == status)
			return reply_reasons[i].reason;
	return "Internal Server Error";
}

static const char *
reply_asked(const struct ls_reply *r, const char *header)
{
	return evhttp_find_header(evhttp_request_get_input_headers(r->req), header);
}

static bool
reply_is_head(const struct ls_reply *r)
{
	return evhttp_request_get_command(r->req) == EVHTTP_REQ_HEAD;
}

/* Gives the request to libevent, which frees it, and tells whoever counts. */
static void
reply_hand_over(struct ls_reply *r, int status, struct evbuffer *body)
{
	struct evhttp_request *req = r->req;
	ls_reply_sent *sent = r->sent;

	ls_reply_detach(r);
	if (sent)
		sent(r->arg, status);
	evhttp_send_reply(req, status, reply_reason(status), body);
}

static void
reply_send(struct ls_reply *r, int status, const char *mime, struct evbuffer *body)
{
	char len[24];

	if (!r->req)
		return;
	(void)snprintf(len, sizeof(len), "%zu", evbuffer_get_length(body));
	if (status != 304) {
		ls_reply_header(r, "Content-Type", mime);
		ls_reply_header(r, "Content-Length", len);
	}
	reply_hand_over(r, status, status == 304 || reply_is_head(r) ? NULL : body);
}

/* --- ETag ----------------------------------------------------------------- */

/*
 * Hashes the body where it lies. Empty text if that fails: then the reply has no ETag.
 */
static void
reply_digest(struct evbuffer *body, char ret_hex[2 * LS_ETAG_BYTES + 1])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	struct evbuffer_ptr at;
	struct evbuffer_iovec piece;
	uint8_t digest[EVP_MAX_MD_SIZE];
	size_t left = evbuffer_get_length(body);
	bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;

	ret_hex[0] = '\0';
	(void)evbuffer_ptr_set(body, &at, 0, EVBUFFER_PTR_SET);
	while (ok && left > 0 && evbuffer_peek(body, -1, &at, &piece, 1) > 0) {
		ok = EVP_DigestUpdate(ctx, piece.iov_base, piece.iov_len) == 1;
		left -= piece.iov_len;
		(void)evbuffer_ptr_set(body, &at, piece.iov_len, EVBUFFER_PTR_ADD);
	}
	if (ok && EVP_DigestFinal_ex(ctx, digest, NULL) == 1)
		ls_text_hex(ret_hex, digest, LS_ETAG_BYTES);
	EVP_MD_CTX_free(ctx);
}

/* Sets the ETag; true if the client has that very content. */
static bool
reply_etag(struct ls_reply *r, const char *hex, const char *suffix)
{
	const char *known = reply_asked(r, "If-None-Match");
	char etag[2 * LS_ETAG_BYTES + 8];

	(void)snprintf(etag, sizeof(etag), "\"%s%s\"", hex, suffix);
	ls_reply_header(r, "ETag", etag);
	return known && (strstr(known, etag) != NULL || strcmp(known, "*") == 0);
}

/* --- ends ----------------------------------------------------------------- */

void
ls_reply_bytes(struct ls_reply *r, int status, const char *mime, struct evbuffer *body)
{
	char hex[2 * LS_ETAG_BYTES + 1];

	if (r->req && status == 200) {
		reply_digest(body, hex);
		if (hex[0] != '\0' && reply_etag(r, hex, ""))
			status = 304;
	}
	reply_send(r, status, mime, body);
	free(r);
}

static int
reply_dump(const char *text, size_t len, void *arg)
{
	return evbuffer_add(arg, text, len);
}

void
ls_reply_json(struct ls_reply *r, int status, const json_t *body)
{
	struct evbuffer *out = evbuffer_new();
	const char *mime =
		status >= 400 ? "application/problem+json" : "application/json";

	/* 15 digits: 2.84 stays 2.84, and no digit that a double holds is lost to
	   people. */
	if (out && body &&
		json_dump_callback(body, reply_dump, out,
			JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY) ==
			0 &&
		evbuffer_add(out, "\n", 1) == 0) {
		ls_reply_bytes(r, status, mime, out);
	} else {
		if (r->req)
			reply_hand_over(r, 500, NULL);
		free(r);
	}
	if (out)
		evbuffer_free(out);
}

void
ls_reply_problem(struct ls_reply *r, const struct ls_problem *p)
{
	char instance[512] = "/";
	json_t *body;

	if (r->req) {
		const char *uri = evhttp_request_get_uri(r->req);

		(void)ls_text_escape(instance, sizeof(instance), uri,
			strcspn(uri, "?"));
	}
	body = ls_api_problem_json(p, instance, r->request_id);
	if (p->status == 503)
		ls_reply_header(r, "Retry-After", "1");
	ls_reply_json(r, p->status, body);
	json_decref(body);
}

bool
ls_reply_expire(struct ls_reply *r)
{
	struct ls_reply *stand_in;
	struct ls_problem p;

	if (!r->req || r->streaming)
		return false;
	stand_in = malloc(sizeof(*stand_in));
	if (stand_in) {
		*stand_in = *r;
		ls_api_failure(-LS_EBUSY, &p);
		ls_reply_problem(stand_in, &p);
	} else {
		reply_hand_over(r, 503, NULL);
	}
	ls_reply_detach(r);
	return true;
}

void
ls_reply_asset(struct ls_reply *r, const struct ls_asset *a, const char *root)
{
	struct evbuffer *out = evbuffer_new();
	const char *accepts = r->req ? reply_asked(r, "Accept-Encoding") : NULL;
	bool packed = a->gzip && accepts && strstr(accepts, "gzip") &&
		!strstr(accepts, "gzip;q=0");
	int rc = out ? 0 : -ENOMEM;
	struct ls_problem p;

	if (rc == 0 && root[0] != '\0') {
		rc = ls_asset_read(a, root, out);
		if (rc == 0)
			ls_reply_bytes(r, 200, a->mime, out);
	} else if (rc == 0) {
		ls_reply_header(r, "Vary", "Accept-Encoding");
		if (packed)
			ls_reply_header(r, "Content-Encoding", "gzip");
		rc = evbuffer_add_reference(out, packed ? a->gzip : a->bytes,
			packed ? a->gzip_len : a->len, NULL, NULL);
		if (rc == 0) {
			int status =
				r->req && reply_etag(r, a->etag, packed ? "-gz" : "")
				? 304
				: 200;

			reply_send(r, status, a->mime, out);
			free(r);
		}
	}
	if (rc != 0) {
		ls_api_failure(rc, &p);
		ls_reply_problem(r, &p);
	}
	if (out)
		evbuffer_free(out);
}

/* --- stream --------------------------------------------------------------- */

static void
reply_stream_begin(struct ls_reply *r, const char *mime)
{
	r->streaming = true;
	ls_reply_header(r, "Content-Type", mime);
	evhttp_send_reply_start(r->req, 200, "OK");
}

bool
ls_reply_is_behind(const struct ls_reply *r)
{
	struct evhttp_connection *evcon =
		r->req ? evhttp_request_get_connection(r->req) : NULL;

	return evcon &&
		evbuffer_get_length(bufferevent_get_output(
			evhttp_connection_get_bufferevent(evcon))) >
		LS_HTTP_EXPORT_BEHIND_MAX_BYTES;
}

bool
ls_reply_stream_piece(struct ls_reply *r, const char *mime, const char *text,
	size_t len, void (*taken)(struct evhttp_connection *evcon, void *arg))
{
	struct evbuffer *piece;
	bool ok = false;

	if (!r->req)
		return false;
	if (!r->streaming)
		reply_stream_begin(r, mime);
	if (reply_is_head(r))
		return false;
	piece = evbuffer_new();
	if (piece && evbuffer_add(piece, text, len) == 0) {
		evhttp_send_reply_chunk_with_cb(r->req, piece, taken, r->arg);
		ok = true;
	}
	if (piece)
		evbuffer_free(piece);
	return ok;
}

static bufferevent_data_cb reply_written; /* evhttp's own, for all connections */

/* OpenSSL's end tells late that all was written, when there may be more. */
static void
reply_on_written(struct bufferevent *bev, void *arg)
{
	if (evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		reply_written(bev, arg);
}

/* Ends a stream: evhttp would take such a word for the end of it, and close. */
static void
reply_stream_done(struct evhttp_request *req)
{
	struct bufferevent *bev =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	bufferevent_data_cb read, written;
	bufferevent_event_cb event;
	void *arg;

	bufferevent_incref(bev);
	evhttp_send_reply_end(req);
	bufferevent_getcb(bev, &read, &written, &event, &arg);
	if (written) { /* else the connection is gone */
		reply_written = written;
		bufferevent_setcb(bev, read, reply_on_written, event, arg);
	}
	(void)bufferevent_decref(bev);
}

bool
ls_reply_stream_end(struct ls_reply *r, const char *mime, int rc)
{
	bool complete = true;

	if (r->req && rc != 0 && !r->streaming) {
		struct ls_problem p;

		ls_api_failure(rc, &p);
		ls_reply_problem(r, &p);
		return true;
	}
	if (r->req && rc == 0) {
		struct evhttp_request *req = r->req;
		ls_reply_sent *sent = r->sent;

		if (!r->streaming)
			reply_stream_begin(r, mime);
		ls_reply_detach(r);
		if (sent)
			sent(r->arg, 200);
		reply_stream_done(req);
	} else if (r->req) {
		complete = false;
	}
	free(r);
	return complete;
}
