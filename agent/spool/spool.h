/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool - bounded, crash-safe queue of numbered items on local disk: two streams, and
 * the cursors of rings.
 *
 * Stream one holds steps, gaps and ends, stream two dictionaries, chunks and losses.
 * What is pushed stays until it is acknowledged, also over kill -9: the spool is a log
 * of records, each with its checksums, that is read again at start. A last record cut
 * short is cut off (it was never sent); a log damaged otherwise is set aside as
 * spool.damaged, and numbering starts again with a new boot.
 *
 * Numbers: an item of stream one has its number when it is pushed. An item of stream two
 * has its number when it may be sent: the first items that are not acknowledged, as many
 * as one report takes, keep their numbers for good. Items behind them are only in order,
 * so that losses can be merged.
 *
 * Full: first the oldest chunks become losses: those that may have been sent each with
 * the same number, the others one for each group. Then the oldest items of steps become gaps of the same numbers
 * and records (reason spool_full), until half of the room is free; when even that frees
 * nothing, pushes are refused and the rings keep what they can. A chunk never drops
 * steps.
 *
 * An item that the collector cannot take, and one whose numbers no collector takes
 * (above LS_WIRE_NUMBER_MAX, written by an earlier version), becomes a gap or a loss of
 * the same number.
 *
 * Nothing is synced: what outlives the process is enough, because after the machine
 * went down the times in the items (CLOCK_MONOTONIC of that boot) could not be mapped
 * any more. A spool of another kernel boot gets a new boot and begins with gaps and
 * losses that say what was in it (reason reboot).
 *
 * Owner:   the agent loop thread. Not thread-safe. Nothing is allocated after opening.
 *          After ls_spool_use_disk the loop touches no file: see spool_state.h.
 * Units:   bytes; times in ns, CLOCK_MONOTONIC.
 * Errors:  -errno of the disk, -LS_EBUSY another agent has it, -LS_ELIMIT, -ENOSPC
 *          full.
 * Limits:  max_bytes on disk for both (twice that for the moment of a rewrite),
 *          LS_SPOOL_UNWRITTEN_MAX_BYTES that wait for the disk,
 *          LS_SPOOL_RINGS_MAX cursors, LS_ITEM_MAX_BYTES and LS_CHUNK_ITEM_MAX_BYTES an
 *          item.
 * Source:  file format: proto/FORMAT.md, "Spool".
 */
#ifndef LS_AGENT_SPOOL_H
#define LS_AGENT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/wire/wire.h"

struct ls_disk;
struct ls_spool;

/* How far a ring has been taken over into the spool. */
struct ls_spool_ring {
	uint8_t id[LS_RING_ID_BYTES];
	uint64_t next; /* index of the first record not taken over */
	uint64_t end_seq; /* number of its End item; 0: none yet */
};

struct ls_spool_stats {
	uint64_t pushed_items;
	/* became gaps: the spool was full, or of another kernel boot */
	uint64_t dropped_records;
	uint64_t discarded_items; /* of another kernel boot, or behind damage */
	uint64_t pushed_chunk_bytes;
	uint64_t dropped_chunks; /* became losses, likewise or behind damage */
	uint64_t lost_samples; /* with them */
	uint64_t refused_items; /* full, or the disk said no */
	/* became gaps and losses: no collector can take them */
	uint64_t malformed_items;
	uint64_t rewrites;
	uint64_t damaged_bytes; /* of spool.damaged; 0: there is none */
};

/*
 * Opens the spool in directory dir (made if absent), of at most max_bytes. -LS_EBUSY:
 * another process has it; -errno: what the disk said.
 */
int ls_spool_open(const char *dir, uint64_t max_bytes, const uint8_t kernel_boot_id[16],
	struct ls_spool **ret_spool) LS_MUSTCHECK;

/*
 * From now on the disk thread writes and reads; NULL: this thread. Without this call it
 * is this thread. on_idle (may be NULL) is called on the loop when a job is over and
 * none follows.
 */
typedef void ls_spool_idle(void *arg);
void ls_spool_use_disk(struct ls_spool *s, struct ls_disk *disk, ls_spool_idle *on_idle,
	void *arg);

/* True if no job of the disk thread is under way: nothing more can be read now. */
bool ls_spool_is_idle(const struct ls_spool *s);

/* True if everything that was pushed is in the file. */
bool ls_spool_is_written(const struct ls_spool *s);

/* Closes; what is not acknowledged stays on disk. Accepts NULL. */
void ls_spool_close(struct ls_spool *s);

/*
 * Gives item the next number (item->seq), queues it for the disk, and moves the cursor of
 * its ring. The file has the item before the cursor; a kill -9 in between undoes both.
 * Where the disk refuses, the item waits in memory and is written again. On failure
 * nothing has changed: -ENOSPC full, -ENOBUFS too much waits for the disk, -LS_ELIMIT too
 * long or too many rings, -LS_ERANGE numbers that no collector takes, -ENOMEM.
 */
int ls_spool_push(struct ls_spool *s, struct ls_wire_item *item) LS_MUSTCHECK;

/*
 * Reads items that are written and not acknowledged, oldest first, into buf: as many as
 * are in memory, fit, and at most max. The items point into buf. *ret_count may be 0.
 * -errno; -LS_ECORRUPT if the file was tampered with.
 */
int ls_spool_read(struct ls_spool *s, uint8_t *buf, size_t size,
	struct ls_wire_bytes *ret_items, size_t max, size_t *ret_count) LS_MUSTCHECK;

/* Everything up to seq is safe elsewhere: forgotten here. Ignores what is not new. */
void ls_spool_ack(struct ls_spool *s, uint64_t seq);

/*
 * An item of each stream that is not acknowledged and no collector can take: in the file
 * a gap or a loss of the same number replaces it, reason invalid or damaged. 0: none.
 * -LS_EBUSY: a rewrite is under way.
 */
int ls_spool_replace(struct ls_spool *s, uint64_t seq, uint64_t chunk_seq) LS_MUSTCHECK;

/* --- stream two ----------------------------------------------------------- */

/*
 * Appends an item of stream two; its seq is not looked at. Its group and, of a chunk,
 * samples say what is lost should it be dropped. -ENOSPC full, -LS_ELIMIT too long,
 * -errno: nothing has changed then.
 */
int ls_spool_push_chunk(struct ls_spool *s,
	const struct ls_wire_chunk_item *item) LS_MUSTCHECK;

/* Room for any item that is read, or for a report of small ones. */
#define LS_SPOOL_CHUNKS_READ_BYTES (LS_REPORT_CHUNK_BYTES + 4096u)

/*
 * Reads items that are not acknowledged into buf of LS_SPOOL_CHUNKS_READ_BYTES: those
 * of the window, at most max_bytes of them but one in any case. The items point into
 * buf. *ret_count may be 0. Errors as of ls_spool_read.
 */
int ls_spool_read_chunks(struct ls_spool *s, uint8_t *buf, size_t max_bytes,
	struct ls_wire_bytes ret_items[LS_CHUNK_ITEMS_PER_REPORT_MAX],
	size_t *ret_count) LS_MUSTCHECK;

/* As ls_spool_ack, for stream two. */
void ls_spool_ack_chunks(struct ls_spool *s, uint64_t seq);

/* The highest number acknowledged, and the one that the next item would have now. */
uint64_t ls_spool_chunks_acked(const struct ls_spool *s);
uint64_t ls_spool_chunks_next(const struct ls_spool *s);

/* Whether a dictionary was an item in this spool's life, and whether that is still to
 * be acknowledged. */
bool ls_spool_dictionary_is_known(const struct ls_spool *s, uint64_t hash);
bool ls_spool_dictionary_is_waiting(const struct ls_spool *s, uint64_t hash);

/* Last time in the newest chunk of a dictionary that the log knew at opening or since;
 * 0: none. */
uint64_t ls_spool_chunk_newest(const struct ls_spool *s, uint64_t hash);

/* --- both ----------------------------------------------------------------- */

/* The cursor of a ring, NULL if there is none. */
const struct ls_spool_ring *ls_spool_ring_find(const struct ls_spool *s,
	const uint8_t id[LS_RING_ID_BYTES]);

/* The i-th cursor, NULL beyond the last. */
const struct ls_spool_ring *ls_spool_ring_at(const struct ls_spool *s, size_t i);

/* Forgets the cursor of a ring that is no more. */
void ls_spool_ring_forget(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES]);

/* 16 random bytes made with the spool: the numbers belong to them. */
const uint8_t *ls_spool_boot(const struct ls_spool *s);

/* The highest number acknowledged, and the next one to be given. */
uint64_t ls_spool_acked(const struct ls_spool *s);
uint64_t ls_spool_next(const struct ls_spool *s);

/* Bytes on disk. */
uint64_t ls_spool_bytes(const struct ls_spool *s);

/* Counters since the spool was opened; borrowed. */
const struct ls_spool_stats *ls_spool_get_stats(const struct ls_spool *s);

#endif
