/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self_finding - the finding about the collector itself: what happened to its files.
 *
 * It is made at each question, from the files that lie aside: so it outlives restarts,
 * and ends when a person has removed them. If none do, from the last note of the store,
 * for LS_SELF_NOTE_US.
 *
 * Owner:   none; a pure function.
 * Units:   microseconds since the epoch.
 * Errors:  NULL: out of memory.
 * Limits:  one finding.
 * Source:  schema version 1 of findings; collector/README.md.
 */
#ifndef LS_COLLECTOR_SELF_FINDING_H
#define LS_COLLECTOR_SELF_FINDING_H

#include <jansson.h>
#include <stdint.h>
#include "storage/write/store.h"

#define LS_SELF_FINDING_ID "F-SE1F"
#define LS_SELF_NOTE_US 86400000000ll /* a note is shown for a day */

/* New reference; NULL if there is nothing to say. */
json_t *ls_self_finding(const struct ls_days_aside *aside,
	const struct ls_store_note *note, int64_t now_us);

#endif
