/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions_state - what the files of questions share: nobody else includes it.
 *
 * Owner:   one thread.
 * Units:   as in collector/answer/buckets.h.
 * Errors:  as in collector/answer/questions.h.
 * Limits:  as in collector/answer/questions.h.
 */
#ifndef LS_COLLECTOR_QUESTIONS_STATE_H
#define LS_COLLECTOR_QUESTIONS_STATE_H

#include <jansson.h>
#include "collector/answer/buckets.h"
#include "collector/history/json_out.h"
#include "collector/history/job_members.h"
#include "storage/read/query_rollup.h"
#include "storage/read/query_series.h"
#include "web/api/backend.h"

/* Where the hosts of a file's roll-ups stand among those of the job: kept from one
 * question to the next. */
struct ls_host_places {
	uint64_t names; /* of ls_rollup_part; 0: none yet */
	uint64_t loads; /* of ls_questions */
	size_t count;
	uint32_t *place; /* by host_id; at least host_count: of none */
};

struct ls_step_row;

/* The records of a step, and which of them are shown: by rank. */
struct ls_step_answer {
	struct ls_step_row *rows;
	size_t rows_max;
	uint32_t *chosen;
};

/* Frees what it holds; it can be used again. */
void ls_step_answer_fini(struct ls_step_answer *a);

struct ls_questions {
	char *dir;
	struct ls_query *query; /* NULL: not open */
	struct ls_query_series *series;
	struct ls_rollup_reader *rollups;
	/* kept until another job is asked for, or a worker comes */
	struct ls_job_members members;
	char job[LS_JOB_NAME_MAX_BYTES]; /* whose they are; "": none yet */
	int64_t last_worker; /* ls_query_last_worker at that time */
	uint64_t loads; /* how often they were read */
	struct ls_host_places places;
	struct ls_step_answer step;
	struct ls_json_out out; /* of the answer: its memory is kept */
};

/* Which series a text means: those of its name that have all its labels. */
struct ls_selector {
	char name[LS_SERIES_NAME_MAX_BYTES];
	json_t *labels;
};

/* -EINVAL: text is not a name of a series, with or without labels. */
int ls_selector_init(struct ls_selector *s, const char *text) LS_MUSTCHECK;
void ls_selector_fini(struct ls_selector *s);

/* As ls_query_wanted_fn; arg is a selector. */
bool ls_selector_wants(void *arg, const char *group, const char *series);

/* Members of a line: host, name, labels, group (NULL: none). */
void ls_question_series_json(const char *host, const char *group, const char *series,
	struct ls_json_out *o);

/* The end of an answer: of its items, "next_cursor" (next 0: null) and the brace. */
void ls_question_end_json(size_t next, struct ls_json_out *o);

/* Brings q->members to a job. -LS_EUNKNOWN: no worker of it is stored. */
int ls_question_members(struct ls_questions *q, const char *job) LS_MUSTCHECK;

/* One step of all workers. */
int ls_question_step(struct ls_questions *q, const struct ls_ask *ask,
	struct ls_json_out *o) LS_MUSTCHECK;
/* One metric of all hosts of a job. */
int ls_question_fleet(struct ls_questions *q, const struct ls_ask *ask,
	struct ls_json_out *o) LS_MUSTCHECK;
/* One series of one host. */
int ls_question_history(struct ls_questions *q, const struct ls_ask *ask,
	struct ls_json_out *o) LS_MUSTCHECK;

#endif
