/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/face/about.h"

#include <event2/buffer.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/loop.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

/* The parts of an agent, of which the collector cannot be reached. */
static const uint8_t kernel[16];
static struct ls_agent_config config;
static struct ls_loop *loop;
static struct ls_spool *spool;
static struct ls_sources *sources;
static struct ls_uplink *uplink;
static struct ls_budget budget;
static struct ls_about_parts parts;
static struct step_ring ring;

static void
fill(void *arg, struct ls_wire_report *r)
{
	(void)arg;
	(void)r;
}

static void
setup(void)
{
	const struct ls_budget_limits limits = { 0.005, 16u << 20, 4u << 20 };
	struct ls_budget_reading now = { .t_mono_ns = 1 };
	struct ls_uplink_options o = { .url = "tcp://127.0.0.1:1",
		.host = "h",
		.fill = fill,
		.beat_ns = LS_BEAT_DEFAULT_NS };
	char root[256];

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	tree_write(root, "steps/x", "");
	(void)snprintf(config.host_name, sizeof(config.host_name), "h");
	(void)snprintf(config.proc_root, sizeof(config.proc_root), "/proc");
	(void)snprintf(config.sys_root, sizeof(config.sys_root), "/sys");
	(void)snprintf(config.steps_dir, sizeof(config.steps_dir), "%s/steps", root);
	(void)snprintf(config.state_dir, sizeof(config.state_dir), "%s/state", root);
	config.spool_max_bytes = LS_SPOOL_DEFAULT_BYTES;
	loop = ls_loop_new();
	ck_assert_int_eq(
		ls_spool_open(config.state_dir, config.spool_max_bytes, kernel, &spool),
		0);
	ck_assert_int_eq(ls_sources_open(loop, &config, kernel, spool, NULL, &sources),
		0);
	o.spool = spool;
	ck_assert_int_eq(ls_uplink_new(loop, &o, &uplink), 0);
	ls_budget_init(&budget, &limits, &now);
	step_ring_make(&ring, config.steps_dir, "a.ring", 7, 16);
	step_ring_lock(&ring);
	ls_sources_set_slowed(sources, 2);
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, ls_clock_mono_ns());
	parts = (struct ls_about_parts){ .config = &config,
		.sources = sources,
		.spool = spool,
		.uplink = uplink,
		.budget = &budget,
		.now_mono_ns = ls_clock_mono_ns(),
		.started_mono_ns = 1,
		.sample_interval_ns = 1000000000 };
}

static void
teardown(void)
{
	ls_uplink_free(uplink);
	ls_sources_close(sources);
	ls_spool_close(spool);
	ls_loop_free(loop);
	step_ring_fini(&ring);
}

static char *
text_of(void (*write)(const struct ls_about_parts *p, struct evbuffer *out))
{
	struct evbuffer *out = evbuffer_new();
	char *text;

	write(&parts, out);
	(void)evbuffer_add(out, "", 1);
	text = strdup((const char *)evbuffer_pullup(out, -1));
	evbuffer_free(out);
	return text;
}

LS_CASE(about, setup, teardown);

LS_TEST(about, every_line_of_metrics_is_of_a_family)
{
	char *text = text_of(ls_about_metrics), *line, *rest = text;
	char family[128] = "", name[128];
	unsigned lines = 0;

	while ((line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
		if (sscanf(line, "# TYPE %127s", family) == 1 || line[0] == '#')
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, "{ "),
			line);
		ck_assert_str_eq(name, family);
		ck_assert(strchr(line, ' ') != NULL);
		lines++;
	}
	ck_assert_uint_ge(lines, 40);
	free(text);
}

LS_TEST(about, metrics_tell_what_the_parts_count)
{
	char *text = text_of(ls_about_metrics);

	ck_assert_ptr_nonnull(strstr(text, "\nlockstep_agent_slowed 1\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nlockstep_agent_step_rings 1\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nlockstep_agent_connected 0\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "\nlockstep_agent_uplink_reports_total 0\n"));
	ck_assert_ptr_nonnull(strstr(text,
		"\nlockstep_agent_step_records_lost_total{reason=\"overwritten\"} 0\n"));
	ck_assert_ptr_nonnull(strstr(text,
		"\nlockstep_agent_step_records_lost_total{reason=\"reboot\"} 0\n"));
	ck_assert_ptr_null(strstr(text, "(null)"));
	ck_assert_ptr_nonnull(
		strstr(text, "\nlockstep_agent_over_budget{reason=\"cpu\"} 0\n"));
	free(text);
}

LS_TEST(about, series_are_listed_with_value_unit_and_age)
{
	char *text = text_of(ls_about_series);
	json_t *v = json_loads(text, 0, NULL), *items, *one;
	bool busy = false, worker = false, slowed = false;
	size_t i;

	ck_assert_ptr_nonnull(v);
	items = json_object_get(v, "items");
	json_array_foreach(items, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "text"));

		ck_assert_ptr_nonnull(json_object_get(one, "value"));
		ck_assert_str_ne(json_string_value(json_object_get(one, "group")), "");
		if (strcmp(name, "host.cpu.busy_seconds_total") == 0) {
			busy = json_is_number(json_object_get(one, "value")) &&
				json_is_number(json_object_get(one, "age_s"));
			ck_assert_str_eq(
				json_string_value(json_object_get(one, "unit")), "s");
		}
		slowed = slowed || strcmp(name, "host.agent.slowed") == 0;
		worker = worker || strncmp(name, "job.threads{", 12) == 0;
	}
	ck_assert(busy);
	ck_assert(worker);
	ck_assert(slowed);
	json_decref(v);
	free(text);
}

LS_TEST(about, doctor_asks_every_part)
{
	static const char *const wanted[] = { "uplink", "spool", "steps", "host",
		"worker", "clock", "budget" };
	json_t *v = ls_about_doctor_json(&parts),
	       *checks = json_object_get(v, "checks"), *one;
	size_t i, k;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		bool found = false;

		json_array_foreach(checks, k, one)
		{
			const char *source =
				json_string_value(json_object_get(one, "source"));

			found = found || strcmp(source, wanted[i]) == 0;
			ck_assert(strcmp(source, "uplink") != 0 ||
				strcmp(json_string_value(
					       json_object_get(one, "status")),
					"fail") == 0);
		}
		ck_assert_msg(found, "%s", wanted[i]);
	}
	ck_assert_str_eq(
		json_string_value(json_object_get(json_object_get(v, "agent"), "host")),
		"h");
	json_decref(v);
}

LS_TEST(about, identity_is_told_with_its_sources)
{
	json_t *v = ls_about_identity(&parts);

	ck_assert(json_is_object(json_object_get(v, "identity")));
	ck_assert_ptr_nonnull(json_object_get(v, "chips"));
	json_decref(v);
}

LS_TEST(about, ready_while_there_is_room)
{
	char why[64] = "";

	ck_assert(ls_about_ready(&parts, why, sizeof(why)));
	ck_assert_str_eq(why, "");
	config.spool_max_bytes = 1;
	ck_assert(!ls_about_ready(&parts, why, sizeof(why)));
	ck_assert_str_ne(why, "");
}

static sem_t gate;

static void
gate_work(void *arg)
{
	(void)arg;
	(void)sem_wait(&gate);
}

static void
gate_done(void *arg)
{
	(void)arg;
}

LS_TEST(about, disk_that_does_not_answer_is_named_with_its_age)
{
	struct ls_disk_job job[LS_DISK_COUNT] = { { gate_work, gate_done, NULL, false },
		{ gate_work, gate_done, NULL, false } };
	char why[128] = "", *text;
	struct ls_doctor d;
	double age = 0;
	size_t i;

	ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
	ck_assert_int_eq(ls_disk_start(loop, "/state", &parts.disk[LS_DISK_STATE]), 0);
	ck_assert_int_eq(ls_disk_start(loop, "/job/log", &parts.disk[LS_DISK_JOBS]), 0);
	parts.now_mono_ns = ls_loop_now(loop) + 1000 * 1000000000ull;
	ck_assert(ls_about_ready(&parts, why, sizeof(why)));
	ck_assert_str_eq(why, "");
	ls_disk_run(parts.disk[LS_DISK_JOBS], &job[LS_DISK_JOBS]);
	ck_assert(ls_about_ready(&parts, why, sizeof(why)));
	ck_assert_int_eq(sscanf(why, "/job/log has not answered for %lf s", &age), 1);
	ck_assert(age > 600 && age < 1001);
	ls_disk_run(parts.disk[LS_DISK_STATE], &job[LS_DISK_STATE]);
	ck_assert(!ls_about_ready(&parts, why, sizeof(why)));
	ck_assert_int_eq(sscanf(why, "/state has not answered for %lf s", &age), 1);
	text = text_of(ls_about_metrics);
	ck_assert_ptr_nonnull(strstr(text,
		"\nlockstep_agent_disk_stalled_seconds{path=\"/state\"} "));
	free(text);
	ls_about_doctor(&parts, &d);
	for (i = 0; i < d.count && strcmp(d.check[i].subject, "/state") != 0; i++)
		continue;
	ck_assert_uint_lt(i, d.count);
	ck_assert_ptr_nonnull(strstr(d.check[i].why, "measurements wait in memory"));
	for (i = 0; i < LS_DISK_COUNT; i++)
		ck_assert_int_eq(sem_post(&gate), 0);
	for (i = 0; i < LS_DISK_COUNT; i++)
		ck_assert_int_eq(ls_disk_stop(parts.disk[i], 60 * 1000000000ull), 0);
}
