/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/mem.h"

#include "tests/support/harness.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

LS_CASE(all);

LS_TEST(all, array_grows_by_doubling_and_keeps_its_items)
{
	size_t count = 0, capacity = 0;
	int *items = NULL;

	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(
			ls_mem_grow((void **)&items, count, &capacity, sizeof(*items)),
			0);
		ck_assert_uint_gt(capacity, count);
		items[count++] = i;
	}
	ck_assert_uint_eq(capacity, 128);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(items[i], i);
	free(items);
}

LS_TEST(all, widened_array_keeps_its_items_and_new_ones_are_zero)
{
	static const uint32_t want[] = { 7, 7, 0, 0, 0 };
	uint32_t *items = NULL;
	size_t count = 0;

	ck_assert_int_eq(ls_mem_widen((void **)&items, &count, 2, sizeof(*items)), 0);
	items[0] = items[1] = 7;
	ck_assert_int_eq(ls_mem_widen((void **)&items, &count, 5, sizeof(*items)), 0);
	ck_assert_int_eq(ls_mem_widen((void **)&items, &count, 1, sizeof(*items)), 0);
	ck_assert_uint_eq(count, 5);
	ck_assert_mem_eq(items, want, sizeof(want));
	ck_assert_int_eq(
		ls_mem_widen((void **)&items, &count, SIZE_MAX / 2, sizeof(*items)),
		-ENOMEM);
	ck_assert_uint_eq(count, 5);
	free(items);
}

LS_TEST(all, size_that_cannot_be_is_refused_and_nothing_changes)
{
	size_t capacity = SIZE_MAX / 4;
	int item = 7, *items = &item;

	ck_assert_int_eq(
		ls_mem_grow((void **)&items, capacity, &capacity, sizeof(*items)),
		-ENOMEM);
	ck_assert_uint_eq(capacity, SIZE_MAX / 4);
	ck_assert_ptr_eq(items, &item);
	ck_assert_int_eq(item, 7);
}

LS_TEST(all, buffer_is_as_long_as_was_asked_and_keeps_its_bytes)
{
	size_t size = 0, was;
	char *data = NULL;

	ck_assert_int_eq(ls_mem_reserve((void **)&data, &size, 0), 0);
	ck_assert_ptr_null(data);
	ck_assert_int_eq(ls_mem_reserve((void **)&data, &size, 10), 0);
	ck_assert_uint_ge(size, 10);
	data[9] = 'x';
	was = size;
	ck_assert_int_eq(ls_mem_reserve((void **)&data, &size, was), 0);
	ck_assert_uint_eq(size, was);
	ck_assert_int_eq(ls_mem_reserve((void **)&data, &size, 5000), 0);
	ck_assert_uint_ge(size, 5000);
	ck_assert_int_eq(data[9], 'x');
	was = size;
	ck_assert_int_eq(ls_mem_reserve((void **)&data, &size, SIZE_MAX), -ENOMEM);
	ck_assert_uint_eq(size, was);
	free(data);
}

LS_TEST(all, copy_has_the_bytes)
{
	char *copy = ls_mem_copy("abc", 4);

	ck_assert_str_eq(copy, "abc");
	free(copy);
}
