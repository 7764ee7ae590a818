/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/detect_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/detect_sum.h"

/* steps before the fault: the engine has learned what is usual */
#define TABLE_FROM 150u
#define TABLE_LASTS 240u /* steps of a fault of the grid */
#define TABLE_STALLS_LAST 960u /* of one that comes and goes */
#define TABLE_AFTER 60u /* and after it */
#define TABLE_DEADLINE 80u
#define TABLE_HOSTS_MANY 4096u /* from here on a tenth of the runs */
#define TABLE_WEEK_S (7 * 24 * 3600.0)

/* A result for the lines at the end. */
static void __attribute__((format(printf, 3, 4)))
detect_plan_note(struct detect_plan *plan, double value, const char *fmt, ...)
{
	struct detect_line *line = &plan->line[plan->lines];
	va_list ap;

	if (plan->lines == DETECT_LINES_MAX)
		return;
	va_start(ap, fmt);
	/* our own words: they fit */
	(void)vsnprintf(line->name, sizeof(line->name), fmt, ap);
	va_end(ap);
	line->value = value;
	plan->lines++;
}

static const char *const rule_names[] = { "XProf", "NVRx", "TraceML" };

static size_t
table_runs(struct detect_plan *plan, uint32_t hosts)
{
	size_t runs = hosts >= TABLE_HOSTS_MANY ? plan->runs / 10 : plan->runs;

	return runs < 2 ? 2 : runs;
}

/* A job of so many hosts: four stages of a pipeline, and input hosts where a stage has
 * enough of them. */
static void
table_job(struct detect_run *run, uint32_t hosts, double noise, uint64_t seed)
{
	memset(run, 0, sizeof(*run));
	sim_world_defaults(&run->world);
	run->world.seed = seed;
	run->world.hosts = hosts;
	run->world.noise = noise;
	run->world.stages = hosts >= 16 ? 4 : 1;
	run->world.input_every = hosts >= 1024 ? 16 : 0;
	run->steps = TABLE_FROM + TABLE_LASTS + TABLE_AFTER;
	run->deadline = TABLE_DEADLINE;
	run->rules = true;
	run->counters = true;
}

/* A rank by seed that is not among those whose agents fall silent, nor that of another
 * fault. */
static uint32_t
table_rank(const struct detect_run *run)
{
	struct sim_world *world = NULL;
	uint64_t try;
	uint32_t rank = 0;
	bool taken = true;
	size_t k;

	LS_ASSERT(sim_world_new(&run->world, NULL, 0, &world, NULL) == 0);
	for (try = 0; taken; try++) {
		rank = (uint32_t)(sim_hash(run->world.seed, 0x72616e6b, try,
					  run->faults) %
			run->world.hosts);
		taken = sim_world_is_lost(world, rank);
		for (k = 0; k < run->faults; k++)
			taken |= run->fault[k].who == rank;
	}
	sim_world_free(world);
	return rank;
}

static void
table_fault(struct detect_run *run, enum sim_fault_kind kind, double amount)
{
	struct sim_fault *f = &run->fault[run->faults];
	uint32_t some =
		(uint32_t)(sim_hash(run->world.seed, 0x736f6d65, run->faults, 0) >> 8);
	const struct sim_world_options *o = &run->world;

	*f = (struct sim_fault){ .kind = kind,
		.amount = amount,
		.from = TABLE_FROM + some % 40,
		.to = TABLE_FROM + some % 40 + TABLE_LASTS };
	switch (sim_fault_info(kind)->who) {
	case SIM_WHO_RANK:
		f->who = table_rank(run);
		break;
	case SIM_WHO_SLICE:
		f->who = some % o->slices;
		break;
	case SIM_WHO_SLICES:
		f->who = some % o->slices;
		f->other = (f->who + 1) % o->slices;
		break;
	case SIM_WHO_RACK:
		f->who = some % (o->hosts / o->rack_hosts);
		break;
	case SIM_WHO_STAGE:
		f->who = some % o->stages;
		break;
	case SIM_WHO_SHARD:
		f->who = some % o->shards;
		break;
	case SIM_WHO_ALL:
	default:
		break;
	}
	run->faults++;
}

static void
table_run(const struct detect_plan *plan, struct detect_sum *sum,
	struct detect_run *run)
{
	struct detect_result result;

	run->wrong = plan->wrong;
	LS_ASSERT(detect_run(run, &result) == 0);
	detect_sum_add(sum, run, &result);
}

/* A ratio as percent, or "-". */
static const char *
table_percent(char text[16], double ratio)
{
	if (isnan(ratio))
		(void)snprintf(text, 16, "-");
	else
		(void)snprintf(text, 16, "%.1f", 100 * ratio);
	return text;
}

static const char *
table_number(char text[16], double v, int digits)
{
	if (isnan(v))
		(void)snprintf(text, 16, "-");
	else
		(void)snprintf(text, 16, "%.*f", digits, v);
	return text;
}

/* Are there rows of that size: of all, or of the one that is asked for, or of those for
 * the quick form? */
static bool
table_wants(const struct detect_plan *plan, uint32_t hosts, bool quickly)
{
	if (plan->hosts != 0)
		return plan->hosts == hosts;
	return !plan->quick || quickly;
}

/* --- contract ------------------------------------------------------------- */

enum table_condition {
	TABLE_PLAIN,
	TABLE_TWO,
	TABLE_ROLELESS,
	TABLE_LOST,
	TABLE_CLOCKS,
	TABLE_CLOCKLESS,
	TABLE_CONDITION_COUNT
};

static const char *const table_conditions[] = { "one culprit, roles known",
	"two culprits", "no roles", "5 % of agents lost",
	"steps of 100 ms, clocks known to 5 ms, drift 30 us/s", "no barrier times" };

static void
contract_row(struct detect_plan *plan, uint32_t hosts, double noise, double amount,
	uint64_t within, enum table_condition condition)
{
	struct detect_sum sum = { 0 };
	size_t i, k, runs = table_runs(plan, hosts);
	char t[11][16];

	for (i = 0; i < runs; i++) {
		struct detect_run run;

		table_job(&run, hosts, noise, 1000 + i);
		run.world.roles = condition != TABLE_ROLELESS;
		run.world.lost = condition == TABLE_LOST ? 0.05 : 0;
		run.world.lost_from = 100;
		if (condition == TABLE_CLOCKS) {
			run.world.step_s = 0.1;
			run.world.clock_err_s = 0.005;
			run.world.clock_drift = 30e-6;
		}
		run.world.clockless = condition == TABLE_CLOCKLESS;
		for (k = 0; k < (condition == TABLE_TWO ? 2u : 1u); k++) {
			table_fault(&run, SIM_FAULT_CHIP, amount);
			run.fault[k].from = run.fault[0].from;
			run.fault[k].to = UINT64_MAX;
		}
		run.deadline = within;
		run.steps = run.fault[0].from + within + 40;
		table_run(plan, &sum, &run);
	}
	printf("| %u | %.1f %% | %s | %.0f %% in %llu | %zu | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
		hosts, 100 * noise, table_conditions[condition], 100 * amount,
		(unsigned long long)within, sum.runs,
		table_percent(t[0], detect_ratio(sum.named, sum.runs)),
		table_percent(t[1], detect_ratio(sum.first, sum.runs)),
		table_percent(t[2], detect_ratio(sum.third, sum.runs)),
		table_number(t[10], detect_ratio(sum.innocent, sum.runs), 1),
		table_number(t[3], detect_quantile(&sum.suspect, 0.5), 0),
		table_percent(t[4], detect_ratio(sum.in_time, sum.events)),
		table_number(t[5], detect_quantile(&sum.finding, 0.5), 0),
		table_percent(t[6], detect_ratio(sum.right, sum.findings)),
		table_percent(t[7],
			detect_ratio(sum.rule_found[DETECT_XPROF], sum.events)),
		table_percent(t[8],
			detect_ratio(sum.rule_found[DETECT_NVRX], sum.events)),
		table_percent(t[9],
			detect_ratio(sum.rule_found[DETECT_TRACEML], sum.events)));
	(void)fflush(stdout);
	if (condition == TABLE_PLAIN && noise == 0.003)
		detect_plan_note(plan, detect_ratio(sum.named, sum.runs),
			"straggler_%.0f_n%u_named_ratio", 100 * amount, hosts);
	detect_sum_fini(&sum);
}

void
detect_table_contract(struct detect_plan *plan)
{
	static const uint32_t hosts[] = { 16, 64, 1024, 10240 };
	static const double noises[] = { 0.003, 0.001, 0.01, 0.02 };
	size_t h, n;
	int c;

	printf("\n### A slow host within so many steps\n\n"
	       "Own work x (1 + p), simulated; noise of t4. %% of runs, unless a head says steps.\n\n"
	       "| hosts | noise | condition | p in steps | runs | named first | top 1 | top 3 | innocent suspects a run | steps to suspect | "
	       "found in time | steps to finding | precision | XProf | NVRx | TraceML |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++) {
		if (!table_wants(plan, hosts[h], hosts[h] != 16 && hosts[h] != 10240))
			continue;
		for (n = 0; n < (plan->quick ? 1 : 4); n++) {
			contract_row(plan, hosts[h], noises[n], 0.03, 40, TABLE_PLAIN);
			contract_row(plan, hosts[h], noises[n], 0.02, 80, TABLE_PLAIN);
		}
		for (c = TABLE_TWO; c < TABLE_CONDITION_COUNT; c++) {
			contract_row(plan, hosts[h], 0.003, 0.03, 40,
				(enum table_condition)c);
			contract_row(plan, hosts[h], 0.003, 0.02, 80,
				(enum table_condition)c);
		}
	}
}

/* --- grid ----------------------------------------------------------------- */

static const uint32_t grid_hosts[] = { 16, 64, 256, 1024, 4096, 10240 };
static const double grid_noises[] = { 0.001, 0.003, 0.01, 0.02 };
static const double grid_amounts[] = { 0.01, 0.02, 0.05, 0.10, 0.20 };
static const enum sim_fault_kind grid_kinds[] = { SIM_FAULT_COMPUTE, SIM_FAULT_CHIP,
	SIM_FAULT_CPU, SIM_FAULT_QUOTA, SIM_FAULT_INPUT, SIM_FAULT_DISK, SIM_FAULT_H2D,
	SIM_FAULT_PAUSE, SIM_FAULT_COMPILE, SIM_FAULT_IMBALANCE, SIM_FAULT_EMBEDDING };

static void
table_head(const char *first)
{
	printf("| %s | runs | recall | precision | findings | steps to suspect | to finding | cost error | cause right / named | "
	       "XProf P / R | NVRx P / R | TraceML P / R |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
		first);
}

static void
table_row(const char *name, struct detect_sum *sum)
{
	char t[6][16], a[16], b[16];
	size_t i;

	printf("| %s | %zu | %s | %s | %zu | %s | %s | %s | %s / %s |", name, sum->runs,
		table_percent(t[0], detect_ratio(sum->found, sum->events)),
		table_percent(t[1], detect_ratio(sum->right, sum->findings)),
		sum->findings,
		table_number(t[2], detect_quantile(&sum->suspect, 0.5), 0),
		table_number(t[3], detect_quantile(&sum->finding, 0.5), 0),
		table_percent(t[4], detect_quantile(&sum->cost_error, 0.5)),
		table_percent(a, detect_ratio(sum->causes_right, sum->found)),
		table_percent(b, detect_ratio(sum->causes_named, sum->found)));
	for (i = 0; i < DETECT_RULE_COUNT; i++)
		printf(" %s / %s |",
			table_percent(a,
				detect_ratio(sum->flags_right[i], sum->flags[i])),
			table_percent(b,
				detect_ratio(sum->rule_found[i], sum->events)));
	printf("\n");
	(void)fflush(stdout);
}

/* Stalls of a step and more are rare where they cost little: it takes longer to see
 * some. */
static bool
grid_comes_and_goes(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_DISK || kind == SIM_FAULT_PAUSE ||
		kind == SIM_FAULT_COMPILE;
}

/* One cell of the grid: all sizes. */
static void
grid_cell(struct detect_plan *plan, enum sim_fault_kind kind, double amount,
	double noise, struct detect_sum *sum)
{
	size_t h, i;

	for (h = 0; h < sizeof(grid_hosts) / sizeof(grid_hosts[0]); h++) {
		size_t runs = plan->quick ? 1 : plan->runs / 10 + 1;

		if (grid_hosts[h] >= TABLE_HOSTS_MANY && noise != 0.003)
			continue; /* the most costly ones once */
		if (!table_wants(plan, grid_hosts[h],
			    grid_hosts[h] == 64 || grid_hosts[h] == 256))
			continue;
		if (grid_hosts[h] >= TABLE_HOSTS_MANY)
			runs = 1;
		for (i = 0; i < runs; i++) {
			struct detect_run run;

			table_job(&run, grid_hosts[h], noise,
				20000 + 100 * (uint64_t)kind + i);
			if (grid_hosts[h] >= 1024)
				run.world.slices = 4;
			table_fault(&run, kind, amount);
			if (grid_comes_and_goes(kind)) {
				run.fault[0].to = run.fault[0].from + TABLE_STALLS_LAST;
				run.steps += TABLE_STALLS_LAST - TABLE_LASTS;
			}
			table_run(plan, sum, &run);
		}
	}
}

void
detect_table_grid(struct detect_plan *plan)
{
	const size_t kinds = sizeof(grid_kinds) / sizeof(grid_kinds[0]);
	const size_t amounts = sizeof(grid_amounts) / sizeof(grid_amounts[0]);
	struct detect_sum noise_sum[4] = { { 0 } }, cell;
	size_t n, a, k;
	char name[64];

	printf("\n### One slow host: cause and amount\n\nSimulated; noise of t4, 0.3 %%. Rates in %%.\n\n");
	table_head("cause, amount");
	for (k = 0; k < kinds; k++)
		for (a = plan->quick ? 1 : 0; a < amounts; a += plan->quick ? 2 : 1)
			for (n = 0; n < 4; n++) {
				if (plan->quick && grid_noises[n] != 0.003)
					continue;
				memset(&cell, 0, sizeof(cell));
				grid_cell(plan, grid_kinds[k], grid_amounts[a],
					grid_noises[n], &cell);
				(void)snprintf(name, sizeof(name), "%s, %.0f %%",
					sim_fault_info(grid_kinds[k])->name,
					100 * grid_amounts[a]);
				if (grid_noises[n] == 0.003)
					table_row(name, &cell);
				if (grid_amounts[a] > 0.015)
					detect_sum_join(&noise_sum[n], &cell);
				detect_sum_fini(&cell);
			}
	printf("\nAll of these from 2 %% up, by noise:\n\n");
	table_head("noise");
	for (n = 0; n < 4; n++) {
		(void)snprintf(name, sizeof(name), "%.1f %%", 100 * grid_noises[n]);
		if (noise_sum[n].runs == 0)
			continue;
		table_row(name, &noise_sum[n]);
		if (grid_noises[n] == 0.003) {
			detect_plan_note(plan,
				detect_ratio(noise_sum[n].right, noise_sum[n].findings),
				"grid_precision_ratio");
			detect_plan_note(plan,
				detect_ratio(noise_sum[n].found, noise_sum[n].events),
				"grid_recall_ratio");
			detect_plan_note(plan,
				detect_quantile(&noise_sum[n].cost_error, 0.5),
				"grid_cost_error_ratio");
			detect_plan_note(plan,
				detect_ratio(noise_sum[n].causes_right,
					noise_sum[n].found),
				"grid_cause_right_ratio");
		}
		detect_sum_fini(&noise_sum[n]);
	}
}

/* --- levels --------------------------------------------------------------- */

struct levels_row {
	const char *name;
	enum sim_fault_kind kind;
	double amount;
	uint64_t from; /* 0: from the start; 1: as ever */
	uint64_t lasts;
	bool replicas;
	uint32_t slices;
};

static const struct levels_row levels_rows[] = {
	{ "born slow, 5 %", SIM_FAULT_CHIP, 0.05, 0, 400, false, 4 },
	{ "drift, 5 % an hour", SIM_FAULT_DRIFT, 0.05, 1, 3000, false, 4 },
	{ "drift, 1 % an hour", SIM_FAULT_DRIFT, 0.01, 1, 9000, false, 4 },
	{ "every 100 steps, 50 % of a step", SIM_FAULT_EVERY, 0.5, 1, 1000, false, 4 },
	{ "its checkpoints each 200 steps, 3 steps (benign)", SIM_FAULT_SAVES, 3, 1,
		1000, false, 4 },
	{ "hang, 40 steps", SIM_FAULT_HANG, 40, 1, 1, false, 4 },
	{ "ICI link, 2 %", SIM_FAULT_ICI, 0.02, 1, TABLE_LASTS, false, 4 },
	{ "ICI link, 10 %", SIM_FAULT_ICI, 0.1, 1, TABLE_LASTS, false, 4 },
	{ "between slices, delay, 10 %", SIM_FAULT_DCN, 0.1, 1, TABLE_LASTS, false, 4 },
	{ "between slices, loss, 5 %", SIM_FAULT_LOSS, 0.05, 1, TABLE_LASTS, false, 4 },
	{ "slice, 5 %", SIM_FAULT_SLICE, 0.05, 1, TABLE_LASTS, false, 4 },
	{ "rack, 5 %", SIM_FAULT_RACK, 0.05, 1, TABLE_LASTS, false, 4 },
	{ "input shard, 5 %", SIM_FAULT_SHARD, 0.05, 1, TABLE_LASTS, false, 4 },
	{ "stage, 10 %", SIM_FAULT_STAGE, 0.1, 1, TABLE_LASTS, false, 4 },
	{ "sequence lengths, rotating, 10 %", SIM_FAULT_SEQUENCE, 0.1, 1, TABLE_LASTS,
		false, 4 },
	{ "expert loads, rotating, 10 %", SIM_FAULT_MOE, 0.1, 1, TABLE_LASTS, false,
		4 },
	{ "garbage collection, random host, 5 %", SIM_FAULT_GC, 0.05, 1, TABLE_LASTS,
		false, 4 },
	{ "all wait for input, 20 %", SIM_FAULT_STARVED, 0.2, 1, TABLE_LASTS, false,
		4 },
	{ "all slower, 10 %", SIM_FAULT_SLOWER, 0.1, 1, TABLE_LASTS, false, 4 },
	{ "a serving replica, 5 %", SIM_FAULT_CHIP, 0.05, 1, TABLE_LASTS, true, 4 },
	{ "a serving replica, 20 %", SIM_FAULT_CHIP, 0.2, 1, TABLE_LASTS, true, 4 },
	{ "one lies (nothing to find)", SIM_FAULT_LIES, 0, 1, TABLE_LASTS, false, 4 },
	{ "slice, drift, 5 % an hour", SIM_FAULT_SLICE_DRIFT, 0.05, 1, 3000, false, 4 },
	{ "rack, drift, 5 % an hour", SIM_FAULT_RACK_DRIFT, 0.05, 1, 3000, false, 4 },
	{ "rack, drift, 1 % an hour", SIM_FAULT_RACK_DRIFT, 0.01, 1, 9000, false, 4 },
	{ "one slice of two, 5 %", SIM_FAULT_SLICE, 0.05, 1, TABLE_LASTS, false, 2 },
	{ "one slice of two, drift, 5 % an hour", SIM_FAULT_SLICE_DRIFT, 0.05, 1, 3000,
		false, 2 },
};

static void
levels_job(struct detect_run *run, const struct levels_row *row, uint32_t hosts,
	uint64_t seed)
{
	table_job(run, hosts, 0.003, seed);
	run->world.slices = row->slices;
	run->world.rack_hosts = hosts / 16;
	run->world.peers = true;
	run->world.replicas = row->replicas;
	table_fault(run, row->kind, row->amount);
	if (row->from == 0)
		run->fault[0].from = 0;
	run->fault[0].to = run->fault[0].from + row->lasts;
	run->steps = run->fault[0].to + TABLE_AFTER;
}

void
detect_table_levels(struct detect_plan *plan)
{
	static const uint32_t hosts[] = { 64, 256, 1024 };
	size_t i, h, s;

	printf("\n### What is no single host, or comes and goes\n\n"
	       "Simulated; four slices of four racks each, unless the row says otherwise, noise of t4, 0.3 %%; 64 to 1,024 hosts, where a fault lasts longer than 1,000 steps 64. Rates in %%. A host blamed instead of its slice, rack or "
	       "job is a false finding.\n\n");
	table_head("fault");
	for (i = 0; i < sizeof(levels_rows) / sizeof(levels_rows[0]); i++) {
		const struct levels_row *row = &levels_rows[i];
		struct detect_sum sum = { 0 };

		for (h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++)
			for (s = 0; s < (plan->quick ? 1 : plan->runs / 10 + 1); s++) {
				struct detect_run run;

				if (!table_wants(plan, hosts[h], h == 0) ||
					(hosts[h] > 64 && row->lasts > 1000))
					continue;
				levels_job(&run, row, hosts[h], 50000 + 100 * i + s);
				table_run(plan, &sum, &run);
			}
		table_row(row->name, &sum);
		detect_sum_fini(&sum);
	}
}

/* --- null ----------------------------------------------------------------- */

enum null_kind {
	NULL_GAUSS,
	NULL_T4,
	NULL_SPREAD,
	NULL_WANDER,
	NULL_BURSTS,
	NULL_SAVES,
	NULL_MISSING,
	NULL_CLOCKS,
	NULL_ALL,
	NULL_COUNT
};

static const char *const null_names[] = { "normal noise", "t4",
	"t4, hosts differ by 0.5 %", "t4, job drifts by 4 %",
	"t4, two share a core for 20 to 80 steps",
	"t4, checkpoints, evaluation, first steps compile",
	"t4, 2 % of records missing, 5 % of agents lost",
	"t4, clocks known to 2 ms, drift 30 us/s", "all of these" };

static void
null_job(struct detect_run *run, enum null_kind kind)
{
	struct sim_world_options *o = &run->world;

	if (kind == NULL_GAUSS)
		o->noise_kind = SIM_NOISE_GAUSS;
	if (kind == NULL_SPREAD || kind == NULL_ALL)
		o->spread = 0.005;
	if (kind == NULL_WANDER || kind == NULL_ALL)
		o->host_noise[o->host_noises++] =
			(struct sim_host_noise){ .kind = SIM_HOST_NOISE_SINES,
				.scope = SIM_NOISE_OF_JOB,
				.size = 0.04,
				.length = 2000 };
	if (kind == NULL_BURSTS || kind == NULL_ALL)
		o->burst_steps = 500;
	if (kind == NULL_SAVES || kind == NULL_ALL) {
		o->checkpoint_steps = 300;
		o->eval_steps = 1000;
		o->compile_steps = 2;
	}
	if (kind == NULL_MISSING || kind == NULL_ALL) {
		o->missing = 0.02;
		o->lost = 0.05;
		o->lost_from = 400;
	}
	if (kind == NULL_CLOCKS || kind == NULL_ALL) {
		o->clock_err_s = 0.002;
		o->clock_drift = 30e-6;
	}
}

static void
null_print(const char *name, const struct detect_sum *sum)
{
	double weeks = sum->hosts_s / (10000 * TABLE_WEEK_S);

	printf("| %s | %.0f | %zu | %.3g | %.3g | %zu / %zu / %zu | %.2f | %.2f |\n",
		name, sum->hosts_s / 3600, sum->findings, (double)sum->findings / weeks,
		detect_poisson_bound(sum->findings) / weeks, sum->flags[DETECT_XPROF],
		sum->flags[DETECT_NVRX], sum->flags[DETECT_TRACEML],
		1e-3 * (double)sum->engine_ns / (double)sum->hosts_steps,
		1e-3 * (double)sum->world_ns / (double)sum->hosts_steps);
	(void)fflush(stdout);
}

void
detect_table_null(struct detect_plan *plan)
{
	struct detect_sum sum = { 0 };
	struct detect_run run;
	int kind;

	printf("\n### Healthy jobs: false findings\n\nSimulated; noise 0.3 %%. The bound is exact, one-sided, 95 %%. CPU is that of one host's "
	       "step: the engine's without counters, the simulator's with its records.\n\n"
	       "| what is in it | host-hours | false findings | a week of 10,000 hosts | at most | flags of %s / %s / %s | engine us | "
	       "simulator us |\n|---|---|---|---|---|---|---|---|\n",
		rule_names[0], rule_names[1], rule_names[2]);
	for (kind = 0; kind < NULL_COUNT; kind++) {
		table_job(&run, plan->quick ? 256 : 1024, 0.003,
			70000 + (uint64_t)kind);
		null_job(&run, (enum null_kind)kind);
		run.steps = plan->quick ? 1000 : 20000;
		table_run(plan, &sum, &run);
		null_print(null_names[kind], &sum);
		if (kind == NULL_ALL)
			detect_plan_note(plan, (double)sum.findings,
				"null_false_findings");
		detect_sum_fini(&sum);
	}
	if (!(plan->weeks > 0))
		return;
	for (kind = NULL_T4; kind <= NULL_ALL; kind += NULL_ALL - NULL_T4) {
		char name[64];

		table_job(&run, 10000, 0.003, 80000 + (uint64_t)kind);
		null_job(&run, (enum null_kind)kind);
		run.world.step_s = 10;
		run.world.slices = 4;
		run.rules = false;
		run.counters = false;
		run.steps = (uint64_t)(plan->weeks * TABLE_WEEK_S / 10);
		table_run(plan, &sum, &run);
		(void)snprintf(name, sizeof(name),
			"%s; 10,000 hosts, %.3g weeks, steps of 10 s", null_names[kind],
			plan->weeks);
		null_print(name, &sum);
		detect_sum_fini(&sum);
	}
}

/* --- least ---------------------------------------------------------------- */

void
detect_table_least(struct detect_plan *plan)
{
	static const double tried[] = { 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05,
		0.08, 0.12, 0.2, 0.4 };
	static const uint32_t hosts[] = { 64, 1024, 10240 };
	size_t h, n, t, i;

	printf("\n### Least slowdown of which 95 %% of runs are named first within 80 steps\n\nSimulated; noise of t4.\n\n"
	       "| hosts | noise | own work | of the step |\n|---|---|---|---|\n");
	for (h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++)
		for (n = plan->quick ? 1 : 0; n < (plan->quick ? 2 : 4); n++) {
			double ratio = 0;

			if (!table_wants(plan, hosts[h], h == 0))
				continue;

			for (t = 0;
				t < sizeof(tried) / sizeof(tried[0]) && ratio < 0.95;
				t++) {
				struct detect_sum sum = { 0 };

				for (i = 0; i < table_runs(plan, hosts[h]); i++) {
					struct detect_run run;

					table_job(&run, hosts[h], grid_noises[n],
						90000 + i);
					table_fault(&run, SIM_FAULT_CHIP, tried[t]);
					run.rules = false;
					run.counters = false;
					run.steps = run.fault[0].from + TABLE_DEADLINE;
					table_run(plan, &sum, &run);
				}
				ratio = detect_ratio(sum.named, sum.runs);
				detect_sum_fini(&sum);
			}
			if (ratio < 0.95)
				printf("| %u | %.1f %% | more than %.0f %% | |\n",
					hosts[h], 100 * grid_noises[n],
					100 * tried[t - 1]);
			else
				printf("| %u | %.1f %% | %.2f %% | %.2f %% |\n",
					hosts[h], 100 * grid_noises[n],
					100 * tried[t - 1], 80 * tried[t - 1]);
			(void)fflush(stdout);
		}
}
