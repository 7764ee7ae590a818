/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/uplink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/uplink/exchange.h"
#include "agent/uplink/known.h"
#include "agent/uplink/pace.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

/* full lists of a report take 45 KiB; touched as far as used */
#define UPLINK_SCRATCH_BYTES 65536u

/* One report introduces all workers: none is named by a number before it is. */
_Static_assert(LS_WORKERS_PER_REPORT_MAX >= LS_RINGS_MAX, "workers of a report");

static const char *const uplink_state_names[] = {
#define LS_UPLINK_STATE(id, name) name,
#include "agent/uplink/uplink_state.def"
#undef LS_UPLINK_STATE
};

struct ls_uplink {
	struct ls_loop *loop;
	struct ls_uplink_options options;
	char host[LS_HOST_NAME_MAX_BYTES], url[LS_CONF_VALUE_MAX_BYTES];
	struct ls_exchange *exchange;
	struct ls_loop_timer *timer;
	enum ls_uplink_state state;
	uint64_t next_beat_ns;
	uint64_t hold_until_ns; /* a refusal outlives the connection it came by */
	uint64_t t_send_ns; /* of the report under way */
	/* the highest number that may have been sent, ever */
	uint64_t sent_seq;
	/* the highest in the report under way, 0: no items */
	uint64_t report_seq;
	bool has_last;
	struct ls_wire_stamps last;
	/* the collector knows our kernel, by this connection */
	bool introduced;
	bool gathered; /* for the report that waits for the spool */
	struct ls_known known; /* workers the collector knows */
	size_t worker_count; /* workers in the report under way */
	struct ls_wire_worker workers[LS_WORKERS_PER_REPORT_MAX];
	struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	uint8_t item_bytes[LS_REPORT_ITEMS_BYTES];
	/* Stream two. */
	uint64_t sent_chunk_seq; /* the highest that may have been sent, ever */
	struct ls_pace pace;
	struct ls_wire_bytes chunk_items[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	uint8_t chunk_bytes[LS_SPOOL_CHUNKS_READ_BYTES];
	/* What the collector asked for. */
	uint64_t zoom_until_ns;
	struct ls_wire_zoomed zoomed[LS_GROUPS_MAX];
	bool identity_asked;
	bool identity_known;
	uint64_t identity_version; /* that it knows */
	bool report_identity; /* in the report under way, of this version */
	uint64_t report_identity_version;
	struct ls_arena *scratch;
	/* touched as far as used; lent to the exchange until it is over */
	uint8_t report[LS_REPORT_MAX_BYTES];
	/* at least so long until the next answer; 0: not asked */
	uint64_t asked_beat_ns;
	unsigned slowed; /* beats are this factor longer; 0, 1: not */
	/* why, if the last answer was a refusal; from outside */
	char refused[160];
	/* the item that the last refusals were about, and how many they were */
	uint64_t malformed[2];
	unsigned malformed_times;
	struct ls_uplink_stats stats;
};

/* --- states --------------------------------------------------------------- */

/* The only place that changes the state, and with it the timer. */
static void
uplink_set_state(struct ls_uplink *u, enum ls_uplink_state to, uint64_t until_ns)
{
	static const unsigned moves[LS_UPLINK_STATE_COUNT] = {
		[LS_UPLINK_STATE_DOWN] =
			1u << LS_UPLINK_STATE_READY | 1u << LS_UPLINK_STATE_HOLD,
		[LS_UPLINK_STATE_READY] = 1u << LS_UPLINK_STATE_AWAIT |
			1u << LS_UPLINK_STATE_READY | 1u << LS_UPLINK_STATE_DOWN,
		[LS_UPLINK_STATE_AWAIT] = 1u << LS_UPLINK_STATE_READY |
			1u << LS_UPLINK_STATE_HOLD | 1u << LS_UPLINK_STATE_DOWN,
		[LS_UPLINK_STATE_HOLD] =
			1u << LS_UPLINK_STATE_READY | 1u << LS_UPLINK_STATE_DOWN,
	};
	uint64_t now = ls_loop_now(u->loop);

	LS_ASSERT(moves[u->state] & 1u << to);
	if (to != u->state)
		ls_log(LS_LOG_DEBUG, "uplink", "%s -> %s", uplink_state_names[u->state],
			uplink_state_names[to]);
	u->state = to;
	u->gathered = u->gathered && to == LS_UPLINK_STATE_READY;
	if (to == LS_UPLINK_STATE_DOWN)
		ls_loop_timer_stop(u->timer);
	else
		ls_loop_timer_start(u->timer, until_ns > now ? until_ns - now : 0, 0);
}

static uint64_t
uplink_within_beats(uint64_t ns)
{
	if (ns < LS_BEAT_MIN_NS)
		return LS_BEAT_MIN_NS;
	return ns > LS_BEAT_MAX_NS ? LS_BEAT_MAX_NS : ns;
}

static void
uplink_hold(struct ls_uplink *u, uint64_t for_ns)
{
	u->hold_until_ns = ls_loop_now(u->loop) + for_ns;
	uplink_set_state(u, LS_UPLINK_STATE_HOLD, u->hold_until_ns);
}

/* --- the report ----------------------------------------------------------- */

/*
 * Keeps of all workers those that the collector does not know: all of them, since hot
 * values and live slots name them by numbers that it may know from an earlier life of
 * this agent.
 */
static void
uplink_add_workers(struct ls_uplink *u, struct ls_wire_report *r)
{
	ls_known_prune(&u->known, r->workers, r->worker_count);
	u->worker_count = 0;
	for (size_t i = 0; i < r->worker_count; i++) {
		if (u->worker_count < LS_WORKERS_PER_REPORT_MAX &&
			!ls_known_has(&u->known, &r->workers[i]))
			u->workers[u->worker_count++] = r->workers[i];
	}
	r->workers = u->workers;
	r->worker_count = u->worker_count;
}

static void
uplink_add_items(struct ls_uplink *u, struct ls_wire_report *r)
{
	struct ls_spool *spool = u->options.spool;
	int rc = ls_spool_read(spool, u->item_bytes, sizeof(u->item_bytes), u->items,
		LS_ITEMS_PER_REPORT_MAX, &r->item_count);

	if (rc != 0) {
		r->item_count = 0;
		ls_log(LS_LOG_ERR, "uplink",
			"cannot read the spool (%s); reporting without items",
			ls_err_text(rc));
	}
	r->items = u->items;
	u->report_seq = r->item_count > 0 ? ls_spool_acked(spool) + r->item_count : 0;
	r->spooled_items =
		ls_spool_next(spool) - 1 - ls_spool_acked(spool) - r->item_count;
	if (u->report_seq > u->sent_seq)
		u->sent_seq = u->report_seq;
}

static uint64_t
uplink_chunks_waiting(const struct ls_uplink *u)
{
	return ls_spool_chunks_next(u->options.spool) - 1 -
		ls_spool_chunks_acked(u->options.spool);
}

/* Chunk items, in what is left of the report and of the allowance. */
static void
uplink_add_chunks(struct ls_uplink *u, struct ls_wire_report *r)
{
	struct ls_spool *spool = u->options.spool;
	uint64_t allowed = ls_pace_reckon(&u->pace, u->options.backfill_bytes_per_s,
		ls_loop_now(u->loop), ls_spool_get_stats(spool)->pushed_chunk_bytes);
	size_t i, used = 0, room;
	int rc;

	for (i = 0; i < r->item_count; i++)
		used += r->items[i].len;
	r->chunk_items = u->chunk_items;
	r->waiting_chunk_items = uplink_chunks_waiting(u);
	if (used >= LS_REPORT_ITEMS_BYTES || allowed == 0)
		return;
	room = LS_REPORT_ITEMS_BYTES - used;
	if (room > allowed)
		room = (size_t)allowed;
	rc = ls_spool_read_chunks(spool, u->chunk_bytes, room, u->chunk_items,
		&r->chunk_item_count);
	if (rc != 0) {
		r->chunk_item_count = 0;
		ls_log(LS_LOG_ERR, "uplink",
			"cannot read chunks of the spool (%s); reporting without "
			"chunks",
			ls_err_text(rc));
	}
	r->waiting_chunk_items -= r->chunk_item_count;
	for (i = 0; i < r->chunk_item_count; i++) {
		ls_pace_spend(&u->pace, r->chunk_items[i].len);
		u->stats.chunk_bytes += r->chunk_items[i].len;
	}
	u->stats.chunk_items += r->chunk_item_count;
	if (ls_spool_chunks_acked(spool) + r->chunk_item_count > u->sent_chunk_seq)
		u->sent_chunk_seq = ls_spool_chunks_acked(spool) + r->chunk_item_count;
}

/* What was asked for. */
static void
uplink_add_asked(struct ls_uplink *u, struct ls_wire_report *r)
{
	const struct ls_wire_identity *identity;
	uint64_t version = 0;
	size_t count = 0;

	if (u->options.zoom != NULL && ls_uplink_is_zoomed(u)) {
		r->zoomed = u->zoomed;
		r->zoomed_count = u->options.zoom(u->options.arg, u->zoomed);
	}
	u->report_identity = false;
	if (u->options.identity == NULL)
		return;
	identity = u->options.identity(u->options.arg, &count, &version);
	if (u->identity_known && u->identity_version == version && !u->identity_asked)
		return;
	memcpy(&r->identity, &identity, sizeof(r->identity)); /* only read */
	r->identity_count = count;
	r->has_identity = u->report_identity = true;
	u->report_identity_version = version;
}

static int
uplink_pack(struct ls_uplink *u, size_t *ret_len)
{
	struct ls_wire_report r = { .has_last = u->has_last, .last = u->last };

	memcpy(r.host, u->host, sizeof(r.host));
	memcpy(r.boot, ls_spool_boot(u->options.spool), sizeof(r.boot));
	r.has_kernel = !u->introduced;
	memcpy(r.kernel_boot_id, u->options.kernel_boot_id, sizeof(r.kernel_boot_id));
	(void)snprintf(r.agent_version, sizeof(r.agent_version), "%s", PACKAGE_VERSION);
	u->options.fill(u->options.arg, &r);
	uplink_add_workers(u, &r);
	uplink_add_asked(u, &r);
	uplink_add_items(u, &r);
	uplink_add_chunks(u, &r);
	/* as late as can be: it is t1 */
	r.t_send_mono_ns = u->t_send_ns = ls_clock_mono_ns();
	return ls_wire_report_pack_to(&r, u->scratch, u->report, sizeof(u->report),
		ret_len);
}

static void
uplink_report(struct ls_uplink *u)
{
	uint64_t now = ls_loop_now(u->loop);
	size_t len = 0;
	int rc = uplink_pack(u, &len);

	/* Beats keep their phase; those that were missed are not made up for. */
	if (u->next_beat_ns + ls_uplink_beat_ns(u) <= now)
		u->next_beat_ns = now;
	u->next_beat_ns += ls_uplink_beat_ns(u);
	if (rc == 0)
		rc = ls_exchange_send(u->exchange, u->report, len);
	if (rc != 0) {
		ls_log(LS_LOG_WARN, "uplink",
			"cannot send the report (%s); retrying at the next beat",
			ls_err_text(rc));
		uplink_set_state(u, LS_UPLINK_STATE_READY, u->next_beat_ns);
		return;
	}
	u->stats.reports++;
	u->stats.bytes += len;
	uplink_set_state(u, LS_UPLINK_STATE_AWAIT, now + LS_ACK_TIMEOUT_NS);
}

/* --- the answer ----------------------------------------------------------- */

static void
uplink_bad_ack(struct ls_uplink *u, const char *why)
{
	u->stats.bad_acks++;
	ls_log(LS_LOG_WARN, "uplink", "invalid answer (%s); reporting again", why);
	uplink_hold(u, LS_BAD_ACK_HOLD_NS);
}

/* What is wrong with an answer that was read; NULL if nothing is. */
static const char *
uplink_check_ack(const struct ls_uplink *u, const struct ls_wire_ack *a, uint64_t t4)
{
	static const uint8_t none[LS_BOOT_BYTES];

	/* A report that could not be read has no boot to answer to. */
	if (memcmp(a->boot, ls_spool_boot(u->options.spool), LS_BOOT_BYTES) != 0 &&
		!(a->status == LS_ACK_REJECT &&
			memcmp(a->boot, none, LS_BOOT_BYTES) == 0))
		return "for another agent";
	if (a->acked_seq > u->sent_seq || a->acked_chunk_seq > u->sent_chunk_seq)
		return "acknowledges items that were never sent";
	if (t4 < u->t_send_ns)
		return "was sent before its report";
	return NULL;
}

/* What is on the collector's disk is done with, whatever else the answer says. */
static void
uplink_take_stored(struct ls_uplink *u, const struct ls_wire_ack *a)
{
	ls_spool_ack(u->options.spool, a->acked_seq);
	ls_spool_ack_chunks(u->options.spool, a->acked_chunk_seq);
}

static void
uplink_take_asked(struct ls_uplink *u, const struct ls_wire_ack *a)
{
	for (size_t i = 0;
		i < a->need_dictionary_count && u->options.need_dictionary != NULL; i++)
		u->options.need_dictionary(u->options.arg, a->need_dictionary[i]);
	if (a->zoom_ns > 0) {
		u->stats.zooms++;
		u->zoom_until_ns = ls_loop_now(u->loop) +
			(a->zoom_ns < LS_ZOOM_MAX_NS ? a->zoom_ns : LS_ZOOM_MAX_NS);
	}
	if (u->report_identity && a->status == LS_ACK_OK) {
		u->identity_known = true;
		u->identity_version = u->report_identity_version;
		u->identity_asked = false;
	}
	u->identity_asked = u->identity_asked || a->need_identity;
}

static void
uplink_take_ack(struct ls_uplink *u, const struct ls_wire_ack *a, uint64_t t4)
{
	u->last = (struct ls_wire_stamps){ u->t_send_ns, a->t_receive_mono_ns,
		a->t_send_mono_ns, t4 };
	u->has_last = true;
	u->asked_beat_ns = a->beat_ns != 0 ? uplink_within_beats(a->beat_ns) : 0;
	for (size_t i = 0; i < u->worker_count && a->status == LS_ACK_OK; i++)
		ls_known_add(&u->known, &u->workers[i]);
	/* who is put off says again who he is */
	u->introduced = a->status == LS_ACK_OK;
	for (size_t i = 0; i < a->need_count; i++)
		ls_known_forget(&u->known, a->need[i]);
	if (a->need_all_workers)
		u->known.count = 0;
	uplink_take_stored(u, a);
	uplink_take_asked(u, a);
}

/*
 * A refusal that names an item: the same item LS_MALFORMED_TIMES in a row will never be
 * taken, and a gap or a loss of its number replaces it. A refusal for another reason
 * names no item, and all wait.
 */
static void
uplink_take_malformed(struct ls_uplink *u, const struct ls_wire_ack *a)
{
	const struct ls_spool *spool = u->options.spool;
	uint64_t steps = a->malformed_seq, chunks = a->malformed_chunk_seq;

	if (steps <= ls_spool_acked(spool) || steps > u->sent_seq)
		steps = 0;
	if (chunks <= ls_spool_chunks_acked(spool) || chunks > u->sent_chunk_seq)
		chunks = 0;
	if (steps != u->malformed[0] || chunks != u->malformed[1])
		u->malformed_times = 0;
	u->malformed[0] = steps;
	u->malformed[1] = chunks;
	if ((steps == 0 && chunks == 0) || ++u->malformed_times < LS_MALFORMED_TIMES ||
		ls_spool_replace(u->options.spool, steps, chunks) != 0)
		return; /* a rewrite is under way: at the next refusal */
	u->malformed_times = 0;
	ls_log(LS_LOG_ERR, "uplink",
		"the collector cannot take item %llu of its stream; a gap replaces the item",
		(unsigned long long)(steps != 0 ? steps : chunks));
}

static void
uplink_answered(struct ls_uplink *u, const uint8_t *bytes, size_t len, uint64_t t4)
{
	uint64_t before = ls_spool_acked(u->options.spool), now = ls_loop_now(u->loop);
	struct ls_wire_ack a;
	const char *why = NULL;
	char reason[2 * sizeof(a.reason)];

	if (ls_wire_ack_unpack(bytes, len, &a, &why) == 0)
		why = uplink_check_ack(u, &a, t4);
	if (why != NULL) {
		u->introduced = false;
		uplink_bad_ack(u, why);
		return;
	}
	if (a.status == LS_ACK_REJECT) {
		u->stats.rejects++;
		u->introduced = false;
		if (memcmp(a.boot, ls_spool_boot(u->options.spool), LS_BOOT_BYTES) ==
			0) {
			uplink_take_stored(u, &a);
			uplink_take_malformed(u, &a);
		}
		(void)snprintf(u->refused, sizeof(u->refused), "%s", a.reason);
		(void)ls_text_escape(reason, sizeof(reason), a.reason,
			strlen(a.reason));
		ls_log(LS_LOG_ERR, "uplink",
			"collector rejects our reports (version %d): %s",
			LS_WIRE_VERSION, reason);
		uplink_hold(u, LS_REJECT_HOLD_NS);
		return;
	}
	u->refused[0] = '\0';
	uplink_take_ack(u, &a, t4);
	if (a.status == LS_ACK_RETRY) {
		u->stats.retries++;
		uplink_hold(u,
			uplink_within_beats(a.retry_after_ns != 0
					? a.retry_after_ns
					: ls_uplink_beat_ns(u)));
		return;
	}
	u->stats.acks++;
	/* More is waiting and this report got through: go on at once. */
	if (ls_spool_acked(u->options.spool) > before &&
		ls_spool_acked(u->options.spool) + 1 < ls_spool_next(u->options.spool))
		u->next_beat_ns = now;
	uplink_set_state(u, LS_UPLINK_STATE_READY, u->next_beat_ns);
}

/* --- events --------------------------------------------------------------- */

static void
uplink_connected(struct ls_uplink *u)
{
	uint64_t now = ls_loop_now(u->loop);

	u->stats.connects++;
	u->introduced = false;
	ls_log(LS_LOG_INFO, "uplink", "connected to %s", u->url);
	u->next_beat_ns = now;
	ls_pace_start(&u->pace, now,
		ls_spool_get_stats(u->options.spool)->pushed_chunk_bytes);
	if (u->hold_until_ns > now)
		uplink_set_state(u, LS_UPLINK_STATE_HOLD, u->hold_until_ns);
	else
		uplink_set_state(u, LS_UPLINK_STATE_READY, now);
}

static void
uplink_event(void *arg, enum ls_exchange_event event, const uint8_t *bytes, size_t len,
	uint64_t t_receive_mono_ns)
{
	struct ls_uplink *u = arg;

	switch (event) {
	case LS_EXCHANGE_UP:
		uplink_connected(u);
		break;
	case LS_EXCHANGE_DOWN:
		ls_log(LS_LOG_WARN, "uplink",
			"no connection to %s; keeping unacknowledged items in the "
			"spool",
			u->url);
		/* a newer report follows, with newer stamps */
		uplink_set_state(u, LS_UPLINK_STATE_DOWN, 0);
		break;
	case LS_EXCHANGE_ANSWER:
		if (u->state == LS_UPLINK_STATE_AWAIT)
			uplink_answered(u, bytes, len, t_receive_mono_ns);
		break;
	case LS_EXCHANGE_FAILED:
		u->stats.failures++;
		if (u->state == LS_UPLINK_STATE_AWAIT)
			uplink_hold(u, LS_BEAT_MIN_NS);
		break;
	}
}

/* What is new must be in the spool's file before it is sent: a kill -9 would give its
 * number to something else. A disk that lags delays only new items, not the beat. */
static void
uplink_begin(struct ls_uplink *u)
{
	if (!u->gathered && u->options.gather != NULL) {
		u->options.gather(u->options.arg);
		u->gathered = true;
		if (!ls_spool_is_idle(u->options.spool)) {
			uplink_set_state(u, LS_UPLINK_STATE_READY,
				ls_loop_now(u->loop) + LS_SPOOL_WAIT_NS);
			return;
		}
	}
	u->gathered = false;
	uplink_report(u);
}

void
ls_uplink_spool_is_idle(struct ls_uplink *u)
{
	if (u->gathered)
		uplink_set_state(u, LS_UPLINK_STATE_READY, 0);
}

static void
uplink_due(void *arg)
{
	struct ls_uplink *u = arg;

	switch (u->state) {
	case LS_UPLINK_STATE_READY:
		uplink_begin(u);
		break;
	case LS_UPLINK_STATE_HOLD:
		uplink_set_state(u, LS_UPLINK_STATE_READY, 0);
		break;
	case LS_UPLINK_STATE_AWAIT:
		ls_log(LS_LOG_WARN, "uplink", "no answer; reporting again");
		/* this state ends with what it tells */
		ls_exchange_cancel(u->exchange);
		break;
	case LS_UPLINK_STATE_DOWN:
	case LS_UPLINK_STATE_COUNT:
		break;
	}
}

/* --- life ----------------------------------------------------------------- */

int
ls_uplink_new(struct ls_loop *loop, const struct ls_uplink_options *options,
	struct ls_uplink **ret_uplink)
{
	struct ls_uplink *u = calloc(1, sizeof(*u));
	struct ls_exchange_handler handler = { u, uplink_event };
	int rc;

	if (u == NULL)
		return -ENOMEM;
	u->loop = loop;
	u->options = *options;
	/* What an earlier process of this spool sent is not known: it may be all of it.
	 */
	u->sent_seq = ls_spool_next(options->spool) - 1;
	u->sent_chunk_seq =
		ls_spool_chunks_acked(options->spool) + LS_CHUNK_ITEMS_PER_REPORT_MAX;
	if (u->sent_chunk_seq >= ls_spool_chunks_next(options->spool))
		u->sent_chunk_seq = ls_spool_chunks_next(options->spool) - 1;
	rc = ls_text_copy(u->host, sizeof(u->host), options->host);
	if (rc == 0)
		rc = ls_text_copy(u->url, sizeof(u->url), options->url);
	if (rc != 0)
		goto out;
	rc = -ENOMEM;
	u->timer = ls_loop_timer_new(loop, uplink_due, u);
	u->scratch = ls_arena_new(UPLINK_SCRATCH_BYTES, LS_REPORT_MAX_BYTES);
	if (u->timer == NULL || u->scratch == NULL)
		goto out;
	rc = ls_exchange_open(loop, u->url, options->tls, &handler, &u->exchange);
	if (rc != 0)
		goto out;
	*ret_uplink = u;
	u = NULL;
out:
	ls_uplink_free(u);
	return rc;
}

void
ls_uplink_free(struct ls_uplink *u)
{
	if (u == NULL)
		return;
	ls_exchange_close(u->exchange);
	ls_loop_timer_free(u->timer);
	ls_arena_free(u->scratch);
	free(u);
}

void
ls_uplink_set_beat(struct ls_uplink *u, uint64_t beat_ns)
{
	u->options.beat_ns = uplink_within_beats(beat_ns);
}

void
ls_uplink_hurry(struct ls_uplink *u)
{
	u->next_beat_ns = ls_loop_now(u->loop);
	if (u->state == LS_UPLINK_STATE_READY)
		uplink_set_state(u, LS_UPLINK_STATE_READY, u->next_beat_ns);
}

bool
ls_uplink_is_zoomed(const struct ls_uplink *u)
{
	return ls_loop_now(u->loop) < u->zoom_until_ns;
}

bool
ls_uplink_is_settled(const struct ls_uplink *u)
{
	if (u->state == LS_UPLINK_STATE_DOWN)
		return true;
	return u->state != LS_UPLINK_STATE_AWAIT &&
		ls_spool_acked(u->options.spool) + 1 ==
		ls_spool_next(u->options.spool) &&
		(uplink_chunks_waiting(u) == 0 || u->pace.allowance_bytes <= 0);
}

enum ls_uplink_state
ls_uplink_get_state(const struct ls_uplink *u)
{
	return u->state;
}

uint64_t
ls_uplink_beat_ns(const struct ls_uplink *u)
{
	uint64_t beat = u->options.beat_ns > u->asked_beat_ns ? u->options.beat_ns
							      : u->asked_beat_ns;
	uint64_t slowed = beat * u->slowed;

	if (u->slowed <= 1 || beat >= LS_BUDGET_BEAT_MAX_NS)
		return beat;
	return slowed < LS_BUDGET_BEAT_MAX_NS ? slowed : LS_BUDGET_BEAT_MAX_NS;
}

void
ls_uplink_set_slowed(struct ls_uplink *u, unsigned factor)
{
	u->slowed = factor;
}

void
ls_uplink_tell(const struct ls_uplink *u, struct ls_uplink_told *ret_told)
{
	ret_told->url = u->url;
	ret_told->refused = u->refused;
	ret_told->wrong = ls_exchange_wrong(u->exchange, &ret_told->tls_failures);
	ret_told->held = u->state == LS_UPLINK_STATE_HOLD;
	ret_told->has_exchange = u->has_last;
	ret_told->round_trip_ns = 0;
	if (u->has_last && u->last.t4 - u->last.t1 >= u->last.t3 - u->last.t2)
		ret_told->round_trip_ns =
			u->last.t4 - u->last.t1 - (u->last.t3 - u->last.t2);
}

const struct ls_uplink_stats *
ls_uplink_get_stats(const struct ls_uplink *u)
{
	return &u->stats;
}
