/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chips - the TPU chips of this host: PCI functions, device nodes, and the processes
 * that hold them.
 *
 * A chip is a PCI slot; its functions are cores (7x has two). Chips are in the order of
 * their PCI address: that is their local index. Nothing is opened but files of /sys and
 * /proc; never a device.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   none.
 * Errors:  -errno of /sys, -ENOMEM, -LS_ELIMIT.
 * Limits:  LS_CHIPS_MAX chips, LS_CHIP_NODES_MAX nodes a chip, LS_PCI_SCAN_MAX,
 *          LS_NODES_SCAN_MAX; owners: LS_OWNER_LINKS_PER_PROCESS, and the caller's
 *          budget.
 * Source:  PCI ids and nodes: generation.def. proc(5): /proc/PID/fd needs the right to
 *          ptrace, so of other users' processes the owner is seen only with
 *          CAP_SYS_PTRACE.
 */
#ifndef LS_AGENT_CHIPS_H
#define LS_AGENT_CHIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "agent/collect/doctor.h"
#include "agent/identity/generation.h"
#include "proto/limits.h"

struct ls_chip_node {
	char path[32]; /* below /dev: "vfio/7", "accel0" */
	bool here; /* the node exists */
	/* the first process that holds it open, as far as seen; 0: none */
	pid_t owner;
	char command[LS_COMMAND_MAX_BYTES]; /* its name, escaped */
};

struct ls_chip {
	char pci[24]; /* domain:bus:device */
	/* enum ls_generation; negative: not known */
	int generation;
	uint32_t device_id; /* PCI */
	char name[32]; /* "v5e", "tpu-unknown(0x0099)" */
	int numa_node; /* negative: not known */
	bool bound; /* a kernel driver took it, as far as /sys says */
	size_t functions, node_count;
	struct ls_chip_node node[LS_CHIP_NODES_MAX];
};

struct ls_chips;

/* No chips known yet; the roots are those of /proc, /sys and /dev. -LS_ELIMIT: a root
 * is too long. */
int ls_chips_new(const char *proc_root, const char *sys_root, const char *dev_root,
	struct ls_chips **ret_chips) LS_MUSTCHECK;
/* Accepts NULL. */
void ls_chips_free(struct ls_chips *c);

/* Looks for chips and nodes anew. -errno: the PCI devices cannot be listed; then there
 * are none. */
int ls_chips_find(struct ls_chips *c) LS_MUSTCHECK;

/* Looks whether the nodes are there. */
void ls_chips_check_nodes(struct ls_chips *c);

/*
 * Goes on looking for owners, at most max_links file descriptors; true when all
 * processes were looked at, and what is known of the owners was brought up to date.
 */
bool ls_chips_find_owners(struct ls_chips *c, size_t max_links);

/* Chips that one process holds open; -errno if it cannot be looked at. */
int ls_chips_owned_by(const struct ls_chips *c, pid_t pid) LS_MUSTCHECK;

/* The chips: their number, and the i-th (NULL beyond). */
size_t ls_chips_count(const struct ls_chips *c);
const struct ls_chip *ls_chips_get(const struct ls_chips *c, size_t i);

/* Says what is here and what is missing. */
void ls_chips_tell(const struct ls_chips *c, struct ls_doctor *d);

#endif
