/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake_state - what intake.c, intake_items.c and intake_chunks.c share: one report on
 * its way.
 *
 * Owner:   the loop thread; of intake only.
 * Units:   as in intake.h.
 * Errors:  none.
 * Limits:  as in intake.h.
 */
#ifndef LS_COLLECTOR_INTAKE_STATE_H
#define LS_COLLECTOR_INTAKE_STATE_H

#include "collector/ingest/intake.h"
#include "proto/wire/arena.h"

struct ls_intake {
	struct ls_intake_held *spare; /* at most LS_INTAKE_SPARE_MAX */
	size_t spare_count;
	struct ls_arena *scratch; /* of one item */
	struct ls_intake_parts p;
	uint64_t epoch; /* failed commits known */
	struct ls_pressure pressure;
	int64_t now_us; /* of the newest report or turn */
	uint64_t waiting; /* reports whose answer waits for their commit */
	int64_t zoom_us; /* when it was decided last who is zoomed */
	int64_t address_ns[LS_RATE_ADDRESSES]; /* buckets of addresses */
	uint64_t slowed_log_ns; /* when a slowed host was last logged */
	struct ls_intake_stats stats;
};

/* A report on its way; kept with its message until the commit, then for the next one.
 */
struct ls_intake_held {
	struct ls_intake_held *next; /* of those not in use */
	/* of the report; kept for the next one if it is not large */
	struct ls_arena *arena;
	void *request; /* NULL: answered */
	struct ls_wire_report report;
	struct ls_session *session; /* NULL: none */
	struct ls_write *write; /* rows to store; NULL when handed over */
	size_t len; /* of the request */
	uint64_t t_receive_ns;
	int64_t now_us;
	bool accepted[LS_STREAM_COUNT]; /* at least one item */
	struct ls_ingest_peer *peer; /* while request is there */
	struct ls_wire_ack ack;
};

/* Why an agent must wait or was refused; the first reason stands. */
void ls_intake_refuse(struct ls_intake_held *h, enum ls_wire_status status,
	const char *reason);

/*
 * The worker id of rows of this report. Until the worker's row is on disk, each report
 * with rows of the worker brings that row; the writer decides which id the row has. 0:
 * out of memory.
 */
int64_t ls_intake_worker_id(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_ring *ring);

/* Asks the agent for the worker of a ring. */
void ls_intake_need_worker(struct ls_intake *in, struct ls_intake_held *h,
	const uint8_t *ring_id);

/*
 * The engine's handle of a ring, or LS_NO_WORKER; tried again while the engine refuses,
 * since a place may be freed, and after the worker gave its place up. record: of which
 * there is one now.
 */
uint32_t ls_intake_handle(struct ls_intake *in, struct ls_ring *ring, bool record,
	int64_t now_us);

/*
 * Whether data of this time can be: LS_TIME_AHEAD_MAX_US, LS_TIME_BEHIND_MAX_US. What
 * cannot is no truth: neither stored nor judged.
 */
bool ls_intake_is_time(const struct ls_intake_held *h, int64_t t_us);

/* The map of a time of an item: the clock was known when the first one was allowed. */
struct ls_store_map ls_intake_map(const struct ls_intake *in,
	const struct ls_intake_held *h, int64_t t_mono_ns);

/*
 * Whether an item that did not unpack was understood: what cannot be true never will be,
 * so its number is spent. What was not understood may be of a newer agent, and waits.
 */
bool ls_intake_is_lie(int rc, uint64_t seq);

/* Takes the items of a report, of each stream in order up to the first that cannot be
 * taken. */
void ls_intake_items(struct ls_intake *in, struct ls_intake_held *h);
/* The same of the stream of chunks alone; they may be taken now. */
void ls_intake_chunks(struct ls_intake *in, struct ls_intake_held *h);

/* What a report says of its host: how the agent fares, who it is, zoomed values; what
 * is asked of it. */
void ls_intake_host(struct ls_intake *in, struct ls_intake_held *h);

#endif
