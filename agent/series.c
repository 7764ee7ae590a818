/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

/* A handle is the index of a slot. */
struct series_slot {
	bool used;
	uint8_t group;
	uint16_t place; /* in the arrays of its group */
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

_Static_assert(LS_GROUPS_MAX <= UINT8_MAX && LS_SERIES_MAX <= UINT16_MAX, "indices of slots");

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
	ls_ignore(ls_text_copy(t->group[free_one].name, LS_GROUP_NAME_MAX_BYTES, name)); /* a name fits */
	return (int)free_one;
}

void
ls_series_group_remove(struct ls_series_table *t, size_t group)
{
	struct series_group *g = &t->group[group];
	size_t i;

	for (i = 0; i < g->count; i++)
		t->slot[g->slot[i]].used = false;
	g->used = false;
	g->count = 0;
	g->t_mono_ns = 0;
	g->readings = 0;
}

int
ls_series_add(struct ls_series_table *t, size_t group, const char *name, const char *labels)
{
	char text[LS_SERIES_TEXT_MAX_BYTES];
	struct series_group *g = &t->group[group];
	size_t i, slot, len;

	len = strlen(labels) > 0
		? (size_t)snprintf(text, sizeof(text), "%s{%s}", name, labels)
		: (size_t)snprintf(text, sizeof(text), "%s", name);
	if (len >= sizeof(text) || !ls_text_is_name(text, len, sizeof(text) - 1))
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
	t->slot[slot].used = true;
	t->slot[slot].group = (uint8_t)group;
	t->slot[slot].place = (uint16_t)g->count;
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
ls_series_add_metric(struct ls_series_table *t, size_t group, enum ls_metric metric, const char *labels)
{
	return ls_series_add(t, group, ls_metric_info(metric)->name, labels);
}

/* The last place moves into the hole. */
void
ls_series_remove(struct ls_series_table *t, int handle)
{
	struct series_slot *s = &t->slot[handle];
	struct series_group *g = &t->group[s->group];
	size_t hole = s->place, last = --g->count;

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
	if (handle < 0)
		return;
	t->group[t->slot[handle].group].value[t->slot[handle].place] = value;
	t->group[t->slot[handle].group].present[t->slot[handle].place] = true;
}

void
ls_series_unset(struct ls_series_table *t, int handle)
{
	if (handle < 0)
		return;
	t->group[t->slot[handle].group].value[t->slot[handle].place] = 0;
	t->group[t->slot[handle].group].present[t->slot[handle].place] = false;
}

void
ls_series_read(struct ls_series_table *t, size_t group, uint64_t t_mono_ns)
{
	struct series_group *g = &t->group[group];

	g->t_mono_ns = t_mono_ns;
	g->readings++;
	if (t->reader != NULL)
		t->reader(t->reader_arg, group);
}

bool
ls_series_look(const struct ls_series_table *t, size_t group, struct ls_series_group *ret_group)
{
	const struct series_group *g = group < LS_GROUPS_MAX ? &t->group[group] : NULL;

	if (g == NULL || !g->used)
		return false;
	*ret_group = (struct ls_series_group){ .name = g->name, .generation = g->generation,
		.t_mono_ns = g->t_mono_ns, .readings = g->readings, .count = g->count,
		.text = g->text, .value = g->value, .present = g->present };
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
	size_t at = strlen(labels), i;

	(void)ls_text_escape(safe, sizeof(safe), value, strlen(value));
	for (i = 0; safe[i] != '\0'; i++)
		if (safe[i] == '"' || safe[i] == '{' || safe[i] == '}')
			safe[i] = '_'; /* so that no value can end its label */
	(void)snprintf(labels + at, size - at, "%s%s=\"%s\"", at > 0 ? "," : "", key, safe);
}
