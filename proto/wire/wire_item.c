/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/oneof.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

_Static_assert((int)LS_GAP_OVERRUN == (int)LOCKSTEP__GAP__REASON__OVERRUN,
	"wire value");
_Static_assert((int)LS_GAP_SPOOL_FULL == (int)LOCKSTEP__GAP__REASON__SPOOL_FULL,
	"wire value");
_Static_assert((int)LS_GAP_INVALID == (int)LOCKSTEP__GAP__REASON__INVALID,
	"wire value");
_Static_assert((int)LS_GAP_REBOOT == (int)LOCKSTEP__GAP__REASON__REBOOT, "wire value");
_Static_assert((int)LS_END_ENDED == (int)LOCKSTEP__END__HOW__ENDED, "wire value");
_Static_assert((int)LS_END_CRASHED == (int)LOCKSTEP__END__HOW__CRASHED, "wire value");
_Static_assert((int)LS_END_MEMORY == (int)LOCKSTEP__END__HOW__MEMORY, "wire value");

#define STEPS(kind, field, why) \
	LS_WIRE_FIELD(kind, Lockstep__Steps, field, struct ls_wire_item, field, 0, why)
#define GAP(kind, field, max, why) \
	LS_WIRE_FIELD(kind, Lockstep__Gap, field, struct ls_wire_item, field, max, why)
#define END(kind, theirs, ours, max, why) \
	LS_WIRE_FIELD(kind, Lockstep__End, theirs, struct ls_wire_item, ours, max, why)

static const struct ls_wire_field item_steps[] = {
	STEPS(ID, ring_id, "ring id of steps"),
	STEPS(NUMBER, first_index, NULL),
	{ .kind = LS_FIELD_END },
};

static const struct ls_wire_field item_gap[] = {
	GAP(ID, ring_id, 0, "ring id of a gap"),
	GAP(NUMBER, first_index, 0, NULL),
	GAP(NUMBER, count, 0, NULL),
	GAP(REASON, reason, LS_GAP_REASON_COUNT - 1, NULL),
	{ .kind = LS_FIELD_END },
};

static const struct ls_wire_field item_end[] = {
	END(ID, ring_id, ring_id, 0, "ring id of an end"),
	END(NUMBER, t_mono_ns, t_mono_ns, LS_WIRE_TIME_MAX_NS, "time of an end"),
	END(NUMBER, records, count, 0, NULL),
	END(REASON, how, how, LS_END_HOW_COUNT - 1, NULL),
	{ .kind = LS_FIELD_END },
};

/* --- pack: records to columns --------------------------------------------- */

static int
item_pack_phases(Lockstep__Steps *m, const struct ls_wire_item *item,
	struct ls_arena *arena)
{
	uint64_t *at;

	for (size_t i = 0; i < item->count; i++)
		m->phase_mask |=
			item->records[i].phase_mask & ((1u << LS_PHASE_COUNT) - 1);
	m->n_phase_ns_plus1 = (size_t)__builtin_popcount(m->phase_mask) * item->count;
	at = ls_arena_take_array(arena, m->n_phase_ns_plus1, sizeof(*at));
	m->phase_ns_plus1 = at;
	if (at == NULL)
		return -ENOMEM;
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++) {
		if (!(m->phase_mask & 1u << p))
			continue;
		for (size_t i = 0; i < item->count; i++, at++) {
			const struct ls_record *r = &item->records[i];

			if (r->phase_mask & 1u << p)
				*at = r->phase_ns[p] + 1;
		}
	}
	return 0;
}

static int
item_pack_barriers(Lockstep__Steps *m, const struct ls_wire_item *item,
	struct ls_arena *arena)
{
	size_t i, b, n = item->count, width = 0;

	for (i = 0; i < n; i++) {
		if (item->records[i].barrier_count > width)
			width = item->records[i].barrier_count;
	}
	m->barriers =
		ls_wire_messages(&lockstep__barrier_column__descriptor, width, arena);
	if (m->barriers == NULL)
		return -ENOMEM;
	m->n_barriers = width;
	for (b = 0; b < width; b++) {
		Lockstep__BarrierColumn *col = m->barriers[b];

		col->kind_plus1 = ls_arena_take_array(arena, n, sizeof(uint32_t));
		col->enter_ns = ls_arena_take_array(arena, n, sizeof(int64_t));
		col->inside_ns = ls_arena_take_array(arena, n, sizeof(uint64_t));
		if (col->kind_plus1 == NULL || col->enter_ns == NULL ||
			col->inside_ns == NULL)
			return -ENOMEM;
		col->n_kind_plus1 = col->n_enter_ns = col->n_inside_ns = n;
		for (i = 0; i < n; i++) {
			const struct ls_record *r = &item->records[i];

			if (b >= r->barrier_count)
				continue;
			col->kind_plus1[i] = r->barrier[b].kind + 1u;
			col->enter_ns[i] = (int64_t)((uint64_t)r->barrier[b].enter_ns -
				(uint64_t)r->t_begin_ns);
			col->inside_ns[i] = (uint64_t)r->barrier[b].exit_ns -
				(uint64_t)r->barrier[b].enter_ns;
		}
	}
	return 0;
}

static int
item_pack_work(Lockstep__Steps *m, const struct ls_wire_item *item,
	struct ls_arena *arena)
{
	unsigned w, any = 0;

	for (size_t i = 0; i < item->count; i++)
		any |= item->records[i].work_mask;
	m->work = ls_wire_messages(&lockstep__work_column__descriptor,
		(size_t)__builtin_popcount(any), arena);
	if (m->work == NULL)
		return -ENOMEM;
	for (w = 0; w < LS_WORK_COUNT; w++) {
		Lockstep__WorkColumn *col;

		if (!(any & 1u << w))
			continue;
		col = m->work[m->n_work++];
		col->work = w;
		col->value = ls_arena_take_array(arena, item->count, sizeof(double));
		if (col->value == NULL)
			return -ENOMEM;
		col->n_value = item->count;
		for (size_t i = 0; i < item->count; i++) {
			const struct ls_record *r = &item->records[i];

			col->value[i] =
				r->work_mask & 1u << w ? r->work[w] : (double)NAN;
		}
	}
	return 0;
}

static int
item_pack_peers(Lockstep__Steps *m, const struct ls_wire_item *item,
	struct ls_arena *arena)
{
	size_t i, p, n = item->count, width = 0, at;

	for (i = 0; i < n; i++) {
		if (item->records[i].peer_count > width)
			width = item->records[i].peer_count;
	}
	m->peer_rank_plus1 = ls_arena_take_array(arena, width * n, sizeof(uint32_t));
	m->peer_recv_wait_ns_plus1 =
		ls_arena_take_array(arena, width * n, sizeof(uint64_t));
	m->peer_send_wait_ns_plus1 =
		ls_arena_take_array(arena, width * n, sizeof(uint64_t));
	if (m->peer_rank_plus1 == NULL || m->peer_recv_wait_ns_plus1 == NULL ||
		m->peer_send_wait_ns_plus1 == NULL)
		return -ENOMEM;
	m->n_peer_rank_plus1 = width * n;
	m->n_peer_recv_wait_ns_plus1 = m->n_peer_send_wait_ns_plus1 = width * n;
	for (p = 0; p < width; p++) {
		for (i = 0; i < n; i++) {
			const struct ls_record *r = &item->records[i];

			at = p * n + i;
			if (p >= r->peer_count)
				continue;
			m->peer_rank_plus1[at] = r->peer[p].rank + 1;
			/* "not measured" is UINT64_MAX and becomes 0 */
			m->peer_recv_wait_ns_plus1[at] = r->peer[p].recv_wait_ns + 1;
			m->peer_send_wait_ns_plus1[at] = r->peer[p].send_wait_ns + 1;
		}
	}
	return 0;
}

static int
item_pack_steps(Lockstep__Steps *m, const struct ls_wire_item *item,
	struct ls_arena *arena)
{
	uint64_t step = 0, begin = 0;
	size_t i, n = item->count;
	int rc;

	ls_wire_put(item_steps, item, m);
	m->step = ls_arena_take_array(arena, n, sizeof(*m->step));
	m->t_begin_ns = ls_arena_take_array(arena, n, sizeof(*m->t_begin_ns));
	m->duration_ns = ls_arena_take_array(arena, n, sizeof(*m->duration_ns));
	if (m->step == NULL || m->t_begin_ns == NULL || m->duration_ns == NULL)
		return -ENOMEM;
	m->n_step = m->n_t_begin_ns = m->n_duration_ns = n;
	for (i = 0; i < n; i++) {
		const struct ls_record *r = &item->records[i];

		/* Differences modulo 2^64: exact for any pair of values. */
		m->step[i] = (int64_t)(r->step - step);
		m->t_begin_ns[i] = (int64_t)((uint64_t)r->t_begin_ns - begin);
		m->duration_ns[i] = r->duration_ns;
		step = r->step;
		begin = (uint64_t)r->t_begin_ns;
	}
	rc = item_pack_phases(m, item, arena);
	if (rc == 0)
		rc = item_pack_barriers(m, item, arena);
	if (rc == 0)
		rc = item_pack_work(m, item, arena);
	if (rc == 0)
		rc = item_pack_peers(m, item, arena);
	return rc;
}

int
ls_wire_item_pack_to(const struct ls_wire_item *item, struct ls_arena *scratch,
	uint8_t *buf, size_t size, size_t *ret_len)
{
	Lockstep__Item m = LOCKSTEP__ITEM__INIT;
	Lockstep__Steps steps = LOCKSTEP__STEPS__INIT;
	Lockstep__Gap gap = LOCKSTEP__GAP__INIT;
	Lockstep__End end = LOCKSTEP__END__INIT;
	int rc = 0;

	m.seq = item->seq;
	switch (item->kind) {
	case LS_WIRE_STEPS:
		if (item->count == 0 || item->count > LS_RECORDS_PER_ITEM_MAX)
			return -LS_ELIMIT;
		ls_arena_reset(scratch);
		rc = item_pack_steps(&steps, item, scratch);
		m.body_case = LOCKSTEP__ITEM__BODY_STEPS;
		m.steps = &steps;
		break;
	case LS_WIRE_GAP:
		ls_wire_put(item_gap, item, &gap);
		m.body_case = LOCKSTEP__ITEM__BODY_GAP;
		m.gap = &gap;
		break;
	case LS_WIRE_END:
		ls_wire_put(item_end, item, &end);
		m.body_case = LOCKSTEP__ITEM__BODY_END;
		m.end = &end;
		break;
	}
	if (rc != 0)
		return rc;
	if (protobuf_c_message_get_packed_size(&m.base) > size)
		return -LS_ELIMIT;
	*ret_len = protobuf_c_message_pack(&m.base, buf);
	return 0;
}

/* --- unpack: columns to records, then check ------------------------------- */

static int
item_read_phases(const Lockstep__Steps *m, struct ls_wire_item *item,
	const char **ret_why)
{
	const uint64_t *at = m->phase_ns_plus1;

	if (m->phase_mask >> LS_PHASE_COUNT != 0)
		return ls_wire_fail(-LS_ERANGE, "unknown phase", ret_why);
	if (m->n_phase_ns_plus1 !=
		(size_t)__builtin_popcount(m->phase_mask) * item->count)
		return ls_wire_fail(-LS_EPARSE, "length of the phases", ret_why);
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++) {
		if (!(m->phase_mask & 1u << p))
			continue;
		for (size_t i = 0; i < item->count; i++, at++) {
			if (*at == 0)
				continue;
			item->records[i].phase_mask |= 1u << p;
			item->records[i].phase_ns[p] = *at - 1;
		}
	}
	return 0;
}

/* Enter and exit of one barrier, modulo 2^64: exact where ls_record_check finds nothing
 * wrong. */
static int
item_read_barrier(struct ls_record *r, uint32_t kind_plus1, int64_t enter_ns,
	uint64_t inside_ns, const char **ret_why)
{
	struct ls_record_barrier *b = &r->barrier[r->barrier_count];
	uint64_t enter = (uint64_t)r->t_begin_ns + (uint64_t)enter_ns;

	if (kind_plus1 > LS_BARRIER_COUNT)
		return ls_wire_fail(-LS_ERANGE, "unknown kind of barrier", ret_why);
	b->kind = (uint8_t)(kind_plus1 - 1);
	b->enter_ns = (int64_t)enter;
	b->exit_ns = (int64_t)(enter + inside_ns);
	r->barrier_count++;
	return 0;
}

static int
item_read_barriers(const Lockstep__Steps *m, struct ls_wire_item *item,
	const char **ret_why)
{
	int rc;

	if (m->n_barriers > LS_BARRIERS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many barriers", ret_why);
	for (size_t k = 0; k < m->n_barriers; k++) {
		const Lockstep__BarrierColumn *col = m->barriers[k];

		if (col->n_kind_plus1 != item->count ||
			col->n_enter_ns != item->count ||
			col->n_inside_ns != item->count)
			return ls_wire_fail(-LS_EPARSE, "length of a barrier", ret_why);
		for (size_t i = 0; i < item->count; i++) {
			if (col->kind_plus1[i] == 0)
				continue;
			if (item->records[i].barrier_count != k)
				return ls_wire_fail(-LS_EPARSE, "hole in barriers",
					ret_why);
			rc = item_read_barrier(&item->records[i], col->kind_plus1[i],
				col->enter_ns[i], col->inside_ns[i], ret_why);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

static int
item_read_work(const Lockstep__Steps *m, struct ls_wire_item *item,
	const char **ret_why)
{
	unsigned seen = 0;

	for (size_t k = 0; k < m->n_work; k++) {
		const Lockstep__WorkColumn *col = m->work[k];

		if (col->work >= LS_WORK_COUNT)
			continue; /* a kind added by a newer agent: none of ours */
		if (seen & 1u << col->work)
			return ls_wire_fail(-LS_EPARSE, "a kind of work twice",
				ret_why);
		if (col->n_value != item->count)
			return ls_wire_fail(-LS_EPARSE, "length of work", ret_why);
		seen |= 1u << col->work;
		for (size_t i = 0; i < item->count; i++) {
			if (isnan(col->value[i]))
				continue;
			item->records[i].work_mask |= (uint8_t)(1u << col->work);
			item->records[i].work[col->work] = col->value[i];
		}
	}
	return 0;
}

static int
item_read_peers(const Lockstep__Steps *m, struct ls_wire_item *item,
	const char **ret_why)
{
	size_t n = m->n_peer_rank_plus1, at;

	if (n > LS_PEERS_MAX * item->count)
		return ls_wire_fail(-LS_ELIMIT, "too many peers", ret_why);
	if (n % item->count != 0 || m->n_peer_recv_wait_ns_plus1 != n ||
		m->n_peer_send_wait_ns_plus1 != n)
		return ls_wire_fail(-LS_EPARSE, "length of the peers", ret_why);
	for (at = 0; at < n; at++) {
		struct ls_record *r = &item->records[at % item->count];
		struct ls_record_peer *peer = &r->peer[at / item->count];

		if (m->peer_rank_plus1[at] == 0)
			continue;
		if (r->peer_count != at / item->count)
			return ls_wire_fail(-LS_EPARSE, "hole in peers", ret_why);
		peer->rank = m->peer_rank_plus1[at] - 1;
		peer->recv_wait_ns = m->peer_recv_wait_ns_plus1[at] - 1;
		peer->send_wait_ns = m->peer_send_wait_ns_plus1[at] - 1;
		r->peer_count++;
	}
	return 0;
}

static int
item_read_steps(const Lockstep__Steps *m, struct ls_wire_item *item,
	const char **ret_why)
{
	uint64_t step = 0, begin = 0;
	int rc;

	for (size_t i = 0; i < item->count; i++) {
		step += (uint64_t)m->step[i];
		begin += (uint64_t)m->t_begin_ns[i];
		item->records[i].step = step;
		item->records[i].t_begin_ns = (int64_t)begin;
		item->records[i].duration_ns = m->duration_ns[i];
	}
	rc = item_read_phases(m, item, ret_why);
	if (rc == 0)
		rc = item_read_barriers(m, item, ret_why);
	if (rc == 0)
		rc = item_read_work(m, item, ret_why);
	if (rc == 0)
		rc = item_read_peers(m, item, ret_why);
	for (size_t i = 0; i < item->count && rc == 0; i++)
		rc = ls_record_check(&item->records[i], ret_why);
	return rc;
}

static int
item_check_steps(const Lockstep__Steps *m, struct ls_wire_item *item,
	const char **ret_why)
{
	int rc = ls_wire_take(item_steps, m, item, ret_why);

	if (rc != 0)
		return rc;
	if (m->n_step == 0 || m->n_step > LS_RECORDS_PER_ITEM_MAX)
		return ls_wire_fail(-LS_ELIMIT, "number of records", ret_why);
	if (m->n_t_begin_ns != m->n_step || m->n_duration_ns != m->n_step)
		return ls_wire_fail(-LS_EPARSE, "length of a column", ret_why);
	if (m->first_index > UINT64_MAX - m->n_step)
		return ls_wire_fail(-LS_ERANGE, "index of records", ret_why);
	item->kind = LS_WIRE_STEPS;
	item->count = m->n_step;
	item->records = calloc(m->n_step, sizeof(*item->records));
	if (item->records == NULL)
		return ls_wire_fail(-ENOMEM, "out of memory", ret_why);
	return item_read_steps(m, item, ret_why);
}

static int
item_check_gap(const Lockstep__Gap *m, struct ls_wire_item *item, const char **ret_why)
{
	if (m->count == 0 || m->first_index > UINT64_MAX - m->count)
		return ls_wire_fail(-LS_ERANGE, "length of a gap", ret_why);
	item->kind = LS_WIRE_GAP;
	return ls_wire_take(item_gap, m, item, ret_why);
}

static int
item_check(const Lockstep__Item *m, struct ls_wire_item *item, const char **ret_why)
{
	if (m->seq == 0)
		return ls_wire_fail(-LS_ERANGE, "item without a number", ret_why);
	item->seq = m->seq;
	switch (m->body_case) {
	case LOCKSTEP__ITEM__BODY_STEPS:
		return item_check_steps(m->steps, item, ret_why);
	case LOCKSTEP__ITEM__BODY_GAP:
		return item_check_gap(m->gap, item, ret_why);
	case LOCKSTEP__ITEM__BODY_END:
		item->kind = LS_WIRE_END;
		return ls_wire_take(item_end, m->end, item, ret_why);
	case LOCKSTEP__ITEM__BODY__NOT_SET:
	case LS_ONEOF_END(LOCKSTEP__ITEM__BODY):
		break;
	}
	return ls_wire_fail(-LS_EVERSION, "item of no known kind", ret_why);
}

int
ls_wire_item_unpack_in(const uint8_t *buf, size_t len, struct ls_arena **scratch,
	struct ls_wire_item *ret_item, const char **ret_why)
{
	struct ls_wire_item item = { 0 };
	ProtobufCMessage *m;
	int rc;

	if (len > LS_ITEM_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "item is too long", ret_why);
	rc = ls_wire_unpack(&lockstep__item__descriptor, buf, len, scratch, &m,
		ret_why);
	if (rc != 0)
		return rc;
	rc = item_check((const Lockstep__Item *)m, &item, ret_why);
	if (rc == 0)
		*ret_item = item;
	else
		ls_wire_item_clear(&item);
	return rc;
}

int
ls_wire_item_unpack(const uint8_t *buf, size_t len, struct ls_wire_item *ret_item,
	const char **ret_why)
{
	struct ls_arena *scratch = NULL;
	int rc = ls_wire_item_unpack_in(buf, len, &scratch, ret_item, ret_why);

	ls_arena_free(scratch);
	return rc;
}

void
ls_wire_item_clear(struct ls_wire_item *item)
{
	free(item->records);
	memset(item, 0, sizeof(*item));
}
