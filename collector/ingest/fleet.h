/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet - what is known of each host beside its steps: who it is, how its agent fares,
 * and, while it is zoomed, the latest value of every series.
 *
 * Owner:   the loop thread. Pure: now is given.
 * Units:   microseconds since the epoch; counts.
 * Errors:  -LS_ELIMIT beyond the maximum; -ENOMEM; -LS_EUNKNOWN.
 * Limits:  hosts as new() is told, those silent for longest make room; identity
 *          LS_IDENTITY_FIELDS_MAX fields; live values LS_SERIES_MAX a host, only of
 *          hosts that are zoomed.
 * Source:  design sections 3.2 and 11.
 */
#ifndef LS_COLLECTOR_FLEET_H
#define LS_COLLECTOR_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/ingest/clocks.h"
#include "collector/ingest/dictionaries.h"
#include "proto/base/err.h"
#include "proto/wire/wire.h"

struct ls_fleet;

struct ls_fleet_stats {
	uint64_t hosts, slowed; /* now */
	uint64_t lost_samples; /* as the agents say, summed over hosts known */
	uint64_t waiting_chunk_items;
	uint64_t identities; /* taken */
	uint64_t evicted;
	uint64_t delayed; /* hosts of which an answer was ever delayed */
};

/* New, empty; NULL when out of memory. */
struct ls_fleet *ls_fleet_new(size_t max);
void ls_fleet_free(struct ls_fleet *t);

/* A host as storage knows it; json is what ls_fleet_identity_text gave. */
int ls_fleet_seed(struct ls_fleet *t, const char *host, const char *json, size_t len,
	int64_t first_us, int64_t last_us) LS_MUSTCHECK;

/* A report of the host's agent came: how it fares. clock: of its host. delayed: so is its
 * answer, because the agent exceeds its byte rate. */
int ls_fleet_report(struct ls_fleet *t, const struct ls_wire_report *r,
	const struct ls_clock *clock, bool delayed, int64_t now_us) LS_MUSTCHECK;

/*
 * The identity of a report is taken. *ret_store: it is another than was stored last, or
 * that is long ago: store ls_fleet_identity_text now.
 */
int ls_fleet_identify(struct ls_fleet *t, const struct ls_wire_report *r,
	int64_t now_us, bool *ret_store) LS_MUSTCHECK;

/* The identity as JSON text, to be freed; NULL when out of memory or not known. */
char *ls_fleet_identity_text(const struct ls_fleet *t, const char *host);

/*
 * Appends where cores of the host stood in a stall that libtpu reported between two times
 * (RFC 3339; until NULL: until now), as rows of evidence, until there are
 * LS_STALL_CORES_SENT of them; each once.
 */
void ls_fleet_stalls(const struct ls_fleet *t, const char *host, const char *from,
	const char *until, json_t *rows);

/* The latest values of a group, measured at t_us. -LS_ERANGE: not as many as the
 * dictionary names. */
int ls_fleet_values(struct ls_fleet *t, const char *host, const struct ls_dictionary *d,
	const struct ls_wire_zoomed *values, int64_t t_us) LS_MUSTCHECK;

/* Values of a host are live no more. */
void ls_fleet_forget_values(struct ls_fleet *t, const char *host);

/* True if reports of this host were ever seen here. */
bool ls_fleet_has(const struct ls_fleet *t, const char *host);

/* One host (web/README.md, "Host of the fleet"); zoom_until_us 0: not zoomed.
 * -LS_EUNKNOWN. */
int ls_fleet_view(const struct ls_fleet *t, const char *host, int64_t zoom_until_us,
	json_t **ret_host) LS_MUSTCHECK;

/*
 * Live series of a host, newer than LS_ZOOM_LIVE_US, by group, in the order of their
 * dictionaries; an empty array if none. -LS_EUNKNOWN.
 */
int ls_fleet_series(const struct ls_fleet *t, const char *host, int64_t now_us,
	json_t **ret_array) LS_MUSTCHECK;

/* What there is. */
void ls_fleet_stats(const struct ls_fleet *t, struct ls_fleet_stats *ret_stats);

/* One series as the API shows it, or NULL: out of memory. live: from a zoom, not from
 * storage. */
json_t *ls_fleet_series_json(const char *text, const char *group, double value,
	bool measured, int64_t t_us, bool live);

#endif
