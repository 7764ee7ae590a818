/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/torus.h"

#include "tests/support/harness.h"

static struct ls_torus
torus(const char *text)
{
	struct ls_torus t = { .wrap_known = true };

	ck_assert_int_eq(ls_torus_parse(text, &t), 0);
	ck_assert(!t.wrap_known);
	return t;
}

static const char *const no_topology[] = { "", "4", "4x", "x4", "4x4x4x4", "4x4x",
	"0x4", "4x-1", "1025x2", "99999999999x2", "4,4", "4x4 ", "4x 4" };

LS_CASE(texts);

LS_TEST(texts, topology_is_two_or_three_sides)
{
	struct ls_torus t = torus("4x4x8");

	ck_assert_uint_eq(ls_torus_volume(t.size), 128);
	t = torus("8x16");
	ck_assert_uint_eq(t.size[2], 1);
	t = torus("1024x1024x1024");
	ck_assert_uint_eq(ls_torus_volume(t.size), 1u << 30);
}

LS_TEST_EACH(texts, anything_else_is_no_topology, no_topology)
{
	struct ls_torus t = { .size = { 7, 7, 7 } };

	ck_assert_int_eq(ls_torus_parse(no_topology[_i], &t), -LS_EPARSE);
	ck_assert_uint_eq(t.size[0], 7);
}

LS_TEST(texts, bounds_are_lists)
{
	uint32_t b[LS_TORUS_AXES];

	ck_assert_int_eq(ls_torus_parse_bounds("2,2,1", b), 0);
	ck_assert_uint_eq(ls_torus_volume(b), 4);
	ck_assert_int_eq(ls_torus_parse_bounds("2,4", b), 0);
	ck_assert_uint_eq(ls_torus_volume(b), 8);
	ck_assert_int_eq(ls_torus_parse_bounds("2x2", b), -LS_EPARSE);
	ck_assert_int_eq(ls_torus_parse_bounds("2,2,1,1", b), -LS_EPARSE);
}

LS_TEST(texts, wrap_is_a_list_of_truths)
{
	struct ls_torus t = torus("4x4x4");

	ck_assert_int_eq(ls_torus_parse_wrap("true,false,true", &t), 0);
	ck_assert(t.wrap_known && t.wrap[0] && !t.wrap[1] && t.wrap[2]);
	ck_assert_int_eq(ls_torus_parse_wrap("false,true", &t), 0);
	ck_assert(!t.wrap[0] && t.wrap[1] && !t.wrap[2]);
	ck_assert_int_eq(ls_torus_parse_wrap("yes", &t), -LS_EPARSE);
	ck_assert_int_eq(ls_torus_parse_wrap("", &t), -LS_EPARSE);
	ck_assert_int_eq(ls_torus_parse_wrap("true,", &t), -LS_EPARSE);
	ck_assert_int_eq(ls_torus_parse_wrap("true,true,true,true", &t), -LS_EPARSE);
	ck_assert_int_eq(ls_torus_parse_wrap("truefalse", &t), -LS_EPARSE);
	ck_assert(!t.wrap[0] && t.wrap[1]); /* as it was */
}

LS_CASE(places);

/* The published samples of facts: the ids of one host are one block. */
LS_TEST(places, published_device_ids_are_blocks)
{
	const uint64_t v5p[] = { 404, 405, 412, 413 }, v4[] = { 13, 8, 12, 9 };
	const uint32_t block[] = { 2, 2, 1 };
	struct ls_torus t = torus("8x8x16");
	uint32_t at[4][LS_TORUS_AXES];

	ck_assert_int_eq(ls_torus_place_host(&t, block, v5p, 4, at), 0);
	ck_assert(at[0][0] == 4 && at[0][1] == 2 && at[0][2] == 6);
	ck_assert(at[3][0] == 5 && at[3][1] == 3 && at[3][2] == 6);
	t = torus("4x4x8");
	ck_assert_int_eq(ls_torus_place_host(&t, block, v4, 4, at), 0);
	/* in the order given */
	ck_assert(at[0][0] == 1 && at[0][1] == 3 && at[0][2] == 0);
	ck_assert(at[1][0] == 0 && at[1][1] == 2 && at[1][2] == 0);
}

LS_TEST(places, other_device_ids_have_no_place)
{
	const uint64_t row[] = { 0, 1, 2, 3 }, twice[] = { 0, 1, 4, 4 },
		       three[] = { 0, 1, 4 };
	const uint64_t beyond[] = { 128, 129, 132, 133 }, shifted[] = { 1, 2, 5, 6 };
	const uint64_t huge[] = { 0, UINT64_MAX, 4, 5 };
	const uint32_t block[] = { 2, 2, 1 }, odd[] = { 3, 1, 1 },
		       none[] = { 1024, 1024, 1 };
	struct ls_torus t = torus("4x4x8");
	uint32_t at[4][LS_TORUS_AXES];

	ck_assert_int_eq(ls_torus_place_host(&t, block, row, 4, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, block, twice, 4, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, block, three, 3, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, block, beyond, 4, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, block, shifted, 4, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, block, huge, 4, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, odd, row, 3, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, none, row, 4, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place_host(&t, block, row, 0, at), -LS_ERANGE);
	ck_assert_int_eq(ls_torus_place(&t, 128, at[0]), -LS_ERANGE);
}

static const struct {
	enum ls_generation generation;
	const char *topology;
	bool known, wrap[LS_TORUS_AXES];
} rules[] = {
	{ LS_GENERATION_V4, "4x4x8", true, { true, true, true } },
	{ LS_GENERATION_V4, "2x4x4", true, { false, false, false } },
	{ LS_GENERATION_V5P, "8x8x16", true, { true, true, true } },
	{ LS_GENERATION_V7X, "2x2x4", true, { false, false, false } },
	{ LS_GENERATION_V5E, "8x16", true, { false, true, false } },
	{ LS_GENERATION_V6E, "16x16", true, { true, true, false } },
	{ LS_GENERATION_V6E, "4x4", true, { false, false, false } },
	{ LS_GENERATION_V3, "32x32", false, { false, false, false } },
	{ LS_GENERATION_TPU8T, "4x4x4", false, { false, false, false } },
};

LS_TEST_EACH(places, wrap_follows_the_generation, rules)
{
	struct ls_torus t = torus(rules[_i].topology);
	unsigned axis;

	ls_torus_wrap_by_rule(&t, rules[_i].generation);
	ck_assert_int_eq(t.wrap_known, rules[_i].known);
	for (axis = 0; axis < LS_TORUS_AXES; axis++)
		ck_assert_int_eq(t.wrap[axis], rules[_i].wrap[axis]);
}

LS_TEST(places, neighbours_wrap_only_where_the_axis_does)
{
	const uint32_t corner[] = { 0, 0, 0 }, inside[] = { 1, 1, 1 };
	uint64_t n[LS_TORUS_NEIGHBOURS_MAX];
	struct ls_torus t = torus("4x4x8");

	/* not known: nothing said */
	ck_assert_uint_eq(ls_torus_neighbours(&t, corner, n), 0);
	ls_torus_wrap_by_rule(&t, LS_GENERATION_V4);
	ck_assert_uint_eq(ls_torus_neighbours(&t, corner, n), 6);
	ck_assert(n[0] == 1 && n[1] == 3 && n[2] == 4 && n[3] == 12 && n[4] == 16 &&
		n[5] == 112);
	ck_assert_uint_eq(ls_torus_neighbours(&t, inside, n), 6);
	ck_assert(n[0] == 5 && n[1] == 17 && n[2] == 20 && n[3] == 22 && n[4] == 25 &&
		n[5] == 37);
	t = torus("2x2x1");
	ls_torus_wrap_by_rule(&t, LS_GENERATION_V4);
	ck_assert_uint_eq(ls_torus_neighbours(&t, corner, n), 2);
	ck_assert(n[0] == 1 && n[1] == 2);
	ck_assert_int_eq(ls_torus_parse_wrap("true,true,true", &t), 0);
	/* both ways, one chip */
	ck_assert_uint_eq(ls_torus_neighbours(&t, corner, n), 2);
}

LS_TEST(places, links_go_both_ways)
{
	struct ls_torus t = torus("4x16");
	uint64_t n[LS_TORUS_NEIGHBOURS_MAX], back[LS_TORUS_NEIGHBOURS_MAX], device;
	uint32_t at[LS_TORUS_AXES];

	ls_torus_wrap_by_rule(&t, LS_GENERATION_V5E);
	for (device = 0; device < 64; device++) {
		size_t count, i, k, m;

		ck_assert_int_eq(ls_torus_place(&t, device, at), 0);
		count = ls_torus_neighbours(&t, at, n);
		ck_assert_uint_ge(count, 3);
		for (i = 0; i < count; i++) {
			ck_assert_int_eq(ls_torus_place(&t, n[i], at), 0);
			m = ls_torus_neighbours(&t, at, back);
			for (k = 0; k < m && back[k] != device; k++)
				;
			ck_assert_uint_lt(k, m);
		}
	}
}

LS_TEST(places, global_worker_counts_slices)
{
	ck_assert_uint_eq(ls_torus_global_worker(3, 4, 0), 3);
	ck_assert_uint_eq(ls_torus_global_worker(3, 4, 2), 11);
}
