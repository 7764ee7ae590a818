/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales_noise - what hosts of bench_scales take longer or shorter by, step by step; the head
 * of bench_scales.c lists the noises.
 *
 * Owner:   the caller's thread; all draw from one random sequence.
 * Units:   ratios to the step time; steps.
 * Errors:  false, with a line on standard error; a program without memory ends.
 * Limits:  none.
 * Source:  Vigna (2014), xorshift64*; Shaw (2006) for Student's t; Politis and Romano
 *          (1994), stationary bootstrap.
 */
#ifndef LS_TESTS_SCALES_NOISE_H
#define LS_TESTS_SCALES_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALES_NOISE_BESIDE 0.003 /* independent noise beside all but recorded noise */

enum scales_noise_kind {
	SCALES_IID,
	SCALES_TAILS,
	SCALES_WANDER,
	SCALES_RACKS,
	SCALES_NEIGHBOURS,
	SCALES_BURSTS,
	SCALES_WALKS,
	SCALES_SINES,
	SCALES_RECORDED,
	SCALES_NOISES
};

struct scales_series {
	double *v;
	size_t n;
};

/* A series for each recorded worker. */
struct scales_records {
	struct scales_series *of;
	size_t n;
};

struct scales_noise {
	enum scales_noise_kind kind;
	double deviation, keep; /* ratio; what AR(1) keeps in a step */
	double block; /* mean steps of a block of recorded noise */
	const struct scales_records *recorded;
};

struct scales_host {
	double x, left; /* ratio; steps until the state changes, or a phase */
	bool on;
	const struct scales_series *of;
	size_t at;
};

/* The random sequence begins again; not with 0. */
void scales_noise_seed(uint64_t seed);

/* Uniform, 0 < u < 1; and a standard Gaussian. */
double scales_noise_uniform(void);
double scales_noise_gauss(void);

/* Reads KIND[-PERCENT or BLOCK[-HALF LIFE]]; false: not a noise, or nothing is recorded. */
bool scales_noise_parse(const char *text, const struct scales_records *recorded,
	struct scales_noise *ret_noise);

void scales_noise_begin(const struct scales_noise *noise, struct scales_host *h);

/* Goes on by a step; what the host takes longer, without what is beside it. */
double scales_noise_next(const struct scales_noise *noise, struct scales_host *h);

/* Covariance at a distance of so many steps, with what is beside it; NaN: not known. */
double scales_noise_covariance(const struct scales_noise *noise, unsigned lag);

/* Adds the lines of a file, a worker each. */
bool scales_records_read(const char *path, struct scales_records *records);
void scales_records_free(struct scales_records *records);

#endif
