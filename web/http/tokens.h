/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens - who may ask over HTTP: a file of names, scopes and digests of tokens.
 *
 * DIR/tokens has a line "NAME SCOPE DIGEST" for each: the SHA-256 of the token in hex. A
 * token is 32 random bytes as hex after "lockstep_", so a digest without salt cannot be
 * turned back. The file is written whole or not at all.
 *
 * Owner:   the caller. One process at a time writes.
 * Errors:  -LS_ERANGE a name or scope that is none, -LS_EPARSE a bad line, -LS_ELIMIT,
 *          -errno; text says more.
 * Limits:  LS_TOKENS_MAX, LS_TOKEN_NAME_MAX_BYTES.
 * Source:  RFC 6750 for the bearer token.
 */
#ifndef LS_WEB_TOKENS_H
#define LS_WEB_TOKENS_H

#include <stddef.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* Each includes those before it. */
enum ls_scope {
	LS_SCOPE_NONE,
	LS_SCOPE_READ, /* answers */
	LS_SCOPE_WRITE /* what changes something */
};

struct ls_tokens;

/* Reads DIR/tokens; no such file: no tokens. */
int ls_tokens_read(const char *dir, struct ls_tokens **ret_tokens, char *text,
	size_t size) LS_MUSTCHECK;
/* Accepts NULL. */
void ls_tokens_free(struct ls_tokens *t);
size_t ls_tokens_count(const struct ls_tokens *t);

/*
 * The scope of a token, and its name, borrowed; LS_SCOPE_NONE: unknown. Takes the same
 * time whatever the token.
 */
enum ls_scope ls_tokens_find(const struct ls_tokens *t, const char *token,
	const char **ret_name);

/* Makes a token of a name and adds its digest; a name may have several. */
int ls_tokens_add(const char *dir, const char *name, const char *scope,
	char ret_token[LS_TOKEN_BYTES], char *text, size_t size) LS_MUSTCHECK;
/* Removes all of a name; returns how many. */
int ls_tokens_remove(const char *dir, const char *name, char *text,
	size_t size) LS_MUSTCHECK;

#endif
