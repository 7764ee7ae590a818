/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export - a job's stored records as lines of the replay format.
 *
 * One pass to learn when the job ran, one to write; memory does not grow with the job.
 * Lines come in the order in which the collector met what they say. Names are sorted;
 * times have microseconds, as the engine saw them; numbers read back to the same bits.
 *
 * Owner:   one thread (the reader).
 * Units:   Unix seconds and seconds in the lines.
 * Errors:  -LS_EUNKNOWN no such job; -ECANCELED the sink wants no more; those of
 *          storage/read/query.h. A day file that cannot be read is logged and left out.
 * Limits:  LS_EXPORT_PIECE_BYTES a piece (LS_REPLAY_LINE_MAX_BYTES a line).
 * Source:  collector/README.md, "Export".
 */
#ifndef LS_COLLECTOR_EXPORT_H
#define LS_COLLECTOR_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include "proto/base/err.h"

/* Takes a piece of whole lines; false: no more. */
typedef bool ls_export_sink(void *arg, const char *text, size_t len);

/*
 * Writes all of a job below a state directory; with `counters` also every stored series
 * of its hosts, and what of them is lost, at the end.
 */
int ls_export_job(const char *dir, const char *job, bool counters, ls_export_sink *sink,
	void *arg) LS_MUSTCHECK;

#endif
