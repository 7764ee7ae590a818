/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series_text - the text of a series taken apart: name{label="value",...}.
 *
 * Owner:   pure functions.
 * Units:   those that the name says: "_seconds" s, "_bytes" bytes, and so on.
 * Errors:  -LS_EPARSE it is no such text, -ENOMEM.
 * Limits:  LS_SERIES_NAME_MAX_BYTES, LS_SERIES_LABELS_MAX_BYTES.
 * Source:  proto/lockstep.proto, Dictionary; agent/collect/series.h.
 */
#ifndef LS_COLLECTOR_SERIES_TEXT_H
#define LS_COLLECTOR_SERIES_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/*
 * Name into name[LS_SERIES_NAME_MAX_BYTES], labels as a JSON object of strings (new
 * reference). In values, a backslash makes the next character stand for itself, n for a
 * line feed.
 */
int ls_series_text_parse(const char *text, char *ret_name,
	json_t **ret_labels) LS_MUSTCHECK;

/* The unit of a series of this name; NULL: not known. */
const char *ls_series_text_unit(const char *name);

#endif
