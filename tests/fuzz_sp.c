/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "proto/limits.h"
#include "tests/sim/sp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a collector sends: its greeting, then answers. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_sp_answer a;
	size_t at = SIM_SP_GREETING_BYTES;
	int rc;

	if (size == 0)
		return 0; /* there may be no bytes to point to */
	if (sim_sp_check_greeting(data, size) == 0 && size < at)
		abort();
	if (size < at)
		return 0;
	while ((rc = sim_sp_take(data + at, size - at, &a)) == 0) {
		if (a.used == 0 || a.used > size - at || a.len > LS_ACK_MAX_BYTES ||
			a.body + a.len != data + at + a.used || (a.id & SIM_SP_ID) == 0)
			abort();
		at += a.used;
	}
	if (rc != -EAGAIN && rc != -LS_EPARSE && rc != -LS_ELIMIT)
		abort();
	return 0;
}
