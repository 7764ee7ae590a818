/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noisy40 - the series that benches measure encoders and stores on: 12 hosts, 40
 * series, 2,000 seconds.
 *
 * They are read from data/series/noisy40.csv.gz in $LOCKSTEP_SHARED or ../shared; where
 * that is not, like ones are made, whose entropy is not known.
 *
 * Owner:   benches and their feeders; read-only once opened.
 * Units:   ns since the epoch; values as the names of the columns say.
 * Errors:  -ENOMEM.
 * Limits:  the sizes below.
 * Source:  the file's README, also for its entropy.
 */
#ifndef LS_TESTS_NOISY40_H
#define LS_TESTS_NOISY40_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

/* Of the file, a sample: each series modelled alone, as the best of value, delta and
 * delta of delta. */
#define NOISY40_ENTROPY_BYTES 1.55

enum {
	NOISY40_COLUMNS = 40,
	NOISY40_HOSTS = 12,
	NOISY40_TICKS = 2000,
	NOISY40_NAME = 48
};

struct noisy40 {
	bool recorded; /* of the file, not made */
	uint64_t *t_ns; /* [host][tick] */
	double *value; /* [host][column][tick] */
	bool *present; /* likewise: all true */
	/* metric: "chip.duty_percent", "step_seconds" */
	char name[NOISY40_COLUMNS][NOISY40_NAME];
	int chip[NOISY40_COLUMNS]; /* of which chip; -1: of the host */
};

/* Reads the file, or makes the series. */
int noisy40_open(struct noisy40 *ret_data) LS_MUSTCHECK;
void noisy40_close(struct noisy40 *d);

/* All ticks of one column of one host. */
double *noisy40_at(const struct noisy40 *d, size_t host, size_t column);

/* The next of a sequence of about normal numbers. */
double noisy40_normal(uint64_t *seed);

#endif
