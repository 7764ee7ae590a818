/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/collect/dirlist.h"
#include "agent/collect/procfile.h"
#include "agent/host/source_host.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

#define NETNS_TCP_LISTEN 0x0au /* Linux, include/net/tcp_states.h */
/* 127.0.0.1 and ::1 as the tables of sockets write them */
#define NETNS_LOOPBACK "0100007F"
#define NETNS_LOOPBACK6 "00000000000000000000000001000000"

#define NETNS_FAMILIES 2u

/* Of a process: there was no room for its namespace. */
#define NETNS_LEFT_OUT UINT32_MAX

static const char *const netns_count_file[] = { "sockstat", "sockstat6" };
static const char *const netns_count_key[] = { "TCP: inuse ", "TCP6: inuse " };
static const char *const netns_table_file[] = { "tcp", "tcp6" };

struct netns_id {
	dev_t device;
	ino_t inode; /* of net/dev */
};

/* A process that was looked up. */
struct netns_process {
	uint32_t pid;
	uint32_t space; /* low bits of its namespace's inode, 0: none of interest */
};

/* A namespace other than the agent's. */
struct netns_space {
	struct netns_id id;
	uint32_t pid; /* one of its processes */
	uint64_t t_new_ns; /* when its newest process was seen */
	uint64_t t_read_ns; /* of its table of sockets, 0: never */
	uint64_t sockets[NETNS_FAMILIES], sockets_read[NETNS_FAMILIES];
	bool taken; /* its servers are reported */
	bool out_of_reach; /* its servers have no address on this node */
	in_addr_t address; /* of the servers reported */
};

struct ls_netns {
	char proc_root[LS_PATH_MAX_BYTES], sys_root[LS_PATH_MAX_BYTES];
	uint16_t port[LS_TPU_PORTS_MAX];
	size_t port_count;
	uint64_t t_next_ns;
	bool settled; /* each namespace of the start was read once */
	struct netns_id own, host;
	size_t count, left_out; /* left_out: processes, of the last look */
	struct netns_space space[LS_NETNS_MAX];
	size_t pid_count;
	struct netns_process pids[LS_NETNS_PIDS_MAX], before[LS_NETNS_PIDS_MAX];
	char text[LS_NETNS_TEXT_MAX_BYTES];
};

/* --- files ---------------------------------------------------------------- */

/* The namespace of a process ("self", "1"), zero if it cannot be seen. */
static struct netns_id
netns_id_of(const struct ls_netns *n, const char *process)
{
	char path[2 * LS_PATH_MAX_BYTES];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s/net/dev", n->proc_root, process);
	if (stat(path, &st) != 0)
		return (struct netns_id){ 0 };
	return (struct netns_id){ st.st_dev, st.st_ino };
}

static bool
netns_is(struct netns_id a, struct netns_id b)
{
	return a.device == b.device && a.inode == b.inode;
}

/* The beginning of a file of a process's net/ in n->text, "" if it cannot be read. */
static char *
netns_text(struct ls_netns *n, uint32_t pid, const char *file)
{
	char path[2 * LS_PATH_MAX_BYTES];
	ssize_t len = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%u/net/%s", n->proc_root, pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = ls_procfile_pread(fd, n->text, sizeof(n->text) - 1, 0);
		(void)close(fd); /* only read from */
	}
	n->text[len > 0 ? len : 0] = '\0';
	return n->text;
}

/* --- addresses ------------------------------------------------------------ */

/* Whether the host itself delivers to the address (see the header). */
static bool
netns_is_here(struct ls_netns *n, in_addr_t address)
{
	char device[IFNAMSIZ], best[IFNAMSIZ] = "*",
			       path[LS_PATH_MAX_BYTES + IFNAMSIZ + 32];
	unsigned to, gateway, mask, longest = 0;
	bool direct = false;
	char *rest, *line;

	for (int turn = 0; turn < 2;
		turn++) { /* the route, then what uses its device */
		rest = netns_text(n, 1, "route");
		if (strlen(rest) == sizeof(n->text) - 1)
			return false; /* the rest of the table is not known */
		while ((line = strsep(&rest, "\n")) != NULL) {
			if (sscanf(line, "%15s %x %x %*x %*d %*d %*d %x", device, &to,
				    &gateway, &mask) != 4)
				continue;
			if (turn == 1) {
				direct = direct &&
					(gateway == 0 || strcmp(device, best) != 0);
			} else if ((address & mask) == to && ntohl(mask) >= longest) {
				longest = ntohl(mask);
				direct = gateway == 0 && strcmp(device, "*") != 0;
				memcpy(best, device, sizeof(best));
			}
		}
	}
	(void)snprintf(path, sizeof(path), "%s/class/net/%s/device", n->sys_root, best);
	return direct && access(path, F_OK) != 0;
}

/* Addresses of a namespace beyond loopback, and how many. */
static size_t
netns_addresses(struct ls_netns *n, const struct netns_space *s,
	in_addr_t ret_addresses[LS_NETNS_ADDRESSES_MAX])
{
	char *rest = netns_text(n, s->pid, "fib_trie"), *line,
	     text[INET_ADDRSTRLEN] = "";
	size_t count = 0;
	in_addr_t a;

	while ((line = strsep(&rest, "\n")) != NULL && count < LS_NETNS_ADDRESSES_MAX) {
		if (sscanf(line, " |-- %15[0-9.]", text) == 1 ||
			strstr(line, "/32 host LOCAL") == NULL ||
			inet_pton(AF_INET, text, &a) != 1 || ntohl(a) >> 24 == 127)
			continue;
		ret_addresses[count++] = a;
	}
	return count;
}

/* --- listeners ------------------------------------------------------------ */

/* Adds the ports of listeners beyond loopback, each once. Listeners precede other
 * sockets in a table. */
static size_t
netns_listeners(struct ls_netns *n, char *rest, size_t count,
	uint16_t ports[LS_TPU_PORTS_MAX])
{
	unsigned port, state;
	char *line, hex[33];
	size_t i, k;

	while ((line = strsep(&rest, "\n")) != NULL) {
		if (sscanf(line, "%*d: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x", hex, &port,
			    &state) != 3 ||
			state != NETNS_TCP_LISTEN || strcmp(hex, NETNS_LOOPBACK) == 0 ||
			strcmp(hex, NETNS_LOOPBACK6) == 0)
			continue;
		for (i = 0; i < n->port_count && n->port[i] != port; i++)
			continue;
		for (k = 0; k < count && ports[k] != port; k++)
			continue;
		if (i < n->port_count && k == count)
			ports[count++] = (uint16_t)port;
	}
	return count;
}

/* The servers of a namespace, at its first address that belongs to this node. */
static size_t
netns_servers(struct ls_netns *n, struct netns_space *s,
	struct ls_netns_server ret_servers[LS_TPU_PORTS_MAX])
{
	uint16_t ports[LS_TPU_PORTS_MAX];
	in_addr_t address[LS_NETNS_ADDRESSES_MAX];
	size_t count = 0, addresses, i, k = 0;

	for (i = 0; i < NETNS_FAMILIES; i++)
		count = netns_listeners(n,
			netns_text(n, s->pid,
				s->sockets[i] > 0 ? netns_table_file[i] : ""),
			count, ports);
	addresses = count > 0 ? netns_addresses(n, s, address) : 0;
	while (k < addresses && !netns_is(s->id, n->host) &&
		!netns_is_here(n, address[k]))
		k++;
	s->taken = k < addresses;
	s->out_of_reach = count > 0 && !s->taken;
	if (!s->taken)
		return 0;
	s->address = address[k];
	for (i = 0; i < count; i++) {
		ret_servers[i].port = ports[i];
		(void)inet_ntop(AF_INET, &s->address, ret_servers[i].address,
			INET_ADDRSTRLEN);
	}
	return count;
}

/* --- namespaces ----------------------------------------------------------- */

/* A new process: its namespace. Returns what is kept of it. */
static uint32_t
netns_meet(struct ls_netns *n, uint32_t pid, const char *name, uint64_t now_ns)
{
	struct netns_id id = netns_id_of(n, name);
	size_t i;

	if (id.inode == 0 || netns_is(id, n->own))
		return 0;
	for (i = 0; i < n->count && !netns_is(n->space[i].id, id); i++)
		continue;
	if (i == LS_NETNS_MAX)
		return NETNS_LEFT_OUT;
	if (i == n->count)
		n->space[n->count++] = (struct netns_space){ .id = id, .pid = pid };
	n->space[i].t_new_ns = now_ns;
	return (uint32_t)id.inode;
}

/* Looks up the processes that were not there at the last look, and those left out where
 * there is room by now. procfs lists them in ascending order. */
static void
netns_list(struct ls_netns *n, uint64_t now_ns)
{
	size_t old = 0, fresh = 0, count = 0;
	const struct dirent64 *e;
	struct ls_dirlist dir;
	uint64_t pid;

	if (ls_dirlist_open(&dir, n->proc_root) != 0)
		return;
	memcpy(n->before, n->pids, n->pid_count * sizeof(n->pids[0]));
	n->left_out = 0;
	while ((e = ls_dirlist_next(&dir)) != NULL && count < LS_NETNS_PIDS_MAX) {
		struct netns_process p = { 0 };

		if (!ls_text_number(e->d_name, UINT32_MAX, &pid))
			continue;
		while (old < n->pid_count && n->before[old].pid < pid)
			old++;
		if (old < n->pid_count && n->before[old].pid == pid)
			p = n->before[old];
		if (p.pid != pid ||
			(p.space == NETNS_LEFT_OUT && n->count < LS_NETNS_MAX)) {
			if (fresh++ >= LS_NETNS_NEW_MAX)
				continue; /* at the next look */
			p.pid = (uint32_t)pid;
			p.space = netns_meet(n, p.pid, e->d_name, now_ns);
		}
		n->left_out += p.space == NETNS_LEFT_OUT;
		n->pids[count++] = p;
	}
	n->pid_count = count;
	ls_dirlist_close(&dir);
}

/* Whether the process is there, in that namespace. */
static bool
netns_has(const struct ls_netns *n, struct netns_id id, uint32_t pid)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", pid);
	return netns_is(netns_id_of(n, name), id);
}

/* Forgets namespaces whose processes are gone. */
static void
netns_prune(struct ls_netns *n)
{
	size_t i, k;

	for (i = n->count; i-- > 0;) {
		struct netns_space *s = &n->space[i];

		if (netns_has(n, s->id, s->pid))
			continue;
		for (k = 0; k < n->pid_count; k++) {
			if (n->pids[k].space == (uint32_t)s->id.inode &&
				netns_has(n, s->id, n->pids[k].pid))
				break;
		}
		if (k < n->pid_count)
			s->pid = n->pids[k].pid;
		else
			*s = n->space[--n->count];
	}
}

/* Counts the sockets. True if the table of sockets should be read. */
static bool
netns_is_due(struct ls_netns *n, struct netns_space *s, uint64_t now_ns)
{
	bool changed = s->t_read_ns == 0, any = false;
	const char *at;

	for (size_t f = 0; f < NETNS_FAMILIES; f++) {
		at = strstr(netns_text(n, s->pid, netns_count_file[f]),
			netns_count_key[f]);
		s->sockets[f] = at != NULL
			? strtoul(at + strlen(netns_count_key[f]), NULL, 10)
			: 0;
		any = any || s->sockets[f] > 0;
		changed = changed || s->sockets[f] != s->sockets_read[f];
	}
	return any &&
		(now_ns - s->t_read_ns >= LS_NETNS_OLD_NS ||
			(changed && now_ns - s->t_new_ns < LS_NETNS_YOUNG_NS));
}

size_t
ls_netns_look(struct ls_netns *n, uint64_t now_ns,
	struct ls_netns_server ret_servers[LS_TPU_PORTS_MAX])
{
	uint64_t begin = ls_clock_thread_ns(), pause;
	struct netns_space *next = NULL;
	size_t i, found = 0;

	if (now_ns < n->t_next_ns)
		return 0;
	netns_prune(n);
	netns_list(n, now_ns);
	for (i = 0; i < n->count; i++) {
		struct netns_space *s = &n->space[i];

		if (!s->taken && (next == NULL || s->t_read_ns < next->t_read_ns) &&
			netns_is_due(n, s, now_ns))
			next = s;
	}
	if (next != NULL) {
		next->t_read_ns = now_ns;
		memcpy(next->sockets_read, next->sockets, sizeof(next->sockets));
		found = netns_servers(n, next, ret_servers);
	}
	n->settled = n->settled || next == NULL;
	if (!n->settled)
		return found;
	pause = (ls_clock_thread_ns() - begin) * LS_NETNS_PACE;
	n->t_next_ns = now_ns + (pause > LS_NETNS_LOOK_NS ? pause : LS_NETNS_LOOK_NS);
	return found;
}

bool
ls_netns_is_settled(const struct ls_netns *n)
{
	return n->settled;
}

bool
ls_netns_keep(struct ls_netns *n, const char *address, bool is_there, uint64_t now_ns)
{
	in_addr_t a = 0;

	(void)inet_pton(AF_INET, address, &a); /* as it was written here */
	for (size_t i = 0; i < n->count; i++) {
		if (!n->space[i].taken || n->space[i].address != a)
			continue;
		n->space[i].taken = is_there;
		n->space[i].t_read_ns = now_ns;
		return is_there;
	}
	return false;
}

/* --- what is told --------------------------------------------------------- */

void
ls_netns_tell(const struct ls_netns *n, bool has_pages, struct ls_doctor *d)
{
	size_t i, taken = 0, out_of_reach = 0;

	for (i = 0; i < n->count; i++) {
		taken += n->space[i].taken;
		out_of_reach += n->space[i].out_of_reach;
	}
	has_pages = has_pages || netns_is(n->own, n->host);
	if (!ls_source_host_has_pids(n->proc_root))
		ls_doctor_add(d, LS_DOCTOR_NONE, "reach", "network namespaces",
			"level 1 of 3: only the agent's own network namespace is visible",
			"if this is Kubernetes: hostPID: true in the DaemonSet, at "
			"spec.template.spec");
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "reach", "network namespaces",
			has_pages
				? ""
				: "in the DaemonSet, at env: - {name: LOCKSTEP_PROM, value: "
				  "\"device-plugin=http://$(HOST_IP):2112/metrics\"}, with "
				  "HOST_IP from fieldRef status.hostIP",
			"level %d of 3: %zu other network namespaces are visible, %zu of "
			"them serve libtpu's metrics%s",
			has_pages ? 3 : 2, n->count, taken,
			has_pages ? "" : "; the node's own pages are not read");
	if (out_of_reach > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "reach", "other namespaces",
			"let libtpu listen on all addresses of its pod, or give --tpu-address",
			"%zu have a server on libtpu's port, but no IPv4 address that "
			"this node's own routes reach",
			out_of_reach);
	if (n->left_out > 0 || n->pid_count == LS_NETNS_PIDS_MAX)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "reach", "other namespaces",
			"give --tpu-address with the pod's address",
			"more than %d namespaces or %u processes: the rest is not read",
			LS_NETNS_MAX, LS_NETNS_PIDS_MAX);
}

/* --- life ----------------------------------------------------------------- */

int
ls_netns_new(const char *proc_root, const char *sys_root,
	const uint16_t ports[LS_TPU_PORTS_MAX], size_t count,
	struct ls_netns **ret_netns)
{
	struct ls_netns *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return -ENOMEM;
	(void)snprintf(n->proc_root, sizeof(n->proc_root), "%s", proc_root);
	(void)snprintf(n->sys_root, sizeof(n->sys_root), "%s", sys_root);
	memcpy(n->port, ports, count * sizeof(ports[0]));
	n->port_count = count;
	n->own = netns_id_of(n, "self");
	n->host = netns_id_of(n, "1");
	*ret_netns = n;
	return 0;
}

void
ls_netns_free(struct ls_netns *n)
{
	free(n);
}
