/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity_state - what the files of the identity share: its offers.
 *
 * Owner:   the identity module.
 * Units:   none.
 * Errors:  none.
 * Limits:  as in identity.h.
 */
#ifndef LS_AGENT_IDENTITY_STATE_H
#define LS_AGENT_IDENTITY_STATE_H

#include "agent/identity/identity.h"

#define LS_IDENTITY_REFUSED_KEPT 8 /* shown by the doctor */

struct ls_identity_offer {
	enum ls_identity_source source;
	/* which part of the source, so that it can be taken back alone */
	uint8_t tag;
	/* the parts of this source disagree: it says nothing of the host */
	bool several;
	char key[LS_IDENTITY_KEY_MAX_BYTES];
	char value[LS_IDENTITY_VALUE_MAX_BYTES];
};

struct ls_identity {
	size_t count;
	struct ls_identity_offer offer[LS_IDENTITY_OFFERS_MAX];
	uint64_t left_out;
	size_t refused_count;
	struct ls_identity_offer refused[LS_IDENTITY_REFUSED_KEPT];
	size_t chip_count; /* found on the PCI bus */
	size_t device_count;
	uint64_t device[LS_CHIPS_MAX * 2];
	uint64_t changes, hash;
};

#define LS_IDENTITY_AXES 3

/* Two or three sides of 1 to LS_TOPOLOGY_SIDE_MAX with a character between: "4x4x8",
 * "2,2,1"; a third that is absent is 1. */
bool ls_identity_sides(const char *text, char between,
	uint32_t ret_sides[LS_IDENTITY_AXES]) LS_MUSTCHECK;

/* The offer that wins, or NULL. */
const struct ls_identity_offer *ls_identity_winner(const struct ls_identity *id,
	const char *key);

/* Keys that are known, each once, in a fixed order: pointers into id; at most
 * LS_IDENTITY_FIELDS_MAX. */
size_t ls_identity_keys(const struct ls_identity *id, const char **ret_keys);

/* Position of a key among the fields, or LS_IDENTITY_FIELD_COUNT. */
enum ls_identity_field ls_identity_field_of(const char *key);

/* The option that sets a field, or "". */
const char *ls_identity_option(enum ls_identity_field field);

/* Takes back what a source (a part of it) offered. */
void ls_identity_forget(struct ls_identity *id, enum ls_identity_source source,
	unsigned tag);

/* Offers a value that was made here: a number, a list of numbers. */
void ls_identity_offer(struct ls_identity *id, const char *key,
	enum ls_identity_source source, unsigned tag, const char *value);

/* Did this source offer a value for the field? */
bool ls_identity_has(const struct ls_identity *id, enum ls_identity_field field,
	enum ls_identity_source source, unsigned tag);

/* Offers a value from outside: checked by the kind of the field, escaped; refused if it
 * is none. */
void ls_identity_take(struct ls_identity *id, enum ls_identity_field field,
	enum ls_identity_source source, unsigned tag, const char *text, size_t len);

/* Notes a value that cannot be used. */
void ls_identity_refuse(struct ls_identity *id, const char *key,
	enum ls_identity_source source, unsigned tag, const char *text, size_t len);

/* Says what follows from the fields (identity_derive.c). */
void ls_identity_derive(struct ls_identity *id);

#endif
