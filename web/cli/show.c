/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/show.h"
#include "proto/base/err.h"
#include "web/cli/cli.h"
#include "web/cli/term.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- lines ---------------------------------------------------------------- */

static double
show_cost(const json_t *finding)
{
	double lost = 0;

	return ls_pick_number(finding, "impact.chips_lost", &lost) ? lost : -1;
}

static int
show_by_cost(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	int sx = ls_cli_severity(ls_pick_text(x, "severity"));
	int sy = ls_cli_severity(ls_pick_text(y, "severity"));
	double cx = show_cost(x), cy = show_cost(y);

	if (sx != sy)
		return sx > sy ? -1 : 1;
	return (cx < cy) - (cx > cy);
}

static const char *
show_since(struct ls_term *t, const json_t *finding)
{
	bool over = ls_pick(finding, "cleared_at") != NULL;
	double s = 0;

	if (!ls_term_between(finding, "onset.at", over ? "cleared_at" : "updated_at",
		    &s))
		return "age unknown";
	return ls_term_span(t, s);
}

void
ls_show_finding(struct ls_term *t, const json_t *finding)
{
	(void)printf("  %s  %5s chips lost  %-8s %s", ls_term_severity(t, finding),
		ls_term_chips(t, finding, "impact.chips_lost", "?"),
		ls_term_text(t, finding, "id", "?"),
		ls_term_text(t, finding, "title", "(no title)"));
	(void)printf("  %s  %s", show_since(t, finding),
		ls_term_words(t, finding, "status", "status unknown"));
	if (ls_pick_text(json_array_get(ls_pick(finding, "actions"), 0), "title"))
		(void)printf("  do: %s",
			ls_term_text(t, json_array_get(ls_pick(finding, "actions"), 0),
				"title", ""));
	(void)printf("\n");
}

void
ls_show_findings(struct ls_term *t, const json_t *items, size_t most, int *worst)
{
	size_t count = json_array_size(items);
	const json_t **sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted)
		return;
	for (size_t i = 0; i < count; i++) {
		int severity;

		sorted[i] = json_array_get(items, i);
		severity = ls_cli_severity(ls_pick_text(sorted[i], "severity"));
		if (severity > *worst)
			*worst = severity;
	}
	qsort(sorted, count, sizeof(*sorted), show_by_cost);
	for (size_t i = 0; i < count && i < most; i++)
		ls_show_finding(t, sorted[i]);
	if (count > most)
		(void)printf("  and %zu more\n", count - most);
	free(sorted);
}

void
ls_show_none(struct ls_term *t, const json_t *job)
{
	if (json_is_true(ls_pick(job, "judged.all")))
		(void)printf("  no open finding; %s steps of %s workers judged%s%s\n",
			ls_term_whole(t, job, "judged.steps", "unknown"),
			ls_term_whole(t, job, "judged.workers", "unknown"),
			ls_pick_text(job, "judged.why") != NULL ? "; " : "",
			ls_term_text(t, job, "judged.why", ""));
	else
		(void)printf("  not judged: %s\n",
			ls_term_text(t, job, "judged.why", "unknown"));
}

void
ls_show_suspects(struct ls_term *t, const json_t *job)
{
	const json_t *suspect;
	double ratio = 0;
	size_t i;

	json_array_foreach(json_object_get(job, "suspects"), i, suspect)
	{
		if (!ls_pick_number(suspect, "slowest_ratio", &ratio))
			continue;
		(void)printf(
			"  suspected: %s rank %s, slowest in %.0f %% of the last steps, "
			"blame so far %s a step\n",
			ls_term_text(t, suspect, "host", "?"),
			ls_term_whole(t, suspect, "rank", "?"), ratio * 100,
			ls_term_seconds(t, suspect, "blame_s", "?"));
	}
}

/* --- one finding in full -------------------------------------------------- */

/* A finding about the collector has no steps and no job. */
static bool
show_is_self(const json_t *f)
{
	const char *scope = ls_pick_text(f, "subject.scope");

	return scope && strcmp(scope, "self") == 0;
}

#define SHOW_HOSTS 8 /* of a job are named in a line */

/* The slow ones of a job. */
static void
show_hosts(struct ls_term *t, const json_t *f)
{
	char path[32] = "subject.hosts.0";

	for (unsigned k = 0; k < SHOW_HOSTS && ls_pick_text(f, path) != NULL;) {
		(void)printf("%s%s", k == 0 ? ", slow on " : ", ",
			ls_term_text(t, f, path, ""));
		(void)snprintf(path, sizeof(path), "subject.hosts.%u", ++k);
	}
	if (ls_pick_text(f, path) != NULL)
		(void)printf(", ...");
}

static void
show_title(struct ls_term *t, const json_t *f)
{
	const char *scope = ls_pick_text(f, "subject.scope");
	const char *slice = ls_pick_text(f, "slice.id");
	bool link = scope && strcmp(scope, "link") == 0 &&
		ls_pick_text(f, "subject.hosts.0") != NULL;

	(void)printf("%s  %s  %s",
		ls_term_paint(t, "bold", ls_term_text(t, f, "id", "?")),
		ls_term_severity(t, f), ls_term_words(t, f, "kind", "kind unknown"));
	(void)printf("   %s", ls_term_text(t, f, "subject.scope", "subject unknown"));
	if (!link && ls_pick_text(f, "subject.host"))
		(void)printf(" %s", ls_term_text(t, f, "subject.host", ""));
	if (ls_pick_text(f, "subject.name"))
		(void)printf(" %s %s of %s hosts",
			ls_term_words(t, f, "subject.by", ""),
			ls_term_text(t, f, "subject.name", ""),
			ls_term_whole(t, f, "subject.host_count", "?"));
	else if (!link)
		show_hosts(t, f);
	if (link)
		(void)printf(" %s to %s", ls_term_text(t, f, "subject.hosts.0", ""),
			ls_term_text(t, f, "subject.hosts.1", "?"));
	if (!link && ls_pick(f, "subject.rank") && scope && strcmp(scope, "job") != 0)
		(void)printf("  rank %s", ls_term_whole(t, f, "subject.rank", "?"));
	if (slice && *slice != '\0')
		(void)printf("  (slice %s)", ls_term_text(t, f, "slice.id", ""));
	if (!show_is_self(f))
		(void)printf("   job %s", ls_term_text(t, f, "job.id", "unknown"));
	(void)printf("   status %s\n", ls_term_words(t, f, "status", "unknown"));
}

static void
show_verdict(struct ls_term *t, const json_t *f)
{
	const char *method = ls_pick_text(f, "impact.method");
	double s = 0;

	if (show_is_self(f) || (method && strcmp(method, "none") == 0)) {
		(void)printf(" Verdict    %s\n",
			ls_term_text(t, f, "title", "(no title)"));
		return;
	}
	(void)printf(" Verdict    %s (step %s, would be %s",
		ls_term_text(t, f, "title", "(no title)"),
		ls_term_seconds(t, f, "impact.step_time_s", "not measured"),
		ls_term_seconds(t, f, "impact.step_time_without_s", "not known"));
	if (ls_pick_number(f, "impact.slowdown_ratio", &s))
		(void)printf(", S %.2f", s);
	(void)printf(")\n");
}

/* Why it is over, if not because all is as it was before. */
static const char *
show_reason(const json_t *f)
{
	static const char *const reasons[][2] = {
		{ "job_ended", ": its job ended, and it was not seen to get better" },
		{ "attempt_ended",
			": its attempt ended, and it was not seen to get better" },
		{ "moved", ": the worker runs on another host" },
		{ "not_measured", ": it is not measured any more" }
	};
	const char *reason = ls_pick_text(f, "cleared_reason");

	for (size_t i = 0; reason && i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i][0]) == 0)
			return reasons[i][1];
	return "";
}

static void
show_onset(struct ls_term *t, const json_t *f)
{
	const json_t *episode;
	size_t i;

	(void)printf(" Since      %s", ls_term_time(t, f, "onset.at", true));
	if (!show_is_self(f))
		(void)printf(", step %s", ls_term_whole(t, f, "onset.step", "unknown"));
	(void)printf(" (%s)", show_since(t, f));
	if (ls_pick(f, "persistence.slowest_ratio"))
		(void)printf("; slowest in %s of the newest steps",
			ls_term_percent(t, f, "persistence.slowest_ratio", "?"));
	if (ls_pick(f, "cleared_at"))
		(void)printf("; over at %s%s", ls_term_time(t, f, "cleared_at", false),
			show_reason(f));
	if (ls_pick(f, "part_of"))
		(void)printf(", part of %s", ls_term_text(t, f, "part_of", "?"));
	(void)printf("\n");
	json_array_foreach(ls_pick(f, "episodes"), i, episode)
	{
		(void)printf("            from %s, step %s",
			ls_term_time(t, episode, "from_at", true),
			ls_term_whole(t, episode, "from_step", "unknown"));
		if (ls_pick(episode, "to_at"))
			(void)printf(" to %s, step %s",
				ls_term_time(t, episode, "to_at", true),
				ls_term_whole(t, episode, "to_step", "unknown"));
		if (ls_pick(episode, "chip_hours_lost"))
			(void)printf(": %s chip-hours",
				ls_term_value(t, episode, "chip_hours_lost", "1", 0,
					"?"));
		(void)printf("\n");
	}
}

static void
show_price(struct ls_term *t, const json_t *f)
{
	if (!ls_pick(f, "impact.chips_lost")) {
		(void)printf(" Cost       not measured\n");
		return;
	}
	(void)printf(" Cost       %s of %s chips lost",
		ls_term_chips(t, f, "impact.chips_lost", "?"),
		ls_term_whole(t, f, "job.chips", "an unknown number of"));
	if (ls_pick(f, "impact.chip_hours_lost_total"))
		(void)printf("; %s chip-hours so far",
			ls_term_value(t, f, "impact.chip_hours_lost_total", "1", 0,
				"?"));
	(void)printf("\n");
}

static void
show_causes(struct ls_term *t, const json_t *f)
{
	const json_t *all = ls_pick(f, "hypotheses");

	(void)printf(" Cause      ");
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *h = json_array_get(all, i);
		double confidence = 0;

		if (ls_pick_number(h, "confidence", &confidence))
			(void)printf("%s%.2f ", i > 0 ? "   " : "", confidence);
		else
			(void)printf("%s", i > 0 ? "   " : "");
		(void)printf("%s", ls_term_words(t, h, "cause", "unknown"));
	}
	(void)printf("%s\n", json_array_size(all) == 0 ? "not visible" : "");
}

/*
 * "phase.input_wait_s" -> "input wait": the unit is beside the number, the scope in the
 * subject.
 */
static const char *
show_metric(struct ls_term *t, const json_t *e, char *dst, size_t size)
{
	static const char *const scopes[] = { "phase.", "host.", "job.", "peer." };
	static const char *const ends[] = { "_seconds_total", "_bytes_total", "_total",
		"_seconds", "_bytes", "_s" };
	const char *name = ls_pick_text(e, "metric");
	size_t len;

	if (!name)
		return "unknown";
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		if (strncmp(name, scopes[i], strlen(scopes[i])) == 0) {
			name += strlen(scopes[i]);
			break;
		}
	}
	(void)snprintf(dst, size, "%s", ls_term_safe(t, name, ""));
	len = strlen(dst);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);

		if (len > end && strcmp(dst + len - end, ends[i]) == 0) {
			dst[len - end] = '\0';
			break;
		}
	}
	for (char *c = dst; *c != '\0'; c++) {
		if (*c == '_' || *c == '.')
			*c = ' ';
	}
	return dst;
}

/* The subject beside its peers, in one unit. */
static void
show_measured(struct ls_term *t, const json_t *e)
{
	const char *unit = ls_pick_text(e, "unit");
	double subject = 0, high = 0, beside;

	(void)ls_pick_number(e, "subject", &subject);
	(void)ls_pick_number(e, "peers.p90", &high);
	beside = fabs(subject) > fabs(high) ? subject : high;
	/* beside nobody's it is what was usual */
	(void)printf("%-10s",
		ls_term_value(t, e, "subject", unit, beside, "not known"));
	if (ls_pick(e, "peers.p50"))
		(void)printf(" %s %s",
			json_integer_value(ls_pick(e, "peers.n")) > 0 ? "peers"
								      : "usually",
			ls_term_value(t, e, "peers.p50", unit, beside, "not known"));
	if (ls_pick(e, "peers.p10") && ls_pick(e, "peers.p90"))
		(void)printf(" [%s .. %s]",
			ls_term_value(t, e, "peers.p10", unit, beside, "?"),
			ls_term_value(t, e, "peers.p90", unit, beside, "?"));
}

static void
show_evidence(struct ls_term *t, const json_t *f)
{
	const json_t *all = ls_pick(f, "evidence");
	const char *reference = ls_pick_text(f, "data_quality.reference");
	char name[64];

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *e = json_array_get(all, i);
		const char *role = ls_pick_text(e, "role");

		(void)printf("%s", i == 0 ? " Evidence   " : "            ");
		if (ls_pick_text(e, "text")) {
			(void)printf("%s\n", ls_term_text(t, e, "text", ""));
			continue;
		}
		(void)printf("%-22s ", show_metric(t, e, name, sizeof(name)));
		if (role && strcmp(role, "not_measured") == 0) {
			(void)printf("not measured\n");
			continue;
		}
		show_measured(t, e);
		(void)printf("%s\n",
			role && strcmp(role, "excludes") == 0 ? "  -> not the cause"
							      : "");
	}
	if (ls_pick(f, "data_quality.workers_reporting"))
		(void)printf("            %s of %s workers reporting%s\n",
			ls_term_whole(t, f, "data_quality.workers_reporting", "?"),
			ls_term_whole(t, f, "data_quality.workers_expected", "?"),
			!reference ? ""
				: strcmp(reference, "before_attempt") == 0
				? "; measured before the job restarted, and not since"
				: "; measured before a restart");
}

/* Costs of an action that are 0 are good news, and said so. */
static void
show_worth(struct ls_term *t, const json_t *a)
{
	double cost = 0, even = 0;

	if (ls_pick_number(a, "cost_chip_hours", &cost)) {
		if (cost <= 0)
			(void)printf("   cost ~0");
		else
			(void)printf("   cost %s chip-h",
				ls_term_chips(t, a, "cost_chip_hours", "?"));
	}
	if (ls_pick(a, "predicted.saving_chips"))
		(void)printf("   gain %s chips",
			ls_term_chips(t, a, "predicted.saving_chips", "?"));
	if (ls_pick_number(a, "break_even_s", &even)) {
		if (even <= 0)
			(void)printf("   worth it at once");
		else
			(void)printf("   worth it after %s", ls_term_span(t, even));
	}
}

static void
show_actions(struct ls_term *t, const json_t *f)
{
	const json_t *all = ls_pick(f, "actions");

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *a = json_array_get(all, i);
		const json_t *commands = ls_pick(a, "commands");

		(void)printf("%s%zu. %s", i == 0 ? " Do         " : "            ",
			i + 1, ls_term_text(t, a, "title", "(no title)"));
		show_worth(t, a);
		(void)printf("\n");
		for (size_t c = 0; c < json_array_size(commands); c++)
			(void)printf("               %s\n",
				ls_term_text(t, json_array_get(commands, c), "shell",
					""));
		if (ls_pick_text(a, "caveat"))
			(void)printf("               note: %s\n",
				ls_term_text(t, a, "caveat", ""));
	}
}

void
ls_show_explanation(struct ls_term *t, const json_t *f, const char *server)
{
	const char *web = ls_pick_text(f, "links.web");

	show_title(t, f);
	show_verdict(t, f);
	show_onset(t, f);
	show_price(t, f);
	show_causes(t, f);
	show_evidence(t, f);
	show_actions(t, f);
	if (ls_pick_text(f, "job.id"))
		(void)printf(" Then       lockstep status %s\n",
			ls_term_quote(t, ls_pick_text(f, "job.id")));
	if (web)
		(void)printf(" Link       %s%s\n", ls_term_safe(t, server, ""),
			ls_term_text(t, f, "links.web", ""));
}
