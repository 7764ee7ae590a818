/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines - one line of the replay format from one stored thing: text only.
 *
 * Owner:   the caller's buffer.
 * Units:   Unix seconds (microseconds shown) and seconds (nanoseconds shown) in the
 *          text.
 * Errors:  what does not fit sets `full`; the text then ends before the line began.
 * Limits:  LS_REPLAY_LINE_MAX_BYTES a line.
 * Source:  collector/README.md, "Export".
 */
#ifndef LS_COLLECTOR_LINES_H
#define LS_COLLECTOR_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/ring/record.h"
#include "storage/read/query_chunk.h"
#include "storage/db/rows.h"

/* A growing text in a fixed buffer. */
struct ls_lines {
	char *text;
	size_t size, len;
	bool full; /* the last line did not fit, and is not there */
};

/* The host of a rank of the attempt; NULL: not known. */
typedef const char *ls_lines_host_fn(void *arg, int32_t attempt, uint32_t rank);

/* One record, its times on the engine's time line (whole microseconds); peers go by the
 * hosts of their ranks. */
void ls_lines_step(struct ls_lines *l, const struct ls_worker_info *who,
	const struct ls_record *r, ls_lines_host_fn *host_of, void *arg);

/* Counters that came at t_us. who == NULL: those of the host; else of this worker. */
void ls_lines_counters(struct ls_lines *l, const char *job,
	const struct ls_worker_info *who, const struct ls_store_counters *c,
	int64_t t_us);

/* A step was closed at t_us. */
void ls_lines_close(struct ls_lines *l, const struct ls_store_close *c, int64_t t_us);

/* A job was seen standing still at t_us. */
void ls_lines_hang(struct ls_lines *l, const struct ls_store_hang *h, int64_t t_us);

/* Records are lost; reason: enum ls_wire_gap_reason. */
void ls_lines_gap(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	uint64_t count, unsigned reason);

/* The process came to its end; how: enum ls_end_how. */
void ls_lines_end(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	unsigned how);

/* From here on, the worker's clock is known to so many ns. */
void ls_lines_clock(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	int64_t uncertainty_ns);

/*
 * Values of a host by the text of their series, as many as a line takes; returns how
 * many that were, at least one (a value that is no finite number is left out: JSON has
 * none).
 */
size_t ls_lines_series(struct ls_lines *l, const char *job, const char *host,
	int64_t t_us, const char *const *series, const double *value, size_t count);

/* Values of a host that are lost. */
void ls_lines_lost(struct ls_lines *l, const char *job,
	const struct ls_query_lost *lost);

/* A host was looked at more closely, or no more. */
void ls_lines_zoom(struct ls_lines *l, const char *job, const struct ls_store_zoom *z,
	int64_t t_us);

/* The job as a whole: when it ran and how many workers were ever declared. */
void ls_lines_job(struct ls_lines *l, const char *job, size_t workers, int64_t from_us,
	int64_t to_us);

#endif
