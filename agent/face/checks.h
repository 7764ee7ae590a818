/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks - what the doctor says of the agent's own parts: spool, uplink, clock, budget.
 *
 * Owner:   the agent loop thread.
 * Units:   as in the parts.
 * Errors:  none.
 * Limits:  those of doctor.h.
 */
#ifndef LS_AGENT_CHECKS_H
#define LS_AGENT_CHECKS_H

#include "agent/budget.h"
#include "agent/collect/doctor.h"
#include "agent/spool/disk.h"
#include "agent/spool/spool.h"
#include "agent/uplink/uplink.h"

/* The spool: room, what was lost, a damaged file set aside below state_dir. */
void ls_checks_spool(const struct ls_spool *spool, const char *state_dir,
	uint64_t max_bytes, struct ls_doctor *d);

/* Whether the spool could be made there at all, by an agent of this user that does not
 * run yet. */
void ls_checks_state_dir(const char *state_dir, struct ls_doctor *d);

/* The collector: connected, refused, how far away. */
void ls_checks_uplink(const struct ls_uplink *uplink, struct ls_doctor *d);

/*
 * The collector, for who has no uplink: tries to connect, and closes again. Resolves
 * the name and waits up to LS_DOCTOR_CONNECT_NS, so never on a loop.
 */
void ls_checks_reach(const char *url, struct ls_doctor *d);

/*
 * The key files of --keys, for an agent of this user that does not run yet, in the words
 * that it would log. Nothing if dir is "", or if this program has no TLS.
 */
void ls_checks_keys(const char *dir, const char *host_name, struct ls_doctor *d);

/* Whether the machine's wall clock is kept right. */
void ls_checks_clock(struct ls_doctor *d);

/* Our own use against the budget. */
void ls_checks_budget(const struct ls_budget *b, struct ls_doctor *d);

/* Whether the file system of the agent's state answers; NULL: there is no thread. */
void ls_checks_disk(const struct ls_disk *disk, uint64_t now_mono_ns,
	struct ls_doctor *d);

#endif
