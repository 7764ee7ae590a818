/* SPDX-License-Identifier: Apache-2.0 */
/* questions_history - the part of questions about series of one host over a range of
 * time. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/questions_state.h"
#include "collector/ingest/series_text.h"

struct history_line {
	char *series;
	char group[LS_GROUP_NAME_MAX_BYTES];
	struct ls_line line;
};

struct history {
	struct ls_range range;
	size_t count;
	struct history_line *lines; /* LS_QUERY_LINES_MAX */
};

static void
history_fini(struct history *h)
{
	for (size_t i = 0; i < h->count; i++) {
		free(h->lines[i].series);
		ls_line_fini(&h->lines[i].line);
	}
	free(h->lines);
}

/* The line of a series: one text in two groups is two lines. */
static int
history_find(struct history *h, const struct ls_query_column *c,
	struct ls_line **ret_line)
{
	struct history_line *l;
	int rc;

	for (size_t i = 0; i < h->count; i++) {
		l = &h->lines[i];
		if (strcmp(l->series, c->series) == 0 &&
			strcmp(l->group, c->group) == 0) {
			*ret_line = &l->line;
			return 0;
		}
	}
	if (h->count == LS_QUERY_LINES_MAX)
		return -LS_ELIMIT;
	l = &h->lines[h->count];
	memset(l, 0, sizeof(*l));
	l->series = strdup(c->series);
	if (l->series == NULL)
		return -ENOMEM;
	rc = ls_line_init(&l->line, &h->range);
	if (rc != 0) {
		free(l->series);
		return rc;
	}
	memcpy(l->group, c->group, strnlen(c->group, sizeof(l->group) - 1));
	h->count++;
	*ret_line = &l->line;
	return 0;
}

static int
history_column(void *arg, const struct ls_query_column *c)
{
	struct history *h = arg;
	struct ls_line *line = NULL;
	int rc = history_find(h, c, &line);

	for (size_t i = c->from; i < c->to && rc == 0; i++) {
		if (c->present[i])
			rc = ls_line_add(line, &h->range, c->t_us[i], c->value[i]);
	}
	return rc;
}

static int
history_compare(const void *a, const void *b)
{
	const struct history_line *x = a, *y = b;
	int order = strcmp(x->series, y->series);

	return order != 0 ? order : strcmp(x->group, y->group);
}

/* Lines from ask->skip on, as many as the answer takes. */
static void
history_json(struct history *h, const struct ls_ask *ask, const char *name,
	uint64_t bad, struct ls_json_out *o)
{
	size_t i, end = h->count, room = ask->limit;
	size_t values = h->range.count > 0 ? LS_AGG_KINDS * h->range.count
					   : 2 * LS_QUERY_POINTS_MAX;

	if (room > LS_QUERY_VALUES_MAX / values)
		room = LS_QUERY_VALUES_MAX / values;
	if (room == 0)
		room = 1;
	if (end > ask->skip && end - ask->skip > room)
		end = ask->skip + room;
	ls_json_out_raw(o, "{\"schema_version\":1,\"source\":\"chunks\"");
	ls_json_out_string(o, "metric", name);
	ls_json_out_string(o, "unit", ls_series_text_unit(name));
	ls_range_json(&h->range, o);
	ls_json_out_whole(o, "left_out", (int64_t)bad);
	ls_json_out_json(o, "items", "[");
	for (i = ask->skip; i < end; i++) {
		ls_json_out_json(o, NULL, "{");
		ls_question_series_json(ask->host, h->lines[i].group,
			h->lines[i].series, o);
		ls_line_sort(&h->lines[i].line);
		ls_line_json(&h->lines[i].line, &h->range, (1u << LS_AGG_KINDS) - 1, o);
		ls_json_out_raw(o, "}");
	}
	ls_question_end_json(end < h->count ? end : 0, o);
}

int
ls_question_history(struct ls_questions *q, const struct ls_ask *ask,
	struct ls_json_out *o)
{
	const struct ls_query_span span = { ask->host, ask->from_us, ask->to_us };
	struct ls_selector selector = { 0 };
	struct history h = { 0 };
	uint64_t bad = ls_query_series_bad(q->series);
	int rc = ls_range_cut(ask->from_us, ask->to_us, ask->step_s, 1, &h.range);

	if (rc == 0)
		rc = ls_selector_init(&selector, ask->series);
	if (rc == 0) {
		h.lines = calloc(LS_QUERY_LINES_MAX, sizeof(*h.lines));
		rc = h.lines != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		ls_query_series_want(q->series, ls_selector_wants, &selector);
		rc = ls_query_series_visit(q->series, &span, history_column, &h);
	}
	if (rc == 0) {
		qsort(h.lines, h.count, sizeof(*h.lines), history_compare);
		history_json(&h, ask, selector.name,
			ls_query_series_bad(q->series) - bad, o);
	}
	history_fini(&h);
	ls_query_series_want(q->series, NULL, NULL); /* the selector goes */
	ls_selector_fini(&selector);
	return rc;
}
