/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/tcp_diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { TCP_STATE_ESTABLISHED = 1 }; /* include/net/tcp_states.h */

size_t
ls_tcp_diag_request(uint8_t *buf, size_t size, int family, uint32_t seq)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} r = { .head = { .nlmsg_len = sizeof(r),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = seq },
		.body = { .sdiag_family = (uint8_t)family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1u << (INET_DIAG_INFO - 1),
			.idiag_states = 1u << TCP_STATE_ESTABLISHED } };

	LS_ASSERT(size >= sizeof(r));
	memcpy(buf, &r, sizeof(r));
	return sizeof(r);
}

/* Its family and address in plain form. False for the loopback. */
static bool
tcp_diag_address(const struct inet_diag_msg *m, struct ls_tcp_peer *ret_peer)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff },
			     loopback[16] = { [15] = 1 };
	const uint8_t *a = (const uint8_t *)m->id.idiag_dst;

	memset(ret_peer, 0, sizeof(*ret_peer));
	ret_peer->family = m->idiag_family;
	if (m->idiag_family == AF_INET6 && memcmp(a, mapped, sizeof(mapped)) == 0) {
		ret_peer->family = AF_INET;
		a += sizeof(mapped);
	}
	if (ret_peer->family == AF_INET) {
		memcpy(ret_peer->address, a, 4);
		return a[0] != 127;
	}
	memcpy(ret_peer->address, a, 16);
	return memcmp(a, loopback, sizeof(loopback)) != 0;
}

static struct ls_tcp_peer *
tcp_diag_find(struct ls_tcp_diag *d, const struct ls_tcp_peer *who)
{
	size_t i;

	for (i = 0; i < d->count; i++) {
		if (d->peer[i].family == who->family &&
			memcmp(d->peer[i].address, who->address,
				sizeof(who->address)) == 0)
			return &d->peer[i];
	}
	if (d->count == LS_TCP_PEERS_MAX)
		return NULL;
	d->peer[d->count] = *who;
	return &d->peer[d->count++];
}

/* Older kernels tell a shorter tcp_info: what is not there is 0. */
static void
tcp_diag_info(struct ls_tcp_peer *p, const uint8_t *data, size_t len)
{
	struct tcp_info info = { 0 };

	memcpy(&info, data, len < sizeof(info) ? len : sizeof(info));
	p->retransmits += info.tcpi_total_retrans;
	p->sent_bytes += info.tcpi_bytes_acked;
	p->received_bytes += info.tcpi_bytes_received;
	if (info.tcpi_rtt * 1e-6 > p->rtt_s)
		p->rtt_s = info.tcpi_rtt * 1e-6;
	/* A kernel that has seen no sample says 2^32 - 1. */
	if (info.tcpi_min_rtt > 0 && info.tcpi_min_rtt != UINT32_MAX &&
		(p->min_rtt_s == 0 || info.tcpi_min_rtt * 1e-6 < p->min_rtt_s))
		p->min_rtt_s = info.tcpi_min_rtt * 1e-6;
}

static int
tcp_diag_socket(struct ls_tcp_diag *d, const uint8_t *body, size_t len)
{
	struct inet_diag_msg m;
	struct ls_tcp_peer who, *p;
	struct nlattr a;
	size_t at = NLMSG_ALIGN(sizeof(m));

	if (len < sizeof(m))
		return -LS_EPARSE;
	memcpy(&m, body, sizeof(m));
	if (!tcp_diag_address(&m, &who))
		return 0;
	p = tcp_diag_find(d, &who);
	if (p == NULL) {
		d->left_out++;
		return 0;
	}
	p->connections++;
	while (at + sizeof(a) <= len) {
		memcpy(&a, body + at, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > len - at)
			return -LS_EPARSE;
		if (a.nla_type == INET_DIAG_INFO)
			tcp_diag_info(p, body + at + sizeof(a), a.nla_len - sizeof(a));
		at += (size_t)NLA_ALIGN(a.nla_len);
	}
	return 0;
}

int
ls_tcp_diag_add(struct ls_tcp_diag *d, const uint8_t *buf, size_t len, bool *ret_done)
{
	struct nlmsghdr h;
	struct nlmsgerr e;
	size_t at = 0;
	int rc = 0;

	*ret_done = false;
	while (rc == 0 && at + sizeof(h) <= len) {
		memcpy(&h, buf + at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > len - at)
			return -LS_EPARSE;
		if (h.nlmsg_type == NLMSG_DONE) {
			*ret_done = true;
			return 0;
		}
		if (h.nlmsg_type == NLMSG_ERROR) {
			if (h.nlmsg_len < sizeof(h) + sizeof(e))
				return -LS_EPARSE;
			memcpy(&e, buf + at + sizeof(h), sizeof(e));
			return e.error < 0 ? e.error : -LS_EPARSE;
		}
		if (h.nlmsg_type == SOCK_DIAG_BY_FAMILY)
			rc = tcp_diag_socket(d, buf + at + sizeof(h),
				h.nlmsg_len - sizeof(h));
		at += NLMSG_ALIGN(h.nlmsg_len);
	}
	return rc;
}
