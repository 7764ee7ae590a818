/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/loop.h"

#include "tests/support/harness.h"

#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <unistd.h>

#define MS 1000000ull

static struct ls_loop *loop;

static void
setup(void)
{
	loop = ls_loop_new();
	ck_assert_ptr_nonnull(loop);
}

static void
teardown(void)
{
	ls_loop_free(loop);
	loop = NULL;
}

struct probe {
	struct ls_loop_timer *timer;
	int calls;
	int stop_after;
	uint64_t at[8];
};

static void
probe_cb(void *arg)
{
	struct probe *p = arg;

	p->at[p->calls] = ls_loop_now(loop);
	if (++p->calls == p->stop_after)
		ls_loop_stop(loop);
}

LS_CASE(loop, setup, teardown);

LS_TEST(loop, free_takes_null)
{
	ls_loop_free(NULL);
	ls_loop_timer_free(NULL);
}

LS_TEST(loop, run_ends_when_nothing_is_left)
{
	ck_assert_int_eq(ls_loop_run(loop), 0);
}

LS_TEST(loop, stop_before_run_ends_it_at_once)
{
	struct probe p = { .stop_after = 1 };

	p.timer = ls_loop_timer_new(loop, probe_cb, &p);
	ls_loop_timer_start(p.timer, 0, 0);
	ls_loop_stop(loop);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0); /* and it was used up by that */
	ck_assert_int_eq(p.calls, 1);
	ls_loop_timer_free(p.timer);
}

LS_TEST(loop, timer_fires_once_not_early)
{
	struct probe p = { 0 };
	uint64_t start = ls_loop_now(loop);

	p.timer = ls_loop_timer_new(loop, probe_cb, &p);
	ls_loop_timer_start(p.timer, 20 * MS, 0);
	/* ends: a timer that fired is no event */
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 1);
	/* libevent counts in the coarse clock of the kernel, whose tick may be 10 ms.
	 */
	ck_assert_uint_ge(p.at[0] + 10 * MS, start + 20 * MS);
	ls_loop_timer_free(p.timer);
}

LS_TEST(loop, timer_repeats_without_drift)
{
	struct probe p = { .stop_after = 5 };
	uint64_t start = ls_loop_now(loop);

	p.timer = ls_loop_timer_new(loop, probe_cb, &p);
	ls_loop_timer_start(p.timer, 0, 10 * MS);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 5);
	ck_assert_uint_ge(p.at[4] + 10 * MS, start + 40 * MS);
	ls_loop_timer_free(p.timer);
}

LS_TEST(loop, timer_started_again_forgets_the_first)
{
	struct probe p = { 0 };

	p.timer = ls_loop_timer_new(loop, probe_cb, &p);
	ls_loop_timer_start(p.timer, 3600000 * MS, 0);
	ls_loop_timer_start(p.timer, 0, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 1);
	ls_loop_timer_free(p.timer);
}

LS_TEST(loop, timer_stopped_does_not_fire)
{
	struct probe p = { 0 };

	p.timer = ls_loop_timer_new(loop, probe_cb, &p);
	ls_loop_timer_stop(p.timer); /* not armed: harmless */
	ls_loop_timer_start(p.timer, 0, 1);
	ls_loop_timer_stop(p.timer);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 0);
	ls_loop_timer_free(p.timer);
}

static void
free_itself(void *arg)
{
	struct probe *p = arg;

	p->calls++;
	ls_loop_timer_free(p->timer);
}

LS_TEST(loop, timer_may_free_itself)
{
	struct probe p = { 0 };

	p.timer = ls_loop_timer_new(loop, free_itself, &p);
	ls_loop_timer_start(p.timer, 0, 1);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 1);
}

static void
stop_itself(void *arg)
{
	struct probe *p = arg;

	p->calls++;
	ls_loop_timer_stop(p->timer);
}

LS_TEST(loop, timer_may_stop_itself)
{
	struct probe p = { 0 };

	p.timer = ls_loop_timer_new(loop, stop_itself, &p);
	ls_loop_timer_start(p.timer, 0, 1);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(p.calls, 1);
	ls_loop_timer_free(p.timer);
}

/* Burns a little time inside a turn: the turn's clock must not see it. */
static void
turn_cb(void *arg)
{
	uint64_t *seen = arg;
	struct timeval tv = { .tv_usec = 2000 };

	seen[0] = ls_loop_now(loop);
	ck_assert_int_gt(ls_loop_wall(loop), 0);
	(void)select(0, NULL, NULL, NULL, &tv);
	seen[1] = ls_loop_now(loop);
}

LS_TEST(loop, clock_is_read_once_a_turn)
{
	uint64_t seen[2];
	struct ls_loop_timer *t = ls_loop_timer_new(loop, turn_cb, seen);

	ls_loop_timer_start(t, 0, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_uint_eq(seen[0], seen[1]);
	ck_assert_uint_gt(ls_loop_now(loop), seen[1]); /* outside: read each time */
	ls_loop_timer_free(t);
}

LS_TEST(loop, clock_is_read_anew_each_turn)
{
	struct probe p = { .stop_after = 3 };

	p.timer = ls_loop_timer_new(loop, probe_cb, &p);
	ls_loop_timer_start(p.timer, 0, 1 * MS);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_uint_gt(p.at[1], p.at[0]);
	ck_assert_uint_gt(p.at[2], p.at[1]);
	ls_loop_timer_free(p.timer);
}

struct signals {
	int terms, hups;
};

static void
on_term(void *arg)
{
	struct signals *got = arg;

	if (++got->terms == 2)
		ls_loop_stop(loop);
	else
		(void)raise(SIGINT);
}

static void
on_hup(void *arg)
{
	struct signals *got = arg;

	got->hups++;
	(void)raise(SIGTERM);
}

LS_TEST(loop, signals_come_to_the_loop)
{
	struct signals got = { 0 };

	ck_assert_int_eq(ls_loop_signals(loop, on_term, on_hup, &got), 0);
	(void)raise(SIGPIPE); /* ignored from here on */
	(void)raise(SIGHUP);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_int_eq(got.hups, 1);
	ck_assert_int_eq(got.terms, 2);
}

LS_TEST(loop, signals_may_be_left_alone)
{
	struct sigaction before, after;

	ck_assert_int_eq(sigaction(SIGHUP, NULL, &before), 0);
	ck_assert_int_eq(ls_loop_signals(loop, NULL, NULL, NULL), 0);
	ck_assert_int_eq(sigaction(SIGHUP, NULL, &after), 0);
	ck_assert(before.sa_handler == after.sa_handler);
}

static void
on_base(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

LS_TEST(loop, base_takes_events_of_libevent)
{
	struct timeval now = { 0 };
	bool called = false;

	ck_assert_int_eq(event_base_once(ls_loop_base(loop), -1, EV_TIMEOUT, on_base,
				 &called, &now),
		0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert(called);
}
