/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/http_get.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/dns.h>
#include <event2/http.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/http.h"
#include "proto/limits.h"

#define HTTP_GET_PORT 80
#define HTTP_GET_STATUS_LEAST 100 /* below: libevent's sign that there was no answer */

struct ls_http_get {
	struct ls_loop *loop;
	struct ls_http_get_options o;
	struct evhttp_uri *uri;
	struct evdns_base *dns; /* only where a name is to be resolved */
	struct evhttp_connection *conn; /* NULL: nothing under way */
	struct ls_loop_timer *deadline, *tell;
	char *path; /* of the URL, with its query */
	struct evbuffer *body;
	unsigned interims;
	struct ls_http_mark mark; /* goes with conn */
	int rc, status;
};

/* --- the end of an exchange ----------------------------------------------- */

/* Outside of libevent's callbacks: only here may the connection go. */
static void
http_get_tell(void *arg)
{
	struct ls_http_get *g = arg;
	const unsigned char *body;

	ls_loop_timer_stop(g->deadline);
	if (g->conn != NULL)
		evhttp_connection_free(g->conn);
	g->conn = NULL;
	body = evbuffer_pullup(g->body, -1); /* NULL when empty */
	if (body == NULL && evbuffer_get_length(g->body) > 0)
		g->rc = -ENOMEM;
	if (g->rc != 0 || body == NULL)
		g->o.done(g->o.arg, g->rc, g->rc == 0 ? g->status : 0, "", 0);
	else
		g->o.done(g->o.arg, 0, g->status, (const char *)body,
			evbuffer_get_length(g->body));
	/* g may be gone */
}

static void
http_get_end(struct ls_http_get *g, int rc)
{
	if (g->rc == 0)
		g->rc = rc;
	ls_loop_timer_start(g->tell, 0, 0);
}

static void
http_get_deadline(void *arg)
{
	struct ls_http_get *g = arg;

	evhttp_connection_free(g->conn); /* without a callback */
	g->conn = NULL;
	g->rc = -ETIMEDOUT;
	http_get_tell(g);
}

/* Told before on_answer, if anything went wrong behind the connect. */
static void
http_get_on_error(enum evhttp_request_error error, void *arg)
{
	struct ls_http_get *g = arg;

	g->rc = error == EVREQ_HTTP_TIMEOUT ? -ETIMEDOUT
		: error == EVREQ_HTTP_DATA_TOO_LONG
		? -LS_ELIMIT
		: -LS_EPARSE; /* cut short, no header, no memory, or cancelled */
	http_get_end(g, g->rc);
}

static bool
http_get_is_expected(const struct ls_http_get *g, struct evhttp_request *req)
{
	const char *value;

	if (g->o.expect == NULL)
		return true;
	value = evhttp_find_header(evhttp_request_get_input_headers(req), g->o.expect);
	return value != NULL && strcmp(value, g->o.expect_value) == 0;
}

static void
http_get_on_answer(struct evhttp_request *req, void *arg)
{
	struct ls_http_get *g = arg;

	if (req == NULL ||
		evhttp_request_get_response_code(req) < HTTP_GET_STATUS_LEAST) {
		http_get_end(g, -LS_EABSENT); /* unless on_error knew better */
		return;
	}
	g->status = evhttp_request_get_response_code(req);
	if (!http_get_is_expected(g, req)) {
		http_get_end(g, -LS_EUNKNOWN);
		return;
	}
	http_get_end(g,
		evbuffer_add_buffer(g->body, evhttp_request_get_input_buffer(req)) == 0
			? 0
			: -ENOMEM);
}

/* --- asking --------------------------------------------------------------- */

/* "localhost" and addresses need nobody; anything else is asked for without blocking.
 */
static bool
http_get_needs_dns(const char *host)
{
	return strcmp(host, "localhost") != 0 &&
		strspn(host, "0123456789.") != strlen(host) &&
		strchr(host, ':') == NULL;
}

static void
http_get_beyond(void *arg)
{
	http_get_end(arg, -LS_ELIMIT);
}

static int
http_get_open(struct ls_http_get *g)
{
	const char *host = evhttp_uri_get_host(g->uri);
	int port = evhttp_uri_get_port(g->uri);

	if (g->dns == NULL && http_get_needs_dns(host)) {
		g->dns = evdns_base_new(ls_loop_base(g->loop),
			EVDNS_BASE_INITIALIZE_NAMESERVERS |
				EVDNS_BASE_DISABLE_WHEN_INACTIVE);
		if (g->dns == NULL)
			return -LS_EABSENT;
	}
	g->conn = evhttp_connection_base_new(ls_loop_base(g->loop), g->dns,
		strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
		(unsigned short)(port < 0 ? HTTP_GET_PORT : port));
	if (g->conn == NULL)
		return -ENOMEM;
	evhttp_connection_set_retries(g->conn, 0);
	evhttp_connection_set_max_headers_size(g->conn, LS_HTTP_GET_HEADER_MAX_BYTES);
	evhttp_connection_set_max_body_size(g->conn, (ev_ssize_t)g->o.body_max_bytes);
	g->mark = (struct ls_http_mark){ .bev = evhttp_connection_get_bufferevent(
						 g->conn),
		.max = LS_HTTP_GET_HEADER_MAX_BYTES + g->o.body_max_bytes,
		.beyond = http_get_beyond,
		.arg = g };
	return ls_http_mark_start(&g->mark);
}

static int
http_get_on_header(struct evhttp_request *req, void *arg)
{
	struct ls_http_get *g = arg;

	return ls_http_interim(req, &g->interims);
}

static int
http_get_send(struct ls_http_get *g, const char *path)
{
	struct evhttp_request *req = evhttp_request_new(http_get_on_answer, g);
	struct evkeyvalq *headers;
	char host[512];
	int port = evhttp_uri_get_port(g->uri);

	if (req == NULL)
		return -ENOMEM;
	evhttp_request_set_error_cb(req, http_get_on_error);
	evhttp_request_set_header_cb(req, http_get_on_header);
	headers = evhttp_request_get_output_headers(req);
	if (port < 0)
		(void)snprintf(host, sizeof(host), "%s", evhttp_uri_get_host(g->uri));
	else
		(void)snprintf(host, sizeof(host), "%s:%d", evhttp_uri_get_host(g->uri),
			port);
	if (evhttp_add_header(headers, "Host", host) != 0 ||
		evhttp_add_header(headers, "Connection", "close") != 0 ||
		(g->o.header != NULL &&
			evhttp_add_header(headers, g->o.header, g->o.value) != 0)) {
		evhttp_request_free(req);
		return -LS_EPARSE;
	}
	/* Takes the request over, whatever comes of it. A connect that fails at once is
	 * told by tell. */
	if (evhttp_make_request(g->conn, req, EVHTTP_REQ_GET, path) != 0)
		http_get_end(g, -LS_EABSENT);
	return 0;
}

int
ls_http_get_start(struct ls_http_get *g, const char *path)
{
	int rc;

	if (g->conn != NULL)
		return -LS_EBUSY;
	/* cannot fail: not frozen */
	(void)evbuffer_drain(g->body, evbuffer_get_length(g->body));
	g->rc = 0;
	g->status = 0;
	g->interims = 0;
	rc = http_get_open(g);
	if (rc == 0)
		rc = http_get_send(g, path != NULL ? path : g->path);
	if (rc != 0) {
		if (g->conn != NULL)
			evhttp_connection_free(g->conn);
		g->conn = NULL;
		return rc;
	}
	ls_loop_timer_start(g->deadline, g->o.deadline_ns, 0);
	return 0;
}

/* --- life ----------------------------------------------------------------- */

static int
http_get_parse_uri(const char *url, struct evhttp_uri **ret_uri)
{
	struct evhttp_uri *uri = evhttp_uri_parse(url);
	const char *scheme, *host;

	if (uri == NULL)
		return -LS_EPARSE;
	scheme = evhttp_uri_get_scheme(uri);
	host = evhttp_uri_get_host(uri);
	if (scheme == NULL || strcmp(scheme, "http") != 0 || host == NULL ||
		host[0] == '\0' || strlen(host) > 255 ||
		evhttp_uri_get_userinfo(uri) != NULL || evhttp_uri_get_port(uri) == 0 ||
		evhttp_uri_get_port(uri) > USHRT_MAX) {
		evhttp_uri_free(uri);
		return -LS_EPARSE;
	}
	*ret_uri = uri;
	return 0;
}

int
ls_http_get_check(const char *url)
{
	struct evhttp_uri *uri = NULL;
	int rc = http_get_parse_uri(url, &uri);

	if (rc == 0)
		evhttp_uri_free(uri);
	return rc;
}

static int
http_get_parse_url(struct ls_http_get *g)
{
	const char *path, *query;
	size_t size;
	int rc = http_get_parse_uri(g->o.url, &g->uri);

	if (rc != 0)
		return rc;
	path = evhttp_uri_get_path(g->uri);
	query = evhttp_uri_get_query(g->uri);
	if (path == NULL || path[0] == '\0')
		path = "/";
	size = strlen(path) + (query != NULL ? strlen(query) + 1 : 0) + 1;
	g->path = malloc(size);
	if (g->path == NULL)
		return -ENOMEM;
	(void)snprintf(g->path, size, "%s%s%s", path, query != NULL ? "?" : "",
		query != NULL ? query : "");
	return 0;
}

int
ls_http_get_new(struct ls_loop *loop, const struct ls_http_get_options *options,
	struct ls_http_get **ret_get)
{
	struct ls_http_get *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return -ENOMEM;
	g->loop = loop;
	g->o = *options;
	rc = http_get_parse_url(g);
	g->o.url = NULL; /* the caller's */
	g->body = evbuffer_new();
	g->deadline = ls_loop_timer_new(loop, http_get_deadline, g);
	g->tell = ls_loop_timer_new(loop, http_get_tell, g);
	if (rc == 0 && (g->body == NULL || g->deadline == NULL || g->tell == NULL))
		rc = -ENOMEM;
	if (rc == 0)
		*ret_get = g;
	else
		ls_http_get_free(g);
	return rc;
}

void
ls_http_get_free(struct ls_http_get *g)
{
	if (g == NULL)
		return;
	ls_loop_timer_free(g->deadline);
	ls_loop_timer_free(g->tell);
	if (g->conn != NULL)
		evhttp_connection_free(g->conn);
	if (g->dns != NULL)
		evdns_base_free(g->dns, 0);
	if (g->body != NULL)
		evbuffer_free(g->body);
	if (g->uri != NULL)
		evhttp_uri_free(g->uri);
	free(g->path);
	free(g);
}
