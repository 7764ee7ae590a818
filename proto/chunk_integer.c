/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers of a column: the first one, the step all are apart by, what the best predictor
 * leaves of the rest, and that in Rice codes with the best k.
 */
#include "config.h"
#include "proto/chunk_column.h"

#define INTEGER_FLAG_RUN_K 4u /* a source that fails does so for some rows */
#define INTEGER_BASE_FINE 2u  /* of 0 to 4 the best on noisy40, as bench_chunk sees it */

/*
 * Predictors work on the multiples m (order 0) or on their differences (order 1), both called s: s[i] is
 * guessed as base + (s[i-1] - base) * halves / 2. These four are for levels with noise, for walks, for
 * counters, and for counters whose rate wanders. Other weights, and differences of differences, were
 * tried on noisy40 and on the counters of a host: they saved about a thousandth.
 */
struct integer_predictor {
	unsigned order;
	unsigned halves;
	bool has_base;
};

#define INTEGER_PREDICTORS 4u
static const struct integer_predictor integer_predictors[INTEGER_PREDICTORS] = {
	{ 0, 0, true },
	{ 0, 2, false },
	{ 1, 0, true },
	{ 1, 1, true },
};

/* The product may wrap: both sides wrap alike. */
static inline uint64_t
integer_guess(uint64_t s, uint64_t base, unsigned halves)
{
	return base + (uint64_t)((int64_t)((s - base) * halves) >> 1);
}

/* --- writing ----------------------------------------------------------------------- */

static uint64_t
integer_magnitude(uint64_t v)
{
	return v >> 63 ? 0 - v : v;
}

static uint64_t
integer_gcd(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Distances to the first value in units of their greatest common divisor, which is returned (0: none). */
static uint64_t
integer_to_multiples(const uint64_t *v, size_t n, uint64_t *m)
{
	uint64_t step = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		m[i] = v[i] - v[0];
		if (step != 1)
			step = integer_gcd(integer_magnitude(m[i]), step);
	}
	if (step > INT64_MAX)
		step = 1; /* 2^63: no divisor of a signed number */
	if (step > 1)
		for (i = 0; i < n; i++)
			m[i] = (uint64_t)((int64_t)m[i] / (int64_t)step);
	return step;
}

/* The lower median of signed numbers, by selection; the order of v is lost. */
static uint64_t
integer_median(uint64_t *v, size_t n)
{
	size_t low = 0, high = n - 1, want = (n - 1) / 2;

	while (low < high) {
		int64_t pivot = (int64_t)v[low + (high - low) / 2];
		size_t i = low, k = high;

		for (;;) {
			uint64_t t;

			while ((int64_t)v[i] < pivot)
				i++;
			while ((int64_t)v[k] > pivot)
				k--;
			if (i >= k)
				break;
			t = v[i];
			v[i++] = v[k];
			v[k--] = t;
		}
		if (want <= k)
			high = k;
		else
			low = k + 1;
	}
	return v[want];
}

/* The median of what a predictor of this order looks at: an outlier does not move it. */
static uint64_t
integer_base(struct ls_chunk_work *w, size_t n, unsigned order)
{
	size_t i;

	for (i = 1; i < n; i++)
		w->sorted[i - 1] = w->multiple[i] - (order == 0 ? 0 : w->multiple[i - 1]);
	return integer_median(w->sorted, n - 1);
}

/* Fills w->residual with n - 1 folded residuals; about their bits, in eighths. */
static uint64_t
integer_residuals(struct ls_chunk_work *w, size_t n, const struct integer_predictor *p,
	uint64_t base)
{
	const uint64_t *m = w->multiple;
	uint64_t last = p->order == 0 ? 0 : base, eighths = 0;
	size_t i;

	for (i = 1; i < n; i++) {
		uint64_t s = p->order == 0 ? m[i] : m[i] - m[i - 1];
		uint64_t u = ls_bits_fold(s - integer_guess(last, base, p->halves));
		unsigned len = ls_bits_length(u);

		/* a logarithm, linear between the powers of two */
		if (len > 0)
			eighths += 8 * len + (u << (64 - len) << 1 >> 61);
		w->residual[i - 1] = u;
		last = s;
	}
	return eighths;
}

/* Leaves the residuals of the best predictor in w->best. */
static unsigned
integer_choose_predictor(struct ls_chunk_work *w, size_t n, uint64_t *ret_base)
{
	uint64_t base[2] = { integer_base(w, n, 0), integer_base(w, n, 1) };
	uint64_t least = UINT64_MAX;
	unsigned i, choice = 0;

	for (i = 0; i < INTEGER_PREDICTORS; i++) {
		const struct integer_predictor *p = &integer_predictors[i];
		uint64_t b = p->has_base ? base[p->order] : 0, cost;

		cost = integer_residuals(w, n, p, b);
		if (p->has_base)
			cost += 8 * (uint64_t)ls_bits_number_cost(ls_bits_fold(b));
		if (cost < least) {
			uint64_t *t = w->best;

			w->best = w->residual;
			w->residual = t;
			least = cost;
			choice = i;
			*ret_base = b;
		}
	}
	return choice;
}

static uint64_t
integer_rice_cost(const uint64_t *u, size_t n, unsigned k)
{
	uint64_t bits = 0;
	size_t i;

	for (i = 0; i < n; i++)
		bits += ls_bits_rice_cost(u[i], k);
	return bits;
}

/* The k of the least cost, looked for from the mean length downhill. */
static unsigned
integer_choose_k(const uint64_t *u, size_t n, uint64_t *ret_bits)
{
	uint64_t lengths = 0, bits, other;
	unsigned k, step;
	size_t i;

	for (i = 0; i < n; i++)
		lengths += ls_bits_length(u[i]);
	k = n > 0 ? (unsigned)(lengths / n) : 0;
	k = k > 63 ? 63 : k;
	bits = integer_rice_cost(u, n, k);
	for (step = 0; step < 2; step++)
		for (;;) {
			unsigned next = step == 0 ? k - 1 : k + 1; /* -1 is beyond 63, too */

			if (next > 63)
				break;
			other = integer_rice_cost(u, n, next);
			if (other >= bits)
				break;
			bits = other;
			k = next;
		}
	*ret_bits = bits;
	return k;
}

/* Splits residuals into runs of zeros and what ends them, less one; there may be one run more. */
static size_t
integer_split_runs(const uint64_t *u, size_t n, uint64_t *run, uint64_t *other, size_t *ret_others)
{
	size_t runs = 0, others = 0, i;
	uint64_t zeros = 0;

	for (i = 0; i < n; i++) {
		if (u[i] == 0) {
			zeros++;
			continue;
		}
		run[runs++] = zeros;
		other[others++] = u[i] - 1;
		zeros = 0;
	}
	if (zeros > 0)
		run[runs++] = zeros;
	*ret_others = others;
	return runs;
}

/* How residuals are coded: all in Rice(k), or runs of zeros in Rice(run_k) between them. */
struct integer_code {
	bool runs;
	unsigned k, run_k;
};

/* Low bits of a base that are left out: where all residuals are coarse, it may be so, too. */
static unsigned
integer_base_shift(const struct integer_code *c)
{
	return !c->runs && c->k > INTEGER_BASE_FINE ? c->k - INTEGER_BASE_FINE : 0;
}

/* Works on w->best, the residuals; leaves runs and others in w->sorted and w->residual. */
static struct integer_code
integer_choose_code(struct ls_chunk_work *w, size_t n)
{
	uint64_t plain, run_bits, other_bits;
	size_t others, runs = integer_split_runs(w->best, n, w->sorted, w->residual, &others);
	struct integer_code c = { .runs = false };
	unsigned k;

	c.k = integer_choose_k(w->best, n, &plain);
	c.run_k = integer_choose_k(w->sorted, runs, &run_bits);
	k = integer_choose_k(w->residual, others, &other_bits);
	if (run_bits + other_bits + 6 < plain) {
		c.runs = true;
		c.k = k;
	}
	return c;
}

static void
integer_put_residuals(struct ls_bits_out *o, struct ls_chunk_work *w, size_t n,
	const struct integer_code *c)
{
	size_t others, runs, i;

	if (!c->runs) {
		for (i = 0; i < n; i++)
			ls_bits_put_rice(o, w->best[i], c->k);
		return;
	}
	runs = integer_split_runs(w->best, n, w->sorted, w->residual, &others);
	for (i = 0; i < runs; i++) {
		ls_bits_put_rice(o, w->sorted[i], c->run_k);
		if (i < others)
			ls_bits_put_rice(o, w->residual[i], c->k);
	}
}

/* What follows the step: code, predictor, base, residuals. */
static void
integer_put_rest(struct ls_bits_out *o, struct ls_chunk_work *w, size_t n)
{
	uint64_t base = 0, *t;
	unsigned i = integer_choose_predictor(w, n, &base), shift;
	const struct integer_predictor *p = &integer_predictors[i];
	struct integer_code c = integer_choose_code(w, n - 1);

	ls_bits_put(o, c.runs, 1);
	ls_bits_put(o, c.k, 6);
	if (c.runs)
		ls_bits_put(o, c.run_k, 6);
	ls_bits_put(o, i, 2);
	shift = integer_base_shift(&c);
	base = (uint64_t)((int64_t)(base + (1ull << shift >> 1)) >> shift);
	if (p->has_base)
		ls_bits_put_number(o, ls_bits_fold(base));
	if (p->has_base && shift > 0) {
		/* of the base as the reader has it */
		(void)integer_residuals(w, n, p, base << shift);
		t = w->best;
		w->best = w->residual;
		w->residual = t;
	}
	integer_put_residuals(o, w, n - 1, &c);
}

void
ls_chunk_put_integers(struct ls_bits_out *o, struct ls_chunk_work *w, const uint64_t *v, size_t n)
{
	uint64_t step = integer_to_multiples(v, n, w->multiple);

	ls_bits_put_number(o, ls_bits_fold(v[0]));
	if (n == 1)
		return;
	ls_bits_put(o, step == 0, 1);
	if (step == 0)
		return;
	ls_bits_put(o, step > 1, 1);
	if (step > 1)
		ls_bits_put_number(o, step);
	integer_put_rest(o, w, n);
}

void
ls_chunk_put_flags(struct ls_bits_out *o, const bool *flag, size_t n)
{
	size_t i, run = 0;

	ls_bits_put(o, flag[0], 1);
	for (i = 1; i <= n; i++, run++) {
		if (i < n && flag[i] == flag[i - 1])
			continue;
		ls_bits_put_rice(o, run, INTEGER_FLAG_RUN_K);
		run = SIZE_MAX; /* 0 after the loop's increment */
	}
}

/* --- reading ----------------------------------------------------------------------- */

/* Folded residuals into u[0..n). */
static bool
integer_get_runs(struct ls_bits_in *in, uint64_t *u, size_t n, const struct integer_code *c)
{
	size_t i = 0;

	while (i < n) {
		uint64_t zeros = ls_bits_get_rice(in, c->run_k);

		if (zeros > n - i)
			return false;
		memset(u + i, 0, (size_t)zeros * sizeof(*u));
		i += (size_t)zeros;
		if (i < n)
			u[i++] = ls_bits_get_rice(in, c->k) + 1;
	}
	return true;
}

/* From residuals to values, in place; v[0] is the first value. */
static void
integer_rebuild(uint64_t *v, size_t n, uint64_t step, const struct integer_predictor *p,
	uint64_t base)
{
	uint64_t first = v[0], m = 0, s = p->order == 0 ? 0 : base;
	size_t i;

	for (i = 1; i < n; i++) {
		s = ls_bits_unfold(v[i]) + integer_guess(s, base, p->halves);
		m = p->order == 0 ? s : m + s;
		v[i] = first + m * step;
	}
}

/* What follows the step. */
static bool
integer_get_rest(struct ls_bits_in *in, uint64_t *v, size_t n, uint64_t step)
{
	const struct integer_predictor *p;
	struct integer_code c = { 0 };
	uint64_t base = 0;
	size_t i;

	c.runs = ls_bits_get(in, 1) != 0;
	c.k = (unsigned)ls_bits_get(in, 6);
	if (c.runs)
		c.run_k = (unsigned)ls_bits_get(in, 6);
	p = &integer_predictors[ls_bits_get(in, 2)];
	if (p->has_base)
		base = ls_bits_unfold(ls_bits_get_number(in)) << integer_base_shift(&c);
	if (c.runs) {
		if (!integer_get_runs(in, v + 1, n - 1, &c))
			return false;
	} else {
		for (i = 1; i < n; i++)
			v[i] = ls_bits_get_rice(in, c.k);
	}
	integer_rebuild(v, n, step, p, base);
	return true;
}

bool
ls_chunk_get_integers(struct ls_bits_in *in, uint64_t *v, size_t n)
{
	uint64_t step = 1;
	size_t i;

	v[0] = ls_bits_unfold(ls_bits_get_number(in));
	if (n == 1)
		return true;
	if (ls_bits_get(in, 1) != 0) {
		for (i = 1; i < n; i++)
			v[i] = v[0];
		return true;
	}
	if (ls_bits_get(in, 1) != 0)
		step = ls_bits_get_number(in);
	return integer_get_rest(in, v, n, step);
}

bool
ls_chunk_get_flags(struct ls_bits_in *in, bool *flag, size_t n)
{
	bool now = ls_bits_get(in, 1) != 0;
	size_t i = 0;

	for (; i < n; now = !now) {
		uint64_t run = ls_bits_get_rice(in, INTEGER_FLAG_RUN_K);

		if (run >= n - i)
			return false;
		for (run++; run > 0; run--)
			flag[i++] = now;
	}
	return true;
}
