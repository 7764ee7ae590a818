/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/join/index.h"

#include "tests/support/harness.h"

enum { ITEMS = 5000 };

static size_t
hits(const struct ls_index *x, uint32_t hash, uint32_t position)
{
	size_t walk = 0, n = 0;
	uint32_t at;

	while ((at = ls_index_next(x, hash, &walk)) != LS_INDEX_NONE)
		n += at == position;
	return n;
}

/* Few hashes for many items, so that they stand in each other's way. */
static uint32_t
crowded(uint32_t i)
{
	return i % 97 * 16;
}

LS_CASE(all);

LS_TEST(all, what_was_put_is_found)
{
	struct ls_index x = { 0 };

	ck_assert_uint_eq(hits(&x, 0, 0), 0);
	for (uint32_t i = 0; i < ITEMS; i++)
		ck_assert_int_eq(ls_index_put(&x, ls_index_hash_number(i), i), 0);
	for (uint32_t i = 0; i < ITEMS; i++)
		ck_assert_uint_eq(hits(&x, ls_index_hash_number(i), i), 1);
	ck_assert_uint_eq(hits(&x, ls_index_hash_number(ITEMS), ITEMS), 0);
	ck_assert_uint_eq(x.count, ITEMS);
	ls_index_fini(&x);
	ck_assert_uint_eq(hits(&x, ls_index_hash_number(1), 1), 0);
}

LS_TEST(all, one_hash_may_stand_for_many)
{
	struct ls_index x = { 0 };
	size_t walk = 0, n = 0;

	for (uint32_t i = 0; i < 970; i++)
		ck_assert_int_eq(ls_index_put(&x, crowded(i), i), 0);
	while (ls_index_next(&x, crowded(3), &walk) != LS_INDEX_NONE)
		n++;
	ck_assert_uint_eq(n, 10);
	ls_index_fini(&x);
}

LS_TEST(all, what_is_removed_hides_nothing)
{
	struct ls_index x = { 0 };

	for (uint32_t i = 0; i < 970; i++)
		ck_assert_int_eq(ls_index_put(&x, crowded(i), i), 0);
	for (uint32_t i = 0; i < 970; i += 3)
		ls_index_remove(&x, crowded(i), i);
	for (uint32_t i = 0; i < 970; i++)
		ck_assert_uint_eq(hits(&x, crowded(i), i), i % 3 != 0);
	for (uint32_t i = 0; i < 970; i++)
		if (i % 3 != 0)
			ls_index_remove(&x, crowded(i), i);
	ck_assert_uint_eq(x.count, 0);
	ls_index_fini(&x);
}

LS_TEST(all, hashes_depend_on_all_of_the_key)
{
	ck_assert_uint_ne(ls_index_hash_text("host-1"), ls_index_hash_text("host-2"));
	ck_assert_uint_ne(ls_index_hash_text(""), ls_index_hash_text("a"));
	ck_assert_uint_ne(ls_index_hash_number(1), ls_index_hash_number(1ull << 40));
	ck_assert_uint_eq(ls_index_hash_text("abc"), ls_index_hash_text("abc"));
}
