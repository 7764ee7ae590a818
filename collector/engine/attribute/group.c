/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/attribute/group.h"
#include "collector/engine/params.h"

#include <math.h>

/* What a group holds of a late worker's excess. */
struct group_count {
	size_t members, late; /* of the group, whose excess is known */
	size_t others, others_late; /* of the rest */
};

/* Counts who is late in the group of worker `who`; nobody, if it is in no group, or not
 * late itself. */
static struct group_count
group_count(const double *excess_s, size_t n, size_t who,
	const struct ls_group_part *part)
{
	struct group_count c = { 0 };
	uint32_t group = part->of[who];
	double least = LS_HALF * excess_s[who];

	if (group == LS_GROUP_NO || !(least > 0)) /* NaN, too */
		return c;
	for (size_t i = 0; i < n; i++) {
		bool inside = part->of[i] == group, late = excess_s[i] >= least;

		if (isnan(excess_s[i]))
			continue;
		c.members += inside;
		c.others += !inside;
		c.late += inside && late;
		c.others_late += !inside && late;
	}
	return c;
}

/* Does the count say that it is the group, rather than single workers of it? */
static bool
group_is_late(const struct group_count *c, const struct ls_group_part *part)
{
	return c->others > 0 && c->late >= part->least &&
		(double)c->late >= LS_MOST * (double)c->members &&
		(part->named || (double)c->others_late <= LS_FEW * (double)c->others);
}

size_t
ls_group_find(const double *excess_s, size_t n, size_t who,
	const struct ls_group_part *part, size_t parts)
{
	size_t found = parts, late = 0, most = 0;

	for (size_t p = 0; p < parts; p++) {
		struct group_count c = group_count(excess_s, n, who, &part[p]);
		size_t more = c.late - (c.members - c.late); /* late than well */

		if (group_is_late(&c, &part[p]) &&
			(more > most || (more == most && c.late > late))) {
			most = more;
			late = c.late;
			found = p;
		}
	}
	return found;
}
