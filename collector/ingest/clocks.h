/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clocks - a host's CLOCK_MONOTONIC on the collector's time line.
 *
 * The time line is the collector's CLOCK_MONOTONIC plus one anchor, taken at start and
 * never moved: a stepped wall clock cannot move a record. A host with our kernel boot
 * id shares our clock: offset 0, uncertainty 0. For others each exchange gives four
 * stamps: offset ((t2-t1)+(t3-t4))/2, error at most half the round trip less the time
 * we held the request. Of each LS_CLOCK_WINDOW exchanges the fastest is kept; offset
 * and drift are fitted to the fast ones of those (the lower envelope).
 *
 * Owner:   whoever embeds it. Pure.
 * Units:   ns; drift in parts per billion.
 * Errors:  -LS_ERANGE stamps that cannot be, -LS_EABSENT nothing known yet.
 * Limits:  LS_CLOCK_WINDOWS kept exchanges, LS_CLOCK_DRIFT_MAX_PPB.
 * Source:  RFC 5905 section 8 (offset and delay); minimum-delay filtering: Paxson 1998,
 *          "On calibrating measurements of packet transit times"; free-running drift of
 *          up to 30 us/s: Geng et al. 2018, "Exploiting a natural network effect for
 *          scalable, fine-grained clock synchronization" (Huygens).
 */
#ifndef LS_COLLECTOR_CLOCKS_H
#define LS_COLLECTOR_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/limits.h"
#include "proto/wire/wire.h"
#include "storage/db/rows.h"

#define LS_CLOCK_DRIFT_MAX_PPB 500000 /* 500 ppm: beyond it, it is not a crystal */
#define LS_CLOCK_GUESS_NS 1000000000 /* uncertainty of a one-way guess */

/* One exchange: offset at a time of the host, and how wrong it can be. */
struct ls_clock_sample {
	int64_t t_mono_ns; /* the host's, middle of the exchange */
	int64_t offset_ns; /* ours minus the host's */
	int64_t error_ns; /* half the round trip */
};

struct ls_clock {
	bool same; /* our own kernel's clock */
	bool guessed; /* only a one-way guess so far */
	uint32_t in_window; /* exchanges since the window began */
	size_t kept_count;
	/* of this window, if in_window > 0 */
	struct ls_clock_sample best;
	struct ls_clock_sample kept[LS_CLOCK_WINDOWS]; /* oldest first */
	struct ls_store_map fit; /* without the anchor */
	double drift_error_ppb; /* how wrong its drift can be */
	int64_t fit_until_ns; /* last time of the host that the fit rests on */
};

/* Begins; same_kernel: the host runs on our own kernel boot. */
void ls_clock_init(struct ls_clock *c, bool same_kernel);

/* True once times can be mapped. */
bool ls_clock_is_known(const struct ls_clock *c);

/* Takes the stamps of one exchange. */
int ls_clock_sample(struct ls_clock *c,
	const struct ls_wire_stamps *stamps) LS_MUSTCHECK;

/*
 * For a host that never gives stamps: takes its sending time and our receiving time as
 * equal, with LS_CLOCK_GUESS_NS of uncertainty. The first true exchange replaces it.
 */
void ls_clock_guess(struct ls_clock *c, uint64_t t_send_mono_ns,
	uint64_t t_receive_mono_ns);

/* The map of times about t_mono_ns (the host's) to ns since the epoch. */
int ls_clock_map(const struct ls_clock *c, int64_t t_mono_ns, int64_t anchor_ns,
	struct ls_store_map *ret_map) LS_MUSTCHECK;

#endif
