/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/inferred.h"

#include <string.h>
#include "proto/base/bytes.h"
#include "proto/base/hash.h"

#define INFERRED_ATTEMPT_AT 12

static const uint8_t inferred_magic[3] = { 'L', 'S', 'i' };

bool
ls_inferred_is(const uint8_t id[LS_RING_ID_BYTES])
{
	return memcmp(id, inferred_magic, sizeof(inferred_magic)) == 0 &&
		id[sizeof(inferred_magic)] > LS_STEP_MARKER &&
		id[sizeof(inferred_magic)] < LS_STEP_SOURCE_COUNT;
}

void
ls_inferred_id(const struct ls_spool *spool, enum ls_step_source source,
	const char *name, uint32_t attempt, uint8_t ret_id[LS_RING_ID_BYTES])
{
	uint64_t hash = ls_hash(LS_HASH_START, ls_spool_boot(spool), LS_BOOT_BYTES);

	hash = ls_hash(hash, name, strlen(name));
	memcpy(ret_id, inferred_magic, sizeof(inferred_magic));
	ret_id[sizeof(inferred_magic)] = (uint8_t)source;
	ls_bytes_put(ret_id + sizeof(inferred_magic) + 1, hash, 8);
	ls_bytes_put(ret_id + INFERRED_ATTEMPT_AT, attempt, 4);
}

bool
ls_inferred_same(const uint8_t a[LS_RING_ID_BYTES], const uint8_t b[LS_RING_ID_BYTES])
{
	return memcmp(a, b, INFERRED_ATTEMPT_AT) == 0;
}

uint32_t
ls_inferred_attempt(const uint8_t id[LS_RING_ID_BYTES])
{
	return (uint32_t)ls_bytes_get(id + INFERRED_ATTEMPT_AT, 4);
}

const struct ls_spool_ring *
ls_inferred_settle(struct ls_spool *spool, enum ls_step_source source,
	const uint8_t id[LS_RING_ID_BYTES], uint64_t now_mono_ns)
{
	const struct ls_spool_ring *c;
	struct ls_spool_ring newest = { 0 };
	bool found = false;
	size_t i;

	for (i = 0; (c = ls_spool_ring_at(spool, i)) != NULL; i++) {
		if (!ls_inferred_same(c->id, id) ||
			(found &&
				ls_inferred_attempt(c->id) <
					ls_inferred_attempt(newest.id)))
			continue;
		newest = *c;
		found = true;
	}
	while (i-- > 0) { /* downwards: the last takes the place of a forgotten one */
		struct ls_spool_ring one = *ls_spool_ring_at(spool, i);

		if (!ls_inferred_is(one.id) ||
			one.id[sizeof(inferred_magic)] != (uint8_t)source ||
			(found && memcmp(one.id, newest.id, sizeof(one.id)) == 0))
			continue;
		if (one.end_seq == 0)
			ls_ignore(ls_inferred_end(spool, one.id, one.next,
				now_mono_ns)); /* next time */
		else if (one.end_seq <= ls_spool_acked(spool))
			ls_spool_ring_forget(spool, one.id);
	}
	return found ? ls_spool_ring_find(spool, newest.id) : NULL;
}

static int
inferred_push_run(struct ls_spool *spool, const uint8_t id[LS_RING_ID_BYTES],
	struct ls_record *records, size_t count)
{
	struct ls_wire_item steps = { .kind = LS_WIRE_STEPS,
		.first_index = records[0].step,
		.count = count,
		.records = records };

	memcpy(steps.ring_id, id, sizeof(steps.ring_id));
	return ls_spool_push(spool, &steps);
}

static int
inferred_push_gap(struct ls_spool *spool, const uint8_t id[LS_RING_ID_BYTES],
	uint64_t first, uint64_t count)
{
	struct ls_wire_item gap = { .kind = LS_WIRE_GAP,
		.first_index = first,
		.count = count,
		.reason = LS_GAP_UNKNOWN };

	memcpy(gap.ring_id, id, sizeof(gap.ring_id));
	return ls_spool_push(spool, &gap);
}

int
ls_inferred_push(struct ls_spool *spool, const uint8_t id[LS_RING_ID_BYTES],
	struct ls_record *records, size_t count, uint64_t *io_next,
	uint64_t *io_records, uint64_t *io_lost)
{
	size_t i = 0, n;
	int rc;

	while (i < count) {
		uint64_t step = records[i].step;

		if (*io_next != LS_INFERRED_NONE && step < *io_next) {
			i++;
			continue;
		}
		if (*io_next != LS_INFERRED_NONE && step > *io_next) {
			rc = inferred_push_gap(spool, id, *io_next, step - *io_next);
			if (rc != 0)
				return rc;
			*io_lost += step - *io_next;
			*io_next = step;
		}
		for (n = 1; i + n < count && n < LS_STEPS_PER_ITEM &&
			records[i + n].step == step + n;
			n++)
			continue;
		rc = inferred_push_run(spool, id, &records[i], n);
		if (rc != 0)
			return rc;
		*io_next = step + n;
		*io_records += n;
		i += n;
	}
	return 0;
}

int
ls_inferred_end(struct ls_spool *spool, const uint8_t id[LS_RING_ID_BYTES],
	uint64_t next, uint64_t now_mono_ns)
{
	struct ls_wire_item end = { .kind = LS_WIRE_END,
		.count = next,
		.how = LS_END_UNKNOWN,
		.t_mono_ns = now_mono_ns };

	memcpy(end.ring_id, id, sizeof(end.ring_id));
	return ls_spool_push(spool, &end);
}
