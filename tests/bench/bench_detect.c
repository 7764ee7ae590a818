/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/clock.h"
#include "tests/bench/detect_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * How well the engine finds what is wrong, on simulated jobs of which the truth is
 * known; beside it, on the same steps, the rules of three other tools. Tables in
 * Markdown, for tests/MEASURED.md, then lines "name value unit".
 *
 *     bench_detect                    what CI runs: few seeds, less than a minute of CPU
 *     bench_detect --full             all sizes and noises
 *     bench_detect --table contract   one of contract, grid, levels, null, least
 *     bench_detect --runs N           so many runs of each row; a tenth of 10,240 hosts
 *     bench_detect --hosts N          rows of jobs of that size alone, where a table has several
 *     bench_detect --wrong            a line of JSON on stderr for each false finding and each fault that is missed
 *     bench_detect --weeks W          the null table: so many simulated weeks of 10,000 hosts, steps of 10 s
 */

enum { EXIT_USAGE = 2 };

static bool
bench_number(const char *text, double max, double *ret_value)
{
	char *end;
	double v = text == NULL ? -1 : strtod(text, &end);

	if (!(v > 0 && v <= max) || *end != '\0')
		return false;
	*ret_value = v;
	return true;
}

static int
bench_usage(const char *word)
{
	(void)fprintf(stderr,
		"bench_detect: %s: wanted is [--quick | --full] [--table contract|grid|levels|null|least] "
		"[--runs N] [--hosts N] [--weeks W] [--wrong]\n",
		word);
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	static const char *const names[] = { "contract", "grid", "levels", "null",
		"least" };
	struct detect_plan plan = { .runs = 4, .quick = true };
	const char *table = NULL;
	uint64_t began_ns;
	double v;
	int i;

	for (i = 1; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--quick") == 0) {
			plan.quick = true;
		} else if (strcmp(argv[i], "--wrong") == 0) {
			plan.wrong = true;
		} else if (strcmp(argv[i], "--full") == 0) {
			plan.quick = false;
			plan.runs = 20;
		} else if (strcmp(argv[i], "--table") == 0 && next != NULL) {
			table = argv[++i];
		} else if (strcmp(argv[i], "--runs") == 0 &&
			bench_number(next, 10000, &v)) {
			plan.runs = (size_t)v;
			i++;
		} else if (strcmp(argv[i], "--hosts") == 0 &&
			bench_number(next, 10240, &v)) {
			plan.hosts = (uint32_t)v;
			i++;
		} else if (strcmp(argv[i], "--weeks") == 0 &&
			bench_number(next, 520, &v)) {
			plan.weeks = v;
			i++;
		} else {
			return bench_usage(argv[i]);
		}
	}
	for (i = 0; table != NULL && i < 5 && strcmp(table, names[i]) != 0;)
		i++;
	if (table != NULL && i == 5)
		return bench_usage(table);
	began_ns = ls_clock_cpu_ns();
	printf("Simulated jobs. seeds fixed; %zu runs a row%s.\n", plan.runs,
		plan.quick ? " (quick)" : "");
	if (table == NULL || i == 0)
		detect_table_contract(&plan);
	if (table == NULL || i == 1)
		detect_table_grid(&plan);
	if (table == NULL || i == 2)
		detect_table_levels(&plan);
	if (table == NULL || i == 3)
		detect_table_null(&plan);
	if (table == NULL || i == 4)
		detect_table_least(&plan);
	printf("\n");
	for (size_t k = 0; k < plan.lines; k++)
		printf("detect_%s %.3f 1\n", plan.line[k].name, plan.line[k].value);
	printf("detect_cpu_s %.1f s\n", (double)(ls_clock_cpu_ns() - began_ns) * 1e-9);
	return EXIT_SUCCESS;
}
