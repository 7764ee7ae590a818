/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - a CPU cgroup for each rank, of equal weight: what is done to one rank stays
 * in its share.
 *
 * Both versions are known.
 *
 * Owner:   the parent; members call cgroup_join after fork.
 * Units:   none.
 * Errors:  0 or -errno. No cgroup at all is a state, not an error: `version` is 0 and
 *          `why` says why.
 * Limits:  WORKLOAD_RANKS_MAX.
 * Source:  Linux Documentation/admin-guide/cgroup-v2.rst; scheduler/sched-bwc.rst for
 *          v1.
 */
#ifndef LS_TESTS_WORKLOAD_CGROUP_H
#define LS_TESTS_WORKLOAD_CGROUP_H

#include <sys/types.h>
#include "proto/base/err.h"
#include "deploy/demo/workload/workload.h"

struct cgroup_set {
	int version; /* 1, 2, or 0: none could be made */
	char why[160]; /* of 0 */
	char base[256]; /* directory in which ours are */
	pid_t owner; /* the parent: part of their names */
	unsigned count;
};

/* Makes `count` cgroups, one a rank. */
void cgroup_open(struct cgroup_set *s, unsigned count);

/* Moves the calling process into cgroup i; 0 if there are none. */
int cgroup_join(const struct cgroup_set *s, unsigned i) LS_MUSTCHECK;

#define CGROUP_NO_QUOTA 0

/* Limits cgroup i to so many percent of one CPU, or no longer; -ENOTSUP without
 * cgroups. */
int cgroup_quota(const struct cgroup_set *s, unsigned i, int percent) LS_MUSTCHECK;

/* Removes them; the other processes of the job must be gone or on their way out. */
void cgroup_remove(const struct cgroup_set *s);

#endif
