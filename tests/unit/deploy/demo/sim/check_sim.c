/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/chunk/chunk.h"
#include "tests/support/harness.h"
#include "deploy/demo/sim/agent.h"

#define S 1000000000ull

/* --- the fault ------------------------------------------------------------ */

LS_CASE(options);

LS_TEST(options, the_slow_worker_is_read_from_its_option)
{
	static const char *const bad[] = { "", "x", "1", "1:", "1:x", "1:0.1@",
		"1:0.1@x", "-1:0.1", "1:0.1 ", "1:-1", "1:nan", "10:0.1", "1:1e9" };
	struct sim_slow slow;
	size_t i;

	ck_assert_int_eq(sim_slow_parse("none", 10, &slow), 0);
	ck_assert_int_eq(slow.rank, -1);
	ck_assert_int_eq(sim_slow_parse("9:0.25@30", 10, &slow), 0);
	ck_assert_int_eq(slow.rank, 9);
	ck_assert(slow.fraction == 0.25);
	ck_assert_uint_eq(slow.from, 30);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(sim_slow_parse(bad[i], 10, &slow) != 0, "%s", bad[i]);
	ck_assert_int_eq(slow.rank, 9);
}

LS_TEST(options, who_misbehaves_is_read_from_its_option)
{
	static const char *const bad[] = { "", "x", "clock", "clock:", "clock:0",
		"clock:x", "nothing:1", "clock:1,clock:1", "clock:1,", "clock:10",
		"clock:5,twin:5", "clock:1;twin:1" };
	struct sim_misbehave m;
	size_t i;

	ck_assert_int_eq(sim_misbehave_parse("none", 10, &m), 0);
	for (i = 0; i < 10; i++)
		ck_assert_int_eq(sim_misbehave_of(&m, (uint32_t)i), SIM_BEHAVES);
	ck_assert_int_eq(sim_misbehave_parse("twin:2,clock:1", 10, &m), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(sim_misbehave_parse(bad[i], 10, &m) != 0, "%s", bad[i]);
	ck_assert_int_eq(sim_misbehave_of(&m, 9), SIM_MISBEHAVES_CLOCK);
	ck_assert_int_eq(sim_misbehave_of(&m, 8), SIM_MISBEHAVES_TWIN);
	ck_assert_int_eq(sim_misbehave_of(&m, 7), SIM_MISBEHAVES_TWIN);
	ck_assert_int_eq(sim_misbehave_of(&m, 6), SIM_BEHAVES);
}

/* --- the job -------------------------------------------------------------- */

static struct sim_options
options(void)
{
	struct sim_options o = { .job = "sim-job",
		.hosts = 8,
		.first = 1,
		.slices = 2,
		.chips = 4,
		.series = 120,
		.steps_per_s = 1,
		.accelerate = 1,
		.seed = 1,
		.beat_ns = S };

	return o;
}

LS_CASE(job);

LS_TEST(job, records_are_whole_and_the_slow_worker_makes_all_wait)
{
	const struct sim_options o = options();
	const struct sim_slow slow = { 5, 0.1, 20 };
	struct sim_job *job = sim_job_new(&o, &slow, 100 * S);
	uint64_t done = sim_job_advance(job, 150 * S), step, wait, least;
	struct ls_record r;
	const char *why = "";
	uint32_t rank, last;

	ck_assert_uint_ge(done, 40);
	ck_assert_uint_le(done, 52);
	for (step = 0; step < done; step++) {
		last = UINT32_MAX;
		least = UINT64_MAX;
		for (rank = 0; rank < 8; rank++) {
			ck_assert_int_eq(sim_job_record(job, rank, step, 7 * S, &r), 0);
			ck_assert_msg(ls_record_check(&r, &why) == 0, "%s", why);
			ck_assert_uint_eq(r.step, step);
			ck_assert_int_ge(r.t_begin_ns, (int64_t)(107 * S));
			ck_assert_uint_eq(r.barrier_count, 2);
			wait = r.phase_ns[LS_PHASE_SYNC_WAIT];
			if (wait < least) {
				least = wait;
				last = rank;
			}
		}
		if (step >= 20)
			ck_assert_uint_eq(last, 5);
	}
	ck_assert_int_eq(sim_job_record(job, 0, done, 0, &r), -LS_ESTALE);
	sim_job_free(job);
}

LS_TEST(job, steps_follow_each_other_and_old_ones_are_forgotten)
{
	const struct sim_options o = options();
	const struct sim_slow slow = { .rank = -1 };
	struct sim_job *job = sim_job_new(&o, &slow, 0);
	uint64_t done = sim_job_advance(job, 2 * SIM_STEPS_KEPT * S),
		 first = sim_job_first(job);
	struct ls_record r, next;

	ck_assert_uint_ge(done, SIM_STEPS_KEPT);
	ck_assert_int_eq(sim_job_record(job, 0, first - 1, 0, &r), -LS_ESTALE);
	ck_assert_int_eq(sim_job_record(job, 0, first, 0, &r), 0);
	ck_assert_int_eq(sim_job_record(job, 0, first + 1, 0, &next), 0);
	ck_assert_int_eq(next.t_begin_ns, r.t_begin_ns + (int64_t)r.duration_ns);
	sim_job_free(job);
}

/* --- series --------------------------------------------------------------- */

LS_CASE(shape);

LS_TEST(shape, the_same_seed_gives_the_same_bytes)
{
	struct sim_options o = options();
	struct sim_shape *a = NULL, *b = NULL, *c = NULL;
	struct sim_body x, y, z;
	uint64_t minute;
	unsigned g;

	ck_assert_int_eq(sim_shape_new(&o, 3, 0, &a), 0);
	ck_assert_int_eq(sim_shape_new(&o, 3, 4, &b), 0);
	o.seed = 2;
	ck_assert_int_eq(sim_shape_new(&o, 3, 0, &c), 0);
	for (minute = 0; minute < 3; minute++) {
		for (g = 0; g < SIM_GROUPS; g++) {
			ck_assert_uint_eq(sim_shape_group(a, g)->count, 60);
			ck_assert_int_eq(sim_shape_minute(a, 1, g, minute,
						 minute * 60 * S, 60 * S, &x),
				0);
			ck_assert_int_eq(sim_shape_minute(b, 1, g, minute,
						 minute * 60 * S, 60 * S, &y),
				0);
			ck_assert_int_eq(sim_shape_minute(c, 1, g, minute,
						 minute * 60 * S, 60 * S, &z),
				0);
			ck_assert_uint_eq(x.len, y.len);
			ck_assert_mem_eq(x.data, y.data, x.len);
			ck_assert(x.len != z.len || memcmp(x.data, z.data, x.len) != 0);
		}
	}
	/* Kept ones are given again, as they were; older ones are not made up. */
	ck_assert_int_eq(sim_shape_minute(b, 1, 0, 0, 0, 60 * S, &y), 0);
	ck_assert_int_eq(sim_shape_minute(b, 1, 0, 4, 240 * S, 60 * S, &y), 0);
	ck_assert_int_eq(sim_shape_minute(b, 1, 0, 0, 0, 60 * S, &y), -LS_ESTALE);
	sim_shape_free(a);
	sim_shape_free(b);
	sim_shape_free(c);
}

LS_TEST(shape, bodies_decode_to_a_minute_of_finite_values)
{
	const struct sim_options o = options();
	struct ls_chunk_codec *codec = ls_chunk_codec_new(60, SIM_ROWS);
	struct ls_chunk_table table;
	struct sim_shape *s = NULL;
	struct sim_body body;
	unsigned g;
	size_t i;

	ck_assert_int_eq(sim_shape_new(&o, 1, 0, &s), 0);
	for (g = 0; g < SIM_GROUPS; g++) {
		ck_assert_int_eq(sim_shape_minute(s, 0, g, 0, 5 * S, 60 * S, &body), 0);
		ck_assert_int_eq(ls_chunk_decode(codec, body.data, body.len, &table),
			0);
		ck_assert_uint_eq(table.rows, 60);
		ck_assert_uint_eq(table.columns, 60);
		ck_assert_uint_eq(table.t_mono_ns[0], body.t_first_ns);
		ck_assert_uint_eq(table.t_mono_ns[59], body.t_last_ns);
		ck_assert_uint_ge(body.t_first_ns, 5 * S);
		ck_assert_uint_lt(body.t_last_ns, 65 * S);
		for (i = 0; i < 60; i++)
			ck_assert_double_finite(table.value[i * table.stride + 59]);
	}
	sim_shape_free(s);
	ls_chunk_codec_free(codec);
}

/* --- an agent ------------------------------------------------------------- */

struct pair {
	struct sim_options options;
	struct sim_plan plan;
	struct sim_agent agent;
	struct sim_counts counts;
	struct ls_arena *arena;
	struct ls_wire_report report; /* in arena */
	uint8_t buf[LS_REPORT_MAX_BYTES];
};

static struct pair *
pair_new(void)
{
	const struct sim_slow slow = { .rank = -1 };
	struct pair *p = calloc(1, sizeof(*p));

	ck_assert_ptr_nonnull(p);
	p->options = options();
	p->plan.options = &p->options;
	p->plan.start_ns = 1000 * S;
	p->plan.minute_ns = 60 * S;
	p->plan.run = 5;
	p->plan.scratch = ls_arena_new(65536, LS_REPORT_MAX_BYTES);
	p->plan.job = sim_job_new(&p->options, &slow, 1000 * S);
	ck_assert_int_eq(sim_shape_new(&p->options, 8, 0, &p->plan.shape), 0);
	sim_agent_init(&p->agent, &p->plan, 3);
	sim_agent_connected(&p->agent, 1000 * S);
	return p;
}

static void
pair_free(struct pair *p)
{
	ls_arena_free(p->arena);
	sim_agent_clear(&p->agent);
	sim_job_free(p->plan.job);
	sim_shape_free(p->plan.shape);
	ls_arena_free(p->plan.scratch);
	free(p);
}

/* Reads and reports at a second; the report is unpacked as the collector does. */
static void
pair_report(struct pair *p, uint64_t second)
{
	const char *why = "";
	size_t len = 0;

	ck_assert_int_eq(sim_agent_read(&p->agent, &p->plan, second * S, &p->counts),
		0);
	ck_assert_int_eq(sim_agent_report(&p->agent, &p->plan, second * S, p->buf,
				 sizeof(p->buf), &len, &p->counts),
		0);
	ck_assert_msg(
		ls_wire_report_unpack_in(p->buf, len, &p->arena, &p->report, &why) == 0,
		"%s", why);
}

static struct sim_answer
pair_answer(struct pair *p, uint64_t second, struct ls_wire_ack ack)
{
	struct sim_answer answer;
	uint8_t *buf = NULL;
	size_t len = 0;

	memcpy(ack.boot, p->agent.boot, sizeof(ack.boot));
	ack.t_receive_mono_ns = ack.t_send_mono_ns = 1;
	ck_assert_int_eq(ls_wire_ack_pack(&ack, &buf, &len), 0);
	sim_agent_answer(&p->agent, &p->plan, buf, len, second * S + S / 10, &answer,
		&p->counts);
	free(buf);
	return answer;
}

static uint64_t
item_seq(const struct ls_wire_bytes *bytes, uint64_t *ret_first, uint64_t *ret_count,
	enum ls_wire_item_kind *ret_kind)
{
	struct ls_wire_item item = { 0 };
	const char *why = "";
	uint64_t seq;

	ck_assert_msg(ls_wire_item_unpack(bytes->data, bytes->len, &item, &why) == 0,
		"%s", why);
	seq = item.seq;
	*ret_first = item.first_index;
	*ret_count = item.count;
	*ret_kind = item.kind;
	ls_wire_item_clear(&item);
	return seq;
}

LS_CASE(agent);

LS_TEST(agent, what_is_not_acknowledged_is_sent_again_under_its_number)
{
	struct pair *p = pair_new();
	struct sim_answer answer;
	enum ls_wire_item_kind kind;
	uint64_t first, count, next = 0;
	uint8_t bytes[LS_ITEM_MAX_BYTES];
	size_t i, len;

	pair_report(p, 1003);
	ck_assert_str_eq(p->report.host, "sim00004");
	ck_assert_uint_eq(p->report.worker_count, 1);
	ck_assert_str_eq(p->report.workers[0].info.job, "sim-job");
	ck_assert_int_eq(p->report.workers[0].info.rank, 3);
	ck_assert(strncmp(p->report.agent_version, "sim ", 4) == 0);
	ck_assert_uint_eq(p->report.hot_count, 2);
	ck_assert_uint_eq(p->report.hot[0].count + p->report.hot[1].count, 16);
	ck_assert_uint_ge(p->report.item_count, 2);
	len = p->report.items[0].len;
	memcpy(bytes, p->report.items[0].data, len);
	answer = pair_answer(p, 1003, (struct ls_wire_ack){ .status = LS_ACK_OK });
	ck_assert_int_eq(answer.verdict, SIM_ACK_OK);
	ck_assert(!answer.stored);
	pair_report(p, 1005);
	ck_assert_uint_eq(p->report.worker_count, 0);
	ck_assert_uint_eq(p->report.items[0].len, len);
	ck_assert_mem_eq(p->report.items[0].data, bytes, len);
	for (i = 0; i < p->report.item_count; i++) {
		ck_assert_uint_eq(item_seq(&p->report.items[i], &first, &count, &kind),
			i + 1);
		ck_assert_int_eq(kind, LS_WIRE_STEPS);
		ck_assert_uint_eq(first, next);
		next = first + count;
	}
	answer = pair_answer(p, 1005,
		(struct ls_wire_ack){ .acked_seq = p->report.item_count });
	ck_assert(answer.stored);
	ck_assert_uint_eq(p->agent.records_acked, next);
	ck_assert_uint_eq(p->counts.records_acked, next);
	ck_assert(!sim_agent_waits(&p->agent));
	pair_free(p);
}

LS_TEST(agent, it_does_what_answers_ask)
{
	struct pair *p = pair_new();
	struct sim_answer answer;
	struct ls_wire_ack ack = {
		.status = LS_ACK_RETRY, .retry_after_ns = 3 * S, .beat_ns = 2 * S
	};

	pair_report(p, 1002);
	answer = pair_answer(p, 1002, ack);
	ck_assert_int_eq(answer.verdict, SIM_ACK_RETRY);
	ck_assert_uint_eq(answer.hold_ns, 3 * S);
	ck_assert_uint_eq(p->agent.beat_ns, 2 * S);
	pair_report(p, 1004);
	/* who is put off says again who he is */
	ck_assert_uint_eq(p->report.worker_count, 1);
	ck_assert(p->report.has_kernel && p->report.has_identity && p->report.has_last);
	(void)pair_answer(p, 1004, (struct ls_wire_ack){ .status = LS_ACK_OK });
	ck_assert_uint_eq(p->agent.beat_ns, S); /* asked for no longer */
	pair_report(p, 1005);
	ck_assert(!p->report.has_kernel && !p->report.has_identity &&
		p->report.worker_count == 0);
	(void)pair_answer(p, 1005,
		(struct ls_wire_ack){
			.need_identity = true, .need_all_workers = true });
	pair_report(p, 1006);
	ck_assert(p->report.has_identity && p->report.worker_count == 1);
	answer = pair_answer(p, 1006, (struct ls_wire_ack){ .acked_seq = 1000 });
	ck_assert_int_eq(answer.verdict, SIM_ACK_BAD);
	answer = pair_answer(p, 1006,
		(struct ls_wire_ack){ .status = LS_ACK_REJECT, .reason = "no" });
	ck_assert_int_eq(answer.verdict, SIM_ACK_REJECT);
	ck_assert_str_eq(answer.why, "no");
	pair_free(p);
}

LS_TEST(agent, minutes_come_with_their_dictionaries_and_losses_are_told)
{
	struct pair *p = pair_new();
	struct ls_wire_chunk_item item = { 0 };
	enum ls_wire_item_kind kind;
	uint64_t first, count, second, next = 0, seq = 1;
	const char *why = "";
	size_t i, dictionaries = 0, chunks = 0, losts = 0;
	struct ls_wire_ack ack = { 0 };

	/* Twenty minutes without an answer: more than has a place. */
	for (second = 1001; second < 1000 + 1200; second++)
		ck_assert_int_eq(
			sim_agent_read(&p->agent, &p->plan, second * S, &p->counts), 0);
	ck_assert_uint_gt(p->counts.records_lost, 0);
	ck_assert_uint_gt(p->counts.samples_lost, 0);
	for (; second < 1000 + 1200 + 500; second++) {
		pair_report(p, second);
		for (i = 0; i < p->report.item_count; i++) {
			(void)item_seq(&p->report.items[i], &first, &count, &kind);
			ck_assert_uint_eq(first, next);
			next = first + count;
		}
		ack.acked_seq += p->report.item_count;
		for (i = 0; i < p->report.chunk_item_count; i++) {
			ck_assert_msg(
				ls_wire_chunk_item_unpack(p->report.chunk_items[i].data,
					p->report.chunk_items[i].len, &item, &why) == 0,
				"%s", why);
			ck_assert_uint_eq(item.seq, seq++);
			dictionaries += item.kind == LS_WIRE_DICTIONARY;
			chunks += item.kind == LS_WIRE_CHUNK;
			losts += item.kind == LS_WIRE_LOST;
			ls_wire_chunk_item_clear(&item);
		}
		ack.acked_chunk_seq += p->report.chunk_item_count;
		(void)pair_answer(p, second, ack);
	}
	ck_assert_uint_eq(dictionaries, 2);
	ck_assert_uint_ge(chunks, 12);
	ck_assert_uint_eq(losts, 1);
	ck_assert_uint_eq(p->counts.samples_acked, p->counts.samples_made);
	ck_assert_uint_eq(p->counts.records_acked + p->counts.records_lost,
		p->agent.next_record);
	ck_assert_uint_eq(p->agent.records_acked, p->agent.next_record);
	pair_free(p);
}

LS_TEST(agent, saturation_fills_back_the_hours_before_one_minute_a_report)
{
	struct pair *p = pair_new();
	struct ls_wire_chunk_item item = { 0 };
	struct ls_wire_ack ack = { 0 };
	uint64_t i, last = 0;
	const char *why = "";
	size_t k;

	p->options.saturate = true;
	/* more than our clock has: the agent's has it */
	p->plan.back_ns = SIM_SATURATE_BACK_NS;
	for (i = 0; i < 20; i++) {
		pair_report(p, 1001);
		ck_assert_uint_eq(p->report.chunk_item_count, i == 0 ? 4 : 2);
		for (k = 0; k < p->report.chunk_item_count; k++) {
			ck_assert_int_eq(
				ls_wire_chunk_item_unpack(p->report.chunk_items[k].data,
					p->report.chunk_items[k].len, &item, &why),
				0);
			ck_assert(item.kind != LS_WIRE_CHUNK ||
				item.t_last_mono_ns > last);
			ck_assert_uint_lt(item.t_last_mono_ns,
				p->report.t_send_mono_ns);
			ls_wire_chunk_item_clear(&item);
		}
		last += i > 0 ? 60 * S
			      : p->agent.offset_ns - SIM_SATURATE_BACK_NS + 1000 * S;
		ack.acked_seq += p->report.item_count;
		ack.acked_chunk_seq += p->report.chunk_item_count;
		ck_assert(pair_answer(p, 1001, ack).stored);
	}
	ck_assert_uint_eq(p->counts.samples_acked, 20 * 7200);
	pair_free(p);
}
