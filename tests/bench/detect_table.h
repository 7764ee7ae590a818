/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_table - the tables of bench_detect: which jobs are simulated for each row, and
 * how it is printed.
 *
 * Owner:   the caller. They print to stdout.
 * Units:   in the heads of the tables.
 * Errors:  none; a job that cannot be simulated ends the program.
 * Limits:  none.
 * Source:  tests/MEASURED.md.
 */
#ifndef LS_TESTS_DETECT_TABLE_H
#define LS_TESTS_DETECT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETECT_LINES_MAX 64u

/* A result of which nothing but its name and value is said. */
struct detect_line {
	char name[64];
	double value;
};

struct detect_plan {
	/* of each row; of jobs of more than 4,096 hosts a tenth, two at least */
	size_t runs;
	bool quick; /* fewer sizes, noises and amounts */
	uint32_t hosts; /* jobs of that size alone; 0: all */
	/* a line of JSON on stderr for each false finding and each fault that is missed
	 */
	bool wrong;
	double weeks; /* of 10,000 hosts for the long null row; 0: none */
	struct detect_line line[DETECT_LINES_MAX]; /* results, filled by the tables */
	size_t lines;
};

/* The promised rows: 3 % within 40 steps, 2 % within 80, by size and noise; two
 * culprits, no roles, lost agents. */
void detect_table_contract(struct detect_plan *plan);

/* One slow host: cause by amount, over sizes; then by noise. */
void detect_table_grid(struct detect_plan *plan);

/* What is no single slow host: links, slices, racks, stages, shards, the job, what
 * rotates, comes and goes, hangs, lies. */
void detect_table_levels(struct detect_plan *plan);

/* Healthy jobs: every finding is false. */
void detect_table_null(struct detect_plan *plan);

/* The least slowdown of which 95 % are named first within 80 steps. */
void detect_table_least(struct detect_plan *plan);

#endif
