/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/steps/step_line.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever is taken for a step is one that the wire takes, too. Up to the first newline the
 * input is a pattern; none: the built-in formats. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t skip = newline != NULL ? (size_t)(newline - data) : 0;
	struct ls_step_rules *rules = NULL;
	struct ls_step_line l;
	char pattern[LS_CONF_VALUE_MAX_BYTES] = "", why[160];
	bool is_step;

	if (skip >= sizeof(pattern))
		return 0;
	if (skip > 0)
		memcpy(pattern, data, skip);
	if (ls_step_rules_new(pattern, &rules, why, sizeof(why)) != 0)
		return 0;
	is_step = ls_step_line_parse(rules, (const char *)data + skip, size - skip, &l);
	ls_step_rules_free(rules);
	if (!is_step)
		return 0;
	if (l.step >= 1ull << 53 || l.duration_ns > LS_PHASE_MAX_NS ||
		!(isnan(l.tokens_rate) ||
			(isfinite(l.tokens_rate) && l.tokens_rate >= 0)))
		abort();
	return 0;
}
