/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/http_get.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/support/harness.h"

#define BODY_MAX 4096

static struct ls_loop *loop;
static struct ls_http_get *get;
static int server = -1;
static unsigned short port;

static struct {
	unsigned told;
	int rc, status;
	char body[BODY_MAX + 1];
	size_t len;
	bool again, end; /* what the callback does: ask again, free */
} answer;

static void
done(void *arg, int rc, int status, const char *body, size_t len)
{
	(void)arg;
	answer.told++;
	answer.rc = rc;
	answer.status = status;
	answer.len = len;
	ck_assert_uint_le(len, BODY_MAX);
	memcpy(answer.body, body, len);
	answer.body[len] = '\0';
	if (answer.again) {
		answer.again = false;
		ck_assert_int_eq(ls_http_get_start(get, "/second"), 0);
	} else if (answer.end) {
		ls_http_get_free(get);
		get = NULL;
	}
}

static const char *expect; /* a header that an answer must have, as "yes" */

static int
new_get(const char *url, uint64_t deadline_ns)
{
	const struct ls_http_get_options o = { .url = url,
		.expect = expect,
		.expect_value = "yes",
		.header = "X-Asked-By",
		.value = "lockstep",
		.body_max_bytes = BODY_MAX,
		.deadline_ns = deadline_ns,
		.done = done };

	return ls_http_get_new(loop, &o, &get);
}

static void
setup(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	char url[64];

	memset(&answer, 0, sizeof(answer));
	loop = ls_loop_new();
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(server, 4), 0);
	ck_assert_int_eq(getsockname(server, (struct sockaddr *)&at, &size), 0);
	port = ntohs(at.sin_port);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/metrics?a=b", port);
	ck_assert_int_eq(new_get(url, 5000000000ull), 0);
}

static void
teardown(void)
{
	ls_http_get_free(get);
	get = NULL;
	ls_loop_free(loop);
	(void)close(server);
}

/* Turns the loop until `told` answers were told. */
static void
pump_until(unsigned told)
{
	while (answer.told < told)
		ck_assert_int_eq(event_base_loop(ls_loop_base(loop), EVLOOP_ONCE), 0);
}

/* Takes the connection, turning the loop until the request is there; returns its
 * socket. */
static int
take_request(char *text, size_t size)
{
	struct pollfd p = { .fd = server, .events = POLLIN };
	ssize_t n;
	int fd;

	while (poll(&p, 1, 0) == 0)
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK),
			0);
	fd = accept(server, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	p.fd = fd;
	while (poll(&p, 1, 0) == 0)
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK),
			0);
	n = recv(fd, text, size - 1, 0);
	ck_assert_int_gt((int)n, 0);
	text[n] = '\0';
	return fd;
}

static void
answer_with(const char *text)
{
	char request[2048];
	int fd = take_request(request, sizeof(request));

	ck_assert_int_eq((int)send(fd, text, strlen(text), MSG_NOSIGNAL),
		(int)strlen(text));
	(void)close(fd);
}

LS_CASE(http_get, setup, teardown);

LS_TEST(http_get, answer_without_the_expected_header_is_not_believed)
{
	char url[64];

	ls_http_get_free(get);
	get = NULL;
	expect = "X-Real";
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
	ck_assert_int_eq(new_get(url, 5000000000ull), 0);
	expect = NULL;
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
	pump_until(1);
	ck_assert_int_eq(answer.rc, -LS_EUNKNOWN);
	ck_assert_int_eq(answer.status, 0);
	ck_assert_uint_eq(answer.len, 0);
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with("HTTP/1.1 200 OK\r\nx-real: no\r\nContent-Length: 1\r\n\r\n1");
	pump_until(2);
	ck_assert_int_eq(answer.rc, -LS_EUNKNOWN);
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with("HTTP/1.1 200 OK\r\nx-real: yes\r\nContent-Length: 1\r\n\r\n1");
	pump_until(3);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_str_eq(answer.body, "1");
}

LS_TEST(http_get, gives_status_and_body)
{
	char request[2048], host[64];
	int fd;
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	ck_assert_int_eq(ls_http_get_start(get, NULL), -LS_EBUSY);
	ck_assert_uint_eq(answer.told, 0);
	fd = take_request(request, sizeof(request));
	ck_assert_ptr_eq(strstr(request, "GET /metrics?a=b HTTP/1.1\r\n"), request);
	(void)snprintf(host, sizeof(host), "Host: 127.0.0.1:%u\r\n", port);
	ck_assert_ptr_nonnull(strstr(request, host));
	ck_assert_ptr_nonnull(strstr(request, "X-Asked-By: lockstep\r\n"));
	ck_assert_int_eq((int)send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL),
		sizeof(text) - 1);
	pump_until(1);
	(void)close(fd);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_int_eq(answer.status, 200);
	ck_assert_str_eq(answer.body, "abc");
}

LS_TEST(http_get, chunks_are_put_together)
{
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
	pump_until(1);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_str_eq(answer.body, "abcde");
}

LS_TEST(http_get, interim_answers_have_an_end)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	char text[sizeof(go_on) * 64] = "", request[2048];
	unsigned i;
	int fd;

	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	fd = take_request(request, sizeof(request));
	(void)snprintf(text, sizeof(text), "%sHTTP/1.1 200 OK\r\n%s1", go_on,
		"Content-Length: 1\r\n\r\n");
	ck_assert_int_eq((int)send(fd, text, strlen(text), MSG_NOSIGNAL),
		(int)strlen(text));
	pump_until(1);
	(void)close(fd);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_str_eq(answer.body, "1");
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	for (i = 0; i < 50; i++)
		memcpy(text + i * (sizeof(go_on) - 1), go_on, sizeof(go_on));
	(void)snprintf(text + i * (sizeof(go_on) - 1), 64,
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
	answer_with(text);
	pump_until(2);
	ck_assert_int_ne(answer.rc, 0);
}

LS_TEST(http_get, other_statuses_are_told)
{
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	pump_until(1);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_int_eq(answer.status, 404);
	ck_assert_uint_eq(answer.len, 0);
}

LS_TEST(http_get, nobody_there_is_absent)
{
	(void)close(server);
	server = -1;
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	pump_until(1);
	ck_assert_int_eq(answer.rc, -LS_EABSENT);
	ck_assert_int_eq(answer.status, 0);
}

LS_TEST(http_get, silence_ends_at_the_deadline)
{
	char url[64];

	ls_http_get_free(get);
	(void)snprintf(url, sizeof(url), "http://localhost:%u", port);
	ck_assert_int_eq(new_get(url, 20000000), 0);
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	pump_until(1);
	ck_assert_int_eq(answer.rc, -ETIMEDOUT);
	/* And it can be asked again. */
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	pump_until(2);
	ck_assert_int_eq(answer.rc, -ETIMEDOUT);
}

static const struct {
	const char *text;
	int rc;
} bad[] = {
	/* cut short */
	{ "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", -LS_EPARSE },
	{ "220 smtp.example ESMTP\r\n", -LS_EPARSE },
	{ "\x15\x03\x01\x00\x02\x02\x46", -LS_EPARSE }, /* a TLS alert */
	{ "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", -LS_ELIMIT },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nabc",
		-LS_ELIMIT },
};

LS_TEST_EACH(http_get, what_is_no_answer_is_told_apart, bad)
{
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with(bad[_i].text);
	pump_until(1);
	ck_assert_msg(answer.rc == bad[_i].rc, "%s: %d, not %d", bad[_i].text,
		answer.rc, bad[_i].rc);
	ck_assert_uint_eq(answer.len, 0);
}

LS_TEST(http_get, endless_header_is_refused)
{
	char *text = malloc(2 * 16384 + 64);

	memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 21);
	memset(text + strlen(text), 'x', 2 * 16384);
	text[20 + 2 * 16384] = '\0';
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with(text);
	pump_until(1);
	ck_assert_int_eq(answer.rc, -LS_EPARSE);
	free(text);
}

LS_TEST(http_get, one_interim_answer_is_taken)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n",
			  last[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char request[2048];
	int fd, turns;

	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	fd = take_request(request, sizeof(request));
	ck_assert_int_gt((int)send(fd, interim, strlen(interim), MSG_NOSIGNAL), 0);
	for (turns = 0; turns < 10; turns++)
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK),
			0);
	ck_assert_int_gt((int)send(fd, last, strlen(last), MSG_NOSIGNAL), 0);
	pump_until(1);
	(void)close(fd);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_str_eq(answer.body, "ok");
}

/* Answers with begin, then the same text for ever, until the exchange is over. */
static void
answer_without_end(const char *begin, const char *text)
{
	char request[2048], block[8192];
	size_t len = 0;
	int fd;

	while (len + strlen(text) < sizeof(block))
		len += (size_t)snprintf(block + len, sizeof(block) - len, "%s", text);
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	fd = take_request(request, sizeof(request));
	ck_assert_int_eq((int)send(fd, begin, strlen(begin), MSG_NOSIGNAL),
		(int)strlen(begin));
	while (answer.told == 0) {
		(void)send(fd, block, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK),
			0);
	}
	(void)close(fd);
}

LS_TEST(http_get, endless_interim_answers_are_refused)
{
	answer_without_end("", "HTTP/1.1 100 Continue\r\n\r\n");
	ck_assert_int_eq(answer.rc, -LS_EPARSE);
}

LS_TEST(http_get, endless_line_between_chunks_is_refused)
{
	answer_without_end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;",
		"extension");
	ck_assert_int_eq(answer.rc, -LS_ELIMIT);
}

LS_TEST(http_get, the_callback_may_ask_again_and_free)
{
	char request[2048];
	int fd;

	answer.again = true;
	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	answer_with("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
	fd = take_request(request, sizeof(request));
	ck_assert_ptr_eq(strstr(request, "GET /second HTTP/1.1\r\n"), request);
	answer.end = true;
	ck_assert_int_eq((int)send(fd, "HTTP/1.0 200 OK\r\n\r\n2", 20, MSG_NOSIGNAL),
		20);
	/* without a length the end of the body is the end of the connection */
	(void)close(fd);
	pump_until(2);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_str_eq(answer.body, "2");
	ck_assert_ptr_null(get);
}

LS_TEST(http_get, free_ends_what_is_under_way)
{
	char request[2048];
	int fd;

	ck_assert_int_eq(ls_http_get_start(get, NULL), 0);
	fd = take_request(request, sizeof(request));
	ls_http_get_free(get);
	get = NULL;
	/* nothing left */
	ck_assert_int_eq(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK), 1);
	ck_assert_int_eq((int)recv(fd, request, sizeof(request), 0), 0);
	ck_assert_uint_eq(answer.told, 0);
	(void)close(fd);
}

LS_TEST(http_get, other_urls_are_refused)
{
	static const char *const urls[] = { "", "127.0.0.1:80", "https://127.0.0.1/",
		"http://", "http:///x", "http://u:p@h/", "http://h:0/",
		"http://h:99999/", "http://h/ x\n" };
	size_t i;

	ls_http_get_free(get);
	get = NULL;
	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		ck_assert_msg(new_get(urls[i], 1) == -LS_EPARSE, "%s", urls[i]);
	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		ck_assert_msg(ls_http_get_check(urls[i]) == -LS_EPARSE, "%s", urls[i]);
	ck_assert_int_eq(ls_http_get_check("http://h:1/"), 0);
}
