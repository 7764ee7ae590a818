/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/place.h"
#include "agent/identity/identity_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/agent.h"
#include "proto/base/clock.h"
#include "proto/base/loop.h"
#include "tests/support/fake_metadata.h"
#include "tests/support/fake_tpu.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

static char root[256];
static struct ls_agent_config config;
static struct ls_loop *loop;
static struct ls_place *place;
static struct fake_metadata server;
static struct ls_doctor doctor;
static const uint8_t no_from[8];

static void
set(char value[LS_CONF_VALUE_MAX_BYTES], const char *text)
{
	(void)snprintf(value, LS_CONF_VALUE_MAX_BYTES, "%s", text);
}

static void
set_below(char value[LS_CONF_VALUE_MAX_BYTES], const char *path)
{
	(void)snprintf(value, LS_CONF_VALUE_MAX_BYTES, "%s/%s", root, path);
}

static void
setup(void)
{
	char name[] = "lockstep-agent", *argv[] = { name, NULL }, err[256];
	enum ls_conf_action action;
	int left;

	memset(&config, 0, sizeof(config));
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	ck_assert_int_eq(ls_conf_load(&ls_agent_program, 1, argv, &config, &action,
				 &left, err, sizeof(err)),
		0);
	tree_write(root, "proc/1/comm", "init\n");
	tree_write(root, "sys/bus/pci/devices/x", "");
	tree_write(root, "steps/x", "");
	set_below(config.proc_root, "proc");
	set_below(config.sys_root, "sys");
	set_below(config.dev_root, "dev");
	set_below(config.steps_dir, "steps");
	set(config.host_name, "me");
	ck_assert_int_eq(unsetenv("GCE_METADATA_IP"), 0);
	loop = ls_loop_new();
	ck_assert_ptr_nonnull(loop);
	fake_metadata_open(&server, loop);
}

static void
teardown(void)
{
	ls_place_close(place);
	ls_place_close(NULL);
	place = NULL;
	fake_metadata_close(&server);
	ls_loop_free(loop);
}

static void
open_place(void)
{
	ck_assert_int_eq(ls_place_open(loop, &config, &place), 0);
}

/* Opens it, and turns the loop until all was asked. */
static void
settle(void)
{
	open_place();
	ck_assert_int_eq(ls_place_settle(place), 0);
}

static void
is(const char *key, const char *value, const char *source)
{
	const struct ls_identity *id = ls_place_identity(place);

	ck_assert_msg(ls_identity_find(id, key) != NULL, "%s is not known", key);
	ck_assert_str_eq(ls_identity_find(id, key), value);
	ck_assert_str_eq(ls_identity_source_name(ls_identity_winner(id, key)->source),
		source);
}

/* True if the doctor says this. */
static bool
told(const char *why)
{
	size_t i;

	memset(&doctor, 0, sizeof(doctor));
	ls_place_tell(place, &doctor);
	for (i = 0; i < doctor.count; i++) {
		if (strstr(doctor.check[i].why, why) != NULL)
			return true;
	}
	return false;
}

/* Two chips v5e; process 41 holds both. */
static void
two_chips(void)
{
	fake_tpu_function(root, "0000:00:05.0", 0x0063, 0, 0, 9);
	fake_tpu_function(root, "0000:00:06.0", 0x0063, 0, 0, 10);
	fake_tpu_node(root, "vfio/9");
	fake_tpu_node(root, "vfio/10");
	fake_tpu_holder(root, 41, "python3", 7, "/dev/vfio/9");
	tree_link(root, "proc/41/fd/8", "/dev/vfio/10");
}

/* --- sources -------------------------------------------------------------- */

LS_CASE(sources, setup, teardown);

LS_TEST(sources, options_come_first)
{
	config.host_name_is_given = true;
	set(config.job, "j");
	set(config.slice, "s");
	set(config.worker_id, "5");
	set(config.topology, "4x4");
	set(config.accelerator_type, "v6e-16");
	fake_metadata_v4_256(&server);
	set(config.metadata_address, server.address);
	settle();
	is("host", "me", "config");
	is("job", "j", "config");
	is("slice", "s", "config");
	is("worker", "5", "config");
	is("topology", "4x4", "config");
	is("accelerator_type", "v6e-16", "config");
	is("zone", "us-central2-b", "metadata");
	ck_assert(told("config says \"5\", metadata says \"3\"; the first is used"));
}

LS_TEST(sources, metadata_server_is_asked_where_the_environment_says)
{
	ck_assert_int_eq(setenv("GCE_METADATA_IP", server.address, 1), 0);
	fake_metadata_v4_256(&server);
	settle();
	is("host", "me", "machine");
	is("worker", "3", "metadata");
	is("workers", "32", "metadata");
	is("endpoint", "t-w3", "metadata");
	is("topology", "4x4x8", "tpu-env");
	is("generation", "v4", "tpu-env");
}

LS_TEST(sources, nobody_is_asked_without_a_reason)
{
	settle();
	ck_assert(told("this host has neither a TPU chip nor Google's firmware"));
	ls_place_close(place);
	ck_assert_int_eq(setenv("GCE_METADATA_IP", "metadata.google.internal", 1), 0);
	settle();
	ck_assert(told("GCE_METADATA_IP is not a numeric address"));
	ls_place_close(place);
	set(config.metadata_address, "off");
	settle();
	ck_assert(told("--metadata-address is off"));
	ls_place_close(place);
	set(config.metadata_address, "");
	settle();
	ck_assert(told("--metadata-address is off"));
	ck_assert_uint_eq(server.unmarked + server.asked[0], 0);
}

LS_TEST(sources, chips_and_firmware_are_reasons_to_ask)
{
	two_chips();
	open_place(); /* the loop does not run: nobody is asked really */
	ck_assert(told("not asked yet"));
	ls_place_close(place);
	tree_remove(root, "sys/bus/pci/devices/0000:00:05.0/vendor");
	tree_remove(root, "sys/bus/pci/devices/0000:00:06.0/vendor");
	open_place();
	ck_assert(told("neither"));
	ls_place_close(place);
	tree_write(root, "sys/class/dmi/id/product_name", "Google Compute Engine\n");
	open_place();
	ck_assert(told("not asked yet"));
}

LS_TEST(sources, labels_file_is_read)
{
	tree_write(root, "labels", "jobset.sigs.k8s.io/jobset-name=\"train\"\n");
	set_below(config.labels_file, "labels");
	settle();
	is("jobset", "train", "labels-file");
	ls_place_close(place);
	set_below(config.labels_file, "nowhere");
	settle();
	ck_assert_ptr_null(
		ls_identity_get(ls_place_identity(place), LS_IDENTITY_JOBSET));
}

LS_TEST(sources, environments_are_read_only_if_allowed)
{
	two_chips();
	set(config.metadata_address, "off");
	tree_write(root, "proc/41/environ", "TPU_WORKER_ID=2");
	settle();
	ck_assert_ptr_null(
		ls_identity_get(ls_place_identity(place), LS_IDENTITY_WORKER));
	ls_place_close(place);
	config.read_environ = true;
	settle();
	is("worker", "2", "environment");
	is("chips", "2", "sysfs");
}

LS_TEST(sources, rings_are_a_source)
{
	static const uint8_t kernel[16];
	static const char env[] = "TPU_TOPOLOGY=2x2\n";
	struct ls_source_step *steps;
	struct step_ring ring;
	size_t i;

	set(config.metadata_address, "off");
	step_ring_make(&ring, config.steps_dir, "a.ring", 7, 16);
	for (i = 0; i < sizeof(env) - 1; i++)
		step_ring_poke(&ring, LS_RING_ENV_OFFSET + i, (uint8_t)env[i], 1);
	step_ring_lock(&ring);
	ck_assert_int_eq(ls_source_step_new(config.steps_dir, kernel, NULL, &steps), 0);
	ls_source_step_read(steps, 1000);
	settle();
	ls_place_read(place, steps, 1000);
	is("topology", "2x2", "ring");
	ls_source_step_free(steps);
	step_ring_fini(&ring);
}

LS_TEST(sources, device_ids_come_from_the_series_of_libtpu)
{
	static const char *const labels[] = { "device=\"13\"", "device=\"8\"",
		"device=\"12\"", "device=\"9\"" };
	struct ls_series_table *t = ls_series_new();
	int group, again, handle, i;

	ck_assert_ptr_nonnull(t);
	set(config.metadata_address, server.address);
	fake_metadata_v4_256(&server);
	settle();
	ls_place_devices(place, t); /* none yet */
	ck_assert_ptr_null(ls_identity_find(ls_place_identity(place), "chip.0.device"));
	group = ls_series_group(t, "tpu.8431");
	again = ls_series_group(t, "tpu.8432");
	ck_assert(group >= 0 && again >= 0);
	for (i = 0; i < 4; i++) {
		handle = ls_series_add_metric(t, (size_t)group,
			LS_METRIC_CHIP_HBM_TOTAL, labels[i]);
		ls_series_set(t, handle, 34e9);
	}
	handle = ls_series_add_metric(t, (size_t)again, LS_METRIC_CHIP_HBM_TOTAL,
		labels[0]);
	ls_series_set(t, handle, 34e9); /* twice: one device */
	handle = ls_series_add_metric(t, (size_t)again, LS_METRIC_CHIP_HBM_TOTAL,
		"device=\"7x\"");
	ls_series_set(t, handle, 34e9);
	handle = ls_series_add_metric(t, (size_t)again, LS_METRIC_CHIP_HBM_USED,
		"device=\"1\"");
	ls_series_set(t, handle, 34e9);
	ls_series_read(t, (size_t)group, 1000);
	ls_series_read(t, (size_t)again, 1000);
	ls_place_devices(place, t);
	is("chip.0.device", "8", "tpu");
	is("chip.3.device", "13", "tpu");
	ls_series_free(t);
}

LS_TEST(sources, settled_when_all_was_asked_or_time_is_over)
{
	uint64_t now = ls_loop_now(loop);

	open_place();
	ck_assert(ls_place_is_settled(place, now)); /* nobody to ask */
	ls_place_close(place);
	set(config.metadata_address, server.address);
	open_place();
	ck_assert(!ls_place_is_settled(place, now));
	ck_assert(ls_place_is_settled(place, now + LS_PLACE_SETTLE_NS + 1000000000));
	ck_assert_int_eq(ls_place_settle(place), 0);
	ck_assert(ls_place_is_settled(place, now));
}

/* --- workers -------------------------------------------------------------- */

LS_CASE(workers, setup, teardown);

LS_TEST(workers, workers_get_what_their_ring_does_not_say)
{
	struct ls_step_ring ring = { .from = no_from, .env = "", .pid = 41 };
	struct ls_worker_info w = { .chips = 0 };

	two_chips();
	set(config.metadata_address, server.address);
	server.text[LS_METADATA_TPU_ENV] =
		"MEGASCALE_SLICE_ID: '1'\nMEGASCALE_NUM_SLICES: '2'\n";
	settle();
	ls_place_complete(place, &ring, &w);
	ck_assert_str_eq(w.slice, "1");
	ck_assert_int_eq(w.chips, 2);
	(void)snprintf(w.slice, sizeof(w.slice), "mine");
	w.chips = 1;
	ls_place_complete(place, &ring, &w);
	ck_assert_str_eq(w.slice, "mine"); /* the ring's word stands */
	ck_assert_int_eq(w.chips, 1);
	memset(&w, 0, sizeof(w));
	ring.pid = 0;
	ls_place_complete(place, &ring, &w);
	ck_assert_int_eq(w.chips, 0); /* whose process is not visible */
	ring.pid = 1;
	ls_place_complete(place, &ring, &w);
	ck_assert_int_eq(w.chips, 0); /* which holds none */
}

LS_TEST(workers, racks_and_input_shards_are_told)
{
	struct ls_step_ring ring = { .from = no_from,
		.env = "LOCKSTEP_JOB=a\nLOCKSTEP_SHARD=part-00007\nLOCKSTEP_SHARDS=9\n"
		       "MEGASCALE_NUM_SLICES=4\n" };
	struct ls_worker_info w = { .chips = 1 };

	set(config.metadata_address, server.address);
	server.text[LS_METADATA_LABELS] = "cloud.google.com/gke-tpu-slice-4x4x4-id=c17";
	settle();
	ls_place_complete(place, &ring, &w);
	ck_assert_str_eq(w.rack, "c17"); /* its cube */
	ck_assert_str_eq(w.shard, "part-00007");
	ck_assert_int_eq(w.slices, 4);
	ls_place_close(place);
	set(config.rack, "b3-r2");
	settle();
	is("rack", "b3-r2", "config");
	ring.env = "MEGASCALE_NUM_SLICES=4097\nMEGASCALE_NUM_SLICES=2x\n"
		   "LOCKSTEP_SHARD=" /* one byte too long */
		   "0123456789012345678901234567890123456789012345678901234567890123\n";
	memset(&w, 0, sizeof(w));
	ls_place_complete(place, &ring, &w);
	ck_assert_str_eq(w.rack, "b3-r2");
	ck_assert_str_eq(w.shard, "");
	ck_assert_int_eq(w.slices, 0);
}

LS_TEST(workers, single_slice_needs_no_name)
{
	struct ls_step_ring ring = { .from = no_from, .env = "" };
	struct ls_worker_info w = { .chips = 0 };

	set(config.metadata_address, server.address);
	server.text[LS_METADATA_TPU_ENV] =
		"MEGASCALE_SLICE_ID: '0'\nMEGASCALE_NUM_SLICES: '1'\n";
	settle();
	is("slice", "0", "tpu-env");
	ls_place_complete(place, &ring, &w);
	ck_assert_str_eq(w.slice, "");
	ls_place_close(place);
	set(config.slice, "blue");
	settle();
	ls_place_complete(place, &ring, &w);
	ck_assert_str_eq(w.slice, "blue"); /* somebody wants it so */
}

/* Two jobs on a host: one of two slices, one that says nothing of slices. */
LS_TEST(workers, slice_of_a_ring_is_not_that_of_another_job)
{
	static const uint8_t kernel[16];
	static const char env[] = "MEGASCALE_NUM_SLICES=2\n";
	struct ls_step_ring other = { .from = no_from, .env = "" };
	struct ls_worker_info w = { .chips = 0 };
	struct ls_source_step *steps;
	struct step_ring ring;

	set(config.metadata_address, "off");
	step_ring_make(&ring, config.steps_dir, "a.ring", 7, 16);
	step_ring_poke(&ring, 96 + 5, LS_RING_FROM_MEGASCALE, 1);
	step_ring_poke(&ring, 232, '1', 2);
	for (size_t i = 0; i < sizeof(env); i++)
		step_ring_poke(&ring, LS_RING_ENV_OFFSET + i, (uint8_t)env[i], 1);
	step_ring_lock(&ring);
	ck_assert_int_eq(ls_source_step_new(config.steps_dir, kernel, NULL, &steps), 0);
	ls_source_step_read(steps, 1000);
	settle();
	ls_place_read(place, steps, 1000);
	is("slice", "1", "ring");
	is("slices", "2", "ring");
	ls_place_complete(place, &other, &w);
	ck_assert_str_eq(w.slice, "");
	ls_source_step_free(steps);
	step_ring_fini(&ring);
}

/* --- what is shown -------------------------------------------------------- */

LS_CASE(shown, setup, teardown);

LS_TEST(shown, once_shows_chips_and_identity)
{
	json_t *o, *chip, *node;

	two_chips();
	set(config.metadata_address, "off");
	set(config.topology, "2x4");
	tree_write(root, "proc/sys/kernel/random/boot_id",
		"01234567-89ab-cdef-0123-456789abcdef\n");
	ck_assert_int_eq(ls_agent_once(&config, &o), 0);
	ck_assert_str_eq(
		json_string_value(json_object_get(
			json_object_get(json_object_get(o, "identity"), "topology"),
			"source")),
		"config");
	ck_assert_uint_eq(json_array_size(json_object_get(o, "chips")), 2);
	chip = json_array_get(json_object_get(o, "chips"), 1);
	ck_assert_str_eq(json_string_value(json_object_get(chip, "pci")), "0000:00:06");
	ck_assert_str_eq(json_string_value(json_object_get(chip, "generation")), "v5e");
	node = json_array_get(json_object_get(chip, "nodes"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(node, "path")), "vfio/10");
	ck_assert(json_is_true(json_object_get(node, "here")));
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(node, "owner"), "command")),
		"python3");
	json_decref(o);
}

LS_TEST(shown, options_that_make_no_sense_are_told)
{
	ck_assert_ptr_null(ls_place_check(&config));
	set(config.worker_id, "w3");
	ck_assert_ptr_nonnull(strstr(ls_place_check(&config), "--worker-id"));
	set(config.worker_id, "3");
	set(config.topology, "4by4");
	ck_assert_ptr_nonnull(strstr(ls_place_check(&config), "--topology"));
	set(config.topology, "");
	set(config.job, "a\nb");
	ck_assert_ptr_nonnull(strstr(ls_place_check(&config), "--job"));
	set(config.job, "a b");
	set(config.slice, "\x1b[1m");
	ck_assert_ptr_nonnull(strstr(ls_place_check(&config), "--slice"));
	set(config.slice, "");
	set(config.metadata_address, "metadata.google.internal");
	ck_assert_ptr_nonnull(strstr(ls_place_check(&config), "--metadata-address"));
	set(config.metadata_address, "127.0.0.1:80");
	ck_assert_ptr_null(ls_place_check(&config));
}
