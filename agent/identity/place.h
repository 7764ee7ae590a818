/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place - finds out who and where this host is: feeds the identity from all its
 * sources, in their time.
 *
 *     options ───────────────┐
 *     rings of the jobs ─────┤
 *     chips: /sys /dev /proc ┼─> identity ─> uplink, --once, doctor
 *     metadata server ───────┤
 *     --labels-file ─────────┘
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM, -LS_ELIMIT, -LS_ERANGE (logged: which option).
 * Limits:  LS_OWNER_LINKS_PER_TURN a slow reading; LS_PLACE_SETTLE_NS until it counts
 *          as settled.
 */
#ifndef LS_AGENT_PLACE_H
#define LS_AGENT_PLACE_H

#include "agent/identity/identity.h"
#include "agent/options.h"
#include "agent/collect/series.h"
#include "agent/steps/source_step.h"

struct ls_loop;
struct ls_place;

/* What is wrong with the options of the identity, for one line on stderr; NULL if
 * nothing is. */
const char *ls_place_check(const struct ls_agent_config *config);

/* Makes it, looks for chips, and begins to ask the metadata server if there is one to
 * ask. */
int ls_place_open(struct ls_loop *loop, const struct ls_agent_config *config,
	struct ls_place **ret_place) LS_MUSTCHECK;

/* Accepts NULL. */
void ls_place_close(struct ls_place *p);

/* Takes over what the rings say, and goes on looking for owners. Called with each slow
 * reading. */
void ls_place_read(struct ls_place *p, const struct ls_source_step *steps,
	uint64_t now_mono_ns);

/*
 * True when every source was asked once, or LS_PLACE_SETTLE_NS have passed: before
 * that, what the metadata server says could come too late for the workers that are
 * reported.
 */
bool ls_place_is_settled(struct ls_place *p, uint64_t now_mono_ns);

/* For --once: runs the loop until it is settled, and looks at all processes. */
int ls_place_settle(struct ls_place *p) LS_MUSTCHECK;

/*
 * Fills in what a ring does not say and the host knows: the slice, where the job has
 * several or an option names it; the chips that the worker's process holds. Never
 * changes what the ring says.
 */
void ls_place_complete(const struct ls_place *p, const struct ls_step_ring *ring,
	struct ls_worker_info *info);

/*
 * Takes the device ids from the series chip.hbm.total_bytes{device="N"}: libtpu has one
 * a device. Those seen last stay when no job runs: chips do not move.
 */
void ls_place_devices(struct ls_place *p, const struct ls_series_table *series);

/* Takes where the n-th core stood in a stall; "": there is none (ls_identity_stall). */
void ls_place_stall(struct ls_place *p, unsigned n, const char *text);

/* Who this host is, and its chips. */
const struct ls_identity *ls_place_identity(const struct ls_place *p);
const struct ls_chips *ls_place_chips(const struct ls_place *p);

/* The chips as JSON: [{"pci", "generation", "numa_node", "nodes": [{"path", "here",
 * "owner"}]}]. */
json_t *ls_place_chips_json(const struct ls_place *p);

/* Says what is known and what is not: chips, metadata server, identity. */
void ls_place_tell(const struct ls_place *p, struct ls_doctor *d);

#endif
