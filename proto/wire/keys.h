/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys - makes what proto/wire/tls.h reads: a certification authority of one cluster, and
 * certificates of its collector and agents.
 *
 * Files in DIR, beside those that tls.h lists: ca.key, which signs and stays here, and
 * `issued`, a line "SERIAL NAME" for each certificate: a name may have had several, and
 * all of them are revoked together. Each file is written whole or not at all. Keys are EC
 * P-256, readable by their owner only.
 *
 * Owner:   none. One process at a time in a directory.
 * Units:   times in seconds since the epoch.
 * Errors:  -LS_ERANGE a name that is none, -LS_EUNKNOWN a name without certificate,
 *          -EEXIST, -LS_EPARSE a file that cannot be parsed, -EIO of OpenSSL, -errno,
 *          text says more.
 * Limits:  LS_KEYS_NAMES_MAX names a certificate.
 * Source:  RFC 5280, X509V3_EXT_conf_nid(3), X509_CRL_sign(3) of OpenSSL.
 */
#ifndef LS_PROTO_KEYS_H
#define LS_PROTO_KEYS_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/wire/tls.h"

/*
 * Makes ca.key, an empty crl.pem, and ca.pem unless they are there. They are valid from
 * LS_KEYS_EARLY_S before now_s on. text: on failure a line.
 */
int ls_keys_init(const char *dir, int64_t now_s, char *text, size_t size) LS_MUSTCHECK;

/*
 * Signs a certificate of a new key for all names (host names or numeric addresses), valid
 * from from_s until until_s: NAME.pem and NAME.key of the first name for an agent,
 * collector.pem and collector.key for a collector. Those of before are replaced, and
 * stay valid. The name of an agent is a DNS name even if it looks like an address.
 */
int ls_keys_issue(const char *dir, enum ls_tls_side side, const char *const *names,
	size_t count, int64_t from_s, int64_t until_s, char *text,
	size_t size) LS_MUSTCHECK;

/* Adds every certificate of a name ("collector": the collector's) to crl.pem, which must
 * exist, so that no earlier revocation is lost. -LS_EUNKNOWN needs no other file than
 * `issued`. On failure nothing is revoked. */
int ls_keys_revoke(const char *dir, const char *name, int64_t now_s, char *text,
	size_t size) LS_MUSTCHECK;

#endif
