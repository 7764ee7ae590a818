/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deploy/demo/sim/noise/noise.h"

#include <math.h>

/* Lower half, u < 1/2: by Newton's method on the distribution function. */
static double
noise_gauss(double u)
{
	double x = -sqrt(-2 * log(u)) + (u < 0.1 ? 0.5 : 0.3);

	for (int i = 0; i < 40; i++) {
		double p = 0.5 * erfc(-x * M_SQRT1_2),
		       d = exp(-x * x / 2) / sqrt(2 * M_PI);
		double move = (p - u) / d;

		/* the curve is steep far out: no more than one deviation at a time */
		x -= fmax(fmin(move, 1), -1);
		if (fabs(move) < 1e-13)
			break;
	}
	return x;
}

/* Lower half of Student's t with 4 degrees of freedom, divided by its deviation. */
static double
noise_t4(double u)
{
	double root = sqrt(4 * u * (1 - u));
	double q = cos(acos(fmin(root, 1)) / 3) / root;

	return -2 * sqrt(fmax(q - 1, 0)) * M_SQRT1_2;
}

double
sim_noise_quantile(enum sim_noise_kind kind, double u)
{
	double low = u < 0.5 ? u : 1 - u;
	double x = low == 0.5	       ? 0
		: kind == SIM_NOISE_T4 ? noise_t4(low)
				       : noise_gauss(low);

	return u < 0.5 ? x : -x;
}

void
sim_noise_init(struct sim_noise *noise, enum sim_noise_kind kind)
{
	noise->kind = kind;
	for (int i = 1; i < SIM_NOISE_BINS; i++)
		noise->at[i] = sim_noise_quantile(kind, (double)i / SIM_NOISE_BINS);
	noise->at[0] = noise->at[1];
	noise->at[SIM_NOISE_BINS] = noise->at[SIM_NOISE_BINS - 1];
}
