/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_step - step rings of the workers on this host: records into the spool, live
 * slots at hand.
 *
 * Watches the steps directory (inotify; where that fails, lists it when it has changed), gives each ring a reader (ring_reader.h), and removes
 * the file of a dead worker when all of it is acknowledged, and rings that were never
 * finished (leftovers.h). A file that is no ring is left alone and counted.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM, -LS_ELIMIT; while reading, the disk's refusals leave records in
 *          their rings.
 * Limits:  LS_RINGS_MAX rings; a scan lists LS_STEPS_NAMES_MAX entries and opens
 *          LS_STEPS_OPENS_MAX files, of one owner LS_STEPS_OWNER_OPENS_MAX. When all
 *          places are taken, the owner (uid of the file) of most rings gives one up.
 */
#ifndef LS_AGENT_SOURCE_STEP_H
#define LS_AGENT_SOURCE_STEP_H

#include "agent/collect/doctor.h"
#include "agent/steps/ring_reader.h"

struct ls_source_step;

/*
 * Makes the source for directory dir, whose rings go on from the cursors in the spool.
 * The spool is borrowed; NULL: records are not taken over (to look only). The directory
 * need not exist yet.
 */
int ls_source_step_new(const char *dir, const uint8_t kernel_boot_id[16],
	struct ls_spool *spool, struct ls_source_step **ret_source) LS_MUSTCHECK;

/* Closes the rings; their files stay. Accepts NULL. */
void ls_source_step_free(struct ls_source_step *s);

/* Looks into the directory, takes over what is new, and removes rings that are done
 * with. */
void ls_source_step_read(struct ls_source_step *s, uint64_t now_mono_ns);

/* Rings known now, and the i-th. */
size_t ls_source_step_count(const struct ls_source_step *s);
const struct ls_step_ring *ls_source_step_ring(const struct ls_source_step *s,
	size_t i);

/* As ls_ring_reader_killed, of the i-th. */
void ls_source_step_killed(struct ls_source_step *s, size_t i);

/* Events block of the i-th, read now; as ls_ring_reader_events. */
int ls_source_step_events(const struct ls_source_step *s, size_t i,
	struct ls_ring_events *ret_events) LS_MUSTCHECK;

/* Counters; borrowed. */
const struct ls_step_stats *ls_source_step_get_stats(const struct ls_source_step *s);

/* Says what is wrong with the directory and the rings in it, and what to do. */
void ls_source_step_tell(const struct ls_source_step *s, struct ls_doctor *d);

/* The part of it that needs no rings: whether training processes can put theirs into
 * dir. */
void ls_source_step_tell_dir(const char *dir, struct ls_doctor *d);

#endif
