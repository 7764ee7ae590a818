/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self_finding - the finding about the collector itself: damaged databases are set aside.
 *
 * The finding is made from the files that lie aside, at each question: so it outlives
 * restarts, and ends when a person has removed the files. It is not stored.
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
#include "storage/db/days.h"

#define LS_SELF_FINDING_ID "F-SE1F"

/* New reference; NULL if nothing is set aside. */
json_t *ls_self_finding(const struct ls_days_aside *aside, int64_t now_us);

#endif
