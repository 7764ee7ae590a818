/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_file - the writing side of a step ring: one file, created whole, mapped and
 * locked for life.
 *
 * The file is made under a temporary name and renamed when its header is complete, so
 * that a reader never sees half of one. All its blocks are allocated first: a full disk
 * is an error here, not a SIGBUS in the training loop.
 *
 * Owner:   whoever opened it; not thread-safe. A forked child calls
 *          ls_ring_file_abandon.
 * Units:   ns, CLOCK_MONOTONIC unless said.
 * Errors:  0 or -errno.
 * Limits:  LS_RING_SLOTS slots.
 * Source:  layout: proto/ring/ring.h.
 */
#ifndef LS_CLIENT_RING_FILE_H
#define LS_CLIENT_RING_FILE_H

#include "agent/client/identity.h"

/* A slot and the live slot, as they lie in the file. */
struct ls_ring_file_slot {
	uint64_t index;
	uint64_t step;
	uint64_t t_begin_ns;
	uint64_t duration_ns;
	uint8_t barrier_count, work_mask, peer_count, zero;
	uint8_t barrier_kind[LS_BARRIERS_MAX];
	uint32_t phase_mask, zero2;
	uint64_t phase_ns[LS_PHASE_COUNT];
	struct {
		uint64_t enter_ns, exit_ns;
	} barrier[LS_BARRIERS_MAX];
	double work[LS_WORK_MAX];
	struct {
		uint32_t rank, recv_wait_us, send_wait_us, zero;
	} peer[LS_PEERS_MAX];
	uint64_t index_again;
};

struct ls_ring_file_live {
	uint64_t sequence;
	uint64_t step;
	uint32_t phase, zero;
	uint64_t since_ns;
	uint64_t sequence_again;
};

struct ls_ring_file {
	uint8_t *base; /* NULL: not open */
	int fd;
	uint64_t head; /* records written */
};

/* Creates the ring in `dir`; on failure *f stays closed and nothing is left in the
 * directory. */
int ls_ring_file_open(struct ls_ring_file *f, const char *dir,
	const struct ls_client_identity *id, uint64_t now_ns) LS_MUSTCHECK;

/* Writes the live slot. */
void ls_ring_file_live(struct ls_ring_file *f, uint64_t step, unsigned phase,
	uint64_t since_ns);

/* Publishes one record; index and index_again of *slot are set here. */
void ls_ring_file_push(struct ls_ring_file *f, struct ls_ring_file_slot *slot);

/* Leaves the flag of a clean end, or of a failure, and closes. Harmless when closed. */
void ls_ring_file_close(struct ls_ring_file *f);
void ls_ring_file_fail(struct ls_ring_file *f);

/* Closes without a mark in the file, in a forked child: file and lock stay the
 * parent's. */
void ls_ring_file_abandon(struct ls_ring_file *f);

#endif
