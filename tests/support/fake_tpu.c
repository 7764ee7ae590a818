/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/fake_tpu.h"

#include <stdio.h>
#include "tests/support/tree.h"

static void
fake_tpu_file(const char *root, const char *function, const char *file,
	const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", function, file);
	tree_write(root, path, text);
}

static void
fake_tpu_id(const char *root, const char *function, const char *file, unsigned id)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "0x%04x\n", id);
	fake_tpu_file(root, function, file, text);
}

void
fake_tpu_function(const char *root, const char *function, unsigned device,
	unsigned subsystem, int numa_node, int group)
{
	char path[256], target[64], text[32];

	fake_tpu_id(root, function, "vendor", 0x1ae0);
	fake_tpu_id(root, function, "device", device);
	fake_tpu_id(root, function, "subsystem_device", subsystem);
	(void)snprintf(text, sizeof(text), "%d\n", numa_node);
	fake_tpu_file(root, function, "numa_node", text);
	if (group < 0)
		return;
	(void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/iommu_group",
		function);
	(void)snprintf(target, sizeof(target), "../../../../kernel/iommu_groups/%d",
		group);
	tree_link(root, path, target);
}

void
fake_tpu_node(const char *root, const char *node)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "dev/%s", node);
	tree_write(root, path, "");
}

void
fake_tpu_holder(const char *root, int pid, const char *command, int fd,
	const char *target)
{
	char path[256], text[64];

	(void)snprintf(path, sizeof(path), "proc/%d/comm", pid);
	(void)snprintf(text, sizeof(text), "%s\n", command);
	tree_write(root, path, text);
	(void)snprintf(path, sizeof(path), "proc/%d/fd/%d", pid, fd);
	tree_link(root, path, target);
}
