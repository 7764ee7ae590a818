/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - the engine on recorded JSON lines or on a table of step times (CSV), plain or
 * gzip, in any order.
 *
 * Format: proto/FORMAT.md, "Replay file".
 *
 * Owner:   the caller's thread.
 * Units:   as in the file: Unix seconds and seconds; inside integer microseconds.
 * Errors:  -errno from the file, -LS_EPARSE when no line was good, -LS_ELIMIT; bad
 *          lines do not end the replay: each is reported with its number and counted.
 * Limits:  LS_REPLAY_LINE_MAX_BYTES, LS_REPLAY_MAX_BYTES, LS_REPLAY_MAX_RECORDS.
 */
#ifndef LS_COLLECTOR_REPLAY_H
#define LS_COLLECTOR_REPLAY_H

#include <jansson.h>
#include <stdint.h>
#include "collector/engine/engine.h"

struct ls_replay_stats {
	uint64_t lines, records, counters, others, bad_lines, unknown_keys;
	uint64_t whole; /* records of a table without own_seconds */
};

/* Called for each complaint ("line 17: step is negative"); words for a person. */
typedef void ls_replay_complain(void *arg, const char *text);

/*
 * Reads the file ("-" is standard input), runs the engine and returns
 * {"schema_version":1,"findings":[...],"digest":"sha256:..."} (new reference); with
 * "not_judged":"..." where a table has rows of whole step times only. patience_s: as of
 * ls_engine_patience.
 */
int ls_replay_file(const char *path, double patience_s, ls_replay_complain *complain,
	void *arg, struct ls_replay_stats *ret_stats, json_t **ret_result) LS_MUSTCHECK;

/* As ls_replay_file, on len bytes of text (not compressed). For tests and the fuzz
 * target. */
int ls_replay_text(const char *text, size_t len, double patience_s,
	ls_replay_complain *complain, void *arg, struct ls_replay_stats *ret_stats,
	json_t **ret_result) LS_MUSTCHECK;

#endif
