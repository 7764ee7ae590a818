/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include "proto/base/mem.h"

#define COLUMN_ZEROS 0u /* kinds of columns, 2 bits */
#define COLUMN_RICE 1u
#define COLUMN_RUNS 2u
#define COLUMN_LOOK 32u /* residuals that the first k is made of */
#define COLUMN_MEAN_BITS 5u /* the mean follows a 32nd of each new one */
#define COLUMN_MEAN_MAX (1ull << 60) /* so k stays below 56 */
#define BODY_SUM_BYTES 4u

/* The k of a stream follows its mean: 2^MEAN_BITS times that of what came lately. */
struct column_k {
	uint64_t mean;
};

/* Best for two-sided noise: about log2(0.69 mean), measured on the tables of
 * bench_rows. */
static inline unsigned
column_k(const struct column_k *s)
{
	return ls_bits_length(s->mean * 11 >> (4 + COLUMN_MEAN_BITS));
}

/* An outlier moves the mean no more than to the double. */
static inline void
column_k_add(struct column_k *s, uint64_t u)
{
	uint64_t most = s->mean + (1u << COLUMN_MEAN_BITS);

	s->mean += (u < most ? u : most) - (s->mean >> COLUMN_MEAN_BITS);
	if (s->mean > COLUMN_MEAN_MAX)
		s->mean = COLUMN_MEAN_MAX;
}

static struct column_k
column_k_from(unsigned k)
{
	return (struct column_k){
		.mean = k == 0 ? 0 : 1ull << (k < 55 ? k + COLUMN_MEAN_BITS : 60)
	};
}

/* --- writing -------------------------------------------------------------- */

static inline void
column_put(struct ls_bits_out *o, struct column_k *s, uint64_t u)
{
	ls_bits_put_rice(o, u, column_k(s));
	column_k_add(s, u);
}

/* The mean length of the first ones. */
static unsigned
column_first_k(const uint64_t *u, size_t n)
{
	size_t i, look = n < COLUMN_LOOK ? n : COLUMN_LOOK;
	unsigned bits = 0;

	for (i = 0; i < look; i++)
		bits += ls_bits_length(u[i]);
	return bits / (unsigned)look;
}

static void
column_put_runs(struct ls_bits_out *o, struct column_k s, const uint64_t *u, size_t n)
{
	struct column_k runs = column_k_from(4);
	uint64_t zeros = 0;

	for (size_t i = 0; i < n; i++) {
		if (u[i] == 0) {
			zeros++;
			continue;
		}
		column_put(o, &runs, zeros);
		column_put(o, &s, u[i] - 1);
		zeros = 0;
	}
	if (zeros > 0)
		column_put(o, &runs, zeros);
}

void
ls_column_put(struct ls_bits_out *o, const uint64_t *u, size_t n)
{
	size_t i, zeros = 0;
	struct column_k s;
	unsigned k;

	for (i = 0; i < n; i++)
		zeros += u[i] == 0;
	if (zeros == n) {
		if (n > 0)
			ls_bits_put(o, COLUMN_ZEROS, 2);
		return;
	}
	k = column_first_k(u, n);
	s = column_k_from(k);
	/* At three quarters of zeros the two cost the same. */
	ls_bits_put(o, zeros >= n / 4 * 3 ? COLUMN_RUNS : COLUMN_RICE, 2);
	ls_bits_put(o, k, 7);
	if (zeros >= n / 4 * 3) {
		column_put_runs(o, s, u, n);
		return;
	}
	for (i = 0; i < n && !o->full; i++)
		column_put(o, &s, u[i]);
}

/* --- reading -------------------------------------------------------------- */

static inline uint64_t
column_get(struct ls_bits_in *in, struct column_k *s)
{
	uint64_t u = ls_bits_get_rice(in, column_k(s));

	column_k_add(s, u);
	return u;
}

static bool
column_get_runs(struct ls_bits_in *in, struct column_k s, uint64_t *u, size_t n)
{
	struct column_k runs = column_k_from(4);
	size_t i = 0;

	while (i < n) {
		uint64_t zeros = column_get(in, &runs);

		if (zeros > n - i)
			return false;
		memset(u + i, 0, (size_t)zeros * sizeof(*u));
		i += (size_t)zeros;
		if (i < n)
			u[i++] = column_get(in, &s) + 1;
	}
	return true;
}

bool
ls_column_get(struct ls_bits_in *in, uint64_t *u, size_t n)
{
	struct column_k s;
	unsigned kind, k;

	if (n == 0)
		return true;
	kind = (unsigned)ls_bits_get(in, 2);
	if (kind == COLUMN_ZEROS) {
		memset(u, 0, n * sizeof(*u));
		return !ls_bits_in_over(in);
	}
	k = (unsigned)ls_bits_get(in, 7);
	if (kind > COLUMN_RUNS || k > 64)
		return false;
	s = column_k_from(k);
	if (kind == COLUMN_RUNS)
		return column_get_runs(in, s, u, n) && !ls_bits_in_over(in);
	for (size_t i = 0; i < n; i++)
		u[i] = column_get(in, &s);
	return !ls_bits_in_over(in);
}

/* --- bodies --------------------------------------------------------------- */

int
ls_body_reserve(struct ls_body *b, size_t bytes)
{
	return ls_mem_reserve((void **)&b->data, &b->size, bytes);
}

void
ls_body_fini(struct ls_body *b)
{
	free(b->data);
	*b = (struct ls_body){ 0 };
}

struct ls_bits_out
ls_body_bits(struct ls_body *b, size_t head_bytes)
{
	return (struct ls_bits_out){ .p = b->data + head_bytes,
		.end = b->data + b->size - BODY_SUM_BYTES };
}

bool
ls_body_seal(struct ls_body *b, struct ls_bits_out *o)
{
	ls_bits_out_end(o);
	if (o->full)
		return false;
	b->len = (size_t)(o->p - b->data);
	ls_bytes_put(o->p, crc32_z(0, b->data, b->len), 4);
	b->len += BODY_SUM_BYTES;
	return true;
}

int
ls_body_open(const uint8_t *body, size_t len, uint8_t version, size_t head_bytes,
	struct ls_bits_in *ret_bits)
{
	if (len > 0 && body[0] != version)
		return -LS_EVERSION; /* before the sum: it may be another one */
	if (len < head_bytes + BODY_SUM_BYTES)
		return -LS_EPARSE;
	len -= BODY_SUM_BYTES;
	if ((uint32_t)crc32_z(0, body, len) != ls_bytes_get(body + len, 4))
		return -LS_ECORRUPT;
	*ret_bits =
		(struct ls_bits_in){ .p = body + head_bytes, .size = len - head_bytes };
	return 0;
}
