/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/err_nng. */
#include "config.h"

#include "proto/wire/err_nng.h"

#include <errno.h>
#include <nng/nng.h>
#include "proto/base/err.h"
#include "tests/support/harness.h"

LS_CASE(err_nng);

LS_TEST(err_nng, maps_codes)
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
