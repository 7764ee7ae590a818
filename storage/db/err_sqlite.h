/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err_sqlite - SQLite's result codes as ours.
 *
 * Owner:   none; a pure function.
 * Units:   sqlite_rc is a result code, extended or not.
 * Errors:  none.
 * Limits:  none.
 * Source:  https://sqlite.org/rescode.html.
 */
#ifndef LS_ERR_SQLITE_H
#define LS_ERR_SQLITE_H

/* 0 (OK, ROW, DONE), -errno, -LS_EBUSY, -LS_EINTERRUPTED, -LS_ECORRUPT or -LS_EDB. */
int ls_err_sqlite(int sqlite_rc);

#endif
