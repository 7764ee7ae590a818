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
	struct ls_roller_name *next; /* of the fresh ones */
	bool is_metric;
	uint32_t id;
	char text[];
};

/* Zeroed is empty. */
struct ls_roller_names {
	void *root; /* of a tree (tsearch) */
	struct ls_roller_name *fresh; /* in no message yet */
	size_t count;
	uint32_t last_metric, last_labels;
};

/* Frees all; it is empty then. */
void ls_roller_names_fini(struct ls_roller_names *n);

/*
 * The id of a text of len bytes. If there is none, it becomes `id`, as a file holds it;
 * or, if that is 0, the next one, and the name is fresh. -LS_ELIMIT: there are too
 * many.
 */
int ls_roller_names_get(struct ls_roller_names *n, bool is_metric, const char *text,
	size_t len, uint32_t id, uint32_t *ret_id) LS_MUSTCHECK;

#endif
