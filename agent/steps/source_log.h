/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_log - steps of a job that sends no marks, from the lines of its log
 * (step_line.h).
 *
 * A line tells which step ended, and mostly how long it took; that it ended is known when
 * the line is seen. A step without a duration takes the spacing of lines. So does a step
 * whose duration contradicts the spacing by more than a reading and 20 %: what the spacing
 * is longer is marked as compilation in the first lines of an attempt, else as other.
 * Of several workers in a log only one is followed: the one whose prefix has the rank,
 * else the first prefix. A step that is logged again at once is left out and counted.
 *
 * So the times are uncertain by a reading and by what the job's log holds
 * back; several lines seen together are laid end to end before that. There are no
 * phases and no barriers: nobody can be blamed by such records, they show progress and
 * speed. A step not above the last one begins another attempt. While a ring of the same
 * job and rank is here, the log is not used.
 *
 * The log is a path that the job chose: only the disk thread opens and reads the file, so
 * a file system that does not answer stops nothing but the log.
 *
 * After a restart of the agent it goes on where it was, if that is within
 * LS_STEP_LOG_BACK_BYTES of the file's end; steps that were missed are a gap. The first
 * time it begins at the end of the file.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM, also for a path that is too long. A spool that refuses: those
 *          records are a gap later.
 * Limits:  LS_STEP_LOG_PENDING_MAX lines a reading; LS_LOG_TAIL_READ_MAX_BYTES.
 */
#ifndef LS_AGENT_SOURCE_LOG_H
#define LS_AGENT_SOURCE_LOG_H

#include "agent/collect/source.h"
#include "agent/spool/disk.h"
#include "agent/spool/spool.h"
#include "agent/steps/source_step.h"

#define LS_STEP_LOG_CONFIDENCE 0.9 /* a line is a step; when it ended is less sure */

struct ls_source_log_options {
	const char *path;
	const char *pattern; /* checked before; NULL or "": the built-in formats */
	const char *job; /* "": what ls_source_log_who says */
	int32_t rank; /* -1: likewise */
	struct ls_spool *spool; /* borrowed; NULL: nothing is taken over */
	struct ls_disk *disk; /* borrowed; NULL: the log is read on the loop */
	const struct ls_source_step *steps; /* borrowed: rings go before the log */
};

struct ls_source_log_stats {
	uint64_t records, lost; /* taken over; missing, a gap each */
	uint64_t lines; /* of steps */
	uint64_t refused; /* records the spool did not take */
	uint64_t first; /* not taken: no duration, and no line before */
	uint64_t others, repeated; /* not taken: of another worker; the step again */
	uint64_t marked; /* not taken: a ring of this worker is here */
	uint64_t attempts; /* begun by a step not above the last */
};

/* Makes the source. -ENOMEM. */
int ls_source_log_new(const struct ls_source_log_options *options,
	struct ls_source *ret_source) LS_MUSTCHECK;

/* What is known of this host: used where the options say nothing. job "" or rank -1:
 * not known. */
void ls_source_log_who(const struct ls_source *source, const char *job,
	const char *slice, int32_t rank, int32_t chips);

/* The worker as it is reported; NULL until its first record. */
const struct ls_wire_worker *ls_source_log_worker(const struct ls_source *source);

/* Counters so far; borrowed. */
const struct ls_source_log_stats *ls_source_log_get_stats(
	const struct ls_source *source);

#endif
