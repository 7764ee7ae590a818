/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "deploy/demo/workload/workload.h"

struct layer {
	unsigned in, out;
	float *weight, *bias; /* in params: weight[i * out + o] */
	float *weight_grad, *bias_grad; /* in grads, same order */
	float *value, *delta; /* batch rows of `out` */
};

struct model {
	unsigned layers, batch;
	struct layer layer[WORKLOAD_LAYERS_MAX + 1];
	size_t param_count;
	float *params, *grads; /* grads has one more: the loss */
	float *scratch;
};

/* Constants: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 *            2014. */
double
model_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

struct model *
model_new(unsigned inputs, unsigned outputs, unsigned layers, unsigned width,
	unsigned batch, uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));
	size_t at = 0, values = 0, i;

	if (m == NULL)
		return NULL;
	m->layers = layers + 1;
	m->batch = batch;
	for (unsigned l = 0; l < m->layers; l++) {
		struct layer *y = &m->layer[l];

		y->in = l == 0 ? inputs : width;
		y->out = l == layers ? outputs : width;
		m->param_count += (size_t)(y->in + 1) * y->out;
		values += 2 * (size_t)batch * y->out;
	}
	m->params = calloc(m->param_count, sizeof(float));
	m->grads = calloc(m->param_count + 1, sizeof(float));
	m->scratch = calloc(values, sizeof(float));
	if (m->params == NULL || m->grads == NULL || m->scratch == NULL) {
		model_free(m);
		return NULL;
	}
	values = 0;
	for (unsigned l = 0; l < m->layers; l++) {
		struct layer *y = &m->layer[l];
		size_t weights = (size_t)y->in * y->out;
		double scale = sqrt(6.0 / (double)(y->in + y->out));

		y->weight = m->params + at;
		y->weight_grad = m->grads + at;
		y->bias = y->weight + weights;
		y->bias_grad = y->weight_grad + weights;
		for (i = 0; i < weights; i++)
			y->weight[i] = (float)((2 * model_random(&seed) - 1) * scale);
		at += weights + y->out;
		y->value = m->scratch + values;
		y->delta = y->value + (size_t)batch * y->out;
		values += 2 * (size_t)batch * y->out;
	}
	return m;
}

void
model_free(struct model *m)
{
	if (m == NULL)
		return;
	free(m->params);
	free(m->grads);
	free(m->scratch);
	free(m);
}

/* value = activation(x * weight + bias); x / (1 + |x|) costs the same for every x. */
static void
model_layer_forward(struct layer *y, const float *restrict x, unsigned batch,
	int activate)
{
	for (unsigned b = 0; b < batch; b++, x += y->in) {
		float *restrict row = y->value + (size_t)b * y->out;

		memcpy(row, y->bias, y->out * sizeof(*row));
		for (unsigned i = 0; i < y->in; i++) {
			const float *restrict w = y->weight + (size_t)i * y->out;
			float a = x[i];

			for (unsigned o = 0; o < y->out; o++)
				row[o] += a * w[o];
		}
		for (unsigned o = 0; activate && o < y->out; o++)
			row[o] = row[o] / (1 + fabsf(row[o]));
	}
}

/* Gradients of this layer from its deltas, and the deltas of the layer below (NULL:
 * none). */
static void
model_layer_backward(struct layer *y, const float *restrict x, unsigned batch,
	struct layer *below)
{
	for (unsigned b = 0; b < batch; b++, x += y->in) {
		const float *restrict d = y->delta + (size_t)b * y->out;

		for (unsigned o = 0; o < y->out; o++)
			y->bias_grad[o] += d[o];
		for (unsigned i = 0; i < y->in; i++) {
			float *restrict g = y->weight_grad + (size_t)i * y->out;
			float a = x[i];

			for (unsigned o = 0; o < y->out; o++)
				g[o] += a * d[o];
		}
		if (below == NULL)
			continue;
		for (unsigned i = 0; i < y->in; i++) {
			const float *restrict w = y->weight + (size_t)i * y->out;
			/* square root of the derivative */
			float sum = 0, slope = 1 - fabsf(x[i]);

			for (unsigned o = 0; o < y->out; o++)
				sum += d[o] * w[o];
			below->delta[(size_t)b * y->in + i] = sum * slope * slope;
		}
	}
}

void
model_compute(struct model *m, const float *x, const float *y)
{
	struct layer *top = &m->layer[m->layers - 1];
	size_t count = (size_t)m->batch * top->out, i;
	double loss = 0;

	memset(m->grads, 0, (m->param_count + 1) * sizeof(*m->grads));
	for (unsigned l = 0; l < m->layers; l++)
		model_layer_forward(&m->layer[l], l == 0 ? x : m->layer[l - 1].value,
			m->batch, l + 1 < m->layers);
	for (i = 0; i < count; i++) {
		float diff = top->value[i] - y[i];

		loss += (double)(diff * diff);
		top->delta[i] = 2 * diff / (float)count;
	}
	for (unsigned l = m->layers; l-- > 0;)
		model_layer_backward(&m->layer[l], l == 0 ? x : m->layer[l - 1].value,
			m->batch, l == 0 ? NULL : &m->layer[l - 1]);
	m->grads[m->param_count] = (float)(loss / (double)count);
}

float *
model_gradients(struct model *m, size_t *ret_count)
{
	*ret_count = m->param_count + 1;
	return m->grads;
}

double
model_update(struct model *m, unsigned ranks, float rate)
{
	float scale = rate / (float)ranks;

	for (size_t i = 0; i < m->param_count; i++)
		m->params[i] -= scale * m->grads[i];
	return (double)m->grads[m->param_count] / ranks;
}
