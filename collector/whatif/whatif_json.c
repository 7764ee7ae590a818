/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_json.h"
#include "proto/base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define JSON_DIGITS 9 /* 1e-3 is promised; times in a trace have about 7 */

static json_t *
json_ratio(double v)
{
	return ls_json_number(v, JSON_DIGITS);
}

static void
json_set_number(json_t *o, const char *key, double v)
{
	/* checked at the end: ls_whatif_json */
	ls_ignore(json_object_set_new(o, key, json_ratio(v)));
}

/* {"0":v[0],"1":v[1],...} */
static json_t *
json_by_number(const double *v, size_t n)
{
	json_t *o = json_object();
	char key[24];
	int rc = o == NULL ? -1 : 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		(void)snprintf(key, sizeof(key), "%zu", i);
		rc = json_object_set_new(o, key, json_ratio(v[i]));
	}
	if (rc == 0)
		return o;
	json_decref(o);
	return NULL;
}

/* {"RANK":v,...} by worker */
static json_t *
json_by_rank(const struct ls_whatif_trace *t, const double *v)
{
	json_t *o = json_object();
	char key[24];
	int rc = o == NULL ? -1 : 0;

	for (size_t i = 0; rc == 0 && i < (size_t)t->stage_count * t->dp_count; i++) {
		(void)snprintf(key, sizeof(key), "%" PRId64, t->ranks[i]);
		rc = json_object_set_new(o, key, json_ratio(v[i]));
	}
	if (rc == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *
json_by_op(const double *v)
{
	json_t *o = json_object();
	int rc = o == NULL ? -1 : 0;

	for (unsigned i = 0; rc == 0 && i < LS_WHATIF_OPTYPES; i++) {
		if (!isnan(v[i]))
			rc = json_object_set_new(o,
				ls_whatif_part_name((enum ls_whatif_optype)i),
				json_ratio(v[i]));
	}
	if (rc == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *
json_top(const struct ls_whatif_trace *t, const struct ls_whatif *w,
	const struct ls_whatif_result *r)
{
	json_t *list = json_array();
	double replayed = ls_whatif_replayed_s(w);
	int rc = list == NULL ? -1 : 0;

	for (uint32_t i = 0; rc == 0 && i < r->top_count; i++) {
		uint32_t worker = r->top[i].worker;

		rc = json_array_append_new(list,
			json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "rank",
				(json_int_t)t->ranks[worker], "dp",
				(json_int_t)(worker % t->dp_count), "stage",
				(json_int_t)(worker / t->dp_count), "S_w",
				json_ratio(r->s_worker[worker]), "S_alone",
				json_ratio(r->s_alone[worker]), "without_s",
				json_ratio(r->top[i].without_s), "gain_ratio",
				json_ratio(1 - r->top[i].without_s / replayed)));
	}
	if (rc == 0)
		return list;
	json_decref(list);
	return NULL;
}

/* How far a share goes beyond all that was lost. */
static double
json_beyond(double share)
{
	return isnan(share) ? NAN : fmax(0, share - 1);
}

/* What one reference says. */
static json_t *
json_result(const struct ls_whatif_trace *t, const struct ls_whatif *w,
	const struct ls_whatif_result *r)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "S_op",
		json_by_op(r->s_op), "S_dp", json_by_number(r->s_dp, t->dp_count),
		"S_stage", json_by_number(r->s_stage, t->stage_count), "S_w",
		json_by_rank(t, r->s_worker), "S_alone", json_by_rank(t, r->s_alone),
		"top", json_top(t, w, r));
	json_t *more = json_pack("{s:{s:o, s:o}, s:{s:I, s:I}, s:{s:I, s:I}, s:I}",
		"exceeds_ideal", "M_W", json_ratio(json_beyond(r->m_w)), "M_S",
		json_ratio(json_beyond(r->m_s)), "first_dp", "dp",
		(json_int_t)r->first_dp, "steps", (json_int_t)r->first_dp_steps,
		"first_stage", "stage", (json_int_t)r->first_stage, "steps",
		(json_int_t)r->first_stage_steps, "worst_workers",
		(json_int_t)r->worst_count);

	if (o == NULL || more == NULL || json_object_update(o, more) != 0) {
		json_decref(o);
		json_decref(more);
		return NULL;
	}
	json_decref(more);
	json_set_number(o, "ideal_s", r->ideal_s);
	json_set_number(o, "S", r->s);
	json_set_number(o, "waste_ratio", 1 - 1 / r->s);
	json_set_number(o, "M_W", r->m_w);
	json_set_number(o, "M_S", r->m_s);
	json_set_number(o, "M_W_added", r->m_w_added);
	json_set_number(o, "M_S_added", r->m_s_added);
	return o;
}

json_t *
ls_whatif_json(const char *name, const struct ls_whatif_trace *t,
	const struct ls_whatif *w, const struct ls_whatif_result *mean,
	const struct ls_whatif_result *role)
{
	json_t *o = json_result(t, w, mean), *by_role = json_result(t, w, role);
	double measured = ls_whatif_measured_s(w), replayed = ls_whatif_replayed_s(w);
	json_t *head = json_pack("{s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
		"schema_version", 1, "trial",
		name[0] != '\0' ? json_string(name) : json_null(), "steps",
		(json_int_t)t->step_count, "dp", (json_int_t)t->dp_count, "stages",
		(json_int_t)t->stage_count, "workers",
		(json_int_t)((size_t)t->stage_count * t->dp_count), "operations",
		(json_int_t)(t->op_count * t->lane_count), "step_s",
		json_ratio(measured), "no_delay_s", json_ratio(replayed),
		"launch_slowdown", json_ratio(measured / replayed));

	if (o != NULL && by_role != NULL && head != NULL &&
		json_object_update(o, head) == 0 &&
		json_object_set(o, "role_median", by_role) == 0 &&
		json_object_get(o, "S") != NULL) {
		json_decref(head);
		json_decref(by_role);
		return o;
	}
	json_decref(head);
	json_decref(by_role);
	json_decref(o);
	return NULL;
}
