/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inferred - workers whose steps are not in a ring: their ring ids, and their records
 * into the spool.
 *
 * Such a worker has a ring id all the same, made of what it is and not random: after a
 * restart of the agent it has the same one, and the spool's cursor says how far it was.
 * The number of a record is that of its step, so one that is told twice is known again,
 * and a step that is missing is a gap.
 *
 *     bytes 0..3 "LSi" and enum ls_step_source, 4..11 FNV-1a 64 of the spool's boot and
 *     the name, little endian, 12..15 attempt, little endian
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  what the spool says.
 * Limits:  LS_STEPS_PER_ITEM records an item.
 * Source:  ids of real rings are 128 random bits: that one begins so has a chance of 1
 *          in 2^32.
 */
#ifndef LS_AGENT_INFERRED_H
#define LS_AGENT_INFERRED_H

#include "agent/spool/spool.h"

/* Is the id one of these? Their cursors are not source_step's. */
bool ls_inferred_is(const uint8_t id[LS_RING_ID_BYTES]);

/* The id of an attempt of the worker of this name (any text that tells it from others).
 */
void ls_inferred_id(const struct ls_spool *spool, enum ls_step_source source,
	const char *name, uint32_t attempt, uint8_t ret_id[LS_RING_ID_BYTES]);

/* Same worker, whatever the attempt? And which attempt. */
bool ls_inferred_same(const uint8_t a[LS_RING_ID_BYTES],
	const uint8_t b[LS_RING_ID_BYTES]);
uint32_t ls_inferred_attempt(const uint8_t id[LS_RING_ID_BYTES]);

/*
 * Cursor of the newest attempt of this worker that is in the spool, ended or not (then
 * its id must not be used again), or NULL. Other inferred workers of this source that
 * have no end get one: nobody will go on with them. Those that ended and are
 * acknowledged are forgotten.
 */
const struct ls_spool_ring *ls_inferred_settle(struct ls_spool *spool,
	enum ls_step_source source, const uint8_t id[LS_RING_ID_BYTES],
	uint64_t now_mono_ns);

/*
 * Pushes records, in order of step; *io_next is the number of the first step that is
 * not in the spool yet, or LS_INFERRED_NONE. What is missing before and between them
 * becomes gaps; what was pushed before is left out. Adds up what it pushed. On failure
 * *io_next says how far it came.
 */
#define LS_INFERRED_NONE UINT64_MAX
int ls_inferred_push(struct ls_spool *spool, const uint8_t id[LS_RING_ID_BYTES],
	struct ls_record *records, size_t count, uint64_t *io_next,
	uint64_t *io_records, uint64_t *io_lost) LS_MUSTCHECK;

/* Its process came to its end, or another attempt begins. */
int ls_inferred_end(struct ls_spool *spool, const uint8_t id[LS_RING_ID_BYTES],
	uint64_t next, uint64_t now_mono_ns) LS_MUSTCHECK;

#endif
