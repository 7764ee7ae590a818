/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/questions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/questions_state.h"
#include "collector/ingest/series_text.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

struct ls_questions *
ls_questions_new(const char *dir)
{
	struct ls_questions *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->dir = strdup(dir);
	if (q->dir == NULL) {
		free(q);
		return NULL;
	}
	return q;
}

static void
questions_close(struct ls_questions *q)
{
	ls_query_series_free(q->series);
	ls_rollup_reader_free(q->rollups);
	q->rollups = NULL;
	ls_query_close(q->query);
	ls_job_members_fini(&q->members);
	q->job[0] = '\0';
	free(q->places.place);
	q->places = (struct ls_host_places){ 0 };
	ls_step_answer_fini(&q->step);
	ls_json_out_fini(&q->out);
	q->series = NULL;
	q->query = NULL;
}

void
ls_questions_free(struct ls_questions *q)
{
	if (q == NULL)
		return;
	questions_close(q);
	free(q->dir);
	free(q);
}

static int
questions_open(struct ls_questions *q)
{
	int rc = q->query != NULL ? 0 : ls_query_open(q->dir, &q->query);

	if (rc == 0 && q->series == NULL) {
		q->series = ls_query_series_new(q->query);
		rc = q->series != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0 && q->rollups == NULL) {
		q->rollups = ls_rollup_reader_new(q->query);
		rc = q->rollups != NULL ? 0 : -ENOMEM;
	}
	return rc;
}

int
ls_question_members(struct ls_questions *q, const char *job)
{
	int64_t last = 0;
	int rc = ls_query_last_worker(q->query, &last);

	if (rc != 0 ||
		(q->job[0] != '\0' && q->last_worker == last &&
			strcmp(q->job, job) == 0))
		return rc;
	ls_job_members_fini(&q->members);
	q->job[0] = '\0';
	rc = ls_job_members_read(&q->members, q->query, job);
	if (rc == 0)
		rc = ls_text_copy(q->job, sizeof(q->job), job);
	q->last_worker = last;
	q->loads += rc == 0;
	return rc;
}

/* --- series --------------------------------------------------------------- */

int
ls_selector_init(struct ls_selector *s, const char *text)
{
	int rc = ls_series_text_parse(text, s->name, &s->labels);

	return rc == 0 || rc == -ENOMEM ? rc : -EINVAL;
}

void
ls_selector_fini(struct ls_selector *s)
{
	json_decref(s->labels);
	s->labels = NULL;
}

bool
ls_selector_wants(void *arg, const char *group, const char *series)
{
	struct ls_selector *s = arg;
	size_t len = strlen(s->name);
	char name[LS_SERIES_NAME_MAX_BYTES];
	json_t *labels = NULL, *v;
	const char *key;
	bool wants = true;

	(void)group;
	if (strncmp(series, s->name, len) != 0 ||
		(series[len] != '\0' && series[len] != '{'))
		return false;
	if (json_object_size(s->labels) == 0)
		return true;
	if (ls_series_text_parse(series, name, &labels) != 0)
		return false;
	json_object_foreach(s->labels, key, v)
	{
		if (!json_equal(v, json_object_get(labels, key)))
			wants = false;
	}
	json_decref(labels);
	return wants;
}

void
ls_question_series_json(const char *host, const char *group, const char *series,
	struct ls_json_out *o)
{
	char name[LS_SERIES_NAME_MAX_BYTES];
	json_t *labels = NULL;
	char *text = NULL;
	bool known = ls_series_text_parse(series, name, &labels) == 0;

	if (known)
		text = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
	ls_json_out_string(o, "host", host);
	ls_json_out_string(o, "name", known ? name : series);
	ls_json_out_json(o, "labels", text != NULL ? text : "{}");
	if (group != NULL)
		ls_json_out_string(o, "group", group);
	free(text);
	json_decref(labels);
}

void
ls_question_end_json(size_t next, struct ls_json_out *o)
{
	char cursor[32];

	(void)snprintf(cursor, sizeof(cursor), "after-%zu", next);
	ls_json_out_raw(o, "]");
	ls_json_out_string(o, "next_cursor", next > 0 ? cursor : NULL);
	ls_json_out_raw(o, "}\n");
}

/* --- one question --------------------------------------------------------- */

static int
questions_text(struct ls_questions *q, const struct ls_ask *ask, struct ls_json_out *o)
{
	if (ask->kind == LS_ASK_HISTORY)
		return ls_question_history(q, ask, o);
	if (ask->kind == LS_ASK_FLEET)
		return ls_question_fleet(q, ask, o);
	if (ask->kind == LS_ASK_STEP)
		return ls_question_step(q, ask, o);
	return -LS_EUNKNOWN;
}

/* What another question may have met as well: the next one begins anew. */
static bool
questions_is_ours(int rc)
{
	return rc == 0 || rc == -LS_EUNKNOWN || rc == -LS_ERANGE || rc == -LS_ELIMIT ||
		rc == -LS_EPARSE || rc == -EINVAL || rc == -ECANCELED ||
		rc == -ETIMEDOUT || rc == -LS_EINTERRUPTED;
}

int
ls_questions_answer(struct ls_questions *q, const struct ls_ask *ask,
	const atomic_bool *cancelled, ls_export_sink *sink, void *arg)
{
	struct ls_json_out *o = &q->out;
	int stopped = 0, rc = questions_open(q);

	if (rc == 0) {
		ls_query_stop_at(q->query, ls_clock_mono_ns() + LS_QUERY_NS, cancelled);
		rc = questions_text(q, ask, o);
		stopped = rc != 0 ? ls_query_stopped(q->query) : 0;
		ls_query_stop_at(q->query, 0, NULL);
	}
	if (stopped != 0)
		rc = stopped; /* whatever it was that ended it */
	if (rc == 0)
		rc = ls_json_out_give(o, sink, arg);
	if (!questions_is_ours(rc))
		questions_close(q);
	if (o->size > LS_ANSWER_KEPT_BYTES)
		ls_json_out_fini(o);
	o->len = 0;
	o->failed = false;
	return rc;
}
