/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox - what the engine says (closings, standstills, findings), and zooms, on its
 * way to the writer.
 *
 * The engine speaks while it is fed. Its words are kept until the rows that caused them
 * have been handed to the writer, so that in storage the cause stands before the
 * effect.
 *
 * Owner:   the loop thread.
 * Units:   microseconds since the epoch.
 * Errors:  none to the engine: what cannot be kept or pushed is counted and logged.
 * Limits:  the writer's queue.
 */
#ifndef LS_COLLECTOR_OUTBOX_H
#define LS_COLLECTOR_OUTBOX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/engine.h"
#include "storage/db/rows.h"

struct ls_outbox;
struct ls_writer;

/* New outbox; NULL when out of memory. */
struct ls_outbox *ls_outbox_new(struct ls_writer *writer);
void ls_outbox_free(struct ls_outbox *o);

/* The sink to give to the engine. */
struct ls_engine_sink ls_outbox_sink(struct ls_outbox *o);

/* While muted, what the engine says is let go: it is in storage already (restore). */
void ls_outbox_mute(struct ls_outbox *o, bool muted);

/* Puts one finding in, as if the engine had said it; history: also as an event. */
void ls_outbox_finding(struct ls_outbox *o, const char *id, const char *event,
	int64_t t_us, json_t *finding, bool history);

/* Puts a zoom in. */
void ls_outbox_zoom(struct ls_outbox *o, const struct ls_store_zoom *event,
	int64_t t_us);

/* Hands all that is kept to the writer, in order. */
void ls_outbox_flush(struct ls_outbox *o);

/* Messages lost because memory or the writer's queue was full. */
uint64_t ls_outbox_lost(const struct ls_outbox *o);

#endif
