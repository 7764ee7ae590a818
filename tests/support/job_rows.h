/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_rows - what a synchronous job leaves in storage, made: runs of step records and
 * hot counters, in the order in which they come. Seeded: the same each time.
 *
 * A step is five phases and a barrier that all leave together; noise of 0.3 % on the
 * own work with heavy tails, clocks that are 50 us apart, agents that report in turn,
 * once a second.
 *
 * Owner:   tests and benches.
 * Units:   as in storage/db/rows.h.
 * Errors:  out of memory ends the program.
 * Limits:  none.
 */
#ifndef LS_TESTS_JOB_ROWS_H
#define LS_TESTS_JOB_ROWS_H

#include "storage/columns/step_rows.h"

struct job_rows;

/* So many workers, one a host, that do so many steps a second. */
struct job_rows *job_rows_new(size_t workers, unsigned steps_a_second);
void job_rows_free(struct job_rows *j);

/*
 * What is reported in the next second; good until the next call. Ids go on from second
 * to second and leave one out behind each run, for the host's counters.
 */
const struct ls_step_table *job_rows_second(struct job_rows *j);

/* Numbers of 0..1, and of mean 0 and deviation 1. */
double job_rows_uniform(struct job_rows *j);
double job_rows_normal(struct job_rows *j);

#endif
