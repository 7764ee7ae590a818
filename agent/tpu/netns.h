/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns - servers on libtpu's ports in other network namespaces of this node.
 *
 * On Kubernetes libtpu listens in the training pod's network namespace. With the host's
 * process ids (hostPID), and no other privilege, /proc/PID/net shows the sockets and
 * addresses of that namespace. New processes are looked up only. The table of sockets,
 * whose reading costs milliseconds, is read in one namespace a look, and only where the
 * number of its TCP sockets changed.
 *
 * An address is reported only if it belongs to this node: an address of the host's own
 * namespace, or one that the host's longest route reaches without a gateway, through a
 * device that is no uplink. A namespace can claim any address, so its word alone is not
 * enough.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM. What cannot be read is not found.
 * Limits:  LS_NETNS_MAX namespaces, LS_NETNS_PIDS_MAX processes, LS_NETNS_NEW_MAX of them
 *          a look, LS_NETNS_TEXT_MAX_BYTES a file. A look follows after LS_NETNS_LOOK_NS
 *          and after LS_NETNS_PACE times the CPU time of the look before. IPv4 only.
 * Source:  proc(5), proc_net, and Linux, Documentation/networking/proc_net_tcp.rst.
 */
#ifndef LS_AGENT_NETNS_H
#define LS_AGENT_NETNS_H

#include <netinet/in.h>
#include "agent/collect/doctor.h"
#include "proto/limits.h"

struct ls_netns;

struct ls_netns_server {
	char address[INET_ADDRSTRLEN];
	uint16_t port;
};

/* Makes it, for servers on these ports (copied). -ENOMEM. */
int ls_netns_new(const char *proc_root, const char *sys_root,
	const uint16_t ports[LS_TPU_PORTS_MAX], size_t count,
	struct ls_netns **ret_netns) LS_MUSTCHECK;
/* Frees it. Accepts NULL. */
void ls_netns_free(struct ls_netns *n);

/*
 * Looks, if it is time to. Returns the number of servers found: all of one namespace,
 * which is not looked at again while ls_netns_keep() holds.
 */
size_t ls_netns_look(struct ls_netns *n, uint64_t now_ns,
	struct ls_netns_server ret_servers[LS_TPU_PORTS_MAX]);

/* False until each namespace of the start was looked at: looks follow without a rest. */
bool ls_netns_is_settled(const struct ls_netns *n);

/*
 * Is the namespace with servers at this address still there? is_there false means that
 * its servers are gone, or not read: the namespace is looked at again.
 */
bool ls_netns_keep(struct ls_netns *n, const char *address, bool is_there,
	uint64_t now_ns);

/*
 * Reports which of the three levels of reach this agent has, and what gives the next:
 * its own namespace, the others of this node, and also the node's own pages (has_pages).
 */
void ls_netns_tell(const struct ls_netns *n, bool has_pages, struct ls_doctor *d);

#endif
