/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/series_text.h"

#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

static char name[LS_SERIES_NAME_MAX_BYTES];

/* Labels as compact JSON. */
static char *
parse(const char *text)
{
	json_t *labels = NULL;
	char *json;

	ck_assert_msg(ls_series_text_parse(text, name, &labels) == 0, "%s", text);
	json = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(labels);
	return json;
}

static void
same(const char *text, const char *want_name, const char *want_labels)
{
	char *json = parse(text);

	ck_assert_str_eq(name, want_name);
	ck_assert_str_eq(json, want_labels);
	free(json);
}

LS_CASE(series_text);

LS_TEST(series_text, name_and_labels_come_apart)
{
	same("host.load.1m", "host.load.1m", "{}");
	same("a{}", "a", "{}");
	same("tpu.runtime.hbm{chip=\"0\",core=\"1\"}", "tpu.runtime.hbm",
		"{\"chip\":\"0\",\"core\":\"1\"}");
	same("a{x=\"\"}", "a", "{\"x\":\"\"}");
}

LS_TEST(series_text, values_stay_data)
{
	same("a{x=\"q\\\"b\\\\n\\n}\"}", "a", "{\"x\":\"q\\\"b\\\\n\\n}\"}");
	same("a{x=\"\xff\x1b[2J\"}", "a", "{\"x\":\"\\\\xff\\\\x1b[2J\"}");
}

LS_TEST(series_text, what_is_no_series_is_refused)
{
	static const char *const bad[] = { "", "{", "a{", "a}", "a{x}", "a{x=1}",
		"a{x=\"", "a{x=\"\\", "a{x=\"1\"", "a{x=\"1\" }", "a{x=\"1\"}b",
		"a{=\"1\"}", "a b", "a{x=\"1\"y=\"2\"}" };
	char longest[LS_SERIES_NAME_MAX_BYTES + 1];
	json_t *labels = NULL;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(ls_series_text_parse(bad[i], name, &labels) == -LS_EPARSE,
			"%s", bad[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(ls_series_text_parse(longest, name, &labels), -LS_EPARSE);
	ck_assert_ptr_null(labels);
}

LS_TEST(series_text, names_say_their_unit)
{
	ck_assert_str_eq(ls_series_text_unit("host.cpu.busy_seconds_total"), "s");
	/* by the table of metrics */
	ck_assert_str_eq(ls_series_text_unit("host.load.1m"), "1");
	ck_assert_str_eq(ls_series_text_unit("chip.hbm.used_bytes"), "bytes");
	ck_assert_str_eq(ls_series_text_unit("x_celsius"), "Cel");
	ck_assert_ptr_null(ls_series_text_unit("what.is.this"));
	ck_assert_ptr_null(ls_series_text_unit("_total"));
}
