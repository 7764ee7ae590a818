/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - what we need beside jansson: canonical text, checked reading.
 *
 * Owner:   none; pure functions.
 * Units:   none.
 * Errors:  -ENOMEM, -LS_EPARSE, -LS_ELIMIT.
 * Limits:  LS_JSON_DEPTH_MAX of nesting when parsing.
 */
#ifndef LS_BASE_JSON_H
#define LS_BASE_JSON_H

#include <jansson.h>
#include <stdint.h>
#include "proto/base/err.h"

/*
 * Parses one JSON value of len bytes, which need no terminator: UTF-8, no duplicate
 * keys, at most LS_JSON_DEPTH_MAX deep. -LS_EPARSE, -LS_ELIMIT (too deep): err_text
 * says what is wrong.
 */
int ls_json_parse(const char *text, size_t len, json_t **ret_v, char *err_text,
	size_t err_size) LS_MUSTCHECK;

/*
 * Canonical text: sorted keys, no spaces, reals with 15 significant digits (all that
 * ls_json_number makes). NULL when out of memory; the caller frees.
 */
char *ls_json_canonical(const json_t *v);

/*
 * Appends to a list, sets in an object. When that fails, which includes that there is no
 * value, the whole is given up: *list, *object become NULL and stay it. Take the value.
 */
void ls_json_append(json_t **list, json_t *value);
void ls_json_set(json_t **object, const char *key, json_t *value);

/* v rounded to `digits` (1 to 15) significant digits, or null if it is not finite. New
 * reference. */
json_t *ls_json_number(double v, int digits);

/* v as our documents write measured numbers: 6 significant digits, or null. New
 * reference. */
json_t *ls_json_real(double v);

/* s as it is; with \xNN for what is no valid UTF-8. New reference. */
json_t *ls_json_text(const char *s);

/* A time as our documents write it: RFC 3339 UTC with ms, or null for 0. New reference.
 */
json_t *ls_json_time(int64_t t_wall_us);

#endif
