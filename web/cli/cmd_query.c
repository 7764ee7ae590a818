/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep query: series over time, and one step of all workers. */
#include "config.h"
#include "web/cli/cli.h"
#include "proto/base/conf.h"
#include "proto/base/text.h"
#include "proto/ring/record.h"
#include "web/cli/csv.h"
#include "web/cli/term.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUERY_TREND_COLUMNS 48
#define QUERY_TEXT_BYTES 1024

/* --- what all ways of printing share -------------------------------------- */

/* When bucket or value i of an item was, us. */
static int64_t
query_time(const json_t *body, const json_t *item, size_t i)
{
	const char *begin = ls_pick_text(body, "begin");
	const json_t *step = json_object_get(body, "step_s");
	int64_t us = 0;

	if (!begin || ls_conf_parse_time(begin, 0, &us) != 0)
		return 0;
	if (json_is_number(step))
		return us + (int64_t)i * json_integer_value(step) * 1000000;
	return us +
		llround(json_number_value(
				json_array_get(json_object_get(item, "at_s"), i)) *
			1e6);
}

/* The array that a line is drawn of: what there is of mean, or the one asked for, or
 * values. */
static const json_t *
query_values(const json_t *item)
{
	static const char *const keys[] = { "mean", "min", "max", "count", "value" };
	const json_t *v = NULL;

	for (size_t i = 0; !v && i < sizeof(keys) / sizeof(keys[0]); i++)
		v = json_object_get(item, keys[i]);
	return v;
}

/* Least or greatest number of an array; false if it has none. */
static bool
query_extreme(const json_t *array, bool most, double *ret)
{
	bool any = false;

	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *v = json_array_get(array, i);
		double x = json_number_value(v);

		if (!json_is_number(v) || (any && (most ? x <= *ret : x >= *ret)))
			continue;
		*ret = x;
		any = true;
	}
	return any;
}

/* --- for people ----------------------------------------------------------- */

static bool
query_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *v = getenv(names[i]);

		if (v && v[0] != '\0')
			return strstr(v, "UTF-8") || strstr(v, "utf8") ||
				strstr(v, "UTF8");
	}
	return false;
}

/* A small picture of an array: each column the greatest of what it covers, a blank
 * where nothing is. */
static void
query_trend(const json_t *array, double least, double most, size_t size, char *ret_text)
{
	static const char *const bars[] = { "\u2581", "\u2582", "\u2583", "\u2584",
		"\u2585", "\u2586", "\u2587", "\u2588" };
	static const char ascii[] = "_.-=+*#@";
	size_t n = json_array_size(array), len = 0, at = 0;
	size_t columns = n < QUERY_TREND_COLUMNS ? n : QUERY_TREND_COLUMNS;
	bool utf8 = query_is_utf8();

	ret_text[0] = '\0';
	for (size_t c = 0; c < columns && len + 4 < size; c++) {
		double top = NAN;
		size_t level;

		for (; at < (c + 1) * n / columns; at++) {
			const json_t *v = json_array_get(array, at);

			if (json_is_number(v) && !(json_number_value(v) <= top))
				top = json_number_value(v);
		}
		if (isnan(top)) {
			len += (size_t)snprintf(ret_text + len, size - len, " ");
			continue;
		}
		level = most > least ? (size_t)((top - least) / (most - least) * 7.999)
				     : 0;
		if (utf8)
			len += (size_t)snprintf(ret_text + len, size - len, "%s",
				bars[level]);
		else
			len += (size_t)snprintf(ret_text + len, size - len, "%c",
				ascii[level]);
	}
}

static const char *
query_number(struct ls_term *t, bool known, double v, const char *unit, double beside)
{
	return known ? ls_term_number(t, v, unit ? unit : "1", beside) : "-";
}

static void
query_line(struct ls_cli *cli, struct ls_table *table, const json_t *body,
	const json_t *item)
{
	struct ls_term *t = cli->term;
	const json_t *values = query_values(item), *min = json_object_get(item, "min");
	const json_t *max = json_object_get(item, "max");
	const char *unit = ls_pick_text(body, "unit");
	char text[QUERY_TEXT_BYTES], trend[4 * QUERY_TREND_COLUMNS + 1];
	double least = 0, most = 0, last = 0, low = 0, high = 0;
	bool any = query_extreme(values, false, &low) &&
		query_extreme(values, true, &high);
	bool has_last = false;

	least = low;
	most = high;
	(void)query_extreme(min, false, &least);
	(void)query_extreme(max, true, &most);
	for (size_t i = json_array_size(values); i > 0 && !has_last; i--) {
		has_last = json_is_number(json_array_get(values, i - 1));
		last = json_number_value(json_array_get(values, i - 1));
	}
	ls_cli_series(item, sizeof(text), text);
	query_trend(values, low, high, sizeof(trend), trend);
	ls_table_add(table, ls_term_text(t, item, "host", "?"));
	ls_table_add(table, ls_term_safe(t, text, "?"));
	ls_table_add(table, query_number(t, any, least, unit, most));
	ls_table_add(table, query_number(t, has_last, last, unit, most));
	ls_table_add(table, query_number(t, any, most, unit, most));
	ls_table_add(table, trend);
}

static void
query_caption(struct ls_cli *cli, const json_t *body)
{
	struct ls_term *t = cli->term;
	const json_t *step = json_object_get(body, "step_s");

	(void)printf("%s, %s to %s, ", ls_term_text(t, body, "metric", "?"),
		ls_term_time(t, body, "from", true), ls_term_time(t, body, "to", true));
	if (json_is_number(step))
		(void)printf("%" JSON_INTEGER_FORMAT " s a bucket, from %s\n",
			json_integer_value(step), ls_term_text(t, body, "source", "?"));
	else
		(void)printf("as measured, from %s\n",
			ls_term_text(t, body, "source", "?"));
}

static const char *const query_band_keys[] = { "p10", "p50", "p90", "min", "max",
	"mean", "lines" };
#define QUERY_BAND_KEYS (sizeof(query_band_keys) / sizeof(query_band_keys[0]))

/* The band, a row a bucket; beside it the first line of the host that was asked for. */
static void
query_band(struct ls_cli *cli, const json_t *body, const json_t *peers)
{
	const json_t *own = json_array_get(json_object_get(body, "items"), 0);
	const char *unit = ls_pick_text(body, "unit");
	struct ls_table *table = ls_table_new(own
			? "TIME|>P10|>P50|>P90|>LEAST|>MOST|>MEAN|>SERIES|>HOST"
			: "TIME|>P10|>P50|>P90|>LEAST|>MOST|>MEAN|>SERIES");
	size_t n = json_array_size(json_object_get(peers, "p50"));
	char canonical[32];

	for (size_t i = 0; i < n; i++) {
		const json_t *top = json_array_get(json_object_get(peers, "max"), i);

		ls_text_time(canonical, query_time(body, NULL, i));
		canonical[19] = '\0';
		ls_table_add(table, canonical);
		for (size_t k = 0; k < QUERY_BAND_KEYS; k++) {
			const json_t *v = json_array_get(
				json_object_get(peers, query_band_keys[k]), i);

			ls_table_add(table,
				query_number(cli->term, json_is_number(v),
					json_number_value(v),
					k + 1 == QUERY_BAND_KEYS ? "1" : unit,
					json_number_value(top)));
		}
		if (own) {
			const json_t *v = json_array_get(query_values(own), i);

			ls_table_add(table,
				query_number(cli->term, json_is_number(v),
					json_number_value(v), unit,
					json_number_value(top)));
		}
	}
	ls_table_print(table);
}

static void
query_show(struct ls_cli *cli, const json_t *body)
{
	const json_t *items = json_object_get(body, "items");
	const json_t *peers = json_object_get(body, "peers");
	struct ls_table *table;

	query_caption(cli, body);
	if (json_is_object(peers)) {
		query_band(cli, body, peers);
		return;
	}
	table = ls_table_new("HOST|SERIES|>LEAST|>LAST|>MOST|TREND");
	for (size_t i = 0; i < json_array_size(items); i++)
		query_line(cli, table, body, json_array_get(items, i));
	ls_table_print(table);
	if (json_array_size(items) == 0)
		(void)fprintf(stderr, "lockstep: no such metric was measured there\n");
}

static const struct ls_column query_columns[] = {
	{ ">RANK", ls_term_whole, "rank", "-" },
	{ "HOST", ls_term_text, "host", "?" },
	{ "SLICE", ls_term_text, "slice", "-" },
	LS_CLI_RECORD_COLUMNS,
	{ NULL, NULL, NULL, NULL },
};

/* --- for programs --------------------------------------------------------- */

static void
query_csv_band(const json_t *body, const json_t *peers, bool head)
{
	size_t n = json_array_size(json_object_get(peers, "p50"));

	if (head)
		(void)printf("time,p10,p50,p90,min,max,mean,lines\n");
	for (size_t i = 0; i < n; i++) {
		ls_csv_time(stdout, query_time(body, NULL, i), ',');
		for (size_t k = 0; k < QUERY_BAND_KEYS; k++)
			ls_csv_json(stdout,
				json_array_get(
					json_object_get(peers, query_band_keys[k]), i),
				k + 1 < QUERY_BAND_KEYS ? ',' : '\n');
	}
}

static void
query_csv_item(const json_t *body, const json_t *item)
{
	static const char *const raw[] = { "value", NULL };
	static const char *const cut[] = { "min", "mean", "max", "count", NULL };
	const char *const *keys = json_object_get(item, "value") ? raw : cut;
	size_t n = json_array_size(query_values(item));
	char text[QUERY_TEXT_BYTES];

	ls_cli_series(item, sizeof(text), text);
	for (size_t i = 0; i < n; i++) {
		ls_csv_time(stdout, query_time(body, item, i), ',');
		ls_csv_text(stdout, ls_pick_text(item, "host"), ',');
		ls_csv_text(stdout, text, ',');
		for (size_t k = 0; keys[k] != NULL; k++)
			ls_csv_json(stdout,
				json_array_get(json_object_get(item, keys[k]), i),
				keys[k + 1] != NULL ? ',' : '\n');
	}
}

static void
query_csv_record(const json_t *body, const json_t *r)
{
	static const char *const keys[] = { "rank", "host", "slice", "at", "duration_s",
		"own_s", "wait_s", "lateness_s", "blame_s" };

	ls_csv_json(stdout, json_object_get(body, "step"), ',');
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ls_csv_json(stdout, json_object_get(r, keys[i]), ',');
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		ls_csv_json(stdout,
			json_object_get(json_object_get(r, "phases"), ls_phase_name(p)),
			p + 1 < LS_PHASE_COUNT ? ',' : '\n');
}

static void
query_csv(const json_t *body, bool head)
{
	const json_t *items = json_object_get(body, "items");
	const json_t *peers = json_object_get(body, "peers");
	bool step = json_object_get(body, "metric") == NULL;

	if (json_is_object(peers)) {
		query_csv_band(body, peers, head);
		return;
	}
	if (head && step) {
		(void)printf(
			"step,rank,host,slice,at,duration_s,own_s,wait_s,lateness_s,blame_s");
		for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
			(void)printf(",%s_s", ls_phase_name(p));
		(void)printf("\n");
	} else if (head) {
		(void)printf(json_is_number(json_object_get(body, "step_s"))
				? "time,host,series,min,mean,max,count\n"
				: "time,host,series,value\n");
	}
	for (size_t i = 0; i < json_array_size(items); i++) {
		if (step)
			query_csv_record(body, json_array_get(items, i));
		else
			query_csv_item(body, json_array_get(items, i));
	}
}

/* One line an item, with what it needs of the answer around it; the band first. */
static void
query_jsonl(json_t *body, bool head)
{
	static const char *const keys[] = { "job", "step", "attempt", "metric", "unit",
		"begin", "step_s" };
	json_t *items = json_object_get(body, "items"),
	       *peers = json_object_get(body, "peers");

	if (head && json_is_object(peers)) {
		json_t *band = json_pack("{s:O}", "peers", peers);

		ls_ignore(json_array_insert_new(items, 0, band));
	}
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *item = json_array_get(items, i);

		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			json_t *v = json_object_get(body, keys[k]);

			if (v)
				ls_ignore(json_object_set(item, keys[k], v));
		}
		ls_cli_print_line(item);
	}
}

/* --- the command ---------------------------------------------------------- */

/* The path of what is asked, without a cursor. */
static int
query_path(struct ls_cli *cli, const char *metric, size_t size, char *ret_path)
{
	const struct ls_cli_options *o = &cli->options;
	bool history = metric && o->host[0] != '\0' && o->job[0] == '\0';
	char job[LS_CONF_VALUE_MAX_BYTES] = "";
	int rc = history ? LS_EXIT_OK : ls_cli_job(cli, sizeof(job), job);

	if (rc == LS_EXIT_OK && history)
		rc = ls_cli_host_path(o->host, "/series/", size, ret_path);
	else if (rc == LS_EXIT_OK)
		rc = ls_cli_job_path(job, metric ? "/series" : "/steps/", size,
			ret_path);
	if (rc == LS_EXIT_OK && (history || !metric))
		rc = ls_cli_segment(ret_path, size, metric ? metric : o->step);
	if (rc != LS_EXIT_OK)
		return rc;
	if (metric && !history &&
		(ls_cli_query(ret_path, size, "metric", metric) != 0 ||
			ls_cli_query(ret_path, size, "host", o->host) != 0))
		return LS_EXIT_USAGE;
	if (metric &&
		(ls_cli_query(ret_path, size, "agg", o->agg) != 0 ||
			ls_cli_query(ret_path, size, "peers", o->peers) != 0 ||
			ls_cli_query(ret_path, size, "from", o->from) != 0 ||
			ls_cli_query(ret_path, size, "to", o->to) != 0 ||
			ls_cli_query(ret_path, size, "step", o->step) != 0))
		return LS_EXIT_USAGE;
	return ls_cli_limit(cli, ret_path, size) == 0 ? LS_EXIT_OK : LS_EXIT_USAGE;
}

static void
query_print(struct ls_cli *cli, json_t *body, bool first)
{
	if (cli->csv)
		query_csv(body, first);
	else if (cli->jsonl)
		query_jsonl(body, first);
	else if (json_object_get(body, "metric"))
		query_show(cli, body);
	else
		ls_table_items(cli->term, json_object_get(body, "items"),
			query_columns);
}

/* A page; for programs all that follow. */
static int
query_pages(struct ls_cli *cli, const char *path)
{
	bool all = cli->csv || cli->jsonl, first = true;
	char at[8192], cursor[LS_CONF_VALUE_MAX_BYTES] = "";
	int rc;

	do {
		json_t *body = NULL;
		const char *next;

		(void)snprintf(at, sizeof(at), "%s", path);
		if (ls_cli_query(at, sizeof(at), "cursor", cursor) != 0)
			return LS_EXIT_USAGE;
		rc = ls_cli_get(cli, at, true, &body);
		if (rc == LS_EXIT_OK && !cli->json)
			query_print(cli, body, first);
		next = cli->json ? NULL : ls_pick_text(body, "next_cursor");
		(void)snprintf(cursor, sizeof(cursor), "%s", next ? next : "");
		json_decref(body);
		first = false;
	} while (rc == LS_EXIT_OK && all && cursor[0] != '\0');
	if (cursor[0] != '\0')
		(void)fprintf(stderr, "lockstep: more rows exist; see --limit\n");
	return rc;
}

int
ls_cmd_query(struct ls_cli *cli, int argc, char **argv)
{
	const char *metric = argc == 1 ? argv[0] : NULL;
	char path[4096];
	int rc;

	if (!metric && cli->options.step[0] == '\0') {
		(void)fprintf(stderr,
			"lockstep: usage: lockstep query METRIC, or lockstep query --step N\n");
		return LS_EXIT_USAGE;
	}
	rc = query_path(cli, metric, sizeof(path), path);
	return rc == LS_EXIT_OK ? query_pages(cli, path) : rc;
}
