/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/tpu/tpu_decode.h"
#include "proto/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_tpu_status status;
	size_t i, len;

	if (ls_tpu_decode_stall(data, size, &status) != 0)
		return 0;
	if (status.count > LS_TPU_CORES_MAX ||
		status.unknown_count > LS_TPU_UNKNOWN_FIELDS_MAX)
		abort();
	for (i = 0; i < status.count; i++) {
		len = strlen(status.core[i].where);
		if (len > 0 &&
			!ls_text_is_name(status.core[i].where, len,
				LS_TPU_WHERE_MAX_BYTES - 1))
			abort();
	}
	return 0;
}
