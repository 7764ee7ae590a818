/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/sim/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

#define AGENT_NS_PER_S 1000000000ull
#define AGENT_UPTIME_MIN_NS (3600ull * 25 * AGENT_NS_PER_S) /* --saturate goes back by 23 h */
#define AGENT_UPTIME_SPREAD_NS (3600ull * 24 * 30 * AGENT_NS_PER_S)

/* One encoded item, kept until it is acknowledged. */
struct sim_item {
	struct sim_item *next;
	uint64_t seq;
	uint32_t len;
	uint32_t worth;     /* records or samples in it */
	uint64_t end_index; /* of the ring: records below are done with once this is stored */
	uint8_t data[];
};

void
sim_agent_name(char name[LS_HOST_NAME_MAX_BYTES], uint32_t index)
{
	(void)snprintf(name, LS_HOST_NAME_MAX_BYTES, "sim%05u", index + 1);
}

static void
agent_fill_id(uint8_t id[16], uint64_t run, uint32_t index, uint64_t what)
{
	uint64_t words[2] = { sim_hash(run, index, what, 10), sim_hash(run, index, what, 11) };

	memcpy(id, words, sizeof(words));
}

void
sim_agent_init(struct sim_agent *a, const struct sim_plan *plan, uint32_t index)
{
	uint64_t seed = (uint64_t)plan->options->seed;
	/* Agents that share bodies share the clock these are told in. */
	uint64_t clock = plan->options->variants > 0 ? 0 : index;

	memset(a, 0, sizeof(*a));
	a->index = index;
	agent_fill_id(a->boot, plan->run, index, 0);
	agent_fill_id(a->kernel, plan->run, index, 1);
	agent_fill_id(a->ring, plan->run, index, 2);
	a->offset_ns = AGENT_UPTIME_MIN_NS + sim_hash(seed, clock, 0, 4) % AGENT_UPTIME_SPREAD_NS;
	a->steps.next = a->chunks.next = 1;
	a->dictionary[0] = a->dictionary[1] = true;
	a->beat_ns = plan->options->beat_ns;
	a->t_hot_ns = plan->start_ns;
	sim_hot_init(plan->shape, &a->hot, sim_hash(seed, index, 0, 5));
}

/* --- streams ------------------------------------------------------------------------------------- */

static int
agent_push(struct sim_stream *s, const uint8_t *bytes, size_t len, uint64_t worth,
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

/* --- steps ----------------------------------------------------------------------------------------- */

static int
agent_push_item(struct sim_agent *a, struct sim_plan *plan, struct ls_wire_item *item)
{
	size_t len;
	int rc;

	item->seq = a->steps.next;
	memcpy(item->ring_id, a->ring, sizeof(item->ring_id));
	rc = ls_wire_item_pack_to(item, plan->scratch, plan->item, LS_ITEM_MAX_BYTES, &len);
	return rc == 0 ? agent_push(&a->steps, plan->item, len,
			     item->kind == LS_WIRE_STEPS ? item->count : 0,
			     item->first_index + item->count) : rc;
}

/* Records from..to as one item, or as a gap to come if there is no place. */
static int
agent_take_steps(struct sim_agent *a, struct sim_plan *plan, uint64_t from, uint64_t to,
	struct sim_counts *counts)
{
	struct ls_record records[LS_STEPS_PER_ITEM];
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS, .first_index = from, .records = records };
	uint64_t i, first = sim_job_first(plan->job);

	if (a->steps.count + 1 >= SIM_STEP_ITEMS_MAX || from < first) {
		if (a->gap_count == 0)
			a->gap_first = from;
		a->gap_count += to - from;
		counts->records_lost += to - from;
		return 0;
	}
	if (a->gap_count > 0) {
		struct ls_wire_item gap = { .kind = LS_WIRE_GAP, .first_index = a->gap_first,
			.count = a->gap_count, .reason = LS_GAP_SPOOL_FULL };
		int rc = agent_push_item(a, plan, &gap);

		if (rc != 0)
			return rc;
		a->lost_records_told += a->gap_count;
		a->gap_count = 0;
	}
	for (i = from; i < to; i++) {
		int rc = sim_job_record(plan->job, a->index, i, a->offset_ns, &records[item.count++]);

		if (rc != 0)
			return rc;
	}
	counts->records_made += item.count;
	return agent_push_item(a, plan, &item);
}

/* What is complete, an item for each second: agents read their rings so often. */
static int
agent_read_steps(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns,
	struct sim_counts *counts)
{
	uint64_t complete = sim_job_advance(plan->job, now_ns), first = sim_job_first(plan->job);
	int rc = 0;

	if (a->next_record < first) { /* overtaken while we were stopped */
		rc = agent_take_steps(a, plan, a->next_record, first, counts);
		a->next_record = first;
	}
	while (a->next_record < complete && rc == 0) {
		uint64_t to = a->next_record,
			 until = sim_job_end_ns(plan->job, to) + AGENT_NS_PER_S;

		while (to < complete && to - a->next_record < LS_STEPS_PER_ITEM &&
			sim_job_end_ns(plan->job, to) < until)
			to++;
		rc = agent_take_steps(a, plan, a->next_record, to, counts);
		a->next_record = to;
	}
	return rc;
}

/* --- minutes --------------------------------------------------------------------------------------- */

static int
agent_push_chunk(struct sim_agent *a, struct sim_plan *plan, struct ls_wire_chunk_item *item,
	uint64_t samples)
{
	size_t len;
	int rc;

	item->seq = a->chunks.next;
	rc = ls_wire_chunk_item_pack(item, plan->item, sizeof(plan->item), &len);
	if (rc == 0)
		rc = agent_push(&a->chunks, plan->item, len, samples, 0);
	if (rc == 0)
		a->pushed_chunk_bytes += len;
	return rc;
}

static int
agent_push_dictionary(struct sim_agent *a, struct sim_plan *plan, unsigned g)
{
	const struct sim_group *group = sim_shape_group(plan->shape, g);
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_DICTIONARY, .hash = group->hash,
		.series_count = group->count, .series = group->series };
	int rc;

	(void)snprintf(item.group, sizeof(item.group), "%s", group->name);
	rc = agent_push_chunk(a, plan, &item, 0);
	if (rc == 0)
		a->dictionary[g] = false;
	return rc;
}

static int
agent_push_lost(struct sim_agent *a, struct sim_plan *plan)
{
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_LOST, .reason = LS_LOST_SPOOL_FULL,
		.t_first_mono_ns = a->lost_from_ns, .t_last_mono_ns = a->lost_to_ns,
		.samples = a->lost_samples };
	int rc = agent_push_chunk(a, plan, &item, 0);

	if (rc == 0) {
		a->lost_samples_told += a->lost_samples;
		a->lost_samples = 0;
	}
	return rc;
}

static uint32_t
agent_slot(const struct sim_agent *a, const struct sim_plan *plan)
{
	return plan->options->variants > 0 ? a->index % SIM_SLOTS : a->index;
}

/* Where in the minute this agent's own begins: they are spread evenly. */
static uint64_t
agent_phase_ns(const struct sim_agent *a, const struct sim_plan *plan)
{
	uint64_t slots = plan->options->variants > 0 ? SIM_SLOTS : (uint64_t)plan->options->hosts;

	if (plan->options->saturate)
		return 0;
	/* A stride that shares no factor with a power of ten: neighbours do not send together. */
	return plan->minute_ns / slots * (agent_slot(a, plan) * 7919ull % slots);
}

static uint32_t
agent_source(const struct sim_agent *a, const struct sim_plan *plan)
{
	uint32_t variants = (uint32_t)plan->options->variants;

	if (variants == 0)
		return a->index;
	return plan->options->saturate ? a->index % variants
		: agent_slot(a, plan) * variants + a->index / SIM_SLOTS % variants;
}

/* The minute that begins at begin_ns of our clock, one chunk a group. */
static int
agent_take_minute(struct sim_agent *a, struct sim_plan *plan, uint64_t begin_ns,
	struct sim_counts *counts)
{
	unsigned g;
	int rc = 0;

	for (g = 0; g < SIM_GROUPS && rc == 0; g++) {
		const struct sim_group *group = sim_shape_group(plan->shape, g);
		struct ls_wire_chunk_item item = { .kind = LS_WIRE_CHUNK, .hash = group->hash,
			.rows = SIM_ROWS };
		struct sim_body body;

		if (group->count == 0)
			continue;
		if (a->dictionary[g])
			rc = agent_push_dictionary(a, plan, g);
		if (rc == 0)
			rc = sim_shape_minute(plan->shape, agent_source(a, plan), g, a->next_minute,
				begin_ns + a->offset_ns, plan->minute_ns, &body);
		if (rc != 0)
			break;
		item.body = body.data;
		item.body_len = body.len;
		item.t_first_mono_ns = body.t_first_ns;
		item.t_last_mono_ns = body.t_last_ns;
		rc = agent_push_chunk(a, plan, &item, group->count * SIM_ROWS);
		counts->samples_made += group->count * SIM_ROWS;
	}
	return rc == -LS_ESTALE ? 0 : rc;
}

static int
agent_read_minute(struct sim_agent *a, struct sim_plan *plan, uint64_t begin_ns,
	struct sim_counts *counts)
{
	uint64_t samples = (uint64_t)plan->options->series * SIM_ROWS;
	int rc = 0;

	/* Room for a Lost, and for each group a dictionary and a chunk. */
	if (a->chunks.count + 1 + 2 * SIM_GROUPS > SIM_CHUNK_ITEMS_MAX) {
		if (a->lost_samples == 0)
			a->lost_from_ns = begin_ns + a->offset_ns;
		a->lost_to_ns = begin_ns + a->offset_ns + plan->minute_ns;
		a->lost_samples += samples;
		counts->samples_lost += samples;
	} else {
		if (a->lost_samples > 0)
			rc = agent_push_lost(a, plan);
		if (rc == 0)
			rc = agent_take_minute(a, plan, begin_ns, counts);
	}
	a->next_minute++;
	return rc;
}

int
sim_agent_read(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns,
	struct sim_counts *counts)
{
	uint64_t begin;
	int rc = 0;

	if (plan->draining)
		return 0;
	if (plan->job != NULL)
		rc = agent_read_steps(a, plan, now_ns, counts);
	if (plan->options->series == 0)
		return rc;
	begin = plan->data_start_ns + agent_phase_ns(a, plan) + a->next_minute * plan->minute_ns;
	if (plan->options->saturate) /* one minute a report, as long as there are any */
		return rc != 0 || a->chunks.count > 0 || begin + plan->minute_ns > now_ns
			? rc : agent_read_minute(a, plan, begin, counts);
	for (; rc == 0 && begin + plan->minute_ns <= now_ns; begin += plan->minute_ns)
		rc = agent_read_minute(a, plan, begin, counts);
	return rc;
}

/* --- the report -------------------------------------------------------------------------------------- */

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

	for (item = s->first; item != NULL && n < max && (n == 0 || used + item->len <= room);
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
	a->report_chunks = r->chunk_item_count > 0 ? a->chunks.acked + r->chunk_item_count : 0;
}

/* Who we are, as far as the collector does not know it. */
static void
agent_add_worker(struct sim_agent *a, const struct sim_plan *plan, struct ls_wire_report *r,
	struct ls_wire_worker *w)
{
	struct ls_worker_info *info = &w->info;

	a->report_worker = plan->job != NULL && !a->worker_known;
	if (!a->report_worker)
		return;
	memcpy(w->ring_id, a->ring, sizeof(w->ring_id));
	ls_ignore(ls_text_copy(info->job, sizeof(info->job), plan->options->job)); /* main saw to it */
	(void)snprintf(info->slice, sizeof(info->slice), "%u", sim_job_slice(plan->job, a->index));
	info->rank = (int32_t)a->index;
	info->world = (int32_t)plan->options->hosts;
	info->chips = (int32_t)plan->options->chips;
	w->created_mono_ns = plan->start_ns + a->offset_ns;
	w->number = 1;
	r->workers = w;
	r->worker_count = 1;
}

static void
agent_add_identity(struct sim_agent *a, const struct sim_plan *plan, struct ls_wire_report *r,
	struct ls_wire_identity field[3])
{
	a->report_identity = !a->identity_known;
	if (!a->report_identity)
		return;
	memset(field, 0, 3 * sizeof(*field));
	(void)snprintf(field[0].key, sizeof(field[0].key), "host");
	(void)snprintf(field[0].value, sizeof(field[0].value), "%s", r->host);
	(void)snprintf(field[1].key, sizeof(field[1].key), "job");
	ls_ignore(ls_text_copy(field[1].value, sizeof(field[1].value), plan->options->job));
	(void)snprintf(field[2].key, sizeof(field[2].key), "global_worker");
	(void)snprintf(field[2].value, sizeof(field[2].value), "%u", a->index);
	(void)snprintf(field[0].source, sizeof(field[0].source), "simulated");
	(void)snprintf(field[1].source, sizeof(field[1].source), "simulated");
	(void)snprintf(field[2].source, sizeof(field[2].source), "simulated");
	r->has_identity = true;
	r->identity = field;
	r->identity_count = 3;
}

static void
agent_add_values(struct sim_agent *a, const struct sim_plan *plan, struct ls_wire_report *r,
	struct ls_wire_hot hot[2], struct ls_wire_live *live, uint64_t now_ns)
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
sim_agent_report(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns, uint8_t *buf,
	size_t size, size_t *ret_len, struct sim_counts *counts)
{
	struct ls_wire_worker worker = { 0 };
	struct ls_wire_identity field[3];
	struct ls_wire_hot hot[2] = { 0 };
	struct ls_wire_live live = { 0 };
	struct ls_wire_report r = { .has_kernel = !a->introduced, .has_last = a->has_last,
		.last = a->last, .slowed = 1, .dropped_records = a->lost_records_told + a->gap_count,
		.lost_samples = a->lost_samples_told + a->lost_samples };

	sim_agent_name(r.host, a->index);
	memcpy(r.boot, a->boot, sizeof(r.boot));
	memcpy(r.kernel_boot_id, a->kernel, sizeof(r.kernel_boot_id));
	(void)snprintf(r.agent_version, sizeof(r.agent_version), "sim %s", PACKAGE_VERSION);
	r.t_send_mono_ns = a->t_send_ns = now_ns + a->offset_ns;
	agent_add_worker(a, plan, &r, &worker);
	agent_add_identity(a, plan, &r, field);
	agent_add_values(a, plan, &r, hot, &live, now_ns);
	agent_add_items(a, plan, &r, now_ns, counts);
	return ls_wire_report_pack_to(&r, plan->scratch, buf, size, ret_len);
}

/* --- the answer ---------------------------------------------------------------------------------------- */

static void
agent_take_stored(struct sim_agent *a, const struct ls_wire_ack *ack, struct sim_counts *counts)
{
	uint64_t unused = 0, worth;

	while (a->steps.first != NULL && a->steps.first->seq <= ack->acked_seq) {
		counts->records_acked += agent_pop(&a->steps, &a->records_acked);
		counts->items_acked++;
	}
	while (a->chunks.first != NULL && a->chunks.first->seq <= ack->acked_chunk_seq) {
		worth = agent_pop(&a->chunks, &unused);
		counts->samples_acked += worth;
		counts->chunks_acked += worth > 0;
		counts->items_acked++;
	}
}

static void
agent_take_asked(struct sim_agent *a, const struct sim_plan *plan, const struct ls_wire_ack *ack)
{
	size_t i;
	unsigned g;

	if (ack->status == LS_ACK_OK) {
		a->worker_known = a->worker_known || a->report_worker;
		a->identity_known = a->identity_known || a->report_identity;
	}
	a->introduced = ack->status == LS_ACK_OK;
	if (ack->need_count > 0 || ack->need_all_workers)
		a->worker_known = false;
	if (ack->need_identity)
		a->identity_known = false;
	for (i = 0; i < ack->need_dictionary_count; i++) {
		for (g = 0; g < SIM_GROUPS; g++) {
			if (sim_shape_group(plan->shape, g)->hash == ack->need_dictionary[i])
				a->dictionary[g] = true;
		}
	}
	if (ack->beat_ns >= LS_BEAT_MIN_NS && ack->beat_ns <= LS_BEAT_MAX_NS)
		a->beat_ns = ack->beat_ns;
}

static bool
agent_is_foreign(const struct sim_agent *a, const struct ls_wire_ack *ack)
{
	static const uint8_t none[LS_BOOT_BYTES];

	return memcmp(ack->boot, a->boot, LS_BOOT_BYTES) != 0 &&
		!(ack->status == LS_ACK_REJECT && memcmp(ack->boot, none, LS_BOOT_BYTES) == 0);
}

void
sim_agent_answer(struct sim_agent *a, struct sim_plan *plan, const uint8_t *buf, size_t len,
	uint64_t now_ns, struct sim_answer *ret_answer, struct sim_counts *counts)
{
	struct ls_wire_ack ack;
	const char *why = NULL;
	uint64_t t4 = now_ns + a->offset_ns;

	memset(ret_answer, 0, sizeof(*ret_answer));
	if (ls_wire_ack_unpack(buf, len, &ack, &why) == 0) {
		if (agent_is_foreign(a, &ack))
			why = "for another agent";
		else if (ack.acked_seq > a->steps.sent || ack.acked_chunk_seq > a->chunks.sent)
			why = "acknowledges what was never sent";
	}
	if (why != NULL) {
		a->introduced = false;
		ret_answer->verdict = SIM_ACK_BAD;
		ret_answer->hold_ns = LS_BAD_ACK_HOLD_NS;
		(void)snprintf(ret_answer->why, sizeof(ret_answer->why), "%s", why);
		return;
	}
	a->last = (struct ls_wire_stamps){ a->t_send_ns, ack.t_receive_mono_ns, ack.t_send_mono_ns, t4 };
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
		ret_answer->hold_ns = ack.retry_after_ns != 0 ? ack.retry_after_ns : a->beat_ns;
		if (ret_answer->hold_ns < LS_BEAT_MIN_NS)
			ret_answer->hold_ns = LS_BEAT_MIN_NS;
		if (ret_answer->hold_ns > LS_BEAT_MAX_NS)
			ret_answer->hold_ns = LS_BEAT_MAX_NS;
		return;
	case LS_ACK_OK:
	case LS_ACK_STATUS_COUNT:
		break;
	}
	ret_answer->verdict = SIM_ACK_OK;
	ret_answer->stored = (a->report_steps > 0 || a->report_chunks > 0) &&
		a->steps.acked >= a->report_steps && a->chunks.acked >= a->report_chunks;
	ret_answer->more = ret_answer->stored && a->steps.first != NULL;
}
