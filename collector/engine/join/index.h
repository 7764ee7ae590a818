/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index - finds the position of an item in somebody's array by a hash of its key.
 *
 * It holds hashes and positions only: the caller compares keys.
 *
 *     size_t walk = 0; while ((at = ls_index_next(&index, ls_index_hash_text(name),
 *     &walk)) != LS_INDEX_NONE) if (strcmp(items[at].name, name) == 0) return
 *     &items[at];
 *
 * Owner:   whoever owns the array; all zero is an empty index.
 * Units:   none.
 * Errors:  -ENOMEM.
 * Limits:  UINT32_MAX - 1 items; the caller bounds its array.
 * Source:  hash of text: FNV-1a (Fowler, Noll, Vo), 64 bits folded to 32.
 */
#ifndef LS_COLLECTOR_INDEX_H
#define LS_COLLECTOR_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

#define LS_INDEX_NONE UINT32_MAX

struct ls_index {
	struct ls_index_entry *entries; /* open addressing, at most half full */
	size_t size, count; /* size is a power of two */
};

/* Drops all entries and the memory. */
void ls_index_fini(struct ls_index *x);

/* Adds a position under a hash; -ENOMEM. The same hash may stand for many. */
int ls_index_put(struct ls_index *x, uint32_t hash, uint32_t position) LS_MUSTCHECK;

/* Takes out what was put with this hash and position. */
void ls_index_remove(struct ls_index *x, uint32_t hash, uint32_t position);

/* Positions put under this hash, one a call; *walk starts at 0. LS_INDEX_NONE: no more.
 */
uint32_t ls_index_next(const struct ls_index *x, uint32_t hash, size_t *walk);

/* The position of a name put under its hash; the name of position 0 is at names, each next one `stride` bytes
 * further. LS_INDEX_NONE: it is not there. */
uint32_t ls_index_find(const struct ls_index *x, const char *name, const void *names,
	size_t stride);

/* Hash of a NUL-terminated text, and of a number. */
uint32_t ls_index_hash_text(const char *text);
uint32_t ls_index_hash_number(uint64_t number);

#endif
