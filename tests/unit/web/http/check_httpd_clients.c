/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the server that come at once, late, in pieces, read nothing or go; and exports. */
#include "config.h"
#include "web/http/httpd.h"
#include "tests/support/harness.h"
#include "tests/unit/web/http/http_rig.h"
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

LS_CASE(httpd, rig_setup, rig_teardown);

/* Sends until the server takes no more; the bytes it took, at most `most`. */
static size_t
rig_flood(int fd, const char *text, size_t most)
{
	size_t len = strlen(text), sent = 0;
	int idle = 0;

	while (sent < most && idle < 50) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		if (n <= 0)
			(void)rig_turn(fd);
		rig_pump();
	}
	return sent;
}

LS_TEST(httpd, a_connection_is_read_up_to_its_mark)
{
	enum { MOST = 48 << 20 }; /* more than sockets hold */
	int fd = rig_connect();
	char lines[4096];

	memset(lines, 'y', sizeof(lines) - 1);
	lines[sizeof(lines) - 1] = '\0';
	rig_backend.hold = true;
	rig_send(fd, "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n");
	rig_hold(1);
	ck_assert_uint_lt(
		rig_flood(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", MOST), MOST);
	(void)close(fd);
	fd = rig_connect();
	rig_send(fd,
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
		"chunked\r\n\r\n1;");
	ck_assert_uint_lt(rig_flood(fd, lines, MOST), MOST);
	(void)close(fd);
	fake_backend_let_go(&rig_backend);
	ck_assert_int_eq(rig_get("/healthz"), 200);
}

LS_TEST(httpd, a_request_has_one_end)
{
	static const char *const headers[] = {
		"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	};
	char text[512];

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		(void)snprintf(text, sizeof(text),
			"POST /api/v1/findings/F-ABCD/ack HTTP/1.1\r\nHost: "
			"localhost\r\nContent-Type: application/json\r\n%s"
			"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n",
			headers[i]);
		ck_assert_int_eq(rig_ask_raw(text), 400);
		ck_assert(rig_has("length") || rig_has("Transfer-Encoding"));
		ck_assert(!rig_has("\"version\""));
	}
}

/* The next connection is one that evhttp had no memory for: it frees the bufferevent. */
static bool rig_loses_next;
static struct bufferevent *rig_end; /* of the last connection */

void __real_bufferevent_getcb(struct bufferevent *bev, bufferevent_data_cb *ret_read,
	bufferevent_data_cb *ret_write, bufferevent_event_cb *ret_event,
	void **ret_arg);
void __wrap_bufferevent_getcb(struct bufferevent *bev, bufferevent_data_cb *ret_read,
	bufferevent_data_cb *ret_write, bufferevent_event_cb *ret_event,
	void **ret_arg);

void
__wrap_bufferevent_getcb(struct bufferevent *bev, bufferevent_data_cb *ret_read,
	bufferevent_data_cb *ret_write, bufferevent_event_cb *ret_event, void **ret_arg)
{
	void *evcon = NULL;

	__real_bufferevent_getcb(bev, ret_read, ret_write, ret_event, &evcon);
	if (rig_loses_next)
		evhttp_connection_free(evcon);
	rig_loses_next = false;
	rig_end = bev;
	__real_bufferevent_getcb(bev, ret_read, ret_write, ret_event, ret_arg);
}

/* libevent's end of a TLS connection does so when keys are updated meanwhile. */
LS_TEST(httpd, a_word_of_bytes_while_an_answer_waits_ends_nothing)
{
	size_t len = 0;
	int fd = rig_connect();

	rig_backend.hold = true;
	rig_send(fd,
		"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	rig_hold(1);
	bufferevent_trigger(rig_end, EV_READ, BEV_TRIG_IGNORE_WATERMARKS);
	rig_pump();
	fake_backend_let_go(&rig_backend);
	rig_read(fd, &len);
	(void)close(fd);
	ck_assert(rig_has("llama70b-run12"));
	ck_assert(rig_has("{\"status\":\"ok\"}")); /* and the next one, too */
}

LS_TEST(httpd, a_connection_that_libevent_has_no_memory_for_is_forgotten)
{
	size_t len = 0;
	int fd;

	rig_loses_next = true;
	fd = rig_connect();
	rig_read(fd, &len);
	ck_assert(!rig_loses_next);
	ck_assert_uint_eq(len, 0);
	(void)close(fd);
	ck_assert_int_eq(rig_get("/metrics"), 200);
	ck_assert(rig_has("\nlockstep_http_connections 1\n"));
}

LS_TEST(httpd, garbage_is_harmless)
{
	static const char *const texts[] = { "\r\n\r\n\r\n", "GET\r\n\r\n",
		"\x16\x03\x01\x02\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
		"GET /%zz?%=%&=& HTTP/1.1\r\nHost: localhost\r\n\r\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = rig_connect(), turns;

		rig_send(fd, texts[i]);
		for (turns = 0; turns < 50 && !rig_turn(fd); turns++)
			continue;
		(void)close(fd);
	}
	ck_assert_int_eq(rig_get("/healthz"), 200);
}

LS_TEST(httpd, export_is_a_stream)
{
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12/export"), 200);
	ck_assert(rig_has("\r\nTransfer-Encoding: chunked\r\n"));
	ck_assert(rig_has("\r\nContent-Type: application/x-ndjson\r\n"));
	ck_assert(strcmp(rig_answer + strlen(rig_answer) - 5, "0\r\n\r\n") == 0);
	rig_backend.cut_export = true;
	(void)rig_get("/api/v1/jobs/llama70b-run12/export"); /* cut before or after the
								headers went */
	ck_assert(!rig_has("\r\n0\r\n\r\n"));
	ck_assert_int_eq(rig_get("/healthz"), 200);
}

/* Takes what comes until the server closes; the bytes. */
static size_t
rig_drain(int fd)
{
	static char block[65536];
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0) {
		n = recv(fd, block, sizeof(block), MSG_DONTWAIT);
		len += n > 0 ? (size_t)n : 0;
		if (n < 0 && errno == EAGAIN) {
			rig_pump();
			n = 1;
		}
	}
	(void)close(fd);
	return len;
}

LS_TEST(httpd, an_export_waits_for_its_client)
{
	int fd = rig_connect();

	rig_backend.export_bytes = 3 * LS_HTTP_EXPORT_BEHIND_MAX_BYTES;
	rig_send(fd,
		"GET /api/v1/jobs/llama70b-run12/export HTTP/1.1\r\nHost: "
		"localhost\r\nConnection: close\r\n\r\n");
	while (rig_backend.holds == 0)
		rig_pump();
	ck_assert_uint_gt(rig_drain(fd), rig_backend.export_bytes);
	rig_backend.export_bytes = 0;
}

LS_TEST(httpd, who_reads_nothing_for_longest_makes_room)
{
	unsigned whole = 0;
	int fd[4];

	rig_backend.export_bytes = LS_HTTP_UNREAD_MAX_BYTES / 4 * 2;
	for (size_t i = 0; i < 4; i++) {
		fd[i] = rig_connect();
		rig_send(fd[i],
			"GET /api/v1/jobs/llama70b-run12/export HTTP/1.1\r\nHost: "
			"localhost\r\nConnection: close\r\n\r\n");
		for (int turns = 0; turns < 20; turns++)
			(void)rig_turn(fd[i]);
	}
	for (size_t i = 0; i < 4; i++)
		whole += rig_drain(fd[i]) > rig_backend.export_bytes;
	ck_assert_uint_gt(whole, 0);
	ck_assert_uint_lt(whole, 4);
	rig_backend.export_bytes = 0;
	ck_assert_int_eq(rig_get("/metrics"), 200);
	ck_assert(!rig_has("closed_total{reason=\"unread\"} 0\n"));
}

LS_TEST(httpd, late_answers_find_the_client)
{
	int fd = rig_connect();
	size_t len = 0;

	rig_backend.hold = true;
	rig_send(fd,
		"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: "
		"close\r\n\r\n");
	rig_hold(1);
	ck_assert_uint_eq(rig_backend.held_count, 1);
	fake_backend_let_go(&rig_backend);
	rig_read(fd, &len);
	ck_assert(rig_has("200 OK"));
	(void)close(fd);
}

LS_TEST(httpd, late_answers_without_a_client_are_dropped)
{
	static const char *const paths[] = { "/api/v1/jobs", "/metrics",
		"/api/v1/jobs/none" };
	char text[256];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct linger now = { 1, 0 };
		int fd = rig_connect();

		rig_backend.hold = true;
		(void)snprintf(text, sizeof(text),
			"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\nGET /version "
			"HTTP/1.1\r\nHost: localhost\r\n\r\n",
			paths[i]);
		rig_send(fd, text);
		rig_hold(1);
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
			sizeof(now)); /* a reset */
		(void)close(fd);
		rig_pump();
		fake_backend_let_go(&rig_backend);
		rig_pump();
		ck_assert_int_eq(rig_get("/healthz"), 200);
	}
}

LS_TEST(httpd, pipelined_requests_are_answered_in_order)
{
	int fd = rig_connect();
	size_t len = 0;
	const char *first, *second;

	rig_send(fd,
		"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: "
		"close\r\n\r\n");
	rig_read(fd, &len);
	first = strstr(rig_answer, "\"version\"");
	second = strstr(rig_answer, "\"status\":\"ok\"");
	ck_assert(first && second && first < second);
	(void)close(fd);
}

LS_TEST(httpd, answers_outlive_the_server)
{
	struct ls_httpd_options options = { .address = "127.0.0.1" };
	struct ls_backend functions;
	int fd = rig_connect();

	rig_backend.hold = true;
	rig_send(fd, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
	rig_hold(1);
	ls_httpd_free(rig_httpd);
	rig_httpd = NULL;
	fake_backend_let_go(&rig_backend);
	(void)close(fd);
	fake_backend_init(&rig_backend, ls_test_source("tests/golden/web/run"),
		&functions);
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &rig_httpd), 0);
}

LS_TEST(httpd, reading_stops_when_its_client_goes)
{
	char text[200];
	int fd = rig_connect();

	rig_backend.hold_read = true;
	(void)snprintf(text, sizeof(text),
		"GET /api/v1/jobs/llama70b-run12/series?metric=a HTTP/1.1\r\n"
		"Host: 127.0.0.1:%d\r\n\r\n",
		ls_httpd_port(rig_httpd));
	rig_send(fd, text);
	for (int i = 0; i < 1000 && !rig_backend.held_piece; i++) {
		rig_pump();
		(void)poll(NULL, 0, 1);
	}
	ck_assert_ptr_nonnull(rig_backend.held_piece);
	ck_assert_int_eq(rig_backend.cancelled, 0);
	(void)close(fd);
	for (int i = 0; i < 1000 && rig_backend.cancelled == 0; i++) {
		rig_pump();
		(void)poll(NULL, 0, 1);
	}
	ck_assert_int_eq(rig_backend.cancelled, 1);
	/* What comes all the same goes nowhere. */
	ck_assert(!rig_backend.held_piece(rig_backend.reading, 0, "x", 1));
	(void)rig_backend.held_piece(rig_backend.reading, -ECANCELED, NULL, 0);
}

LS_CASE(httpd_own);

static void (*rig_export)(void *arg, const struct ls_ask *ask, ls_export_piece *piece,
	void *piece_arg);

/* As if what went before had just been written by the end of a TLS connection, which
 * tells so later. */
static void
rig_export_late(void *arg, const struct ls_ask *ask, ls_export_piece *piece,
	void *piece_arg)
{
	bufferevent_trigger(rig_end, EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
	rig_export(arg, ask, piece, piece_arg);
}

LS_TEST(httpd_own, an_export_that_ends_when_less_was_written_is_whole)
{
	static const char *const versions[] = { "1.1", "1.0" };
	struct ls_httpd_options options = { .address = "127.0.0.1" };
	struct ls_backend functions;
	char text[256];

	rig_loop = ls_loop_new();
	fake_backend_init(&rig_backend, ls_test_source("tests/golden/web/run"),
		&functions);
	rig_export = functions.export_job;
	functions.export_job = rig_export_late;
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &rig_httpd), 0);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(text, sizeof(text),
			"GET /api/v1/jobs/llama70b-run12/export HTTP/%s\r\n"
			"Host: localhost\r\nConnection: close\r\n\r\n",
			versions[i]);
		ck_assert_int_eq(rig_ask_raw(text), 200);
		ck_assert_ptr_nonnull(strstr(rig_body(), "\n"));
		if (i == 0)
			ck_assert_str_eq(rig_answer + strlen(rig_answer) - 5,
				"0\r\n\r\n");
	}
	rig_teardown();
}

LS_TEST(httpd_own, slow_clients_and_backends_have_a_deadline)
{
	int slow, fd;
	size_t len = 0;

	rig_start(1);
	slow = rig_connect();
	fd = rig_connect();
	rig_backend.hold = true;
	rig_send(fd,
		"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: "
		"close\r\n\r\n");
	/* A byte now and then keeps libevent's own timeout away, but not ours. */
	for (const char *c = "GET / HTTP/1.1"; *c != '\0'; c++) {
		char one[2] = { *c, '\0' };

		if (send(slow, one, 1, MSG_NOSIGNAL) != 1)
			break;
		for (int i = 0; i < 70 && !rig_turn(slow); i++)
			continue;
	}
	len = 0;
	rig_read(slow, &len);
	ck_assert_uint_eq(len, 0);
	rig_read(fd, &len);
	ck_assert(rig_has("503 Service Unavailable"));
	ck_assert(rig_has("\r\nRetry-After: 1\r\n"));
	(void)close(slow);
	(void)close(fd);
	rig_teardown();
}
