/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash - FNV-1a, 64 bits: the one hash of names and of what must stay the same.
 *
 * Owner:   pure functions.
 * Units:   none.
 * Errors:  none.
 * Limits:  not for secrets; whoever chooses the input can make two hashes equal.
 * Source:  draft-eastlake-fnv, section 5.
 */
#ifndef LS_BASE_HASH_H
#define LS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define LS_HASH_START 14695981039346656037ull
#define LS_HASH_PRIME 1099511628211ull

/* Continues a hash with len bytes; the first call starts from LS_HASH_START. */
static inline uint64_t
ls_hash(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ b[i]) * LS_HASH_PRIME;
	return hash;
}

#endif
