/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - the one door for messages between agent and collector: pack, unpack, then check.
 *
 * Decoding is two steps: protobuf-c unpacks, then every count, length, number and enum is compared
 * with proto/limits.h before anything else sees it.
 *
 * Owner:   pure functions; a decoded message belongs to the caller.
 * Units:   ns; "mono" is the sender's CLOCK_MONOTONIC.
 * Errors:  -LS_EPARSE, -LS_EVERSION, -LS_ELIMIT, -LS_ERANGE, -ENOMEM; *ret_why says what.
 * Limits:  LS_REPORT_MAX_BYTES, LS_ACK_MAX_BYTES, LS_ITEM_MAX_BYTES and the counts beside them.
 * Source:  proto/README.md, "Report and Ack".
 */
#ifndef LS_PROTO_WIRE_H
#define LS_PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include "proto/metrics.h"
#include "proto/record.h"
#include "proto/ring.h"

#define LS_WIRE_VERSION 1u
#define LS_BOOT_BYTES 16

struct ls_wire_worker {
	uint8_t ring_id[LS_RING_ID_BYTES];
	struct ls_worker_info info; /* info.host comes from the report */
	uint64_t created_mono_ns;
};

enum ls_wire_item_kind { LS_WIRE_STEPS, LS_WIRE_GAP, LS_WIRE_END };
enum ls_wire_gap_reason { LS_GAP_UNKNOWN, LS_GAP_OVERRUN, LS_GAP_SPOOL_FULL, LS_GAP_INVALID, LS_GAP_REASON_COUNT };
enum ls_wire_end_how { LS_END_UNKNOWN, LS_END_ENDED, LS_END_CRASHED, LS_END_HOW_COUNT };

/* One decoded item. `records` is owned by the item (ls_wire_item_clear). */
struct ls_wire_item {
	uint64_t seq;
	enum ls_wire_item_kind kind;
	uint8_t ring_id[LS_RING_ID_BYTES];
	uint64_t first_index;
	uint64_t count;                 /* records of STEPS, lost ones of GAP, all of END */
	struct ls_record *records;      /* STEPS: count of them, sender's mono ns */
	enum ls_wire_gap_reason reason; /* GAP */
	enum ls_wire_end_how how;       /* END */
	uint64_t t_mono_ns;             /* END */
};

struct ls_wire_hot {
	uint8_t ring_id[LS_RING_ID_BYTES];
	bool of_ring;                   /* false: values of the host */
	uint64_t t_mono_ns;
	uint32_t count;
	uint16_t metric[LS_HOT_MAX];
	double value[LS_HOT_MAX];
};

struct ls_wire_live {
	uint8_t ring_id[LS_RING_ID_BYTES];
	struct ls_ring_live live;
};

struct ls_wire_stamps {
	uint64_t t1, t2, t3, t4;        /* agent send, collector receive, collector send, agent receive */
};

struct ls_wire_bytes {
	const uint8_t *data;
	size_t len;
};

/* A report. For packing, the pointers are the caller's; unpacked ones live in the report. */
struct ls_wire_report {
	char host[LS_HOST_NAME_MAX_BYTES];
	uint8_t boot[LS_BOOT_BYTES];
	uint8_t kernel_boot_id[16];
	uint64_t t_send_mono_ns;
	bool has_last;
	struct ls_wire_stamps last;
	size_t worker_count;
	struct ls_wire_worker *workers;
	size_t item_count;
	struct ls_wire_bytes *items;    /* encoded items: decode with ls_wire_item_unpack */
	size_t hot_count;
	struct ls_wire_hot *hot;
	size_t live_count;
	struct ls_wire_live *live;
	uint64_t spooled_items;
	uint64_t dropped_records;
	char agent_version[32];
	void *arena;                    /* what unpack allocated */
};

enum ls_wire_status { LS_ACK_OK, LS_ACK_RETRY, LS_ACK_REJECT, LS_ACK_STATUS_COUNT };

struct ls_wire_ack {
	uint8_t boot[LS_BOOT_BYTES];
	uint64_t acked_seq;
	enum ls_wire_status status;
	char reason[160];
	uint64_t t_receive_mono_ns, t_send_mono_ns;
	uint64_t beat_ns, retry_after_ns;
	size_t need_count;
	uint8_t need[LS_RINGS_MAX][LS_RING_ID_BYTES];
};

/* Packs an item; *ret_buf is malloc'ed. -LS_ELIMIT if it exceeds LS_ITEM_MAX_BYTES. */
int ls_wire_item_pack(const struct ls_wire_item *item, uint8_t **ret_buf, size_t *ret_len)
	LS_MUSTCHECK;
int ls_wire_item_unpack(const uint8_t *buf, size_t len, struct ls_wire_item *ret_item,
	const char **ret_why) LS_MUSTCHECK;
/* Frees what unpack allocated; harmless on a zeroed item. */
void ls_wire_item_clear(struct ls_wire_item *item);

/* Packs a report; *ret_buf is malloc'ed. -LS_ELIMIT if it exceeds LS_REPORT_MAX_BYTES. */
int ls_wire_report_pack(const struct ls_wire_report *r, uint8_t **ret_buf, size_t *ret_len)
	LS_MUSTCHECK;
int ls_wire_report_unpack(const uint8_t *buf, size_t len, struct ls_wire_report *ret_report,
	const char **ret_why) LS_MUSTCHECK;
void ls_wire_report_clear(struct ls_wire_report *r);

/* Packs an ack; *ret_buf is malloc'ed. */
int ls_wire_ack_pack(const struct ls_wire_ack *a, uint8_t **ret_buf, size_t *ret_len) LS_MUSTCHECK;
int ls_wire_ack_unpack(const uint8_t *buf, size_t len, struct ls_wire_ack *ret_ack,
	const char **ret_why) LS_MUSTCHECK;

#endif
