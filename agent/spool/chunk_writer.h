/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_writer - readings of groups become rows, rows become chunks of a minute in the
 * spool.
 *
 * Each row goes to the minute file (minute_file.h), so that kill -9 loses only what the
 * disk had not written yet. All groups are sealed together, once a minute,
 * at a second of the minute that the spool's boot chooses, so that many hosts do not
 * seal at once; a group alone when its series change or it has LS_CHUNK_ROWS_MAX rows.
 * What an earlier process left unsealed is sealed at opening.
 *
 * A dictionary goes before its first chunk, once in the spool's life, and again when it
 * is asked for. Values that cannot be kept are counted, and a Lost item says so.
 *
 * Owner:   the agent loop thread. Not thread-safe. Nothing is allocated after opening.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM, -errno at opening; after that losses, never errors.
 * Limits:  LS_GROUPS_MAX groups, LS_CHUNK_ROWS_MAX rows a chunk, LS_MINUTE_MAX_BYTES on
 *          disk.
 * Source:  proto/FORMAT.md, "Chunk".
 */
#ifndef LS_AGENT_CHUNK_WRITER_H
#define LS_AGENT_CHUNK_WRITER_H

#include "agent/collect/series.h"
#include "agent/spool/spool.h"

struct ls_chunk_writer;

struct ls_chunk_writer_stats {
	uint64_t rows; /* kept */
	uint64_t chunks, chunk_bytes; /* sealed; bytes of their bodies */
	uint64_t lost_samples; /* not kept, not encoded, refused by the spool */
	uint64_t unknown_dictionaries; /* asked for, but no group here has it */
};

/*
 * Makes the writer, with its minute file in dir; seals what is there. Table and spool
 * are borrowed and must outlive it; it becomes the reader of the table.
 */
int ls_chunk_writer_new(const char *dir, const uint8_t kernel_boot_id[16],
	struct ls_spool *spool, struct ls_series_table *table, uint64_t now_mono_ns,
	struct ls_chunk_writer **ret_writer) LS_MUSTCHECK;

/* The disk thread writes the minute file from now on; NULL: this thread. */
void ls_chunk_writer_use_disk(struct ls_chunk_writer *w, struct ls_disk *disk);

/* Brings the minute file up to date, when the spool is. For when the spool gets idle. */
void ls_chunk_writer_write(struct ls_chunk_writer *w);

/* Ends it; unsealed rows stay on disk. Accepts NULL. */
void ls_chunk_writer_free(struct ls_chunk_writer *w);

/* Seals everything if the minute is over. To be called before a reading. */
void ls_chunk_writer_turn(struct ls_chunk_writer *w, uint64_t now_mono_ns);

/* Seals everything now: for the end. */
void ls_chunk_writer_seal(struct ls_chunk_writer *w);

/* The collector does not know a dictionary: it is sent again, unless it is on its way.
 */
void ls_chunk_writer_need(struct ls_chunk_writer *w, uint64_t hash);

/* The latest values of all groups, at most LS_GROUPS_MAX; they hold until the next
 * call. How many. */
size_t ls_chunk_writer_zoom(struct ls_chunk_writer *w,
	struct ls_wire_zoomed *ret_zoomed);

/* Counters; borrowed. */
const struct ls_chunk_writer_stats *ls_chunk_writer_get_stats(
	const struct ls_chunk_writer *w);

#endif
