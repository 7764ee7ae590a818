/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/attribute/group.h"
#include "collector/engine/params.h"
#include "tests/support/harness.h"

#include <math.h>
#include <string.h>

#define WORKERS 16

/* Racks of four, shards of four dealt out in turn, slices of eight. */
struct parts {
	uint32_t rack[WORKERS], shard[WORKERS], slice[WORKERS];
	struct ls_group_part part[3];
	double excess_s[WORKERS];
};

static void
parts_init(struct parts *p)
{
	memset(p, 0, sizeof(*p));
	for (uint32_t i = 0; i < WORKERS; i++) {
		p->rack[i] = i / 4;
		p->shard[i] = i % 4;
		p->slice[i] = i / 8;
	}
	p->part[0] = (struct ls_group_part){ p->slice, LS_PEERS, false };
	p->part[1] = (struct ls_group_part){ p->rack, LS_PEERS, false };
	p->part[2] = (struct ls_group_part){ p->shard, LS_PEERS, false };
}

static size_t
find(const struct parts *p, size_t who)
{
	return ls_group_find(p->excess_s, WORKERS, who, p->part, 3);
}

LS_CASE(lift);

LS_TEST(lift, what_most_of_a_group_share_is_named)
{
	struct parts p;

	parts_init(&p);
	ck_assert_uint_eq(find(&p, 5), 3); /* it is not late */
	for (size_t i = 4; i < 8; i++)
		p.excess_s[i] = 0.01 + 0.001 * (double)i;
	ck_assert_uint_eq(find(&p, 5), 1);
	p.excess_s[4] = 0; /* three of four */
	ck_assert_uint_eq(find(&p, 5), 1);
	p.excess_s[6] = 0.004; /* less than half of it: two of four */
	ck_assert_uint_eq(find(&p, 5), 3);
	parts_init(&p);
	for (size_t i = 2; i < WORKERS; i += 4)
		p.excess_s[i] = 0.01;
	ck_assert_uint_eq(find(&p, 14), 2);
	ck_assert_uint_eq(find(&p, 13), 3); /* it is not late itself */
}

LS_TEST(lift, largest_group_that_its_members_support_is_named)
{
	struct parts p;

	parts_init(&p);
	for (size_t i = 0; i < 8; i++)
		p.excess_s[i] = 0.01;
	ck_assert_uint_eq(find(&p, 1), 0); /* the slice, not one of its two racks */
	p.excess_s[0] = p.excess_s[1] = p.excess_s[6] = 0;
	ck_assert_uint_eq(find(&p, 4), 0); /* five of eight are 62 % */
	p.excess_s[7] = 0;
	/* neither half of the slice nor of the rack */
	ck_assert_uint_eq(find(&p, 4), 3);
	/* as many late ones: the smaller group */
	parts_init(&p);
	for (size_t i = 0; i < 8; i++)
		p.excess_s[i] = i == 4 || i == 5 || i == 6 ? 0.01 : NAN;
	p.excess_s[7] = 0;
	/* who does not report is no member: three of four each, the first named */
	ck_assert_uint_eq(find(&p, 4), 0);
	p.excess_s[0] = 0;
	ck_assert_uint_eq(find(&p, 4), 1);
}

LS_TEST(lift, groups_are_not_late_when_others_are_too)
{
	struct parts p;

	parts_init(&p);
	for (size_t i = 4; i < 8; i++)
		p.excess_s[i] = 0.01;
	p.excess_s[13] = p.excess_s[12] = 0.01; /* 2 of 12 */
	ck_assert_uint_eq(find(&p, 5), 1);
	p.excess_s[9] = 0.01; /* 3 of 12 */
	ck_assert_uint_eq(find(&p, 5), 3);
	for (size_t i = 0; i < WORKERS; i++)
		p.excess_s[i] = 0.01; /* all: nothing that a part of them shares */
	ck_assert_uint_eq(find(&p, 5), 3);
}

LS_TEST(lift, who_is_in_no_group_stays_alone)
{
	struct parts p;

	parts_init(&p);
	for (size_t i = 0; i < WORKERS; i++) {
		p.rack[i] = LS_GROUP_NO;
		p.excess_s[i] = i < 3 ? 0.01 : 0;
	}
	ck_assert_uint_eq(find(&p, 1), 3);
	p.excess_s[1] = NAN;
	ck_assert_uint_eq(find(&p, 1), 3);
	p.part[1].least = 2; /* two of a host are enough */
	p.rack[0] = p.rack[2] = 7;
	ck_assert_uint_eq(find(&p, 2), 1);
}
