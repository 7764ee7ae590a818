/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term - text for a terminal: escaped, formatted, coloured, in columns.
 *
 * The texts returned live in a ring of LS_TERM_TEXTS buffers, so a few may stand in one
 * printf.
 *
 * Owner:   the only thread.
 * Units:   as the JSON given.
 * Errors:  none; what does not fit is cut.
 * Limits:  LS_TERM_TEXT_MAX_BYTES a text, LS_TERM_COLUMNS_MAX columns.
 * Source:  https://no-color.org for NO_COLOR.
 */
#ifndef LS_WEB_CLI_TERM_H
#define LS_WEB_CLI_TERM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define LS_TERM_TEXTS 16
#define LS_TERM_TEXT_MAX_BYTES 4096
#define LS_TERM_COLUMNS_MAX 12

struct ls_term;
struct ls_table;

/* New terminal; color is "auto", "always" or "never". NULL when out of memory. */
struct ls_term *ls_term_new(const char *color);
void ls_term_free(struct ls_term *t);

/*
 * What a path like "impact.chips_lost" or "subject.hosts.0" leads to; NULL if nowhere,
 * or to null.
 */
const json_t *ls_pick(const json_t *v, const char *path);

/* The string there, raw; NULL if there is none. Never print it: see ls_term_text. */
const char *ls_pick_text(const json_t *v, const char *path);

/* True, and *ret, if there is a number. */
bool ls_pick_number(const json_t *v, const char *path, double *ret);

/* A text as printf makes it. */
const char *ls_term_format(struct ls_term *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* s made safe to print; dflt (trusted) if it is NULL. */
const char *ls_term_safe(struct ls_term *t, const char *s, const char *dflt);
const char *ls_term_text(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);

/* The same with _ as blanks: "host_cpu_contention". */
const char *ls_term_words(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);

/* s made safe, and one word of a POSIX shell. */
const char *ls_term_quote(struct ls_term *t, const char *s);

/* Numbers there: "0.43 s", "4 ms"; "97 %"; "50,259"; "38.8". `dflt` when not known. */
const char *ls_term_seconds(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);
const char *ls_term_percent(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);
const char *ls_term_whole(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);
const char *ls_term_chips(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);

/*
 * A value in its unit ("s", "ratio", "1", "bytes", other). `beside` is the largest
 * value shown with it, so that 0.09 s stands beside 0.52 s and not 90 ms.
 */
const char *ls_term_value(struct ls_term *t, const json_t *v, const char *path,
	const char *unit, double beside, const char *dflt);

/* The same of a number. */
const char *ls_term_number(struct ls_term *t, double n, const char *unit,
	double beside);

/* "90 s", "97 min", "13.7 h". */
const char *ls_term_span(struct ls_term *t, double seconds);

/* The time there as "2026-11-20 14:02:11Z", and as "14:02:11Z". */
const char *ls_term_time(struct ls_term *t, const json_t *v, const char *path,
	bool day);

/* The latter, as a column has it; "unknown" when not known. */
const char *ls_term_clock(struct ls_term *t, const json_t *v, const char *path,
	const char *dflt);

/* Seconds from one time to another, both RFC 3339; false if one is not known. */
bool ls_term_between(const json_t *v, const char *from, const char *to, double *ret_s);

/*
 * s in the colour of a severity ("critical", "warning", "info"), or bold ("bold"), or
 * plain.
 */
const char *ls_term_paint(struct ls_term *t, const char *how, const char *s);

/* "CRIT", "WARN", "INFO" with their glyph, painted. */
const char *ls_term_severity(struct ls_term *t, const json_t *finding);

/*
 * New table; `heads` is "HOST|>BLAME|..." where > aligns to the right. NULL when out of
 * memory.
 */
struct ls_table *ls_table_new(const char *heads);

/* Adds a cell (copied, already safe), row by row. */
void ls_table_add(struct ls_table *table, const char *cell);

/* A column of objects: its head, and how what is at a path of one is shown. */
struct ls_column {
	const char *head; /* as of ls_table_new */
	const char *(*cell)(struct ls_term *t, const json_t *v, const char *path,
		const char *dflt);
	const char *path, *dflt;
};

/* Prints a table of objects, a row each; the last column has no head. */
void ls_table_items(struct ls_term *t, const json_t *items,
	const struct ls_column *columns);

/* Prints and frees. */
void ls_table_print(struct ls_table *table);

#endif
