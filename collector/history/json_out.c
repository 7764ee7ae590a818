/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/json_out.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/json.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define OUT_WHOLE_MAX 1e15 /* below it a double that is whole has no digit too many */
#define OUT_MILLION 1e6

void
ls_json_out_fini(struct ls_json_out *o)
{
	free(o->text);
	memset(o, 0, sizeof(*o));
}

static inline void
out_add(struct ls_json_out *o, const char *text, size_t len)
{
	if (len > o->size - o->len &&
		ls_mem_reserve((void **)&o->text, &o->size, o->len + len) != 0) {
		o->failed = true;
		return;
	}
	memcpy(o->text + o->len, text, len);
	o->len += len;
}

void
ls_json_out_raw(struct ls_json_out *o, const char *text)
{
	out_add(o, text, strlen(text));
}

/* What stands before a value: the comma, if it is not the first; the name, if it has one. */
static inline void
out_member(struct ls_json_out *o, const char *name)
{
	char last = o->len > 0 ? o->text[o->len - 1] : '[';

	if (last != '[' && last != '{')
		out_add(o, ",", 1);
	if (name == NULL)
		return;
	out_add(o, "\"", 1);
	ls_json_out_raw(o, name);
	out_add(o, "\":", 2);
}

void
ls_json_out_json(struct ls_json_out *o, const char *name, const char *text)
{
	out_member(o, name);
	ls_json_out_raw(o, text);
}

/* Bytes of a string in which every one stands for itself, as in all names that are
 * sane; else 0. */
static size_t
out_plain(const char *s)
{
	size_t len;

	for (len = 0; s[len] != '\0'; len++)
		if (s[len] < ' ' || s[len] > '~' || s[len] == '"' || s[len] == '\\')
			return 0;
	return len;
}

static void
out_escaped(struct ls_json_out *o, const char *s)
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
ls_json_out_string(struct ls_json_out *o, const char *name, const char *s)
{
	size_t len = s != NULL ? out_plain(s) : 0;

	out_member(o, name);
	if (len == 0) {
		out_escaped(o, s);
		return;
	}
	out_add(o, "\"", 1);
	out_add(o, s, len);
	out_add(o, "\"", 1);
}

static void
out_whole(struct ls_json_out *o, int64_t v)
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

/* Millionths as "%.15g" writes them; 100 <= v < 10^15: below there is an exponent. */
static void
out_millionths(struct ls_json_out *o, uint64_t v)
{
	char text[32], *end = text + sizeof(text), *p = end;
	unsigned digits = 0;

	for (; digits < 6 && v % 10 == 0; digits++)
		v /= 10;
	for (; digits < 6; digits++, v /= 10)
		*--p = (char)('0' + v % 10);
	if (p < end)
		*--p = '.';
	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	out_add(o, p, (size_t)(end - p));
}

/* Most numbers of answers have few decimals: they are millionths, and the C library's
 * way to digits is long. */
static bool
out_decimal(struct ls_json_out *o, double v)
{
	double scaled = fabs(v) * OUT_MILLION;
	uint64_t millionths;

	if (!(scaled < OUT_WHOLE_MAX))
		return false;
	millionths = (uint64_t)(scaled + 0.5);
	if (millionths < 100 || (double)millionths / OUT_MILLION != fabs(v))
		return false;
	if (v < 0)
		out_add(o, "-", 1);
	out_millionths(o, millionths);
	return true;
}

void
ls_json_out_whole(struct ls_json_out *o, const char *name, int64_t v)
{
	out_member(o, name);
	out_whole(o, v);
}

void
ls_json_out_number(struct ls_json_out *o, const char *name, double v)
{
	char text[40];
	int n;

	out_member(o, name);
	if (!isfinite(v)) {
		out_add(o, "null", 4);
	} else if (fabs(v) < OUT_WHOLE_MAX && v == trunc(v)) {
		out_whole(o, (int64_t)v);
	} else if (!out_decimal(o, v)) {
		n = snprintf(text, sizeof(text), "%.15g", v);
		out_add(o, text, n > 0 ? (size_t)n : 0);
	}
}

void
ls_json_out_time(struct ls_json_out *o, const char *name, int64_t t_us)
{
	char text[32];

	ls_text_time(text, t_us);
	ls_json_out_string(o, name, t_us != 0 ? text : NULL);
}

int
ls_json_out_give(const struct ls_json_out *o, ls_export_sink *sink, void *arg)
{
	size_t at, piece;

	if (o->failed)
		return -ENOMEM;
	for (at = 0; at < o->len; at += piece) {
		piece = o->len - at < LS_EXPORT_PIECE_BYTES ? o->len - at
							    : LS_EXPORT_PIECE_BYTES;
		if (!sink(arg, o->text + at, piece))
			return -ECANCELED;
	}
	return 0;
}
