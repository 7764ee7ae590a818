/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - one simulated agent, without its connection: what it measures, keeps, reports
 * and is told.
 *
 * It behaves as agent/uplink/uplink.c does: two numbered streams, of which what is not
 * acknowledged is kept and sent again under the same numbers with the same bytes; hot
 * values and a live slot in every report; its worker until the collector knows it. Its
 * host has a boot, a kernel and a clock of its own.
 *
 * What finds no place is never numbered: records become a Gap, minutes a Lost, once
 * there is room again.
 *
 * Owner:   the thread of the fleet. Pure: time is given, nothing is sent.
 * Units:   ns of the simulator's CLOCK_MONOTONIC; in messages, of the agent's clock.
 * Errors:  -ENOMEM; those of the packers.
 * Limits:  SIM_STEP_ITEMS_MAX, SIM_CHUNK_ITEMS_MAX.
 * Source:  proto/FORMAT.md, "Report and Ack"; agent/uplink/uplink.c.
 */
#ifndef LS_TESTS_SIM_AGENT_H
#define LS_TESTS_SIM_AGENT_H

#include "agent/uplink/pace.h"
#include "proto/wire/arena.h"
#include "proto/wire/wire.h"
#include "deploy/demo/sim/job.h"
#include "deploy/demo/sim/misbehave.h"
#include "deploy/demo/sim/shape.h"
#include "deploy/demo/sim/sim.h"

/* What all agents share. */
struct sim_plan {
	const struct sim_options *options;
	struct sim_job *job; /* NULL: no job runs */
	struct sim_shape *shape;
	struct ls_arena *scratch;
	uint64_t start_ns; /* of the simulation */
	uint64_t minute_ns; /* how long a minute of data lasts */
	/* the first minute begins so long before the start (--saturate) */
	uint64_t back_ns;
	/* tells this run's boots and rings from those of others */
	uint64_t run;
	uint32_t sources;
	struct sim_misbehave misbehave;
	bool draining; /* nothing new is measured */
	uint8_t item[LS_CHUNK_ITEM_MAX_BYTES];
	uint8_t spoilt[LS_CHUNK_BODY_MAX_BYTES];
	struct ls_wire_bytes steps[LS_ITEMS_PER_REPORT_MAX],
		chunks[LS_CHUNK_ITEMS_PER_REPORT_MAX];
};

struct sim_item;

struct sim_stream {
	struct sim_item *first, *last; /* not acknowledged */
	uint32_t count;
	/* numbers: of the next item, on the collector's disk, ever sent */
	uint64_t next, acked, sent;
};

/* What agents have done, summed by the fleet. */
struct sim_counts {
	uint64_t records_acked, records_lost;
	uint64_t samples_made, samples_acked, samples_lost;
	uint64_t chunks_acked, items_acked, resent_items;
};

struct sim_agent {
	/* name: whose host name it has; its own, but for a twin */
	uint32_t index, name;
	enum sim_misbehaviour misbehaves;
	uint8_t boot[LS_BOOT_BYTES], kernel[16], ring[LS_RING_ID_BYTES];
	uint64_t offset_ns; /* its clock is so much ahead of ours */
	uint64_t data_offset_ns; /* and that by which its data are told */
	struct sim_stream steps, chunks;
	uint64_t next_record; /* of the ring; the number of the step, too */
	uint64_t gap_first, gap_count; /* records that found no place */
	/* of the ring: all below are stored or told as lost */
	uint64_t records_acked;
	uint64_t next_minute;
	/* minutes that found no place */
	uint64_t lost_from_ns, lost_to_ns, lost_samples;
	uint64_t lost_records_told, lost_samples_told;
	bool dictionary[SIM_GROUPS]; /* is sent before the next chunk */
	bool introduced, worker_known, identity_known;
	bool report_worker, report_identity; /* in the report under way */
	uint64_t report_steps, report_chunks; /* highest numbers in it; 0: none */
	uint64_t own_beat_ns, beat_ns, t_send_ns, t_hot_ns;
	bool has_last;
	struct ls_wire_stamps last;
	struct ls_pace pace;
	uint64_t pushed_chunk_bytes;
	struct sim_hot hot;
};

void sim_agent_init(struct sim_agent *a, const struct sim_plan *plan, uint32_t index);
void sim_agent_clear(struct sim_agent *a);

/* Measures: takes steps that are complete, and minutes that are over. */
int sim_agent_read(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns,
	struct sim_counts *counts) LS_MUSTCHECK;

/* A new connection: the collector does not know us by it. */
void sim_agent_connected(struct sim_agent *a, uint64_t now_ns);

/* Packs a report; it is taken as sent at now_ns. */
int sim_agent_report(struct sim_agent *a, struct sim_plan *plan, uint64_t now_ns,
	uint8_t *buf, size_t size, size_t *ret_len,
	struct sim_counts *counts) LS_MUSTCHECK;

/* True if items are waiting to be acknowledged. */
bool sim_agent_waits(const struct sim_agent *a);

enum sim_verdict { SIM_ACK_OK, SIM_ACK_RETRY, SIM_ACK_REJECT, SIM_ACK_BAD };

struct sim_answer {
	enum sim_verdict verdict;
	uint64_t hold_ns; /* RETRY, REJECT, BAD: nothing is sent for so long */
	/* the report had items, and all of them are on disk */
	bool stored;
	bool more; /* this one got through, and more is waiting */
	char why[160]; /* from outside */
};

/* Takes the answer to the report under way. */
void sim_agent_answer(struct sim_agent *a, struct sim_plan *plan, const uint8_t *buf,
	size_t len, uint64_t now_ns, struct sim_answer *ret_answer,
	struct sim_counts *counts);

/* The name of a simulated host: "sim00001". */
void sim_agent_name(char name[LS_HOST_NAME_MAX_BYTES], uint32_t index);

#endif
