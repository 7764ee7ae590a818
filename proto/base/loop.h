/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop - one libevent base per thread, with one reading of the clock per turn.
 *
 * Owner:   the thread that calls ls_loop_run. Not thread-safe: other threads
 *          send it messages by an ls_queue.
 * Units:   ns.
 * Errors:  0 or -errno.
 * Limits:  none.
 */
#ifndef LS_BASE_LOOP_H
#define LS_BASE_LOOP_H

#include <stdint.h>
#include "proto/base/err.h"

struct event_base;
struct ls_loop;
struct ls_loop_timer;

/* New loop; NULL when out of memory. */
struct ls_loop *ls_loop_new(void);

/* Frees the loop; accepts NULL. Timers must be freed first. */
void ls_loop_free(struct ls_loop *loop);

/* The libevent base, for bufferevents and evhttp. */
struct event_base *ls_loop_base(struct ls_loop *loop);

/* CLOCK_MONOTONIC ns, read once per turn of the loop (callback batch). */
uint64_t ls_loop_now(struct ls_loop *loop);

/* CLOCK_REALTIME ns of the same reading. */
int64_t ls_loop_wall(struct ls_loop *loop);

/*
 * Runs until ls_loop_stop (one before the run ends it at once), or until nothing is
 * left that could stop it. Returns 0 or -errno.
 */
int ls_loop_run(struct ls_loop *loop) LS_MUSTCHECK;

/* Ends ls_loop_run after the running callback. Loop thread only. */
void ls_loop_stop(struct ls_loop *loop);

/*
 * Calls term(arg) on the loop at SIGTERM or SIGINT and hup(arg) at SIGHUP (either may
 * be NULL). SIGPIPE is ignored from here on. Once per process.
 */
int ls_loop_signals(struct ls_loop *loop, void (*term)(void *arg),
	void (*hup)(void *arg), void *arg) LS_MUSTCHECK;

/* New timer, not armed; cb may stop or free it. NULL when out of memory. */
struct ls_loop_timer *ls_loop_timer_new(struct ls_loop *loop, void (*cb)(void *arg),
	void *arg);

/* (Re)arms the timer: fires once after delay_ns, then again every period_ns if that is
 * not 0. */
void ls_loop_timer_start(struct ls_loop_timer *t, uint64_t delay_ns,
	uint64_t period_ns);

/* Disarms; harmless when not armed. */
void ls_loop_timer_stop(struct ls_loop_timer *t);

/* Frees; accepts NULL. */
void ls_loop_timer_free(struct ls_loop_timer *t);

#endif
