/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/json_at.h"

#include <check.h>
#include <math.h>
#include <string.h>

const json_t *
ls_json_at(const json_t *o, const char *outer, const char *inner)
{
	o = json_object_get(o, outer);
	return inner == NULL ? o : json_object_get(o, inner);
}

const char *
ls_json_text_at(const json_t *o, const char *outer, const char *inner)
{
	const char *text = json_string_value(ls_json_at(o, outer, inner));

	ck_assert_msg(text != NULL, "no text %s.%s", outer, inner == NULL ? "" : inner);
	return text;
}

const char *
ls_json_cause(const json_t *finding)
{
	return ls_json_text_at(
		json_array_get(json_object_get(finding, "hypotheses"), 0), "cause",
		NULL);
}

double
ls_json_evidence(const json_t *finding, const char *metric)
{
	const json_t *rows = json_object_get(finding, "evidence"), *row;
	size_t i;

	json_array_foreach(rows, i,
		row) if (strcmp(ls_json_text_at(row, "metric", NULL), metric) ==
		0) return json_number_value(json_object_get(row, "subject"));
	return NAN;
}
