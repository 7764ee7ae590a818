/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake - the road of one report: checked, numbered, fed to the engine, given to the
 * writer, answered.
 *
 *     bytes -> wire -> session -> rings -> engine
 *                             |        \-> writer -> (commit) -> ack
 *                             +-> dictionaries, chunks -/
 *                             +-> fleet (identity, zoomed values), zoom
 *
 * The answer says what is on disk, never more. A report without new items is answered
 * at once, one with new items after its commit. Items are accepted in order up to the
 * first that cannot be.
 *
 * Owner:   the loop thread.
 * Units:   ns of the collector's CLOCK_MONOTONIC; inside the engine microseconds since
 *          the epoch.
 * Errors:  counted by reason, and told to the agent in its ack.
 * Limits:  what waits for its commit: collector/ingest/pressure.h.
 * Source:  design sections 3.2 and 11.
 */
#ifndef LS_COLLECTOR_INTAKE_H
#define LS_COLLECTOR_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/ingest/core.h"
#include "collector/ingest/ingest.h"
#include "collector/ingest/pressure.h"
#include "proto/wire/wire.h"

struct ls_intake;

/* Why reports, items or values were not taken: LS_INTAKE_DROP(id, name, help). */
enum ls_intake_drop {
#define LS_INTAKE_DROP(id, name, help) LS_INTAKE_##id,
#include "collector/ingest/intake_drops.def"
#undef LS_INTAKE_DROP
	LS_INTAKE_DROP_COUNT
};

/* Name of a reason; NULL if out of range. */
const char *ls_intake_drop_name(unsigned drop);

struct ls_intake_parts {
	struct ls_core core;
	uint8_t kernel_boot_id[16]; /* our own */
	int64_t anchor_ns; /* wall minus monotonic, fixed at start */
	int64_t next_worker_id;
	/* Sends the answer to a request; called exactly once for each. Fills in
	 * nothing. */
	void (*reply)(void *arg, void *request, const struct ls_wire_ack *ack);
	void *reply_arg;
	/* The request's connection. */
	struct ls_ingest_peer *(*peer)(void *request);
	unsigned held_max; /* reports that can wait for their commit at once */
	uint64_t (*now)(void *arg); /* monotonic, for the stamp of sending */
	void *now_arg;
};

struct ls_intake_stats {
	uint64_t reports, items, records, gaps, ends, counters, acks, retries, rejects;
	uint64_t chunk_items, chunks, chunk_bytes, dictionaries, dictionaries_asked,
		lost, lost_samples;
	uint64_t slowed, slowed_bytes; /* reports whose answer was delayed */
	uint64_t zoomed; /* sets of live values taken */
	uint64_t drops[LS_INTAKE_DROP_COUNT];
	uint64_t held_bytes, held;
	struct ls_pressure_stats pressure;
};

/* New intake; parts are copied. NULL when out of memory. */
struct ls_intake *ls_intake_new(const struct ls_intake_parts *parts);
void ls_intake_free(struct ls_intake *in);

/* Microseconds since the epoch of a monotonic time: the engine's now. */
int64_t ls_intake_time_us(const struct ls_intake *in, uint64_t mono_ns);

/* Takes one request. */
void ls_intake_report(struct ls_intake *in, void *request, const uint8_t *data,
	size_t len, uint64_t t_receive_mono_ns);

/* News from the writer: answers the reports; frees `done`. */
void ls_intake_done(struct ls_intake *in, struct ls_write_done *done);

/* Lets time pass in the engine, the sessions and the zoom; cpu_ns: of this thread so
 * far. */
void ls_intake_advance(struct ls_intake *in, uint64_t now_ns, uint64_t cpu_ns);

/* Counters so far. */
void ls_intake_stats(const struct ls_intake *in, struct ls_intake_stats *ret_stats);

#endif
