/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/arena.h"

#include <stdint.h>
#include <string.h>
#include "tests/support/harness.h"

LS_CASE(arena);

LS_TEST(arena, renewed_has_its_new_budget)
{
	struct ls_arena *a = ls_arena_new(64, 64);

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(ls_arena_take(a, 64));
	ck_assert_ptr_null(ls_arena_take(a, 128));
	ls_arena_renew(a, 128);
	ck_assert(!ls_arena_refused(a));
	ck_assert_ptr_nonnull(ls_arena_take(a, 64)); /* the first piece, again */
	ck_assert_ptr_nonnull(ls_arena_take(a, 128));
	ck_assert_ptr_null(ls_arena_take(a, 16));
	ls_arena_renew(a, 0);
	ck_assert_ptr_nonnull(ls_arena_take(a, 64));
	ck_assert_ptr_null(ls_arena_take(a, 16));
	ck_assert(ls_arena_refused(a));
	ls_arena_free(a);
}

LS_TEST(arena, arena_gives_aligned_pieces_that_do_not_overlap)
{
	struct ls_arena *a = ls_arena_new(64, 65536);
	unsigned char *p[50];
	size_t i, k;

	for (i = 0; i < 50; i++) {
		p[i] = ls_arena_take(a, i + 1);
		ck_assert_ptr_nonnull(p[i]);
		ck_assert_uint_eq((uintptr_t)p[i] % _Alignof(max_align_t), 0);
		memset(p[i], (int)i, i + 1);
	}
	for (i = 0; i < 50; i++)
		for (k = 0; k <= i; k++)
			ck_assert_uint_eq(p[i][k], i);
	ck_assert(!ls_arena_refused(a));
	ls_arena_free(a);
}

LS_TEST(arena, arena_refuses_beyond_its_budget_and_says_so)
{
	struct ls_arena *a = ls_arena_new(100, 1000);

	ck_assert_ptr_nonnull(ls_arena_take(a, 96));
	ck_assert_ptr_nonnull(ls_arena_take(a, 800));
	ck_assert(!ls_arena_refused(a));
	ck_assert_ptr_null(ls_arena_take(a, 800));
	ck_assert(ls_arena_refused(a));
	ls_arena_free(a);
}

LS_TEST(arena, arena_refuses_sizes_that_overflow)
{
	struct ls_arena *a = ls_arena_new(100, 1000);

	ck_assert_ptr_null(ls_arena_take(a, SIZE_MAX));
	ck_assert_ptr_null(ls_arena_take_array(a, SIZE_MAX / 2, 3));
	ck_assert(ls_arena_refused(a));
	ls_arena_free(a);
}

LS_TEST(arena, arena_clears_arrays)
{
	struct ls_arena *a = ls_arena_new(256, 256);
	unsigned char *p = ls_arena_take(a, 64), *q;
	size_t i;

	memset(p, 0xff, 64);
	q = ls_arena_take_array(a, 16, 4);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(q[i], 0);
	ls_arena_free(a);
	ls_arena_free(NULL);
}
