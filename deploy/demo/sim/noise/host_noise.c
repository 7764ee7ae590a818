/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/noise/host_noise.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISE_BURST_STEPS 20
#define NOISE_BUSY 0.1 /* share of the time that neighbours are there */

static const struct {
	const char *name;
	double a, b;
} noise_kinds[] = {
#define SIM_HOST_NOISE(id, name, a, b, numbers, help) { name, a, b },
#include "deploy/demo/sim/noise/host_noise.def"
#undef SIM_HOST_NOISE
};

static const char *const noise_scopes[] = { "", "@rack", "@slice", "@job" };

static double
noise_wait(double mean, uint64_t *random)
{
	return -mean * log(sim_host_noise_uniform(random));
}

static size_t
noise_index(size_t n, uint64_t *random)
{
	return (size_t)(sim_host_noise_uniform(random) * (double)n);
}

void
sim_host_noise_begin(const struct sim_host_noise *noise, uint64_t *random,
	struct sim_host_noise_state *ret_state)
{
	struct sim_host_noise_state s = { .x = noise->size *
			sim_host_noise_gauss(random) };

	if (noise->kind == SIM_HOST_NOISE_NEIGHBOURS) {
		s.on = sim_host_noise_uniform(random) < NOISE_BUSY;
	} else if (noise->kind == SIM_HOST_NOISE_BURSTS) {
		s.left = noise_wait(noise->length, random);
	} else if (noise->kind == SIM_HOST_NOISE_WALKS) {
		s.x = noise->length * (sim_host_noise_uniform(random) - 0.5);
	} else if (noise->kind == SIM_HOST_NOISE_SINES) {
		s.left = noise->length * sim_host_noise_uniform(random);
	} else if (noise->kind == SIM_HOST_NOISE_DAYS) {
		s.left = noise->length / 12 * sim_host_noise_uniform(random);
		s.x = 0.5 + sim_host_noise_uniform(random);
	} else if (noise->kind == SIM_HOST_NOISE_RECORDED) {
		s.of = &noise->recorded.of[noise_index(noise->recorded.n, random)];
		s.at = noise_index(s.of->n, random);
	}
	*ret_state = s;
}

double
sim_host_noise_next(const struct sim_host_noise *noise, uint64_t *random,
	struct sim_host_noise_state *s)
{
	double u;

	switch (noise->kind) {
	case SIM_HOST_NOISE_IID:
		return noise->size * sim_host_noise_gauss(random);
	case SIM_HOST_NOISE_TAILS: /* by its inverse (Shaw 2006) */
		u = sim_host_noise_uniform(random);
		return noise->size * (2 * u - 1) / sqrt(2 * u * (1 - u));
	case SIM_HOST_NOISE_WANDER:
		s->x = noise->keep * s->x +
			noise->size * sqrt(1 - noise->keep * noise->keep) *
				sim_host_noise_gauss(random);
		return s->x;
	case SIM_HOST_NOISE_WALKS:
		s->x += noise->size * sim_host_noise_gauss(random);
		s->x = fmax(-noise->length, fmin(noise->length, s->x));
		return s->x;
	case SIM_HOST_NOISE_NEIGHBOURS:
		u = s->on ? noise->length : noise->length * (1 / NOISE_BUSY - 1);
		if (sim_host_noise_uniform(random) < 1 / u)
			s->on = !s->on;
		return s->on ? noise->size : 0;
	case SIM_HOST_NOISE_BURSTS:
		if (--s->left < 0) {
			s->on = !s->on;
			s->left = s->on ? NOISE_BURST_STEPS - 1
					: noise_wait(noise->length, random);
		}
		return s->on ? noise->size : 0;
	case SIM_HOST_NOISE_SINES:
		return noise->size * sin(2 * M_PI * s->left++ / noise->length);
	case SIM_HOST_NOISE_DAYS:
		return s->x * noise->size * sin(2 * M_PI * s->left++ / noise->length);
	case SIM_HOST_NOISE_RECORDED:
		s->at = (s->at + 1) % s->of->n;
		if (sim_host_noise_uniform(random) * noise->length < 1)
			s->at = noise_index(s->of->n, random);
		return s->of->v[s->at];
	case SIM_HOST_NOISE_KINDS:
		break;
	}
	return 0;
}

/* "-NUMBER", if it is there; moves *text behind it. False: what is there is none. */
static bool
noise_number(const char **text, double *number)
{
	char *end;

	if (**text != '-')
		return true;
	if ((*text)[1] < '0' || (*text)[1] > '9')
		return false;
	*number = strtod(*text + 1, &end);
	*text = end;
	return *number > 0 && *number <= SIM_HOST_NOISE_MAX;
}

int
sim_host_noise_parse(const char *text, size_t len, const struct sim_recorded *recorded,
	struct sim_host_noise *ret_noise)
{
	struct sim_host_noise n = { .recorded = *recorded };
	const char *at = text + strcspn(text, "-@,");
	double a, b;

	while (n.kind < SIM_HOST_NOISE_KINDS &&
		(strlen(noise_kinds[n.kind].name) != (size_t)(at - text) ||
			memcmp(noise_kinds[n.kind].name, text, (size_t)(at - text)) !=
				0))
		n.kind++;
	if (n.kind == SIM_HOST_NOISE_KINDS ||
		(n.kind == SIM_HOST_NOISE_RECORDED && recorded->n == 0))
		return -LS_EPARSE;
	a = noise_kinds[n.kind].a;
	b = noise_kinds[n.kind].b;
	if (!noise_number(&at, &a) || (b > 0 && !noise_number(&at, &b)))
		return -LS_EPARSE;
	len -= (size_t)(at - text);
	while (strlen(noise_scopes[n.scope]) != len ||
		memcmp(noise_scopes[n.scope], at, len) != 0)
		if (++n.scope > SIM_NOISE_OF_JOB)
			return -LS_EPARSE;
	n.size = a / 100;
	n.length = n.kind == SIM_HOST_NOISE_RECORDED ? a
		: n.kind == SIM_HOST_NOISE_WALKS     ? b / 100
						     : b;
	n.keep = n.kind == SIM_HOST_NOISE_WANDER ? pow(0.5, 1 / b) : 0;
	if (n.length < 1 && n.kind != SIM_HOST_NOISE_WALKS && b > 0)
		return -LS_EPARSE; /* of steps there is one at least */
	*ret_noise = n;
	return 0;
}

/* Adds the numbers of a line. */
static int
noise_add(struct sim_recorded *r, const char *line)
{
	struct sim_series *of = realloc(r->of, (r->n + 1) * sizeof(*of)), s = { 0 };
	char *end;

	if (of == NULL)
		return -ENOMEM;
	r->of = of;
	s.v = calloc(strlen(line) + 1, sizeof(*s.v));
	if (s.v == NULL)
		return -ENOMEM;
	for (double v = strtod(line, &end); end != line; v = strtod(line, &end)) {
		s.v[s.n++] = v;
		line = isfinite(v) && fabs(v) <= SIM_HOST_NOISE_MAX ? end : "?";
	}
	if (s.n < 2 || *(line + strspn(line, " \t\r\n")) != '\0') {
		free(s.v);
		return -LS_EPARSE;
	}
	r->of[r->n++] = s;
	return 0;
}

int
sim_recorded_read(const char *path, struct sim_recorded *r)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int rc = file == NULL ? -errno : 0;

	while (rc == 0 && getline(&line, &size, file) > 0)
		rc = noise_add(r, line);
	free(line);
	if (file != NULL)
		(void)fclose(file); /* only read */
	return rc == 0 && r->n == 0 ? -LS_EPARSE : rc;
}

void
sim_recorded_free(struct sim_recorded *r)
{
	for (size_t k = 0; k < r->n; k++)
		free(r->of[k].v);
	free(r->of);
	*r = (struct sim_recorded){ 0 };
}
