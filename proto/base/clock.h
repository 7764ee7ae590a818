/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the only caller of clock_gettime.
 *
 * Owner:   none; thread-safe.
 * Units:   ns. `mono` is CLOCK_MONOTONIC, `wall` is CLOCK_REALTIME since the Unix
 *          epoch. Never add, subtract or compare the two kinds.
 * Errors:  none.
 * Limits:  none.
 */
#ifndef LS_BASE_CLOCK_H
#define LS_BASE_CLOCK_H

#include <stdint.h>

#define LS_BOOT_ID_BYTES 16

/* Now, CLOCK_MONOTONIC, ns. */
uint64_t ls_clock_mono_ns(void);

/* Now, CLOCK_REALTIME, ns since the epoch. */
int64_t ls_clock_wall_ns(void);

/* CPU time used by this process so far (user and system), ns. */
uint64_t ls_clock_cpu_ns(void);

/* CPU time of the calling thread so far. */
uint64_t ls_clock_thread_ns(void);

/* The kernel's boot id (/proc/sys/kernel/random/boot_id) as 16 bytes; -errno or
 * -LS_EPARSE. */
int ls_clock_boot_id(const char *proc_root, uint8_t ret_id[LS_BOOT_ID_BYTES]);

#endif
