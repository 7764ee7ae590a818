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

static const char *const lines_end_hows[LS_END_HOW_COUNT] = {
	[LS_END_UNKNOWN] = "unknown",
	[LS_END_ENDED] = "ended",
	[LS_END_CRASHED] = "crashed",
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

/* A JSON string; names hold no control characters (they were checked on the wire), but
 * might. */
static void
lines_string(struct ls_lines *l, const char *s)
{
	lines_add(l, "\"");
	for (; *s != '\0' && !l->full; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			lines_add(l, "\\%c", c);
		else if (c < 0x20)
			lines_add(l, "\\u%04x", c);
		else
			lines_add(l, "%c", c);
	}
	lines_add(l, "\"");
}

static void
lines_member(struct ls_lines *l, const char *name, const char *value)
{
	lines_add(l, ",\"%s\":", name);
	lines_string(l, value);
}

/* Unix seconds to the microsecond; us >= 0. */
static void
lines_time(struct ls_lines *l, const char *before, int64_t us)
{
	if (us < 0)
		us = 0; /* before the epoch nothing was measured */
	lines_add(l, "%s%lld.%06lld", before, (long long)(us / 1000000),
		(long long)(us % 1000000));
}

static void
lines_span(struct ls_lines *l, const char *before, uint64_t ns)
{
	lines_add(l, "%s%llu.%09llu", before, (unsigned long long)(ns / 1000000000),
		(unsigned long long)(ns % 1000000000));
}

/* A finite number that reads back to the same bits, as short as that can be. */
static void
lines_number(struct ls_lines *l, double v)
{
	char text[40];
	int digits;

	for (digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	lines_add(l, "%s", text);
}

/* Ends a line that began at `start`, or takes it out again. */
static void
lines_end_line(struct ls_lines *l, size_t start)
{
	lines_add(l, "}\n");
	if (l->full)
		l->len = start;
}

static size_t
lines_begin(struct ls_lines *l)
{
	l->full = false;
	return l->len;
}

/* --- a record: members in the order of their names ------------------------ */

static void
lines_barriers(struct ls_lines *l, const struct ls_record *r)
{
	size_t i;

	if (r->barrier_count == 0)
		return;
	lines_add(l, ",\"barriers\":[");
	for (i = 0; i < r->barrier_count; i++) {
		lines_time(l, i > 0 ? ",{\"enter\":" : "{\"enter\":",
			r->barrier[i].enter_ns / 1000);
		lines_time(l, ",\"exit\":", r->barrier[i].exit_ns / 1000);
		lines_member(l, "name", ls_barrier_name(r->barrier[i].kind));
		lines_add(l, "}");
	}
	lines_add(l, "]");
}

static void
lines_peers(struct ls_lines *l, const struct ls_worker_info *who,
	const struct ls_record *r, ls_lines_host *host, void *arg)
{
	const char *names[LS_PEERS_MAX];
	bool any = false;
	size_t i;

	for (i = 0; i < r->peer_count; i++) {
		const struct ls_record_peer *p = &r->peer[i];
		const char *name = names[i] = host(arg, who, p->rank);
		char rank[16];

		/* Keys are hosts; of two peers on one host the second goes by its rank.
		 */
		for (size_t k = 0; k < i && name != NULL; k++)
			if (names[k] != NULL && strcmp(names[k], name) == 0)
				name = NULL;
		if (name == NULL) {
			(void)snprintf(rank, sizeof(rank), "rank%lu",
				(unsigned long)p->rank);
			name = rank;
		}
		lines_add(l, any ? "," : ",\"peers\":{");
		lines_string(l, name);
		lines_add(l, ":{");
		if (p->recv_wait_ns != UINT64_MAX)
			lines_span(l, "\"recv_wait\":", p->recv_wait_ns);
		if (p->send_wait_ns != UINT64_MAX)
			lines_span(l,
				p->recv_wait_ns != UINT64_MAX ? ",\"send_wait\":"
							      : "\"send_wait\":",
				p->send_wait_ns);
		lines_add(l, "}");
		any = true;
	}
	if (any)
		lines_add(l, "}");
}

/* Indices of `names`, sorted by name: n is a handful. */
static size_t
lines_sort(const char *(*name)(unsigned), unsigned n, unsigned *order)
{
	unsigned i, k, count = 0;

	for (i = 0; i < n; i++) {
		for (k = count; k > 0 && strcmp(name(order[k - 1]), name(i)) > 0; k--)
			order[k] = order[k - 1];
		order[k] = i;
		count++;
	}
	return count;
}

static void
lines_phases(struct ls_lines *l, const struct ls_record *r)
{
	unsigned order[LS_PHASE_COUNT];
	size_t i, n = lines_sort(ls_phase_name, LS_PHASE_COUNT, order);
	bool any = false;

	for (i = 0; i < n; i++) {
		if (!(r->phase_mask & 1u << order[i]))
			continue;
		lines_add(l, "%s\"%s\"", any ? "," : ",\"phases\":{",
			ls_phase_name(order[i]));
		lines_span(l, ":", r->phase_ns[order[i]]);
		any = true;
	}
	if (any)
		lines_add(l, "}");
}

static void
lines_work(struct ls_lines *l, const struct ls_record *r)
{
	unsigned order[LS_WORK_COUNT];
	size_t i, n = lines_sort(ls_work_name, LS_WORK_COUNT, order);
	bool any = false;

	for (i = 0; i < n; i++) {
		if (!(r->work_mask & 1u << order[i]))
			continue;
		lines_add(l, "%s\"%s\":", any ? "," : ",\"work\":{",
			ls_work_name(order[i]));
		lines_number(l, r->work[order[i]]);
		any = true;
	}
	if (any)
		lines_add(l, "}");
}

void
ls_lines_step(struct ls_lines *l, const struct ls_worker_info *who,
	const struct ls_record *r, ls_lines_host *host, void *arg)
{
	size_t start = lines_begin(l);

	lines_add(l, "{\"attempt\":%d", (int)who->attempt);
	lines_barriers(l, r);
	if (who->chips > 0)
		lines_add(l, ",\"chips\":%d", (int)who->chips);
	lines_span(l, ",\"duration\":", r->duration_ns);
	lines_member(l, "host", who->host);
	lines_member(l, "job", who->job);
	lines_peers(l, who, r, host, arg);
	lines_phases(l, r);
	if (who->rack[0] != '\0')
		lines_member(l, "rack", who->rack);
	lines_add(l, ",\"rank\":%d", (int)who->rank);
	if (who->role[0] != '\0')
		lines_member(l, "role", who->role);
	if (who->shard[0] != '\0')
		lines_member(l, "shard", who->shard);
	if (who->simulated)
		lines_add(l, ",\"simulated\":true");
	if (who->slice[0] != '\0')
		lines_member(l, "slice", who->slice);
	lines_add(l, ",\"step\":%llu", (unsigned long long)r->step);
	if (who->step_source != LS_STEP_MARKER) {
		lines_add(l, ",\"step_confidence\":");
		lines_number(l, who->step_confidence);
		lines_member(l, "step_source", ls_step_source_name(who->step_source));
	}
	lines_time(l, ",\"t_begin\":", r->t_begin_ns / 1000);
	lines_work(l, r);
	if (who->world > 0)
		lines_add(l, ",\"world\":%d", (int)who->world);
	lines_end_line(l, start);
}

/* --- the other lines ------------------------------------------------------ */

void
ls_lines_counters(struct ls_lines *l, const char *job, const struct ls_worker_info *who,
	const struct ls_store_counters *c, int64_t t_us)
{
	size_t i, k, n = 0, start = lines_begin(l);
	size_t order[LS_HOT_MAX];

	for (i = 0; i < c->count && i < LS_HOT_MAX; i++) {
		const char *name = ls_metric_info(c->metric[i])->name;

		for (k = n; k > 0; k--) {
			if (strcmp(ls_metric_info(c->metric[order[k - 1]])->name,
				    name) <= 0)
				break;
			order[k] = order[k - 1];
		}
		order[k] = i;
		n++;
	}
	lines_add(l, "{");
	if (who != NULL)
		lines_add(l, "\"attempt\":%d,", (int)who->attempt);
	lines_add(l, "\"host\":");
	lines_string(l, c->host);
	lines_member(l, "job", job);
	if (who != NULL)
		lines_add(l, ",\"rank\":%d", (int)who->rank);
	lines_time(l, ",\"received\":", t_us);
	lines_time(l, ",\"t\":", c->read_us);
	lines_add(l, ",\"type\":\"counters\",\"values\":{");
	for (i = 0; i < n; i++) {
		lines_add(l, "%s\"%s\":", i > 0 ? "," : "",
			ls_metric_info(c->metric[order[i]])->name);
		lines_number(l, c->value[order[i]]);
	}
	lines_add(l, "}");
	lines_end_line(l, start);
}

static void
lines_ranks(struct ls_lines *l, const char *key, const int32_t *ranks, size_t count)
{
	size_t i;

	lines_add(l, ",\"%s\":[", key);
	for (i = 0; i < count; i++)
		lines_add(l, "%s%d", i > 0 ? "," : "", (int)ranks[i]);
	lines_add(l, "]");
}

void
ls_lines_close(struct ls_lines *l, const struct ls_store_close *c, int64_t t_us)
{
	size_t start = lines_begin(l);

	lines_add(l, "{\"attempt\":%d,\"expected\":%lu", (int)c->attempt,
		(unsigned long)c->expected);
	lines_member(l, "job", c->job);
	lines_ranks(l, "missing", c->missing, c->missing_count);
	lines_add(l, ",\"step\":%llu", (unsigned long long)c->step);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"close\",\"used\":%lu", (unsigned long)c->used);
	lines_end_line(l, start);
}

void
ls_lines_hang(struct ls_lines *l, const struct ls_store_hang *h, int64_t t_us)
{
	size_t start = lines_begin(l);

	lines_add(l, "{\"attempt\":%d", (int)h->attempt);
	lines_member(l, "job", h->job);
	lines_ranks(l, "ranks", h->ranks, h->rank_count);
	lines_time(l, ",\"since\":", h->since_us);
	lines_add(l, ",\"step\":%llu", (unsigned long long)h->step);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"hang\",\"waiting\":%lu", (unsigned long)h->waiting);
	lines_member(l, "why", ls_hang_why_name(h->why));
	lines_end_line(l, start);
}

void
ls_lines_gap(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	uint64_t count, unsigned reason)
{
	size_t start = lines_begin(l);

	lines_add(l, "{\"attempt\":%d,\"count\":%llu", (int)who->attempt,
		(unsigned long long)count);
	lines_member(l, "host", who->host);
	lines_member(l, "job", who->job);
	lines_add(l, ",\"rank\":%d", (int)who->rank);
	lines_member(l, "reason", lines_gap_reasons[reason]);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"gap\"");
	lines_end_line(l, start);
}

void
ls_lines_end(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	unsigned how)
{
	size_t start = lines_begin(l);

	lines_add(l, "{\"attempt\":%d", (int)who->attempt);
	lines_member(l, "host", who->host);
	lines_member(l, "how", lines_end_hows[how]);
	lines_member(l, "job", who->job);
	lines_add(l, ",\"rank\":%d", (int)who->rank);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"end\"");
	lines_end_line(l, start);
}

void
ls_lines_clock(struct ls_lines *l, const struct ls_worker_info *who, int64_t t_us,
	int64_t uncertainty_ns)
{
	size_t start = lines_begin(l);

	lines_add(l, "{\"attempt\":%d", (int)who->attempt);
	lines_member(l, "host", who->host);
	lines_member(l, "job", who->job);
	lines_add(l, ",\"rank\":%d", (int)who->rank);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"clock\"");
	lines_span(l,
		",\"uncertainty\":", uncertainty_ns > 0 ? (uint64_t)uncertainty_ns : 0);
	lines_end_line(l, start);
}

size_t
ls_lines_series(struct ls_lines *l, const char *job, const char *host, int64_t t_us,
	const char *const *series, const double *value, size_t count)
{
	size_t start = lines_begin(l), i, before;
	const char *between = "";

	lines_add(l, "{\"host\":");
	lines_string(l, host);
	lines_member(l, "job", job);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"counters\",\"values\":{");
	for (i = 0; i < count; i++) {
		before = l->len;
		/* The longest text, each byte of it escaped, and a number. */
		if (before - start >
			LS_REPLAY_LINE_MAX_BYTES - 6 * LS_SERIES_TEXT_MAX_BYTES - 64)
			break;
		if (!isfinite(value[i]))
			continue;
		lines_add(l, "%s", between);
		lines_string(l, series[i]);
		lines_add(l, ":");
		lines_number(l, value[i]);
		between = ",";
	}
	lines_add(l, "}");
	lines_end_line(l, start);
	return i > 0 ? i : 1;
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
	size_t start = lines_begin(l);

	lines_add(l, "{");
	if (lost->from_us != 0)
		lines_time(l, "\"from\":", lost->from_us);
	lines_add(l, "%s\"group\":", lost->from_us != 0 ? "," : "");
	lines_string(l, lost->group);
	lines_member(l, "host", lost->host);
	lines_member(l, "job", job);
	lines_member(l, "reason",
		reasons[lost->reason < LS_LOST_REASON_COUNT ? lost->reason
							    : LS_LOST_UNKNOWN]);
	lines_add(l, ",\"samples\":%llu", (unsigned long long)lost->samples);
	lines_time(l, ",\"t\":", lost->t_us);
	if (lost->to_us != 0)
		lines_time(l, ",\"to\":", lost->to_us);
	lines_add(l, ",\"type\":\"lost\"");
	lines_end_line(l, start);
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
	size_t start = lines_begin(l);

	lines_add(l, "{\"cause\":");
	lines_string(l, z->cause);
	lines_member(l, "event", events[z->event]);
	lines_member(l, "host", z->host);
	lines_member(l, "job", job);
	lines_time(l, ",\"t\":", t_us);
	lines_add(l, ",\"type\":\"zoom\"");
	lines_time(l, ",\"until\":", z->until_us);
	lines_end_line(l, start);
}

void
ls_lines_job(struct ls_lines *l, const char *job, size_t workers, int64_t from_us,
	int64_t to_us)
{
	size_t start = lines_begin(l);

	lines_time(l, "{\"from\":", from_us);
	lines_member(l, "job", job);
	lines_time(l, ",\"to\":", to_us);
	lines_add(l, ",\"type\":\"job\",\"workers\":%zu", workers);
	lines_end_line(l, start);
}
