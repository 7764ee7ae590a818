/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_diag - what the kernel knows of each TCP connection, summed per remote address.
 * Pure functions on bytes.
 *
 * A dump of established connections comes in pieces of netlink messages; each socket's
 * TCP_INFO is added to its peer. Loopback is left out.
 *
 * Owner:   pure functions; the caller owns the table.
 * Units:   seconds, bytes, counts.
 * Errors:  -LS_EPARSE a message that makes no sense; -errno that the kernel answered
 *          with.
 * Limits:  LS_TCP_PEERS_MAX peers; connections of others are counted in left_out.
 * Source:  sock_diag(7), rtnetlink(7), linux/inet_diag.h, linux/tcp.h struct tcp_info.
 */
#ifndef LS_AGENT_TCP_DIAG_H
#define LS_AGENT_TCP_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_tcp_peer {
	/* AF_INET or AF_INET6; an IPv4 address in IPv6 clothes is AF_INET */
	uint8_t family;
	uint8_t address[16]; /* of IPv4 the first 4 */
	uint64_t connections, retransmits, sent_bytes, received_bytes;
	double rtt_s; /* the largest of its connections; 0: none known */
	double min_rtt_s; /* the least; 0: none known */
};

struct ls_tcp_diag {
	size_t count;
	struct ls_tcp_peer peer[LS_TCP_PEERS_MAX];
	uint64_t left_out; /* connections of peers that found no room */
};

/* The request for a dump of the established connections of this family; returns its
 * length. */
size_t ls_tcp_diag_request(uint8_t *buf, size_t size, int family, uint32_t seq);

/* Adds what one piece of the answer says; *ret_done: it was the last. */
int ls_tcp_diag_add(struct ls_tcp_diag *d, const uint8_t *buf, size_t len,
	bool *ret_done) LS_MUSTCHECK;

#endif
