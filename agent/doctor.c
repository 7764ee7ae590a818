/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/doctor.h"

#include <stdio.h>

void
ls_doctor_add(struct ls_doctor *d, enum ls_doctor_status status, const char *source,
	const char *subject, const char *why, const char *fix)
{
	struct ls_doctor_check *c;

	if (d->count == LS_DOCTOR_CHECKS_MAX) {
		d->left_out++;
		return;
	}
	c = &d->check[d->count++];
	c->status = status;
	(void)snprintf(c->source, sizeof(c->source), "%s", source);
	(void)snprintf(c->subject, sizeof(c->subject), "%s", subject);
	(void)snprintf(c->why, sizeof(c->why), "%s", why);
	(void)snprintf(c->fix, sizeof(c->fix), "%s", fix);
}
