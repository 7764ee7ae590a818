/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - error codes of lockstep, their texts, and assertions.
 *
 * Owner:   none; pure functions.
 * Units:   codes: 0, -errno for the system, -LS_E... (1000 and up) for ours.
 * Errors:  none.
 * Limits:  none.
 */
#ifndef LS_BASE_ERR_H
#define LS_BASE_ERR_H

#define LS_MUSTCHECK __attribute__((warn_unused_result))

enum ls_err {
	LS_EFIRST_ = 999,
#define LS_ERR(name, text) LS_E##name,
#include "proto/base/err.def"
#undef LS_ERR
	LS_ELAST_
};

/* Says that a result is ignored on purpose (gcc warns in spite of a cast to void). */
static inline void
ls_ignore(int rc)
{
	(void)rc;
}

/* Text of a code returned by a lockstep function (0, -errno or -LS_E...). Never NULL.
 */
const char *ls_err_text(int rc);

/* Called by LS_ASSERT; logs and aborts. */
void ls_assert_failed(const char *expr, const char *file, int line)
	__attribute__((noreturn));

/* States a programming error; stays on in release. Never for input from outside. */
#define LS_ASSERT(expr) ((expr) ? (void)0 : ls_assert_failed(#expr, __FILE__, __LINE__))

#endif
