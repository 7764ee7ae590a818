/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "proto/wire/wire.h"
#include "tests/support/wire_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An item that was read must survive being written and read again. */
static void
fuzz_item(const uint8_t *data, size_t size)
{
	struct ls_wire_item item, again;
	const char *why;
	uint8_t *buf;
	size_t len;

	if (ls_wire_item_unpack(data, size, &item, &why) != 0)
		return;
	if (ls_test_item_pack(&item, &buf, &len) == 0) {
		if (ls_wire_item_unpack(buf, len, &again, &why) != 0 ||
			again.count != item.count ||
			(item.records != NULL &&
				memcmp(item.records, again.records,
					item.count * sizeof(*item.records)) != 0))
			abort();
		ls_wire_item_clear(&again);
		free(buf);
	}
	ls_wire_item_clear(&item);
}

/* Packs it with so much memory. */
static int
fuzz_pack(const struct ls_wire_report *r, size_t budget, uint8_t *buf, size_t *ret_len)
{
	struct ls_arena *scratch = ls_arena_new(64, budget);
	int rc = scratch == NULL
		? -ENOMEM
		: ls_wire_report_pack_to(r, scratch, buf, LS_REPORT_MAX_BYTES, ret_len);

	ls_arena_free(scratch);
	return rc;
}

/* What no peer can send, a program could try: too much, or a text that would be refused.
 * And memory ends at any place. */
static void
fuzz_series(struct ls_wire_report *r)
{
	static uint8_t buf[LS_REPORT_MAX_BYTES];
	struct ls_arena *arena = NULL;
	struct ls_wire_report again;
	const char *why;
	size_t len = 0, zoomed = r->zoomed_count, count;

	for (size_t budget = 64; budget <= 8192; budget *= 2)
		ls_ignore(fuzz_pack(r, budget, buf, &len));
	r->zoomed_count = LS_GROUPS_MAX + 1;
	if (fuzz_pack(r, LS_REPORT_MAX_BYTES, buf, &len) == 0)
		abort();
	r->zoomed_count = zoomed;
	if (zoomed > 0) {
		count = r->zoomed[0].count;
		r->zoomed[0].count = LS_SERIES_PER_GROUP_MAX + 1;
		if (fuzz_pack(r, LS_REPORT_MAX_BYTES, buf, &len) == 0)
			abort();
		r->zoomed[0].count = count;
	}
	if (!r->has_identity || r->identity_count == 0)
		return;
	r->identity[0].value[0] = '\n';
	r->identity[0].value[1] = '\0';
	if (fuzz_pack(r, LS_REPORT_MAX_BYTES, buf, &len) != 0)
		return; /* other parts of it are too long */
	if (ls_wire_report_unpack_in(buf, len, &arena, &again, &why) != 0 ||
		strcmp(again.identity[0].value, "\\x0a") != 0)
		abort();
	ls_arena_free(arena);
}

/* Memory ends at any place of the reading. */
static void
fuzz_tight(const uint8_t *data, size_t size)
{
	struct ls_wire_report r;
	struct ls_arena *arena;
	const char *why;

	for (size_t budget = 64; budget <= 65536; budget += budget / 4) {
		arena = ls_arena_new(64, budget);
		ls_ignore(ls_wire_report_unpack_in(data, size, &arena, &r, &why));
		ls_arena_free(arena);
	}
}

static void
fuzz_report(const uint8_t *data, size_t size)
{
	struct ls_arena *arena = NULL, *arena_again = NULL;
	struct ls_wire_report report, again;
	const char *why;
	uint8_t *buf;
	size_t len, i;

	if (ls_wire_report_unpack_in(data, size, &arena, &report, &why) != 0) {
		ls_arena_free(arena);
		return;
	}
	for (i = 0; i < report.item_count; i++)
		fuzz_item(report.items[i].data, report.items[i].len);
	if (ls_test_report_pack(&report, &buf, &len) == 0) {
		if (ls_wire_report_unpack_in(buf, len, &arena_again, &again, &why) !=
				0 ||
			again.zoomed_count != report.zoomed_count ||
			again.identity_count != report.identity_count)
			abort();
		ls_arena_free(arena_again);
		free(buf);
	}
	fuzz_tight(data, size);
	fuzz_series(&report);
	ls_arena_free(arena);
}

static void
fuzz_ack(const uint8_t *data, size_t size)
{
	struct ls_wire_ack ack;
	const char *why;

	if (ls_wire_ack_unpack(data, size, &ack, &why) == 0 &&
		(ack.need_count > LS_RINGS_MAX ||
			strlen(ack.reason) >= sizeof(ack.reason) ||
			ack.need_dictionary_count > LS_GROUPS_MAX ||
			ack.zoom_ns > LS_ZOOM_MAX_NS))
		abort();
}

/* A slot that a ring's reader accepts must go over the wire unchanged. */
static void
fuzz_slot(const uint8_t *data, size_t size)
{
	struct ls_record record;
	struct ls_wire_item item = { .seq = 1,
		.kind = LS_WIRE_STEPS,
		.count = 1,
		.records = &record },
			    again;
	const char *why;
	uint8_t *buf;
	size_t len;

	if (ls_ring_parse_slot(data, size, 0, &record, &why) != 0)
		return;
	if (ls_test_item_pack(&item, &buf, &len) != 0 ||
		ls_wire_item_unpack(buf, len, &again, &why) != 0 ||
		again.records[0].step != record.step ||
		again.records[0].t_begin_ns != record.t_begin_ns)
		abort();
	ls_wire_item_clear(&again);
	free(buf);
}

/* The first byte says what the rest is. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'i':
		fuzz_item(data + 1, size - 1);
		break;
	case 'r':
		fuzz_report(data + 1, size - 1);
		break;
	case 'a':
		fuzz_ack(data + 1, size - 1);
		break;
	case 's':
		fuzz_slot(data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
