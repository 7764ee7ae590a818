/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "collector/engine/engine.h"
#include "proto/base/log.h"
#include "proto/base/table.h"

TAILQ_HEAD(rings_list, ls_ring);

struct ls_rings {
	size_t count, max;
	size_t unheard_count;
	uint64_t evicted;
	struct ls_table by_id;
	/* least recent first; unheard: had no record when it was last asked for */
	struct rings_list idle, unheard;
	struct rings_list held; /* by sessions */
	/* found last, or NULL: one report asks for one ring several times */
	struct ls_ring *last;
};

bool
ls_ring_hears(struct ls_ring *r, const char *host, int64_t now_us)
{
	bool own = strcmp(r->info.host, host) == 0;

	if (own || r->heard_us == 0) /* after a start its own may be on its way */
		r->heard_us = now_us;
	return own || r->ended || now_us - r->heard_us > LS_RING_SILENT_US;
}

struct ls_rings *
ls_rings_new(size_t max)
{
	struct ls_rings *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->max = max;
	ls_table_init(&t->by_id, LS_RING_ID_BYTES);
	TAILQ_INIT(&t->idle);
	TAILQ_INIT(&t->unheard);
	TAILQ_INIT(&t->held);
	return t;
}

static bool
rings_is_unheard(const struct ls_ring *r)
{
	return !r->seen && r->worker_id == 0;
}

/* Takes it out of its list; NULL: it is in none. */
static void
rings_unlink(struct ls_ring *r)
{
	if (r->list == NULL)
		return;
	TAILQ_REMOVE(r->list, r, link);
	r->table->unheard_count -= r->list == &r->table->unheard;
}

/* Puts it at the end of the list in which it belongs now. */
static void
rings_place(struct ls_ring *r)
{
	struct ls_rings *t = r->table;

	rings_unlink(r);
	r->list = r->sessions > 0     ? &t->held
		: rings_is_unheard(r) ? &t->unheard
				      : &t->idle;
	TAILQ_INSERT_TAIL(r->list, r, link);
	t->unheard_count += r->list == &t->unheard;
}

static void
rings_remove(struct ls_rings *t, struct ls_ring *r)
{
	if (t->last == r)
		t->last = NULL;
	ls_table_remove(&t->by_id, r);
	rings_unlink(r);
	t->count--;
	free(r);
}

void
ls_ring_hold(struct ls_ring *r)
{
	if (r->sessions++ == 0)
		rings_place(r);
}

void
ls_ring_release(struct ls_ring *r)
{
	LS_ASSERT(r->sessions > 0);
	if (--r->sessions == 0)
		rings_place(r);
}

/* A ring that no session holds and that never had a record; NULL: none. */
static struct ls_ring *
rings_first_unheard(struct ls_rings *t)
{
	struct ls_ring *r;

	while ((r = TAILQ_FIRST(&t->unheard)) != NULL && !rings_is_unheard(r))
		rings_place(r); /* it had one since */
	return r;
}

/* Forgets a ring where one more needs room; false: sessions hold all. */
static bool
rings_make_room(struct ls_rings *t)
{
	bool full = t->count >= t->max;
	struct ls_ring *r = full || t->unheard_count >= LS_RINGS_UNHEARD_MAX
		? rings_first_unheard(t)
		: NULL;

	if (r == NULL && full)
		r = TAILQ_FIRST(&t->idle);
	if (r == NULL)
		return !full;
	rings_remove(t, r);
	t->evicted++;
	return true;
}

void
ls_rings_free(struct ls_rings *t)
{
	if (t == NULL)
		return;
	while (!TAILQ_EMPTY(&t->unheard))
		rings_remove(t, TAILQ_FIRST(&t->unheard));
	while (!TAILQ_EMPTY(&t->idle))
		rings_remove(t, TAILQ_FIRST(&t->idle));
	LS_ASSERT(TAILQ_EMPTY(&t->held)); /* sessions go first */
	ls_table_fini(&t->by_id);
	free(t);
}

struct ls_ring *
ls_rings_find(struct ls_rings *t, const uint8_t *id)
{
	struct ls_ring *r = t->last;

	if (r != NULL && memcmp(r->id, id, sizeof(r->id)) == 0)
		return r;
	r = ls_table_find(&t->by_id, id);
	if (r != NULL) {
		rings_place(r); /* now the most recent one */
		t->last = r;
	}
	return r;
}

int
ls_rings_get(struct ls_rings *t, const uint8_t *id, struct ls_ring **ret_ring)
{
	struct ls_ring *r = ls_rings_find(t, id);

	if (r == NULL) {
		if (!rings_make_room(t))
			return -LS_ELIMIT;
		r = calloc(1, sizeof(*r));
		if (r == NULL)
			return -ENOMEM;
		memcpy(r->id, id, sizeof(r->id));
		r->table = t;
		r->handle = LS_NO_WORKER;
		if (ls_table_put(&t->by_id, r) != 0) {
			free(r);
			return -ENOMEM;
		}
		rings_place(r);
		t->last = r; /* nobody else is the newest now */
		t->count++;
	}
	*ret_ring = r;
	return 0;
}

void
ls_rings_each(struct ls_rings *t, void (*fn)(void *arg, struct ls_ring *ring),
	void *arg)
{
	struct ls_ring *r;

	TAILQ_FOREACH (r, &t->idle, link)
		fn(arg, r);
	TAILQ_FOREACH (r, &t->unheard, link)
		fn(arg, r);
	TAILQ_FOREACH (r, &t->held, link)
		fn(arg, r);
}

static void
rings_roll_back(void *arg, struct ls_ring *r)
{
	(void)arg;
	r->high = r->committed;
	if (r->committed == 0)
		r->seen = false;
}

void
ls_rings_rollback(struct ls_rings *t)
{
	ls_rings_each(t, rings_roll_back, NULL);
}

size_t
ls_rings_count(const struct ls_rings *t)
{
	return t->count;
}

uint64_t
ls_rings_evicted(const struct ls_rings *t)
{
	return t->evicted;
}
