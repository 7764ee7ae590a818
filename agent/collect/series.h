/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series - the table of all series of this host: what the sources measured last, group
 * by group.
 *
 * A series is a name of proto/metrics.def (or one that libtpu or a Prometheus page told
 * us) and labels. A group is the series of one source and cadence: they are read
 * together and have one time. Sources add their series once, set values as they come,
 * and say that a group was read; the chunk writer and the zoom take whole groups.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def; ns, CLOCK_MONOTONIC.
 * Errors:  -LS_ELIMIT the table is full (counted), -LS_ERANGE no valid name or labels.
 * Limits:  LS_SERIES_MAX, LS_GROUPS_MAX, LS_SERIES_PER_GROUP_MAX; nothing is allocated
 *          after new.
 */
#ifndef LS_AGENT_SERIES_H
#define LS_AGENT_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"
#include "proto/metrics.h"

struct ls_series_table;

/* A group as its readers see it. Arrays are in the order of the dictionary. */
struct ls_series_group {
	const char *name;
	uint32_t generation; /* changes when a series joins or leaves */
	uint64_t t_mono_ns; /* of the last reading; 0: never read */
	uint64_t readings; /* so far */
	size_t count;
	const char *const *text; /* name{label="value",...} */
	const double *value;
	const bool *present;
};

/* Told after each reading of a group. */
typedef void ls_series_reader(void *arg, size_t group);

/* New, empty table; NULL when out of memory. */
struct ls_series_table *ls_series_new(void);
void ls_series_free(struct ls_series_table *t);

/* Who wants to know of readings; one at most. */
void ls_series_set_reader(struct ls_series_table *t, ls_series_reader *reader,
	void *arg);

/* The group of this name, made if it is new. Its index, or -LS_ELIMIT, -LS_ERANGE. */
int ls_series_group(struct ls_series_table *t, const char *name) LS_MUSTCHECK;

/* Removes a group with all its series; their indices may be given out again. */
void ls_series_group_remove(struct ls_series_table *t, size_t group);

/*
 * Adds a series to a group; labels as key="value",... sorted by key, "" for none. Its
 * handle; the same name and labels in the same group have one handle. No quotes or
 * braces in names and values. -LS_ELIMIT; -LS_ERANGE, also where there is no such
 * group.
 */
int ls_series_add(struct ls_series_table *t, size_t group, const char *name,
	const char *labels) LS_MUSTCHECK;

/* As ls_series_add, for a metric of proto/metrics.def. */
int ls_series_add_metric(struct ls_series_table *t, size_t group, enum ls_metric metric,
	const char *labels) LS_MUSTCHECK;

/* Removes one series. A handle that is none is ignored. */
void ls_series_remove(struct ls_series_table *t, int handle);

/* Its value at the reading under way, or that it was not measured. A memory of 0 bytes
 * in all (a placeholder for a chip that nobody holds) was not measured either. A handle
 * that is none is ignored. */
void ls_series_set(struct ls_series_table *t, int handle, double value);
void ls_series_unset(struct ls_series_table *t, int handle);

/* A group was read at this time: what is set now is a row. */
void ls_series_read(struct ls_series_table *t, size_t group, uint64_t t_mono_ns);

/* Looks at a group; false if there is none of this index. What it points to holds until
 * the next add or remove. */
bool ls_series_look(const struct ls_series_table *t, size_t group,
	struct ls_series_group *ret_group);

/* Series that found no room, so far. */
uint64_t ls_series_refused(const struct ls_series_table *t);

/*
 * Makes labels: appends key="value" to labels of size bytes, the value escaped and cut
 * to what fits (left out where not even the key does). Keys are letters, digits, _ and
 * dots, added in rising order.
 */
void ls_series_label(char *labels, size_t size, const char *key, const char *value);

#endif
