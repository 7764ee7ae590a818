/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/history/replay_csv.h"
#include "proto/base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CSV_STEP_MAX (INT64_MAX / 2)
#define CSV_SECONDS_MAX ((double)LS_PHASE_MAX_NS * 1e-9)
#define CSV_WHY_BYTES 80 /* with an escaped name or value it fits LS_LINE_WHY_BYTES */

static const char *const csv_names[LS_CSV_COLUMNS] = { "step", "rank", "own_seconds",
	"step_seconds" };

/* One line in parts, without the blanks around them. */
struct csv_row {
	char text[LS_REPLAY_ROW_MAX_BYTES];
	size_t count;
	char *field[LS_REPLAY_COLUMNS_MAX];
};

static bool
csv_is_text(const char *text, size_t len)
{
	size_t begin, end;

	for (begin = 0; begin < len; begin = end + 1) {
		for (end = begin; end < len && !isspace((unsigned char)text[end]);)
			end++;
		if (end > begin && !ls_text_is_name(text + begin, end - begin, len))
			return false;
	}
	return true;
}

bool
ls_csv_is(const char *text, size_t len)
{
	return memchr(text, ',', len) != NULL && memchr(text, '"', len) == NULL &&
		memchr(text, '{', len) == NULL && csv_is_text(text, len);
}

/* Sets why to "NAME ...": the column, and what is wrong with its value. */
static int
csv_fail(char *why, const char *name, const char *value, const char *must)
{
	char safe[CSV_WHY_BYTES];

	(void)ls_text_escape(safe, sizeof(safe), value, strlen(value));
	(void)snprintf(why, LS_LINE_WHY_BYTES, "\"%s\" is \"%s\", not %s", name, safe,
		must);
	return -LS_EPARSE;
}

static int
csv_split(struct csv_row *row, const char *text, size_t len, char *why)
{
	char *next = row->text, *end;

	row->count = 0;
	if (len >= sizeof(row->text) || memchr(text, '\0', len) != NULL) {
		(void)snprintf(why, LS_LINE_WHY_BYTES,
			"not a row of at most %zu bytes without a NUL byte",
			sizeof(row->text) - 1);
		return -LS_EPARSE;
	}
	memcpy(row->text, text, len);
	row->text[len] = '\0';
	while (next != NULL && row->count < LS_REPLAY_COLUMNS_MAX) {
		char *field = strsep(&next, ",");

		field += strspn(field, " \t");
		end = field + strlen(field);
		while (end > field && (end[-1] == ' ' || end[-1] == '\t'))
			*--end = '\0';
		row->field[row->count++] = field;
	}
	if (next == NULL)
		return 0;
	(void)snprintf(why, LS_LINE_WHY_BYTES, "more than %u columns",
		LS_REPLAY_COLUMNS_MAX);
	return -LS_EPARSE;
}

/* The names of the columns; the first that is not known is noted in *l. */
static int
csv_header(struct ls_csv *csv, const struct csv_row *row, struct ls_line *l, char *why)
{
	size_t c;

	for (size_t i = 0; i < row->count; i++) {
		for (c = 0;
			c < LS_CSV_COLUMNS && strcmp(row->field[i], csv_names[c]) != 0;
			c++)
			;
		if (c == LS_CSV_COLUMNS && l->unknown[0] == '\0')
			(void)ls_text_escape(l->unknown, sizeof(l->unknown),
				row->field[i], strlen(row->field[i]));
		if (c == LS_CSV_COLUMNS)
			continue;
		if (csv->at[c] != 0) {
			(void)snprintf(why, LS_LINE_WHY_BYTES,
				"two columns are named \"%s\"", csv_names[c]);
			return -LS_EPARSE;
		}
		csv->at[c] = i + 1;
	}
	return 0;
}

/* The value of a column; NULL: no such column, or an empty field. */
static const char *
csv_value(const struct ls_csv *csv, const struct csv_row *row, enum ls_csv_column c)
{
	const char *s = csv->at[c] > 0 ? row->field[csv->at[c] - 1] : NULL;

	return s != NULL && s[0] != '\0' ? s : NULL;
}

static int
csv_whole(const struct ls_csv *csv, const struct csv_row *row, enum ls_csv_column c,
	uint64_t max, uint64_t *ret_v, char *why)
{
	const char *s = csv_value(csv, row, c);
	char must[CSV_WHY_BYTES];

	if (s != NULL && ls_text_number(s, max, ret_v))
		return 0;
	(void)snprintf(must, sizeof(must), "a whole number of 0 to %llu",
		(unsigned long long)max);
	return csv_fail(why, csv_names[c], s == NULL ? "" : s, must);
}

/* Seconds as ns, rounded to whole microseconds. strtod alone would take nan, inf and hex. */
static int
csv_seconds(const struct ls_csv *csv, const struct csv_row *row, enum ls_csv_column c,
	uint64_t *ret_ns, char *why)
{
	const char *s = csv_value(csv, row, c);
	char must[CSV_WHY_BYTES], *end = NULL;
	double v = s != NULL && s[strspn(s, "0123456789.eE+-")] == '\0'
		? strtod(s, &end)
		: -1;

	if (s == NULL ||
		(end != NULL && *end == '\0' && v >= 0 && v < CSV_SECONDS_MAX)) {
		*ret_ns = s == NULL ? 0 : (uint64_t)llround(v * 1e6) * 1000;
		return 0;
	}
	(void)snprintf(must, sizeof(must), "seconds from 0 to %.0f", CSV_SECONDS_MAX);
	return csv_fail(why, csv_names[c], s, must);
}

/* A row of whole step times only is like a line of a log: it blames no worker. */
static int
csv_record(const struct ls_csv *csv, const struct csv_row *row, struct ls_line *l,
	char *why)
{
	struct ls_record *r = &l->record;
	const char *wrong = NULL;
	uint64_t rank = 0;
	int rc = csv_whole(csv, row, LS_CSV_STEP, CSV_STEP_MAX, &r->step, why);

	if (rc == 0 && csv->at[LS_CSV_RANK] != 0)
		rc = csv_whole(csv, row, LS_CSV_RANK, LS_WORKERS_MAX - 1, &rank, why);
	if (rc == 0)
		rc = csv_seconds(csv, row, LS_CSV_OWN, &r->phase_ns[LS_PHASE_OTHER],
			why);
	if (rc == 0)
		rc = csv_seconds(csv, row, LS_CSV_WHOLE, &r->duration_ns, why);
	if (rc != 0)
		return rc;
	if (csv_value(csv, row, LS_CSV_OWN) != NULL)
		r->phase_mask = 1u << LS_PHASE_OTHER;
	else
		l->who.step_source = LS_STEP_LOG;
	if (r->phase_mask == 0 && r->duration_ns == 0)
		wrong = "neither \"own_seconds\" nor \"step_seconds\" is given";
	else if (r->duration_ns > 0 && ls_record_check(r, NULL) != 0)
		wrong = "\"own_seconds\" is more than \"step_seconds\"";
	if (wrong != NULL) {
		(void)snprintf(why, LS_LINE_WHY_BYTES, "%s", wrong);
		return -LS_EPARSE;
	}
	l->who.step_confidence = 1;
	l->who.assumed = true;
	l->who.rank = (int32_t)rank;
	(void)snprintf(l->who.job, sizeof(l->who.job), "csv");
	(void)snprintf(l->who.host, sizeof(l->who.host), "rank%u", (unsigned)rank);
	return 0;
}

int
ls_csv_parse(struct ls_csv *csv, const char *text, size_t len, struct ls_line *l,
	char *why)
{
	bool first = csv->columns == 0;
	struct csv_row row;
	int rc;

	memset(l, 0, sizeof(*l));
	rc = csv_split(&row, text, len, why);
	if (rc != 0)
		return rc;
	if (first)
		csv->columns = row.count;
	if (first && isalpha((unsigned char)row.field[0][0]) != 0) {
		l->kind = LS_LINE_OTHER;
		return csv_header(csv, &row, l, why);
	}
	for (size_t c = 0; first && c < LS_CSV_COLUMNS && c < row.count; c++)
		csv->at[c] = c + 1;
	if (row.count == csv->columns)
		return csv_record(csv, &row, l, why);
	(void)snprintf(why, LS_LINE_WHY_BYTES,
		"%zu fields, where the first line has %zu", row.count, csv->columns);
	return -LS_EPARSE;
}

void
ls_csv_place(struct ls_record *r, int64_t begin_ns, uint64_t longest_ns)
{
	uint64_t own_ns = r->phase_ns[LS_PHASE_OTHER];

	r->t_begin_ns = begin_ns;
	if (r->duration_ns == 0)
		r->duration_ns = longest_ns;
	if (r->phase_mask == 0)
		return;
	/* a clock of its own may say a little more than the step */
	if (own_ns > r->duration_ns)
		own_ns = r->phase_ns[LS_PHASE_OTHER] = r->duration_ns;
	r->phase_ns[LS_PHASE_SYNC_WAIT] = r->duration_ns - own_ns;
	r->phase_mask |= 1u << LS_PHASE_SYNC_WAIT;
	r->barrier_count = 1;
	r->barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI,
		begin_ns + (int64_t)own_ns, begin_ns + (int64_t)r->duration_ns };
}
