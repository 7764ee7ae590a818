/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/err_nng.h"

#include <errno.h>
#include <nng/nng.h>
#include <stddef.h>
#include "proto/base/err.h"

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
