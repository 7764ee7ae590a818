/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "tests/support/harness.h"
#include "tests/support/wire_examples.h"

static const char *why;

static void
assert_same(const struct ls_wire_chunk_item *a, const struct ls_wire_chunk_item *b)
{
	size_t i;

	ck_assert_uint_eq(a->seq, b->seq);
	ck_assert_int_eq((int)a->kind, (int)b->kind);
	ck_assert_uint_eq(a->hash, b->hash);
	ck_assert_str_eq(a->group, b->group);
	ck_assert_uint_eq(a->series_count, b->series_count);
	for (i = 0; i < a->series_count; i++)
		ck_assert_str_eq(a->series[i], b->series[i]);
	ck_assert_uint_eq(a->t_first_mono_ns, b->t_first_mono_ns);
	ck_assert_uint_eq(a->t_last_mono_ns, b->t_last_mono_ns);
	ck_assert_uint_eq(a->rows, b->rows);
	ck_assert_uint_eq(a->body_len, b->body_len);
	if (a->body_len > 0)
		ck_assert_mem_eq(a->body, b->body, a->body_len);
	ck_assert_uint_eq(a->samples, b->samples);
	ck_assert_int_eq((int)a->reason, (int)b->reason);
}

/* Packs, compares with a golden file and with what protobuf-c writes of it, and reads
 * it back. */
static void
assert_item(const struct ls_wire_chunk_item *item, const char *path)
{
	struct ls_wire_chunk_item back;
	Lockstep__ChunkItem *m;
	uint8_t buf[256], again[256];
	size_t len, want, i;
	char *golden = ls_test_read(ls_test_source(path), &want);

	ck_assert_int_eq(ls_wire_chunk_item_pack(item, buf, sizeof(buf), &len), 0);
	ck_assert_uint_eq(len, want);
	ck_assert_mem_eq(buf, golden, len);
	m = lockstep__chunk_item__unpack(NULL, len, buf);
	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(lockstep__chunk_item__get_packed_size(m), len);
	lockstep__chunk_item__pack(m, again);
	ck_assert_mem_eq(again, buf, len);
	lockstep__chunk_item__free_unpacked(m, NULL);
	for (i = 0; i < len; i++) {
		ck_assert_int_eq(ls_wire_chunk_item_pack(item, again, i, &want),
			-EMSGSIZE);
	}
	ck_assert_int_eq(ls_wire_chunk_item_unpack(buf, len, &back, &why), 0);
	assert_same(item, &back);
	if (back.body_len > 0)
		ck_assert(back.body > buf && back.body + back.body_len <= buf + len);
	ls_wire_chunk_item_clear(&back);
	ls_wire_chunk_item_clear(&back); /* harmless twice */
	free(golden);
}

LS_CASE(pack);

LS_TEST(pack, chunk_item_keeps_every_field_and_its_golden_bytes)
{
	struct ls_wire_chunk_item item = wire_example_dictionary();

	assert_item(&item, "tests/golden/chunk_dictionary.bin");
	item = wire_example_chunk();
	assert_item(&item, "tests/golden/chunk_chunk.bin");
	item = wire_example_lost();
	assert_item(&item, "tests/golden/chunk_lost.bin");
}

LS_CASE(unpack);

LS_TEST(unpack, chunk_item_cut_short_is_refused)
{
	struct ls_wire_chunk_item items[] = { wire_example_dictionary(),
		wire_example_chunk(), wire_example_lost() },
				  back;
	uint8_t buf[256], *part;
	size_t k, len, i;

	for (k = 0; k < 3; k++) {
		ck_assert_int_eq(
			ls_wire_chunk_item_pack(&items[k], buf, sizeof(buf), &len), 0);
		for (i = 0; i < len; i++) {
			part = malloc(i + 1);
			memcpy(part, buf, i);
			why = NULL;
			ck_assert_int_lt(
				ls_wire_chunk_item_unpack(part, i, &back, &why), 0);
			ck_assert_ptr_nonnull(why);
			free(part);
		}
	}
}

/* FNV-1a 64 of the bytes "g\0a\0b\0", computed by hand of the published constants. */
LS_TEST(pack, dictionary_hash_covers_group_names_and_their_borders)
{
	const char *ab[] = { "a", "b" }, *joined[] = { "ab" };
	const uint8_t bytes[] = { 'g', 0, 'a', 0, 'b', 0 };
	uint64_t h = 14695981039346656037u;
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		h = (h ^ bytes[i]) * 1099511628211u;
	ck_assert_uint_eq(ls_wire_dictionary_hash("g", ab, 2), h);
	ck_assert_uint_ne(ls_wire_dictionary_hash("g", joined, 1), h);
	ck_assert_uint_ne(ls_wire_dictionary_hash("ga", ab + 1, 1), h);
}

/* Packs what may be impossible and gives the answer of unpack. */
static int
unpack_of(const struct ls_wire_chunk_item *item)
{
	static uint8_t buf[LS_CHUNK_ITEM_MAX_BYTES];
	struct ls_wire_chunk_item back;
	size_t len;
	int rc;

	ck_assert_int_eq(ls_wire_chunk_item_pack(item, buf, sizeof(buf), &len), 0);
	rc = ls_wire_chunk_item_unpack(buf, len, &back, &why);
	if (rc == 0) {
		assert_same(item, &back);
		ls_wire_chunk_item_clear(&back);
	}
	return rc;
}

static void
seal_dictionary(struct ls_wire_chunk_item *item)
{
	item->hash =
		ls_wire_dictionary_hash(item->group, item->series, item->series_count);
}

LS_TEST(unpack, dictionary_with_impossible_contents_is_refused)
{
	struct ls_wire_chunk_item good = wire_example_dictionary(), item = good;
	const char *series[] = { good.series[0], good.series[1], good.series[0] };
	char text[LS_SERIES_TEXT_MAX_BYTES + 1];

	ck_assert_int_eq(unpack_of(&good), 0);
	item.seq = 0;
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item = good;
	item.hash ^= 1;
	ck_assert_int_eq(unpack_of(&item), -LS_ECORRUPT);
	item = good;
	item.group[0] = '\0';
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item.group[0] = '\n';
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item = good;
	item.series_count = 0;
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item = good;
	item.series = series;
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_EPARSE); /* the same twice */
	series[2] = "";
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	series[2] = "\x80";
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	series[2] = text;
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	text[sizeof(text) - 2] = '\0';
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), 0);
}

LS_TEST(pack, the_largest_dictionary_fits_and_no_larger_one)
{
	static char text[LS_SERIES_PER_GROUP_MAX + 1][LS_SERIES_TEXT_MAX_BYTES];
	static uint8_t buf[LS_CHUNK_ITEM_MAX_BYTES + 1024];
	const char *series[LS_SERIES_PER_GROUP_MAX + 1];
	struct ls_wire_chunk_item item = wire_example_dictionary(), back;
	Lockstep__Dictionary d = LOCKSTEP__DICTIONARY__INIT;
	Lockstep__ChunkItem m = LOCKSTEP__CHUNK_ITEM__INIT;
	size_t i, len;

	for (i = 0; i <= LS_SERIES_PER_GROUP_MAX; i++) {
		memset(text[i], 'x', sizeof(text[i]) - 1);
		(void)snprintf(text[i], sizeof(text[i]), "%05zu", i);
		text[i][5] = 'x';
		series[i] = text[i];
	}
	memset(item.group, 'g', sizeof(item.group) - 1);
	item.series = series;
	item.series_count = LS_SERIES_PER_GROUP_MAX;
	item.seq = UINT64_MAX;
	seal_dictionary(&item);
	ck_assert_int_eq(unpack_of(&item), 0);
	item.series_count++;
	ck_assert_int_eq(ls_wire_chunk_item_pack(&item, buf, sizeof(buf), &len),
		-EMSGSIZE);
	m.seq = 1;
	m.body_case = LOCKSTEP__CHUNK_ITEM__BODY_DICTIONARY;
	m.dictionary = &d;
	d.group = (char[]){ "g" };
	d.n_series = LS_SERIES_PER_GROUP_MAX + 1;
	d.series = calloc(d.n_series, sizeof(*d.series));
	for (i = 0; i < d.n_series; i++) {
		d.series[i] = text[i];
		text[i][6] = '\0';
	}
	len = lockstep__chunk_item__pack(&m, buf);
	ck_assert_int_eq(ls_wire_chunk_item_unpack(buf, len, &back, &why), -LS_ELIMIT);
	free(d.series);
}

LS_TEST(unpack, chunk_with_impossible_contents_is_refused)
{
	static uint8_t body[LS_CHUNK_BODY_MAX_BYTES + 1];
	struct ls_wire_chunk_item good = wire_example_chunk(), item = good, back;
	size_t len;

	ck_assert_int_eq(unpack_of(&good), 0);
	item.rows = 0;
	ck_assert_int_eq(unpack_of(&item), -LS_ELIMIT);
	item.rows = LS_CHUNK_ROWS_MAX + 1;
	ck_assert_int_eq(unpack_of(&item), -LS_ELIMIT);
	item = good;
	item.t_first_mono_ns = item.t_last_mono_ns + 1;
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item.t_last_mono_ns = LS_WIRE_TIME_MAX_NS + 1;
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item = good;
	item.body_len = 0;
	ck_assert_int_eq(unpack_of(&item), -LS_ELIMIT);
	item.body = body;
	item.body_len = LS_CHUNK_BODY_MAX_BYTES;
	ck_assert_int_eq(unpack_of(&item), 0);
	item.body_len++;
	ck_assert_int_eq(unpack_of(&item), -LS_ELIMIT);
	ck_assert_int_eq(ls_wire_chunk_item_unpack(body, LS_CHUNK_ITEM_MAX_BYTES + 1,
				 &back, &why),
		-LS_ELIMIT);
	item.body_len = 10; /* nobody reads it */
	item.series_count = LS_SERIES_PER_GROUP_MAX + 1;
	ck_assert_int_eq(ls_wire_chunk_item_pack(&item, body, sizeof(body), &len),
		-EMSGSIZE);
}

LS_TEST(unpack, loss_with_impossible_contents_is_refused)
{
	struct ls_wire_chunk_item good = wire_example_lost(), item = good;

	ck_assert_int_eq(unpack_of(&good), 0);
	item.t_first_mono_ns = item.t_last_mono_ns + 1;
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item.t_last_mono_ns = 0; /* not known */
	ck_assert_int_eq(unpack_of(&item), 0);
	item.t_first_mono_ns = UINT64_MAX;
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
	item = good;
	item.group[0] = '\0'; /* not known any more */
	ck_assert_int_eq(unpack_of(&item), 0);
	item.group[0] = '\x7f';
	ck_assert_int_eq(unpack_of(&item), -LS_ERANGE);
}

static int
unpack_raw(const uint8_t *buf, size_t len, struct ls_wire_chunk_item *ret_item)
{
	int rc = ls_wire_chunk_item_unpack(buf, len, ret_item, &why);

	if (rc == 0)
		ls_wire_chunk_item_clear(ret_item);
	return rc;
}

#define RAW(...)                                     \
	unpack_raw((const uint8_t[]){ __VA_ARGS__ }, \
		sizeof((const uint8_t[]){ __VA_ARGS__ }), &item)

LS_TEST(unpack, bytes_that_make_no_sense_are_refused)
{
	struct ls_wire_chunk_item item;

	ck_assert_int_eq(RAW(0x08, 1, 0x22, 2, 0x20, 5), 0); /* the smallest loss */
	ck_assert_int_eq(RAW(0x08, 1), -LS_EVERSION); /* of no kind */
	ck_assert_int_eq(RAW(0x08, 1, 0x22, 0, 0x22, 0), -LS_EPARSE); /* of two */
	/* a number for a body */
	ck_assert_int_eq(RAW(0x08, 1, 0x20, 0), -LS_EPARSE);
	/* longer than the rest */
	ck_assert_int_eq(RAW(0x08, 1, 0x22, 2, 0x0a), -LS_EPARSE);
	/* foreign types within */
	ck_assert_int_eq(RAW(0x08, 1, 0x22, 2, 0x08, 1), -LS_EPARSE);
	ck_assert_int_eq(RAW(0x08, 1, 0x1a, 2, 0x08, 1), -LS_EPARSE);
	ck_assert_int_eq(RAW(0x08, 1, 0x12, 2, 0x08, 1), -LS_EPARSE);
	ck_assert_int_eq(RAW(0x00, 1), -LS_EPARSE); /* field 0 */
	ck_assert_int_eq(RAW(0x0b), -LS_EPARSE); /* a group */
	ck_assert_int_eq(
		RAW(0x08, 1, 0x22, 2, 0x20, 5, 0xa0, 0x80, 0x80, 0x80, 0x80, 0, 1),
		-LS_EPARSE); /* a tag of six bytes */
	ck_assert_int_eq(RAW(0x08, 0x80), -LS_EPARSE);
	ck_assert_int_eq(
		RAW(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2),
		-LS_EPARSE); /* more than 64 bits */
	ck_assert_int_eq(RAW(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				 0xff, 0),
		-LS_EPARSE);
}

LS_TEST(unpack, what_a_newer_agent_adds_is_passed_over)
{
	struct ls_wire_chunk_item item;
	const uint8_t added[] = { 0x08, 1, 0x22, 0x09, 0x28, 99, /* a new reason */
		/* fields 6 and 7 of Lost */
		0x30, 7, 0x3d, 1, 2, 3, 4,
		/* fields 5 and 6 of the item */
		0x2a, 1, 'x', 0x31, 1, 2, 3, 4, 5, 6, 7, 8 };

	ck_assert_int_eq(ls_wire_chunk_item_unpack(added, sizeof(added), &item, &why),
		0);
	ck_assert_int_eq((int)item.reason, (int)LS_LOST_UNKNOWN);
	ls_wire_chunk_item_clear(&item);
}
