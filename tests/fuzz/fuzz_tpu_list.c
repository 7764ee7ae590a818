/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/tpu/tpu_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name can be asked for. */
static void
look(void *arg, const char *name)
{
	uint8_t request[LS_GRPC_REQUEST_MAX_BYTES];
	size_t len, *seen = arg;

	++*seen;
	if (name[0] == '\0' || strlen(name) >= LS_SERIES_NAME_MAX_BYTES ||
		ls_tpu_encode_request(name, true, request, sizeof(request), &len) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_tpu_answer answer;
	size_t seen = 0;

	if (ls_tpu_decode_list(data, size, look, &seen, &answer) != 0)
		answer.points = 0;
	if (answer.points != seen || seen > LS_TPU_METRICS_MAX)
		abort();
	return 0;
}
