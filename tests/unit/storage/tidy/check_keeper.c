/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "storage/tidy/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include "proto/base/queue.h"
#include "proto/limits.h"
#include "tests/support/harness.h"

#define ROUNDS 900
#define PATIENCE_NS 3600000000000ull /* only a failure waits so long */

/* Turns tell of themselves by a queue; what they return is set before the keeper
 * starts. */
struct work {
	struct ls_queue *told;
	int rc;
	size_t more; /* turns that say so */
	int nice;
	pthread_t thread;
};

static struct work first, second;
static struct ls_keeper *keeper;

static void
setup(void)
{
	first = (struct work){ .told = ls_queue_new(1024) };
	second = (struct work){ .told = ls_queue_new(1024) };
	ck_assert(first.told != NULL && second.told != NULL);
	keeper = NULL;
}

static void
teardown(void)
{
	ls_keeper_close(keeper);
	ls_queue_free(first.told, NULL);
	ls_queue_free(second.told, NULL);
}

static int
turn(void *arg, bool *ret_more)
{
	struct work *w = arg;

	ck_assert(!*ret_more);
	w->nice = getpriority(PRIO_PROCESS, 0);
	w->thread = pthread_self();
	*ret_more = w->more > 0;
	w->more -= w->more > 0;
	ls_ignore(ls_queue_push(w->told, w)); /* full: the test has seen enough */
	return w->rc;
}

static void
start(size_t count)
{
	const struct ls_keeper_work work[] = { { "first", turn, &first },
		{ "second", turn, &second } };

	ck_assert_int_eq(ls_keeper_open(work, count, &keeper), 0);
}

static void
await(struct work *w)
{
	void *item;

	ck_assert_uint_eq(ls_queue_take_wait(w->told, &item, 1, PATIENCE_NS), 1);
}

LS_CASE(turns, setup, teardown);

LS_TEST(turns, every_kind_of_work_takes_its_turn)
{
	struct ls_keeper_stats stats;

	start(2);
	await(&first);
	await(&second);
	await(&first);
	ls_keeper_stats(keeper, &stats);
	ck_assert_uint_ge(stats.turns, 2);
	ck_assert_uint_eq(stats.failures, 0);
	ck_assert_uint_gt(stats.cpu_ns, 0);
}

LS_TEST(turns, turns_run_on_a_thread_of_low_priority)
{
	int ours = getpriority(PRIO_PROCESS, 0);

	start(1);
	await(&first);
	ls_keeper_close(keeper);
	keeper = NULL;
	ck_assert(!pthread_equal(first.thread, pthread_self()));
	/* 19 is the lowest priority: the kernel cuts there */
	ck_assert_int_eq(first.nice, ours + 10 < 19 ? ours + 10 : 19);
}

/* ROUNDS rounds would take longer than a test may if each waited. */
LS_TEST(turns, more_to_do_is_done_at_once)
{
	size_t i;

	first.more = ROUNDS;
	start(1);
	for (i = 0; i < ROUNDS + 1; i++)
		await(&first);
	ck_assert_uint_gt(ROUNDS * LS_KEEPER_TURN_NS,
		2 * LS_TEST_TIMEOUT_S * 1000000000ull);
}

LS_TEST(turns, a_turn_that_fails_is_counted_and_tried_again)
{
	struct ls_keeper_stats stats;

	first.rc = -ENOSPC;
	first.more = 50; /* of a turn that failed it does not count */
	start(2);
	await(&first);
	await(&second); /* the others go on */
	await(&first);
	ls_keeper_stats(keeper, &stats);
	ck_assert_uint_ge(stats.failures, 1);
	ck_assert_uint_lt(stats.failures, 50);
}

LS_TEST(turns, too_many_kinds_are_refused)
{
	struct ls_keeper_work work[LS_KEEPER_TURNS_MAX + 1] = { { 0 } };

	ck_assert_int_eq(ls_keeper_open(work, LS_KEEPER_TURNS_MAX + 1, &keeper),
		-LS_ELIMIT);
	ck_assert_ptr_null(keeper);
	ls_keeper_close(NULL);
}
