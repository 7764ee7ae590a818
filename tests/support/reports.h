/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports - what an agent sends, made by tests: items, workers, whole reports as bytes.
 *
 * Owner:   test programs. Bytes given out are malloc'ed.
 * Units:   ns.
 * Errors:  a failure fails the test.
 * Limits:  LS_TEST_ITEMS_MAX items a report.
 */
#ifndef LS_TESTS_REPORTS_H
#define LS_TESTS_REPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/wire/wire.h"

#define LS_TEST_ITEMS_MAX 64
#define LS_TEST_STEP_NS 100000000ull /* a step lasts so long, one follows the other */

/* An agent of one ring: rank `rank` of job "train" on host h<rank>. */
struct ls_test_agent {
	struct ls_wire_report report;
	struct ls_wire_worker worker;
	struct ls_wire_hot hot;
	uint8_t ring_id[LS_RING_ID_BYTES];
	struct ls_wire_bytes items[LS_TEST_ITEMS_MAX];
	struct ls_wire_bytes chunk_items[LS_TEST_ITEMS_MAX];
	struct ls_wire_zoomed zoomed;
	struct ls_wire_identity identity[2];
	struct ls_wire_live live;
};

/* A fresh agent; same_kernel: of this machine's boot. Ring and boot are made of the
 * rank. */
void ls_test_agent_init(struct ls_test_agent *a, int32_t rank, bool same_kernel);

/* Forgets the items and values of the report. */
void ls_test_agent_clear(struct ls_test_agent *a);

/* Adds item `seq`: records first_index.. of the ring, each a step of that number. */
void ls_test_agent_steps(struct ls_test_agent *a, uint64_t seq, uint64_t first_index,
	uint64_t count);
void ls_test_agent_gap(struct ls_test_agent *a, uint64_t seq, uint64_t first_index,
	uint64_t count);
void ls_test_agent_gap_for(struct ls_test_agent *a, uint64_t seq, uint64_t first_index,
	uint64_t count, enum ls_wire_gap_reason reason);
void ls_test_agent_end(struct ls_test_agent *a, uint64_t seq, enum ls_end_how how);

/* Adds one counter of the host, read at t_mono_ns. */
void ls_test_agent_hot(struct ls_test_agent *a, uint64_t t_mono_ns, double value);

/*
 * Adds item `seq` to the stream of chunks: the dictionary of group "host.fast", a chunk
 * of it whose values are the number, or a loss of it.
 */
void ls_test_agent_dictionary(struct ls_test_agent *a, uint64_t seq);
void ls_test_agent_chunk(struct ls_test_agent *a, uint64_t seq, uint64_t t_mono_ns);
/* The same of other values: 1.5, absent, 2^53; a second later 2.5, NaN, absent. */
void ls_test_agent_encoded(struct ls_test_agent *a, uint64_t seq, uint64_t t_mono_ns);
/* The same with these times and any body. */
void ls_test_agent_body(struct ls_test_agent *a, uint64_t seq, uint64_t t_first_ns,
	uint64_t t_last_ns, const uint8_t *body, size_t len);
/* A body of two rows a second apart, of so many columns (at most one more than the
 * dictionary names). */
size_t ls_test_body(uint64_t t_mono_ns, size_t columns, double value, uint8_t *body,
	size_t size);
void ls_test_agent_lost(struct ls_test_agent *a, uint64_t seq, uint64_t samples);

/* The series of that dictionary, their values, and its hash. */
#define LS_TEST_SERIES 3
extern const char *const ls_test_series[LS_TEST_SERIES];
uint64_t ls_test_dictionary(void);

/* Adds the values of that dictionary, live; value[1] is not measured. */
void ls_test_agent_zoomed(struct ls_test_agent *a, uint64_t t_mono_ns);

/* Adds where its worker is: in this phase of this step since then. */
void ls_test_agent_live(struct ls_test_agent *a, uint64_t step, enum ls_phase phase,
	uint64_t since_mono_ns);

/* Adds who the host is: its slice (from metadata), and `value` as its worker (from a
 * ring). */
void ls_test_agent_identity(struct ls_test_agent *a, const char *value);

/* The report as bytes; with_worker: declares the worker. */
uint8_t *ls_test_agent_pack(struct ls_test_agent *a, bool with_worker, size_t *ret_len);

/* Record `index` of an agent's ring, as ls_test_agent_steps makes it. */
struct ls_record ls_test_record(uint64_t index);

#endif
