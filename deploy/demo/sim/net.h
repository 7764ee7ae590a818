/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - TCP sockets for thousands of simulated agents.
 *
 * Owner:   none.
 * Units:   counts.
 * Errors:  -LS_ERANGE an address that is none; -errno.
 * Limits:  none.
 */
#ifndef LS_TESTS_SIM_NET_H
#define LS_TESTS_SIM_NET_H

#include <sys/socket.h>
#include "deploy/demo/sim/sim.h"

struct sim_address {
	struct sockaddr_storage addr;
	socklen_t len;
};

/* "tcp://HOST:PORT", as agents have it in --collector; names are resolved, which may
 * take its time. */
int sim_net_resolve(const char *url, struct sim_address *ret_address) LS_MUSTCHECK;

/* Raises the limit of open files as far as may be; returns how many connections there
 * is room for. */
uint64_t sim_net_raise_files(void);

/*
 * A socket that begins to connect. The n-th of many to a loopback address comes from
 * 127.0.0.1 + n: hosts have addresses of their own, and a collector limits what new
 * ones of one address send together.
 */
int sim_net_connect(const struct sim_address *to, uint32_t n, int *ret_fd) LS_MUSTCHECK;

#endif
