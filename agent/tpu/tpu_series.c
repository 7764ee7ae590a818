/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERIES_QUANTILES 3

static const struct ls_tpu_metric series_metrics[] = {
#define LS_TPU_METRIC(name, shape, cadence, factor, id) \
	{ name, LS_TPU_##shape, LS_TPU_##cadence, factor, LS_METRIC_##id },
#include "agent/tpu/tpu_metrics.def"
#undef LS_TPU_METRIC
};

/* Sum, count and bucket of a distribution follow its quantiles in proto/metrics.def. */
enum { SERIES_SUM = 1, SERIES_COUNT, SERIES_BUCKET };
_Static_assert(LS_METRIC_CHIP_ENQUEUE_TO_DEQUEUE_SUM ==
			LS_METRIC_CHIP_ENQUEUE_TO_DEQUEUE + SERIES_SUM &&
		LS_METRIC_CHIP_ENQUEUE_TO_DEQUEUE_COUNT ==
			LS_METRIC_CHIP_ENQUEUE_TO_DEQUEUE + SERIES_COUNT &&
		LS_METRIC_CHIP_ENQUEUE_TO_DEQUEUE_BUCKET ==
			LS_METRIC_CHIP_ENQUEUE_TO_DEQUEUE + SERIES_BUCKET,
	"order of rows");

/* What belongs to a distribution beside the series of its count, which stands for it.
 */
struct tpu_histogram {
	struct ls_histogram_memory memory;
	int sum, quantile[SERIES_QUANTILES];
	int16_t bucket[LS_HISTOGRAM_BUCKETS_MAX]; /* -1: none */
};

/* What is known of a handle of the table. */
struct tpu_entry {
	bool used;
	bool is_part; /* of a distribution: leaves with it */
	bool is_bucket, is_unknown;
	uint8_t cadence;
	uint16_t port;
	bool fresh; /* told in the round under way */
	bool told; /* and in the one before */
	uint64_t t_set_ns; /* when its round ended */
	struct tpu_histogram *histogram;
};

struct ls_tpu_series {
	struct ls_series_table *table;
	size_t group[LS_TPU_CADENCES];
	size_t histograms, buckets, unknown;
	struct ls_tpu_series_stats stats;
	struct tpu_entry entry[LS_SERIES_MAX];
};

const struct ls_tpu_metric *
ls_tpu_metric_find(const char *name)
{
	for (size_t i = 0; i < sizeof(series_metrics) / sizeof(series_metrics[0]);
		i++) {
		if (strcmp(series_metrics[i].name, name) == 0)
			return &series_metrics[i];
	}
	return NULL;
}

/* --- names and labels ----------------------------------------------------- */

/* The name of a part of a metric: 0 for itself, or SERIES_SUM, ... Cut names are
 * refused by the table. */
static void
series_name(char name[LS_SERIES_TEXT_MAX_BYTES], const char *of,
	const struct ls_tpu_metric *m, unsigned part, bool is_counter)
{
	static const char *const suffix[] = { "", ".sum_total", ".count_total",
		".bucket_total" };
	char safe[LS_SERIES_NAME_MAX_BYTES];
	size_t i;

	if (m != NULL) {
		(void)snprintf(name, LS_SERIES_TEXT_MAX_BYTES, "%s",
			ls_metric_info((unsigned)m->metric + part)->name);
		return;
	}
	for (i = 0; i + 1 < sizeof(safe) && of[i] != '\0'; i++) {
		char c = of[i] >= 'A' && of[i] <= 'Z' ? (char)(of[i] - 'A' + 'a')
						      : of[i];

		safe[i] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.'
			? c
			: '_';
	}
	safe[i] = '\0';
	(void)snprintf(name, LS_SERIES_TEXT_MAX_BYTES, "chip.libtpu.%s%s%s", safe,
		suffix[part], part == 0 && is_counter ? "_total" : "");
}

/* Labels whose values never end: each would be a series of its own. */
static bool
series_is_endless(const char *key)
{
	return strcmp(key, "error_message") == 0 || strcmp(key, "session_id") == 0;
}

/* All labels of a point and one more (key NULL: none), in order. */
static void
series_labels(char labels[LS_SERIES_LABELS_MAX_BYTES], const struct ls_tpu_point *p,
	bool per_device, const char *key, const char *value)
{
	labels[0] = '\0';
	for (size_t i = 0; i < p->label_count; i++) {
		const struct ls_tpu_label *l = &p->label[i];
		/* Of a metric of devices a lone number can only be the device. */
		bool device = per_device && p->label_count == 1 && l->is_number;
		const char *name = device ? "device" : l->key;

		if (series_is_endless(name))
			continue;
		if (key != NULL && strcmp(key, name) < 0) {
			ls_series_label(labels, LS_SERIES_LABELS_MAX_BYTES, key, value);
			key = NULL;
		}
		ls_series_label(labels, LS_SERIES_LABELS_MAX_BYTES, name, l->value);
	}
	if (key != NULL)
		ls_series_label(labels, LS_SERIES_LABELS_MAX_BYTES, key, value);
}

/* --- series --------------------------------------------------------------- */

static void
series_forget(struct ls_tpu_series *s, int handle)
{
	struct tpu_entry *e = &s->entry[handle];

	s->buckets -= e->is_bucket;
	s->unknown -= e->is_unknown;
	memset(e, 0, sizeof(*e));
	ls_series_remove(s->table, handle);
}

/* A handle, with an entry of its own; -1: no room, or another port's. */
static int
series_have(struct ls_tpu_series *s, enum ls_tpu_cadence cadence, uint16_t port,
	const char *name, const char *labels, bool is_unknown)
{
	struct tpu_entry *e;
	int handle;

	if (is_unknown && s->unknown >= LS_TPU_UNKNOWN_SERIES_MAX) {
		s->stats.refused++;
		return -1;
	}
	handle = ls_series_add(s->table, s->group[cadence], name, labels);
	if (handle < 0) {
		s->stats.refused++;
		return -1;
	}
	e = &s->entry[handle];
	if (!e->used) {
		*e = (struct tpu_entry){ .used = true,
			.cadence = (uint8_t)cadence,
			.port = port,
			.is_unknown = is_unknown };
		s->unknown += is_unknown;
	}
	if (e->port != port) {
		if (e->fresh || e->told)
			return -1;
		e->port = port;
	}
	return handle;
}

static void
series_set(struct ls_tpu_series *s, int handle, double value)
{
	if (handle < 0)
		return;
	s->entry[handle].fresh = true;
	ls_series_set(s->table, handle, value);
	s->stats.points++;
}

/* --- distributions -------------------------------------------------------- */

static const double series_quantile[SERIES_QUANTILES] = { 0.5, 0.9, 0.99 };
static const char *const series_quantile_name[SERIES_QUANTILES] = { "0.5", "0.9",
	"0.99" };

/* What a distribution needs to be stored. */
struct series_of {
	uint16_t port;
	enum ls_tpu_cadence cadence;
	const char *name;
	const struct ls_tpu_metric *metric;
	const struct ls_tpu_point *point;
	double factor;
	bool per_device;
};

static int
series_part(struct ls_tpu_series *s, const struct series_of *o, unsigned part,
	const char *key, const char *value)
{
	char name[LS_SERIES_TEXT_MAX_BYTES], labels[LS_SERIES_LABELS_MAX_BYTES];
	int handle;

	series_name(name, o->name, o->metric, part, false);
	series_labels(labels, o->point, o->per_device, key, value);
	handle = series_have(s, o->cadence, o->port, name, labels, o->metric == NULL);
	if (handle >= 0 && part != SERIES_COUNT)
		s->entry[handle].is_part = true;
	return handle;
}

static struct tpu_histogram *
series_histogram(struct ls_tpu_series *s, int handle)
{
	struct tpu_entry *e = &s->entry[handle];
	struct tpu_histogram *h;

	if (e->histogram != NULL)
		return e->histogram;
	if (s->histograms >= LS_TPU_HISTOGRAMS_MAX ||
		(h = calloc(1, sizeof(*h))) == NULL) {
		s->stats.refused++;
		return NULL;
	}
	s->histograms++;
	h->sum = -1;
	for (size_t i = 0; i < SERIES_QUANTILES; i++)
		h->quantile[i] = -1;
	for (size_t i = 0; i < LS_HISTOGRAM_BUCKETS_MAX; i++)
		h->bucket[i] = -1;
	e->histogram = h;
	return h;
}

static void
series_drop_buckets(struct ls_tpu_series *s, struct tpu_histogram *h)
{
	for (size_t i = 0; i < LS_HISTOGRAM_BUCKETS_MAX; i++) {
		if (h->bucket[i] >= 0)
			series_forget(s, h->bucket[i]);
		h->bucket[i] = -1;
	}
}

/* Removes a distribution with all its parts. */
static void
series_drop_histogram(struct ls_tpu_series *s, int handle)
{
	struct tpu_histogram *h = s->entry[handle].histogram;

	series_drop_buckets(s, h);
	if (h->sum >= 0)
		series_forget(s, h->sum);
	for (size_t i = 0; i < SERIES_QUANTILES; i++) {
		if (h->quantile[i] >= 0)
			series_forget(s, h->quantile[i]);
	}
	free(h);
	s->histograms--;
}

static void
series_buckets(struct ls_tpu_series *s, const struct series_of *o,
	struct tpu_histogram *h)
{
	const struct ls_histogram *in = &o->point->histogram;
	char bound[32];

	for (size_t i = 0; i < in->buckets; i++) {
		if (h->bucket[i] < 0 && in->count[i] > 0) {
			if (s->buckets >= LS_TPU_BUCKET_SERIES_MAX) {
				s->stats.refused++;
				continue;
			}
			if (i + 1 < in->buckets)
				(void)snprintf(bound, sizeof(bound), "%.6g",
					in->bound[i] * o->factor);
			else
				(void)snprintf(bound, sizeof(bound), "+Inf");
			h->bucket[i] = (int16_t)series_part(s, o, SERIES_BUCKET,
				"bucket", bound);
			if (h->bucket[i] >= 0) {
				s->entry[h->bucket[i]].is_bucket = true;
				s->buckets++;
			}
		}
		series_set(s, h->bucket[i], (double)in->count[i]);
	}
}

static void
series_quantiles(struct ls_tpu_series *s, const struct series_of *o,
	struct tpu_histogram *h, const struct ls_histogram_delta *d)
{
	for (size_t i = 0; i < SERIES_QUANTILES; i++) {
		if (h->quantile[i] < 0)
			h->quantile[i] = series_part(s, o, 0, "quantile",
				series_quantile_name[i]);
		series_set(s, h->quantile[i],
			o->factor *
				ls_histogram_quantile(&o->point->histogram, d,
					series_quantile[i]));
	}
}

static void
series_distribution(struct ls_tpu_series *s, const struct series_of *o)
{
	const struct ls_histogram *in = &o->point->histogram;
	struct ls_histogram_delta delta;
	struct tpu_histogram *h;
	uint64_t bounds, resets;
	int count = series_part(s, o, SERIES_COUNT, NULL, NULL), rc;

	if (count < 0)
		return;
	h = series_histogram(s, count);
	if (h == NULL)
		return;
	bounds = h->memory.bounds_hash;
	resets = h->memory.resets;
	rc = ls_histogram_step(&h->memory, in, &delta);
	s->stats.resets += h->memory.resets - resets;
	if (h->memory.bounds_hash != bounds)
		series_drop_buckets(s, h); /* their names say the bounds */
	if (h->sum < 0)
		h->sum = series_part(s, o, SERIES_SUM, NULL, NULL);
	series_set(s, count, (double)in->total);
	series_set(s, h->sum, o->factor * in->mean * (double)in->total);
	series_buckets(s, o, h);
	if (rc == 0)
		series_quantiles(s, o, h, &delta);
}

/* --- values --------------------------------------------------------------- */

void
ls_tpu_series_point(struct ls_tpu_series *s, uint16_t port, const char *name,
	const struct ls_tpu_metric *metric, const struct ls_tpu_point *p)
{
	char text[LS_SERIES_TEXT_MAX_BYTES], labels[LS_SERIES_LABELS_MAX_BYTES];
	const struct series_of o = { .port = port,
		.name = name,
		.metric = metric,
		.point = p,
		.cadence = metric != NULL ? metric->cadence : LS_TPU_HISTOGRAMS,
		.factor = metric != NULL ? metric->factor : 1,
		.per_device = metric != NULL &&
			ls_metric_info(metric->metric)->scope == LS_METRIC_SCOPE_CHIP };

	if (metric != NULL && metric->shape != p->shape) {
		s->stats.odd++;
		return;
	}
	if (p->shape == LS_TPU_HISTOGRAM) {
		series_distribution(s, &o);
		return;
	}
	series_name(text, name, metric, 0, p->is_counter);
	series_labels(labels, p, o.per_device, NULL, NULL);
	series_set(s, series_have(s, o.cadence, port, text, labels, metric == NULL),
		p->value * o.factor);
}

/* --- cores ---------------------------------------------------------------- */

static void
series_core_value(struct ls_tpu_series *s, enum ls_metric m, const char *labels,
	double value)
{
	series_set(s,
		series_have(s, LS_TPU_STATUS, 0, ls_metric_info(m)->name, labels,
			false),
		value);
}

static void
series_core(struct ls_tpu_series *s, const struct ls_tpu_progress_core *c)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES] = "", number[16];

	if (c->now.chip_id >= 0) {
		(void)snprintf(number, sizeof(number), "%d", c->now.chip_id);
		ls_series_label(labels, sizeof(labels), "chip", number);
	}
	(void)snprintf(number, sizeof(number), "%d", c->now.core_id);
	ls_series_label(labels, sizeof(labels), "core", number);
	series_core_value(s, LS_METRIC_CORE_QUEUE, labels, c->now.queued);
	series_core_value(s, LS_METRIC_CORE_STALLED, labels, c->stalled ? 1 : 0);
	series_core_value(s, LS_METRIC_CORE_STILL, labels,
		(double)(c->t_seen_ns - c->t_moved_ns) / 1e9);
	if (c->now.has_launch) {
		series_core_value(s, LS_METRIC_CORE_LAUNCHES, labels,
			(double)c->launches);
		series_core_value(s, LS_METRIC_CORE_LAUNCH_ID, labels,
			c->now.launch_id);
	}
	if (c->now.program != 0) /* 48 bits: exact in a double */
		series_core_value(s, LS_METRIC_CORE_PROGRAM, labels,
			(double)(c->now.program >> 16));
	if (c->now.has_sequencer) {
		series_core_value(s, LS_METRIC_CORE_RUN_ID, labels,
			(double)c->now.run_id);
		series_core_value(s, LS_METRIC_CORE_TRACEMARK, labels,
			(double)c->now.tracemark);
	}
}

void
ls_tpu_series_progress(struct ls_tpu_series *s, const struct ls_tpu_progress *p,
	uint64_t since_mono_ns, uint64_t now_mono_ns)
{
	struct ls_tpu_steps steps;

	for (size_t i = 0; i < p->count; i++) {
		/* Of a core that is no longer told nothing is measured. */
		if (p->core[i].t_seen_ns >= since_mono_ns)
			series_core(s, &p->core[i]);
	}
	if (ls_tpu_progress_steps(p, now_mono_ns, &steps) != 0)
		return;
	series_core_value(s, LS_METRIC_CHIP_STEPS, "", (double)steps.steps);
	series_core_value(s, LS_METRIC_CHIP_STEP_SECONDS, "",
		(double)steps.step_ns / 1e9);
	series_core_value(s, LS_METRIC_CHIP_STEP_CONFIDENCE, "", steps.confidence);
}

/* --- rounds --------------------------------------------------------------- */

void
ls_tpu_series_end(struct ls_tpu_series *s, uint16_t port, enum ls_tpu_cadence cadence,
	uint64_t now_mono_ns)
{
	for (int i = 0; i < (int)LS_SERIES_MAX; i++) {
		struct tpu_entry *e = &s->entry[i];

		if (!e->used || e->cadence != cadence || e->port != port)
			continue;
		e->told = e->fresh;
		e->fresh = false;
		if (e->told) {
			e->t_set_ns = now_mono_ns;
			continue;
		}
		ls_series_unset(s->table, i);
		if (e->is_part || now_mono_ns - e->t_set_ns < LS_TPU_FORGET_NS)
			continue;
		if (e->histogram != NULL)
			series_drop_histogram(s, i);
		series_forget(s, i);
	}
}

void
ls_tpu_series_read(struct ls_tpu_series *s, enum ls_tpu_cadence cadence,
	uint64_t now_mono_ns)
{
	ls_series_read(s->table, s->group[cadence], now_mono_ns);
}

/* --- life ----------------------------------------------------------------- */

int
ls_tpu_series_new(struct ls_series_table *table, struct ls_tpu_series **ret_series)
{
	static const char *const names[] = { "tpu.status", "tpu.gauges",
		"tpu.histograms" };
	struct ls_tpu_series *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->table = table;
	for (size_t i = 0; i < LS_TPU_CADENCES; i++) {
		rc = ls_series_group(table, names[i]);
		if (rc < 0) {
			ls_tpu_series_free(s);
			return rc;
		}
		s->group[i] = (size_t)rc;
	}
	*ret_series = s;
	return 0;
}

void
ls_tpu_series_free(struct ls_tpu_series *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < LS_SERIES_MAX; i++)
		free(s->entry[i].histogram);
	free(s);
}

const struct ls_tpu_series_stats *
ls_tpu_series_get_stats(const struct ls_tpu_series *s)
{
	return &s->stats;
}
