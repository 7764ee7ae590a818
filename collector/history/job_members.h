/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_members - the stored workers of one job, and their hosts. info.owner is set only
 * where several users claim one rank of one host.
 *
 * Owner:   the caller's thread.
 * Units:   none.
 * Errors:  -LS_EUNKNOWN no worker of the job is stored; -ENOMEM; those of storage.
 * Limits:  those of storage.
 */
#ifndef LS_COLLECTOR_JOB_MEMBERS_H
#define LS_COLLECTOR_JOB_MEMBERS_H

#include <stddef.h>
#include <stdint.h>
#include "storage/read/query.h"

/* Zeroed is empty. */
struct ls_job_members {
	size_t count, capacity, host_count;
	struct ls_store_worker *workers; /* by id */
	const char **hosts; /* by name, each once; into workers */
	/* by latest attempt, then rank; and the place there of each worker */
	const struct ls_store_worker **by_rank;
	uint32_t *rank_place;
};

/* Reads the workers of a job; *m holds nothing before, and nothing if it fails. */
int ls_job_members_read(struct ls_job_members *m, struct ls_query *q,
	const char *job) LS_MUSTCHECK;
void ls_job_members_fini(struct ls_job_members *m);

/* The worker of an id, or NULL. */
const struct ls_store_worker *ls_job_members_worker(const struct ls_job_members *m,
	int64_t id);

/* A worker of this rank of an attempt, or NULL. */
const struct ls_store_worker *ls_job_members_rank(const struct ls_job_members *m,
	int32_t attempt, int32_t rank);

/* The place of a host, or host_count. */
size_t ls_job_members_host(const struct ls_job_members *m, const char *host);

#endif
