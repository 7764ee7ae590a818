/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/prom_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_prom_text page;
static char seen[8192]; /* name{label=value,...} value type, one a line */

static void
see(void *arg, const struct ls_prom_sample *s)
{
	size_t len = strlen(seen), i;

	(void)arg;
	len += (size_t)snprintf(seen + len, sizeof(seen) - len, "%s{", s->name);
	for (i = 0; i < s->label_count; i++)
		len += (size_t)snprintf(seen + len, sizeof(seen) - len, "%s%s=%s",
			i > 0 ? "," : "", s->label[i].name, s->label[i].value);
	(void)snprintf(seen + len, sizeof(seen) - len, "} %.17g %d\n", s->value,
		(int)s->type);
}

static int
parse(const char *text)
{
	seen[0] = '\0';
	return ls_prom_text_read(&page, text, strlen(text), see, NULL);
}

LS_CASE(prom_text);

LS_TEST(prom_text, samples_have_names_labels_values_and_types)
{
	ck_assert_int_eq(
		parse("# HELP duty_cycle Percent of time.\n"
		      "# TYPE duty_cycle gauge\n"
		      "duty_cycle{make=\"cloud-tpu\",accelerator_id=\"42-0\"} 87.5\n"
		      "\n"
		      "  duty_cycle { make = \"x\" , } 1e3 1700000000000  \n"
		      "# TYPE reads counter\n"
		      "reads_total 17\n"
		      "other 5e-1\r\n"
		      "# TYPE lat histogram\n"
		      "lat_bucket{le=\"+Inf\"} 4\nlat_sum 2.5\nlat_count 4\n"
		      "# TYPE q summary\n"
		      "q{quantile=\"0.5\"} 3"),
		0);
	ck_assert_str_eq(seen,
		"duty_cycle{make=cloud-tpu,accelerator_id=42-0} 87.5 2\n"
		"duty_cycle{make=x} 1000 2\n"
		"reads_total{} 17 1\n"
		"other{} 0.5 0\n"
		"lat_bucket{le=+Inf} 4 3\nlat_sum{} 2.5 3\nlat_count{} 4 3\n"
		"q{quantile=0.5} 3 4\n");
	ck_assert_uint_eq(page.samples, 8);
}

LS_TEST(prom_text, values_may_be_no_numbers)
{
	ck_assert_int_eq(
		parse("a NaN\na +Inf\na -Inf\na nan\na 9223372036854775808\na -0\n"),
		0);
	ck_assert_str_eq(seen,
		"a{} nan 0\na{} inf 0\na{} -inf 0\na{} nan 0\n"
		"a{} 9.2233720368547758e+18 0\na{} -0 0\n");
}

LS_TEST(prom_text, escapes_are_undone)
{
	ck_assert_int_eq(parse("a{b=\"x\\\"y\\\\z\\n}{,=#\",c=\"\"} 1\n"), 0);
	ck_assert_str_eq(seen, "a{b=x\"y\\z\n}{,=#,c=} 1 0\n");
}

LS_TEST(prom_text, lines_of_openmetrics_are_taken)
{
	ck_assert_int_eq(
		parse("# TYPE foo counter\n# UNIT foo seconds\n"
		      "foo_total{a=\"b\"} 17.0 1520879607.789 # {trace_id=\"oHg5\"} 0.67 1520879607.789\n"
		      "foo_created{a=\"b\"} 1520872607.123\n"
		      "bar 1 # {} 0.5\n"
		      "# EOF\n \n"),
		0);
	ck_assert_str_eq(seen,
		"foo_total{a=b} 17 1\nfoo_created{a=b} 1520872607.1229999 1\n"
		"bar{} 1 0\n");
	ck_assert_int_eq(parse("# EOF\na 1\n"), -LS_EPARSE);
	ck_assert_str_eq(page.why, "text after # EOF");
}

LS_TEST(prom_text, a_name_that_only_begins_so_is_not_of_the_family)
{
	ck_assert_int_eq(parse("# TYPE up counter\nuptime 1\nup_buckets 1\n"), 0);
	ck_assert_str_eq(seen, "uptime{} 1 0\nup_buckets{} 1 0\n");
}

static const struct {
	const char *text, *why;
} bad[] = {
	{ "1a 5", "a sample without a name" },
	{ "{a=\"b\"} 5", "a sample without a name" },
	{ "<html>", "a sample without a name" },
	{ "a", "no blank after a name" },
	{ "a=5", "no blank after a name" },
	{ "a{", "a label without a name" },
	{ "a{b} 1", "a label without =" },
	{ "a{b=c} 1", "a label value without quotes" },
	{ "a{b=\"c} 1", "a label value without its end" },
	{ "a{b=\"c\\", "an invalid escape" },
	{ "a{b=\"\\t\"} 1", "an invalid escape" },
	{ "a{b=\"c\" d=\"e\"} 1", "labels without their end" },
	{ "a{b=\"c\"", "labels without their end" },
	{ "a{b=\"1\",b=\"2\"} 1", "a repeated label" },
	{ "a{b:c=\"1\"} 1", "a label without =" },
	{ "a{,} 1", "a label without a name" },
	{ "a{}", "a number is missing" },
	{ "a one", "an invalid number" },
	{ "a nan(5)", "an invalid number" },
	{ "a 1,5", "an invalid number" },
	{ "a 0x1p3", "an invalid number" },
	{ "a 1e", "an invalid number" },
	{ "a 0000000000000000000000000000000000000000000000000000000000000000001",
		"an invalid number" },
	{ "a 1 x", "an invalid number" },
	{ "a 1 2 3", "text after a sample" },
	{ "a 1 # 5", "an exemplar without labels" },
	{ "a 1 # {b=\"c\"}", "a number is missing" },
	{ "a 1 # {} 1 2 3", "text after a sample" },
	{ "# TYPE a", "a TYPE line without a name" },
	{ "# TYPE a wonder", "a TYPE line of no known type" },
};

LS_TEST_EACH(prom_text, the_line_and_its_fault_are_said, bad)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "ok 1\n%s\nok 2\n", bad[_i].text);
	ck_assert_int_eq(parse(text), -LS_EPARSE);
	ck_assert_str_eq(page.why, bad[_i].why);
	ck_assert_uint_eq(page.line, 2);
	/* what came before was told, what follows is not */
	ck_assert_str_eq(seen, "ok{} 1 0\n");
}

LS_TEST(prom_text, a_zero_byte_is_refused)
{
	ck_assert_int_eq(ls_prom_text_read(&page, "a{b=\"\0\"} 1\n", 11, see, NULL),
		-LS_EPARSE);
	ck_assert_str_eq(page.why, "a byte of 0");
}

LS_TEST(prom_text, a_long_line_is_refused_but_not_a_long_comment)
{
	char *text = malloc(3 * LS_PROM_LINE_MAX_BYTES);

	memset(text, 'a', LS_PROM_LINE_MAX_BYTES + 1);
	(void)snprintf(text + LS_PROM_LINE_MAX_BYTES + 1, 16, "\nb 1\n");
	ck_assert_int_eq(parse(text), -LS_ELIMIT);
	ck_assert_str_eq(page.why, "a line is too long");
	memcpy(text, "# HELP ", 7);
	ck_assert_int_eq(parse(text), 0);
	ck_assert_str_eq(seen, "b{} 1 0\n");
	ck_assert_uint_eq(page.line, 2);
	/* The longest line there may be. */
	memset(text, ' ', LS_PROM_LINE_MAX_BYTES);
	memcpy(text, "c", 1);
	memcpy(text + LS_PROM_LINE_MAX_BYTES - 1, "2\n", 3);
	ck_assert_int_eq(parse(text), 0);
	ck_assert_str_eq(seen, "c{} 2 0\n");
	free(text);
}

LS_TEST(prom_text, labels_and_names_have_their_maxima)
{
	char text[1024];
	size_t len = 2, i;

	(void)snprintf(text, sizeof(text), "a{");
	for (i = 0; i <= LS_PROM_LABELS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "l%zu=\"\",",
			i);
	(void)snprintf(text + len, sizeof(text) - len, "} 1\n");
	ck_assert_int_eq(parse(text), -LS_ELIMIT);
	ck_assert_str_eq(page.why, "too many labels");
	memset(text, 'n', LS_PROM_NAME_MAX_BYTES);
	(void)snprintf(text + LS_PROM_NAME_MAX_BYTES, 8, " 1\n");
	ck_assert_int_eq(parse(text), -LS_ELIMIT);
	ck_assert_int_eq(parse(text + 1), 0);
	memcpy(text, "# TYPE ", 7);
	memset(text + 7, 'n', LS_PROM_NAME_MAX_BYTES);
	(void)snprintf(text + 7 + LS_PROM_NAME_MAX_BYTES, 16, " gauge\n");
	ck_assert_int_eq(parse(text), -LS_ELIMIT);
}

static void
count(void *arg, const struct ls_prom_sample *s)
{
	(void)s;
	++*(uint64_t *)arg;
}

LS_TEST(prom_text, samples_have_their_maximum)
{
	static char text[4 * (LS_PROM_SAMPLES_MAX + 1)];
	uint64_t told = 0, i;

	for (i = 0; i <= LS_PROM_SAMPLES_MAX; i++)
		memcpy(text + 4 * i, "a 1\n", 4);
	ck_assert_int_eq(ls_prom_text_read(&page, text, sizeof(text), count, &told),
		-LS_ELIMIT);
	ck_assert_uint_eq(told, LS_PROM_SAMPLES_MAX);
	ck_assert_uint_eq(page.line, LS_PROM_SAMPLES_MAX + 1);
}
