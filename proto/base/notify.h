/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - tells the service manager how we are: ready, alive, stopping.
 *
 * Outside systemd (no $NOTIFY_SOCKET) every call does nothing.
 *
 * Owner:   the loop thread. No state.
 * Units:   ns.
 * Errors:  0, -errno; -LS_ERANGE for a socket address that cannot be one. A failure is
 *          no reason to stop: the manager decides by its own time-outs.
 * Limits:  none.
 * Source:  sd_notify(3), sd_watchdog_enabled(3): a datagram to $NOTIFY_SOCKET ('@'
 *          first = abstract).
 */
#ifndef LS_BASE_NOTIFY_H
#define LS_BASE_NOTIFY_H

#include <stdint.h>
#include "proto/base/err.h"

/* Sends lines such as "READY=1", "WATCHDOG=1", "STOPPING=1", "STATUS=...". */
int ls_notify_send(const char *text);

/* How often to send "WATCHDOG=1": half of $WATCHDOG_USEC. 0: the manager does not watch
 * us. */
uint64_t ls_notify_watchdog_ns(void);

#endif
