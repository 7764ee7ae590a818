/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/agent_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

#define AGENT_NS_PER_S 1000000000ull
/* --saturate goes back by 23 h */
#define AGENT_UPTIME_MIN_NS (3600ull * 25 * AGENT_NS_PER_S)
#define AGENT_UPTIME_SPREAD_NS (3600ull * 24 * 30 * AGENT_NS_PER_S)

void
sim_agent_name(char name[LS_HOST_NAME_MAX_BYTES], uint32_t index)
{
	(void)snprintf(name, LS_HOST_NAME_MAX_BYTES, "sim%05u", index + 1);
}

static void
agent_fill_id(uint8_t id[16], uint64_t run, uint32_t index, uint64_t what)
{
	uint64_t words[2] = { sim_hash(run, index, what, 10),
		sim_hash(run, index, what, 11) };

	memcpy(id, words, sizeof(words));
}

void
sim_agent_init(struct sim_agent *a, const struct sim_plan *plan, uint32_t index)
{
	uint64_t seed = (uint64_t)plan->options->seed;
	/* Agents that share bodies share the clock these are told in. */
	uint64_t clock = plan->options->variants > 0 ? 0 : index;

	*a = (struct sim_agent){ .index = index,
		.name = index + (uint32_t)plan->options->first - 1,
		.offset_ns = AGENT_UPTIME_MIN_NS +
			sim_hash(seed, clock, 0, 4) % AGENT_UPTIME_SPREAD_NS,
		.misbehaves = sim_misbehave_of(&plan->misbehave, index),
		.steps.next = 1,
		.chunks.next = 1,
		.dictionary = { true, true },
		.beat_ns = plan->options->beat_ns,
		.own_beat_ns = plan->options->beat_ns,
		.t_hot_ns = plan->start_ns };
	agent_fill_id(a->boot, plan->run, index, 0);
	agent_fill_id(a->kernel, plan->run, index, 1);
	agent_fill_id(a->ring, plan->run, index, 2);
	a->data_offset_ns = a->offset_ns +
		(a->misbehaves == SIM_MISBEHAVES_CLOCK ? SIM_YEAR_NS : 0);
	if (a->misbehaves == SIM_MISBEHAVES_TWIN)
		a->name--;
	sim_hot_init(plan->shape, &a->hot, sim_hash(seed, index, 0, 5));
}

/* --- streams -------------------------------------------------------------- */

int
sim_agent_push(struct sim_stream *s, const uint8_t *bytes, size_t len, uint64_t worth,
	uint64_t end_index)
{
	struct sim_item *item = malloc(sizeof(*item) + len);

	if (item == NULL)
		return -ENOMEM;
	item->next = NULL;
	item->seq = s->next++;
	item->len = (uint32_t)len;
	item->worth = (uint32_t)worth;
	item->end_index = end_index;
	memcpy(item->data, bytes, len);
	if (s->last != NULL)
		s->last->next = item;
	else
		s->first = item;
	s->last = item;
	s->count++;
	return 0;
}

static uint64_t
agent_pop(struct sim_stream *s, uint64_t *ret_end_index)
{
	struct sim_item *item = s->first;
	uint64_t worth = item->worth;

	if (item->end_index != 0)
		*ret_end_index = item->end_index;
	s->acked = item->seq;
	s->first = item->next;
	if (s->first == NULL)
		s->last = NULL;
	s->count--;
	free(item);
	return worth;
}

void
sim_agent_clear(struct sim_agent *a)
{
	uint64_t unused = 0;

	while (a->steps.first != NULL)
		(void)agent_pop(&a->steps, &unused);
	while (a->chunks.first != NULL)
		(void)agent_pop(&a->chunks, &unused);
}

bool
sim_agent_waits(const struct sim_agent *a)
{
	return a->steps.first != NULL || a->chunks.first != NULL;
}

/* --- the report ----------------------------------------------------------- */

void
sim_agent_connected(struct sim_agent *a, uint64_t now_ns)
{
	a->introduced = false;
	ls_pace_start(&a->pace, now_ns, a->pushed_chunk_bytes);
}

/* The first items of a stream, in so many bytes; at least one if there are any. */
static size_t
agent_list(struct sim_stream *s, struct ls_wire_bytes *list, size_t max, size_t room,
	size_t *ret_bytes, struct sim_counts *counts)
{
	const struct sim_item *item;
	size_t n = 0, used = 0;

	for (item = s->first;
		item != NULL && n < max && (n == 0 || used + item->len <= room);
		item = item->next) {
		list[n++] = (struct ls_wire_bytes){ item->data, item->len };
		used += item->len;
		if (item->seq <= s->sent)
			counts->resent_items++;
		else
			s->sent = item->seq;
	}
	*ret_bytes = used;
	return n;
}

static void
agent_add_items(struct sim_agent *a, struct sim_plan *plan, struct ls_wire_report *r,
	uint64_t now_ns, struct sim_counts *counts)
{
	uint64_t allowed = ls_pace_reckon(&a->pace, LS_BACKFILL_DEFAULT_BYTES, now_ns,
		a->pushed_chunk_bytes);
	size_t used = 0, chunk_bytes = 0, room;

	r->items = plan->steps;
	r->item_count = agent_list(&a->steps, plan->steps, LS_ITEMS_PER_REPORT_MAX,
		LS_REPORT_ITEMS_BYTES, &used, counts);
	r->spooled_items = a->steps.count - r->item_count;
	a->report_steps = r->item_count > 0 ? a->steps.acked + r->item_count : 0;
	r->chunk_items = plan->chunks;
	room = used < LS_REPORT_ITEMS_BYTES ? LS_REPORT_ITEMS_BYTES - used : 0;
	if (room > allowed && !plan->draining && !plan->options->saturate)
		room = (size_t)allowed;
	if (room > 0)
		r->chunk_item_count = agent_list(&a->chunks, plan->chunks,
			LS_CHUNK_ITEMS_PER_REPORT_MAX, room, &chunk_bytes, counts);
	ls_pace_spend(&a->pace, chunk_bytes);
	r->waiting_chunk_items = a->chunks.count - r->chunk_item_count;
	a->report_chunks =
		r->chunk_item_count > 0 ? a->chunks.acked + r->chunk_item_count : 0;
}

/* Who we are, as far as the collector does not know it. */
static void
agent_add_worker(struct sim_agent *a, const struct sim_plan *plan,
	struct ls_wire_report *r, struct ls_wire_worker *w)
{
	struct ls_worker_info *info = &w->info;

	a->report_worker = plan->job != NULL && !a->worker_known;
	if (!a->report_worker)
		return;
	memcpy(w->ring_id, a->ring, sizeof(w->ring_id));
	/* main saw to it */
	ls_ignore(ls_text_copy(info->job, sizeof(info->job), plan->options->job));
	(void)snprintf(info->slice, sizeof(info->slice), "%u",
		sim_job_slice(plan->job, a->index));
	info->rank = (int32_t)a->index;
	info->world = (int32_t)plan->options->hosts;
	info->chips = (int32_t)plan->options->chips;
	info->simulated = true;
	w->created_mono_ns = plan->start_ns + a->offset_ns;
	w->number = 1;
	r->workers = w;
	r->worker_count = 1;
}

static void
agent_add_identity(struct sim_agent *a, const struct sim_plan *plan,
	struct ls_wire_report *r, struct ls_wire_identity field[3])
{
	char number[16];
	const struct {
		const char *key, *value;
	} told[] = { { "host", r->host }, { "job", plan->options->job },
		{ "global_worker", number } };

	a->report_identity = !a->identity_known;
	if (!a->report_identity)
		return;
	(void)snprintf(number, sizeof(number), "%u", a->index);
	memset(field, 0, 3 * sizeof(*field));
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(field[i].key, sizeof(field[i].key), "%s", told[i].key);
		(void)snprintf(field[i].value, sizeof(field[i].value), "%s",
			told[i].value);
		(void)snprintf(field[i].source, sizeof(field[i].source), "simulated");
	}
	r->has_identity = true;
	r->identity = field;
	r->identity_count = 3;
}

static void
agent_add_values(struct sim_agent *a, const struct sim_plan *plan,
	struct ls_wire_report *r, struct ls_wire_hot hot[2], struct ls_wire_live *live,
	uint64_t now_ns)
{
	sim_hot_next(plan->shape, &a->hot, (double)(now_ns - a->t_hot_ns) / 1e9);
	a->t_hot_ns = now_ns;
	hot[0].t_mono_ns = hot[1].t_mono_ns = r->t_send_mono_ns;
	sim_hot_tell(plan->shape, &a->hot, false, &hot[0]);
	r->hot = hot;
	r->hot_count = 1;
	if (plan->job == NULL)
		return;
	hot[1].worker = 1;
	sim_hot_tell(plan->shape, &a->hot, true, &hot[1]);
	r->hot_count = 2;
	live->worker = 1;
	(void)sim_job_advance(plan->job, now_ns);
	sim_job_live(plan->job, a->index, now_ns, a->offset_ns, &live->live);
	r->live = live;
	r->live_count = 1;
}

int
sim_agent_report(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns,
	uint8_t *buf, size_t size, size_t *ret_len, struct sim_counts *counts)
{
	struct ls_wire_worker worker = { 0 };
	struct ls_wire_identity field[3];
	struct ls_wire_hot hot[2] = { 0 };
	struct ls_wire_live live = { 0 };
	struct ls_wire_report r = { .has_kernel = !a->introduced,
		.has_last = a->has_last,
		.last = a->last,
		.slowed = 1,
		.dropped_records = a->lost_records_told + a->gap_count,
		.lost_samples = a->lost_samples_told + a->lost_samples };

	sim_agent_name(r.host, a->name);
	memcpy(r.boot, a->boot, sizeof(r.boot));
	memcpy(r.kernel_boot_id, a->kernel, sizeof(r.kernel_boot_id));
	(void)snprintf(r.agent_version, sizeof(r.agent_version), "sim %s",
		PACKAGE_VERSION);
	r.t_send_mono_ns = a->t_send_ns = now_ns + a->offset_ns;
	agent_add_worker(a, plan, &r, &worker);
	agent_add_identity(a, plan, &r, field);
	agent_add_values(a, plan, &r, hot, &live, now_ns);
	agent_add_items(a, plan, &r, now_ns, counts);
	return ls_wire_report_pack_to(&r, plan->scratch, buf, size, ret_len);
}

/* --- the answer ----------------------------------------------------------- */

static void
agent_take_stored(struct sim_agent *a, const struct ls_wire_ack *ack,
	struct sim_counts *counts)
{
	uint64_t unused = 0, worth;

	while (a->steps.first != NULL && a->steps.first->seq <= ack->acked_seq) {
		counts->records_acked += agent_pop(&a->steps, &a->records_acked);
		counts->items_acked++;
	}
	while (a->chunks.first != NULL &&
		a->chunks.first->seq <= ack->acked_chunk_seq) {
		worth = agent_pop(&a->chunks, &unused);
		counts->samples_acked += worth;
		counts->chunks_acked += worth > 0;
		counts->items_acked++;
	}
}

static void
agent_take_asked(struct sim_agent *a, const struct sim_plan *plan,
	const struct ls_wire_ack *ack)
{
	if (ack->status == LS_ACK_OK) {
		a->worker_known = a->worker_known || a->report_worker;
		a->identity_known = a->identity_known || a->report_identity;
	}
	a->introduced = ack->status == LS_ACK_OK;
	if (ack->need_count > 0 || ack->need_all_workers)
		a->worker_known = false;
	if (ack->need_identity)
		a->identity_known = false;
	for (size_t i = 0; i < ack->need_dictionary_count; i++) {
		for (unsigned g = 0; g < SIM_GROUPS; g++) {
			if (sim_shape_group(plan->shape, g)->hash ==
				ack->need_dictionary[i])
				a->dictionary[g] = true;
		}
	}
	/* At least as long as asked, until the next answer. */
	a->beat_ns = a->own_beat_ns;
	if (ack->beat_ns > a->beat_ns && ack->beat_ns <= LS_BEAT_MAX_NS)
		a->beat_ns = ack->beat_ns;
}

/* Forgets what was acknowledged: the next items have numbers that other ones had. */
static void
agent_jump_back(struct sim_agent *a)
{
	sim_agent_clear(a);
	a->steps.next = 1;
	a->steps.acked = a->steps.sent = 0;
	a->misbehaves = SIM_BEHAVES; /* once */
}

static bool
agent_is_foreign(const struct sim_agent *a, const struct ls_wire_ack *ack)
{
	static const uint8_t none[LS_BOOT_BYTES];

	return memcmp(ack->boot, a->boot, LS_BOOT_BYTES) != 0 &&
		!(ack->status == LS_ACK_REJECT &&
			memcmp(ack->boot, none, LS_BOOT_BYTES) == 0);
}

void
sim_agent_answer(struct sim_agent *a, struct sim_plan *plan, const uint8_t *buf,
	size_t len, uint64_t now_ns, struct sim_answer *ret_answer,
	struct sim_counts *counts)
{
	struct ls_wire_ack ack;
	const char *why = NULL;
	uint64_t t4 = now_ns + a->offset_ns;

	memset(ret_answer, 0, sizeof(*ret_answer));
	if (ls_wire_ack_unpack(buf, len, &ack, &why) == 0) {
		if (agent_is_foreign(a, &ack))
			why = "for another agent";
		else if (ack.acked_seq > a->steps.sent ||
			ack.acked_chunk_seq > a->chunks.sent)
			why = "acknowledges items that were never sent";
	}
	if (why != NULL) {
		a->introduced = false;
		ret_answer->verdict = SIM_ACK_BAD;
		ret_answer->hold_ns = LS_BAD_ACK_HOLD_NS;
		(void)snprintf(ret_answer->why, sizeof(ret_answer->why), "%s", why);
		return;
	}
	a->last = (struct ls_wire_stamps){ a->t_send_ns, ack.t_receive_mono_ns,
		ack.t_send_mono_ns, t4 };
	a->has_last = ack.status != LS_ACK_REJECT;
	agent_take_stored(a, &ack, counts);
	agent_take_asked(a, plan, &ack);
	(void)snprintf(ret_answer->why, sizeof(ret_answer->why), "%s", ack.reason);
	switch (ack.status) {
	case LS_ACK_REJECT:
		ret_answer->verdict = SIM_ACK_REJECT;
		ret_answer->hold_ns = LS_REJECT_HOLD_NS;
		return;
	case LS_ACK_RETRY:
		ret_answer->verdict = SIM_ACK_RETRY;
		ret_answer->hold_ns =
			ack.retry_after_ns != 0 ? ack.retry_after_ns : a->beat_ns;
		if (ret_answer->hold_ns < LS_BEAT_MIN_NS)
			ret_answer->hold_ns = LS_BEAT_MIN_NS;
		if (ret_answer->hold_ns > LS_BEAT_MAX_NS)
			ret_answer->hold_ns = LS_BEAT_MAX_NS;
		return;
	case LS_ACK_OK:
	case LS_ACK_STATUS_COUNT:
		break;
	}
	if (a->misbehaves == SIM_MISBEHAVES_BACKWARDS &&
		a->steps.acked >= SIM_BACKWARDS_AFTER)
		agent_jump_back(a);
	ret_answer->verdict = SIM_ACK_OK;
	ret_answer->stored = (a->report_steps > 0 || a->report_chunks > 0) &&
		a->steps.acked >= a->report_steps &&
		a->chunks.acked >= a->report_chunks;
	ret_answer->more = ret_answer->stored && a->steps.first != NULL;
}
