/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_collector - the other end of an uplink: takes reports on a thread of its own,
 * answers as a test says; and a loop that turns until something is so.
 *
 * Owner:   test programs; one at a time. The answer runs on its thread: what it shares
 *          is atomic.
 * Units:   ns.
 * Errors:  a failure fails the test.
 * Limits:  those of the wire.
 */
#ifndef LS_TESTS_FAKE_COLLECTOR_H
#define LS_TESTS_FAKE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/loop.h"
#include "proto/wire/wire.h"

/* Answers the n-th report, from 0: its length in a malloc'ed buffer; 0: no answer. */
typedef size_t fake_collector_answer(size_t n, const struct ls_wire_report *r,
	uint8_t **ret_buf);

/* Listens at url, of so many bytes; "": at any port, and url says which. */
void fake_collector_start(char *url, size_t size, fake_collector_answer *answer);

/* Ends the thread. Harmless when there is none. */
void fake_collector_stop(void);

/* How many reports were answered since the start of the program or
 * fake_collector_forget. */
unsigned fake_collector_reports(void);
void fake_collector_forget(void);

/* Runs the loop until cond(), however long that takes. */
void fake_collector_until(struct ls_loop *loop, bool (*cond)(void));

/* Runs the loop for so long. */
void fake_collector_turn(struct ls_loop *loop, uint64_t for_ns);

#endif
