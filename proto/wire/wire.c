/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

#define WIRE_FIRST_BYTES 4096u /* a beat without backlog needs no second piece */

int
ls_wire_fail(int rc, const char *why, const char **ret_why)
{
	if (ret_why != NULL)
		*ret_why = why;
	return rc;
}

static void *
wire_alloc(void *arena, size_t size)
{
	return ls_arena_take(arena, size);
}

static void
wire_free(void *arena, void *piece)
{
	(void)arena;
	(void)piece; /* the arena is freed as a whole */
}

static int
wire_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *buf, size_t len,
	bool view, struct ls_arena **arena, ProtobufCMessage **ret_message,
	const char **ret_why)
{
	size_t budget = LS_WIRE_ARENA_BASE_BYTES + LS_WIRE_ARENA_FACTOR * len;
	ProtobufCAllocator allocator = { wire_alloc, wire_free, NULL };
	ProtobufCMessage *m;

	if (*arena == NULL)
		*arena = ls_arena_new(WIRE_FIRST_BYTES + 2 * len, budget);
	else
		ls_arena_renew(*arena, budget);
	if (*arena == NULL)
		return ls_wire_fail(-ENOMEM, "out of memory", ret_why);
	m = ls_wire_unpack_usual(type, buf, len, view, *arena);
	if (m != NULL) {
		*ret_message = m;
		return 0;
	}
	ls_arena_renew(*arena, budget);
	allocator.allocator_data = *arena;
	m = protobuf_c_message_unpack(type, &allocator, len, buf);
	if (m == NULL)
		return ls_arena_refused(*arena)
			? ls_wire_fail(-LS_ELIMIT, "needs too much memory", ret_why)
			: ls_wire_fail(-LS_EPARSE, "not a valid message", ret_why);
	*ret_message = m;
	return 0;
}

int
ls_wire_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *buf, size_t len,
	struct ls_arena **arena, ProtobufCMessage **ret_message, const char **ret_why)
{
	return wire_unpack(type, buf, len, false, arena, ret_message, ret_why);
}

int
ls_wire_unpack_view(const ProtobufCMessageDescriptor *type, const uint8_t *buf,
	size_t len, struct ls_arena **arena, ProtobufCMessage **ret_message,
	const char **ret_why)
{
	return wire_unpack(type, buf, len, true, arena, ret_message, ret_why);
}

int
ls_wire_pack(const ProtobufCMessage *m, size_t max_bytes, uint8_t **ret_buf,
	size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *buf;

	if (len > max_bytes)
		return -LS_ELIMIT;
	buf = malloc(len > 0 ? len : 1);
	if (buf == NULL)
		return -ENOMEM;
	*ret_len = protobuf_c_message_pack(m, buf);
	*ret_buf = buf;
	return 0;
}

bool
ls_wire_copy_bytes(uint8_t *dst, size_t size, const ProtobufCBinaryData *src)
{
	if (src->len != size)
		return false;
	memcpy(dst, src->data, size);
	return true;
}

ProtobufCBinaryData
ls_wire_view(const uint8_t *bytes, size_t len)
{
	ProtobufCBinaryData v = { len, NULL };

	/* its pointer is not const, its use is */
	memcpy(&v.data, &bytes, sizeof(bytes));
	return v;
}

char *
ls_wire_text(const char *s)
{
	char *p;

	memcpy(&p, &s, sizeof(p));
	return p;
}

bool
ls_wire_name(char *dst, size_t size, const char *src, bool may_be_empty)
{
	size_t len = strlen(src);

	if (len == 0 && !may_be_empty)
		return false;
	if (len > 0 && !ls_text_is_name(src, len, size - 1))
		return false;
	memcpy(dst, src, len + 1);
	return true;
}

/* --- report: pack --------------------------------------------------------- */

static int
wire_pack_workers(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	Lockstep__Worker *w = ls_arena_take_array(arena, r->worker_count, sizeof(*w));
	size_t i;

	m->workers = ls_arena_take_array(arena, r->worker_count, sizeof(*m->workers));
	if (w == NULL || m->workers == NULL)
		return -ENOMEM;
	m->n_workers = r->worker_count;
	for (i = 0; i < r->worker_count; i++) {
		const struct ls_wire_worker *from = &r->workers[i];

		lockstep__worker__init(&w[i]);
		w[i].ring_id = ls_wire_view(from->ring_id, sizeof(from->ring_id));
		w[i].job = ls_wire_text(from->info.job);
		w[i].slice = ls_wire_text(from->info.slice);
		w[i].role = ls_wire_text(from->info.role);
		w[i].rack = ls_wire_text(from->info.rack);
		w[i].shard = ls_wire_text(from->info.shard);
		w[i].attempt = from->info.attempt;
		w[i].rank = from->info.rank;
		w[i].world = from->info.world;
		w[i].chips = from->info.chips;
		w[i].created_mono_ns = from->created_mono_ns;
		w[i].step_source = (uint32_t)from->info.step_source;
		w[i].step_confidence = from->info.step_confidence;
		w[i].number = from->number;
		w[i].owner = from->info.owner;
		m->workers[i] = &w[i];
	}
	return 0;
}

/* A list of items that are encoded already. */
static int
wire_pack_items(const struct ls_wire_bytes *items, size_t count, struct ls_arena *arena,
	ProtobufCBinaryData **ret_items)
{
	ProtobufCBinaryData *list = ls_arena_take_array(arena, count, sizeof(*list));
	size_t i;

	if (list == NULL)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		list[i] = ls_wire_view(items[i].data, items[i].len);
	*ret_items = list;
	return 0;
}

/* Differences are taken modulo 2^64: exact for any stamps, and what is too large is no
 * time. */
static void
wire_pack_stamps(const struct ls_wire_report *r, Lockstep__Stamps *last)
{
	last->since_send_ns = r->t_send_mono_ns - r->last.t1;
	last->collector_receive_ns = r->last.t2;
	last->in_collector_ns = r->last.t3 - r->last.t2;
	last->round_trip_ns = r->last.t4 - r->last.t1;
}

int
ls_wire_report_pack_to(const struct ls_wire_report *r, struct ls_arena *arena,
	uint8_t *buf, size_t size, size_t *ret_len)
{
	Lockstep__Report m = LOCKSTEP__REPORT__INIT;
	Lockstep__Stamps last = LOCKSTEP__STAMPS__INIT;
	int rc;

	if (r->worker_count > LS_WORKERS_PER_REPORT_MAX ||
		r->item_count > LS_ITEMS_PER_REPORT_MAX ||
		r->hot_count > LS_RINGS_MAX + 1 || r->live_count > LS_RINGS_MAX ||
		r->chunk_item_count > LS_CHUNK_ITEMS_PER_REPORT_MAX)
		return -LS_ELIMIT;
	ls_arena_reset(arena);
	m.version = LS_WIRE_VERSION;
	m.host = ls_wire_text(r->host);
	m.boot = ls_wire_view(r->boot, sizeof(r->boot));
	if (r->has_kernel) {
		m.kernel_boot_id =
			ls_wire_view(r->kernel_boot_id, sizeof(r->kernel_boot_id));
		m.agent_version = ls_wire_text(r->agent_version);
	}
	m.t_send_mono_ns = r->t_send_mono_ns;
	if (r->has_last) {
		wire_pack_stamps(r, &last);
		m.last = &last;
	}
	m.spooled_items = r->spooled_items;
	m.dropped_records = r->dropped_records;
	m.n_items = r->item_count;
	m.n_chunk_items = r->chunk_item_count;
	m.waiting_chunk_items = r->waiting_chunk_items;
	m.lost_samples = r->lost_samples;
	m.slowed = r->slowed;
	rc = wire_pack_workers(&m, r, arena);
	if (rc == 0)
		rc = wire_pack_items(r->items, r->item_count, arena, &m.items);
	if (rc == 0)
		rc = wire_pack_items(r->chunk_items, r->chunk_item_count, arena,
			&m.chunk_items);
	if (rc == 0)
		rc = ls_wire_hot_pack(&m, r, arena);
	if (rc == 0)
		rc = ls_wire_series_pack(&m, r, arena);
	if (rc != 0)
		return rc;
	if (protobuf_c_message_get_packed_size(&m.base) > size)
		return -LS_ELIMIT;
	*ret_len = protobuf_c_message_pack(&m.base, buf);
	return 0;
}

/* --- report: unpack and check --------------------------------------------- */

static int
wire_check_worker(const Lockstep__Worker *m, struct ls_wire_worker *w,
	const char **ret_why)
{
	w->info.attempt = m->attempt;
	w->info.rank = m->rank;
	w->info.world = m->world;
	w->info.chips = m->chips;
	w->created_mono_ns = m->created_mono_ns;
	if (!ls_wire_copy_bytes(w->ring_id, sizeof(w->ring_id), &m->ring_id))
		return ls_wire_fail(-LS_EPARSE, "ring id of a worker", ret_why);
	if (!ls_wire_name(w->info.job, sizeof(w->info.job), m->job, false))
		return ls_wire_fail(-LS_ERANGE, "job is not a name", ret_why);
	if (!ls_wire_name(w->info.slice, sizeof(w->info.slice), m->slice, true))
		return ls_wire_fail(-LS_ERANGE, "slice is not a name", ret_why);
	if (!ls_wire_name(w->info.role, sizeof(w->info.role), m->role, true))
		return ls_wire_fail(-LS_ERANGE, "role is not a name", ret_why);
	if (!ls_wire_name(w->info.rack, sizeof(w->info.rack), m->rack, true))
		return ls_wire_fail(-LS_ERANGE, "rack is not a name", ret_why);
	if (!ls_wire_name(w->info.shard, sizeof(w->info.shard), m->shard, true))
		return ls_wire_fail(-LS_ERANGE, "input shard is not a name", ret_why);
	if (m->attempt < 0)
		return ls_wire_fail(-LS_ERANGE, "attempt is negative", ret_why);
	if (m->rank < 0 || m->rank >= LS_WORKERS_MAX)
		return ls_wire_fail(-LS_ERANGE, "rank out of range", ret_why);
	if (m->world < 0 || m->world > LS_WORKERS_MAX ||
		(m->world > 0 && m->rank >= m->world))
		return ls_wire_fail(-LS_ERANGE, "world out of range", ret_why);
	if (m->chips < 0 || m->chips > LS_CHIPS_PER_WORKER_MAX)
		return ls_wire_fail(-LS_ERANGE, "chips out of range", ret_why);
	if (!ls_wire_time_ok(m->created_mono_ns))
		return ls_wire_fail(-LS_ERANGE, "time of a worker", ret_why);
	if (m->step_source >= LS_STEP_SOURCE_COUNT)
		return ls_wire_fail(-LS_ERANGE, "source of steps is not known",
			ret_why);
	if (!(m->step_confidence >= 0 && m->step_confidence <= 1)) /* NaN, too */
		return ls_wire_fail(-LS_ERANGE, "confidence out of range", ret_why);
	w->info.step_source = (enum ls_step_source)m->step_source;
	w->info.step_confidence = m->step_confidence;
	w->number = m->number;
	w->info.owner = m->owner;
	return 0;
}

static int
wire_check_stamps(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	const Lockstep__Stamps *last = m->last;

	r->t_send_mono_ns = m->t_send_mono_ns;
	r->has_last = last != NULL;
	if (!ls_wire_time_ok(r->t_send_mono_ns))
		return ls_wire_fail(-LS_ERANGE, "time of the report", ret_why);
	if (!r->has_last)
		return 0;
	if (!ls_wire_time_ok(last->round_trip_ns) ||
		!ls_wire_time_ok(last->in_collector_ns))
		return ls_wire_fail(-LS_ERANGE, "time stamps run backwards", ret_why);
	r->last.t1 = r->t_send_mono_ns - last->since_send_ns;
	r->last.t2 = last->collector_receive_ns;
	if (!ls_wire_time_ok(r->last.t1) || !ls_wire_time_ok(r->last.t2))
		return ls_wire_fail(-LS_ERANGE, "time stamps of the report", ret_why);
	r->last.t3 = r->last.t2 + last->in_collector_ns;
	r->last.t4 = r->last.t1 + last->round_trip_ns;
	if (!ls_wire_time_ok(r->last.t3) || !ls_wire_time_ok(r->last.t4))
		return ls_wire_fail(-LS_ERANGE, "time stamps of the report", ret_why);
	return 0;
}

static int
wire_check_head(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	if (m->version != LS_WIRE_VERSION)
		return ls_wire_fail(-LS_EVERSION, "unknown version of the report",
			ret_why);
	if (!ls_wire_name(r->host, sizeof(r->host), m->host, false))
		return ls_wire_fail(-LS_ERANGE, "host is not a name", ret_why);
	if (!ls_wire_name(r->agent_version, sizeof(r->agent_version), m->agent_version,
		    true))
		return ls_wire_fail(-LS_ERANGE, "agent version is not a name", ret_why);
	if (!ls_wire_copy_bytes(r->boot, sizeof(r->boot), &m->boot))
		return ls_wire_fail(-LS_EPARSE, "boot of the agent", ret_why);
	r->has_kernel = m->kernel_boot_id.len > 0;
	if (r->has_kernel &&
		!ls_wire_copy_bytes(r->kernel_boot_id, sizeof(r->kernel_boot_id),
			&m->kernel_boot_id))
		return ls_wire_fail(-LS_EPARSE, "boot id of the kernel", ret_why);
	if (m->n_workers > LS_WORKERS_PER_REPORT_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many workers", ret_why);
	if (m->n_items > LS_ITEMS_PER_REPORT_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many items", ret_why);
	if (m->n_hot > LS_RINGS_MAX + 1 || m->n_live > LS_RINGS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many live values", ret_why);
	if (m->n_chunk_items > LS_CHUNK_ITEMS_PER_REPORT_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many items of chunks", ret_why);
	if (m->slowed > LS_SLOWED_MAX)
		return ls_wire_fail(-LS_ERANGE, "slowed out of range", ret_why);
	r->spooled_items = m->spooled_items;
	r->dropped_records = m->dropped_records;
	r->waiting_chunk_items = m->waiting_chunk_items;
	r->lost_samples = m->lost_samples;
	r->slowed = m->slowed;
	return wire_check_stamps(m, r, ret_why);
}

/* Items stay encoded: only their sizes are looked at here. */
static int
wire_check_items(const ProtobufCBinaryData *from, size_t count, size_t max_bytes,
	struct ls_wire_bytes *items, const char **ret_why)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (from[i].len == 0 || from[i].len > max_bytes)
			return ls_wire_fail(-LS_ELIMIT, "size of an item", ret_why);
		items[i].data = from[i].data;
		items[i].len = from[i].len;
	}
	return 0;
}

static int
wire_check_lists(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < m->n_workers && rc == 0; i++) {
		memcpy(r->workers[i].info.host, r->host, sizeof(r->host));
		rc = wire_check_worker(m->workers[i], &r->workers[i], ret_why);
	}
	if (rc == 0)
		rc = ls_wire_hot_check(m, r, ret_why);
	if (rc == 0)
		rc = wire_check_items(m->items, m->n_items, LS_ITEM_MAX_BYTES, r->items,
			ret_why);
	if (rc == 0)
		rc = wire_check_items(m->chunk_items, m->n_chunk_items,
			LS_CHUNK_ITEM_MAX_BYTES, r->chunk_items, ret_why);
	r->worker_count = m->n_workers;
	r->hot_count = m->n_hot;
	r->live_count = m->n_live;
	r->item_count = m->n_items;
	r->chunk_item_count = m->n_chunk_items;
	return rc;
}

/* Room for the lists, whose counts wire_check_head has bounded. */
static int
wire_take_lists(const Lockstep__Report *m, struct ls_wire_report *r,
	struct ls_arena *arena)
{
	r->workers = ls_arena_take_array(arena, m->n_workers, sizeof(*r->workers));
	r->hot = ls_arena_take_array(arena, m->n_hot, sizeof(*r->hot));
	r->live = ls_arena_take_array(arena, m->n_live, sizeof(*r->live));
	r->items = ls_arena_take_array(arena, m->n_items, sizeof(*r->items));
	r->chunk_items =
		ls_arena_take_array(arena, m->n_chunk_items, sizeof(*r->chunk_items));
	if (r->workers == NULL || r->hot == NULL || r->live == NULL ||
		r->items == NULL || r->chunk_items == NULL)
		return ls_arena_refused(arena) ? -LS_ELIMIT : -ENOMEM;
	return 0;
}

int
ls_wire_report_unpack_in(const uint8_t *buf, size_t len, struct ls_arena **arena,
	struct ls_wire_report *ret_report, const char **ret_why)
{
	struct ls_wire_report r = { 0 };
	ProtobufCMessage *base;
	const Lockstep__Report *m;
	int rc;

	if (len > LS_REPORT_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "report is too long", ret_why);
	rc = ls_wire_unpack(&lockstep__report__descriptor, buf, len, arena, &base,
		ret_why);
	if (rc != 0)
		return rc;
	m = (const Lockstep__Report *)base;
	rc = wire_check_head(m, &r, ret_why);
	if (rc != 0)
		return rc;
	rc = wire_take_lists(m, &r, *arena);
	if (rc != 0)
		return ls_wire_fail(rc, "no memory for the lists", ret_why);
	rc = wire_check_lists(m, &r, ret_why);
	if (rc == 0)
		rc = ls_wire_series_check(m, &r, *arena, ret_why);
	if (rc == 0)
		*ret_report = r;
	return rc;
}
