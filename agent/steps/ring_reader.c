/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/ring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/collect/procfile.h"
#include "proto/base/bytes.h"
#include "proto/base/log.h"

static const char *const ring_reader_state_names[] = {
#define LS_RING_STATE(id, name) name,
#include "agent/steps/ring_state.def"
#undef LS_RING_STATE
};

struct ls_ring_reader {
	struct ls_step_ring pub;
	struct ls_ring_header header;
	struct ls_spool *spool; /* these three are borrowed */
	struct ls_ring_buffers *buf;
	struct ls_step_stats *stats;
	int fd;
	char name[LS_PATH_MAX_BYTES];
	bool lock_missing; /* at the last reading */
	bool broken; /* no longer a ring that can be read */
	bool ended; /* the clean end was marked */
	bool failed; /* the end after a failure was */
	bool killed; /* in its control group, for lack of memory, as it ended */
	uint64_t next; /* index of the first record not taken over */
};

static void
ring_reader_set_state(struct ls_ring_reader *r, enum ls_ring_state to)
{
	static const enum ls_ring_state after[] = { [LS_RING_STATE_LIVE] =
							    LS_RING_STATE_DEAD,
		[LS_RING_STATE_DEAD] = LS_RING_STATE_DONE,
		[LS_RING_STATE_DONE] = LS_RING_STATE_COUNT };

	LS_ASSERT(after[r->pub.state] == to);
	ls_log(LS_LOG_DEBUG, "ring", "%s rank %d: %s -> %s", r->header.worker.job,
		(int)r->header.worker.rank, ring_reader_state_names[r->pub.state],
		ring_reader_state_names[to]);
	r->pub.state = to;
	if (to == LS_RING_STATE_DEAD) {
		r->pub.pid = 0;
		r->pub.has_live = false;
	}
}

/* --- bytes ---------------------------------------------------------------- */

bool
ls_ring_pread(int fd, uint8_t *buf, size_t len, uint64_t offset)
{
	return ls_procfile_pread(fd, buf, len, offset) == (ssize_t)len;
}

/* Head of the ring now; UINT64_MAX if it cannot be read. */
static uint64_t
ring_reader_head(const struct ls_ring_reader *r)
{
	uint8_t b[8];

	return ls_ring_pread(r->fd, b, sizeof(b), LS_RING_HEAD_OFFSET)
		? ls_bytes_get(b, sizeof(b))
		: UINT64_MAX;
}

/* --- into the spool ------------------------------------------------------- */

static bool
ring_reader_push(struct ls_ring_reader *r, struct ls_wire_item *item)
{
	int rc;

	memcpy(item->ring_id, r->header.id, sizeof(item->ring_id));
	rc = ls_spool_push(r->spool, item);
	if (rc == 0)
		return true;
	ls_log(LS_LOG_WARN, "ring",
		"spool refused records (%s); they stay in their ring", ls_err_text(rc));
	return false;
}

static bool
ring_reader_push_gap(struct ls_ring_reader *r, uint64_t count,
	enum ls_wire_gap_reason reason)
{
	struct ls_wire_item gap = { .kind = LS_WIRE_GAP,
		.first_index = r->next,
		.count = count,
		.reason = reason };

	if (!ring_reader_push(r, &gap))
		return false;
	r->next += count;
	r->stats->lost[reason] += count;
	return true;
}

static bool
ring_reader_push_records(struct ls_ring_reader *r, size_t count)
{
	struct ls_wire_item steps = { .kind = LS_WIRE_STEPS,
		.first_index = r->next,
		.count = count,
		.records = r->buf->records };

	if (!ring_reader_push(r, &steps))
		return false;
	r->next += count;
	r->stats->records += count;
	return true;
}

/* Takes over n slots that are in r->buf->slots: runs of good records, runs of slots without sense.
 */
static bool
ring_reader_take_slots(struct ls_ring_reader *r, uint64_t n)
{
	const uint64_t first = r->next;
	const char *why = "";
	uint64_t i, good = 0, bad = 0;

	for (i = 0; i < n; i++) {
		int rc = ls_ring_parse_slot(r->buf->slots + i * r->header.slot_bytes,
			r->header.slot_bytes, first + i, &r->buf->records[good], &why);

		if (rc == 0) {
			if (bad > 0 && !ring_reader_push_gap(r, bad, LS_GAP_INVALID))
				return false;
			bad = 0;
			good++;
			continue;
		}
		if (good > 0 && !ring_reader_push_records(r, good))
			return false;
		if (bad == 0)
			ls_log(LS_LOG_WARN, "ring", "%s: skipping record %llu (%s)",
				r->name, (unsigned long long)(first + i), why);
		good = 0;
		bad++;
	}
	if (bad > 0)
		return ring_reader_push_gap(r, bad, LS_GAP_INVALID);
	return good == 0 || ring_reader_push_records(r, good);
}

/* What the writer had overwritten, or may be writing, when its head was `head`, is
 * lost. */
static bool
ring_reader_skip_overwritten(struct ls_ring_reader *r, uint64_t head,
	uint64_t *ret_skipped)
{
	uint64_t slots = r->header.slots, lost;

	*ret_skipped = 0;
	if (head - r->next < slots)
		return true;
	lost = head - r->next - slots + 1;
	*ret_skipped = lost;
	return ring_reader_push_gap(r, lost, LS_GAP_OVERRUN);
}

/* Takes over one run of slots that lie together in the file. False: no more this turn.
 */
static bool
ring_reader_take_run(struct ls_ring_reader *r, uint64_t head, uint64_t *left)
{
	const uint64_t slots = r->header.slots, size = r->header.slot_bytes;
	uint64_t n = head - r->next, at = r->next % slots,
		 room = sizeof(r->buf->slots) / size, lost;

	n = n < *left ? n : *left;
	n = n < LS_STEPS_PER_ITEM ? n : LS_STEPS_PER_ITEM;
	n = n < room ? n : room;
	n = n < slots - at ? n : slots - at;
	if (n == 0)
		return false;
	if (!ls_ring_pread(r->fd, r->buf->slots, (size_t)(n * size),
		    r->header.header_bytes + at * size)) {
		r->broken = true;
		return false;
	}
	*left -= n;
	/* The copy is only worth what the writer had not reached by now. */
	head = ring_reader_head(r);
	if (head > LS_RING_HEAD_MAX || head < r->next) {
		r->broken = true;
		return false;
	}
	if (!ring_reader_skip_overwritten(r, head, &lost))
		return false;
	if (lost >= n)
		return true;
	memmove(r->buf->slots, r->buf->slots + lost * size,
		(size_t)((n - lost) * size));
	return ring_reader_take_slots(r, n - lost);
}

/* Takes over what is new up to head. */
static void
ring_reader_take(struct ls_ring_reader *r, uint64_t head)
{
	uint64_t left = LS_STEPS_READ_MAX, lost;

	if (r->spool == NULL)
		return;
	if (head < r->next) {
		r->broken = true;
		return;
	}
	if (!ring_reader_skip_overwritten(r, head, &lost))
		return;
	/* Less than left turns, since each takes at least one record or ends the loop.
	 */
	while (r->next < head && ring_reader_take_run(r, head, &left))
		;
}

/* --- life of a ring ------------------------------------------------------- */

/* True while some process holds the writer's lock; then *ret_pid is its pid here, or 0.
 */
static bool
ring_reader_is_locked(const struct ls_ring_reader *r, pid_t *ret_pid)
{
	struct flock l = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
	};

	if (fcntl(r->fd, F_GETLK, &l) != 0 || l.l_type == F_UNLCK)
		return false;
	*ret_pid = l.l_pid > 0 ? l.l_pid : 0;
	return true;
}

static void
ring_reader_push_end(struct ls_ring_reader *r, uint64_t now_mono_ns)
{
	struct ls_wire_item end = {
		.kind = LS_WIRE_END, .count = r->next, .t_mono_ns = now_mono_ns
	};

	end.how = r->broken ? LS_END_UNKNOWN
		: r->ended  ? LS_END_ENDED
		: r->failed ? LS_END_FAILED
		: r->killed ? LS_END_MEMORY
			    : LS_END_CRASHED;
	if (!ring_reader_push(r, &end))
		return;
	if (end.how == LS_END_ENDED)
		r->stats->ended++;
	else
		r->stats->crashed++;
	ls_log(LS_LOG_INFO, "ring", "%s rank %d %s after %llu records",
		r->header.worker.job, (int)r->header.worker.rank,
		end.how == LS_END_ENDED		   ? "ended"
			: end.how == LS_END_FAILED ? "failed"
			: end.how == LS_END_MEMORY ? "was killed for lack of memory"
						   : "ended without a clean end",
		(unsigned long long)r->next);
	ring_reader_set_state(r, LS_RING_STATE_DONE);
}

/* Header page: live slot, clean end, and how many records there are. */
static uint64_t
ring_reader_read_header(struct ls_ring_reader *r, const char **ret_why)
{
	struct ls_ring_header h;
	struct ls_ring_live live;

	if (!ls_ring_pread(r->fd, r->buf->page, sizeof(r->buf->page), 0) ||
		ls_ring_parse_header(r->buf->page, sizeof(r->buf->page), &h, ret_why) !=
			0 ||
		memcmp(h.id, r->header.id, sizeof(h.id)) != 0 ||
		h.slots != r->header.slots || h.slot_bytes != r->header.slot_bytes ||
		h.header_bytes != r->header.header_bytes) {
		r->broken = true;
		return 0;
	}
	r->ended = (h.flags & LS_RING_ENDED) != 0;
	r->failed = (h.flags & LS_RING_FAILED) != 0;
	if (r->pub.state == LS_RING_STATE_LIVE &&
		ls_ring_parse_live(r->buf->page, sizeof(r->buf->page), &live) == 0 &&
		live.since_mono_ns <= LS_WIRE_TIME_MAX_NS) {
		r->pub.live = live;
		r->pub.has_live = true;
	}
	return h.head;
}

void
ls_ring_reader_killed(struct ls_ring_reader *r)
{
	r->killed = true;
}

void
ls_ring_reader_read(struct ls_ring_reader *r, uint64_t now_mono_ns)
{
	bool was_broken = r->broken, locked;
	const char *why = "its header or its records changed";
	uint64_t head = 0;

	if (r->pub.state == LS_RING_STATE_DONE)
		return;
	/* The lock first: with it gone, what is read after is all there will ever be.
	 */
	locked = ring_reader_is_locked(r, &r->pub.pid);
	if (r->pub.state == LS_RING_STATE_LIVE && !locked) {
		r->pub.pid = 0;
		if (r->lock_missing)
			ring_reader_set_state(r, LS_RING_STATE_DEAD);
	}
	r->lock_missing = !locked;
	if (!r->broken)
		head = ring_reader_read_header(r, &why);
	if (!r->broken)
		ring_reader_take(r, head);
	if (r->broken && !was_broken) {
		r->pub.has_live = false;
		r->stats->damaged++;
		ls_log(LS_LOG_WARN, "ring", "%s is damaged (%s); reading stops",
			r->name, why);
	}
	if (r->pub.state == LS_RING_STATE_DEAD && r->spool != NULL &&
		(r->broken || r->next == head))
		ring_reader_push_end(r, now_mono_ns);
}

_Static_assert(LS_RING_EVENTS_BYTES <= LS_RING_HEADER_BYTES,
	"the block fits the shared page");

int
ls_ring_reader_events(const struct ls_ring_reader *r, struct ls_ring_events *ret_events)
{
	if (r->header.header_bytes < LS_RING_EVENTS_OFFSET + LS_RING_EVENTS_BYTES)
		return -LS_EABSENT;
	if (r->broken ||
		!ls_ring_pread(r->fd, r->buf->page, LS_RING_EVENTS_BYTES,
			LS_RING_EVENTS_OFFSET))
		return -EIO;
	return ls_ring_parse_events(r->buf->page, LS_RING_EVENTS_BYTES, ret_events);
}

int
ls_ring_reader_new(int fd, const char *name, const struct ls_ring_header *header,
	const struct ls_ring_context *context, struct ls_ring_reader **ret_reader)
{
	const struct ls_spool_ring *cursor = NULL;
	struct ls_ring_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->fd = fd;
	r->header = *header;
	r->spool = context->spool;
	r->buf = context->buf;
	r->stats = context->stats;
	(void)snprintf(r->name, sizeof(r->name), "%s", name);
	memcpy(r->pub.worker.ring_id, header->id, sizeof(header->id));
	r->pub.worker.info = header->worker;
	r->pub.worker.created_mono_ns = header->created_mono_ns;
	r->pub.worker.number = context->number;
	r->pub.from = r->header.from;
	r->pub.env = r->header.env;
	if (r->spool != NULL)
		cursor = ls_spool_ring_find(r->spool, header->id);
	if (cursor != NULL) {
		r->next = cursor->next;
		r->pub.state =
			cursor->end_seq != 0 ? LS_RING_STATE_DONE : LS_RING_STATE_LIVE;
	}
	*ret_reader = r;
	return 0;
}

void
ls_ring_reader_free(struct ls_ring_reader *r)
{
	if (r == NULL)
		return;
	(void)close(r->fd); /* only read from */
	free(r);
}

const struct ls_step_ring *
ls_ring_reader_ring(const struct ls_ring_reader *r)
{
	return &r->pub;
}

bool
ls_ring_reader_is_held(const struct ls_ring_reader *r)
{
	pid_t pid;

	return ring_reader_is_locked(r, &pid);
}
