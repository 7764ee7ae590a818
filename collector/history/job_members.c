/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/job_members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"

void
ls_job_members_fini(struct ls_job_members *m)
{
	free(m->workers);
	free(m->hosts);
	free(m->by_rank);
	free(m->rank_place);
	memset(m, 0, sizeof(*m));
}

static int
members_worker(void *arg, const struct ls_store_worker *w)
{
	struct ls_job_members *m = arg;
	int rc = ls_mem_grow((void **)&m->workers, m->count, &m->capacity,
		sizeof(*m->workers));

	if (rc != 0)
		return rc;
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

/* By latest attempt, then rank. */
static int
members_compare_rank(const void *a, const void *b)
{
	const struct ls_worker_info *x =
		&(*(const struct ls_store_worker *const *)a)->info;
	const struct ls_worker_info *y =
		&(*(const struct ls_store_worker *const *)b)->info;

	if (x->attempt != y->attempt)
		return x->attempt > y->attempt ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Equal ones by number. */
static int
members_compare_place(const void *a, const void *b)
{
	const struct ls_store_worker *x = *(const struct ls_store_worker *const *)a;
	const struct ls_store_worker *y = *(const struct ls_store_worker *const *)b;
	int c = members_compare_rank(a, b);

	return c != 0 ? c : (x->id > y->id) - (x->id < y->id);
}

static int
members_compare_owner(const void *a, const void *b)
{
	const struct ls_worker_info *x =
		&(*(const struct ls_store_worker *const *)a)->info;
	const struct ls_worker_info *y =
		&(*(const struct ls_store_worker *const *)b)->info;
	int c = members_compare_rank(a, b);

	if (c == 0)
		c = strcmp(x->host, y->host);
	return c != 0 ? c : (x->owner > y->owner) - (x->owner < y->owner);
}

/* Users are kept where two of them claim one rank of one host: else nobody asks. */
static void
members_owners(struct ls_job_members *m)
{
	size_t i, first, end;

	qsort(m->by_rank, m->count, sizeof(*m->by_rank), members_compare_owner);
	for (first = 0; first < m->count; first = end) {
		const struct ls_worker_info *who = &m->by_rank[first]->info;
		uint32_t least = who->owner, most = least;

		for (end = first; end < m->count &&
			members_compare_rank(&m->by_rank[first], &m->by_rank[end]) ==
				0 &&
			strcmp(who->host, m->by_rank[end]->info.host) == 0;
			end++) {
			most = m->by_rank[end]->info.owner;
			if (least == 0 && most != LS_OWNER_APART)
				least = most; /* one that is not known may be anybody here */
		}
		for (i = first; least == most && i < end; i++)
			m->workers[m->by_rank[i] - m->workers].info.owner = 0;
	}
}

static int
members_ranks(struct ls_job_members *m)
{
	m->by_rank = calloc(m->count + 1, sizeof(*m->by_rank));
	m->rank_place = calloc(m->count + 1, sizeof(*m->rank_place));
	if (m->by_rank == NULL || m->rank_place == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->count; i++)
		m->by_rank[i] = &m->workers[i];
	members_owners(m);
	qsort(m->by_rank, m->count, sizeof(*m->by_rank), members_compare_place);
	for (size_t i = 0; i < m->count; i++)
		m->rank_place[m->by_rank[i] - m->workers] = (uint32_t)i;
	return 0;
}

int
ls_job_members_read(struct ls_job_members *m, struct ls_query *q, const char *job)
{
	int rc;

	memset(m, 0, sizeof(*m));
	rc = ls_query_workers(q, job, members_worker, m);
	if (rc == 0 && m->count == 0)
		rc = -LS_EUNKNOWN;
	if (rc == 0)
		rc = members_hosts(m);
	if (rc == 0)
		rc = members_ranks(m);
	if (rc != 0)
		ls_job_members_fini(m);
	return rc;
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

const struct ls_store_worker *
ls_job_members_rank(const struct ls_job_members *m, int32_t attempt, int32_t rank)
{
	const struct ls_store_worker key = { .info = { .attempt = attempt,
						     .rank = rank } };
	const struct ls_store_worker *k = &key, **found;

	found = bsearch(&k, m->by_rank, m->count, sizeof(k), members_compare_rank);
	return found != NULL ? *found : NULL;
}
