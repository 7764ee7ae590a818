/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - a bounded bump allocator: many small pieces, freed all at once.
 *
 * Decoding hostile bytes must not cost more memory than the sender's bytes can justify:
 * the arena refuses beyond its budget, and says so apart from being out of memory.
 *
 * Owner:   the caller; one thread at a time.
 * Units:   bytes.
 * Errors:  NULL for what cannot be given; ls_arena_refused tells which of the two it
 *          was.
 * Limits:  the budget given at construction.
 */
#ifndef LS_PROTO_ARENA_H
#define LS_PROTO_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct ls_arena;

/* New arena of at most budget_bytes, the first first_bytes of it at once; NULL: out of
 * memory. */
struct ls_arena *ls_arena_new(size_t first_bytes, size_t budget_bytes);

/* Frees all that was taken from it; accepts NULL. */
void ls_arena_free(struct ls_arena *a);

/* Takes all back that was given out, as if it were new; keeps the first piece. */
void ls_arena_reset(struct ls_arena *a);

/* The same, and from now on with another budget, of which the first piece is not taken.
 */
void ls_arena_renew(struct ls_arena *a, size_t budget_bytes);

/* size bytes, aligned for any type, not cleared; NULL beyond the budget or out of
 * memory. */
void *ls_arena_take(struct ls_arena *a, size_t size);

/* count pieces of size bytes, cleared; NULL likewise, and if the product overflows. */
void *ls_arena_take_array(struct ls_arena *a, size_t count, size_t size);

/* True if the budget, not memory, was the reason for a NULL. */
bool ls_arena_refused(const struct ls_arena *a);

#endif
