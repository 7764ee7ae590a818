/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_demand(int holds)
{
	if (!holds)
		abort();
}

/* What our own reader accepts, protobuf-c must read alike. */
static void
fuzz_compare(const struct ls_wire_chunk_item *item, const Lockstep__ChunkItem *m)
{
	size_t i;

	fuzz_demand(m != NULL && m->seq == item->seq);
	switch (item->kind) {
	case LS_WIRE_DICTIONARY:
		fuzz_demand(m->body_case == LOCKSTEP__CHUNK_ITEM__BODY_DICTIONARY);
		fuzz_demand(m->dictionary->hash == item->hash);
		fuzz_demand(strcmp(m->dictionary->group, item->group) == 0);
		fuzz_demand(m->dictionary->n_series == item->series_count);
		for (i = 0; i < item->series_count; i++)
			fuzz_demand(strcmp(m->dictionary->series[i], item->series[i]) ==
				0);
		break;
	case LS_WIRE_CHUNK:
		fuzz_demand(m->body_case == LOCKSTEP__CHUNK_ITEM__BODY_CHUNK);
		fuzz_demand(m->chunk->dictionary == item->hash);
		fuzz_demand(m->chunk->t_first_mono_ns == item->t_first_mono_ns);
		fuzz_demand(m->chunk->t_last_mono_ns == item->t_last_mono_ns);
		fuzz_demand(m->chunk->rows == item->rows);
		fuzz_demand(m->chunk->body.len == item->body_len);
		fuzz_demand(memcmp(m->chunk->body.data, item->body, item->body_len) ==
			0);
		break;
	case LS_WIRE_LOST:
		fuzz_demand(m->body_case == LOCKSTEP__CHUNK_ITEM__BODY_LOST);
		fuzz_demand(strcmp(m->lost->group, item->group) == 0);
		fuzz_demand(m->lost->t_from_mono_ns == item->t_first_mono_ns);
		fuzz_demand(m->lost->t_to_mono_ns == item->t_last_mono_ns);
		fuzz_demand(m->lost->samples == item->samples);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_wire_chunk_item item, again;
	Lockstep__ChunkItem *m;
	const char *why;
	uint8_t *buf;
	size_t len;

	if (ls_wire_chunk_item_unpack(data, size, &item, &why) != 0)
		return 0;
	m = lockstep__chunk_item__unpack(NULL, size, data);
	fuzz_compare(&item, m);
	lockstep__chunk_item__free_unpacked(m, NULL);
	buf = malloc(size);
	fuzz_demand(buf != NULL);
	/* Ours is the shortest form, so there is room for it. */
	fuzz_demand(ls_wire_chunk_item_pack(&item, buf, size, &len) == 0);
	fuzz_demand(ls_wire_chunk_item_unpack(buf, len, &again, &why) == 0);
	fuzz_demand(again.seq == item.seq && again.kind == item.kind &&
		again.hash == item.hash && again.rows == item.rows &&
		again.samples == item.samples && again.reason == item.reason &&
		again.series_count == item.series_count);
	ls_wire_chunk_item_clear(&again);
	ls_wire_chunk_item_clear(&item);
	free(buf);
	return 0;
}
