/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_ring - a step ring written by a test: any head, any slot, and a lock held by
 * another process.
 *
 * Owner:   test programs.
 * Units:   as in proto/ring/ring.h.
 * Errors:  every failure fails the test.
 * Limits:  none.
 */
#ifndef LS_TESTS_STEP_RING_H
#define LS_TESTS_STEP_RING_H

#include <sys/types.h>
#include "proto/ring/ring.h"

struct step_ring {
	char path[512];
	int fd;
	uint32_t slots;
	pid_t holder; /* 0: nobody holds the lock */
};

/* Makes dir/name with a good header: job "job", rank, ring id { id, 0, ... }, boot id
 * of zeros. */
void step_ring_make(struct step_ring *r, const char *dir, const char *name, uint8_t id,
	uint32_t slots);

/* Writes the slot of record index (step = index) and, unless head is 0, the head. */
void step_ring_put(struct step_ring *r, uint64_t index, uint64_t head);

/* Writes bytes of the file: a header field, a slot made senseless, ... */
void step_ring_poke(struct step_ring *r, uint64_t offset, uint64_t value,
	unsigned bytes);

/* A process takes the lock, and lets it go by dying. */
void step_ring_lock(struct step_ring *r);
void step_ring_unlock(struct step_ring *r);

/* Ends the process, closes the file; it stays. */
void step_ring_fini(struct step_ring *r);

#endif
