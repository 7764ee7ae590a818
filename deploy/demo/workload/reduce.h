/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce - collectives between the ranks: a ring all-reduce and a broadcast, over
 * stream sockets.
 *
 * The ring is the usual one: a reduce-scatter, then an all-gather, in 2 (n - 1)
 * exchanges in which every member sends a piece to the next and receives one from the
 * previous. All members end with the same bits.
 *
 * Owner:   one rank.
 * Units:   ns.
 * Errors:  0 or -errno; -ECONNRESET when a neighbour is gone.
 * Limits:  none.
 * Source:  P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters
 *          of workstations", 2009.
 */
#ifndef LS_TESTS_WORKLOAD_REDUCE_H
#define LS_TESTS_WORKLOAD_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct reduce_ring {
	unsigned size, place; /* members; which one we are */
	/* non-blocking; send to next, receive from prev */
	int next_fd, prev_fd;
	uint64_t recv_wait_ns, send_wait_ns; /* blocked since the start, by direction */
	float *room; /* one piece, for receiving */
	bool hold; /* a member that is gone is waited for, without end */
};

/* Room for `count` floats; the fds are the caller's. */
int reduce_init(struct reduce_ring *ring, unsigned size, unsigned place, int next_fd,
	int prev_fd, size_t count) LS_MUSTCHECK;

/* Frees. */
void reduce_fini(struct reduce_ring *ring);

/* Adds up the vectors of all members, in place. */
int reduce_all(struct reduce_ring *ring, float *v, size_t count) LS_MUSTCHECK;

/* Passes the vector of member 0 on around the ring. */
int reduce_broadcast(struct reduce_ring *ring, float *v, size_t count) LS_MUSTCHECK;

#endif
