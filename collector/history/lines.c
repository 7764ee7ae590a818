/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/lines.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/metrics.h"

static const char *const lines_gap_reasons[LS_GAP_REASON_COUNT] = {
	[LS_GAP_UNKNOWN] = "unknown",
	[LS_GAP_OVERRUN] = "overrun",
	[LS_GAP_SPOOL_FULL] = "spool_full",
	[LS_GAP_INVALID] = "invalid",
	[LS_GAP_REBOOT] = "reboot",
};

static void __attribute__((format(printf, 2, 3)))
lines_add(struct ls_lines *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (l->full)
		return;
	va_start(ap, fmt);
	n = vsnprintf(l->text + l->len, l->size - l->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= l->size - l->len)
		l->full = true;
	else
		l->len += (size_t)n;
}

/* Text as it is. */
static void
lines_raw(struct ls_lines *l, const char *text, size_t len)
{
	if (l->full || len >= l->size - l->len) {
		l->full = true;
		return;
	}
	memcpy(l->text + l->len, text, len);
	l->len += len;
}

/* One member of a JSON object: how its value is written, and the value. */
struct lines_member {
	const char *name;
	/* NULL: the member is left out */
	void (*write)(struct ls_lines *l, const struct lines_member *m);
	union {
		const char *text;
		int64_t time_us;
		uint64_t whole, span_ns;
		int32_t small;
		double number;
		const int32_t *ranks;
		const struct ls_record *record;
		const struct ls_record_peer *peer;
		const struct ls_store_counters *counters;
		const struct lines_peers *peers;
		struct lines_series *series;
	};
	size_t count; /* of ranks */
};

#define LINES_COUNT(members) (sizeof(members) / sizeof((members)[0]))

/* A JSON string; names hold no control characters (they were checked on the wire), but
 * might. */
static void
lines_string(struct ls_lines *l, const char *s)
{
	static const char special[] =
		"\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
		"\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";
	size_t plain = strcspn(s, special);

	lines_raw(l, "\"", 1);
	lines_raw(l, s, plain);
	for (s += plain; *s != '\0'; s += plain) {
		lines_add(l, *s < 0x20 ? "\\u%04x" : "\\%c", *s);
		s++;
		plain = strcspn(s, special);
		lines_raw(l, s, plain);
	}
	lines_raw(l, "\"", 1);
}

static void
lines_object(struct ls_lines *l, const struct lines_member *m, size_t count)
{
	const char *between = "{";

	for (size_t i = 0; i < count; i++) {
		if (m[i].write == NULL)
			continue;
		lines_raw(l, between, 1);
		lines_string(l, m[i].name);
		lines_raw(l, ":", 1);
		m[i].write(l, &m[i]);
		between = ",";
	}
	lines_add(l, between[0] == '{' ? "{}" : "}");
}

static int
lines_compare(const void *a, const void *b)
{
	return strcmp(((const struct lines_member *)a)->name,
		((const struct lines_member *)b)->name);
}

static void
lines_sorted(struct ls_lines *l, struct lines_member *m, size_t count)
{
	qsort(m, count, sizeof(*m), lines_compare);
	lines_object(l, m, count);
}

/* A whole line, or nothing of it. */
static void
lines_line(struct ls_lines *l, const struct lines_member *m, size_t count)
{
	size_t start = l->len;

	l->full = false;
	lines_object(l, m, count);
	lines_add(l, "\n");
	if (l->full)
		l->len = start;
}

/* --- values --------------------------------------------------------------- */

static void
lines_text(struct ls_lines *l, const struct lines_member *m)
{
	lines_string(l, m->text);
}

static void
lines_whole(struct ls_lines *l, const struct lines_member *m)
{
	lines_add(l, "%llu", (unsigned long long)m->whole);
}

static void
lines_small(struct ls_lines *l, const struct lines_member *m)
{
	lines_add(l, "%d", (int)m->small);
}

static void
lines_true(struct ls_lines *l, const struct lines_member *m)
{
	(void)m;
	lines_add(l, "true");
}

/* Unix seconds to the microsecond; before the epoch nothing was measured. */
static void
lines_time(struct ls_lines *l, const struct lines_member *m)
{
	long long us = m->time_us < 0 ? 0 : m->time_us;

	lines_add(l, "%lld.%06lld", us / 1000000, us % 1000000);
}

static void
lines_span(struct ls_lines *l, const struct lines_member *m)
{
	lines_add(l, "%llu.%09llu", (unsigned long long)(m->span_ns / 1000000000),
		(unsigned long long)(m->span_ns % 1000000000));
}

/* A finite number that reads back to the same bits, as short as that can be. */
static void
lines_number(struct ls_lines *l, const struct lines_member *m)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, m->number);
		if (strtod(text, NULL) == m->number)
			break;
	}
	lines_add(l, "%s", text);
}

static void
lines_ranks(struct ls_lines *l, const struct lines_member *m)
{
	lines_add(l, "[");
	for (size_t i = 0; i < m->count; i++)
		lines_add(l, "%s%d", i > 0 ? "," : "", (int)m->ranks[i]);
	lines_add(l, "]");
}

/* --- a record: members in the order of their names ------------------------ */

static void
lines_barriers(struct ls_lines *l, const struct lines_member *m)
{
	const struct ls_record *r = m->record;

	for (size_t i = 0; i < r->barrier_count; i++) {
		const struct ls_record_barrier *b = &r->barrier[i];
		const struct lines_member barrier[] = {
			{ "enter", lines_time, .time_us = b->enter_ns / 1000 },
			{ "exit", lines_time, .time_us = b->exit_ns / 1000 },
			{ "name", lines_text, .text = ls_barrier_name(b->kind) },
		};

		lines_add(l, i > 0 ? "," : "[");
		lines_object(l, barrier, LINES_COUNT(barrier));
	}
	lines_add(l, "]");
}

struct lines_peers {
	const struct ls_worker_info *who;
	const struct ls_record *record;
	ls_lines_host_fn *host_of;
	void *arg;
};

static void
lines_peer(struct ls_lines *l, const struct lines_member *m)
{
	uint64_t recv_ns = m->peer->recv_wait_ns, send_ns = m->peer->send_wait_ns;
	const struct lines_member waits[] = {
		{ "recv_wait", recv_ns != UINT64_MAX ? lines_span : NULL,
			.span_ns = recv_ns },
		{ "send_wait", send_ns != UINT64_MAX ? lines_span : NULL,
			.span_ns = send_ns },
	};

	lines_object(l, waits, LINES_COUNT(waits));
}

/* Keys are hosts; of two peers on one host the second goes by its rank. */
static void
lines_peers(struct ls_lines *l, const struct lines_member *m)
{
	const struct lines_peers *p = m->peers;
	struct lines_member peers[LS_PEERS_MAX];
	char ranks[LS_PEERS_MAX][16];
	size_t i, k;

	for (i = 0; i < p->record->peer_count; i++) {
		const struct ls_record_peer *peer = &p->record->peer[i];
		const char *name = p->host_of(p->arg, p->who->attempt, peer->rank);

		for (k = 0; k < i && name != NULL; k++)
			if (strcmp(peers[k].name, name) == 0)
				name = NULL;
		(void)snprintf(ranks[i], sizeof(ranks[i]), "rank%lu",
			(unsigned long)peer->rank);
		peers[i] = (struct lines_member){ name != NULL ? name : ranks[i],
			lines_peer, .peer = peer };
	}
	lines_object(l, peers, i);
}

static void
lines_phases(struct ls_lines *l, const struct lines_member *m)
{
	struct lines_member phases[LS_PHASE_COUNT];
	size_t n = 0;

	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		if (m->record->phase_mask & 1u << p)
			phases[n++] = (struct lines_member){ ls_phase_name(p),
				lines_span, .span_ns = m->record->phase_ns[p] };
	lines_sorted(l, phases, n);
}

static void
lines_work(struct ls_lines *l, const struct lines_member *m)
{
	struct lines_member work[LS_WORK_COUNT];
	size_t n = 0;

	for (unsigned w = 0; w < LS_WORK_COUNT; w++)
		if (m->record->work_mask & 1u << w)
			work[n++] = (struct lines_member){ ls_work_name(w),
				lines_number, .number = m->record->work[w] };
	lines_sorted(l, work, n);
}

/* The user of a worker's ring, if it is known. */
#define LINES_UID(who)                                         \
	{                                                      \
		"uid", (who)->owner != 0 ? lines_whole : NULL, \
			.whole = (who)->owner - 1              \
	}

void
ls_lines_step(struct ls_lines *l, const struct ls_worker_info *who,
	const struct ls_record *r, ls_lines_host_fn *host_of, void *arg)
{
	const struct lines_peers peers = { who, r, host_of, arg };
	bool marked = who->step_source == LS_STEP_MARKER;
	const struct lines_member step[] = {
		{ "attempt", lines_small, .small = who->attempt },
		{ "barriers", r->barrier_count > 0 ? lines_barriers : NULL,
			.record = r },
		{ "chips", who->chips > 0 ? lines_small : NULL, .small = who->chips },
		{ "duration", lines_span, .span_ns = r->duration_ns },
		{ "host", lines_text, .text = who->host },
		{ "job", lines_text, .text = who->job },
		{ "peers", r->peer_count > 0 ? lines_peers : NULL, .peers = &peers },
		{ "phases", r->phase_mask != 0 ? lines_phases : NULL, .record = r },
		{ "rack", who->rack[0] != '\0' ? lines_text : NULL, .text = who->rack },
		{ "rank", lines_small, .small = who->rank },
		{ "role", who->role[0] != '\0' ? lines_text : NULL, .text = who->role },
		{ "shard", who->shard[0] != '\0' ? lines_text : NULL,
			.text = who->shard },
		{ "simulated", who->simulated ? lines_true : NULL, .text = NULL },
		{ "slice", who->slice[0] != '\0' ? lines_text : NULL,
			.text = who->slice },
		{ "step", lines_whole, .whole = r->step },
		{ "step_confidence", marked ? NULL : lines_number,
			.number = who->step_confidence },
		{ "step_source", marked ? NULL : lines_text,
			.text = ls_step_source_name(who->step_source) },
		{ "t_begin", lines_time, .time_us = r->t_begin_ns / 1000 },
		LINES_UID(who),
		{ "work", r->work_mask != 0 ? lines_work : NULL, .record = r },
		{ "world", who->world > 0 ? lines_small : NULL, .small = who->world },
	};

	lines_line(l, step, LINES_COUNT(step));
}

/* --- the other lines ------------------------------------------------------ */

static void
lines_counters(struct ls_lines *l, const struct lines_member *m)
{
	const struct ls_store_counters *c = m->counters;
	struct lines_member values[LS_HOT_MAX];
	size_t i;

	for (i = 0; i < c->count && i < LS_HOT_MAX; i++)
		values[i] = (struct lines_member){ ls_metric_info(c->metric[i])->name,
			lines_number, .number = c->value[i] };
	lines_sorted(l, values, i);
}

void
ls_lines_counters(struct ls_lines *l, const char *job, const struct ls_worker_info *who,
	const struct ls_store_counters *c, int64_t t_us)
{
	const struct lines_member counters[] = {
		{ "attempt", who != NULL ? lines_small : NULL,
			.small = who != NULL ? who->attempt : 0 },
		{ "host", lines_text, .text = c->host },
		{ "job", lines_text, .text = job },
		{ "rank", who != NULL ? lines_small : NULL,
			.small = who != NULL ? who->rank : 0 },
		{ "received", lines_time, .time_us = t_us },
		{ "t", lines_time, .time_us = c->read_us },
		{ "type", lines_text, .text = "counters" },
		{ "uid", who != NULL && who->owner != 0 ? lines_whole : NULL,
			.whole = who != NULL ? who->owner - 1 : 0 },
		{ "values", lines_counters, .counters = c },
	};

	lines_line(l, counters, LINES_COUNT(counters));
}

void
ls_lines_close(struct ls_lines *l, const struct ls_store_close *c, int64_t t_us)
{
	const struct lines_member close[] = {
		{ "attempt", lines_small, .small = c->attempt },
		{ "expected", lines_whole, .whole = c->expected },
		{ "job", lines_text, .text = c->job },
		{ "missing", lines_ranks, .ranks = c->missing, c->missing_count },
		{ "step", lines_whole, .whole = c->step },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "close" },
		{ "used", lines_whole, .whole = c->used },
	};

	lines_line(l, close, LINES_COUNT(close));
}

void
ls_lines_hang(struct ls_lines *l, const struct ls_store_hang *h, int64_t t_us)
{
	const struct lines_member hang[] = {
		{ "attempt", lines_small, .small = h->attempt },
		{ "job", lines_text, .text = h->job },
		{ "ranks", lines_ranks, .ranks = h->ranks, h->rank_count },
		{ "since", lines_time, .time_us = h->since_us },
		{ "step", lines_whole, .whole = h->step },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "hang" },
		{ "waiting", lines_whole, .whole = h->waiting },
		{ "why", lines_text, .text = ls_hang_why_name(h->why) },
	};

	lines_line(l, hang, LINES_COUNT(hang));
}

void
ls_lines_gap(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	uint64_t count, unsigned reason)
{
	const struct lines_member gap[] = {
		{ "attempt", lines_small, .small = who->attempt },
		{ "count", lines_whole, .whole = count },
		{ "host", lines_text, .text = who->host },
		{ "job", lines_text, .text = who->job },
		{ "rank", lines_small, .small = who->rank },
		{ "reason", lines_text, .text = lines_gap_reasons[reason] },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "gap" },
		LINES_UID(who),
	};

	lines_line(l, gap, LINES_COUNT(gap));
}

void
ls_lines_end(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	unsigned how)
{
	const struct lines_member end[] = {
		{ "attempt", lines_small, .small = who->attempt },
		{ "host", lines_text, .text = who->host },
		{ "how", lines_text, .text = ls_end_how_name(how) },
		{ "job", lines_text, .text = who->job },
		{ "rank", lines_small, .small = who->rank },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "end" },
		LINES_UID(who),
	};

	lines_line(l, end, LINES_COUNT(end));
}

void
ls_lines_clock(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	int64_t uncertainty_ns)
{
	const struct lines_member clock[] = {
		{ "attempt", lines_small, .small = who->attempt },
		{ "host", lines_text, .text = who->host },
		{ "job", lines_text, .text = who->job },
		{ "rank", lines_small, .small = who->rank },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "clock" },
		LINES_UID(who),
		{ "uncertainty", lines_span,
			.span_ns = uncertainty_ns > 0 ? (uint64_t)uncertainty_ns : 0 },
	};

	lines_line(l, clock, LINES_COUNT(clock));
}

struct lines_series {
	const char *const *series;
	const double *value;
	size_t count, done; /* given; written or left out */
	size_t start; /* of the line */
};

static void
lines_series(struct ls_lines *l, const struct lines_member *m)
{
	/* The longest text, each byte of it escaped, and a number. */
	const size_t most =
		LS_REPLAY_LINE_MAX_BYTES - 6 * LS_SERIES_TEXT_MAX_BYTES - 64;
	struct lines_series *s = m->series;
	const char *between = "";

	lines_add(l, "{");
	for (; s->done < s->count && l->len - s->start <= most; s->done++) {
		const struct lines_member one = { .number = s->value[s->done] };

		if (!isfinite(one.number))
			continue;
		lines_add(l, "%s", between);
		lines_string(l, s->series[s->done]);
		lines_add(l, ":");
		lines_number(l, &one);
		between = ",";
	}
	lines_add(l, "}");
}

size_t
ls_lines_series(struct ls_lines *l, const char *job, const char *host, int64_t t_us,
	const char *const *series, const double *value, size_t count)
{
	struct lines_series values = { series, value, count, 0, l->len };
	const struct lines_member counters[] = {
		{ "host", lines_text, .text = host },
		{ "job", lines_text, .text = job },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "counters" },
		{ "values", lines_series, .series = &values },
	};

	lines_line(l, counters, LINES_COUNT(counters));
	return values.done > 0 ? values.done : 1;
}

void
ls_lines_lost(struct ls_lines *l, const char *job, const struct ls_query_lost *lost)
{
	static const char *const reasons[LS_LOST_REASON_COUNT] = {
		[LS_LOST_UNKNOWN] = "unknown",
		[LS_LOST_SPOOL_FULL] = "spool_full",
		[LS_LOST_DAMAGED] = "damaged",
		[LS_LOST_REBOOT] = "reboot",
		[LS_LOST_SERIES_FULL] = "series_full",
	};
	unsigned reason =
		lost->reason < LS_LOST_REASON_COUNT ? lost->reason : LS_LOST_UNKNOWN;
	const struct lines_member members[] = {
		{ "from", lost->from_us != 0 ? lines_time : NULL,
			.time_us = lost->from_us },
		{ "group", lines_text, .text = lost->group },
		{ "host", lines_text, .text = lost->host },
		{ "job", lines_text, .text = job },
		{ "reason", lines_text, .text = reasons[reason] },
		{ "samples", lines_whole, .whole = lost->samples },
		{ "t", lines_time, .time_us = lost->t_us },
		{ "to", lost->to_us != 0 ? lines_time : NULL, .time_us = lost->to_us },
		{ "type", lines_text, .text = "lost" },
	};

	lines_line(l, members, LINES_COUNT(members));
}

void
ls_lines_zoom(struct ls_lines *l, const char *job, const struct ls_store_zoom *z,
	int64_t t_us)
{
	static const char *const events[LS_ZOOM_EVENT_COUNT] = {
		[LS_ZOOM_BEGIN] = "begin",
		[LS_ZOOM_RENEW] = "renew",
		[LS_ZOOM_END] = "end",
	};
	const struct lines_member zoom[] = {
		{ "cause", lines_text, .text = z->cause },
		{ "event", lines_text, .text = events[z->event] },
		{ "host", lines_text, .text = z->host },
		{ "job", lines_text, .text = job },
		{ "t", lines_time, .time_us = t_us },
		{ "type", lines_text, .text = "zoom" },
		{ "until", lines_time, .time_us = z->until_us },
	};

	lines_line(l, zoom, LINES_COUNT(zoom));
}

void
ls_lines_job(struct ls_lines *l, const char *job, size_t workers, int64_t from_us,
	int64_t to_us)
{
	const struct lines_member members[] = {
		{ "from", lines_time, .time_us = from_us },
		{ "job", lines_text, .text = job },
		{ "to", lines_time, .time_us = to_us },
		{ "type", lines_text, .text = "job" },
		{ "workers", lines_whole, .whole = workers },
	};

	lines_line(l, members, LINES_COUNT(members));
}
