/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expose - lines of /metrics: families, labels, numbers.
 *
 * Owner:   none; pure functions.
 * Units:   base units, in the names.
 * Errors:  out of memory loses lines; evbuffer keeps what it has.
 * Limits:  none.
 * Source:  Prometheus text exposition format 0.0.4.
 */
#ifndef LS_BASE_EXPOSE_H
#define LS_BASE_EXPOSE_H

struct evbuffer;

#define LS_EXPOSE_MIME "text/plain; version=0.0.4; charset=utf-8"

/* Appends name="value" with the value escaped, after a comma if not first. */
void ls_expose_label(struct evbuffer *out, const char *name, const char *value,
	int first);

/* Appends # HELP and # TYPE. */
void ls_expose_family(struct evbuffer *out, const char *name, const char *type,
	const char *help);

/* Appends a family of one line without labels. */
void ls_expose_number(struct evbuffer *out, const char *name, const char *type,
	const char *help, double value);

#endif
