/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_state - the inside of the spool, for its own files.
 *
 * The loop encodes records into `unwritten`, and reads items from two windows in memory.
 * One job at a time goes to the disk thread: it appends what was unwritten when it began,
 * then rewrites the file if room is needed, then fills windows that are empty. An item
 * comes into a window only when it is written, so nothing is sent that a kill -9 could
 * still undo.
 *
 * Owner:   as in spool.h; the disk thread while job.busy, where it is marked.
 * Units:   bytes.
 * Errors:  as in spool.h.
 * Limits:  as in spool.h.
 */
#ifndef LS_AGENT_SPOOL_STATE_H
#define LS_AGENT_SPOOL_STATE_H

#include "agent/spool/disk.h"
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

/* What a log says, beside its items. */
struct ls_spool_log {
	struct ls_spool_header header;
	uint64_t acked, chunk_acked;
	/* numbers of items that a rewrite replaces; 0: none */
	uint64_t malformed, chunk_malformed;
	size_t ring_count, known_count;
	struct ls_spool_ring ring[LS_SPOOL_RINGS_MAX];
	struct ls_spool_known known[LS_SPOOL_DICTIONARIES_MAX];
};

/* What came of a rewrite. */
struct ls_spool_rewritten {
	uint64_t seq; /* of the chunk item before in the old file */
	uint64_t window_bytes; /* of items that may have been sent, so far */
	uint64_t chunk_count; /* items in the new file */
	uint64_t live_bytes, chunk_live_bytes;
	uint64_t dropped_records, dropped_chunks, lost_samples, malformed_items;
	size_t forgotten_count;
	uint64_t forgotten[LS_SPOOL_DICTIONARIES_MAX]; /* dictionaries dropped */
	struct ls_losses losses;
};

/* Written records of one stream in memory, oldest first. */
struct ls_spool_window {
	bool is_chunks;
	uint64_t base; /* offset in the file; before it all is acknowledged */
	uint64_t base_seq; /* chunks: number of the first item from base on */
	uint64_t front_seq; /* chunks: number of the item at pos */
	/* The disk thread's while `loading`. */
	bool loading;
	int rc; /* of the last filling */
	uint64_t scanned; /* the window had all records up to this offset */
	size_t pos, len;
	uint8_t buf[LS_SPOOL_BUF_BYTES];
};

/* A rewrite: what it needs to know, and what came of it. */
struct ls_spool_rewrite {
	uint64_t drop_chunk_bytes, drop_step_bytes; /* still to be saved */
	bool drop_dictionaries;
	struct ls_spool_log log;
	uint64_t end, start; /* of the old file; where items begin in the new one */
	uint64_t head, chunk_head;
	/* Under way and after it. */
	int fd;
	uint64_t new_end;
	struct ls_spool_rewritten out;
	struct ls_arena *scratch;
};

struct ls_spool {
	int dir_fd, lock_fd;
	uint64_t max_bytes;
	struct ls_spool_log log;
	uint64_t end; /* of the last whole record that is written */
	/* a rewrite found nothing to free; until the next ack */
	bool full;
	uint64_t
		impossible; /* the last item that ls_spool_is_possible denies; 0: none */
	/* Stream one. */
	uint64_t next;
	uint64_t live_bytes; /* of items that are not known to be acknowledged */
	/* Stream two. */
	uint64_t chunk_next;
	uint64_t chunk_live_bytes;
	struct ls_spool_window steps, chunks;
	size_t known_at, newest_at;
	struct ls_spool_newest newest[LS_GROUPS_MAX];
	struct ls_spool_stats stats;
	struct ls_arena *scratch;
	uint8_t item[LS_SPOOL_PAYLOAD_MAX_BYTES]; /* what is being pushed */
	size_t unwritten_len;
	uint8_t unwritten[LS_SPOOL_UNWRITTEN_MAX_BYTES];
	/* The disk thread. */
	struct ls_disk *disk;
	struct ls_disk_job job;
	ls_spool_idle *on_idle; /* NULL: nobody waits */
	void *idle_arg;
	int rc; /* of the last job */
	bool rewrite_wanted;
	/* The disk thread's while the job is busy. */
	int fd;
	/* bytes beyond the end must be cut before anything is appended */
	bool torn;
	size_t flight_len; /* of unwritten: what this job appends */
	int work_rc;
	uint64_t work_damaged_bytes;
	bool flight_written, rewriting, rewritten;
	struct ls_spool_rewrite rewrite;
	uint8_t buf[LS_SPOOL_BUF_BYTES];
};

/* --- spool.c -------------------------------------------------------------- */

/* Moves the cursor by one record of the log. False if there are too many rings. */
bool ls_spool_ring_move(struct ls_spool *s, const struct ls_spool_record *rec);

/* Takes a cursor away. */
void ls_spool_ring_remove(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES]);

/* Takes one record into what is to be written. -ENOBUFS: the disk lags behind. */
int ls_spool_append(struct ls_spool *s, const struct ls_spool_record *r) LS_MUSTCHECK;

/*
 * Calls each(arg, record) for the whole records from offset to limit; *ret_end is where
 * the last one ended. Stops at the first failure of each. -LS_ECORRUPT: damage; a
 * record cut short is no failure.
 */
int ls_spool_walk(struct ls_spool *s, uint64_t offset, uint64_t limit,
	int (*each)(void *arg, const struct ls_spool_record *r), void *arg,
	uint64_t *ret_end) LS_MUSTCHECK;

/* Takes an acknowledgement of stream one (LS_SPOOL_ACK) or two (LS_SPOOL_CHUNK_ACK) and appends
 * it; rewrites a large file in which nothing is needed. */
void ls_spool_note_ack(struct ls_spool *s, enum ls_spool_type type, uint64_t seq);

/* --- spool_chunks.c ------------------------------------------------------- */

/* Takes a record of stream two into account that is in the log now. */
void ls_spool_chunk_note(struct ls_spool *s, const struct ls_spool_record *r);

/* The dictionary was an item, and whether that is still to be acknowledged. */
void ls_spool_know(struct ls_spool *s, uint64_t hash, bool waiting);
void ls_spool_unknow(struct ls_spool *s, uint64_t hash);

/* The loss that a chunk or Lost item stands for. */
struct ls_loss ls_spool_loss_of(const struct ls_spool_record *r,
	enum ls_wire_lost_reason reason);

/* The record of a loss, its payload in buf of size bytes. */
int ls_spool_loss_record(const struct ls_loss *one, uint8_t *buf, size_t size,
	struct ls_spool_record *ret_record) LS_MUSTCHECK;

/* --- spool_io.c ----------------------------------------------------------- */

/* Starts both windows at this offset of the file; chunks are numbered from seq on. */
void ls_spool_windows_reset(struct ls_spool *s, uint64_t offset, uint64_t chunk_seq);

/* Forgets acknowledged items at the front of the windows. */
void ls_spool_windows_trim(struct ls_spool *s);

/* Runs a job if there is anything to write, rewrite or read. */
void ls_spool_kick(struct ls_spool *s);

/* --- spool_rewrite.c ------------------------------------------------------ */

/* What a new file begins with: of a spool that cannot be gone on with. */
struct ls_spool_legacy {
	size_t gap_count;
	struct ls_wire_item gap[LS_SPOOL_RINGS_MAX];
	struct ls_losses losses;
};

/*
 * A rewrite writes cursors and what is not acknowledged beside the old file and replaces
 * the old file with it. It can drop so many bytes of chunks and then of steps. On failure
 * the old file is still there.
 *
 * prepare: on the loop, of a file that will end at `end`. run: on the disk thread; legacy
 * is NULL, or what the new file says first. apply: on the loop, after success.
 */
void ls_spool_rewrite_prepare(struct ls_spool *s, uint64_t end);
int ls_spool_rewrite_run(struct ls_spool *s,
	const struct ls_spool_legacy *legacy) LS_MUSTCHECK;
void ls_spool_rewrite_apply(struct ls_spool *s);

/* Writes an empty spool that begins with this legacy; NULL: none. */
int ls_spool_write_fresh(struct ls_spool *s,
	const struct ls_spool_legacy *legacy) LS_MUSTCHECK;

/* Makes room for size bytes of stream one or two, if need be by dropping the oldest.
 * -ENOSPC. */
int ls_spool_make_room(struct ls_spool *s, uint64_t size, bool is_chunk) LS_MUSTCHECK;

#endif
