/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/netns.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define SECOND 1000000000ull
#define ANY "00000000"
#define POD "0200630A" /* 10.99.0.2 as /proc/net/tcp writes it */
#define LISTENER(at, port)   \
	"   0: " at ":" port \
	" 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1\n"
#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue\n"
#define LOCAL(a) "     |-- " a "\n        /32 host LOCAL\n"
#define ROUTES "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n"
/* The default route; pods behind a bridge; a subnet of the uplink. */
#define HOST_ROUTES                                                     \
	ROUTES "eth0\t00000000\t0100800A\t0003\t0\t0\t0\t00000000\t0\n" \
	       "cbr0\t0000630A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n" \
	       "eth0\t0000800A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n" \
	       "nic1\t0000810A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n"

static const uint16_t ports[LS_TPU_PORTS_MAX] = { 8431, 8432 };
static struct ls_netns *netns;
static struct ls_netns_server server[LS_TPU_PORTS_MAX];
static uint64_t now;
static char proc[256], sys[256];

static void
setup(void)
{
	const char *root = ls_test_tmpdir();

	now = 1000 * SECOND;
	(void)snprintf(proc, sizeof(proc), "%s/proc", root);
	(void)snprintf(sys, sizeof(sys), "%s/sys", root);
	tree_write(proc, "self/net/dev", "");
	tree_write(proc, "1/net/dev", "");
	tree_write(proc, "1/net/route", HOST_ROUTES);
	tree_write(sys, "class/net/nic1/device", "");
	ck_assert_int_eq(ls_netns_new(proc, sys, ports, 2, &netns), 0);
}

static void
teardown(void)
{
	ls_netns_free(netns);
}

/* A second process in the namespace of another one. */
static void
share(const char *with, const char *pid)
{
	char from[512], to[512];

	(void)snprintf(from, sizeof(from), "%s/%s/net/dev", proc, with);
	(void)snprintf(to, sizeof(to), "%s/%s/net/dev", proc, pid);
	ck_assert_int_eq(link(from, to), 0);
}

/* A process in a namespace of its own. */
static void
pod(const char *pid, unsigned sockets, const char *table, const char *addresses)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "%s/net/dev", pid);
	tree_write(proc, path, "");
	(void)snprintf(path, sizeof(path), "%s/net/sockstat", pid);
	(void)snprintf(text, sizeof(text), "sockets: used 9\nTCP: inuse %u orphan 0\n",
		sockets);
	tree_write(proc, path, text);
	(void)snprintf(path, sizeof(path), "%s/net/tcp", pid);
	tree_write(proc, path, table);
	(void)snprintf(path, sizeof(path), "%s/net/fib_trie", pid);
	tree_write(proc, path, addresses);
}

/* The next look that may read something, long enough after the one before. */
static size_t
look(uint64_t after_ns)
{
	now += after_ns;
	return ls_netns_look(netns, now, server);
}

LS_CASE(netns, setup, teardown);

LS_TEST(netns, listener_of_a_pod_is_found)
{
	pod("200", 1, HEAD LISTENER(ANY, "20EF"),
		LOCAL("127.0.0.1") LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(0), 1);
	ck_assert_str_eq(server[0].address, "10.99.0.2");
	ck_assert_uint_eq(server[0].port, 8431);
	ck_assert(ls_netns_keep(netns, "10.99.0.2", true, now));
	/* found once, until it is lost */
	ck_assert_uint_eq(look(600 * SECOND), 0);
	ck_assert(!ls_netns_keep(netns, "10.99.0.2", false, now));
	ck_assert_uint_eq(look(600 * SECOND), 1);
}

LS_TEST(netns, all_ports_of_a_pod_are_found_once)
{
	pod("200", 3,
		HEAD LISTENER(POD, "20EF") LISTENER(ANY, "20F0") LISTENER(ANY, "20F1"),
		LOCAL("10.99.0.2"));
	tree_write(proc, "200/net/sockstat6", "TCP6: inuse 1\n");
	tree_write(proc, "200/net/tcp6",
		HEAD LISTENER("00000000000000000000000000000000", "20EF"));
	ck_assert_uint_eq(look(0), 2);
	ck_assert_uint_eq(server[0].port, 8431);
	ck_assert_uint_eq(server[1].port, 8432);
}

LS_TEST(netns, listeners_that_are_not_reached)
{
	/* loopback only; an established connection; another port; IPv6 loopback */
	pod("200", 1, HEAD LISTENER("0100007F", "20EF"), LOCAL("10.99.0.2"));
	pod("201", 1, HEAD "   0: " POD ":20EF 0100630A:1234 01 0:0 0:0 0 0 0 1\n",
		LOCAL("10.99.0.3"));
	pod("202", 1, HEAD LISTENER(ANY, "20EE"), LOCAL("10.99.0.4"));
	pod("203", 0, "", LOCAL("10.99.0.5"));
	tree_write(proc, "203/net/sockstat6", "TCP6: inuse 1\n");
	tree_write(proc, "203/net/tcp6",
		HEAD LISTENER("00000000000000000000000001000000", "20EF"));
	for (int i = 0; i < 8; i++)
		ck_assert_uint_eq(look(600 * SECOND), 0);
}

/* A pod may give itself any address: only those that the node reaches itself count. */
LS_TEST(netns, address_of_another_node_is_not_reported)
{
	static const char *const elsewhere[] = { LOCAL("8.8.8.8"), LOCAL("10.128.0.9"),
		LOCAL("10.129.0.9"), LOCAL("169.254.169.254"), "",
		"|-- x\n/32 host LOCAL" };

	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		pod("200", 1, HEAD LISTENER(ANY, "20EF"), elsewhere[i]);
		ck_assert_uint_eq(look(600 * SECOND), 0);
	}
	pod("200", 1, HEAD LISTENER(ANY, "20EF"), LOCAL("8.8.8.8") LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(600 * SECOND), 1);
	ck_assert_str_eq(server[0].address, "10.99.0.2");
}

LS_TEST(netns, without_the_routes_of_the_host_nothing_is_reported)
{
	tree_write(proc, "1/net/route", "Iface\n\xff\xfe x y z\neth0\tzz\n");
	pod("200", 1, HEAD LISTENER(ANY, "20EF"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(0), 0);
}

/* Its table of sockets is read again when their number changed, and no table twice. */
LS_TEST(netns, server_that_starts_later_is_found)
{
	pod("200", 1, HEAD LISTENER(ANY, "0050"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(0), 0);
	tree_write(proc, "200/net/tcp", HEAD LISTENER(ANY, "20EF"));
	ck_assert_uint_eq(look(30 * SECOND), 0); /* the number is the same */
	pod("200", 2, HEAD LISTENER(ANY, "0050") LISTENER(ANY, "20EF"),
		LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(30 * SECOND), 1);
}

LS_TEST(netns, looks_have_a_rest)
{
	ck_assert_uint_eq(look(0), 0);
	pod("200", 1, HEAD LISTENER(ANY, "20EF"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(LS_NETNS_LOOK_NS - 1), 0);
	ck_assert_uint_eq(look(600 * SECOND), 1);
}

LS_TEST(netns, pod_that_is_gone_is_forgotten)
{
	pod("200", 1, HEAD LISTENER(ANY, "20EF"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(0), 1);
	tree_remove(proc, "200/net/dev");
	ck_assert_uint_eq(look(600 * SECOND), 0);
	ck_assert(!ls_netns_keep(netns, "10.99.0.2", true, now));
}

/* The first process of a namespace may end before the others. */
LS_TEST(netns, namespace_outlives_its_first_process)
{
	pod("200", 1, HEAD LISTENER(ANY, "20EF"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(0), 1);
	tree_write(proc, "201/net/sockstat", "TCP: inuse 1 orphan 0\n");
	tree_write(proc, "201/net/tcp", HEAD LISTENER(ANY, "20EF"));
	tree_write(proc, "201/net/fib_trie", LOCAL("10.99.0.2"));
	share("200", "201");
	ck_assert_uint_eq(look(600 * SECOND), 0);
	tree_remove(proc, "200/net/dev");
	tree_remove(proc, "200/net/sockstat");
	ck_assert_uint_eq(look(600 * SECOND), 0); /* no server is found twice */
	ck_assert(ls_netns_keep(netns, "10.99.0.2", true, now));
	ck_assert(!ls_netns_keep(netns, "10.99.0.2", false, now));
	ck_assert_uint_eq(look(600 * SECOND), 1);
}

/* A namespace that comes and goes does not cause the others to be looked up again. */
LS_TEST(netns, short_lived_namespace_makes_no_other_one_new)
{
	pod("200", 1, HEAD LISTENER(ANY, "0050"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(0), 0);
	ck_assert_uint_eq(look(450 * SECOND), 0);
	pod("100", 0, "", "");
	ck_assert_uint_eq(look(50 * SECOND), 0);
	tree_remove(proc, "100/net/dev");
	ck_assert_uint_eq(look(50 * SECOND), 0);
	pod("200", 2, HEAD LISTENER(ANY, "20EF"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(50 * SECOND), 0); /* it has no new process */
	ck_assert_uint_eq(look(600 * SECOND), 1);
}

LS_TEST(netns, own_namespace_is_left_to_loopback)
{
	tree_write(proc, "200/net/sockstat", "TCP: inuse 1 orphan 0\n");
	tree_write(proc, "200/net/tcp", HEAD LISTENER(ANY, "20EF"));
	tree_write(proc, "200/net/fib_trie", LOCAL("10.99.0.2"));
	share("self", "200");
	ck_assert_uint_eq(look(0), 0);
}

LS_TEST(netns, more_namespaces_than_the_maximum_are_told)
{
	struct ls_doctor d = { 0 };
	char path[64];
	size_t i;

	for (i = 0; i <= LS_NETNS_MAX; i++) {
		(void)snprintf(path, sizeof(path), "%zu/net/dev", 1000 + i);
		tree_write(proc, path, "");
	}
	ck_assert_uint_eq(look(0), 0);
	ls_netns_tell(netns, false, &d);
	ck_assert_uint_eq(ls_doctor_count(&d, LS_DOCTOR_WARN), 1);
	/* what was left out is looked up when there is room */
	pod("9000", 1, HEAD LISTENER(ANY, "20EF"), LOCAL("10.99.0.2"));
	ck_assert_uint_eq(look(600 * SECOND), 0);
	ls_netns_tell(netns, false, &d);
	ck_assert_uint_eq(ls_doctor_count(&d, LS_DOCTOR_WARN), 2);
	tree_remove(proc, "1000/net/dev");
	tree_remove(proc, "1001/net/dev");
	tree_remove(proc, "1002/net/dev"); /* one of them may have been left out */
	ck_assert_uint_eq(look(600 * SECOND), 1);
	ls_netns_tell(netns, false, &d);
	ck_assert_uint_eq(ls_doctor_count(&d, LS_DOCTOR_WARN), 2);
}

LS_TEST(netns, level_of_reach_and_the_line_that_gives_the_next)
{
	struct ls_doctor d = { 0 };

	ls_netns_tell(netns, false, &d);
	ck_assert_ptr_nonnull(strstr(d.check[0].why, "level 1 of 3"));
	ck_assert_ptr_nonnull(strstr(d.check[0].fix, "hostPID: true"));
	tree_link(proc, "self/ns/pid", "pid:[4026531836]");
	ls_netns_tell(netns, false, &d);
	ck_assert_ptr_nonnull(strstr(d.check[1].why, "level 2 of 3"));
	ck_assert_ptr_nonnull(strstr(d.check[1].fix, "status.hostIP"));
	ls_netns_tell(netns, true, &d);
	ck_assert_ptr_nonnull(strstr(d.check[2].why, "level 3 of 3"));
	ck_assert_str_eq(d.check[2].fix, "");
}
