/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent/client/lockstep.h"
#include "proto/base/clock.h"
#include "deploy/demo/workload/data.h"
#include "deploy/demo/workload/model.h"
#include "deploy/demo/workload/reduce.h"

enum { LOSS_STEPS = 10 }; /* over which the first and the last loss are averaged */

struct rank {
	const struct workload_options *options;
	const struct workload_fault *fault;
	const struct rank_place *place;
	struct workload_shared *shared;
	struct workload_progress *progress;
	struct model *model;
	struct data_reader reader;
	struct reduce_ring ring, leaders;
	int schedstat_fd, truth_fd;
	uint64_t told_ns; /* what the truth file has been told of */
	uint64_t begun_ns;
	struct workload_sums sums;
	double last_loss[LOSS_STEPS];
};

/* On a CPU and waiting for one, ns. Zeros where the kernel keeps no schedstat. */
static void
rank_read_schedstat(struct rank *r)
{
	char text[128];
	ssize_t len = pread(r->schedstat_fd, text, sizeof(text) - 1, 0);
	unsigned long long cpu, wait;

	if (len <= 0)
		return;
	text[len] = '\0';
	if (sscanf(text, "%llu %llu", &cpu, &wait) == 2) {
		r->sums.cpu_ns = cpu;
		r->sums.runqueue_ns = wait;
	}
}

/* One line a step: its number, and how long this rank was on a CPU or waited for one,
 * ns. */
static void
rank_tell_truth(struct rank *r, uint64_t step)
{
	char line[64];
	uint64_t own_ns;
	int len;

	if (r->truth_fd < 0)
		return;
	rank_read_schedstat(r);
	own_ns = r->sums.cpu_ns + r->sums.runqueue_ns;
	len = snprintf(line, sizeof(line), "%llu %llu\n", (unsigned long long)step,
		(unsigned long long)(own_ns - r->told_ns));
	r->told_ns = own_ns;
	if (write(r->truth_fd, line, (size_t)len) != len) {
		close(r->truth_fd); /* a truth with holes is none */
		r->truth_fd = -1;
	}
}

static void
rank_snapshot(struct rank *r, struct workload_sums *ret)
{
	rank_read_schedstat(r);
	r->sums.elapsed_ns = ls_clock_mono_ns() - r->begun_ns;
	*ret = r->sums;
}

/* Tells how long the neighbours kept us waiting since `before`. */
static void
rank_mark_peers(const struct rank *r, const struct reduce_ring *before)
{
	const struct rank_place *p = r->place;
	unsigned first = p->slice * p->slice_size, at = p->rank - first;
	unsigned prev = first + (at + p->slice_size - 1) % p->slice_size;
	unsigned next = first + (at + 1) % p->slice_size;

	if (p->slice_size < 2)
		return;
	lockstep_peer(prev, (double)(r->ring.recv_wait_ns - before->recv_wait_ns) / 1e9,
		-1);
	lockstep_peer(next, -1,
		(double)(r->ring.send_wait_ns - before->send_wait_ns) / 1e9);
}

/* Averages the gradients over all ranks: in the slice, then between leaders, then back.
 */
static int
rank_sync(struct rank *r)
{
	const struct reduce_ring before = r->ring;
	size_t count;
	float *v = model_gradients(r->model, &count);
	int rc;

	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	rc = reduce_all(&r->ring, v, count);
	lockstep_sync_exit();
	rank_mark_peers(r, &before);
	if (rc != 0 || r->place->slices < 2)
		return rc;
	if (r->ring.place == 0) {
		lockstep_sync_enter(LOCKSTEP_BARRIER_DCN);
		rc = reduce_all(&r->leaders, v, count);
		lockstep_sync_exit();
		lockstep_phase(LOCKSTEP_COLLECTIVE);
		return rc != 0 ? rc : reduce_broadcast(&r->ring, v, count);
	}
	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	rc = reduce_broadcast(&r->ring, v, count);
	lockstep_sync_exit();
	return rc;
}

static void
rank_keep_loss(struct rank *r, uint64_t step, double loss)
{
	uint64_t n = step < LOSS_STEPS ? step + 1 : LOSS_STEPS;
	double sum = 0;

	r->last_loss[step % LOSS_STEPS] = loss;
	for (unsigned i = 0; i < n; i++)
		sum += r->last_loss[i];
	r->progress->loss_last = sum / (double)n;
	if (step < LOSS_STEPS)
		r->progress->loss_first = r->progress->loss_last;
}

/* The device computes while the host waits, so a rank leaves its CPU mostly idle. */
static void
rank_wait_for_device(const struct workload_options *o)
{
	struct timespec left = { .tv_sec = o->device_ms / 1000,
		.tv_nsec = o->device_ms % 1000 * 1000000 };

	while (o->device_ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static int
rank_step(struct rank *r, uint64_t step)
{
	const struct workload_options *o = r->options;
	bool slow = r->fault->kind == FAULT_SLOW_INPUT &&
		r->fault->rank == (int)r->place->rank &&
		atomic_load(&r->shared->fault_on);
	uint64_t t_begin, t_input, t_compute, t_sync;
	double loss;
	int rc;

	lockstep_step_begin(step);
	lockstep_phase(LOCKSTEP_INPUT_WAIT);
	t_begin = ls_clock_mono_ns();
	rc = data_reader_read(&r->reader, step, slow ? (unsigned)r->fault->amount : 0);
	if (rc != 0)
		return rc;
	lockstep_phase(LOCKSTEP_COMPUTE);
	t_input = ls_clock_mono_ns();
	model_compute(r->model, r->reader.inputs, r->reader.labels);
	rank_wait_for_device(o);
	lockstep_work(LOCKSTEP_TOKENS, (double)o->batch);
	lockstep_work(LOCKSTEP_BATCH, (double)o->batch);
	t_compute = ls_clock_mono_ns();
	rc = rank_sync(r);
	if (rc != 0)
		return rc;
	lockstep_phase(LOCKSTEP_COMPUTE);
	t_sync = ls_clock_mono_ns();
	loss = model_update(r->model, (unsigned)o->ranks, 0.2f);
	lockstep_step_end();
	r->sums.steps++;
	r->sums.input_ns += t_input - t_begin;
	r->sums.wait_ns += t_sync - t_compute;
	r->sums.work_ns += t_compute - t_input + ls_clock_mono_ns() - t_sync;
	rank_keep_loss(r, step, loss);
	rank_tell_truth(r, step);
	return 0;
}

static int
rank_train(struct rank *r)
{
	uint64_t last = r->options->steps > 0 ? (uint64_t)r->options->steps
					      : UINT64_MAX,
		 step;
	int rc;

	rank_read_schedstat(r);
	r->told_ns = r->sums.cpu_ns + r->sums.runqueue_ns;
	r->begun_ns = ls_clock_mono_ns();
	for (step = 0; step < last; step++) {
		uint64_t stop = atomic_load(&r->shared->stop_after);

		if (stop > 0 && step >= stop)
			break;
		atomic_store(&r->progress->step, step);
		if (atomic_load(&r->shared->fault_on) &&
			!atomic_load(&r->progress->has_fault_sums)) {
			rank_snapshot(r, &r->progress->at_fault);
			atomic_store(&r->progress->has_fault_sums, true);
		} else if (atomic_load(&r->progress->has_fault_sums) &&
			!atomic_load(&r->progress->has_over_sums) &&
			!atomic_load(&r->shared->fault_on)) {
			rank_snapshot(r, &r->progress->at_over);
			atomic_store(&r->progress->has_over_sums, true);
		}
		rc = rank_step(r, step);
		if (rc != 0)
			return rc;
	}
	rank_snapshot(r, &r->progress->at_end);
	return 0;
}

static int
rank_open_marks(const struct rank *r)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;
	char dir[WORKLOAD_PATH_BYTES], host[16], slice[16];

	(void)snprintf(dir, sizeof(dir), "%s/h%u", r->options->steps_root,
		r->place->rank);
	(void)snprintf(host, sizeof(host), "h%u", r->place->rank);
	(void)snprintf(slice, sizeof(slice), "%u", r->place->slice);
	o.job = r->options->job;
	o.slice = slice;
	o.host = host;
	o.rank = (int)r->place->rank;
	o.world = (int)r->options->ranks;
	o.chips = 1;
	o.steps_dir = dir;
	return lockstep_open(&o);
}

static int
rank_open_truth(struct rank *r)
{
	char path[WORKLOAD_PATH_BYTES];

	if (r->options->truth[0] == '\0')
		return 0;
	(void)snprintf(path, sizeof(path), "%s/h%u", r->options->truth, r->place->rank);
	r->truth_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return r->truth_fd < 0 ? -errno : 0;
}

int
rank_run(const struct workload_options *o, const struct workload_fault *fault,
	const struct rank_place *p, struct workload_shared *shared)
{
	struct rank r = { .options = o,
		.fault = fault,
		.place = p,
		.shared = shared,
		.progress = &shared->rank[p->rank],
		.schedstat_fd = -1,
		.truth_fd = -1 };
	unsigned at = p->rank - p->slice * p->slice_size;
	size_t count;
	int rc;

	r.model = model_new(DATA_INPUTS, DATA_OUTPUTS, (unsigned)o->layers,
		(unsigned)o->width, (unsigned)o->batch, (uint64_t)o->seed);
	if (r.model == NULL)
		return -ENOMEM;
	(void)model_gradients(r.model, &count);
	rc = data_reader_open(&r.reader, o->data, p->rank, (unsigned)o->batch);
	if (rc == 0)
		rc = reduce_init(&r.ring, p->slice_size, at, p->next_fd, p->prev_fd,
			count);
	if (rc == 0)
		rc = reduce_init(&r.leaders, p->slices, p->slice, p->leader_next_fd,
			p->leader_prev_fd, count);
	r.ring.hold = r.leaders.hold = o->hold_ns > 0;
	if (rc == 0)
		rc = rank_open_truth(&r);
	if (rc == 0) {
		r.schedstat_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
		r.progress->ring_rc = rank_open_marks(&r);
		rc = rank_train(&r);
		lockstep_close();
	}
	if (r.schedstat_fd >= 0)
		close(r.schedstat_fd);
	if (r.truth_fd >= 0)
		close(r.truth_fd);
	reduce_fini(&r.leaders);
	reduce_fini(&r.ring);
	data_reader_close(&r.reader);
	model_free(r.model);
	return rc;
}
