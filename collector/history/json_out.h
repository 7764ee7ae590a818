/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out - JSON text written in one go, for answers of many numbers.
 *
 * The caller opens and closes objects and arrays (their text is "{", "[", "]", "}");
 * json_out writes names, values and the commas between them.
 *
 * Owner:   the caller's; ls_json_out_fini frees it.
 * Units:   numbers with 15 significant digits; what is no finite number is null.
 * Errors:  out of memory is remembered: ls_json_out_give says so at the end.
 * Limits:  none of its own.
 */
#ifndef LS_COLLECTOR_JSON_OUT_H
#define LS_COLLECTOR_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/history/export.h"

/* Zeroed is empty. */
struct ls_json_out {
	char *text;
	size_t len, size;
	bool failed;
};

/* Frees its memory. */
void ls_json_out_fini(struct ls_json_out *o);

/* Text as it is, with no comma before it. */
void ls_json_out_raw(struct ls_json_out *o, const char *text);

/*
 * A member of an object, or with name NULL an element of an array: with a comma before
 * it, unless it is the first. A string in quotes, escaped (NULL: null); a number; a whole
 * number; a time as RFC 3339 in ms (0: null); JSON text as it is.
 */
void ls_json_out_string(struct ls_json_out *o, const char *name, const char *s);
void ls_json_out_number(struct ls_json_out *o, const char *name, double v);
void ls_json_out_whole(struct ls_json_out *o, const char *name, int64_t v);
void ls_json_out_time(struct ls_json_out *o, const char *name, int64_t t_us);
void ls_json_out_json(struct ls_json_out *o, const char *name, const char *text);

/* Gives all to a sink in pieces. -ENOMEM, -ECANCELED. */
int ls_json_out_give(const struct ls_json_out *o, ls_export_sink *sink,
	void *arg) LS_MUSTCHECK;

#endif
