/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err_nng - nng's error codes as ours.
 *
 * Owner:   none; a pure function.
 * Units:   nng_rc is 0 or an nng code; the result is 0, -errno or -LS_ENET.
 * Errors:  none.
 * Limits:  none.
 * Source:  nng/nng.h.
 */
#ifndef LS_ERR_NNG_H
#define LS_ERR_NNG_H

/* -LS_ENET stands for codes that have no errno. */
int ls_err_nng(int nng_rc);

#endif
