/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/retain.h"

size_t
ls_retain_count(const struct ls_days *days, const uint64_t *bytes, uint64_t other_bytes,
	const struct ls_store_retain *rule)
{
	uint64_t total = other_bytes;
	size_t i, gone = 0;

	for (i = 0; i < days->count; i++)
		total += bytes[i];
	while (gone + 1 < days->count) {
		bool old = days->day[gone] < rule->keep_from;
		bool big = rule->max_bytes > 0 && total > rule->max_bytes;

		if (!old && !big)
			break;
		total -= bytes[gone++];
	}
	return gone;
}

uint64_t
ls_retain_auto(uint64_t own_bytes, uint64_t fs_bytes, uint64_t free_bytes)
{
	uint64_t of_fs = fs_bytes / 10 * 8, of_room = (own_bytes + free_bytes) / 10 * 9;

	return of_fs < of_room ? of_fs : of_room;
}

struct ls_store_retain
ls_retain_rule(uint64_t age_ns, uint64_t max_bytes, int64_t now_us)
{
	struct ls_store_retain rule = { .max_bytes = max_bytes };
	int64_t age_us = (int64_t)(age_ns / 1000);

	if (age_us > 0 && age_us < now_us) {
		rule.keep_from = ls_days_of(now_us - age_us);
		rule.history_us = now_us - age_us;
	}
	return rule;
}
