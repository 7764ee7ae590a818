/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns - ranks in network namespaces of their own, and TCP connections between them.
 *
 * A socket belongs to the namespace in which it was made, whoever holds it later: so
 * the parent makes all of them, and the ranks get them by fork. Namespaces are those of
 * `ip netns`: PREFIX0, PREFIX1 ...
 *
 * Owner:   the parent before it forks, and each rank; single-threaded both.
 * Units:   none.
 * Errors:  0 or -errno; -EADDRNOTAVAIL: a namespace has no IPv4 address but loopback's.
 * Limits:  a connection is awaited for NETNS_CONNECT_MS.
 * Source:  setns(2), ip-netns(8) for /run/netns.
 */
#ifndef LS_TESTS_WORKLOAD_NETNS_H
#define LS_TESTS_WORKLOAD_NETNS_H

#include "proto/base/err.h"

#define NETNS_CONNECT_MS 5000

/* Are the namespaces of so many ranks there? -1 with a message in err. */
int netns_check(const char *prefix, unsigned ranks, char *err,
	unsigned err_size) LS_MUSTCHECK;

/* Moves the calling process into the namespace of this rank. */
int netns_enter(const char *prefix, unsigned rank) LS_MUSTCHECK;

/* Connects two ranks: ret_fds[0] is the end of `from`, [1] that of `to`. Leaves the
 * caller where it was. */
int netns_connect(const char *prefix, unsigned from, unsigned to,
	int ret_fds[2]) LS_MUSTCHECK;

#endif
