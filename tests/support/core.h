/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core - the collector without its sockets: intake, engine and storage in a directory,
 * for tests.
 *
 * Owner:   test programs; one thread.
 * Units:   ns.
 * Errors:  a failure fails the test.
 * Limits:  none.
 */
#ifndef LS_TESTS_CORE_H
#define LS_TESTS_CORE_H

#include "collector/ingest/intake.h"
#include "collector/history/restore.h"
#include "tests/support/reports.h"

struct ls_test_core {
	struct ls_intake *intake;
	struct ls_engine *engine;
	struct ls_sessions *sessions;
	struct ls_rings *rings;
	struct ls_writer *writer;
	struct ls_outbox *outbox;
	struct ls_dictionaries *dictionaries;
	struct ls_fleet *fleet;
	struct ls_zoom *zoom;
	struct ls_restore_stats restored;
	uint64_t now_ns; /* of the collector; set by the test */
	uint64_t cpu_ns; /* of the loop's thread; set by the test */
	unsigned given, replies;
	struct ls_wire_ack ack; /* the last one */
	int64_t waited_ns; /* that it was delayed by */
	struct ls_ingest_peer peer; /* of every report */
};

/* The wall time of the monotonic time 0: 2026-11-21 UTC. */
#define LS_TEST_ANCHOR_NS (1795219200ll * 1000000000)

/* Opens all on a state directory, restored from what it holds. */
void ls_test_core_open(struct ls_test_core *c, const char *dir);

/* Closes all; what was committed stays. */
void ls_test_core_close(struct ls_test_core *c);

/* Gives bytes in at now_ns; with `wait`, waits for all replies. */
void ls_test_core_give(struct ls_test_core *c, const uint8_t *data, size_t len,
	bool wait);

/* Packs and gives the agent's report, waits for its reply, and clears the report. */
const struct ls_wire_ack *ls_test_core_send(struct ls_test_core *c,
	struct ls_test_agent *a, bool with_worker);

/* Waits for the replies to all that was given. */
void ls_test_core_wait(struct ls_test_core *c);

/*
 * Step n of all ranks, one report each; the clock then stands a step later. Rank `slow`
 * does 30 % more work of its own, so the others wait for it (SIZE_MAX: nobody does).
 */
void ls_test_core_round(struct ls_test_core *c, struct ls_test_agent *agents,
	size_t ranks, uint64_t n, size_t slow);

/*
 * All ranks but `absent` wait in the barrier of step n since since_ns, for so many
 * seconds: a report each, every second. `absent` computes (SIZE_MAX: nobody does).
 */
void ls_test_core_stand(struct ls_test_core *c, struct ls_test_agent *agents,
	size_t ranks, uint64_t n, size_t absent, uint64_t since_ns, int seconds);

/* All findings; new reference. */
json_t *ls_test_core_findings(const struct ls_test_core *c);

#endif
