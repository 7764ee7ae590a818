/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_csv - lines of an export as they come, written as rows of a table.
 *
 * Steps: one row a record. Counters: one row a value. Lines of other kinds are passed
 *        over.
 *
 * Owner:   the only thread.
 * Units:   times RFC 3339 UTC; spans in seconds, as in the lines.
 * Errors:  -EIO of the stream under it; a line that is no JSON ends it likewise.
 * Limits:  LS_REPLAY_LINE_MAX_BYTES a line.
 * Source:  collector/README.md, "Export"; web/README.md, "The command".
 */
#ifndef LS_WEB_CLI_EXPORT_CSV_H
#define LS_WEB_CLI_EXPORT_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* A stream that takes lines and writes rows to `out`, which stays the caller's. NULL
 * when out of memory. */
FILE *ls_export_csv_open(FILE *out, bool counters);

#endif
