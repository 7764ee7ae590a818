/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - what happened to each rank, measured by the rank itself, before and after
 * the fault.
 *
 * Owner:   the parent, after the ranks are gone.
 * Units:   ms a step; JSON: seconds.
 * Errors:  0 or -errno.
 * Limits:  none.
 */
#ifndef LS_TESTS_WORKLOAD_REPORT_H
#define LS_TESTS_WORKLOAD_REPORT_H

#include <stdio.h>
#include "deploy/demo/workload/fault.h"

/* Prints the table for people. */
void report_print(FILE *out, const struct workload_options *o, const struct fault *f,
	const struct workload_shared *shared);

/* Writes the same as JSON. */
int report_write(const char *path, const struct workload_options *o,
	const struct fault *f, const struct workload_shared *shared) LS_MUSTCHECK;

#endif
