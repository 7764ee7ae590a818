/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/json_out.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/json.h"
#include "proto/limits.h"

#define OUT_WHOLE_MAX 1e15 /* below it a double that is whole has no digit too many */

void
ls_json_out_fini(struct ls_json_out *o)
{
	free(o->text);
	memset(o, 0, sizeof(*o));
}

static void
out_add(struct ls_json_out *o, const char *text, size_t len)
{
	size_t size = o->size > 0 ? o->size : 4096;
	char *grown;

	if (o->failed)
		return;
	if (len > SIZE_MAX / 4 - o->len) {
		o->failed = true;
		return;
	}
	while (size < o->len + len)
		size *= 2;
	if (size != o->size) {
		grown = realloc(o->text, size);
		if (grown == NULL) {
			o->failed = true;
			return;
		}
		o->text = grown;
		o->size = size;
	}
	memcpy(o->text + o->len, text, len);
	o->len += len;
}

void
ls_json_out_raw(struct ls_json_out *o, const char *text)
{
	out_add(o, text, strlen(text));
}

void
ls_json_out_string(struct ls_json_out *o, const char *s)
{
	json_t *v = s != NULL ? ls_json_text(s) : json_null();
	char *text = v != NULL ? json_dumps(v, JSON_ENCODE_ANY) : NULL;

	if (text != NULL)
		ls_json_out_raw(o, text);
	else
		o->failed = true;
	free(text);
	json_decref(v);
}

void
ls_json_out_whole(struct ls_json_out *o, int64_t v)
{
	char text[24], *p = text + sizeof(text);
	uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do {
		*--p = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (v < 0)
		*--p = '-';
	out_add(o, p, (size_t)(text + sizeof(text) - p));
}

void
ls_json_out_number(struct ls_json_out *o, double v)
{
	char text[40];
	int n;

	if (!isfinite(v)) {
		out_add(o, "null", 4);
	} else if (fabs(v) < OUT_WHOLE_MAX && v == trunc(v)) {
		ls_json_out_whole(o, (int64_t)v);
	} else {
		n = snprintf(text, sizeof(text), "%.15g", v);
		out_add(o, text, n > 0 ? (size_t)n : 0);
	}
}

void
ls_json_out_time(struct ls_json_out *o, int64_t t_us)
{
	json_t *v = ls_json_time(t_us);

	if (json_is_string(v))
		ls_json_out_string(o, json_string_value(v));
	else
		ls_json_out_raw(o, "null");
	json_decref(v);
}

void
ls_json_out_name(struct ls_json_out *o, bool comma, const char *name)
{
	ls_json_out_raw(o, comma ? ",\"" : "\"");
	ls_json_out_raw(o, name);
	ls_json_out_raw(o, "\":");
}

int
ls_json_out_give(const struct ls_json_out *o, ls_export_sink *sink, void *arg)
{
	size_t at, piece;

	if (o->failed)
		return -ENOMEM;
	for (at = 0; at < o->len; at += piece) {
		piece = o->len - at < LS_EXPORT_PIECE_BYTES ? o->len - at : LS_EXPORT_PIECE_BYTES;
		if (!sink(arg, o->text + at, piece))
			return -ECANCELED;
	}
	return 0;
}
