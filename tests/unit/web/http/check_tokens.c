/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/tokens.h"
#include "tests/support/harness.h"
#include "web/http/access.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DIGEST "2a5edea1837b9e0a28f3863eec1bab4d509bcd5a3f61ccc77f503df553fe0d73"

static char tokens_text[512];
static const char *tokens_dir;

static void
tokens_setup(void)
{
	tokens_dir = ls_test_tmpdir();
}

static void
tokens_put(const char *lines)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/tokens", tokens_dir);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(lines, f), 0);
	ck_assert_int_eq(fchmod(fileno(f), 0644), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
tokens_add(const char *name, const char *scope, char token[LS_TOKEN_BYTES])
{
	ck_assert_int_eq(ls_tokens_add(tokens_dir, name, scope, token, tokens_text,
				 sizeof(tokens_text)),
		0);
}

static struct ls_tokens *
tokens_get(void)
{
	struct ls_tokens *t = NULL;

	ck_assert_int_eq(
		ls_tokens_read(tokens_dir, &t, tokens_text, sizeof(tokens_text)), 0);
	return t;
}

LS_CASE(tokens, .setup = tokens_setup);

LS_TEST(tokens, each_has_its_scope_and_name)
{
	char read[LS_TOKEN_BYTES], write[LS_TOKEN_BYTES], again[LS_TOKEN_BYTES];
	const char *name = NULL;
	struct ls_tokens *t;

	tokens_add("grafana", "read", read);
	tokens_add("alice", "write", write);
	tokens_add("alice", "read", again);
	ck_assert_str_ne(write, again);
	ck_assert(strncmp(read, "lockstep_", 9) == 0 && read[9] != '\0');
	t = tokens_get();
	ck_assert_uint_eq(ls_tokens_count(t), 3);
	ck_assert_int_eq(ls_tokens_find(t, read, &name), LS_SCOPE_READ);
	ck_assert_str_eq(name, "grafana");
	ck_assert_int_eq(ls_tokens_find(t, write, &name), LS_SCOPE_WRITE);
	ck_assert_str_eq(name, "alice");
	write[strlen(write) - 1] ^= 1;
	name = NULL;
	ck_assert_int_eq(ls_tokens_find(t, write, &name), LS_SCOPE_NONE);
	ck_assert_int_eq(ls_tokens_find(t, "", &name), LS_SCOPE_NONE);
	ck_assert_ptr_null(name);
	ls_tokens_free(t);
}

LS_TEST(tokens, a_name_loses_all_of_its_own)
{
	char token[LS_TOKEN_BYTES];
	const char *name;
	struct ls_tokens *t;

	tokens_add("alice", "write", token);
	tokens_add("alice", "read", token);
	tokens_add("bob", "read", token);
	ck_assert_int_eq(
		ls_tokens_remove(tokens_dir, "alice", tokens_text, sizeof(tokens_text)),
		2);
	ck_assert_int_eq(
		ls_tokens_remove(tokens_dir, "alice", tokens_text, sizeof(tokens_text)),
		0);
	t = tokens_get();
	ck_assert_int_eq(ls_tokens_find(t, token, &name), LS_SCOPE_READ);
	ck_assert_uint_eq(ls_tokens_count(t), 1);
	ls_tokens_free(t);
}

LS_TEST(tokens, names_and_scopes_are_checked)
{
	static const char *const names[] = { "", "a b", "tab\tbed",
		"a-name-of-thirty-two-characters-", "line\nbreak" };
	char token[LS_TOKEN_BYTES];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_eq(ls_tokens_add(tokens_dir, names[i], "read", token,
					 tokens_text, sizeof(tokens_text)),
			-LS_ERANGE);
	ck_assert_int_eq(ls_tokens_add(tokens_dir, "a", "root", token, tokens_text,
				 sizeof(tokens_text)),
		-LS_ERANGE);
	tokens_add("a-name-of-thirty-one-characters", "read", token);
}

LS_TEST(tokens, a_bad_line_is_named)
{
	static const char *const lines[] = { "x\n", "a read\n", "a root " DIGEST "\n",
		"a read " DIGEST "0\n", "a read " DIGEST, "a read " DIGEST " more\n",
		"a-name-of-thirty-two-characters- read " DIGEST "\n",
		"a\033[2J read " DIGEST "\n", "a\xff read " DIGEST "\n" };
	struct ls_tokens *t = NULL;
	char text[256];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		(void)snprintf(text, sizeof(text), "a read " DIGEST "\n%s", lines[i]);
		tokens_put(text);
		ck_assert_int_eq(ls_tokens_read(tokens_dir, &t, tokens_text,
					 sizeof(tokens_text)),
			-LS_EPARSE);
		ck_assert_ptr_nonnull(strstr(tokens_text, "line 2"));
	}
	tokens_put("a read " DIGEST "\n");
	t = tokens_get();
	ck_assert_uint_eq(ls_tokens_count(t), 1);
	ls_tokens_free(t);
}

LS_TEST(tokens, nobody_else_may_write_the_file)
{
	static const mode_t modes[] = { 0664, 0646 };
	char path[512];
	struct ls_tokens *t = NULL;

	tokens_put("a read " DIGEST "\n");
	(void)snprintf(path, sizeof(path), "%s/tokens", tokens_dir);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		ck_assert_int_eq(chmod(path, modes[i]), 0);
		ck_assert_int_eq(ls_tokens_read(tokens_dir, &t, tokens_text,
					 sizeof(tokens_text)),
			-EPERM);
		ck_assert_ptr_nonnull(strstr(tokens_text,
			"/tokens: can be written by others; run chmod"));
	}
	ck_assert_int_eq(chmod(path, 0444), 0);
	t = tokens_get();
	ck_assert_uint_eq(ls_tokens_count(t), 1);
	ls_tokens_free(t);
}

LS_TEST(tokens, there_is_a_limit)
{
	static char all[(LS_TOKENS_MAX + 1) * 80];
	size_t len = 0;
	struct ls_tokens *t = NULL;
	char token[LS_TOKEN_BYTES];

	for (size_t i = 0; i < LS_TOKENS_MAX; i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len,
			"a read " DIGEST "\n");
	tokens_put(all);
	t = tokens_get();
	ck_assert_uint_eq(ls_tokens_count(t), LS_TOKENS_MAX);
	ls_tokens_free(t);
	ck_assert_int_eq(ls_tokens_add(tokens_dir, "b", "read", token, tokens_text,
				 sizeof(tokens_text)),
		-LS_ELIMIT);
	(void)snprintf(all + len, sizeof(all) - len, "a read " DIGEST "\n");
	tokens_put(all);
	ck_assert_int_eq(
		ls_tokens_read(tokens_dir, &t, tokens_text, sizeof(tokens_text)),
		-LS_ELIMIT);
}

LS_TEST(tokens, a_cookie_is_for_this_site_alone)
{
	char cookie[LS_ACCESS_COOKIE_BYTES];

	ls_access_cookie("lockstep_0", cookie);
	ck_assert_str_eq(cookie,
		"__Host-lockstep=lockstep_0; Path=/; Secure; HttpOnly; SameSite=Strict");
	ls_access_cookie("", cookie);
	ck_assert_str_eq(cookie,
		"__Host-lockstep=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
}
