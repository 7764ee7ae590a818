/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/fake_collector.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/support/harness.h"

#define LOOK_NS 5000000ull

static struct {
	nng_socket socket;
	pthread_t thread;
	atomic_bool running;
	atomic_uint reports;
	fake_collector_answer *answer;
} fake;

static void *
collector_run(void *arg)
{
	struct ls_arena *arena = NULL;
	struct ls_wire_report r;
	const char *why;
	nng_msg *msg;

	(void)arg;
	while (atomic_load(&fake.running)) {
		uint8_t *buf = NULL;
		size_t len;

		if (nng_recvmsg(fake.socket, &msg, 0) != 0)
			continue;
		ck_assert_int_eq(ls_wire_report_unpack_in(nng_msg_body(msg),
					 nng_msg_len(msg), &arena, &r, &why),
			0);
		nng_msg_free(msg);
		len = fake.answer(atomic_load(&fake.reports), &r, &buf);
		atomic_fetch_add(&fake.reports, 1);
		if (len > 0)
			(void)nng_send(fake.socket, buf, len,
				0); /* the agent may be gone */
		free(buf);
	}
	ls_arena_free(arena);
	return NULL;
}

void
fake_collector_start(char *url, size_t size, fake_collector_answer *answer)
{
	nng_listener listener;
	int port;

	fake.answer = answer;
	ck_assert_int_eq(nng_rep0_open(&fake.socket), 0);
	ck_assert_int_eq(nng_socket_set_ms(fake.socket, NNG_OPT_RECVTIMEO, 20), 0);
	if (url[0] == '\0') {
		ck_assert_int_eq(
			nng_listen(fake.socket, "tcp://127.0.0.1:0", &listener, 0), 0);
		ck_assert_int_eq(
			nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port),
			0);
		(void)snprintf(url, size, "tcp://127.0.0.1:%d", port);
	} else {
		ck_assert_int_eq(nng_listen(fake.socket, url, NULL, 0), 0);
	}
	atomic_store(&fake.running, true);
	ck_assert_int_eq(pthread_create(&fake.thread, NULL, collector_run, NULL), 0);
}

void
fake_collector_stop(void)
{
	if (!atomic_exchange(&fake.running, false))
		return;
	ck_assert_int_eq(pthread_join(fake.thread, NULL), 0);
	ck_assert_int_eq(nng_close(fake.socket), 0);
}

unsigned
fake_collector_reports(void)
{
	return atomic_load(&fake.reports);
}

void
fake_collector_forget(void)
{
	atomic_store(&fake.reports, 0);
}

/* --- the loop ------------------------------------------------------------- */

struct until {
	struct ls_loop *loop;
	bool (*cond)(void);
};

static void
until_look(void *arg)
{
	struct until *u = arg;

	if (u->cond == NULL || u->cond())
		ls_loop_stop(u->loop);
}

static void
until_run(struct until u, uint64_t first_ns)
{
	struct ls_loop_timer *watch = ls_loop_timer_new(u.loop, until_look, &u);

	ck_assert_ptr_nonnull(watch);
	ls_loop_timer_start(watch, first_ns, LOOK_NS);
	ck_assert_int_eq(ls_loop_run(u.loop), 0);
	ls_loop_timer_free(watch);
}

void
fake_collector_until(struct ls_loop *loop, bool (*cond)(void))
{
	until_run((struct until){ loop, cond }, 0);
}

void
fake_collector_turn(struct ls_loop *loop, uint64_t for_ns)
{
	until_run((struct until){ loop, NULL }, for_ns);
}
