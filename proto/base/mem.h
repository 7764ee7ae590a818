/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem - arrays and buffers that grow.
 *
 * Owner:   the caller.
 * Units:   counts in items, sizes in bytes.
 * Errors:  -ENOMEM.
 * Limits:  the caller's: it bounds the count before it asks for room.
 */
#ifndef LS_BASE_MEM_H
#define LS_BASE_MEM_H

#include <stddef.h>
#include "proto/base/err.h"

/*
 * Makes room for one more item of item_bytes in *array, which holds count of *capacity;
 * an empty one begins with 16, others double. Items keep their place. -ENOMEM leaves
 * all as it was.
 */
int ls_mem_grow(void **array, size_t count, size_t *capacity,
	size_t item_bytes) LS_MUSTCHECK;

/* Makes *array as long as count items, more than 0; items keep their place. -ENOMEM leaves all as it was. */
int ls_mem_resize(void **array, size_t count, size_t item_bytes) LS_MUSTCHECK;

/* Makes *array as long as n items, if it has fewer: *count. New ones are zero. -ENOMEM leaves all as it was. */
int ls_mem_widen(void **array, size_t *count, size_t n, size_t item_bytes) LS_MUSTCHECK;

/* Makes *data at least `bytes` long, of which it has *size now; half of it more, if it
 * has to move. -ENOMEM leaves all as it was. */
int ls_mem_reserve(void **data, size_t *size, size_t bytes) LS_MUSTCHECK;

/* A copy of len bytes, of which there are some; NULL: out of memory. */
void *ls_mem_copy(const void *data, size_t len);

/* Each of `count` things from first on; `type` is no pointer. */
#define LS_EACH(type, x, first, count)                                     \
	for (type *x = (first), *x##_end = (count) == 0 ? x : x + (count); \
		x < x##_end; x++)

#endif
