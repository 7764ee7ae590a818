/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/loop.h"

#include "proto/base/clock.h"
#include "proto/base/log.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/time.h>

static const int loop_signals[] = { SIGTERM, SIGINT, SIGHUP };
#define LOOP_SIGNALS (sizeof(loop_signals) / sizeof(loop_signals[0]))

struct ls_loop {
	struct event_base *base;
	struct event *signals[LOOP_SIGNALS]; /* NULL: not asked for */
	void (*term)(void *arg);
	void (*hup)(void *arg);
	void *signal_arg;
	bool running;
	bool stop;
	bool now_valid; /* the clock was read in this turn */
	uint64_t now_mono_ns;
	int64_t now_wall_ns;
};

struct ls_loop_timer {
	struct ls_loop *loop;
	struct event *event;
	void (*cb)(void *arg);
	void *arg;
	uint64_t due_mono_ns;
	uint64_t period_ns;
};

struct ls_loop *
ls_loop_new(void)
{
	struct ls_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->base = event_base_new();
	if (!loop->base) {
		free(loop);
		return NULL;
	}
	return loop;
}

void
ls_loop_free(struct ls_loop *loop)
{
	if (!loop)
		return;
	for (size_t i = 0; i < LOOP_SIGNALS; i++)
		if (loop->signals[i])
			event_free(loop->signals[i]);
	event_base_free(loop->base);
	free(loop);
}

struct event_base *
ls_loop_base(struct ls_loop *loop)
{
	return loop->base;
}

/*
 * The clock is read at the first question of a turn: not before the wait, where it
 * would be old, and not in turns that never ask. Outside ls_loop_run there are no
 * turns: each question reads.
 */
static void
loop_read_clock(struct ls_loop *loop)
{
	if (loop->now_valid && loop->running)
		return;
	loop->now_mono_ns = ls_clock_mono_ns();
	loop->now_wall_ns = ls_clock_wall_ns();
	loop->now_valid = true;
}

uint64_t
ls_loop_now(struct ls_loop *loop)
{
	loop_read_clock(loop);
	return loop->now_mono_ns;
}

int64_t
ls_loop_wall(struct ls_loop *loop)
{
	loop_read_clock(loop);
	return loop->now_wall_ns;
}

int
ls_loop_run(struct ls_loop *loop)
{
	int rc = 0;

	loop->running = true;
	while (!loop->stop && rc == 0) {
		loop->now_valid = false;
		rc = event_base_loop(loop->base, EVLOOP_ONCE);
	}
	loop->running = false;
	loop->stop = false;
	/* 1: no event is left that could ever stop the loop. */
	return rc < 0 ? -EIO : 0;
}

void
ls_loop_stop(struct ls_loop *loop)
{
	loop->stop = true;
	if (loop->running)
		(void)event_base_loopbreak(loop->base); /* fails only without a base */
}

static void
loop_on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct ls_loop *loop = arg;

	(void)what;
	(sig == SIGHUP ? loop->hup : loop->term)(loop->signal_arg);
}

static int
loop_signal_add(struct ls_loop *loop, int sig, struct event **ret_event)
{
	struct event *ev = evsignal_new(loop->base, sig, loop_on_signal, loop);

	if (!ev)
		return -ENOMEM;
	if (event_add(ev, NULL) != 0) {
		event_free(ev);
		return -ENOMEM;
	}
	*ret_event = ev;
	return 0;
}

int
ls_loop_signals(struct ls_loop *loop, void (*term)(void *arg), void (*hup)(void *arg),
	void *arg)
{
	int rc = 0;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	loop->term = term;
	loop->hup = hup;
	loop->signal_arg = arg;
	for (size_t i = 0; i < LOOP_SIGNALS && rc == 0; i++)
		if (loop_signals[i] == SIGHUP ? hup != NULL : term != NULL)
			rc = loop_signal_add(loop, loop_signals[i], &loop->signals[i]);
	return rc;
}

static void
loop_timer_arm(struct ls_loop_timer *t, uint64_t delay_ns)
{
	uint64_t us = delay_ns / 1000 + (delay_ns % 1000 != 0);
	struct timeval tv = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_usec = (suseconds_t)(us % 1000000),
	};

	if (event_add(t->event, &tv) != 0)
		ls_log(LS_LOG_ERR, "loop", "cannot arm a timer: out of memory");
}

static void
loop_timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct ls_loop_timer *t = arg;

	(void)fd;
	(void)what;
	if (t->period_ns != 0) {
		uint64_t now = ls_loop_now(t->loop);

		/* Due times do not drift; periods missed as a whole are skipped. */
		t->due_mono_ns += t->period_ns;
		if (t->due_mono_ns <= now)
			t->due_mono_ns = now + t->period_ns;
		loop_timer_arm(t, t->due_mono_ns - now);
	}
	t->cb(t->arg); /* last: the callback may free the timer */
}

struct ls_loop_timer *
ls_loop_timer_new(struct ls_loop *loop, void (*cb)(void *arg), void *arg)
{
	struct ls_loop_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->loop = loop;
	t->cb = cb;
	t->arg = arg;
	t->event = evtimer_new(loop->base, loop_timer_fired, t);
	if (!t->event) {
		free(t);
		return NULL;
	}
	return t;
}

void
ls_loop_timer_start(struct ls_loop_timer *t, uint64_t delay_ns, uint64_t period_ns)
{
	t->period_ns = period_ns;
	t->due_mono_ns = ls_loop_now(t->loop) + delay_ns;
	loop_timer_arm(t, delay_ns);
}

void
ls_loop_timer_stop(struct ls_loop_timer *t)
{
	(void)event_del(t->event); /* not armed is fine */
}

void
ls_loop_timer_free(struct ls_loop_timer *t)
{
	if (!t)
		return;
	event_free(t->event);
	free(t);
}
