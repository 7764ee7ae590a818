/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/disk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "proto/base/clock.h"
#include "proto/base/queue.h"
#include "proto/limits.h"

struct ls_disk {
	struct ls_loop *loop;
	const char *path;
	struct ls_queue *asked; /* to the thread */
	struct ls_queue *finished; /* to the loop */
	struct ls_queue *ended; /* to ls_disk_stop: the thread is over */
	pthread_t thread;
	bool is_ended;
	unsigned jobs; /* asked and not done */
	uint64_t since_ns; /* the disk has been busy without a break */
};

static void *
disk_main(void *arg)
{
	struct ls_disk *d = arg;
	void *item;

	while (!ls_queue_is_done(d->asked)) {
		struct ls_disk_job *job;

		if (ls_queue_take_wait(d->asked, &item, 1, UINT64_MAX) == 0)
			continue;
		job = item;
		job->work(job->arg);
		ls_ignore(ls_queue_push(d->finished, job)); /* as many as asked fit */
	}
	ls_ignore(ls_queue_push(d->ended, d)); /* the only one */
	return NULL;
}

static void
disk_job_done(struct ls_disk *d, struct ls_disk_job *job)
{
	d->jobs--;
	d->since_ns = d->jobs > 0 ? ls_loop_now(d->loop) : 0;
	job->busy = false;
	job->done(job->arg);
}

static void
disk_on_finished(void *arg)
{
	struct ls_disk *d = arg;
	void *item;

	while (ls_queue_take(d->finished, &item, 1) == 1)
		disk_job_done(d, item);
}

static void
disk_free(struct ls_disk *d)
{
	ls_queue_free(d->asked, NULL);
	ls_queue_free(d->finished, NULL);
	ls_queue_free(d->ended, NULL);
	free(d);
}

int
ls_disk_start(struct ls_loop *loop, const char *path, struct ls_disk **ret_disk)
{
	struct ls_disk *d = calloc(1, sizeof(*d));
	int rc = -ENOMEM;

	if (d == NULL)
		return -ENOMEM;
	d->loop = loop;
	d->path = path;
	d->asked = ls_queue_new(LS_DISK_JOBS_MAX);
	d->finished = ls_queue_new(LS_DISK_JOBS_MAX);
	d->ended = ls_queue_new(1);
	if (d->asked != NULL && d->finished != NULL && d->ended != NULL)
		rc = ls_queue_watch(d->finished, loop, disk_on_finished, d);
	if (rc == 0)
		rc = ls_queue_start_thread(&d->thread, "disk", disk_main, d);
	if (rc == 0)
		*ret_disk = d;
	else
		disk_free(d);
	return rc;
}

void
ls_disk_run(struct ls_disk *d, struct ls_disk_job *job)
{
	LS_ASSERT(!job->busy);
	job->busy = true;
	if (d == NULL) {
		job->work(job->arg);
		job->busy = false;
		job->done(job->arg);
		return;
	}
	if (d->jobs++ == 0)
		d->since_ns = ls_loop_now(d->loop);
	/* An owner has one job, and there are fewer owners than places. */
	LS_ASSERT(ls_queue_push(d->asked, job) == 0);
}

uint64_t
ls_disk_stalled_ns(const struct ls_disk *d, uint64_t now_mono_ns)
{
	if (d == NULL || d->jobs == 0 || now_mono_ns < d->since_ns ||
		now_mono_ns - d->since_ns < LS_DISK_STALL_NS)
		return 0;
	return now_mono_ns - d->since_ns;
}

const char *
ls_disk_path(const struct ls_disk *d)
{
	return d->path;
}

static void
disk_wait_ended(struct ls_disk *d, uint64_t for_ns)
{
	void *item;

	if (!d->is_ended)
		d->is_ended = ls_queue_take_wait(d->ended, &item, 1, for_ns) == 1;
}

int
ls_disk_stop(struct ls_disk *d, uint64_t patience_ns)
{
	uint64_t now = ls_clock_mono_ns(), until = now + patience_ns;

	if (d == NULL)
		return 0;
	/* The loop does not run any more: its queue is read here. */
	for (disk_on_finished(d); d->jobs > 0 && now < until; disk_on_finished(d)) {
		disk_wait_ended(d, LS_DISK_LOOK_NS); /* a pause */
		now = ls_clock_mono_ns();
	}
	ls_queue_close(d->asked);
	if (d->jobs == 0)
		disk_wait_ended(d, patience_ns + LS_DISK_LOOK_NS);
	if (!d->is_ended)
		return -ETIMEDOUT;
	(void)pthread_join(d->thread, NULL); /* it has ended */
	disk_free(d);
	return 0;
}
