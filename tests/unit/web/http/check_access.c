/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/access.h"
#include "proto/wire/keys.h"
#include "tests/support/harness.h"
#include <errno.h>
#include <string.h>
#include <time.h>

#define S 1000000000ull

static struct ls_access *access_open;
static char access_read_token[LS_TOKEN_BYTES], access_write_token[LS_TOKEN_BYTES];
static struct ls_problem access_problem;

static void
access_setup(void)
{
	static const char *const names[] = { "localhost" };
	const char *dir = ls_test_tmpdir();
	int64_t now_s = (int64_t)time(NULL);
	char text[512];

	ck_assert_int_eq(ls_keys_init(dir, now_s, text, sizeof(text)), 0);
	ck_assert_int_eq(ls_keys_issue(dir, LS_TLS_COLLECTOR, names, 1, now_s - 60,
				 now_s + 90 * 86400, text, sizeof(text)),
		0);
	ck_assert_int_eq(ls_tokens_add(dir, "grafana", "read", access_read_token, text,
				 sizeof(text)),
		0);
	ck_assert_int_eq(ls_tokens_add(dir, "alice", "write", access_write_token, text,
				 sizeof(text)),
		0);
	ck_assert_int_eq(ls_access_open(dir, &access_open), 0);
}

static void
access_teardown(void)
{
	ls_access_close(access_open);
}

/* The status for a token, 0 if it suffices. */
static int
access_status(const char *token, enum ls_scope need, uint64_t now_ns)
{
	const char *name = NULL;
	int rc = ls_access_check_token(access_open, token, need, now_ns, &name,
		&access_problem);

	ck_assert(rc == 0 ? name != NULL : rc == -EACCES && name == NULL);
	return rc == 0 ? 0 : access_problem.status;
}

LS_CASE(access, access_setup, access_teardown);

LS_TEST(access, a_token_opens_what_its_scope_covers)
{
	ck_assert_int_eq(access_status(access_read_token, LS_SCOPE_READ, S), 0);
	ck_assert_int_eq(access_status(access_write_token, LS_SCOPE_READ, S), 0);
	ck_assert_int_eq(access_status(access_write_token, LS_SCOPE_WRITE, S), 0);
	ck_assert_int_eq(access_status(access_read_token, LS_SCOPE_WRITE, S), 403);
	ck_assert_ptr_nonnull(strstr(access_problem.detail, "the scope write"));
}

LS_TEST(access, an_unknown_token_opens_nothing)
{
	static const char *const unknown[] = { "", "lockstep_0", "lockstep_" };

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		ck_assert_int_eq(access_status(unknown[i], LS_SCOPE_READ, S), 401);
		ck_assert_int_eq(access_status(unknown[i], LS_SCOPE_NONE, S), 401);
	}
	/* without its prefix */
	ck_assert_int_eq(access_status(access_read_token + strlen("lockstep_"),
				 LS_SCOPE_READ, S),
		401);
}

LS_TEST(access, guessing_is_slowed_and_known_tokens_are_not)
{
	for (unsigned i = 0; i < LS_TOKENS_WRONG_PER_S; i++)
		ck_assert_int_eq(access_status("x", LS_SCOPE_READ, S), 401);
	ck_assert_int_eq(access_status("x", LS_SCOPE_READ, S), 429);
	ck_assert_int_eq(access_status(access_read_token, LS_SCOPE_READ, S), 0);
	ck_assert_int_eq(access_status("x", LS_SCOPE_READ, 2 * S), 401);
}
