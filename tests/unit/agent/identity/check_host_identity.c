/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/identity.h"
#include "agent/identity/identity_state.h"

#include <stdio.h>
#include <string.h>
#include "proto/base/text.h"
#include "tests/support/fake_tpu.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

static struct ls_identity *id;
static struct ls_worker_info info;
static uint8_t from[8];
static struct ls_doctor doctor;

static void
setup(void)
{
	id = ls_identity_new();
	ck_assert_ptr_nonnull(id);
	memset(&info, 0, sizeof(info));
	memset(from, 0, sizeof(from));
}

static void
teardown(void)
{
	ls_identity_free(id);
	ls_identity_free(NULL);
}

/* The field has this value, from this source. */
static void
is(const char *key, const char *value, const char *source)
{
	const char *have;

	(void)ls_identity_settle(id);
	have = ls_identity_find(id, key);
	ck_assert_msg(have != NULL, "%s is not known", key);
	ck_assert_str_eq(have, value);
	ck_assert_str_eq(ls_identity_source_name(ls_identity_winner(id, key)->source),
		source);
}

static void
is_unknown(const char *key)
{
	(void)ls_identity_settle(id);
	ck_assert_ptr_null(ls_identity_find(id, key));
}

static void
metadata(enum ls_metadata_item item, const char *text)
{
	ls_identity_metadata(id, item, text, text != NULL ? strlen(text) : 0);
}

static void
ring(const char *env)
{
	const struct ls_identity_ring r = { &info, from, env };

	ls_identity_rings(id, &r, 1);
}

/* The check on this subject; NULL if there is none. */
static const struct ls_doctor_check *
told(const char *subject)
{
	size_t i;

	(void)ls_identity_settle(id);
	memset(&doctor, 0, sizeof(doctor));
	ls_identity_tell(id, &doctor);
	for (i = 0; i < doctor.count; i++) {
		if (strcmp(doctor.check[i].subject, subject) == 0)
			return &doctor.check[i];
	}
	return NULL;
}

/* --- sources -------------------------------------------------------------- */

LS_CASE(sources, setup, teardown);

LS_TEST(sources, tpu_env_says_what_a_slice_is)
{
	metadata(LS_METADATA_TPU_ENV,
		"ACCELERATOR_TYPE: 'v4-256'\nTYPE: 'V4'\nTOPOLOGY: '4x4x8'\n"
		"CHIPS_PER_HOST_BOUNDS: '2,2,1'\nHOST_BOUNDS: '2,2,8'\nWORKER_ID: '3'\n"
		"NODE_ID: 'my-tpu'\nZONE: 'us-central2-b'\nWRAP: 'true,true,true'\n"
		"TPU_RUNTIME_METRICS_PORTS: '8431,8432'\nCONSUMER_PROJECT_ID: 'secret'\n");
	is("accelerator_type", "v4-256", "tpu-env");
	is("generation", "v4", "tpu-env");
	is("topology", "4x4x8", "tpu-env");
	is("worker", "3", "tpu-env");
	is("workers", "32", "derived");
	is("global_worker", "3", "derived");
	is("chips", "4", "derived");
	is("node_id", "my-tpu", "tpu-env");
	is("metrics_ports", "8431,8432", "tpu-env");
	ck_assert_ptr_null(told("conflict: generation"));
	metadata(LS_METADATA_TPU_ENV, NULL); /* no longer there */
	is_unknown("topology");
	is_unknown("workers");
}

LS_TEST(sources, metadata_items_are_fields)
{
	metadata(LS_METADATA_ID, "123\n");
	metadata(LS_METADATA_ZONE, "projects/1/zones/us-east1-d");
	metadata(LS_METADATA_WORKER, "2");
	metadata(LS_METADATA_ENDPOINTS,
		"a:0:10.0.0.1,b:1:10.0.0.2,c:2:10.0.0.3,d:3:10.0.0.4");
	metadata(LS_METADATA_ACCELERATOR, "v5litepod-16");
	metadata(LS_METADATA_SUBSLICES, "{\"4x4\": \"h1\", \"8x8\": \"h2\"}");
	is("instance_id", "123", "metadata");
	is("zone", "us-east1-d", "metadata");
	is("worker", "2", "metadata");
	is("workers", "4", "metadata");
	is("endpoint", "c:2:10.0.0.3", "metadata");
	is("generation", "v5e", "derived");
	is("subslice.4x4", "h1", "metadata");
	is("subslice.8x8", "h2", "metadata");
	metadata(LS_METADATA_WORKER, "9");
	metadata(LS_METADATA_ENDPOINTS, "a,b");
	is_unknown("endpoint"); /* there is no tenth */
}

static const char *const no_topology[] = { "4", "4x", "x4", "4x4x4x4", "4x4x", "0x4",
	"4x-1", "1025x2", "99999999999x2", "4,4", "4x4 ", "4x 4" };

LS_TEST_EACH(sources, topology_is_two_or_three_sides, no_topology)
{
	ck_assert(!ls_identity_is_valid(LS_IDENTITY_TOPOLOGY, no_topology[_i]));
	ck_assert(ls_identity_is_valid(LS_IDENTITY_TOPOLOGY, "8x16"));
	ck_assert(ls_identity_is_valid(LS_IDENTITY_TOPOLOGY, "1024x4x8"));
	ck_assert(!ls_identity_is_valid(LS_IDENTITY_CHIP_BOUNDS, "2x2"));
	ck_assert(!ls_identity_is_valid(LS_IDENTITY_CHIP_BOUNDS, "2,2,1,1"));
}

LS_TEST(sources, bounds_give_numbers)
{
	metadata(LS_METADATA_TPU_ENV,
		"HOST_BOUNDS: '2,4'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'\n");
	is("workers", "8", "derived");
	is("chips", "4", "derived");
}

LS_TEST(sources, node_labels_are_fields)
{
	metadata(LS_METADATA_LABELS,
		"cloud.google.com/gke-tpu-accelerator=tpu-v5-lite-podslice,"
		"cloud.google.com/gke-tpu-topology=4x4,cloud.google.com/gke-accelerator-count=4,"
		"cloud.google.com/gke-tpu-slice-4x4-id=abc,"
		"gke-tpu-slice-evil-id=x,gke-tpu-slice--id=y,topology.kubernetes.io/zone=z,other=1");
	is("generation", "v5e", "label");
	is("topology", "4x4", "label");
	is("chips", "4", "label");
	is("zone", "z", "label");
	is("subslice.4x4", "abc", "label");
	is_unknown("subslice.evil");
	is_unknown("subslice.");
}

LS_TEST(sources, labels_file_is_a_source)
{
	static const char text[] = "jobset.sigs.k8s.io/jobset-name=\"train\"\n"
				   "jobset.sigs.k8s.io/job-index=\"1\"\n"
				   "jobset.sigs.k8s.io/replicatedjob-replicas=\"2\"\n"
				   "batch.kubernetes.io/job-completion-index=\"3\"\n";

	ls_identity_labels(id, text, sizeof(text) - 1);
	is("job", "train", "labels-file");
	is("jobset", "train", "labels-file");
	is("slice", "1", "labels-file");
	is("slices", "2", "labels-file");
	is("worker", "3", "labels-file");
	is_unknown("global_worker"); /* how many hosts a slice has is not known */
	metadata(LS_METADATA_TPU_ENV, "HOST_BOUNDS: '2,2,1'\n");
	is("global_worker", "7", "derived");
	ls_identity_labels(id, NULL, 0);
	is_unknown("job");
}

/* JobSet with two replicated jobs of two slices: job-index starts at 0 in each. */
LS_TEST(sources, global_index_of_a_jobset_wins_in_any_order)
{
	static const char text[] = "jobset.sigs.k8s.io/job-index=\"1\"\n"
				   "jobset.sigs.k8s.io/replicatedjob-replicas=\"2\"\n"
				   "jobset.sigs.k8s.io/job-global-index=\"3\"\n"
				   "jobset.sigs.k8s.io/global-replicas=\"4\"\n";

	ls_identity_labels(id, text, sizeof(text) - 1);
	is("slice", "3", "labels-file");
	is("slices", "4", "labels-file");
	metadata(LS_METADATA_LABELS,
		"jobset.sigs.k8s.io/job-global-index=2,jobset.sigs.k8s.io/job-index=0");
	is("slice", "2", "label");
}

LS_TEST(sources, rings_say_what_their_job_knows)
{
	(void)snprintf(info.job, sizeof(info.job), "train");
	(void)snprintf(info.slice, sizeof(info.slice), "0");
	from[0] = LS_RING_FROM_JOBSET;
	from[5] = LS_RING_FROM_MEGASCALE;
	ring("JOBSET_NAME=other\nMEGASCALE_SLICE_ID=5\nMEGASCALE_NUM_SLICES=2\nTPU_WORKER_ID=1\n"
	     "TPU_WORKER_HOSTNAMES=a,b,c,d\nTPU_TOPOLOGY=2x2x4\nRANK=9\n");
	is("job", "train", "ring");
	is("jobset", "other", "ring");
	is("slice", "0", "ring"); /* the header, not the variable */
	is("slices", "2", "ring");
	is("worker", "1", "ring");
	is("workers", "4", "ring");
	is("topology", "2x2x4", "ring");
	from[0] = LS_RING_FROM_DEFAULT;
	ring("");
	is_unknown("job"); /* a default names nothing */
	ls_identity_rings(id, NULL, 0);
	is_unknown("slice");
}

LS_TEST(sources, stalled_cores_are_fields_until_they_are_gone)
{
	ls_identity_stall(id, 0, "core 3");
	ls_identity_stall(id, 1, "core 4");
	ls_identity_stall(id, 0, "core 5");
	ck_assert_str_eq(ls_identity_find(id, "stall.0"), "core 5");
	ck_assert_str_eq(ls_identity_find(id, "stall.1"), "core 4");
	ls_identity_stall(id, 1, "");
	ck_assert_ptr_null(ls_identity_find(id, "stall.1"));
}

LS_TEST(sources, jobs_that_differ_are_not_the_host)
{
	struct ls_worker_info other = { .job = "b" };
	struct ls_identity_ring rings[] = {
		{ &info, from, "TPU_WORKER_ID=1\nTPU_TOPOLOGY=4x4\n" },
		{ &other, from, "TPU_WORKER_ID=2\nTPU_TOPOLOGY=4x4\n" }
	};

	(void)snprintf(info.job, sizeof(info.job), "a");
	from[0] = LS_RING_FROM_API;
	ls_identity_rings(id, rings, 2);
	is_unknown("job");
	is_unknown("worker");
	is("topology", "4x4", "ring"); /* on this they agree */
	ck_assert_ptr_nonnull(told("several: job"));
	metadata(LS_METADATA_WORKER, "7");
	is("worker", "7", "metadata");
}

LS_TEST(sources, environment_is_whitelisted)
{
	static const char text[] =
		"TPU_WORKER_ID=4\0MEGASCALE_NUM_SLICES=2\0JOBSET_NAME=js\0"
		"ZONE=z\0AWS_SECRET=x\0TPU_SECRET=y\0TYPE=V4\0";
	struct ls_wire_identity fields[LS_IDENTITY_FIELDS_MAX];

	ls_identity_environ_begin(id);
	ls_identity_environ_add(id, text, sizeof(text) - 1);
	is("worker", "4", "environment");
	is("slices", "2", "environment");
	is("job", "js", "environment");
	is_unknown("zone");
	is_unknown("generation");
	ck_assert_uint_eq(ls_identity_fields(id, fields, LS_IDENTITY_FIELDS_MAX), 4);
	ls_identity_environ_begin(id);
	is_unknown("worker");
}

/* --- order and conflicts -------------------------------------------------- */

LS_CASE(order, setup, teardown);

LS_TEST(order, sources_win_in_their_order)
{
	static const char file[] = "cloud.google.com/gke-tpu-topology=\"1x2\"";

	ls_identity_labels(id, file, sizeof(file) - 1);
	is("topology", "1x2", "labels-file");
	metadata(LS_METADATA_LABELS, "cloud.google.com/gke-tpu-topology=1x3");
	is("topology", "1x3", "label");
	metadata(LS_METADATA_TPU_ENV, "TOPOLOGY: '1x4'");
	is("topology", "1x4", "tpu-env");
	ls_identity_environ_add(id, "TPU_TOPOLOGY=1x5", 16);
	is("topology", "1x5", "environment");
	ring("TPU_TOPOLOGY=1x6\n");
	is("topology", "1x6", "ring");
	ls_identity_set(id, LS_IDENTITY_TOPOLOGY, LS_IDENTITY_FROM_CONFIG, "1x7");
	is("topology", "1x7", "config");
	ls_identity_set(id, LS_IDENTITY_TOPOLOGY, LS_IDENTITY_FROM_CONFIG, "");
	is("topology", "1x6", "ring");
}

LS_TEST(order, conflicts_stay_visible)
{
	const struct ls_doctor_check *c;
	json_t *o, *field;

	ring("TPU_TOPOLOGY=4x4\n");
	metadata(LS_METADATA_TPU_ENV, "TOPOLOGY: '4x8'\nZONE: 'z'\n");
	is("topology", "4x4", "ring");
	c = told("conflict: topology");
	ck_assert_ptr_nonnull(c);
	ck_assert_int_eq((int)c->status, LS_DOCTOR_WARN);
	ck_assert_str_eq(c->why,
		"ring says \"4x4\", tpu-env says \"4x8\"; the first is used");
	ck_assert_ptr_nonnull(strstr(c->fix, "--topology"));
	ck_assert_ptr_null(told("conflict: zone"));
	o = ls_identity_json(id);
	field = json_object_get(o, "topology");
	ck_assert_str_eq(json_string_value(json_object_get(field, "value")), "4x4");
	field = json_array_get(json_object_get(field, "others"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(field, "value")), "4x8");
	ck_assert_str_eq(json_string_value(json_object_get(field, "source")),
		"tpu-env");
	ck_assert_ptr_null(json_object_get(json_object_get(o, "zone"), "others"));
	json_decref(o);
}

LS_TEST(order, one_thing_written_in_two_ways_is_no_conflict)
{
	ring("TPU_CHIPS_PER_HOST_BOUNDS=2,2\nTPU_WORKER_ID=03\n");
	metadata(LS_METADATA_TPU_ENV,
		"CHIPS_PER_HOST_BOUNDS: '2,2,1'\nWORKER_ID: '3'\n");
	is("chips_per_host_bounds", "2,2,1", "ring");
	is("worker", "3", "ring");
	ck_assert_ptr_null(told("conflict: chips_per_host_bounds"));
	ck_assert_ptr_null(told("conflict: worker"));
}

LS_TEST(order, changes_are_counted)
{
	uint64_t before;

	ls_identity_set(id, LS_IDENTITY_HOST, LS_IDENTITY_FROM_MACHINE, "h");
	ck_assert(ls_identity_settle(id));
	before = ls_identity_changes(id);
	ck_assert(!ls_identity_settle(id));
	metadata(LS_METADATA_TPU_ENV, "TOPOLOGY: '4x4'\nZONE: 'z'");
	ck_assert(ls_identity_settle(id));
	metadata(LS_METADATA_TPU_ENV, "ZONE: 'z'\nTOPOLOGY: '4x4'");
	ck_assert(!ls_identity_settle(id)); /* the same in another order */
	metadata(LS_METADATA_LABELS, "cloud.google.com/gke-tpu-topology=8x8");
	ck_assert(!ls_identity_settle(id)); /* it does not win */
	metadata(LS_METADATA_TPU_ENV, NULL);
	ck_assert(ls_identity_settle(id));
	ck_assert_uint_eq(ls_identity_changes(id), before + 2);
}

/* --- chips ---------------------------------------------------------------- */

static void
chips_of(unsigned device, unsigned functions)
{
	char root[256], path[3][300], function[32];
	struct ls_chips *chips;
	unsigned i, k;

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	for (i = 0; i < 4; i++) {
		for (k = 0; k < functions; k++) {
			(void)snprintf(function, sizeof(function), "0000:00:%02x.%u",
				4 + i, k);
			fake_tpu_function(root, function, device, 0, (int)i / 2,
				(int)(20 + functions * i + k));
		}
	}
	(void)snprintf(path[0], sizeof(path[0]), "%s/proc", root);
	(void)snprintf(path[1], sizeof(path[1]), "%s/sys", root);
	(void)snprintf(path[2], sizeof(path[2]), "%s/dev", root);
	ck_assert_int_eq(ls_chips_new(path[0], path[1], path[2], &chips), 0);
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ls_identity_chips(id, chips);
	ls_chips_free(chips);
}

LS_CASE(chips, setup, teardown);

LS_TEST(chips, chips_have_device_ids)
{
	const uint64_t devices[] = { 413, 404, 412, 405 };

	chips_of(0x0062, 1);
	is("chips", "4", "sysfs");
	is("generation", "v5p", "sysfs");
	is("chip.3.pci", "0000:00:07", "sysfs");
	is("chip.3.node", "vfio/23", "sysfs");
	is("chip.3.numa", "1", "sysfs");
	ls_identity_devices(id, devices, 4);
	is("chip.1.device", "405", "tpu");
	ck_assert_int_eq((int)told("devices")->status, LS_DOCTOR_OK);
	ls_identity_devices(id, devices, 0);
	is_unknown("chip.0.device");
}

LS_TEST(chips, two_devices_of_a_chip)
{
	const uint64_t devices[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	chips_of(0x0076, 2);
	metadata(LS_METADATA_TPU_ENV,
		"TOPOLOGY: '2x2x4'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'\n");
	ls_identity_devices(id, devices, 8);
	is("generation", "7x", "sysfs");
	is("chip.0.node", "vfio/20,vfio/21", "sysfs");
	is("chip.3.device", "6,7", "tpu");
}

LS_TEST(chips, devices_that_do_not_fit_the_chips_are_not_joined)
{
	const uint64_t devices[] = { 0, 1, 2 };
	uint64_t many[LS_CHIPS_MAX * 2 + 1] = { 0 };

	chips_of(0x0063, 1);
	ls_identity_devices(id, devices, 3);
	is_unknown("chip.0.device");
	ck_assert_int_eq((int)told("devices")->status, LS_DOCTOR_WARN);
	ls_identity_devices(id, many, sizeof(many) / sizeof(many[0]));
	ck_assert_ptr_null(told("devices")); /* nothing believed */
}

LS_TEST(chips, unknown_chips_keep_their_name)
{
	chips_of(0x0099, 1);
	is("generation", "tpu-unknown(0x0099)", "sysfs");
	is("chips", "4", "sysfs");
}

/* --- hostile values and hints --------------------------------------------- */

LS_CASE(hostile, setup, teardown);

LS_TEST(hostile, hostile_values_stay_data)
{
	struct ls_wire_identity fields[LS_IDENTITY_FIELDS_MAX];
	char text[2 * LS_IDENTITY_VALUE_MAX_BYTES] = "NODE_ID: '";
	size_t n, i;
	json_t *o;

	metadata(LS_METADATA_TPU_ENV,
		"NODE_ID: '\033]0;x\007\xff'\nZONE: '<script>'\n"
		"TOPOLOGY: '4x4;rm'\nWORKER_ID: '-1'\nTYPE: '\033[2J'\n");
	is("node_id", "\\x1b]0;x\\x07\\xff", "tpu-env");
	is("zone", "<script>", "tpu-env");
	is_unknown("topology");
	is_unknown("worker");
	ck_assert_ptr_nonnull(told("not valid: topology"));
	ck_assert_ptr_nonnull(strstr(told("not valid: generation")->why, "\\x1b[2J"));
	o = ls_identity_json(id);
	ck_assert_ptr_nonnull(o);
	json_decref(o);
	n = ls_identity_fields(id, fields, LS_IDENTITY_FIELDS_MAX);
	for (i = 0; i < n; i++)
		ck_assert(ls_text_is_name(fields[i].value, strlen(fields[i].value),
			sizeof(fields[i].value) - 1));
	memset(text + strlen(text), 'y', sizeof(text) - strlen(text) - 1);
	metadata(LS_METADATA_TPU_ENV, text);
	(void)ls_identity_settle(id);
	ck_assert_uint_eq(strlen(ls_identity_get(id, LS_IDENTITY_NODE_ID)),
		LS_IDENTITY_VALUE_MAX_BYTES - 1);
}

LS_TEST(hostile, senseless_texts_are_told)
{
	metadata(LS_METADATA_TPU_ENV, "\001\002 no line");
	ck_assert_ptr_nonnull(told("not valid: tpu-env"));
	metadata(LS_METADATA_LABELS, "nothing");
	ck_assert_ptr_nonnull(told("not valid: kube-labels"));
	metadata(LS_METADATA_SUBSLICES, "{\"4x4\": 7, \"a\": \"b\"");
	ck_assert_ptr_nonnull(told("not valid: subslice"));
	metadata(LS_METADATA_SUBSLICES, "{\"4x4\": 7}");
	ck_assert_ptr_nonnull(told("not valid: subslice"));
	metadata(LS_METADATA_SUBSLICES, "[]");
	ck_assert_ptr_nonnull(told("not valid: subslice"));
	ls_identity_labels(id, "bare", 4);
	ck_assert_ptr_nonnull(told("not valid: labels"));
	metadata(LS_METADATA_WORKER, "99999999999");
	is_unknown("worker");
}

LS_TEST(hostile, offers_have_a_maximum)
{
	char text[16384] = "{";
	size_t used = 1;
	int i;

	for (i = 0; i < 600; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s\"%dx1\":\"v\"", i > 0 ? "," : "", i);
	(void)snprintf(text + used, sizeof(text) - used, "}");
	metadata(LS_METADATA_SUBSLICES, text);
	ck_assert_ptr_nonnull(told("limit"));
	is("subslice.0x1", "v", "metadata");
}

LS_TEST(hostile, fields_fit_what_is_given)
{
	struct ls_wire_identity fields[2];

	metadata(LS_METADATA_TPU_ENV, "ZONE: 'z'\nTOPOLOGY: '4x4'\nNODE_ID: 'n'\n");
	ls_identity_set(id, LS_IDENTITY_HOST, LS_IDENTITY_FROM_MACHINE, "h");
	(void)ls_identity_settle(id);
	ck_assert_uint_eq(ls_identity_fields(id, fields, 2), 2);
	ck_assert_str_eq(fields[0].key, "host");
	ck_assert_str_eq(fields[0].source, "machine");
	ck_assert_str_eq(fields[1].key, "topology");
}

LS_TEST(hostile, what_hides_a_tpu_is_told)
{
	ring("TPU_RUNTIME_METRICS_PORTS=\nTPU_PROCESS_ADDRESSES=local\nTPU_SKIP_MDS_QUERY=true\n");
	is("metrics_ports", "", "ring");
	ck_assert_ptr_nonnull(strstr(told("TPU_RUNTIME_METRICS_PORTS")->fix, "8431"));
	ck_assert_ptr_nonnull(told("TPU_PROCESS_ADDRESSES"));
	ck_assert_ptr_nonnull(told("TPU_SKIP_MDS_QUERY"));
	ring("TPU_RUNTIME_METRICS_PORTS=8431\nTPU_PROCESS_ADDRESSES=a:8471\n"
	     "TPU_SKIP_MDS_QUERY=true\nTPU_WORKER_ID=0\n");
	ck_assert_ptr_null(told("TPU_RUNTIME_METRICS_PORTS"));
	ck_assert_ptr_null(told("TPU_PROCESS_ADDRESSES"));
	ck_assert_ptr_null(told("TPU_SKIP_MDS_QUERY"));
}

LS_TEST(hostile, options_are_checked)
{
	ck_assert(ls_identity_is_valid(LS_IDENTITY_WORKER, ""));
	ck_assert(ls_identity_is_valid(LS_IDENTITY_WORKER, "12"));
	ck_assert(!ls_identity_is_valid(LS_IDENTITY_WORKER, "w1"));
	ck_assert(ls_identity_is_valid(LS_IDENTITY_TOPOLOGY, "4x4x8"));
	ck_assert(!ls_identity_is_valid(LS_IDENTITY_TOPOLOGY, "big"));
}
