/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_chunk - the read side of counters: chunks, their dictionaries, and who hosts
 * are.
 *
 * Bodies are given as they were stored: proto/chunk/chunk.h reads them. Files of
 * version 1 hold no chunks.
 *
 * Owner:   one thread at a time.
 * Units:   as in storage/db/rows.h.
 * Errors:  as in storage/read/query.h.
 * Limits:  LS_QUERY_WINDOW rows of a window, LS_GROUPS_MAX
 *          dictionaries of one host.
 * Source:  storage/README.md, "Chunks".
 */
#ifndef LS_STORAGE_QUERY_CHUNK_H
#define LS_STORAGE_QUERY_CHUNK_H

#include "storage/read/query.h"

/* A stored chunk; the body holds during the visit. */
struct ls_query_chunk {
	int32_t day; /* of its file */
	int64_t id;
	char host[LS_HOST_NAME_MAX_BYTES];
	uint64_t dictionary;
	int64_t t_first_us, t_last_us;
	struct ls_store_map map;
	uint32_t n;
	const uint8_t *body; /* NULL: it does not read */
	size_t len;
};

/* The names behind the columns of chunks. Whole copies: ls_query_dictionary_fini. */
struct ls_query_dictionary {
	uint64_t hash;
	char group[LS_GROUP_NAME_MAX_BYTES];
	size_t count;
	const char **series; /* into text */
	char *text;
	size_t text_len;
};

/* Values that are lost. */
struct ls_query_lost {
	char host[LS_HOST_NAME_MAX_BYTES];
	char group[LS_GROUP_NAME_MAX_BYTES];
	int64_t t_us, from_us, to_us; /* from, to 0: not known */
	uint64_t samples;
	unsigned reason;
};

/* Visitors: 0 goes on, anything else ends the visit and is returned by it. */
typedef int ls_query_chunk_fn(void *arg, const struct ls_query_chunk *chunk);
typedef int ls_query_dictionary_fn(void *arg,
	const struct ls_query_dictionary *dictionary);
typedef int ls_query_lost_fn(void *arg, const struct ls_query_lost *lost);
typedef int ls_query_host_fn(void *arg, const char *host, const char *json, size_t len,
	int64_t first_us, int64_t last_us);

/* Chunks of a day, in order of arrival. */
int ls_query_chunks(struct ls_query *q, int32_t day, ls_query_chunk_fn *fn,
	void *arg) LS_MUSTCHECK;

/*
 * The newest chunk of each dictionary of a host, what began last first: of the newest
 * day that has any, and not older than the first by more than keep_us.
 */
int ls_query_newest_chunks(struct ls_query *q, const char *host, int64_t keep_us,
	ls_query_chunk_fn *fn, void *arg) LS_MUSTCHECK;

/*
 * A dictionary of a day's file; if it came too late for that, of the next one.
 * -LS_EUNKNOWN. On success the caller frees what it holds. Not from a visitor of the
 * same q: it may change to another file.
 */
int ls_query_dictionary(struct ls_query *q, int32_t day, uint64_t hash,
	struct ls_query_dictionary *ret_dictionary) LS_MUSTCHECK;
void ls_query_dictionary_fini(struct ls_query_dictionary *d);

/* All dictionaries of the newest file, least recently used first. */
int ls_query_dictionaries(struct ls_query *q, ls_query_dictionary_fn *fn,
	void *arg) LS_MUSTCHECK;

/* What a day lost of its counters. */
int ls_query_lost(struct ls_query *q, int32_t day, ls_query_lost_fn *fn,
	void *arg) LS_MUSTCHECK;

/* Identities of all hosts, the last seen last. */
int ls_query_hosts(struct ls_query *q, ls_query_host_fn *fn, void *arg) LS_MUSTCHECK;

#endif
