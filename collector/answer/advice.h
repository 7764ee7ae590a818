/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice - what to do about a finding, what it saves, what it costs, when it pays.
 *
 * Commands are printed, never run. Names in them are quoted for the shell.
 *
 * Owner:   pure functions.
 * Units:   chips, chip-hours, seconds.
 * Errors:  NULL when out of memory.
 * Limits:  one action a finding.
 * Source:  a TPU slice is atomic: moving off one host restarts all (design section
 *          3.6).
 */
#ifndef LS_COLLECTOR_ADVICE_H
#define LS_COLLECTOR_ADVICE_H

#include <jansson.h>
#include "collector/engine/finding/finding.h"

/* The "actions" array of a finding; new reference. */
json_t *ls_advice_render(const struct ls_finding *f);

/*
 * Writes the first line of text with %j (job), %h (host) and %H (" --host " and the host) replaced by
 * names, quoted for a POSIX shell; cut to fit. Without a host, %h is HOST and %H nothing. size >= 1. Returns the length.
 */
size_t ls_advice_fill(char *dst, size_t size, const char *text,
	const struct ls_worker_info *who);

#endif
