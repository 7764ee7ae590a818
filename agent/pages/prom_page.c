/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/prom_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

#define PAGE_EXPECTED_CHANGES 20.0
#define PAGE_READINGS_LEAST 10u /* of a series before its liveliness counts */
/* then both are halved, so that the recent ones count */
#define PAGE_READINGS_HALVED 1024u
#define PAGE_NUMBER_MAX 999999999u /* of a chip */
#define PAGE_LABELS_MAX (LS_PROM_LABELS_MAX + 2)

struct page_series {
	int handle;
	bool seen; /* on the page being taken */
	double last;
	uint32_t readings, changes;
	uint32_t missing; /* readings in a row */
};

/* A sample of the page that is taken, until the numbers of all chips are known. */
struct page_sample {
	struct ls_prom_taken taken;
	enum ls_prom_id id;
	uint64_t number; /* of its chip */
	char labels[LS_SERIES_LABELS_MAX_BYTES]; /* without chip and index */
};

struct page_numbers {
	size_t count;
	uint64_t number[LS_PROM_CHIPS_MAX]; /* rising */
};

struct ls_prom_page {
	struct ls_series_table *table;
	const struct ls_prom_map *map;
	char name[LS_GROUP_NAME_MAX_BYTES];
	enum ls_prom_state state;
	int group; /* < 0: none now */
	int stale; /* handle */
	unsigned silent, failed; /* readings in a row */
	char why[160];
	struct ls_prom_page_stats stats;
	size_t count;
	struct page_series series[LS_PROM_SERIES_MAX];
	struct page_numbers chips, indices;
	size_t sample_count;
	struct page_sample sample[LS_PROM_SERIES_MAX];
	struct ls_prom_text text;
};

/* --- numbers of chips ----------------------------------------------------- */

/* "INSTANCE-NUMBER", or NUMBER alone. */
static bool
page_number(const char *value, uint64_t *ret_number)
{
	const char *dash = strrchr(value, '-');

	return ls_text_number(dash != NULL ? dash + 1 : value, PAGE_NUMBER_MAX,
		ret_number);
}

/* Where the number is, or belongs. */
static size_t
page_number_place(const struct page_numbers *n, uint64_t number)
{
	size_t i = 0;

	while (i < n->count && n->number[i] < number)
		i++;
	return i;
}

static bool
page_number_add(struct page_numbers *n, uint64_t number)
{
	size_t at = page_number_place(n, number);

	if (at < n->count && n->number[at] == number)
		return true;
	if (n->count == LS_PROM_CHIPS_MAX)
		return false;
	memmove(&n->number[at + 1], &n->number[at],
		(n->count - at) * sizeof(n->number[0]));
	n->number[at] = number;
	n->count++;
	return true;
}

/*
 * Both numbers of a chip, where they are known: the page names chips by one or the
 * other, and the n-th of one kind is taken for the n-th of the other if there are as
 * many (tpu-info's and the plugin's samples).
 */
static void
page_both_numbers(const struct ls_prom_page *p, const struct page_sample *s,
	bool *has_chip, uint64_t *chip, bool *has_index, uint64_t *index)
{
	bool joined = p->chips.count == p->indices.count;
	size_t at;

	*has_chip = s->id == LS_PROM_ID_CHIP;
	*has_index = s->id == LS_PROM_ID_INDEX;
	*chip = *index = s->number;
	if (*has_chip && (joined || p->indices.count == 0)) {
		at = page_number_place(&p->chips, s->number);
		*has_index = true;
		*index = joined ? p->indices.number[at] : at;
	} else if (*has_index && joined) {
		*has_chip = true;
		*chip = p->chips.number[page_number_place(&p->indices, s->number)];
	}
}

/* --- samples -------------------------------------------------------------- */

struct page_label {
	const char *name, *value;
};

static void
page_label_put(struct page_label *list, size_t *count, const char *name,
	const char *value)
{
	size_t at = (*count)++;

	for (; at > 0 && strcmp(list[at - 1].name, name) > 0; at--)
		list[at] = list[at - 1];
	list[at] = (struct page_label){ name, value };
}

/* How a label is kept: as chip's number, as it is, or not at all (false). */
static bool
page_keeps(const struct ls_prom_rule *r, const char *name, enum ls_prom_id *ret_id)
{
	*ret_id = LS_PROM_ID_NONE;
	if (r == NULL || strcmp(name, "le") == 0 || strcmp(name, "quantile") == 0)
		return true;
	for (size_t i = 0; i < r->keep_count; i++) {
		if (strcmp(r->keep[i].name, name) == 0) {
			*ret_id = r->keep[i].id;
			return true;
		}
	}
	return false;
}

/* The bound of a bucket in our unit: as short as a person would write it. */
static void
page_bound(const char *value, double scale, char *ret_bound, size_t size)
{
	char *end;
	double bound = strtod(value, &end);

	if (end == value || *end != '\0' || !isfinite(bound))
		(void)snprintf(ret_bound, size, "%s", value);
	else
		(void)snprintf(ret_bound, size, "%.9g", bound * scale);
}

/* Puts a sample aside. False: the number of its chip makes no sense. */
static bool
page_stage(struct ls_prom_page *p, const struct ls_prom_sample *s,
	struct page_sample *to)
{
	struct page_label list[PAGE_LABELS_MAX];
	char bound[32];
	enum ls_prom_id id;
	size_t i, count = 0;

	to->id = LS_PROM_ID_NONE;
	to->labels[0] = '\0';
	for (i = 0; i < s->label_count; i++) {
		const char *name = s->label[i].name, *value = s->label[i].value;

		if (!page_keeps(to->taken.rule, name, &id))
			continue;
		if (id != LS_PROM_ID_NONE) {
			to->id = id;
			if (!page_number(value, &to->number) ||
				!page_number_add(id == LS_PROM_ID_CHIP ? &p->chips
								       : &p->indices,
					to->number))
				return false;
		} else if (strcmp(name, "le") == 0) {
			page_bound(value, to->taken.le_scale, bound, sizeof(bound));
			page_label_put(list, &count, name, bound);
		} else {
			page_label_put(list, &count, name, value);
		}
	}
	for (i = 0; i < count; i++)
		ls_series_label(to->labels, sizeof(to->labels), list[i].name,
			list[i].value);
	return true;
}

/* A sample of the page. */
static void
page_see(void *arg, const struct ls_prom_sample *s)
{
	struct ls_prom_page *p = arg;
	struct page_sample *to;
	struct ls_prom_taken taken;

	if (!ls_prom_map_take(p->map, s, &taken)) {
		p->stats.left++;
		return;
	}
	if (p->sample_count == LS_PROM_SERIES_MAX) {
		p->stats.refused++;
		return;
	}
	to = &p->sample[p->sample_count];
	to->taken = taken;
	if (page_stage(p, s, to))
		p->sample_count++;
	else
		p->stats.odd++;
}

/* --- series --------------------------------------------------------------- */

static struct page_series *
page_series_find(struct ls_prom_page *p, int handle)
{
	for (size_t i = 0; i < p->count; i++) {
		if (p->series[i].handle == handle)
			return &p->series[i];
	}
	if (p->count == LS_PROM_SERIES_MAX)
		return NULL;
	p->series[p->count] = (struct page_series){ .handle = handle, .last = NAN };
	return &p->series[p->count++];
}

/* The labels of a sample, its chip's numbers among them; keys rising, as the others
 * are. */
static void
page_labels(const struct ls_prom_page *p, const struct page_sample *s, char *labels,
	size_t size)
{
	bool has_chip = false, has_index = false;
	uint64_t chip = 0, index = 0;
	char number[24];

	labels[0] = '\0';
	if (s->id != LS_PROM_ID_NONE)
		page_both_numbers(p, s, &has_chip, &chip, &has_index, &index);
	if (has_chip) {
		(void)snprintf(number, sizeof(number), "%llu",
			(unsigned long long)chip);
		ls_series_label(labels, size, "chip", number);
	}
	if (has_index) {
		(void)snprintf(number, sizeof(number), "%llu",
			(unsigned long long)index);
		ls_series_label(labels, size, "index", number);
	}
	if (s->labels[0] != '\0' && strlen(labels) + 1 + strlen(s->labels) < size)
		(void)snprintf(labels + strlen(labels), size - strlen(labels), "%s%s",
			labels[0] != '\0' ? "," : "", s->labels);
}

/* True if it changed since the last reading. */
static bool
page_series_count(struct page_series *s, double value)
{
	bool changed = s->readings > 0 && memcmp(&s->last, &value, sizeof(value)) != 0;

	s->readings++;
	s->changes += changed;
	s->last = value;
	if (s->readings == PAGE_READINGS_HALVED) {
		s->readings /= 2;
		s->changes /= 2;
	}
	return changed;
}

/* Sets one sample; true if its value has changed. */
static bool
page_set(struct ls_prom_page *p, const struct page_sample *sample)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES];
	struct page_series *s = NULL;
	int handle;

	page_labels(p, sample, labels, sizeof(labels));
	handle = ls_series_add(p->table, (size_t)p->group, sample->taken.name, labels);
	if (handle >= 0)
		s = page_series_find(p, handle);
	if (s == NULL) {
		if (handle >= 0)
			ls_series_remove(p->table, handle);
		p->stats.refused++;
		return false;
	}
	if (s->seen) {
		p->stats.twins++;
		return false;
	}
	s->seen = true;
	s->missing = 0;
	p->stats.taken++;
	if (isnan(sample->taken.value))
		ls_series_unset(p->table, handle);
	else
		ls_series_set(p->table, handle, sample->taken.value);
	return page_series_count(s, sample->taken.value);
}

/* Series that are not on the page: not measured, and forgotten after a while. */
static void
page_sweep(struct ls_prom_page *p)
{
	for (size_t i = p->count; i-- > 0;) {
		if (p->series[i].seen)
			continue;
		if (++p->series[i].missing < LS_PROM_GONE_READINGS) {
			ls_series_unset(p->table, p->series[i].handle);
			continue;
		}
		ls_series_remove(p->table, p->series[i].handle);
		p->series[i] = p->series[--p->count];
	}
}

/* How many changes were to be expected in the silence there is. */
static double
page_expected(const struct ls_prom_page *p)
{
	double sum = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct page_series *s = &p->series[i];

		if (s->readings >= PAGE_READINGS_LEAST)
			sum += (double)s->changes / (double)s->readings;
	}
	return sum * p->silent;
}

/* --- readings ------------------------------------------------------------- */

static void
page_unset(struct ls_prom_page *p)
{
	for (size_t i = 0; i < p->count; i++)
		ls_series_unset(p->table, p->series[i].handle);
}

/* The row of this reading. */
static void
page_tell(struct ls_prom_page *p, enum ls_prom_state state, uint64_t now_mono_ns)
{
	p->state = state;
	if (p->group < 0)
		return;
	if (state != LS_PROM_GOOD)
		page_unset(p);
	ls_series_set(p->table, p->stale, state == LS_PROM_GOOD ? 0 : 1);
	ls_series_read(p->table, (size_t)p->group, now_mono_ns);
}

/* Gives the group up: everything is as before the first page. */
static void
page_forget(struct ls_prom_page *p)
{
	if (p->group >= 0)
		ls_series_group_remove(p->table, (size_t)p->group);
	p->group = p->stale = -1;
	p->count = 0;
	p->silent = p->failed = 0;
	p->state = LS_PROM_ABSENT;
}

/* The group, when the first sample is taken. */
static bool
page_open_group(struct ls_prom_page *p)
{
	char name[LS_GROUP_NAME_MAX_BYTES], labels[LS_SERIES_LABELS_MAX_BYTES] = "";

	if (p->group >= 0)
		return true;
	if (p->sample_count == 0)
		return false;
	(void)snprintf(name, sizeof(name), "prom.%.*s", (int)sizeof(name) - 6, p->name);
	p->group = ls_series_group(p->table, name);
	if (p->group < 0) {
		p->stats.refused += p->sample_count;
		return false;
	}
	ls_series_label(labels, sizeof(labels), "source", p->name);
	p->stale = ls_series_add_metric(p->table, (size_t)p->group,
		LS_METRIC_SOURCE_STALE, labels);
	return true;
}

static int
page_parse(struct ls_prom_page *p, const char *text, size_t len)
{
	int rc;

	memset(&p->stats, 0, sizeof(p->stats));
	p->chips.count = p->indices.count = p->sample_count = 0;
	rc = ls_prom_text_read(&p->text, text, len, page_see, p);
	p->stats.samples = p->text.samples;
	return rc;
}

int
ls_prom_page_take(struct ls_prom_page *p, const char *text, size_t len, bool stepped,
	uint64_t now_mono_ns)
{
	char why[sizeof(p->why)];
	bool changed = false, frozen;
	int rc = page_parse(p, text, len);

	if (rc != 0) {
		(void)snprintf(why, sizeof(why), "line %llu: %s",
			(unsigned long long)p->text.line, p->text.why);
		ls_prom_page_fail(p, why, now_mono_ns);
		return rc;
	}
	p->why[0] = '\0';
	p->failed = 0;
	if (!page_open_group(p))
		return 0; /* nothing of it is ours */
	for (size_t i = 0; i < p->count; i++)
		p->series[i].seen = false;
	for (size_t i = 0; i < p->sample_count; i++)
		changed |= page_set(p, &p->sample[i]);
	page_sweep(p);
	if (changed)
		p->silent = 0;
	else if (stepped)
		p->silent++;
	frozen = p->silent >= LS_PROM_FROZEN_READINGS &&
		(p->state == LS_PROM_FROZEN ||
			page_expected(p) >= PAGE_EXPECTED_CHANGES);
	page_tell(p, frozen ? LS_PROM_FROZEN : LS_PROM_GOOD, now_mono_ns);
	return 0;
}

void
ls_prom_page_fail(struct ls_prom_page *p, const char *why, uint64_t now_mono_ns)
{
	(void)snprintf(p->why, sizeof(p->why), "%s", why);
	if (p->state == LS_PROM_ABSENT)
		return;
	if (++p->failed >= LS_PROM_GONE_READINGS)
		page_forget(p);
	else
		page_tell(p, LS_PROM_FAILED, now_mono_ns);
}

/* --- life ----------------------------------------------------------------- */

struct ls_prom_page *
ls_prom_page_new(struct ls_series_table *table, const struct ls_prom_map *map,
	const char *name)
{
	struct ls_prom_page *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->table = table;
	p->map = map;
	p->group = p->stale = -1;
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

void
ls_prom_page_free(struct ls_prom_page *p)
{
	if (p == NULL)
		return;
	page_forget(p);
	free(p);
}

enum ls_prom_state
ls_prom_page_state(const struct ls_prom_page *p)
{
	return p->state;
}

const char *
ls_prom_page_why(const struct ls_prom_page *p)
{
	return p->why;
}

const struct ls_prom_page_stats *
ls_prom_page_get_stats(const struct ls_prom_page *p)
{
	return &p->stats;
}

unsigned
ls_prom_page_silent(const struct ls_prom_page *p)
{
	return p->silent;
}
