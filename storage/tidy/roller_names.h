/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roller_names - ids of metrics and label sets of one day's file, by text.
 *
 * Owner:   the roller.
 * Units:   none.
 * Errors:  -ENOMEM; -LS_ELIMIT.
 * Limits:  LS_ROLLUP_NAMES_MAX names.
 */
#ifndef LS_STORAGE_ROLLER_NAMES_H
#define LS_STORAGE_ROLLER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_roller_name {
	bool is_metric, is_new; /* new: in no message yet */
	uint32_t id;
	char text[];
};

/* Zeroed is empty. */
struct ls_roller_names {
	struct ls_roller_name **slot; /* open addressing */
	size_t slots, count, new_count;
	uint32_t last_metric, last_labels;
};

/* Frees all; it is empty then. */
void ls_roller_names_fini(struct ls_roller_names *n);

/* Puts in what a file holds. */
int ls_roller_names_put(struct ls_roller_names *n, bool is_metric, const char *text,
	uint32_t id) LS_MUSTCHECK;

/* The id of a text of len bytes; a new one if there is none. -LS_ELIMIT: there are too
 * many. */
int ls_roller_names_id(struct ls_roller_names *n, bool is_metric, const char *text,
	size_t len, uint32_t *ret_id) LS_MUSTCHECK;

#endif
