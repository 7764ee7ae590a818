/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_state - the inside of the spool, for spool.c, spool_chunks.c, spool_open.c,
 * spool_rewrite.c.
 *
 * Owner:   as in spool.h.
 * Units:   bytes.
 * Errors:  as in spool.h.
 * Limits:  as in spool.h.
 */
#ifndef LS_AGENT_SPOOL_STATE_H
#define LS_AGENT_SPOOL_STATE_H

#include "agent/spool/losses.h"
#include "agent/spool/spool.h"
#include "agent/spool/spool_format.h"
#include "proto/wire/arena.h"

/* holds at least one record of any size */
#define LS_SPOOL_BUF_BYTES LS_REPORT_ITEMS_BYTES
_Static_assert(LS_SPOOL_BUF_BYTES >= LS_SPOOL_PAYLOAD_MAX_BYTES + LS_SPOOL_RECORD_BYTES,
	"any record fits");

/* A dictionary that was an item of this spool. */
struct ls_spool_known {
	uint64_t hash;
	bool waiting; /* the last such item is not acknowledged */
};

/* The newest chunk of a dictionary, so that no row is sealed twice. */
struct ls_spool_newest {
	uint64_t hash, t_last;
};

struct ls_spool {
	int dir_fd, lock_fd, fd;
	uint64_t max_bytes;
	struct ls_spool_header header;
	uint64_t end; /* of the last whole record */
	/* bytes beyond end must be cut before anything is appended */
	bool torn;
	/* a rewrite found nothing to free; until the next ack */
	bool full;
	/* Stream one. */
	/* of the first record that may be an unacknowledged item */
	uint64_t head;
	uint64_t acked, next;
	uint64_t live_bytes; /* of records from head on that are items */
	/* Stream two. */
	uint64_t chunk_head; /* likewise */
	uint64_t chunk_head_seq; /* number of the first item from there on */
	uint64_t chunk_acked, chunk_next;
	uint64_t chunk_live_bytes;
	size_t known_count, known_at;
	struct ls_spool_known known[LS_SPOOL_DICTIONARIES_MAX];
	size_t newest_at;
	struct ls_spool_newest newest[LS_GROUPS_MAX];
	size_t ring_count;
	struct ls_spool_ring ring[LS_SPOOL_RINGS_MAX];
	struct ls_spool_stats stats;
	struct ls_arena *scratch;
	uint8_t item[LS_SPOOL_PAYLOAD_MAX_BYTES]; /* what is being pushed */
	uint8_t buf[LS_SPOOL_BUF_BYTES];
};

/* --- spool.c -------------------------------------------------------------- */

/* Moves the cursor by one record of the log. False if there are too many rings. */
bool ls_spool_ring_move(struct ls_spool *s, const struct ls_spool_record *rec);

/* Takes a cursor away. */
void ls_spool_ring_remove(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES]);

/* Appends one record; on failure the file ends where it did. */
int ls_spool_append(struct ls_spool *s, const struct ls_spool_record *r) LS_MUSTCHECK;

/*
 * Calls each(arg, record) for the whole records from offset to limit; *ret_end is where
 * the last one ended. Stops at the first failure of each. -LS_ECORRUPT: damage; a
 * record cut short is no failure.
 */
int ls_spool_walk(struct ls_spool *s, uint64_t offset, uint64_t limit,
	int (*each)(void *arg, const struct ls_spool_record *r), void *arg,
	uint64_t *ret_end) LS_MUSTCHECK;

/* Moves both heads over what is acknowledged. */
void ls_spool_skip_acked(struct ls_spool *s);

/* Empties the file where nothing in it is needed and it is large, else appends an
 * acknowledgement. */
int ls_spool_note_ack(struct ls_spool *s,
	const struct ls_spool_record *ack) LS_MUSTCHECK;

/* --- spool_chunks.c ------------------------------------------------------- */

/* Takes a record of stream two into account that is in the log now. */
void ls_spool_chunk_note(struct ls_spool *s, const struct ls_spool_record *r);

/* The dictionary was an item, and whether that is still to be acknowledged. */
void ls_spool_know(struct ls_spool *s, uint64_t hash, bool waiting);
void ls_spool_unknow(struct ls_spool *s, uint64_t hash);

/* Moves the head of stream two over what is acknowledged. */
void ls_spool_chunk_skip_acked(struct ls_spool *s);

/* The loss that a chunk or Lost item stands for. */
struct ls_loss ls_spool_loss_of(const struct ls_spool_record *r,
	enum ls_wire_lost_reason reason);

/* The record of a loss, its payload in buf of size bytes. */
int ls_spool_loss_record(const struct ls_loss *one, uint8_t *buf, size_t size,
	struct ls_spool_record *ret_record) LS_MUSTCHECK;

/* --- spool_rewrite.c ------------------------------------------------------ */

/* What a new file begins with: of a spool that cannot be gone on with. */
struct ls_spool_legacy {
	size_t gap_count;
	struct ls_wire_item gap[LS_SPOOL_RINGS_MAX];
	struct ls_losses losses;
};

/*
 * Writes the spool anew (cursors and what is not acknowledged, dropping so many bytes
 * of chunks and then of steps) beside the old file and puts it in its place. On failure
 * the old file is still there.
 */
int ls_spool_rewrite(struct ls_spool *s, uint64_t drop_chunk_bytes,
	uint64_t drop_step_bytes) LS_MUSTCHECK;

/* Writes an empty spool that begins with this legacy; NULL: none. */
int ls_spool_write_fresh(struct ls_spool *s,
	const struct ls_spool_legacy *legacy) LS_MUSTCHECK;

/* Makes room for size bytes of stream one or two, if need be by dropping the oldest.
 * -ENOSPC. */
int ls_spool_make_room(struct ls_spool *s, uint64_t size, bool is_chunk) LS_MUSTCHECK;

#endif
