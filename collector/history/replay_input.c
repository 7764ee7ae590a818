/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/history/replay_input.h"
#include "collector/engine/join/steps.h"
#include "proto/base/hash.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* the year 2223, as in a line of JSON: a record may still follow */
#define INPUT_ROWS_END_NS 8000000000000000000ll
#define INPUT_CLOCKS_US 1000000 /* clocks of workers are off by no more */

static void
input_say(struct ls_replay_input *in, uint64_t line, const char *what)
{
	char text[LS_LINE_WHY_BYTES + 48];

	if (in->complain == NULL)
		return;
	if (line > 0)
		(void)snprintf(text, sizeof(text), "line %llu: %s",
			(unsigned long long)line, what);
	else
		(void)snprintf(text, sizeof(text), "%s", what);
	in->complain(in->complain_arg, text);
}

void
ls_replay_input_bad(struct ls_replay_input *in, uint64_t line, const char *why)
{
	in->stats.bad_lines++;
	if (in->stats.bad_lines <= LS_REPLAY_ERRORS_SHOWN)
		input_say(in, line, why);
	else if (in->stats.bad_lines == LS_REPLAY_ERRORS_SHOWN + 1)
		input_say(in, line,
			"more bad lines follow; from here they are only counted");
}

void
ls_replay_input_fini(struct ls_replay_input *in)
{
	for (size_t i = 0; i < in->event_count; i++)
		free(in->events[i].u.any);
	free(in->events);
	free(in->workers);
	ls_index_fini(&in->worker_index);
}

/* --- lines to events ------------------------------------------------------ */

static int
input_compare_who(const struct ls_worker_info *a, const struct ls_worker_info *b)
{
	int c = strcmp(a->job, b->job);

	if (c == 0)
		c = (a->attempt > b->attempt) - (a->attempt < b->attempt);
	if (c == 0)
		c = (a->rank > b->rank) - (a->rank < b->rank);
	if (c == 0)
		c = (a->owner > b->owner) - (a->owner < b->owner);
	return c != 0 ? c : strcmp(a->host, b->host);
}

static uint32_t
input_hash_who(const struct ls_worker_info *w)
{
	uint64_t names = (uint64_t)ls_index_hash_text(w->job) << 32 |
		ls_index_hash_text(w->host);
	uint64_t numbers = (uint64_t)(uint32_t)w->attempt << 32 | (uint32_t)w->rank;

	return ls_index_hash_number(names) ^ ls_index_hash_number(numbers);
}

/* Lines of one worker may tell different things of it; the greatest count, so their
 * order is nothing. */
static void
input_merge_who(struct ls_worker_info *w, const struct ls_worker_info *more)
{
	if (strcmp(more->slice, w->slice) > 0)
		memcpy(w->slice, more->slice, sizeof(w->slice));
	if (strcmp(more->role, w->role) > 0)
		memcpy(w->role, more->role, sizeof(w->role));
	if (strcmp(more->rack, w->rack) > 0)
		memcpy(w->rack, more->rack, sizeof(w->rack));
	if (strcmp(more->shard, w->shard) > 0)
		memcpy(w->shard, more->shard, sizeof(w->shard));
	if (more->world > w->world)
		w->world = more->world;
	if (more->chips > w->chips)
		w->chips = more->chips;
	if (more->step_source > w->step_source)
		w->step_source = more->step_source;
	if (more->step_confidence > w->step_confidence)
		w->step_confidence = more->step_confidence;
	w->simulated |= more->simulated;
}

/* The worker of this identity, made if new. */
static int
input_worker(struct ls_replay_input *in, const struct ls_worker_info *who,
	uint32_t *ret_index)
{
	uint32_t hash = input_hash_who(who), at;
	size_t walk = 0;
	int rc;

	while ((at = ls_index_next(&in->worker_index, hash, &walk)) != LS_INDEX_NONE) {
		if (input_compare_who(&in->workers[at].who, who) != 0)
			continue;
		input_merge_who(&in->workers[at].who, who);
		*ret_index = at;
		return 0;
	}
	if (in->worker_count == 2 * LS_WORKERS_MAX)
		return -LS_ELIMIT;
	rc = ls_mem_grow((void **)&in->workers, in->worker_count, &in->worker_capacity,
		sizeof(*in->workers));
	if (rc == 0)
		rc = ls_index_put(&in->worker_index, hash, (uint32_t)in->worker_count);
	if (rc != 0)
		return rc;
	in->workers[in->worker_count] =
		(struct ls_replay_worker){ .who = *who, .handle = LS_NO_WORKER };
	*ret_index = (uint32_t)in->worker_count++;
	return 0;
}

/* A record is known when the step has ended. */
static int
input_step(struct ls_replay_event *ev, const struct ls_line *l)
{
	struct ls_record *r = malloc(sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	*r = l->record;
	ev->u.record = r;
	ev->step = r->step;
	ev->t_us = r->t_begin_ns / 1000 + (int64_t)((r->duration_ns + 500) / 1000);
	return 0;
}

/* Only what the engine watches is kept. */
static int
input_counters(struct ls_replay_event *ev, const struct ls_line *l)
{
	struct ls_replay_counters *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < l->count && c->count < LS_HOT_MAX; i++) {
		if (!ls_metric_info(l->metric[i])->hot)
			continue;
		c->metric[c->count] = l->metric[i];
		c->value[c->count++] = l->value[i];
	}
	c->read_us = l->read_us;
	ev->u.counters = c;
	ev->t_us = l->t_us;
	return 0;
}

static int
input_said(struct ls_replay_event *ev, const struct ls_line *l)
{
	size_t bytes = l->rank_count * sizeof(l->ranks[0]);
	struct ls_replay_said *said = malloc(sizeof(*said) + bytes);

	if (said == NULL)
		return -ENOMEM;
	*said = (struct ls_replay_said){ .uncertainty_s = l->uncertainty_s,
		.how = l->how,
		.since_us = l->since_us,
		.waiting = l->waiting,
		.why = l->why,
		.count = l->rank_count };
	memcpy(said->ranks, l->ranks, bytes);
	ev->u.said = said;
	ev->step = l->step;
	ev->t_us = l->t_us;
	return 0;
}

/* Copies what the line says into memory of the event. */
static int
input_payload(struct ls_replay_event *ev, const struct ls_line *l)
{
	if (l->kind == LS_LINE_STEP)
		return input_step(ev, l);
	return l->kind == LS_LINE_COUNTERS ? input_counters(ev, l) : input_said(ev, l);
}

static int
input_add(struct ls_replay_input *in, const struct ls_line *l, uint64_t tie)
{
	struct ls_replay_event ev = { .kind = l->kind, .tie = tie };
	struct ls_worker_info who = l->who;
	int rc;

	if (in->event_count == LS_REPLAY_MAX_RECORDS)
		return -LS_ELIMIT;
	if (l->kind == LS_LINE_CLOSE || l->kind == LS_LINE_HANG)
		who.rank = -1;
	rc = input_worker(in, &who, &ev.worker);
	if (rc == 0)
		rc = ls_mem_grow((void **)&in->events, in->event_count,
			&in->event_capacity, sizeof(*in->events));
	if (rc == 0)
		rc = input_payload(&ev, l);
	if (rc == 0)
		in->events[in->event_count++] = ev;
	return rc;
}

static int
input_line(struct ls_replay_input *in, const char *text, size_t len)
{
	struct ls_line line;
	char why[LS_LINE_WHY_BYTES];

	in->stats.lines++;
	if (!in->begun && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3; /* the mark that Windows puts before UTF-8 */
		len -= 3;
	}
	while (len > 0 &&
		(text[len - 1] == '\n' || text[len - 1] == '\r' ||
			text[len - 1] == ' '))
		len--;
	if (len == 0)
		return 0;
	if (!in->begun)
		in->is_csv = ls_csv_is(text, len);
	in->begun = true;
	if ((in->is_csv ? ls_csv_parse(&in->csv, text, len, &line, why)
			: ls_line_parse(text, len, &line, why)) != 0) {
		ls_replay_input_bad(in, in->stats.lines, why);
		return 0;
	}
	if (line.unknown[0] != '\0' && in->stats.unknown_keys++ == 0) {
		(void)snprintf(why, sizeof(why),
			"unknown key \"%s\" is ignored from here on", line.unknown);
		input_say(in, in->stats.lines, why);
	}
	in->stats.records += line.kind == LS_LINE_STEP;
	in->stats.counters += line.kind == LS_LINE_COUNTERS;
	in->stats.others += line.kind != LS_LINE_STEP && line.kind != LS_LINE_COUNTERS;
	in->stats.whole +=
		in->is_csv && line.kind == LS_LINE_STEP && line.record.phase_mask == 0;
	return line.kind == LS_LINE_OTHER
		? 0
		: input_add(in, &line, ls_hash(LS_HASH_START, text, len));
}

/* --- text and files to lines ---------------------------------------------- */

static void
input_too_long(struct ls_replay_input *in)
{
	in->stats.lines++;
	ls_replay_input_bad(in, in->stats.lines, "the line is too long");
}

int
ls_replay_input_text(struct ls_replay_input *in, const char *text, size_t len)
{
	int rc = 0;

	while (rc == 0 && len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end == NULL ? len : (size_t)(end - text) + 1;

		if (n > LS_REPLAY_LINE_MAX_BYTES)
			input_too_long(in);
		else
			rc = input_line(in, text, n);
		text += n;
		len -= n;
	}
	return rc;
}

/*
 * Reads one line into buf; *ret_len 0 at the end of the file. Too long ones are skipped
 * whole. A NUL byte ends a line early: what is before it is judged.
 */
static int
input_read_line(struct ls_replay_input *in, gzFile file, char *buf, size_t size,
	size_t *ret_len)
{
	size_t len;
	int error;

	for (;;) {
		if (gzgets(file, buf, (int)size) == NULL) {
			(void)gzerror(file, &error);
			*ret_len = 0;
			return error == Z_OK || error == Z_STREAM_END ? 0
				: error == Z_ERRNO		      ? -errno
								      : -LS_ECORRUPT;
		}
		if ((uint64_t)gztell(file) > in->bytes_max)
			return -LS_ELIMIT;
		len = strlen(buf);
		if (len == 0) {
			in->stats.lines++;
			ls_replay_input_bad(in, in->stats.lines, "holds a NUL byte");
			continue;
		}
		if (buf[len - 1] == '\n' || len < size - 1 || gzeof(file))
			break;
		input_too_long(in);
		while (len > 0 && buf[len - 1] != '\n' &&
			(uint64_t)gztell(file) <= in->bytes_max &&
			gzgets(file, buf, (int)size) != NULL)
			len = strlen(buf);
	}
	*ret_len = len;
	return 0;
}

static int
input_read_all(struct ls_replay_input *in, gzFile file, char *buf, size_t size)
{
	size_t len;
	int rc;

	for (;;) {
		rc = input_read_line(in, file, buf, size, &len);
		if (rc == -LS_ECORRUPT) {
			in->stats.bad_lines++;
			input_say(in, in->stats.lines + 1,
				"the compressed file is damaged or truncated from "
				"here on");
			return 0;
		}
		if (rc != 0 || len == 0)
			return rc;
		rc = input_line(in, buf, len);
		if (rc != 0)
			return rc;
	}
}

int
ls_replay_input_file(struct ls_replay_input *in, const char *path)
{
	size_t size = LS_REPLAY_LINE_MAX_BYTES + 1;
	char *buf = malloc(size);
	gzFile file = NULL;
	int rc = buf == NULL ? -ENOMEM : 0;

	errno = 0;
	if (rc == 0)
		file = strcmp(path, "-") == 0 ? gzdopen(0, "rb") : gzopen(path, "rb");
	if (rc == 0 && file == NULL)
		rc = errno != 0 ? -errno : -ENOMEM;
	if (rc == 0)
		rc = input_read_all(in, file, buf, size);
	if (file != NULL)
		(void)gzclose_r(file); /* read only: nothing to lose */
	free(buf);
	return rc;
}

/* --- events in order ------------------------------------------------------ */

static int
input_compare_workers(const void *a, const void *b)
{
	const struct ls_replay_worker *x = a, *y = b;

	return input_compare_who(&x->who, &y->who);
}

/* Sorts workers by identity, renames them in the events and notes where each attempt
 * begins. */
static int
input_sort_workers(struct ls_replay_input *in)
{
	uint32_t *now_at = malloc((in->worker_count + 1) * sizeof(*now_at));

	if (now_at == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < in->worker_count; i++)
		in->workers[i].first = (uint32_t)i; /* until sorted: where it was */
	if (in->worker_count > 1)
		qsort(in->workers, in->worker_count, sizeof(*in->workers),
			input_compare_workers);
	for (size_t i = 0; i < in->worker_count; i++) {
		struct ls_replay_worker *w = &in->workers[i],
					*before = i > 0 ? w - 1 : NULL;
		bool same = before != NULL && before->who.attempt == w->who.attempt &&
			strcmp(before->who.job, w->who.job) == 0;

		now_at[w->first] = (uint32_t)i;
		w->first = same ? before->first : (uint32_t)i;
	}
	for (size_t i = 0; i < in->event_count; i++)
		in->events[i].worker = now_at[in->events[i].worker];
	free(now_at);
	return 0;
}

/*
 * Stored closings: a step is judged at the time of its closing, on the records that
 * were there. So its records move to that time, and those that came too late leave;
 * steps never closed leave, too.
 */
struct input_closing {
	uint32_t attempt; /* first worker of it */
	uint64_t step;
	int64_t t_us;
	const struct ls_replay_said *close;
};

static int
input_compare_closings(const void *a, const void *b)
{
	const struct input_closing *x = a, *y = b;
	int c = (x->attempt > y->attempt) - (x->attempt < y->attempt);

	return c != 0 ? c : (x->step > y->step) - (x->step < y->step);
}

/* Where a step closed twice, the earlier first. */
static int
input_sort_closings(const void *a, const void *b)
{
	const struct input_closing *x = a, *y = b;
	int c = input_compare_closings(a, b);

	return c != 0 ? c : (x->t_us > y->t_us) - (x->t_us < y->t_us);
}

static bool
input_was_missing(const struct ls_replay_said *c, int32_t rank)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->ranks[i] == rank)
			return true;
	return false;
}

/* Lists the closings, sorted, and marks the attempts that have some. */
static size_t
input_list_closings(struct ls_replay_input *in, struct input_closing *list)
{
	size_t n = 0;

	for (size_t i = 0; i < in->event_count; i++) {
		const struct ls_replay_event *ev = &in->events[i];
		uint32_t attempt = in->workers[ev->worker].first;

		if (ev->kind != LS_LINE_CLOSE)
			continue;
		list[n++] = (struct input_closing){ attempt, ev->step, ev->t_us,
			ev->u.said };
		in->workers[attempt].closings = true;
	}
	for (size_t i = 0; i < in->worker_count; i++)
		in->workers[i].closings = in->workers[in->workers[i].first].closings;
	if (n > 1)
		qsort(list, n, sizeof(*list), input_sort_closings);
	return n;
}

/* The closing that judged a record of this rank, or NULL: where a job counted its steps anew, the first one after the record
 * began. */
static const struct input_closing *
input_find_closing(const struct input_closing *list, size_t n,
	const struct input_closing *key, int32_t rank)
{
	const struct input_closing *hit =
		bsearch(key, list, n, sizeof(*list), input_compare_closings);
	const struct input_closing *end = list + n;

	if (hit == NULL)
		return NULL;
	while (hit > list && input_compare_closings(hit - 1, key) == 0)
		hit--;
	while (hit->t_us < key->t_us && hit + 1 < end &&
		input_compare_closings(hit + 1, key) == 0)
		hit++;
	return input_was_missing(hit->close, rank) ? NULL : hit;
}

/* That of the step, else (of an asynchronous job) that of the window of time in which
 * the record ends. */
static const struct input_closing *
input_closing_of(const struct input_closing *list, size_t n, uint32_t attempt,
	const struct ls_record *r, int32_t rank)
{
	struct input_closing key = { .attempt = attempt,
		.step = r->step,
		.t_us = r->t_begin_ns / 1000 - INPUT_CLOCKS_US };
	const struct input_closing *hit = input_find_closing(list, n, &key, rank);

	for (unsigned width = 0; hit == NULL && width <= LS_WINDOW_LOG2_MAX; width++) {
		key.step = ls_window_at(ls_steps_end_us(r), width);
		hit = input_find_closing(list, n, &key, rank);
	}
	return hit;
}

/* Ties each record of an attempt with closings to its closing. */
static int
input_apply_closings(struct ls_replay_input *in)
{
	struct input_closing *list = malloc((in->event_count + 1) * sizeof(*list));
	const struct input_closing *hit;
	size_t n;

	if (list == NULL)
		return -ENOMEM;
	n = input_list_closings(in, list);
	for (size_t i = 0; n > 0 && i < in->event_count; i++) {
		struct ls_replay_event *ev = &in->events[i];
		const struct ls_replay_worker *w = &in->workers[ev->worker];

		if (ev->kind != LS_LINE_STEP || !w->closings)
			continue;
		hit = input_closing_of(list, n, w->first, ev->u.record, w->who.rank);
		if (hit != NULL) {
			ev->t_us = hit->t_us;
		} else {
			free(ev->u.record);
			ev->u.record = NULL;
		}
	}
	free(list);
	return 0;
}

/*
 * At one time clocks and counters come before the steps they speak of, and a closing
 * after its records; a standstill is never seen in the moment of a closing, so it comes
 * before one (ls_hang_look); an end comes last.
 */
static const int input_ranks[] = {
	[LS_LINE_CLOCK] = 0,
	[LS_LINE_COUNTERS] = 1,
	[LS_LINE_STEP] = 2,
	[LS_LINE_HANG] = 3,
	[LS_LINE_CLOSE] = 4,
	/* what was still open closes with it, and its findings go last */
	[LS_LINE_END] = 5,
};

static int
input_compare_events(const void *a, const void *b)
{
	const struct ls_replay_event *x = a, *y = b;
	int c = (x->t_us > y->t_us) - (x->t_us < y->t_us);

	if (c == 0)
		c = input_ranks[x->kind] - input_ranks[y->kind];
	if (c == 0)
		c = (x->step > y->step) - (x->step < y->step);
	/* workers are sorted by name and number, so their index says the same */
	if (c == 0)
		c = (x->worker > y->worker) - (x->worker < y->worker);
	return c != 0 ? c : (x->tie > y->tie) - (x->tie < y->tie);
}

/* The rank of the one worker of an attempt on the host of this hash; -1: none, or
 * several. */
static int32_t
input_rank_on_host(const struct ls_replay_input *in, const struct ls_index *hosts,
	uint32_t attempt, uint32_t host)
{
	uint32_t hash = ls_index_hash_number((uint64_t)attempt << 32 | host), at;
	int32_t rank = -1;
	size_t walk = 0;

	while ((at = ls_index_next(hosts, hash, &walk)) != LS_INDEX_NONE) {
		if (in->workers[at].first != attempt ||
			ls_index_hash_text(in->workers[at].who.host) != host)
			continue;
		if (rank >= 0)
			return -1;
		rank = in->workers[at].who.rank;
	}
	return rank;
}

/* Peers are named by host in a line (replay_line.h); those whose rank is not plain are
 * left out. */
static int
input_resolve_peers(struct ls_replay_input *in)
{
	struct ls_index hosts = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < in->worker_count; i++) {
		const struct ls_replay_worker *w = &in->workers[i];

		if (w->who.rank >= 0 && w->who.host[0] != '\0')
			rc = ls_index_put(&hosts,
				ls_index_hash_number((uint64_t)w->first << 32 |
					ls_index_hash_text(w->who.host)),
				(uint32_t)i);
	}
	for (size_t i = 0; rc == 0 && i < in->event_count; i++) {
		struct ls_record *r = in->events[i].kind == LS_LINE_STEP
			? in->events[i].u.record
			: NULL;
		uint8_t kept = 0;

		for (uint8_t p = 0; r != NULL && p < r->peer_count; p++) {
			int32_t rank = input_rank_on_host(in, &hosts,
				in->workers[in->events[i].worker].first,
				r->peer[p].rank);

			if (rank < 0)
				continue;
			r->peer[kept] = r->peer[p];
			r->peer[kept++].rank = (uint32_t)rank;
		}
		if (r != NULL)
			r->peer_count = kept;
	}
	ls_index_fini(&hosts);
	return rc;
}

/* A table has no times: its steps, in order, follow each other from 1970 on. */
static int
input_place_rows(struct ls_replay_input *in)
{
	int64_t begin_ns = 0;
	size_t to;

	for (size_t i = 0; i < in->event_count; i = to) {
		uint64_t longest_ns = 0;

		for (to = i; to < in->event_count &&
			in->events[to].step == in->events[i].step;
			to++) {
			const struct ls_record *r = in->events[to].u.record;
			uint64_t own_ns = r->phase_ns[LS_PHASE_OTHER];

			longest_ns = longest_ns > r->duration_ns ? longest_ns
								 : r->duration_ns;
			longest_ns = longest_ns > own_ns ? longest_ns : own_ns;
		}
		if (begin_ns > INPUT_ROWS_END_NS)
			return -LS_ELIMIT;
		for (size_t k = i; k < to; k++) {
			struct ls_record *r = in->events[k].u.record;

			ls_csv_place(r, begin_ns, longest_ns);
			in->events[k].t_us =
				(begin_ns + (int64_t)r->duration_ns) / 1000;
		}
		begin_ns += (int64_t)longest_ns;
	}
	return 0;
}

static void
input_sort_events(struct ls_replay_input *in)
{
	if (in->event_count > 1)
		qsort(in->events, in->event_count, sizeof(*in->events),
			input_compare_events);
}

int
ls_replay_input_arrange(struct ls_replay_input *in)
{
	int rc = input_sort_workers(in);

	if (rc == 0 && in->is_csv) {
		for (size_t i = 0; i < in->event_count; i++)
			in->events[i].t_us = 0; /* in order of their steps */
		input_sort_events(in);
		rc = input_place_rows(in);
	}
	if (rc == 0)
		rc = input_apply_closings(in);
	if (rc == 0)
		rc = input_resolve_peers(in);
	if (rc == 0)
		input_sort_events(in);
	return rc;
}
