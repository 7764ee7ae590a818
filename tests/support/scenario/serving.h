/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving - replicas that never served: each takes batches of its own, of its own number, when
 * they come. Workers of a fake_job, of which the settings of a serving job count.
 *
 * Owner:   test programs.
 * Units:   those of fake_job.
 * Errors:  none; an engine that refuses ends the program.
 * Limits:  those of fake_job.
 */
#ifndef LS_TESTS_SERVING_H
#define LS_TESTS_SERVING_H

#include "tests/support/fake_job.h"

/* Nobody counts like another, nor begins with it; a `together` job does both. After it is
 * declared. */
void serving_begin(struct fake_job *job);

/* A second passes: each replica's agent reports once in it, at a moment of its own. */
void serving_run(struct fake_job *job);

/* The next record of a replica, which is not given to the engine. */
struct ls_record serving_make(struct fake_job *job, size_t i);

#endif
