/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_at - what a check looks up in a finding or another JSON object.
 *
 * Owner:   test programs; what is returned belongs to the object.
 * Units:   as in the object.
 * Errors:  text that is not there fails the test.
 * Limits:  two levels.
 */
#ifndef LS_TESTS_JSON_AT_H
#define LS_TESTS_JSON_AT_H

#include <jansson.h>

/* o.outer.inner, or o.outer if inner is NULL; NULL if it is not there. */
const json_t *ls_json_at(const json_t *o, const char *outer, const char *inner);

/* The text there. */
const char *ls_json_text_at(const json_t *o, const char *outer, const char *inner);

/* Of a finding: its first hypothesis; and what an evidence row says of the subject, NaN
 * if no row is of this metric. */
const char *ls_json_cause(const json_t *finding);
double ls_json_evidence(const json_t *finding, const char *metric);

#endif
