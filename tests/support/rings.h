/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings - what tests of the client library share: a steps directory of their own, read
 * back.
 *
 * Owner:   test programs; one directory at a time.
 * Units:   none.
 * Errors:  every failure fails the test.
 * Limits:  none.
 */
#ifndef LS_TESTS_RINGS_H
#define LS_TESTS_RINGS_H

#include "proto/ring/ring.h"

/* The directory, its ring as it was read last, and the path of that. */
struct rings {
	char dir[256];
	char path[512];
	struct ls_ring_header header;
	uint8_t *bytes;
	size_t len;
};

/* A fresh directory, named in LOCKSTEP_STEPS_DIR; variables that say who we are are
 * unset. */
void rings_init(struct rings *r);

/* Frees what was read. */
void rings_fini(struct rings *r);

/* Number of entries whose names end so; the path of the last goes to r->path. */
int rings_count(struct rings *r, const char *suffix);

/* Reads the only ring of the directory and checks its header. */
void rings_load(struct rings *r);

/* A record of the ring that was read. */
struct ls_record rings_record(const struct rings *r, uint64_t index);

/* Makes the marks of a small step n: input, compute, one barrier. */
void rings_step(uint64_t n);

#endif
