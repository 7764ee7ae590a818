/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/grpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <string.h>
#include "proto/base/loop.h"
#include "tests/support/harness.h"

#define DEADLINE_NS 500000000ull /* long enough for a busy machine to answer within */
#define PREFACE_BYTES 24
#define FRAME_HEAD_BYTES 9

/* A server that says what it is told to, whatever it is asked; it knows frames, not
 * their content. */
static struct {
	struct evconnlistener *listener;
	struct bufferevent *peer;
	uint16_t port;
	unsigned accepted, requests; /* HEADERS frames seen */
	int32_t stream[16];
	bool mute; /* no SETTINGS */
	void (*request)(int32_t stream);
} server;

static struct ls_loop *loop;
static struct ls_grpc *grpc;
static unsigned told;
static struct {
	int rc, status;
	char text[LS_GRPC_TEXT_MAX_BYTES];
	char message[64];
	size_t len;
} answer[16];
static unsigned wanted; /* answers after which the loop stops */
static enum ls_grpc_state wanted_state; /* COUNT: none */

/* --- the server ----------------------------------------------------------- */

static void
say(uint8_t type, uint8_t flags, int32_t stream, const void *body, size_t len)
{
	const uint8_t head[FRAME_HEAD_BYTES] = { (uint8_t)(len >> 16),
		(uint8_t)(len >> 8), (uint8_t)len, type, flags, (uint8_t)(stream >> 24),
		(uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream };

	ck_assert_int_eq(bufferevent_write(server.peer, head, sizeof(head)), 0);
	if (len > 0)
		ck_assert_int_eq(bufferevent_write(server.peer, body, len), 0);
}

static size_t
field(uint8_t *to, const char *name, const char *value)
{
	size_t name_len = strlen(name), value_len = strlen(value);

	to[0] = 0; /* a literal that is not indexed */
	to[1] = (uint8_t)name_len;
	memcpy(to + 2, name, name_len);
	to[2 + name_len] = (uint8_t)value_len;
	memcpy(to + 3 + name_len, value, value_len);
	return 3 + name_len + value_len;
}

static void
say_headers(int32_t stream)
{
	uint8_t body[128];
	size_t len = field(body, ":status", "200");

	len += field(body + len, "content-type", "application/grpc");
	say(1, 4, stream, body, len);
}

static void
say_status(int32_t stream, const char *status)
{
	uint8_t body[64];

	say(1, 5, stream, body, field(body, "grpc-status", status));
}

static void
say_ok(int32_t stream)
{
	const uint8_t data[] = { 0, 0, 0, 0, 1, (uint8_t)('0' + stream) };

	say_headers(stream);
	say(0, 0, stream, data, sizeof(data));
	say_status(stream, "0");
}

static void
server_read(struct bufferevent *peer, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(peer);
	const uint8_t *head;
	size_t len;
	bool *greeted = arg;

	if (!*greeted && evbuffer_get_length(in) >= PREFACE_BYTES) {
		ck_assert_mem_eq(evbuffer_pullup(in, PREFACE_BYTES),
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PREFACE_BYTES);
		ck_assert_int_eq(evbuffer_drain(in, PREFACE_BYTES), 0);
		*greeted = true;
		if (!server.mute)
			say(4, 0, 0, NULL, 0);
	}
	while (*greeted && evbuffer_get_length(in) >= FRAME_HEAD_BYTES) {
		head = evbuffer_pullup(in, FRAME_HEAD_BYTES);
		len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (evbuffer_get_length(in) < FRAME_HEAD_BYTES + len)
			return;
		if (head[3] == 1) {
			int32_t stream = head[7] << 8 | head[8];

			server.stream[server.requests++ % 16] = stream;
			if (server.request != NULL)
				server.request(stream);
		}
		ck_assert_int_eq(evbuffer_drain(in, FRAME_HEAD_BYTES + len), 0);
	}
}

static void
server_close(void)
{
	if (server.peer != NULL)
		bufferevent_free(server.peer);
	server.peer = NULL;
}

static void
server_event(struct bufferevent *peer, short events, void *arg)
{
	(void)arg;
	ck_assert_ptr_eq(peer, server.peer);
	if (events & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		server_close();
}

static void
server_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *a, int len,
	void *arg)
{
	static bool greeted;

	(void)l;
	(void)a;
	(void)len;
	(void)arg;
	server_close();
	greeted = false;
	server.accepted++;
	server.peer =
		bufferevent_socket_new(ls_loop_base(loop), fd, BEV_OPT_CLOSE_ON_FREE);
	ck_assert_ptr_nonnull(server.peer);
	bufferevent_setcb(server.peer, server_read, NULL, server_event, &greeted);
	ck_assert_int_eq(bufferevent_enable(server.peer, EV_READ | EV_WRITE), 0);
}

static void
server_open(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t len = sizeof(any);

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server.listener = evconnlistener_new_bind(ls_loop_base(loop), server_accept,
		NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 8,
		(struct sockaddr *)&any, sizeof(any));
	ck_assert_ptr_nonnull(server.listener);
	ck_assert_int_eq(getsockname(evconnlistener_get_fd(server.listener),
				 (struct sockaddr *)&any, &len),
		0);
	server.port = ntohs(any.sin_port);
}

/* --- the client ----------------------------------------------------------- */

static void
done(void *arg, const struct ls_grpc_answer *a)
{
	size_t i = (size_t)(uintptr_t)arg;

	ck_assert_uint_lt(i, 16);
	answer[i].rc = a->rc;
	answer[i].status = a->status;
	ck_assert_uint_lt(strlen(a->text), sizeof(answer[i].text));
	memcpy(answer[i].text, a->text, strlen(a->text) + 1);
	answer[i].len = a->len;
	ck_assert_uint_lt(a->len, sizeof(answer[i].message));
	if (a->len > 0)
		memcpy(answer[i].message, a->message, a->len);
	if (++told == wanted)
		ls_loop_stop(loop);
}

static void
changed(void *arg, enum ls_grpc_state state)
{
	(void)arg;
	if (state == wanted_state)
		ls_loop_stop(loop);
}

static void
run(void)
{
	ck_assert_int_eq(ls_loop_run(loop), 0);
}

static void
run_to_state(enum ls_grpc_state state)
{
	wanted_state = state;
	if (ls_grpc_get_state(grpc) != state)
		run();
	wanted_state = LS_GRPC_STATE_COUNT;
}

static void
run_to_answers(unsigned n)
{
	wanted = told + n;
	run();
}

static void
open_client(uint16_t port)
{
	const struct ls_grpc_options o = { .address = "127.0.0.1",
		.port = port,
		.deadline_ns = DEADLINE_NS,
		.hold_min_ns = 1000000,
		.changed = changed };

	ck_assert_int_eq(ls_grpc_new(loop, &o, &grpc), 0);
}

static int
call(size_t i)
{
	return ls_grpc_call(grpc, "/a.B/C", (const uint8_t *)"xyz", 3, done,
		(void *)(uintptr_t)i);
}

static void
setup(void)
{
	memset(&server, 0, sizeof(server));
	memset(answer, 0, sizeof(answer));
	told = wanted = 0;
	wanted_state = LS_GRPC_STATE_COUNT;
	loop = ls_loop_new();
	ck_assert_ptr_nonnull(loop);
	server_open();
	grpc = NULL;
}

static void
teardown(void)
{
	ls_grpc_free(grpc);
	ls_grpc_free(NULL);
	server_close();
	if (server.listener != NULL)
		evconnlistener_free(server.listener);
	ls_loop_free(loop);
}

/* --- tests ---------------------------------------------------------------- */

LS_CASE(grpc, setup, teardown);

LS_TEST(grpc, addresses_are_figures)
{
	struct ls_grpc_options o = { .address = "localhost", .port = 1 };

	ck_assert_int_eq(ls_grpc_new(loop, &o, &grpc), -LS_ERANGE);
	o.address = "";
	ck_assert_int_eq(ls_grpc_new(loop, &o, &grpc), -LS_ERANGE);
	ck_assert_ptr_null(grpc);
	o.address = "::1";
	ck_assert_int_eq(ls_grpc_new(loop, &o, &grpc), 0);
}

LS_TEST(grpc, calls_share_a_connection)
{
	size_t i;

	server.request = say_ok;
	open_client(server.port);
	ck_assert_int_eq(call(0), -LS_EBUSY); /* not up */
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_str_eq(ls_grpc_why(grpc), "");
	for (i = 0; i < LS_GRPC_CALLS_MAX; i++)
		ck_assert_int_eq(call(i), 0);
	ck_assert_int_eq(call(i), -LS_EBUSY); /* full */
	ck_assert_uint_eq(ls_grpc_pending(grpc), LS_GRPC_CALLS_MAX);
	run_to_answers(LS_GRPC_CALLS_MAX);
	for (i = 0; i < LS_GRPC_CALLS_MAX; i++) {
		ck_assert_int_eq(answer[i].rc, 0);
		ck_assert_int_eq(answer[i].status, LS_GRPC_OK);
		ck_assert_uint_eq(answer[i].len, 1);
		ck_assert_int_eq(answer[i].message[0], (char)('1' + 2 * i));
	}
	ck_assert_uint_eq(ls_grpc_pending(grpc), 0);
	ck_assert_uint_eq(server.accepted, 1);
	ck_assert_uint_eq(ls_grpc_get_stats(grpc)->answers, LS_GRPC_CALLS_MAX);
}

LS_TEST(grpc, request_that_is_too_long_is_refused)
{
	static const uint8_t request[LS_GRPC_REQUEST_MAX_BYTES + 1];

	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(ls_grpc_call(grpc, "/a", request, sizeof(request), done, NULL),
		-LS_ELIMIT);
}

static void
say_late(int32_t stream)
{
	if (stream != 1)
		say_ok(stream);
}

LS_TEST(grpc, call_without_answer_ends_at_its_deadline_alone)
{
	server.request = say_late;
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(call(0), 0);
	ck_assert_int_eq(call(1), 0);
	run_to_answers(2);
	ck_assert_int_eq(answer[0].rc, -ETIMEDOUT);
	ck_assert_int_eq(answer[1].rc, 0);
	say_ok(1); /* too late: nobody is told */
	ck_assert_int_eq(call(2), 0);
	run_to_answers(1);
	ck_assert_int_eq(answer[2].rc, 0);
	ck_assert_uint_eq(told, 3);
	ck_assert_uint_eq(server.accepted, 1);
	ck_assert_uint_eq(ls_grpc_get_stats(grpc)->timeouts, 1);
}

LS_TEST(grpc, silent_connection_is_given_up)
{
	size_t i;

	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	for (i = 0; i < LS_GRPC_TIMEOUTS_MAX; i++)
		ck_assert_int_eq(call(i), 0);
	run_to_state(LS_GRPC_STATE_HOLD);
	ck_assert_uint_eq(told, LS_GRPC_TIMEOUTS_MAX);
	ck_assert_int_eq(ls_grpc_last_error(grpc), -ETIMEDOUT);
	ck_assert_str_eq(ls_grpc_why(grpc), "calls are not answered");
	run_to_state(LS_GRPC_STATE_UP); /* and tried again */
	ck_assert_uint_eq(server.accepted, 2);
}

static void
say_not_found(int32_t stream)
{
	uint8_t body[128];
	size_t len = field(body, ":status", "200");

	len += field(body + len, "content-type", "application/grpc");
	len += field(body + len, "grpc-status", "5");
	len += field(body + len, "grpc-message", "no%1b");
	say(1, 5, stream, body, len);
}

LS_TEST(grpc, trailers_alone_are_a_status)
{
	server.request = say_not_found;
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(call(0), 0);
	run_to_answers(1);
	ck_assert_int_eq(answer[0].rc, 0);
	ck_assert_int_eq(answer[0].status, LS_GRPC_NOT_FOUND);
	ck_assert_str_eq(answer[0].text, "no\\x1b");
}

static void
say_reset(int32_t stream)
{
	say(3, 0, stream, "\0\0\0\7", 4);
}

static void
say_compressed(int32_t stream)
{
	say_headers(stream);
	say(0, 0, stream, "\1\0\0\0\1x", 6);
}

LS_TEST(grpc, a_bad_answer_ends_its_call_only)
{
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	server.request = say_reset;
	ck_assert_int_eq(call(0), 0);
	run_to_answers(1);
	ck_assert_int_eq(answer[0].rc, -LS_ENET);
	/* and no end of the stream: it is reset from here */
	server.request = say_compressed;
	ck_assert_int_eq(call(1), 0);
	run_to_answers(1);
	ck_assert_int_eq(answer[1].rc, -LS_EPARSE);
	server.request = say_ok;
	ck_assert_int_eq(call(2), 0);
	run_to_answers(1);
	ck_assert_int_eq(answer[2].rc, 0);
	ck_assert_uint_eq(server.accepted, 1);
	ck_assert_uint_eq(ls_grpc_get_stats(grpc)->malformed, 1);
}

static void
say_goodbye(int32_t stream)
{
	const uint8_t last[8] = { 0, 0, 0, (uint8_t)stream, 0, 0, 0, 0 };

	say(7, 0, 0, last, sizeof(last));
	say_ok(stream);
}

LS_TEST(grpc, goodbye_lets_calls_end_and_connects_again)
{
	server.request = say_goodbye;
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(call(0), 0);
	run_to_state(LS_GRPC_STATE_HOLD);
	ck_assert_uint_eq(told, 1);
	ck_assert_int_eq(answer[0].rc, 0);
	ck_assert_int_eq(ls_grpc_last_error(grpc), -LS_ECLOSED);
	server.request = say_ok;
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(call(1), 0);
	run_to_answers(1);
	ck_assert_int_eq(answer[1].rc, 0);
	ck_assert_uint_eq(ls_grpc_get_stats(grpc)->losses, 0);
}

static void
hang_up(void *arg)
{
	(void)arg;
	server_close();
}

LS_TEST(grpc, lost_connection_ends_all_calls)
{
	struct ls_loop_timer *t = ls_loop_timer_new(loop, hang_up, NULL);

	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(call(0), 0);
	ck_assert_int_eq(call(1), 0);
	ls_loop_timer_start(t, DEADLINE_NS / 10, 0);
	run_to_answers(2);
	ck_assert_int_eq(answer[0].rc, -LS_ENET);
	ck_assert_int_eq(answer[1].rc, -LS_ENET);
	ck_assert_uint_eq(ls_grpc_get_stats(grpc)->losses, 1);
	run_to_state(LS_GRPC_STATE_UP);
	ls_loop_timer_free(t);
}

LS_TEST(grpc, refused_is_tried_again)
{
	evconnlistener_free(server.listener);
	server.listener = NULL;
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_CONNECTING);
	run_to_state(LS_GRPC_STATE_HOLD);
	ck_assert_int_eq(ls_grpc_last_error(grpc), -ECONNREFUSED);
	run_to_state(LS_GRPC_STATE_CONNECTING);
	run_to_state(LS_GRPC_STATE_HOLD);
	ck_assert_uint_eq(ls_grpc_get_stats(grpc)->refusals, 2);
}

LS_TEST(grpc, peer_that_says_nothing_is_no_connection)
{
	server.mute = true;
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_CONNECTING);
	run_to_state(LS_GRPC_STATE_HOLD);
	ck_assert_int_eq(ls_grpc_last_error(grpc), -ETIMEDOUT);
	ck_assert_str_eq(ls_grpc_why(grpc), "connected, but it sends no reply");
}

LS_TEST(grpc, free_with_calls_under_way_tells_nobody)
{
	open_client(server.port);
	run_to_state(LS_GRPC_STATE_UP);
	ck_assert_int_eq(call(0), 0);
	ls_grpc_free(grpc);
	grpc = NULL;
	ck_assert_uint_eq(told, 0);
}
