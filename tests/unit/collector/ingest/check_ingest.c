/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/ingest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/reqrep0/req.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/limits.h"
#include "proto/wire/frame.h"
#include "tests/support/harness.h"

#define TURN_NS 2000000ull

static struct ls_loop *loop;
static struct ls_ingest *ingest;
static struct ls_loop_timer *timer;
static struct ls_ingest_request *held[4];
static size_t held_count;
static bool hold;
static uint64_t wait_ns; /* of each reply */
/* what the clocks of this program are ahead of the system's, s */
static atomic_int ahead_s;

/* The clock that all see, libevent and nng, too: half a minute passes without waiting. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += atomic_load(&ahead_s);
	return rc;
}

/* Replies with the request itself, reversed; or holds it. */
static void
on_request(void *arg, struct ls_ingest_request *request, const uint8_t *data,
	size_t len, uint64_t t_receive_mono_ns)
{
	uint8_t *out = malloc(len > 0 ? len : 1);
	size_t i;

	(void)arg;
	ck_assert_uint_gt(t_receive_mono_ns, 0);
	if (wait_ns > 0)
		ls_ingest_peer(request)->due_mono_ns = ls_clock_mono_ns() + wait_ns;
	if (hold) {
		held[held_count++] = request;
		free(out);
		return;
	}
	for (i = 0; i < len; i++)
		out[i] = data[len - 1 - i];
	ls_ingest_reply(request, out, len);
	free(out);
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
setup(void)
{
	const struct ls_ingest_options options = { .url = "tcp://127.0.0.1:0",
		.contexts = 4 };

	ls_log_set_level(LS_LOG_ERR);
	hold = false;
	wait_ns = 0;
	held_count = 0;
	loop = ls_loop_new();
	timer = ls_loop_timer_new(loop, on_turn, NULL);
	ck_assert_int_eq(ls_ingest_open(loop, &options, on_request, NULL, &ingest), 0);
	ck_assert_int_gt(ls_ingest_port(ingest), 0);
}

static void
teardown(void)
{
	ls_ingest_close(ingest);
	ls_loop_timer_free(timer);
	ls_loop_free(loop);
	nng_fini();
}

static nng_socket
dial(void)
{
	nng_socket s;
	char url[64];

	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ls_ingest_port(ingest));
	ck_assert_int_eq(nng_req0_open(&s), 0);
	ck_assert_int_eq(nng_dial(s, url, NULL, NNG_FLAG_NONBLOCK), 0);
	return s;
}

static void
ask(nng_socket s, const void *data, size_t len)
{
	nng_msg *msg;
	int rc;

	ck_assert_int_eq(nng_msg_alloc(&msg, 0), 0);
	ck_assert_int_eq(nng_msg_append(msg, data, len), 0);
	/* The loop greets, so it has to turn before anything can be sent. */
	while ((rc = nng_sendmsg(s, msg, NNG_FLAG_NONBLOCK)) == NNG_EAGAIN)
		turn();
	ck_assert_int_eq(rc, 0);
}

/* The reply, with the loop turning meanwhile. */
static nng_msg *
answer(nng_socket s)
{
	nng_msg *msg = NULL;

	while (nng_recvmsg(s, &msg, NNG_FLAG_NONBLOCK) != 0)
		turn();
	return msg;
}

static struct ls_ingest_stats
stats(void)
{
	struct ls_ingest_stats st;

	ls_ingest_stats(ingest, &st);
	return st;
}

static void
serves(void)
{
	nng_socket s = dial();
	nng_msg *msg;

	ask(s, "abc", 3);
	msg = answer(s);
	ck_assert_uint_eq(nng_msg_len(msg), 3);
	ck_assert_mem_eq(nng_msg_body(msg), "cba", 3);
	nng_msg_free(msg);
	ck_assert_int_eq(nng_close(s), 0);
}

LS_CASE(ingest, setup, teardown);

LS_TEST(ingest, requests_are_answered)
{
	serves();
	serves();
	ck_assert_uint_eq(stats().requests, 2);
	ck_assert_uint_eq(stats().replies, 2);
	ck_assert_uint_eq(stats().bytes, 6);
	ck_assert_uint_eq(stats().busy, 0);
}

LS_TEST(ingest, a_reply_may_come_later)
{
	nng_socket s = dial();
	nng_msg *msg;

	hold = true;
	ask(s, "abc", 3);
	while (held_count == 0)
		turn();
	ck_assert_uint_eq(stats().busy, 1);
	ls_ingest_reply(held[0], (const uint8_t *)"later", 5);
	msg = answer(s);
	ck_assert_mem_eq(nng_msg_body(msg), "later", 5);
	nng_msg_free(msg);
	ck_assert_int_eq(nng_close(s), 0);
}

/* One connection's reply is delayed; all others are answered meanwhile. */
LS_TEST(ingest, a_delayed_reply_delays_nobody_else)
{
	uint64_t begin_ns = ls_clock_mono_ns();
	nng_socket s = dial();
	nng_msg *msg;
	int i;

	wait_ns = 300000000;
	ask(s, "abc", 3);
	while (stats().requests == 0)
		turn();
	ck_assert_uint_eq(stats().busy, 0);
	wait_ns = 0;
	for (i = 0; i < 6; i++) /* more than there are contexts */
		serves();
	msg = answer(s);
	ck_assert_uint_ge(ls_clock_mono_ns() - begin_ns, 300000000);
	ck_assert_mem_eq(nng_msg_body(msg), "cba", 3);
	nng_msg_free(msg);
	ask(s, "abc", 3); /* and so is the next request of this one */
	msg = answer(s);
	nng_msg_free(msg);
	ck_assert_int_eq(nng_close(s), 0);
	ck_assert_uint_eq(stats().replies, 8);
}

LS_TEST(ingest, delayed_replies_end_with_their_connection_or_the_collector)
{
	nng_socket gone = dial(), left = dial();

	wait_ns = 20000000;
	ask(gone, "abc", 3);
	while (stats().requests == 0)
		turn();
	ck_assert_int_eq(nng_close(gone), 0);
	wait_ns = 3600000000000ull;
	ask(left, "abc", 3);
	while (stats().requests == 1 || stats().replies == 0)
		turn();
	wait_ns = 0;
	serves();
	ck_assert_uint_eq(stats().busy, 0);
	/* Teardown ends the other delay. */
	ck_assert_int_eq(nng_close(left), 0);
}

LS_TEST(ingest, a_reply_to_who_has_gone_is_lost_quietly)
{
	nng_socket s = dial();

	hold = true;
	ask(s, "abc", 3);
	while (held_count == 0)
		turn();
	ck_assert_int_eq(nng_close(s), 0);
	turn();
	ls_ingest_reply(held[0], (const uint8_t *)"late", 4);
	hold = false;
	serves();
}

LS_TEST(ingest, all_contexts_busy_holds_the_next_back)
{
	nng_socket s[6];
	size_t i;

	hold = true;
	for (i = 0; i < 6; i++) {
		s[i] = dial();
		ask(s[i], "x", 1);
	}
	while (held_count < 4)
		turn();
	for (i = 0; i < 20; i++)
		turn();
	ck_assert_uint_eq(held_count, 4);
	hold = false;
	for (i = 0; i < 4; i++)
		ls_ingest_reply(held[i], (const uint8_t *)"y", 1);
	for (i = 0; i < 6; i++) {
		nng_msg *msg = answer(s[i]);

		nng_msg_free(msg);
		ck_assert_int_eq(nng_close(s[i]), 0);
	}
}

LS_TEST(ingest, closing_with_requests_held_is_clean)
{
	nng_socket s = dial();

	hold = true;
	ask(s, "abc", 3);
	while (held_count == 0)
		turn();
	ask(s, "def", 3); /* cancels the first, comes as another */
	ls_ingest_stop(ingest);
	turn();
	ck_assert_int_eq(nng_close(s), 0);
}

/* --- strangers ------------------------------------------------------------ */

static int
stranger(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)),
		0);
	a.sin_port = htons((uint16_t)ls_ingest_port(ingest));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Sends bytes, lets the loop turn, and goes away, politely or not. */
static void
bother(const void *data, size_t len, bool reset)
{
	const struct linger hard = { 1, 0 };
	int fd = stranger(), i;

	ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
	for (i = 0; i < 5; i++)
		turn();
	if (reset)
		ck_assert_int_eq(
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	ck_assert_int_eq(close(fd), 0);
	turn();
}

LS_TEST(ingest, strangers_do_no_harm)
{
	static const uint8_t half[] = { 0, 'S', 'P', 0 };
	static const uint8_t wrong_version[] = { 0, 'S', 'P', 9, 0, 0x30, 0, 0 };
	static const uint8_t publisher[] = { 0, 'S', 'P', 0, 0, 0x20, 0, 0 };
	/* A REQ header, then a length of 4 GiB, then nothing. */
	static const uint8_t claim[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0, 0, 0, 0, 1, 0,
		0, 0, 0, 1 };
	/* A REQ header, then a message too short for a request id. */
	static const uint8_t no_id[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 2, 1, 2 };
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	int k;

	for (k = 0; k < 2; k++) {
		bother("", 0, k);
		bother(half, sizeof(half), k);
		bother(wrong_version, sizeof(wrong_version), k);
		bother(publisher, sizeof(publisher), k);
		bother(claim, sizeof(claim), k);
		bother(no_id, sizeof(no_id), k);
		bother(http, sizeof(http) - 1, k);
	}
	ck_assert_uint_eq(stats().requests, 0);
	ck_assert_uint_gt(stats().refused[LS_INGEST_REFUSED_PROTO], 0);
	ck_assert_uint_gt(stats().refused[LS_INGEST_REFUSED_REJECT], 0);
	serves();
}

/* --- what nng would not send ---------------------------------------------- */

/* Greets over a plain socket, and reads the answer to it. */
static int
plain(void)
{
	static const uint8_t greeting[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 };
	uint8_t theirs[8];
	int fd = stranger();

	ck_assert_int_eq(send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL),
		sizeof(greeting));
	while (recv(fd, theirs, sizeof(theirs), MSG_DONTWAIT | MSG_PEEK) < 8)
		turn();
	ck_assert_int_eq(recv(fd, theirs, sizeof(theirs), MSG_DONTWAIT), 8);
	ck_assert_mem_eq(theirs, "\0SP\0\0\x31\0\0", 8);
	return fd;
}

/* A request of len times `fill`, with so many routing words before its own; returns its
 * bytes. */
static size_t
frame(uint8_t *out, size_t hops, uint8_t fill, size_t len)
{
	size_t message = 4 * hops + 4 + len, i;

	memset(out, 0, 8 + message);
	for (i = 0; i < 8; i++)
		out[i] = (uint8_t)((uint64_t)message >> (56 - 8 * i));
	out[8 + 4 * hops] = 0x80;
	memset(out + 8 + 4 * hops + 4, fill, len);
	return 8 + message;
}

/* Reads exactly these bytes. */
static void
expect(int fd, const uint8_t *wanted, size_t len)
{
	uint8_t *got = malloc(len);
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(fd, got + have, len - have, MSG_DONTWAIT);

		if (n > 0)
			have += (size_t)n;
		else
			turn();
	}
	ck_assert_mem_eq(got, wanted, len);
	free(got);
}

LS_TEST(ingest, requests_may_come_together_or_in_pieces)
{
	uint8_t buf[3000];
	size_t first = frame(buf, 0, 'a', 5), second = frame(buf + first, 3, 'b', 2000),
	       at;
	int fd = plain(), i;

	ck_assert_int_eq(send(fd, buf, first + second, MSG_NOSIGNAL),
		(ssize_t)(first + second));
	expect(fd, buf, first + second); /* of one letter: reversed it is the same */
	for (at = 0; at < first + second; at += 7) {
		size_t n = first + second - at < 7 ? first + second - at : 7;

		ck_assert_int_eq(send(fd, buf + at, n, MSG_NOSIGNAL), (ssize_t)n);
		for (i = 0; i < 1 + (at < 70); i++)
			turn();
	}
	expect(fd, buf, first + second);
	ck_assert_uint_eq(stats().requests, 4);
	ck_assert_uint_eq(stats().replies, 4);
	ck_assert_int_eq(close(fd), 0);
}

LS_TEST(ingest, large_requests_and_replies_arrive_whole)
{
	size_t size = 300000, len, sent = 0;
	uint8_t *buf = malloc(size);
	int fd = plain();

	len = frame(buf, 0, 'x', size - 12);
	while (sent < len) {
		ssize_t n =
			send(fd, buf + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		turn();
	}
	expect(fd, buf, 4096); /* more than this the sockets may not hold at once */
	ck_assert_uint_eq(stats().requests, 1);
	ck_assert_uint_eq(stats().bytes, size - 12);
	ck_assert_int_eq(close(fd), 0);
	free(buf);
	serves();
}

/* Turns the loop until the other side has closed; closes, too. */
static void
expect_end(int fd)
{
	uint8_t byte;
	ssize_t n;

	while ((n = recv(fd, &byte, 1, MSG_DONTWAIT)) > 0 || (n < 0 && errno == EAGAIN))
		turn();
	ck_assert_int_eq(close(fd), 0);
}

LS_TEST(ingest, who_never_reads_is_closed)
{
	const struct timeval soon = { 0, 2000 };
	size_t len = 60000;
	uint8_t *buf = malloc(len + 12);
	int fd = plain();

	len = frame(buf, 0, 'x', len);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)),
		0);
	while (stats().send_errors == 0) {
		ls_ignore((int)send(fd, buf, len, MSG_NOSIGNAL));
		turn();
	}
	ck_assert_uint_gt(stats().send_errors, 0);
	ck_assert_int_eq(close(fd), 0);
	free(buf);
	serves();
}

/* Sends what the other side takes, until it has closed or all is there. */
static void
push_all(int fd, const uint8_t *buf, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		ssize_t n =
			send(fd, buf + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			return;
		sent += n > 0 ? (size_t)n : 0;
		if (n < 0)
			turn();
	}
}

/* What malloc has given, in bytes. */
static size_t
allocated(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();
#else
	struct mallinfo m = mallinfo(); /* Debian 11 */
#endif

	return (size_t)m.hblkhd + (size_t)m.uordblks;
}

/* A delayed reply keeps its reply, not the request: else these 40 would take 40 MiB. */
LS_TEST(ingest, a_delayed_reply_keeps_no_request)
{
	enum { PEERS = 40 };
	size_t size = LS_REPORT_MAX_BYTES, len, before = 0;
	uint8_t *buf = malloc(size), reply[8] = { 0 };
	int fd[PEERS], i;

	len = frame(buf, 0, 'x', size - LS_FRAME_LENGTH_BYTES - LS_FRAME_ID_BYTES);
	hold = true;
	wait_ns = 3600000000000ull;
	for (i = 0; i < PEERS; i++) {
		fd[i] = plain();
		push_all(fd[i], buf, len);
		while (held_count == 0)
			turn();
		ls_ingest_reply(held[--held_count], reply, sizeof(reply));
		if (i == 0)
			before = allocated();
	}
	ck_assert_uint_lt(allocated(), before + 4 * size);
	ck_assert_uint_eq(stats().requests, PEERS);
	ck_assert_uint_eq(stats().replies, 0);
	for (i = 0; i < PEERS; i++)
		ck_assert_int_eq(close(fd[i]), 0);
	free(buf);
}

LS_TEST(ingest, unfinished_requests_share_a_budget)
{
	enum { PEERS = 3 * (LS_FRAMES_MAX_BYTES >> 20) };
	size_t size = LS_REPORT_MAX_BYTES, len;
	uint8_t *buf = malloc(size);
	int fd[PEERS], i;

	len = frame(buf, 0, 'x', size - LS_FRAME_LENGTH_BYTES - LS_FRAME_ID_BYTES);
	for (i = 0; i < PEERS; i++) {
		fd[i] = plain();
		push_all(fd[i], buf, len - 1);
		turn();
	}
	while (stats().refused[LS_INGEST_REFUSED_BUDGET] < PEERS / 2)
		turn();
	/* Who is not idle gets what it needs. */
	ck_assert_int_eq(send(fd[PEERS - 1], buf + len - 1, 1, MSG_NOSIGNAL), 1);
	while (stats().requests == 0)
		turn();
	serves();
	expect_end(fd[0]);
	for (i = 1; i < PEERS; i++)
		ck_assert_int_eq(close(fd[i]), 0);
	free(buf);
}

/* Ten seconds for a greeting, thirty for a request that began, and all the time between
 * requests. */
LS_TEST(ingest, who_begins_and_does_not_finish_is_closed)
{
	uint8_t buf[64];
	size_t len = frame(buf, 0, 'x', 4);
	int silent = stranger(), half = plain(), trickling = plain(), idle = plain();

	ck_assert_int_eq(send(half, buf, 5, MSG_NOSIGNAL), 5);
	ck_assert_int_eq(send(trickling, buf, 11, MSG_NOSIGNAL), 11);
	serves();
	ahead_s += 11;
	expect_end(silent);
	ck_assert_uint_eq(stats().refused[LS_INGEST_REFUSED_TIMEOUT], 1);
	ck_assert_uint_eq(stats().refused[LS_INGEST_REFUSED_SLOW], 0);
	ck_assert_int_eq(send(trickling, buf + 11, 1, MSG_NOSIGNAL), 1);
	serves();
	ahead_s += 20;
	ck_assert_int_eq(send(trickling, buf + 12, 1, MSG_NOSIGNAL), 1);
	expect_end(half);
	expect_end(trickling);
	ck_assert_uint_eq(stats().refused[LS_INGEST_REFUSED_SLOW], 2);
	ck_assert_int_eq(send(idle, buf, len, MSG_NOSIGNAL), (ssize_t)len);
	expect(idle, buf, len);
	ck_assert_int_eq(close(idle), 0);
}

LS_TEST(ingest, what_is_no_request_closes_its_connection)
{
	uint8_t buf[64];
	size_t len = frame(buf, 8, 'x', 4); /* nine words: too far */
	int fd = plain();

	ck_assert_int_eq(send(fd, buf, len, MSG_NOSIGNAL), (ssize_t)len);
	expect_end(fd);
	ck_assert_uint_eq(stats().refused[LS_INGEST_REFUSED_FRAME], 1);
	serves();
}

LS_TEST(ingest, an_oversized_report_closes_its_connection)
{
	uint8_t length[LS_FRAME_LENGTH_BYTES];
	int fd = plain();

	ls_frame_put_length(length, LS_REPORT_MAX_BYTES + LS_FRAME_ID_BYTES + 1);
	ck_assert_int_eq(send(fd, length, sizeof(length), MSG_NOSIGNAL),
		sizeof(length));
	expect_end(fd);
	ck_assert_uint_eq(stats().requests, 0);
	ck_assert_uint_eq(stats().refused[LS_INGEST_REFUSED_FRAME], 1);
	serves();
}

LS_TEST(ingest, refusals_have_names)
{
	ck_assert_str_eq(ls_ingest_refusal_name(LS_INGEST_REFUSED_PROTO), "proto");
	ck_assert_ptr_null(ls_ingest_refusal_name(LS_INGEST_REFUSED_COUNT));
}

LS_TEST(ingest, a_wrong_protocol_is_refused)
{
	nng_socket s;
	char url[64];
	int i;

	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ls_ingest_port(ingest));
	ck_assert_int_eq(nng_pub0_open(&s), 0);
	ck_assert_int_eq(nng_dial(s, url, NULL, NNG_FLAG_NONBLOCK), 0);
	for (i = 0; i < 20; i++)
		turn();
	ck_assert_int_eq(nng_close(s), 0);
	serves();
}

LS_TEST(ingest, the_backlog_is_raised)
{
	struct tcp_info info;
	socklen_t len;
	unsigned backlog = 0;
	int fd, yes;

	for (fd = 0; fd < 256; fd++) {
		len = sizeof(yes);
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) != 0 || !yes)
			continue;
		len = sizeof(info);
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
			backlog =
				info.tcpi_sacked; /* of a listening socket: its backlog */
	}
	ck_assert_uint_gt(backlog, 128);
}

LS_TEST(ingest, a_taken_port_is_an_error)
{
	struct ls_ingest_options options = { .contexts = 1 };
	struct ls_ingest *other = NULL;
	char url[64];

	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ls_ingest_port(ingest));
	options.url = url;
	ck_assert_int_eq(ls_ingest_open(loop, &options, on_request, NULL, &other),
		-EADDRINUSE);
	options.url = "nonsense";
	ck_assert_int_ne(ls_ingest_open(loop, &options, on_request, NULL, &other), 0);
	ck_assert_ptr_null(other);
}
