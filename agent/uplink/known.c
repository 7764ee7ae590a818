/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/known.h"

#include <string.h>

/* Its place; count: it has none. */
static size_t
known_find(const struct ls_known *k, const struct ls_wire_worker *w)
{
	size_t i;

	for (i = 0; i < k->count; i++) {
		if (k->worker[i].number == w->number &&
			memcmp(k->worker[i].ring_id, w->ring_id, LS_RING_ID_BYTES) == 0)
			break;
	}
	return i;
}

bool
ls_known_has(const struct ls_known *k, const struct ls_wire_worker *w)
{
	return known_find(k, w) < k->count;
}

void
ls_known_add(struct ls_known *k, const struct ls_wire_worker *w)
{
	if (k->count == LS_RINGS_MAX || ls_known_has(k, w))
		return;
	memcpy(k->worker[k->count].ring_id, w->ring_id, LS_RING_ID_BYTES);
	k->worker[k->count++].number = w->number;
}

void
ls_known_forget(struct ls_known *k, const uint8_t ring_id[LS_RING_ID_BYTES])
{
	size_t i = k->count;

	while (i-- > 0) {
		if (memcmp(k->worker[i].ring_id, ring_id, LS_RING_ID_BYTES) == 0)
			k->worker[i] = k->worker[--k->count];
	}
}

void
ls_known_prune(struct ls_known *k, const struct ls_wire_worker *list, size_t count)
{
	struct ls_known kept = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (ls_known_has(k, &list[i]))
			ls_known_add(&kept, &list[i]);
	}
	*k = kept;
}
