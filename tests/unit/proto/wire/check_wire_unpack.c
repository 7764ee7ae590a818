/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire_unpack: what it takes, what it leaves to protobuf-c, and that
 * both have the same. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"
#include "tests/support/harness.h"

static struct ls_arena *arena;

static void
setup(void)
{
	arena = ls_arena_new(65536, 1024 * 1024);
	ck_assert_ptr_nonnull(arena);
}

static void
teardown(void)
{
	ls_arena_free(arena);
}

static ProtobufCMessage *
usual(const ProtobufCMessageDescriptor *type, const void *buf, size_t len)
{
	ls_arena_reset(arena);
	return ls_wire_unpack_usual(type, buf, len, arena);
}

LS_CASE(wire_unpack, setup, teardown);

LS_TEST(wire_unpack, golden_messages_are_usual)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		const char *path;
	} golden[] = {
		{ &lockstep__item__descriptor, "tests/golden/item_steps.bin" },
		{ &lockstep__item__descriptor, "tests/golden/item_gap.bin" },
		{ &lockstep__item__descriptor, "tests/golden/item_end.bin" },
		{ &lockstep__report__descriptor, "tests/golden/report.bin" },
		{ &lockstep__report__descriptor, "tests/golden/report_series.bin" },
		{ &lockstep__chunk_item__descriptor,
			"tests/golden/chunk_dictionary.bin" },
		{ &lockstep__chunk_item__descriptor, "tests/golden/chunk_chunk.bin" },
		{ &lockstep__chunk_item__descriptor, "tests/golden/chunk_lost.bin" },
		{ &lockstep__ack__descriptor, "tests/golden/ack.bin" },
		{ &lockstep__ack__descriptor, "tests/golden/ack_series.bin" },
	};
	size_t i, len;

	for (i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		char *buf = ls_test_read(ls_test_source(golden[i].path), &len);
		ProtobufCMessage *m = usual(golden[i].type, buf, len);
		uint8_t *again;

		ck_assert_msg(m != NULL, "%s", golden[i].path);
		ck_assert_uint_eq(protobuf_c_message_get_packed_size(m), len);
		again = malloc(len);
		ck_assert_uint_eq(protobuf_c_message_pack(m, again), len);
		ck_assert_mem_eq(again, buf, len);
		free(again);
		free(buf);
	}
}

LS_TEST(wire_unpack, what_is_cut_is_not_taken_for_whole)
{
	size_t len, cut;
	char *buf = ls_test_read(ls_test_source("tests/golden/item_steps.bin"), &len);

	for (cut = 1; cut < len; cut++) {
		/* Of its own size, so that a sanitizer sees who reads on. */
		uint8_t *part = malloc(cut);
		ProtobufCMessage *m, *theirs;

		memcpy(part, buf, cut);
		m = usual(&lockstep__item__descriptor, part, cut);
		theirs = protobuf_c_message_unpack(&lockstep__item__descriptor, NULL,
			cut, part);
		ck_assert(m == NULL || theirs != NULL);
		if (theirs != NULL)
			protobuf_c_message_free_unpacked(theirs, NULL);
		free(part);
	}
	free(buf);
}

/* Each is left to protobuf-c; what that makes of it is its own affair. */
LS_TEST(wire_unpack, unusual_messages_are_left)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		const char *bytes;
		size_t len;
	} left[] = {
		/* a field twice */
		{ &lockstep__report__descriptor, "\x08\x01\x08\x01", 4 },
		/* field 100 */
		{ &lockstep__report__descriptor, "\xa0\x06\x01", 3 },
		/* bytes for a number */
		{ &lockstep__report__descriptor, "\x0a\x00", 2 },
		/* a number for bytes */
		{ &lockstep__report__descriptor, "\x10\x01", 2 },
		/* field 0 */
		{ &lockstep__report__descriptor, "\x00", 1 },
		/* a tag longer than it must be */
		{ &lockstep__report__descriptor, "\x88\x00\x01", 3 },
		/* a list in two pieces */
		{ &lockstep__report__descriptor, "\x42\x01x\x08\x01\x42\x01y", 8 },
		/* more than there is */
		{ &lockstep__report__descriptor, "\x12\x05ho", 4 },
		/* a length in six bytes */
		{ &lockstep__report__descriptor, "\x12\x81\x80\x80\x80\x80\x00x", 8 },
		/* 65 bits */
		{ &lockstep__report__descriptor,
			"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11 },
		{ &lockstep__report__descriptor,
			"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 },
		/* a list that is not packed */
		{ &lockstep__steps__descriptor, "\x18\x02", 2 },
		/* an empty one */
		{ &lockstep__steps__descriptor, "\x1a\x00", 2 },
		/* one with half a number */
		{ &lockstep__steps__descriptor, "\x1a\x02\x02\x80", 4 },
		/* seven bytes of a double */
		{ &lockstep__hot__descriptor,
			"\x32\x07"
			"1234567",
			9 },
		/* two of a oneof */
		{ &lockstep__item__descriptor, "\x12\x00\x1a\x00", 4 },
	};
	size_t i;

	for (i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		ck_assert_msg(usual(left[i].type, left[i].bytes, left[i].len) == NULL,
			"case %zu", i);
}

LS_TEST(wire_unpack, numbers_of_any_width_are_read)
{
	static const uint8_t hot[] = { 0x08, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x10, 0x03,
		0x22, 0x0b, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x01 };
	const Lockstep__Hot *m = (const Lockstep__Hot *)usual(
		&lockstep__hot__descriptor, hot, sizeof(hot));

	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(m->worker, UINT32_MAX);
	ck_assert_int_eq(m->age_ns, -2);
	ck_assert_uint_eq(m->n_value, 2);
	ck_assert_uint_eq(m->value[0], 1);
	ck_assert_uint_eq(m->value[1], UINT64_MAX);
	ck_assert_uint_eq(m->n_odd, 0);
}

LS_TEST(wire_unpack, what_has_no_room_is_left)
{
	uint8_t buf[260] = { 0x12, 0x80, 0x02 };

	ls_arena_free(arena);
	arena = ls_arena_new(64, 64);
	ck_assert_ptr_null(usual(&lockstep__report__descriptor, buf, sizeof(buf) - 1));
	ck_assert(ls_arena_refused(arena));
}
