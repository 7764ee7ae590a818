/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing integers of a column: the first one, the step all are apart by, what the best
 * predictor leaves of the rest, and that in Rice codes with the best k.
 */
#include "config.h"
#include "proto/chunk/chunk_integer.h"

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

/* Distances to the first value in units of their greatest common divisor, which is
 * returned (0: none). */
static uint64_t
integer_to_multiples(const uint64_t *v, size_t n, uint64_t *m)
{
	uint64_t step = 0;

	for (size_t i = 0; i < n; i++) {
		m[i] = v[i] - v[0];
		if (step != 1)
			step = integer_gcd(integer_magnitude(m[i]), step);
	}
	if (step > INT64_MAX)
		step = 1; /* 2^63: no divisor of a signed number */
	if (step > 1)
		for (size_t i = 0; i < n; i++)
			m[i] = (uint64_t)((int64_t)m[i] / (int64_t)step);
	return step;
}

/* One of three, the one between; it only has to be cheap. */
static int64_t
integer_pivot(const uint64_t *v, size_t n)
{
	int64_t a = (int64_t)v[0], b = (int64_t)v[n / 2], c = (int64_t)v[n - 1];
	int64_t low = a < b ? a : b, high = a < b ? b : a;

	return c < low ? low : c > high ? high : c;
}

/*
 * The lower median of signed numbers, by selection without a jump that depends on a
 * value: noise cannot be foretold. What is in v and spare, both of n, is lost.
 */
static uint64_t
integer_median(uint64_t *v, uint64_t *spare, size_t n)
{
	size_t want = (n - 1) / 2;

	while (n > 1) {
		int64_t pivot = integer_pivot(v, n);
		size_t low = 0, high = 0, i;
		uint64_t *t;

		for (i = 0; i < n; i++) {
			uint64_t x = v[i];

			v[low] = x; /* low <= i */
			spare[high] = x;
			low += (int64_t)x < pivot;
			high += (int64_t)x > pivot;
		}
		if (want < low) {
			n = low;
			continue;
		}
		if (want < n - high)
			return (uint64_t)pivot;
		want -= n - high;
		n = high;
		t = v;
		v = spare;
		spare = t;
	}
	return v[0];
}

/* The median of what a predictor of this order looks at: an outlier does not move it.
 */
static uint64_t
integer_base(struct ls_chunk_work *w, size_t n, unsigned order)
{
	if (order == 0)
		memcpy(w->sorted, w->multiple + 1, (n - 1) * sizeof(*w->sorted));
	else
		for (size_t i = 1; i < n; i++)
			w->sorted[i - 1] = w->multiple[i] - w->multiple[i - 1];
	return integer_median(w->sorted, w->residual, n - 1);
}

/* The next folded residual. Inlined where the predictor is known. */
static inline __attribute__((always_inline)) uint64_t
integer_residual(const uint64_t *m, size_t i, const struct integer_predictor *p,
	uint64_t base, uint64_t *last)
{
	uint64_t s = p->order == 0 ? m[i] : m[i] - m[i - 1];
	uint64_t u = ls_bits_fold(s - integer_guess(*last, base, p->halves));

	*last = s;
	return u;
}

/* About the bits of n - 1 residuals, in eighths; anything above `least` if it is more
 * than that. */
static inline __attribute__((always_inline)) uint64_t
integer_eighths(const uint64_t *m, size_t n, const struct integer_predictor *p,
	uint64_t base, uint64_t least)
{
	uint64_t last = p->order == 0 ? 0 : base, eighths = 0;
	size_t i = 1, stop;

	while (i < n && eighths <= least) {
		for (stop = n - i > 32 ? i + 32 : n; i < stop; i++) {
			uint64_t u = integer_residual(m, i, p, base, &last);
			unsigned zeros = (unsigned)__builtin_clzll(u | 1);

			/* a logarithm, linear between the powers of two; none of 0 */
			eighths += (u << zeros << 1 >> 61) +
				(8 * (64 - zeros) & (0 - (uint64_t)(u != 0)));
		}
	}
	return eighths;
}

static inline __attribute__((always_inline)) void
integer_residuals_by(uint64_t *u, const uint64_t *m, size_t n,
	const struct integer_predictor *p, uint64_t base)
{
	uint64_t last = p->order == 0 ? 0 : base;

	for (size_t i = 1; i < n; i++)
		u[i - 1] = integer_residual(m, i, p, base, &last);
}

/* What a predictor costs, as integer_eighths has it. */
static uint64_t
integer_predictor_cost(const uint64_t *m, size_t n, unsigned predictor, uint64_t base,
	uint64_t least)
{
	switch (predictor) {
	case 0:
		return integer_eighths(m, n, &integer_predictors[0], base, least);
	case 1:
		return integer_eighths(m, n, &integer_predictors[1], base, least);
	case 2:
		return integer_eighths(m, n, &integer_predictors[2], base, least);
	default:
		return integer_eighths(m, n, &integer_predictors[3], base, least);
	}
}

/* Fills u with n - 1 folded residuals. */
static void
integer_residuals(uint64_t *u, const uint64_t *m, size_t n, unsigned predictor,
	uint64_t base)
{
	switch (predictor) {
	case 0:
		integer_residuals_by(u, m, n, &integer_predictors[0], base);
		break;
	case 1:
		integer_residuals_by(u, m, n, &integer_predictors[1], base);
		break;
	case 2:
		integer_residuals_by(u, m, n, &integer_predictors[2], base);
		break;
	default:
		integer_residuals_by(u, m, n, &integer_predictors[3], base);
	}
}

/* The cheapest predictor, of equals the first; its residuals are left in w->best. */
static unsigned
integer_choose_predictor(struct ls_chunk_work *w, size_t n, uint64_t *ret_base)
{
	/* a counter shows with the first that the others are not worth their time */
	static const unsigned order[INTEGER_PREDICTORS] = { 2, 0, 1, 3 };
	uint64_t base[2] = { integer_base(w, n, 0), integer_base(w, n, 1) };
	uint64_t least = UINT64_MAX;
	unsigned i, choice = INTEGER_PREDICTORS;

	for (i = 0; i < INTEGER_PREDICTORS; i++) {
		const struct integer_predictor *p = &integer_predictors[order[i]];
		uint64_t b = p->has_base ? base[p->order] : 0, cost;

		cost = integer_predictor_cost(w->multiple, n, order[i], b, least);
		if (p->has_base)
			cost += 8 * (uint64_t)ls_bits_number_cost(ls_bits_fold(b));
		if (cost < least || (cost == least && order[i] < choice)) {
			least = cost;
			choice = order[i];
			*ret_base = b;
		}
	}
	integer_residuals(w->best, w->multiple, n, choice, *ret_base);
	return choice;
}

/* What Rice(k) makes of n numbers up to max, in bits. */
static uint64_t
integer_rice_cost(const uint64_t *u, size_t n, unsigned k, uint64_t max)
{
	uint64_t bits = 0;
	integer_pair a, sum = { 0 };
	size_t i = 0;

	if (max >> k >= LS_RICE_LIMIT) {
		for (; i < n; i++)
			bits += ls_bits_rice_cost(u[i], k);
		return bits;
	}
	for (; i + 2 <= n; i += 2) {
		memcpy(&a, u + i, sizeof(a));
		sum += a >> k;
	}
	for (; i < n; i++)
		bits += u[i] >> k;
	return bits + sum[0] + sum[1] + n * (k + 1);
}

/* The k of the least cost, looked for from the mean length downhill. */
static unsigned
integer_choose_k(const uint64_t *u, size_t n, uint64_t *ret_bits)
{
	uint64_t lengths = 0, max = 0, bits, other;
	unsigned k, step;

	for (size_t i = 0; i < n; i++) {
		lengths += 64 - (uint64_t)__builtin_clzll(u[i] | 1) -
			(uint64_t)(u[i] == 0);
		max = u[i] > max ? u[i] : max;
	}
	k = n > 0 ? (unsigned)(lengths / n) : 0;
	k = k > 63 ? 63 : k;
	bits = integer_rice_cost(u, n, k, max);
	for (step = 0; step < 2; step++)
		for (;;) {
			/* -1 is beyond 63, too */
			unsigned next = step == 0 ? k - 1 : k + 1;

			if (next > 63)
				break;
			other = integer_rice_cost(u, n, next, max);
			if (other >= bits)
				break;
			bits = other;
			k = next;
		}
	*ret_bits = bits;
	return k;
}

/* Splits residuals into runs of zeros and what ends them, less one; there may be one
 * run more. */
static size_t
integer_split_runs(const uint64_t *u, size_t n, uint64_t *run, uint64_t *other,
	size_t *ret_others)
{
	size_t runs = 0, i;
	uint64_t zeros = 0;

	for (i = 0; i < n; i++) {
		run[runs] = zeros; /* goes on, unless this one ends it */
		other[runs] = u[i] - 1;
		runs += u[i] != 0;
		zeros = u[i] == 0 ? zeros + 1 : 0;
	}
	*ret_others = runs;
	if (zeros > 0)
		run[runs++] = zeros;
	return runs;
}

/* Works on w->best, the residuals; leaves runs and others in w->sorted and w->residual.
 */
static struct integer_code
integer_choose_code(struct ls_chunk_work *w, size_t n)
{
	uint64_t plain, run_bits, other_bits;
	size_t others,
		runs = integer_split_runs(w->best, n, w->sorted, w->residual, &others);
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
	uint64_t base = 0;
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
	if (p->has_base && shift > 0) /* of the base as the reader has it */
		integer_residuals(w->best, w->multiple, n, i, base << shift);
	integer_put_residuals(o, w, n - 1, &c);
}

void
ls_chunk_put_integers(struct ls_bits_out *o, struct ls_chunk_work *w, const uint64_t *v,
	size_t n)
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
