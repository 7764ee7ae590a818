/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "collector/frame.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a stranger sends: a greeting, then requests. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = LS_FRAME_GREETING_BYTES, bytes, route;
	int rc;

	if (size < at)
		return 0;
	rc = ls_frame_check_greeting(data);
	if (rc != 0 && rc != -LS_EPARSE && rc != -LS_EUNKNOWN)
		abort();
	while ((rc = ls_frame_length(data + at, size - at, LS_REPORT_MAX_BYTES, &bytes)) == 0) {
		if (bytes < LS_FRAME_LENGTH_BYTES || bytes > LS_REPORT_MAX_BYTES + LS_FRAME_LENGTH_BYTES)
			abort();
		if (bytes > size - at)
			return 0;
		rc = ls_frame_route(data + at + LS_FRAME_LENGTH_BYTES, bytes - LS_FRAME_LENGTH_BYTES, &route);
		if (rc == 0 && (route == 0 || route > LS_FRAME_ROUTE_MAX_BYTES ||
				       route > bytes - LS_FRAME_LENGTH_BYTES))
			abort();
		at += bytes;
	}
	if (rc != -EAGAIN && rc != -LS_ELIMIT)
		abort();
	return 0;
}
