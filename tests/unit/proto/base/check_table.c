/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/table. */
#include "config.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/table.h"
#include "tests/support/harness.h"

#define ITEMS 5000

struct item {
	uint32_t key;
	bool in;
};

LS_CASE(table);

/* Of the paper's appendix A, and of the authors' published vectors. */
LS_TEST(table, hash_is_siphash)
{
	uint8_t secret[16], data[64];
	size_t i;

	for (i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)i;
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	ck_assert_uint_eq(ls_table_hash(secret, data, 15), 0xa129ca6149be45e5ull);
	ck_assert_uint_eq(ls_table_hash(secret, data, 0), 0x726fdb47dd0e0e31ull);
	ck_assert_uint_eq(ls_table_hash(secret, data, 8), 0x93f5f5799a932462ull);
}

/* Puts and removals in a scattered order; after each round everything is where it
 * should be. */
LS_TEST(table, items_are_found_until_they_are_removed)
{
	struct item *items = calloc(ITEMS, sizeof(*items));
	struct ls_table t;
	uint32_t i, round, count = 0;

	ck_assert_ptr_nonnull(items);
	ls_table_init(&t, sizeof(items[0].key));
	for (i = 0; i < ITEMS; i++)
		items[i].key = i;
	ck_assert_ptr_null(ls_table_find(&t, &items[0].key));
	for (round = 0; round < 4; round++) {
		for (i = 0; i < ITEMS; i++) {
			struct item *it = &items[(i * 2654435761u) % ITEMS];

			if ((it->key + round) % 3 == 0 && !it->in) {
				ck_assert_int_eq(ls_table_put(&t, it), 0);
				it->in = true;
				count++;
			} else if ((it->key + round) % 3 == 1 && it->in) {
				ls_table_remove(&t, it);
				it->in = false;
				count--;
			}
		}
		ck_assert_uint_eq(t.count, count);
		for (i = 0; i < ITEMS; i++)
			ck_assert_ptr_eq(ls_table_find(&t, &items[i].key),
				items[i].in ? &items[i] : NULL);
	}
	ls_table_fini(&t);
	ck_assert_ptr_null(ls_table_find(&t, &items[0].key));
	free(items);
}

LS_TEST(table, tables_hash_apart)
{
	struct ls_table a, b;

	ls_table_init(&a, 8);
	ls_table_init(&b, 8);
	ck_assert_mem_ne(a.secret, b.secret, sizeof(a.secret));
}
