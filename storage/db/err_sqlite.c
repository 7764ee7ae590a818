/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/err_sqlite.h"

#include <errno.h>
#include <sqlite3.h>
#include "proto/base/err.h"

int
ls_err_sqlite(int sqlite_rc)
{
	if (sqlite_rc == SQLITE_IOERR_NOMEM)
		return -ENOMEM;
	/* The low byte is the primary code; the rest only tells where it happened. */
	switch (sqlite_rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -LS_EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -LS_ECORRUPT;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_IOERR:
		return -EIO;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_INTERRUPT:
		return -LS_EINTERRUPTED;
	case SQLITE_TOOBIG:
		return -EMSGSIZE;
	default:
		return -LS_EDB;
	}
}
