/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool - bounded, crash-safe queue of numbered items on local disk, and the cursors of the rings.
 *
 * What is pushed has a number from then on, and one number always means the same records. Items stay
 * until they are acknowledged, also over kill -9: the spool is a log of records, each with its
 * checksums, that is read again at start. A last record cut short is cut off (it was never sent); a
 * log damaged otherwise is set aside as spool.damaged, and numbering starts again with a new boot.
 *
 * Full: the oldest items of steps become gaps of the same numbers and records (reason spool_full),
 * until half of the room is free; when even that frees nothing, pushes are refused and the rings keep
 * what they can.
 *
 * Nothing is synced: what outlives the process is enough, because after the machine went down the
 * times in the items (CLOCK_MONOTONIC of that boot) could not be mapped any more. A spool of another
 * kernel boot is therefore emptied, counted, and gets a new boot.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   bytes.
 * Errors:  -errno of the disk, -LS_EBUSY another agent has it, -LS_ELIMIT, -ENOSPC full.
 * Limits:  max_bytes on disk (twice that for the moment of a rewrite), LS_SPOOL_RINGS_MAX cursors,
 *          LS_ITEM_MAX_BYTES an item.
 * Source:  file format: agent/README.md, "The spool".
 */
#ifndef LS_AGENT_SPOOL_H
#define LS_AGENT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/wire.h"

struct ls_spool;

/* How far a ring has been taken over into the spool. */
struct ls_spool_ring {
	uint8_t id[LS_RING_ID_BYTES];
	uint64_t next;    /* index of the first record not taken over */
	uint64_t end_seq; /* number of its End item; 0: none yet */
};

struct ls_spool_stats {
	uint64_t pushed_items;
	uint64_t dropped_records;   /* became gaps because the spool was full */
	uint64_t discarded_items;   /* of another kernel boot, or behind damage */
	uint64_t refused_items;     /* full, or the disk said no */
	uint64_t rewrites;
};

/*
 * Opens the spool in directory dir (made if absent), of at most max_bytes. -LS_EBUSY: another process
 * has it; -errno: what the disk said.
 */
int ls_spool_open(const char *dir, uint64_t max_bytes, const uint8_t kernel_boot_id[16],
	struct ls_spool **ret_spool) LS_MUSTCHECK;

/* Closes; what is not acknowledged stays on disk. Accepts NULL. */
void ls_spool_close(struct ls_spool *s);

/*
 * Gives item the next number (item->seq), appends it, and moves the cursor of its ring. On failure
 * nothing has changed: -ENOSPC full, -LS_ELIMIT too long or too many rings, -ENOMEM, -errno.
 */
int ls_spool_push(struct ls_spool *s, struct ls_wire_item *item) LS_MUSTCHECK;

/*
 * Reads items that are not acknowledged, oldest first, into buf: as many as fit and at most max. The
 * items point into buf. *ret_count may be 0. -errno; -LS_ECORRUPT if the file was tampered with.
 */
int ls_spool_read(struct ls_spool *s, uint8_t *buf, size_t size, struct ls_wire_bytes *ret_items,
	size_t max, size_t *ret_count) LS_MUSTCHECK;

/* Everything up to seq is safe elsewhere: forgotten here. Ignores what is not new. */
void ls_spool_ack(struct ls_spool *s, uint64_t seq);

/* The cursor of a ring, NULL if there is none. */
const struct ls_spool_ring *ls_spool_ring_find(
	const struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES]);

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
