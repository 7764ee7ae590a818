/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/err.h"

#include "proto/base/log.h"

#include <errno.h>
#include <nng/nng.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const err_texts[] = {
#define LS_ERR(name, text) text,
#include "proto/base/err.def"
#undef LS_ERR
};

static const char *
err_system_text(int err)
{
#ifdef HAVE_STRERRORDESC_NP
	return strerrordesc_np(err);
#else
	/* glibc before 2.32; the "C" locale is ours, so the text is constant. */
	static _Thread_local char text[64];
	const char *found = strerror_r(err, text, sizeof(text));

	return strncmp(found, "Unknown error", strlen("Unknown error")) == 0 ? NULL
									     : found;
#endif
}

const char *
ls_err_text(int rc)
{
	const char *text = NULL;

	if (rc == 0)
		return "success";
	if (rc <= -(LS_EFIRST_ + 1) && rc > -LS_ELAST_)
		return err_texts[-(rc + LS_EFIRST_ + 1)];
	if (rc < 0 && rc >= -LS_EFIRST_)
		text = err_system_text(-rc);
	return text ? text : "unknown error";
}

/* nng's portable codes, which are not errno values. What is missing here has no errno.
 */
static const struct {
	int nng;
	int sys;
} err_nng_table[] = {
	{ NNG_EINTR, EINTR },
	{ NNG_ENOMEM, ENOMEM },
	{ NNG_EINVAL, EINVAL },
	{ NNG_EBUSY, EBUSY },
	{ NNG_ETIMEDOUT, ETIMEDOUT },
	{ NNG_ECONNREFUSED, ECONNREFUSED },
	{ NNG_ECLOSED, EBADF },
	{ NNG_EAGAIN, EAGAIN },
	{ NNG_ENOTSUP, ENOTSUP },
	{ NNG_EADDRINUSE, EADDRINUSE },
	{ NNG_ENOENT, ENOENT },
	{ NNG_EPROTO, EPROTO },
	{ NNG_EUNREACHABLE, EHOSTUNREACH },
	{ NNG_EADDRINVAL, EADDRNOTAVAIL },
	{ NNG_EPERM, EPERM },
	{ NNG_EMSGSIZE, EMSGSIZE },
	{ NNG_ECONNABORTED, ECONNABORTED },
	{ NNG_ECONNRESET, ECONNRESET },
	{ NNG_ECANCELED, ECANCELED },
	{ NNG_ENOFILES, EMFILE },
	{ NNG_ENOSPC, ENOSPC },
	{ NNG_EEXIST, EEXIST },
	{ NNG_ECONNSHUT, ESHUTDOWN },
};

int
ls_err_nng(int nng_rc)
{
	if (nng_rc == 0)
		return 0;
	if (nng_rc > NNG_ESYSERR && nng_rc <= NNG_ESYSERR + LS_EFIRST_)
		return -(nng_rc - NNG_ESYSERR);
	for (size_t i = 0; i < sizeof(err_nng_table) / sizeof(err_nng_table[0]); i++)
		if (err_nng_table[i].nng == nng_rc)
			return -err_nng_table[i].sys;
	return -LS_ENET;
}

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

void
ls_assert_failed(const char *expr, const char *file, int line)
{
	ls_log(LS_LOG_ERR, "assert", "%s:%d: %s does not hold; aborting", file, line,
		expr);
	abort();
}
