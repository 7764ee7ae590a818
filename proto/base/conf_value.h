/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_value - the text of one option to its field and back; used by conf only.
 *
 * Owner:   none; pure functions. ls_conf_parse_duration, ls_conf_parse_size and
 *          ls_conf_nearest of conf.h live here, too.
 * Units:   as in conf.h.
 * Errors:  -LS_EPARSE, -LS_ERANGE.
 * Limits:  LS_CONF_VALUE_MAX_BYTES a value.
 */
#ifndef LS_BASE_CONF_VALUE_H
#define LS_BASE_CONF_VALUE_H

#include <stddef.h>
#include "proto/base/conf.h"

/*
 * Parses text by the option's type into its field of `into`. On failure the field is
 * untouched and `why` says what is wrong with the text.
 */
int ls_conf_value_set(const struct ls_conf_option *o, const char *text, void *into,
	char *why, size_t why_size) LS_MUSTCHECK;

/* Writes the option's field as text that ls_conf_value_set takes; cut to fit. */
void ls_conf_value_get(const struct ls_conf_option *o, const void *from, char *dst,
	size_t size);

#endif
