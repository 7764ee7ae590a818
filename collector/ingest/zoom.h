/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zoom - which hosts send every series live, and for how long: more is looked at only
 * where something is suspected.
 *
 *     wanted, and a place free         at its end, still wanted, use below the total
 *   (none) ---------------> zoomed ------------------------------------------+
 *      ^                     |  ^                                             |
 *      +---------------------+  +--------------------- renewed <--------------+
 *        at its end otherwise
 *
 * A zoom lasts LS_ZOOM_MAX_NS and may be renewed while it is wanted, up to
 * LS_ZOOM_TOTAL_NS of use; then the host rests. Use is forgotten LS_ZOOM_REST_NS after
 * the last end. A person may ask for any host, rested or not.
 *
 * Owner:   one thread. Pure: wants and now come in, events go out to the sink.
 * Units:   microseconds since the epoch.
 * Errors:  ls_zoom_ask: -LS_EBUSY when all places are taken.
 * Limits:  LS_ZOOM_HOSTS_MAX hosts at once, LS_ZOOM_RESTING_MAX remembered.
 * Source:  design sections 3.2 and 11.
 */
#ifndef LS_COLLECTOR_ZOOM_H
#define LS_COLLECTOR_ZOOM_H

#include <stddef.h>
#include <stdint.h>
#include "collector/ingest/attention.h"
#include "proto/base/err.h"
#include "storage/db/rows.h"

struct ls_zoom;

struct ls_zoom_stats {
	/* refused: asked for by a person, no place */
	uint64_t begun, renewed, ended, asked, refused;
	uint64_t active; /* now */
	uint64_t waiting; /* wanted, and without a place or resting, at the last turn */
};

/* Told of each begin, renewal and end. */
typedef void ls_zoom_sink(void *arg, const struct ls_store_zoom *event, int64_t t_us);

/* New policy; NULL when out of memory. */
struct ls_zoom *ls_zoom_new(ls_zoom_sink *sink, void *arg);
void ls_zoom_free(struct ls_zoom *z);

/* Decides at a time: what is wanted now, most weighty first. */
void ls_zoom_turn(struct ls_zoom *z, const struct ls_attention_want *wants,
	size_t count, int64_t now_us);

/* A person asks for a host: begins or renews for so long (at most LS_ZOOM_MAX_NS). A
 * renewal has the cause "asked by WHO"; the zoom keeps the cause that it began with. */
int ls_zoom_ask(struct ls_zoom *z, const char *host, const char *who, int64_t for_us,
	int64_t now_us, int64_t *ret_until_us) LS_MUSTCHECK;

/* When the zoom of a host ends; 0: it is not zoomed. */
int64_t ls_zoom_until(const struct ls_zoom *z, const char *host, int64_t now_us);

/* Counters so far. */
void ls_zoom_stats(const struct ls_zoom *z, struct ls_zoom_stats *ret_stats);

#endif
