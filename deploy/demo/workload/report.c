/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/report.h"

#include <errno.h>
#include <string.h>
#include "proto/base/json.h"

/* Means a step of one rank, in ms, over the steps from a to b. */
struct report_means {
	uint64_t steps;
	double step, input, work, wait, cpu, runqueue;
};

static struct report_means
report_means(const struct workload_sums *a, const struct workload_sums *b)
{
	struct report_means m = { .steps = b->steps - a->steps };
	double per_step;

	if (m.steps == 0 || b->steps < a->steps)
		return (struct report_means){ 0 };
	per_step = 1e-6 / (double)m.steps;
	m.step = (double)(b->elapsed_ns - a->elapsed_ns) * per_step;
	m.input = (double)(b->input_ns - a->input_ns) * per_step;
	m.work = (double)(b->work_ns - a->work_ns) * per_step;
	m.wait = (double)(b->wait_ns - a->wait_ns) * per_step;
	m.cpu = (double)(b->cpu_ns - a->cpu_ns) * per_step;
	m.runqueue = (double)(b->runqueue_ns - a->runqueue_ns) * per_step;
	return m;
}

/* Before the fault (all of the run, if there was none), or after it began; false: no
 * such part. */
static bool
report_part(const struct workload_progress *p, bool after, struct report_means *ret)
{
	static const struct workload_sums zero;
	bool fault = atomic_load(&p->has_fault_sums);

	if (after && !fault)
		return false;
	*ret = after
		? report_means(&p->at_fault,
			  atomic_load(&p->has_over_sums) ? &p->at_over : &p->at_end)
		: report_means(&zero, fault ? &p->at_fault : &p->at_end);
	return true;
}

static void
report_print_part(FILE *out, const struct workload_options *o, const struct fault *f,
	const struct workload_shared *shared, bool after)
{
	struct report_means m;

	for (int64_t i = 0; i < o->ranks; i++) {
		if (!report_part(&shared->rank[i], after, &m))
			return;
		if (i == 0)
			fprintf(out,
				"\n%-7s %6s %8s %8s %8s %8s %8s %9s  (ms a step)\n",
				after		   ? f->over ? "during" : "after"
					: f->begun ? "before"
						   : "rank",
				"steps", "step", "input", "work", "wait", "cpu",
				"run queue");
		fprintf(out, "%c h%-4lld %6llu %8.2f %8.2f %8.2f %8.2f %8.2f %9.2f\n",
			f->begun && i == f->plan.rank ? '*' : ' ', (long long)i,
			(unsigned long long)m.steps, m.step, m.input, m.work, m.wait,
			m.cpu, m.runqueue);
	}
}

void
report_print(FILE *out, const struct workload_options *o, const struct fault *f,
	const struct workload_shared *shared)
{
	fprintf(out, "job %s: %lld ranks, %lld slices, fault %s\n", o->job,
		(long long)o->ranks, (long long)o->slices, o->slow);
	if (f->begun)
		fprintf(out, "fault began at step %llu on h%d\n",
			(unsigned long long)f->begun_step, f->plan.rank);
	if (f->over)
		fprintf(out, "and ended at step %llu\n",
			(unsigned long long)f->over_step);
	if (f->pauses > 0)
		fprintf(out, "stopped %llu times for %d ms\n",
			(unsigned long long)f->pauses, f->plan.amount);
	if (f->cgroups->version > 0)
		fprintf(out, "cgroups: version %d in %s\n", f->cgroups->version,
			f->cgroups->base);
	else
		fprintf(out, "cgroups: none (%s)\n", f->cgroups->why);
	report_print_part(out, o, f, shared, false);
	report_print_part(out, o, f, shared, true);
	fprintf(out, "\nloss: %.5f at the start, %.5f at the end\n",
		shared->rank[0].loss_first, shared->rank[0].loss_last);
}

static json_t *
report_part_json(const struct workload_progress *p, bool after)
{
	struct report_means m;

	if (!report_part(p, after, &m))
		return json_null();
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "steps",
		(json_int_t)m.steps, "step_seconds", m.step / 1e3, "input_seconds",
		m.input / 1e3, "work_seconds", m.work / 1e3, "wait_seconds",
		m.wait / 1e3, "cpu_seconds", m.cpu / 1e3, "runqueue_seconds",
		m.runqueue / 1e3);
}

static json_t *
report_fault_json(const struct fault *f)
{
	if (!f->begun)
		return json_null();
	return json_pack("{s:s, s:i, s:i, s:I, s:o, s:I}", "kind",
		workload_fault_name(f->plan.kind), "rank", f->plan.rank, "amount",
		f->plan.amount, "step", (json_int_t)f->begun_step, "end_step",
		f->over ? json_integer((json_int_t)f->over_step) : json_null(),
		"pauses", (json_int_t)f->pauses);
}

int
report_write(const char *path, const struct workload_options *o, const struct fault *f,
	const struct workload_shared *shared)
{
	char cgroup[320], host[32];
	json_t *root, *ranks = json_array();
	int rc;

	if (f->cgroups->version > 0)
		(void)snprintf(cgroup, sizeof(cgroup), "v%d", f->cgroups->version);
	else
		(void)snprintf(cgroup, sizeof(cgroup), "none: %s", f->cgroups->why);
	for (int64_t i = 0; i < o->ranks; i++) {
		(void)snprintf(host, sizeof(host), "h%lld", (long long)i);
		ls_json_append(&ranks,
			json_pack("{s:I, s:s, s:o, s:o}", "rank", (json_int_t)i, "host",
				host, "before",
				report_part_json(&shared->rank[i], false), "after",
				report_part_json(&shared->rank[i], true)));
	}
	root = json_pack("{s:s, s:I, s:I, s:s, s:s, s:o, s:f, s:f, s:o}", "job", o->job,
		"slices", (json_int_t)o->slices, "steps",
		(json_int_t)shared->rank[0].at_end.steps, "slow", o->slow, "cgroup",
		cgroup, "fault", report_fault_json(f), "loss_first",
		shared->rank[0].loss_first, "loss_last", shared->rank[0].loss_last,
		"ranks", ranks);
	if (root == NULL)
		return -ENOMEM;
	rc = json_dump_file(root, path, JSON_INDENT(2)) == 0 ? 0 : -EIO;
	json_decref(root);
	return rc;
}
