/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor - what each source says of itself: is it there, if not why, and what to do about it.
 *
 * Owner:   the caller's struct.
 * Units:   none.
 * Errors:  none; beyond the limits checks are left out and counted, texts are cut.
 * Limits:  LS_DOCTOR_CHECKS_MAX.
 * Source:  the cases users ask about: README.md of this folder, "Doctor".
 */
#ifndef LS_AGENT_DOCTOR_H
#define LS_AGENT_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#define LS_DOCTOR_CHECKS_MAX 128

enum ls_doctor_status {
	LS_DOCTOR_OK,
	LS_DOCTOR_NONE, /* not here, and nothing is wrong with that */
	LS_DOCTOR_WARN, /* works, but less than it could */
	LS_DOCTOR_FAIL  /* should work here and does not */
};

struct ls_doctor_check {
	enum ls_doctor_status status;
	char source[32];  /* "tpu", "chips", "host", ... */
	char subject[64]; /* "port 8431", "/proc/pressure" */
	char why[256];    /* what was seen */
	char fix[256];    /* the exact command or setting; "" if there is nothing to do */
};

struct ls_doctor {
	size_t count, left_out;
	struct ls_doctor_check check[LS_DOCTOR_CHECKS_MAX];
};

/* Adds a check. */
void ls_doctor_add(struct ls_doctor *d, enum ls_doctor_status status, const char *source,
	const char *subject, const char *why, const char *fix);

#endif
