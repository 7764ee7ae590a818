/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spooled - what tests of sources that make steps share: what is in a spool, handed on
 * to a collector's core, and the one job that comes of it.
 *
 * Owner:   test programs.
 * Units:   ns.
 * Errors:  a failure fails the test.
 * Limits:  those of agent/spool/spool.h.
 */
#ifndef LS_TESTS_SPOOLED_H
#define LS_TESTS_SPOOLED_H

#include "agent/spool/spool.h"
#include "tests/support/core.h"

/* The i-th item of the spool, decoded; to be cleared. */
struct ls_wire_item spooled_item(struct ls_spool *spool, size_t i);

/*
 * Sends what the spool holds to the core at that time, as the report of worker w (NULL:
 * of none yet), and takes the acknowledgement back.
 */
void spooled_report(struct ls_spool *spool, const struct ls_wire_worker *w,
	struct ls_test_core *core, struct ls_test_agent *a, uint64_t now_ns);

/* Nobody is blamed, and there is one job: so many workers, steps up to `step` at least,
 * told by source. */
void spooled_one_job(struct ls_test_core *core, uint64_t now_ns, const char *id,
	int workers, int step, const char *source);

#endif
