/* SPDX-License-Identifier: Apache-2.0 */
/* Which ports the source opens, asks and closes: the ports here are made up. */
#include "config.h"
#include "agent/tpu/source_tpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/options.h"
#include "proto/base/loop.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define SECOND 1000000000ull
#define LISTENER(port)         \
	"   0: 00000000:" port \
	" 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1\n"
#define ROUTES                                                                 \
	"Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n" \
	"cbr0\t0000630A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n"

struct ls_tpu_port {
	struct ls_tpu_port_view view;
	bool asked, alone; /* for metrics, since the last reading */
	struct ls_tpu_port *next;
};

static struct ls_tpu_port *ports; /* open */
static struct ls_loop *loop;
static struct ls_series_table *table;
static struct ls_source tpu;
static struct ls_agent_config config;
static uint64_t now;

/* --- ports without a connection ------------------------------------------- */

int
ls_tpu_port_new(struct ls_loop *l, const struct ls_tpu_port_options *options,
	struct ls_tpu_port **ret_port)
{
	struct ls_tpu_port *p = calloc(1, sizeof(*p));

	(void)l;
	ck_assert_ptr_nonnull(p);
	(void)snprintf(p->view.address, sizeof(p->view.address), "%s",
		options->address);
	p->view.number = options->port;
	p->view.id = options->id;
	p->next = ports;
	ports = p;
	*ret_port = p;
	return 0;
}

void
ls_tpu_port_free(struct ls_tpu_port *p)
{
	struct ls_tpu_port **at = &ports;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

bool
ls_tpu_port_begin(struct ls_tpu_port *p, enum ls_tpu_cadence cadence, bool with_metrics,
	bool alone)
{
	(void)cadence;
	p->asked = with_metrics;
	p->alone = alone;
	return false;
}

void
ls_tpu_port_relist(struct ls_tpu_port *p)
{
	(void)p;
}

bool
ls_tpu_port_is_busy(const struct ls_tpu_port *p, enum ls_tpu_cadence cadence)
{
	(void)p;
	(void)cadence;
	return false;
}

const struct ls_tpu_port_view *
ls_tpu_port_look(const struct ls_tpu_port *p)
{
	return &p->view;
}

const char *
ls_tpu_port_state_name(enum ls_tpu_port_state state)
{
	(void)state;
	return "";
}

/* --- a node --------------------------------------------------------------- */

static void
setup(void)
{
	const char *root = ls_test_tmpdir();

	now = 1000 * SECOND;
	(void)snprintf(config.proc_root, sizeof(config.proc_root), "%s/proc", root);
	(void)snprintf(config.sys_root, sizeof(config.sys_root), "%s/sys", root);
	(void)snprintf(config.tpu_address, sizeof(config.tpu_address), "auto");
	(void)snprintf(config.tpu_ports, sizeof(config.tpu_ports), "8431,8432");
	tree_write(config.proc_root, "self/net/dev", "");
	tree_write(config.proc_root, "1/net/dev", "");
	tree_write(config.proc_root, "1/net/route", ROUTES);
	loop = ls_loop_new();
	ck_assert_ptr_nonnull(loop);
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(ls_source_tpu_new(loop, table, &config, NULL, &tpu), 0);
}

static void
teardown(void)
{
	tpu.free(tpu.self);
	ck_assert_ptr_null(ports);
	ls_series_free(table);
	ls_loop_free(loop);
}

/* A pod at 10.99.0.n with these listeners. */
static void
pod(unsigned n, const char *listeners)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "%u/net/dev", 200 + n);
	tree_write(config.proc_root, path, "");
	(void)snprintf(path, sizeof(path), "%u/net/sockstat", 200 + n);
	tree_write(config.proc_root, path, "TCP: inuse 1 orphan 0\n");
	(void)snprintf(path, sizeof(path), "%u/net/tcp", 200 + n);
	tree_write(config.proc_root, path, listeners);
	(void)snprintf(path, sizeof(path), "%u/net/fib_trie", 200 + n);
	(void)snprintf(text, sizeof(text),
		"     |-- 10.99.0.%u\n        /32 host LOCAL\n", n);
	tree_write(config.proc_root, path, text);
}

static struct ls_tpu_port *
find(unsigned n, uint16_t number)
{
	struct ls_tpu_port *p = ports;
	char address[INET6_ADDRSTRLEN];

	(void)snprintf(address, sizeof(address), "10.99.0.%u", n);
	while (p != NULL &&
		(p->view.number != number || strcmp(p->view.address, address) != 0))
		p = p->next;
	return p;
}

/* The open port of that pod. */
static struct ls_tpu_port *
port_of(unsigned n, uint16_t number)
{
	struct ls_tpu_port *p = find(n, number);

	if (p == NULL)
		ck_abort_msg("no port %u of pod %u", number, n);
	return p;
}

static void
set_up(struct ls_tpu_port *p, size_t devices)
{
	p->view.state = LS_TPU_PORT_STATE_UP;
	p->view.devices = devices;
}

/* Readings, each long enough after the one before for a look. */
static void
look(unsigned times)
{
	struct ls_sample sample;

	while (times-- > 0) {
		now += 600 * SECOND;
		tpu.read(tpu.self, LS_CADENCE_FAST, now, &sample);
	}
}

LS_CASE(source_tpu, setup, teardown);

/* The first port of a pod tells of its pod's chips alone. */
LS_TEST(source_tpu, metrics_of_every_pod_are_asked_for)
{
	pod(2, LISTENER("20EF"));
	pod(3, LISTENER("20EF") LISTENER("20F0"));
	look(3);
	set_up(port_of(2, 8431), 8);
	set_up(port_of(3, 8431), 2);
	set_up(port_of(3, 8432), 0);
	look(1);
	ck_assert(port_of(2, 8431)->asked);
	ck_assert(port_of(3, 8431)->asked);
	ck_assert(!port_of(3, 8432)->asked); /* the first one shows as many chips */
	port_of(3, 8431)->view.devices = 1;
	look(1);
	ck_assert(port_of(3, 8432)->asked && port_of(3, 8432)->alone);
}

/* A server for which there was no place is read when one is free. */
LS_TEST(source_tpu, server_without_a_place_is_found_again)
{
	unsigned i;

	for (i = 2; i < 2 + LS_NETNS_PORTS_MAX; i++)
		pod(i, LISTENER("20EF"));
	look(LS_NETNS_PORTS_MAX + 1);
	pod(90, LISTENER("20EF"));
	look(2);
	ck_assert_ptr_null(find(90, 8431));
	tree_remove(config.proc_root, "202/net/dev");
	look(3);
	ck_assert_ptr_null(find(2, 8431));
	ck_assert_ptr_nonnull(find(90, 8431));
}

LS_TEST(source_tpu, absent_port_does_not_cost_the_others_of_its_pod)
{
	struct ls_tpu_port *p;

	pod(2, LISTENER("20EF") LISTENER("20F0"));
	look(2);
	p = port_of(2, 8431);
	set_up(p, 1);
	port_of(2, 8432)->view.state = LS_TPU_PORT_STATE_ABSENT;
	look(3);
	ck_assert_ptr_eq(port_of(2, 8431), p);
	ck_assert_uint_eq(p->view.devices, 1);
	p->view.state = LS_TPU_PORT_STATE_ABSENT;
	port_of(2, 8432)->view.state = LS_TPU_PORT_STATE_ABSENT;
	look(1);
	tree_write(config.proc_root, "202/net/tcp", "");
	look(1);
	ck_assert_ptr_null(find(2, 8431));
	ck_assert_ptr_null(find(2, 8432));
}
