/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/chips_state.h"

#include <stdio.h>

static void
chips_tell_node(const struct ls_chips *c, const struct ls_chip *chip,
	const struct ls_chip_node *n, struct ls_doctor *d)
{
	char subject[64], why[256];

	(void)snprintf(subject, sizeof(subject), "chip %s", chip->pci);
	if (!n->here) {
		(void)snprintf(why, sizeof(why), "%s chip without its node /dev/%s",
			chip->name, n->path);
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", subject, why,
			"in a container: mount the host's /dev and give --dev-root; on the host: "
			"look for the driver with dmesg");
	} else if (n->owner != 0) {
		(void)snprintf(why, sizeof(why), "%s, /dev/%s, held by %s (pid %ld)",
			chip->name, n->path, n->command, (long)n->owner);
		ls_doctor_add(d, LS_DOCTOR_OK, "chips", subject, why, "");
	} else if (c->passes > 0 && c->last_denied > 0) {
		(void)snprintf(why, sizeof(why),
			"%s, /dev/%s, no owner found: %zu of %zu processes cannot be "
			"inspected",
			chip->name, n->path, c->last_denied, c->last_seen);
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", subject, why,
			"run the agent as the job's user, or with CAP_SYS_PTRACE (and hostPID in "
			"Kubernetes); step marks work without");
	} else if (c->passes > 0) {
		(void)snprintf(why, sizeof(why), "%s, /dev/%s, held by no process",
			chip->name, n->path);
		ls_doctor_add(d, LS_DOCTOR_NONE, "chips", subject, why,
			"no job uses this chip; in a container without hostPID jobs "
			"are not visible");
	} else {
		(void)snprintf(why, sizeof(why), "%s, /dev/%s", chip->name, n->path);
		ls_doctor_add(d, LS_DOCTOR_OK, "chips", subject, why, "");
	}
}

static void
chips_tell_chip(const struct ls_chips *c, const struct ls_chip *chip,
	struct ls_doctor *d)
{
	char subject[64], why[256], fix[256];
	size_t n;

	(void)snprintf(subject, sizeof(subject), "chip %s", chip->pci);
	if (chip->generation < 0) {
		(void)snprintf(why, sizeof(why),
			"PCI id %04x:%04x is not known to this agent",
			LS_PCI_VENDOR_GOOGLE, chip->device_id);
		(void)snprintf(fix, sizeof(fix),
			"it is reported as %s; a newer lockstep may support it",
			chip->name);
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", subject, why, fix);
	}
	if (chip->node_count == 0) {
		(void)snprintf(why, sizeof(why), "%s chip without a node in /dev",
			chip->name);
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", subject, why,
			"in a container: mount the host's /dev and /sys and give --dev-root and "
			"--sys-root");
	}
	for (n = 0; n < chip->node_count; n++)
		chips_tell_node(c, chip, &chip->node[n], d);
}

void
ls_chips_tell(const struct ls_chips *c, struct ls_doctor *d)
{
	char why[256];
	size_t i;

	if (c->find_rc != 0) {
		(void)snprintf(why, sizeof(why), "the PCI devices cannot be listed: %s",
			ls_err_text(c->find_rc));
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", "PCI", why,
			"mount the host's /sys and give --sys-root");
	} else if (c->count == 0) {
		ls_doctor_add(d, LS_DOCTOR_NONE, "chips", "PCI",
			"no TPU on the PCI bus",
			"on a TPU host: mount the host's /sys and give --sys-root");
	}
	for (i = 0; i < c->count; i++)
		chips_tell_chip(c, &c->chip[i], d);
	if (c->accel_extra > 0) {
		(void)snprintf(why, sizeof(why),
			"%zu nodes /dev/accelN without a chip in /sys", c->accel_extra);
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", "/dev/accelN", why,
			"mount the host's /sys and give --sys-root, so that the chips are known");
	}
	if (c->left_out > 0) {
		(void)snprintf(why, sizeof(why),
			"%zu PCI functions beyond the first %u chips", c->left_out,
			(unsigned)LS_CHIPS_MAX);
		ls_doctor_add(d, LS_DOCTOR_WARN, "chips", "PCI", why,
			"lockstep supports fewer chips per host: please report this");
	}
}
