/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest - SHA-256 of a JSON value, or a text. A module of its own: it alone needs libcrypto, and
 * the agent does not.
 *
 * Owner:   none; pure functions.
 * Units:   none.
 * Errors:  -ENOMEM.
 * Limits:  none.
 */
#ifndef LS_BASE_DIGEST_H
#define LS_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct json_t;

/* "sha256:<hex>" of the canonical text (ls_json_canonical); dst needs LS_DIGEST_BYTES.
 */
#define LS_DIGEST_BYTES 72
int ls_digest_json(const struct json_t *v, char *dst) LS_MUSTCHECK;

/* The first eight bytes of the SHA-256 of a text, as a number, big end first. */
uint64_t ls_digest_bits(const char *text, size_t len);

#endif
