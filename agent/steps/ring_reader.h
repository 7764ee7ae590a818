/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_reader - one step ring: its records into the spool, its live slot, and whether
 * it lives.
 *
 *            lock gone twice            all records and the End item are in the spool
 *     LIVE ------------------> DEAD ------------------> DONE
 *
 * Rings are read with pread, never mapped: a file that is hostile or cut short cannot
 * hurt. Records overwritten before they were read, and slots that make no sense, become
 * gaps. A worker lives while it holds the lock on its ring; that it ended is believed
 * when the lock was missing at two readings.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM. While reading, what the spool refuses stays in the ring.
 * Limits:  LS_STEPS_READ_MAX records a turn, LS_STEPS_PER_ITEM an item.
 * Source:  ring layout: proto/ring/ring.h. fcntl(2): F_GETLK gives the holder's pid as
 *          we see it.
 */
#ifndef LS_AGENT_RING_READER_H
#define LS_AGENT_RING_READER_H

#include <sys/types.h>
#include "agent/spool/spool.h"
#include "proto/ring/ring.h"
#include "proto/ring/ring_events.h"
#include "proto/wire/wire.h"

enum ls_ring_state {
#define LS_RING_STATE(id, name) LS_RING_STATE_##id,
#include "agent/steps/ring_state.def"
#undef LS_RING_STATE
	LS_RING_STATE_COUNT
};

struct ls_step_ring {
	enum ls_ring_state state;
	struct ls_wire_worker worker;
	const uint8_t *from; /* of the header: 8 of enum ls_ring_from */
	/* of the header: what of the job's environment it carries */
	const char *env;
	pid_t pid; /* as this process sees it; 0: not visible here */
	bool has_live;
	struct ls_ring_live live;
};

/* Why a file of the directory is left alone. */
enum ls_step_ignored {
	LS_STEP_NOT_REGULAR, /* a link, a pipe, ... */
	/* too short, wrong magic or version, impossible sizes or values */
	LS_STEP_NOT_A_RING,
	LS_STEP_OTHER_BOOT, /* written before the machine started */
	LS_STEP_DUPLICATE, /* a ring with this id is open */
	LS_STEP_TOO_MANY, /* LS_RINGS_MAX are open, or too many entries to look at */
	LS_STEP_FINISHED, /* all of it is acknowledged, but it cannot be removed */
	LS_STEP_IGNORED_COUNT
};

struct ls_step_stats {
	uint64_t records; /* taken over */
	uint64_t lost[LS_GAP_REASON_COUNT]; /* records lost, by reason */
	/* files left alone at the last scan */
	uint64_t ignored[LS_STEP_IGNORED_COUNT];
	/* a file that is no ring, from outside */
	char example[64];
	const char *example_why; /* NULL: there was none */
	uint64_t ended, crashed, removed;
	uint64_t leftovers; /* unfinished rings removed */
	uint64_t displaced; /* gave up their place to a ring of another owner */
	uint64_t damaged; /* rings that stopped being rings while they were read */
};

/* Room for one reading at a time, shared by all rings. */
struct ls_ring_buffers {
	uint8_t page[LS_RING_HEADER_BYTES];
	uint8_t slots[LS_STEPS_PER_ITEM * LS_RING_SLOT_BYTES];
	struct ls_record records[LS_STEPS_PER_ITEM];
};

/* What a reader borrows from whoever made it. spool NULL: records are not taken over.
 */
struct ls_ring_context {
	struct ls_spool *spool;
	struct ls_ring_buffers *buf;
	struct ls_step_stats *stats;
	/* by which the worker is named live; never given twice */
	uint32_t number;
};

struct ls_ring_reader;

/*
 * New reader of an open file whose header was parsed; it goes on from the spool's
 * cursor. Takes fd over; on failure the caller keeps it. The name is for the log.
 */
int ls_ring_reader_new(int fd, const char *name, const struct ls_ring_header *header,
	const struct ls_ring_context *context,
	struct ls_ring_reader **ret_reader) LS_MUSTCHECK;

/* Closes the file, which stays. Accepts NULL. */
void ls_ring_reader_free(struct ls_ring_reader *r);

/* Takes over what is new, and notes whether the worker lives. */
void ls_ring_reader_read(struct ls_ring_reader *r, uint64_t now_mono_ns);

/* As its process ended, one of its control group was killed for lack of memory. */
void ls_ring_reader_killed(struct ls_ring_reader *r);

/* What is known of the ring now. */
const struct ls_step_ring *ls_ring_reader_ring(const struct ls_ring_reader *r);

/* Does a process hold the ring right now? */
bool ls_ring_reader_is_held(const struct ls_ring_reader *r);

/* Reads its events block. -LS_EABSENT: its writer keeps none; -EIO: it cannot be read.
 */
int ls_ring_reader_events(const struct ls_ring_reader *r,
	struct ls_ring_events *ret_events) LS_MUSTCHECK;

/* Reads exactly len bytes at offset; false if there are not so many. */
bool ls_ring_pread(int fd, uint8_t *buf, size_t len, uint64_t offset);

#endif
