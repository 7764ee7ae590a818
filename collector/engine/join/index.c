/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/mem.h"

struct ls_index_entry {
	uint32_t hash, position; /* LS_INDEX_NONE: free */
};

void
ls_index_fini(struct ls_index *x)
{
	free(x->entries);
	memset(x, 0, sizeof(*x));
}

/* Into the first free place from where its hash points; there is one. */
static void
index_place(struct ls_index *x, struct ls_index_entry e)
{
	size_t at = e.hash & (x->size - 1);

	while (x->entries[at].position != LS_INDEX_NONE)
		at = (at + 1) & (x->size - 1);
	x->entries[at] = e;
	x->count++;
}

static int
index_grow(struct ls_index *x)
{
	struct ls_index grown = { .size = x->size == 0 ? 16 : 2 * x->size };

	grown.entries = malloc(grown.size * sizeof(*grown.entries));
	if (grown.entries == NULL)
		return -ENOMEM;
	memset(grown.entries, 0xff, grown.size * sizeof(*grown.entries)); /* all free */
	LS_EACH (const struct ls_index_entry, e, x->entries, x->size)
		if (e->position != LS_INDEX_NONE)
			index_place(&grown, *e);
	free(x->entries);
	*x = grown;
	return 0;
}

int
ls_index_put(struct ls_index *x, uint32_t hash, uint32_t position)
{
	LS_ASSERT(position != LS_INDEX_NONE);
	if (2 * (x->count + 1) > x->size && index_grow(x) != 0)
		return -ENOMEM;
	index_place(x, (struct ls_index_entry){ hash, position });
	return 0;
}

void
ls_index_remove(struct ls_index *x, uint32_t hash, uint32_t position)
{
	size_t mask = x->size - 1, hole = hash & mask, at;

	LS_ASSERT(x->size > 0);
	while (x->entries[hole].position != position) {
		LS_ASSERT(x->entries[hole].position != LS_INDEX_NONE);
		hole = (hole + 1) & mask;
	}
	/* close the gap: move back whoever could not be reached beyond it */
	for (at = (hole + 1) & mask; x->entries[at].position != LS_INDEX_NONE;
		at = (at + 1) & mask) {
		size_t home = x->entries[at].hash & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue; /* its home lies behind the hole */
		x->entries[hole] = x->entries[at];
		hole = at;
	}
	x->entries[hole].position = LS_INDEX_NONE;
	x->count--;
}

uint32_t
ls_index_next(const struct ls_index *x, uint32_t hash, size_t *walk)
{
	const struct ls_index_entry *e;

	while (x->size > 0) {
		e = &x->entries[(hash + *walk) & (x->size - 1)];
		if (e->position == LS_INDEX_NONE)
			break;
		++*walk;
		if (e->hash == hash)
			return e->position;
	}
	return LS_INDEX_NONE;
}

uint32_t
ls_index_find(const struct ls_index *x, const char *name, const void *names,
	size_t stride)
{
	uint32_t hash = ls_index_hash_text(name), at;
	size_t walk = 0;

	do
		at = ls_index_next(x, hash, &walk);
	while (at != LS_INDEX_NONE &&
		strcmp((const char *)names + at * stride, name) != 0);
	return at;
}

static uint32_t
index_hash(const void *key, size_t len)
{
	uint64_t h = ls_hash(LS_HASH_START, key, len);

	return (uint32_t)(h ^ h >> 32);
}

uint32_t
ls_index_hash_text(const char *text)
{
	return index_hash(text, strlen(text));
}

uint32_t
ls_index_hash_number(uint64_t number)
{
	return index_hash(&number, sizeof(number));
}
