/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/fault.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "deploy/demo/workload/model.h"
#include "proto/base/text.h"

#define FAULT_LOOK_NS 5000000u /* how often the parent looks for the victim's step */
#define FAULT_PAUSE_EVERY 50 /* steps from one pause to the next, on average */

static const char *const fault_names[] = { [FAULT_NONE] = "none",
	[FAULT_CPU_HOG] = "cpu_hog",
	[FAULT_CPU_QUOTA] = "cpu_quota",
	[FAULT_SLOW_INPUT] = "slow_input",
	[FAULT_PAUSE] = "pause" };

static const int fault_amount_max[] = { [FAULT_CPU_HOG] = WORKLOAD_HOGS_MAX,
	[FAULT_CPU_QUOTA] = 100,
	[FAULT_SLOW_INPUT] = 1024,
	[FAULT_PAUSE] = 60000 };

const char *
workload_fault_name(enum workload_fault_kind kind)
{
	return fault_names[kind];
}

static int
fault_kind(const char *word, size_t len)
{
	for (int k = FAULT_CPU_HOG; k <= FAULT_PAUSE; k++) {
		if (strlen(fault_names[k]) == len &&
			strncmp(word, fault_names[k], len) == 0)
			return k;
	}
	return -1;
}

/* A decimal number up to max, ended by `stop` or the end of the text. */
static bool
fault_number(const char **text, long long max, char stop, long long *ret)
{
	uint64_t v;
	size_t n = ls_text_digits(*text, SIZE_MAX, (uint64_t)max, &v);

	if (n == 0 || ((*text)[n] != stop && (*text)[n] != '\0'))
		return false;
	*text += n;
	*ret = (long long)v;
	return true;
}

int
workload_fault_parse(const struct workload_options *o, struct workload_fault *ret,
	char *err, unsigned err_size)
{
	const char *p = o->slow;
	long long rank, amount, at = o->steps > 0 ? o->steps / 3 : 300,
				until = LLONG_MAX;
	int kind;

	memset(ret, 0, sizeof(*ret));
	if (strcmp(p, "none") == 0)
		return 0;
	if (!fault_number(&p, o->ranks - 1, ':', &rank) || *p != ':') {
		(void)snprintf(err, err_size,
			"--slow %s: wanted is none or RANK:KIND:AMOUNT[@FROM[-TO]], RANK from 0 to %lld",
			o->slow, (long long)o->ranks - 1);
		return -1;
	}
	p++;
	kind = fault_kind(p, strcspn(p, ":"));
	if (kind < 0) {
		(void)snprintf(err, err_size,
			"--slow %s: KIND must be cpu_hog, cpu_quota, slow_input or "
			"pause",
			o->slow);
		return -1;
	}
	p += strlen(fault_names[kind]);
	if (*p++ != ':' || !fault_number(&p, fault_amount_max[kind], '@', &amount) ||
		amount == 0) {
		(void)snprintf(err, err_size, "--slow %s: AMOUNT of %s must be 1 to %d",
			o->slow, fault_names[kind], fault_amount_max[kind]);
		return -1;
	}
	if (*p == '@') {
		p++;
		if (!fault_number(&p, LLONG_MAX, '-', &at) ||
			(*p++ == '-' && !fault_number(&p, LLONG_MAX, '\0', &until)) ||
			until <= at) {
			(void)snprintf(err, err_size,
				"--slow %s: FROM and TO must be step numbers, TO the "
				"larger",
				o->slow);
			return -1;
		}
	}
	ret->kind = (enum workload_fault_kind)kind;
	ret->rank = (int)rank;
	ret->amount = (int)amount;
	ret->at = (uint64_t)at;
	ret->until = until == LLONG_MAX ? UINT64_MAX : (uint64_t)until;
	return 0;
}

/* Burns the victim's share of its CPU, for as long as the parent lives. */
static void
fault_hog(const struct fault *f, pid_t parent)
{
	volatile uint64_t spin = 0;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET((size_t)f->victim_cpu, &cpu);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
		setpgid(0, 0) != 0 || sched_setaffinity(0, sizeof(cpu), &cpu) != 0 ||
		cgroup_join(f->cgroups, (unsigned)f->plan.rank) != 0)
		_exit(1);
	for (;;)
		spin = spin * 3 + 1;
}

static int
fault_begin(struct fault *f)
{
	pid_t parent = getpid();

	if (f->plan.kind == FAULT_CPU_QUOTA)
		return cgroup_quota(f->cgroups, (unsigned)f->plan.rank, f->plan.amount);
	for (int i = 0; f->plan.kind == FAULT_CPU_HOG && i < f->plan.amount; i++) {
		pid_t child = fork();

		if (child < 0)
			return -errno;
		if (child == 0)
			fault_hog(f, parent);
		f->hog[f->hog_count++] = child;
	}
	return 0;
}

/* The next pause comes 1/2 to 3/2 of the usual distance from here, somewhere within
 * that step. */
static void
fault_plan_pause(struct fault *f, uint64_t step)
{
	f->pause = PAUSE_WAITS_FOR_STEP;
	f->pause_step = step + FAULT_PAUSE_EVERY / 2 +
		(uint64_t)(model_random(&f->seed) * FAULT_PAUSE_EVERY);
}

static int
fault_pause_turn(struct fault *f, uint64_t step, uint64_t now_ns)
{
	switch (f->pause) {
	case PAUSE_WAITS_FOR_STEP:
		if (step < f->pause_step)
			return 0;
		f->pause = PAUSE_WAITS_FOR_MOMENT;
		f->pause_at_ns = now_ns + (uint64_t)(model_random(&f->seed) * 20e6);
		return 0;
	case PAUSE_WAITS_FOR_MOMENT:
		if (now_ns < f->pause_at_ns)
			return 0;
		if (kill(f->victim, SIGSTOP) != 0)
			return -errno;
		f->pauses++;
		f->pause = PAUSE_STOPPED;
		f->pause_at_ns = now_ns + (uint64_t)f->plan.amount * 1000000u;
		return 0;
	case PAUSE_STOPPED:
		if (now_ns < f->pause_at_ns)
			return 0;
		if (kill(f->victim, SIGCONT) != 0)
			return -errno;
		fault_plan_pause(f, step);
		return 0;
	}
	return 0;
}

/* Takes away what slows the victim. */
static int
fault_lift(struct fault *f)
{
	for (unsigned i = 0; i < f->hog_count; i++) {
		(void)kill(f->hog[i], SIGKILL);
		(void)waitpid(f->hog[i], NULL, 0);
	}
	f->hog_count = 0;
	if (f->pause == PAUSE_STOPPED && f->victim > 0)
		(void)kill(f->victim, SIGCONT);
	f->pause = PAUSE_WAITS_FOR_STEP;
	if (f->plan.kind == FAULT_CPU_QUOTA)
		return cgroup_quota(f->cgroups, (unsigned)f->plan.rank,
			CGROUP_NO_QUOTA);
	return 0;
}

int
fault_turn(struct fault *f, struct workload_shared *shared, uint64_t now_ns,
	uint64_t *ret_wait_ns)
{
	uint64_t step;
	int rc;

	*ret_wait_ns = UINT64_MAX;
	if (f->plan.kind == FAULT_NONE || f->victim == 0 || f->over)
		return 0;
	step = atomic_load(&shared->rank[f->plan.rank].step);
	if (!f->begun) {
		*ret_wait_ns = FAULT_LOOK_NS;
		if (step < f->plan.at)
			return 0;
		rc = fault_begin(f);
		if (rc != 0)
			return rc;
		f->begun = true;
		f->begun_step = step;
		atomic_store(&shared->fault_on, true);
		fault_plan_pause(f, step);
	}
	if (step >= f->plan.until) {
		f->over = true;
		f->over_step = step;
		atomic_store(&shared->fault_on, false);
		return fault_lift(f);
	}
	if (f->plan.kind != FAULT_PAUSE) {
		*ret_wait_ns = f->plan.until == UINT64_MAX ? UINT64_MAX : FAULT_LOOK_NS;
		return 0;
	}
	rc = fault_pause_turn(f, step, now_ns);
	*ret_wait_ns = FAULT_LOOK_NS;
	if (f->pause != PAUSE_WAITS_FOR_STEP)
		*ret_wait_ns = f->pause_at_ns > now_ns ? f->pause_at_ns - now_ns : 0;
	return rc;
}

bool
fault_reap(struct fault *f, pid_t child)
{
	for (unsigned i = 0; i < f->hog_count; i++) {
		if (f->hog[i] != child)
			continue;
		f->hog[i] = f->hog[--f->hog_count];
		return true;
	}
	return false;
}

void
fault_end(struct fault *f)
{
	if (f->begun && !f->over)
		ls_ignore(fault_lift(
			f)); /* the cgroup, and its quota, goes with the job */
	f->victim = 0;
}
