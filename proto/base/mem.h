/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem - arrays that grow.
 *
 * Owner:   the caller.
 * Units:   counts in items.
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

#endif
