/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/metrics.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

static char root[256];
static struct ls_agent_config config;
static char text[256];

static int
load(int argc, char **argv)
{
	enum ls_conf_action action;
	char err[LS_LOG_LINE_MAX_BYTES];
	int left;

	return ls_conf_load(&ls_agent_program, argc, argv, &config, &action, &left, err,
		sizeof(err));
}

static void
setup(void)
{
	char name[] = "lockstep-agent", *argv[] = { name, NULL };

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	ck_assert_int_eq(load(1, argv), 0);
	(void)snprintf(config.steps_dir, sizeof(config.steps_dir), "%s/steps", root);
	(void)snprintf(config.state_dir, sizeof(config.state_dir), "%s/state", root);
	(void)snprintf(config.collector, sizeof(config.collector), "tcp://127.0.0.1:1");
	tree_write(root, "steps/x", "");
}

LS_CASE(agent, setup, NULL);

LS_TEST(agent, options_have_the_defaults_of_the_design)
{
	char name[] = "lockstep-agent", *argv[] = { name, NULL };

	ck_assert_int_eq(load(1, argv), 0);
	ck_assert_str_eq(config.collector, "tcp://127.0.0.1:7117");
	ck_assert_str_eq(config.state_dir, "/var/lib/lockstep-agent");
	ck_assert_str_eq(config.steps_dir, "/run/lockstep/steps");
	ck_assert_uint_eq(config.beat_ns, LS_BEAT_DEFAULT_NS);
	ck_assert_uint_eq(config.sample_interval_ns, 1000000000);
	ck_assert_uint_eq(config.spool_max_bytes, LS_SPOOL_DEFAULT_BYTES);
	ck_assert(!config.once);
}

LS_TEST(agent, host_name_defaults_to_the_machine_and_is_checked)
{
	ck_assert_int_eq(ls_agent_config_finish(&config, text, sizeof(text)), 0);
	ck_assert_uint_gt(strlen(config.host_name), 0);
	(void)snprintf(config.host_name, sizeof(config.host_name), "a\nb");
	ck_assert_int_eq(ls_agent_config_finish(&config, text, sizeof(text)),
		-LS_ERANGE);
	memset(config.host_name, 'x', LS_HOST_NAME_MAX_BYTES);
	config.host_name[LS_HOST_NAME_MAX_BYTES] = '\0';
	ck_assert_int_eq(ls_agent_config_finish(&config, text, sizeof(text)),
		-LS_ERANGE);
}

/* Whether a source was read: the first word of it. */
static const char *
status_of(const json_t *once, const char *source)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(once, "sources"), i, one)
	{
		if (strcmp(json_string_value(json_object_get(one, "source")), source) !=
			0)
			continue;
		ck_assert_uint_gt(json_string_length(json_object_get(one, "why")), 0);
		return json_string_value(json_object_get(one, "status"));
	}
	return "";
}

LS_TEST(agent, once_lists_every_metric_with_value_or_null)
{
	uint8_t boot[LS_BOOT_ID_BYTES];
	struct step_ring ring;
	json_t *o, *m, *w;
	unsigned i;

	step_ring_make(&ring, config.steps_dir, "a.ring", 1, 16);
	ck_assert_int_eq(ls_clock_boot_id("/proc", boot), 0);
	for (i = 0; i < sizeof(boot); i++) /* or it would be left alone */
		step_ring_poke(&ring, 40 + i, boot[i], 1);
	step_ring_lock(&ring);
	(void)snprintf(config.step_log, sizeof(config.step_log), "%s/none", root);
	(void)snprintf(config.step_log_job, sizeof(config.step_log_job), "x");
	(void)snprintf(config.step_log_rank, sizeof(config.step_log_rank), "0");
	ck_assert_int_eq(ls_agent_config_finish(&config, text, sizeof(text)), 0);
	ck_assert_int_eq(ls_agent_once(&config, &o), 0);
	m = json_object_get(o, "metrics");
	ck_assert_uint_eq(json_object_size(m), LS_METRIC_COUNT);
	for (i = 0; i < LS_METRIC_COUNT; i++) {
		json_t *one = json_object_get(m, ls_metric_info(i)->name);

		ck_assert_ptr_nonnull(json_object_get(one, "value"));
		ck_assert(json_is_string(json_object_get(one, "source")));
	}
	ck_assert(json_is_number(json_object_get(
		json_object_get(m, "host.cpu.busy_seconds_total"), "value")));
	ck_assert(json_is_null(
		json_object_get(json_object_get(m, "job.threads"), "value")));
	ck_assert(json_is_number(json_object_get(json_object_get(o, "series"),
		"job.threads{job=\"job\",rank=\"0\"}")));
	/* warn: this machine shows no cgroup */
	ck_assert_str_ne(status_of(o, "worker"), "fail");
	ck_assert_str_ne(status_of(o, "worker"), "");
	ck_assert_str_eq(status_of(o, "log"), "fail"); /* its file is not there */
	w = json_array_get(json_object_get(o, "workers"), 0);
	ck_assert(json_is_true(json_object_get(w, "visible")));
	ck_assert(json_is_number(json_object_get(
		json_object_get(json_object_get(w, "metrics"), "job.threads"),
		"value")));
	json_decref(o);
	step_ring_fini(&ring);
}

LS_TEST(agent, agent_refuses_what_it_cannot_use)
{
	char name[] = "lockstep-agent", *argv[] = { name, NULL };

	ck_assert_int_eq(ls_agent_config_finish(&config, text, sizeof(text)), 0);
	(void)snprintf(config.collector, sizeof(config.collector), "ipc:///tmp/x");
	ck_assert_int_eq(ls_agent_run(&config, 1, argv), -LS_ERANGE);
	(void)snprintf(config.state_dir, sizeof(config.state_dir), "/no/such/place");
	ck_assert_int_eq(ls_agent_run(&config, 1, argv), -ENOENT);
	(void)snprintf(config.proc_root, sizeof(config.proc_root), "/no/proc");
	ck_assert_int_lt(ls_agent_run(&config, 1, argv), 0);
}
