/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model - a dense network, trained by stochastic gradient descent on the mean squared
 * error.
 *
 * The work of a step depends on the sizes alone, never on the values: no rank is slower
 * than another because of its data.
 *
 * Owner:   one rank.
 * Units:   none.
 * Errors:  NULL when out of memory.
 * Limits:  WORKLOAD_LAYERS_MAX hidden layers.
 */
#ifndef LS_TESTS_WORKLOAD_MODEL_H
#define LS_TESTS_WORKLOAD_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct model;

/* New network with weights from the seed: the same on every rank. */
struct model *model_new(unsigned inputs, unsigned outputs, unsigned layers,
	unsigned width, unsigned batch, uint64_t seed);

/* Frees; accepts NULL. */
void model_free(struct model *m);

/* Gradients of a batch (rows of inputs, rows of labels), summed up in
 * model_gradients(). */
void model_compute(struct model *m, const float *x, const float *y);

/* The gradients, and after them the loss of the batch: *ret_count floats to be averaged
 * over ranks. */
float *model_gradients(struct model *m, size_t *ret_count);

/* One step down the averaged gradients; returns the averaged loss. */
double model_update(struct model *m, unsigned ranks, float rate);

/* A number from 0 to 1 from a generator with 64 bits of state (splitmix64). */
double model_random(uint64_t *state);

#endif
