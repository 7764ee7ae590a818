/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/face/http.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/loop.h"
#include "proto/limits.h"
#include "tests/support/harness.h"

static struct ls_loop *loop;
static struct ls_agent_http *http;
static bool ready;
static int bound_port;
static char answer[65536];

/* The backend's own: nobody looks into it. */
static const struct ls_about_parts *
rig_parts(void *arg)
{
	return arg;
}

static bool
rig_ready(const struct ls_about_parts *p, char *why, size_t size)
{
	(void)p;
	(void)snprintf(why, size, "no room");
	return ready;
}

static void
rig_metrics(const struct ls_about_parts *p, struct evbuffer *out)
{
	(void)p;
	(void)evbuffer_add_printf(out, "a 1\n");
}

static void
rig_series(const struct ls_about_parts *p, struct evbuffer *out)
{
	(void)p;
	(void)evbuffer_add_printf(out, "{\"items\":[]}\n");
}

static json_t *
rig_doctor(const struct ls_about_parts *p)
{
	return *(const bool *)(const void *)p ? json_pack("{s:[]}", "checks") : NULL;
}

static void
rig_bound(void *arg, int port)
{
	(void)arg;
	bound_port = port;
}

static void
rig_never_bound(void *arg, int port)
{
	(void)arg;
	ck_abort_msg("bound to port %d", port);
}

static struct ls_agent_http_options
rig_options(uint64_t timeout_ns)
{
	return (struct ls_agent_http_options){ .address = "127.0.0.1",
		.timeout_ns = timeout_ns,
		.backend = { &ready, rig_parts, rig_ready, rig_metrics, rig_series,
			rig_doctor, rig_doctor, rig_bound } };
}

static void
rig_start(uint64_t timeout_ns)
{
	struct ls_agent_http_options o = rig_options(timeout_ns);

	ready = true;
	loop = ls_loop_new();
	ck_assert_int_eq(ls_agent_http_new(loop, &o, &http), 0);
	ck_assert_int_gt(bound_port, 0);
}

static void
setup(void)
{
	rig_start(0);
}

static void
teardown(void)
{
	ls_agent_http_free(http);
	ls_agent_http_free(NULL);
	ls_loop_free(loop);
}

static int
rig_dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)bound_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int
rig_connect(void)
{
	int fd = rig_dial();

	(void)event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK);
	return fd;
}

static void
rig_send(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
		(ssize_t)strlen(text));
}

/* Turns the server's loop once; true if there is something to read. */
static bool
rig_turn(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	(void)event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK);
	return poll(&p, 1, 2) > 0;
}

/* Runs the server until the peer has closed. */
static void
rig_read(int fd)
{
	ssize_t n = 1;
	size_t len = 0;

	while (n > 0) {
		if (!rig_turn(fd))
			continue;
		n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);
		len += n > 0 ? (size_t)n : 0;
		answer[len] = '\0';
	}
}

static int
rig_raw(const char *text)
{
	int fd = rig_connect();

	rig_send(fd, text);
	rig_read(fd);
	(void)close(fd);
	return strlen(answer) > 12 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static int
rig_ask(const char *method, const char *path)
{
	char text[8192];

	(void)snprintf(text, sizeof(text),
		"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
		method, path, bound_port);
	return rig_raw(text);
}

static bool
has(const char *text)
{
	return strstr(answer, text) != NULL;
}

LS_CASE(agent_http, setup, teardown);

LS_TEST(agent_http, every_route_answers)
{
	ck_assert_int_eq(rig_ask("GET", "/healthz"), 200);
	ck_assert(has("{\"status\":\"ok\"}"));
	ck_assert_int_eq(rig_ask("GET", "/readyz"), 200);
	ck_assert_int_eq(rig_ask("GET", "/version"), 200);
	ck_assert(has("\"version\":\"" PACKAGE_VERSION "\""));
	ck_assert_int_eq(rig_ask("GET", "/metrics"), 200);
	ck_assert(has("text/plain; version=0.0.4"));
	ck_assert(has("\r\n\r\na 1\n"));
	ck_assert_int_eq(rig_ask("GET", "/api/v1/series"), 200);
	ck_assert(has("application/json"));
	ck_assert_int_eq(rig_ask("GET", "/api/v1/doctor"), 200);
	ck_assert_int_eq(rig_ask("GET", "/api/v1/identity"), 200);
	ck_assert_uint_eq(ls_agent_http_requests(http), 7);
	ck_assert_uint_eq(ls_agent_http_refused(http), 0);
}

LS_TEST(agent_http, readiness_is_a_status)
{
	ready = false;
	ck_assert_int_eq(rig_ask("GET", "/readyz"), 503);
	ck_assert(has("no room"));
	ck_assert_int_eq(rig_ask("GET", "/healthz"), 200);
	ck_assert_int_eq(rig_ask("GET", "/api/v1/doctor"), 500); /* no memory for it */
}

LS_TEST(agent_http, errors_are_problems)
{
	ck_assert_int_eq(rig_ask("GET", "/nothing"), 404);
	ck_assert(has("application/problem+json"));
	ck_assert(has("\"instance\":\"/nothing\""));
	ck_assert_int_eq(rig_ask("GET", "/metrics?x=1"), 400);
	ck_assert(has("application/problem+json"));
	ck_assert_int_eq(rig_ask("GET", "/healthz/"), 404);
	ck_assert_int_eq(rig_ask("POST", "/healthz"), 405);
	ck_assert(has("Allow: GET, HEAD"));
	ck_assert_int_eq(rig_ask("GET", "/x/%0d%0aX:y"), 404);
	ck_assert(!has("\r\nX:y"));
	ck_assert_uint_eq(ls_agent_http_refused(http), ls_agent_http_requests(http));
}

LS_TEST(agent_http, head_has_no_body)
{
	ck_assert_int_eq(rig_ask("HEAD", "/metrics"), 200);
	ck_assert(has("Content-Length: 4"));
	ck_assert_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}

LS_TEST(agent_http, host_of_elsewhere_is_refused)
{
	ck_assert_int_eq(rig_raw("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n"
				 "Connection: close\r\n\r\n"),
		421);
}

LS_TEST(agent_http, name_that_was_given_is_accepted)
{
	struct ls_agent_http_options o = rig_options(0);

	ls_agent_http_free(http);
	(void)snprintf(o.names, sizeof(o.names), "node1");
	ck_assert_int_eq(ls_agent_http_new(loop, &o, &http), 0);
	ck_assert_int_eq(rig_raw("GET /healthz HTTP/1.1\r\nHost: node1:7119\r\n"
				 "Connection: close\r\n\r\n"),
		200);
}

LS_TEST(agent_http, big_requests_are_refused)
{
	char text[2 * LS_AGENT_HTTP_HEADER_MAX_BYTES];
	int n = snprintf(text, sizeof(text),
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ");

	memset(text + n, 'x', sizeof(text) - (size_t)n);
	(void)snprintf(text + sizeof(text) - 8, 8, "\r\n\r\n");
	ck_assert_int_ne(rig_raw(text), 200);
	ck_assert_int_eq(rig_raw("POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
				 "Content-Length: 100000\r\n\r\n"),
		413);
	ck_assert_int_eq(rig_ask("GET", "/healthz"), 200);
}

LS_TEST(agent_http, garbage_is_harmless)
{
	static const char *const texts[] = { "\r\n\r\n\r\n", "GET\r\n\r\n",
		"\x16\x03\x01\x02\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
		"GET /%zz?%=%&=& HTTP/1.1\r\nHost: localhost\r\n\r\n" };
	size_t i, turns;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = rig_connect();

		rig_send(fd, texts[i]);
		for (turns = 0; turns < 20 && !rig_turn(fd); turns++)
			continue;
		(void)close(fd);
	}
	ck_assert_int_eq(rig_ask("GET", "/healthz"), 200);
}

LS_CASE(agent_http_own);

/* A byte now and then keeps libevent's own time-out away, but not ours. */
LS_TEST(agent_http_own, slow_clients_have_a_deadline)
{
	int fd;

	rig_start(200000000);
	fd = rig_connect();
	rig_send(fd, "GET /hea");
	rig_read(fd);
	(void)close(fd);
	teardown();
}

LS_TEST(agent_http, a_newcomer_gets_the_place_of_the_idlest)
{
	int fd[LS_AGENT_HTTP_CONNECTIONS_MAX], one;
	size_t i;

	for (i = 0; i < LS_AGENT_HTTP_CONNECTIONS_MAX; i++)
		fd[i] = rig_connect();
	one = rig_connect();
	rig_send(one,
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	rig_read(one);
	ck_assert(has("200 OK"));
	(void)close(one);
	rig_read(fd[0]); /* closed */
	ck_assert(!has("200 OK"));
	for (i = 0; i < LS_AGENT_HTTP_CONNECTIONS_MAX; i++)
		(void)close(fd[i]);
}

static void
rig_stop(void *arg)
{
	ls_loop_stop(arg);
}

/* All of them come in one turn of the loop, which has one time for all. */
LS_TEST(agent_http, of_those_that_come_together_the_last_has_a_place)
{
	struct ls_loop_timer *timer = ls_loop_timer_new(loop, rig_stop, loop);
	int fd[LS_AGENT_HTTP_CONNECTIONS_MAX + 1];
	size_t i;

	for (i = 0; i <= LS_AGENT_HTTP_CONNECTIONS_MAX; i++)
		fd[i] = rig_dial();
	ls_loop_timer_start(timer, 20000000, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	rig_send(fd[LS_AGENT_HTTP_CONNECTIONS_MAX],
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	rig_read(fd[LS_AGENT_HTTP_CONNECTIONS_MAX]);
	ck_assert(has("200 OK"));
	for (i = 0; i <= LS_AGENT_HTTP_CONNECTIONS_MAX; i++)
		(void)close(fd[i]);
	ls_loop_timer_free(timer);
}

LS_TEST(agent_http, taken_address_is_no_failure)
{
	struct ls_agent_http_options o = rig_options(0);
	struct ls_agent_http *second = NULL;

	o.port = (uint16_t)bound_port;
	o.backend.bound = rig_never_bound;
	ck_assert_int_eq(ls_agent_http_new(loop, &o, &second), 0);
	ck_assert_int_eq(rig_ask("GET", "/healthz"), 200);
	ls_agent_http_free(second);
}
