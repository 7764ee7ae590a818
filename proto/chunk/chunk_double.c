/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubles of a column as integers: decimals times a power of ten where that is exact,
 * else their bits in the order of their values. The few values of a column of decimals
 * that are none are kept beside it.
 */
#include "config.h"
#include "proto/chunk/chunk_column.h"

#include <math.h>

#define DOUBLE_DECIMALS_MAX 22u /* powers of ten up to here are exact */
#define DOUBLE_AS_BITS 31u /* in place of the decimals */
#define DOUBLE_DECIMAL_BITS 3.32 /* log2(10) */
#define DOUBLE_ODD_BITS 80.0 /* eight bytes, its place, and a disturbed neighbour */
#define DOUBLE_EXACT 9007199254740992.0 /* 2^53: integers up to here are exact */
#define DOUBLE_INT64_LIMIT 9223372036854775808.0 /* 2^63 */

static const double double_power[DOUBLE_DECIMALS_MAX + 1] = { 1e0, 1e1, 1e2, 1e3, 1e4,
	1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
	1e19, 1e20, 1e21, 1e22 };

static uint64_t
double_bits(double v)
{
	uint64_t b;

	memcpy(&b, &v, sizeof(b));
	return b;
}

/* Bits as an integer that grows with the value. Its own inverse. */
static uint64_t
double_order(uint64_t bits)
{
	return bits ^ (0 - (bits >> 63)) >> 1;
}

double
ls_chunk_from_integer(uint64_t integer, unsigned decimals)
{
	double v;

	if (decimals == 0)
		return (double)(int64_t)integer;
	if (decimals != DOUBLE_AS_BITS)
		return (double)(int64_t)integer / double_power[decimals];
	integer = double_order(integer);
	memcpy(&v, &integer, sizeof(v));
	return v;
}

/* True if v is an integer divided by a power of ten, bit for bit. */
static inline bool
double_to(double v, unsigned decimals, uint64_t *ret_integer)
{
	double scaled = v * double_power[decimals];
	uint64_t integer;

	if (!(fabs(scaled) < (decimals == 0 ? DOUBLE_INT64_LIMIT : DOUBLE_EXACT)))
		return false; /* NaN, too */
	integer = (uint64_t)(int64_t)(decimals == 0 ? scaled
						    : scaled + copysign(0.5, scaled));
	if (double_bits(ls_chunk_from_integer(integer, decimals)) != double_bits(v))
		return false;
	*ret_integer = integer;
	return true;
}

/* Values of a column that may stay odd: each costs eight bytes and its place. */
static size_t
double_odd_max(size_t n)
{
	return n / 8;
}

/* Decimals that v needs; DOUBLE_AS_BITS if no number of them will do. */
static unsigned
double_needs(double v)
{
	uint64_t integer;

	for (unsigned d = 0; d <= DOUBLE_DECIMALS_MAX; d++) {
		if (double_to(v, d, &integer))
			return d;
		if (!(fabs(v) * double_power[d] < DOUBLE_EXACT))
			break; /* more decimals make it only longer */
	}
	return DOUBLE_AS_BITS;
}

/* The decimals of least cost: each makes all values longer, and leaves fewer of them
 * odd. */
unsigned
ls_chunk_decimals(const double *v, size_t n)
{
	size_t need[DOUBLE_AS_BITS + 1] = { 0 }, i, odd = n;
	double cost, least = INFINITY;
	unsigned d, choice = 0;

	for (i = 0; i < n; i++) {
		need[double_needs(v[i])]++;
		if (need[DOUBLE_AS_BITS] > double_odd_max(n))
			return DOUBLE_AS_BITS;
	}
	for (d = 0; d <= DOUBLE_DECIMALS_MAX; d++) {
		odd -= need[d];
		cost = (double)n * d * DOUBLE_DECIMAL_BITS +
			(double)odd * DOUBLE_ODD_BITS;
		if (cost < least) {
			least = cost;
			choice = d;
		}
	}
	return choice;
}

/* The integers of v and, in w->odd, which values are none; false if too many are. */
static bool
double_to_integers(struct ls_chunk_work *w, const double *v, size_t n,
	unsigned decimals, size_t *ret_integers)
{
	size_t i, integers = 0;

	for (i = 0; i < n; i++) {
		w->odd[i] = !double_to(v[i], decimals, &w->integer[integers]);
		integers += !w->odd[i];
	}
	*ret_integers = integers;
	return n - integers <= double_odd_max(n);
}

void
ls_chunk_put_doubles(struct ls_bits_out *o, struct ls_chunk_work *w, const double *v,
	size_t n)
{
	unsigned decimals = ls_chunk_decimals(v, n);
	size_t i, integers = n;

	if (decimals == DOUBLE_AS_BITS ||
		!double_to_integers(w, v, n, decimals, &integers)) {
		for (i = 0; i < n; i++)
			w->integer[i] = double_order(double_bits(v[i]));
		ls_bits_put(o, DOUBLE_AS_BITS, 5);
		ls_chunk_put_integers(o, w, w->integer, n);
		return;
	}
	ls_bits_put(o, decimals, 5);
	ls_bits_put(o, integers < n, 1);
	if (integers < n) {
		ls_chunk_put_flags(o, w->odd, n);
		for (i = 0; i < n; i++)
			if (w->odd[i])
				ls_bits_put_low(o, double_bits(v[i]), 64);
	}
	ls_chunk_put_integers(o, w, w->integer, integers);
}

/* Puts odd values and those of integers into their places. */
static bool
double_get_odd(struct ls_bits_in *in, struct ls_chunk_work *w, double *v, size_t n,
	unsigned decimals)
{
	size_t i, integers = 0;

	if (!ls_chunk_get_flags(in, w->odd, n))
		return false;
	for (i = 0; i < n; i++) {
		uint64_t bits;

		integers += !w->odd[i];
		if (!w->odd[i])
			continue;
		bits = ls_bits_get(in, 64);
		memcpy(&v[i], &bits, sizeof(bits));
	}
	if (integers == 0 || !ls_chunk_get_integers(in, w->integer, integers))
		return false;
	integers = 0;
	for (i = 0; i < n; i++)
		if (!w->odd[i])
			v[i] = ls_chunk_from_integer(w->integer[integers++], decimals);
	return true;
}

/* Without a branch for each value, and two at a time. */
void
ls_chunk_from_integers(const uint64_t *integer, size_t n, unsigned decimals,
	double *ret_values)
{
	double *v = ret_values;
	size_t i = 0;

	if (decimals == 0)
		for (; i + 2 <= n; i += 2) {
			v[i] = ls_chunk_from_integer(integer[i], 0);
			v[i + 1] = ls_chunk_from_integer(integer[i + 1], 0);
		}
	else if (decimals != DOUBLE_AS_BITS)
		for (; i + 2 <= n; i += 2) {
			v[i] = (double)(int64_t)integer[i] / double_power[decimals];
			v[i + 1] = (double)(int64_t)integer[i + 1] /
				double_power[decimals];
		}
	for (; i < n; i++)
		v[i] = ls_chunk_from_integer(integer[i], decimals);
}

bool
ls_chunk_get_doubles(struct ls_bits_in *in, struct ls_chunk_work *w, double *v,
	size_t n)
{
	unsigned decimals = (unsigned)ls_bits_get(in, 5);

	if (decimals > DOUBLE_DECIMALS_MAX && decimals != DOUBLE_AS_BITS)
		return false;
	if (decimals != DOUBLE_AS_BITS && ls_bits_get(in, 1) != 0)
		return double_get_odd(in, w, v, n, decimals);
	if (!ls_chunk_get_integers(in, w->integer, n))
		return false;
	ls_chunk_from_integers(w->integer, n, decimals, v);
	return true;
}

bool
ls_chunk_skip_doubles(struct ls_bits_in *in, struct ls_chunk_work *w, size_t n)
{
	unsigned decimals = (unsigned)ls_bits_get(in, 5);
	size_t i, integers = n;

	if (decimals > DOUBLE_DECIMALS_MAX && decimals != DOUBLE_AS_BITS)
		return false;
	if (decimals != DOUBLE_AS_BITS && ls_bits_get(in, 1) != 0) {
		if (!ls_chunk_get_flags(in, w->odd, n))
			return false;
		for (i = 0; i < n; i++)
			integers -= w->odd[i];
		if (integers == 0)
			return false;
		/* is it beyond the end? asked later, as for all */
		in->at += 64 * (n - integers);
	}
	return ls_chunk_skip_integers(in, w->integer, integers);
}

/* --- for other columns ---------------------------------------------------- */

bool
ls_chunk_decimals_are_known(unsigned decimals)
{
	return decimals <= DOUBLE_DECIMALS_MAX || decimals == DOUBLE_AS_BITS;
}

bool
ls_chunk_to_integer(double v, unsigned decimals, uint64_t *ret_integer)
{
	if (decimals != DOUBLE_AS_BITS)
		return double_to(v, decimals, ret_integer);
	*ret_integer = double_order(double_bits(v));
	return true;
}

bool
ls_chunk_find_decimals(const double *v, size_t n, unsigned *ret_decimals)
{
	unsigned decimals = 0, d;

	for (size_t i = 0; i < n; i++) {
		d = double_needs(v[i]);
		if (d == DOUBLE_AS_BITS)
			return false;
		decimals = d > decimals ? d : decimals;
	}
	*ret_decimals = decimals;
	return true;
}

bool
ls_chunk_to_integers(const double *v, size_t n, unsigned decimals,
	uint64_t *ret_integers)
{
	if (decimals > DOUBLE_DECIMALS_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!double_to(v[i], decimals, &ret_integers[i]))
			return false;
	return true;
}
