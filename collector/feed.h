/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed - rows of storage into the engine: the same way when they come in and when they are restored.
 *
 * Times are rounded to microseconds here, before the engine sees them: live, restored and replayed
 * records are the same to the bit.
 *
 * Owner:   the thread of the engine.
 * Units:   microseconds since the epoch; sender's monotonic ns in items.
 * Errors:  none: what the engine refuses, it counts. LS_NO_WORKER is not fed.
 * Limits:  those of the wire.
 */
#ifndef LS_COLLECTOR_FEED_H
#define LS_COLLECTOR_FEED_H

#include <stdint.h>
#include "collector/engine.h"
#include "proto/wire.h"
#include "storage/rows.h"

/* A sender's time in microseconds since the epoch, rounded. */
int64_t ls_feed_us(const struct ls_store_map *map, int64_t t_mono_ns);

/* The record with its times on the engine's time line. */
void ls_feed_record(const struct ls_store_map *map, const struct ls_record *from,
	struct ls_record *ret_record);

/* Fills in steps and times that the records of a row (of STEPS) span. */
void ls_feed_span(struct ls_store_item *row, const struct ls_wire_item *item);

/* Feeds the records of a row, which are some of the item's. */
void ls_feed_steps(struct ls_engine *e, uint32_t worker, const struct ls_store_item *row,
	const struct ls_wire_item *item, int64_t now_us);

/* Records are lost. */
void ls_feed_gap(struct ls_engine *e, uint32_t worker, uint64_t count, int64_t now_us);
/* The process came to its end. */
void ls_feed_end(struct ls_engine *e, uint32_t worker, int crashed, int64_t now_us);

/* Feeds values: of the host if the row has no worker, else of `worker`. */
void ls_feed_counters(struct ls_engine *e, const struct ls_store_counters *row, uint32_t worker);

#endif
