/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim - what the parts of lockstep-sim share: its options, its maxima, its random
 * numbers.
 *
 * Owner:   one thread; the options are only read after the start.
 * Units:   ns; bytes.
 * Errors:  sim_slow_parse: -LS_EPARSE, -LS_ERANGE.
 * Limits:  below, each with its reason.
 */
#ifndef LS_TESTS_SIM_SIM_H
#define LS_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* four times what a collector takes (LS_AGENTS_MAX) */
#define SIM_HOSTS_MAX 65536
/* of the job: an agent reads them every beat, also while down */
#define SIM_STEPS_KEPT 4096u
/* unacknowledged a agent: minutes of an outage at 150 bytes */
#define SIM_STEP_ITEMS_MAX 256u
/* likewise: 7 KiB each, so 700 MiB for 10,000 agents at worst */
#define SIM_CHUNK_ITEMS_MAX 10u
#define SIM_SERIES_MAX LS_SERIES_MAX
#define SIM_GROUPS 2u /* host and chips */
/* minutes of one variant that are kept to be sent again */
#define SIM_BODIES_KEPT 64u
/* phases of a minute, where agents share bodies (--variants) */
#define SIM_SLOTS 100u
/* --saturate back-fills from so long ago */
#define SIM_SATURATE_BACK_NS (23ull * 3600 * 1000000000)
#define SIM_DRAIN_NS 10000000000ull /* at the end, to send what is pending */
#define SIM_DRAIN_BEAT_NS LS_BEAT_MIN_NS /* then reports follow each other so closely */
/* of 100 us: latencies to 10 s are told apart */
#define SIM_LATENCY_BINS 100000u
#define SIM_LATENCY_BIN_NS 100000ull
/* beats begin at multiples of this: 50 of 10,000 agents at once */
#define SIM_TICK_NS 5000000ull
#define SIM_YEAR_NS (365ull * 24 * 3600 * 1000000000)
/* acknowledged items, then the numbers jump back */
#define SIM_BACKWARDS_AFTER 5u
/* reconnects of few agents are spread over so long */
#define SIM_JITTER_MIN_NS 2000000000ull
/* and those of many over as long as this rate takes */
#define SIM_CONNECTS_PER_S 5000u

struct sim_options {
	char connect[LS_CONF_VALUE_MAX_BYTES], keys[LS_CONF_VALUE_MAX_BYTES];
	char job[LS_CONF_VALUE_MAX_BYTES], slow[LS_CONF_VALUE_MAX_BYTES];
	char misbehave[LS_CONF_VALUE_MAX_BYTES];
	char offline[LS_CONF_VALUE_MAX_BYTES], truth[LS_CONF_VALUE_MAX_BYTES],
		fault[LS_CONF_VALUE_MAX_BYTES];
	char noise[LS_CONF_VALUE_MAX_BYTES], noise_kind[LS_CONF_VALUE_MAX_BYTES],
		spread[LS_CONF_VALUE_MAX_BYTES];
	char host_noise[LS_CONF_VALUE_MAX_BYTES], recorded[LS_CONF_VALUE_MAX_BYTES];
	char missing[LS_CONF_VALUE_MAX_BYTES], lost[LS_CONF_VALUE_MAX_BYTES];
	char clock_drift[LS_CONF_VALUE_MAX_BYTES];
	int64_t steps, stages, input_every, rack_hosts, shards, burst_steps,
		checkpoint_steps;
	int64_t eval_steps, compile_steps, lost_from;
	uint64_t step_ns, clock_error_ns, clock_tick_ns, exit_spread_ns;
	bool roles, barrier_times, peers, replicas;
	char ledger[LS_CONF_VALUE_MAX_BYTES], log_level[LS_CONF_VALUE_MAX_BYTES];
	int64_t hosts, first, slices, chips, series, steps_per_s, accelerate, variants,
		seed;
	uint64_t beat_ns, duration_ns, report_ns;
	bool saturate, storm;
};

/* One worker made slow. */
struct sim_slow {
	int64_t rank; /* -1: none */
	double fraction; /* its own work takes this much longer */
	uint64_t from; /* the step it begins at */
};

/* "none" or RANK:FRACTION[@STEP]; ret_slow is untouched on failure. */
int sim_slow_parse(const char *text, int64_t hosts,
	struct sim_slow *ret_slow) LS_MUSTCHECK;

/* A number that depends on all four and nothing else (splitmix64's finisher, Steele et
 * al. 2014). */
static inline uint64_t
sim_hash(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t z = seed + 0x9e3779b97f4a7c15u * (a + 1) +
		0xd1b54a32d192ed03u * (b + 1) + 0x8cb92ba72f3d8dd7u * (c + 1);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	return z ^ z >> 29;
}

/* The next of a sequence (xorshift64*, Vigna 2016); *state is never 0. */
static inline uint64_t
sim_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717u;
}

/* 0 to 1. */
static inline double
sim_unit(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

/* About normal, mean 0, deviation 1: four pieces of 16 bits summed. */
static inline double
sim_normal(uint64_t bits)
{
	double sum = (double)(bits & 0xffff) + (double)(bits >> 16 & 0xffff) +
		(double)(bits >> 32 & 0xffff) + (double)(bits >> 48);

	return (sum - 131070) / 37837;
}

#endif
