/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/httpd.h"
#include "proto/base/clients.h"
#include "proto/base/expose.h"
#include "proto/base/http.h"
#include "proto/base/loop.h"
#include "web/http/access.h"
#include "web/http/assets.h"
#include "web/http/metrics.h"
#include "web/http/reply.h"
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LS_NDJSON_MIME "application/x-ndjson"
#define HTTPD_TICK_NS 500000000ull

struct ls_httpd {
	struct ls_loop *loop;
	struct ls_httpd_options options;
	struct ls_backend backend;
	struct evhttp *http;
	struct ls_clients *clients;
	bool loopback;
	int port;
	uint32_t run_id;
	uint64_t request_count, refused_count;
	uint64_t answers[LS_ROUTE_COUNT + 1]
			[6]; /* by route (last: none) and hundred of the status */
};

/* One question on its way through the backend. */
struct exchange {
	struct ls_httpd *h; /* valid while the reply is wanted */
	struct ls_client *client; /* the same */
	struct ls_reply *reply;
	struct ls_request request;
	size_t route; /* LS_ROUTE_COUNT: none */
	struct evbuffer *text; /* body of what is not JSON, being gathered */
	bool reading; /* the backend reads for it, and can be told to stop */
	bool held; /* and waits until the client has taken what there is */
};

/* --- answers -------------------------------------------------------------- */

static void
exchange_free(struct exchange *x)
{
	if (x && x->text)
		evbuffer_free(x->text);
	free(x);
}

static void
exchange_sent(void *arg, int status)
{
	struct exchange *x = arg;
	size_t hundred = status >= 100 && status < 600 ? (size_t)status / 100 : 5;

	x->h->answers[x->route][hundred]++;
	ls_client_waits(x->client, NULL);
}

/* Sends what was gathered. */
static void
exchange_text(struct exchange *x, int status, const char *mime)
{
	ls_reply_bytes(x->reply, status, mime, x->text);
	exchange_free(x);
}

static void
exchange_problem(struct exchange *x, const struct ls_problem *p)
{
	ls_reply_problem(x->reply, p);
	exchange_free(x);
}

static void
exchange_refuse(struct exchange *x, int status, const char *type, const char *title,
	const char *detail)
{
	struct ls_problem p;

	ls_api_problem(&p, status, type, title, "%s", detail);
	exchange_problem(x, &p);
}

static void
exchange_failed(struct exchange *x, int rc)
{
	struct ls_problem p;

	ls_api_failure(rc, &p);
	exchange_problem(x, &p);
}

static void
exchange_answered(void *arg, int rc, json_t *body)
{
	struct exchange *x = arg;
	json_t *answer = NULL;

	if (rc == 0)
		rc = ls_api_answer(&x->request, body, &answer);
	if (rc != 0) {
		exchange_failed(x, rc);
	} else {
		ls_reply_json(x->reply, 200, answer);
		exchange_free(x);
	}
	json_decref(answer);
}

/* The client has taken all of an export that there was. */
static void
exchange_taken(struct evhttp_connection *evcon, void *arg)
{
	struct exchange *x = arg;

	(void)evcon;
	if (!x->held)
		return;
	x->held = false;
	ls_client_touch(x->client);
	x->h->backend.hold(x->h->backend.arg, x, false);
}

static bool
exchange_piece(void *arg, int rc, const char *text, size_t len)
{
	struct exchange *x = arg;

	if (ls_reply_wanted(x->reply))
		ls_client_touch(x->client);
	if (len > 0) {
		if (!ls_reply_stream_piece(x->reply, LS_NDJSON_MIME, text, len,
			    exchange_taken))
			return false;
		x->held = ls_reply_is_behind(x->reply);
		if (x->held)
			x->h->backend.hold(x->h->backend.arg, x, true);
		return true;
	}
	if (!ls_reply_stream_end(x->reply, LS_NDJSON_MIME, rc)) {
		/* The last chunk is not sent, so the client sees that the stream was
		   cut. */
		x->h->answers[x->route][5]++;
		ls_client_drop(x->client);
	}
	exchange_free(x);
	return false;
}

/* Pieces of a stored answer: it is sent once it is whole, so that it has a status. */
static bool
exchange_part(void *arg, int rc, const char *text, size_t len)
{
	struct exchange *x = arg;

	if (len > 0)
		return ls_reply_wanted(x->reply) &&
			evbuffer_add(x->text, text, len) == 0;
	x->reading = false;
	if (rc != 0)
		exchange_failed(x, rc);
	else
		exchange_text(x, 200, "application/json");
	return false;
}

/* --- /metrics: jobs, then findings, then ourselves ------------------------ */

static void
httpd_own_metrics(const struct ls_httpd *h, struct evbuffer *out)
{
	struct ls_clients_stats clients;

	ls_expose_family(out, "lockstep_build_info", "gauge",
		"What runs here; always 1.");
	(void)evbuffer_add_printf(out, "lockstep_build_info{version=\"%s\"} 1\n",
		PACKAGE_VERSION);
	ls_expose_family(out, "lockstep_http_requests_total", "counter",
		"HTTP requests answered, by route and class of status.");
	for (size_t r = 0; r <= LS_ROUTE_COUNT; r++) {
		const char *name = r < LS_ROUTE_COUNT
			? ls_api_route((enum ls_route)r)->path
			: "other";

		for (size_t s = 1; s < 6; s++) {
			if (h->answers[r][s] == 0)
				continue;
			(void)evbuffer_add_printf(out, "lockstep_http_requests_total{");
			ls_expose_label(out, "route", name, 1);
			(void)evbuffer_add_printf(out, ",status=\"%zuxx\"} %llu\n", s,
				(unsigned long long)h->answers[r][s]);
		}
	}
	ls_expose_number(out, "lockstep_http_requests_refused_total", "counter",
		"HTTP requests refused for their Host header.",
		(double)h->refused_count);
	ls_clients_stats(h->clients, &clients);
	ls_expose_number(out, "lockstep_http_connections", "gauge",
		"HTTP connections open now.", (double)clients.count);
	ls_expose_family(out, "lockstep_http_connections_closed_total", "counter",
		"HTTP connections closed by the collector, by reason.");
	(void)evbuffer_add_printf(out,
		"lockstep_http_connections_closed_total{reason=\"crowded\"} %llu\n"
		"lockstep_http_connections_closed_total{reason=\"late\"} %llu\n"
		"lockstep_http_connections_closed_total{reason=\"unread\"} %llu\n",
		(unsigned long long)clients.crowded, (unsigned long long)clients.late,
		(unsigned long long)clients.unread);
}

static void
exchange_metrics_findings(void *arg, int rc, json_t *body)
{
	struct exchange *x = arg;

	if (rc == 0)
		ls_metrics_findings(x->text, json_object_get(body, "items"));
	if (ls_reply_wanted(x->reply)) {
		x->h->backend.metrics(x->h->backend.arg, x->text);
		httpd_own_metrics(x->h, x->text);
	}
	exchange_text(x, 200, LS_EXPOSE_MIME);
}

static void
exchange_metrics_jobs(void *arg, int rc, json_t *body)
{
	struct exchange *x = arg;
	struct ls_ask ask;

	if (rc == 0)
		ls_metrics_jobs(x->text, json_object_get(body, "items"));
	if (!ls_reply_wanted(x->reply)) {
		exchange_failed(x, -LS_ECLOSED);
		return;
	}
	memset(&ask, 0, sizeof(ask));
	ask.kind = LS_ASK_FINDINGS;
	ask.limit = SIZE_MAX;
	x->h->backend.ask(x->h->backend.arg, &ask, exchange_metrics_findings, x);
}

static void
exchange_metrics(struct exchange *x)
{
	x->request.ask.limit = SIZE_MAX;
	x->h->backend.ask(x->h->backend.arg, &x->request.ask, exchange_metrics_jobs, x);
}

/* --- the other answers ---------------------------------------------------- */

static void
exchange_json(struct exchange *x, json_t *body)
{
	ls_reply_json(x->reply, 200, body);
	json_decref(body);
	exchange_free(x);
}

static void
exchange_ready(struct exchange *x)
{
	const char *why = NULL;

	if (x->h->backend.ready(x->h->backend.arg, &why))
		exchange_json(x,
			json_pack("{s:s,s:s*}", "status", "ready", "note", why));
	else
		exchange_refuse(x, 503, "not-ready", "Not ready",
			why != NULL ? why : "not ready");
}

static void
exchange_asset(struct exchange *x, const char *path)
{
	ls_reply_asset(x->reply, ls_asset_find(path), x->h->options.web_root);
	exchange_free(x);
}

static void
exchange_export(struct exchange *x)
{
	/* HEAD: the headers, without reading the job */
	if (evhttp_request_get_command(ls_reply_request(x->reply)) == EVHTTP_REQ_HEAD) {
		exchange_text(x, 200, LS_NDJSON_MIME);
		return;
	}
	x->reading = true;
	x->h->backend.export_job(x->h->backend.arg, &x->request.ask, exchange_piece, x);
}

static void
exchange_stored(struct exchange *x)
{
	x->reading = true;
	x->h->backend.read(x->h->backend.arg, &x->request.ask, exchange_part, x);
}

static void
exchange_ask(struct exchange *x)
{
	struct ls_ask ask = x->request.ask;

	/* Cut to a range of time here, so ask for all there may be. */
	if (x->request.from_us != INT64_MIN || x->request.to_us != INT64_MAX)
		ask.limit = LS_PAGE_MAX;
	x->h->backend.ask(x->h->backend.arg, &ask, exchange_answered, x);
}

/*
 * A page from elsewhere could make a browser send a write here: it can forge neither
 * the Origin nor, without our leave, the type of the body.
 */
static bool
exchange_may_write(struct exchange *x, struct evhttp_request *req)
{
	struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
	const char *origin = evhttp_find_header(headers, "Origin");
	const char *host = evhttp_find_header(headers, "Host");
	const char *type = evhttp_find_header(headers, "Content-Type");

	const char *scheme = x->h->options.access ? "https://" : "http://";

	if (!x->h->loopback && !x->h->options.access) {
		exchange_refuse(x, 403, "forbidden", "Forbidden",
			"without --http-keys writes are accepted on a loopback address only");
	} else if (origin &&
		(strncmp(origin, scheme, strlen(scheme)) != 0 || !host ||
			strcasecmp(origin + strlen(scheme), host) != 0)) {
		exchange_refuse(x, 403, "forbidden", "Forbidden",
			"a write from a page of another origin is refused");
	} else if (!type || strncasecmp(type, "application/json", 16) != 0) {
		exchange_refuse(x, 415, "bad-type", "Unsupported media type",
			"the body must be application/json");
	} else {
		return true;
	}
	return false;
}

static void
exchange_problem_access(struct exchange *x, const struct ls_problem *p)
{
	if (p->status == 401)
		ls_reply_header(x->reply, "WWW-Authenticate", "Bearer");
	if (p->status == 429)
		ls_reply_header(x->reply, "Retry-After", "1");
	exchange_problem(x, p);
}

/* The page's way to send its token with each request. */
static void
exchange_session(struct exchange *x)
{
	char cookie[LS_ACCESS_COOKIE_BYTES];
	const char *name = "";
	struct ls_problem p;

	if (!x->h->options.access) {
		exchange_refuse(x, 403, "forbidden", "Forbidden",
			"this collector asks for no token");
		return;
	}
	if (x->request.token[0] != '\0' &&
		ls_access_check_token(x->h->options.access, x->request.token,
			LS_SCOPE_READ, ls_loop_now(x->h->loop), &name, &p) != 0) {
		exchange_problem_access(x, &p);
		return;
	}
	ls_access_cookie(x->request.token, cookie);
	ls_reply_header(x->reply, "Set-Cookie", cookie);
	exchange_json(x, json_pack("{s:s}", "name", name));
}

static void
exchange_write(struct exchange *x)
{
	struct evhttp_request *req = ls_reply_request(x->reply);
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(in);
	const char *text = len > 0 ? (const char *)evbuffer_pullup(in, -1) : "";
	struct ls_problem p;

	if (!exchange_may_write(x, req))
		return;
	if (!text)
		exchange_failed(x, -ENOMEM);
	else if (ls_api_body(text, len, &x->request, &p) != 0)
		exchange_problem(x, &p);
	else if (x->request.route == LS_ROUTE_SESSION)
		exchange_session(x);
	else
		exchange_ask(x);
}

static void
exchange_run(struct exchange *x)
{
	switch (ls_api_route(x->request.route)->answer) {
	case LS_ANSWER_PAGE:
	case LS_ANSWER_OBJECT:
	case LS_ANSWER_STEPS:
	case LS_ANSWER_SERIES:
		exchange_ask(x);
		break;
	case LS_ANSWER_WRITE:
	case LS_ANSWER_SESSION:
		exchange_write(x);
		break;
	case LS_ANSWER_STORED:
		exchange_stored(x);
		break;
	case LS_ANSWER_EXPORT:
		exchange_export(x);
		break;
	case LS_ANSWER_ASSET:
		exchange_asset(x, ls_api_route(x->request.route)->path);
		break;
	case LS_ANSWER_METRICS:
		exchange_metrics(x);
		break;
	case LS_ANSWER_HEALTH:
		exchange_json(x, json_pack("{s:s}", "status", "ok"));
		break;
	case LS_ANSWER_READY:
		exchange_ready(x);
		break;
	case LS_ANSWER_VERSION:
		exchange_json(x,
			json_pack("{s:i, s:s, s:s, s:s}", "schema_version", 1, "name",
				PACKAGE_NAME, "version", PACKAGE_VERSION, "api", "v1"));
		break;
	}
}

/* --- requests ------------------------------------------------------------- */

static void
exchange_wrong_method(struct exchange *x, const char *allowed)
{
	struct ls_problem p;

	ls_reply_header(x->reply, "Allow", allowed);
	ls_api_problem(&p, 405, "method-not-allowed", "Method not allowed",
		"only %s is served here", allowed);
	exchange_problem(x, &p);
}

static bool
httpd_has_body(struct evhttp_request *req)
{
	const struct evkeyvalq *in = evhttp_request_get_input_headers(req);

	return evhttp_find_header(in, "Content-Length") != NULL ||
		evhttp_find_header(in, "Transfer-Encoding") != NULL;
}

/* Refuses what needs no route. True if the request may go on. */
static bool
exchange_admit(struct exchange *x, struct evhttp_request *req)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const char *bad_length = ls_http_bad_length(req);

	/* libevent leaves a body of these unread: it would become the next request. */
	if ((method & (EVHTTP_REQ_HEAD | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT)) != 0 &&
		httpd_has_body(req))
		ls_reply_header(x->reply, "Connection", "close");
	if (bad_length) {
		ls_reply_header(x->reply, "Connection", "close");
		exchange_refuse(x, 400, "bad-length", "Bad length", bad_length);
	} else if (!x->h->options.access && /* else the name is in our certificate */
		!ls_http_host_is_ours(req, x->h->loopback, x->h->options.names)) {
		x->h->refused_count++;
		exchange_refuse(x, 421, "wrong-host", "Misdirected request",
			LS_HTTP_WRONG_HOST);
	} else {
		return true;
	}
	return false;
}

/* What a token must allow for a route: the page itself and probes need none. */
static enum ls_scope
exchange_needs(const struct exchange *x)
{
	switch (ls_api_route(x->request.route)->answer) {
	case LS_ANSWER_ASSET:
	case LS_ANSWER_HEALTH:
	case LS_ANSWER_READY:
	case LS_ANSWER_SESSION:
		return LS_SCOPE_NONE;
	case LS_ANSWER_WRITE:
		return LS_SCOPE_WRITE;
	case LS_ANSWER_PAGE:
	case LS_ANSWER_OBJECT:
	case LS_ANSWER_STEPS:
	case LS_ANSWER_SERIES:
	case LS_ANSWER_STORED:
	case LS_ANSWER_EXPORT:
	case LS_ANSWER_METRICS:
	case LS_ANSWER_VERSION:
		break;
	}
	return LS_SCOPE_READ;
}

/* Runs it, if its sender may ask for it. */
static void
exchange_authorize(struct exchange *x, struct evhttp_request *req)
{
	enum ls_scope needs = exchange_needs(x);
	const char *who = "";
	struct ls_problem p;

	if (x->h->options.access && needs != LS_SCOPE_NONE &&
		ls_access_check(x->h->options.access, req, needs,
			ls_loop_now(x->h->loop), &who, &p) != 0) {
		exchange_problem_access(x, &p);
		return;
	}
	(void)snprintf(x->request.ask.who, sizeof(x->request.ask.who), "%s", who);
	exchange_run(x);
}

/* The links of alerts and of the command line, /f/ID and /j/JOB, lead to the page. */
static void
exchange_redirect(struct exchange *x, const char *path)
{
	char location[512];

	if (snprintf(location, sizeof(location), "/#%s", path) >=
		(int)sizeof(location)) {
		exchange_failed(x, -LS_EUNKNOWN);
		return;
	}
	ls_reply_header(x->reply, "Location", location);
	exchange_text(x, 303, "text/plain; charset=utf-8");
}

static void
exchange_route(struct exchange *x, struct evhttp_request *req)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	bool get = method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD, writes;
	const char *path = evhttp_uri_get_path(uri);
	int64_t now_us = ls_loop_wall(x->h->loop) / 1000;
	struct ls_problem p;
	int rc;

	if (!path || path[0] == '\0')
		path = "/";
	rc = ls_api_parse(path, evhttp_uri_get_query(uri), now_us, &x->request, &p);
	if (rc == 0 || p.parameter[0] != '\0')
		x->route = x->request.route;
	writes = x->route < LS_ROUTE_COUNT &&
		strcmp(ls_api_route(x->request.route)->method, "POST") == 0;
	if (writes ? method != EVHTTP_REQ_POST : !get)
		exchange_wrong_method(x, writes ? "POST" : "GET, HEAD");
	else if (rc == 0)
		exchange_authorize(x, req);
	else if (rc == -LS_EUNKNOWN && ls_asset_find(path))
		exchange_asset(x, path);
	else if (rc == -LS_EUNKNOWN &&
		(strncmp(path, "/f/", 3) == 0 || strncmp(path, "/j/", 3) == 0))
		exchange_redirect(x, path);
	else
		exchange_problem(x, &p);
}

static void
httpd_request(struct evhttp_request *req, void *arg)
{
	struct ls_httpd *h = arg;
	struct exchange *x = calloc(1, sizeof(*x));
	struct ls_client *c = ls_clients_find(h->clients, req);
	char id[40];

	(void)snprintf(id, sizeof(id), "%08x-%llx", (unsigned)h->run_id,
		(unsigned long long)++h->request_count);
	if (x)
		x->text = evbuffer_new();
	if (x && x->text && c)
		x->reply = ls_reply_new(req, id, exchange_sent, x);
	if (!x || !x->reply) {
		exchange_free(x);
		evhttp_send_reply(req, 503, "Service Unavailable", NULL);
		return;
	}
	x->h = h;
	x->client = c;
	x->route = LS_ROUTE_COUNT;
	ls_client_waits(c, x->reply);
	if (exchange_admit(x, req))
		exchange_route(x, req);
}

/* --- life ----------------------------------------------------------------- */

static struct evhttp_request *
httpd_answer_request(const void *answer)
{
	return ls_reply_request(answer);
}

/* Nobody waits: what is read for it may stop. */
static void
httpd_cancel(const void *answer)
{
	struct exchange *x = ls_reply_owner(answer);

	if (x->reading)
		x->h->backend.cancel(x->h->backend.arg, x);
}

static void
httpd_answer_detach(void *answer)
{
	httpd_cancel(answer);
	ls_reply_detach(answer);
}

/* Reading for nobody is dear; nobody asks for a stored answer and then closes half of a
 * connection. */
static bool
httpd_answer_is_gone(const void *answer)
{
	const struct exchange *x = ls_reply_owner(answer);

	return x->reading && ls_api_route(x->request.route)->answer == LS_ANSWER_STORED;
}

static bool
httpd_answer_expire(void *answer)
{
	httpd_cancel(answer);
	return ls_reply_expire(answer);
}

static const struct ls_clients_answer httpd_answer = { httpd_answer_request,
	httpd_answer_detach, httpd_answer_is_gone, httpd_answer_expire };

static int
httpd_bind(struct ls_httpd *h)
{
	struct evconnlistener *listener = NULL;
	int rc = ls_http_bind(h->http, h->options.address, h->options.port, &listener,
		&h->port);

	if (rc == 0)
		ls_clients_listener(h->clients, listener);
	return rc;
}

static int
httpd_start(struct ls_httpd *h)
{
	unsigned timeout_s =
		h->options.timeout_s > 0 ? h->options.timeout_s : LS_HTTP_TIMEOUT_S;

	h->http = evhttp_new(ls_loop_base(h->loop));
	if (!h->http)
		return -ENOMEM;
	h->clients = ls_clients_new(&(struct ls_clients_options){
		.loop = h->loop,
		.http = h->http,
		.timeout_ns = timeout_s * 1000000000ull,
		.tick_ns = HTTPD_TICK_NS,
		.connections_max = LS_HTTP_CONNECTIONS_MAX,
		.header_max = LS_HTTP_HEADER_MAX_BYTES,
		.body_max = LS_HTTP_BODY_MAX_BYTES,
		.unread_max = LS_HTTP_UNREAD_MAX_BYTES,
		.accept = h->options.access ? ls_access_accept : NULL,
		.arg = h->options.access,
		.answer = &httpd_answer,
	});
	if (!h->clients)
		return -ENOMEM;
	if (RAND_bytes((unsigned char *)&h->run_id, sizeof(h->run_id)) != 1)
		return -EIO;
	evhttp_set_gencb(h->http, httpd_request, h);
	return httpd_bind(h);
}

int
ls_httpd_new(struct ls_loop *loop, const struct ls_httpd_options *options,
	const struct ls_backend *backend, struct ls_httpd **ret)
{
	bool loopback = ls_http_is_loopback(options->address) == 1;
	struct ls_httpd *h;
	int rc;

	if (!loopback && !options->insecure && !options->access)
		return -EPERM;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->loop = loop;
	h->options = *options;
	h->backend = *backend;
	h->loopback = loopback;
	rc = httpd_start(h);
	if (rc == 0)
		*ret = h;
	else
		ls_httpd_free(h);
	return rc;
}

void
ls_httpd_free(struct ls_httpd *h)
{
	if (!h)
		return;
	ls_clients_stop(h->clients);
	if (h->http)
		evhttp_free(
			h->http); /* closes the connections, which leave the clients */
	ls_clients_free(h->clients);
	free(h);
}

int
ls_httpd_port(const struct ls_httpd *h)
{
	return h->port;
}
