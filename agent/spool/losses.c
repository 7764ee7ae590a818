/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/losses.h"

#include <string.h>

/* The least of two times, or the one that is known. */
static uint64_t
losses_earlier(uint64_t a, uint64_t b)
{
	if (a == 0 || b == 0)
		return a + b;
	return a < b ? a : b;
}

void
ls_losses_add(struct ls_losses *l, const struct ls_loss *one)
{
	struct ls_loss *to = NULL;

	for (size_t i = 0; i < l->count && to == NULL; i++) {
		if (l->loss[i].reason == one->reason &&
			strcmp(l->loss[i].group, one->group) == 0)
			to = &l->loss[i];
	}
	if (to == NULL && l->count < LS_LOSSES_MAX) {
		l->loss[l->count++] = *one;
		return;
	}
	/* the last line stands for several: neither group nor reason any more */
	if (to == NULL) {
		to = &l->loss[LS_LOSSES_MAX - 1];
		to->group[0] = '\0';
		if (to->reason != one->reason)
			to->reason = LS_LOST_UNKNOWN;
	}
	to->t_from = losses_earlier(to->t_from, one->t_from);
	if (one->t_to > to->t_to)
		to->t_to = one->t_to;
	to->samples = one->samples > UINT64_MAX - to->samples
		? UINT64_MAX
		: to->samples + one->samples;
}

struct ls_wire_chunk_item
ls_loss_item(const struct ls_loss *one)
{
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_LOST,
		.t_first_mono_ns = one->t_from,
		.t_last_mono_ns = one->t_to,
		.samples = one->samples,
		.reason = one->reason };

	memcpy(item.group, one->group, sizeof(item.group));
	return item;
}
