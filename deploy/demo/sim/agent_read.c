/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated agent measures: steps and minutes; interface in agent.h. */
#include "config.h"
#include "deploy/demo/sim/agent_state.h"

#include <stdio.h>
#include <string.h>

#define READ_NS_PER_S 1000000000ull

/* --- steps ---------------------------------------------------------------- */

static int
agent_push_item(struct sim_agent *a, struct sim_plan *plan, struct ls_wire_item *item)
{
	size_t len;
	int rc;

	item->seq = a->steps.next;
	memcpy(item->ring_id, a->ring, sizeof(item->ring_id));
	rc = ls_wire_item_pack_to(item, plan->scratch, plan->item, LS_ITEM_MAX_BYTES,
		&len);
	return rc == 0 ? sim_agent_push(&a->steps, plan->item, len,
				 item->kind == LS_WIRE_STEPS ? item->count : 0,
				 item->first_index + item->count)
		       : rc;
}

/* Records from..to as one item, or as a gap to come if there is no place. */
static int
agent_take_steps(struct sim_agent *a, struct sim_plan *plan, uint64_t from, uint64_t to,
	struct sim_counts *counts)
{
	struct ls_record records[LS_STEPS_PER_ITEM];
	struct ls_wire_item item = {
		.kind = LS_WIRE_STEPS, .first_index = from, .records = records
	};
	uint64_t i, first = sim_job_first(plan->job);

	if (a->steps.count + 1 >= SIM_STEP_ITEMS_MAX || from < first) {
		if (a->gap_count == 0)
			a->gap_first = from;
		a->gap_count += to - from;
		counts->records_lost += to - from;
		return 0;
	}
	if (a->gap_count > 0) {
		struct ls_wire_item gap = { .kind = LS_WIRE_GAP,
			.first_index = a->gap_first,
			.count = a->gap_count,
			.reason = LS_GAP_SPOOL_FULL };
		int rc = agent_push_item(a, plan, &gap);

		if (rc != 0)
			return rc;
		a->lost_records_told += a->gap_count;
		a->gap_count = 0;
	}
	for (i = from; i < to; i++) {
		int rc = sim_job_record(plan->job, a->index, i, a->data_offset_ns,
			&records[item.count++]);

		if (rc != 0)
			return rc;
	}
	return agent_push_item(a, plan, &item);
}

/* What is complete, an item for each second: agents read their rings so often. */
static int
agent_read_steps(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns,
	struct sim_counts *counts)
{
	uint64_t complete = sim_job_advance(plan->job, now_ns),
		 first = sim_job_first(plan->job);
	int rc = 0;

	if (a->next_record < first) { /* overtaken while we were stopped */
		rc = agent_take_steps(a, plan, a->next_record, first, counts);
		a->next_record = first;
	}
	while (a->next_record < complete && rc == 0) {
		uint64_t to = a->next_record,
			 until = sim_job_end_ns(plan->job, to) + READ_NS_PER_S;

		while (to < complete && to - a->next_record < LS_STEPS_PER_ITEM &&
			sim_job_end_ns(plan->job, to) < until)
			to++;
		rc = agent_take_steps(a, plan, a->next_record, to, counts);
		a->next_record = to;
	}
	return rc;
}

/* --- minutes -------------------------------------------------------------- */

static int
agent_push_chunk(struct sim_agent *a, struct sim_plan *plan,
	struct ls_wire_chunk_item *item, uint64_t samples)
{
	size_t len;
	int rc;

	item->seq = a->chunks.next;
	rc = ls_wire_chunk_item_pack(item, plan->item, sizeof(plan->item), &len);
	if (rc == 0)
		rc = sim_agent_push(&a->chunks, plan->item, len, samples, 0);
	if (rc == 0)
		a->pushed_chunk_bytes += len;
	return rc;
}

static int
agent_push_dictionary(struct sim_agent *a, struct sim_plan *plan, unsigned g)
{
	const struct sim_group *group = sim_shape_group(plan->shape, g);
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_DICTIONARY,
		.hash = group->hash,
		.series_count = group->count,
		.series = group->series };
	int rc;

	if (a->misbehaves == SIM_MISBEHAVES_HASH)
		item.hash++;
	if (a->misbehaves == SIM_MISBEHAVES_DICTIONARY) {
		item.series_count--;
		item.hash = ls_wire_dictionary_hash(group->name, group->series,
			item.series_count);
	}
	(void)snprintf(item.group, sizeof(item.group), "%s", group->name);
	rc = agent_push_chunk(a, plan, &item, 0);
	if (rc == 0)
		a->dictionary[g] = false;
	return rc;
}

static int
agent_push_lost(struct sim_agent *a, struct sim_plan *plan)
{
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_LOST,
		.reason = LS_LOST_SPOOL_FULL,
		.t_first_mono_ns = a->lost_from_ns,
		.t_last_mono_ns = a->lost_to_ns,
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
	uint64_t slots = plan->options->variants > 0 ? SIM_SLOTS
						     : (uint64_t)plan->options->hosts;

	if (plan->options->saturate)
		return 0;
	/* A stride that shares no factor with a power of ten: neighbours do not send
	 * together. */
	return plan->minute_ns / slots * (agent_slot(a, plan) * 7919ull % slots);
}

static uint32_t
agent_source(const struct sim_agent *a, const struct sim_plan *plan)
{
	uint32_t variants = (uint32_t)plan->options->variants;

	if (variants == 0)
		return a->index;
	return plan->options->saturate
		? a->index % variants
		: agent_slot(a, plan) * variants + a->index / SIM_SLOTS % variants;
}

/* What a misbehaving agent makes of a chunk. */
static void
agent_spoil(const struct sim_agent *a, struct sim_plan *plan,
	const struct sim_group *group, struct ls_wire_chunk_item *item,
	struct sim_body *body)
{
	if (a->misbehaves == SIM_MISBEHAVES_DICTIONARY)
		item->hash = ls_wire_dictionary_hash(group->name, group->series,
			group->count - 1);
	if (a->misbehaves != SIM_MISBEHAVES_CHECKSUM)
		return;
	memcpy(plan->spoilt, body->data, body->len);
	plan->spoilt[body->len / 2] ^= 1;
	body->data = plan->spoilt;
}

/* The minute that begins at begin_ns of our clock, one chunk a group. */
static int
agent_take_minute(struct sim_agent *a, struct sim_plan *plan, uint64_t begin_ns,
	struct sim_counts *counts)
{
	int rc = 0;

	for (unsigned g = 0; g < SIM_GROUPS && rc == 0; g++) {
		const struct sim_group *group = sim_shape_group(plan->shape, g);
		struct ls_wire_chunk_item item = {
			.kind = LS_WIRE_CHUNK, .hash = group->hash, .rows = SIM_ROWS
		};
		struct sim_body body;

		if (group->count == 0)
			continue;
		if (a->dictionary[g])
			rc = agent_push_dictionary(a, plan, g);
		if (rc == 0)
			rc = sim_shape_minute(plan->shape, agent_source(a, plan), g,
				a->next_minute, begin_ns + a->data_offset_ns,
				plan->minute_ns, &body);
		if (rc != 0)
			break;
		agent_spoil(a, plan, group, &item, &body);
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
			a->lost_from_ns = begin_ns + a->data_offset_ns;
		a->lost_to_ns = begin_ns + a->data_offset_ns + plan->minute_ns;
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
	uint64_t begin, elapsed = now_ns - plan->start_ns + plan->back_ns;
	int rc = 0;

	if (plan->draining)
		return 0;
	if (plan->job != NULL)
		rc = agent_read_steps(a, plan, now_ns, counts);
	if (plan->options->series == 0)
		return rc;
	/* From the first minute on; our clock may have begun later than that, the
	 * agent's has not. */
	begin = agent_phase_ns(a, plan) + a->next_minute * plan->minute_ns;
	while (rc == 0 && begin + plan->minute_ns <= elapsed) {
		if (plan->options->saturate && a->chunks.count > 0)
			break; /* one minute a report, as long as there are any */
		rc = agent_read_minute(a, plan, plan->start_ns - plan->back_ns + begin,
			counts);
		begin += plan->minute_ns;
	}
	return rc;
}
