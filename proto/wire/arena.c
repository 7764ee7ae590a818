/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	alignas(max_align_t) unsigned char bytes[];
};

struct ls_arena {
	struct arena_chunk *chunk; /* newest first */
	size_t left; /* of the budget */
	size_t grow; /* size of the next chunk, at least */
	bool refused;
};

static struct arena_chunk *
arena_chunk_new(size_t size)
{
	struct arena_chunk *c = malloc(sizeof(*c) + size);

	if (c == NULL)
		return NULL;
	c->next = NULL;
	c->size = size;
	c->used = 0;
	return c;
}

struct ls_arena *
ls_arena_new(size_t first_bytes, size_t budget_bytes)
{
	struct ls_arena *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	if (first_bytes > budget_bytes)
		first_bytes = budget_bytes;
	a->left = budget_bytes - first_bytes;
	a->grow = first_bytes;
	a->chunk = arena_chunk_new(first_bytes);
	if (a->chunk == NULL) {
		free(a);
		return NULL;
	}
	return a;
}

void
ls_arena_free(struct ls_arena *a)
{
	struct arena_chunk *c, *next;

	if (a == NULL)
		return;
	for (c = a->chunk; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

void
ls_arena_reset(struct ls_arena *a)
{
	struct arena_chunk *c;

	while (a->chunk->next != NULL) {
		c = a->chunk;
		a->chunk = c->next;
		a->left += c->size;
		free(c);
	}
	a->chunk->used = 0;
	a->refused = false;
}

void
ls_arena_renew(struct ls_arena *a, size_t budget_bytes)
{
	ls_arena_reset(a);
	a->left = budget_bytes;
}

/* Puts a chunk with room for size in front; the rest of the old one is given up. */
static bool
arena_grow(struct ls_arena *a, size_t size)
{
	size_t want = size > a->grow ? size : a->grow;
	struct arena_chunk *c;

	if (want > a->left)
		want = size;
	if (want > a->left) {
		a->refused = true;
		return false;
	}
	c = arena_chunk_new(want);
	if (c == NULL)
		return false;
	a->left -= want;
	c->next = a->chunk;
	a->chunk = c;
	return true;
}

void *
ls_arena_take(struct ls_arena *a, size_t size)
{
	const size_t mask = alignof(max_align_t) - 1;
	void *p;

	if (size > SIZE_MAX - mask) {
		a->refused = true;
		return NULL;
	}
	size = (size + mask) & ~mask;
	if (size > a->chunk->size - a->chunk->used && !arena_grow(a, size))
		return NULL;
	p = a->chunk->bytes + a->chunk->used;
	a->chunk->used += size;
	return p;
}

void *
ls_arena_take_array(struct ls_arena *a, size_t count, size_t size)
{
	void *p;

	if (size != 0 && count > SIZE_MAX / size) {
		a->refused = true;
		return NULL;
	}
	p = ls_arena_take(a, count * size);
	if (p != NULL)
		memset(p, 0, count * size);
	return p;
}

bool
ls_arena_refused(const struct ls_arena *a)
{
	return a->refused;
}
