/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/pressure.h"

#include <string.h>
#include "proto/limits.h"

void
ls_pressure_init(struct ls_pressure *p, uint64_t held_max)
{
	memset(p, 0, sizeof(*p));
	p->held_max = held_max;
	p->need_ns = LS_PRESSURE_CALM_NS;
	p->stats.factor = 1;
}

/* How full the fullest of them is. */
static double
pressure_share(const struct ls_pressure *p, const struct ls_pressure_load *load)
{
	double held = (double)load->held / (double)p->held_max;
	double bytes = (double)load->held_bytes / (double)LS_INGEST_HELD_MAX_BYTES;
	double queue =
		(double)load->queue / (double)(LS_WRITE_QUEUE_MAX - LS_WRITE_RESERVE);
	double most = held > bytes ? held : bytes;

	return most > queue ? most : queue;
}

bool
ls_pressure_take(struct ls_pressure *p, const struct ls_pressure_load *load)
{
	double share = pressure_share(p, load);
	double limit =
		p->stats.refusing ? LS_PRESSURE_HELD_SHARE / 2 : LS_PRESSURE_HELD_SHARE;

	p->stats.refusals += share >= limit && !p->stats.refusing;
	p->stats.refusing = share >= limit;
	p->refused = p->refused || p->stats.refusing;
	return !p->stats.refusing;
}

void
ls_pressure_wait(struct ls_pressure *p, uint64_t now_ns)
{
	if (p->waiting_since_ns == 0)
		p->waiting_since_ns = now_ns;
}

void
ls_pressure_committed(struct ls_pressure *p, uint64_t now_ns, uint64_t commit_ns,
	uint64_t left)
{
	p->waiting_since_ns = left > 0 ? now_ns : 0;
	if (commit_ns > p->commit_ns)
		p->commit_ns = commit_ns;
}

static void
pressure_set_factor(struct ls_pressure *p, unsigned factor, uint64_t now_ns)
{
	if (factor > p->stats.factor)
		p->stats.rises++;
	else
		p->fell_ns = now_ns;
	p->stats.factor = factor;
	p->changed_ns = now_ns;
	p->calm_since_ns = now_ns;
}

/* Too much for us: beats become longer, once those of before had time to help. */
static void
pressure_high(struct ls_pressure *p, uint64_t now_ns)
{
	p->calm_since_ns = now_ns;
	if (++p->high_turns < LS_PRESSURE_TURNS ||
		p->stats.factor >= LS_PRESSURE_FACTOR_MAX ||
		(p->stats.factor > 1 && now_ns - p->changed_ns < LS_PRESSURE_RISE_NS))
		return;
	/* A rise soon after a fall: the fall was too early. */
	if (p->fell_ns != 0 && now_ns - p->fell_ns < 2 * p->need_ns &&
		2 * p->need_ns <= LS_PRESSURE_CALM_MAX_NS)
		p->need_ns *= 2;
	pressure_set_factor(p, 2 * p->stats.factor, now_ns);
}

static void
pressure_calm(struct ls_pressure *p, uint64_t now_ns)
{
	if (now_ns - p->calm_since_ns < p->need_ns)
		return;
	if (p->stats.factor > 1)
		pressure_set_factor(p, p->stats.factor / 2, now_ns);
	else if (now_ns - p->changed_ns >= 2 * p->need_ns)
		p->need_ns = LS_PRESSURE_CALM_NS; /* that it ever rose is forgotten */
}

void
ls_pressure_turn(struct ls_pressure *p, uint64_t now_ns, uint64_t cpu_ns)
{
	uint64_t since_ns = now_ns - p->turn_ns, stall_ns;
	struct ls_pressure_stats *s = &p->stats;

	if (p->turn_ns != 0 && since_ns < LS_PRESSURE_TURN_NS)
		return;
	/* What came in this turn came after its clock was read. */
	stall_ns = p->waiting_since_ns != 0 && now_ns > p->waiting_since_ns
		? now_ns - p->waiting_since_ns
		: 0;
	s->commit_ns = p->commit_ns > stall_ns ? p->commit_ns : stall_ns;
	s->loop_ratio =
		p->turn_ns != 0 ? (double)(cpu_ns - p->cpu_ns) / (double)since_ns : 0;
	if (p->refused || s->commit_ns >= LS_PRESSURE_COMMIT_NS ||
		s->loop_ratio >= LS_PRESSURE_LOOP_RATIO) {
		pressure_high(p, now_ns);
		goto out;
	}
	p->high_turns = 0;
	if (s->commit_ns < LS_PRESSURE_COMMIT_NS / 2 &&
		s->loop_ratio < LS_PRESSURE_LOOP_RATIO * LS_PRESSURE_CALM_RATIO)
		pressure_calm(p, now_ns);
	else
		p->calm_since_ns = now_ns; /* in between: stays as it is */
out:
	p->turn_ns = now_ns;
	p->cpu_ns = cpu_ns;
	p->commit_ns = 0;
	p->refused = false;
}

uint64_t
ls_pressure_beat_ns(const struct ls_pressure *p)
{
	return p->stats.factor > 1 ? p->stats.factor * LS_BEAT_DEFAULT_NS : 0;
}

uint64_t
ls_pressure_retry_ns(const struct ls_pressure *p)
{
	return p->stats.factor * LS_BEAT_DEFAULT_NS;
}

void
ls_pressure_stats(const struct ls_pressure *p, struct ls_pressure_stats *ret_stats)
{
	*ret_stats = p->stats;
}
