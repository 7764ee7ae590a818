/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faultvfs - an SQLite file system that fails on request: the n-th write or sync from
 * now.
 *
 * Owner:   test programs; any thread may use files, one sets the faults.
 * Units:   calls.
 * Errors:  a failed registration fails the test.
 * Limits:  none.
 * Source:  sqlite.org/vfs.html.
 */
#ifndef LS_TESTS_FAULTVFS_H
#define LS_TESTS_FAULTVFS_H

#include <stdbool.h>

/* Makes it the default for connections opened from now on. */
void ls_faultvfs_install(void);

/*
 * The n-th write or sync from now (1: the next) fails with the SQLite code, and so do
 * all after it, until ls_faultvfs_heal.
 */
void ls_faultvfs_fail(long n, int code);
void ls_faultvfs_heal(void);

/* True if a call has failed since ls_faultvfs_fail. */
bool ls_faultvfs_hit(void);

#endif
