/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS_PIECE_BYTES 32768 /* the kernel fills at most so much at once */

enum { PEERS_RETRANSMITS, PEERS_SENT, PEERS_RECEIVED, PEERS_COUNTERS };

static const enum ls_metric peers_metric[] = { LS_METRIC_TCP_PEER_RETRANSMITS,
	LS_METRIC_TCP_PEER_SENT, LS_METRIC_TCP_PEER_RECEIVED, LS_METRIC_TCP_PEER_RTT,
	LS_METRIC_TCP_PEER_MIN_RTT, LS_METRIC_TCP_PEER_CONNECTIONS };
#define PEERS_METRICS (sizeof(peers_metric) / sizeof(peers_metric[0]))

/* A peer that has series. */
struct peer {
	struct ls_tcp_peer last; /* as the kernel told it */
	uint64_t total[PEERS_COUNTERS];
	unsigned gone; /* readings since it was last seen */
	int handle[PEERS_METRICS];
};

struct source_peers {
	struct ls_series_table *table;
	int group, fd, error; /* error: of the last dump; 0: it went well */
	uint32_t seq;
	uint64_t left_out; /* connections of the last dump that found no room */
	size_t count;
	struct peer peer[LS_TCP_PEER_SERIES_MAX];
	struct ls_tcp_diag dump;
	uint8_t buf[PEERS_PIECE_BYTES];
};

/* --- the kernel's answer -------------------------------------------------- */

static int
peers_dump_family(struct source_peers *s, int family)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	size_t len = ls_tcp_diag_request(s->buf, sizeof(s->buf), family, ++s->seq),
	       total = 0;
	bool done = false;
	ssize_t n;
	int rc = 0;

	n = sendto(s->fd, s->buf, len, MSG_DONTWAIT, (struct sockaddr *)&kernel,
		sizeof(kernel));
	if (n < 0)
		return -errno;
	/* The kernel makes each piece while it is asked for it: there is nothing to
	 * wait for. */
	while (rc == 0 && !done) {
		n = recv(s->fd, s->buf, sizeof(s->buf), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n > sizeof(s->buf) ||
			(total += (size_t)n) > LS_TCP_DUMP_MAX_BYTES)
			return -LS_ELIMIT;
		rc = ls_tcp_diag_add(&s->dump, s->buf, (size_t)n, &done);
	}
	return rc;
}

static void
peers_close(struct source_peers *s)
{
	if (s->fd >= 0)
		(void)close(
			s->fd); /* whatever is still in it belongs to a dump given up */
	s->fd = -1;
}

static int
peers_dump(struct source_peers *s)
{
	int rc;

	s->dump.count = 0;
	s->dump.left_out = 0;
	if (s->fd < 0)
		s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (s->fd < 0)
		return -errno;
	rc = peers_dump_family(s, AF_INET);
	if (rc == 0)
		rc = peers_dump_family(s, AF_INET6);
	if (rc != 0)
		peers_close(s);
	return rc;
}

/* --- peers that have series ----------------------------------------------- */

static uint64_t
peers_traffic(const struct ls_tcp_peer *p)
{
	return p->sent_bytes + p->received_bytes;
}

static struct peer *
peers_find(struct source_peers *s, const struct ls_tcp_peer *who)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (s->peer[i].last.family == who->family &&
			memcmp(s->peer[i].last.address, who->address,
				sizeof(who->address)) == 0)
			return &s->peer[i];
	}
	return NULL;
}

static void
peers_forget(struct source_peers *s, struct peer *p)
{
	size_t m;

	for (m = 0; m < PEERS_METRICS; m++) {
		if (p->handle[m] >= 0)
			ls_series_remove(s->table, p->handle[m]);
	}
	*p = s->peer[--s->count];
}

/* Room for one more peer: a free place, or that of the one that is gone longest. */
static struct peer *
peers_room(struct source_peers *s)
{
	struct peer *longest = &s->peer[0];
	size_t i;

	for (i = 1; i < s->count; i++) {
		if (s->peer[i].gone > longest->gone)
			longest = &s->peer[i];
	}
	if (s->count == LS_TCP_PEER_SERIES_MAX && longest->gone > 0)
		peers_forget(s, longest);
	return s->count < LS_TCP_PEER_SERIES_MAX ? &s->peer[s->count++] : NULL;
}

static void
peers_begin(struct source_peers *s, const struct ls_tcp_peer *who)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES] = "", name[INET6_ADDRSTRLEN];
	struct peer *p = peers_room(s);
	size_t m;

	if (p == NULL)
		return;
	memset(p, 0, sizeof(*p));
	p->last = *who;
	if (inet_ntop(who->family, who->address, name, sizeof(name)) != NULL)
		ls_series_label(labels, sizeof(labels), "peer", name);
	for (m = 0; m < PEERS_METRICS; m++)
		p->handle[m] = ls_series_add_metric(s->table, (size_t)s->group,
			peers_metric[m], labels);
}

static void
peers_update(struct peer *p, const struct ls_tcp_peer *now)
{
	const uint64_t a[PEERS_COUNTERS] = { p->last.retransmits, p->last.sent_bytes,
		p->last.received_bytes };
	const uint64_t b[PEERS_COUNTERS] = { now->retransmits, now->sent_bytes,
		now->received_bytes };
	size_t i;

	for (i = 0; i < PEERS_COUNTERS; i++)
		p->total[i] += b[i] > a[i]
			? b[i] - a[i]
			: 0; /* a sum that falls: a connection ended */
	p->last = *now;
	p->gone = 0;
}

static void
peers_publish(struct source_peers *s, const struct peer *p)
{
	size_t i;

	for (i = 0; i < PEERS_METRICS; i++)
		ls_series_unset(s->table, p->handle[i]);
	for (i = 0; i < PEERS_COUNTERS; i++)
		ls_series_set(s->table, p->handle[i], (double)p->total[i]);
	if (p->gone > 0)
		return;
	if (p->last.rtt_s > 0)
		ls_series_set(s->table, p->handle[PEERS_COUNTERS], p->last.rtt_s);
	if (p->last.min_rtt_s > 0)
		ls_series_set(s->table, p->handle[PEERS_COUNTERS + 1],
			p->last.min_rtt_s);
	ls_series_set(s->table, p->handle[PEERS_COUNTERS + 2],
		(double)p->last.connections);
}

/* The peer of the dump with most traffic that has no series yet; NULL if all have. */
static const struct ls_tcp_peer *
peers_busiest_new(struct source_peers *s, const struct ls_tcp_diag *d)
{
	const struct ls_tcp_peer *best = NULL;
	size_t i;

	for (i = 0; i < d->count; i++) {
		if (peers_find(s, &d->peer[i]) == NULL &&
			(best == NULL ||
				peers_traffic(&d->peer[i]) > peers_traffic(best)))
			best = &d->peer[i];
	}
	return best;
}

void
ls_source_peers_take(struct ls_source *source, const struct ls_tcp_diag *d,
	uint64_t now_mono_ns)
{
	struct source_peers *s = source->self;
	const struct ls_tcp_peer *next;
	struct peer *p;
	size_t i, before;

	s->left_out = d->left_out;
	for (i = 0; i < s->count; i++)
		s->peer[i].gone++;
	for (i = 0; i < d->count; i++) {
		p = peers_find(s, &d->peer[i]);
		if (p != NULL)
			peers_update(p, &d->peer[i]);
	}
	while ((next = peers_busiest_new(s, d)) != NULL) {
		before = s->count;
		peers_begin(s, next);
		if (s->count == before)
			break;
	}
	for (i = 0; i < s->count; i++)
		peers_publish(s, &s->peer[i]);
	ls_series_read(s->table, (size_t)s->group, now_mono_ns);
}

/* --- the source ----------------------------------------------------------- */

static int
peers_probe(void *self)
{
	struct source_peers *s = self;

	s->error = peers_dump(s);
	return s->error == 0 ? 0 : -LS_EABSENT;
}

static void
peers_list(const void *self, void (*each)(void *arg, enum ls_metric m), void *arg)
{
	size_t i;

	(void)self;
	for (i = 0; i < PEERS_METRICS; i++)
		each(arg, peers_metric[i]);
}

static void
peers_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_peers *s = self;
	struct ls_source source = { .self = s };

	(void)into; /* everything here has labels */
	if (!(due & LS_CADENCE_SLOW))
		return;
	s->error = peers_dump(s);
	if (s->error == 0)
		ls_source_peers_take(&source, &s->dump, now_mono_ns);
}

static void
peers_tell(const void *self, struct ls_doctor *d)
{
	const struct source_peers *s = self;
	char why[128];

	if (s->error != 0) {
		ls_doctor_add(d, LS_DOCTOR_WARN, "peers", "sock_diag",
			ls_err_text(s->error), "modprobe tcp_diag");
		return;
	}
	(void)snprintf(why, sizeof(why),
		"%zu remote hosts watched, %llu connections not watched; only this "
		"network namespace is visible",
		s->count, (unsigned long long)s->left_out);
	ls_doctor_add(d, LS_DOCTOR_OK, "peers", "sock_diag", why, "");
}

static void
peers_free(void *self)
{
	struct source_peers *s = self;

	if (s != NULL)
		peers_close(s);
	free(s);
}

int
ls_source_peers_new(struct ls_series_table *table, struct ls_source *ret_source)
{
	struct source_peers *s = calloc(1, sizeof(*s));
	struct ls_source source = { "peers", s, peers_probe, peers_list, peers_read,
		peers_tell, peers_free };
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->fd = -1;
	s->table = table;
	rc = ls_series_group(table, "host.peers");
	if (rc < 0) {
		free(s);
		return rc;
	}
	s->group = rc;
	*ret_source = source;
	return 0;
}
