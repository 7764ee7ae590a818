/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv - comma-separated values, with names from outside made harmless.
 *
 * A field with a comma, a quote or a line break is put in quotes (RFC 4180); control
 * characters become \xNN; what a spreadsheet would take for a formula gets an
 * apostrophe before it.
 *
 * Owner:   the only thread; writes to the stream given.
 * Units:   times RFC 3339 UTC with microseconds.
 * Errors:  those of the stream: see ferror.
 * Limits:  LS_TERM_TEXT_MAX_BYTES a field; longer ones are cut.
 * Source:  RFC 4180.
 */
#ifndef LS_WEB_CLI_CSV_H
#define LS_WEB_CLI_CSV_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Text from outside; NULL is an empty field. Then what stands behind it: ',' or '\n'.
 */
void ls_csv_text(FILE *f, const char *text, char end);

/* A number or string of JSON; NULL, null and others are an empty field. */
void ls_csv_json(FILE *f, const json_t *v, char end);

/* A time in us since the epoch. */
void ls_csv_time(FILE *f, int64_t t_us, char end);

#endif
