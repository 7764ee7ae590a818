/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/budget.h"

#include <string.h>
#include "proto/base/err.h"

const char *
ls_budget_name(enum ls_budget_what what)
{
	static const char *const names[] = { "cpu", "memory", "bytes" };

	LS_ASSERT(what < LS_BUDGET_WHAT_COUNT);
	return names[what];
}

void
ls_budget_init(struct ls_budget *b, const struct ls_budget_limits *limits,
	const struct ls_budget_reading *now)
{
	memset(b, 0, sizeof(*b));
	b->limits = *limits;
	b->last = *now;
	b->factor = 1;
	b->need = LS_BUDGET_NEED_MIN;
}

void
ls_budget_set_limits(struct ls_budget *b, const struct ls_budget_limits *limits)
{
	b->limits = *limits;
}

/* What is used as a share of each limit; 0 where there is no limit. */
static void
budget_shares(const struct ls_budget *b, double share[LS_BUDGET_WHAT_COUNT])
{
	const struct ls_budget_limits *l = &b->limits;

	memset(share, 0, LS_BUDGET_WHAT_COUNT * sizeof(share[0]));
	if (l->cpu_ratio > 0)
		share[LS_BUDGET_CPU] = b->cpu_ratio / l->cpu_ratio;
	if (l->memory_bytes > 0)
		share[LS_BUDGET_MEMORY] =
			(double)b->rss_bytes / (double)l->memory_bytes;
	if (l->bytes_per_minute > 0)
		share[LS_BUDGET_BYTES] =
			(double)b->bytes_per_minute / (double)l->bytes_per_minute;
}

/* The window that ends with this reading. Counters that went back count as nothing
 * used. */
static void
budget_measure(struct ls_budget *b, const struct ls_budget_reading *now)
{
	double window_ns = (double)(now->t_mono_ns - b->last.t_mono_ns);
	uint64_t sent = now->sent_bytes >= b->last.sent_bytes
		? now->sent_bytes - b->last.sent_bytes
		: 0;
	uint64_t cpu_ns =
		now->cpu_ns >= b->last.cpu_ns ? now->cpu_ns - b->last.cpu_ns : 0;

	b->cpu_ratio = (double)cpu_ns / window_ns;
	b->rss_bytes = now->rss_bytes;
	b->sent_bytes[b->windows % LS_BUDGET_WINDOWS_A_MINUTE] = sent;
	b->bytes_per_minute = 0;
	for (size_t i = 0; i < LS_BUDGET_WINDOWS_A_MINUTE; i++)
		b->bytes_per_minute += b->sent_bytes[i];
	b->windows++;
	b->last = *now;
}

static void
budget_slow(struct ls_budget *b)
{
	if (b->factor >= LS_BUDGET_FACTOR_MAX)
		return;
	/* The last step back came too early: wait longer for the next one. */
	if (b->back_at != 0 && b->windows - b->back_at <= b->need) {
		b->need *= 2;
		if (b->need > LS_BUDGET_NEED_MAX)
			b->need = LS_BUDGET_NEED_MAX;
	}
	b->factor *= 2;
	b->slowings++;
	b->over_in_a_row = 0; /* the new pace gets its own two windows */
}

static void
budget_pace(struct ls_budget *b, const double share[LS_BUDGET_WHAT_COUNT])
{
	double most = share[LS_BUDGET_CPU] > share[LS_BUDGET_BYTES]
		? share[LS_BUDGET_CPU]
		: share[LS_BUDGET_BYTES];

	b->over_in_a_row = most > 1 ? b->over_in_a_row + 1 : 0;
	b->calm = most <= LS_BUDGET_CALM_RATIO ? b->calm + 1 : 0;
	if (b->over_in_a_row >= 2 || most > LS_BUDGET_FAR_RATIO) {
		budget_slow(b);
	} else if (b->calm >= b->need) {
		b->calm = 0;
		if (b->factor > 1) {
			b->factor /= 2;
			b->back_at = b->windows;
		} else {
			b->need = LS_BUDGET_NEED_MIN; /* all is well again */
		}
	}
}

static void
budget_memory(struct ls_budget *b, double share)
{
	b->memory_calm = share <= LS_BUDGET_CALM_RATIO ? b->memory_calm + 1 : 0;
	if (share > 1)
		b->lean = true;
	else if (b->memory_calm >= LS_BUDGET_NEED_MIN)
		b->lean = false;
}

bool
ls_budget_look(struct ls_budget *b, const struct ls_budget_reading *now)
{
	unsigned over = 0, what, before_over = b->over, before = b->factor;
	double share[LS_BUDGET_WHAT_COUNT];
	bool before_lean = b->lean;

	/* A timer may be early by a little. */
	if (now->t_mono_ns < b->last.t_mono_ns + LS_BUDGET_WINDOW_NS / 20 * 19)
		return false;
	budget_measure(b, now);
	budget_shares(b, share);
	for (what = 0; what < LS_BUDGET_WHAT_COUNT; what++) {
		if (share[what] > 1)
			over |= 1u << what;
	}
	b->over = over;
	if (over != 0)
		b->windows_over++;
	budget_pace(b, share);
	budget_memory(b, share[LS_BUDGET_MEMORY]);
	return over != before_over || b->factor != before || b->lean != before_lean;
}
