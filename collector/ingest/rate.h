/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate - how many bytes an agent, and the agents of one address, may send over time.
 *
 * A bucket holds credit, written as time: a byte costs 1 s / bytes_per_s, a second
 * that passes brings a second, and at most burst_ns is saved. Credit below zero is owed.
 *
 * Owner:   pure functions on the caller's number.
 * Units:   bytes, and ns of one monotonic clock.
 * Errors:  none.
 * Limits:  2^32 bytes at once, below 2^62 ns.
 * Source:  the generic cell rate algorithm (ITU-T I.371, annex A.1), in bytes.
 */
#ifndef LS_COLLECTOR_RATE_H
#define LS_COLLECTOR_RATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Spends bytes (0: only reckons) from a bucket: *empty_ns is the time at which its credit
 * is or was 0, at first now minus the credit to begin with. Returns the credit left,
 * negative if it is owed.
 */
int64_t ls_rate_spend(int64_t *empty_ns, uint32_t bytes_per_s, int64_t burst_ns,
	size_t bytes, int64_t now_ns);

#endif
