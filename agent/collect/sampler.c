/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/sampler.h"

void
ls_sampler_init(struct ls_sampler *s, uint64_t interval_ns, uint64_t now_mono_ns)
{
	LS_ASSERT(interval_ns > 0);
	s->interval_ns = interval_ns;
	s->next_ns = now_mono_ns;
	s->until_slow = 0;
}

void
ls_sampler_set_interval(struct ls_sampler *s, uint64_t interval_ns)
{
	LS_ASSERT(interval_ns > 0);
	s->interval_ns = interval_ns;
}

unsigned
ls_sampler_due(struct ls_sampler *s, uint64_t now_mono_ns)
{
	unsigned due = LS_CADENCE_FAST;

	if (now_mono_ns < s->next_ns)
		return 0;
	s->next_ns = (now_mono_ns / s->interval_ns + 1) * s->interval_ns;
	if (s->until_slow == 0) {
		due |= LS_CADENCE_SLOW;
		s->until_slow = LS_SLOW_FACTOR;
	}
	s->until_slow--;
	return due;
}

uint64_t
ls_sampler_wait_ns(const struct ls_sampler *s, uint64_t now_mono_ns)
{
	return s->next_ns > now_mono_ns ? s->next_ns - now_mono_ns : 0;
}

void
ls_sampler_hot(const struct ls_sample *sample, enum ls_metric_scope scope,
	struct ls_wire_hot *ret_hot)
{
	memset(ret_hot, 0, sizeof(*ret_hot));
	ret_hot->t_mono_ns = sample->t_mono_ns;
	for (unsigned m = 0; m < LS_METRIC_COUNT && ret_hot->count < LS_HOT_MAX; m++) {
		const struct ls_metric_info *info = ls_metric_info(m);

		if (!info->hot || info->scope != scope || !sample->present[m])
			continue;
		ret_hot->metric[ret_hot->count] = (uint16_t)m;
		ret_hot->value[ret_hot->count++] = sample->value[m];
	}
}
