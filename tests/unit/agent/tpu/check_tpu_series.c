/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_series.h"

#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"

#define HBM "tpu.runtime.hbm.memory.usage.bytes"
#define DUTY "tpu.runtime.tensorcore.dutycycle.percent"
#define TIMING "hlo.execution.timing.distribution.microseconds"
#define SECOND 1000000000ull

static struct ls_series_table *table;
static struct ls_tpu_series *series;
static struct ls_tpu_point point;

static void
setup(void)
{
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(ls_tpu_series_new(table, &series), 0);
	memset(&point, 0, sizeof(point));
}

static void
teardown(void)
{
	ls_tpu_series_free(series);
	ls_tpu_series_free(NULL);
	ls_series_free(table);
}

static void
label(const char *key, const char *value, bool is_number)
{
	struct ls_tpu_label *l = &point.label[point.label_count++];

	(void)snprintf(l->key, sizeof(l->key), "%s", key);
	(void)snprintf(l->value, sizeof(l->value), "%s", value);
	l->is_number = is_number;
}

static void
tell(uint16_t port, const char *name, double value)
{
	point.shape = LS_TPU_VALUE;
	point.value = value;
	ls_tpu_series_point(series, port, name, ls_tpu_metric_find(name), &point);
}

static void
end(uint16_t port, enum ls_tpu_cadence cadence, uint64_t now_ns)
{
	ls_tpu_series_end(series, port, cadence, now_ns);
	ls_tpu_series_read(series, cadence, now_ns);
}

/* 0 absent from the group, 1 not measured, 2 measured: then *ret_value. */
static int
find(const char *group, const char *text, double *ret_value)
{
	struct ls_series_group g;
	int index = ls_series_group(table, group);
	size_t i;

	ck_assert_int_ge(index, 0);
	ck_assert(ls_series_look(table, (size_t)index, &g));
	for (i = 0; i < g.count; i++) {
		if (strcmp(g.text[i], text) != 0)
			continue;
		if (g.present[i])
			*ret_value = g.value[i];
		return g.present[i] ? 2 : 1;
	}
	return 0;
}

static void
assert_value(const char *group, const char *text, double want)
{
	double got = 0;

	ck_assert_msg(find(group, text, &got) == 2, "%s", text);
	ck_assert_double_eq_tol(got, want, 1e-9);
}

LS_CASE(tpu_series, setup, teardown);

LS_TEST(tpu_series, every_known_metric_has_its_rows)
{
	const struct ls_tpu_metric *m = ls_tpu_metric_find(TIMING);

	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq((int)m->shape, LS_TPU_HISTOGRAM);
	ck_assert_str_eq(ls_metric_info((unsigned)m->metric + 1)->name,
		"chip.enqueue_to_dequeue.seconds_total");
	ck_assert_str_eq(ls_metric_info((unsigned)m->metric + 2)->name,
		"chip.enqueue_to_dequeue.count_total");
	ck_assert_str_eq(ls_metric_info((unsigned)m->metric + 3)->name,
		"chip.enqueue_to_dequeue.bucket_total");
	ck_assert_ptr_null(ls_tpu_metric_find("tpu.nothing"));
	ck_assert_ptr_null(ls_tpu_metric_find(""));
}

LS_TEST(tpu_series, values_are_in_base_units_and_not_measured_when_not_told)
{
	double value;

	label("device", "9", true);
	tell(8431, HBM, 5);
	tell(8431, DUTY, 87.5);
	end(8431, LS_TPU_GAUGES, SECOND);
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", 5);
	assert_value("tpu.gauges", "chip.tensorcore.duty_ratio{device=\"9\"}", 0.875);
	tell(8431, HBM, 6);
	end(8431, LS_TPU_GAUGES, 6 * SECOND);
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", 6);
	ck_assert_int_eq(
		find("tpu.gauges", "chip.tensorcore.duty_ratio{device=\"9\"}", &value),
		1);
	end(8431, LS_TPU_GAUGES, LS_TPU_FORGET_NS + SECOND);
	ck_assert_int_eq(
		find("tpu.gauges", "chip.tensorcore.duty_ratio{device=\"9\"}", &value),
		0);
	ck_assert_int_eq(
		find("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", &value), 1);
}

LS_TEST(tpu_series, a_lone_number_of_a_metric_of_devices_is_the_device)
{
	label("anything", "3", true);
	tell(8431, DUTY, 50);
	assert_value("tpu.gauges", "chip.tensorcore.duty_ratio{device=\"3\"}", 0.5);
}

LS_TEST(tpu_series, labels_without_end_are_dropped)
{
	label("error_message", "at 0x7f31", false);
	label("session_id", "9112", true);
	label("type", "SLICE", false);
	tell(8431, "slice.error.detected.gauge", 1);
	assert_value("tpu.gauges", "chip.slice.errors{type=\"SLICE\"}", 1);
}

LS_TEST(tpu_series, a_series_belongs_to_the_port_that_tells_it)
{
	label("device", "9", true);
	tell(8431, HBM, 1);
	tell(8432, HBM, 2);
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", 1);
	end(8431, LS_TPU_GAUGES, SECOND);
	tell(8432, HBM, 2);
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", 1);
	end(8431, LS_TPU_GAUGES, 2 * SECOND);
	tell(8432, HBM, 2); /* the first one was silent for a round */
	end(8432, LS_TPU_GAUGES, 2 * SECOND);
	end(8431, LS_TPU_GAUGES, 3 * SECOND); /* says nothing of the other one's */
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", 2);
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"9\"}", 2);
}

static void
tell_histogram(const char *name, double growth, int64_t b, int64_t c, double mean)
{
	point.shape = LS_TPU_HISTOGRAM;
	memset(&point.histogram, 0, sizeof(point.histogram));
	ck_assert_int_eq(ls_histogram_exponential(&point.histogram, 2, growth, 1000),
		0);
	point.histogram.count[1] = b;
	point.histogram.count[2] = c;
	point.histogram.total = b + c;
	point.histogram.mean = mean;
	ls_tpu_series_point(series, 8431, name, ls_tpu_metric_find(name), &point);
}

LS_TEST(tpu_series, distribution_is_counters_and_quantiles_of_what_came)
{
	double value;

	label("device", "0", false);
	tell_histogram(TIMING, 2, 10, 0, 1500);
	end(8431, LS_TPU_HISTOGRAMS, SECOND);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.count_total{device=\"0\"}", 10);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.seconds_total{device=\"0\"}", 15e-3);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.bucket_total{bucket=\"0.002\",device=\"0\"}",
		10);
	ck_assert_int_eq(
		find("tpu.histograms",
			"chip.enqueue_to_dequeue.bucket_total{bucket=\"0.004\",device=\"0\"}",
			&value),
		0);
	ck_assert_int_eq(
		find("tpu.histograms",
			"chip.enqueue_to_dequeue.seconds{device=\"0\",quantile=\"0.5\"}",
			&value),
		0);
	tell_histogram(TIMING, 2, 10, 4, 1900);
	end(8431, LS_TPU_HISTOGRAMS, 11 * SECOND);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.bucket_total{bucket=\"0.004\",device=\"0\"}",
		4);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.seconds{device=\"0\",quantile=\"0.5\"}", 3e-3);
	tell_histogram(TIMING, 2, 10, 4, 1900); /* nothing new: no quantiles */
	end(8431, LS_TPU_HISTOGRAMS, 21 * SECOND);
	ck_assert_int_eq(
		find("tpu.histograms",
			"chip.enqueue_to_dequeue.seconds{device=\"0\",quantile=\"0.5\"}",
			&value),
		1);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.count_total{device=\"0\"}", 14);
}

LS_TEST(tpu_series, other_bounds_are_other_buckets)
{
	double value;

	tell_histogram(TIMING, 2, 10, 0, 1500);
	tell_histogram(TIMING, 3, 11, 0, 1500);
	ck_assert_int_eq(
		find("tpu.histograms",
			"chip.enqueue_to_dequeue.bucket_total{bucket=\"0.002\"}",
			&value),
		0);
	assert_value("tpu.histograms",
		"chip.enqueue_to_dequeue.bucket_total{bucket=\"0.003\"}", 11);
	ck_assert_uint_eq(ls_tpu_series_get_stats(series)->resets, 1);
}

LS_TEST(tpu_series, a_silent_distribution_leaves_with_all_its_parts)
{
	struct ls_series_group g;

	tell_histogram(TIMING, 2, 10, 0, 1500);
	tell_histogram(TIMING, 2, 10, 4, 1500);
	end(8431, LS_TPU_HISTOGRAMS, SECOND);
	end(8431, LS_TPU_HISTOGRAMS, LS_TPU_FORGET_NS + SECOND);
	ck_assert(ls_series_look(table,
		(size_t)ls_series_group(table, "tpu.histograms"), &g));
	ck_assert_uint_eq(g.count, 0);
	tell_histogram(TIMING, 2, 10, 0, 1500); /* and may come back */
	assert_value("tpu.histograms", "chip.enqueue_to_dequeue.count_total", 10);
}

LS_TEST(tpu_series, unknown_metrics_have_a_safe_name_and_a_limit)
{
	char name[32];
	int i;

	tell(8431, "New/Thing.x", 2);
	assert_value("tpu.histograms", "chip.libtpu.new_thing.x", 2);
	point.is_counter = true;
	tell(8431, "new.count", 3);
	assert_value("tpu.histograms", "chip.libtpu.new.count_total", 3);
	tell_histogram("new.sizes", 2, 1, 0, 1500);
	assert_value("tpu.histograms", "chip.libtpu.new.sizes.sum_total", 1500);
	for (i = 0; i < 2 * (int)LS_TPU_UNKNOWN_SERIES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "m%d", i);
		tell(8431, name, 1);
	}
	ck_assert_uint_gt(ls_tpu_series_get_stats(series)->refused,
		LS_TPU_UNKNOWN_SERIES_MAX);
	label("device", "0", true);
	point.is_counter = false;
	tell(8431, HBM, 7); /* the known ones have room */
	assert_value("tpu.gauges", "chip.hbm.used_bytes{device=\"0\"}", 7);
}

LS_TEST(tpu_series, another_shape_is_left_out)
{
	tell_histogram(HBM, 2, 1, 0, 1);
	tell(8431, TIMING, 1);
	ck_assert_uint_eq(ls_tpu_series_get_stats(series)->odd, 2);
	ck_assert_uint_eq(ls_tpu_series_get_stats(series)->points, 0);
}

LS_TEST(tpu_series, cores_and_steps_are_series)
{
	static struct ls_tpu_progress progress;
	static struct ls_tpu_status status;
	uint64_t now = 0;
	double value;
	int i;

	memset(&progress, 0, sizeof(progress));
	for (i = 0; i < 12; i++) {
		now += SECOND;
		status.count = 2;
		status.core[0] = (struct ls_tpu_core){ .core_id = 4,
			.chip_id = 2,
			.type = 1,
			.has_launch = true,
			.launch_id = 100 + i,
			.program = 1u << 20,
			.motion = (uint64_t)i,
			.has_sequencer = true,
			.run_id = 7,
			.tracemark = 3 };
		status.core[1] = status.core[0];
		status.core[1].core_id = 5;
		status.core[1].motion = 9;
		status.core[1].queued = 2;
		status.core[1].chip_id = -1;
		ls_tpu_progress_feed(&progress, &status, now);
		ls_tpu_series_progress(series, &progress, now, now);
		end(0, LS_TPU_STATUS, now);
	}
	assert_value("tpu.status", "chip.core.launches_total{chip=\"2\",core=\"4\"}",
		11);
	assert_value("tpu.status", "chip.core.launch_id{chip=\"2\",core=\"4\"}", 111);
	assert_value("tpu.status", "chip.core.program{chip=\"2\",core=\"4\"}", 16);
	assert_value("tpu.status", "chip.core.stalled{chip=\"2\",core=\"4\"}", 0);
	assert_value("tpu.status", "chip.core.stalled{core=\"5\"}", 1);
	assert_value("tpu.status", "chip.core.still_seconds{core=\"5\"}", 11);
	assert_value("tpu.status", "chip.core.queue_depth{core=\"5\"}", 2);
	assert_value("tpu.status", "chip.steps.inferred_total", 11);
	assert_value("tpu.status", "chip.steps.inferred_seconds", 1);
	now += 10 * SECOND; /* nobody tells the cores any more */
	ls_tpu_series_progress(series, &progress, now, now);
	end(0, LS_TPU_STATUS, now);
	ck_assert_int_eq(find("tpu.status", "chip.core.stalled{core=\"5\"}", &value),
		1);
}
