/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_columns - the table behind hot_rows, and what both directions share.
 *
 * A key is a host, or a worker on it; a shape is a list of metrics. Both are numbered
 * in order of first appearance. Values are coded a metric at a time, key by key, so
 * that each follows its own past.
 *
 * Owner:   hot_rows only.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM.
 * Limits:  LS_UNIT_EVENTS_MAX.
 * Source:  proto/FORMAT.md, "Hot rows".
 */
#ifndef LS_STORAGE_HOT_COLUMNS_H
#define LS_STORAGE_HOT_COLUMNS_H

#include "proto/metrics.h"
#include "storage/columns/columns.h"
#include "storage/columns/hot_rows.h"

#define HOT_VERSION 1u
/* version, zero, events (4), keys (4), shapes (4), values (4) */
#define HOT_HEAD_BYTES 18u
#define HOT_NONE UINT32_MAX

/* An array that grows. */
struct hot_array {
	void *data;
	size_t size; /* in bytes */
};

struct hot_key {
	uint32_t name; /* in names */
	int64_t worker_id;
};

struct hot_shape {
	uint32_t metric; /* in metrics */
	uint16_t count;
};

/* What is known of a key from its events so far. */
struct hot_past {
	int64_t read_us, t_us;
	uint64_t stride;
	uint32_t shape, next; /* HOT_NONE: not known */
	bool any, has_stride;
};

enum hot_array_name {
	HOT_ARRAY_EVENTS,
	HOT_ARRAY_VALUES,
	HOT_ARRAY_KEYS,
	HOT_ARRAY_NAMES,
	HOT_ARRAY_SHAPES,
	HOT_ARRAY_METRICS,
	HOT_ARRAY_HASH, /* of keys: key + 1; 0: free */
	/* Coding. */
	HOT_ARRAY_PAST, /* of keys */
	HOT_ARRAY_ORDER, /* events key by key */
	HOT_ARRAY_BEGIN, /* where each key begins in it */
	HOT_ARRAY_SPAN, /* where each shape has the metric of a column */
	HOT_ARRAY_PLACE, /* of the values of a column */
	HOT_ARRAY_FIRST, /* whether each is the first of its key */
	HOT_ARRAY_WORD, /* the first of four: numbers of columns */
	HOT_ARRAYS = HOT_ARRAY_WORD + 4
};

struct ls_hot_codec {
	size_t event_count, value_count, key_count, shape_count, name_bytes,
		metric_count;
	struct hot_array array[HOT_ARRAYS];
	size_t hash_size; /* a power of two */
	struct ls_body body;
};

/* Room for n elements. */
int hot_reserve(struct hot_array *a, size_t n, size_t element_bytes) LS_MUSTCHECK;

static inline struct ls_hot_event *
hot_events(const struct ls_hot_codec *c)
{
	return c->array[HOT_ARRAY_EVENTS].data;
}

static inline double *
hot_values(const struct ls_hot_codec *c)
{
	return c->array[HOT_ARRAY_VALUES].data;
}

static inline struct hot_key *
hot_keys(const struct ls_hot_codec *c)
{
	return c->array[HOT_ARRAY_KEYS].data;
}

static inline char *
hot_names(const struct ls_hot_codec *c)
{
	return c->array[HOT_ARRAY_NAMES].data;
}

static inline struct hot_shape *
hot_shapes(const struct ls_hot_codec *c)
{
	return c->array[HOT_ARRAY_SHAPES].data;
}

static inline uint16_t *
hot_metrics(const struct ls_hot_codec *c)
{
	return c->array[HOT_ARRAY_METRICS].data;
}

static inline uint64_t *
hot_word(const struct ls_hot_codec *c, unsigned i)
{
	return c->array[HOT_ARRAY_WORD + i].data;
}

/* Adds a key, a shape. */
int hot_add_key(struct ls_hot_codec *c, const char *host, size_t len,
	int64_t worker_id) LS_MUSTCHECK;
int hot_add_shape(struct ls_hot_codec *c, const uint16_t *metric,
	size_t count) LS_MUSTCHECK;

/* --- events --------------------------------------------------------------- */

enum hot_event_column {
	HOT_KEY,
	HOT_ID,
	HOT_TIME,
	HOT_READ,
	HOT_SHAPE,
	HOT_EVENT_COLUMNS
};

/* What is known of all events so far. */
struct hot_cursor {
	int64_t id, t_us;
	uint64_t stride, delay, read_stride;
	uint32_t key, keys; /* the last one; those met */
	uint32_t shape[2]; /* of the last event of a host, and of a worker */
	/* times of reading follow those of the key, not of arrival */
	bool read_by_key;
};

struct hot_cursor hot_cursor_start(bool read_by_key);

/*
 * One event between its fields and its residuals; false (reading): its key or shape is
 * none. Its values are counted by the caller.
 */
bool hot_code_event(struct ls_hot_codec *c, struct hot_cursor *at, bool reading,
	struct ls_hot_event *e, uint64_t *u) LS_MUSTCHECK;

/* Makes room for what is known of keys, and forgets it. */
int hot_past_start(struct ls_hot_codec *c) LS_MUSTCHECK;

/* --- values --------------------------------------------------------------- */

/* Puts the events into `order`, key by key. */
int hot_sort(struct ls_hot_codec *c) LS_MUSTCHECK;

/* Marks the metrics of all shapes in there[LS_METRIC_COUNT]; returns how many. */
size_t hot_metrics_there(const struct ls_hot_codec *c, bool *there);

/* Places of the values of a metric, key by key, into `place`, and which are a key's
 * first. */
int hot_places(struct ls_hot_codec *c, unsigned metric, size_t *ret_n) LS_MUSTCHECK;

/* How a value follows the one before of its key. */
enum hot_follow { HOT_LEVEL, HOT_RATE, HOT_HALF, HOT_FOLLOWS };

/* What is known while values of a metric are gone through. */
struct hot_value_past {
	uint64_t first, last, step;
};

/* The guess for a value, and noting it. */
static inline uint64_t
hot_guess(const struct hot_value_past *p, enum hot_follow follow, bool first)
{
	if (first)
		return p->first;
	return p->last +
		(follow == HOT_LEVEL ? 0
				: follow == HOT_RATE
				? p->step
				: (uint64_t)((int64_t)p->step >> 1));
}

static inline void
hot_note(struct hot_value_past *p, bool first, uint64_t value)
{
	if (first)
		p->first = value; /* the step stays: hosts are alike */
	else
		p->step = value - p->last;
	p->last = value;
}

#endif
