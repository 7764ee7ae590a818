/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "agent/spool/spool_file.h"
#include "agent/spool/spool_state.h"
#include "proto/base/log.h"

/* --- windows -------------------------------------------------------------- */

static void
io_window_reset(struct ls_spool_window *w, uint64_t offset, uint64_t seq)
{
	w->base = w->scanned = offset;
	w->base_seq = w->front_seq = seq;
	w->pos = w->len = 0;
	w->rc = 0;
}

void
ls_spool_windows_reset(struct ls_spool *s, uint64_t offset, uint64_t chunk_seq)
{
	io_window_reset(&s->steps, offset, 0);
	io_window_reset(&s->chunks, offset, chunk_seq);
}

static bool
io_window_is_empty(const struct ls_spool_window *w)
{
	return w->pos == w->len;
}

static bool
io_window_wants(const struct ls_spool_window *w, const struct ls_spool_record *r)
{
	return w->is_chunks ? ls_spool_is_chunk_item(r) : ls_spool_is_item(r);
}

/* Copies a record with its head. False if there is no room. */
static bool
io_window_add(struct ls_spool_window *w, const uint8_t *bytes, size_t len)
{
	if (len > sizeof(w->buf) - w->len && w->pos > 0) {
		memmove(w->buf, w->buf + w->pos, w->len - w->pos);
		w->len -= w->pos;
		w->pos = 0;
	}
	if (len > sizeof(w->buf) - w->len)
		return false;
	memcpy(w->buf + w->len, bytes, len);
	w->len += len;
	return true;
}

/* True if the item at the front is acknowledged: it is counted out then. */
static bool
io_front_is_acked(struct ls_spool *s, struct ls_spool_window *w,
	const struct ls_spool_record *r)
{
	if (!w->is_chunks) {
		if (r->seq > s->log.acked)
			return false;
		s->live_bytes -= LS_SPOOL_RECORD_BYTES + r->len;
		return true;
	}
	if (w->front_seq > s->log.chunk_acked)
		return false;
	w->front_seq++;
	s->chunk_live_bytes -= LS_SPOOL_RECORD_BYTES + r->len;
	if (r->type == LS_SPOOL_DICTIONARY)
		ls_spool_know(s, r->hash, false);
	return true;
}

static void
io_window_trim(struct ls_spool *s, struct ls_spool_window *w)
{
	struct ls_spool_record r;

	if (w->loading)
		return;
	while (!io_window_is_empty(w)) {
		if (ls_spool_record_peek(w->buf + w->pos, &r) != 0 ||
			!io_front_is_acked(s, w, &r))
			return;
		w->pos += LS_SPOOL_RECORD_BYTES + r.len;
	}
	w->pos = w->len = 0;
	w->base = w->scanned;
	w->base_seq = w->front_seq;
}

void
ls_spool_windows_trim(struct ls_spool *s)
{
	io_window_trim(s, &s->steps);
	io_window_trim(s, &s->chunks);
}

/* A record that is written at offset now: the window goes on with it if it was up to
 * date. */
static void
io_window_follow(struct ls_spool_window *w, uint64_t offset,
	const struct ls_spool_record *r, const uint8_t *bytes)
{
	size_t len = LS_SPOOL_RECORD_BYTES + r->len;

	if (w->scanned != offset ||
		(io_window_wants(w, r) && !io_window_add(w, bytes, len)))
		return; /* read later */
	w->scanned += len;
}

/* --- on the disk thread --------------------------------------------------- */

static int
io_write(struct ls_spool *s, uint64_t end)
{
	int rc;

	if (s->torn && ftruncate(s->fd, (off_t)end) != 0)
		return -errno;
	s->torn = false;
	rc = ls_spool_pwrite(s->fd, s->unwritten, s->flight_len, end);
	if (rc != 0)
		s->torn = ftruncate(s->fd, (off_t)end) != 0;
	s->flight_written = rc == 0;
	return rc;
}

static int
io_fill_one(void *arg, const struct ls_spool_record *r)
{
	struct ls_spool_window *w = arg;

	if (io_window_wants(w, r) &&
		!io_window_add(w, r->payload - LS_SPOOL_RECORD_BYTES,
			LS_SPOOL_RECORD_BYTES + r->len))
		return -ENOBUFS; /* it is full */
	return 0;
}

static void
io_fill(struct ls_spool *s, struct ls_spool_window *w, uint64_t end)
{
	uint64_t before;

	if (!w->loading || w->scanned >= end)
		return;
	before = w->scanned;
	w->rc = ls_spool_walk(s, before, end, io_fill_one, w, &w->scanned);
	if (w->rc == -ENOBUFS)
		w->rc = 0;
	if (w->rc == 0 && w->scanned == before)
		w->rc = -LS_ECORRUPT; /* somebody cut the file */
}

static void
io_work(void *arg)
{
	struct ls_spool *s = arg;
	uint64_t end = s->rewrite.end;

	s->work_rc = 0;
	s->flight_written = s->rewritten = false;
	if (s->flight_len > 0)
		s->work_rc = io_write(s, end - s->flight_len);
	if (s->work_rc == 0 && s->rewriting) {
		s->work_rc = ls_spool_rewrite_run(s, NULL);
		s->rewritten = s->work_rc == 0;
	}
	if (s->rewritten) {
		end = s->rewrite.new_end;
		ls_spool_windows_reset(s, s->rewrite.start,
			s->rewrite.log.chunk_acked + 1);
	}
	if (s->flight_len > 0 && !s->flight_written)
		end -= s->flight_len;
	io_fill(s, &s->steps, end);
	io_fill(s, &s->chunks, end);
	s->work_damaged_bytes = ls_spool_damaged_bytes(s->dir_fd);
}

/* --- on the loop ---------------------------------------------------------- */

/* What was appended is in the file. Windows that are up to date go on with it, but not
 * those of a new file: the disk thread has filled them. */
static void
io_take_flight(struct ls_spool *s)
{
	struct ls_spool_record r;
	size_t at, len;

	for (at = 0; at < s->flight_len && !s->rewritten; at += len) {
		LS_ASSERT(ls_spool_record_peek(s->unwritten + at, &r) == 0);
		len = LS_SPOOL_RECORD_BYTES + r.len;
		io_window_follow(&s->steps, s->end + at, &r, s->unwritten + at);
		io_window_follow(&s->chunks, s->end + at, &r, s->unwritten + at);
	}
	s->end += s->flight_len;
	s->unwritten_len -= s->flight_len;
	memmove(s->unwritten, s->unwritten + s->flight_len, s->unwritten_len);
}

/* The new file is counted; what was pushed since comes on top. */
static void
io_take_rewrite(struct ls_spool *s)
{
	struct ls_spool_record r;

	ls_spool_rewrite_apply(s);
	for (size_t at = 0; at < s->unwritten_len;
		at += LS_SPOOL_RECORD_BYTES + r.len) {
		LS_ASSERT(ls_spool_record_peek(s->unwritten + at, &r) == 0);
		if (ls_spool_is_item(&r))
			s->live_bytes += LS_SPOOL_RECORD_BYTES + r.len;
		if (ls_spool_is_chunk_item(&r)) {
			s->chunk_live_bytes += LS_SPOOL_RECORD_BYTES + r.len;
			s->chunk_next++;
		}
	}
}

static void
io_done(void *arg)
{
	struct ls_spool *s = arg;

	s->steps.loading = s->chunks.loading = s->rewriting = false;
	s->rc = s->work_rc;
	s->stats.damaged_bytes = s->work_damaged_bytes;
	if (s->rc != 0 && s->flight_len > 0 && !s->flight_written)
		ls_log(LS_LOG_WARN, "spool",
			"cannot write (%s); %zu bytes wait in memory, retrying",
			ls_err_text(s->rc), s->unwritten_len);
	else if (s->rc != 0)
		ls_log(LS_LOG_WARN, "spool",
			"cannot rewrite (%s); the file stays unchanged",
			ls_err_text(s->rc));
	if (s->flight_written)
		io_take_flight(s);
	if (s->rewritten)
		io_take_rewrite(s);
	ls_spool_windows_trim(s);
	if (s->rc == 0 && s->steps.rc == 0 && s->chunks.rc == 0)
		ls_spool_kick(s);
	if (!s->job.busy && s->on_idle != NULL)
		s->on_idle(s->idle_arg);
}

/* True if there is more in the file, and room for any record. */
static bool
io_window_lags(const struct ls_spool_window *w, uint64_t end)
{
	return w->scanned < end &&
		w->len - w->pos <=
		sizeof(w->buf) - LS_SPOOL_RECORD_BYTES - LS_SPOOL_PAYLOAD_MAX_BYTES;
}

void
ls_spool_kick(struct ls_spool *s)
{
	uint64_t end = s->end + s->unwritten_len;

	if (s->job.busy)
		return;
	ls_spool_windows_trim(s);
	s->steps.loading = s->rewrite_wanted || io_window_lags(&s->steps, s->end);
	s->chunks.loading = s->rewrite_wanted || io_window_lags(&s->chunks, s->end);
	if (s->unwritten_len == 0 && !s->steps.loading && !s->chunks.loading)
		return;
	s->flight_len = s->unwritten_len;
	s->rewriting = s->rewrite_wanted;
	s->rewrite_wanted = false;
	s->rewrite.end = end;
	if (s->rewriting)
		ls_spool_rewrite_prepare(s, end);
	ls_disk_run(s->disk, &s->job);
}

void
ls_spool_use_disk(struct ls_spool *s, struct ls_disk *disk, ls_spool_idle *on_idle,
	void *arg)
{
	LS_ASSERT(!s->job.busy);
	s->disk = disk;
	s->on_idle = on_idle;
	s->idle_arg = arg;
	s->job = (struct ls_disk_job){ .work = io_work, .done = io_done, .arg = s };
}

bool
ls_spool_is_idle(const struct ls_spool *s)
{
	return !s->job.busy;
}

bool
ls_spool_is_written(const struct ls_spool *s)
{
	return s->unwritten_len == 0;
}
