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

LS_TEST(err, err_nng_maps_codes)
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

LS_TEST(err, err_sqlite_maps_codes)
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
	ck_assert_int_eq(ls_err_sqlite(SQLITE_INTERRUPT), -LS_EINTERRUPTED);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_TOOBIG), -EMSGSIZE);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_CONSTRAINT), -LS_EDB);
	ck_assert_int_eq(ls_err_sqlite(SQLITE_MISUSE), -LS_EDB);
}

LS_TEST(err, assert_that_holds_does_nothing)
{
	LS_ASSERT(1 + 1 == 2);
}

LS_TEST_SIGNAL(err, assert_that_fails_aborts, SIGABRT)
{
	LS_ASSERT(1 + 1 == 3);
}
