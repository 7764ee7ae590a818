/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/repacker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "storage/db/days.h"
#include "storage/tidy/repack.h"

#define REPACKER_DAY_US (24ll * 3600 * 1000000)

#define REPACKER_WAITS 1 /* for the writer; else its answer, 0 or negative */

struct ls_repacker {
	ls_write_push_fn *push;
	void *arg;
	int32_t waiting; /* a day whose new file the writer is to rename; 0: none */
	struct ls_repack_stats fresh; /* of that day */
	_Atomic int answer;
	uint64_t not_before_ns; /* after a failure; of the turns' thread */
	int32_t done; /* days up to this one are repacked; likewise */
	_Atomic bool stop;
	_Atomic uint64_t days, failures, bytes_before, bytes_after;
	const char *dir;
};

struct ls_repacker *
ls_repacker_new(const char *dir, ls_write_push_fn *push, void *arg)
{
	struct ls_repacker *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->dir = dir;
	r->push = push;
	r->arg = arg;
	return r;
}

void
ls_repacker_free(struct ls_repacker *r)
{
	free(r);
}

static bool
repacker_is_stopped(void *arg)
{
	return ((struct ls_repacker *)arg)->stop;
}

/* The oldest day that is to be repacked now; 0: there is none. */
static int
repacker_next(struct ls_repacker *r, int64_t wall_us, int32_t *ret_day)
{
	struct ls_days days;
	enum ls_repack_state state = LS_REPACK_DONE;
	int rc = ls_days_newest(r->dir, &days);

	*ret_day = 0;
	for (size_t i = 0; rc == 0 && i + 1 < days.count && *ret_day == 0; i++) {
		int32_t day = days.day[i];
		int64_t over_us = wall_us - ls_days_begin_us(day) - REPACKER_DAY_US;

		if (day <= r->done)
			continue;
		if (over_us < LS_REPACK_WAIT_US)
			break;
		rc = ls_repack_look(r->dir, day, &state);
		if (rc == 0 && state == LS_REPACK_NOT_ROLLED_UP &&
			over_us < LS_REPACK_FORCE_US)
			break; /* the roller comes to it */
		if (rc == 0 && state != LS_REPACK_DONE)
			*ret_day = day;
		else if (rc == 0 || rc == -LS_EVERSION || rc == -LS_ECORRUPT)
			r->done = day; /* done, or not ours to touch */
		if (rc == -LS_EVERSION || rc == -LS_ECORRUPT)
			rc = 0;
	}
	return rc;
}

/* Writes the new file of a day and asks the writer to rename it. */
static int
repacker_day(struct ls_repacker *r, int32_t day)
{
	int rc = ls_repack_day(r->dir, day, repacker_is_stopped, r, &r->fresh);

	if (rc == -LS_ECORRUPT)
		r->done = day; /* a damaged day must not hold up the later ones */
	if (rc != 0)
		return rc;
	r->waiting = day;
	r->answer = REPACKER_WAITS;
	rc = ls_write_push_day(LS_WRITE_REPLACE, day, r->push, r->arg);
	if (rc != 0)
		r->waiting = 0;
	return rc;
}

/* The writer has answered. */
static int
repacker_finish(struct ls_repacker *r)
{
	const struct ls_repack_stats *f = &r->fresh;
	int32_t day = r->waiting;
	int rc = r->answer;

	r->waiting = 0;
	if (rc != 0)
		return rc;
	r->done = day;
	r->days++;
	r->bytes_before += f->bytes_before;
	r->bytes_after += f->bytes_after;
	ls_log(LS_LOG_INFO, "storage",
		"repacked day %d: %llu chunks became %llu, %llu bytes became %llu",
		(int)day, (unsigned long long)f->chunks_before,
		(unsigned long long)f->chunks_after,
		(unsigned long long)f->bytes_before,
		(unsigned long long)f->bytes_after);
	return 0;
}

int
ls_repacker_step(struct ls_repacker *r, int64_t wall_us, uint64_t now_ns,
	bool *ret_more)
{
	int32_t day = r->waiting;
	int rc = 0;

	*ret_more = false;
	if (r->stop || (day == 0 && now_ns < r->not_before_ns))
		return 0;
	if (day == 0) {
		rc = repacker_next(r, wall_us, &day);
		if (rc == 0 && day != 0)
			rc = repacker_day(r, day);
	}
	if (rc == 0 && r->waiting != 0) {
		if (r->answer == REPACKER_WAITS)
			return 0;
		rc = repacker_finish(r);
	}
	if (rc == -ECANCELED)
		return 0; /* the end of the process */
	if (rc != 0) {
		r->failures++;
		r->not_before_ns = now_ns + LS_REPACK_RETRY_NS;
		return rc;
	}
	*ret_more = day != 0;
	if (day == 0)
		r->not_before_ns = now_ns + LS_REPACK_LOOK_NS;
	return 0;
}

void
ls_repacker_told(struct ls_repacker *r, int rc)
{
	r->answer = rc;
}

int
ls_repacker_turn(void *arg, bool *ret_more)
{
	return ls_repacker_step(arg, (int64_t)(ls_clock_wall_ns() / 1000),
		ls_clock_mono_ns(), ret_more);
}

void
ls_repacker_stop(struct ls_repacker *r)
{
	r->stop = true;
}

void
ls_repacker_stats(struct ls_repacker *r, struct ls_repacker_stats *ret_stats)
{
	*ret_stats = (struct ls_repacker_stats){ r->days, r->failures, r->bytes_before,
		r->bytes_after };
}
