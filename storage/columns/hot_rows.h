/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_rows - hot counters of many hosts and workers as columns: what the journal
 * becomes.
 *
 * A codec holds a table of events in order of id: added one by one, or read from a
 * body. Every value is bit for bit what came.
 *
 * Owner:   a codec belongs to one thread.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; -LS_ELIMIT; -LS_ERANGE; reading: -LS_ECORRUPT, -LS_EPARSE,
 *          -LS_EVERSION.
 * Limits:  LS_UNIT_EVENTS_MAX events of one table.
 * Source:  proto/FORMAT.md, "Hot rows".
 */
#ifndef LS_STORAGE_HOT_ROWS_H
#define LS_STORAGE_HOT_ROWS_H

#include "proto/base/err.h"
#include "storage/db/rows.h"

/* One event; its host, worker and values come from ls_hot_rows_get. */
struct ls_hot_event {
	int64_t id, t_us, read_us;
	uint32_t key, shape, value; /* places in tables of the codec */
};

struct ls_hot_codec;
/* A codec with an empty table; NULL: out of memory. */
struct ls_hot_codec *ls_hot_codec_new(void);

/* Frees it; accepts NULL. */
void ls_hot_codec_free(struct ls_hot_codec *c);

/* Makes the table empty, keeps the memory. */
void ls_hot_rows_reset(struct ls_hot_codec *c);

/*
 * Adds an event, copied. -LS_ELIMIT: the table is full; -LS_ERANGE: the id does not
 * grow, or the values are too many or of no metric.
 */
int ls_hot_rows_add(struct ls_hot_codec *c, int64_t id, int64_t t_us,
	const struct ls_store_counters *counters) LS_MUSTCHECK;

/* The events of the table, and one of them whole. */
const struct ls_hot_event *ls_hot_rows_events(const struct ls_hot_codec *c,
	size_t *ret_count);
void ls_hot_rows_get(const struct ls_hot_codec *c, size_t i,
	struct ls_store_counters *ret_counters);

/* Encodes the table, -LS_ERANGE if it is empty; *ret_body points into the codec. */
int ls_hot_rows_encode(struct ls_hot_codec *c, const uint8_t **ret_body,
	size_t *ret_len) LS_MUSTCHECK;

/* Decodes a body into the table; it is empty when that fails. */
int ls_hot_rows_decode(struct ls_hot_codec *c, const uint8_t *body,
	size_t len) LS_MUSTCHECK;

#endif
