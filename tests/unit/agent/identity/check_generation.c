/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/generation.h"

#include "tests/support/harness.h"

static const struct {
	uint32_t device, subsystem;
	const char *name;
} pci[] = { { 0x0027, 0x004e, "v2" }, { 0x0027, 0x004f, "v3" }, { 0x0056, 0, "plc" },
	{ 0x005e, 0, "v4" }, { 0x0062, 0, "v5p" }, { 0x0063, 0, "v5e" },
	{ 0x006f, 0x1234, "v6e" }, { 0x0076, 0, "7x" }, { 0x0083, 0, "tpu8i" },
	{ 0x007c, 0, "tpu8t" } };

LS_CASE(table);

LS_TEST_EACH(table, every_generation_has_a_pci_id, pci)
{
	int g = ls_generation_by_pci(pci[_i].device, pci[_i].subsystem);

	ck_assert_int_ge(g, 0);
	ck_assert_str_eq(ls_generation_info((enum ls_generation)g)->name, pci[_i].name);
	ck_assert_uint_eq(sizeof(pci) / sizeof(pci[0]), LS_GENERATION_COUNT);
}

LS_TEST(table, other_pci_ids_are_not_known)
{
	ck_assert_int_eq(ls_generation_by_pci(0x0027, 0), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_generation_by_pci(0x0042, 0), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_generation_by_pci(0x0099, 0x004e), -LS_EUNKNOWN);
}

static const struct {
	const char *text, *name;
} names[] = { { "V4", "v4" }, { "v4-256", "v4" }, { "v5litepod-16", "v5e" },
	{ "V5LITE_POD", "v5e" }, { "tpu-v5-lite-podslice", "v5e" },
	{ "tpu-v5-lite-device", "v5e" }, { "tpu-v5p-slice", "v5p" }, { "v5p-8", "v5p" },
	{ "tpu-v6e-slice", "v6e" }, { "tpu-v4-podslice", "v4" }, { "tpu7x", "7x" },
	{ "tpu7x-16", "7x" }, { "v2-8", "v2" }, { "v3-32", "v3" }, { "v5e", "v5e" },
	{ "7x", "7x" }, { "tpu8i", "tpu8i" }, { "tpu8t", "tpu8t" } };

LS_TEST_EACH(table, names_of_the_tools_are_known, names)
{
	int g = ls_generation_by_name(names[_i].text);

	ck_assert_int_ge(g, 0);
	ck_assert_str_eq(ls_generation_info((enum ls_generation)g)->name,
		names[_i].name);
}

static const char *const strange[] = { "", "tpu", "tpu-", "v", "v5", "v44", "v5px",
	"gpu-v4", "tpu-unknown(0x0099)" };

LS_TEST_EACH(table, other_names_are_not_known, strange)
{
	ck_assert_int_eq(ls_generation_by_name(strange[_i]), -LS_EUNKNOWN);
}
