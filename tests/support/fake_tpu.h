/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_tpu - a TPU host below the directory of a test: PCI functions in sys/, nodes in
 * dev/, processes that hold them in proc/.
 *
 * Owner:   test programs.
 * Units:   none.
 * Errors:  every failure fails the test.
 * Limits:  those of tree.h.
 */
#ifndef LS_TESTS_FAKE_TPU_H
#define LS_TESTS_FAKE_TPU_H

/* A PCI function ("0000:00:05.0") of Google's; group: its IOMMU group, negative for
 * none. */
void fake_tpu_function(const char *root, const char *function, unsigned device,
	unsigned subsystem, int numa_node, int group);

/* A node of /dev, "vfio/7" or "accel0". */
void fake_tpu_node(const char *root, const char *node);

/* A process pid of this command, whose descriptor fd is a link to target
 * ("/dev/vfio/7"). */
void fake_tpu_holder(const char *root, int pid, const char *command, int fd,
	const char *target);

#endif
