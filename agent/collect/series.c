/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

/* A handle is the index of a slot. */
struct series_slot {
	bool used;
	uint8_t group;
	uint16_t place; /* in the arrays of its group */
	bool capacity; /* memory of a device in all: never 0 bytes */
	char text[LS_SERIES_TEXT_MAX_BYTES];
};

/* All places are there from the start; pages of those never used are never touched. */
struct series_group {
	bool used;
	char name[LS_GROUP_NAME_MAX_BYTES];
	uint32_t generation;
	uint64_t t_mono_ns, readings;
	size_t count;
	uint16_t slot[LS_SERIES_PER_GROUP_MAX]; /* of each place */
	const char *text[LS_SERIES_PER_GROUP_MAX];
	double value[LS_SERIES_PER_GROUP_MAX];
	bool present[LS_SERIES_PER_GROUP_MAX];
};

struct ls_series_table {
	uint32_t changes; /* so far: a generation is never used twice */
	uint64_t refused;
	ls_series_reader *reader;
	void *reader_arg;
	struct series_slot slot[LS_SERIES_MAX];
	struct series_group group[LS_GROUPS_MAX];
};

_Static_assert(LS_GROUPS_MAX <= UINT8_MAX && LS_SERIES_MAX <= UINT16_MAX,
	"indices of slots");

struct ls_series_table *
ls_series_new(void)
{
	return calloc(1, sizeof(struct ls_series_table));
}

void
ls_series_free(struct ls_series_table *t)
{
	free(t);
}

void
ls_series_set_reader(struct ls_series_table *t, ls_series_reader *reader, void *arg)
{
	t->reader = reader;
	t->reader_arg = arg;
}

int
ls_series_group(struct ls_series_table *t, const char *name)
{
	size_t i, free_one = LS_GROUPS_MAX;

	if (!ls_text_is_name(name, strlen(name), LS_GROUP_NAME_MAX_BYTES - 1))
		return -LS_ERANGE;
	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (t->group[i].used && strcmp(t->group[i].name, name) == 0)
			return (int)i;
		if (!t->group[i].used && free_one == LS_GROUPS_MAX)
			free_one = i;
	}
	if (free_one == LS_GROUPS_MAX) {
		t->refused++;
		return -LS_ELIMIT;
	}
	t->group[free_one].used = true;
	t->group[free_one].generation = ++t->changes;
	/* a name fits */
	ls_ignore(ls_text_copy(t->group[free_one].name, LS_GROUP_NAME_MAX_BYTES, name));
	return (int)free_one;
}

/* The group of an index that may come from a failed ls_series_group; NULL if there is
 * none. */
static struct series_group *
series_group_at(struct ls_series_table *t, size_t group)
{
	return group < LS_GROUPS_MAX && t->group[group].used ? &t->group[group] : NULL;
}

/* Likewise the slot of a handle. */
static struct series_slot *
series_slot_at(struct ls_series_table *t, int handle)
{
	return handle >= 0 && (size_t)handle < LS_SERIES_MAX && t->slot[handle].used
		? &t->slot[handle]
		: NULL;
}

void
ls_series_group_remove(struct ls_series_table *t, size_t group)
{
	struct series_group *g = series_group_at(t, group);

	if (g == NULL)
		return;
	for (size_t i = 0; i < g->count; i++)
		t->slot[g->slot[i]].used = false;
	g->used = false;
	g->count = 0;
	g->t_mono_ns = 0;
	g->readings = 0;
}

/* A name without what separates it from its labels. */
static bool
series_is_name(const char *name)
{
	return ls_text_is_name(name, strlen(name), LS_SERIES_NAME_MAX_BYTES - 1) &&
		strpbrk(name, "{}\"") == NULL;
}

/* key="value",... with keys of letters, digits, _ and dots, rising; no quote or brace
 * in a value. */
static bool
series_is_labels(const char *labels)
{
	static const char key_chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	const char *before = "", *at = labels;
	size_t before_len = 0, key_len, value_len, both;
	int order;

	if (*at == '\0')
		return true;
	if (!ls_text_is_name(labels, strlen(labels), LS_SERIES_LABELS_MAX_BYTES - 1))
		return false;
	for (;;) {
		key_len = strspn(at, key_chars);
		if (key_len == 0 || at[key_len] != '=' || at[key_len + 1] != '"')
			return false;
		both = key_len < before_len ? key_len : before_len;
		order = memcmp(before, at, both);
		if (order > 0 || (order == 0 && before_len >= key_len))
			return false;
		before = at;
		before_len = key_len;
		at += key_len + 2;
		value_len = strcspn(at, "\"{}");
		if (at[value_len] != '"')
			return false;
		at += value_len + 1;
		if (*at == '\0')
			return true;
		if (*at++ != ',')
			return false;
	}
}

int
ls_series_add(struct ls_series_table *t, size_t group, const char *name,
	const char *labels)
{
	char text[LS_SERIES_TEXT_MAX_BYTES];
	struct series_group *g = series_group_at(t, group);
	size_t i, slot, len;

	if (g == NULL || !series_is_name(name) || !series_is_labels(labels))
		return -LS_ERANGE;
	len = strlen(labels) > 0
		? (size_t)snprintf(text, sizeof(text), "%s{%s}", name, labels)
		: (size_t)snprintf(text, sizeof(text), "%s", name);
	if (len >= sizeof(text))
		return -LS_ERANGE;
	for (i = 0; i < g->count; i++)
		if (strcmp(g->text[i], text) == 0)
			return g->slot[i];
	for (slot = 0; slot < LS_SERIES_MAX && t->slot[slot].used; slot++)
		continue;
	if (slot == LS_SERIES_MAX || g->count == LS_SERIES_PER_GROUP_MAX) {
		t->refused++;
		return -LS_ELIMIT;
	}
	t->slot[slot] = (struct series_slot){ .used = true,
		.group = (uint8_t)group,
		.place = (uint16_t)g->count,
		.capacity =
			strcmp(name, ls_metric_info(LS_METRIC_CHIP_HBM_TOTAL)->name) ==
			0 };
	memcpy(t->slot[slot].text, text, len + 1);
	g->slot[g->count] = (uint16_t)slot;
	g->text[g->count] = t->slot[slot].text;
	g->value[g->count] = 0;
	g->present[g->count] = false;
	g->count++;
	g->generation = ++t->changes;
	return (int)slot;
}

int
ls_series_add_metric(struct ls_series_table *t, size_t group, enum ls_metric metric,
	const char *labels)
{
	return ls_series_add(t, group, ls_metric_info(metric)->name, labels);
}

/* The last place moves into the hole. */
void
ls_series_remove(struct ls_series_table *t, int handle)
{
	struct series_slot *s = series_slot_at(t, handle);
	struct series_group *g;
	size_t hole, last;

	if (s == NULL)
		return;
	g = &t->group[s->group];
	hole = s->place;
	last = --g->count;
	s->used = false;
	g->slot[hole] = g->slot[last];
	g->text[hole] = g->text[last];
	g->value[hole] = g->value[last];
	g->present[hole] = g->present[last];
	t->slot[g->slot[hole]].place = (uint16_t)hole;
	g->generation = ++t->changes;
}

void
ls_series_set(struct ls_series_table *t, int handle, double value)
{
	const struct series_slot *s = series_slot_at(t, handle);

	if (s == NULL)
		return;
	if (s->capacity && !(value > 0)) {
		ls_series_unset(t, handle);
		return;
	}
	t->group[s->group].value[s->place] = value;
	t->group[s->group].present[s->place] = true;
}

void
ls_series_unset(struct ls_series_table *t, int handle)
{
	const struct series_slot *s = series_slot_at(t, handle);

	if (s == NULL)
		return;
	t->group[s->group].value[s->place] = 0; /* a chunk wants it so */
	t->group[s->group].present[s->place] = false;
}

void
ls_series_read(struct ls_series_table *t, size_t group, uint64_t t_mono_ns)
{
	struct series_group *g = series_group_at(t, group);

	if (g == NULL)
		return;
	g->t_mono_ns = t_mono_ns;
	g->readings++;
	if (t->reader != NULL)
		t->reader(t->reader_arg, group);
}

bool
ls_series_look(const struct ls_series_table *t, size_t group,
	struct ls_series_group *ret_group)
{
	const struct series_group *g = group < LS_GROUPS_MAX ? &t->group[group] : NULL;

	if (g == NULL || !g->used)
		return false;
	*ret_group = (struct ls_series_group){ .name = g->name,
		.generation = g->generation,
		.t_mono_ns = g->t_mono_ns,
		.readings = g->readings,
		.count = g->count,
		.text = g->text,
		.value = g->value,
		.present = g->present };
	return true;
}

uint64_t
ls_series_refused(const struct ls_series_table *t)
{
	return t->refused;
}

void
ls_series_label(char *labels, size_t size, const char *key, const char *value)
{
	char safe[LS_SERIES_LABELS_MAX_BYTES];
	size_t at = strlen(labels), i, frame = (at > 0) + strlen(key) + strlen("=\"\""),
	       room;

	if (at + frame >= size)
		return; /* no room even for an empty value */
	room = size - at - frame;
	(void)ls_text_escape(safe, room < sizeof(safe) ? room : sizeof(safe), value,
		strlen(value));
	for (i = 0; safe[i] != '\0'; i++)
		if (safe[i] == '"' || safe[i] == '{' || safe[i] == '}')
			safe[i] = '_'; /* so that no value can end its label */
	(void)snprintf(labels + at, size - at, "%s%s=\"%s\"", at > 0 ? "," : "", key,
		safe);
}
