/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep whatif: an operation trace replayed, without a collector. */
#include "config.h"
#include "web/cli/cli.h"
#include "collector/whatif/whatif.h"
#include "collector/whatif/whatif_csv.h"
#include "collector/whatif/whatif_meta.h"
#include "proto/base/json.h"
#include "web/cli/term.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Says what is wrong with a file; content is the user's to mend, memory is not. */
static int
whatif_complain(struct ls_cli *cli, const char *path, int rc,
	const struct ls_whatif_error *error)
{
	const char *file = ls_term_safe(cli->term, path, "");

	if (rc != -LS_EPARSE)
		(void)fprintf(stderr, "lockstep: %s: %s\n", file, ls_err_text(rc));
	else if (error->line > 0)
		(void)fprintf(stderr, "lockstep: %s: line %" PRIu64 ": %s\n", file,
			error->line, ls_term_safe(cli->term, error->text, ""));
	else
		(void)fprintf(stderr, "lockstep: %s: %s\n", file,
			ls_term_safe(cli->term, error->text, ""));
	return rc == -ENOMEM ? LS_EXIT_FOUND : LS_EXIT_USAGE;
}

/* --- in words ------------------------------------------------------------- */

static double
whatif_number(const json_t *v, const char *path)
{
	double n = 0;

	return ls_pick_number(v, path, &n) ? n : 0;
}

static void
whatif_show_head(struct ls_term *t, const json_t *r)
{
	(void)printf("%s: %s workers (%s dp x %s stages), %s steps, %s operations\n",
		ls_term_text(t, r, "trial", "operation trace"),
		ls_term_whole(t, r, "workers", "?"), ls_term_whole(t, r, "dp", "?"),
		ls_term_whole(t, r, "stages", "?"), ls_term_whole(t, r, "steps", "?"),
		ls_term_whole(t, r, "operations", "?"));
	(void)printf("  A step takes %.6g s; %.6g s without what hosts lose between "
		     "operations (launch slowdown %.3f).\n",
		whatif_number(r, "step_s"), whatif_number(r, "no_delay_s"),
		whatif_number(r, "launch_slowdown"));
	(void)printf(
		"  If every compute took the mean of its kind, and every transfer the "
		"median, a step would\n  take %.6g s: slowdown S %.3f, "
		"%.1f %% of the time is wasted.\n",
		whatif_number(r, "ideal_s"), whatif_number(r, "S"),
		100 * whatif_number(r, "waste_ratio"));
}

/* A share is told within 0 and 100 %; what goes beyond is told apart. */
static void
whatif_show_share(struct ls_term *t, const json_t *r, const char *who, const char *path,
	const char *beyond)
{
	double share = 0, more = whatif_number(r, beyond);

	(void)t;
	if (!ls_pick_number(r, path, &share)) {
		(void)printf("  %s: nothing was lost\n", who);
		return;
	}
	(void)printf("  %s: %.1f %% of the waste goes away", who,
		100 *
			(share < 0		    ? 0
					: share > 1 ? 1
						    : share));
	if (more >= 0.005)
		(void)printf("; %.1f %% more than ideal: it is slower than the mean by "
			     "design",
			100 * more);
	if (share < -0.005)
		(void)printf("; the step gets longer by %.1f %% of it", -100 * share);
	(void)printf("\n");
}

/* The members of an object of numbers, greatest first, at most `most`. */
static void
whatif_show_members(struct ls_term *t, const json_t *members, const char *head,
	size_t most)
{
	struct ls_table *table = ls_table_new(head);
	json_t *left = json_copy((json_t *)members), *v;
	const char *key;

	for (size_t n = 0; n < most && json_object_size(left) > 0; n++) {
		const char *best = NULL;
		double best_s = 0;

		json_object_foreach(left, key, v)
		{
			if (best != NULL && json_number_value(v) <= best_s)
				continue;
			best = key;
			best_s = json_number_value(v);
		}
		ls_table_add(table, ls_term_safe(t, best, ""));
		ls_table_add(table, ls_term_format(t, "%.4f", best_s));
		ls_ignore(json_object_del(left, best));
	}
	ls_table_print(table);
	json_decref(left);
}

static const char *
whatif_cell_whole(struct ls_term *t, const json_t *w, const char *path,
	const char *dflt)
{
	(void)dflt;
	return ls_term_format(t, "%.0f", whatif_number(w, path));
}

static const char *
whatif_cell_ratio(struct ls_term *t, const json_t *w, const char *path,
	const char *dflt)
{
	(void)dflt;
	return ls_term_format(t, "%.4f", whatif_number(w, path));
}

static const char *
whatif_cell_seconds(struct ls_term *t, const json_t *w, const char *path,
	const char *dflt)
{
	(void)dflt;
	return ls_term_format(t, "%.6g s", whatif_number(w, path));
}

static const char *
whatif_cell_percent(struct ls_term *t, const json_t *w, const char *path,
	const char *dflt)
{
	double v = 100 * whatif_number(w, path);

	(void)dflt;
	return ls_term_format(t, "%.1f %%", fabs(v) < 0.05 ? 0 : v);
}

static const struct ls_column whatif_columns[] = {
	{ ">RANK", whatif_cell_whole, "rank", "" },
	{ ">DP", whatif_cell_whole, "dp", "" },
	{ ">STAGE", whatif_cell_whole, "stage", "" },
	{ ">S_W", whatif_cell_ratio, "S_w", "" },
	{ ">ALONE", whatif_cell_ratio, "S_alone", "" },
	{ ">STEP WITHOUT", whatif_cell_seconds, "without_s", "" },
	{ ">GAIN", whatif_cell_percent, "gain_ratio", "" },
	{ NULL, NULL, NULL, NULL },
};

static void
whatif_show(struct ls_term *t, const json_t *r, size_t top)
{
	char who[64];

	whatif_show_head(t, r);
	(void)printf("\nMade ideal:\n");
	(void)snprintf(who, sizeof(who), "the worst %.0f of %.0f workers (M_W)",
		whatif_number(r, "worst_workers"), whatif_number(r, "workers"));
	whatif_show_share(t, r, who, "M_W", "exceeds_ideal.M_W");
	whatif_show_share(t, r, "the last stage (M_S)", "M_S", "exceeds_ideal.M_S");
	(void)printf("\nWhat would slow an otherwise ideal job, and by how much:\n");
	whatif_show_members(t, json_object_get(r, "S_op"), "OPERATION|>S", top);
	whatif_show_members(t, json_object_get(r, "S_stage"), "STAGE|>S", top);
	whatif_show_members(t, json_object_get(r, "S_dp"), "DP|>S", top);
	(void)printf("  stage %.0f is first in %.0f, dp %.0f in %.0f of %.0f steps\n",
		whatif_number(r, "first_stage.stage"),
		whatif_number(r, "first_stage.steps"), whatif_number(r, "first_dp.dp"),
		whatif_number(r, "first_dp.steps"), whatif_number(r, "steps"));
	(void)printf("\nWorkers, and the gain if each one alone were ideal:\n");
	ls_table_items(t, json_object_get(r, "top"), whatif_columns);
	(void)printf("\nAgainst peers of the same stage (role median): S %.3f\n",
		whatif_number(r, "role_median.S"));
	ls_table_items(t, ls_pick(r, "role_median.top"), whatif_columns);
}

/* --- the command ---------------------------------------------------------- */

static int
whatif_print(struct ls_cli *cli, const json_t *result)
{
	char *text = NULL;

	if (!cli->json) {
		whatif_show(cli->term, result, (size_t)cli->options.top);
		return LS_EXIT_OK;
	}
	text = ls_json_canonical(result);
	if (!text)
		return LS_EXIT_FOUND;
	(void)printf("%s\n", text);
	free(text);
	return LS_EXIT_OK;
}

int
ls_cmd_whatif(struct ls_cli *cli, int argc, char **argv)
{
	const char *path = cli->options.meta;
	struct ls_whatif_error error = { 0 };
	struct ls_whatif_rows rows = { 0 };
	struct ls_whatif_trace *t = NULL;
	struct ls_whatif_meta meta;
	json_t *result = NULL;
	int rc;

	(void)argc;
	if (path[0] == '\0') {
		(void)fprintf(stderr,
			"lockstep: whatif needs --meta FILE: lines like 'dp_size: 4', 'pp_size: 4'\n");
		return LS_EXIT_USAGE;
	}
	rc = ls_whatif_meta_read(path, &meta, &error);
	if (rc == 0) {
		path = argv[0];
		rc = ls_whatif_csv_read(path, &meta, &rows, &error);
	}
	if (rc == 0)
		rc = ls_whatif_trace_new(rows.rows, rows.count, meta.dp_size,
			meta.pp_size, &t, &error);
	free(rows.rows);
	if (rc == 0)
		rc = ls_whatif_answer(t, meta.name, (uint32_t)cli->options.top, &result,
			&error);
	rc = rc == 0 ? whatif_print(cli, result)
		     : whatif_complain(cli, path, rc, &error);
	json_decref(result);
	ls_whatif_trace_free(t);
	return rc;
}
