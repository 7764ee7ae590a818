/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/rings.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "collector/engine.h"

TAILQ_HEAD(rings_list, ls_ring);

struct ls_rings {
	size_t count, max;
	uint64_t evicted;
	void *by_id; /* tsearch(3): no input makes it slow */
	struct rings_list list;
};

static int
rings_compare(const void *a, const void *b)
{
	return memcmp(a, b, LS_RING_ID_BYTES);
}

struct ls_rings *
ls_rings_new(size_t max)
{
	struct ls_rings *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->max = max;
	TAILQ_INIT(&t->list);
	return t;
}

static void
rings_remove(struct ls_rings *t, struct ls_ring *r)
{
	(void)tdelete(r, &t->by_id, rings_compare); /* it is in there */
	TAILQ_REMOVE(&t->list, r, link);
	t->count--;
	free(r);
}

void
ls_rings_free(struct ls_rings *t)
{
	if (t == NULL)
		return;
	while (!TAILQ_EMPTY(&t->list))
		rings_remove(t, TAILQ_FIRST(&t->list));
	free(t);
}

struct ls_ring *
ls_rings_find(struct ls_rings *t, const uint8_t *id)
{
	void *node = tfind(id, &t->by_id, rings_compare);
	struct ls_ring *r = node != NULL ? *(struct ls_ring **)node : NULL;

	if (r != NULL) {
		TAILQ_REMOVE(&t->list, r, link);
		TAILQ_INSERT_TAIL(&t->list, r, link);
	}
	return r;
}

int
ls_rings_get(struct ls_rings *t, const uint8_t *id, struct ls_ring **ret_ring)
{
	struct ls_ring *r = ls_rings_find(t, id);

	if (r == NULL) {
		if (t->count >= t->max) {
			t->evicted++;
			rings_remove(t, TAILQ_FIRST(&t->list));
		}
		r = calloc(1, sizeof(*r));
		if (r == NULL)
			return -ENOMEM;
		memcpy(r->id, id, sizeof(r->id));
		r->handle = LS_NO_WORKER;
		if (tsearch(r, &t->by_id, rings_compare) == NULL) {
			free(r);
			return -ENOMEM;
		}
		TAILQ_INSERT_TAIL(&t->list, r, link);
		t->count++;
	}
	*ret_ring = r;
	return 0;
}

void
ls_rings_rollback(struct ls_rings *t)
{
	struct ls_ring *r;

	TAILQ_FOREACH (r, &t->list, link) {
		r->high = r->committed;
		if (r->committed == 0)
			r->seen = false;
	}
}

void
ls_rings_each(struct ls_rings *t, void (*fn)(void *arg, struct ls_ring *ring), void *arg)
{
	struct ls_ring *r;

	TAILQ_FOREACH (r, &t->list, link)
		fn(arg, r);
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
