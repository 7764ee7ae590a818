/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/json.h"

#include "proto/base/text.h"
#include "proto/limits.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_MEASURED_DIGITS 6

/*
 * True if brackets nest deeper than max. jansson's own limit is 2048; ours is checked
 * first, by counting brackets outside strings, which for malformed text may count too
 * many but never too few.
 */
static bool
json_too_deep(const char *text, size_t len, size_t max)
{
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '[' || c == '{') {
			if (++depth > max)
				return true;
		} else if ((c == ']' || c == '}') && depth > 0) {
			depth--;
		}
	}
	return false;
}

int
ls_json_parse(const char *text, size_t len, json_t **ret_v, char *err_text,
	size_t err_size)
{
	json_error_t err;
	json_t *v;

	if (json_too_deep(text, len, LS_JSON_DEPTH_MAX)) {
		(void)snprintf(err_text, err_size, "nested deeper than %d",
			LS_JSON_DEPTH_MAX);
		return -LS_ELIMIT;
	}
	v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &err);
	if (!v) {
		/* jansson quotes the text it could not read. */
		(void)ls_text_escape(err_text, err_size, err.text, strlen(err.text));
		return json_error_code(&err) == json_error_out_of_memory ? -ENOMEM
									 : -LS_EPARSE;
	}
	*ret_v = v;
	return 0;
}

char *
ls_json_canonical(const json_t *v)
{
	return json_dumps(v,
		JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY |
			JSON_REAL_PRECISION(LS_TEXT_DIGITS_MAX));
}

static void
json_keep_if(json_t **whole, int rc)
{
	if (rc == 0)
		return;
	json_decref(*whole);
	*whole = NULL;
}

void
ls_json_append(json_t **list, json_t *value)
{
	json_keep_if(list, json_array_append_new(*list, value));
}

void
ls_json_set(json_t **object, const char *key, json_t *value)
{
	json_keep_if(object, json_object_set_new(*object, key, value));
}

json_t *
ls_json_number(double v, int digits)
{
	v = ls_text_round(v, digits);
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *
ls_json_real(double v)
{
	return ls_json_number(v, JSON_MEASURED_DIGITS);
}

json_t *
ls_json_time(int64_t t_wall_us)
{
	char text[32];

	if (t_wall_us == 0)
		return json_null();
	ls_text_time(text, t_wall_us);
	return json_string(text);
}

json_t *
ls_json_text(const char *s)
{
	json_t *v = json_string(s); /* takes valid UTF-8 only */
	size_t len = strlen(s);
	char *safe;

	if (v != NULL || len > SIZE_MAX / 4 - 1)
		return v;
	safe = malloc(4 * len + 1);
	if (safe == NULL)
		return NULL;
	(void)ls_text_escape(safe, 4 * len + 1, s, len);
	v = json_string(safe);
	free(safe);
	return v;
}
