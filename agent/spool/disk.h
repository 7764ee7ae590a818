/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - a thread for file operations that can block. The loop hands over jobs and goes
 * on; a job's result comes back as a callback. The agent has two: one for its own state
 * (spool, minute file), one for paths that a job chose (its log), so that a file system
 * of a job that does not answer delays nothing else.
 *
 *     loop: ls_disk_run(job) ──queue──> disk thread: job->work() ──queue──> loop:
 *     job->done()
 *
 * An owner has one job, and neither runs it again nor touches what its work uses until
 * done is called. So both queues are bounded by the number of owners, and no lock is
 * needed. Without a disk (NULL) work and done run at once: for tools and tests.
 *
 * Owner:   the agent loop thread.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  0, -ENOMEM, -errno of pthread_create, -ETIMEDOUT.
 * Limits:  LS_DISK_JOBS_MAX jobs; LS_DISK_STALL_NS until a job is stalled.
 */
#ifndef LS_AGENT_DISK_H
#define LS_AGENT_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/base/loop.h"

struct ls_disk;

/* What the disks of an agent are for. */
enum ls_disk_use { LS_DISK_STATE, LS_DISK_JOBS, LS_DISK_COUNT };

struct ls_disk_job {
	/* on the disk thread; may block, and may not touch the loop's state */
	void (*work)(void *arg);
	/* on the loop; may run the job again */
	void (*done)(void *arg);
	void *arg;
	bool busy; /* from ls_disk_run until done is called */
};

/* Starts the thread for files at or below path (borrowed); done callbacks run on the
 * loop. */
int ls_disk_start(struct ls_loop *loop, const char *path,
	struct ls_disk **ret_disk) LS_MUSTCHECK;

/* The path. */
const char *ls_disk_path(const struct ls_disk *disk);

/* Runs a job that is not busy. With NULL its work and done have run on return. */
void ls_disk_run(struct ls_disk *disk, struct ls_disk_job *job);

/* How long the oldest unfinished job has been waiting; 0: none for LS_DISK_STALL_NS. */
uint64_t ls_disk_stalled_ns(const struct ls_disk *disk, uint64_t now_mono_ns);

/*
 * Finishes all jobs, those included that their done callbacks run, and ends the thread.
 * Accepts NULL. -ETIMEDOUT: a file operation still blocks after patience_ns. Then
 * neither the disk nor the owners of its jobs may be freed; the process must exit.
 */
int ls_disk_stop(struct ls_disk *disk, uint64_t patience_ns) LS_MUSTCHECK;

#endif
