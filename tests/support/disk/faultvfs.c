/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/disk/faultvfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>
#include "tests/support/harness.h"

/* Ours, with the file of the true system behind it. */
struct fault_file {
	sqlite3_file base;
	sqlite3_file *real;
};

static sqlite3_vfs fault_vfs;
static sqlite3_vfs *fault_real;
static atomic_long fault_left = -1; /* calls until the fault; < 0: none */
static atomic_int fault_code;
static atomic_bool fault_hit;

static sqlite3_file *
fault_of(sqlite3_file *f)
{
	return ((struct fault_file *)f)->real;
}

/* The code to fail with, or SQLITE_OK. */
static int
fault_now(void)
{
	long left = atomic_load(&fault_left);

	if (left < 0)
		return SQLITE_OK;
	if (left > 1) {
		atomic_fetch_sub(&fault_left, 1);
		return SQLITE_OK;
	}
	atomic_store(&fault_hit, true);
	return atomic_load(&fault_code);
}

static int
fault_close(sqlite3_file *f)
{
	return fault_of(f)->pMethods->xClose(fault_of(f));
}

static int
fault_read(sqlite3_file *f, void *dst, int n, sqlite3_int64 at)
{
	return fault_of(f)->pMethods->xRead(fault_of(f), dst, n, at);
}

static int
fault_write(sqlite3_file *f, const void *src, int n, sqlite3_int64 at)
{
	int code = fault_now();

	return code != SQLITE_OK
		? code
		: fault_of(f)->pMethods->xWrite(fault_of(f), src, n, at);
}

static int
fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return fault_of(f)->pMethods->xTruncate(fault_of(f), size);
}

static int
fault_sync(sqlite3_file *f, int flags)
{
	int code = fault_now();

	return code != SQLITE_OK ? code
				 : fault_of(f)->pMethods->xSync(fault_of(f), flags);
}

static int
fault_size(sqlite3_file *f, sqlite3_int64 *ret_size)
{
	return fault_of(f)->pMethods->xFileSize(fault_of(f), ret_size);
}

static int
fault_lock(sqlite3_file *f, int how)
{
	return fault_of(f)->pMethods->xLock(fault_of(f), how);
}

static int
fault_unlock(sqlite3_file *f, int how)
{
	return fault_of(f)->pMethods->xUnlock(fault_of(f), how);
}

static int
fault_reserved(sqlite3_file *f, int *ret_is)
{
	return fault_of(f)->pMethods->xCheckReservedLock(fault_of(f), ret_is);
}

static int
fault_control(sqlite3_file *f, int op, void *arg)
{
	return fault_of(f)->pMethods->xFileControl(fault_of(f), op, arg);
}

static int
fault_sector(sqlite3_file *f)
{
	return fault_of(f)->pMethods->xSectorSize(fault_of(f));
}

static int
fault_traits(sqlite3_file *f)
{
	return fault_of(f)->pMethods->xDeviceCharacteristics(fault_of(f));
}

static int
fault_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret_page)
{
	return fault_of(f)->pMethods->xShmMap(fault_of(f), page, size, extend,
		ret_page);
}

static int
fault_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return fault_of(f)->pMethods->xShmLock(fault_of(f), offset, n, flags);
}

static void
fault_shm_barrier(sqlite3_file *f)
{
	fault_of(f)->pMethods->xShmBarrier(fault_of(f));
}

static int
fault_shm_unmap(sqlite3_file *f, int remove)
{
	return fault_of(f)->pMethods->xShmUnmap(fault_of(f), remove);
}

static const sqlite3_io_methods fault_methods = {
	.iVersion = 2,
	.xClose = fault_close,
	.xRead = fault_read,
	.xWrite = fault_write,
	.xTruncate = fault_truncate,
	.xSync = fault_sync,
	.xFileSize = fault_size,
	.xLock = fault_lock,
	.xUnlock = fault_unlock,
	.xCheckReservedLock = fault_reserved,
	.xFileControl = fault_control,
	.xSectorSize = fault_sector,
	.xDeviceCharacteristics = fault_traits,
	.xShmMap = fault_shm_map,
	.xShmLock = fault_shm_lock,
	.xShmBarrier = fault_shm_barrier,
	.xShmUnmap = fault_shm_unmap,
};

static int
fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
	int *ret_flags)
{
	struct fault_file *f = (struct fault_file *)file;
	int rc;

	(void)vfs;
	f->real = (sqlite3_file *)(f + 1);
	rc = fault_real->xOpen(fault_real, name, f->real, flags, ret_flags);
	f->base.pMethods = f->real->pMethods != NULL ? &fault_methods : NULL;
	return rc;
}

void
ls_faultvfs_install(void)
{
	if (fault_real != NULL)
		return; /* it is, from an earlier test */
	fault_real = sqlite3_vfs_find(NULL);
	ck_assert_ptr_nonnull(fault_real);
	fault_vfs = *fault_real;
	fault_vfs.zName = "fault";
	fault_vfs.pNext = NULL;
	fault_vfs.szOsFile = (int)sizeof(struct fault_file) + fault_real->szOsFile;
	fault_vfs.xOpen = fault_open;
	ck_assert_int_eq(sqlite3_vfs_register(&fault_vfs, 1), SQLITE_OK);
}

void
ls_faultvfs_fail(long n, int code)
{
	atomic_store(&fault_hit, false);
	atomic_store(&fault_code, code);
	atomic_store(&fault_left, n);
}

void
ls_faultvfs_heal(void)
{
	atomic_store(&fault_left, -1);
}

bool
ls_faultvfs_hit(void)
{
	return atomic_load(&fault_hit);
}
