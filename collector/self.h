/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self - numbers of the collector about itself, as lines of /metrics.
 *
 * Owner:   plain data; a pure function.
 * Units:   base units, in the names.
 * Errors:  out of memory loses lines; evbuffer keeps what it has.
 * Limits:  none.
 * Source:  Prometheus text exposition format 0.0.4.
 */
#ifndef LS_COLLECTOR_SELF_H
#define LS_COLLECTOR_SELF_H

#include <stdint.h>
#include "collector/engine/engine.h"
#include "collector/ingest/ingest.h"
#include "collector/ingest/intake.h"
#include "collector/answer/reader.h"
#include "collector/ingest/session.h"
#include "collector/tidy.h"
#include "storage/write/writer.h"

struct evbuffer;

struct ls_self {
	struct ls_intake_stats intake;
	struct ls_ingest_stats ingest;
	struct ls_session_stats sessions;
	struct ls_engine_stats engine;
	struct ls_dictionaries_stats dictionaries;
	struct ls_fleet_stats fleet;
	struct ls_zoom_stats zoom;
	struct ls_reader_stats reader;
	struct ls_tidy_stats tidy;
	struct ls_write_done done; /* the last news of the writer; without reports */
	uint64_t rings, rings_evicted, write_queue, outbox_lost;
	uint64_t commit_ns, wait_ns; /* sums */
	uint64_t cpu_ns;
	int64_t keys_until_s;
};

/* Appends all lines. */
void ls_self_metrics(const struct ls_self *s, struct evbuffer *out);

#endif
