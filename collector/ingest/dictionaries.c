/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/dictionaries.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include "proto/base/table.h"
#include "proto/wire/wire.h"

struct dictionary_entry {
	struct ls_dictionary d; /* first, and in it the hash: the key */
	TAILQ_ENTRY(dictionary_entry) link; /* least recently used first */
};

TAILQ_HEAD(dictionary_list, dictionary_entry);

struct ls_dictionaries {
	size_t max, max_bytes;
	struct ls_table by_hash;
	struct dictionary_list list;
	struct ls_dictionaries_stats stats;
};

struct ls_dictionaries *
ls_dictionaries_new(size_t max, size_t max_bytes)
{
	struct ls_dictionaries *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->max = max;
	t->max_bytes = max_bytes;
	ls_table_init(&t->by_hash, sizeof(uint64_t));
	TAILQ_INIT(&t->list);
	return t;
}

static size_t
dictionaries_bytes(const struct ls_dictionary *d)
{
	return sizeof(struct dictionary_entry) + d->text_len +
		d->count * sizeof(*d->series);
}

static void
entry_free(struct dictionary_entry *e)
{
	free(e->d.series);
	free(e->d.text);
	free(e);
}

static void
dictionaries_remove(struct ls_dictionaries *t, struct dictionary_entry *e)
{
	ls_table_remove(&t->by_hash, e);
	TAILQ_REMOVE(&t->list, e, link);
	t->stats.count--;
	t->stats.bytes -= dictionaries_bytes(&e->d);
	entry_free(e);
}

void
ls_dictionaries_free(struct ls_dictionaries *t)
{
	if (t == NULL)
		return;
	while (!TAILQ_EMPTY(&t->list))
		dictionaries_remove(t, TAILQ_FIRST(&t->list));
	ls_table_fini(&t->by_hash);
	free(t);
}

/* A copy of what was given; NULL when out of memory. */
static struct dictionary_entry *
entry_new(uint64_t hash, const char *group, const char *const *series, size_t count)
{
	struct dictionary_entry *e = calloc(1, sizeof(*e));
	size_t i, at = 0;

	if (e == NULL)
		return NULL;
	e->d.hash = hash;
	e->d.count = count;
	(void)snprintf(e->d.group, sizeof(e->d.group), "%s", group);
	for (i = 0; i < count; i++)
		e->d.text_len += strlen(series[i]) + 1;
	e->d.text = malloc(e->d.text_len > 0 ? e->d.text_len : 1);
	e->d.series = calloc(count > 0 ? count : 1, sizeof(*e->d.series));
	if (e->d.text == NULL || e->d.series == NULL) {
		entry_free(e);
		return NULL;
	}
	for (i = 0; i < count; i++) {
		size_t len = strlen(series[i]) + 1;

		memcpy(e->d.text + at, series[i], len);
		e->d.series[i] = e->d.text + at;
		at += len;
	}
	return e;
}

static bool
dictionaries_same(const struct ls_dictionary *d, const char *group,
	const char *const *series, size_t count)
{
	if (d->count != count || strcmp(d->group, group) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(d->series[i], series[i]) != 0)
			return false;
	}
	return true;
}

int
ls_dictionaries_put(struct ls_dictionaries *t, uint64_t hash, const char *group,
	const char *const *series, size_t count, struct ls_dictionary **ret_dictionary)
{
	struct ls_dictionary *known = ls_dictionaries_find(t, hash);
	struct dictionary_entry *e;

	if (ls_wire_dictionary_hash(group, series, count) != hash)
		return -LS_ECORRUPT;
	if (known != NULL) {
		if (!dictionaries_same(known, group, series, count))
			return -LS_ECORRUPT;
		*ret_dictionary = known;
		return 0;
	}
	e = entry_new(hash, group, series, count);
	if (e == NULL)
		return -ENOMEM;
	if (ls_table_put(&t->by_hash, e) != 0) {
		entry_free(e);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&t->list, e, link);
	t->stats.count++;
	t->stats.bytes += dictionaries_bytes(&e->d);
	while ((t->stats.count > t->max || t->stats.bytes > t->max_bytes) &&
		TAILQ_FIRST(&t->list) != e) {
		t->stats.evicted++;
		dictionaries_remove(t, TAILQ_FIRST(&t->list));
	}
	*ret_dictionary = &e->d;
	return 0;
}

struct ls_dictionary *
ls_dictionaries_find(struct ls_dictionaries *t, uint64_t hash)
{
	struct dictionary_entry *e = ls_table_find(&t->by_hash, &hash);

	if (e == NULL)
		return NULL;
	TAILQ_REMOVE(&t->list, e, link);
	TAILQ_INSERT_TAIL(&t->list, e, link);
	return &e->d;
}

void
ls_dictionaries_rollback(struct ls_dictionaries *t)
{
	struct dictionary_entry *e;

	TAILQ_FOREACH (e, &t->list, link)
		e->d.stored_day = 0;
}

void
ls_dictionaries_stats(const struct ls_dictionaries *t,
	struct ls_dictionaries_stats *ret_stats)
{
	*ret_stats = t->stats;
}
