/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/dictionaries.h"

#include <stdio.h>
#include <string.h>
#include "proto/wire/wire.h"
#include "tests/support/harness.h"

static const char *const two[] = { "a", "b{x=\"1\"}" };

static uint64_t
put(struct ls_dictionaries *t, const char *group)
{
	uint64_t hash = ls_wire_dictionary_hash(group, two, 2);
	struct ls_dictionary *d = NULL;

	ck_assert_int_eq(ls_dictionaries_put(t, hash, group, two, 2, &d), 0);
	ck_assert_ptr_eq(d, ls_dictionaries_find(t, hash));
	return hash;
}

LS_CASE(dictionaries);

LS_TEST(dictionaries, what_was_put_is_found)
{
	struct ls_dictionaries *t = ls_dictionaries_new(4, 100000);
	struct ls_dictionary *d;
	uint64_t hash = put(t, "g");

	d = ls_dictionaries_find(t, hash);
	ck_assert_str_eq(d->group, "g");
	ck_assert_uint_eq(d->count, 2);
	ck_assert_str_eq(d->series[1], "b{x=\"1\"}");
	ck_assert_uint_eq(d->text_len, 2 + 9);
	d->stored_day = 20261121;
	ck_assert(put(t, "g") == hash); /* again: the same one */
	ck_assert_int_eq(ls_dictionaries_find(t, hash)->stored_day, 20261121);
	ls_dictionaries_rollback(t);
	ck_assert_int_eq(d->stored_day, 0);
	ck_assert_ptr_null(ls_dictionaries_find(t, hash + 1));
	ls_dictionaries_free(t);
}

LS_TEST(dictionaries, a_hash_must_be_that_of_the_names)
{
	struct ls_dictionaries *t = ls_dictionaries_new(4, 100000);
	struct ls_dictionary *d = NULL;

	ck_assert_int_eq(ls_dictionaries_put(t, 1, "g", two, 2, &d), -LS_ECORRUPT);
	ck_assert_ptr_null(d);
	ls_dictionaries_free(t);
}

LS_TEST(dictionaries, the_least_used_makes_room)
{
	struct ls_dictionaries *t = ls_dictionaries_new(2, 100000);
	struct ls_dictionaries_stats st;
	uint64_t a = put(t, "a"), b = put(t, "b");

	ck_assert_ptr_nonnull(ls_dictionaries_find(t, a));
	(void)put(t, "c");
	ck_assert_ptr_null(ls_dictionaries_find(t, b));
	ck_assert_ptr_nonnull(ls_dictionaries_find(t, a));
	ls_dictionaries_stats(t, &st);
	ck_assert_uint_eq(st.count, 2);
	ck_assert_uint_eq(st.evicted, 1);
	ls_dictionaries_free(t);
}

LS_TEST(dictionaries, bytes_are_bounded)
{
	struct ls_dictionaries *t = ls_dictionaries_new(100, 1);
	struct ls_dictionaries_stats st;

	(void)put(t, "a");
	(void)put(t, "b"); /* the one in use stays, whatever its size */
	ls_dictionaries_stats(t, &st);
	ck_assert_uint_eq(st.count, 1);
	ck_assert_uint_eq(st.evicted, 1);
	ck_assert_uint_gt(st.bytes, 0);
	ls_dictionaries_free(t);
}
