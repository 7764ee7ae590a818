/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include "agent/tpu/tpu_progress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Three looks: half a second and an hour apart. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t looks_ns[] = { 1000, 500001000, 3600500001000 };
	struct ls_tpu_progress progress = { 0 };
	struct ls_tpu_status status;
	struct ls_tpu_steps steps;
	size_t i, k;

	for (i = 0; i < 3; i++) {
		if (ls_tpu_decode_status(data, size, &status) != 0)
			return 0;
		if (status.count > LS_TPU_CORES_MAX)
			abort();
		for (k = 1; k < status.count; k++) {
			if (status.core[k - 1].core_id >= status.core[k].core_id)
				abort();
		}
		ls_tpu_progress_feed(&progress, &status, looks_ns[i]);
		if (progress.count != status.count)
			abort();
		if (ls_tpu_progress_steps(&progress, looks_ns[i], &steps) == 0 &&
			!(steps.confidence >= 0 && steps.confidence <= 1))
			abort();
	}
	return 0;
}
