/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/steps/inferred.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

struct source_status {
	struct ls_source_status_options o;
	struct ls_worker_info who; /* as told last */
	bool going;
	/* what an agent before this one left in the spool has its End */
	bool settled;
	uint64_t t_first_ns; /* of the first reading */
	bool watching; /* launches are seen, and no marks: since */
	uint64_t t_watched_ns, watched_steps;
	/* steps taken over of the progress, and the look of the last */
	uint64_t counted, t_counted_ns;
	/* of the next step; of the first one that is not in the spool */
	uint64_t number, next;
	size_t worker_count; /* newest first */
	struct ls_wire_worker worker[2];
	struct ls_source_status_stats stats;
	struct ls_record record[LS_STEPS_PER_ITEM];
};

/* --- what there is -------------------------------------------------------- */

/* Does a job that sends marks run here? Then they say more than libtpu. */
static bool
status_is_marked(const struct source_status *s)
{
	const struct ls_step_ring *r;

	for (size_t i = 0;
		s->o.steps != NULL && (r = ls_source_step_ring(s->o.steps, i)) != NULL;
		i++) {
		if (r->state == LS_RING_STATE_LIVE)
			return true;
	}
	return false;
}

/* When any core was last seen; 0: never. */
static uint64_t
status_t_seen(const struct source_status *s)
{
	const struct ls_tpu_progress *p = s->o.progress;
	uint64_t t = 0;

	for (size_t i = 0; i < p->count; i++) {
		if (p->core[i].t_seen_ns > t)
			t = p->core[i].t_seen_ns;
	}
	return t;
}

/* When steps were last looked for; 0: never. */
static uint64_t
status_t_look(const struct source_status *s)
{
	const struct ls_tpu_progress *p = s->o.progress;

	return p->looks > 0
		? p->look[(p->next_look + LS_TPU_LOOKS_MAX - 1) % LS_TPU_LOOKS_MAX].t_ns
		: 0;
}

static bool
status_is_gone(const struct source_status *s, uint64_t now_mono_ns)
{
	uint64_t t = status_t_seen(s);

	return t == 0 || (now_mono_ns > t && now_mono_ns - t > LS_STATUS_GONE_NS);
}

static bool
status_is_known(const struct source_status *s)
{
	return s->who.job[0] != '\0' && s->who.rank >= 0;
}

static bool
status_is_another(const struct source_status *s)
{
	return strcmp(s->who.job, s->worker[0].info.job) != 0 ||
		s->who.rank != s->worker[0].info.rank;
}

/* --- the worker ----------------------------------------------------------- */

static void
status_id(const struct source_status *s, uint32_t attempt,
	uint8_t ret_id[LS_RING_ID_BYTES])
{
	char name[LS_JOB_NAME_MAX_BYTES + 16];

	(void)snprintf(name, sizeof(name), "%s\n%d", s->who.job, (int)s->who.rank);
	ls_inferred_id(s->o.spool, LS_STEP_RUNTIME_STATUS, name, attempt, ret_id);
}

/* The newest of this worker in the spool, or NULL; all others of libtpu have their End
 * then. */
static const struct ls_spool_ring *
status_settle(struct source_status *s, uint64_t now_mono_ns)
{
	uint8_t id[LS_RING_ID_BYTES];

	status_id(s, 0, id);
	return ls_inferred_settle(s->o.spool, LS_STEP_RUNTIME_STATUS, id, now_mono_ns);
}

/* What an agent before this one left going ends, as nobody will go on with it. */
static void
status_end_leftover(struct source_status *s, uint64_t now_mono_ns)
{
	const struct ls_spool_ring *c = status_settle(s, now_mono_ns);

	s->settled = c == NULL || c->end_seq != 0 ||
		ls_inferred_end(s->o.spool, c->id, c->next, now_mono_ns) == 0;
}

/* Workers that are not going are forgotten once their End is acknowledged, from the
 * last on. */
static void
status_forget_ended(struct source_status *s)
{
	const struct ls_spool_ring *c;

	while (s->worker_count > (s->going ? 1u : 0u)) {
		c = ls_spool_ring_find(s->o.spool,
			s->worker[s->worker_count - 1].ring_id);
		if (c != NULL &&
			(c->end_seq == 0 || c->end_seq > ls_spool_acked(s->o.spool)))
			return;
		s->worker_count--;
	}
}

/* False: the spool refused it, and it is tried again at the next reading. */
static bool
status_end(struct source_status *s, const char *why, uint64_t now_mono_ns)
{
	int rc = 0;

	if (s->next != LS_INFERRED_NONE) /* else nothing of it is in the spool */
		rc = ls_inferred_end(s->o.spool, s->worker[0].ring_id, s->next,
			now_mono_ns);
	if (rc != 0) {
		ls_log(LS_LOG_WARN, "status",
			"spool refused the end of %s rank %d (%s); retrying",
			s->worker[0].info.job, (int)s->worker[0].info.rank,
			ls_err_text(rc));
		return false;
	}
	ls_log(LS_LOG_INFO, "status",
		"job %s rank %d: steps from libtpu's status ended: %s",
		s->worker[0].info.job, (int)s->worker[0].info.rank, why);
	s->going = s->watching = false;
	return true;
}

/* Counts from this look on: as the worker that was going before a restart, else as a
 * new one. */
static void
status_begin(struct source_status *s, const struct ls_tpu_steps *steps,
	uint64_t now_mono_ns)
{
	/* Never an id that was used before; newer ones are higher, for as long as the
	 * spool's boot. */
	uint32_t turn = (uint32_t)(now_mono_ns / 1000000000u);
	const struct ls_spool_ring *c = status_settle(s, now_mono_ns);

	s->worker[1] = s->worker[0];
	s->worker_count = s->worker_count > 0 ? 2 : 1;
	memset(&s->worker[0], 0, sizeof(s->worker[0]));
	s->worker[0].info = s->who;
	s->worker[0].info.step_source = LS_STEP_RUNTIME_STATUS;
	s->worker[0].info.step_confidence = steps->confidence;
	s->worker[0].created_mono_ns = now_mono_ns;
	status_id(s, turn, s->worker[0].ring_id);
	s->number = c != NULL ? c->next : 0;
	s->next = LS_INFERRED_NONE;
	if (c != NULL && c->end_seq == 0) {
		memcpy(s->worker[0].ring_id, c->id, sizeof(c->id));
		s->next = c->next;
	}
	s->counted = s->o.progress->steps;
	s->t_counted_ns = status_t_look(s);
	s->going = s->settled = true;
	s->stats.begun++;
	ls_log(LS_LOG_INFO, "status",
		"job %s rank %d: no marks; steps are inferred from libtpu's status, confidence %.2f",
		s->who.job, (int)s->who.rank, steps->confidence);
}

/* Launches must go on for a while without marks: a job that sends some may still be on
 * its way to them. */
static void
status_watch(struct source_status *s, uint64_t now_mono_ns)
{
	struct ls_tpu_steps steps;

	if (ls_tpu_progress_steps(s->o.progress, now_mono_ns, &steps) != 0) {
		s->watching = false;
		return;
	}
	if (!s->watching) {
		s->watching = true;
		s->t_watched_ns = now_mono_ns;
		s->watched_steps = steps.steps;
	}
	if (status_is_known(s) && now_mono_ns - s->t_watched_ns >= LS_STATUS_BEGIN_NS &&
		steps.steps - s->watched_steps >= LS_STATUS_BEGIN_STEPS)
		status_begin(s, &steps, now_mono_ns);
}

/* --- records -------------------------------------------------------------- */

/* Steps since the look before share the time since then; of very many only the last are
 * told one by one. */
static void
status_take(struct source_status *s)
{
	uint64_t t = status_t_look(s), n = s->o.progress->steps - s->counted, each,
		 told;
	uint64_t before = s->stats.records, i;
	int rc;

	if (n == 0 || t <= s->t_counted_ns)
		return;
	each = (t - s->t_counted_ns) / n;
	told = n < LS_STEPS_PER_ITEM ? n : LS_STEPS_PER_ITEM;
	for (i = 0; i < told; i++)
		s->record[i] = (struct ls_record){
			.step = s->number + (n - told) + i,
			.t_begin_ns = (int64_t)(t - (told - i) * each),
			.duration_ns =
				each < LS_PHASE_MAX_NS ? each : LS_PHASE_MAX_NS - 1,
		};
	s->counted += n;
	s->t_counted_ns = t;
	rc = ls_inferred_push(s->o.spool, s->worker[0].ring_id, s->record, (size_t)told,
		&s->next, &s->stats.records, &s->stats.lost);
	s->number += n;
	if (rc == 0)
		return;
	s->stats.refused += told - (s->stats.records - before);
	ls_log(LS_LOG_WARN, "status", "spool refused records (%s); they become a gap",
		ls_err_text(rc));
}

/* --- the source ----------------------------------------------------------- */

/* Why the worker that is going must end; NULL: it goes on. */
static const char *
status_why_end(const struct source_status *s, uint64_t now_mono_ns)
{
	if (status_is_marked(s))
		return "a job sends marks";
	if (!status_is_known(s) || status_is_another(s))
		return "this host now has another job or rank";
	return status_is_gone(s, now_mono_ns) ? "libtpu reports no status" : NULL;
}

static void
status_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_status *s = self;
	const char *why;

	(void)into;
	if (!(due & LS_CADENCE_FAST) || s->o.spool == NULL)
		return;
	if (s->t_first_ns == 0)
		s->t_first_ns = now_mono_ns;
	status_forget_ended(s);
	if (s->going) {
		status_take(s);
		why = status_why_end(s, now_mono_ns);
		if (why != NULL && !status_end(s, why, now_mono_ns))
			return;
	}
	if (s->going)
		return;
	if (s->o.has_log || status_is_marked(s))
		s->watching = false;
	else
		status_watch(s, now_mono_ns);
	if (!s->settled && !s->watching && status_is_known(s) &&
		(s->o.has_log || status_is_marked(s) ||
			now_mono_ns - s->t_first_ns > LS_STATUS_GONE_NS))
		status_end_leftover(s, now_mono_ns);
}

static void
status_tell(const void *self, struct ls_doctor *d)
{
	const struct source_status *s = self;

	if (s->o.progress->count == 0 || s->o.has_log) {
		return; /* tpu says why there is no status; log, whether it is read */
	} else if (status_is_marked(s)) {
		ls_doctor_add(d, LS_DOCTOR_OK, "status", "inferred steps",
			"not needed: the job sends marks", "");
	} else if (!status_is_known(s)) {
		ls_doctor_addf(d, LS_DOCTOR_WARN, "status", "inferred steps",
			s->who.job[0] == '\0'
				? "give --job, or mark the steps in the job (lockstep.step)"
				: "give --worker-id, or mark the steps in the job (lockstep.step)",
			"libtpu reports the state of its cores, but steps cannot be "
			"attributed: %s is unknown",
			s->who.job[0] == '\0' ? "the job" : "the number of this host");
	} else if (!s->going) {
		ls_doctor_add(d, LS_DOCTOR_NONE, "status", "inferred steps",
			"no repeated launches without marks yet", "");
	} else {
		ls_doctor_addf(d, LS_DOCTOR_OK, "status", "inferred steps", "",
			"job %s rank %d: %llu steps inferred, %llu missing, "
			"confidence %.2f; inferred steps blame no worker: mark the "
			"steps in the job",
			s->worker[0].info.job, (int)s->worker[0].info.rank,
			(unsigned long long)s->stats.records,
			(unsigned long long)s->stats.lost,
			s->worker[0].info.step_confidence);
	}
}

int
ls_source_status_new(const struct ls_source_status_options *options,
	struct ls_source *ret_source)
{
	struct source_status *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->o = *options;
	s->who.rank = -1;
	*ret_source = (struct ls_source){ .name = "status",
		.self = s,
		.read = status_read,
		.tell = status_tell,
		.free = free };
	return 0;
}

void
ls_source_status_who(const struct ls_source *source, const char *job, const char *slice,
	int32_t rank, int32_t chips)
{
	struct source_status *s = source->self;
	struct ls_worker_info *w = &s->who;

	memset(w, 0, sizeof(*w));
	w->rank = rank < LS_WORKERS_MAX ? rank : -1;
	w->chips = chips > 0 ? chips : 0;
	if (ls_text_is_name(job, strlen(job), sizeof(w->job) - 1))
		ls_ignore(ls_text_copy(w->job, sizeof(w->job), job)); /* it fits */
	if (ls_text_is_name(slice, strlen(slice), sizeof(w->slice) - 1))
		ls_ignore(
			ls_text_copy(w->slice, sizeof(w->slice), slice)); /* likewise */
}

const struct ls_wire_worker *
ls_source_status_worker(const struct ls_source *source, size_t i)
{
	const struct source_status *s = source->self;

	return i < s->worker_count ? &s->worker[i] : NULL;
}

const struct ls_source_status_stats *
ls_source_status_get_stats(const struct ls_source *source)
{
	const struct source_status *s = source->self;

	return &s->stats;
}
