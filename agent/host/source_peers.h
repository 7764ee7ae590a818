/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_peers - round-trip time, retransmits and bytes of the TCP connections to each
 * remote host.
 *
 * The kernel is asked for all established connections of this network namespace
 * (sock_diag) at the slow cadence. The peers with most traffic become series:
 * neighbours of a ring, input storage, the collector. A slow link shows at both of its
 * ends, a slow host only as waiting.
 *
 * A counter of a peer goes on when connections end; what the last of them counted since
 * the reading before is then lost.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   seconds, bytes, counts.
 * Errors:  probe: -LS_EABSENT where the kernel has no sock_diag for TCP.
 * Limits:  LS_TCP_PEERS_MAX, LS_TCP_PEER_SERIES_MAX, LS_TCP_DUMP_MAX_BYTES an answer.
 * Source:  sock_diag(7).
 */
#ifndef LS_AGENT_SOURCE_PEERS_H
#define LS_AGENT_SOURCE_PEERS_H

#include "agent/collect/series.h"
#include "agent/collect/source.h"
#include "agent/host/tcp_diag.h"

/* The source; its series join the group "host.peers" of the table, which is borrowed.
 * -ENOMEM. */
int ls_source_peers_new(struct ls_series_table *table,
	struct ls_source *ret_source) LS_MUSTCHECK;

/* Takes over one reading, as read() does with what the kernel says. */
void ls_source_peers_take(struct ls_source *source, const struct ls_tcp_diag *d,
	uint64_t now_mono_ns);

#endif
