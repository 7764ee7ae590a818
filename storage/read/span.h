/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span - the events of a range of ids in memory, from wherever they are stored: what
 * readers of a day go by.
 *
 * Loaders add events in any order; sorted by id they are given to a visitor, with no
 * statement of SQLite open.
 *
 * Owner:   the caller; one thread at a time. What events point to lives until the next
 *          reset.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; -LS_ELIMIT; those of ls_journal_read; what the visitor returns.
 * Limits:  LS_SPAN_MAX_BYTES of what events point to.
 */
#ifndef LS_STORAGE_SPAN_H
#define LS_STORAGE_SPAN_H

#include "storage/read/query.h"

/* `what` is a struct ls_store_steps, _item, _close, _counters, _zoom or _hang, as the
 * kind says. */
struct ls_span_event {
	int64_t id, t_us;
	enum ls_store_event_kind kind;
	const void *what;
};

struct ls_span {
	struct ls_span_event *events;
	size_t count, capacity;
	uint64_t records; /* of all STEPS */
	uint64_t bad; /* items that were left out since they do not decode */
	struct ls_arena *arena;
	struct ls_arena *scratch; /* to decode an item in; NULL: none was decoded */
};

/* Makes room; ends it (harmless on a zeroed one). */
int ls_span_init(struct ls_span *s) LS_MUSTCHECK;
void ls_span_fini(struct ls_span *s);

/* Forgets all events; keeps memory. */
void ls_span_reset(struct ls_span *s);

/* count pieces of memory, cleared, that live as long as the events: NULL is told by
 * ls_span_error. */
void *ls_span_take(struct ls_span *s, size_t count, size_t size);
int ls_span_error(const struct ls_span *s);

/* Adds an event; `what` must live as long (ls_span_take). */
int ls_span_add(struct ls_span *s, enum ls_store_event_kind kind, int64_t id,
	int64_t t_us, const void *what) LS_MUSTCHECK;

/*
 * Adds the events of a journal's body: steps decoded and mapped (ls_store_record), hot
 * counters. The body may go afterwards. What was added before an error stays.
 */
int ls_span_load_journal(struct ls_span *s, const uint8_t *body,
	size_t len) LS_MUSTCHECK;

/* Sorts events by id. */
void ls_span_sort(struct ls_span *s);

/* Gives those with ids lo..hi to the visitor, in the order in which they stand. */
int ls_span_give(const struct ls_span *s, int64_t lo, int64_t hi, ls_query_event_fn *fn,
	void *arg) LS_MUSTCHECK;

#endif
