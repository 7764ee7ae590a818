/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/queue.h"
#include "proto/limits.h"

/* Added to the nice value of the process: a tenth of the writer's share of a busy CPU. */
#define KEEPER_NICE 10

struct ls_keeper {
	/* Set before the thread starts. */
	struct ls_keeper_work work[LS_KEEPER_TURNS_MAX];
	size_t count;
	struct ls_queue *end; /* nothing is pushed: it is closed to wake the thread */
	pthread_t thread;
	bool running; /* of the opener's thread */
	/* The thread's. */
	int said[LS_KEEPER_TURNS_MAX]; /* the last result of each kind of work */
	/* Told by the thread. */
	_Atomic uint64_t turns, failures, cpu_ns;
};

/* One turn of each kind; true if one has more to do. */
static bool
keeper_round(struct ls_keeper *k)
{
	bool more = false;

	for (size_t i = 0; i < k->count && !ls_queue_is_done(k->end); i++) {
		bool again = false;
		int rc = k->work[i].turn(k->work[i].arg, &again);

		if (rc != 0 && rc != k->said[i])
			ls_log(LS_LOG_WARN, "storage", "%s: %s; retrying",
				k->work[i].name, ls_err_text(rc));
		k->said[i] = rc;
		more = more || (rc == 0 && again);
		k->failures += rc != 0;
		k->cpu_ns = ls_clock_thread_ns();
		k->turns++;
	}
	return more;
}

static void *
keeper_main(void *arg)
{
	struct ls_keeper *k = arg;
	bool more = false;
	void *none;

	/* On Linux the nice value is the thread's own, and 0 is the calling one. */
	if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + KEEPER_NICE) !=
		0)
		ls_log(LS_LOG_DEBUG, "storage",
			"cannot lower the priority of the keeper thread");
	while (!ls_queue_is_done(k->end)) {
		(void)ls_queue_take_wait(k->end, &none, 1,
			more ? 0 : LS_KEEPER_TURN_NS);
		more = keeper_round(k);
	}
	return NULL;
}

int
ls_keeper_open(const struct ls_keeper_work *work, size_t count,
	struct ls_keeper **ret_keeper)
{
	struct ls_keeper *k;
	int rc = -ENOMEM;

	if (count > LS_KEEPER_TURNS_MAX)
		return -LS_ELIMIT;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return rc;
	for (size_t i = 0; i < count; i++)
		k->work[i] = work[i];
	k->count = count;
	k->end = ls_queue_new(1);
	if (k->end != NULL)
		rc = ls_queue_start_thread(&k->thread, "keeper", keeper_main, k);
	k->running = rc == 0;
	if (rc == 0)
		*ret_keeper = k;
	else
		ls_keeper_close(k);
	return rc;
}

void
ls_keeper_close(struct ls_keeper *k)
{
	if (k == NULL)
		return;
	if (k->running) {
		ls_queue_close(k->end);
		(void)pthread_join(k->thread, NULL); /* the thread is ours and ends */
	}
	if (k->end != NULL)
		ls_queue_free(k->end, NULL);
	free(k);
}

void
ls_keeper_stats(struct ls_keeper *k, struct ls_keeper_stats *ret_stats)
{
	*ret_stats = (struct ls_keeper_stats){ k->turns, k->failures, k->cpu_ns };
}
