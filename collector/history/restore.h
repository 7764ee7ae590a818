/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore - at start: from storage back into engine, sessions and rings.
 *
 * Findings are seeded and the kept baselines are loaded; then the rows of today and yesterday are fed in the order in
 * which they came, with the steps closed where they were closed, so that detectors go
 * on where they were. What the engine says meanwhile is not stored again; a finding
 * that ends up other than stored is.
 *
 * Owner:   the loop thread, before anything is served.
 * Units:   microseconds since the epoch.
 * Errors:  -ENOMEM; -LS_ELIMIT. Rows or files that do not read are logged, counted and
 *          passed over.
 * Limits:  LS_RESTORE_MAX_RECORDS step records, the newest.
 */
#ifndef LS_COLLECTOR_RESTORE_H
#define LS_COLLECTOR_RESTORE_H

#include <stdint.h>
#include "collector/ingest/core.h"

/* The key under which storage has the bytes of ls_engine_reference. */
#define LS_RESTORE_REFERENCE "engine_reference"

struct ls_restore_stats {
	uint64_t findings, agents, workers, rings, records, closes, counters,
		dictionaries, hosts, bad;
	int64_t next_worker_id;
};

/* Does all of it, from the state directory; *ret_stats says how much there was. */
int ls_restore(const char *dir, const struct ls_core *core, int64_t now_us,
	struct ls_restore_stats *ret_stats) LS_MUSTCHECK;

#endif
