/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/journal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/bytes.h"
#include "proto/base/mem.h"

#define JOURNAL_HEADER_BYTES 16
#define JOURNAL_CRC_FROM 8 /* the checksum covers all from here on */
/* of an entry without its item: names, ids, 16 values at most */
#define JOURNAL_FIXED_BYTES 1024
/* of an entry of steps, between its id and the length of its item */
#define JOURNAL_STEPS_NUMBERS 11

static const uint8_t journal_magic[3] = { 'L', 'S', 'J' };
#define JOURNAL_VERSION 1

_Static_assert(LS_HOT_MAX *(3 + 8) + LS_HOST_NAME_MAX_BYTES + 10 * 16 <=
		JOURNAL_FIXED_BYTES,
	"an entry fits");

/* --- writing -------------------------------------------------------------- */

void
ls_journal_reset(struct ls_journal *j)
{
	*j = (struct ls_journal){ .data = j->data, .capacity = j->capacity };
}

void
ls_journal_fini(struct ls_journal *j)
{
	free(j->data);
	memset(j, 0, sizeof(*j));
}

/* Room for an entry with so many bytes of an item; in an empty body, for the header
 * too. */
static int
journal_room(struct ls_journal *j, size_t item_bytes)
{
	size_t used = j->len > 0 ? j->len : JOURNAL_HEADER_BYTES, need;
	int rc;

	if (item_bytes > LS_ITEM_MAX_BYTES)
		return -EINVAL;
	need = used + JOURNAL_FIXED_BYTES + item_bytes;
	if (need > LS_JOURNAL_BODY_MAX_BYTES)
		return -LS_ELIMIT;
	rc = ls_mem_reserve((void **)&j->data, &j->capacity, need);
	if (rc == 0)
		j->len = used;
	return rc;
}

static void
journal_u8(struct ls_journal *j, unsigned v)
{
	j->data[j->len++] = (uint8_t)v;
}

/* Seven bits a byte, the lowest first; the highest bit says that more follow. */
static void
journal_number(struct ls_journal *j, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		journal_u8(j, 0x80u | (unsigned)(v & 0x7f));
	journal_u8(j, (unsigned)v);
}

/* A difference (modulo 2^64) that may go either way: the sign is the lowest bit. */
static void
journal_change(struct ls_journal *j, uint64_t v)
{
	journal_number(j, v << 1 ^ (0 - (v >> 63)));
}

static void
journal_bytes(struct ls_journal *j, const void *data, size_t len)
{
	if (len == 0)
		return; /* data may be NULL */
	memcpy(j->data + j->len, data, len);
	j->len += len;
}

/* Length and name; 0: the one before. */
static void
journal_host(struct ls_journal *j, const char *host)
{
	size_t len = strnlen(host, sizeof(j->host) - 1);

	if (j->host[0] != '\0' && strcmp(host, j->host) == 0) {
		journal_u8(j, 0);
		return;
	}
	journal_u8(j, (unsigned)len);
	journal_bytes(j, host, len);
	memcpy(j->host, host, len);
	j->host[len] = '\0';
}

static void
journal_begin(struct ls_journal *j, enum ls_journal_kind kind, int64_t t_us)
{
	journal_u8(j, kind);
	journal_change(j, (uint64_t)t_us - (uint64_t)j->t_us);
	j->t_us = t_us;
	j->count++;
}

static void
journal_id(struct ls_journal *j, int64_t id)
{
	journal_number(j, (uint64_t)(id - j->id));
	j->id = id;
}

int
ls_journal_put_steps(struct ls_journal *j, int64_t id, int64_t t_us,
	const struct ls_store_item *item)
{
	int rc = id >= j->id && item->worker_id >= 0 && item->count > 0 &&
			item->count <= LS_RECORDS_PER_ITEM_MAX
		? 0
		: -EINVAL;

	if (rc == 0)
		rc = journal_room(j, item->len);
	if (rc != 0)
		return rc;
	journal_begin(j, LS_JOURNAL_STEPS, t_us);
	journal_id(j, id);
	journal_number(j, (uint64_t)item->worker_id);
	journal_number(j, item->first_index);
	journal_number(j, item->count);
	journal_number(j, item->step_lo);
	journal_number(j, item->step_hi - item->step_lo);
	journal_change(j, (uint64_t)item->t_lo_us - (uint64_t)t_us);
	journal_change(j, (uint64_t)item->t_hi_us - (uint64_t)item->t_lo_us);
	journal_change(j, (uint64_t)item->map.ref_mono_ns);
	journal_change(j, (uint64_t)item->map.offset_ns);
	journal_change(j, (uint64_t)item->map.drift_ppb);
	journal_change(j, (uint64_t)item->map.uncertainty_ns);
	journal_number(j, item->len);
	journal_bytes(j, item->data, item->len);
	return 0;
}

int
ls_journal_put_hot(struct ls_journal *j, int64_t id, int64_t t_us,
	const struct ls_store_counters *counters)
{
	const struct ls_store_counters *c = counters;
	int rc = id >= j->id && c->worker_id >= 0 && c->count <= LS_HOT_MAX &&
			c->host[0] != '\0'
		? 0
		: -EINVAL;

	for (size_t i = 0; i < c->count && rc == 0; i++)
		rc = c->metric[i] < LS_METRIC_COUNT ? 0 : -EINVAL;
	if (rc == 0)
		rc = journal_room(j, 0);
	if (rc != 0)
		return rc;
	journal_begin(j, LS_JOURNAL_HOT, t_us);
	journal_id(j, id);
	journal_host(j, c->host);
	journal_number(j, (uint64_t)c->worker_id);
	journal_change(j, (uint64_t)c->read_us - (uint64_t)t_us);
	journal_u8(j, (unsigned)c->count);
	for (size_t i = 0; i < c->count; i++)
		journal_number(j, c->metric[i]);
	for (size_t i = 0; i < c->count; i++) {
		uint64_t bits;

		memcpy(&bits, &c->value[i], sizeof(bits));
		bits = htole64(bits);
		journal_bytes(j, &bits, sizeof(bits));
	}
	return 0;
}

int
ls_journal_put_agent(struct ls_journal *j, const struct ls_store_ledger *agent)
{
	int rc = agent->host[0] != '\0' ? journal_room(j, 0) : -EINVAL;

	if (rc != 0)
		return rc;
	journal_begin(j, LS_JOURNAL_AGENT, agent->t_us);
	journal_bytes(j, agent->boot, sizeof(agent->boot));
	journal_host(j, agent->host);
	journal_number(j, agent->seq);
	journal_number(j, agent->chunk_seq);
	return 0;
}

int
ls_journal_put_ring(struct ls_journal *j, const struct ls_store_ring *ring)
{
	int rc = ring->worker_id >= 0 ? journal_room(j, 0) : -EINVAL;

	if (rc != 0)
		return rc;
	journal_begin(j, LS_JOURNAL_RING, ring->t_us);
	journal_bytes(j, ring->ring_id, sizeof(ring->ring_id));
	journal_number(j, (uint64_t)ring->worker_id);
	journal_number(j, ring->high);
	return 0;
}

int
ls_journal_seal(struct ls_journal *j)
{
	int rc = j->len == 0 ? journal_room(j, 0) : 0;

	if (rc != 0)
		return rc;
	memcpy(j->data, journal_magic, sizeof(journal_magic));
	j->data[3] = JOURNAL_VERSION;
	ls_bytes_put(j->data + 8, j->count, 4);
	ls_bytes_put(j->data + 12, j->len, 4);
	ls_bytes_put(j->data + 4,
		ls_bytes_crc(j->data + JOURNAL_CRC_FROM, j->len - JOURNAL_CRC_FROM), 4);
	return 0;
}

/* --- reading -------------------------------------------------------------- */

struct journal_reader {
	const uint8_t *at, *end;
	bool bad;
	bool positions; /* alone are wanted */
	int64_t id, t_us;
	char host[LS_HOST_NAME_MAX_BYTES];
};

static const uint8_t *
reader_bytes(struct journal_reader *r, size_t len)
{
	const uint8_t *at = r->at;

	if (r->bad || (size_t)(r->end - at) < len) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	return at;
}

static unsigned
reader_u8(struct journal_reader *r)
{
	const uint8_t *at = reader_bytes(r, 1);

	return at != NULL ? *at : 0;
}

/* The inverse of journal_number; longer than it need be, or than 64 bits, is bad. */
static uint64_t
reader_long(struct journal_reader *r)
{
	const uint8_t *at = r->at;
	unsigned shift = 0;
	uint64_t v = 0;

	for (; at < r->end && *at >= 0x80 && shift < 63; shift += 7)
		v |= (uint64_t)(*at++ & 0x7f) << shift;
	if (r->bad || at == r->end || (shift == 63 && *at > 1) ||
		(shift > 0 && *at == 0)) {
		r->bad = true;
		return 0;
	}
	r->at = at + 1;
	return v | (uint64_t)*at << shift;
}

static inline uint64_t
reader_number(struct journal_reader *r)
{
	bool short_one = !r->bad && r->at < r->end && *r->at < 0x80; /* as most are */

	return short_one ? *r->at++ : reader_long(r);
}

/* A number that must not be above max. */
static uint64_t
reader_below(struct journal_reader *r, uint64_t max)
{
	uint64_t v = reader_number(r);

	r->bad |= v > max;
	return r->bad ? 0 : v;
}

static uint64_t
reader_change(struct journal_reader *r)
{
	uint64_t v = reader_number(r);

	return v >> 1 ^ (0 - (v & 1));
}

/* Into dst, unless that is NULL. */
static void
reader_host(struct journal_reader *r, char *dst)
{
	size_t len = reader_u8(r);
	const uint8_t *at;

	if (len > 0) {
		at = len < sizeof(r->host) ? reader_bytes(r, len) : NULL;
		if (at == NULL || memchr(at, '\0', len) != NULL) {
			r->bad = true;
			return;
		}
		memset(r->host, 0, sizeof(r->host));
		memcpy(r->host, at, len);
	}
	r->bad |= r->host[0] == '\0';
	if (dst != NULL)
		memcpy(dst, r->host, sizeof(r->host));
}

static void
reader_id(struct journal_reader *r, struct ls_journal_entry *e)
{
	e->id = r->id += (int64_t)reader_below(r, (uint64_t)(INT64_MAX - r->id));
}

static void
reader_steps(struct journal_reader *r, struct ls_journal_entry *e)
{
	struct ls_store_item *item = &e->u.item;

	memset(item, 0, sizeof(*item));
	item->kind = LS_WIRE_STEPS;
	reader_id(r, e);
	item->worker_id = (int64_t)reader_below(r, INT64_MAX);
	item->first_index = reader_number(r);
	item->count = reader_below(r, LS_RECORDS_PER_ITEM_MAX);
	r->bad |= item->count == 0;
	item->step_lo = reader_number(r);
	item->step_hi = item->step_lo + reader_number(r);
	item->t_lo_us = (int64_t)((uint64_t)e->t_us + reader_change(r));
	item->t_hi_us = (int64_t)((uint64_t)item->t_lo_us + reader_change(r));
	item->map.ref_mono_ns = (int64_t)reader_change(r);
	item->map.offset_ns = (int64_t)reader_change(r);
	item->map.drift_ppb = (int64_t)reader_change(r);
	item->map.uncertainty_ns = (int64_t)reader_change(r);
	item->len = reader_below(r, LS_ITEM_MAX_BYTES);
	item->data = reader_bytes(r, item->len);
}

static void
reader_hot(struct journal_reader *r, struct ls_journal_entry *e)
{
	struct ls_store_counters *c = &e->u.counters;
	const uint8_t *at;
	uint64_t bits;

	memset(c, 0, sizeof(*c));
	reader_id(r, e);
	reader_host(r, c->host);
	c->worker_id = (int64_t)reader_below(r, INT64_MAX);
	c->read_us = (int64_t)((uint64_t)e->t_us + reader_change(r));
	c->count = reader_u8(r);
	if (c->count > LS_HOT_MAX)
		r->bad = true;
	for (size_t i = 0; i < c->count && !r->bad; i++)
		c->metric[i] = (uint16_t)reader_below(r, LS_METRIC_COUNT - 1);
	for (size_t i = 0; i < c->count && (at = reader_bytes(r, sizeof(bits))) != NULL;
		i++) {
		memcpy(&bits, at, sizeof(bits));
		bits = le64toh(bits);
		memcpy(&c->value[i], &bits, sizeof(bits));
	}
}

static void
reader_agent(struct journal_reader *r, struct ls_journal_entry *e)
{
	const uint8_t *boot = reader_bytes(r, sizeof(e->u.agent.boot));

	if (boot == NULL)
		return;
	memcpy(e->u.agent.boot, boot, sizeof(e->u.agent.boot));
	reader_host(r, e->u.agent.host);
	e->u.agent.seq = reader_number(r);
	e->u.agent.chunk_seq = reader_number(r);
	e->u.agent.t_us = e->t_us;
}

static void
reader_ring(struct journal_reader *r, struct ls_journal_entry *e)
{
	const uint8_t *ring_id = reader_bytes(r, sizeof(e->u.ring.ring_id));

	if (ring_id == NULL)
		return;
	memcpy(e->u.ring.ring_id, ring_id, sizeof(e->u.ring.ring_id));
	e->u.ring.worker_id = (int64_t)reader_below(r, INT64_MAX);
	e->u.ring.high = reader_number(r);
	e->u.ring.t_us = e->t_us;
}

static void (*const reader_kinds[LS_JOURNAL_KIND_COUNT])(struct journal_reader *,
	struct ls_journal_entry *) = {
	[LS_JOURNAL_STEPS] = reader_steps,
	[LS_JOURNAL_HOT] = reader_hot,
	[LS_JOURNAL_AGENT] = reader_agent,
	[LS_JOURNAL_RING] = reader_ring,
};

/* Goes on behind so many numbers, whatever they are. */
static void
reader_pass(struct journal_reader *r, size_t numbers)
{
	for (; numbers > 0; numbers--) {
		while (r->at < r->end && *r->at >= 0x80)
			r->at++;
		(void)reader_u8(r);
	}
}

/* Like reader_steps and reader_hot, for those who want positions alone: most of a
 * journal is something else. */
static void
reader_pass_steps(struct journal_reader *r, struct ls_journal_entry *e)
{
	reader_id(r, e);
	reader_pass(r, JOURNAL_STEPS_NUMBERS);
	(void)reader_bytes(r, reader_below(r, LS_ITEM_MAX_BYTES));
}

static void
reader_pass_hot(struct journal_reader *r, struct ls_journal_entry *e)
{
	size_t count;

	reader_id(r, e);
	reader_host(r, NULL);
	reader_pass(r, 2);
	count = reader_u8(r);
	reader_pass(r, count);
	(void)reader_bytes(r, count * sizeof(uint64_t));
}

static int
reader_entry(struct journal_reader *r, struct ls_journal_entry *e)
{
	unsigned kind = reader_u8(r);

	if (kind >= LS_JOURNAL_KIND_COUNT)
		return -LS_EPARSE;
	e->kind = (enum ls_journal_kind)kind;
	r->t_us = (int64_t)((uint64_t)r->t_us + reader_change(r));
	e->t_us = r->t_us;
	e->id = 0;
	if (r->positions && kind == LS_JOURNAL_STEPS)
		reader_pass_steps(r, e);
	else if (r->positions && kind == LS_JOURNAL_HOT)
		reader_pass_hot(r, e);
	else
		reader_kinds[kind](r, e);
	return r->bad ? -LS_EPARSE : 0;
}

/* Visits the entries of a body; if positions, of these alone. */
static int
journal_read(const uint8_t *body, size_t len, bool positions, ls_journal_fn *fn,
	void *arg)
{
	struct journal_reader r = { .positions = positions };
	struct ls_journal_entry e;
	uint32_t i, count;
	int rc = 0;

	if (len < JOURNAL_HEADER_BYTES || len > LS_JOURNAL_BODY_MAX_BYTES ||
		memcmp(body, journal_magic, sizeof(journal_magic)) != 0)
		return -LS_ECORRUPT;
	if (body[3] != JOURNAL_VERSION)
		return -LS_EVERSION;
	if (ls_bytes_get(body + 12, 4) != len ||
		ls_bytes_get(body + 4, 4) !=
			ls_bytes_crc(body + JOURNAL_CRC_FROM, len - JOURNAL_CRC_FROM))
		return -LS_ECORRUPT;
	r.at = body + JOURNAL_HEADER_BYTES;
	r.end = body + len;
	count = (uint32_t)ls_bytes_get(body + 8, 4);
	for (i = 0; i < count && rc == 0; i++) {
		rc = reader_entry(&r, &e);
		if (rc == 0 &&
			!(positions &&
				(e.kind == LS_JOURNAL_STEPS ||
					e.kind == LS_JOURNAL_HOT)))
			rc = fn(arg, &e);
	}
	return rc == 0 && r.at != r.end ? -LS_EPARSE : rc;
}

int
ls_journal_read(const uint8_t *body, size_t len, ls_journal_fn *fn, void *arg)
{
	return journal_read(body, len, false, fn, arg);
}

int
ls_journal_read_positions(const uint8_t *body, size_t len, ls_journal_fn *fn, void *arg)
{
	return journal_read(body, len, true, fn, arg);
}
