/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/db/err_sqlite. */
#include "config.h"

#include "storage/db/err_sqlite.h"

#include <errno.h>
#include <sqlite3.h>
#include "proto/base/err.h"
#include "tests/support/harness.h"

LS_CASE(err_sqlite);

LS_TEST(err_sqlite, maps_codes)
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
