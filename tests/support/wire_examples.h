/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_examples - one of each message, with a value in every field: the golden files
 * are made of them.
 *
 * Owner:   test programs; static data.
 * Units:   as in wire.h.
 * Errors:  none.
 * Limits:  none.
 */
#ifndef LS_TESTS_WIRE_EXAMPLES_H
#define LS_TESTS_WIRE_EXAMPLES_H

#include "proto/wire/wire.h"

/* Three records that differ in what was marked. */
#define WIRE_EXAMPLE_RECORDS 3
void wire_example_records(struct ls_record records[WIRE_EXAMPLE_RECORDS]);

/* Items; that of steps borrows the records. */
struct ls_wire_item wire_example_steps(struct ls_record records[WIRE_EXAMPLE_RECORDS]);
struct ls_wire_item wire_example_gap(void);
struct ls_wire_item wire_example_end(void);

/* A report without items, and an ack. The lists are static. */
struct ls_wire_report wire_example_report(void);
struct ls_wire_ack wire_example_ack(void);

/* The same with all that series brought: chunk items (none), zoomed values, identity,
 * asked for. */
struct ls_wire_report wire_example_report_series(void);
struct ls_wire_ack wire_example_ack_series(void);

/* Items of the stream of chunks. */
struct ls_wire_chunk_item wire_example_dictionary(void);
struct ls_wire_chunk_item wire_example_chunk(void);
struct ls_wire_chunk_item wire_example_lost(void);

#endif
