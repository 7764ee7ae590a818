/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/stream where it is used: an exchange of the agent with ingest. */
#include "config.h"

#include "proto/wire/stream.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent/uplink/exchange.h"
#include "collector/ingest/ingest.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/wire/keys.h"
#include "tests/support/harness.h"

#define TURN_NS 1000000ull

static char dir[256], text[1024];
static struct ls_loop *loop;
static struct ls_loop_timer *timer;
static struct ls_tls *collector_keys, *agent_keys;
static struct ls_ingest *ingest;
static struct ls_exchange *exchange;
static unsigned ups, downs, answers;
static uint8_t sent[700000], answer[LS_ACK_MAX_BYTES];
static size_t answer_len, reply_len;
static const char *name; /* that ingest told */

/* Replies with the end of the request. */
static void
on_request(void *arg, struct ls_ingest_request *request, const uint8_t *data,
	size_t len, uint64_t t)
{
	(void)arg;
	(void)t;
	name = ls_ingest_peer(request)->name;
	ck_assert_mem_eq(data, sent, len);
	ls_ingest_reply(request, data + len - reply_len, reply_len);
}

static void
on_event(void *arg, enum ls_exchange_event event, const uint8_t *bytes, size_t len,
	uint64_t t)
{
	(void)arg;
	(void)t;
	ups += event == LS_EXCHANGE_UP;
	downs += event == LS_EXCHANGE_DOWN;
	if (event != LS_EXCHANGE_ANSWER)
		return;
	answers++;
	memcpy(answer, bytes, len);
	answer_len = len;
}

static void
on_turn(void *arg)
{
	(void)arg;
	ls_loop_stop(loop);
}

static void
turn(void)
{
	ls_loop_timer_start(timer, TURN_NS, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
}

static void
issue(enum ls_tls_side side, const char *host)
{
	int64_t now_s = ls_clock_wall_ns() / 1000000000;

	ck_assert_int_eq(ls_keys_issue(dir, side, &host, 1, now_s - 60, now_s + 3600,
				 text, sizeof(text)),
		0);
}

static void
setup(void)
{
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 31 + i / 251);
	ups = downs = answers = 0;
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/keys", ls_test_tmpdir());
	ck_assert_int_eq(ls_keys_init(dir, ls_clock_wall_ns() / 1000000000 - 60, text,
				 sizeof(text)),
		0);
	issue(LS_TLS_COLLECTOR, "127.0.0.1");
	issue(LS_TLS_AGENT, "w-1");
	ck_assert_int_eq(ls_tls_open(LS_TLS_COLLECTOR, dir, "", &collector_keys), 0);
	ck_assert_int_eq(ls_tls_open(LS_TLS_AGENT, dir, "w-1", &agent_keys), 0);
	loop = ls_loop_new();
	timer = ls_loop_timer_new(loop, on_turn, NULL);
}

static void
teardown(void)
{
	ls_exchange_close(exchange);
	ls_ingest_close(ingest);
	ls_tls_close(agent_keys);
	ls_tls_close(collector_keys);
	ls_loop_timer_free(timer);
	ls_loop_free(loop);
	nng_fini();
}

static void
begin(struct ls_tls *of_collector, struct ls_tls *of_agent)
{
	const struct ls_ingest_options options = {
		.url = "tcp://127.0.0.1:0", .contexts = 4, .tls = of_collector
	};
	const struct ls_exchange_handler handler = { NULL, on_event };
	char url[64];

	ck_assert_int_eq(ls_ingest_open(loop, &options, on_request, NULL, &ingest), 0);
	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ls_ingest_port(ingest));
	ck_assert_int_eq(ls_exchange_open(loop, url, of_agent, &handler, &exchange), 0);
}

static void
ask(size_t len, size_t reply)
{
	unsigned before = answers;

	reply_len = reply;
	while (ls_exchange_get_state(exchange) != LS_EXCHANGE_STATE_UP)
		turn();
	ck_assert_int_eq(ls_exchange_send(exchange, sent, len), 0);
	while (answers == before)
		turn();
	ck_assert_uint_eq(answer_len, reply);
	ck_assert_mem_eq(answer, sent + len - reply, reply);
}

static struct ls_ingest_stats
stats(void)
{
	struct ls_ingest_stats st;

	ls_ingest_stats(ingest, &st);
	return st;
}

/* Until the exchange says what is wrong. */
static void
wrong(const char *part)
{
	uint64_t count;

	while (ls_exchange_wrong(exchange, &count)[0] == '\0')
		turn();
	ck_assert_msg(strstr(ls_exchange_wrong(exchange, &count), part) != NULL, "%s",
		ls_exchange_wrong(exchange, &count));
	ck_assert_uint_eq(ups, 0);
	ck_assert_uint_eq(stats().requests, 0);
}

LS_CASE(tls, setup, teardown);

static const struct {
	size_t request, reply;
} sizes[] = { { 1, 1 }, { 500, 100 }, { 2040, 500 }, { 16384, 16384 },
	{ 300000, 60000 }, { 700000, 10 } };

LS_TEST_EACH(tls, requests_and_replies_of_any_size_go_through, sizes)
{
	begin(collector_keys, agent_keys);
	ask(sizes[_i].request, sizes[_i].reply);
	ask(30, 30); /* and the next one */
	ask(sizes[_i].request, sizes[_i].reply);
	ck_assert_str_eq(name, "w-1");
	ck_assert_uint_eq(stats().handshakes, 1);
	ck_assert_uint_eq(ups, 1);
	ck_assert_uint_eq(downs, 0);
}

LS_TEST(tls, revoked_agent_gets_no_further_request_in)
{
	begin(collector_keys, agent_keys);
	ask(30, 30);
	ck_assert_int_eq(ls_keys_revoke(dir, "w-1", ls_clock_wall_ns() / 1000000000,
				 text, sizeof(text)),
		0);
	ck_assert_int_eq(ls_tls_look(collector_keys), 1);
	ck_assert_int_eq(ls_exchange_send(exchange, sent, 30), 0);
	while (stats().refused[LS_INGEST_REFUSED_CERTIFICATE] < 2)
		turn(); /* this connection, and the next one */
	ck_assert_uint_eq(stats().requests, 1);
	issue(LS_TLS_AGENT, "w-1"); /* the agent reads it by itself */
	ask(30, 30);
}

LS_TEST(tls, agent_leaves_a_collector_that_is_revoked)
{
	begin(collector_keys, agent_keys);
	ask(30, 30);
	ck_assert_int_eq(ls_keys_revoke(dir, "collector",
				 ls_clock_wall_ns() / 1000000000, text, sizeof(text)),
		0);
	ck_assert_int_eq(ls_tls_look(agent_keys), 1);
	reply_len = 30;
	ck_assert_int_eq(ls_exchange_send(exchange, sent, 30), 0);
	while (downs == 0)
		turn();
	ck_assert_uint_eq(answers, 1);
	issue(LS_TLS_COLLECTOR, "127.0.0.1");
	ck_assert_int_eq(ls_tls_look(collector_keys), 1);
	ask(30, 30);
}

/* More connections than handshakes may be under way, on which nothing is sent. */
static void
crowd(int *fds, size_t count)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)ls_ingest_port(ingest)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (size_t i = 0; i < count; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(fds[i], (struct sockaddr *)&to, sizeof(to)),
			0);
	}
}

LS_TEST(tls, crowd_of_silent_strangers_neither_ends_nor_keeps_out_an_agent)
{
	const struct ls_exchange_handler handler = { NULL, on_event };
	int fds[LS_TLS_HANDSHAKES_MAX + 20];
	struct ls_exchange *second = exchange;
	char url[64];

	begin(collector_keys, agent_keys);
	ask(30, 30);
	crowd(fds, sizeof(fds) / sizeof(fds[0]));
	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ls_ingest_port(ingest));
	ck_assert_int_eq(ls_exchange_open(loop, url, agent_keys, &handler, &second), 0);
	while (ls_exchange_get_state(second) != LS_EXCHANGE_STATE_UP)
		turn();
	ask(30, 30);
	ck_assert_uint_eq(downs, 0);
	ck_assert_uint_gt(stats().refused[LS_INGEST_REFUSED_BUDGET], 0);
	ls_exchange_close(second);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		(void)close(fds[i]);
}

LS_TEST(tls, agent_resumes_when_it_comes_again)
{
	const struct ls_exchange_handler handler = { NULL, on_event };
	char url[64];

	begin(collector_keys, agent_keys);
	ask(30, 30);
	ls_exchange_close(exchange);
	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ls_ingest_port(ingest));
	ck_assert_int_eq(ls_exchange_open(loop, url, agent_keys, &handler, &exchange),
		0);
	ask(30, 30);
	ck_assert_uint_eq(stats().handshakes, 2);
	ck_assert_uint_eq(stats().resumed, 1);
}

LS_TEST(tls, plain_agent_is_refused_and_knows_why)
{
	begin(collector_keys, NULL);
	wrong("speaks TLS only: give this agent --keys");
	ck_assert_uint_gt(stats().refused[LS_INGEST_REFUSED_PLAIN], 0);
}

LS_TEST(tls, tls_to_a_plain_collector_is_refused_and_both_know_why)
{
	begin(NULL, agent_keys);
	wrong("does not speak TLS: give that collector --keys");
	while (stats().refused[LS_INGEST_REFUSED_TLS] == 0)
		turn();
}
