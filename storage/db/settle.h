/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle - closed days take in what was left in their WAL, and days of the future become
 * days of now.
 *
 * The last connection that closes a file empties its WAL, unless it is a reader's: ours
 * never checkpoint. So a file that somebody reads at the turn of the day keeps one,
 * until the writer comes back to it.
 *
 * Owner:   the writer's thread, the only one that checkpoints.
 * Units:   none.
 * Errors:  none told: a file that cannot be settled now is tried again at the next
 *          call.
 * Limits:  LS_DAYS_MAX day files.
 */
#ifndef LS_STORAGE_SETTLE_H
#define LS_STORAGE_SETTLE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before a write connection to a closed day is closed: moves all into the file, without
 * waiting for readers. */
void ls_settle(sqlite3 *db);

/* The same of all days before open_day that have something in their WAL. */
void ls_settle_days(const char *dir, int32_t open_day);

/*
 * Days that a wrong clock made: they lie more than a day ahead while an older file does
 * not, and their rows are not of the future, or they are a month ahead. Each becomes the day after the file before it, so that their order stays (the
 * newest has the ledger) and retention reaches them. Nobody may have them open.
 * Returns how many were renamed, or with apply false would be.
 */
size_t ls_settle_future(const char *dir, int64_t wall_us, bool apply);

#endif
