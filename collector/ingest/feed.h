/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed - rows of storage into the engine: the same way when they come in and when they
 * are restored.
 *
 * Records are rounded to microseconds (ls_store_record) before the engine sees them:
 * live, restored and replayed ones are the same to the bit.
 *
 * Owner:   the thread of the engine.
 * Units:   microseconds since the epoch.
 * Errors:  none: what the engine refuses, it counts. LS_NO_WORKER is not fed.
 * Limits:  those of the wire.
 */
#ifndef LS_COLLECTOR_FEED_H
#define LS_COLLECTOR_FEED_H

#include <stdint.h>
#include "collector/engine/engine.h"
#include "storage/db/rows.h"

/* Fills in steps and times that the records of a row span: steps->count of them, at
 * least one. */
void ls_feed_span(struct ls_store_item *row, const struct ls_store_steps *steps);

/* Feeds records, as ls_store_record makes them. */
void ls_feed_steps(struct ls_engine *e, uint32_t worker,
	const struct ls_store_steps *steps, int64_t now_us);

/* A job was seen standing still. */
void ls_feed_hang(struct ls_engine *e, const struct ls_store_hang *row, int64_t now_us);

/* Feeds values: of the host if the row has no worker, else of `worker`. */
void ls_feed_counters(struct ls_engine *e, const struct ls_store_counters *row,
	uint32_t worker);

#endif
