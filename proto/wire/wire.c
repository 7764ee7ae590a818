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

int
ls_wire_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *buf, size_t len,
	struct ls_arena **arena, ProtobufCMessage **ret_message, const char **ret_why)
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

static bool
wire_name(char *dst, size_t size, const char *src, bool may_be_empty)
{
	size_t len = strlen(src);

	if (len == 0 && !may_be_empty)
		return false;
	if (len > 0 && !ls_text_is_name(src, len, size - 1))
		return false;
	memcpy(dst, src, len + 1);
	return true;
}

/* --- fields --------------------------------------------------------------- */

void
ls_wire_put(const struct ls_wire_field *f, const void *ours, void *message)
{
	for (; f->kind != LS_FIELD_END; f++) {
		const uint8_t *from = (const uint8_t *)ours + f->ours;
		void *to = (uint8_t *)message + f->theirs;
		ProtobufCBinaryData bytes;

		switch (f->kind) {
		case LS_FIELD_NUMBER:
		case LS_FIELD_REASON:
			memcpy(to, from, f->size);
			break;
		case LS_FIELD_FLAG:
			*(protobuf_c_boolean *)to = *(const bool *)from;
			break;
		case LS_FIELD_ID:
			bytes = ls_wire_view(from, f->size);
			memcpy(to, &bytes, sizeof(bytes));
			break;
		case LS_FIELD_NAME:
		case LS_FIELD_TEXT:
			memcpy(to, &from, sizeof(from)); /* it is only read */
			break;
		case LS_FIELD_END:
			break;
		}
	}
}

static inline int
wire_take_one(const struct ls_wire_field *f, const void *from, void *to)
{
	uint64_t number;

	switch (f->kind) {
	case LS_FIELD_NUMBER:
	case LS_FIELD_REASON:
		memcpy(to, from, f->size);
		if (f->max == 0)
			return 0;
		number = f->size == sizeof(uint32_t) ? *(const uint32_t *)from
						     : *(const uint64_t *)from;
		if (number <= f->max)
			return 0;
		if (f->kind == LS_FIELD_NUMBER)
			return -LS_ERANGE;
		memset(to, 0, f->size);
		return 0;
	case LS_FIELD_FLAG:
		*(bool *)to = *(const protobuf_c_boolean *)from != 0;
		return 0;
	case LS_FIELD_NAME:
	case LS_FIELD_TEXT:
		return wire_name(to, f->size, *(char *const *)from,
			       f->kind == LS_FIELD_TEXT)
			? 0
			: -LS_ERANGE;
	case LS_FIELD_ID:
		return ls_wire_copy_bytes(to, f->size, from) ? 0 : -LS_EPARSE;
	case LS_FIELD_END:
		break;
	}
	return 0;
}

int
ls_wire_take(const struct ls_wire_field *f, const void *message, void *ours,
	const char **ret_why)
{
	int rc = 0;

	for (; f->kind != LS_FIELD_END && rc == 0; f++) {
		rc = wire_take_one(f, (const uint8_t *)message + f->theirs,
			(uint8_t *)ours + f->ours);
		if (rc != 0)
			(void)ls_wire_fail(rc, f->why, ret_why);
	}
	return rc;
}

void *
ls_wire_messages(const ProtobufCMessageDescriptor *type, size_t count,
	struct ls_arena *arena)
{
	ProtobufCMessage **list = ls_arena_take_array(arena, count, sizeof(*list));

	for (size_t i = 0; list != NULL && i < count; i++) {
		list[i] = ls_arena_take(arena, type->sizeof_message);
		if (list[i] == NULL)
			return NULL;
		type->message_init(list[i]);
	}
	return list;
}

#define WORKER(kind, theirs, ours, max, why)                                       \
	LS_WIRE_FIELD(kind, Lockstep__Worker, theirs, struct ls_wire_worker, ours, \
		max, why)

static const struct ls_wire_field wire_worker[] = {
	WORKER(ID, ring_id, ring_id, 0, "ring id of a worker"),
	WORKER(NAME, job, info.job, 0, "job is not a name"),
	WORKER(TEXT, slice, info.slice, 0, "slice is not a name"),
	WORKER(TEXT, role, info.role, 0, "role is not a name"),
	WORKER(TEXT, rack, info.rack, 0, "rack is not a name"),
	WORKER(TEXT, shard, info.shard, 0, "input shard is not a name"),
	WORKER(NUMBER, attempt, info.attempt, INT32_MAX, "attempt is negative"),
	WORKER(NUMBER, rank, info.rank, LS_WORKERS_MAX - 1, "rank out of range"),
	WORKER(NUMBER, world, info.world, LS_WORKERS_MAX, "world out of range"),
	WORKER(NUMBER, chips, info.chips, LS_CHIPS_PER_WORKER_MAX,
		"chips out of range"),
	WORKER(NUMBER, created_mono_ns, created_mono_ns, LS_WIRE_TIME_MAX_NS,
		"time of a worker"),
	WORKER(NUMBER, step_source, info.step_source, LS_STEP_SOURCE_COUNT - 1,
		"source of steps is not known"),
	WORKER(NUMBER, step_confidence, info.step_confidence, 0, NULL),
	WORKER(NUMBER, number, number, 0, NULL),
	WORKER(NUMBER, owner, info.owner, 0, NULL),
	WORKER(FLAG, simulated, info.simulated, 0, NULL),
	WORKER(NUMBER, slices, info.slices, LS_SLICES_MAX, "slices out of range"),
	WORKER(TEXT, refused_rank, info.refused_rank, 0, "refused rank is not a name"),
	{ .kind = LS_FIELD_END },
};

#define REPORT(kind, field, max, why)                                              \
	LS_WIRE_FIELD(kind, Lockstep__Report, field, struct ls_wire_report, field, \
		max, why)

static const struct ls_wire_field wire_report[] = {
	REPORT(NAME, host, 0, "host is not a name"),
	REPORT(TEXT, agent_version, 0, "agent version is not a name"),
	REPORT(ID, boot, 0, "boot of the agent"),
	REPORT(NUMBER, t_send_mono_ns, LS_WIRE_TIME_MAX_NS, "time of the report"),
	REPORT(NUMBER, slowed, LS_SLOWED_MAX, "slowed out of range"),
	REPORT(NUMBER, spooled_items, 0, NULL),
	REPORT(NUMBER, dropped_records, 0, NULL),
	REPORT(NUMBER, waiting_chunk_items, 0, NULL),
	REPORT(NUMBER, lost_samples, 0, NULL),
	{ .kind = LS_FIELD_END },
};

/* --- report: pack --------------------------------------------------------- */

static int
wire_pack_workers(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	m->workers =
		ls_wire_messages(&lockstep__worker__descriptor, r->worker_count, arena);
	if (m->workers == NULL)
		return -ENOMEM;
	m->n_workers = r->worker_count;
	for (size_t i = 0; i < r->worker_count; i++)
		ls_wire_put(wire_worker, &r->workers[i], m->workers[i]);
	return 0;
}

/* A list of items that are encoded already. */
static int
wire_pack_items(const struct ls_wire_bytes *items, size_t count, struct ls_arena *arena,
	ProtobufCBinaryData **ret_items)
{
	ProtobufCBinaryData *list = ls_arena_take_array(arena, count, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
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
	ls_wire_put(wire_report, r, &m);
	if (r->has_kernel)
		m.kernel_boot_id =
			ls_wire_view(r->kernel_boot_id, sizeof(r->kernel_boot_id));
	else
		m.agent_version = ls_wire_text("");
	if (r->has_last) {
		wire_pack_stamps(r, &last);
		m.last = &last;
	}
	m.n_items = r->item_count;
	m.n_chunk_items = r->chunk_item_count;
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
	const struct ls_worker_info *info = &w->info;
	int rc = ls_wire_take(wire_worker, m, w, ret_why);

	if (rc != 0)
		return rc;
	if (info->world > 0 && info->rank >= info->world)
		return ls_wire_fail(-LS_ERANGE, "world out of range", ret_why);
	if (!(info->step_confidence >= 0 && info->step_confidence <= 1)) /* NaN, too */
		return ls_wire_fail(-LS_ERANGE, "confidence out of range", ret_why);
	return 0;
}

static int
wire_check_stamps(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	const Lockstep__Stamps *last = m->last;

	r->has_last = last != NULL;
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
	int rc;

	if (m->version != LS_WIRE_VERSION)
		return ls_wire_fail(-LS_EVERSION,
			"the report is not of version " LS_TEXT_OF(LS_WIRE_VERSION),
			ret_why);
	rc = ls_wire_take(wire_report, m, r, ret_why);
	if (rc != 0)
		return rc;
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
	return wire_check_stamps(m, r, ret_why);
}

/* Items stay encoded: only their sizes are looked at here. */
static int
wire_check_items(const ProtobufCBinaryData *from, size_t count, size_t max_bytes,
	struct ls_wire_bytes *items, const char **ret_why)
{
	for (size_t i = 0; i < count; i++) {
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
	int rc = 0;

	for (size_t i = 0; i < m->n_workers && rc == 0; i++) {
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
