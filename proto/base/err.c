/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/err.h"

#include "proto/base/log.h"

#include <errno.h>
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

void
ls_assert_failed(const char *expr, const char *file, int line)
{
	ls_log(LS_LOG_ERR, "assert", "%s:%d: %s does not hold; aborting", file, line,
		expr);
	abort();
}
