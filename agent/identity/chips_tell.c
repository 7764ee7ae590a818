/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/chips_state.h"

#include <stdio.h>

#define CHIPS_LISTED 4u /* chips that a row names */

static void
chips_tell_node(const struct ls_chips *c, const struct ls_chip *chip,
	const struct ls_chip_node *n, struct ls_doctor *d)
{
	const char *subject = ls_doctor_text(d, "chip %s", chip->pci);

	if (n->owner != 0)
		ls_doctor_addf(d, LS_DOCTOR_OK, "chips", subject, "",
			"%s, /dev/%s, held by %s (pid %ld)", chip->name, n->path,
			n->command, (long)n->owner);
	else if (c->passes > 0 && c->last_denied == 0)
		ls_doctor_addf(d, LS_DOCTOR_NONE, "chips", subject,
			"no job uses this chip; in a container without hostPID jobs "
			"are not visible",
			"%s, /dev/%s, held by no process", chip->name, n->path);
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "chips", subject, "", "%s, /dev/%s",
			chip->name, n->path);
}

static void
chips_tell_chip(const struct ls_chips *c, const struct ls_chip *chip,
	struct ls_doctor *d)
{
	for (size_t n = 0; n < chip->node_count; n++)
		if (chip->node[n].here)
			chips_tell_node(c, chip, &chip->node[n], d);
}

/* Chips whose device node is missing, with or without a driver: one row for all of them. */
static void
chips_tell_hidden(const struct ls_chips *c, bool bound, struct ls_doctor *d)
{
	char list[160] = "";
	size_t count = 0, used = 0, n;

	for (size_t i = 0; i < c->count; i++) {
		const struct ls_chip *chip = &c->chip[i];
		bool any = chip->node_count == 0, all = true;

		for (n = 0; n < chip->node_count; n++) {
			any |= !chip->node[n].here;
			all &= !chip->node[n].here;
		}
		/* who has one of its nodes has a driver */
		if (!any || (chip->bound || !all) != bound)
			continue;
		if (count++ < CHIPS_LISTED)
			used += (size_t)snprintf(list + used, sizeof(list) - used,
				"%s%s", count > 1 ? ", " : "", chip->pci);
	}
	if (count == 0)
		return;
	ls_doctor_addf(d, LS_DOCTOR_WARN, "chips",
		bound ? "device nodes" : "PCI driver",
		bound ? "in a container: mount the host's /dev and give --dev-root; on the "
			"host: look for driver errors with dmesg"
		      : "repair the machine: dmesg says why the driver is not loaded; "
			"else replace the VM or node and report it",
		bound ? "%zu of %zu TPU chips lack a device node in /dev: %s%s"
		      : "no driver is bound to %zu of %zu TPU chips, so no job can run "
			"on them: %s%s",
		count, c->count, list, count > CHIPS_LISTED ? ", ..." : "");
}

/* Chips without an owner, if that may be for lack of a right: one row. */
static void
chips_tell_owners(const struct ls_chips *c, struct ls_doctor *d)
{
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++) {
		bool owned = c->chip[i].node_count == 0;

		for (size_t n = 0; n < c->chip[i].node_count; n++)
			owned |= c->chip[i].node[n].owner != 0 ||
				!c->chip[i].node[n].here;
		count += !owned;
	}
	if (count > 0 && c->passes > 0 && c->last_denied > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "chips", "owners",
			"run the agent as the job's user, or with CAP_SYS_PTRACE (and hostPID in "
			"Kubernetes); step marks work without",
			"no owner found of %zu of %zu chips: %zu of %zu processes cannot "
			"be inspected",
			count, c->count, c->last_denied, c->last_seen);
}

/* A kind of chip that is not known: one row for all of them, at the first. */
static void
chips_tell_unknown(const struct ls_chips *c, size_t first, struct ls_doctor *d)
{
	const struct ls_chip *chip = &c->chip[first];
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (c->chip[i].device_id != chip->device_id ||
			c->chip[i].generation >= 0)
			continue;
		if (i < first)
			return;
		count++;
	}
	ls_doctor_addf(d, LS_DOCTOR_WARN, "chips",
		ls_doctor_text(d, "chip %s", chip->pci),
		ls_doctor_text(d,
			"it is reported as %s; a newer lockstep may support it",
			chip->name),
		"PCI id %04x:%04x is not known to this agent (%zu of %zu chips)",
		LS_PCI_VENDOR_GOOGLE, chip->device_id, count, c->count);
}

void
ls_chips_tell(const struct ls_chips *c, struct ls_doctor *d)
{
	if (c->find_rc != 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "chips", "PCI",
			"mount the host's /sys and give --sys-root",
			"the PCI devices cannot be listed: %s",
			ls_err_text(c->find_rc));
	else if (c->count == 0)
		ls_doctor_add(d, LS_DOCTOR_NONE, "chips", "PCI",
			"no TPU on the PCI bus",
			"on a TPU host: mount the host's /sys and give --sys-root");
	chips_tell_hidden(c, false, d);
	chips_tell_hidden(c, true, d);
	chips_tell_owners(c, d);
	for (size_t i = 0; i < c->count; i++) {
		if (c->chip[i].generation < 0)
			chips_tell_unknown(c, i, d);
		chips_tell_chip(c, &c->chip[i], d);
	}
	if (c->left_out > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "chips", "PCI",
			"lockstep supports fewer chips per host: please report this",
			"%zu PCI functions beyond the first %u chips", c->left_out,
			(unsigned)LS_CHIPS_MAX);
}
