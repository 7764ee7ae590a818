/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/ingest/attention.h"
#include "collector/ingest/feed.h"
#include "collector/ingest/intake_state.h"
#include "collector/ingest/rate.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

#define INTAKE_WANTS_MAX (2 * LS_ZOOM_HOSTS_MAX) /* what finds no place is counted */

static const char *const intake_names[] = {
#define LS_INTAKE_DROP(id, name, help) name,
#include "collector/ingest/intake_drops.def"
#undef LS_INTAKE_DROP
};

const char *
ls_intake_drop_name(unsigned drop)
{
	return drop < LS_INTAKE_DROP_COUNT ? intake_names[drop] : NULL;
}

struct ls_intake *
ls_intake_new(const struct ls_intake_parts *parts)
{
	struct ls_intake *in = calloc(1, sizeof(*in));

	if (in != NULL) {
		in->p = *parts;
		ls_pressure_init(&in->pressure, parts->held_max);
	}
	return in;
}

void
ls_intake_free(struct ls_intake *in)
{
	struct ls_intake_held *h;

	if (in == NULL)
		return;
	while ((h = in->spare) != NULL) {
		in->spare = h->next;
		ls_arena_free(h->arena);
		free(h);
	}
	ls_arena_free(in->scratch);
	free(in);
}

int64_t
ls_intake_time_us(const struct ls_intake *in, uint64_t mono_ns)
{
	return ((int64_t)mono_ns + in->p.anchor_ns) / 1000;
}

bool
ls_intake_is_time(const struct ls_intake_held *h, int64_t t_us)
{
	return t_us <= h->now_us + LS_TIME_AHEAD_MAX_US &&
		t_us >= h->now_us - LS_TIME_BEHIND_MAX_US;
}

struct ls_store_map
ls_intake_map(const struct ls_intake *in, const struct ls_intake_held *h,
	int64_t t_mono_ns)
{
	struct ls_store_map map;

	if (ls_clock_map(ls_session_clock(h->session), t_mono_ns, in->p.anchor_ns,
		    &map) != 0)
		LS_ASSERT(false);
	return map;
}

/*
 * Time of what the engine is told now. No two reports or turns have the same one, so
 * that what storage keeps of them says in which order they came, also when the clock
 * stands still between them.
 */
static int64_t
intake_next_us(struct ls_intake *in, uint64_t now_ns)
{
	int64_t now_us = ls_intake_time_us(in, now_ns);

	in->now_us = now_us > in->now_us ? now_us : in->now_us + 1;
	return in->now_us;
}

/* --- answers -------------------------------------------------------------- */

void
ls_intake_refuse(struct ls_intake_held *h, enum ls_wire_status status,
	const char *reason)
{
	if (h->ack.status != LS_ACK_OK)
		return;
	h->ack.status = status;
	(void)snprintf(h->ack.reason, sizeof(h->ack.reason), "%s", reason);
}

static void
intake_answer(struct ls_intake *in, struct ls_intake_held *h)
{
	h->ack.t_receive_mono_ns = h->t_receive_ns;
	h->ack.t_send_mono_ns = in->p.now(in->p.now_arg);
	if (h->ack.t_send_mono_ns < h->t_receive_ns)
		h->ack.t_send_mono_ns =
			h->t_receive_ns; /* a turn's clock is read at its start */
	if (h->ack.t_send_mono_ns < h->peer->due_mono_ns)
		h->ack.t_send_mono_ns = h->peer->due_mono_ns;
	if (h->session != NULL) {
		h->ack.acked_seq = ls_session_committed(h->session, LS_STREAM_STEPS);
		h->ack.acked_chunk_seq =
			ls_session_committed(h->session, LS_STREAM_CHUNKS);
		ls_session_sent(h->session, h->ack.t_receive_mono_ns,
			h->ack.t_send_mono_ns);
	}
	h->ack.beat_ns = ls_pressure_beat_ns(&in->pressure);
	if (h->ack.status == LS_ACK_RETRY && h->ack.retry_after_ns == 0)
		h->ack.retry_after_ns = ls_pressure_retry_ns(&in->pressure);
	in->stats.acks += h->ack.status == LS_ACK_OK;
	in->stats.retries += h->ack.status == LS_ACK_RETRY;
	in->stats.rejects += h->ack.status == LS_ACK_REJECT;
	in->p.reply(in->p.reply_arg, h->request, &h->ack);
}

/* One that was used before, or a new one; NULL when out of memory. */
static struct ls_intake_held *
intake_held_new(struct ls_intake *in)
{
	struct ls_intake_held *h = in->spare;
	struct ls_arena *arena;

	if (h == NULL)
		return calloc(1, sizeof(*h));
	in->spare = h->next;
	in->spare_count--;
	arena = h->arena;
	memset(h, 0, offsetof(struct ls_intake_held, ack));
	h->arena = arena;
	ls_wire_ack_init(&h->ack);
	return h;
}

static void
intake_held_free(struct ls_intake *in, struct ls_intake_held *h)
{
	ls_write_free(h->write);
	h->write = NULL;
	if (h->len > LS_INTAKE_SPARE_BYTES) {
		ls_arena_free(h->arena);
		h->arena = NULL;
	}
	if (in->spare_count >= LS_INTAKE_SPARE_MAX) {
		ls_arena_free(h->arena);
		free(h);
		return;
	}
	h->next = in->spare;
	in->spare = h;
	in->spare_count++;
}

/* --- workers -------------------------------------------------------------- */

void
ls_intake_need_worker(struct ls_intake *in, struct ls_intake_held *h,
	const uint8_t *ring_id)
{
	in->stats.drops[LS_INTAKE_NO_WORKER]++;
	for (size_t i = 0; i < h->ack.need_count; i++) {
		if (memcmp(h->ack.need[i], ring_id, LS_RING_ID_BYTES) == 0)
			return;
	}
	if (h->ack.need_count < LS_RINGS_MAX)
		memcpy(h->ack.need[h->ack.need_count++], ring_id, LS_RING_ID_BYTES);
}

uint32_t
ls_intake_handle(struct ls_intake *in, struct ls_ring *ring, bool record,
	int64_t now_us)
{
	if (!ls_engine_has_worker(in->p.core.engine, ring->handle) &&
		(record ? ls_engine_worker : ls_engine_announce)(in->p.core.engine,
			&ring->info, now_us, &ring->handle) != 0) {
		ring->handle = LS_NO_WORKER;
		in->stats.drops[LS_INTAKE_ENGINE]++;
	}
	return ring->handle;
}

int64_t
ls_intake_worker_id(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_ring *ring)
{
	struct ls_store_report *rows = &h->write->u.report;
	struct ls_write *m;

	if (ring->worker_id != 0)
		return ring->worker_id;
	for (m = rows->workers; m != NULL; m = m->next) {
		if (memcmp(m->u.worker.ring_id, ring->id, sizeof(ring->id)) == 0)
			return m->u.worker.proposed_id;
	}
	m = ls_write_new(LS_WRITE_WORKER, h->now_us);
	if (m == NULL)
		return 0;
	m->u.worker.proposed_id =
		ring->lost_id != 0 ? ring->lost_id : in->p.next_worker_id++;
	m->u.worker.first_us = h->now_us;
	memcpy(m->u.worker.ring_id, ring->id, sizeof(ring->id));
	m->u.worker.info = ring->info;
	m->next = rows->workers;
	rows->workers = m;
	return m->u.worker.proposed_id;
}

static void
intake_workers(struct ls_intake *in, struct ls_intake_held *h)
{
	for (size_t i = 0; i < h->report.worker_count; i++) {
		const struct ls_wire_worker *w = &h->report.workers[i];
		struct ls_ring *ring = NULL;

		if (ls_rings_get(in->p.core.rings, w->ring_id, &ring) != 0)
			ls_intake_need_worker(in, h, w->ring_id);
		/* Also without a ring: the number means none of before. */
		ls_session_name_ring(h->session, w->number, ring);
		/* A worker read from storage has no owner until its agent announces it. */
		if (ring == NULL ||
			(ring->named &&
				(ring->info.owner != 0 || w->info.owner == 0 ||
					strcmp(ring->info.host, w->info.host) != 0)))
			continue;
		if (!ring->named)
			ring->info = w->info;
		ring->info.owner = ls_session_is_apart(h->session) ? LS_OWNER_APART
								   : w->info.owner;
		ring->named = true;
		ring->handle = LS_NO_WORKER;
		(void)ls_intake_handle(in, ring, false, h->now_us); /* counted there */
	}
}

/* --- values that are not numbered ----------------------------------------- */

/* The ring that values name by its number; NULL: the agent is asked, or it is another
 * host's. */
static struct ls_ring *
intake_numbered(struct ls_intake *in, struct ls_intake_held *h, uint32_t number)
{
	struct ls_ring *ring = ls_session_ring(h->session, number);

	if (ring != NULL && ring->named) {
		if (ls_ring_hears(ring, h->report.host, h->now_us))
			return ring;
		in->stats.drops[LS_INTAKE_OTHER_HOST]++;
	} else if (ring != NULL) {
		ls_intake_need_worker(in, h, ring->id);
	} else {
		in->stats.drops[LS_INTAKE_NO_WORKER]++;
		h->ack.need_all_workers = true;
	}
	return NULL;
}

static void
intake_hot(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_hot *hot)
{
	struct ls_store_report *rows = &h->write->u.report;
	struct ls_store_counters *row = &rows->counters[rows->counters_count];
	struct ls_ring *ring = NULL;
	struct ls_store_map map;

	if (hot->worker != 0) {
		ring = intake_numbered(in, h, hot->worker);
		if (ring == NULL)
			return;
	} else if (ls_session_is_apart(h->session)) {
		in->stats.drops[LS_INTAKE_APART]++;
		return;
	}
	if (hot->count == 0 ||
		ls_clock_map(ls_session_clock(h->session), (int64_t)hot->t_mono_ns,
			in->p.anchor_ns, &map) != 0)
		return;
	row->read_us = ls_store_map_us(&map, (int64_t)hot->t_mono_ns);
	if (!ls_intake_is_time(h, row->read_us)) {
		in->stats.drops[LS_INTAKE_CLOCK]++;
		return;
	}
	memcpy(row->host, h->report.host, sizeof(row->host));
	row->worker_id = ring != NULL ? ls_intake_worker_id(in, h, ring) : 0;
	if (ring != NULL && row->worker_id == 0) {
		in->stats.drops[LS_INTAKE_MEMORY]++;
		return;
	}
	row->count = hot->count;
	memcpy(row->metric, hot->metric, sizeof(row->metric));
	memcpy(row->value, hot->value, sizeof(row->value));
	rows->counters_count++;
	in->stats.counters++;
	ls_feed_counters(in->p.core.engine, row,
		ring != NULL ? ls_intake_handle(in, ring, false, h->now_us)
			     : LS_NO_WORKER);
}

static void
intake_live(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_live *live)
{
	struct ls_ring *ring = intake_numbered(in, h, live->worker);
	struct ls_store_map map;
	uint32_t handle;
	int64_t since_us;

	if (ring == NULL || ring->ended)
		return;
	if (ls_clock_map(ls_session_clock(h->session),
		    (int64_t)live->live.since_mono_ns, in->p.anchor_ns, &map) != 0)
		return;
	since_us = ls_store_map_us(&map, (int64_t)live->live.since_mono_ns);
	/* a phase may have begun long ago */
	if (since_us > h->now_us + LS_TIME_AHEAD_MAX_US) {
		in->stats.drops[LS_INTAKE_CLOCK]++;
		return;
	}
	handle = ls_intake_handle(in, ring, false, h->now_us);
	if (handle != LS_NO_WORKER)
		ls_engine_live(in->p.core.engine, handle, &live->live, since_us,
			h->now_us);
}

static void
intake_values(struct ls_intake *in, struct ls_intake_held *h)
{
	for (size_t i = 0; i < h->report.hot_count; i++)
		intake_hot(in, h, &h->report.hot[i]);
	for (size_t i = 0; i < h->report.live_count; i++)
		intake_live(in, h, &h->report.live[i]);
}

/* --- the report ----------------------------------------------------------- */

static void
intake_clock(struct ls_intake_held *h)
{
	struct ls_clock *clock = ls_session_clock(h->session);
	const struct ls_wire_stamps *last = &h->report.last;

	/* Only stamps of our own: another collector's, or an older life's, mean another
	 * clock. */
	if (h->report.has_last && ls_session_has_sent(h->session, last->t2, last->t3))
		ls_ignore(ls_clock_sample(clock,
			last)); /* impossible ones change nothing */
	else if (ls_session_reports(h->session) > LS_CLOCK_HELLO_MAX)
		ls_clock_guess(clock, h->report.t_send_mono_ns, h->t_receive_ns);
	if (ls_clock_is_known(clock))
		ls_session_ready(h->session);
}

static bool
intake_has_items(const struct ls_intake_held *h)
{
	return h->accepted[LS_STREAM_STEPS] || h->accepted[LS_STREAM_CHUNKS];
}

/* Takes back a report that was handed to the writer. */
static void
intake_unhold(struct ls_intake *in, struct ls_intake_held *h)
{
	ls_session_release(h->session);
	in->stats.held--;
	in->waiting -= h->request != NULL;
	in->stats.held_bytes -= h->len;
}

/* The report's rows, complete, on their way; h is found again in the message that comes
 * back. */
static void
intake_store(struct ls_intake *in, struct ls_intake_held *h)
{
	struct ls_write *m = h->write;
	struct ls_store_report *rows = &m->u.report;
	int rc;

	memcpy(rows->boot, h->report.boot, sizeof(rows->boot));
	memcpy(rows->host, h->report.host, sizeof(rows->host));
	if (h->accepted[LS_STREAM_STEPS])
		rows->last_seq = ls_session_accepted(h->session, LS_STREAM_STEPS);
	if (h->accepted[LS_STREAM_CHUNKS])
		rows->last_chunk_seq =
			ls_session_accepted(h->session, LS_STREAM_CHUNKS);
	rows->owner = h;
	m->epoch = in->epoch;
	ls_session_hold(h->session);
	in->stats.held++;
	in->waiting += h->request != NULL;
	in->stats.held_bytes += h->len;
	rc = ls_writer_push(in->p.core.writer, m);
	if (rc == 0) {
		h->write = NULL;
		ls_pressure_wait(&in->pressure, h->t_receive_ns);
		return;
	}
	/* Items were allowed only with room to spare: only the end of the process is
	 * left. */
	LS_ASSERT(!intake_has_items(h) || rc == -LS_ECLOSED);
	in->stats.drops[LS_INTAKE_BUSY] += rows->counters_count;
	intake_unhold(in, h);
	if (h->request != NULL) {
		ls_intake_refuse(h, LS_ACK_RETRY, "the disk is too slow");
		intake_answer(in, h);
	}
	intake_held_free(in, h);
}

/* Answers now, or leaves that to the commit. */
static void
intake_settle(struct ls_intake *in, struct ls_intake_held *h)
{
	bool wait = intake_has_items(h) || ls_session_is_behind(h->session);

	if (!wait) {
		intake_answer(in, h);
		h->request = NULL;
		ls_arena_free(h->arena); /* without items, nothing points into it */
		h->arena = NULL;
	}
	if (wait || h->write->u.report.counters_count > 0)
		intake_store(in, h);
	else
		intake_held_free(in, h);
}

/* A report that cannot be read is answered where its sender can be told; enum
 * ls_intake_drop. */
static void
intake_unreadable(struct ls_intake *in, struct ls_intake_held *h, int rc,
	const char *why)
{
	enum ls_intake_drop drop = LS_INTAKE_MALFORMED;

	if (rc == -ENOMEM)
		drop = LS_INTAKE_MEMORY;
	else if (rc == -LS_EVERSION)
		drop = LS_INTAKE_VERSION;
	else if (rc == -LS_ELIMIT)
		drop = LS_INTAKE_TOO_MUCH;
	in->stats.drops[drop]++;
	ls_intake_refuse(h, rc == -ENOMEM ? LS_ACK_RETRY : LS_ACK_REJECT, why);
	intake_answer(in, h);
}

/* A host reports for itself only: its certificate says who it is. False: answered. */
static bool
intake_is_authentic(struct ls_intake *in, struct ls_intake_held *h)
{
	const char *name = h->peer->name;
	char reason[sizeof(h->ack.reason)];

	if (name == NULL || strcmp(name, h->report.host) == 0)
		return true;
	memcpy(h->ack.boot, h->report.boot, sizeof(h->ack.boot));
	in->stats.drops[LS_INTAKE_NAME]++;
	(void)snprintf(reason, sizeof(reason),
		"the certificate is of host \"%.40s\": run lockstep keys agent for this "
		"host, or give --host-name",
		name);
	ls_log(LS_LOG_WARN, "intake",
		"%s reports with the certificate of %s: rejecting its reports",
		h->report.host, name);
	ls_intake_refuse(h, LS_ACK_REJECT, reason);
	intake_answer(in, h);
	return false;
}

/* Session and room for rows; false: answered. */
static bool
intake_begin(struct ls_intake *in, struct ls_intake_held *h, uint64_t t_receive_ns)
{
	const struct ls_wire_report *r = &h->report;
	bool same = memcmp(r->kernel_boot_id, in->p.kernel_boot_id,
			    sizeof(r->kernel_boot_id)) == 0;
	int rc;

	memcpy(h->ack.boot, r->boot, sizeof(h->ack.boot));
	rc = ls_sessions_report(in->p.core.sessions, r, same, t_receive_ns,
		&h->peer->begun, &h->session);
	if (rc == 0) {
		/* A lost stretch before each item, a dictionary before each chunk at
		 * most. */
		h->write = ls_write_new_report(2 * r->item_count, r->hot_count,
			2 * r->chunk_item_count, h->now_us);
		if (h->write != NULL)
			return true;
		rc = -ENOMEM;
	}
	in->stats.drops[rc == -LS_ELIMIT     ? LS_INTAKE_AGENTS
			: rc == -LS_EBUSY    ? LS_INTAKE_CONNECTION
			: rc == -LS_EUNKNOWN ? LS_INTAKE_NO_KERNEL
					     : LS_INTAKE_MEMORY]++;
	ls_intake_refuse(h, LS_ACK_RETRY,
		rc == -LS_ELIMIT	  ? "too many agents"
			: rc == -LS_EBUSY ? "too many agents on one connection"
			: rc == -LS_EUNKNOWN
			? "the report does not say which boot it is from"
			: "out of memory");
	if (rc == -LS_EUNKNOWN)
		h->ack.retry_after_ns = LS_BEAT_MIN_NS; /* nothing is wrong: at once */
	intake_answer(in, h);
	return false;
}

/* The answer is delayed by what is owed: meanwhile the agent sends nothing. Who owes too
 * much keeps the items. */
static void
intake_slow(struct ls_intake *in, struct ls_intake_held *h, int64_t owed_ns,
	uint64_t now_ns)
{
	h->peer->due_mono_ns = now_ns +
		(uint64_t)(owed_ns < LS_RATE_WAIT_MAX_NS ? owed_ns
							 : LS_RATE_WAIT_MAX_NS);
	in->stats.slowed++;
	in->stats.slowed_bytes += h->len;
	if (now_ns - in->slowed_log_ns >= LS_RATE_LOG_NS) {
		in->slowed_log_ns = now_ns;
		ls_log(LS_LOG_WARN, "intake",
			"%s exceeds its byte rate (%u KiB/s): delaying its answers by up "
			"to %u s (delayed answers of all hosts: %llu)",
			h->report.host, LS_RATE_AGENT_BYTES_PER_S >> 10,
			(unsigned)(LS_RATE_WAIT_MAX_NS / 1000000000),
			(unsigned long long)in->stats.slowed);
	}
	if (owed_ns <= LS_RATE_WAIT_MAX_NS)
		return;
	in->stats.drops[LS_INTAKE_RATE] +=
		h->report.item_count + h->report.chunk_item_count;
	ls_intake_refuse(h, LS_ACK_RETRY, "the byte rate is exceeded");
}

/*
 * Charges a report to its agent, and to its address if the agent has saved nothing: names
 * are free, so the new ones of an address share one allowance. False: more is owed than
 * LS_RATE_WAIT_MAX_NS, and nothing is charged.
 */
static bool
intake_charge(struct ls_intake *in, struct ls_intake_held *h)
{
	int64_t now_ns = (int64_t)in->p.now(in->p.now_arg), left_ns, shared_ns;
	int64_t *mine = ls_session_rate(h->session), new_mine = *mine;
	int64_t *ours = &in->address_ns[h->peer->address], new_ours = *ours;

	left_ns = shared_ns = ls_rate_spend(&new_mine, LS_RATE_AGENT_BYTES_PER_S,
		LS_RATE_AGENT_BURST_NS, h->len, now_ns);
	if (left_ns < LS_RATE_AGENT_NEW_NS - LS_RATE_AGENT_FREE_NS)
		shared_ns = ls_rate_spend(&new_ours, LS_RATE_ADDRESS_BYTES_PER_S,
			LS_RATE_ADDRESS_BURST_NS, h->len, now_ns);
	if (shared_ns < left_ns)
		left_ns = shared_ns;
	if (left_ns < 0)
		intake_slow(in, h, -left_ns, (uint64_t)now_ns);
	if (left_ns < -LS_RATE_WAIT_MAX_NS)
		return false;
	*mine = new_mine;
	*ours = new_ours;
	return true;
}

/* Not even room to look at a report. */
static void
intake_no_memory(struct ls_intake *in, void *request, uint64_t t_receive_mono_ns)
{
	const struct ls_wire_ack busy = { .status = LS_ACK_RETRY,
		.retry_after_ns = ls_pressure_retry_ns(&in->pressure),
		.t_receive_mono_ns = t_receive_mono_ns,
		.t_send_mono_ns = t_receive_mono_ns };

	in->stats.drops[LS_INTAKE_MEMORY]++;
	in->p.reply(in->p.reply_arg, request, &busy);
}

void
ls_intake_report(struct ls_intake *in, void *request, const uint8_t *data, size_t len,
	uint64_t t_receive_mono_ns)
{
	struct ls_intake_held *h = intake_held_new(in);
	const char *why = "not a report";
	int rc;

	if (h == NULL) {
		intake_no_memory(in, request, t_receive_mono_ns);
		return;
	}
	h->request = request;
	h->peer = in->p.peer(request);
	h->len = len;
	h->t_receive_ns = t_receive_mono_ns;
	h->now_us = intake_next_us(in, in->p.now(in->p.now_arg));
	rc = ls_wire_report_unpack_in(data, len, &h->arena, &h->report, &why);
	if (rc != 0) {
		intake_unreadable(in, h, rc, why);
		intake_held_free(in, h);
		return;
	}
	in->stats.reports++;
	if (!intake_is_authentic(in, h) || !intake_begin(in, h, t_receive_mono_ns)) {
		intake_held_free(in, h);
		return;
	}
	intake_clock(h);
	intake_workers(in, h);
	if (intake_charge(in, h)) {
		/* first: as replay has them, and a step that closes may use them */
		intake_values(in, h);
		ls_intake_items(in, h);
		ls_intake_host(in, h);
	} else if (ls_fleet_report(in->p.core.fleet, &h->report,
			   ls_session_clock(h->session), true, h->now_us) != 0) {
		in->stats.drops[LS_INTAKE_MEMORY]++;
	}
	intake_settle(in, h);
	ls_outbox_flush(in->p.core.outbox);
}

/* --- after the commit ----------------------------------------------------- */

static void
intake_committed(struct ls_intake *in, const struct ls_store_report *rows,
	struct ls_intake_held *h)
{
	const struct ls_write *w;
	struct ls_ring *ring;

	for (w = rows->workers; w != NULL; w = w->next) {
		ring = ls_rings_find(in->p.core.rings, w->u.worker.ring_id);
		if (ring != NULL)
			ring->worker_id = w->u.worker.id;
	}
	ls_session_commit(h->session, LS_STREAM_STEPS, rows->last_seq);
	ls_session_commit(h->session, LS_STREAM_CHUNKS, rows->last_chunk_seq);
	for (size_t i = 0; i < rows->item_count; i++) {
		ring = ls_rings_find(in->p.core.rings, rows->items[i].ring_id);
		if (ring != NULL && rows->items[i].high > ring->committed)
			ring->committed = rows->items[i].high;
	}
}

void
ls_intake_done(struct ls_intake *in, struct ls_write_done *done)
{
	struct ls_write *m;

	/* First what is on disk, then what is taken back: so the answers say the truth.
	 */
	for (m = done->reports; m != NULL; m = m->next) {
		if (m->rc == 0)
			intake_committed(in, &m->u.report, m->u.report.owner);
	}
	if (done->epoch != in->epoch) {
		in->epoch = done->epoch;
		ls_sessions_rollback(in->p.core.sessions);
		ls_rings_rollback(in->p.core.rings);
		ls_dictionaries_rollback(in->p.core.dictionaries);
	}
	for (m = done->reports; m != NULL; m = m->next) {
		struct ls_intake_held *h = m->u.report.owner;

		if (m->rc != 0)
			ls_intake_refuse(h, LS_ACK_RETRY,
				m->rc == -LS_ESTALE ? "an earlier commit failed"
						    : ls_err_text(m->rc));
		intake_unhold(in, h);
		if (h->request != NULL)
			intake_answer(in, h);
		intake_held_free(in, h);
	}
	ls_pressure_committed(&in->pressure, in->p.now(in->p.now_arg), done->commit_ns,
		in->stats.held);
	ls_write_done_free(done);
}

/* Who is zoomed from now on. */
static void
intake_zoom(struct ls_intake *in, int64_t now_us)
{
	struct ls_attention_want wants[INTAKE_WANTS_MAX];
	size_t count;

	if (now_us - in->zoom_us < LS_ZOOM_TURN_US)
		return;
	in->zoom_us = now_us;
	count = ls_attention(in->p.core.engine, wants, INTAKE_WANTS_MAX);
	ls_zoom_turn(in->p.core.zoom, wants, count, now_us);
}

static void
intake_pressure(struct ls_intake *in, uint64_t now_ns, uint64_t cpu_ns)
{
	struct ls_pressure_stats before, after;

	ls_pressure_stats(&in->pressure, &before);
	ls_pressure_turn(&in->pressure, now_ns, cpu_ns);
	ls_pressure_stats(&in->pressure, &after);
	if (after.factor > before.factor)
		ls_log(LS_LOG_WARN, "intake",
			"overloaded (a commit took %.3f s, the loop %.2f of a "
			"core%s); asking agents for beats of %u s",
			(double)after.commit_ns * 1e-9, after.loop_ratio,
			after.refusing ? ", items are rejected" : "",
			(unsigned)(ls_pressure_beat_ns(&in->pressure) /
				LS_BEAT_DEFAULT_NS));
	else if (after.factor < before.factor)
		ls_log(LS_LOG_INFO, "intake",
			"load is lower; asking agents for beats of %u s", after.factor);
}

void
ls_intake_advance(struct ls_intake *in, uint64_t now_ns, uint64_t cpu_ns)
{
	int64_t now_us = intake_next_us(in, now_ns);

	intake_pressure(in, now_ns, cpu_ns);
	ls_sessions_sweep(in->p.core.sessions, now_ns);
	ls_engine_advance(in->p.core.engine, now_us);
	intake_zoom(in, now_us);
	ls_outbox_flush(in->p.core.outbox);
}

void
ls_intake_stats(const struct ls_intake *in, struct ls_intake_stats *ret_stats)
{
	struct ls_session_stats sessions;

	ls_sessions_stats(in->p.core.sessions, &sessions);
	*ret_stats = in->stats;
	ret_stats->drops[LS_INTAKE_CHANGED] = sessions.changed;
	ls_pressure_stats(&in->pressure, &ret_stats->pressure);
}
