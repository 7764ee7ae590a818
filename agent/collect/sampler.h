/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler - when which source is read, and which of the values travel in every beat.
 *
 * Readings fall on multiples of the interval of the monotonic clock; those that were
 * missed are not made up for.
 *
 * Owner:   pure functions on the caller's struct.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  none.
 * Limits:  LS_HOT_MAX hot values.
 */
#ifndef LS_AGENT_SAMPLER_H
#define LS_AGENT_SAMPLER_H

#include "agent/collect/source.h"
#include "proto/wire/wire.h"

struct ls_sampler {
	uint64_t interval_ns;
	uint64_t next_ns; /* when the next reading is due */
	unsigned until_slow; /* readings until the next one that is also slow */
};

/* Starts: the first reading, of everything, is due now. */
void ls_sampler_init(struct ls_sampler *s, uint64_t interval_ns, uint64_t now_mono_ns);

/* Another interval, from the next reading on. */
void ls_sampler_set_interval(struct ls_sampler *s, uint64_t interval_ns);

/* What is due now (enum ls_cadence, or'ed), 0 if nothing is; it is then taken as read.
 */
unsigned ls_sampler_due(struct ls_sampler *s, uint64_t now_mono_ns);

/* How long until something is due. */
uint64_t ls_sampler_wait_ns(const struct ls_sampler *s, uint64_t now_mono_ns);

/* The hot values of a sample that have this scope and were measured; *ret_hot is filled
 * anew. */
void ls_sampler_hot(const struct ls_sample *sample, enum ls_metric_scope scope,
	struct ls_wire_hot *ret_hot);

#endif
