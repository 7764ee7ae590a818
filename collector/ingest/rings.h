/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings - which ring is which worker, and how much of each ring is stored.
 *
 * A ring's records are numbered by its writer. Each index is stored once, whatever
 * agent, boot or number brings it: below `high` all is accepted, below `committed` all
 * is on disk.
 *
 * A ring is of the host whose agent named it first. What another's says of it, which
 * has a copy, takes no record's place, until the ring has ended or its own host was not
 * heard of for LS_RING_SILENT_US (it was renamed, say).
 *
 * Owner:   the loop thread. Pure.
 * Units:   record indices from 0; us, the collector's clock.
 * Errors:  -ENOMEM; -LS_ELIMIT sessions hold all rings.
 * Limits:  the maximum given, and LS_RINGS_UNHEARD_MAX without a record that no session
 *          holds; when full, one of these makes room, else the ring that was released first.
 *          A ring that a session holds never does. LS_RING_SILENT_US.
 */
#ifndef LS_COLLECTOR_RINGS_H
#define LS_COLLECTOR_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "proto/base/err.h"
#include "proto/ring/ring.h"

struct ls_rings;

/* One ring. Plain data, its owner's to change, but for the key, the link and its list. */
struct ls_ring {
	uint8_t id[LS_RING_ID_BYTES]; /* first: the key */
	TAILQ_ENTRY(ls_ring) link;
	struct rings_list *list; /* that it is in */
	struct ls_rings *table;
	uint32_t sessions; /* that hold it */
	int64_t worker_id; /* its row in state.db, which is on disk; 0: none yet */
	/* rows of state.db were lost, and this was its id there; 0: no */
	int64_t lost_id;
	uint32_t handle; /* the engine's, or LS_NO_WORKER */
	bool named; /* info is known */
	bool seen; /* high is known: from storage, or from records */
	uint64_t high, committed;
	uint64_t fed; /* the engine had all below; never goes back */
	bool ended;
	/* when its host spoke of it last; 0: not since the start */
	int64_t heard_us;
	struct ls_worker_info info; /* host: the one it is of */
};

/* May this host's agent speak of a named ring now? Notes when its own does. */
bool ls_ring_hears(struct ls_ring *r, const char *host, int64_t now_us);

/* New map of at most max rings; NULL when out of memory. */
struct ls_rings *ls_rings_new(size_t max);
void ls_rings_free(struct ls_rings *t);

/* The ring, now the most recent one; NULL if it is not known. */
struct ls_ring *ls_rings_find(struct ls_rings *t, const uint8_t *id);

/* A session of a live agent names the ring: until ls_ring_release it is not evicted. */
void ls_ring_hold(struct ls_ring *ring);
void ls_ring_release(struct ls_ring *ring);

/*
 * As ls_rings_find, or a new one. A pointer to a ring that nobody holds is valid until
 * the next ls_rings_get.
 */
int ls_rings_get(struct ls_rings *t, const uint8_t *id,
	struct ls_ring **ret_ring) LS_MUSTCHECK;

/* Nothing accepted but not committed will be: forget it. */
void ls_rings_rollback(struct ls_rings *t);

/* Calls fn for each ring; fn must not add rings. */
void ls_rings_each(struct ls_rings *t, void (*fn)(void *arg, struct ls_ring *ring),
	void *arg);

/* Rings known. */
size_t ls_rings_count(const struct ls_rings *t);
/* Rings forgotten to make room. */
uint64_t ls_rings_evicted(const struct ls_rings *t);

#endif
