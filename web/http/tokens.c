/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/tokens.h"
#include "proto/base/text.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKENS_PREFIX "lockstep_"
#define TOKENS_RANDOM_BYTES 32
#define TOKENS_DIGEST_BYTES 32
#define TOKENS_HEX_BYTES (2 * TOKENS_DIGEST_BYTES + 1)

struct token {
	char name[LS_TOKEN_NAME_MAX_BYTES];
	enum ls_scope scope;
	char digest[TOKENS_HEX_BYTES];
};

struct ls_tokens {
	size_t count;
	struct token tokens[LS_TOKENS_MAX];
};

static const char *const token_scopes[] = {
	[LS_SCOPE_READ] = "read",
	[LS_SCOPE_WRITE] = "write",
};

static enum ls_scope
token_scope(const char *word)
{
	enum ls_scope s = LS_SCOPE_WRITE;

	while (s != LS_SCOPE_NONE && strcmp(token_scopes[s], word) != 0)
		s--;
	return s;
}

static void
token_hex(const uint8_t *bytes, size_t len, char *dst)
{
	for (size_t i = 0; i < len; i++)
		(void)snprintf(dst + 2 * i, 3, "%02x", bytes[i]);
}

static bool
token_digest(const char *token, char hex[TOKENS_HEX_BYTES])
{
	uint8_t digest[TOKENS_DIGEST_BYTES];

	if (EVP_Digest(token, strlen(token), digest, NULL, EVP_sha256(), NULL) != 1)
		return false;
	token_hex(digest, sizeof(digest), hex);
	return true;
}

static bool
token_parse(const char *line, struct token *ret)
{
	char scope[8], end;

	_Static_assert(LS_TOKEN_NAME_MAX_BYTES == 32, "the width below");
	if (sscanf(line, "%31s %7s %64[0-9a-f]%c", ret->name, scope, ret->digest,
		    &end) != 4 ||
		end != '\n' || strlen(ret->digest) != TOKENS_HEX_BYTES - 1 ||
		!ls_text_is_name(ret->name, strlen(ret->name), sizeof(ret->name) - 1))
		return false;
	ret->scope = token_scope(scope);
	return ret->scope != LS_SCOPE_NONE;
}

int
ls_tokens_read(const char *dir, struct ls_tokens **ret_tokens, char *text, size_t size)
{
	char path[LS_PATH_MAX_BYTES], line[512];
	struct ls_tokens *t = calloc(1, sizeof(*t));
	FILE *f = NULL;
	struct stat st;
	int rc = t != NULL ? 0 : -ENOMEM;

	if (snprintf(path, sizeof(path), "%s/tokens", dir) >= (int)sizeof(path))
		rc = -ENAMETOOLONG;
	if (rc == 0) {
		f = fopen(path, "re");
		rc = f != NULL || errno == ENOENT ? 0 : -errno;
	}
	/* Who can write it can let himself in. */
	if (rc == 0 && f != NULL &&
		(fstat(fileno(f), &st) != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0))
		rc = -EPERM;
	while (rc == 0 && f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (t->count == LS_TOKENS_MAX)
			rc = -LS_ELIMIT;
		else if (!token_parse(line, &t->tokens[t->count]))
			rc = -LS_EPARSE;
		else
			t->count++;
	}
	if (rc == 0 && f != NULL && ferror(f))
		rc = -EIO;
	if (f != NULL)
		(void)fclose(f); /* only read from */
	if (rc == 0) {
		*ret_tokens = t;
		return 0;
	}
	if (rc == -LS_EPARSE || rc == -LS_ELIMIT)
		(void)snprintf(line, sizeof(line), ", line %zu", t->count + 1);
	else
		line[0] = '\0';
	(void)snprintf(text, size, "%s%s: %s", path, line,
		rc == -LS_EPARSE
			? "is not \"NAME read|write DIGEST\"; lockstep keys token makes such lines"
			: rc == -EPERM ? "can be written by others; run chmod 644 on it"
				       : ls_err_text(rc));
	free(t);
	return rc;
}

void
ls_tokens_free(struct ls_tokens *t)
{
	free(t);
}

size_t
ls_tokens_count(const struct ls_tokens *t)
{
	return t->count;
}

enum ls_scope
ls_tokens_find(const struct ls_tokens *t, const char *token, const char **ret_name)
{
	enum ls_scope scope = LS_SCOPE_NONE;
	char digest[TOKENS_HEX_BYTES];

	if (!token_digest(token, digest))
		return LS_SCOPE_NONE;
	for (size_t i = 0; i < t->count; i++) {
		if (CRYPTO_memcmp(t->tokens[i].digest, digest, sizeof(digest)) != 0)
			continue;
		scope = t->tokens[i].scope;
		*ret_name = t->tokens[i].name;
	}
	return scope;
}

/* --- the file ------------------------------------------------------------- */

static int
tokens_write(const char *dir, const struct ls_tokens *t, char *text, size_t size)
{
	char path[LS_PATH_MAX_BYTES], fresh[LS_PATH_MAX_BYTES + 8];
	FILE *f;
	bool ok;

	(void)snprintf(path, sizeof(path), "%s/tokens", dir); /* it was read */
	(void)snprintf(fresh, sizeof(fresh), "%s.new", path);
	f = fopen(fresh, "we");
	ok = f != NULL;
	for (size_t i = 0; ok && i < t->count; i++)
		ok = fprintf(f, "%s %s %s\n", t->tokens[i].name,
			     token_scopes[t->tokens[i].scope], t->tokens[i].digest) > 0;
	/* Others may read it: digests of random bytes tell nothing. */
	ok = ok && fflush(f) == 0 && fchmod(fileno(f), 0644) == 0 &&
		fsync(fileno(f)) == 0;
	if (f != NULL)
		ok = fclose(f) == 0 && ok;
	if (ok && rename(fresh, path) == 0)
		return 0;
	(void)snprintf(text, size, "%s: cannot be written: %s", path, strerror(errno));
	return -EIO;
}

int
ls_tokens_add(const char *dir, const char *name, const char *scope,
	char ret_token[LS_TOKEN_BYTES], char *text, size_t size)
{
	uint8_t random[TOKENS_RANDOM_BYTES];
	struct ls_tokens *t = NULL;
	struct token *fresh;
	int rc;

	if (!ls_text_is_name(name, strlen(name), sizeof(fresh->name) - 1) ||
		strchr(name, ' ') != NULL || token_scope(scope) == LS_SCOPE_NONE) {
		(void)snprintf(text, size,
			"a token has a name without spaces, at most %d bytes, and the scope read or write",
			LS_TOKEN_NAME_MAX_BYTES - 1);
		return -LS_ERANGE;
	}
	rc = ls_tokens_read(dir, &t, text, size);
	if (rc != 0)
		return rc;
	if (t->count == LS_TOKENS_MAX) {
		(void)snprintf(text, size, "%s/tokens: has %d tokens, and no place",
			dir, LS_TOKENS_MAX);
		rc = -LS_ELIMIT;
		goto out;
	}
	fresh = &t->tokens[t->count++];
	(void)snprintf(fresh->name, sizeof(fresh->name), "%s", name);
	fresh->scope = token_scope(scope);
	memcpy(ret_token, TOKENS_PREFIX, sizeof(TOKENS_PREFIX));
	if (RAND_bytes(random, sizeof(random)) != 1) {
		(void)snprintf(text, size, "no random bytes");
		rc = -EIO;
		goto out;
	}
	token_hex(random, sizeof(random), ret_token + strlen(TOKENS_PREFIX));
	rc = token_digest(ret_token, fresh->digest) ? tokens_write(dir, t, text, size)
						    : -ENOMEM;
out:
	ls_tokens_free(t);
	return rc;
}

int
ls_tokens_remove(const char *dir, const char *name, char *text, size_t size)
{
	struct ls_tokens *t = NULL;
	size_t kept = 0, before;
	int rc = ls_tokens_read(dir, &t, text, size);

	if (rc != 0)
		return rc;
	before = t->count;
	for (size_t i = 0; i < before; i++)
		if (strcmp(t->tokens[i].name, name) != 0)
			t->tokens[kept++] = t->tokens[i];
	t->count = kept;
	if (kept < before)
		rc = tokens_write(dir, t, text, size);
	ls_tokens_free(t);
	return rc != 0 ? rc : (int)(before - kept);
}
