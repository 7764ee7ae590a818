/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/residual/replica.h"
#include "collector/engine/engine_state.h"
#include "collector/engine/attribute/evidence.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stdlib.h>

void
ls_replica_fini(struct ls_replica *r)
{
	free(r->worker);
	free(r->line);
	*r = (struct ls_replica){ 0 };
}

/* --- records into windows ------------------------------------------------- */

int
ls_replica_put(struct ls_job *j, struct ls_engine_worker *w, const struct ls_record *r,
	int64_t now_us)
{
	int64_t end_us = ls_steps_end_us(r);
	uint64_t window = ls_window_at(end_us, j->replica.width_log2);
	int rc;

	if (w->window != 0 && end_us <= w->end_us)
		return -LS_EDUPLICATE;
	rc = ls_steps_put(&j->steps, w->slot, j->count, window, r, now_us);
	if (rc == 0 || rc == -LS_ESTALE) {
		w->window = window;
		w->end_us = end_us;
	}
	return rc;
}

void
ls_replica_close(const struct ls_engine *e, const struct ls_job *j, struct ls_row *row)
{
	LS_CELLS (row, c) {
		const struct ls_engine_worker *w =
			&e->workers[j->slots[c - row->cells]];

		/* Replay is given whole ones. */
		if (!j->manual && w->window <= row->step && !ls_worker_is_gone(w)) {
			c->present = false;
			row->reported--;
		} else {
			ls_steps_means(c);
		}
	}
}

/* --- what kind of job it is ----------------------------------------------- */

/* How far apart steps of one number are: those that hold a collective in common last
 * equally long. */
static bool
replica_differ(struct ls_job *j, const struct ls_row *row)
{
	double *v = j->room.a, centre;
	size_t n = 0;

	LS_CELLS (row, c)
		v[n++] = (double)c->duration_s;
	centre = ls_stats_median(v, n);
	return LS_MAD_TO_SIGMA * ls_stats_mad(v, n, centre) >= LS_VISIBLE * centre;
}

/* Does a row of one step number say that its workers do not wait for each other? */
static bool
replica_row_is_apart(const struct ls_engine *e, struct ls_job *j,
	const struct ls_row *row)
{
	int64_t begun_us = INT64_MIN, ended_us = INT64_MAX;
	size_t in = 0;
	double err_s = 0;

	LS_WORKERS (e, j, w) {
		const struct ls_cell *c =
			w->slot < row->cell_count ? &row->cells[w->slot] : NULL;
		int64_t end_us;

		if (c == NULL || !c->present)
			continue;
		if (c->has_wait || c->has_enter ||
			w->info.step_source != LS_STEP_MARKER)
			return false; /* as the first cell of most jobs says */
		in++;
		end_us = c->begin_us + (int64_t)((double)c->duration_s * 1e6);
		begun_us = c->begin_us > begun_us ? c->begin_us : begun_us;
		ended_us = end_us < ended_us ? end_us : ended_us;
		err_s = fmax(err_s, w->clock_err_s); /* NaN is not taken */
	}
	/* who has ended counts: replay does not know */
	if (in < j->count && 2 * in <= j->count)
		return in > 0;
	/* order is claimed beyond three times what the two clocks may be off */
	return in >= 2 &&
		((double)(begun_us - ended_us) * 1e-6 > LS_SIGMAS * M_SQRT2 * err_s ||
			replica_differ(j, row));
}

static bool
replica_waits(const struct ls_cell *c)
{
	return c->has_wait;
}

/* Everything that was learned was of steps of another kind, and what was told of them holds as after another attempt. */
static void
replica_turn(struct ls_engine *e, struct ls_job *j, bool on, int64_t now_us)
{
	struct ls_replica r = { .on = on, .turns = j->replica.turns + 1 };
	double step_s = j->detect.step_s;

	while (step_s > (double)(1u << r.width_log2) &&
		r.width_log2 < LS_WINDOW_LOG2_MAX)
		r.width_log2++;
	if (j->detect.ready)
		ls_findings_clear_job(e, j, LS_REASON_ATTEMPT_ENDED, now_us);
	ls_job_relearn(j);
	ls_job_drop_rows(j);
	ls_replica_fini(&j->replica);
	j->replica = r;
	j->steps.next = on ? ls_window_at(now_us < 0 ? 0 : now_us, r.width_log2) + 1
			   : 0; /* windows that begin from now on */
	LS_WORKERS (e, j, w) {
		w->missed = 0;
		w->window = 0;
	}
	j->active_known = false;
}

void
ls_replica_watch(struct ls_engine *e, struct ls_job *j, const struct ls_row *row,
	int64_t now_us)
{
	struct ls_replica *r = &j->replica;
	/* do most workers of a window wait for others after all? */
	bool other = r->on ? ls_steps_mostly(row, replica_waits)
			   : replica_row_is_apart(e, j, row);

	r->rows = other ? r->rows + 1 : 0;
	if (r->rows >= LS_DETECT_WARM / 2 && r->turns < LS_MANY)
		replica_turn(e, j, !r->on, now_us);
}

/* --- what loads take ------------------------------------------------------ */

/* Bin of a load; -1: none, or beyond all bins. */
static int
replica_bin(const struct ls_replica *r, double load)
{
	double at = r->has_first && load > 0
		? floor(LS_REPLICA_OCTAVE * log2(load)) - r->first_bin
		: -1;

	return at >= 0 && at < LS_REPLICA_BINS ? (int)at : -1;
}

/* Bins count from where the usual load is in the middle. */
static void
replica_place_bins(struct ls_job *j, const struct ls_row *row)
{
	size_t n = 0;

	LS_CELLS (row, c)
		if (c->work > 0)
			j->room.a[n++] = (double)c->work;
	if (n < LS_PEERS)
		return;
	j->replica.first_bin =
		(int)floor(LS_REPLICA_OCTAVE * log2(ls_stats_median(j->room.a, n))) -
		LS_REPLICA_BINS / 2;
	j->replica.has_first = true;
}

/* Room for the workers of now and a line a role; false: no memory, nobody is judged. */
static bool
replica_reserve(struct ls_job *j)
{
	struct ls_replica *r = &j->replica;

	if (ls_mem_widen((void **)&r->worker, &r->capacity, j->capacity,
		    sizeof(*r->worker)) != 0)
		return false;
	if (r->lines < j->roles.count) {
		if (ls_mem_resize((void **)&r->line, j->roles.count,
			    sizeof(*r->line)) != 0)
			return false;
		for (; r->lines < j->roles.count; r->lines++)
			for (size_t b = 0; b < LS_REPLICA_BINS; b++)
				r->line[r->lines].load[b] = r->line[r->lines].own_s[b] =
					NAN;
	}
	return true;
}

static void
replica_learn(struct ls_job *j, const struct ls_row *row)
{
	struct ls_replica *r = &j->replica;
	bool halve = ++r->windows % LS_DETECT_ADAPT == 0;

	LS_EACH (const struct ls_cell, c, row->cells, row->cell_count) {
		struct ls_replica_bin *bin = r->worker[c - row->cells].bin;
		int at = c->present ? replica_bin(r, (double)c->work) : -1;

		if (at >= 0) {
			bin[at].n++;
			bin[at].load += c->work;
			bin[at].own_s += c->own_s;
		}
		LS_EACH (struct ls_replica_bin, b, bin, halve ? LS_REPLICA_BINS : 0) {
			b->n /= 2;
			b->load /= 2;
			b->own_s /= 2;
		}
	}
}

/* What the lines say of a load; NaN: no peers were there. */
static double
replica_expect(const struct ls_replica *r, const struct ls_replica_line *l, double load)
{
	int bin = replica_bin(r, load);
	int low = bin, high = bin;
	double x, y, slope;

	if (bin < 0)
		return NAN;
	while (low >= 0 && !(l->load[low] <= load))
		low--;
	while (high < LS_REPLICA_BINS && !(l->load[high] > load))
		high++;
	/* at the rim: as far as its last bin goes */
	if (low < 0 || high >= LS_REPLICA_BINS) {
		int rim = low < 0 ? high : low, next = low < 0 ? rim + 1 : rim - 1;

		if (rim != bin)
			return NAN;
		while (next >= 0 && next < LS_REPLICA_BINS && isnan(l->load[next]))
			next += low < 0 ? 1 : -1;
		if (next < 0 || next >= LS_REPLICA_BINS)
			return (double)l->own_s[rim]; /* all have this load */
		low = rim;
		high = next;
	} else if ((unsigned)(high - low) > LS_REPLICA_OCTAVE) {
		return NAN;
	}
	x = (double)(l->load[high] - l->load[low]);
	y = (double)(l->own_s[high] - l->own_s[low]);
	slope = x != 0 ? y / x : 0;
	return (double)l->own_s[low] + slope * (load - (double)l->load[low]);
}

/* What each replica needed on average in a bin: loads in room.a, and in room.b own work beyond
 * the line, if there is one yet. Returns how many were there. */
static size_t
replica_means(struct ls_job *j, const uint32_t *slots, size_t m, size_t b,
	const struct ls_replica_line *line)
{
	size_t n = 0;

	for (size_t i = 0; i < m; i++) {
		const struct ls_replica_bin *bin = &j->replica.worker[slots[i]].bin[b];
		double load = (double)(bin->load / bin->n);
		double expected =
			line == NULL ? 0 : replica_expect(&j->replica, line, load);

		if (!((double)bin->n > LS_QUARTER) || isnan(expected))
			continue;
		j->room.a[n] = load;
		j->room.b[n++] = (double)(bin->own_s / bin->n) - expected;
	}
	return n;
}

/* First: medians over replicas, bin by bin. Then: replicas had other loads within a bin, and what
 * is left of that goes along the line. */
static void
replica_line(struct ls_job *j, const uint32_t *slots, size_t m,
	struct ls_replica_line *l)
{
	struct ls_replica_line first;

	for (size_t b = 0; b < LS_REPLICA_BINS; b++) {
		size_t n = replica_means(j, slots, m, b, NULL);

		l->load[b] = n < LS_PEERS ? NAN : (float)ls_stats_median(j->room.a, n);
		l->own_s[b] = n < LS_PEERS ? NAN : (float)ls_stats_median(j->room.b, n);
	}
	first = *l;
	for (size_t b = 0; b < LS_REPLICA_BINS; b++) {
		size_t n = isnan(first.load[b]) ? 0
						: replica_means(j, slots, m, b, &first);

		if (n >= LS_PEERS)
			l->own_s[b] += (float)ls_stats_median(j->room.b, n);
	}
}

static void
replica_lines(struct ls_job *j)
{
	for (uint32_t role = 0; role < j->room.role_count; role++) {
		const uint32_t *slots = &j->room.sorted[j->room.start[role]];
		size_t m = j->room.start[role + 1] - j->room.start[role];

		if (m >= LS_PEERS)
			replica_line(j, slots, m, &j->replica.line[role]);
	}
}

/* --- a window ------------------------------------------------------------- */

static void
replica_totals(struct ls_job *j, const struct ls_row *row, struct ls_blame_step *totals)
{
	size_t n = 0;

	*totals = (struct ls_blame_step){ .net = { NAN, NAN, NAN },
		.wait_min_s = NAN,
		.wait_median_s = NAN,
		.last = SIZE_MAX,
		.second = SIZE_MAX,
		.costs = SIZE_MAX };
	LS_CELLS (row, c)
		j->room.a[n++] = (double)c->own_s;
	totals->used = n;
	totals->duration_s = ls_stats_median(j->room.a, n);
}

void
ls_replica_judge(struct ls_job *j, const struct ls_row *row,
	struct ls_blame_step *totals)
{
	struct ls_replica *r = &j->replica;
	double usual_s;

	replica_totals(j, row, totals);
	usual_s = j->detect.step_s > 0 ? j->detect.step_s : totals->duration_s;
	if (!r->has_first)
		replica_place_bins(j, row);
	if (!r->has_first || !replica_reserve(j))
		return;
	LS_CELLS (row, c) {
		size_t i = (size_t)(c - row->cells);

		r->worker[i].step = c->own_step + c->steps - 1;
		c->expected_s = (float)replica_expect(r, &r->line[j->roles.of[i]],
			(double)c->work);
		if (c->expected_s > 0)
			j->residuals[i].own_s = j->residuals[i].wait_s =
				(double)(c->own_s / c->expected_s - 1) * usual_s;
	}
	replica_learn(j, row);
	if (r->windows % LS_LOOK == 0)
		replica_lines(j);
}

/* --- of one replica ------------------------------------------------------- */

uint64_t
ls_replica_step(const struct ls_job *j, size_t slot)
{
	return slot < j->replica.capacity ? j->replica.worker[slot].step : 0;
}

uint64_t
ls_replica_step_in(const struct ls_job *j, size_t slot, uint64_t window)
{
	for (size_t i = 0; i < j->live_count; i++) {
		const struct ls_live_row *r = ls_job_row(j, i);
		const struct ls_cell *c = ls_row_cell(r, slot);

		if (r->row.step >= window && c != NULL)
			return c->own_step;
	}
	return ls_replica_step(j, slot);
}

void
ls_replica_cost(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	const struct ls_gathered *g, struct ls_finding *f, uint64_t step)
{
	int32_t own = e->workers[j->slots[slot]].info.chips;
	double slower = j->detect.step_s > 0 ? g->gap_s / j->detect.step_s : 0;
	double lost = 1 - 1 / (1 + slower);

	f->before_s = NAN; /* it depends on the load */
	ls_findings_price(e, j, f, g->step_s, g->step_s * lost);
	f->share = f->chips > 0 ? (double)own / f->chips : 1 / (double)j->count;
	f->chips_lost = own * lost;
	f->severity = ls_finding_severity(1 / (1 - f->share * lost));
	if (f->severity == LS_SEVERITY_INFO && lost >= LS_LARGE)
		f->severity = LS_SEVERITY_WARNING;
	ls_findings_account(f, f->blame_s, own, step);
}
