/* SPDX-License-Identifier: Apache-2.0 */
/* Each scenario below scenarios/ is a test; the files are its cases. And: bad lines are refused. */
#include "config.h"

#include "tests/support/harness.h"
#include "tests/support/scenario/scenario.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "tests/unit/collector/engine/scenarios"

#define FILES_MAX 40
#define SCENARIOS_MAX 1024

static struct ls_test_case files[FILES_MAX];
static size_t file; /* of the scenarios that are found now */
static struct scenario all[SCENARIOS_MAX];
static TTest tests[SCENARIOS_MAX];
static size_t count;

static void
scenario_fn(int i)
{
	const char *wrong = scenario_run(&all[i]);

	ck_assert_msg(wrong == NULL, "%s", wrong);
}

static void
add(void *arg, const struct scenario *s)
{
	(void)arg;
	if (count == SCENARIOS_MAX)
		abort();
	all[count] = *s;
	tests[count] = (TTest){ all[count].title, scenario_fn, s->file, s->line };
	ls_test_register(&files[file], &tests[count], 0, (int)count, (int)count + 1);
	count++;
}

static int
is_scenario(const struct dirent *e)
{
	const char *dot = strrchr(e->d_name, '.');

	return dot != NULL && strcmp(dot, ".scenario") == 0;
}

/* The whole file, until the program ends. No test runs yet, so ls_test_read cannot. */
static const char *
text_of(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t room = 0;

	if (f == NULL || (getdelim(&text, &room, '\0', f) < 0 && ferror(f)))
		abort();
	(void)fclose(f);
	return text;
}

__attribute__((constructor)) static void
register_all(void)
{
	const char *top = getenv("top_srcdir");
	struct dirent **found = NULL;
	char path[PATH_MAX];
	size_t at;
	int n;

	at = (size_t)snprintf(path, sizeof(path), "%s/", top != NULL ? top : ".");
	(void)snprintf(path + at, sizeof(path) - at, FOLDER);
	n = scandir(path, &found, is_scenario, alphasort);
	if (n > FILES_MAX)
		abort();
	for (int i = 0; i < n; i++) {
		(void)snprintf(path + at, sizeof(path) - at, FOLDER "/%s",
			found[i]->d_name);
		*strrchr(found[i]->d_name, '.') = '\0';
		files[file].name = found[i]->d_name;
		scenario_each(strdup(path + at), text_of(path), add, NULL);
		file++;
	}
	free(found);
}

/* Runs the last scenario of a text. */
static void
run_it(void *arg, const struct scenario *s)
{
	*(const char **)arg = scenario_run(s);
}

LS_CASE(language);

LS_TEST(language, scenarios_are_there)
{
	ck_assert_msg(count > 0, "no scenario below " FOLDER ": set top_srcdir");
}

static const struct {
	const char *text,
		*wrong; /* after "scenario x", as line 1; a part of what is said */
} bad[] = {
	{ "rnu 5", "f:2: \"rnu\" is no command" },
	{ "run 5", "f:2: \"run\" before \"job\"" },
	{ "job 0", "f:2: want: one job" },
	{ "job 8 slwo=1", "f:2: \"slwo=1\" is no setting of a job" },
	{ "job 8\njob 8", "f:3: want: one job" },
	{ "job 8\nset 3 slwo=1", "f:3: \"slwo=1\" is no setting of a worker" },
	{ "job 8\nset 3 slow=fast", "f:3: \"fast\" is not a number" },
	{ "job 8\nset 8 slow=2", "f:3: \"8\" are no ranks of 8" },
	{ "job 8\nset slow=2", "want: set (RANKS|job) SETTING=VALUE" },
	{ "job 8\nrun 5 fast", "f:3: \"fast\" are no ranks of 8" },
	{ "job 8\nlose 5 3", "f:3: want: lose STEPS" },
	{ "job 8\nrun 5x", "f:3: \"5x\" is not a number" },
	{ "job 8\nramp 5 3 slwo=2", "f:3: \"slwo=2\"" },
	{ "job 8\nstall 5 3 0.1 evry=2", "f:3: \"evry=2\" is unknown here (every=" },
	{ "job 8\nstall 5 3 0.1 every=2 as=lunch",
		"f:3: \"lunch\" is no phase, nor \"pause\"" },
	{ "job 8\nstand 5 3 lunch", "f:3: \"lunch\" is no phase" },
	{ "job 8\nend 3 tired", "f:3: \"tired\" is no end" },
	{ "job 8\ndeliver 3 soon", "f:3: it is taken, not soon" },
	{ "job 8\nset 3 mute=1\nrun 1\ndeliver 3 late", "f:5: it is taken, not late" },
	{ "job 8\nclaim 8 taken", "f:3: \"8\" is no rank of 8" },
	{ "job 8\nclaim 3 beside", "f:3: it is taken, not beside" },
	{ "job 8\nrestart back=5", "f:3: 5 steps back: more than there are" },
	{ "job 8\nexpect opened=1", "f:3: opened=1: it is 0" },
	{ "job 8\nexpect opend=1", "f:3: \"opend=1\" is nothing that can be expected" },
	{ "job 8\nexpect straggler host=h3", "f:3: it is not so: there is no finding" },
	{ "job 8\nexpect job workers=9", "workers=9: 8" },
	{ "job 8\nsave ID id", "f:3: no finding has \"id\"" },
	{ "job 8\nrun $STEPS", "f:3: \"$STEPS\" has no value" },
	{ "job 8\nfor A 1", "f:3: \"for\" is no command" },
	{ "job 8\nrepeat 2", "f:3: \"repeat\" without \"done\"" },
	{ "job 8\ndone", "f:3: \"done\" without \"repeat\"" },
	{ "job 8\nset 3 slow=1.3\nrun 200\nexpect straggler host=h2",
		"kind: \"straggler\", host=h2: \"h3\"" },
	{ "job 8\nset 3 slow=1.3\nrun 200\nexpect straggler host",
		"f:5: \"host\" is no condition" },
};

LS_TEST_EACH(language, what_is_unknown_or_not_so_is_told_with_its_line, bad)
{
	const char *wrong = NULL;
	char text[256];

	(void)snprintf(text, sizeof(text), "scenario x\n%s\n", bad[_i].text);
	scenario_each("f", text, run_it, &wrong);
	ck_assert_msg(wrong != NULL && strstr(wrong, bad[_i].wrong) != NULL,
		"want: %s; is: %s", bad[_i].wrong, wrong);
	wrong = NULL;
	scenario_each("f", bad[_i].text, run_it, &wrong);
	ck_assert_str_eq(wrong, "f:1: want: scenario NAME");
}
