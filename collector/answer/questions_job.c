/* SPDX-License-Identifier: Apache-2.0 */
/* questions_job - the part of questions that knows who belongs to a job. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/questions_state.h"
#include "proto/base/text.h"

void
ls_job_members_fini(struct ls_job_members *m)
{
	uint64_t loads = m->loads;

	free(m->workers);
	free(m->hosts);
	free(m->rank_place);
	memset(m, 0, sizeof(*m));
	m->loads = loads;
}

static int
members_worker(void *arg, const struct ls_store_worker *w)
{
	struct ls_job_members *m = arg;
	size_t capacity = m->capacity > 0 ? 2 * m->capacity : 64;
	struct ls_store_worker *grown;

	if (m->count == m->capacity) {
		grown = reallocarray(m->workers, capacity, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		m->workers = grown;
		m->capacity = capacity;
	}
	m->workers[m->count++] = *w;
	return 0;
}

static int
members_compare_host(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int
members_hosts(struct ls_job_members *m)
{
	size_t i, n = 0;

	m->hosts = calloc(m->count + 1, sizeof(*m->hosts));
	if (m->hosts == NULL)
		return -ENOMEM;
	for (i = 0; i < m->count; i++)
		m->hosts[i] = m->workers[i].info.host;
	qsort(m->hosts, m->count, sizeof(*m->hosts), members_compare_host);
	for (i = 0; i < m->count; i++) {
		if (n == 0 || strcmp(m->hosts[n - 1], m->hosts[i]) != 0)
			m->hosts[n++] = m->hosts[i];
	}
	m->host_count = n;
	return 0;
}

/* By latest attempt, then rank, then number. */
static int
members_compare_rank(const void *a, const void *b)
{
	const struct ls_store_worker *x = *(const struct ls_store_worker *const *)a;
	const struct ls_store_worker *y = *(const struct ls_store_worker *const *)b;

	if (x->info.attempt != y->info.attempt)
		return x->info.attempt > y->info.attempt ? -1 : 1;
	if (x->info.rank != y->info.rank)
		return x->info.rank < y->info.rank ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static int
members_ranks(struct ls_job_members *m)
{
	const struct ls_store_worker **by_rank = calloc(m->count + 1, sizeof(*by_rank));
	size_t i;

	m->rank_place = calloc(m->count + 1, sizeof(*m->rank_place));
	if (by_rank == NULL || m->rank_place == NULL) {
		free(by_rank);
		return -ENOMEM;
	}
	for (i = 0; i < m->count; i++)
		by_rank[i] = &m->workers[i];
	qsort(by_rank, m->count, sizeof(*by_rank), members_compare_rank);
	for (i = 0; i < m->count; i++)
		m->rank_place[by_rank[i] - m->workers] = (uint32_t)i;
	free(by_rank);
	return 0;
}

int
ls_question_members(struct ls_questions *q, const char *job)
{
	struct ls_job_members *m = &q->members;
	int64_t last = 0;
	int rc = ls_query_last_worker(q->query, &last);

	if (rc != 0 ||
		(m->job[0] != '\0' && m->last_worker == last &&
			strcmp(m->job, job) == 0))
		return rc;
	ls_job_members_fini(m);
	rc = ls_query_workers(q->query, job, members_worker, m);
	if (rc == 0 && m->count == 0)
		rc = -LS_EUNKNOWN;
	if (rc == 0)
		rc = members_hosts(m);
	if (rc == 0)
		rc = members_ranks(m);
	if (rc == 0)
		rc = ls_text_copy(m->job, sizeof(m->job), job);
	if (rc != 0) {
		ls_job_members_fini(m);
		return rc;
	}
	m->last_worker = last;
	m->loads++;
	return 0;
}

static int
members_compare_id(const void *a, const void *b)
{
	int64_t x = ((const struct ls_store_worker *)a)->id;
	int64_t y = ((const struct ls_store_worker *)b)->id;

	return (x > y) - (x < y);
}

const struct ls_store_worker *
ls_job_members_worker(const struct ls_job_members *m, int64_t id)
{
	struct ls_store_worker key = { .id = id };

	/* Workers of a job that starts at once have numbers in a row. */
	if (m->count > 0 && id >= m->workers[0].id &&
		(uint64_t)(id - m->workers[0].id) < m->count &&
		m->workers[id - m->workers[0].id].id == id)
		return &m->workers[id - m->workers[0].id];
	return bsearch(&key, m->workers, m->count, sizeof(key), members_compare_id);
}

size_t
ls_job_members_host(const struct ls_job_members *m, const char *host)
{
	const char *const *found = bsearch(&host, m->hosts, m->host_count,
		sizeof(*m->hosts), members_compare_host);

	return found != NULL ? (size_t)(found - m->hosts) : m->host_count;
}
