/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/answer/finding_json.h"
#include "proto/base/conf.h"
#include "proto/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Value of an enum by its name; -LS_EPARSE. */
static int
finding_get_enum(const json_t *o, const char *key, enum ls_finding_list list)
{
	const char *text = json_string_value(json_object_get(o, key));

	for (unsigned i = 0; text != NULL && ls_finding_name(list, i) != NULL; i++)
		if (strcmp(text, ls_finding_name(list, i)) == 0)
			return (int)i;
	return -LS_EPARSE;
}

/* A number; `none` where there is none. */
static double
finding_get_number(const json_t *o, const char *key, double none)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : none;
}

static uint64_t
finding_get_whole(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

static int64_t
finding_get_time(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	int64_t t_us;

	return text == NULL || ls_conf_parse_time(text, 0, &t_us) != 0 ? 0 : t_us;
}

static int
finding_get_text(const json_t *o, const char *key, char *dst, size_t size)
{
	const char *text = json_string_value(json_object_get(o, key));

	/* without one it stays empty */
	return text == NULL || ls_text_copy(dst, size, text) == 0 ? 0 : -LS_EPARSE;
}

/* Is the text there, and this one? */
static bool
finding_is_text(const json_t *o, const char *key, const char *want)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL && strcmp(text, want) == 0;
}

/* The ends of a link. */
static int
finding_parse_link(const json_t *subject, struct ls_finding *f)
{
	const char *a, *b;

	if (json_unpack((json_t *)(uintptr_t)subject, "{s:[s, s], s:[i, i]}", "hosts",
		    &a, &b, "ranks", &f->who.rank, &f->peer_rank) != 0 ||
		ls_text_copy(f->who.host, sizeof(f->who.host), a) != 0 ||
		ls_text_copy(f->peer_host, sizeof(f->peer_host), b) != 0)
		return -LS_EPARSE;
	return 0;
}

/* What its workers share, and their hosts. */
static int
finding_parse_group(const json_t *subject, struct ls_finding *f)
{
	int way = finding_get_enum(subject, "by", LS_NAMES_WAY);
	const json_t *hosts = json_object_get(subject, "hosts");
	json_int_t count = json_integer_value(json_object_get(subject, "host_count"));
	const json_t *host;
	size_t i;

	if (way <= LS_WAY_NONE || !json_is_array(hosts) ||
		json_array_size(hosts) > LS_FINDING_HOSTS_MAX || count < 0 ||
		count > LS_WORKERS_MAX ||
		finding_get_text(subject, "name", f->group, sizeof(f->group)) != 0 ||
		f->group[0] == '\0')
		return -LS_EPARSE;
	f->way = (enum ls_group_way)way;
	f->member_hosts = (uint32_t)count;
	f->members = calloc(LS_FINDING_HOSTS_MAX, sizeof(*f->members));
	json_array_foreach(hosts, i, host)
	{
		if (f->members == NULL || !json_is_string(host) ||
			ls_text_copy(f->members[i], sizeof(f->members[i]),
				json_string_value(host)) != 0)
			return -LS_EPARSE;
		f->member_count++;
	}
	return 0;
}

static int
finding_parse_names(const json_t *json, struct ls_finding *f)
{
	const json_t *subject = json_object_get(json, "subject");
	int kind = finding_get_enum(json, "kind", LS_NAMES_KIND);
	int scope = finding_get_enum(subject, "scope", LS_NAMES_SCOPE);
	int status = finding_get_enum(json, "status", LS_NAMES_STATUS);
	int severity = finding_get_enum(json, "severity", LS_NAMES_SEVERITY);
	const json_t *impact = json_object_get(json, "impact");

	if (kind < 0 || scope < 0 || status < 0 || severity < 0)
		return -LS_EPARSE;
	f->kind = (enum ls_finding_kind)kind;
	f->scope = (enum ls_finding_scope)scope;
	f->status = (enum ls_finding_status)status;
	f->severity = (enum ls_severity)severity;
	f->comm = finding_is_text(impact, "method", "collective_excess_v1");
	f->replica = finding_is_text(impact, "method", "load_residual_v1");
	f->who.rank = (int32_t)json_integer_value(json_object_get(subject, "rank"));
	if (finding_get_text(json, "id", f->id, sizeof(f->id)) != 0 ||
		f->id[0] == '\0' ||
		finding_get_text(json_object_get(json, "job"), "id", f->who.job,
			sizeof(f->who.job)) != 0 ||
		f->who.job[0] == '\0' ||
		finding_get_text(subject, "host", f->who.host, sizeof(f->who.host)) !=
			0 ||
		finding_get_text(subject, "role", f->who.role, sizeof(f->who.role)) !=
			0 ||
		finding_get_text(json_object_get(json, "slice"), "id", f->who.slice,
			sizeof(f->who.slice)) != 0)
		return -LS_EPARSE;
	if (f->scope == LS_SCOPE_GROUP || f->scope == LS_SCOPE_SHARD)
		return finding_parse_group(subject, f);
	return f->scope == LS_SCOPE_LINK ? finding_parse_link(subject, f) : 0;
}

/* The present episode is the last of those listed, or all there is. */
static int
finding_parse_episodes(const json_t *json, struct ls_finding *f)
{
	const json_t *all = json_object_get(json, "episodes"), *one;
	size_t n = json_array_size(all), i;

	f->since_step = f->onset_step;
	f->since_us = f->onset_us;
	if (all == NULL)
		return 0;
	if (n == 0 || n > LS_FINDING_EPISODES_MAX)
		return -LS_EPARSE;
	f->episode = calloc(LS_FINDING_EPISODES_MAX, sizeof(*f->episode));
	if (f->episode == NULL)
		return -LS_EPARSE;
	json_array_foreach(all, i, one) f->episode[i] = (struct ls_finding_episode){
		.from_step = finding_get_whole(one, "from_step"),
		.to_step = finding_get_whole(one, "to_step"),
		.from_us = finding_get_time(one, "from_at"),
		.to_us = finding_get_time(one, "to_at"),
		.chip_hours = finding_get_number(one, "chip_hours_lost", NAN),
	};
	f->episodes = (uint32_t)n - 1;
	f->since_step = f->episode[n - 1].from_step;
	f->since_us = f->episode[n - 1].from_us;
	f->since_chip_hours = f->chip_hours -
		finding_get_number(json_array_get(all, n - 1), "chip_hours_lost",
			f->chip_hours);
	return 0;
}

/* Own work of its worker beyond the median of its peers, in seconds, as it was told; NaN: it was not. */
static double
finding_parse_own_s(const json_t *json)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(json, "evidence"), i, row)
	{
		if (finding_is_text(row, "metric", LS_EVIDENCE_OWN_WORK))
			return json_number_value(json_object_get(row, "subject")) -
				json_number_value(json_object_get(
					json_object_get(row, "peers"), "p50"));
	}
	return NAN;
}

int
ls_finding_parse(const json_t *json, struct ls_finding *ret_finding)
{
	const json_t *onset = json_object_get(json, "onset");
	const json_t *seen = json_object_get(json, "persistence");
	const json_t *impact = json_object_get(json, "impact");
	const json_t *from = json_object_get(json, "provenance");
	const json_t *quality = json_object_get(json, "data_quality");
	int reason = finding_get_enum(json, "cleared_reason", LS_NAMES_REASON);
	struct ls_finding f = { .slowest_ratio = NAN, .clock_err_s = NAN };

	if (json_integer_value(json_object_get(json, "schema_version")) != 1 ||
		finding_parse_names(json, &f) != 0 ||
		finding_get_text(json, "part_of", f.part_of, sizeof(f.part_of)) != 0 ||
		!json_is_integer(json_object_get(onset, "step")))
		goto bad;
	f.onset_step = finding_get_whole(onset, "step");
	f.onset_us = finding_get_time(onset, "at");
	f.born = finding_is_text(onset, "type", "from_the_start");
	f.gradual = finding_is_text(onset, "type", "drift");
	f.detector = f.kind == LS_KIND_PERIODIC			? LS_DETECT_PERIODIC
		: finding_is_text(json, "pattern", "rotating")	? LS_DETECT_ROTATING
		: finding_is_text(seen, "duty", "intermittent") ? LS_DETECT_STALLS
								: LS_DETECT_CHRONIC;
	f.uncertainty_steps = (uint32_t)finding_get_whole(onset, "uncertainty_steps");
	f.detected_us = finding_get_time(json, "first_detected_at");
	f.known_us = f.updated_us = finding_get_time(json, "updated_at");
	f.cleared_us = finding_get_time(json, "cleared_at");
	f.reason = reason < 0 ? LS_REASON_CALM : (enum ls_finding_reason)reason;
	if (finding_is_text(quality, "reference", LS_FINDING_WAITS))
		f.status = ls_finding_next(f.status, LS_EVENT_LEFT);
	f.who.step_confidence = finding_get_number(quality, "step_confidence", 0);
	for (unsigned i = 0; i < LS_STEP_SOURCE_COUNT; i++)
		if (finding_is_text(quality, "step_source", ls_step_source_name(i)))
			f.who.step_source = (enum ls_step_source)i;
	f.last_step = finding_get_whole(json, "last_step");
	f.accounted_step = f.last_step;
	f.reopened = (uint32_t)finding_get_whole(seen, "reopened");
	f.without_s = finding_get_number(impact, "step_time_without_s", NAN);
	f.blame_s = finding_get_number(impact, "blame_s", 0);
	f.slowdown = finding_get_number(impact, "slowdown_ratio", NAN);
	f.chip_hours = finding_get_number(impact, "chip_hours_lost_total", 0);
	f.share = finding_get_number(impact, "share_ratio", 0);
	if (!(f.share >= 0 && f.share <= 1))
		f.share = 0;
	f.occurrence = (uint32_t)finding_get_whole(from, "occurrence");
	if (f.occurrence == 0)
		f.occurrence = 1;
	f.told = true;
	f.told_status = f.status;
	f.told_own_s = finding_parse_own_s(json);
	f.json = json_deep_copy(json);
	if (f.json == NULL || finding_parse_episodes(json, &f) != 0)
		goto bad;
	*ret_finding = f;
	return 0;
bad:
	ls_finding_forget(&f);
	ls_finding_fini(&f);
	return -LS_EPARSE;
}
