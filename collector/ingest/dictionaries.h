/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dictionaries - the names behind the columns of chunks and zoomed values, by their
 * hash.
 *
 * Owner:   the loop thread.
 * Units:   bytes; a day is YYYYMMDD.
 * Errors:  -ENOMEM; -LS_ECORRUPT the hash is known for other names, or not the hash of
 *          these.
 * Limits:  what new() is told; when full, those not used for longest go, and are asked
 *          for again.
 * Source:  design section 11, "Series".
 */
#ifndef LS_COLLECTOR_DICTIONARIES_H
#define LS_COLLECTOR_DICTIONARIES_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_dictionaries;

/* Holds until the next put. */
struct ls_dictionary {
	uint64_t hash;
	char group[LS_GROUP_NAME_MAX_BYTES];
	size_t count;
	const char **series; /* into text */
	char *text; /* each with a NUL behind it */
	size_t text_len;
	int32_t stored_day; /* the last day whose file it was given to; 0: none */
};

struct ls_dictionaries_stats {
	uint64_t count, bytes, evicted;
};

/* New, empty; NULL when out of memory. */
struct ls_dictionaries *ls_dictionaries_new(size_t max, size_t max_bytes);
void ls_dictionaries_free(struct ls_dictionaries *t);

/* Takes a copy; one that is known stays as it is. */
int ls_dictionaries_put(struct ls_dictionaries *t, uint64_t hash, const char *group,
	const char *const *series, size_t count,
	struct ls_dictionary **ret_dictionary) LS_MUSTCHECK;

/* The dictionary of a hash, or NULL; counts as use. */
struct ls_dictionary *ls_dictionaries_find(struct ls_dictionaries *t, uint64_t hash);

/* After a failed commit: none of them is in a file, as far as we know. */
void ls_dictionaries_rollback(struct ls_dictionaries *t);

/* What there is. */
void ls_dictionaries_stats(const struct ls_dictionaries *t,
	struct ls_dictionaries_stats *ret_stats);

#endif
