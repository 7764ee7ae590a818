/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions - what the HTTP side asks of storage, answered as JSON text.
 *
 * Connections, dictionaries and work memory are kept from one question to the next.
 *
 * Owner:   one thread.
 * Units:   as in web/api/backend.h.
 * Errors:  -LS_EUNKNOWN no such job, host, series or step is stored; -LS_ERANGE,
 *          -LS_ELIMIT what is asked is no range, or too much; -ETIMEDOUT after
 *          LS_QUERY_NS; -ECANCELED; -ENOMEM; those of storage/read/query.h.
 * Limits:  LS_QUERY_NS a question, LS_QUERY_VALUES_MAX numbers of an answer.
 * Source:  web/README.md, "Stored series", "Stored step".
 */
#ifndef LS_COLLECTOR_QUESTIONS_H
#define LS_COLLECTOR_QUESTIONS_H

#include <stdatomic.h>
#include "collector/history/export.h"
#include "web/api/backend.h"

struct ls_questions;

/* Nothing is opened yet; dir is the state directory. NULL when out of memory. */
struct ls_questions *ls_questions_new(const char *dir);
void ls_questions_free(struct ls_questions *q);

/* Answers HISTORY, FLEET or STEP; ends early once *cancelled (may be NULL) is true. */
int ls_questions_answer(struct ls_questions *q, const struct ls_ask *ask,
	const atomic_bool *cancelled, ls_export_sink *sink, void *arg) LS_MUSTCHECK;

#endif
