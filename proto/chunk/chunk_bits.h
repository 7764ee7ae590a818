/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_bits - a stream of bits, and the two codes for numbers that chunks are made of.
 *
 * Bits fill each byte from the lowest one on. A number is its length in bits (7 bits)
 * and its bits without the leading one. Rice(k) is v >> k in unary (so many zeros, a
 * one) and the k low bits; from LS_RICE_LIMIT zeros on there is no one: the length less
 * one (6 bits) and all bits follow.
 *
 * Owner:   the caller.
 * Units:   bits.
 * Errors:  writing beyond the end sets full, reading beyond it gives zeros and is told
 *          by ls_bits_in_over and ls_bits_in_end: all are asked later, once.
 * Limits:  the buffer.
 * Source:  R. F. Rice, "Some practical universal noiseless coding techniques", JPL
 *          79-22, 1979.
 */
#ifndef LS_PROTO_CHUNK_BITS_H
#define LS_PROTO_CHUNK_BITS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LS_RICE_LIMIT 20u /* an outlier costs 26 bits more than itself, at most */

/* Bits in v; 0 for 0. */
static inline unsigned
ls_bits_length(uint64_t v)
{
	return v == 0 ? 0 : 64 - (unsigned)__builtin_clzll(v);
}

/* Signed to unsigned so that small ones stay small: 0, -1, 1, -2, ... */
static inline uint64_t
ls_bits_fold(uint64_t v)
{
	return v << 1 ^ (0 - (v >> 63));
}

static inline uint64_t
ls_bits_unfold(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

/* --- writing -------------------------------------------------------------- */

struct ls_bits_out {
	uint8_t *p, *end;
	uint64_t acc; /* n bits that are not in the buffer yet; n < 8 between calls */
	unsigned n;
	bool full;
};

/* At most 56 bits; those of v above them must be 0. */
static inline void
ls_bits_put(struct ls_bits_out *o, uint64_t v, unsigned bits)
{
	o->acc |= v << o->n;
	o->n += bits;
	if (o->end - o->p >= 8) {
		uint64_t le = htole64(o->acc);

		memcpy(o->p, &le, sizeof(le));
		o->p += o->n >> 3;
		o->acc >>= o->n & ~7u;
		o->n &= 7;
		return;
	}
	for (; o->n >= 8; o->n -= 8, o->acc >>= 8) {
		if (o->p == o->end)
			o->full = true;
		else
			*o->p++ = (uint8_t)o->acc;
	}
}

/* The lowest bits of v, up to all 64. */
static inline void
ls_bits_put_low(struct ls_bits_out *o, uint64_t v, unsigned bits)
{
	if (bits > 32) {
		ls_bits_put(o, v & UINT32_MAX, 32);
		v >>= 32;
		bits -= 32;
	}
	ls_bits_put(o, v & ((1ull << bits) - 1), bits);
}

static inline void
ls_bits_put_number(struct ls_bits_out *o, uint64_t v)
{
	unsigned len = ls_bits_length(v);

	ls_bits_put(o, len, 7);
	if (len > 1)
		ls_bits_put_low(o, v, len - 1);
}

/* Bits that ls_bits_put_number takes. */
static inline unsigned
ls_bits_number_cost(uint64_t v)
{
	unsigned len = ls_bits_length(v);

	return len > 1 ? 7 + len - 1 : 7;
}

static inline void
ls_bits_put_rice(struct ls_bits_out *o, uint64_t v, unsigned k)
{
	uint64_t q = v >> k;

	if (q + 1 + k <= 56 && q < LS_RICE_LIMIT) {
		ls_bits_put(o, ((v & ((1ull << k) - 1)) << 1 | 1) << q,
			(unsigned)q + 1 + k);
		return;
	}
	if (q < LS_RICE_LIMIT) {
		ls_bits_put(o, 1ull << q, (unsigned)q + 1);
		ls_bits_put_low(o, v, k);
		return;
	}
	ls_bits_put(o, 0, LS_RICE_LIMIT);
	ls_bits_put(o, ls_bits_length(v) - 1, 6);
	ls_bits_put_low(o, v, ls_bits_length(v));
}

/* Bits that ls_bits_put_rice takes. */
static inline uint64_t
ls_bits_rice_cost(uint64_t v, unsigned k)
{
	uint64_t q = v >> k;

	return q < LS_RICE_LIMIT ? q + 1 + k : LS_RICE_LIMIT + 6 + ls_bits_length(v);
}

/* Writes the last bits; the buffer ends at p then. */
static inline void
ls_bits_out_end(struct ls_bits_out *o)
{
	if (o->n > 0)
		ls_bits_put(o, 0, 8 - o->n);
}

/* --- reading -------------------------------------------------------------- */

struct ls_bits_in {
	const uint8_t *p;
	size_t size; /* bytes */
	size_t at; /* bits read */
};

#define LS_BITS_READY 57u /* what ls_bits_peek gives, at least */

/* Likewise where fewer than eight bytes are left. */
static inline uint64_t
ls_bits_peek_end(const uint8_t *p, size_t size, size_t at)
{
	uint64_t v = 0;
	size_t i = at >> 3;
	unsigned n;

	for (n = 0; i < size; i++, n += 8)
		v |= (uint64_t)p[i] << n;
	return v >> (at & 7);
}

/* The bits that come next, LS_BITS_READY of them or more; zeros beyond the end. */
static inline uint64_t
ls_bits_peek(const struct ls_bits_in *in)
{
	uint64_t le;

	if (__builtin_expect((in->at >> 3) + sizeof(le) > in->size, 0))
		return ls_bits_peek_end(in->p, in->size, in->at);
	memcpy(&le, in->p + (in->at >> 3), sizeof(le));
	return le64toh(le) >> (in->at & 7);
}

/* Up to 64 bits. */
static inline uint64_t
ls_bits_get(struct ls_bits_in *in, unsigned bits)
{
	uint64_t low;

	if (bits <= 32) {
		low = ls_bits_peek(in) & ((1ull << bits) - 1);
		in->at += bits;
		return low;
	}
	low = ls_bits_peek(in) & UINT32_MAX;
	in->at += 32;
	low |= (ls_bits_peek(in) & ((1ull << (bits - 32)) - 1)) << 32;
	in->at += bits - 32;
	return low;
}

/* A length beyond 64 bits is read as 64. */
static inline uint64_t
ls_bits_get_number(struct ls_bits_in *in)
{
	unsigned len = (unsigned)ls_bits_get(in, 7);

	if (len < 2)
		return len;
	if (len > 64)
		len = 64;
	return ls_bits_get(in, len - 1) | 1ull << (len - 1);
}

static inline uint64_t
ls_bits_get_rice(struct ls_bits_in *in, unsigned k)
{
	uint64_t ready = ls_bits_peek(in), low;
	unsigned q = (unsigned)__builtin_ctzll(ready | 1ull << LS_RICE_LIMIT);

	if (q < LS_RICE_LIMIT) {
		in->at += q + 1;
		low = ready >> q >> 1;
		if (k > LS_BITS_READY - LS_RICE_LIMIT)
			return (uint64_t)q << k | ls_bits_get(in, k);
		in->at += k;
		return (uint64_t)q << k | (low & ((1ull << k) - 1));
	}
	in->at += LS_RICE_LIMIT;
	k = (unsigned)ls_bits_get(in, 6) + 1;
	return ls_bits_get(in, k);
}

/* True if zeros beyond the end were used: what was read is not worth going on with. */
static inline bool
ls_bits_in_over(const struct ls_bits_in *in)
{
	return in->at > in->size * 8;
}

/* True if all bytes were read, none beyond, and what is left of the last one is zero.
 */
static inline bool
ls_bits_in_end(const struct ls_bits_in *in)
{
	return !ls_bits_in_over(in) && in->size * 8 - in->at < 8 &&
		ls_bits_peek(in) == 0;
}

#endif
