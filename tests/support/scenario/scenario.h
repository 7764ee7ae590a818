/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenario - jobs and what the engine must say of them, as text: tests/README.md, "Scenarios".
 *
 * Owner:   test programs.
 * Units:   those of fake_job.
 * Errors:  as text, with FILE:LINE.
 * Limits:  SCENARIO_WORDS_MAX words a line, SCENARIO_NAMES_MAX names a scenario,
 *          SCENARIO_BACK_MAX steps are read back after a restart.
 */
#ifndef LS_TESTS_SCENARIO_H
#define LS_TESTS_SCENARIO_H

#include <stddef.h>

#define SCENARIO_WORDS_MAX 32
#define SCENARIO_NAMES_MAX 16
#define SCENARIO_BACK_MAX 1024

struct scenario_name {
	char name[16], value[64];
};

/* One scenario with one choice of the values of its `for` lines. */
struct scenario {
	char title[200]; /* its name, and the values */
	const char *file, *text; /* the lines below its name; of the caller */
	int line; /* of its name */
	struct scenario_name names[SCENARIO_NAMES_MAX]; /* the first is not "" */
	size_t name_count;
};

/* Gives each scenario of a file, once for each choice of values; s belongs to it. What is wrong
 * with the file is found when it runs. */
void scenario_each(const char *file, const char *text,
	void (*found)(void *arg, const struct scenario *s), void *arg);

/* Runs it. Returns NULL if all that is expected is so; else what is not: static buffer. */
const char *scenario_run(const struct scenario *s);

#endif
