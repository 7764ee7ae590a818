/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - the one door for messages between agent and collector: pack, unpack, then
 * check.
 *
 * Decoding is two steps: protobuf-c unpacks, then every count, length, number and enum
 * is compared with proto/limits.h before anything else sees it.
 *
 * Owner:   pure functions; a decoded message belongs to the caller.
 * Units:   ns; "mono" is the sender's CLOCK_MONOTONIC.
 * Errors:  -LS_EPARSE, -LS_EVERSION, -LS_ELIMIT, -LS_ERANGE, -LS_ECORRUPT (the hash of
 *          a dictionary), -ENOMEM; *ret_why says what.
 * Limits:  LS_REPORT_MAX_BYTES, LS_ACK_MAX_BYTES, LS_ITEM_MAX_BYTES and the counts
 *          beside them.
 * Source:  proto/FORMAT.md, "Report and Ack".
 */
#ifndef LS_PROTO_WIRE_H
#define LS_PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include "proto/wire/arena.h"
#include "proto/metrics.h"
#include "proto/ring/record.h"
#include "proto/ring/ring.h"

#define LS_WIRE_VERSION 1
#define LS_BOOT_BYTES 16

struct ls_wire_worker {
	uint8_t ring_id[LS_RING_ID_BYTES];
	struct ls_worker_info info; /* info.host comes from the report */
	uint64_t created_mono_ns;
	uint32_t number; /* by which hot values and live slots name it; 0: has none */
};

enum ls_wire_item_kind { LS_WIRE_STEPS, LS_WIRE_GAP, LS_WIRE_END };
enum ls_wire_gap_reason {
	LS_GAP_UNKNOWN,
	LS_GAP_OVERRUN,
	LS_GAP_SPOOL_FULL,
	LS_GAP_INVALID,
	LS_GAP_REBOOT,
	LS_GAP_REASON_COUNT
};

/* One decoded item. `records` is owned by the item (ls_wire_item_clear). */
struct ls_wire_item {
	uint64_t seq;
	enum ls_wire_item_kind kind;
	uint8_t ring_id[LS_RING_ID_BYTES];
	uint64_t first_index;
	/* records of STEPS, lost ones of GAP, all of END */
	uint64_t count;
	struct ls_record *records; /* STEPS: count of them, sender's mono ns */
	enum ls_wire_gap_reason reason; /* GAP */
	enum ls_end_how how; /* END */
	uint64_t t_mono_ns; /* END */
};

/* --- the stream of chunks ------------------------------------------------- */

enum ls_wire_chunk_kind { LS_WIRE_DICTIONARY, LS_WIRE_CHUNK, LS_WIRE_LOST };
enum ls_wire_lost_reason {
	LS_LOST_UNKNOWN,
	LS_LOST_SPOOL_FULL,
	LS_LOST_DAMAGED,
	LS_LOST_REBOOT,
	LS_LOST_SERIES_FULL,
	LS_LOST_REASON_COUNT
};

/* One item of the stream of chunks. For packing, pointers are the caller's; unpacked, they live in
   the item (ls_wire_chunk_item_clear), body in the buffer it was unpacked from. LOST: from and to are
   0 where they are not known, group is empty then. */
struct ls_wire_chunk_item {
	uint64_t seq;
	enum ls_wire_chunk_kind kind;
	uint64_t hash; /* DICTIONARY, CHUNK */
	char group[LS_GROUP_NAME_MAX_BYTES]; /* DICTIONARY, LOST */
	/* DICTIONARY: at most LS_SERIES_PER_GROUP_MAX */
	size_t series_count;
	const char *const *series; /* each at most LS_SERIES_TEXT_MAX_BYTES */
	uint64_t t_first_mono_ns, t_last_mono_ns; /* CHUNK; LOST: from, to */
	uint32_t rows; /* CHUNK: 1 to LS_CHUNK_ROWS_MAX */
	const uint8_t *body; /* CHUNK: ls_chunk_decode reads it */
	size_t body_len;
	uint64_t samples; /* LOST; 0: not known how many */
	enum ls_wire_lost_reason reason;
	struct ls_arena *arena;
};

struct ls_wire_zoomed {
	uint64_t dictionary;
	uint64_t t_mono_ns;
	size_t count; /* at most LS_SERIES_PER_GROUP_MAX */
	const double *value; /* NaN: not measured; infinities are values */
};

/* One field of who a host is; names are escaped by whoever shows them. */
struct ls_wire_identity {
	char key[LS_IDENTITY_KEY_MAX_BYTES];
	char value[LS_IDENTITY_VALUE_MAX_BYTES];
	char source[LS_IDENTITY_SOURCE_MAX_BYTES];
};

struct ls_wire_hot {
	uint32_t worker; /* its number; 0: values of the host */
	uint64_t t_mono_ns;
	uint32_t count;
	uint16_t metric[LS_HOT_MAX]; /* hot ones, ascending, none twice */
	double value[LS_HOT_MAX];
};

struct ls_wire_live {
	uint32_t worker; /* its number */
	struct ls_ring_live live;
};

struct ls_wire_stamps {
	/* agent send, collector receive, collector send, agent receive */
	uint64_t t1, t2, t3, t4;
};

struct ls_wire_bytes {
	const uint8_t *data;
	size_t len;
};

/* A report. For packing, the pointers are the caller's; unpacked ones live in the
 * report. */
struct ls_wire_report {
	char host[LS_HOST_NAME_MAX_BYTES];
	uint8_t boot[LS_BOOT_BYTES];
	bool has_kernel; /* kernel_boot_id and agent_version are said */
	uint8_t kernel_boot_id[16];
	uint64_t t_send_mono_ns;
	bool has_last;
	struct ls_wire_stamps last;
	size_t worker_count;
	struct ls_wire_worker *workers;
	size_t item_count;
	/* encoded items: decode with ls_wire_item_unpack */
	struct ls_wire_bytes *items;
	size_t hot_count;
	struct ls_wire_hot *hot;
	size_t live_count;
	struct ls_wire_live *live;
	uint64_t spooled_items;
	uint64_t dropped_records;
	char agent_version[32];
	size_t chunk_item_count;
	/* encoded: decode with ls_wire_chunk_item_unpack */
	struct ls_wire_bytes *chunk_items;
	uint64_t waiting_chunk_items;
	uint64_t lost_samples;
	size_t zoomed_count;
	struct ls_wire_zoomed *zoomed;
	bool has_identity;
	size_t identity_count;
	struct ls_wire_identity *identity; /* a value that is no name is sent escaped */
	uint32_t slowed; /* factor; 0 or 1: not */
};

enum ls_wire_status { LS_ACK_OK, LS_ACK_RETRY, LS_ACK_REJECT, LS_ACK_STATUS_COUNT };

struct ls_wire_ack {
	uint8_t boot[LS_BOOT_BYTES];
	uint64_t acked_seq;
	enum ls_wire_status status;
	char reason[160];
	uint64_t t_receive_mono_ns, t_send_mono_ns;
	uint64_t beat_ns, retry_after_ns;
	uint64_t acked_chunk_seq;
	uint64_t zoom_ns; /* 0: nothing is asked */
	bool need_identity;
	bool need_all_workers; /* a number of a worker is not known */
	/* the item of each stream that the refusal is about; 0: it is about no item */
	uint64_t malformed_seq, malformed_chunk_seq;
	size_t need_count, need_dictionary_count;
	uint8_t need[LS_RINGS_MAX][LS_RING_ID_BYTES];
	uint64_t need_dictionary[LS_GROUPS_MAX];
};

/* An empty ack; the lists, of which it has nothing, stay as they were: most of its
 * bytes are theirs. */
void ls_wire_ack_init(struct ls_wire_ack *ack);

/* Hash of a dictionary: FNV-1a 64 of group, NUL, and each series with a NUL behind it.
 */
uint64_t ls_wire_dictionary_hash(const char *group, const char *const *series,
	size_t count);

/*
 * Packs an item of the stream of chunks into buf, without allocating; *ret_len is set.
 * -EMSGSIZE if it does not fit or exceeds LS_CHUNK_ITEM_MAX_BYTES.
 */
int ls_wire_chunk_item_pack(const struct ls_wire_chunk_item *item, uint8_t *buf,
	size_t size, size_t *ret_len) LS_MUSTCHECK;
int ls_wire_chunk_item_unpack(const uint8_t *buf, size_t len,
	struct ls_wire_chunk_item *ret_item, const char **ret_why) LS_MUSTCHECK;
/* The number of an item of either stream that may not unpack: as far as fields can be
 * told apart; 0: not there. */
uint64_t ls_wire_item_number(const uint8_t *buf, size_t len);
/* Frees what unpack allocated; harmless on a zeroed item. */
void ls_wire_chunk_item_clear(struct ls_wire_chunk_item *item);

/*
 * Packs an item into buf of size bytes, with scratch (reset before use) for what is
 * needed meanwhile: nothing is allocated as long as scratch is large enough. -LS_ELIMIT
 * does not fit.
 */
int ls_wire_item_pack_to(const struct ls_wire_item *item, struct ls_arena *scratch,
	uint8_t *buf, size_t size, size_t *ret_len) LS_MUSTCHECK;
int ls_wire_item_unpack(const uint8_t *buf, size_t len, struct ls_wire_item *ret_item,
	const char **ret_why) LS_MUSTCHECK;
/*
 * As ls_wire_item_unpack, with *scratch for what is needed meanwhile: NULL at first,
 * kept from item to item, the caller's to free.
 */
int ls_wire_item_unpack_in(const uint8_t *buf, size_t len, struct ls_arena **scratch,
	struct ls_wire_item *ret_item, const char **ret_why) LS_MUSTCHECK;
/* Frees what unpack allocated; harmless on a zeroed item. */
void ls_wire_item_clear(struct ls_wire_item *item);

/*
 * Packs a report into buf of size bytes, with scratch (reset before use) for what is
 * needed meanwhile: nothing is allocated as long as scratch is large enough. -LS_ELIMIT
 * does not fit.
 */
int ls_wire_report_pack_to(const struct ls_wire_report *r, struct ls_arena *scratch,
	uint8_t *buf, size_t size, size_t *ret_len) LS_MUSTCHECK;
/*
 * Unpacks a report into *arena: NULL at first, kept from report to report, the caller's
 * to free. The report lives until it is used again.
 */
int ls_wire_report_unpack_in(const uint8_t *buf, size_t len, struct ls_arena **arena,
	struct ls_wire_report *ret_report, const char **ret_why) LS_MUSTCHECK;

/* Packs an ack; *ret_buf is malloc'ed. */
int ls_wire_ack_pack(const struct ls_wire_ack *a, uint8_t **ret_buf,
	size_t *ret_len) LS_MUSTCHECK;
int ls_wire_ack_unpack(const uint8_t *buf, size_t len, struct ls_wire_ack *ret_ack,
	const char **ret_why) LS_MUSTCHECK;

#endif
