/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored - a state directory that tests fill, and questions to it.
 *
 * Owner:   test programs; one directory a test, made anew by stored_setup.
 * Units:   microseconds since the epoch.
 * Errors:  a failure fails the test.
 * Limits:  chunks of STORED_ROWS rows and three columns.
 */
#ifndef LS_TESTS_STORED_H
#define LS_TESTS_STORED_H

#include <jansson.h>
#include <limits.h>
#include "collector/answer/questions.h"
#include "storage/db/days.h"
#include "storage/write/store.h"

#define S 1000000ll
#define STORED_TODAY 20261121
#define STORED_MIDNIGHT ls_days_begin_us(STORED_TODAY + 1) /* at the end of today */
#define STORED_ROWS 60
#define STORED_THREE_BYTES 53

extern char stored_dir[PATH_MAX];
extern struct ls_store *stored_store;
extern struct ls_questions *stored_questions;
/* The series of a dictionary: host.one, and two of chip.two. */
extern const char stored_three[STORED_THREE_BYTES];

/* A fixture: an hour before midnight. */
void stored_setup(void);
void stored_teardown(void);

/* Commits one row of a host's stream of chunks at wall_us. */
void stored_put(const char *host, const struct ls_store_chunk *chunk, int64_t wall_us);
void stored_dictionary(const char *host, uint64_t hash, const char *group,
	const char *text, size_t len, int64_t wall_us);

/*
 * A chunk of `columns` columns from t_us on, a row a second: value of column c, row i
 * is base + i + 1000 c; the third column is there in even rows, its first a NaN.
 */
void stored_chunk(const char *host, uint64_t hash, size_t columns, double base,
	int64_t t_us, int64_t wall_us);

/* Commits a worker. */
void stored_worker(int64_t id, const char *job, const char *host);

/* Makes the roll-ups that are due at now_us. */
void stored_roll(int64_t now_us);

/* A question about a host's series; its answer; the error of it. */
struct ls_ask stored_history(const char *host, const char *series, int64_t from_us,
	int64_t to_us, int64_t step_s);
json_t *stored_answer(const struct ls_ask *ask);
int stored_refused(const struct ls_ask *ask);

/* An item of an answer; a number of one of its arrays; a text. */
const json_t *stored_item(const json_t *v, size_t i);
double stored_at(const json_t *item, const char *key, size_t i);
const char *stored_text(const json_t *v, const char *key);

#endif
