/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "proto/ring/ring.h"
#include "proto/ring/ring_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_events(const uint8_t *data, size_t size)
{
	struct ls_ring_events e;
	size_t i;

	if (size < LS_RING_EVENTS_OFFSET ||
		ls_ring_parse_events(data + LS_RING_EVENTS_OFFSET,
			size - LS_RING_EVENTS_OFFSET, &e) != 0)
		return;
	if (e.function_count + e.bad_names > LS_RING_FUNCTIONS_MAX)
		abort();
	for (i = 0; i < e.function_count; i++) {
		if (e.function[i].compiles == 0 || e.function[i].name[0] == '\0' ||
			strlen(e.function[i].name) >= sizeof(e.function[i].name))
			abort();
	}
}

/* A whole ring file: what the agent reads, in the way in which it reads it. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_ring_header header;
	struct ls_ring_live live;
	struct ls_record record;
	const char *why = NULL;
	uint64_t index;
	size_t at;

	fuzz_events(data, size);
	if (ls_ring_parse_live(data, size, &live) == 0 && live.phase > LS_PHASE_COUNT)
		abort();
	if (ls_ring_parse_header(data, size, &header, &why) != 0)
		return 0;
	if (strlen(header.env) >= sizeof(header.env) || header.slots == 0)
		abort();
	for (index = 0; index < header.slots; index++) {
		at = header.header_bytes + (size_t)index * header.slot_bytes;
		if (at > size || size - at < header.slot_bytes)
			break;
		if (ls_ring_parse_slot(data + at, header.slot_bytes, index, &record,
			    &why) == 0 &&
			(record.barrier_count > LS_BARRIERS_MAX ||
				record.peer_count > LS_PEERS_MAX))
			abort();
	}
	return 0;
}
