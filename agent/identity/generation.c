/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/generation.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct ls_generation_info generation_table[LS_GENERATION_COUNT] = {
#define LS_GENERATION(id, name, device, subsystem, devices, nodes) \
	{ name, device, subsystem, devices, LS_NODES_##nodes },
#include "agent/identity/generation.def"
#undef LS_GENERATION
};

/* How names begin, without "tpu" and "-" before them. */
static const struct {
	const char *begin;
	enum ls_generation generation;
} generation_names[] = {
	{ "v2", LS_GENERATION_V2 },
	{ "v3", LS_GENERATION_V3 },
	{ "v4", LS_GENERATION_V4 },
	{ "v5p", LS_GENERATION_V5P },
	{ "v5litepod", LS_GENERATION_V5E },
	{ "v5lite", LS_GENERATION_V5E },
	{ "v5-lite", LS_GENERATION_V5E },
	{ "v5e", LS_GENERATION_V5E },
	{ "v6e", LS_GENERATION_V6E },
	{ "v7x", LS_GENERATION_V7X },
	{ "7x", LS_GENERATION_V7X },
	{ "8i", LS_GENERATION_TPU8I },
	{ "8t", LS_GENERATION_TPU8T },
};

const struct ls_generation_info *
ls_generation_info(enum ls_generation g)
{
	LS_ASSERT((unsigned)g < LS_GENERATION_COUNT);
	return &generation_table[g];
}

int
ls_generation_by_pci(uint32_t device, uint32_t subsystem)
{
	for (int g = 0; g < LS_GENERATION_COUNT; g++) {
		if (generation_table[g].pci_device == device &&
			(generation_table[g].pci_subsystem == 0 ||
				generation_table[g].pci_subsystem == subsystem))
			return g;
	}
	return -LS_EUNKNOWN;
}

int
ls_generation_by_name(const char *text)
{
	if (strncasecmp(text, "tpu", 3) == 0)
		text += 3;
	if (*text == '-')
		text++;
	for (size_t i = 0; i < sizeof(generation_names) / sizeof(generation_names[0]);
		i++) {
		size_t len = strlen(generation_names[i].begin);

		if (strncasecmp(text, generation_names[i].begin, len) == 0 &&
			(text[len] == '\0' || text[len] == '-' || text[len] == '_'))
			return (int)generation_names[i].generation;
	}
	return -LS_EUNKNOWN;
}
