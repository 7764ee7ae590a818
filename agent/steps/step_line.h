/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_line - recognises the line that a trainer logs for a training step.
 *
 * A line matches one of step_formats.def, or the pattern of the user, anywhere: any text
 * may stand before. A prefix that a launcher puts before each line names the worker.
 *
 * Owner:   one thread at a time.
 * Units:   ns; tokens a second and device.
 * Errors:  -ENOMEM; -LS_ERANGE for a pattern that cannot be used, with a sentence.
 * Limits:  steps below 2^53, durations below LS_PHASE_MAX_NS; a match ends after
 *          LS_STEP_PATTERN_MATCH_MAX steps of the matcher or
 *          LS_STEP_PATTERN_HEAP_MAX_KIB: the line is not a step then.
 * Source:  step_formats.def names a file and a commit for each format. Prefixes: gcloud
 *          "[worker N] ", Ray "(Actor pid=N, ip=A) ", torchrun "[rankN]:" and
 *          "[defaultN]:", mpirun --tag-output "[1,N]<stdout>:", kubectl logs --prefix
 *          "[pod/NAME/CONTAINER] ".
 */
#ifndef LS_AGENT_STEP_LINE_H
#define LS_AGENT_STEP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_step_rules;

struct ls_step_line {
	uint64_t step;
	uint64_t duration_ns; /* 0: the line has none */
	uint64_t bar; /* steps of the progress bar that it is; 0: it is none */
	double tokens_rate; /* a device; NaN: not said */
	uint64_t prefix; /* hash of the worker's prefix; 0: the line has none */
	int32_t prefix_rank; /* -1: the prefix names no rank */
	bool stands_for_more; /* for the steps since the line before, too */
};

/*
 * Makes the rules; pattern "" means the built-in formats, else the pattern replaces them.
 * On -LS_ERANGE why says what is wrong with the pattern.
 */
int ls_step_rules_new(const char *pattern, struct ls_step_rules **ret_rules, char *why,
	size_t size) LS_MUSTCHECK;
void ls_step_rules_free(struct ls_step_rules *r);

/* Is it such a line? The text need not end with NUL, and may hold anything. */
bool ls_step_line_parse(struct ls_step_rules *r, const char *text, size_t len,
	struct ls_step_line *ret_line);

#endif
