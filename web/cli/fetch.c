/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/fetch.h"
#include "proto/base/http.h"
#include "proto/limits.h"
#include <errno.h>
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ls_fetch {
	struct event_base *base;
	char host[256];
	char authority[272];
	uint16_t port;
	struct timeval timeout;
	SSL_CTX *tls; /* NULL: plain */
	char bearer[sizeof("Bearer ") + LS_TOKEN_BYTES]; /* "": no token */
	/* of the request that runs */
	const char *body; /* NULL: GET */
	const struct ls_fetch_stream *stream; /* NULL: the body is kept */
	FILE *out; /* of the stream, once it is open */
	int error; /* of it */
	unsigned interims;
	struct ls_http_mark mark; /* goes with the connection */
	SSL *ssl; /* of the connection that runs, its own; NULL: plain */
	char why[LS_TLS_TEXT_MAX_BYTES];
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
	bool secure = scheme && strcmp(scheme, "https") == 0;
	int rc = -LS_EPARSE;

	if (port < 0)
		port = secure ? 443 : 80;
	if (scheme && !evhttp_uri_get_userinfo(uri) && !evhttp_uri_get_query(uri) &&
		(secure || strcmp(scheme, "http") == 0) && host && host[0] != '\0' &&
		strlen(host) < sizeof(f->host) && port > 0 && port < 65536 &&
		(!path || path[0] == '\0' || strcmp(path, "/") == 0)) {
		bool v6 = host[0] == '[';

		(void)snprintf(f->host, sizeof(f->host), "%.*s",
			(int)(strlen(host) - (v6 ? 2u : 0u)), host + (v6 ? 1 : 0));
		(void)snprintf(f->authority, sizeof(f->authority), "%s:%d", host, port);
		f->port = (uint16_t)port;
		f->tls = secure ? SSL_CTX_new(TLS_client_method()) : NULL;
		rc = secure && !f->tls ? -ENOMEM : 0;
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

static int
fetch_read_token(struct ls_fetch *f, const char *path)
{
	char token[LS_TOKEN_BYTES + 1];
	FILE *file = fopen(path, "re");
	char *line;
	int rc = file ? -LS_EPARSE : -errno;

	if (!file)
		return rc;
	line = fgets(token, sizeof(token), file);
	(void)fclose(file); /* only read from */
	if (!line)
		return rc;
	token[strcspn(token, " \r\n")] = '\0';
	if (token[0] == '\0' || strlen(token) >= LS_TOKEN_BYTES)
		return rc;
	(void)snprintf(f->bearer, sizeof(f->bearer), "Bearer %s", token);
	return 0;
}

/* Reads crl.pem beside ca_file; without this file nothing is revoked. */
static int
fetch_read_revoked(struct ls_fetch *f, const char *ca_file)
{
	X509_STORE *store = SSL_CTX_get_cert_store(f->tls);
	const char *slash = strrchr(ca_file, '/');
	char path[LS_PATH_MAX_BYTES];

	if (snprintf(path, sizeof(path), "%.*scrl.pem",
		    slash ? (int)(slash + 1 - ca_file) : 0,
		    ca_file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (access(path, R_OK) != 0)
		return errno == ENOENT ? 0 : -errno;
	return X509_load_crl_file(X509_STORE_add_lookup(store, X509_LOOKUP_file()),
		       path, X509_FILETYPE_PEM) > 0 &&
			X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK) == 1
		? 0
		: -LS_EPARSE;
}

static int
fetch_secure(struct ls_fetch *f, const char *ca_file)
{
	SSL_CTX_set_verify(f->tls, SSL_VERIFY_PEER, NULL);
	(void)SSL_CTX_set_min_proto_version(f->tls, TLS1_2_VERSION); /* cannot fail */
	if (ca_file[0] == '\0')
		return SSL_CTX_set_default_verify_paths(f->tls) == 1 ? 0 : -ENOMEM;
	return SSL_CTX_load_verify_locations(f->tls, ca_file, NULL) == 1 ? 0
		: errno != 0						 ? -errno
									 : -LS_EPARSE;
}

static int
fetch_fail(int rc, const char *option, const char *value, const char *what, char *text,
	size_t size)
{
	(void)snprintf(text, size, "%s %s: %s", option, value,
		rc == -LS_EPARSE ? what : ls_err_text(rc));
	return rc;
}

static int
fetch_prepare(struct ls_fetch *f, const struct ls_fetch_options *o, char *text,
	size_t size)
{
	int rc = fetch_parse(f, o->server);

	if (rc != 0)
		return fetch_fail(rc, "--server",
			strpbrk(o->server, "@?") ? "URL" : o->server, /* no secret */
			"is not of the form http://HOST:PORT or https://HOST:PORT (a token belongs into --token-file)",
			text, size);
	errno = 0;
	rc = f->tls ? fetch_secure(f, o->ca_file) : 0;
	if (rc != 0)
		return fetch_fail(rc, "--ca-file", o->ca_file,
			"holds no certificate in PEM: copy it again", text, size);
	rc = f->tls && o->ca_file[0] != '\0' ? fetch_read_revoked(f, o->ca_file) : 0;
	if (rc != 0)
		return fetch_fail(rc, "crl.pem beside --ca-file", o->ca_file,
			"holds no list of revoked certificates in PEM: copy it again",
			text, size);
	rc = o->token_file[0] != '\0' ? fetch_read_token(f, o->token_file) : 0;
	if (f->bearer[0] != '\0' && !f->tls && strcmp(f->host, "localhost") != 0 &&
		ls_http_is_loopback(f->host) != 1)
		return fetch_fail(-LS_EPARSE, "--server", o->server,
			"a token is sent to https:// only: others can read what goes over http://",
			text, size);
	return rc == 0 ? 0
		       : fetch_fail(rc, "--token-file", o->token_file,
				 "holds no token in its first line", text, size);
}

int
ls_fetch_new(const struct ls_fetch_options *o, struct ls_fetch **ret, char *text,
	size_t size)
{
	struct ls_fetch *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;

	if (f) {
		f->timeout.tv_sec = (time_t)(o->timeout_ns / 1000000000u);
		f->timeout.tv_usec = (suseconds_t)(o->timeout_ns % 1000000000u / 1000u);
		f->base = event_base_new();
		f->deadline = f->base ? evtimer_new(f->base, fetch_late, f) : NULL;
	}
	if (f && f->deadline)
		rc = fetch_prepare(f, o, text, size);
	else
		(void)snprintf(text, size, "%s", ls_err_text(rc));
	if (rc == 0)
		*ret = f;
	else
		ls_fetch_free(f);
	return rc;
}

const char *
ls_fetch_why(const struct ls_fetch *f)
{
	return f->why;
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
	SSL_CTX_free(f->tls);
	free(f);
}

static int
fetch_not_written(struct ls_fetch *f)
{
	f->error = errno;
	f->rc = -EIO;
	return -1;
}

/* Written as it comes, so that an export of any size needs no memory. */
static void
fetch_piece(struct evhttp_request *req, void *arg)
{
	struct ls_fetch *f = arg;
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	char block[16384];
	int n;

	while ((n = evbuffer_remove(in, block, sizeof(block))) > 0) {
		f->bytes += (uint64_t)n;
		if (fwrite(block, 1, (size_t)n, f->out) != (size_t)n)
			(void)fetch_not_written(f);
	}
}

/* A stream is the body of a 200. Any other body is kept whole, for fetch_done. */
static int
fetch_header(struct evhttp_request *req, void *arg)
{
	struct ls_fetch *f = arg;

	if (f->stream && evhttp_request_get_response_code(req) == 200) {
		f->out = f->stream->open(f->stream->arg);
		if (!f->out)
			return fetch_not_written(f);
		evhttp_request_set_chunked_cb(req, fetch_piece);
		evhttp_connection_set_max_body_size(evhttp_request_get_connection(req),
			-1);
	}
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

	f->rc = f->rc != 0			    ? f->rc
		: error == EVREQ_HTTP_DATA_TOO_LONG ? -LS_ELIMIT
		: error == EVREQ_HTTP_TIMEOUT	    ? -ETIMEDOUT
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
	headers = evhttp_request_get_output_headers(req);
	if (evhttp_add_header(headers, "Host", f->authority) != 0 ||
		evhttp_add_header(headers, "Connection", "close") != 0 ||
		evhttp_add_header(headers, "Accept",
			"application/json, application/x-ndjson") != 0 ||
		(f->bearer[0] != '\0' &&
			evhttp_add_header(headers, "Authorization", f->bearer) != 0)) {
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

/* The end of a connection: NULL with f->tls: out of memory. */
static struct bufferevent *
fetch_end(struct ls_fetch *f)
{
	struct in6_addr any;
	struct bufferevent *bev = NULL;
	bool ip = inet_pton(AF_INET, f->host, &any) == 1 ||
		inet_pton(AF_INET6, f->host, &any) == 1;

	f->ssl = SSL_new(f->tls);
	if (f->ssl &&
		(ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(f->ssl), f->host)
		    : SSL_set1_host(f->ssl, f->host) &&
					SSL_set_tlsext_host_name(f->ssl, f->host)) == 1)
		bev = bufferevent_openssl_socket_new(f->base, -1, f->ssl,
			BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
	else
		SSL_free(f->ssl);
	if (bev)
		(void)SSL_up_ref(f->ssl); /* cannot fail: for fetch_judge */
	return bev; /* if it failed, it has freed its SSL */
}

/* A connection that failed because of a certificate. */
static void
fetch_judge(struct ls_fetch *f)
{
	long code = f->ssl ? SSL_get_verify_result(f->ssl) : X509_V_OK;

	SSL_free(f->ssl);
	f->ssl = NULL;
	if (f->rc != -ENOTCONN || code == X509_V_OK)
		return;
	f->rc = -EACCES;
	(void)snprintf(f->why, sizeof(f->why), "%s",
		X509_verify_cert_error_string(code));
}

static int
fetch_run(struct ls_fetch *f, const char *path, const struct ls_fetch_stream *stream,
	struct ls_fetched *ret)
{
	struct bufferevent *end = f->tls ? fetch_end(f) : NULL;
	struct evhttp_connection *evcon;
	int rc;

	if (f->tls && !end)
		return -ENOMEM;
	memset(&f->got, 0, sizeof(f->got));
	f->rc = 0;
	f->stream = stream;
	evcon = evhttp_connection_base_bufferevent_new(f->base, NULL, end, f->host,
		f->port);
	if (!evcon) {
		if (end)
			bufferevent_free(end);
		fetch_judge(f);
		return -ENOMEM;
	}
	evhttp_connection_set_timeout_tv(evcon, &f->timeout);
	evhttp_connection_set_max_headers_size(evcon, LS_HTTP_HEADER_MAX_BYTES);
	evhttp_connection_set_max_body_size(evcon, (ev_ssize_t)LS_CLI_BODY_MAX_BYTES);
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
	if (rc == 0 && event_base_dispatch(f->base) < 0) {
		f->error = errno;
		rc = -EIO;
	}
	(void)event_del(f->deadline); /* cannot fail */
	fetch_judge(f);
	evhttp_connection_free(evcon);
	if (rc == 0)
		rc = f->rc;
	if (rc == 0)
		*ret = f->got;
	else
		free(f->got.text);
	if (rc == -EIO)
		errno = f->error;
	return rc;
}

int
ls_fetch_get(struct ls_fetch *f, const char *path, const struct ls_fetch_stream *stream,
	struct ls_fetched *ret)
{
	f->body = NULL;
	return fetch_run(f, path, stream, ret);
}

int
ls_fetch_post(struct ls_fetch *f, const char *path, const char *body,
	struct ls_fetched *ret)
{
	f->body = body;
	return fetch_run(f, path, NULL, ret);
}
