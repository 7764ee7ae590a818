/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading integers of a column: what everything that looks into stored series waits
 * for. The stream is kept in a local copy for a column, so that it lives in registers,
 * and several residuals are cut from one look at it, with one question for all whether
 * that was right.
 */
#include "config.h"
#include "proto/chunk/chunk_integer.h"

/* up to here four residuals fit into LS_BITS_READY, as a rule */
#define INTEGER_FOUR_K 11u
#define INTEGER_TWO_K 25u

/* The next residual in Rice(k), of bits that are ready. */
static inline __attribute__((always_inline)) uint64_t
integer_cut(int64_t *ready, unsigned *used, unsigned k, uint64_t mask)
{
	unsigned q = (unsigned)__builtin_ctzll((uint64_t)*ready);
	uint64_t low;

	*ready >>= q;
	low = ((uint64_t)*ready & mask) >> 1;
	*ready >>= k + 1;
	*used += q;
	return ((uint64_t)q << k) + low;
}

/*
 * `group` residuals in Rice(k), two or four; inlined for both. Bits that are not ready
 * are taken for ones, so that no word is zero; who uses one of them comes out above the
 * limit, as does who has LS_RICE_LIMIT zeros. Then, seldom, they are read one by one.
 */
static inline __attribute__((always_inline)) void
integer_get_group(struct ls_bits_in *in, uint64_t *u, unsigned group, unsigned k,
	unsigned limit, uint64_t mask)
{
	int64_t ready = (int64_t)(ls_bits_peek(in) | ~0ull << LS_BITS_READY);
	unsigned used = group * (k + 1), i;

	u[0] = integer_cut(&ready, &used, k, mask);
	u[1] = integer_cut(&ready, &used, k, mask);
	if (group > 2) {
		u[2] = integer_cut(&ready, &used, k, mask);
		u[3] = integer_cut(&ready, &used, k, mask);
	}
	if (__builtin_expect(used <= limit, 1)) {
		in->at += used;
		return;
	}
	for (i = 0; i < group; i++)
		u[i] = ls_bits_get_rice(in, k);
}

/* Bits that a group takes if none of it has LS_RICE_LIMIT zeros, and all are ready. */
static inline unsigned
integer_group_limit(unsigned group, unsigned k)
{
	unsigned most = group * (k + 1) + LS_RICE_LIMIT - 1;

	return most < LS_BITS_READY ? most : LS_BITS_READY;
}

/* The next residual in Rice(k), k <= LS_BITS_READY: a look for the zeros, one for the
 * rest. */
static inline __attribute__((always_inline)) uint64_t
integer_get_wide(struct ls_bits_in *in, unsigned k, uint64_t mask)
{
	unsigned q =
		(unsigned)__builtin_ctzll(ls_bits_peek(in) | 1ull << LS_RICE_LIMIT);
	uint64_t low;

	if (__builtin_expect(q == LS_RICE_LIMIT, 0))
		return ls_bits_get_rice(in, k);
	in->at += q + 1;
	low = ls_bits_peek(in) & mask;
	in->at += k;
	return ((uint64_t)q << k) + low;
}

/* n residuals, all in Rice(k). */
static void
integer_get_plain(struct ls_bits_in *in, uint64_t *u, size_t n, unsigned k)
{
	unsigned group = k <= INTEGER_FOUR_K ? 4 : 2,
		 limit = integer_group_limit(group, k);
	struct ls_bits_in r = *in;
	size_t i = 0;

	if (k <= INTEGER_FOUR_K)
		for (; i + 4 <= n; i += 4)
			integer_get_group(&r, u + i, 4, k, limit, (2ull << k) - 1);
	else if (k <= INTEGER_TWO_K)
		for (; i + 2 <= n; i += 2)
			integer_get_group(&r, u + i, 2, k, limit, (2ull << k) - 1);
	else if (k <= LS_BITS_READY)
		for (; i < n; i++)
			u[i] = integer_get_wide(&r, k, (1ull << k) - 1);
	for (; i < n; i++)
		u[i] = ls_bits_get_rice(&r, k);
	*in = r;
}

/* n residuals: how many are zero and one that is not, in turn. */
static bool
integer_get_runs(struct ls_bits_in *in, uint64_t *u, size_t n,
	const struct integer_code *c)
{
	struct ls_bits_in r = *in;
	uint64_t zeros = 0;
	size_t i = 0;

	memset(u, 0, n * sizeof(*u));
	while (i < n) {
		zeros = ls_bits_get_rice(&r, c->run_k);
		if (zeros >= n - i)
			break;
		i += (size_t)zeros;
		u[i++] = ls_bits_get_rice(&r, c->k) + 1;
		zeros = 0;
	}
	*in = r;
	return zeros <= n - i;
}

/* Unfolds n numbers, and adds to each. */
static void
integer_unfold_all(uint64_t *v, size_t n, uint64_t add)
{
	const integer_pair zero = { 0 };
	integer_pair a;
	size_t i = 0;

	for (; i + 2 <= n; i += 2) {
		memcpy(&a, v + i, sizeof(a));
		a = ((a >> 1) ^ (zero - (a & 1))) + add;
		memcpy(v + i, &a, sizeof(a));
	}
	for (; i < n; i++)
		v[i] = ls_bits_unfold(v[i]) + add;
}

/* From unfolded residuals to s, where the guess leans on the one before; the first
 * guess is base. */
static inline __attribute__((always_inline)) void
integer_unguess(uint64_t *v, size_t n, unsigned halves, uint64_t base)
{
	uint64_t off = 0; /* s less the base: its way to the next one is short */

	for (size_t i = 0; i < n; i++) {
		off = v[i] + integer_guess(off, 0, halves);
		v[i] = off + base;
	}
}

/* From s to values: times the step, summed up if s are differences. */
static void
integer_unstep(uint64_t *v, size_t n, uint64_t step, unsigned order)
{
	uint64_t first = v[0], m = 0;

	if (order == 0) {
		for (size_t i = 1; i < n; i++)
			v[i] = first + v[i] * step;
		return;
	}
	for (size_t i = 1; i < n; i++) {
		m += v[i];
		v[i] = first + m * step;
	}
}

/* From residuals to values, in place; v[0] is the first value. */
static void
integer_rebuild(uint64_t *v, size_t n, uint64_t step, unsigned predictor, uint64_t base)
{
	switch (predictor) {
	case 0:
		integer_unfold_all(v + 1, n - 1, step == 1 ? base + v[0] : base);
		if (step != 1)
			integer_unstep(v, n, step, 0);
		break;
	case 1:
		integer_unfold_all(v + 1, n - 1, 0);
		integer_unguess(v + 1, n - 1, integer_predictors[1].halves, 0);
		integer_unstep(v, n, step, 0);
		break;
	case 2:
		integer_unfold_all(v + 1, n - 1, base);
		integer_unstep(v, n, step, 1);
		break;
	default:
		integer_unfold_all(v + 1, n - 1, 0);
		integer_unguess(v + 1, n - 1, integer_predictors[3].halves, base);
		integer_unstep(v, n, step, 1);
	}
}

/* What follows the step, as residuals, with what to make of them. */
static inline __attribute__((always_inline)) bool
integer_get_residuals(struct ls_bits_in *in, uint64_t *v, size_t n,
	unsigned *ret_predictor, uint64_t *ret_base)
{
	struct integer_code c = { 0 };
	unsigned p;

	*ret_base = 0;

	c.runs = ls_bits_get(in, 1) != 0;
	c.k = (unsigned)ls_bits_get(in, 6);
	if (c.runs)
		c.run_k = (unsigned)ls_bits_get(in, 6);
	p = (unsigned)ls_bits_get(in, 2);
	if (integer_predictors[p].has_base)
		*ret_base = ls_bits_unfold(ls_bits_get_number(in))
			<< integer_base_shift(&c);
	if (!c.runs)
		integer_get_plain(in, v + 1, n - 1, c.k);
	else if (!integer_get_runs(in, v + 1, n - 1, &c))
		return false;
	*ret_predictor = p;
	return true;
}

bool
ls_chunk_get_integers(struct ls_bits_in *in, uint64_t *v, size_t n)
{
	uint64_t step = 1, base = 0;
	unsigned p = 0;

	v[0] = ls_bits_unfold(ls_bits_get_number(in));
	if (n == 1)
		return true;
	if (ls_bits_get(in, 1) != 0) {
		for (size_t i = 1; i < n; i++)
			v[i] = v[0];
		return true;
	}
	if (ls_bits_get(in, 1) != 0)
		step = ls_bits_get_number(in);
	if (!integer_get_residuals(in, v, n, &p, &base))
		return false;
	integer_rebuild(v, n, step, p, base);
	return true;
}

bool
ls_chunk_skip_integers(struct ls_bits_in *in, uint64_t *work, size_t n)
{
	uint64_t base = 0;
	unsigned p = 0;

	(void)ls_bits_get_number(in); /* the first value */
	if (n == 1 || ls_bits_get(in, 1) != 0)
		return true;
	if (ls_bits_get(in, 1) != 0)
		(void)ls_bits_get_number(in); /* the step */
	return integer_get_residuals(in, work, n, &p, &base);
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
