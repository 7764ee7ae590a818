/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity - who this host is: every source offers values for fields, the first in
 * order wins.
 *
 *   config > ring > environment > tpu > sysfs > metadata > tpu-env > label >
 *   labels-file > derived
 *
 * All offers are kept, so that it can be shown where a value is from and who says
 * otherwise. Values come from outside: they are checked by the kind of their field, and
 * escaped, when they come in. What the jobs of one host say differently (two jobs, two
 * names) is not a property of the host. Fed by its owner, then settled; nothing here
 * reads a file, the network or a clock.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   none.
 * Errors:  none; what is not valid or finds no room is left out, counted and told to
 *          the doctor.
 * Limits:  LS_IDENTITY_OFFERS_MAX offers, LS_IDENTITY_FIELDS_MAX fields.
 * Source:  identity.def; README.md, "Who this host is".
 */
#ifndef LS_AGENT_IDENTITY_H
#define LS_AGENT_IDENTITY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/identity/chips.h"
#include "agent/collect/doctor.h"
#include "agent/identity/metadata.h"
#include "proto/wire/wire.h"

enum ls_identity_field {
#define LS_IDENTITY_FIELD(id, key, kind, option, help) LS_IDENTITY_##id,
#include "agent/identity/identity.def"
	LS_IDENTITY_FIELD_COUNT
};

enum ls_identity_source {
#define LS_IDENTITY_SOURCE(id, name, help) LS_IDENTITY_FROM_##id,
#include "agent/identity/identity.def"
	LS_IDENTITY_SOURCE_COUNT
};

struct ls_identity;

/* What one ring says of its job. */
struct ls_identity_ring {
	const struct ls_worker_info *info;
	const uint8_t *from; /* 8: enum ls_ring_from */
	const char *env; /* "KEY=VALUE\n"... */
};

/* Nothing known yet. NULL when out of memory. */
struct ls_identity *ls_identity_new(void);
/* Accepts NULL. */
void ls_identity_free(struct ls_identity *id);

/* True if an option's value is one for its field; "" is. */
bool ls_identity_is_valid(enum ls_identity_field field, const char *value);

/* --- sources: each call replaces what that source said before ------------- */

/* An option of the agent, or (of LS_IDENTITY_HOST) the machine's own name; "" takes it
 * back. */
void ls_identity_set(struct ls_identity *id, enum ls_identity_field field,
	enum ls_identity_source source, const char *value);
/* The rings of this host. */
void ls_identity_rings(struct ls_identity *id, const struct ls_identity_ring *rings,
	size_t count);
/* The environments of the processes that hold the chips: forget all, then add each. Of a text only
   variables TPU_*, MEGASCALE_*, JOB* that are in identity.def are kept. */
void ls_identity_environ_begin(struct ls_identity *id);
void ls_identity_environ_add(struct ls_identity *id, const char *text, size_t len);
/* The chips found. */
void ls_identity_chips(struct ls_identity *id, const struct ls_chips *chips);
/* Device ids that libtpu reports, in any order; at most LS_CHIPS_MAX * 2, else none is
 * believed. */
void ls_identity_devices(struct ls_identity *id, const uint64_t *devices, size_t count);
/* Where the n-th core stood when libtpu reported a stall, escaped; "": there is none. */
void ls_identity_stall(struct ls_identity *id, unsigned n, const char *text);
/* An answer of the metadata server; text NULL: it has none. */
void ls_identity_metadata(struct ls_identity *id, enum ls_metadata_item item,
	const char *text, size_t len);
/* The text of --labels-file; NULL: cannot be read. */
void ls_identity_labels(struct ls_identity *id, const char *text, size_t len);

/* --- results -------------------------------------------------------------- */

/* Derives what follows from what was fed; true if a field is new, gone or different. */
bool ls_identity_settle(struct ls_identity *id);

/* How often settling found something different: a new number means that fields are to
 * be sent again. */
uint64_t ls_identity_changes(const struct ls_identity *id);

/* Value and source of a field; NULL if it is not known. They hold until the next call
 * of a source. */
const char *ls_identity_get(const struct ls_identity *id, enum ls_identity_field field);
const char *ls_identity_source_of(const struct ls_identity *id,
	enum ls_identity_field field);
/* Value of what is no field: chip.0.device, subslice.4x4x4. NULL if it is not known. */
const char *ls_identity_find(const struct ls_identity *id, const char *key);

/* Key of a field, name of a source. */
const char *ls_identity_key(enum ls_identity_field field);
const char *ls_identity_source_name(enum ls_identity_source source);

/* All fields that are known, in a fixed order, at most max; their number. */
size_t ls_identity_fields(const struct ls_identity *id, struct ls_wire_identity *ret,
	size_t max);

/* {field: {"value", "source", "others": [{"value", "source"}] where they differ}};
 * NULL: no memory. */
json_t *ls_identity_json(const struct ls_identity *id);

/* Says what sources disagree on, what was not valid, and what in a job's environment
 * hides its TPU. */
void ls_identity_tell(const struct ls_identity *id, struct ls_doctor *d);

#endif
