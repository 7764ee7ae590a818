/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue - bounded queue of pointers between threads: many producers, one consumer.
 *
 * Owner:   shared; push from any thread, the rest from the consumer's thread.
 * Units:   capacity in items.
 * Errors:  -LS_ELIMIT when full (the caller keeps the item and decides), -LS_ECLOSED
 *          after close.
 * Limits:  the capacity given at construction, from proto/limits.h.
 */
#ifndef LS_BASE_QUEUE_H
#define LS_BASE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_loop;
struct ls_queue;

/* New queue of at most `capacity` items; NULL when out of memory. */
struct ls_queue *ls_queue_new(size_t capacity);

/*
 * Frees the queue and calls free_item (may be NULL) on what is left; accepts NULL.
 * Before the loop that watches it is freed.
 */
void ls_queue_free(struct ls_queue *q, void (*free_item)(void *item));

/* Appends; wakes the consumer if the queue was empty, or has what it waits for.
 * -LS_ELIMIT or -LS_ECLOSED: the caller keeps item. */
int ls_queue_push(struct ls_queue *q, void *item) LS_MUSTCHECK;

/* Takes up to max items into items without waiting; returns how many. */
size_t ls_queue_take(struct ls_queue *q, void **items, size_t max);

/* As ls_queue_take, but waits up to timeout_ns for the first. For threads without a
 * loop. */
size_t ls_queue_take_wait(struct ls_queue *q, void **items, size_t max,
	uint64_t timeout_ns);

/*
 * As ls_queue_take_wait, but waits for at_least items: whoever pushes wakes the
 * consumer once for all of them. When the time is over it takes what there is.
 */
size_t ls_queue_take_many(struct ls_queue *q, void **items, size_t max, size_t at_least,
	uint64_t timeout_ns);

/* Calls cb(arg) on the loop whenever the queue goes from empty to non-empty; cb takes
 * until empty. */
int ls_queue_watch(struct ls_queue *q, struct ls_loop *loop, void (*cb)(void *arg),
	void *arg) LS_MUSTCHECK;

/* Refuses further pushes and wakes a waiting consumer; what is queued can still be
 * taken. */
void ls_queue_close(struct ls_queue *q);

/* True when closed and nothing is left: the consumer may end. */
bool ls_queue_is_done(struct ls_queue *q);

/* Items waiting now (approximate while others push). */
size_t ls_queue_count(struct ls_queue *q);

/* Starts a thread at one end of a queue; its name is for people who look. It takes no
 * signals: those are the loop's. A negative errno. */
int ls_queue_start_thread(pthread_t *ret_thread, const char *name,
	void *(*main)(void *), void *arg) LS_MUSTCHECK;

#endif
