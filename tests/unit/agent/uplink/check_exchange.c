/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/exchange: here against a collector made of plain sockets; check_uplink
 * has nng's own REP. */
#include "config.h"

#include "agent/uplink/exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/wire/frame.h"
#include "tests/support/harness.h"

#define MS 1000000ull
#define TURN_NS (1 * MS)
#define HEAD (LS_FRAME_LENGTH_BYTES + LS_FRAME_ID_BYTES)

static const uint8_t rep[] = { 0, 'S', 'P', 0, 0, 0x31, 0, 0 },
		     req[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 };
static struct ls_loop *loop;
static struct ls_loop_timer *timer;
static struct ls_exchange *exchange;
static int listener, peer;
static char url[64];
static char events[64]; /* a letter each */
static uint8_t answer[LS_ACK_MAX_BYTES];
static size_t answer_len;
static uint64_t answer_t;
static const uint8_t *resend; /* what the handler sends at UP and after each answer */
static size_t resend_len;

static void
on_event(void *arg, enum ls_exchange_event event, const uint8_t *bytes, size_t len,
	uint64_t t)
{
	size_t at = strlen(events);

	(void)arg;
	if (at + 1 < sizeof(events)) {
		events[at] = "UDAF"[event];
		events[at + 1] = '\0';
	}
	if (event == LS_EXCHANGE_ANSWER) {
		ck_assert_uint_le(len, sizeof(answer));
		memcpy(answer, bytes, len);
		answer_len = len;
		answer_t = t;
	}
	if (resend != NULL && (event == LS_EXCHANGE_ANSWER || event == LS_EXCHANGE_UP))
		ck_assert_int_eq(ls_exchange_send(exchange, resend, resend_len), 0);
	if (event == LS_EXCHANGE_DOWN) /* nothing is under way, nothing can be */
		ck_assert_int_eq(ls_exchange_send(exchange, rep, 1), -LS_ENET);
}

static void
on_turn(void *arg)
{
	(void)arg;
	ls_loop_stop(loop);
}

/* One short turn of the loop. */
static void
turn(void)
{
	ls_loop_timer_start(timer, TURN_NS, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
}

static void
wait_events(const char *expected)
{
	while (strcmp(events, expected) != 0) {
		ck_assert_msg(strncmp(events, expected, strlen(events)) == 0,
			"events \"%s\", want \"%s\"", events, expected);
		turn();
	}
}

static void
wait_state(enum ls_exchange_state state)
{
	while (ls_exchange_get_state(exchange) != state)
		turn();
}

/* Until it has lost its connection: it pauses, or that was for less than a turn, and it has connected again. */
static void
wait_lost(void)
{
	struct pollfd again = { listener, POLLIN, 0 };

	while (ls_exchange_get_state(exchange) != LS_EXCHANGE_STATE_PAUSE &&
		poll(&again, 1, 0) == 0)
		turn();
}

static void
open_exchange(void)
{
	const struct ls_exchange_handler handler = { NULL, on_event };

	events[0] = '\0';
	ck_assert_int_eq(ls_exchange_open(loop, url, NULL, &handler, &exchange), 0);
}

/* It may have connected again already: none of that is left. */
static void
close_exchange(void)
{
	int fd;

	ls_exchange_close(exchange);
	exchange = NULL;
	while ((fd = accept(listener, NULL, NULL)) >= 0)
		(void)close(fd);
}

static void
send_request(const void *body, size_t len)
{
	ck_assert_int_eq(ls_exchange_send(exchange, body, len), 0);
}

/* --- the collector -------------------------------------------------------- */

static void
listen_here(int backlog)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int small = 4096, segment = 536;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(listener, 0);
	/* So that large requests do not fit into the kernel: its buffers follow the
	 * size of a segment. */
	ck_assert_int_eq(setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &segment,
				 sizeof(segment)),
		0);
	ck_assert_int_eq(
		setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(listener, backlog), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ntohs(a.sin_port));
}

static void
peer_accept(void)
{
	int yes = 1;

	while ((peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0)
		turn();
	/* small writes do not wait for an acknowledgement of the kernel */
	ck_assert_int_eq(setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)),
		0);
}

static void
peer_close(void)
{
	if (peer >= 0)
		ck_assert_int_eq(close(peer), 0);
	peer = -1;
}

/* The connection ends by a reset, not in order. */
static void
peer_reset(void)
{
	const struct linger at_once = { 1, 0 };

	ck_assert_int_eq(
		setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	peer_close();
}

static void
peer_write(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	while (len > 0) {
		ssize_t n = send(peer, p, len, MSG_NOSIGNAL);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else {
			turn();
		}
	}
}

/* How many bytes came until len were there or the other side closed. */
static size_t
peer_read(void *buf, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = recv(peer, (uint8_t *)buf + at, len - at, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return at;
		if (n > 0)
			at += (size_t)n;
		else
			turn();
	}
	return at;
}

static void
peer_is_closed(void)
{
	uint8_t rest[256];
	ssize_t n = 1;

	while (n > 0 || (n < 0 && errno == EAGAIN)) {
		n = recv(peer, rest, sizeof(rest), 0);
		if (n < 0 && errno == EAGAIN)
			turn();
	}
	ck_assert(n == 0 || errno == ECONNRESET);
	peer_close();
}

/* The last connection is over, as it tries another. */
static void
peer_comes_again(void)
{
	peer_close();
	peer_accept();
	peer_close();
}

static void
peer_greet(void)
{
	uint8_t theirs[sizeof(req)];

	peer_write(rep, sizeof(rep));
	ck_assert_uint_eq(peer_read(theirs, sizeof(theirs)), sizeof(theirs));
	ck_assert_mem_eq(theirs, req, sizeof(req));
}

/* A request whose body has len bytes; its id. */
static uint32_t
peer_take(void *body, size_t len)
{
	uint8_t head[HEAD];
	size_t bytes = 0;
	uint32_t id = 0;

	ck_assert_uint_eq(peer_read(head, HEAD), HEAD);
	ck_assert_int_eq(ls_frame_length(head, HEAD, LS_REPORT_MAX_BYTES, &bytes), 0);
	ck_assert_uint_eq(bytes, HEAD + len);
	ck_assert_int_eq(
		ls_frame_id(head + LS_FRAME_LENGTH_BYTES, LS_FRAME_ID_BYTES, &id), 0);
	ck_assert_uint_eq(peer_read(body, len), len);
	return id;
}

/* An answer with its frame, in out. */
static size_t
frame(uint8_t *out, uint32_t id, const void *body, size_t len)
{
	ls_frame_put_length(out, LS_FRAME_ID_BYTES + len);
	ls_frame_put_id(out + LS_FRAME_LENGTH_BYTES, id);
	memcpy(out + HEAD, body, len);
	return HEAD + len;
}

static void
peer_answer(uint32_t id, const void *body, size_t len)
{
	uint8_t buf[256];

	ck_assert_uint_le(HEAD + len, sizeof(buf));
	peer_write(buf, frame(buf, id, body, len));
}

static void
connect_both(void)
{
	open_exchange();
	peer_accept();
	peer_greet();
	wait_events("U");
}

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	peer = listener = -1;
	resend = NULL;
	loop = ls_loop_new();
	timer = ls_loop_timer_new(loop, on_turn, NULL);
	listen_here(16);
}

static void
teardown(void)
{
	close_exchange();
	peer_close();
	(void)close(listener);
	ls_loop_timer_free(timer);
	ls_loop_free(loop);
}

/* --- requests and answers ------------------------------------------------- */

LS_CASE(exchange, setup, teardown);

LS_TEST(exchange, a_request_goes_out_and_its_answer_comes_back)
{
	uint64_t before;
	uint8_t body[5];
	uint32_t id;

	connect_both();
	send_request("hello", 5);
	id = peer_take(body, 5);
	ck_assert_mem_eq(body, "hello", 5);
	before = ls_clock_mono_ns();
	peer_answer(id, "abc", 3);
	wait_events("UA");
	ck_assert_uint_eq(answer_len, 3);
	ck_assert_mem_eq(answer, "abc", 3);
	ck_assert(answer_t >= before && answer_t <= ls_clock_mono_ns());
	send_request("", 0);
	ck_assert_uint_ne(peer_take(body, 0), id);
}

LS_TEST(exchange, an_empty_answer_is_one)
{
	uint8_t body[1];

	connect_both();
	send_request("x", 1);
	peer_answer(peer_take(body, 1), "", 0);
	wait_events("UA");
	ck_assert_uint_eq(answer_len, 0);
}

LS_TEST(exchange, an_answer_may_come_byte_by_byte)
{
	uint8_t buf[HEAD + 5], body[1];
	size_t i, len;

	open_exchange();
	peer_accept();
	for (i = 0; i < sizeof(rep); i++) {
		ck_assert_str_eq(events, "");
		peer_write(rep + i, 1);
		turn();
	}
	wait_events("U");
	ck_assert_uint_eq(peer_read(buf, sizeof(req)), sizeof(req));
	send_request("x", 1);
	len = frame(buf, peer_take(body, 1), "hello", 5);
	for (i = 0; i < len; i++) {
		ck_assert_str_eq(events, "U");
		peer_write(buf + i, 1);
		turn();
	}
	wait_events("UA");
	ck_assert_mem_eq(answer, "hello", 5);
}

LS_TEST(exchange, one_request_at_a_time)
{
	uint8_t body[1];

	open_exchange();
	ck_assert_int_eq(ls_exchange_send(exchange, rep, 1), -LS_ENET);
	peer_accept();
	peer_greet();
	wait_events("U");
	ck_assert_int_eq(ls_exchange_send(exchange, rep, LS_REPORT_MAX_BYTES - 3),
		-LS_ELIMIT);
	send_request("x", 1);
	ck_assert_int_eq(ls_exchange_send(exchange, rep, 1), -LS_EBUSY);
	peer_answer(peer_take(body, 1), "", 0);
	wait_events("UA");
	send_request("y", 1);
}

LS_TEST(exchange, the_largest_request_arrives_whole)
{
	const size_t len = LS_REPORT_MAX_BYTES - LS_FRAME_ID_BYTES;
	uint8_t *sent = malloc(len), *got = malloc(len);
	size_t i;

	ck_assert(sent != NULL && got != NULL);
	for (i = 0; i < len; i++)
		sent[i] = (uint8_t)(i * 7 + (i >> 8));
	connect_both();
	send_request(sent, len);
	peer_answer(peer_take(got, len), "ok", 2);
	ck_assert_mem_eq(got, sent, len);
	wait_events("UA");
	free(sent);
	free(got);
}

LS_TEST(exchange, the_largest_answer_arrives_whole_and_its_memory_goes)
{
	uint8_t *buf = malloc(HEAD + LS_ACK_MAX_BYTES),
		*body = malloc(LS_ACK_MAX_BYTES), one[1];
	uint32_t id;
	size_t i;

	ck_assert(buf != NULL && body != NULL);
	for (i = 0; i < LS_ACK_MAX_BYTES; i++)
		body[i] = (uint8_t)(i * 5 + (i >> 8));
	connect_both();
	for (i = 0; i < 2; i++) {
		send_request("x", 1);
		id = peer_take(one, 1);
		peer_write(buf, frame(buf, id, body, LS_ACK_MAX_BYTES));
		wait_events(i == 0 ? "UA" : "UAA");
		ck_assert_uint_eq(answer_len, LS_ACK_MAX_BYTES);
		ck_assert_mem_eq(answer, body, LS_ACK_MAX_BYTES);
	}
	send_request("x", 1);
	peer_answer(peer_take(one, 1), "abc", 3);
	wait_events("UAAA");
	ck_assert_mem_eq(answer, "abc", 3);
	free(buf);
	free(body);
}

/* --- given up ------------------------------------------------------------- */

LS_TEST(exchange, a_late_answer_is_dropped)
{
	uint32_t first, second;
	uint8_t body[1], both[2 * (HEAD + 1)];
	size_t len;

	connect_both();
	send_request("1", 1);
	first = peer_take(body, 1);
	ls_exchange_cancel(exchange);
	ls_exchange_cancel(exchange); /* once is enough */
	ck_assert_str_eq(events, "U"); /* it is told, not called */
	ck_assert_int_eq(ls_exchange_send(exchange, rep, 1), -LS_EBUSY);
	wait_events("UF");
	send_request("2", 1);
	second = peer_take(body, 1);
	len = frame(both, first, "1", 1);
	len += frame(both + len, second, "2", 1);
	peer_write(both, len); /* both at once */
	wait_events("UFA");
	ck_assert_mem_eq(answer, "2", 1);
	ls_exchange_cancel(exchange); /* nothing is under way */
	turn();
	ck_assert_str_eq(events, "UFA");
}

LS_TEST(exchange, an_answer_is_late_as_soon_as_its_request_is_given_up)
{
	uint8_t body[1];

	connect_both();
	send_request("1", 1);
	peer_answer(peer_take(body, 1), "1", 1);
	ls_exchange_cancel(exchange); /* it is here, perhaps, but not told */
	wait_events("UF");
	send_request("2", 1);
	peer_answer(peer_take(body, 1), "2", 1);
	wait_events("UFA");
	ck_assert_mem_eq(answer, "2", 1);
}

LS_TEST(exchange, who_never_answers_is_left)
{
	char expected[16] = "U";
	uint8_t body[1];
	unsigned i;

	connect_both();
	for (i = 1; i < LS_EXCHANGE_UNANSWERED_MAX; i++) {
		send_request("1", 1);
		(void)peer_take(body, 1);
		ls_exchange_cancel(exchange);
		expected[i] = 'F';
		wait_events(expected);
	}
	send_request("2", 1);
	(void)peer_take(body, 1);
	ls_exchange_cancel(exchange);
	(void)snprintf(expected + i, sizeof(expected) - i, "DF");
	wait_events(expected);
	peer_is_closed();
	peer_accept(); /* and tried again */
}

LS_TEST(exchange, who_does_not_take_a_request_is_left_when_it_is_given_up)
{
	const size_t len = LS_REPORT_MAX_BYTES - LS_FRAME_ID_BYTES;
	uint8_t *big = calloc(1, len);

	ck_assert_ptr_nonnull(big);
	connect_both();
	send_request(big, len);
	ls_exchange_set_patience(exchange, 30 * MS);
	ls_exchange_cancel(exchange);
	wait_events("UDF");
	free(big); /* nobody reads it any more */
	peer_is_closed();
}

LS_TEST(exchange, a_request_that_is_given_up_is_sent_to_its_end)
{
	const size_t len = 300000;
	uint8_t *big = calloc(2, len);
	uint32_t first;

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', len);
	connect_both();
	send_request(big, len);
	ls_exchange_cancel(exchange);
	wait_state(LS_EXCHANGE_STATE_REST);
	ck_assert_str_eq(events, "U");
	ck_assert_int_eq(ls_exchange_send(exchange, rep, 1), -LS_EBUSY);
	first = peer_take(big + len, len);
	ck_assert_mem_eq(big, big + len, len);
	wait_events("UF");
	ck_assert_int_eq(ls_exchange_get_state(exchange), LS_EXCHANGE_STATE_UP);
	send_request("2", 1);
	peer_answer(first, "1", 1);
	peer_answer(peer_take(big, 1), "2", 1);
	wait_events("UFA");
	ck_assert_mem_eq(answer, "2", 1);
	free(big);
}

/* --- lost, and no sense --------------------------------------------------- */

/* The connection ends after `cut` bytes of what the collector has to say, in order or
 * by a reset. */
static void
lose_at(size_t cut, bool reset)
{
	uint8_t said[sizeof(rep) + HEAD + 5], body[1];
	size_t greeting = cut < sizeof(rep) ? cut : sizeof(rep);

	open_exchange();
	peer_accept();
	ck_assert_uint_eq(peer_read(said, sizeof(req)), sizeof(req));
	peer_write(rep, greeting);
	if (cut >= sizeof(rep)) {
		wait_events("U");
		send_request("x", 1);
		(void)frame(said, peer_take(body, 1), "hello", 5);
		peer_write(said, cut - greeting);
	}
	if (cut == sizeof(said))
		wait_events("UA"); /* a reset would overtake it */
	if (reset)
		peer_reset();
	else
		peer_close();
	wait_lost();
	ck_assert_str_eq(events,
		cut < sizeof(rep)	     ? ""
			: cut < sizeof(said) ? "UDF"
					     : "UAD");
	close_exchange();
}

LS_TEST(exchange, a_connection_may_be_lost_at_each_byte)
{
	size_t cut;

	for (cut = 0; cut <= sizeof(rep) + HEAD + 5; cut++) {
		lose_at(cut, false);
		lose_at(cut, true);
	}
}

LS_TEST(exchange, an_answer_behind_which_the_connection_ends_is_taken)
{
	uint8_t body[1];

	connect_both();
	send_request("x", 1);
	peer_answer(peer_take(body, 1), "abc", 3);
	peer_close(); /* before the loop turns */
	wait_events("UAD");
}

LS_TEST(exchange, what_is_lost_is_connected_again)
{
	uint8_t body[1];
	unsigned i;

	connect_both();
	for (i = 0; i < 4; i++) {
		send_request("x", 1);
		peer_answer(peer_take(body, 1), "", 0);
		wait_events("UA");
		peer_close();
		wait_events("UAD");
		events[0] = '\0';
		peer_accept();
		peer_greet();
		wait_events("U");
	}
}

/* A greeting that is none: never up, the connection is closed. */
static void
assert_not_greeted(const void *greeting)
{
	open_exchange();
	peer_accept();
	peer_write(greeting, sizeof(rep));
	peer_is_closed();
	ck_assert_str_eq(events, "");
	close_exchange();
}

LS_TEST(exchange, only_a_collector_may_greet)
{
	uint8_t greeting[sizeof(rep)];
	size_t i;

	for (i = 0; i < sizeof(rep); i++) {
		memcpy(greeting, rep, sizeof(rep));
		greeting[i] ^= 0x10;
		assert_not_greeted(greeting);
	}
	assert_not_greeted(req);
	assert_not_greeted("HTTP/1.1 400 Bad Request\r\n");
}

/* What no collector says: the connection is closed, and the request is over. */
static void
assert_no_sense(const void *said, size_t len)
{
	uint8_t body[1];

	connect_both();
	send_request("x", 1);
	(void)peer_take(body, 1);
	peer_write(said, len);
	wait_events("UDF");
	peer_is_closed();
	close_exchange();
}

LS_TEST(exchange, what_is_no_answer_ends_the_connection)
{
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff },
			     no_id[] = { 0, 0, 0, 0, 0, 0, 0, 5, 0x7f, 0, 0, 1, 'x' },
			     three[] = { 0, 0, 0, 0, 0, 0, 0, 3, 0x80, 0, 0 },
			     nothing[] = { 0, 0, 0, 0, 0, 0, 0, 0 };
	uint8_t longer[LS_FRAME_LENGTH_BYTES];

	ls_frame_put_length(longer, LS_FRAME_ID_BYTES + LS_ACK_MAX_BYTES + 1);
	assert_no_sense(huge, sizeof(huge));
	assert_no_sense(longer, sizeof(longer));
	assert_no_sense(no_id, sizeof(no_id));
	assert_no_sense(three, sizeof(three));
	assert_no_sense(nothing, sizeof(nothing));
}

LS_TEST(exchange, nobody_may_answer_more_than_was_asked)
{
	uint8_t body[1], both[2 * (HEAD + 1)];
	uint32_t id;
	size_t len;

	open_exchange();
	peer_accept();
	memcpy(both, rep, sizeof(rep));
	(void)frame(both + sizeof(rep), 1, "", 0);
	peer_write(both, sizeof(rep) + HEAD); /* before any request */
	wait_events("UD");
	close_exchange();
	peer_close();
	connect_both();
	send_request("1", 1);
	id = peer_take(body, 1);
	len = frame(both, id, "1", 1);
	len += frame(both + len, id, "2", 1);
	peer_write(both, len);
	wait_events("UAD");
	ck_assert_mem_eq(answer, "1", 1);
}

LS_TEST(exchange, who_closes_at_once_is_not_asked_in_a_loop)
{
	uint64_t since = ls_clock_mono_ns();
	unsigned i;

	open_exchange();
	for (i = 0; i < 4; i++) {
		peer_accept();
		peer_close();
		wait_lost();
	}
	/* three pauses of up to 250, 500 and 1000 ms at random: shorter together once in millions of runs */
	ck_assert_uint_gt(ls_clock_mono_ns() - since, 5 * MS);
}

/* --- patience ------------------------------------------------------------- */

LS_TEST(exchange, who_does_not_greet_in_time_is_left)
{
	open_exchange();
	ls_exchange_set_patience(exchange, 30 * MS);
	peer_accept();
	ls_ignore((int)send(peer, rep, 7, MSG_NOSIGNAL)); /* it may be late already */
	peer_is_closed();
	ck_assert_str_eq(events, "");
	peer_comes_again();
}

LS_TEST(exchange, who_stands_in_line_is_greeted_after_more_than_one_patience)
{
	uint64_t since;

	open_exchange();
	ls_exchange_set_patience(exchange, 500 * MS);
	peer_accept();
	wait_state(LS_EXCHANGE_STATE_GREET);
	since = ls_clock_mono_ns();
	while (ls_clock_mono_ns() - since < 600 * MS)
		turn();
	ck_assert_int_eq(ls_exchange_get_state(exchange), LS_EXCHANGE_STATE_GREET);
	ls_ignore((int)send(peer, rep, sizeof(rep), MSG_NOSIGNAL));
	wait_events("U");
}

/* Connections until the kernel takes no more: the next one hangs. */
static size_t
fill_backlog(int *fds, size_t max)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	struct pollfd p = { .events = POLLOUT };
	size_t n = 0;

	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	while (n < max) {
		p.fd = fds[n++] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		ck_assert_int_ge(p.fd, 0);
		if (connect(p.fd, (struct sockaddr *)&a, len) != 0 &&
			poll(&p, 1, 50) == 0)
			break;
	}
	return n;
}

LS_TEST(exchange, who_cannot_be_connected_in_time_is_tried_again)
{
	int fds[8];
	size_t n;

	(void)close(listener);
	listen_here(0);
	open_exchange();
	ls_exchange_set_patience(exchange, 50 * MS);
	peer_accept();
	n = fill_backlog(fds, 8);
	ck_assert_uint_lt(n, 8);
	peer_close();
	wait_state(LS_EXCHANGE_STATE_PAUSE);
	wait_state(LS_EXCHANGE_STATE_DIAL);
	wait_state(LS_EXCHANGE_STATE_PAUSE);
	wait_state(LS_EXCHANGE_STATE_DIAL);
	ls_exchange_set_patience(exchange, 10000 * MS);
	while (n > 0)
		(void)close(fds[--n]);
	/* those that filled it are gone; a slow machine may see one come and go in a turn */
	while (strchr(events, 'U') == NULL) {
		peer_close();
		peer_accept();
		ls_ignore((int)send(peer, rep, sizeof(rep), MSG_NOSIGNAL));
		turn();
		turn();
	}
}

LS_TEST(exchange, it_may_be_closed_while_it_cannot_be_connected)
{
	int fds[8];
	size_t n;

	(void)close(listener);
	listen_here(0);
	n = fill_backlog(fds, 8);
	ck_assert_uint_lt(n, 8);
	open_exchange();
	/* nng 1.5.2 may say already that it is connected: epoll's HUP of a new socket
	 */
	turn();
	ck_assert_int_ne(ls_exchange_get_state(exchange), LS_EXCHANGE_STATE_PAUSE);
	ck_assert_str_eq(events, "");
	close_exchange();
	while (n > 0)
		(void)close(fds[--n]);
}

/* --- the end -------------------------------------------------------------- */

/* What the collector has seen of one connection. */
struct seen {
	size_t at; /* bytes */
	uint8_t id[4]; /* of the last request */
};

/* Takes what there is; answers each request of resend_len bytes, with only `cut` bytes
 * of it when it is not 0. */
static void
serve(struct seen *seen, size_t cut)
{
	uint8_t buf[4096], out[HEAD];
	ssize_t n = recv(peer, buf, sizeof(buf), 0), i;

	for (i = 0; i < n; i++, seen->at++) {
		size_t at = seen->at < sizeof(req)
			? 0
			: (seen->at - sizeof(req)) % (HEAD + resend_len);

		if (seen->at < sizeof(req))
			continue;
		if (at >= LS_FRAME_LENGTH_BYTES && at < HEAD)
			seen->id[at - LS_FRAME_LENGTH_BYTES] = buf[i];
		if (at + 1 == HEAD + resend_len) {
			(void)frame(out, 0, "", 0);
			memcpy(out + LS_FRAME_LENGTH_BYTES, seen->id, sizeof(seen->id));
			ls_ignore((int)send(peer, out, cut != 0 ? cut : HEAD,
				MSG_NOSIGNAL));
		}
	}
}

LS_TEST(exchange, it_may_be_closed_at_any_moment)
{
	static uint8_t big[65536];
	unsigned i, answered = 0, connected = 0;

	resend = big;
	for (i = 0; i < 400; i++) {
		struct seen seen = { 0 };
		uint64_t end;

		resend_len = i % 2 != 0 ? 20 : sizeof(big);
		open_exchange();
		end = ls_clock_mono_ns() + i * 5000;
		do { /* the loop never waits here: what nng does goes on meanwhile */
			if (peer >= 0) {
				serve(&seen, i % 4 == 3 ? i % HEAD : 0);
			} else {
				peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
				if (peer >= 0)
					peer_write(rep, sizeof(rep));
			}
			ls_ignore(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK));
		} while (ls_clock_mono_ns() < end);
		connected += strchr(events, 'U') != NULL;
		answered += strchr(events, 'A') != NULL;
		close_exchange();
		peer_close();
	}
	ck_assert(connected > 0 && answered > 0); /* some moments were late */
}

LS_TEST(exchange, a_name_that_nobody_knows_does_not_hold_it)
{
	unsigned i;

	(void)snprintf(url, sizeof(url), "tcp://nobody.invalid:7117");
	for (i = 0; i < 8; i++) {
		open_exchange();
		if (i % 2 != 0)
			turn();
		close_exchange();
		turn(); /* libevent calls back, */
		turn(); /* and then frees its resolver */
	}
	ck_assert_str_eq(events, "");
}

LS_TEST(exchange, what_is_no_address_is_refused)
{
	static const char *const none[] = { "", "tcp://", "tcp://host",
		"127.0.0.1:7117", "ipc:///x", "http://127.0.0.1:1" };
	const struct ls_exchange_handler handler = { NULL, on_event };
	char longer[LS_CONF_VALUE_MAX_BYTES + 16];
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_int_eq(
			ls_exchange_open(loop, none[i], NULL, &handler, &exchange),
			-LS_ERANGE);
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "tcp://", 6);
	memcpy(longer + sizeof(longer) - 6, ":7117", 6);
	ck_assert_int_eq(ls_exchange_open(loop, longer, NULL, &handler, &exchange),
		-LS_ELIMIT);
	ls_exchange_close(NULL);
}
