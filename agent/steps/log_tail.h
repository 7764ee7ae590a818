/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_tail - follows a growing file line by line, as tail -F does.
 *
 * A file that is moved away is read to its end, then the one that has its name now,
 * from the start. One that became shorter is read from its start. One that is not there
 * may come. A line longer than the maximum is cut: its start is told, the rest is not.
 *
 * Owner:   one thread at a time; blocks as the file system does.
 * Units:   bytes.
 * Errors:  what open and read say is in the stats.
 * Limits:  LS_LOG_TAIL_LINE_MAX_BYTES a line, LS_LOG_TAIL_READ_MAX_BYTES a reading. More
 *          than LS_LOG_TAIL_BEHIND_MAX_BYTES behind (of a file that was moved away:
 *          LS_STEP_LOG_BACK_BYTES), all but the last LS_STEP_LOG_BACK_BYTES is skipped.
 * Source:  none.
 */
#ifndef LS_AGENT_LOG_TAIL_H
#define LS_AGENT_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_log_tail;

/* A line without its newline; it may hold anything. */
typedef void ls_log_tail_each(void *arg, const char *line, size_t len);

struct ls_log_tail_stats {
	uint64_t bytes, lines, cut; /* read; cut: longer than the maximum */
	uint64_t skipped; /* bytes, to catch up */
	uint64_t rotated, truncated;
	/* of the last reading: 0, -errno; -LS_ERANGE no regular file */
	int error;
	bool open;
};

/*
 * Follows the file at path. The first one is read from back_bytes before its end (0:
 * the end; from its start if it is shorter; one that comes later, too), but the line
 * that begins before that is not told. NULL when out of memory or if the path is too
 * long.
 */
struct ls_log_tail *ls_log_tail_new(const char *path, uint64_t back_bytes,
	ls_log_tail_each *each, void *arg);
void ls_log_tail_free(struct ls_log_tail *t);

/* Reads what is new. True if that was all there is for now. */
bool ls_log_tail_read(struct ls_log_tail *t);

/* Counters so far; borrowed. */
const struct ls_log_tail_stats *ls_log_tail_get_stats(const struct ls_log_tail *t);

#endif
