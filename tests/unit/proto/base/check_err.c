/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/err.h"

#include "tests/support/harness.h"

#include <errno.h>
#include <nng/nng.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

START_TEST(err_text_knows_every_code_of_ours)
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
END_TEST

START_TEST(err_text_knows_errno)
{
	ck_assert_str_eq(ls_err_text(-ENOENT), "No such file or directory");
	ck_assert_str_eq(ls_err_text(0), "success");
}
END_TEST

START_TEST(err_text_is_never_null)
{
	static const int odd[] = { 1, 1000, -998, -999, -LS_ELAST_, -100000, INT32_MAX,
		INT32_MIN };

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		ck_assert_str_eq(ls_err_text(odd[i]), "unknown error");
}
END_TEST

START_TEST(err_nng_maps_codes)
{
	ck_assert_int_eq(ls_err_nng(0), 0);
	ck_assert_int_eq(ls_err_nng(NNG_ENOMEM), -ENOMEM);
	ck_assert_int_eq(ls_err_nng(NNG_ETIMEDOUT), -ETIMEDOUT);
	ck_assert_int_eq(ls_err_nng(NNG_ECONNREFUSED), -ECONNREFUSED);
	ck_assert_int_eq(ls_err_nng(NNG_EADDRINUSE), -EADDRINUSE);
	ck_assert_int_eq(ls_err_nng(NNG_ECANCELED), -ECANCELED);
	ck_assert_int_eq(ls_err_nng(NNG_EMSGSIZE), -EMSGSIZE);
	ck_assert_int_eq(ls_err_nng(NNG_ESYSERR + ENOSPC), -ENOSPC);
	ck_assert_int_eq(ls_err_nng(NNG_ESTATE), -LS_ENET);
	ck_assert_int_eq(ls_err_nng(NNG_EPEERAUTH), -LS_ENET);
	ck_assert_int_eq(ls_err_nng(NNG_EINTERNAL), -LS_ENET);
	ck_assert_int_eq(ls_err_nng(NNG_ETRANERR + 7), -LS_ENET);
	ck_assert_int_eq(ls_err_nng(NNG_ESYSERR), -LS_ENET);
	ck_assert_int_eq(ls_err_nng(-5), -LS_ENET);
}
END_TEST

START_TEST(err_sqlite_maps_codes)
{
	ck_assert_int_eq(ls_err_sqlite(SQLITE_OK), 0);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_ROW), 0);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_DONE), 0);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_BUSY), -LS_EBUSY);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_BUSY_SNAPSHOT), -LS_EBUSY);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_LOCKED), -LS_EBUSY);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_CORRUPT), -LS_ECORRUPT);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_CORRUPT_INDEX), -LS_ECORRUPT);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_NOTADB), -LS_ECORRUPT);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_NOMEM), -ENOMEM);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_IOERR_NOMEM), -ENOMEM);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_FULL), -ENOSPC);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_IOERR_FSYNC), -EIO);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_PERM), -EACCES);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_READONLY), -EROFS);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_INTERRUPT), -EINTR);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_TOOBIG), -EMSGSIZE);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_CONSTRAINT), -LS_EDB);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_MISUSE), -LS_EDB);
}
END_TEST

START_TEST(assert_that_holds_does_nothing)
{
	LS_ASSERT(1 + 1 == 2);
}
END_TEST

START_TEST(assert_that_fails_aborts)
{
	LS_ASSERT(1 + 1 == 3);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("err");
	TCase *tc = tcase_create("err");
	const char *fork_mode = getenv("CK_FORK");

	tcase_add_test(tc, err_text_knows_every_code_of_ours);
	tcase_add_test(tc, err_text_knows_errno);
	tcase_add_test(tc, err_text_is_never_null);
	tcase_add_test(tc, err_nng_maps_codes);
	tcase_add_test(tc, err_sqlite_maps_codes);
	tcase_add_test(tc, assert_that_holds_does_nothing);
	/* a signal needs a child to die */
	if (!fork_mode || strcmp(fork_mode, "no") != 0)
		tcase_add_test_raise_signal(tc, assert_that_fails_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return ls_test_run(s);
}
