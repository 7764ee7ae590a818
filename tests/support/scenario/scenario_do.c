/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario does with its job. */
#include "config.h"

#include "tests/support/scenario/scenario_run.h"
#include "collector/answer/finding_json.h"
#include "tests/support/scenario/serving.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marks ranks: "5", "2,7", "4-7", "0/4": each fourth from 0 on, "all". */
static void
ranks(struct scenario_run *r, const char *text)
{
	size_t count = r->job->count;
	const char *at = strcmp(text, "all") == 0 ? "0/1" : text;

	memset(r->is, 0, count);
	for (;; at++) {
		char *end;
		size_t from = strtoul(at, &end, 10), to = from, every = 1;

		if (end > at && *end == '-')
			to = strtoul(end + 1, &end, 10);
		else if (end > at && *end == '/') {
			to = count - 1;
			every = strtoul(end + 1, &end, 10);
		}
		if (end == at || every == 0 || to >= count ||
			(*end != ',' && *end != '\0'))
			scenario_wrong(r, "\"%s\" are no ranks of %zu", text, count);
		for (; from <= to; from += every)
			r->is[from] = true;
		at = end;
		if (*at == '\0')
			return;
	}
}

/* --- settings ------------------------------------------------------------- */

enum type { DOUBLE, SIZE, INT, BOOL, SEED, PATIENCE, CLOCK };

struct field {
	const char *name;
	enum type type;
	size_t at;
};

/* clang-format off */
static const struct field job_fields[] = {
#define JOB(name, type, member) { name, type, offsetof(struct fake_job, member) },
	JOB("apart", DOUBLE, apart_s)
	JOB("attempt", INT, attempt)
	JOB("chips", INT, chips)
	JOB("clockless", BOOL, clockless)
	JOB("collective", DOUBLE, collective_s)
	JOB("comm", DOUBLE, comm_s)
	JOB("counted", SIZE, counted_steps)
	JOB("curve", DOUBLE, curve)
	JOB("first_host", SIZE, first_host)
	JOB("hosts_of", SIZE, on_host)
	JOB("keep", DOUBLE, keep)
	JOB("noise", DOUBLE, noise)
	JOB("own", DOUBLE, own_s)
	JOB("patience", PATIENCE, engine)
	JOB("racks_of", SIZE, in_rack)
	JOB("seed", SEED, random)
	JOB("serving", BOOL, serving)
	JOB("shards", SIZE, shards)
	JOB("slice0", DOUBLE, slice_comm_s[0])
	JOB("slice1", DOUBLE, slice_comm_s[1])
	JOB("slices", SIZE, slices)
	JOB("spread", DOUBLE, spread)
	JOB("stages", SIZE, stages)
	JOB("step", SIZE, step)
	JOB("tails", BOOL, tails)
	JOB("together", BOOL, together)
	JOB("wander", DOUBLE, wander)
	JOB("wander_of", SIZE, wander_of)
	JOB("world", INT, world)
	{ .name = NULL },
};

static const struct field worker_fields[] = {
#define WORKER(name, type, member) { name, type, offsetof(struct fake_worker, member) },
	WORKER("ahead", DOUBLE, off_s)
	WORKER("clock", CLOCK, handle)
	WORKER("cpu", DOUBLE, grows[0])
	WORKER("expert", DOUBLE, expert)
	WORKER("held", DOUBLE, grows[2])
	WORKER("idle", DOUBLE, idle_s)
	WORKER("input", DOUBLE, input_s)
	WORKER("loadless", BOOL, loadless)
	WORKER("markless", BOOL, markless)
	WORKER("more", DOUBLE, more)
	WORKER("mute", BOOL, mute)
	WORKER("once", DOUBLE, once_s)
	WORKER("queue", DOUBLE, grows[1])
	WORKER("resent", DOUBLE, grows[3])
	WORKER("send", DOUBLE, send_s)
	WORKER("serves", SIZE, serves)
	WORKER("slow", DOUBLE, slow)
	WORKER("waits", BOOL, waits)
	{ .name = NULL },
};
/* clang-format on */

/* SETTING=VALUE of the job or a worker at base; a double moves so much of the way to it. */
static void
put(struct scenario_run *r, const struct field *f, void *base, const char *word,
	double way)
{
	size_t len = strcspn(word, "=");
	double x;
	char *at;

	while (f->name != NULL &&
		(strncmp(f->name, word, len) != 0 || f->name[len] != '\0'))
		f++;
	if (f->name == NULL)
		scenario_wrong(r, "\"%s\" is no setting of a %s", word,
			base == r->job ? "job" : "worker");
	x = scenario_number(r, word + len + 1, NAN);
	at = (char *)base + f->at;
	switch (f->type) {
	case DOUBLE:
		*(double *)at += way * (x - *(double *)at);
		break;
	case SIZE:
		*(size_t *)at = (size_t)x;
		break;
	case INT:
		*(int32_t *)at = (int32_t)x;
		break;
	case BOOL:
		*(bool *)at = x != 0;
		break;
	case SEED:
		*(uint64_t *)at += (uint64_t)x * 7919;
		break;
	case PATIENCE:
		ls_engine_patience(r->job->engine, r->patience_s = x);
		break;
	case CLOCK:
		ls_engine_clock(r->job->engine, *(uint32_t *)at, x);
		break;
	}
}

/* (RANKS|job) SETTING=VALUE..., from the word `first` on. */
static void
set(struct scenario_run *r, size_t first, double way)
{
	bool job = false;

	memset(r->is, 0, r->job->count);
	for (size_t i = first; i < r->count; i++) {
		const char *word = r->words[i];

		if (strcmp(word, "job") == 0)
			job = true;
		else if (strchr(word, '=') == NULL) {
			job = false;
			ranks(r, word);
		} else if (job)
			put(r, job_fields, r->job, word, way);
		else
			for (size_t k = 0; k < r->job->count; k++)
				if (r->is[k])
					put(r, worker_fields, &r->job->workers[k], word,
						way);
	}
}

/* --- steps ---------------------------------------------------------------- */

/* Keeps what a restart reads back. */
static void
keep(struct scenario_run *r)
{
	size_t at = r->back_count++ % SCENARIO_BACK_MAX,
	       bytes = r->job->count * sizeof(*r->job->workers);

	free(r->back[at]);
	r->back[at] = malloc(bytes);
	LS_ASSERT(r->back[at] != NULL);
	memcpy(r->back[at], r->job->workers, bytes);
	r->back_us[at] = r->job->now_us;
}

/* Gives the twin the same records, as if the lost steps had never been. */
static void
follow(struct scenario_run *r)
{
	struct fake_job *twin = r->twin;

	twin->now_us = r->job->now_us - r->lost_us;
	twin->step = r->job->step - r->lost_steps;
	for (size_t i = 0; i < twin->count; i++) {
		uint32_t handle = twin->workers[i].handle;
		struct ls_record *record = &twin->workers[i].record;

		twin->workers[i] = r->job->workers[i];
		twin->workers[i].handle = handle;
		record->step -= r->lost_steps;
		record->t_begin_ns -= r->lost_us * 1000;
		record->barrier[0].enter_ns -= r->lost_us * 1000;
		record->barrier[0].exit_ns -= r->lost_us * 1000;
	}
	fake_job_report(twin);
}

static void
step(struct scenario_run *r)
{
	if (r->job->serving) { /* a second */
		serving_run(r->job);
		return;
	}
	fake_job_wander(r->job);
	fake_job_make(r->job);
	keep(r);
	if (r->twin != NULL)
		follow(r);
	fake_job_report(r->job);
}

/* The steps, seconds or times that come first. */
static size_t
count_of(struct scenario_run *r)
{
	double x = scenario_number(r, r->words[1], NAN);

	if (!(x >= 0 && x < 1e6))
		scenario_wrong(r, "\"%s\" is not from 0 to a million", r->words[1]);
	return (size_t)x;
}

/* The number after KEY=, or 0. */
static double
option(struct scenario_run *r, const char *key)
{
	const char *text = scenario_option(r, key);

	return text != NULL ? scenario_number(r, text, NAN) : 0;
}

/* The phase of this name, or a word: LS_PHASE_COUNT. */
static enum ls_phase
phase_of(struct scenario_run *r, const char *name, const char *word)
{
	int phase = strcmp(name, word) == 0 ? LS_PHASE_COUNT : ls_phase_by_name(name);

	if (phase < 0)
		scenario_wrong(r, "\"%s\" is no phase, nor \"%s\"", name, word);
	return (enum ls_phase)phase;
}

/* --- commands ------------------------------------------------------------- */

static void
do_job(struct scenario_run *r)
{
	size_t count = count_of(r);

	if (r->job != NULL || count == 0 || count > FAKE_WORKERS_MAX)
		scenario_wrong(r, "want: one job of 1 to %d workers", FAKE_WORKERS_MAX);
	r->job = fake_job_on(NULL, "train", count);
	for (size_t i = 2; i < r->count; i++)
		put(r, job_fields, r->job, r->words[i], 1);
	fake_job_declare(r->job);
	if (r->job->serving)
		serving_begin(r->job);
}

static void
do_set(struct scenario_run *r)
{
	set(r, 1, 1);
}

static void
do_run(struct scenario_run *r)
{
	set(r, 2, 1);
	for (size_t n = count_of(r); n > 0; n--)
		step(r);
}

static void
do_ramp(struct scenario_run *r)
{
	for (size_t n = count_of(r); n > 0; n--) {
		set(r, 2, 1 / (double)n);
		step(r);
	}
}

/* Is `n` in the list "20,70,95"? */
static bool
is_listed(const char *list, size_t n)
{
	for (; list != NULL; list = strchr(list, ',')) {
		list += *list == ',';
		if (strtoul(list, NULL, 10) == n)
			return true;
	}
	return false;
}

static void
do_stall(struct scenario_run *r)
{
	struct fake_job *job = r->job;
	bool any = strcmp(r->words[2], "any") == 0,
	     all = strcmp(r->words[2], "job") == 0;
	double s = scenario_number(r, r->words[3], NAN), every = option(r, "every"),
	       chance = option(r, "chance"), comm_s = job->comm_s;
	const char *as = scenario_option(r, "as"), *at = scenario_option(r, "at");
	bool joint = as != NULL && strcmp(as, "checkpoints") == 0;
	enum ls_phase phase =
		as == NULL || joint ? LS_PHASE_COMPUTE : phase_of(r, as, "pause");

	scenario_only(r, 4, "every= chance= at= as= ");
	if (!all)
		ranks(r, any ? "0" : r->words[2]);
	for (size_t n = 0, steps = count_of(r); n < steps; n++) {
		size_t one =
			any ? (size_t)(fake_job_random(job) * (double)job->count) : 0;
		bool now = chance > 0 ? fake_job_random(job) < chance
			: every > 0   ? fmod((double)n + 1, every) < 1
				      : is_listed(at, n);

		for (size_t i = 0; now && !all && i < job->count; i++)
			if (any ? i == one : r->is[i]) {
				job->workers[i].once_s = s;
				job->workers[i].once_as = phase;
			}
		job->checkpoint = joint && now;
		job->comm_s = comm_s + (all && now ? s : 0);
		r->stalled_s += now ? s : 0;
		step(r);
	}
	job->comm_s = comm_s;
}

/* Steps of which nobody has records. */
static void
do_lose(struct scenario_run *r)
{
	int64_t from_us = r->job->now_us;

	for (size_t n = count_of(r); n > 0; n--) {
		fake_job_make(r->job);
		r->lost_steps++;
	}
	r->lost_us += r->job->now_us - from_us;
}

/* Seconds in which no step ends: all are in the barrier, but for some that are in a phase, or
 * between two steps, or of which nothing is heard. */
static void
do_stand(struct scenario_run *r)
{
	struct fake_job *job = r->job;
	bool silent = r->count == 4 && strcmp(r->words[3], "silent") == 0;
	enum ls_phase phase = r->count == 4 && !silent
		? phase_of(r, r->words[3], "resting")
		: LS_PHASE_COUNT;
	int64_t since_us = job->now_us;
	size_t seconds = count_of(r);

	if (r->count > 2)
		ranks(r, r->words[2]);
	else
		memset(r->is, 0, job->count);
	for (size_t s = seconds > 0; s <= seconds; s++) {
		job->now_us = since_us + (int64_t)s * 1000000;
		for (size_t i = 0; i < job->count; i++)
			if (!r->is[i] || !silent)
				fake_job_live(job, i,
					r->is[i] ? phase : LS_PHASE_SYNC_WAIT,
					since_us);
		ls_engine_advance(job->engine, job->now_us);
	}
}

static void
do_wait(struct scenario_run *r)
{
	r->job->now_us += (int64_t)(scenario_number(r, r->words[1], NAN) * 1e6);
	ls_engine_advance(r->job->engine, r->job->now_us);
}

static void
do_end(struct scenario_run *r)
{
	struct fake_job *const of[] = { r->job, r->twin };
	unsigned how = 0;

	ranks(r, r->words[1]);
	while (how < LS_END_HOW_COUNT && strcmp(ls_end_how_name(how), r->words[2]) != 0)
		how++;
	if (how == LS_END_HOW_COUNT)
		scenario_wrong(r, "\"%s\" is no end of a process", r->words[2]);
	for (size_t k = 0; k < 2 && of[k] != NULL; k++)
		for (size_t i = 0; i < r->job->count; i++)
			if (r->is[i])
				ls_engine_end(of[k]->engine, of[k]->workers[i].handle,
					how, of[k]->now_us);
}

/* What the engine answers must be the third word. */
static void
answer(struct scenario_run *r, int rc, bool beside)
{
	const char *is = rc == 0       ? beside ? "beside" : "taken"
		: rc == -LS_ESTALE     ? "late"
		: rc == -LS_EDUPLICATE ? "double"
		: rc == -LS_EBUSY      ? "busy"
				       : ls_err_text(rc);

	if (strcmp(r->words[2], is) != 0)
		scenario_wrong(r, "it is %s, not %s", is, r->words[2]);
}

/* The newest record of some comes again, or now. */
static void
do_deliver(struct scenario_run *r)
{
	ranks(r, r->words[1]);
	for (size_t i = 0; i < r->job->count; i++) {
		const struct fake_worker *w = &r->job->workers[i];

		if (r->is[i])
			answer(r,
				ls_engine_record(r->job->engine, w->handle, &w->record,
					r->job->now_us),
				false);
	}
}

/* A process says that it is this rank; it may get the place of the present one, or one beside. */
static void
do_claim(struct scenario_run *r)
{
	size_t rank = count_of(r);
	const char *host = scenario_option(r, "host"),
		   *refused = scenario_option(r, "refused");
	struct ls_worker_info info = { .attempt = scenario_option(r, "attempt") != NULL
			? (int32_t)option(r, "attempt")
			: r->job->attempt,
		.rank = (int32_t)rank,
		.owner = (uint32_t)option(r, "owner") };
	uint32_t handle = LS_NO_WORKER;
	int rc;

	scenario_only(r, 3, "host= attempt= owner= refused= ");
	if (rank >= r->job->count)
		scenario_wrong(r, "\"%s\" is no rank of %zu", r->words[1],
			r->job->count);
	(void)snprintf(info.job, sizeof(info.job), "%s", r->job->name);
	(void)snprintf(info.host, sizeof(info.host), "h%zu", rank);
	if (host != NULL)
		(void)snprintf(info.host, sizeof(info.host), "%s", host);
	if (refused != NULL)
		(void)snprintf(info.refused_rank, sizeof(info.refused_rank), "%s",
			refused);
	rc = ls_engine_worker(r->job->engine, &info, r->job->now_us, &handle);
	answer(r, rc, handle != r->job->workers[rank].handle);
}

/* The processes come back in the same attempt, at the next step or at an earlier one; or in the next attempt. */
static void
do_rejoin(struct scenario_run *r)
{
	scenario_only(r, 1, "back= ");
	if (scenario_option(r, "back") != NULL)
		r->job->step -= (uint64_t)option(r, "back");
	fake_job_declare(r->job);
}

static void
do_attempt(struct scenario_run *r)
{
	scenario_only(r, 1, "back= wait= ");
	r->job->attempt++;
	r->job->now_us += (int64_t)(option(r, "wait") * 1e6);
	r->job->step = scenario_option(r, "back") != NULL
		? r->job->step - (uint64_t)option(r, "back")
		: 0;
	fake_job_declare(r->job);
}

/* Gives the next engine the findings and, if told, what is usual of workers. */
static void
seed(const struct fake_job *next, const struct fake_job *job, bool reference)
{
	json_t *all = ls_finding_all(job->engine), *f;
	void *bytes = NULL;
	size_t i, len;

	json_array_foreach(all, i, f) LS_ASSERT(ls_finding_seed(next->engine, f) == 0);
	json_decref(all);
	if (reference)
		LS_ASSERT(ls_engine_reference(job->engine, job->now_us, &bytes, &len) ==
				0 &&
			ls_engine_reference_load(next->engine, bytes, len,
				job->now_us) == 0);
	free(bytes);
}

/* The collector starts again and reads so many steps back. The one before goes on: the twin. */
static void
do_restart(struct scenario_run *r)
{
	size_t back = (size_t)option(r, "back"), from = r->back_count - back;
	struct fake_job *job = r->job, *next;
	struct ls_engine *engine;
	struct fake_worker *workers;

	scenario_only(r, 1, "back= reference= ");
	if (back > r->back_count || back > SCENARIO_BACK_MAX)
		scenario_wrong(r, "%zu steps back: more than there are", back);
	if (job->event_count > 0)
		r->told_us = job->events[job->event_count - 1].t_us;
	next = fake_job_on(NULL, job->name, job->count);
	engine = next->engine;
	workers = next->workers;
	memcpy(workers, job->workers, job->count * sizeof(*workers));
	*next = *job;
	next->engine = engine;
	next->workers = workers;
	next->event_count = next->hangs = next->closed = next->windows = 0;
	ls_engine_patience(engine, r->patience_s);
	seed(next, job, option(r, "reference") != 0);
	if (back > 0)
		next->now_us = r->back_us[from % SCENARIO_BACK_MAX];
	fake_job_declare(next);
	for (; from < r->back_count; from++) {
		const struct fake_worker *w = r->back[from % SCENARIO_BACK_MAX];

		next->now_us = r->back_us[from % SCENARIO_BACK_MAX];
		for (size_t i = 0; i < job->count; i++)
			if (!w[i].mute)
				LS_ASSERT(ls_engine_record(engine, workers[i].handle,
						  &w[i].record, next->now_us) == 0);
		ls_engine_advance(engine, next->now_us);
	}
	next->now_us = job->now_us;
	ls_engine_restored(engine, next->now_us);
	if (r->twin != NULL)
		fake_job_free(job);
	else
		r->twin = job;
	r->job = next;
}

static void
do_repeat(struct scenario_run *r)
{
	r->repeats = count_of(r);
	r->repeat = r->at;
	r->repeat_line = r->line;
}

static void
do_done(struct scenario_run *r)
{
	if (r->repeats == 0)
		scenario_wrong(r, "\"done\" without \"repeat\"");
	if (--r->repeats > 0) {
		r->at = r->repeat;
		r->line = r->repeat_line;
	}
}

static const struct {
	const char *name, *usage;
	size_t least, most; /* words */
	void (*run)(struct scenario_run *r);
} commands[] = {
	{ "job", "WORKERS [SETTING=VALUE]...", 2, 99, do_job },
	{ "set", "(RANKS|job) SETTING=VALUE...", 3, 99, do_set },
	{ "run", "STEPS [(RANKS|job) SETTING=VALUE...]", 2, 99, do_run },
	{ "ramp", "STEPS (RANKS|job) SETTING=VALUE...", 4, 99, do_ramp },
	{ "stall", "STEPS (RANKS|any|job) SECONDS (every=|chance=|at=) [as=PHASE]", 5,
		6, do_stall },
	{ "lose", "STEPS", 2, 2, do_lose },
	{ "stand", "SECONDS [RANKS (PHASE|silent|resting)]", 2, 4, do_stand },
	{ "wait", "SECONDS", 2, 2, do_wait },
	{ "end", "RANKS HOW", 3, 3, do_end },
	{ "deliver", "RANKS (taken|late|double)", 3, 3, do_deliver },
	{ "claim",
		"RANK (taken|beside|late|busy) [host=] [attempt=] [owner=] [refused=]",
		3, 7, do_claim },
	{ "rejoin", "[back=STEPS]", 1, 2, do_rejoin },
	{ "attempt", "[back=STEPS] [wait=SECONDS]", 1, 3, do_attempt },
	{ "restart", "[back=STEPS] [reference=1]", 1, 3, do_restart },
	{ "repeat", "TIMES", 2, 2, do_repeat },
	{ "done", "", 1, 1, do_done },
	{ "save", "NAME (PATH|COUNT|stalled|serves.RANK) [KIND [PATH=VALUE]...]", 3, 99,
		scenario_save },
	{ "expect", "(nothing|COUNT=...|[only|no] KIND|finding|job) [PATH=VALUE]...", 2,
		99, scenario_expect },
};

void
scenario_obey(struct scenario_run *r)
{
	size_t k = 0, all = sizeof(commands) / sizeof(commands[0]);

	while (k < all && strcmp(commands[k].name, r->words[0]) != 0)
		k++;
	if (k == all)
		scenario_wrong(r, "\"%s\" is no command", r->words[0]);
	if (r->count < commands[k].least || r->count > commands[k].most)
		scenario_wrong(r, "want: %s %s", commands[k].name, commands[k].usage);
	if (k > 0 && r->job == NULL)
		scenario_wrong(r, "\"%s\" before \"job\"", r->words[0]);
	commands[k].run(r);
}
