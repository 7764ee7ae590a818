/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_input - a replay file as events in order: read, checked, closings applied,
 * sorted by time.
 *
 * Owner:   the caller's thread.
 * Units:   microseconds since the epoch.
 * Errors:  -errno from the file, -LS_ELIMIT, -ENOMEM; bad lines are told, counted and
 *          left out.
 * Limits:  LS_REPLAY_LINE_MAX_BYTES, LS_REPLAY_MAX_BYTES, LS_REPLAY_MAX_RECORDS,
 *          LS_REPLAY_ERRORS_SHOWN complaints about bad lines.
 * Source:  proto/FORMAT.md, "Replay file".
 */
#ifndef LS_COLLECTOR_REPLAY_INPUT_H
#define LS_COLLECTOR_REPLAY_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/join/index.h"
#include "collector/history/replay.h"
#include "collector/history/replay_csv.h"
#include "collector/history/replay_line.h"

/* One worker of the file, held once; rank -1 stands for a host (its counters), or for
 * the job (closings, standstills). */
struct ls_replay_worker {
	struct ls_worker_info who;
	/* after arranging: the first worker of the same attempt */
	uint32_t first;
	/* the attempt's steps close by closings of the file */
	bool closings;
	/* while replayed: LS_NO_WORKER: the engine has none; of the first of an attempt:
	 * all were declared; 0: its process has not ended */
	uint32_t handle;
	bool declared;
	int64_t ended_us;
};

struct ls_replay_counters {
	int64_t read_us;
	size_t count;
	uint16_t metric[LS_HOT_MAX];
	double value[LS_HOT_MAX];
};

/* What CLOSE, CLOCK, HANG and END lines say. */
struct ls_replay_said {
	double uncertainty_s; /* CLOCK */
	enum ls_end_how how; /* END */
	int64_t since_us; /* HANG, as waiting and why */
	uint32_t waiting;
	enum ls_hang_why why;
	/* CLOSE: missing; HANG: not in the barrier */
	size_t count;
	int32_t ranks[];
};

/* One thing that happens. */
struct ls_replay_event {
	int64_t t_us;
	uint64_t step;
	/* hash of the line: orders what is otherwise equal */
	uint64_t tie;
	uint32_t worker; /* index */
	enum ls_line_kind kind;
	union { /* owned; NULL: left out by a closing */
		void *any;
		struct ls_record *record;
		struct ls_replay_counters *counters;
		struct ls_replay_said *said;
	} u;
};

struct ls_replay_input {
	ls_replay_complain *complain;
	void *complain_arg;
	uint64_t bytes_max; /* that a file may inflate to, skipped ones too */
	struct ls_replay_stats stats;
	bool begun, is_csv; /* a line was read; it was one of a table */
	struct ls_csv csv;
	struct ls_replay_worker *workers;
	size_t worker_count, worker_capacity;
	struct ls_index worker_index;
	struct ls_replay_event *events;
	size_t event_count, event_capacity;
};

/* Reads a file ("-" is standard input), plain or gzip. */
int ls_replay_input_file(struct ls_replay_input *in, const char *path) LS_MUSTCHECK;

/* Reads len bytes of text, not compressed. */
int ls_replay_input_text(struct ls_replay_input *in, const char *text,
	size_t len) LS_MUSTCHECK;

/* Puts workers (by job, attempt, rank, host) and events in order, whatever order they
 * were read in. */
int ls_replay_input_arrange(struct ls_replay_input *in) LS_MUSTCHECK;

/* Tells and counts something bad; line 0: of no single line. */
void ls_replay_input_bad(struct ls_replay_input *in, uint64_t line, const char *why);

/* Drops all that was read. */
void ls_replay_input_fini(struct ls_replay_input *in);

#endif
