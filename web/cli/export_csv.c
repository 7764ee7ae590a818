/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/export_csv.h"
#include "proto/limits.h"
#include "proto/ring/record.h"
#include "web/cli/csv.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct export_csv {
	FILE *out;
	bool counters, bad;
	size_t len;
	char line[LS_REPLAY_LINE_MAX_BYTES + 1];
};

/* Whole Unix seconds and their part, as a time. */
static void
csv_seconds(FILE *f, const json_t *v)
{
	double s = json_number_value(v);

	if (json_is_number(v) && s >= 0 && s < 253402300800.0)
		ls_csv_time(f, llround(s * 1e6), ',');
	else
		(void)fputc(',', f);
}

static void
csv_head(const struct export_csv *x)
{
	if (x->counters) {
		(void)fputs("time,job,host,rank,series,value\n", x->out);
		return;
	}
	(void)fputs("time,job,attempt,step,rank,host,slice,role,duration_s", x->out);
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		(void)fprintf(x->out, ",%s_s", ls_phase_name(p));
	(void)fputs(",barrier_s\n", x->out);
}

/* The time in barriers: those of the record, or its one. */
static bool
csv_barriers(const json_t *v, double *ret_s)
{
	const json_t *all = json_object_get(v, "barriers"), *one;
	const json_t *enter = json_object_get(v, "sync_enter");
	double sum = 0;
	size_t i;

	if (json_is_number(enter)) {
		*ret_s = json_number_value(json_object_get(v, "sync_exit")) -
			json_number_value(enter);
		return true;
	}
	json_array_foreach(all, i, one) sum +=
		json_number_value(json_object_get(one, "exit")) -
		json_number_value(json_object_get(one, "enter"));
	*ret_s = sum;
	return json_array_size(all) > 0;
}

static void
csv_step(FILE *f, const json_t *v)
{
	static const char *const keys[] = { "job", "attempt", "step", "rank", "host",
		"slice", "role", "duration" };
	const json_t *phases = json_object_get(v, "phases");
	double barriers_s = 0;

	csv_seconds(f, json_object_get(v, "t_begin"));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ls_csv_json(f, json_object_get(v, keys[i]), ',');
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		ls_csv_json(f, json_object_get(phases, ls_phase_name(p)), ',');
	if (csv_barriers(v, &barriers_s))
		(void)fprintf(f, "%.6f", barriers_s);
	(void)fputc('\n', f);
}

static void
csv_counters(FILE *f, const json_t *v)
{
	json_t *values = json_object_get(v, "values"), *value;
	const char *key;

	json_object_foreach(values, key, value)
	{
		csv_seconds(f, json_object_get(v, "t"));
		ls_csv_json(f, json_object_get(v, "job"), ',');
		ls_csv_json(f, json_object_get(v, "host"), ',');
		ls_csv_json(f, json_object_get(v, "rank"), ',');
		ls_csv_text(f, key, ',');
		ls_csv_json(f, value, '\n');
	}
}

static void
csv_line(struct export_csv *x)
{
	json_t *v = json_loadb(x->line, x->len, 0, NULL);
	const char *type = json_string_value(json_object_get(v, "type"));

	if (!json_is_object(v))
		x->bad = true;
	else if (x->counters && type && strcmp(type, "counters") == 0)
		csv_counters(x->out, v);
	else if (!x->counters && (!type || strcmp(type, "step") == 0))
		csv_step(x->out, v);
	json_decref(v);
	x->len = 0;
}

/* fopencookie: what is written, line by line. 0: an error. */
static ssize_t
csv_write(void *cookie, const char *text, size_t len)
{
	struct export_csv *x = cookie;

	for (size_t i = 0; i < len && !x->bad; i++) {
		if (text[i] == '\n')
			csv_line(x);
		else if (x->len == LS_REPLAY_LINE_MAX_BYTES)
			x->bad = true;
		else
			x->line[x->len++] = text[i];
	}
	if (x->bad)
		errno = EBADMSG;
	return x->bad || ferror(x->out) ? 0 : (ssize_t)len;
}

static int
csv_close(void *cookie)
{
	struct export_csv *x = cookie;
	bool bad = x->bad || x->len > 0;
	int rc = fflush(x->out) == 0 && !bad ? 0 : EOF;

	if (bad)
		errno = EBADMSG;
	free(x);
	return rc;
}

FILE *
ls_export_csv_open(FILE *out, bool counters)
{
	static const cookie_io_functions_t functions = { .write = csv_write,
		.close = csv_close };
	struct export_csv *x = calloc(1, sizeof(*x));
	FILE *f;

	if (!x)
		return NULL;
	x->out = out;
	x->counters = counters;
	f = fopencookie(x, "w", functions);
	if (!f) {
		free(x);
		return NULL;
	}
	csv_head(x);
	return f;
}
