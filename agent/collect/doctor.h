/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor - what each source says of itself: is it there, if not why, and what to do
 * about it.
 *
 * Owner:   the caller's struct.
 * Units:   none.
 * Errors:  beyond the limits checks are left out and counted, texts are cut; -ENOMEM,
 *          -LS_EPARSE.
 * Limits:  LS_DOCTOR_CHECKS_MAX.
 * Source:  the cases users ask about: README.md of this folder, "Doctor".
 */
#ifndef LS_AGENT_DOCTOR_H
#define LS_AGENT_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "proto/base/err.h"

#define LS_DOCTOR_CHECKS_MAX 128

enum ls_doctor_status {
	LS_DOCTOR_OK,
	LS_DOCTOR_NONE, /* not here, and nothing is wrong with that */
	LS_DOCTOR_WARN, /* works, but less than it could */
	LS_DOCTOR_FAIL, /* should work here and does not */
	LS_DOCTOR_STATUS_COUNT
};

struct ls_doctor_check {
	enum ls_doctor_status status;
	char source[32]; /* "tpu", "chips", "host", ... */
	char subject[64]; /* "port 8431", "/proc/pressure" */
	char why[256]; /* what was seen */
	/* the exact command or setting; "" if there is nothing to do */
	char fix[256];
};

struct ls_doctor {
	size_t count, left_out;
	unsigned texts; /* made by ls_doctor_text so far */
	char text[2][256];
	struct ls_doctor_check check[LS_DOCTOR_CHECKS_MAX];
};

/* Adds a check. */
void ls_doctor_add(struct ls_doctor *d, enum ls_doctor_status status,
	const char *source, const char *subject, const char *why, const char *fix);

/* The same with a printf-formatted why; the fix comes before it. */
void ls_doctor_addf(struct ls_doctor *d, enum ls_doctor_status status,
	const char *source, const char *subject, const char *fix, const char *why, ...)
	__attribute__((format(printf, 6, 7)));

/* Makes a subject or a fix with printf; the text holds until two others are made. */
const char *ls_doctor_text(struct ls_doctor *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How many checks have this status. */
size_t ls_doctor_count(const struct ls_doctor *d, enum ls_doctor_status status);

/* The checks as an array of objects and the counts, in a new object; NULL when out of
 * memory. */
json_t *ls_doctor_json(const struct ls_doctor *d);

/* Reads what ls_doctor_json makes: from outside, so whatever is not so is refused.
 * -LS_EPARSE. */
int ls_doctor_parse(const json_t *object, struct ls_doctor *ret_doctor) LS_MUSTCHECK;

/* Prints one line a check, its fix below it, and a line of counts; texts are escaped.
 */
void ls_doctor_print(const struct ls_doctor *d, bool color, FILE *out);

#endif
