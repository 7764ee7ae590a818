/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roller_hour - an hour's roll-ups from those of its minutes, some metrics a turn.
 *
 * Nothing may be added to the minutes of the hour meanwhile: the roller writes nothing
 * else until it is done.
 *
 * Owner:   the roller.
 * Units:   us since the Unix epoch.
 * Errors:  -ENOMEM; those of ls_err_sqlite.
 * Limits:  LS_ROLLER_METRICS_PER_TURN.
 */
#ifndef LS_STORAGE_ROLLER_HOUR_H
#define LS_STORAGE_ROLLER_HOUR_H

#include <sqlite3.h>
#include "storage/columns/rollup.h"
#include "storage/db/rows.h"

/* Zeroed is none. */
struct ls_roller_hour {
	bool is_open; /* it is being made */
	int64_t t_us, metric_id; /* the last metric that is in */
	struct ls_store_rollup out;
	/* rows of a metric, one a series, in order (ls_rollup_compare) */
	struct ls_rollup_row *row;
	size_t count, bytes; /* bytes: there is room for */
	size_t at; /* where the search for the rows of the next body begins */
};

/* Opens the first hour that ended before before_us, has minutes and is not made yet, if
 * there is one. */
int ls_roller_hour_open(struct ls_roller_hour *h, sqlite3 *db,
	int64_t before_us) LS_MUSTCHECK;
/* Frees all: it is none then. */
void ls_roller_hour_fini(struct ls_roller_hour *h);

/* Goes on; *ret_ready: all metrics are in. Bodies that cannot be read are added to
 * *bad. */
int ls_roller_hour_turn(struct ls_roller_hour *h, sqlite3 *db,
	struct ls_rollup_codec *codec, bool *ret_ready, uint64_t *bad) LS_MUSTCHECK;

/* Hands what was made over into an empty *ret, and closes the hour. */
int ls_roller_hour_take(struct ls_roller_hour *h,
	struct ls_store_rollup *ret) LS_MUSTCHECK;

#endif
