/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/ring/ring.h"

#include <errno.h>
#include <string.h>
#include "proto/base/text.h"

/* Offsets of the layout in ring.h. */
enum {
	AT_VERSION = 8,
	AT_HEADER_BYTES = 12,
	AT_SLOT_BYTES = 16,
	AT_SLOTS = 20,
	AT_ID = 24,
	AT_BOOT_ID = 40,
	AT_CREATED_MONO = 56,
	AT_CREATED_WALL = 64,
	AT_PID = 72,
	AT_FLAGS = 76,
	AT_ATTEMPT = 80,
	AT_RANK = 84,
	AT_WORLD = 88,
	AT_CHIPS = 92,
	AT_FROM = 96,
	AT_JOB = 104,
	AT_SLICE = 232,
	AT_ROLE = 296,
	AT_HOST = 360
};

enum {
	SLOT_INDEX = 0,
	SLOT_STEP = 8,
	SLOT_BEGIN = 16,
	SLOT_DURATION = 24,
	SLOT_BARRIERS = 32,
	SLOT_WORK_MASK = 33,
	SLOT_PEERS = 34,
	SLOT_BARRIER_KIND = 36,
	SLOT_PHASE_MASK = 40,
	SLOT_PHASE = 48,
	SLOT_BARRIER = 136,
	SLOT_WORK = 200,
	SLOT_PEER = 248,
	SLOT_INDEX_AGAIN = 312
};

_Static_assert(SLOT_PHASE + 8 * LS_PHASE_COUNT == SLOT_BARRIER,
	"phases fill their room");
_Static_assert(SLOT_BARRIER + 16 * LS_BARRIERS_MAX == SLOT_WORK,
	"barriers fill their room");
_Static_assert(SLOT_WORK + 8 * LS_WORK_MAX == SLOT_PEER, "work fills its room");
_Static_assert(SLOT_PEER + 16 * LS_PEERS_MAX == SLOT_INDEX_AGAIN,
	"peers fill their room");
_Static_assert(LS_WORK_COUNT <= LS_WORK_MAX, "every kind of work has its place");
_Static_assert(AT_HOST + LS_HOST_NAME_MAX_BYTES <= LS_RING_ENV_OFFSET, "host fits");
_Static_assert(LS_RING_ENV_OFFSET + LS_RING_ENV_MAX_BYTES <= LS_RING_LIVE_OFFSET,
	"env fits");

static uint32_t
ring_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		(uint32_t)p[3] << 24;
}

static uint64_t
ring_u64(const uint8_t *p)
{
	return (uint64_t)ring_u32(p) | (uint64_t)ring_u32(p + 4) << 32;
}

static double
ring_f64(const uint8_t *p)
{
	uint64_t bits = ring_u64(p);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static int
ring_fail(int rc, const char *why, const char **ret_why)
{
	if (ret_why != NULL)
		*ret_why = why;
	return rc;
}

/* Copies a NUL-terminated name of a fixed field; false if it is none. */
static bool
ring_name(char *dst, const uint8_t *src, size_t size, bool may_be_empty)
{
	const uint8_t *end = memchr(src, '\0', size);
	size_t len;

	if (end == NULL)
		return false;
	len = (size_t)(end - src);
	if (len == 0 && !may_be_empty)
		return false;
	if (len > 0 && !ls_text_is_name((const char *)src, len, size - 1))
		return false;
	memcpy(dst, src, len);
	memset(dst + len, 0, size - len);
	return true;
}

/* Sizes are bounded so that no later product or offset can overflow. */
static int
ring_parse_sizes(const uint8_t *b, struct ls_ring_header *h, const char **ret_why)
{
	h->header_bytes = ring_u32(b + AT_HEADER_BYTES);
	h->slot_bytes = ring_u32(b + AT_SLOT_BYTES);
	h->slots = ring_u32(b + AT_SLOTS);
	if (h->header_bytes < LS_RING_HEADER_BYTES ||
		h->header_bytes > LS_RING_HEADER_MAX_BYTES || h->header_bytes % 8 != 0)
		return ring_fail(-LS_EPARSE, "impossible header size", ret_why);
	if (h->slot_bytes < LS_RING_SLOT_BYTES ||
		h->slot_bytes > LS_RING_SLOT_MAX_BYTES || h->slot_bytes % 8 != 0)
		return ring_fail(-LS_EPARSE, "impossible slot size", ret_why);
	if (h->slots == 0 || h->slots > LS_RING_SLOTS_MAX)
		return ring_fail(-LS_EPARSE, "impossible number of slots", ret_why);
	return 0;
}

static int
ring_parse_worker(const uint8_t *b, struct ls_worker_info *w, const char **ret_why)
{
	w->attempt = (int32_t)ring_u32(b + AT_ATTEMPT);
	w->rank = (int32_t)ring_u32(b + AT_RANK);
	w->world = (int32_t)ring_u32(b + AT_WORLD);
	w->chips = (int32_t)ring_u32(b + AT_CHIPS);
	if (w->attempt < 0)
		return ring_fail(-LS_ERANGE, "attempt is negative", ret_why);
	if (w->rank < 0 || w->rank >= LS_WORKERS_MAX)
		return ring_fail(-LS_ERANGE, "rank out of range", ret_why);
	if (w->world < 0 || w->world > LS_WORKERS_MAX)
		return ring_fail(-LS_ERANGE, "world out of range", ret_why);
	if (w->world > 0 && w->rank >= w->world)
		return ring_fail(-LS_ERANGE, "rank is not below world", ret_why);
	if (w->chips < 0 || w->chips > LS_CHIPS_PER_WORKER_MAX)
		return ring_fail(-LS_ERANGE, "chips out of range", ret_why);
	if (!ring_name(w->job, b + AT_JOB, sizeof(w->job), false))
		return ring_fail(-LS_ERANGE, "job is not a name", ret_why);
	if (!ring_name(w->slice, b + AT_SLICE, sizeof(w->slice), true))
		return ring_fail(-LS_ERANGE, "slice is not a name", ret_why);
	if (!ring_name(w->role, b + AT_ROLE, sizeof(w->role), true))
		return ring_fail(-LS_ERANGE, "role is not a name", ret_why);
	if (!ring_name(w->host, b + AT_HOST, sizeof(w->host), true))
		return ring_fail(-LS_ERANGE, "host is not a name", ret_why);
	return 0;
}

int
ls_ring_parse_header(const uint8_t *bytes, size_t len,
	struct ls_ring_header *ret_header, const char **ret_why)
{
	struct ls_ring_header h = { 0 };
	int rc;

	if (len < LS_RING_HEADER_BYTES)
		return ring_fail(-LS_EPARSE, "shorter than a header", ret_why);
	if (memcmp(bytes, LS_RING_MAGIC, 8) != 0)
		return ring_fail(-LS_EPARSE, "not a step ring", ret_why);
	if (ring_u32(bytes + AT_VERSION) != LS_RING_VERSION)
		return ring_fail(-LS_EVERSION,
			"the ring is not of version " LS_TEXT_OF(LS_RING_VERSION),
			ret_why);
	rc = ring_parse_sizes(bytes, &h, ret_why);
	if (rc != 0)
		return rc;
	rc = ring_parse_worker(bytes, &h.worker, ret_why);
	if (rc != 0)
		return rc;
	if (memchr(bytes + LS_RING_ENV_OFFSET, '\0', LS_RING_ENV_MAX_BYTES) == NULL)
		return ring_fail(-LS_ERANGE, "environment is not terminated", ret_why);
	memcpy(h.id, bytes + AT_ID, sizeof(h.id));
	memcpy(h.boot_id, bytes + AT_BOOT_ID, sizeof(h.boot_id));
	h.created_mono_ns = ring_u64(bytes + AT_CREATED_MONO);
	h.created_wall_ns = (int64_t)ring_u64(bytes + AT_CREATED_WALL);
	h.pid = ring_u32(bytes + AT_PID);
	h.flags = ring_u32(bytes + AT_FLAGS);
	for (size_t i = 0; i < sizeof(h.from); i++) {
		uint8_t from = bytes[AT_FROM + i];

		h.from[i] =
			from < LS_RING_FROM_COUNT ? from : (uint8_t)LS_RING_FROM_NONE;
	}
	memcpy(h.env, bytes + LS_RING_ENV_OFFSET, sizeof(h.env));
	h.head = ring_u64(bytes + LS_RING_HEAD_OFFSET);
	if (h.head > LS_RING_HEAD_MAX)
		return ring_fail(-LS_ERANGE, "impossible number of records", ret_why);
	*ret_header = h;
	return 0;
}

int
ls_ring_parse_live(const uint8_t *bytes, size_t len, struct ls_ring_live *ret_live)
{
	const uint8_t *p = bytes + LS_RING_LIVE_OFFSET;
	uint64_t sequence;
	uint32_t phase;

	if (len < LS_RING_HEADER_BYTES)
		return -LS_EPARSE;
	sequence = ring_u64(p);
	if (sequence % 2 != 0 || sequence != ring_u64(p + 32))
		return -LS_ESTALE;
	phase = ring_u32(p + 16);
	if (phase > LS_PHASE_COUNT)
		return -LS_ERANGE;
	ret_live->step = ring_u64(p + 8);
	ret_live->phase = phase;
	ret_live->since_mono_ns = ring_u64(p + 24);
	return 0;
}

static void
ring_parse_phases(const uint8_t *b, struct ls_record *r)
{
	r->phase_mask = ring_u32(b + SLOT_PHASE_MASK);
	for (unsigned i = 0; i < LS_PHASE_COUNT; i++) {
		if (r->phase_mask & 1u << i)
			r->phase_ns[i] = ring_u64(b + SLOT_PHASE + 8 * i);
	}
}

static void
ring_parse_work(const uint8_t *b, struct ls_record *r)
{
	/* A kind added by a newer writer is none of ours: its bit is dropped. */
	r->work_mask = b[SLOT_WORK_MASK] & ((1u << LS_WORK_COUNT) - 1);
	for (unsigned i = 0; i < LS_WORK_COUNT; i++) {
		if (r->work_mask & 1u << i)
			r->work[i] = ring_f64(b + SLOT_WORK + 8 * i);
	}
}

static uint64_t
ring_wait_ns(uint32_t us)
{
	return us == UINT32_MAX ? UINT64_MAX : (uint64_t)us * 1000;
}

int
ls_ring_parse_slot(const uint8_t *bytes, size_t len, uint64_t index,
	struct ls_record *ret_record, const char **ret_why)
{
	struct ls_record r = { 0 };
	int rc;

	if (len < LS_RING_SLOT_BYTES)
		return ring_fail(-LS_EPARSE, "shorter than a slot", ret_why);
	if (ring_u64(bytes + SLOT_INDEX) != index + 1 ||
		ring_u64(bytes + SLOT_INDEX_AGAIN) != index + 1)
		return ring_fail(-LS_ESTALE, "overwritten before it was read", ret_why);
	r.step = ring_u64(bytes + SLOT_STEP);
	r.t_begin_ns = (int64_t)ring_u64(bytes + SLOT_BEGIN);
	r.duration_ns = ring_u64(bytes + SLOT_DURATION);
	r.barrier_count = bytes[SLOT_BARRIERS];
	r.peer_count = bytes[SLOT_PEERS];
	if (r.barrier_count > LS_BARRIERS_MAX)
		return ring_fail(-LS_ERANGE, "more barriers than the maximum", ret_why);
	if (r.peer_count > LS_PEERS_MAX)
		return ring_fail(-LS_ERANGE, "more peers than the maximum", ret_why);
	ring_parse_phases(bytes, &r);
	ring_parse_work(bytes, &r);
	for (unsigned i = 0; i < r.barrier_count; i++) {
		const uint8_t *p = bytes + SLOT_BARRIER + 16 * i;

		r.barrier[i].kind = bytes[SLOT_BARRIER_KIND + i];
		r.barrier[i].enter_ns = (int64_t)ring_u64(p);
		r.barrier[i].exit_ns = (int64_t)ring_u64(p + 8);
	}
	for (unsigned i = 0; i < r.peer_count; i++) {
		const uint8_t *p = bytes + SLOT_PEER + 16 * i;

		r.peer[i].rank = ring_u32(p);
		r.peer[i].recv_wait_ns = ring_wait_ns(ring_u32(p + 4));
		r.peer[i].send_wait_ns = ring_wait_ns(ring_u32(p + 8));
	}
	rc = ls_record_check(&r, ret_why);
	if (rc != 0)
		return rc;
	*ret_record = r;
	return 0;
}
