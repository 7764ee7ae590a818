/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/err.h"

#include "tests/support/harness.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

LS_CASE(err);

LS_TEST(err, err_text_knows_every_code_of_ours)
{
	static const char *const texts[] = {
#define LS_ERR(name, text) text,
#include "proto/base/err.def"
#undef LS_ERR
	};
	static const int codes[] = {
#define LS_ERR(name, text) LS_E##name,
#include "proto/base/err.def"
#undef LS_ERR
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		ck_assert_int_eq(codes[i], 1000 + (int)i);
		ck_assert_str_eq(ls_err_text(-codes[i]), texts[i]);
	}
}

LS_TEST(err, err_text_knows_errno)
{
	ck_assert_str_eq(ls_err_text(-ENOENT), "No such file or directory");
	ck_assert_str_eq(ls_err_text(0), "success");
}

LS_TEST(err, err_text_is_never_null)
{
	static const int odd[] = { 1, 1000, -998, -999, -LS_ELAST_, -100000, INT32_MAX,
		INT32_MIN };

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		ck_assert_str_eq(ls_err_text(odd[i]), "unknown error");
}

LS_TEST(err, assert_that_holds_does_nothing)
{
	LS_ASSERT(1 + 1 == 2);
}

LS_TEST_SIGNAL(err, assert_that_fails_aborts, SIGABRT)
{
	LS_ASSERT(1 + 1 == 3);
}
