/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/clocks.h"

#include <math.h>
#include <string.h>

/* Until exchanges are far enough apart to say better, a clock may drift by so much. */
#define CLOCKS_UNKNOWN_DRIFT_PPB 50000.0
/* Beyond what the fit rests on, it may have changed by so much. */
#define CLOCKS_WANDER_PPB 5000.0

void
ls_clock_init(struct ls_clock *c, bool same_kernel)
{
	memset(c, 0, sizeof(*c));
	c->same = same_kernel;
}

bool
ls_clock_is_known(const struct ls_clock *c)
{
	return c->same || c->guessed || c->kept_count > 0 || c->in_window > 0;
}

/* The exchanges to fit: all kept ones and the best of this window. */
static size_t
clocks_points(const struct ls_clock *c, struct ls_clock_sample *points)
{
	size_t n = c->kept_count;

	memcpy(points, c->kept, n * sizeof(*points));
	if (c->in_window > 0)
		points[n++] = c->best;
	return n;
}

/* Drops exchanges more than twice as slow as the fastest, in place: the lower envelope.
 */
static size_t
clocks_envelope(struct ls_clock_sample *points, size_t n, int64_t *ret_error)
{
	int64_t least = INT64_MAX;
	size_t i, good = 0;

	for (i = 0; i < n; i++) {
		if (points[i].error_ns < least)
			least = points[i].error_ns;
	}
	for (i = 0; i < n; i++) {
		if (points[i].error_ns <= 2 * least + 1000)
			points[good++] = points[i];
	}
	*ret_error = least;
	return good;
}

/* Line through the points by least squares; times and offsets from those of the first
 * point. */
static void
clocks_fit_line(struct ls_clock *c, const struct ls_clock_sample *p, size_t n,
	int64_t error_ns)
{
	double st = 0, so = 0, stt = 0, sto = 0, drift = 0, mean_t, mean_o, worst = 0;
	double span = (double)(p[n - 1].t_mono_ns - p[0].t_mono_ns);

	for (size_t i = 0; i < n; i++) {
		double t = (double)(p[i].t_mono_ns - p[0].t_mono_ns);
		double o = (double)(p[i].offset_ns - p[0].offset_ns);

		st += t;
		so += o;
		stt += t * t;
		sto += t * o;
	}
	mean_t = st / (double)n;
	mean_o = so / (double)n;
	stt -= st * mean_t;
	sto -= st * mean_o;
	/* Both ends of the line may be wrong by the error. */
	c->drift_error_ppb = span > 0 ? 2e9 * (double)error_ns / span : INFINITY;
	if (c->drift_error_ppb < CLOCKS_UNKNOWN_DRIFT_PPB && stt > 0)
		drift = sto / stt * 1e9;
	else
		c->drift_error_ppb = CLOCKS_UNKNOWN_DRIFT_PPB;
	drift = fmax(-LS_CLOCK_DRIFT_MAX_PPB, fmin(LS_CLOCK_DRIFT_MAX_PPB, drift));
	for (size_t i = 0; i < n; i++) {
		double t = (double)(p[i].t_mono_ns - p[0].t_mono_ns) - mean_t;
		double o = (double)(p[i].offset_ns - p[0].offset_ns) - mean_o;

		worst = fmax(worst, fabs(o - t * drift / 1e9));
	}
	c->fit.ref_mono_ns = p[0].t_mono_ns + llround(mean_t);
	c->fit.offset_ns = p[0].offset_ns + llround(mean_o);
	c->fit.drift_ppb = llround(drift);
	c->fit.uncertainty_ns = error_ns + llround(worst);
	c->fit_until_ns = p[n - 1].t_mono_ns;
}

static void
clocks_fit(struct ls_clock *c)
{
	struct ls_clock_sample points[LS_CLOCK_WINDOWS + 1];
	int64_t error_ns;
	size_t n = clocks_points(c, points);

	n = clocks_envelope(points, n, &error_ns);
	clocks_fit_line(c, points, n, error_ns);
}

/* The best exchange of a full window is kept; the oldest kept one makes room. */
static void
clocks_keep(struct ls_clock *c)
{
	if (c->kept_count == LS_CLOCK_WINDOWS) {
		memmove(c->kept, c->kept + 1,
			(LS_CLOCK_WINDOWS - 1) * sizeof(c->kept[0]));
		c->kept_count--;
	}
	c->kept[c->kept_count++] = c->best;
	c->in_window = 0;
}

int
ls_clock_sample(struct ls_clock *c, const struct ls_wire_stamps *s)
{
	struct ls_clock_sample x;
	int64_t there, back, trip;
	bool better;

	if (s->t1 > LS_WIRE_TIME_MAX_NS || s->t2 > LS_WIRE_TIME_MAX_NS ||
		s->t3 > LS_WIRE_TIME_MAX_NS || s->t4 > LS_WIRE_TIME_MAX_NS ||
		s->t4 < s->t1 || s->t3 < s->t2 || s->t4 - s->t1 < s->t3 - s->t2)
		return -LS_ERANGE;
	there = (int64_t)s->t2 - (int64_t)s->t1;
	back = (int64_t)s->t3 - (int64_t)s->t4;
	trip = (int64_t)(s->t4 - s->t1) - (int64_t)(s->t3 - s->t2);
	x.t_mono_ns = (int64_t)(s->t1 + (s->t4 - s->t1) / 2);
	x.offset_ns = there + (back - there) / 2;
	x.error_ns = trip / 2;
	better = c->in_window == 0 || x.error_ns < c->best.error_ns;
	if (better)
		c->best = x;
	c->in_window++;
	c->guessed = false;
	if (!c->same && better) /* else the points are those of the last fit */
		clocks_fit(c);
	if (c->in_window == LS_CLOCK_WINDOW)
		clocks_keep(c);
	return 0;
}

void
ls_clock_guess(struct ls_clock *c, uint64_t t_send_mono_ns, uint64_t t_receive_mono_ns)
{
	if (c->same || c->in_window > 0 || c->kept_count > 0)
		return;
	c->guessed = true;
	c->fit.ref_mono_ns = (int64_t)t_send_mono_ns;
	c->fit.offset_ns = (int64_t)t_receive_mono_ns - (int64_t)t_send_mono_ns;
	c->fit.drift_ppb = 0;
	c->fit.uncertainty_ns = LS_CLOCK_GUESS_NS;
	c->drift_error_ppb = CLOCKS_UNKNOWN_DRIFT_PPB;
	c->fit_until_ns = c->fit.ref_mono_ns;
}

int
ls_clock_map(const struct ls_clock *c, int64_t t_mono_ns, int64_t anchor_ns,
	struct ls_store_map *ret_map)
{
	struct ls_store_map map = { .offset_ns = anchor_ns };
	double away, beyond;

	if (!ls_clock_is_known(c))
		return -LS_EABSENT;
	if (!c->same) {
		map = c->fit;
		map.offset_ns += anchor_ns;
		away = fabs((double)(t_mono_ns - c->fit.ref_mono_ns)) / 1e9;
		beyond = fmax(0, (double)(t_mono_ns - c->fit_until_ns)) / 1e9;
		map.uncertainty_ns +=
			llround(away * c->drift_error_ppb + beyond * CLOCKS_WANDER_PPB);
	}
	*ret_map = map;
	return 0;
}
