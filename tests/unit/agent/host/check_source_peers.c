/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "tests/support/harness.h"

static struct ls_series_table *table;
static struct ls_source source;
static struct ls_tcp_diag dump;
static uint8_t bytes[65536];
static size_t used;

static void
setup(void)
{
	memset(&dump, 0, sizeof(dump));
	used = 0;
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(ls_source_peers_new(table, &source), 0);
}

static void
teardown(void)
{
	source.free(source.self);
	ls_series_free(table);
}

/* --- answers of the kernel, made by hand ---------------------------------- */

static void
put(const void *data, size_t len)
{
	memcpy(bytes + used, data, len);
	used += NLMSG_ALIGN(len);
}

static void
put_done(void)
{
	struct nlmsghdr h = { .nlmsg_len = sizeof(h), .nlmsg_type = NLMSG_DONE };

	put(&h, sizeof(h));
}

static void
put_socket(int family, const char *address, uint32_t rtt_us, uint32_t retransmits,
	uint64_t sent, size_t info_len)
{
	struct tcp_info info = { .tcpi_rtt = rtt_us,
		.tcpi_min_rtt = rtt_us / 2,
		.tcpi_total_retrans = retransmits,
		.tcpi_bytes_acked = sent,
		.tcpi_bytes_received = 7 };
	struct inet_diag_msg m = { .idiag_family = (uint8_t)family };
	struct nlattr a = { .nla_len = (uint16_t)(sizeof(a) + info_len),
		.nla_type = INET_DIAG_INFO };
	struct nlmsghdr h = { .nlmsg_type = SOCK_DIAG_BY_FAMILY };

	h.nlmsg_len = (uint32_t)(sizeof(h) + sizeof(m) + a.nla_len);
	ck_assert_int_eq(inet_pton(family, address, m.id.idiag_dst), 1);
	put(&h, sizeof(h));
	put(&m, sizeof(m));
	put(&a, sizeof(a));
	put(&info, info_len);
}

static void
add(int want)
{
	bool done;

	ck_assert_int_eq(ls_tcp_diag_add(&dump, bytes, used, &done), want);
	used = 0;
}

static double
series(const char *text)
{
	struct ls_series_group g;
	size_t i;

	ck_assert(ls_series_look(table, 0, &g));
	for (i = 0; i < g.count; i++) {
		if (strcmp(g.text[i], text) == 0)
			return g.present[i] ? g.value[i] : -2;
	}
	return -1;
}

static void
take(void)
{
	ls_source_peers_take(&source, &dump, 9);
	memset(&dump, 0, sizeof(dump));
}

/* --- the dump ------------------------------------------------------------- */

LS_CASE(source_peers, setup, teardown);

LS_TEST(source_peers, connections_of_one_host_are_one_peer)
{
	bool done;

	put_socket(AF_INET, "10.0.0.2", 100, 1, 1000, sizeof(struct tcp_info));
	put_socket(AF_INET, "10.0.0.2", 300, 2, 500, sizeof(struct tcp_info));
	put_socket(AF_INET6, "::ffff:10.0.0.2", 200, 4, 1, sizeof(struct tcp_info));
	put_socket(AF_INET6, "fd00::7", 50, 0, 1, sizeof(struct tcp_info));
	put_done();
	ck_assert_int_eq(ls_tcp_diag_add(&dump, bytes, used, &done), 0);
	ck_assert(done);
	ck_assert_uint_eq(dump.count, 2);
	ck_assert_uint_eq(dump.peer[0].connections, 3);
	ck_assert_uint_eq(dump.peer[0].retransmits, 7);
	ck_assert_uint_eq(dump.peer[0].sent_bytes, 1501);
	ck_assert_double_eq_tol(dump.peer[0].rtt_s, 300e-6, 1e-12);
	ck_assert_double_eq_tol(dump.peer[0].min_rtt_s, 50e-6, 1e-12);
	ck_assert_int_eq(dump.peer[1].family, AF_INET6);
}

LS_TEST(source_peers, loopback_is_nobody)
{
	put_socket(AF_INET, "127.0.0.1", 1, 0, 1, sizeof(struct tcp_info));
	put_socket(AF_INET, "127.8.0.1", 1, 0, 1, sizeof(struct tcp_info));
	put_socket(AF_INET6, "::1", 1, 0, 1, sizeof(struct tcp_info));
	put_socket(AF_INET6, "::ffff:127.0.0.1", 1, 0, 1, sizeof(struct tcp_info));
	add(0);
	ck_assert_uint_eq(dump.count, 0);
}

LS_TEST(source_peers, shorter_tcp_info_of_an_older_kernel_is_read)
{
	put_socket(AF_INET, "10.0.0.2", 100, 3, 1000,
		offsetof(struct tcp_info, tcpi_pacing_rate));
	add(0);
	ck_assert_uint_eq(dump.peer[0].retransmits, 3);
	ck_assert_uint_eq(dump.peer[0].sent_bytes, 0);
	ck_assert_double_eq_tol(dump.peer[0].rtt_s, 100e-6, 1e-12);
}

LS_TEST(source_peers, answers_that_make_no_sense_are_refused)
{
	struct nlmsghdr h = { .nlmsg_len = 4, .nlmsg_type = NLMSG_DONE };
	size_t whole, len;
	bool done;

	put(&h, sizeof(h));
	add(-LS_EPARSE);
	h.nlmsg_len = sizeof(h) + 1;
	h.nlmsg_type = NLMSG_ERROR;
	put(&h, sizeof(h));
	put(&h, 1);
	add(-LS_EPARSE);
	put_socket(AF_INET, "10.0.0.2", 100, 3, 1000, sizeof(struct tcp_info));
	whole = used;
	for (len = sizeof(h); len < whole; len++)
		ck_assert_int_eq(ls_tcp_diag_add(&dump, bytes, len, &done), -LS_EPARSE);
}

LS_TEST(source_peers, error_of_the_kernel_is_given_on)
{
	struct nlmsghdr h = { .nlmsg_type = NLMSG_ERROR };
	struct nlmsgerr e = { .error = -ENOENT };

	h.nlmsg_len = sizeof(h) + sizeof(e);
	put(&h, sizeof(h));
	put(&e, sizeof(e));
	add(-ENOENT);
}

LS_TEST(source_peers, peers_beyond_the_maximum_are_counted)
{
	char address[32];
	unsigned i;

	for (i = 0; i < LS_TCP_PEERS_MAX + 5; i++) {
		(void)snprintf(address, sizeof(address), "10.0.%u.%u", i / 200,
			i % 200 + 1);
		put_socket(AF_INET, address, 1, 0, 1, sizeof(struct tcp_info));
	}
	add(0);
	ck_assert_uint_eq(dump.count, LS_TCP_PEERS_MAX);
	ck_assert_uint_eq(dump.left_out, 5);
}

/* --- the series ----------------------------------------------------------- */

LS_TEST(source_peers, peers_become_series_that_count_from_when_they_are_seen)
{
	put_socket(AF_INET, "10.0.0.2", 150, 10, 1000, sizeof(struct tcp_info));
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.retransmits_total{peer=\"10.0.0.2\"}"), 0);
	ck_assert_double_eq_tol(series("link.tcp.rtt_seconds{peer=\"10.0.0.2\"}"),
		150e-6, 1e-12);
	put_socket(AF_INET, "10.0.0.2", 150, 13, 4000, sizeof(struct tcp_info));
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.retransmits_total{peer=\"10.0.0.2\"}"), 3);
	ck_assert_double_eq(series("link.tcp.sent_bytes_total{peer=\"10.0.0.2\"}"),
		3000);
	ck_assert_double_eq(series("link.tcp.connections{peer=\"10.0.0.2\"}"), 1);
}

LS_TEST(source_peers, counter_of_a_peer_never_falls)
{
	put_socket(AF_INET, "10.0.0.2", 150, 10, 1000, sizeof(struct tcp_info));
	put_socket(AF_INET, "10.0.0.2", 150, 10, 9000, sizeof(struct tcp_info));
	add(0);
	take();
	/* one has ended */
	put_socket(AF_INET, "10.0.0.2", 150, 11, 1500, sizeof(struct tcp_info));
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.sent_bytes_total{peer=\"10.0.0.2\"}"), 0);
	put_socket(AF_INET, "10.0.0.2", 150, 12, 1700, sizeof(struct tcp_info));
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.sent_bytes_total{peer=\"10.0.0.2\"}"),
		200);
	ck_assert_double_eq(series("link.tcp.retransmits_total{peer=\"10.0.0.2\"}"), 1);
}

LS_TEST(source_peers, peer_that_is_gone_is_not_measured_and_makes_room)
{
	char address[32];
	unsigned i;

	for (i = 0; i < LS_TCP_PEER_SERIES_MAX; i++) {
		(void)snprintf(address, sizeof(address), "10.0.0.%u", i + 1);
		put_socket(AF_INET, address, 10, 0, 1000 + i, sizeof(struct tcp_info));
	}
	/* least traffic */
	put_socket(AF_INET, "10.9.9.9", 10, 0, 1, sizeof(struct tcp_info));
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.connections{peer=\"10.9.9.9\"}"), -1);
	ck_assert_double_eq(series("link.tcp.connections{peer=\"10.0.0.1\"}"), 1);
	for (i = 1; i < LS_TCP_PEER_SERIES_MAX; i++) {
		(void)snprintf(address, sizeof(address), "10.0.0.%u", i + 1);
		put_socket(AF_INET, address, 10, 0, 1000 + i, sizeof(struct tcp_info));
	}
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.connections{peer=\"10.0.0.1\"}"), -2);
	put_socket(AF_INET, "10.9.9.9", 10, 0, 1, sizeof(struct tcp_info));
	add(0);
	take();
	ck_assert_double_eq(series("link.tcp.connections{peer=\"10.0.0.1\"}"), -1);
	ck_assert_double_eq(series("link.tcp.connections{peer=\"10.9.9.9\"}"), 1);
}

LS_TEST(source_peers, this_kernel_is_asked)
{
	struct ls_sample sample = { 0 };
	struct ls_doctor d = { 0 };
	int rc = source.probe(source.self);

	source.read(source.self, LS_CADENCE_SLOW, 1, &sample);
	source.tell(source.self, &d);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_int_eq((int)d.check[0].status,
		rc == 0 ? LS_DOCTOR_OK : LS_DOCTOR_WARN);
}
