/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hot rows; hot_rows_put.c writes it, hot_rows_get.c reads it. */
#include "config.h"

#include "storage/columns/hot_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/mem.h"
#include "storage/columns/hot_columns.h"

#define HOT_HASH_START 1024u
/* agents of one version have two; beyond that a shape is told again */
#define HOT_SHAPES_SOUGHT 256u

struct ls_hot_codec *
ls_hot_codec_new(void)
{
	return calloc(1, sizeof(struct ls_hot_codec));
}

void
ls_hot_codec_free(struct ls_hot_codec *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < HOT_ARRAYS; i++)
		free(c->array[i].data);
	ls_body_fini(&c->body);
	free(c);
}

void
ls_hot_rows_reset(struct ls_hot_codec *c)
{
	c->event_count = c->value_count = c->key_count = c->shape_count = 0;
	c->name_bytes = c->metric_count = 0;
	if (c->hash_size > 0)
		memset(c->array[HOT_ARRAY_HASH].data, 0,
			c->hash_size * sizeof(uint32_t));
}

int
hot_reserve(struct hot_array *a, size_t n, size_t element_bytes)
{
	return ls_mem_reserve(&a->data, &a->size, n * element_bytes);
}

/* --- keys and shapes ------------------------------------------------------ */

/* Over the name, the worker mixed in. */
static uint64_t
hot_hash(const char *host, int64_t worker_id)
{
	uint64_t h = LS_HASH_START ^ (uint64_t)worker_id * 0x9e3779b97f4a7c15u;

	h = ls_hash(h, host, strlen(host));
	return h ^ h >> 32;
}

/* The place of a key in the hash, or the free one where it would be. */
static uint32_t *
hot_find(const struct ls_hot_codec *c, const char *host, int64_t worker_id)
{
	uint32_t *hash = c->array[HOT_ARRAY_HASH].data;
	size_t i = hot_hash(host, worker_id) & (c->hash_size - 1);

	for (; hash[i] != 0; i = (i + 1) & (c->hash_size - 1)) {
		const struct hot_key *k = &hot_keys(c)[hash[i] - 1];

		if (k->worker_id == worker_id &&
			strcmp(hot_names(c) + k->name, host) == 0)
			break;
	}
	return &hash[i];
}

/* Half of the places stay free. */
static int
hot_grow_hash(struct ls_hot_codec *c)
{
	size_t size = c->hash_size == 0 ? HOT_HASH_START : c->hash_size * 2, i;
	int rc;

	if (c->key_count < c->hash_size / 2)
		return 0;
	rc = hot_reserve(&c->array[HOT_ARRAY_HASH], size, sizeof(uint32_t));
	if (rc != 0)
		return rc;
	c->hash_size = size;
	memset(c->array[HOT_ARRAY_HASH].data, 0, size * sizeof(uint32_t));
	for (i = 0; i < c->key_count; i++) {
		const struct hot_key *k = &hot_keys(c)[i];

		*hot_find(c, hot_names(c) + k->name, k->worker_id) = (uint32_t)i + 1;
	}
	return 0;
}

int
hot_add_key(struct ls_hot_codec *c, const char *host, size_t len, int64_t worker_id)
{
	int rc = hot_reserve(&c->array[HOT_ARRAY_KEYS], c->key_count + 1,
		sizeof(struct hot_key));

	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_NAMES], c->name_bytes + len + 1,
			1);
	if (rc != 0)
		return rc;
	hot_keys(c)[c->key_count++] =
		(struct hot_key){ (uint32_t)c->name_bytes, worker_id };
	memcpy(hot_names(c) + c->name_bytes, host, len);
	hot_names(c)[c->name_bytes + len] = '\0';
	c->name_bytes += len + 1;
	return 0;
}

static int
hot_key_of(struct ls_hot_codec *c, const char *host, int64_t worker_id,
	uint32_t *ret_key)
{
	int rc = hot_grow_hash(c);
	uint32_t *place;

	if (rc != 0)
		return rc;
	place = hot_find(c, host, worker_id);
	if (*place == 0) {
		rc = hot_add_key(c, host, strnlen(host, LS_HOST_NAME_MAX_BYTES - 1),
			worker_id);
		if (rc != 0)
			return rc;
		*place = (uint32_t)c->key_count;
	}
	*ret_key = *place - 1;
	return 0;
}

int
hot_add_shape(struct ls_hot_codec *c, const uint16_t *metric, size_t count)
{
	int rc = hot_reserve(&c->array[HOT_ARRAY_SHAPES], c->shape_count + 1,
		sizeof(struct hot_shape));

	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_METRICS], c->metric_count + count,
			sizeof(*metric));
	if (rc != 0)
		return rc;
	hot_shapes(c)[c->shape_count++] =
		(struct hot_shape){ (uint32_t)c->metric_count, (uint16_t)count };
	if (count > 0)
		memcpy(hot_metrics(c) + c->metric_count, metric,
			count * sizeof(*metric));
	c->metric_count += count;
	return 0;
}

static int
hot_shape_of(struct ls_hot_codec *c, const uint16_t *metric, size_t count,
	uint32_t *ret_shape)
{
	int rc;

	for (size_t i = 0; i < c->shape_count && i < HOT_SHAPES_SOUGHT; i++) {
		const struct hot_shape *s = &hot_shapes(c)[i];

		if (s->count == count &&
			(count == 0 ||
				memcmp(hot_metrics(c) + s->metric, metric,
					count * sizeof(*metric)) == 0)) {
			*ret_shape = (uint32_t)i;
			return 0;
		}
	}
	rc = hot_add_shape(c, metric, count);
	if (rc == 0)
		*ret_shape = (uint32_t)(c->shape_count - 1);
	return rc;
}

/* --- events --------------------------------------------------------------- */

static bool
hot_is_sound(const struct ls_hot_codec *c, int64_t id,
	const struct ls_store_counters *counters)
{
	if (counters->count > LS_HOT_MAX ||
		memchr(counters->host, '\0', sizeof(counters->host)) == NULL)
		return false;
	for (size_t i = 0; i < counters->count; i++)
		if (counters->metric[i] >= LS_METRIC_COUNT)
			return false;
	return c->event_count == 0 || id > hot_events(c)[c->event_count - 1].id;
}

int
ls_hot_rows_add(struct ls_hot_codec *c, int64_t id, int64_t t_us,
	const struct ls_store_counters *counters)
{
	struct ls_hot_event e = { .id = id,
		.t_us = t_us,
		.read_us = counters->read_us,
		.value = (uint32_t)c->value_count };
	int rc;

	if (!hot_is_sound(c, id, counters))
		return -LS_ERANGE;
	if (c->event_count >= LS_UNIT_EVENTS_MAX)
		return -LS_ELIMIT;
	rc = hot_reserve(&c->array[HOT_ARRAY_EVENTS], c->event_count + 1, sizeof(e));
	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_VALUES],
			c->value_count + LS_HOT_MAX, sizeof(double));
	if (rc == 0)
		rc = hot_key_of(c, counters->host, counters->worker_id, &e.key);
	if (rc == 0)
		rc = hot_shape_of(c, counters->metric, counters->count, &e.shape);
	if (rc != 0)
		return rc;
	memcpy(hot_values(c) + c->value_count, counters->value,
		counters->count * sizeof(double));
	hot_events(c)[c->event_count++] = e;
	c->value_count += counters->count;
	return 0;
}

const struct ls_hot_event *
ls_hot_rows_events(const struct ls_hot_codec *c, size_t *ret_count)
{
	*ret_count = c->event_count;
	return c->array[HOT_ARRAY_EVENTS].data;
}

void
ls_hot_rows_get(const struct ls_hot_codec *c, size_t i,
	struct ls_store_counters *ret_counters)
{
	const struct ls_hot_event *e = &hot_events(c)[i];
	const struct hot_key *k = &hot_keys(c)[e->key];
	const struct hot_shape *s = &hot_shapes(c)[e->shape];
	const char *host = hot_names(c) + k->name;

	memset(ret_counters, 0, sizeof(*ret_counters));
	memcpy(ret_counters->host, host, strnlen(host, sizeof(ret_counters->host) - 1));
	ret_counters->worker_id = k->worker_id;
	ret_counters->read_us = e->read_us;
	ret_counters->count = s->count;
	if (s->count == 0)
		return;
	memcpy(ret_counters->metric, hot_metrics(c) + s->metric,
		s->count * sizeof(uint16_t));
	memcpy(ret_counters->value, hot_values(c) + e->value,
		s->count * sizeof(double));
}
