/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal - what one commit brought, as one blob: step items, hot counters, positions.
 *
 * Written on the way to an acknowledgement, so it is made by copying: nothing is
 * encoded anew. A while later the keeper packs it into step_rows and hot_rows.
 *
 * Owner:   pure; a body belongs to its caller.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; writing: -LS_ELIMIT, -EINVAL what reading would refuse; reading:
 *          -LS_ECORRUPT the checksum is wrong, -LS_EPARSE, -LS_EVERSION; what the
 *          visitor returns.
 * Limits:  LS_JOURNAL_BODY_MAX_BYTES.
 * Source:  proto/FORMAT.md, "Journal".
 */
#ifndef LS_STORAGE_JOURNAL_H
#define LS_STORAGE_JOURNAL_H

#include "proto/base/err.h"
#include "storage/db/rows.h"

/* A body being made; zeroed is empty. */
struct ls_journal {
	uint8_t *data;
	size_t len, capacity;
	uint32_t count; /* of entries */
	int64_t id, t_us; /* of the entry before: the next says the difference */
	char host[LS_HOST_NAME_MAX_BYTES]; /* named last: it is not named again */
};

enum ls_journal_kind {
	LS_JOURNAL_STEPS,
	LS_JOURNAL_HOT,
	LS_JOURNAL_AGENT,
	LS_JOURNAL_RING,
	LS_JOURNAL_KIND_COUNT
};

/* One entry. The bytes of an item point into the body. */
struct ls_journal_entry {
	enum ls_journal_kind kind;
	int64_t id; /* STEPS, HOT: of the event */
	int64_t t_us; /* positions have theirs within */
	union {
		/* STEPS; ring_id and high are not kept here */
		struct ls_store_item item;
		struct ls_store_counters counters; /* HOT */
		struct ls_store_ledger agent;
		struct ls_store_ring ring;
	} u;
};

/* Makes it empty, keeps the memory; frees it. */
void ls_journal_reset(struct ls_journal *j);
void ls_journal_fini(struct ls_journal *j);

/* Adds an entry of its kind. Ids must not fall. After an error the body is as it was.
 */
int ls_journal_put_steps(struct ls_journal *j, int64_t id, int64_t t_us,
	const struct ls_store_item *item) LS_MUSTCHECK;
int ls_journal_put_hot(struct ls_journal *j, int64_t id, int64_t t_us,
	const struct ls_store_counters *counters) LS_MUSTCHECK;
int ls_journal_put_agent(struct ls_journal *j,
	const struct ls_store_ledger *agent) LS_MUSTCHECK;
int ls_journal_put_ring(struct ls_journal *j,
	const struct ls_store_ring *ring) LS_MUSTCHECK;

/* Ends the body: header and checksum. The body is data, len; nothing is put after that.
 */
int ls_journal_seal(struct ls_journal *j) LS_MUSTCHECK;

/*
 * Visits the entries of a body in order; 0 goes on. Nothing is visited of a body whose
 * checksum is wrong; of one that is not well made, what stands before the fault.
 */
typedef int ls_journal_fn(void *arg, const struct ls_journal_entry *entry);
int ls_journal_read(const uint8_t *body, size_t len, ls_journal_fn *fn,
	void *arg) LS_MUSTCHECK;

/* The same of AGENT and RING entries alone: the others are stepped over, their values
 * not looked at. */
int ls_journal_read_positions(const uint8_t *body, size_t len, ls_journal_fn *fn,
	void *arg) LS_MUSTCHECK;

#endif
