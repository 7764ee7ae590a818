/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minute_file - the rows of groups that are not sealed yet, in memory and on disk.
 *
 * A log of checksummed records: which groups there are, their rows, and what of them
 * was sealed. Memory holds the whole log; ls_minute_file_write lets the disk thread bring
 * the file up to date. What is in the page cache outlives the process: nothing is synced
 * or mapped. A last record cut short is cut off. A kill -9 loses the rows that the disk
 * thread had not written yet: usually those of one reading.
 *
 * Owner:   the agent loop thread. Not thread-safe. Nothing is allocated after opening.
 * Units:   ns, CLOCK_MONOTONIC of one kernel boot.
 * Errors:  -errno of the disk at opening; -ENOSPC full; -LS_ECORRUPT, -LS_EPARSE from
 *          reading. Later the disk's errors are logged, and the write is tried again.
 * Limits:  LS_MINUTE_MAX_BYTES, LS_SERIES_PER_GROUP_MAX values a row.
 * Source:  proto/FORMAT.md, "Minute file".
 */
#ifndef LS_AGENT_MINUTE_FILE_H
#define LS_AGENT_MINUTE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/spool/disk.h"
#include "proto/base/err.h"
#include "proto/limits.h"

#define LS_MINUTE_HEADER_BYTES 64u
#define LS_MINUTE_RECORD_BYTES 32u /* before the payload */
#define LS_MINUTE_ROW_MAX_BYTES                                     \
	(LS_MINUTE_RECORD_BYTES + 1 + LS_SERIES_PER_GROUP_MAX / 8 + \
		LS_SERIES_PER_GROUP_MAX * 8)

enum ls_minute_type {
	/* rows of this id follow: hash of its dictionary, columns, name */
	LS_MINUTE_GROUP = 1,
	LS_MINUTE_ROW = 2,
	LS_MINUTE_SEALED = 3 /* what came of this id so far is in the spool */
};

/* One record as it is read; pointers into the reader's buffer. */
struct ls_minute_record {
	enum ls_minute_type type;
	uint32_t id;
	uint64_t number; /* of GROUP: hash; of ROW: time */
	/* GROUP */
	size_t columns, name_len;
	const char *name;
	/* ROW */
	size_t bits_len, value_count;
	const uint8_t *bits; /* one a column, least first */
	const uint8_t *values; /* of those that are there, 8 bytes each */
};

/* What ls_minute_file_open found. */
enum ls_minute_found {
	LS_MINUTE_EMPTY,
	LS_MINUTE_ROWS, /* of this boot: to be sealed */
	LS_MINUTE_OTHER_BOOT /* rows whose times mean nothing any more */
};

struct ls_minute_file;

/* Called for each record; a failure ends the walk with it. */
typedef int ls_minute_each(void *arg, const struct ls_minute_record *r);

/*
 * Opens DIR/minute, made if absent. What is no such file is begun anew, with
 * *ret_damaged set. Errors: -errno, -ENOMEM.
 */
int ls_minute_file_open(const char *dir, const uint8_t kernel_boot_id[16],
	enum ls_minute_found *ret_found, bool *ret_damaged,
	struct ls_minute_file **ret_file) LS_MUSTCHECK;
/* Closes it; the rows stay. Accepts NULL. */
void ls_minute_file_close(struct ls_minute_file *f);

/* The disk thread writes from now on; NULL (as after opening): this thread. */
void ls_minute_file_use_disk(struct ls_minute_file *f, struct ls_disk *disk);

/* Writes what the file lacks, unless a write is under way: that one goes on with it. */
void ls_minute_file_write(struct ls_minute_file *f);

/* Append records in memory; -ENOSPC: there is no room for one more. */
int ls_minute_file_group(struct ls_minute_file *f, uint32_t id, uint64_t hash,
	size_t columns, const char *name) LS_MUSTCHECK;
int ls_minute_file_row(struct ls_minute_file *f, uint32_t id, uint64_t t_mono_ns,
	const double *value, const bool *present, size_t columns) LS_MUSTCHECK;
int ls_minute_file_sealed(struct ls_minute_file *f, uint32_t id) LS_MUSTCHECK;

/*
 * Calls each for the records from offset on. *ret_end is where the last whole one
 * ended. 0 also where a last record is cut short; -LS_ECORRUPT damage, or what each
 * returned.
 */
int ls_minute_file_walk(const struct ls_minute_file *f, uint64_t offset,
	ls_minute_each *each, void *arg, uint64_t *ret_end) LS_MUSTCHECK;

/* Where the next record will be. */
uint64_t ls_minute_file_end(const struct ls_minute_file *f);

/* Forgets all records; the next write empties the file, too. */
void ls_minute_file_clear(struct ls_minute_file *f);

/* The next record of bytes; *ret_len is its length. -LS_EPARSE cut short, -LS_ECORRUPT.
 * For fuzzing. */
int ls_minute_record_get(const uint8_t *bytes, size_t len,
	struct ls_minute_record *ret_record, size_t *ret_len) LS_MUSTCHECK;

#endif
