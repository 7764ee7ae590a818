/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_csv.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The columns that are needed. */
enum csv_column {
	CSV_STEP,
	CSV_RANK,
	CSV_DP_RANK,
	CSV_STAGE,
	CSV_OPTYPE,
	CSV_SEQ_ID,
	CSV_START_TS,
	CSV_DURATION,
	CSV_COLUMNS
};
static const char *const csv_names[CSV_COLUMNS] = { "step", "rank", "dp_rank", "stage",
	"optype", "seq_id", "start_ts", "duration" };

struct csv_parser {
	const struct ls_whatif_meta *meta;
	struct ls_whatif_rows *rows;
	struct ls_whatif_error *error;
	uint64_t line;
	size_t columns; /* 0: the header has not been read */
	size_t at[CSV_COLUMNS]; /* where each needed column stands */
	char *fields[LS_WHATIF_COLUMNS_MAX];
	char buf[LS_WHATIF_LINE_MAX_BYTES];
};

/* --- one line ------------------------------------------------------------- */

static int
csv_bad_field(struct csv_parser *p, enum csv_column column, const char *must)
{
	const char *field = p->fields[p->at[column]];
	char safe[48];

	(void)ls_text_escape(safe, sizeof(safe), field, strlen(field));
	return ls_whatif_bad(p->error, p->line, "%s is '%s': it must be %s",
		csv_names[column], safe, must);
}

/* Cuts the line in buf into fields. Returns their number; too many:
 * LS_WHATIF_COLUMNS_MAX + 1. */
static size_t
csv_split(struct csv_parser *p)
{
	size_t n = 0;
	char *rest = p->buf, *field;

	while ((field = strsep(&rest, ",")) != NULL) {
		if (n == LS_WHATIF_COLUMNS_MAX)
			return n + 1;
		p->fields[n++] = field;
	}
	return n;
}

static int
csv_header(struct csv_parser *p)
{
	size_t n = csv_split(p);

	if (n > LS_WHATIF_COLUMNS_MAX)
		return ls_whatif_bad(p->error, p->line, "more than %d columns",
			LS_WHATIF_COLUMNS_MAX);
	for (unsigned c = 0; c < CSV_COLUMNS; c++) {
		bool found = false;

		for (size_t i = 0; i < n; i++) {
			if (strcmp(p->fields[i], csv_names[c]) != 0)
				continue;
			if (found)
				return ls_whatif_bad(p->error, p->line,
					"two columns are named %s", csv_names[c]);
			found = true;
			p->at[c] = i;
		}
		if (!found)
			return ls_whatif_bad(p->error, p->line,
				"no column is named %s (needed: step,rank,dp_rank,stage,optype,seq_id,"
				"start_ts,duration)",
				csv_names[c]);
	}
	p->columns = n;
	return 0;
}

/* A whole number from 0 to max. */
static int
csv_whole(struct csv_parser *p, enum csv_column column, int64_t max, int64_t *ret)
{
	const char *s = p->fields[p->at[column]], *digits = s[0] == '-' ? s + 1 : s;
	size_t len = strspn(digits, "0123456789");
	int64_t v = len >= 1 && len <= 18 && digits[len] == '\0' ? strtoll(s, NULL, 10)
								 : -1;
	char must[64];

	if (v >= 0 && v <= max) {
		*ret = v;
		return 0;
	}
	(void)snprintf(must, sizeof(must), "a whole number from 0 to %" PRId64, max);
	return csv_bad_field(p, column, must);
}

/* A number of seconds from min to max. strtod alone would take nan, inf and hex. */
static int
csv_seconds(struct csv_parser *p, enum csv_column column, double min, double max,
	double *ret)
{
	const char *s = p->fields[p->at[column]];
	char must[64], *end = NULL;
	double v;

	if (s[0] != '\0' && s[strspn(s, "0123456789.eE+-")] == '\0') {
		v = strtod(s, &end);
		if (end != s && *end == '\0' && v >= min && v <= max) {
			*ret = v;
			return 0;
		}
	}
	(void)snprintf(must, sizeof(must), "seconds from %.0f to %.0f", min, max);
	return csv_bad_field(p, column, must);
}

static int
csv_row(struct csv_parser *p, struct ls_whatif_row *row)
{
	/* of the columns up to seq_id; the operation has no number */
	const int64_t max[] = { INT64_MAX, LS_WHATIF_WORLD_MAX,
		(int64_t)p->meta->dp_size - 1, (int64_t)p->meta->pp_size - 1, -1,
		LS_WHATIF_ROWS_MAX };
	enum ls_whatif_optype type = ls_whatif_type_find(p->fields[p->at[CSV_OPTYPE]]);
	int64_t v[CSV_SEQ_ID + 1] = { 0 };
	int rc = 0;

	for (unsigned c = 0; rc == 0 && c <= CSV_SEQ_ID; c++) {
		if (c != CSV_OPTYPE)
			rc = csv_whole(p, c, max[c], &v[c]);
		else if (type == LS_WHATIF_OPTYPES)
			rc = csv_bad_field(p, c, "an operation that is known");
	}
	*row = (struct ls_whatif_row){ .step = v[CSV_STEP],
		.rank = v[CSV_RANK],
		.dp = (uint32_t)v[CSV_DP_RANK],
		.stage = (uint32_t)v[CSV_STAGE],
		.type = type,
		.seq = (uint32_t)v[CSV_SEQ_ID],
		.line = (uint32_t)p->line }; /* at most LS_WHATIF_ROWS_MAX + 1 */
	if (rc == 0)
		rc = csv_seconds(p, CSV_START_TS, -LS_WHATIF_TIME_MAX_S,
			LS_WHATIF_TIME_MAX_S, &row->start_s);
	if (rc == 0)
		rc = csv_seconds(p, CSV_DURATION, 0, LS_WHATIF_DURATION_MAX_S,
			&row->duration_s);
	return rc;
}

/* Takes the line in buf, without its end. */
static int
csv_line(struct csv_parser *p)
{
	struct ls_whatif_row row = { 0 };
	size_t n;
	int rc;

	p->line++;
	if (p->columns == 0)
		return csv_header(p);
	n = csv_split(p);
	if (n != p->columns)
		return ls_whatif_bad(p->error, p->line,
			"%s%zu fields, the header has %zu",
			n > LS_WHATIF_COLUMNS_MAX ? "more than " : "",
			n > LS_WHATIF_COLUMNS_MAX ? n - 1 : n, p->columns);
	if (p->rows->count == LS_WHATIF_ROWS_MAX)
		return ls_whatif_bad(p->error, p->line, "more than %u rows",
			LS_WHATIF_ROWS_MAX);
	rc = csv_row(p, &row);
	if (rc == 0)
		rc = ls_mem_grow((void **)&p->rows->rows, p->rows->count,
			&p->rows->capacity, sizeof(row));
	if (rc == 0)
		p->rows->rows[p->rows->count++] = row;
	return rc;
}

/* --- all lines ------------------------------------------------------------ */

static int
csv_file(struct csv_parser *p, gzFile file)
{
	size_t len;
	int rc = 0, state = Z_OK;

	while (rc == 0 && gzgets(file, p->buf, sizeof(p->buf)) != NULL) {
		len = strcspn(p->buf, "\n");
		if (p->buf[len] == '\0') {
			/* a line that is cut off is not looked at */
			(void)gzerror(file, &state);
			if (state != Z_OK && state != Z_STREAM_END)
				return -LS_ECORRUPT;
			if (!gzeof(file))
				return ls_whatif_bad(p->error, p->line + 1,
					"the line is longer than %d bytes, or holds a NUL",
					LS_WHATIF_LINE_MAX_BYTES - 2);
		}
		if (len > 0 && p->buf[len - 1] == '\r')
			len--;
		p->buf[len] = '\0';
		rc = csv_line(p);
	}
	if (rc != 0)
		return rc;
	(void)gzerror(file, &state);
	if (state == Z_ERRNO)
		return errno != 0 ? -errno : -EIO;
	if (state != Z_OK && state != Z_STREAM_END)
		return -LS_ECORRUPT;
	if (p->rows->count > 0)
		return 0;
	return ls_whatif_bad(p->error, 0,
		p->columns == 0 ? "it is empty" : "it has no row");
}

int
ls_whatif_csv_read(const char *path, const struct ls_whatif_meta *meta,
	struct ls_whatif_rows *ret_rows, struct ls_whatif_error *ret_error)
{
	struct csv_parser p = { .meta = meta, .rows = ret_rows, .error = ret_error };
	gzFile file;
	int rc;

	errno = 0;
	file = strcmp(path, "-") == 0 ? gzdopen(0, "rb") : gzopen(path, "rb");
	if (file == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	rc = csv_file(&p, file);
	(void)gzclose_r(file); /* read only: nothing to lose */
	return rc;
}
