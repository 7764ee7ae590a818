/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario expects. */
#include "config.h"

#include "collector/engine/finding/finding.h"
#include "collector/answer/finding_json.h"
#include "collector/answer/view.h"
#include "tests/support/scenario/scenario_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_."

static const struct {
	const char *shortly, *path;
} paths[] = { { "host", "subject.host" }, { "scope", "subject.scope" },
	{ "slice", "subject.slice" }, { "rank", "subject.rank" },
	{ "cause", "hypotheses.0.cause" }, { "since", "onset.step" },
	{ "blame", "impact.blame_s" }, { "cost", "impact.chip_hours_lost_total" },
	{ "duty", "persistence.duty" } };

/* What is at the path that a word begins with; evidence.METRIC: what its row says of the
 * subject. NULL: nothing. */
static const json_t *
at_path(const json_t *v, const char *word)
{
	char path[64], *at = path, *key;
	const json_t *row;
	size_t i;

	(void)snprintf(path, sizeof(path), "%.*s", (int)strspn(word, PATH_CHARS), word);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (strcmp(path, paths[i].shortly) == 0)
			(void)snprintf(path, sizeof(path), "%s", paths[i].path);
	if (strncmp(path, "evidence.", 9) == 0) {
		json_array_foreach(json_object_get(v, "evidence"), i, row) if (
			strcmp(json_string_value(json_object_get(row, "metric")),
				path + 9) == 0) return json_object_get(row, "subject");
		return NULL;
	}
	while (v != NULL && (key = strsep(&at, ".")) != NULL)
		v = json_is_array(v) ? json_array_get(v, strtoul(key, NULL, 10))
				     : json_object_get(v, key);
	return v;
}

/* Is x "A", "A..B", "A..", "..B" or "A+-B"? */
static bool
in_range(struct scenario_run *r, double x, const char *text, double twin)
{
	const char *dots = strstr(text, ".."),
		   *at = dots != NULL ? dots : strstr(text, "+-");
	char first[64];
	double a, b;

	if (at == NULL)
		return x == scenario_number(r, text, twin);
	(void)snprintf(first, sizeof(first), "%.*s", (int)(at - text), text);
	a = first[0] != '\0' ? scenario_number(r, first, twin) : -INFINITY;
	b = at[2] != '\0' ? scenario_number(r, at + 2, twin) : INFINITY;
	return dots != NULL ? x >= a && x <= b : fabs(x - a) <= b;
}

/* PATH=WANT, PATH!=WANT or PATH~PART; "twin" is what the same finding of the twin has. */
static bool
holds(struct scenario_run *r, const json_t *object, const json_t *twin,
	const char *word)
{
	const char *op = word + strspn(word, PATH_CHARS), *want = op + 1 + (*op == '!');
	const json_t *v = at_path(object, word);
	bool is;

	if (op == word || (*op != '=' && *op != '~' && strncmp(op, "!=", 2) != 0))
		scenario_wrong(r, "\"%s\" is no condition", word);
	if (strcmp(want, "null") == 0)
		is = v == NULL || json_is_null(v);
	else if (strcmp(want, "twin") == 0)
		is = v == at_path(twin, word) || json_equal(v, at_path(twin, word));
	else if (want[0] == '#')
		is = in_range(r, (double)json_array_size(v), want + 1, NAN);
	else if (json_is_boolean(v))
		is = strcmp(want, json_is_true(v) ? "true" : "false") == 0;
	else if (json_is_number(v))
		is = in_range(r, json_number_value(v), want,
			json_number_value(at_path(twin, word)));
	else if (json_is_string(v) && *op == '~')
		is = strstr(json_string_value(v), want) != NULL;
	else
		is = json_is_string(v) && strcmp(json_string_value(v), want) == 0;
	return is == (*op != '!');
}

static void
look(struct scenario_run *r)
{
	json_decref(r->findings);
	json_decref(r->twins);
	r->findings = ls_finding_all(r->job->engine);
	r->twins = r->twin != NULL ? ls_finding_all(r->twin->engine) : NULL;
}

/* The twin's finding with the id of this one. */
static const json_t *
same_of(const struct scenario_run *r, const json_t *finding)
{
	const json_t *f;
	size_t i;

	json_array_foreach(r->twins, i,
		f) if (json_equal(json_object_get(f, "id"),
			       json_object_get(finding, "id"))) return f;
	return NULL;
}

static bool
all_hold(struct scenario_run *r, const json_t *object, size_t first)
{
	while (first < r->count &&
		holds(r, object, same_of(r, object), r->words[first]))
		first++;
	return first >= r->count;
}

/* The first finding of the kind that the word `at` names, and as the words after it say. */
static const json_t *
find(struct scenario_run *r, size_t at)
{
	const json_t *f;
	size_t i;

	json_array_foreach(r->findings, i, f) if (
		(strcmp(r->words[at], "finding") == 0 ||
			strcmp(r->words[at],
				json_string_value(json_object_get(f, "kind"))) == 0) &&
		all_hold(r, f, at + 1)) return f;
	return NULL;
}

static bool
is_kind(const char *word)
{
	unsigned k = 0;

	while (k < LS_KIND_COUNT &&
		strcmp(word, ls_finding_name(LS_NAMES_KIND, k)) != 0)
		k++;
	return k < LS_KIND_COUNT || strcmp(word, "finding") == 0;
}

/* Ends the scenario with a line for each finding, or for the job, with what is asked for. */
static void __attribute__((noreturn))
describe(struct scenario_run *r, const json_t *all)
{
	char text[1000] = "";
	const json_t *f;
	size_t i, at = 0;

	json_array_foreach(all, i, f) for (size_t k = 1;
					   k < r->count && at < sizeof(text); k++)
	{
		const char *word = k > 1 ? r->words[k] : "kind";
		char *is = json_dumps(at_path(f, word),
			JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
		char *was = json_dumps(at_path(same_of(r, f), word),
			JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"%s%s: %.80s%s%.80s", k > 1 ? ", " : "\n  ", word,
			is != NULL ? is : "absent", was != NULL ? ", of the twin " : "",
			was != NULL ? was : "");
		free(is);
		free(was);
	}
	scenario_wrong(r, "it is not so: there is %s", at > 0 ? text : "no finding");
}

/* The view of the job. */
static void
expect_job(struct scenario_run *r)
{
	json_t *view;

	json_decref(r->view);
	r->view = json_array();
	LS_ASSERT(ls_view_job(r->job->engine, r->job->name, r->job->now_us, &view) ==
			0 &&
		json_array_append_new(r->view, view) == 0);
	if (!all_hold(r, view, 2))
		describe(r, r->view);
}

/* What was told once more after a restart. */
static size_t
retold(const struct scenario_run *r)
{
	size_t n = 0;

	while (n < r->job->event_count && r->job->events[n].t_us <= r->told_us)
		n++;
	return n;
}

/* The count that a word begins with; NaN: it is none. */
static double
count_of(const struct scenario_run *r, const char *word)
{
	const struct fake_job *job = r->job;
	const struct ls_engine_stats s = fake_job_stats(job);
	const struct {
		const char *name;
		size_t n;
	} counts[] = { { "opened", fake_job_told(job, "opened") },
		{ "updated", fake_job_told(job, "updated") },
		{ "cleared", fake_job_told(job, "cleared") },
		{ "reopened", fake_job_told(job, "reopened") },
		{ "told", job->event_count }, { "retold", retold(r) },
		{ "findings", s.findings_total }, { "open", s.findings_open },
		{ "closed", job->closed }, { "windows", job->windows },
		{ "short", s.steps_short }, { "used", job->used_last },
		{ "expected", job->expected_last }, { "missing", job->missing_last },
		{ "missing_rank", (size_t)job->missing_first },
		{ "records", s.records }, { "late", s.late },
		{ "doubles", s.duplicates }, { "workers", s.workers },
		{ "beside", s.duplicate_ranks }, { "foreign", s.lies[LS_LIE_ATTEMPT] },
		{ "hangs", job->hangs }, { "hung", job->hang.count },
		{ "waiting", job->hang.waiting } };
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (strncmp(word, counts[i].name, len) == 0 &&
			counts[i].name[len] == '\0')
			return (double)counts[i].n;
	return NAN;
}

static void
expect_count(struct scenario_run *r, const char *word)
{
	double x = count_of(r, word);

	if (isnan(x) || strchr(word, '=') == NULL)
		scenario_wrong(r, "\"%s\" is nothing that can be expected", word);
	if (!in_range(r, x, strchr(word, '=') + 1, NAN))
		scenario_wrong(r, "%s: it is %.0f", word, x);
}

void
scenario_expect(struct scenario_run *r)
{
	const char *what = r->words[1];
	bool no = strcmp(what, "no") == 0, only = strcmp(what, "only") == 0;

	look(r);
	if ((no || only) && r->count > 2)
		memmove(r->words + 1, r->words + 2, --r->count * sizeof(*r->words));
	if (is_kind(r->words[1])) {
		if (only)
			expect_count(r, "opened=1");
		if ((find(r, 1) != NULL) == no)
			describe(r, r->findings);
	} else if (strcmp(what, "job") == 0) {
		expect_job(r);
	} else if (strcmp(what, "nothing") == 0) {
		scenario_only(r, 2, "");
		expect_count(r, "told=0");
	} else {
		for (size_t i = 1; i < r->count; i++)
			expect_count(r, r->words[i]);
	}
}

/* A number that is in no finding: a count, the seconds of all stalls, or the batches of a
 * replica. NaN: the word is another. */
static double
other(const struct scenario_run *r, const char *word)
{
	size_t i = strncmp(word, "serves.", 7) == 0 ? strtoul(word + 7, NULL, 10)
						    : SIZE_MAX;

	if (i < r->job->count)
		return (double)r->job->workers[i].serves;
	return strcmp(word, "stalled") == 0 ? r->stalled_s : count_of(r, word);
}

/* What is at a path of the first such finding, or such a number, under a name. */
void
scenario_save(struct scenario_run *r)
{
	struct scenario_name *to = &r->names[r->name_count++];
	double x = other(r, r->words[2]);
	const json_t *v;

	look(r);
	if (r->name_count == SCENARIO_NAMES_MAX)
		scenario_wrong(r, "too many names");
	if (r->count == 3)
		r->words[r->count++] = "finding";
	v = at_path(find(r, 3), r->words[2]);
	(void)snprintf(to->name, sizeof(to->name), "%s", r->words[1]);
	if (json_is_string(v))
		(void)snprintf(to->value, sizeof(to->value), "%s",
			json_string_value(v));
	else if (v != NULL || !isnan(x))
		(void)snprintf(to->value, sizeof(to->value), "%.17g",
			v != NULL ? json_number_value(v) : x);
	else
		scenario_wrong(r, "no finding has \"%s\"", r->words[2]);
}
