/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_pack - packs items and reports into memory of their own, for tests that keep the
 * bytes. The product packs into memory that it has already.
 *
 * Owner:   the caller frees what is returned.
 * Units:   bytes.
 * Errors:  those of ls_wire_item_pack_to and ls_wire_report_pack_to, -ENOMEM.
 * Limits:  LS_ITEM_MAX_BYTES, LS_REPORT_MAX_BYTES.
 */
#ifndef LS_TESTS_WIRE_PACK_H
#define LS_TESTS_WIRE_PACK_H

#include "proto/wire/wire.h"

/* *ret_buf is malloc'ed, and as long as the item or the report. */
int ls_test_item_pack(const struct ls_wire_item *item, uint8_t **ret_buf,
	size_t *ret_len) LS_MUSTCHECK;
int ls_test_report_pack(const struct ls_wire_report *r, uint8_t **ret_buf,
	size_t *ret_len) LS_MUSTCHECK;

#endif
