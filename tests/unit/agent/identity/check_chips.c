/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/chips.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/support/fake_tpu.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define MANY 1000000

static char root[256];
static struct ls_chips *chips;
static struct ls_doctor doctor;

static void
setup(void)
{
	char proc[300], sys[300], dev[300];

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	tree_write(root, "sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n");
	tree_write(root, "proc/self/comm", "x\n");
	tree_write(root, "dev/null", "");
	(void)snprintf(proc, sizeof(proc), "%s/proc", root);
	(void)snprintf(sys, sizeof(sys), "%s/sys", root);
	(void)snprintf(dev, sizeof(dev), "%s/dev", root);
	ck_assert_int_eq(ls_chips_new(proc, sys, dev, &chips), 0);
	memset(&doctor, 0, sizeof(doctor));
}

static void
teardown(void)
{
	ls_chips_free(chips);
	ls_chips_free(NULL);
}

static const struct ls_chip *
chip(size_t i)
{
	const struct ls_chip *c = ls_chips_get(chips, i);

	ck_assert_ptr_nonnull(c);
	return c;
}

/* True if the doctor says this, with this status. */
static bool
told(enum ls_doctor_status status, const char *why)
{
	size_t i;

	memset(&doctor, 0, sizeof(doctor));
	ls_chips_tell(chips, &doctor);
	for (i = 0; i < doctor.count; i++) {
		if (doctor.check[i].status == status &&
			strstr(doctor.check[i].why, why) != NULL)
			return true;
	}
	return false;
}

static const struct {
	unsigned device, subsystem;
	const char *name;
	bool accel;
} generations[] = { { 0x0027, 0x004e, "v2", true }, { 0x0027, 0x004f, "v3", true },
	{ 0x0056, 0, "plc", false }, { 0x005e, 0, "v4", true },
	{ 0x0062, 0, "v5p", false }, { 0x0063, 0, "v5e", false },
	{ 0x006f, 0, "v6e", false }, { 0x0076, 0, "7x", false },
	{ 0x0083, 0, "tpu8i", false }, { 0x007c, 0, "tpu8t", false } };

LS_CASE(chips, setup, teardown);

LS_TEST_EACH(chips, every_generation_is_found_with_its_nodes, generations)
{
	char function[32], node[32];
	int i;

	for (i = 0; i < 4; i++) {
		(void)snprintf(function, sizeof(function), "0000:00:%02x.0", 5 + i);
		fake_tpu_function(root, function, generations[_i].device,
			generations[_i].subsystem, i / 2, 8 + i);
		(void)snprintf(node, sizeof(node),
			generations[_i].accel ? "accel%d" : "vfio/%d",
			generations[_i].accel ? i : 8 + i);
		fake_tpu_node(root, node);
	}
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_uint_eq(ls_chips_count(chips), 4);
	ck_assert_ptr_null(ls_chips_get(chips, 4));
	for (i = 0; i < 4; i++) {
		ck_assert_str_eq(chip((size_t)i)->name, generations[_i].name);
		ck_assert_int_eq(chip((size_t)i)->numa_node, i / 2);
		ck_assert_uint_eq(chip((size_t)i)->node_count, 1);
		ck_assert(chip((size_t)i)->node[0].here);
	}
	/* 10 and 11 after 8 and 9: numbers, not letters. */
	ck_assert_str_eq(chip(3)->node[0].path, node);
	ck_assert_str_eq(chip(3)->pci, "0000:00:08");
}

LS_TEST(chips, functions_of_a_slot_are_one_chip)
{
	fake_tpu_function(root, "0001:00:05.1", 0x0076, 0, 1, 12);
	fake_tpu_function(root, "0001:00:05.0", 0x0076, 0, 1, 11);
	fake_tpu_function(root, "0000:00:05.0", 0x0076, 0, 0, 2);
	fake_tpu_function(root, "0000:00:05.1", 0x0076, 0, 0, 2);
	fake_tpu_node(root, "vfio/11");
	fake_tpu_node(root, "vfio/12");
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_uint_eq(ls_chips_count(chips), 2);
	ck_assert_uint_eq(chip(0)->functions, 2);
	ck_assert_uint_eq(chip(0)->node_count, 1); /* one group for both */
	ck_assert(!chip(0)->node[0].here);
	ck_assert_str_eq(chip(1)->pci, "0001:00:05");
	ck_assert_uint_eq(chip(1)->node_count, 2);
	ck_assert_str_eq(chip(1)->node[0].path, "vfio/11");
	ck_assert_str_eq(chip(1)->node[1].path, "vfio/12");
	ck_assert(told(LS_DOCTOR_WARN,
		"1 of 2 TPU chips lack a device node in /dev: 0000:00:05"));
}

LS_TEST(chips, unknown_ids_survive_and_other_devices_are_no_chips)
{
	fake_tpu_function(root, "0000:00:04.0", 0x0042, 0, 0, 1); /* gVNIC */
	fake_tpu_function(root, "0000:00:06.0", 0x001f, 0, 0, 2); /* a disk */
	tree_write(root, "sys/bus/pci/devices/0000:00:06.0/class", "0x010802\n");
	fake_tpu_function(root, "0000:00:05.0", 0x0099, 0, -1, 3);
	tree_write(root, "sys/bus/pci/devices/0000:00:05.0/class", "0x120000\n");
	fake_tpu_function(root, "0000:00:07.0", 0x0027, 0x7777, 0, -1);
	fake_tpu_node(root, "vfio/3");
	fake_tpu_node(root, "accel0");
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_uint_eq(ls_chips_count(chips), 2);
	ck_assert_str_eq(chip(0)->name, "tpu-unknown(0x0099)");
	ck_assert_int_lt(chip(0)->generation, 0);
	ck_assert_int_lt(chip(0)->numa_node, 0);
	ck_assert_str_eq(chip(0)->node[0].path, "vfio/3");
	ck_assert_str_eq(chip(1)->name, "tpu-unknown(0x0027)");
	ck_assert_str_eq(chip(1)->node[0].path, "accel0");
	ck_assert(told(LS_DOCTOR_WARN, "PCI id 1ae0:0099 is not known"));
	fake_tpu_function(root, "0000:00:08.0", 0x0099, 0, -1, 4);
	fake_tpu_node(root, "vfio/4");
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert(told(LS_DOCTOR_WARN,
		"PCI id 1ae0:0099 is not known to this agent (2 of 3 chips)"));
	ck_assert_uint_eq(ls_doctor_count(&doctor, LS_DOCTOR_WARN), 2);
}

LS_TEST(chips, chips_without_driver_are_one_warning)
{
	char function[80];

	for (int i = 0; i < 8; i++) {
		(void)snprintf(function, sizeof(function), "0000:00:%02x.0", 4 + i);
		fake_tpu_function(root, function, 0x006f, 0, 0, -1);
	}
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert(told(LS_DOCTOR_WARN, "no driver is bound to 8 of 8 TPU chips"));
	ck_assert_uint_eq(doctor.count, 1);
	ck_assert_ptr_null(strstr(doctor.check[0].fix, "container"));
	/* a driver has them: then it is /dev that does not show them */
	for (int i = 0; i < 8; i++) {
		(void)snprintf(function, sizeof(function),
			"sys/bus/pci/devices/0000:00:%02x.0/driver", 4 + i);
		tree_link(root, function, "../../../../bus/pci/drivers/vfio-pci");
	}
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert(told(LS_DOCTOR_WARN, "8 of 8 TPU chips lack a device node in /dev"));
	ck_assert_uint_eq(doctor.count, 1);
	ck_assert_ptr_nonnull(strstr(doctor.check[0].fix, "container"));
}

LS_TEST(chips, missing_nodes_are_one_warning_and_nodes_of_others_are_none)
{
	fake_tpu_function(root, "0000:00:04.0", 0x005e, 0, 0, -1);
	fake_tpu_function(root, "0000:00:05.0", 0x005e, 0, 0, -1);
	tree_link(root, "sys/bus/pci/devices/0000:00:05.0/driver", "../drivers/accel");
	fake_tpu_node(root, "accel0");
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert(told(LS_DOCTOR_WARN, "1 of 2 TPU chips lack a device node"));
	fake_tpu_node(root, "accel1");
	ls_chips_check_nodes(chips);
	ck_assert(!told(LS_DOCTOR_WARN, ""));
	fake_tpu_node(root, "accel2"); /* another maker's */
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert(!told(LS_DOCTOR_WARN, ""));
}

LS_TEST(chips, hosts_without_chips_are_healthy)
{
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_uint_eq(ls_chips_count(chips), 0);
	ck_assert(told(LS_DOCTOR_NONE, "no TPU on the PCI bus"));
	ck_assert(ls_chips_find_owners(chips, 0)); /* nothing to look for */
}

LS_TEST(chips, sys_that_cannot_be_listed_is_said)
{
	struct ls_chips *c;

	ck_assert_int_eq(ls_chips_new("/proc", root, "/dev", &c), 0);
	ck_assert_int_eq(ls_chips_find(c), -ENOENT);
	ls_chips_tell(c, &doctor);
	ck_assert_int_eq((int)doctor.check[0].status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(strstr(doctor.check[0].fix, "--sys-root"));
	ls_chips_free(c);
}

LS_TEST(chips, senseless_files_are_no_chips)
{
	tree_write(root, "sys/bus/pci/devices/0000:00:02.0/vendor", "0x1ae0\n");
	tree_write(root, "sys/bus/pci/devices/0000:00:03.0/vendor", "0x1ae0\n");
	tree_write(root, "sys/bus/pci/devices/0000:00:03.0/device", "-5\n");
	tree_write(root, "sys/bus/pci/devices/0000:00:04.0/vendor",
		"0x1ae0 and more\n");
	tree_write(root, "sys/bus/pci/devices/..:x.0/vendor", "0x1ae0\n");
	tree_write(root, "sys/bus/pci/devices/..:x.0/device", "0x0063\n");
	fake_tpu_function(root, "0000:00:05.0", 0x0063, 0, 0, -1);
	tree_link(root, "sys/bus/pci/devices/0000:00:05.0/iommu_group",
		"../groups/seven");
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_uint_eq(ls_chips_count(chips), 1);
	ck_assert_uint_eq(chip(0)->node_count, 0);
}

LS_TEST(chips, too_many_chips_are_counted)
{
	char function[32];
	int i;

	for (i = 0; i < LS_CHIPS_MAX + 2; i++) {
		(void)snprintf(function, sizeof(function), "0000:%02x:00.0", i);
		fake_tpu_function(root, function, 0x0063, 0, 0, -1);
	}
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_uint_eq(ls_chips_count(chips), LS_CHIPS_MAX);
	ck_assert(told(LS_DOCTOR_WARN, "2 PCI functions beyond the first"));
}

/* Two chips v5e, vfio/9 and vfio/10. */
static void
two_chips(void)
{
	fake_tpu_function(root, "0000:00:05.0", 0x0063, 0, 0, 9);
	fake_tpu_function(root, "0000:00:06.0", 0x0063, 0, 0, 10);
	fake_tpu_node(root, "vfio/9");
	fake_tpu_node(root, "vfio/10");
	ck_assert_int_eq(ls_chips_find(chips), 0);
}

LS_CASE(owners, setup, teardown);

LS_TEST(owners, owner_is_the_process_that_holds_the_node)
{
	char inside[300];

	two_chips();
	fake_tpu_holder(root, 40, "bash", 0, "/dev/pts/0");
	fake_tpu_holder(root, 41, "py\033[31mthon", 7, "/dev/vfio/10");
	tree_link(root, "proc/41/fd/8", "/dev/vfio/10"); /* twice: one holder */
	tree_link(root, "proc/41/fd/9", "socket:[5]");
	(void)snprintf(inside, sizeof(inside), "%s/dev/vfio/9", root);
	tree_link(root, "proc/41/fd/10", inside); /* seen through --dev-root */
	fake_tpu_holder(root, 42, "loader", 7, "/dev/vfio/10");
	ck_assert(ls_chips_find_owners(chips, MANY));
	ck_assert_int_eq(chip(0)->node[0].owner, 41);
	ck_assert_int_gt(chip(1)->node[0].owner, 40);
	ck_assert_str_eq(chip(0)->node[0].command, "py\\x1b[31mthon");
	ck_assert(told(LS_DOCTOR_OK, "held by py\\x1b[31mthon (pid 41)"));
	ck_assert_int_eq(ls_chips_owned_by(chips, 41), 2);
	ck_assert_int_eq(ls_chips_owned_by(chips, 42), 1);
	ck_assert_int_eq(ls_chips_owned_by(chips, 40), 0);
	ck_assert_int_eq(ls_chips_owned_by(chips, 43), -ENOENT);
}

LS_TEST(owners, looking_for_owners_goes_on_where_it_stopped)
{
	char path[64];
	int i, turns = 0;

	two_chips();
	for (i = 0; i < 50; i++) {
		fake_tpu_holder(root, 100 + i, "other", 0, "/dev/null");
		fake_tpu_holder(root, 100 + i, "other", 1, "/dev/null");
	}
	fake_tpu_holder(root, 200, "train", 5, "/dev/vfio/9");
	while (!ls_chips_find_owners(chips, 10)) {
		/* not before all was seen */
		ck_assert_int_eq(chip(0)->node[0].owner, 0);
		turns++;
	}
	ck_assert_int_gt(turns, 20);
	ck_assert_int_eq(chip(0)->node[0].owner, 200);
	ck_assert(told(LS_DOCTOR_NONE, "/dev/vfio/10, held by no process"));
	/* A new search for chips keeps what is known; a new pass forgets who has gone.
	 */
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_int_eq(chip(0)->node[0].owner, 200);
	(void)snprintf(path, sizeof(path), "proc/200/fd/5");
	tree_remove(root, path);
	ck_assert(ls_chips_find_owners(chips, MANY));
	ck_assert_int_eq(chip(0)->node[0].owner, 0);
}

/*
 * Root may look at all: it looks as nobody, from within the directory, since those
 * above it need not be open to nobody.
 */
LS_TEST(owners, processes_that_may_not_be_looked_at_are_said)
{
	const bool is_root = geteuid() == 0;
	int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	two_chips();
	fake_tpu_holder(root, 50, "secret", 3, "/dev/vfio/9");
	ck_assert_int_eq(chdir(root), 0);
	ls_chips_free(chips);
	ck_assert_int_eq(ls_chips_new("proc", "sys", "dev", &chips), 0);
	ck_assert_int_eq(ls_chips_find(chips), 0);
	ck_assert_int_eq(chmod(".", 0755), 0);
	ck_assert_int_eq(chmod("dev", 0755), 0);
	ck_assert_int_eq(chmod("dev/vfio", 0755), 0);
	ck_assert_int_eq(chmod("proc", 0755), 0);
	ck_assert_int_eq(chmod("proc/50", 0755), 0);
	ck_assert_int_eq(chmod("proc/50/fd", 0), 0);
	if (is_root)
		ck_assert_int_eq(seteuid(65534), 0);
	ck_assert(ls_chips_find_owners(chips, MANY));
	ck_assert_int_eq(ls_chips_owned_by(chips, 50), -EACCES);
	if (is_root)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod("proc/50/fd", 0700), 0);
	ck_assert_int_eq(fchdir(back), 0);
	ck_assert_int_eq(close(back), 0);
	ck_assert(told(LS_DOCTOR_WARN,
		"no owner found of 2 of 2 chips: 1 of 1 processes"));
	ck_assert_uint_eq(ls_doctor_count(&doctor, LS_DOCTOR_WARN), 1);
}

LS_TEST(chips, roots_have_a_maximum)
{
	static char path[LS_PATH_MAX_BYTES + 1];
	struct ls_chips *c;

	memset(path, 'x', sizeof(path) - 1);
	ck_assert_int_eq(ls_chips_new(path, "/sys", "/dev", &c), -LS_ELIMIT);
	ck_assert_int_eq(ls_chips_new("/proc", path, "/dev", &c), -LS_ELIMIT);
	ck_assert_int_eq(ls_chips_new("/proc", "/sys", path, &c), -LS_ELIMIT);
}
