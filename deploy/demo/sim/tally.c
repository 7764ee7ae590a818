/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/tally.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"

struct tally_bins {
	uint64_t count, max_ns;
	uint32_t bin[SIM_LATENCY_BINS + 1];
};

/* When so many percent of all agents were settled. */
static const unsigned tally_shares[] = { 50, 90, 99, 100 };
enum { TALLY_SHARES = sizeof(tally_shares) / sizeof(tally_shares[0]) };

struct tally_storm {
	bool under_way;
	bool is_start; /* nobody was connected before */
	uint32_t lowest; /* settled at the worst moment */
	uint64_t begin_ns, up_ns; /* up: 0 as long as nobody is */
	uint64_t share_ns[TALLY_SHARES];
};

struct sim_tally {
	const struct sim_options *options;
	uint64_t start_ns, last_ns, cpu_last_ns, cpu_start_ns;
	struct sim_sums last;
	uint32_t settled;
	struct tally_storm storm;
	struct tally_bins interval, total;
};

struct sim_tally *
sim_tally_new(const struct sim_options *o, uint64_t now_ns)
{
	struct sim_tally *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->options = o;
	t->start_ns = t->last_ns = now_ns;
	t->cpu_start_ns = t->cpu_last_ns = ls_clock_cpu_ns();
	t->storm = (struct tally_storm){
		.under_way = true, .is_start = true, .begin_ns = now_ns
	};
	return t;
}

void
sim_tally_free(struct sim_tally *t)
{
	free(t);
}

/* --- latency -------------------------------------------------------------- */

static void
tally_add(struct tally_bins *b, uint64_t latency_ns)
{
	uint64_t i = latency_ns / SIM_LATENCY_BIN_NS;

	b->bin[i < SIM_LATENCY_BINS ? i : SIM_LATENCY_BINS]++;
	b->count++;
	if (latency_ns > b->max_ns)
		b->max_ns = latency_ns;
}

void
sim_tally_latency(struct sim_tally *t, uint64_t latency_ns)
{
	tally_add(&t->interval, latency_ns);
	tally_add(&t->total, latency_ns);
}

/* The upper end of the bin that holds this share of all; 0 if there are none. */
static double
tally_quantile_ms(const struct tally_bins *b, double share)
{
	uint64_t want = (uint64_t)(share * (double)b->count), seen = 0;
	size_t i;

	if (b->count == 0)
		return 0;
	for (i = 0; i < SIM_LATENCY_BINS; i++) {
		seen += b->bin[i];
		if (seen > want)
			break;
	}
	return (double)(i + 1) * (double)SIM_LATENCY_BIN_NS * 1e-6;
}

/* --- lines ---------------------------------------------------------------- */

static void
tally_print_counts(const struct sim_sums *now, const struct sim_sums *before, double s,
	FILE *out)
{
	const struct sim_counts *a = &now->agents, *b = &before->agents;

	fprintf(out,
		",\"reports_per_s\":%.1f,\"acks_per_s\":%.1f,\"report_bytes_per_s\":%.0f",
		(double)(now->reports - before->reports) / s,
		(double)(now->acks - before->acks) / s,
		(double)(now->report_bytes - before->report_bytes) / s);
	fprintf(out,
		",\"durable_samples\":%" PRIu64 ",\"durable_samples_per_s\":%.0f"
		",\"durable_chunks\":%" PRIu64 ",\"durable_step_records\":%" PRIu64
		",\"durable_step_records_per_s\":%.1f,\"durable_items\":%" PRIu64,
		a->samples_acked - b->samples_acked,
		(double)(a->samples_acked - b->samples_acked) / s,
		a->chunks_acked - b->chunks_acked, a->records_acked - b->records_acked,
		(double)(a->records_acked - b->records_acked) / s,
		a->items_acked - b->items_acked);
	fprintf(out,
		",\"lost_samples\":%" PRIu64 ",\"lost_step_records\":%" PRIu64
		",\"resent_items\":%" PRIu64 ",\"unacked_items\":%" PRIu64,
		a->samples_lost - b->samples_lost, a->records_lost - b->records_lost,
		a->resent_items - b->resent_items, now->unacked_items);
	fprintf(out,
		",\"retries\":%" PRIu64 ",\"rejects\":%" PRIu64 ",\"bad_acks\":%" PRIu64
		",\"timeouts\":%" PRIu64 ",\"connects\":%" PRIu64
		",\"connect_failures\":%" PRIu64 ",\"disconnects\":%" PRIu64
		",\"bad_frames\":%" PRIu64,
		now->retries - before->retries, now->rejects - before->rejects,
		now->bad_acks - before->bad_acks, now->timeouts - before->timeouts,
		now->connects - before->connects,
		now->connect_failures - before->connect_failures,
		now->disconnects - before->disconnects,
		now->bad_frames - before->bad_frames);
}

void
sim_tally_print(struct sim_tally *t, const struct sim_sums *sums, bool total,
	uint64_t now_ns, FILE *out)
{
	static const struct sim_sums none;
	const struct tally_bins *b = total ? &t->total : &t->interval;
	uint64_t from = total ? t->start_ns : t->last_ns, cpu = ls_clock_cpu_ns();
	double s = (double)(now_ns - from) * 1e-9;

	if (s <= 0)
		return;
	fprintf(out,
		"{\"event\":\"%s\",\"simulated\":true,\"t_s\":%.1f,\"seconds\":%.2f"
		",\"minute_lasts_s\":%.2f,\"agents\":%" PRId64
		",\"connected\":%" PRIu32,
		total ? "total" : "interval", (double)(now_ns - t->start_ns) * 1e-9, s,
		60.0 / (double)t->options->accelerate, t->options->hosts,
		sums->connected);
	tally_print_counts(sums, total ? &none : &t->last, s, out);
	fprintf(out,
		",\"ack_ms\":{\"n\":%" PRIu64
		",\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"max\":%.1f}",
		b->count, tally_quantile_ms(b, 0.5), tally_quantile_ms(b, 0.9),
		tally_quantile_ms(b, 0.99), (double)b->max_ns * 1e-6);
	fprintf(out, ",\"own_cpu_s\":%.3f,\"own_cpu_ratio\":%.4f}\n",
		(double)(cpu - (total ? t->cpu_start_ns : t->cpu_last_ns)) * 1e-9,
		(double)(cpu - (total ? t->cpu_start_ns : t->cpu_last_ns)) * 1e-9 / s);
	(void)fflush(out); /* a line that is refused is lost */
	if (total)
		return;
	t->last_ns = now_ns;
	t->cpu_last_ns = cpu;
	t->last = *sums;
	memset(&t->interval, 0, sizeof(t->interval));
}

/* --- storms --------------------------------------------------------------- */

void
sim_tally_lost(struct sim_tally *t, uint64_t now_ns)
{
	if (!t->storm.under_way)
		t->storm = (struct tally_storm){
			.under_way = true, .begin_ns = now_ns, .lowest = t->settled
		};
	t->settled--;
	if (t->settled < t->storm.lowest) {
		t->storm.lowest = t->settled;
		t->storm.up_ns = 0; /* who is up counts once no more are lost */
		memset(t->storm.share_ns, 0, sizeof(t->storm.share_ns));
	}
}

void
sim_tally_up(struct sim_tally *t, uint64_t now_ns)
{
	if (t->storm.under_way && t->storm.up_ns == 0)
		t->storm.up_ns = now_ns;
}

void
sim_tally_settled(struct sim_tally *t, uint64_t now_ns)
{
	uint64_t hosts = (uint64_t)t->options->hosts;

	t->settled++;
	for (unsigned i = 0; i < TALLY_SHARES && t->storm.under_way; i++) {
		if (t->storm.share_ns[i] == 0 &&
			t->settled * 100ull >= tally_shares[i] * hosts)
			t->storm.share_ns[i] = now_ns;
	}
}

bool
sim_tally_storm_turn(struct sim_tally *t, FILE *out)
{
	struct tally_storm *s = &t->storm;
	uint64_t hosts = (uint64_t)t->options->hosts;

	if (t->settled < hosts)
		return false;
	if (!s->under_way)
		return true;
	s->under_way = false;
	if (s->lowest * 2ull > hosts)
		return true; /* a few that were lost are no storm */
	fprintf(out,
		"{\"event\":\"%s\",\"simulated\":true,\"agents\":%" PRIu64
		",\"lost\":%" PRIu64 ",\"first_connection_s\":%.3f",
		s->is_start ? "start" : "reconnect", hosts, hosts - s->lowest,
		(double)(s->up_ns - s->begin_ns) * 1e-9);
	for (unsigned i = 0; i < TALLY_SHARES; i++)
		fprintf(out, ",\"acked_p%u_s\":%.3f", tally_shares[i],
			(double)(s->share_ns[i] - s->up_ns) * 1e-9);
	fprintf(out, "}\n");
	(void)fflush(out); /* as above */
	return true;
}
