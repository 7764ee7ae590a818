/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

_Static_assert(LS_HOT_MAX <= 32, "bits of a mask");

#define HOT_WHOLE_MAX (1ull << 53) /* every whole number up to it is a double */

/* --- numbers for values --------------------------------------------------- */

/* In one second, how many of the units that values of a metric travel in. */
static double
hot_scale(unsigned metric)
{
	const char *unit = ls_metric_info(metric)->unit;

	/* asked for each value: no call */
	return unit[0] == 's' && unit[1] == '\0' ? 1e6 : 1;
}

/* The whole number that a value travels as; false: it has none, and travels as a
 * double. */
static bool
hot_whole(unsigned metric, double value, uint64_t *ret_number)
{
	double scale = hot_scale(metric), n;

	if (!(value >= 0 && value <= (double)HOT_WHOLE_MAX))
		return false;
	n = scale > 1 ? round(value * scale) : value;
	if (n > (double)HOT_WHOLE_MAX || floor(n) != n)
		return false;
	*ret_number = (uint64_t)n;
	return true;
}

/* --- pack ----------------------------------------------------------------- */

static int
hot_pack_one(Lockstep__Hot *m, const struct ls_wire_hot *from, uint64_t t_send_ns,
	struct ls_arena *arena)
{
	unsigned metric = ls_metric_hot(0), bit = 0;
	size_t k = 0;
	uint64_t n;

	LS_ASSERT(from->count <= LS_HOT_MAX);
	m->worker = from->worker;
	m->age_ns = (int64_t)(t_send_ns - from->t_mono_ns);
	m->value = ls_arena_take_array(arena, from->count, sizeof(*m->value));
	m->odd = ls_arena_take_array(arena, from->count, sizeof(*m->odd));
	if (m->value == NULL || m->odd == NULL)
		return -ENOMEM;
	for (; metric < LS_METRIC_COUNT && k < from->count;
		metric = ls_metric_hot(++bit)) {
		if (from->metric[k] != metric)
			continue;
		m->mask |= 1u << bit;
		if (hot_whole(metric, from->value[k], &n)) {
			m->value[m->n_value++] = n;
		} else {
			m->odd_mask |= 1u << bit;
			m->odd[m->n_odd++] = from->value[k];
		}
		k++;
	}
	return k == from->count ? 0 : -LS_ERANGE; /* not hot, or not in order */
}

static int
hot_pack_live(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	m->live = ls_wire_messages(&lockstep__live__descriptor, r->live_count, arena);
	if (m->live == NULL)
		return -ENOMEM;
	m->n_live = r->live_count;
	for (size_t i = 0; i < r->live_count; i++) {
		const struct ls_wire_live *from = &r->live[i];

		m->live[i]->worker = from->worker;
		m->live[i]->step = from->live.step;
		m->live[i]->phase = from->live.phase;
		m->live[i]->age_ns =
			(int64_t)(r->t_send_mono_ns - from->live.since_mono_ns);
	}
	return 0;
}

int
ls_wire_hot_pack(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	int rc;

	m->hot = ls_wire_messages(&lockstep__hot__descriptor, r->hot_count, arena);
	if (m->hot == NULL)
		return -ENOMEM;
	m->n_hot = r->hot_count;
	for (size_t i = 0; i < r->hot_count; i++) {
		rc = hot_pack_one(m->hot[i], &r->hot[i], r->t_send_mono_ns, arena);
		if (rc != 0)
			return rc;
	}
	return hot_pack_live(m, r, arena);
}

/* --- unpack and check ----------------------------------------------------- */

static int
hot_check_one(const Lockstep__Hot *m, uint64_t t_send_ns, struct ls_wire_hot *h,
	const char **ret_why)
{
	unsigned bit;
	size_t whole = 0, odd = 0;

	h->worker = m->worker;
	h->t_mono_ns = t_send_ns - (uint64_t)m->age_ns;
	if (!ls_wire_time_ok(h->t_mono_ns))
		return ls_wire_fail(-LS_ERANGE, "time of values", ret_why);
	if ((m->odd_mask & ~m->mask) != 0)
		return ls_wire_fail(-LS_EPARSE, "values that are not measured",
			ret_why);
	for (uint32_t left = m->mask; left != 0; left &= left - 1) {
		unsigned metric = ls_metric_hot(bit = (unsigned)__builtin_ctz(left));
		bool is_odd = m->odd_mask >> bit & 1;
		double value;

		if (is_odd ? odd >= m->n_odd : whole >= m->n_value)
			return ls_wire_fail(-LS_EPARSE, "metrics without their values",
				ret_why);
		value = is_odd ? m->odd[odd++] : (double)m->value[whole++];
		if (!isfinite(value) ||
			(!is_odd && m->value[whole - 1] > HOT_WHOLE_MAX))
			return ls_wire_fail(-LS_ERANGE, "value out of range", ret_why);
		if (metric >= LS_METRIC_COUNT)
			continue; /* added by a newer agent: none of ours */
		h->metric[h->count] = (uint16_t)metric;
		h->value[h->count++] = is_odd ? value : value / hot_scale(metric);
	}
	if (odd != m->n_odd || whole != m->n_value)
		return ls_wire_fail(-LS_EPARSE, "values without their metrics",
			ret_why);
	return 0;
}

static int
hot_check_live(const Lockstep__Live *m, uint64_t t_send_ns, struct ls_wire_live *v,
	const char **ret_why)
{
	v->worker = m->worker;
	v->live.step = m->step;
	v->live.phase = m->phase;
	v->live.since_mono_ns = t_send_ns - (uint64_t)m->age_ns;
	if (m->worker == 0)
		return ls_wire_fail(-LS_EPARSE, "live slot of no worker", ret_why);
	if (m->phase > LS_PHASE_COUNT)
		return ls_wire_fail(-LS_ERANGE, "unknown phase", ret_why);
	if (!ls_wire_time_ok(v->live.since_mono_ns))
		return ls_wire_fail(-LS_ERANGE, "time of a live slot", ret_why);
	return 0;
}

int
ls_wire_hot_check(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	int rc = 0;

	for (size_t i = 0; i < m->n_hot && rc == 0; i++)
		rc = hot_check_one(m->hot[i], r->t_send_mono_ns, &r->hot[i], ret_why);
	for (size_t i = 0; i < m->n_live && rc == 0; i++)
		rc = hot_check_live(m->live[i], r->t_send_mono_ns, &r->live[i],
			ret_why);
	return rc;
}
