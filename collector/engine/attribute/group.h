/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group - which of the things that workers share is late: the lift test.
 *
 * Workers share a host, a rack, an input shard, a slice: each of these parts them in
 * groups. A group is late if most of its members are, and few of the others. Of several
 * such groups the one is told in which the number of late members minus that of members that are not late is greatest (a slice rather than each of its racks, but a rack
 * and a host rather than a slice of which they are most); of equals, the largest.
 *
 * Owner:   pure functions; arrays belong to the caller.
 * Units:   seconds of excess a step.
 * Errors:  none.
 * Limits:  LS_WORKERS_MAX workers; memory for the count of each group of one way at a
 *          time.
 * Source:  design section 7 (scopes); "most": 60 % of the members, "few": 20 % of the
 *          others, at least three members (of a host two): the words.
 */
#ifndef LS_COLLECTOR_GROUP_H
#define LS_COLLECTOR_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LS_GROUP_NO UINT32_MAX

/* What workers share. NONE: they are told one by one. Stages are compared with each
 * other (stage.h). */
#define LS_GROUP_WAYS(X)               \
	X(LS_WAY_NONE, "")             \
	X(LS_WAY_HOST, "host")         \
	X(LS_WAY_SHARD, "input_shard") \
	X(LS_WAY_RACK, "rack")         \
	X(LS_WAY_SLICE, "slice")       \
	X(LS_WAY_STAGE, "stage")
#define LS_GROUP_WAY_(id, name) id,
enum ls_group_way { LS_GROUP_WAYS(LS_GROUP_WAY_) LS_WAY_COUNT };
#undef LS_GROUP_WAY_

/* One way to part n workers. */
struct ls_group_part {
	/* number of the group by worker; LS_GROUP_NO: in none that is known */
	const uint32_t *of;
	uint32_t least; /* late members: fewer are no group */
	bool named; /* the group of the worker is known to be slow (scales.h), whatever others are */
};

/* The part whose group of worker `who` is late (excess_s[n]; NaN: not known, and no member then);
 * `parts` if none is. */
size_t ls_group_find(const double *excess_s, size_t n, size_t who,
	const struct ls_group_part *part, size_t parts);

#endif
