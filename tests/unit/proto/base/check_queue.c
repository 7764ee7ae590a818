/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/queue.h"

#include "proto/base/clock.h"
#include "proto/base/loop.h"
#include "tests/support/harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define MS 1000000ull

static int numbers[1000];

static void
setup(void)
{
	for (int i = 0; i < 1000; i++)
		numbers[i] = i;
}

LS_CASE(queue, setup, NULL);

LS_TEST(queue, free_takes_null)
{
	ls_queue_free(NULL, free);
}

LS_TEST(queue, items_come_out_in_order)
{
	struct ls_queue *q = ls_queue_new(3);
	void *got[3];

	/* Round and round, so that the ring wraps at every place. */
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(ls_queue_push(q, &numbers[2 * i]), 0);
		ck_assert_int_eq(ls_queue_push(q, &numbers[2 * i + 1]), 0);
		ck_assert_uint_eq(ls_queue_count(q), 2);
		ck_assert_uint_eq(ls_queue_take(q, got, 1), 1);
		ck_assert_ptr_eq(got[0], &numbers[2 * i]);
		ck_assert_uint_eq(ls_queue_take(q, got, 3), 1);
		ck_assert_ptr_eq(got[0], &numbers[2 * i + 1]);
	}
	ck_assert_uint_eq(ls_queue_take(q, got, 3), 0);
	ls_queue_free(q, NULL);
}

LS_TEST(queue, full_queue_refuses)
{
	struct ls_queue *q = ls_queue_new(2);
	void *got[2];

	ck_assert_int_eq(ls_queue_push(q, &numbers[0]), 0);
	ck_assert_int_eq(ls_queue_push(q, &numbers[1]), 0);
	ck_assert_int_eq(ls_queue_push(q, &numbers[2]), -LS_ELIMIT);
	ck_assert_uint_eq(ls_queue_take(q, got, 2), 2);
	ck_assert_ptr_eq(got[1], &numbers[1]);
	ck_assert_int_eq(ls_queue_push(q, &numbers[2]), 0);
	ls_queue_free(q, NULL);
}

LS_TEST(queue, closed_queue_refuses_but_gives)
{
	struct ls_queue *q = ls_queue_new(2);
	void *got[2];

	ck_assert_int_eq(ls_queue_push(q, &numbers[0]), 0);
	ck_assert(!ls_queue_is_done(q));
	ls_queue_close(q);
	ck_assert_int_eq(ls_queue_push(q, &numbers[1]), -LS_ECLOSED);
	ck_assert(!ls_queue_is_done(q));
	ck_assert_uint_eq(ls_queue_take_wait(q, got, 2, 3600000 * MS), 1);
	ck_assert(ls_queue_is_done(q));
	ck_assert_uint_eq(ls_queue_take_wait(q, got, 2, UINT64_MAX), 0); /* at once */
	ls_queue_free(q, NULL);
}

LS_TEST(queue, open_empty_queue_is_not_done)
{
	struct ls_queue *q = ls_queue_new(2);

	ck_assert(!ls_queue_is_done(q));
	ls_queue_free(q, NULL);
}

static int freed;

static void
count_free(void *item)
{
	freed += *(int *)item;
}

LS_TEST(queue, free_hands_over_what_is_left)
{
	struct ls_queue *q = ls_queue_new(3);
	void *got[1];

	freed = 0;
	for (int i = 1; i <= 3; i++)
		ck_assert_int_eq(ls_queue_push(q, &numbers[i]), 0);
	ck_assert_uint_eq(ls_queue_take(q, got, 1), 1);
	ck_assert_int_eq(ls_queue_push(q, &numbers[100]), 0);
	ls_queue_free(q, count_free);
	ck_assert_int_eq(freed, 2 + 3 + 100);
}

LS_TEST(queue, take_wait_ends_at_its_time)
{
	struct ls_queue *q = ls_queue_new(1);
	uint64_t start = ls_clock_mono_ns();
	void *got[1];

	ck_assert_uint_eq(ls_queue_take_wait(q, got, 1, 5 * MS), 0);
	ck_assert_uint_ge(ls_clock_mono_ns() - start, 5 * MS);
	ck_assert_uint_eq(ls_queue_take_wait(q, got, 1, 0), 0);
	ls_queue_free(q, NULL);
}

LS_TEST(queue, take_many_takes_what_there_is_when_time_is_over)
{
	struct ls_queue *q = ls_queue_new(4);
	uint64_t start = ls_clock_mono_ns();
	void *got[4];

	ck_assert_int_eq(ls_queue_push(q, &numbers[0]), 0);
	ck_assert_int_eq(ls_queue_push(q, &numbers[1]), 0);
	ck_assert_uint_eq(ls_queue_take_many(q, got, 4, 3, 5 * MS), 2);
	ck_assert_uint_ge(ls_clock_mono_ns() - start, 5 * MS);
	ck_assert_ptr_eq(got[1], &numbers[1]);
	ls_queue_free(q, NULL);
}

LS_TEST(queue, take_many_does_not_wait_if_there_are_enough)
{
	struct ls_queue *q = ls_queue_new(4);
	void *got[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(ls_queue_push(q, &numbers[i]), 0);
	ck_assert_uint_eq(ls_queue_take_many(q, got, 2, 3, UINT64_MAX), 2);
	ck_assert_int_eq(ls_queue_push(q, &numbers[4]), 0);
	ls_queue_close(q);
	/* none will follow */
	ck_assert_uint_eq(ls_queue_take_many(q, got, 4, 4, UINT64_MAX), 3);
	ls_queue_free(q, NULL);
}

static void *
push_five(void *arg)
{
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(ls_queue_push(arg, &numbers[i]), 0);
	return NULL;
}

/* Whoever missed the one that makes enough would wait for ever. */
LS_TEST(queue, take_many_is_woken_by_the_one_that_makes_enough)
{
	struct ls_queue *q = ls_queue_new(8);
	void *got[8];

	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		size_t n;

		ck_assert_int_eq(pthread_create(&thread, NULL, push_five, q), 0);
		n = ls_queue_take_many(q, got, 8, 3, UINT64_MAX);
		ck_assert_uint_ge(n, 3);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_uint_eq(ls_queue_take_many(q, got, 8, 1, 0), 5 - n);
	}
	ls_queue_free(q, NULL);
}

#define PRODUCERS 4
#define EACH 5000

static void *
produce(void *arg)
{
	struct ls_queue *q = arg;

	for (int i = 0; i < EACH; i++) {
		int *item = malloc(sizeof(*item));

		ck_assert_ptr_nonnull(item);
		*item = i;
		while (ls_queue_push(q, item) == -LS_ELIMIT)
			(void)sched_yield();
	}
	return NULL;
}

static void
start_producers(struct ls_queue *q, pthread_t threads[PRODUCERS])
{
	for (int i = 0; i < PRODUCERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, q), 0);
}

static void
join_producers(pthread_t threads[PRODUCERS])
{
	for (int i = 0; i < PRODUCERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

LS_TEST(queue, many_producers_lose_nothing)
{
	struct ls_queue *q = ls_queue_new(64);
	pthread_t threads[PRODUCERS];
	size_t total = 0;
	long sum = 0;

	start_producers(q, threads);
	while (total < PRODUCERS * EACH) {
		void *got[16];
		size_t n = ls_queue_take_wait(q, got, 16, 60000 * MS);

		ck_assert_uint_gt(n, 0);
		for (size_t i = 0; i < n; i++) {
			sum += *(int *)got[i];
			free(got[i]);
		}
		total += n;
	}
	join_producers(threads);
	ck_assert_int_eq(sum, (long)PRODUCERS * EACH * (EACH - 1) / 2);
	ls_queue_free(q, NULL);
}

struct consumer {
	struct ls_queue *q;
	struct ls_loop *loop;
	size_t total, wakes, stop_at;
};

static void
consume(void *arg)
{
	struct consumer *c = arg;
	void *got[16];
	size_t n;

	c->wakes++;
	while ((n = ls_queue_take(c->q, got, 16)) > 0) {
		for (size_t i = 0; i < n; i++)
			free(got[i]);
		c->total += n;
	}
	if (c->total >= c->stop_at || ls_queue_is_done(c->q))
		ls_loop_stop(c->loop);
}

LS_TEST(queue, watch_wakes_the_loop)
{
	struct consumer c = { .q = ls_queue_new(64), .loop = ls_loop_new() };
	pthread_t threads[PRODUCERS];

	c.stop_at = PRODUCERS * EACH;
	ck_assert_int_eq(ls_queue_watch(c.q, c.loop, consume, &c), 0);
	start_producers(c.q, threads);
	ck_assert_int_eq(ls_loop_run(c.loop), 0);
	join_producers(threads);
	ck_assert_uint_eq(c.total, PRODUCERS * EACH);
	ls_queue_free(c.q, NULL);
	ls_loop_free(c.loop);
}

LS_TEST(queue, watch_sees_what_came_before)
{
	struct consumer c = {
		.q = ls_queue_new(4), .loop = ls_loop_new(), .stop_at = 2
	};

	ck_assert_int_eq(ls_queue_push(c.q, malloc(1)), 0);
	ck_assert_int_eq(ls_queue_push(c.q, malloc(1)), 0);
	ck_assert_int_eq(ls_queue_watch(c.q, c.loop, consume, &c), 0);
	ck_assert_int_eq(ls_loop_run(c.loop), 0);
	ck_assert_uint_eq(c.total, 2);
	ck_assert_uint_eq(c.wakes, 1);
	ls_queue_free(c.q, NULL);
	ls_loop_free(c.loop);
}

LS_TEST(queue, close_wakes_the_loop)
{
	struct consumer c = {
		.q = ls_queue_new(4), .loop = ls_loop_new(), .stop_at = 1
	};

	ck_assert_int_eq(ls_queue_watch(c.q, c.loop, consume, &c), 0);
	ls_queue_close(c.q);
	ck_assert_int_eq(ls_loop_run(c.loop), 0);
	ck_assert_uint_eq(c.total, 0);
	ls_queue_free(c.q, NULL);
	ls_loop_free(c.loop);
}

static void *
wait_for_close(void *arg)
{
	void *got[1];

	ck_assert_uint_eq(ls_queue_take_wait(arg, got, 1, 60000 * MS), 0);
	return NULL;
}

LS_TEST(queue, close_wakes_a_waiting_thread)
{
	struct ls_queue *q = ls_queue_new(1);
	uint64_t start = ls_clock_mono_ns();
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_close, q), 0);
	ls_queue_close(q);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_lt(ls_clock_mono_ns() - start, 30000 * MS);
	ls_queue_free(q, NULL);
}

static void *
waits_for_the_end(void *arg)
{
	struct ls_queue *q = arg;
	sigset_t blocked;
	void *none;

	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
	ck_assert_int_eq(sigismember(&blocked, SIGTERM), 1);
	ck_assert_uint_eq(ls_queue_take_wait(q, &none, 1, 10000 * MS), 0);
	return q;
}

LS_TEST(queue, thread_has_its_name_and_takes_no_signals)
{
	struct ls_queue *q = ls_queue_new(1);
	char name[16];
	sigset_t blocked;
	pthread_t thread;
	void *end = NULL;

	ck_assert_int_eq(ls_queue_start_thread(&thread, "tester", waits_for_the_end, q),
		0);
	ck_assert_int_eq(pthread_getname_np(thread, name, sizeof(name)), 0);
	ck_assert_str_eq(name, "tester");
	ls_queue_close(q);
	ck_assert_int_eq(pthread_join(thread, &end), 0);
	ck_assert_ptr_eq(end, q);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
	ck_assert_int_eq(sigismember(&blocked, SIGTERM), 0); /* ours are as before */
	ls_queue_free(q, NULL);
}
