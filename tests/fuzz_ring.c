/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "proto/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
		if (ls_ring_parse_slot(data + at, header.slot_bytes, index, &record, &why) == 0 &&
			(record.barrier_count > LS_BARRIERS_MAX || record.peer_count > LS_PEERS_MAX))
			abort();
	}
	return 0;
}
