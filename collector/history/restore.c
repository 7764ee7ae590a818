/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/restore.h"
#include "collector/answer/finding_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "collector/ingest/feed.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "storage/read/query_chunk.h"

#define RESTORE_DAY_US (24ll * 3600 * 1000000)
#define RESTORE_SILENCE_US 1000000 /* between two looks for silent workers */

/* Which ring a worker row is of. Rings are not added after this is made, so they stay.
 */
struct restore_worker {
	int64_t id;
	struct ls_ring *ring;
};

struct restore {
	const struct ls_core *core;
	int64_t now_us;
	int64_t silence_us; /* when silent workers were looked for, last */
	struct ls_query *query;
	struct ls_restore_stats stats;
	json_t *stored; /* findings as stored, by id */
	struct restore_worker *workers;
	size_t worker_count;
};

/* --- findings, agents, rings ---------------------------------------------- */

static int
restore_finding(void *arg, const char *id, const char *text, size_t len)
{
	struct restore *r = arg;
	char why[200];
	json_t *finding = NULL;
	int rc = ls_json_parse(text, len, &finding, why, sizeof(why));

	if (rc == 0)
		rc = ls_finding_seed(r->core->engine, finding);
	if (rc == 0) {
		r->stats.findings++;
		if (json_object_set(r->stored, id, finding) != 0)
			rc = -ENOMEM;
	} else if (rc != -ENOMEM) {
		r->stats.bad++;
		ls_log(LS_LOG_ERR, "restore",
			"finding %s in storage: %s; continuing without this finding",
			id, ls_err_text(rc));
		rc = 0;
	}
	json_decref(finding);
	return rc;
}

/* Counts what was taken back; what cannot be is counted and passed over. */
static int
restore_count(struct restore *r, int rc, uint64_t *count)
{
	if (rc == 0)
		(*count)++;
	else if (rc != -ENOMEM)
		r->stats.bad++;
	return rc == -ENOMEM ? rc : 0;
}

static int
restore_worker(void *arg, const struct ls_store_worker *w)
{
	struct restore *r = arg;
	struct ls_ring *ring;
	int rc = ls_rings_get(r->core->rings, w->ring_id, &ring);

	if (rc != 0)
		return rc;
	ring->worker_id = w->id;
	ring->info = w->info;
	ring->named = true;
	r->stats.workers++;
	return 0;
}

static int
restore_ring(void *arg, const struct ls_store_ring *stored)
{
	struct restore *r = arg;
	struct ls_ring *ring;
	int rc = ls_rings_get(r->core->rings, stored->ring_id, &ring);

	if (rc != 0)
		return rc;
	if (ring->worker_id == 0)
		ring->lost_id = stored->worker_id;
	ring->high = ring->committed = ring->fed = stored->high;
	ring->seen = true;
	r->stats.rings++;
	return 0;
}

static int
restore_agent(void *arg, const struct ls_store_ledger *entry)
{
	struct restore *r = arg;
	const uint64_t seq[LS_STREAM_COUNT] = {
		[LS_STREAM_STEPS] = entry->seq, [LS_STREAM_CHUNKS] = entry->chunk_seq
	};
	int rc = ls_sessions_seed(r->core->sessions, entry->boot, entry->host, seq);

	if (rc == 0)
		r->stats.agents++;
	/* Beyond the maximum the longest silent make room; so many live ones cannot be
	 * here yet. */
	return rc == -LS_ELIMIT ? 0 : rc;
}

static int
restore_dictionary(void *arg, const struct ls_query_dictionary *stored)
{
	struct restore *r = arg;
	struct ls_dictionary *d;

	/* if it is not known, it is asked for again */
	return restore_count(r,
		ls_dictionaries_put(r->core->dictionaries, stored->hash, stored->group,
			stored->series, stored->count, &d),
		&r->stats.dictionaries);
}

static int
restore_host(void *arg, const char *host, const char *json, size_t len,
	int64_t first_us, int64_t last_us)
{
	struct restore *r = arg;

	return restore_count(r,
		ls_fleet_seed(r->core->fleet, host, json, len, first_us, last_us),
		&r->stats.hosts);
}

/* --- workers by row id ---------------------------------------------------- */

static int
restore_compare(const void *a, const void *b)
{
	int64_t x = ((const struct restore_worker *)a)->id;
	int64_t y = ((const struct restore_worker *)b)->id;

	return (x > y) - (x < y);
}

static void
restore_list(void *arg, struct ls_ring *ring)
{
	struct restore *r = arg;

	r->workers[r->worker_count++] =
		(struct restore_worker){ ring->worker_id, ring };
}

static int
restore_index(struct restore *r)
{
	size_t n = ls_rings_count(r->core->rings);

	r->workers = calloc(n > 0 ? n : 1, sizeof(*r->workers));
	if (r->workers == NULL)
		return -ENOMEM;
	ls_rings_each(r->core->rings, restore_list, r);
	qsort(r->workers, r->worker_count, sizeof(*r->workers), restore_compare);
	return 0;
}

/* The ring of a worker, declared to the engine when first met; NULL: not known or not
 * judged. */
static struct ls_ring *
restore_find(struct restore *r, int64_t worker_id, int64_t t_us)
{
	struct restore_worker key = { .id = worker_id };
	struct restore_worker *w = bsearch(&key, r->workers, r->worker_count,
		sizeof(*r->workers), restore_compare);

	if (w == NULL || !w->ring->named)
		return NULL;
	if (w->ring->handle == LS_NO_WORKER) {
		if (ls_engine_worker(r->core->engine, &w->ring->info, t_us,
			    &w->ring->handle) != 0) {
			w->ring->handle = LS_NO_WORKER;
			return NULL;
		}
		/* Until all is back, steps close only where they were closed. */
		ls_ignore(ls_engine_manual(r->core->engine, w->ring->info.job, true));
	}
	return w->ring;
}

/* --- rows ----------------------------------------------------------------- */

static void
restore_steps(struct restore *r, const struct ls_store_event *e)
{
	const struct ls_store_steps *steps = &e->u.steps;
	struct ls_ring *ring = restore_find(r, steps->worker_id, e->t_us);

	if (ring == NULL)
		return;
	ls_feed_steps(r->core->engine, ring->handle, steps, e->t_us);
	r->stats.records += steps->count;
}

static void
restore_item(struct restore *r, const struct ls_store_event *e)
{
	const struct ls_store_item *row = &e->u.item;
	struct ls_ring *ring = restore_find(r, row->worker_id, e->t_us);

	if (ring == NULL)
		return;
	if (row->kind == LS_WIRE_GAP)
		ls_engine_gap(r->core->engine, ring->handle, row->count);
	else
		ls_engine_end(r->core->engine, ring->handle, row->reason, e->t_us);
}

static int
restore_event(void *arg, const struct ls_store_event *e)
{
	struct restore *r = arg;
	const struct ls_store_counters *c = &e->u.counters;
	struct ls_ring *ring = NULL;

	if (e->t_us - r->silence_us >= RESTORE_SILENCE_US) {
		r->silence_us = e->t_us;
		ls_engine_silence(r->core->engine, e->t_us);
	}
	switch (e->kind) {
	case LS_EVENT_STEPS:
		restore_steps(r, e);
		return 0;
	case LS_EVENT_ITEM:
		restore_item(r, e);
		return 0;
	case LS_EVENT_CLOSE:
		/* A step that closed by itself when its last record came is no longer
		 * there. */
		ls_ignore(ls_engine_close_step(r->core->engine, e->u.close.job,
			e->u.close.attempt, e->u.close.step, e->t_us));
		r->stats.closes++;
		return 0;
	case LS_EVENT_COUNTERS:
		if (c->worker_id != 0)
			ring = restore_find(r, c->worker_id, e->t_us);
		ls_feed_counters(r->core->engine, c,
			ring != NULL ? ring->handle : LS_NO_WORKER);
		r->stats.counters++;
		return 0;
	case LS_EVENT_ZOOM:
		return 0; /* ended by itself while we were away */
	case LS_EVENT_HANG:
		ls_feed_hang(r->core->engine, &e->u.hang, e->t_us);
		return 0;
	}
	return 0;
}

static void
restore_passed_over(struct restore *r, int32_t day, int rc)
{
	r->stats.bad++;
	ls_log(LS_LOG_ERR, "restore",
		"the file of day %d: %s; continuing without the unreadable part",
		(int)day, ls_err_text(rc));
}

/* The newest days, back to yesterday, as far as the maximum of records goes. */
static int
restore_days(struct restore *r)
{
	struct ls_days *days = malloc(sizeof(*days));
	int32_t yesterday = ls_days_of(r->now_us - RESTORE_DAY_US);
	int64_t from[LS_DAYS_MAX] = { 0 };
	uint64_t left = LS_RESTORE_MAX_RECORDS, n;
	size_t first, i;
	int rc = days != NULL ? ls_query_days(r->query, days) : -ENOMEM;

	if (rc != 0)
		goto out;
	for (first = days->count; first > 0 && days->day[first - 1] >= yesterday;
		first--) {
		rc = ls_query_tail(r->query, days->day[first - 1], left,
			&from[first - 1], &n);
		if (rc != 0)
			restore_passed_over(r, days->day[first - 1], rc);
		left -= rc == 0 ? n : 0;
	}
	for (i = first; i < days->count; i++) {
		rc = ls_query_events(r->query, days->day[i], from[i], restore_event, r);
		if (rc == -ENOMEM)
			goto out;
		if (rc != 0)
			restore_passed_over(r, days->day[i], rc);
	}
	rc = 0;
out:
	free(days);
	return rc;
}

/* What is usual of each worker, as the collector before kept it; without it, it is learned again. */
static int
restore_reference(struct restore *r)
{
	void *bytes = NULL;
	size_t len;
	int rc = ls_query_meta_bytes(r->query, LS_RESTORE_REFERENCE, &bytes, &len);

	if (rc == 0)
		rc = ls_engine_reference_load(r->core->engine, bytes, len, r->now_us);
	free(bytes);
	if (rc == 0 || rc == -LS_EABSENT || rc == -ENOMEM)
		return rc == -ENOMEM ? rc : 0;
	r->stats.bad++;
	ls_log(LS_LOG_WARN, "restore",
		"the kept baselines: %s; learning the baselines again",
		ls_err_text(rc));
	return 0;
}

/* --- afterwards ----------------------------------------------------------- */

static void
restore_automatic(void *arg, struct ls_ring *ring)
{
	struct restore *r = arg;

	if (ring->handle != LS_NO_WORKER)
		ls_ignore(ls_engine_manual(r->core->engine, ring->info.job,
			false)); /* it is there */
}

/* What the engine knows more than storage: said, but not on disk, when the last life
 * ended. */
static int
restore_catch_up(struct restore *r)
{
	json_t *findings = ls_finding_all(r->core->engine), *finding;
	size_t i;

	if (findings == NULL)
		return -ENOMEM;
	json_array_foreach(findings, i, finding)
	{
		const char *id = json_string_value(json_object_get(finding, "id"));

		if (id != NULL && !json_equal(finding, json_object_get(r->stored, id)))
			ls_outbox_finding(r->core->outbox, id, "restored", r->now_us,
				finding, json_object_get(r->stored, id) == NULL);
	}
	json_decref(findings);
	return 0;
}

static int
restore_all(struct restore *r)
{
	int rc = ls_query_findings(r->query, restore_finding, r);

	if (rc == 0)
		rc = ls_query_workers(r->query, NULL, restore_worker, r);
	if (rc == 0)
		rc = ls_query_rings(r->query, restore_ring, r);
	if (rc == 0)
		rc = ls_query_ledgers(r->query, restore_agent, r);
	if (rc == 0)
		rc = ls_query_dictionaries(r->query, restore_dictionary, r);
	if (rc == 0)
		rc = ls_query_hosts(r->query, restore_host, r);
	if (rc == 0)
		rc = ls_query_max_worker(r->query, &r->stats.next_worker_id);
	r->stats.next_worker_id++;
	if (rc == 0)
		rc = restore_index(r);
	if (rc == 0)
		rc = restore_reference(r);
	if (rc == 0)
		rc = restore_days(r);
	if (rc == 0)
		ls_rings_each(r->core->rings, restore_automatic, r);
	if (rc == 0)
		rc = restore_catch_up(r);
	ls_engine_restored(r->core->engine, r->now_us);
	return rc;
}

int
ls_restore(const char *dir, const struct ls_core *core, int64_t now_us,
	struct ls_restore_stats *ret_stats)
{
	struct restore r = { .core = core, .now_us = now_us };
	int rc;

	r.stored = json_object();
	if (r.stored == NULL)
		return -ENOMEM;
	ls_outbox_mute(core->outbox, true);
	rc = ls_query_open(dir, &r.query);
	if (rc == 0)
		rc = restore_all(&r);
	ls_outbox_mute(core->outbox, false);
	ls_query_close(r.query);
	json_decref(r.stored);
	free(r.workers);
	if (rc == 0)
		*ret_stats = r.stats;
	return rc;
}
