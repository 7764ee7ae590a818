/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - a set of pointers to structs that begin with their key: found in constant
 * time.
 *
 * Keys have one length; text in them is zeroed beyond its end. The hash is keyed with
 * random bytes, so that nobody outside can choose names that make it slow. Items belong
 * to the caller; the order of a walk over them is not defined, so the caller keeps a
 * list of its own where it needs one.
 *
 * Owner:   one thread at a time; zeroed is no table: ls_table_init.
 * Units:   none.
 * Errors:  -ENOMEM.
 * Limits:  the caller bounds what it puts in.
 * Source:  SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 *          2012).
 */
#ifndef LS_PROTO_BASE_TABLE_H
#define LS_PROTO_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_table {
	struct ls_table_entry *entries; /* open addressing, at most half full */
	size_t size, count; /* size is 0 or a power of two */
	size_t key_len;
	uint8_t secret[16];
};

/* Makes an empty table for keys of key_len bytes. */
void ls_table_init(struct ls_table *t, size_t key_len);

/* Frees the table, not its items. */
void ls_table_fini(struct ls_table *t);

/* The item with this key, or NULL. */
void *ls_table_find(const struct ls_table *t, const void *key);

/* Puts in an item whose key is not there yet. */
int ls_table_put(struct ls_table *t, void *item) LS_MUSTCHECK;

/* Takes an item out that is there. */
void ls_table_remove(struct ls_table *t, const void *item);

/* SipHash-2-4 of len bytes. */
uint64_t ls_table_hash(const uint8_t secret[16], const void *data, size_t len);

#endif
