/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows - what storage keeps, as plain data: written by the writer, given out again by
 * the query.
 *
 * Owner:   plain data. A message for the writer (struct ls_write) belongs to whoever
 *          holds it.
 * Units:   _us microseconds since the Unix epoch on the collector's time line; _mono_ns
 *          the sender's CLOCK_MONOTONIC.
 * Errors:  constructors return NULL when out of memory; the map's functions never fail.
 * Limits:  those of the wire for names, records and values.
 * Source:  storage/README.md, "Tables".
 */
#ifndef LS_STORAGE_ROWS_H
#define LS_STORAGE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/limits.h"
#include "proto/ring/record.h"
#include "proto/ring/ring.h"
#include "proto/wire/wire.h"

/* How a sender's monotonic time becomes ns since the epoch; stored with the times it
 * was used on. */
struct ls_store_map {
	int64_t ref_mono_ns;
	int64_t offset_ns;
	int64_t drift_ppb;
	int64_t uncertainty_ns;
};

/* A sender's time on the collector's time line, ns since the epoch. */
int64_t ls_store_map_ns(const struct ls_store_map *map, int64_t t_mono_ns);

/* The same in microseconds, rounded. */
int64_t ls_store_map_us(const struct ls_store_map *map, int64_t t_mono_ns);

/*
 * A sender's record as it is stored, judged and exported: on the collector's time line,
 * and all of it, spans too, in whole microseconds. The two may be the same record.
 */
void ls_store_record(const struct ls_store_map *map, const struct ls_record *from,
	struct ls_record *ret_record);

struct ls_store_worker {
	int64_t id;
	int64_t proposed_id; /* of a REPORT: the id that its rows have until its commit */
	int64_t first_us;
	uint8_t ring_id[LS_RING_ID_BYTES];
	struct ls_worker_info info;
};

/* One accepted item. Of STEPS, records from first_index on count. */
struct ls_store_item {
	enum ls_wire_item_kind kind;
	int64_t worker_id;
	uint8_t ring_id[LS_RING_ID_BYTES];
	uint64_t first_index, count; /* END: count = records written in all */
	uint64_t high; /* what of the ring is on disk once this is */
	uint64_t step_lo, step_hi;
	int64_t t_lo_us, t_hi_us;
	struct ls_store_map map;
	/* GAP: enum ls_wire_gap_reason; END: enum ls_end_how */
	unsigned reason;
	const uint8_t *data; /* STEPS: the encoded item */
	size_t len;
};

/* Records of one worker as they are given out: consecutive, made by ls_store_record. */
struct ls_store_steps {
	int64_t worker_id;
	uint64_t first_index;
	uint32_t count;
	int64_t uncertainty_ns;
	const struct ls_record *records;
};

/* How far the two numbered streams of an agent are on disk. */
struct ls_store_ledger {
	uint8_t boot[LS_BOOT_BYTES];
	char host[LS_HOST_NAME_MAX_BYTES];
	uint64_t seq, chunk_seq;
	int64_t t_us;
};

/* How far a ring is on disk. */
struct ls_store_ring {
	uint8_t ring_id[LS_RING_ID_BYTES];
	int64_t worker_id;
	uint64_t high;
	int64_t t_us;
};

struct ls_store_counters {
	char host[LS_HOST_NAME_MAX_BYTES];
	int64_t worker_id; /* 0: of the host */
	int64_t read_us;
	size_t count;
	uint16_t metric[LS_HOT_MAX];
	double value[LS_HOT_MAX];
};

struct ls_store_close {
	char job[LS_JOB_NAME_MAX_BYTES];
	int32_t attempt;
	uint64_t step;
	uint32_t expected, used;
	size_t missing_count;
	int32_t *missing;
};

/* A job was seen standing still. */
struct ls_store_hang {
	char job[LS_JOB_NAME_MAX_BYTES];
	int32_t attempt;
	uint64_t step;
	int64_t since_us;
	uint32_t waiting;
	enum ls_hang_why why;
	size_t rank_count; /* at most LS_CLOSE_MISSING_MAX */
	int32_t *ranks; /* freed with the message */
};

/* One accepted item of the stream of chunks, or a dictionary's first use of the day. */
struct ls_store_chunk {
	enum ls_wire_chunk_kind kind;
	uint64_t hash; /* DICTIONARY, CHUNK */
	char group[LS_GROUP_NAME_MAX_BYTES]; /* DICTIONARY, LOST */
	/* DICTIONARY: each with a NUL behind it; freed with the message */
	char *series;
	size_t series_len;
	int64_t t_first_us, t_last_us; /* CHUNK; LOST: from, to; 0: not known */
	struct ls_store_map map; /* CHUNK */
	uint32_t n; /* CHUNK: rows */
	const uint8_t *body; /* CHUNK */
	size_t body_len;
	uint64_t samples; /* LOST */
	unsigned reason; /* LOST: enum ls_wire_lost_reason */
};

/* One report: all its items become durable together, and with them its numbers. */
struct ls_store_report {
	uint8_t boot[LS_BOOT_BYTES];
	char host[LS_HOST_NAME_MAX_BYTES];
	uint64_t last_seq; /* highest number accepted; 0: no numbered item */
	uint64_t last_chunk_seq; /* likewise, of the stream of chunks */
	size_t item_count, counters_count, chunk_count;
	struct ls_store_item *items; /* in one piece with the message */
	struct ls_store_counters *counters; /* likewise */
	struct ls_store_chunk *chunks; /* likewise */
	/*
	 * WORKER messages, freed with the report: the rows of state.db that it needs.
	 * The commit sets their id, and that of the report's rows: a worker that is there
	 * keeps its id.
	 */
	struct ls_write *workers;
	/* the caller's: it holds what items[].data points to */
	void *owner;
};

/* Who a host is: the last that was said. */
struct ls_store_host {
	char host[LS_HOST_NAME_MAX_BYTES];
	char *json; /* freed with the message */
};

enum ls_zoom_event { LS_ZOOM_BEGIN, LS_ZOOM_RENEW, LS_ZOOM_END, LS_ZOOM_EVENT_COUNT };

/* A host is looked at more closely, or no more. */
struct ls_store_zoom {
	enum ls_zoom_event event;
	char host[LS_HOST_NAME_MAX_BYTES];
	char job[LS_JOB_NAME_MAX_BYTES]; /* "": asked for by a person */
	char cause[48];
	int64_t until_us;
};

struct ls_store_finding {
	char id[32];
	char event[16];
	char job[LS_JOB_NAME_MAX_BYTES];
	char kind[32], severity[16], status[16];
	char *json; /* freed with the message */
	bool history; /* also a row in finding_event */
};

struct ls_store_meta {
	char key[32];
	uint8_t value[64];
	void *bytes; /* instead of it, freed with the message; NULL: none */
	size_t len;
};

#define LS_RETAIN_AUTO UINT64_MAX

/* Retention: files of days before keep_from (YYYYMMDD; 0: any), then oldest first above
 *            max_bytes. */
struct ls_store_retain {
	int32_t keep_from;
	uint64_t max_bytes; /* 0: no maximum; LS_RETAIN_AUTO: ls_retain_auto */
	int64_t history_us; /* finding_event rows before this go */
};

/* A row of step_rows; job_id is that of state.db. */
struct ls_store_step_rows {
	int64_t id, last_id, job_id;
	uint64_t records, step_lo, step_hi;
	int64_t t_lo_us, t_hi_us;
	uint8_t *body; /* freed with the message */
	size_t len;
};

/* A row of hot_rows. */
struct ls_store_hot_rows {
	int64_t id, last_id;
	uint64_t n;
	uint8_t *body; /* freed with the message */
	size_t len;
};

/*
 * A unit, in place of all rows of the journal from from_id to last_id, of which there
 * are journal_rows. Arrays are freed with the message.
 */
struct ls_store_pack {
	int32_t day; /* of whose file this was made */
	int64_t from_id, last_id;
	uint64_t journal_rows, records;
	int64_t t_us; /* of its first event */
	size_t step_rows_count, ledger_count, ring_count;
	struct ls_store_step_rows *step_rows;
	struct ls_store_hot_rows hot_rows; /* n 0: none */
	struct ls_store_ledger *ledgers; /* positions that stood in those rows */
	struct ls_store_ring *rings;
};

enum ls_rollup_table {
	LS_ROLLUP_METRIC,
	LS_ROLLUP_LABELS,
	LS_ROLLUP_BODY,
	LS_ROLLUP_DONE,
	LS_ROLLUP_TABLES
};

/* A row of one of the tables of roll-ups. */
struct ls_store_rollup_row {
	enum ls_rollup_table table;
	int64_t id; /* of a name; BODY: of its metric */
	int64_t span_s, t_us; /* BODY, DONE */
	uint32_t n; /* BODY */
	int64_t before, chunk_id; /* DONE: was (0: not there), becomes (0: goes) */
	void *data; /* a name with a NUL behind it, a body; freed with the message */
	size_t len;
};

/* Roll-ups, durable together or not at all. */
struct ls_store_rollup {
	int32_t day; /* of whose file this is, which may be a closed one */
	size_t count, room;
	struct ls_store_rollup_row *rows; /* freed with the message */
};

/* Frees the rows. */
void ls_store_rollup_free(struct ls_store_rollup *r);

enum ls_write_kind {
	LS_WRITE_WORKER, /* to state.db */
	LS_WRITE_FINDING,
	LS_WRITE_META,
	LS_WRITE_HOST,
	LS_WRITE_REPORT, /* to the day's file */
	LS_WRITE_CLOSE,
	LS_WRITE_ZOOM,
	LS_WRITE_HANG,
	LS_WRITE_RETAIN,
	/* to the day's file, apart from the rest (see storage/write/writer.h) */
	LS_WRITE_PACK,
	LS_WRITE_ROLLUP, /* likewise */
	LS_WRITE_REPLACE, /* a repacked file takes the place of a closed day's */
	LS_WRITE_ASIDE, /* a day's file is damaged: out of the way */
	LS_WRITE_KIND_COUNT
};

/* One message for the writer. */
struct ls_write {
	struct ls_write *next; /* in the list it comes back with */
	enum ls_write_kind kind;
	/* REPORT: failures known to the sender (see storage/write/writer.h) */
	uint64_t epoch;
	int64_t t_us; /* the engine's now */
	int rc; /* REPORT, PACK, ROLLUP, REPLACE, ASIDE: how it ended */
	union {
		struct ls_store_worker worker;
		struct ls_store_finding finding;
		struct ls_store_meta meta;
		struct ls_store_host host;
		struct ls_store_report report;
		struct ls_store_close close;
		struct ls_store_zoom zoom;
		struct ls_store_hang hang;
		struct ls_store_retain retain;
		struct ls_store_pack pack;
		struct ls_store_rollup rollup;
		int32_t day; /* REPLACE, ASIDE */
	} u;
};

/* New zeroed message. */
struct ls_write *ls_write_new(enum ls_write_kind kind, int64_t t_us);

/* New REPORT with room for so many items, counters and rows of chunks. */
struct ls_write *ls_write_new_report(size_t items, size_t counters, size_t chunks,
	int64_t t_us);

/* New CLOSE or HANG with a copy of the ranks. */
struct ls_write *ls_write_new_ranks(enum ls_write_kind kind, const int32_t *ranks,
	size_t count, int64_t t_us);

/* Hands a message to the writer; an error: the caller keeps it. */
typedef int ls_write_push_fn(void *arg, struct ls_write *m);

/* Makes a REPLACE or ASIDE of a day and hands it on. */
int ls_write_push_day(enum ls_write_kind kind, int32_t day, ls_write_push_fn *push,
	void *arg) LS_MUSTCHECK;

/* Frees a message and what it owns (not u.report.owner); accepts NULL. */
void ls_write_free(struct ls_write *m);

/* What a day's file holds, in the order in which it came. */
enum ls_store_event_kind {
	LS_EVENT_STEPS,
	LS_EVENT_ITEM, /* a gap, an end */
	LS_EVENT_CLOSE,
	LS_EVENT_COUNTERS,
	LS_EVENT_ZOOM,
	LS_EVENT_HANG
};

struct ls_store_event {
	enum ls_store_event_kind kind;
	int64_t id;
	int64_t t_us;
	union {
		struct ls_store_steps steps;
		struct ls_store_item item; /* without ring_id and high */
		struct ls_store_close close;
		struct ls_store_counters counters;
		struct ls_store_zoom zoom;
		struct ls_store_hang hang;
	} u;
};

#endif
