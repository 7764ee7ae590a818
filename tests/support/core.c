/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/core.h"
#include "collector/answer/finding_json.h"

#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/queue.h"
#include "tests/support/harness.h"
#include "tests/support/wire_pack.h"

#define CORE_LOOK_NS 1000000000ull

static void
core_reply(void *arg, void *request, const struct ls_wire_ack *ack)
{
	struct ls_test_core *c = arg;

	ck_assert_ptr_eq(request, c);
	c->ack = *ack;
	c->waited_ns = c->peer.due_mono_ns > 0
		? (int64_t)(c->peer.due_mono_ns - c->now_ns)
		: 0;
	c->peer.due_mono_ns = 0;
	c->replies++;
}

static uint64_t
core_now(void *arg)
{
	struct ls_test_core *c = arg;

	return c->now_ns;
}

/* Each report comes by a connection of its own. */
static struct ls_ingest_peer *
core_peer(void *request)
{
	struct ls_test_core *c = request;

	c->peer.begun = 0;
	return &c->peer;
}

static void
core_on_zoom(void *arg, const struct ls_store_zoom *event, int64_t t_us)
{
	struct ls_test_core *c = arg;

	ls_outbox_zoom(c->outbox, event, t_us);
	if (event->event == LS_ZOOM_END)
		ls_fleet_forget_values(c->fleet, event->host);
}

void
ls_test_core_open(struct ls_test_core *c, const char *dir)
{
	const struct ls_writer_options options = { dir, 1000000 };
	struct ls_intake_parts parts = { 0 };
	struct ls_engine_sink sink;

	memset(c, 0, sizeof(*c));
	c->now_ns = 100000000000ull;
	ck_assert_int_eq(ls_writer_open(&options, &c->writer), 0);
	c->outbox = ls_outbox_new(c->writer);
	c->sessions = ls_sessions_new(64);
	c->rings = ls_rings_new(64);
	ck_assert(c->outbox != NULL && c->sessions != NULL && c->rings != NULL);
	c->dictionaries = ls_dictionaries_new(64, LS_DICTIONARIES_MAX_BYTES);
	c->fleet = ls_fleet_new(64);
	c->zoom = ls_zoom_new(core_on_zoom, c);
	ck_assert(c->dictionaries != NULL && c->fleet != NULL && c->zoom != NULL);
	sink = ls_outbox_sink(c->outbox);
	c->engine = ls_engine_new(&sink);
	ck_assert_ptr_nonnull(c->engine);
	ls_engine_patience(c->engine, 0);
	parts.core = (struct ls_core){ c->writer, c->outbox, c->engine, c->sessions,
		c->rings, c->dictionaries, c->fleet, c->zoom };
	/* of the day files, which are of today */
	ck_assert_int_eq(
		ls_restore(dir, &parts.core, ls_clock_wall_ns() / 1000, &c->restored),
		0);
	parts.anchor_ns = LS_TEST_ANCHOR_NS;
	parts.next_worker_id = c->restored.next_worker_id;
	parts.reply = core_reply;
	parts.reply_arg = c;
	parts.peer = core_peer;
	parts.now = core_now;
	parts.now_arg = c;
	parts.held_max = LS_REP_CONTEXTS;
	ck_assert_int_eq(ls_clock_boot_id("/proc", parts.kernel_boot_id), 0);
	c->intake = ls_intake_new(&parts);
	ck_assert_ptr_nonnull(c->intake);
}

static void
core_hear(struct ls_test_core *c, uint64_t patience_ns)
{
	void *item;

	if (ls_queue_take_wait(ls_writer_done(c->writer), &item, 1, patience_ns) == 1)
		ls_intake_done(c->intake, item);
}

void
ls_test_core_close(struct ls_test_core *c)
{
	void *item;

	ls_writer_stop(c->writer);
	while (ls_queue_take(ls_writer_done(c->writer), &item, 1) == 1)
		ls_intake_done(c->intake, item);
	ls_intake_free(c->intake);
	ls_engine_free(c->engine);
	ls_zoom_free(c->zoom);
	ls_outbox_free(c->outbox);
	ls_fleet_free(c->fleet);
	ls_dictionaries_free(c->dictionaries);
	ls_sessions_free(c->sessions);
	ls_rings_free(c->rings);
	ls_writer_close(c->writer);
}

void
ls_test_core_wait(struct ls_test_core *c)
{
	while (c->replies < c->given)
		core_hear(c, CORE_LOOK_NS);
	ck_assert_uint_eq(c->replies, c->given);
}

void
ls_test_core_give(struct ls_test_core *c, const uint8_t *data, size_t len, bool wait)
{
	c->given++;
	ls_intake_report(c->intake, c, data, len, c->now_ns);
	if (wait)
		ls_test_core_wait(c);
}

const struct ls_wire_ack *
ls_test_core_send(struct ls_test_core *c, struct ls_test_agent *a, bool with_worker)
{
	size_t len;
	uint8_t *buf = ls_test_agent_pack(a, with_worker, &len);

	ls_test_core_give(c, buf, len, true);
	free(buf);
	ls_test_agent_clear(a);
	return &c->ack;
}

void
ls_test_core_round(struct ls_test_core *c, struct ls_test_agent *agents, size_t ranks,
	uint64_t n, size_t slow)
{
	struct ls_wire_item item = { .seq = n + 1, .first_index = n, .count = 1 };
	struct ls_record r;
	uint8_t *buf = NULL;
	size_t len, k;

	for (k = 0; k < ranks; k++) {
		int64_t own = 60000000 + (k == slow ? 18000000 : 0) +
			(int64_t)((n * 7 + k * 3) % 11) * 50000;

		r = ls_test_record(n);
		r.barrier[0].enter_ns = r.t_begin_ns + own;
		r.phase_ns[LS_PHASE_COMPUTE] = (uint64_t)own;
		r.phase_ns[LS_PHASE_SYNC_WAIT] = (uint64_t)(90000000 - own);
		memcpy(item.ring_id, agents[k].ring_id, sizeof(item.ring_id));
		item.records = &r;
		ck_assert_int_eq(ls_test_item_pack(&item, &buf, &len), 0);
		agents[k].items[0].data = buf;
		agents[k].items[0].len = len;
		agents[k].report.item_count = 1;
		buf = ls_test_agent_pack(&agents[k], n == 0, &len);
		ls_test_core_give(c, buf, len, k == ranks - 1);
		free(buf);
		ls_test_agent_clear(&agents[k]);
	}
	c->now_ns += LS_TEST_STEP_NS;
	ls_intake_advance(c->intake, c->now_ns, c->cpu_ns);
}

void
ls_test_core_stand(struct ls_test_core *c, struct ls_test_agent *agents, size_t ranks,
	uint64_t n, size_t absent, uint64_t since_ns, int seconds)
{
	size_t k;
	int s;

	for (s = 0; s < seconds; s++) {
		c->now_ns += 1000000000;
		for (k = 0; k < ranks; k++) {
			ls_test_agent_live(&agents[k], n,
				k == absent ? LS_PHASE_COMPUTE : LS_PHASE_SYNC_WAIT,
				since_ns);
			(void)ls_test_core_send(c, &agents[k], true);
		}
		ls_intake_advance(c->intake, c->now_ns, c->cpu_ns);
	}
}

json_t *
ls_test_core_findings(const struct ls_test_core *c)
{
	json_t *list = ls_finding_all(c->engine);

	ck_assert_ptr_nonnull(list);
	return list;
}
