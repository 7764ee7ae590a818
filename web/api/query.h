/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query - query strings and path segments of a URL, decoded and checked.
 *
 * A plus sign stands for itself (RFC 3986), so that times with a zone need no escaping.
 *
 * Owner:   none; pure functions.
 * Units:   sizes in bytes, terminator included.
 * Errors:  -LS_EPARSE a bad escape or a NUL; -LS_ELIMIT too long or too many; -ENOMEM.
 * Limits:  LS_QUERY_PAIRS_MAX, LS_QUERY_NAME_MAX_BYTES, LS_QUERY_VALUE_MAX_BYTES.
 * Source:  RFC 3986 section 2.1.
 */
#ifndef LS_WEB_QUERY_H
#define LS_WEB_QUERY_H

#include <stddef.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_query_pair {
	char name[LS_QUERY_NAME_MAX_BYTES];
	char value[LS_QUERY_VALUE_MAX_BYTES];
};

struct ls_query {
	size_t count;
	struct ls_query_pair pairs[LS_QUERY_PAIRS_MAX];
};

/*
 * Decodes %XX of text[0..len) into ret_text (size bytes, always terminated on success).
 */
int ls_query_decode(const char *text, size_t len, size_t size,
	char *ret_text) LS_MUSTCHECK;

/*
 * Splits "a=1&b=2" (NULL or "" gives none) into decoded pairs, in order; a name without
 * "=" has an empty value. On failure ret_query->pairs[ret_query->count].name holds the
 * name at fault where it could be read, else "".
 */
int ls_query_parse(const char *text, struct ls_query *ret_query) LS_MUSTCHECK;

/*
 * Writes s with every byte that is not unreserved as %XX; -LS_ELIMIT if it does not
 * fit; -ENOMEM.
 */
int ls_query_encode(const char *s, size_t size, char *ret_text) LS_MUSTCHECK;

#endif
