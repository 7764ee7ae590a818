/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/face/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clients.h"
#include "proto/base/expose.h"
#include "proto/base/http.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"
#include "proto/limits.h"

struct ls_agent_http {
	struct ls_loop *loop;
	struct ls_agent_http_options options;
	struct evhttp *http;
	struct ls_clients *clients;
	struct ls_loop_timer *retry;
	bool loopback;
	int bound_port;
	uint64_t requests, refused;
};

/* --- answers -------------------------------------------------------------- */

static void
http_answer(struct ls_agent_http *h, struct evhttp_request *req, int status,
	const char *reason, const char *mime, struct evbuffer *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct ls_client *c = ls_clients_find(h->clients, req);
	char len[24];

	h->requests++;
	h->refused += status >= 400;
	(void)snprintf(len, sizeof(len), "%zu", evbuffer_get_length(body));
	/* A header that finds no memory is missing, no more. */
	(void)evhttp_add_header(headers, "Content-Type", mime);
	(void)evhttp_add_header(headers, "Content-Length", len);
	(void)evhttp_add_header(headers, "Cache-Control", "no-store");
	(void)evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	if (c != NULL)
		ls_client_touch(c);
	evhttp_send_reply(req, status, reason,
		evhttp_request_get_command(req) == EVHTTP_REQ_HEAD ? NULL : body);
}

static int
http_dump(const char *text, size_t len, void *arg)
{
	return evbuffer_add(arg, text, len);
}

/* Answers with JSON, taken over; NULL: there was no memory for it. */
static void
http_json(struct ls_agent_http *h, struct evhttp_request *req, int status,
	const char *reason, json_t *body)
{
	struct evbuffer *out = evbuffer_new();

	if (out != NULL && body != NULL &&
		json_dump_callback(body, http_dump, out,
			JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0 &&
		evbuffer_add(out, "\n", 1) == 0)
		http_answer(h, req, status, reason,
			status >= 400 ? "application/problem+json" : "application/json",
			out);
	else
		evhttp_send_error(req, 500, NULL);
	if (out != NULL)
		evbuffer_free(out);
	json_decref(body);
}

static void
http_problem(struct ls_agent_http *h, struct evhttp_request *req, int status,
	const char *title, const char *detail)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	char safe[512];

	(void)ls_text_escape(safe, sizeof(safe), path != NULL ? path : "",
		path != NULL ? strlen(path) : 0);
	http_json(h, req, status, title,
		json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "about:blank", "title",
			title, "status", status, "detail", detail, "instance", safe));
}

/* --- routes --------------------------------------------------------------- */

static const struct ls_about_parts *
http_parts(const struct ls_agent_http *h)
{
	return h->options.backend.parts(h->options.backend.arg);
}

static void
http_health(struct ls_agent_http *h, struct evhttp_request *req)
{
	http_json(h, req, 200, "OK", json_pack("{s:s}", "status", "ok"));
}

static void
http_ready(struct ls_agent_http *h, struct evhttp_request *req)
{
	char why[LS_PATH_MAX_BYTES + 64] = "";

	if (h->options.backend.ready(http_parts(h), why, sizeof(why)))
		http_json(h, req, 200, "OK",
			json_pack("{s:s, s:s*}", "status", "ready", "note",
				why[0] != '\0' ? why : NULL));
	else
		http_problem(h, req, 503, "Not ready", why);
}

static void
http_version(struct ls_agent_http *h, struct evhttp_request *req)
{
	http_json(h, req, 200, "OK",
		json_pack("{s:i, s:s, s:s, s:s}", "schema_version", 1, "name",
			"lockstep-agent", "version", PACKAGE_VERSION, "api", "v1"));
}

static void
http_text(struct ls_agent_http *h, struct evhttp_request *req, const char *mime,
	void (*fill)(const struct ls_about_parts *p, struct evbuffer *out))
{
	struct evbuffer *out = evbuffer_new();

	if (out == NULL) {
		evhttp_send_error(req, 500, NULL);
		return;
	}
	fill(http_parts(h), out);
	http_answer(h, req, 200, "OK", mime, out);
	evbuffer_free(out);
}

static void
http_metrics(struct ls_agent_http *h, struct evhttp_request *req)
{
	http_text(h, req, LS_EXPOSE_MIME, h->options.backend.metrics);
}

static void
http_series(struct ls_agent_http *h, struct evhttp_request *req)
{
	http_text(h, req, "application/json", h->options.backend.series);
}

static void
http_doctor(struct ls_agent_http *h, struct evhttp_request *req)
{
	http_json(h, req, 200, "OK", h->options.backend.doctor(http_parts(h)));
}

static void
http_identity(struct ls_agent_http *h, struct evhttp_request *req)
{
	http_json(h, req, 200, "OK", h->options.backend.identity(http_parts(h)));
}

static const struct {
	const char *path;
	void (*answer)(struct ls_agent_http *h, struct evhttp_request *req);
} http_routes[] = {
	{ "/healthz", http_health },
	{ "/readyz", http_ready },
	{ "/version", http_version },
	{ "/metrics", http_metrics },
	{ "/api/v1/series", http_series },
	{ "/api/v1/doctor", http_doctor },
	{ "/api/v1/identity", http_identity },
};

static void
http_route(struct ls_agent_http *h, struct evhttp_request *req)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	const char *query = uri != NULL ? evhttp_uri_get_query(uri) : NULL;

	for (size_t i = 0;
		path != NULL && i < sizeof(http_routes) / sizeof(http_routes[0]); i++) {
		if (strcmp(path, http_routes[i].path) != 0)
			continue;
		if (query != NULL && query[0] != '\0')
			http_problem(h, req, 400, "Bad parameter",
				"no resource of the agent takes parameters");
		else
			http_routes[i].answer(h, req);
		return;
	}
	http_problem(h, req, 404, "No such resource",
		"the resources are /healthz /readyz /version /metrics /api/v1/doctor "
		"/api/v1/identity /api/v1/series");
}

static void
http_request(struct evhttp_request *req, void *arg)
{
	struct ls_agent_http *h = arg;
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const char *bad_length = ls_http_bad_length(req);

	if (bad_length != NULL) {
		(void)evhttp_add_header(evhttp_request_get_output_headers(req),
			"Connection", "close");
		http_problem(h, req, 400, "Bad length", bad_length);
	} else if (!ls_http_host_is_ours(req, h->loopback, h->options.names)) {
		http_problem(h, req, 421, "Misdirected request", LS_HTTP_WRONG_HOST);
	} else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		(void)evhttp_add_header(evhttp_request_get_output_headers(req), "Allow",
			"GET, HEAD");
		http_problem(h, req, 405, "Method not allowed",
			"only GET and HEAD are served");
	} else {
		http_route(h, req);
	}
}

/* --- life ----------------------------------------------------------------- */

static int
http_bind(struct ls_agent_http *h)
{
	struct evconnlistener *listener = NULL;
	int rc = ls_http_bind(h->http, h->options.address, h->options.port, &listener,
		&h->bound_port);

	if (rc != 0)
		return rc;
	ls_clients_listener(h->clients, listener);
	ls_log(LS_LOG_INFO, "http", "serving health, metrics and doctor at %s:%d",
		h->options.address, h->bound_port);
	if (h->options.backend.bound != NULL)
		h->options.backend.bound(h->options.backend.arg, h->bound_port);
	return 0;
}

static void
http_retry(void *arg)
{
	struct ls_agent_http *h = arg;

	if (http_bind(h) == 0)
		ls_loop_timer_stop(h->retry);
}

static int
http_start(struct ls_agent_http *h)
{
	uint64_t timeout_ns = h->options.timeout_ns;
	int rc;

	if (timeout_ns == 0)
		timeout_ns = LS_AGENT_HTTP_TIMEOUT_NS;
	h->http = evhttp_new(ls_loop_base(h->loop));
	h->retry = ls_loop_timer_new(h->loop, http_retry, h);
	if (h->http == NULL || h->retry == NULL)
		return -ENOMEM;
	h->clients = ls_clients_new(&(struct ls_clients_options){
		.loop = h->loop,
		.http = h->http,
		.timeout_ns = timeout_ns,
		.tick_ns = timeout_ns / 2, /* seldom: each wakes us */
		.connections_max = LS_AGENT_HTTP_CONNECTIONS_MAX,
		.header_max = LS_AGENT_HTTP_HEADER_MAX_BYTES,
		.body_max = LS_AGENT_HTTP_BODY_MAX_BYTES,
		.unread_max = LS_AGENT_HTTP_UNREAD_MAX_BYTES,
	});
	if (h->clients == NULL)
		return -ENOMEM;
	evhttp_set_gencb(h->http, http_request, h);
	rc = http_bind(h);
	if (rc != 0) {
		ls_log(LS_LOG_WARN, "http",
			"cannot serve at %s:%u (%s); continuing without HTTP, retrying",
			h->options.address, h->options.port, ls_err_text(rc));
		ls_loop_timer_start(h->retry, LS_AGENT_HTTP_RETRY_NS,
			LS_AGENT_HTTP_RETRY_NS);
	}
	return 0;
}

int
ls_agent_http_new(struct ls_loop *loop, const struct ls_agent_http_options *options,
	struct ls_agent_http **ret_http)
{
	struct ls_agent_http *h = calloc(1, sizeof(*h));
	int rc;

	if (h == NULL)
		return -ENOMEM;
	h->loop = loop;
	h->options = *options;
	h->loopback = ls_http_is_loopback(options->address) == 1;
	rc = http_start(h);
	if (rc == 0)
		*ret_http = h;
	else
		ls_agent_http_free(h);
	return rc;
}

void
ls_agent_http_free(struct ls_agent_http *h)
{
	if (h == NULL)
		return;
	ls_clients_stop(h->clients);
	if (h->http != NULL)
		evhttp_free(
			h->http); /* closes the connections, which leave the clients */
	ls_clients_free(h->clients);
	ls_loop_timer_free(h->retry);
	free(h);
}

uint64_t
ls_agent_http_requests(const struct ls_agent_http *h)
{
	return h->requests;
}

uint64_t
ls_agent_http_refused(const struct ls_agent_http *h)
{
	struct ls_clients_stats clients;

	ls_clients_stats(h->clients, &clients);
	return h->refused + clients.crowded + clients.unread + clients.late;
}
