/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/fetch.h"
#include "proto/base/http.h"
#include "proto/limits.h"
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct ls_fetch {
	struct event_base *base;
	char host[256];
	char authority[272];
	uint16_t port;
	struct timeval timeout;
	/* of the request that runs */
	const char *body; /* NULL: GET */
	FILE *stream;
	unsigned interims;
	struct ls_http_mark mark; /* goes with the connection */
	uint64_t bytes, bytes_before; /* of the stream; when the deadline was set */
	struct event *deadline;
	struct ls_fetched got;
	int rc;
};

static int
fetch_parse(struct ls_fetch *f, const char *server)
{
	struct evhttp_uri *uri = evhttp_uri_parse(server);
	const char *scheme = uri ? evhttp_uri_get_scheme(uri) : NULL;
	const char *host = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	int port = uri ? evhttp_uri_get_port(uri) : -1;
	int rc = -LS_EPARSE;

	if (port < 0)
		port = 80;
	if (scheme && strcmp(scheme, "http") == 0 && host && host[0] != '\0' &&
		strlen(host) < sizeof(f->host) && port > 0 && port < 65536 &&
		(!path || path[0] == '\0' || strcmp(path, "/") == 0)) {
		bool v6 = host[0] == '[';

		(void)snprintf(f->host, sizeof(f->host), "%.*s",
			(int)(strlen(host) - (v6 ? 2u : 0u)), host + (v6 ? 1 : 0));
		(void)snprintf(f->authority, sizeof(f->authority), "%s:%d", host, port);
		f->port = (uint16_t)port;
		rc = 0;
	}
	if (uri)
		evhttp_uri_free(uri);
	return rc;
}

/* A stream that moves goes on; any other exchange has had its time. */
static void
fetch_late(evutil_socket_t fd, short what, void *arg)
{
	struct ls_fetch *f = arg;

	(void)fd;
	(void)what;
	if (f->bytes - f->bytes_before < LS_CLI_PROGRESS_BYTES) {
		f->rc = -ETIMEDOUT;
		(void)event_base_loopbreak(f->base);
		return;
	}
	f->bytes_before = f->bytes;
	(void)event_add(f->deadline, &f->timeout); /* else the stream has no deadline */
}

int
ls_fetch_new(const char *server, uint64_t timeout_ns, struct ls_fetch **ret)
{
	struct ls_fetch *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->timeout.tv_sec = (time_t)(timeout_ns / 1000000000u);
	f->timeout.tv_usec = (suseconds_t)(timeout_ns % 1000000000u / 1000u);
	f->base = event_base_new();
	f->deadline = f->base ? evtimer_new(f->base, fetch_late, f) : NULL;
	rc = f->deadline ? fetch_parse(f, server) : -ENOMEM;
	if (rc != 0) {
		ls_fetch_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void
ls_fetch_free(struct ls_fetch *f)
{
	if (!f)
		return;
	if (f->deadline)
		event_free(f->deadline);
	if (f->base)
		event_base_free(f->base);
	free(f);
}

/* Written as it comes, so that an export of any size needs no memory. */
static void
fetch_piece(struct evhttp_request *req, void *arg)
{
	struct ls_fetch *f = arg;
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	char block[16384];
	int n;

	if (evhttp_request_get_response_code(req) != 200)
		return; /* a problem: kept for fetch_done */
	while ((n = evbuffer_remove(in, block, sizeof(block))) > 0) {
		f->bytes += (uint64_t)n;
		if (fwrite(block, 1, (size_t)n, f->stream) != (size_t)n)
			f->rc = -EIO;
	}
}

static int
fetch_header(struct evhttp_request *req, void *arg)
{
	struct ls_fetch *f = arg;

	return ls_http_interim(req, &f->interims);
}

static void
fetch_done(struct evhttp_request *req, void *arg)
{
	struct ls_fetch *f = arg;
	struct evbuffer *in;

	(void)event_base_loopbreak(f->base);
	if (!req || evhttp_request_get_response_code(req) == 0) {
		if (f->rc == 0)
			f->rc = -ENOTCONN;
		return;
	}
	in = evhttp_request_get_input_buffer(req);
	f->got.status = evhttp_request_get_response_code(req);
	f->got.len = evbuffer_get_length(in);
	f->got.text = malloc(f->got.len + 1);
	if (!f->got.text) {
		f->rc = -ENOMEM;
		return;
	}
	(void)evbuffer_remove(in, f->got.text, f->got.len);
	f->got.text[f->got.len] = '\0';
}

static void
fetch_failed(enum evhttp_request_error error, void *arg)
{
	struct ls_fetch *f = arg;

	f->rc = error == EVREQ_HTTP_DATA_TOO_LONG ? -LS_ELIMIT
		: error == EVREQ_HTTP_TIMEOUT	  ? -ETIMEDOUT
						  : -ENOTCONN;
}

static int
fetch_send(struct ls_fetch *f, struct evhttp_connection *evcon, const char *path)
{
	struct evhttp_request *req = evhttp_request_new(fetch_done, f);
	struct evkeyvalq *headers;

	if (!req)
		return -ENOMEM;
	evhttp_request_set_error_cb(req, fetch_failed);
	evhttp_request_set_header_cb(req, fetch_header);
	if (f->stream)
		evhttp_request_set_chunked_cb(req, fetch_piece);
	headers = evhttp_request_get_output_headers(req);
	if (evhttp_add_header(headers, "Host", f->authority) != 0 ||
		evhttp_add_header(headers, "Connection", "close") != 0 ||
		evhttp_add_header(headers, "Accept",
			"application/json, application/x-ndjson") != 0) {
		evhttp_request_free(req);
		return -ENOMEM;
	}
	if (f->body &&
		(evhttp_add_header(headers, "Content-Type", "application/json") != 0 ||
			evbuffer_add(evhttp_request_get_output_buffer(req), f->body,
				strlen(f->body)) != 0)) {
		evhttp_request_free(req);
		return -ENOMEM;
	}
	/* From here on libevent owns the request, also when this fails. */
	return evhttp_make_request(evcon, req,
		       f->body ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, path) == 0
		? 0
		: -ENOTCONN;
}

static void
fetch_beyond(void *arg)
{
	struct ls_fetch *f = arg;

	f->rc = -LS_ELIMIT;
	(void)event_base_loopbreak(f->base);
}

static int
fetch_run(struct ls_fetch *f, const char *path, FILE *stream, struct ls_fetched *ret)
{
	struct evhttp_connection *evcon;
	int rc;

	memset(&f->got, 0, sizeof(f->got));
	f->rc = 0;
	f->stream = stream;
	evcon = evhttp_connection_base_new(f->base, NULL, f->host, f->port);
	if (!evcon)
		return -ENOMEM;
	evhttp_connection_set_timeout_tv(evcon, &f->timeout);
	evhttp_connection_set_max_headers_size(evcon, LS_HTTP_HEADER_MAX_BYTES);
	evhttp_connection_set_max_body_size(evcon,
		stream ? -1 : (ev_ssize_t)LS_CLI_BODY_MAX_BYTES);
	f->mark = (struct ls_http_mark){ .bev = evhttp_connection_get_bufferevent(
						 evcon),
		.max = LS_HTTP_HEADER_MAX_BYTES +
			(stream ? LS_CLI_CHUNK_MAX_BYTES : LS_CLI_BODY_MAX_BYTES),
		.beyond = fetch_beyond,
		.arg = f };
	rc = ls_http_mark_start(&f->mark);
	f->interims = 0;
	f->bytes = f->bytes_before = 0;
	if (rc == 0 && event_add(f->deadline, &f->timeout) != 0)
		rc = -ENOMEM;
	if (rc == 0)
		rc = fetch_send(f, evcon, path);
	if (rc == 0 && event_base_dispatch(f->base) < 0)
		rc = -EIO;
	(void)event_del(f->deadline); /* cannot fail */
	evhttp_connection_free(evcon);
	if (rc == 0)
		rc = f->rc;
	if (rc != 0) {
		free(f->got.text);
		return rc;
	}
	*ret = f->got;
	return 0;
}

int
ls_fetch_get(struct ls_fetch *f, const char *path, FILE *stream, struct ls_fetched *ret)
{
	f->body = NULL;
	return fetch_run(f, path, stream, ret);
}

int
ls_fetch_post(struct ls_fetch *f, const char *path, const char *body,
	struct ls_fetched *ret)
{
	int rc;

	f->body = body;
	rc = fetch_run(f, path, NULL, ret);
	f->body = NULL;
	return rc;
}
