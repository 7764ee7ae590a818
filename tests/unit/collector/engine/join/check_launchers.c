/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environments of launchers, mutilated at random: each worker is judged or said to be
 * missing, no part of a job passes for the whole, and no host is called a liar.
 * The launchers are those of tests/system/launchers.py.
 */
#include "config.h"

#include "agent/client/identity.h"
#include "collector/answer/finding_json.h"
#include "collector/engine/engine.h"
#include "collector/answer/view.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 4
#define MUTILATIONS 200
#define VARIABLES 16
#define STEPS 80u
#define STEP_US 2000000ll /* 80 of them are more than two minutes */
#define START_US 1700000000000000ll

/* %r: the rank; %h: that of its pair of workers, %l: its rank in the pair. */
static const struct launcher {
	const char *name;
	int on_host;
	const char *env[VARIABLES];
} launchers[] = {
	{ "jax", 1, { "JAX_PROCESS_ID=%r", "JAX_NUM_PROCESSES=4" } },
	{ "cloud-tpu", 1, { "TPU_WORKER_ID=%r", "TPU_WORKER_HOSTNAMES=w0,w1,w2,w3" } },
	{ "megascale", 1,
		{ "TPU_WORKER_ID=%l", "TPU_WORKER_HOSTNAMES=w0,w1",
			"MEGASCALE_NUM_SLICES=2", "MEGASCALE_SLICE_ID=%h" } },
	{ "xpk", 1,
		{ "JOBSET_NAME=xpk", "REPLICATED_JOB_NAME=slice-job",
			"JOB_COMPLETION_INDEX=%l", "JOBSET_RESTART_ATTEMPT=0",
			"TPU_WORKER_ID=%l", "TPU_WORKER_HOSTNAMES=w0,w1",
			"MEGASCALE_NUM_SLICES=2", "MEGASCALE_SLICE_ID=%h" } },
	{ "indexed-job", 1, { "JOB_COMPLETION_INDEX=%r" } },
	{ "kubeflow-trainer", 1,
		{ "JOBSET_NAME=x", "REPLICATED_JOB_NAME=node",
			"JOB_COMPLETION_INDEX=%l", "JAX_PROCESS_ID=%r",
			"JAX_NUM_PROCESSES=4" } },
	{ "kubeflow-pytorch", 1, { "RANK=%r", "WORLD_SIZE=4" } },
	{ "torchrun", 2,
		{ "RANK=%r", "WORLD_SIZE=4", "LOCAL_RANK=%l", "LOCAL_WORLD_SIZE=2",
			"GROUP_RANK=%h", "TORCHELASTIC_RUN_ID=none",
			"TORCHELASTIC_RESTART_COUNT=0", "TPU_WORKER_ID=%h",
			"TPU_WORKER_HOSTNAMES=h0,h1" } },
	{ "torch-xla", 2,
		{ "CLOUD_TPU_TASK_ID=%r", "TPU_PROCESS_ADDRESSES=h0:1,h0:2,h1:1,h1:2",
			"TPU_VISIBLE_CHIPS=%l", "TPU_WORKER_ID=%h",
			"TPU_WORKER_HOSTNAMES=h0,h1" } },
	{ "ray-train", 2,
		{ "RANK=%r", "WORLD_SIZE=4", "LOCAL_RANK=%l", "LOCAL_WORLD_SIZE=2",
			"NODE_RANK=%h" } },
	{ "slurm", 2,
		{ "SLURM_JOB_ID=17", "SLURM_JOB_NAME=train", "SLURM_PROCID=%r",
			"SLURM_NTASKS=4", "SLURM_NODEID=%h",
			"SLURM_RESTART_COUNT=0" } },
	{ "open-mpi", 2,
		{ "OMPI_COMM_WORLD_RANK=%r", "OMPI_COMM_WORLD_SIZE=4",
			"OMPI_COMM_WORLD_LOCAL_RANK=%l" } },
	{ "mpich", 2, { "PMI_RANK=%r", "PMI_SIZE=4", "MPI_LOCALRANKID=%l" } },
	{ "lws", 1,
		{ "LWS_WORKER_INDEX=%r", "LWS_GROUP_SIZE=4",
			"LWS_LEADER_ADDRESS=serve-0.serve.default" } },
	{ "unknown", 2, { NULL } },
};
#define LAUNCHERS (sizeof(launchers) / sizeof(launchers[0]))

static const char *const wrong_values[] = { "", "tcp://10.43.1.40:7118", "-1", "0", "1",
	"2", "7", "65535", "65536", "2147483647", "9223372036854775808", "w0",
	"w0,w1,w2", "w0,w1,w2,w3,w4,w5,w6,w7", "none" };

struct variable {
	char name[40], value[64]; /* name "": it is not there */
};

struct worker {
	struct variable env[VARIABLES];
	struct ls_worker_info info;
	uint32_t handle;
	bool rejected; /* in the newest step */
};

static struct worker workers[WORKERS];
static uint64_t seed;

static size_t
below(size_t n)
{
	return (size_t)(ls_test_random(&seed) * (double)n);
}

/* The variable of a launcher's example, as a worker of this rank has it. */
static struct variable
variable_of(const char *text, size_t rank)
{
	struct variable v = { .name = "" };
	size_t name = strcspn(text, "=");
	const char *value = text + name + 1;

	memcpy(v.name, text, name);
	if (value[0] == '%')
		(void)snprintf(v.value, sizeof(v.value), "%zu",
			value[1] == 'r'		  ? rank
				: value[1] == 'h' ? rank / 2
						  : rank % 2);
	else
		(void)snprintf(v.value, sizeof(v.value), "%s", value);
	return v;
}

static size_t
variables_of(const struct launcher *l)
{
	size_t n = 0;

	while (l->env[n] != NULL)
		n++;
	return n;
}

/* Puts the variable into the place of the one of that name, or into a free place. */
static void
put(struct worker *w, struct variable v)
{
	size_t at = 0;

	while (w->env[at].name[0] != '\0' && strcmp(w->env[at].name, v.name) != 0)
		at++;
	ck_assert_uint_lt(at, VARIABLES);
	w->env[at] = v;
}

static void
mutilate(const struct launcher *l)
{
	size_t n = variables_of(l), v = n > 0 ? below(n) : 0, a = below(WORKERS),
	       b = (a + 1 + below(WORKERS - 1)) % WORKERS;
	bool all = below(4) == 0; /* of all workers alike */
	struct variable kept = workers[a].env[v], given;

	switch (n > 0 ? below(6) : 0) {
	case 0: { /* foreign: of another launcher */
		const struct launcher *other = &launchers[below(LAUNCHERS - 1)];

		given = variable_of(other->env[below(variables_of(other))],
			below(WORKERS));
		for (size_t i = 0; i < WORKERS; i++)
			if (all || i == a)
				put(&workers[i], given);
		break;
	}
	case 1: /* missing; its place is taken by the last one */
		for (size_t i = 0; i < WORKERS; i++) {
			if (!all && i != a)
				continue;
			workers[i].env[v] = workers[i].env[n - 1];
			workers[i].env[n - 1].name[0] = '\0';
		}
		break;
	case 2: /* doubled */
		workers[a].env[v] = workers[b].env[v];
		break;
	case 3: /* swapped */
		workers[a].env[v] = workers[b].env[v];
		workers[b].env[v] = kept;
		break;
	default: /* stale, or no value at all */
		given = kept;
		(void)snprintf(given.value, sizeof(given.value), "%s",
			wrong_values[below(sizeof(wrong_values) /
				sizeof(wrong_values[0]))]);
		for (size_t i = 0; i < WORKERS; i++)
			if (all || i == a)
				put(&workers[i], given);
		break;
	}
}

/* Who the worker is: by the client, and where that does not know, by the agent of its
 * host (agent/steps/source_step.c, step_rank). */
static void
resolve(const struct launcher *l, size_t at)
{
	struct ls_client_identity id;
	struct worker *w = &workers[at];
	const char *slices;

	for (size_t i = 0; i < VARIABLES && w->env[i].name[0] != '\0'; i++)
		setenv(w->env[i].name, w->env[i].value, 1);
	ls_client_identity_resolve(NULL, &id);
	slices = getenv("MEGASCALE_NUM_SLICES");
	id.worker.slices = slices != NULL ? (int32_t)strtol(slices, NULL, 10) : 0;
	if (id.worker.slices < 0 || id.worker.slices > LS_SLICES_MAX)
		id.worker.slices = 0; /* as the agent (agent/identity/place.c) */
	for (size_t i = 0; i < VARIABLES && w->env[i].name[0] != '\0'; i++)
		unsetenv(w->env[i].name);
	w->info = id.worker;
	(void)snprintf(w->info.host, sizeof(w->info.host), "h%zu",
		at / (size_t)l->on_host);
	if (id.from[2] == LS_RING_FROM_REFUSED || id.from[2] == LS_RING_FROM_DEFAULT)
		w->info.rank = 0;
	w->handle = LS_NO_WORKER;
}

static bool
is_of_job(const struct worker *a, const struct worker *b)
{
	return strcmp(a->info.job, b->info.job) == 0 &&
		a->info.attempt == b->info.attempt;
}

/* The agent of a host gives the second process of a rank the least that is free. */
static void
count_ranks(const size_t order[WORKERS])
{
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[order[i]];
		int32_t rank = -1;

		for (size_t k = 0; k < i; k++) {
			const struct worker *o = &workers[order[k]];

			if (o->info.rank != w->info.rank || !is_of_job(o, w) ||
				strcmp(o->info.host, w->info.host) != 0)
				continue;
			w->info.rank = ++rank;
			k = SIZE_MAX; /* look at all of them again */
		}
	}
}

static void
shuffle(size_t order[WORKERS])
{
	for (size_t i = 0; i < WORKERS; i++) {
		size_t k = below(i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

/* A place for the worker, as intake asks for one; it may be taken away again. */
static void
place(struct ls_engine *e, struct worker *w, int64_t now_us)
{
	w->rejected = !ls_engine_has_worker(e, w->handle) &&
		ls_engine_worker(e, &w->info, now_us, &w->handle) != 0;
	if (w->rejected)
		w->handle = LS_NO_WORKER;
}

/* One step of all workers. */
static void
feed(struct ls_engine *e, const size_t order[WORKERS], uint64_t step)
{
	int64_t begin_us = START_US + (int64_t)step * STEP_US, now_us;

	now_us = begin_us + STEP_US;
	for (size_t i = 0; i < WORKERS; i++)
		place(e, &workers[order[i]], now_us);
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[order[i]];
		struct ls_record r = { .step = step,
			.t_begin_ns = begin_us * 1000,
			.duration_ns = (uint64_t)STEP_US * 1000,
			.phase_mask = 1u << LS_PHASE_COMPUTE,
			.barrier_count = 1 };

		r.phase_ns[LS_PHASE_COMPUTE] =
			1500000000 + (uint64_t)(ls_test_random(&seed) * 1e6);
		r.barrier[0].enter_ns =
			r.t_begin_ns + (int64_t)r.phase_ns[LS_PHASE_COMPUTE];
		r.barrier[0].exit_ns = r.t_begin_ns + (int64_t)r.duration_ns;
		place(e, w, now_us);
		if (!w->rejected)
			ck_assert_int_eq(ls_engine_record(e, w->handle, &r, now_us), 0);
		ls_engine_advance(e, now_us);
	}
}

/* Is a finding of this kind open for the job? */
static bool
is_found(struct ls_engine *e, const char *job, const char *kind)
{
	json_t *all = ls_finding_all(e), *f;
	bool found = false;
	size_t i;

	json_array_foreach(all, i, f)
	{
		found |= strcmp(ls_json_text_at(f, "job", "id"), job) == 0 &&
			strcmp(ls_json_text_at(f, "kind", NULL), kind) == 0 &&
			strcmp(ls_json_text_at(f, "status", NULL), "cleared") != 0;
	}
	json_decref(all);
	return found;
}

/* Does anybody of the job know how many they are? */
static bool
has_world(const char *job)
{
	bool any = false;

	for (size_t i = 0; i < WORKERS; i++)
		any |= strcmp(workers[i].info.job, job) == 0 &&
			workers[i].info.world > 0;
	return any;
}

static size_t
contradictions_of(const json_t *job)
{
	return json_array_size(ls_json_at(job, "data_quality", "contradictions"));
}

static void
check_job(struct ls_engine *e, const json_t *job, const char *what)
{
	const char *name = ls_json_text_at(job, "id", NULL);
	bool all = json_is_true(ls_json_at(job, "judged", "all"));
	json_int_t n = json_integer_value(ls_json_at(job, "judged", "workers"));

	/* a launcher that tells no number of workers cannot know of another job */
	ck_assert_msg(!all || n == WORKERS || !has_world(name),
		"%s: %lld workers of job %s pass for all", what, (long long)n, name);
	ck_assert_msg(!all || n == 1 || has_world(name) ||
			strstr(ls_json_text_at(job, "judged", "why"), "not known") !=
				NULL,
		"%s: %lld workers of job %s pass for all, of a size nobody knows", what,
		(long long)n, name);
	ck_assert_msg(
		json_integer_value(json_object_get(
			ls_json_at(job, "data_quality", "not_believed"), "count")) == 0,
		"%s: a host is called a liar", what);
	for (size_t i = 0; i < WORKERS; i++) {
		if (!workers[i].rejected || strcmp(workers[i].info.job, name) != 0)
			continue;
		ck_assert_msg(!all && contradictions_of(job) > 0,
			"%s: worker %zu is dropped without a word", what, i);
		ck_assert_msg(is_found(e, name, "self_identity"),
			"%s: no finding says that worker %zu is dropped", what, i);
	}
}

/* Runs the four workers; returns what the engine says of their jobs. */
static json_t *
run(struct ls_engine *e, const struct launcher *l, const char *what)
{
	size_t order[WORKERS], i;
	int64_t now_us = START_US + STEPS * STEP_US;
	json_t *page, *job;

	for (i = 0; i < WORKERS; i++)
		resolve(l, i);
	shuffle(order);
	count_ranks(order);
	for (uint64_t step = 0; step < STEPS; step++)
		feed(e, order, step);
	ck_assert_int_eq(ls_view_jobs(e, "", WORKERS, now_us, &page), 0);
	json_array_foreach(json_object_get(page, "items"), i, job)
		check_job(e, job, what);
	return page;
}

static void
fresh(const struct launcher *l)
{
	memset(workers, 0, sizeof(workers));
	for (size_t i = 0; i < WORKERS; i++)
		for (size_t v = 0; l->env[v] != NULL; v++)
			workers[i].env[v] = variable_of(l->env[v], i);
}

static void
setup(void)
{
	for (size_t i = 0; i < LAUNCHERS; i++)
		for (size_t v = 0; launchers[i].env[v] != NULL; v++)
			unsetenv(variable_of(launchers[i].env[v], 0).name);
	unsetenv("LOCKSTEP_JOB");
	unsetenv("LOCKSTEP_RANK");
	unsetenv("LOCKSTEP_WORLD");
	unsetenv("LOCKSTEP_ATTEMPT");
	seed = 26;
}

LS_CASE(launchers, setup, NULL);

LS_TEST_EACH(launchers, whole_environment_is_judged_whole, launchers)
{
	struct ls_engine *e = ls_engine_new(&ls_finding_sink);
	const struct launcher *l = &launchers[_i];
	json_t *page, *job, *all;

	fresh(l);
	page = run(e, l, l->name);
	job = json_array_get(json_object_get(page, "items"), 0);
	ck_assert_int_eq(json_integer_value(ls_json_at(job, "judged", "workers")),
		WORKERS);
	ck_assert(json_is_true(ls_json_at(job, "judged", "all")));
	if (variables_of(l) > 0)
		ck_assert_uint_eq(contradictions_of(job), 0);
	all = ls_finding_all(e);
	ck_assert_uint_eq(json_array_size(all), 0);
	json_decref(all);
	json_decref(page);
	ls_engine_free(e);
}

LS_TEST_EACH(launchers, mutilated_environment_loses_no_worker_without_a_word, launchers)
{
	const struct launcher *l = &launchers[_i];
	char what[64];

	seed += (uint64_t)_i;
	for (int i = 0; i < MUTILATIONS; i++) {
		struct ls_engine *e = ls_engine_new(&ls_finding_sink);

		(void)snprintf(what, sizeof(what), "%s, mutilation %d", l->name, i);
		fresh(l);
		mutilate(l);
		json_decref(run(e, l, what));
		ls_engine_free(e);
	}
}
