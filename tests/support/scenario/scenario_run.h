/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenario_run - a scenario while it runs: for the files scenario*.c only.
 *
 * Owner:   scenario_run.
 * Units:   those of fake_job.
 * Errors:  scenario_wrong does not return.
 * Limits:  those of scenario.h.
 */
#ifndef LS_TESTS_SCENARIO_RUN_H
#define LS_TESTS_SCENARIO_RUN_H

#include <setjmp.h>
#include "tests/support/fake_job.h"
#include "tests/support/scenario/scenario.h"

struct scenario_run {
	const struct scenario *s;
	struct fake_job *job;
	struct fake_job *twin; /* the job of a collector that did not start again */
	double patience_s, stalled_s; /* stalled: by all stalls so far */
	/* of the steps that nobody has records of, and when the twin told last */
	uint64_t lost_steps;
	int64_t lost_us, told_us;
	/* the newest steps, for a restart: workers with their records, and the time */
	struct fake_worker *back[SCENARIO_BACK_MAX];
	int64_t back_us[SCENARIO_BACK_MAX];
	size_t back_count;
	/* the line; the next one, and the one that "done" goes back to */
	int line, repeat_line;
	const char *at, *repeat;
	size_t repeats;
	char text[512];
	const char *words[SCENARIO_WORDS_MAX];
	size_t count; /* of words */
	struct scenario_name names[SCENARIO_NAMES_MAX];
	size_t name_count;
	bool is[FAKE_WORKERS_MAX]; /* the ranks of scenario_ranks */
	json_t *findings, *twins, *view; /* of the newest look at them, or NULL */
	jmp_buf end;
	char wrong[1200]; /* "": nothing */
};

/* Ends the scenario, with a text. */
void scenario_wrong(struct scenario_run *r, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* A number, or several joined by * / + -, from left to right. In it, "twin" is this number,
 * unless that is NaN. */
double scenario_number(struct scenario_run *r, const char *text, double twin);

/* Each word from `first` on is KEY=..., of the keys in "key= key= "; else the scenario ends. */
void scenario_only(struct scenario_run *r, size_t first, const char *keys);

/* What follows "KEY=" among the words; NULL: nothing. */
const char *scenario_option(const struct scenario_run *r, const char *key);

/* The words of the line as a command of a job, or of what is expected. */
void scenario_obey(struct scenario_run *r);
void scenario_expect(struct scenario_run *r);
void scenario_save(struct scenario_run *r);

#endif
