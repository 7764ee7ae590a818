/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation - the generations of TPU, by PCI id and by the names that Google's tools
 * give them.
 *
 * Owner:   pure functions on a table (generation.def).
 * Units:   none.
 * Errors:  -LS_EUNKNOWN.
 * Limits:  none.
 * Source:  generation.def; names: accelerator types of Cloud TPU ("v5litepod-16"),
 *          GKE's node label cloud.google.com/gke-tpu-accelerator
 *          ("tpu-v5-lite-podslice"), tpu-env's TYPE ("V4").
 */
#ifndef LS_AGENT_GENERATION_H
#define LS_AGENT_GENERATION_H

#include <stdint.h>
#include "proto/base/err.h"

#define LS_PCI_VENDOR_GOOGLE 0x1ae0u

enum ls_generation {
#define LS_GENERATION(id, name, device, subsystem, devices, nodes) LS_GENERATION_##id,
#include "agent/identity/generation.def"
#undef LS_GENERATION
	LS_GENERATION_COUNT
};

enum ls_generation_nodes { LS_NODES_ACCEL, LS_NODES_VFIO, LS_NODES_ANY };

struct ls_generation_info {
	const char *name;
	uint32_t pci_device, pci_subsystem; /* subsystem 0: any */
	unsigned devices_per_chip; /* 0: not known */
	enum ls_generation_nodes nodes;
};

/* What is known of a generation; g must be one. */
const struct ls_generation_info *ls_generation_info(enum ls_generation g);

/* The generation of a PCI function of Google's, or -LS_EUNKNOWN. */
int ls_generation_by_pci(uint32_t device, uint32_t subsystem) LS_MUSTCHECK;

/* The generation that an accelerator type, a node label or a TYPE names, or
 * -LS_EUNKNOWN. */
int ls_generation_by_name(const char *text) LS_MUSTCHECK;

#endif
