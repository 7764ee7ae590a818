/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/known.h"

#include "tests/support/harness.h"

static struct ls_wire_worker
worker(uint8_t id, uint32_t number)
{
	return (struct ls_wire_worker){ .ring_id = { id }, .number = number };
}

LS_CASE(known);

LS_TEST(known, a_worker_is_known_under_its_number_only)
{
	struct ls_wire_worker w = worker(1, 1), renamed = worker(1, 2),
			      other = worker(2, 1);
	struct ls_known k = { 0 };

	ck_assert(!ls_known_has(&k, &w));
	ls_known_add(&k, &w);
	ls_known_add(&k, &w);
	ck_assert_uint_eq(k.count, 1);
	ck_assert(ls_known_has(&k, &w));
	ck_assert(!ls_known_has(&k, &renamed));
	ck_assert(!ls_known_has(&k, &other));
	ls_known_add(&k, &renamed);
	ls_known_forget(&k, other.ring_id);
	ck_assert_uint_eq(k.count, 2);
	ls_known_forget(&k, w.ring_id); /* under all its numbers */
	ck_assert_uint_eq(k.count, 0);
}

LS_TEST(known, who_is_gone_makes_room)
{
	struct ls_wire_worker list[2] = { worker(200, 7), worker(3, 4) }, w;
	struct ls_known k = { 0 };
	uint8_t i;

	for (i = 0; i < LS_RINGS_MAX; i++) {
		w = worker(i, i + 1u);
		ls_known_add(&k, &w);
	}
	ls_known_add(&k, &list[0]);
	ck_assert(!ls_known_has(&k, &list[0])); /* full: sent again */
	ls_known_prune(&k, list, 2);
	ck_assert_uint_eq(k.count, 1);
	ck_assert(ls_known_has(&k, &list[1]));
	ls_known_add(&k, &list[0]);
	ck_assert(ls_known_has(&k, &list[0]));
}
