/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "proto/wire/frame.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a stranger sends: a greeting, then requests, or replies. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = LS_FRAME_GREETING_BYTES, bytes, len, route;
	uint32_t id;
	int rc;

	if (size < at)
		return 0;
	rc = ls_frame_check_greeting(LS_FRAME_REQ, data);
	if (rc != 0 && rc != -LS_EPARSE && rc != -LS_EUNKNOWN)
		abort();
	if (rc == 0 && ls_frame_check_greeting(LS_FRAME_REP, data) != -LS_EUNKNOWN)
		abort(); /* nobody is both */
	while ((rc = ls_frame_length(data + at, size - at, LS_REPORT_MAX_BYTES,
			&bytes)) == 0) {
		if (bytes < LS_FRAME_LENGTH_BYTES ||
			bytes > LS_REPORT_MAX_BYTES + LS_FRAME_LENGTH_BYTES)
			abort();
		if (bytes > size - at)
			return 0;
		len = bytes - LS_FRAME_LENGTH_BYTES;
		rc = ls_frame_route(data + at + LS_FRAME_LENGTH_BYTES, len, &route);
		if (rc == 0 &&
			(route == 0 || route > LS_FRAME_ROUTE_MAX_BYTES || route > len))
			abort();
		/* A reply is what a request without devices on its way would be. */
		if ((ls_frame_id(data + at + LS_FRAME_LENGTH_BYTES, len, &id) == 0) !=
			(rc == 0 && route == LS_FRAME_ID_BYTES))
			abort();
		at += bytes;
	}
	if (rc != -EAGAIN && rc != -LS_ELIMIT)
		abort();
	return 0;
}
