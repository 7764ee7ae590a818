/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_identity.h"
#include "collector/engine/finding/contradictions.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judged.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its title, then who says what. False: that is what it says already, or there is no memory for it. */
static bool
judge_identity_say(struct ls_finding *f, const struct ls_contradictions *list,
	size_t missing, size_t expected)
{
	char(*said)[LS_FINDING_SAID_BYTES] = calloc(list->count + 1, sizeof(*said));

	if (said == NULL)
		return false;
	(void)snprintf(said[0], sizeof(said[0]),
		"%s: %zu of %zu workers %s not judged; %s", list->of[0].claim, missing,
		expected, missing == 1 ? "is" : "are", list->of[0].todo);
	for (size_t i = 0; i < list->count; i++)
		ls_contradiction_line(&list->of[i], said[i + 1]);
	if (f->said_count == list->count + 1 &&
		memcmp(f->said, said, f->said_count * sizeof(*said)) == 0) {
		free(said);
		return false;
	}
	free(f->said);
	f->said = said;
	f->said_count = (uint32_t)list->count + 1;
	return true;
}

/* Opens the finding or brings it up to date. */
static void
judge_identity_tell(struct ls_engine *e, struct ls_job *j,
	const struct ls_finding *subject, const struct ls_contradictions *list,
	size_t missing, size_t expected, int64_t now_us)
{
	bool open = ls_findings_open(e, subject) != NULL;
	/* what storage told is not changed by records that are fed again */
	struct ls_finding *f = ls_findings_claim(e, subject, j->identity.step,
		j->identity.onset_us, 0, now_us);

	if (f == NULL ||
		(!judge_identity_say(f, list, missing, expected) &&
			(open || f->said == NULL)))
		return;
	f->evidence_count = 0;
	while (f->evidence_count < list->count)
		ls_findings_row(f, "identity", "1", NAN, NAN)->role =
			LS_EVIDENCE_SUPPORTS;
	f->severity = LS_SEVERITY_WARNING;
	f->chips = ls_job_chips(e, j);
	f->step_s = f->without_s = f->before_s = f->slowdown = f->chips_lost =
		f->chip_hours = NAN;
	f->diagnosis =
		(struct ls_diagnosis){ .hypotheses = { { LS_CAUSE_IDENTITY, 1, 1 } },
			.count = 1 };
	ls_findings_present(e, j, f,
		ls_row_shown(&ls_job_row(j, j->live_count - 1)->row));
	f->workers = (uint32_t)expected;
	ls_findings_tell(e, f, now_us);
}

/* What workers contradict each other in, now or until now. */
static void
judge_identity_look(struct ls_engine *e, struct ls_job *j,
	const struct ls_contradictions *list, int64_t now_us)
{
	struct ls_job_identity *id = &j->identity;
	struct ls_finding subject = ls_findings_of_job(e, j, LS_KIND_SELF_IDENTITY), *f;
	size_t workers = ls_judged_workers(e, j, false, now_us) + j->gone,
	       expected = ls_judged_expected(e, j);

	if (list->count == 0 || workers >= expected) {
		id->since_us = 0;
		f = ls_findings_open(e, &subject);
		if (f != NULL)
			ls_findings_clear(e, f, f->last_step, now_us);
		return;
	}
	if (id->since_us == 0) {
		const struct ls_row *row = &ls_job_row(j, j->live_count - 1)->row;

		id->step = ls_row_shown(row);
		id->onset_us = row->begin_us;
		id->since_us = now_us;
	}
	if ((double)(now_us - id->since_us) * 1e-6 > ls_judged_limit_s(j))
		judge_identity_tell(e, j, &subject, list, expected - workers, expected,
			now_us);
}

void
ls_judge_identity(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	struct ls_contradictions list;

	if (now_us < j->identity.look_us + LS_FINDING_UPDATE_US || j->live_count == 0)
		return;
	j->identity.look_us = now_us;
	ls_contradictions(e, j, &list);
	if (list.count > 0 || j->identity.since_us != 0)
		judge_identity_look(e, j, &list, now_us);
}
