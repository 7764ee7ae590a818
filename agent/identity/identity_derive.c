/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/identity_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

/* --- chips and devices ---------------------------------------------------- */

/* Offers chip.<i>.<what>; nothing for an empty value. */
static void
derive_chip(struct ls_identity *id, size_t chip, const char *what,
	enum ls_identity_source source, const char *value)
{
	char key[LS_IDENTITY_KEY_MAX_BYTES];

	if (value[0] == '\0')
		return;
	(void)snprintf(key, sizeof(key), "chip.%zu.%s", chip, what);
	ls_identity_offer(id, key, source, 0, value);
}

static void
derive_chip_of_pci(struct ls_identity *id, size_t i, const struct ls_chip *chip)
{
	char text[LS_IDENTITY_VALUE_MAX_BYTES] = "";
	size_t n, used = 0;

	derive_chip(id, i, "pci", LS_IDENTITY_FROM_SYSFS, chip->pci);
	for (n = 0; n < chip->node_count; n++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
			n > 0 ? "," : "", chip->node[n].path); /* 4 x 32 bytes fit */
	derive_chip(id, i, "node", LS_IDENTITY_FROM_SYSFS, text);
	if (chip->numa_node < 0)
		return;
	(void)snprintf(text, sizeof(text), "%d", chip->numa_node);
	derive_chip(id, i, "numa", LS_IDENTITY_FROM_SYSFS, text);
}

void
ls_identity_chips(struct ls_identity *id, const struct ls_chips *chips)
{
	const struct ls_chip *chip;
	char text[24];
	size_t i;

	ls_identity_forget(id, LS_IDENTITY_FROM_SYSFS, 0);
	id->chip_count = ls_chips_count(chips);
	for (i = 0; (chip = ls_chips_get(chips, i)) != NULL; i++) {
		derive_chip_of_pci(id, i, chip);
		/* An id that is not known is a name, too; of chips of two kinds, none
		 * is the host's. */
		ls_identity_offer(id, ls_identity_key(LS_IDENTITY_GENERATION),
			LS_IDENTITY_FROM_SYSFS, 0, chip->name);
	}
	if (i == 0)
		return; /* none seen is not the same as none there: /sys may be another one's */
	(void)snprintf(text, sizeof(text), "%zu", i);
	ls_identity_offer(id, ls_identity_key(LS_IDENTITY_CHIPS),
		LS_IDENTITY_FROM_SYSFS, 0, text);
}

static int
derive_compare_device(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void
ls_identity_devices(struct ls_identity *id, const uint64_t *devices, size_t count)
{
	id->device_count = 0;
	if (count == 0 || count > sizeof(id->device) / sizeof(id->device[0]))
		return;
	memcpy(id->device, devices, count * sizeof(*devices));
	id->device_count = count;
	qsort(id->device, count, sizeof(id->device[0]), derive_compare_device);
}

/* --- devices -------------------------------------------------------------- */

/* Devices libtpu counts in a chip of this host's generation; 0: not known. */
static size_t
derive_devices_per_chip(const struct ls_identity *id)
{
	const char *name = ls_identity_get(id, LS_IDENTITY_GENERATION);
	int g = name != NULL ? ls_generation_by_name(name) : -LS_EUNKNOWN;

	return g >= 0 ? ls_generation_info((enum ls_generation)g)->devices_per_chip : 0;
}

/* Gives the devices to the chips, both in order; only where their numbers fit each
 * other. */
static void
derive_devices(struct ls_identity *id)
{
	size_t each = derive_devices_per_chip(id), i, k;
	char text[LS_IDENTITY_VALUE_MAX_BYTES];

	if (each == 0 || id->device_count == 0 || id->device_count % each != 0 ||
		(id->chip_count != 0 && id->chip_count * each != id->device_count))
		return;
	for (i = 0; i < id->device_count / each; i++) {
		size_t used = 0;

		for (k = 0; k < each; k++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				"%s%llu", k > 0 ? "," : "",
				(unsigned long long)id->device[i * each + k]);
		derive_chip(id, i, "device", LS_IDENTITY_FROM_TPU, text);
	}
}

/* --- what follows from fields --------------------------------------------- */

static void
derive_number(struct ls_identity *id, enum ls_identity_field field, uint64_t value)
{
	char text[24];

	if (value > INT32_MAX)
		return;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	ls_identity_offer(id, ls_identity_key(field), LS_IDENTITY_FROM_DERIVED, 0,
		text);
}

static void
derive_volume(struct ls_identity *id, enum ls_identity_field of,
	enum ls_identity_field into)
{
	const char *text = ls_identity_get(id, of);
	uint32_t sides[LS_IDENTITY_AXES];

	if (text != NULL && ls_identity_sides(text, ',', sides))
		derive_number(id, into, (uint64_t)sides[0] * sides[1] * sides[2]);
}

static void
derive_generation(struct ls_identity *id)
{
	const char *type = ls_identity_get(id, LS_IDENTITY_ACCELERATOR);
	int g = type != NULL ? ls_generation_by_name(type) : -LS_EUNKNOWN;

	if (g >= 0)
		ls_identity_offer(id, ls_identity_key(LS_IDENTITY_GENERATION),
			LS_IDENTITY_FROM_DERIVED, 0,
			ls_generation_info((enum ls_generation)g)->name);
}

/* A field that is a number; false if it is not known, or a name. */
static bool
derive_get_number(const struct ls_identity *id, enum ls_identity_field field,
	uint64_t *ret_value)
{
	const char *text = ls_identity_get(id, field);

	return text != NULL && ls_text_number(text, INT32_MAX, ret_value);
}

/* The number among all slices; a job that says nothing of slices has one. */
static void
derive_global_worker(struct ls_identity *id)
{
	uint64_t worker, workers = 0, slice = 0, slices = 1;
	bool several;

	if (!derive_get_number(id, LS_IDENTITY_WORKER, &worker))
		return;
	several = derive_get_number(id, LS_IDENTITY_SLICES, &slices) && slices > 1;
	if (several &&
		(!derive_get_number(id, LS_IDENTITY_SLICE, &slice) ||
			!derive_get_number(id, LS_IDENTITY_WORKERS, &workers)))
		return;
	derive_number(id, LS_IDENTITY_GLOBAL_WORKER,
		several ? slice * workers + worker : worker);
}

void
ls_identity_derive(struct ls_identity *id)
{
	ls_identity_forget(id, LS_IDENTITY_FROM_DERIVED, 0);
	ls_identity_forget(id, LS_IDENTITY_FROM_TPU, 0);
	derive_generation(id);
	derive_volume(id, LS_IDENTITY_HOST_BOUNDS, LS_IDENTITY_WORKERS);
	derive_volume(id, LS_IDENTITY_CHIP_BOUNDS, LS_IDENTITY_CHIPS);
	derive_global_worker(id);
	derive_devices(id);
}
