/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/bench/scales/scales_noise.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const scales_names[SCALES_NOISES] = { "iid", "tails", "wander",
	"racks", "neighbours", "bursts", "walks", "sines", "recorded" };

static uint64_t scales_noise_state;

void
scales_noise_seed(uint64_t seed)
{
	scales_noise_state = seed;
}

/* Vigna (2014), xorshift64*. */
double
scales_noise_uniform(void)
{
	scales_noise_state ^= scales_noise_state >> 12;
	scales_noise_state ^= scales_noise_state << 25;
	scales_noise_state ^= scales_noise_state >> 27;
	return ((double)((scales_noise_state * 2685821657736338717ull) >> 11) + 0.5) *
		0x1p-53;
}

double
scales_noise_gauss(void)
{
	return sqrt(-2 * log(scales_noise_uniform())) *
		cos(2 * M_PI * scales_noise_uniform());
}

static double
scales_noise_wait(double mean)
{
	return -mean * log(scales_noise_uniform());
}

void
scales_noise_begin(const struct scales_noise *noise, struct scales_host *h)
{
	*h = (struct scales_host){ .x = noise->deviation * scales_noise_gauss() };
	if (noise->kind == SCALES_NEIGHBOURS)
		h->on = scales_noise_uniform() < 0.1;
	else if (noise->kind == SCALES_BURSTS)
		h->left = scales_noise_wait(1000);
	else if (noise->kind == SCALES_WALKS)
		h->x = 0.06 * (scales_noise_uniform() - 0.5);
	else if (noise->kind == SCALES_SINES)
		h->left = 1500 * scales_noise_uniform();
	else if (noise->kind == SCALES_RECORDED) {
		h->of = &noise->recorded->of[(size_t)(scales_noise_uniform() *
			(double)noise->recorded->n)];
		h->at = (size_t)(scales_noise_uniform() * (double)h->of->n);
	}
}

double
scales_noise_next(const struct scales_noise *noise, struct scales_host *h)
{
	switch (noise->kind) {
	case SCALES_IID:
		return noise->deviation * scales_noise_gauss();
	case SCALES_TAILS: /* t of two degrees of freedom, by its inverse (Shaw 2006) */
	{
		double u = scales_noise_uniform();

		return noise->deviation * (2 * u - 1) / sqrt(2 * u * (1 - u));
	}
	case SCALES_WANDER:
	case SCALES_RACKS:
		h->x = noise->keep * h->x +
			noise->deviation * sqrt(1 - noise->keep * noise->keep) *
				scales_noise_gauss();
		return h->x;
	case SCALES_NEIGHBOURS:
		if (scales_noise_uniform() < (h->on ? 0.01 : 1.0 / 900))
			h->on = !h->on;
		return h->on ? 0.04 : 0;
	case SCALES_BURSTS:
		if (--h->left < 0) {
			h->on = !h->on;
			h->left = h->on ? 20 : scales_noise_wait(1000);
		}
		return h->on ? 0.08 : 0;
	case SCALES_WALKS:
		h->x = fmax(-0.06, fmin(0.06, h->x + 0.001 * scales_noise_gauss()));
		return h->x;
	case SCALES_SINES:
		return 0.02 * sin(2 * M_PI * h->left++ / 1500);
	case SCALES_RECORDED:
		h->at = (h->at + 1) % h->of->n;
		if (scales_noise_uniform() * noise->block < 1)
			h->at = (size_t)(scales_noise_uniform() * (double)h->of->n);
		return h->of->v[h->at];
	case SCALES_NOISES:
		break;
	}
	return 0;
}

bool
scales_noise_parse(const char *text, const struct scales_records *recorded,
	struct scales_noise *ret_noise)
{
	double number = 0, half_life = 0;
	size_t len = strcspn(text, "-");

	(void)sscanf(text + len, "-%lf-%lf", &number, &half_life);
	*ret_noise = (struct scales_noise){ .kind = SCALES_NOISES,
		.deviation = number / 100,
		.keep = half_life > 0 ? pow(0.5, 1 / half_life) : 0,
		.block = number,
		.recorded = recorded };
	for (int i = 0; i < SCALES_NOISES; i++)
		if (strlen(scales_names[i]) == len &&
			strncmp(text, scales_names[i], len) == 0)
			ret_noise->kind = (enum scales_noise_kind)i;
	return ret_noise->kind < SCALES_NOISES &&
		(ret_noise->kind != SCALES_RECORDED ||
			(recorded->n > 0 && number >= 1));
}

double
scales_noise_covariance(const struct scales_noise *noise, unsigned lag)
{
	double sum = 0, n = 0;

	if (noise->kind == SCALES_IID || noise->kind == SCALES_WANDER)
		return noise->deviation * noise->deviation * pow(noise->keep, lag) +
			(lag == 0 ? SCALES_NOISE_BESIDE * SCALES_NOISE_BESIDE : 0);
	for (size_t s = 0; noise->kind == SCALES_RECORDED && s < noise->recorded->n;
		s++) {
		const struct scales_series *of = &noise->recorded->of[s];
		double mean = 0;

		for (size_t i = 0; i < of->n; i++)
			mean += of->v[i] / (double)of->n;
		for (size_t i = 0; i < of->n; i++)
			sum += (of->v[i] - mean) * (of->v[(i + lag) % of->n] - mean);
		n += (double)of->n;
	}
	return noise->kind == SCALES_RECORDED ? sum / n * pow(1 - 1 / noise->block, lag)
					      : NAN;
}

/* Adds numbers of a line to the records. */
static void
scales_records_add(struct scales_records *r, const char *line)
{
	struct scales_series *of = realloc(r->of, (r->n + 1) * sizeof(*of));
	char *end;

	if (of == NULL)
		abort();
	r->of = of;
	of += r->n;
	*of = (struct scales_series){ .v = calloc(strlen(line), sizeof(*of->v)) };
	if (of->v == NULL)
		abort();
	for (double v = strtod(line, &end); end != line; v = strtod(line, &end)) {
		of->v[of->n++] = v;
		line = end;
	}
	if (of->n > 1)
		r->n++;
	else
		free(of->v);
}

bool
scales_records_read(const char *path, struct scales_records *r)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;

	if (file == NULL) {
		fprintf(stderr, "bench_scales: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (getline(&line, &size, file) > 0)
		scales_records_add(r, line);
	free(line);
	(void)fclose(file); /* only read */
	if (r->n == 0)
		fprintf(stderr, "bench_scales: %s: no recorded worker in it\n", path);
	return r->n > 0;
}

void
scales_records_free(struct scales_records *r)
{
	for (size_t k = 0; k < r->n; k++)
		free(r->of[k].v);
	free(r->of);
}
