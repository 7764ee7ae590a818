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
	enum ls_whatif_optype type; /* of the row before: mostly the same again */
	char buf[LS_WHATIF_LINE_MAX_BYTES];
};

/* --- one line ------------------------------------------------------------- */

/* A field as it may be shown. */
static const char *
csv_safe(const char *field, char *buf, size_t size)
{
	(void)ls_text_escape(buf, size, field, strlen(field));
	return buf;
}

static int
csv_bad_field(struct csv_parser *p, enum csv_column column, const char *must)
{
	char safe[48];

	return ls_whatif_bad(p->error, p->line, "%s is '%s': it must be %s",
		csv_names[column],
		csv_safe(p->fields[p->at[column]], safe, sizeof(safe)), must);
}

/* Cuts the line in buf into fields. Returns their number; too many:
 * LS_WHATIF_COLUMNS_MAX + 1. */
static size_t
csv_split(struct csv_parser *p)
{
	size_t n = 0;
	char *s = p->buf;

	for (;;) {
		if (n == LS_WHATIF_COLUMNS_MAX)
			return n + 1;
		p->fields[n++] = s;
		s = strchr(s, ',');
		if (s == NULL)
			return n;
		*s++ = '\0';
	}
}

static int
csv_header(struct csv_parser *p)
{
	size_t n = csv_split(p);
	bool found;

	if (n > LS_WHATIF_COLUMNS_MAX)
		return ls_whatif_bad(p->error, p->line, "more than %d columns",
			LS_WHATIF_COLUMNS_MAX);
	for (unsigned c = 0; c < CSV_COLUMNS; c++) {
		found = false;
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

/* A whole number from min to max. */
static int
csv_whole(struct csv_parser *p, enum csv_column column, int64_t min, int64_t max,
	int64_t *ret)
{
	const char *s = p->fields[p->at[column]], *digits = s[0] == '-' ? s + 1 : s;
	size_t len = strspn(digits, "0123456789");
	char must[64];
	int64_t v = 0;

	if (len >= 1 && len <= 18 && digits[len] == '\0') {
		v = strtoll(s, NULL, 10);
		if (v >= min && v <= max) {
			*ret = v;
			return 0;
		}
	}
	(void)snprintf(must, sizeof(must),
		"a whole number from %" PRId64 " to %" PRId64, min, max);
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
csv_type(struct csv_parser *p, struct ls_whatif_row *row)
{
	const char *name = p->fields[p->at[CSV_OPTYPE]];

	if (strcmp(name, ls_whatif_type_name(p->type)) != 0) {
		row->type = ls_whatif_type_find(name);
		if (row->type == LS_WHATIF_OPTYPES)
			return csv_bad_field(p, CSV_OPTYPE,
				"an operation that is known");
		p->type = row->type;
	}
	row->type = p->type;
	return 0;
}

static int
csv_row(struct csv_parser *p, struct ls_whatif_row *row)
{
	int64_t dp = 0, stage = 0, seq = 0;
	int rc = csv_whole(p, CSV_STEP, 0, INT64_MAX, &row->step);

	if (rc == 0)
		rc = csv_whole(p, CSV_RANK, 0, LS_WHATIF_WORLD_MAX, &row->rank);
	if (rc == 0)
		rc = csv_whole(p, CSV_DP_RANK, 0, (int64_t)p->meta->dp_size - 1, &dp);
	if (rc == 0)
		rc = csv_whole(p, CSV_STAGE, 0, (int64_t)p->meta->pp_size - 1, &stage);
	if (rc == 0)
		rc = csv_type(p, row);
	if (rc == 0)
		rc = csv_whole(p, CSV_SEQ_ID, 0, LS_WHATIF_ROWS_MAX, &seq);
	if (rc == 0)
		rc = csv_seconds(p, CSV_START_TS, -LS_WHATIF_TIME_MAX_S,
			LS_WHATIF_TIME_MAX_S, &row->start_s);
	if (rc == 0)
		rc = csv_seconds(p, CSV_DURATION, 0, LS_WHATIF_DURATION_MAX_S,
			&row->duration_s);
	row->dp = (uint32_t)dp;
	row->stage = (uint32_t)stage;
	row->seq = (uint32_t)seq;
	row->line = (uint32_t)p->line; /* at most LS_WHATIF_ROWS_MAX + 1 */
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
csv_too_long(struct csv_parser *p)
{
	return ls_whatif_bad(p->error, p->line + 1,
		"the line is longer than %d bytes, or holds a NUL",
		LS_WHATIF_LINE_MAX_BYTES - 2);
}

/* Removes a line's end, which may be CR LF. */
static void
csv_trim(char *buf, size_t len)
{
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	if (len > 0 && buf[len - 1] == '\r')
		len--;
	buf[len] = '\0';
}

static int
csv_end(struct csv_parser *p)
{
	if (p->columns == 0)
		return ls_whatif_bad(p->error, 0, "it is empty");
	return p->rows->count > 0 ? 0 : ls_whatif_bad(p->error, 0, "it has no row");
}

int
ls_whatif_csv_parse(const char *text, size_t len, const struct ls_whatif_meta *meta,
	struct ls_whatif_rows *ret_rows, struct ls_whatif_error *ret_error)
{
	struct csv_parser *p = calloc(1, sizeof(*p));
	const char *newline;
	size_t n;
	int rc = 0;

	if (p == NULL)
		return -ENOMEM;
	p->meta = meta;
	p->rows = ret_rows;
	p->error = ret_error;
	while (rc == 0 && len > 0) {
		newline = memchr(text, '\n', len);
		n = newline != NULL ? (size_t)(newline - text) + 1 : len;
		if (n >= sizeof(p->buf) || memchr(text, '\0', n) != NULL) {
			rc = csv_too_long(p);
			break;
		}
		memcpy(p->buf, text, n);
		csv_trim(p->buf, n);
		rc = csv_line(p);
		text += n;
		len -= n;
	}
	if (rc == 0)
		rc = csv_end(p);
	free(p);
	return rc;
}

static int
csv_file(struct csv_parser *p, gzFile file)
{
	size_t len;
	int rc = 0, state = Z_OK;

	while (rc == 0 && gzgets(file, p->buf, sizeof(p->buf)) != NULL) {
		len = strlen(p->buf);
		if (len == 0 || p->buf[len - 1] != '\n') {
			/* a line that is cut off is not looked at */
			(void)gzerror(file, &state);
			if (state != Z_OK && state != Z_STREAM_END)
				return -LS_ECORRUPT;
			if (!gzeof(file))
				return csv_too_long(p);
		}
		csv_trim(p->buf, len);
		rc = csv_line(p);
	}
	if (rc != 0)
		return rc;
	(void)gzerror(file, &state);
	if (state == Z_ERRNO)
		return errno != 0 ? -errno : -EIO;
	if (state != Z_OK && state != Z_STREAM_END)
		return -LS_ECORRUPT;
	return csv_end(p);
}

int
ls_whatif_csv_read(const char *path, const struct ls_whatif_meta *meta,
	struct ls_whatif_rows *ret_rows, struct ls_whatif_error *ret_error)
{
	struct csv_parser *p = calloc(1, sizeof(*p));
	gzFile file = NULL;
	int rc = -ENOMEM;

	if (p == NULL)
		return rc;
	p->meta = meta;
	p->rows = ret_rows;
	p->error = ret_error;
	errno = 0;
	file = strcmp(path, "-") == 0 ? gzdopen(0, "rb") : gzopen(path, "rb");
	if (file == NULL)
		rc = errno != 0 ? -errno : -ENOMEM;
	else
		rc = csv_file(p, file);
	if (file != NULL)
		(void)gzclose_r(file); /* read only: nothing to lose */
	free(p);
	return rc;
}
