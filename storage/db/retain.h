/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain - which day files go, by age and by total size.
 *
 * Owner:   none; pure. The store removes what is named here.
 * Units:   a day is YYYYMMDD; bytes.
 * Errors:  none.
 * Limits:  LS_DAYS_MAX.
 */
#ifndef LS_STORAGE_RETAIN_H
#define LS_STORAGE_RETAIN_H

#include <stddef.h>
#include <stdint.h>
#include "storage/db/days.h"
#include "storage/db/rows.h"

/*
 * How many of the oldest days go. bytes[i] is the size of days->day[i], other_bytes
 * that of the rest of the directory. The newest day always stays: it is written to.
 */
size_t ls_retain_count(const struct ls_days *days, const uint64_t *bytes,
	uint64_t other_bytes, const struct ls_store_retain *rule);

/* The maximum by default, of files of own_bytes on a file system; 0 if its size is not
 * known. */
uint64_t ls_retain_auto(uint64_t own_bytes, uint64_t fs_bytes, uint64_t free_bytes);

/* The rule for a maximum age at a time; age 0: any age. */
struct ls_store_retain ls_retain_rule(uint64_t age_ns, uint64_t max_bytes,
	int64_t now_us);

#endif
