/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses - values that were measured and are lost, summed up by group and reason.
 *
 * Owner:   the caller's struct.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  none: with too many groups the last line stands for several, without a
 *          group's name.
 * Limits:  LS_LOSSES_MAX lines.
 */
#ifndef LS_AGENT_LOSSES_H
#define LS_AGENT_LOSSES_H

#include "proto/wire/wire.h"

struct ls_loss {
	char group[LS_GROUP_NAME_MAX_BYTES]; /* "": not known */
	enum ls_wire_lost_reason reason;
	uint64_t t_from, t_to; /* 0: not known */
	uint64_t samples; /* 0: nobody knows how many */
};

struct ls_losses {
	size_t count;
	struct ls_loss loss[LS_LOSSES_MAX];
};

/* Adds to the line of that group and reason. */
void ls_losses_add(struct ls_losses *l, const struct ls_loss *one);

/* The loss as an item of stream two. */
struct ls_wire_chunk_item ls_loss_item(const struct ls_loss *one);

#endif
