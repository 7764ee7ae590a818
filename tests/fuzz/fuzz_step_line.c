/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include "agent/steps/step_line.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever is taken for a step is one that the wire takes, too. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_step_line l;

	if (!ls_step_line_parse((const char *)data, size, &l))
		return 0;
	if (l.step >= 1ull << 53 || l.duration_ns > LS_PHASE_MAX_NS ||
		!(isnan(l.tokens_rate) ||
			(isfinite(l.tokens_rate) && l.tokens_rate >= 0)))
		abort();
	return 0;
}
