/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/steps/inferred.h"
#include "agent/steps/log_tail.h"
#include "agent/steps/step_line.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

#define LOG_STEP_LINE_MIN_BYTES 32u /* steps on shorter lines may not all fit */
#define LOG_FORMATS                                                                     \
	"set --step-log-pattern to a pattern of the line of a step, or mark the steps " \
	"in the job"
#define LOG_RESPONDS "check that the file system of --step-log responds"
/* One line may have begun in the reading before. */
#define LOG_LINES_MAX (LS_LOG_TAIL_READ_MAX_BYTES / LOG_STEP_LINE_MIN_BYTES + 1)

/* Lines that tell no step, of well-known loggers. bars: its progress bar tells them. */
static const struct {
	const char *part, *why;
	bool bars;
} log_unfit[] = { { ":::MLLOG", "MLPerf's :::MLLOG: they have no time for each step",
			  false },
	/* transformers, trainer_callback.py: PrinterCallback and ProgressCallback.on_log */
	{ "{'loss': ",
		"Hugging Face's Trainer: they have no number of a step, only its progress bar "
		"has",
		true } };

struct source_log {
	char path[LS_PATH_MAX_BYTES];
	struct ls_disk *disk;
	struct ls_disk_job job;
	/* While the job is busy these are the disk thread's. */
	struct ls_log_tail *tail;
	uint64_t now_mono_ns; /* of the reading */
	bool at_end; /* the reading came to the end of the file */
	uint64_t step_bytes; /* read when the last line of a step came */
	struct ls_step_rules *rules;
	uint64_t unfit, dropped; /* lines of log_unfit; steps that did not fit */
	const char *unfit_why;
	uint64_t bar,
		bar_step; /* last step of the first bar that is not full, and where it is */
	bool bar_named; /* its trainer wrote a line */
	char unknown[LS_STEP_LOG_SHOWN_MAX_BYTES + 1]; /* first line that is no step */
	size_t found_count;
	struct ls_step_line found[LOG_LINES_MAX];
	/* From here on all is the loop's. */
	struct ls_log_tail_stats file; /* of the last reading */
	struct ls_spool *spool;
	const struct ls_source_step *steps;
	struct ls_worker_info who; /* rank -1, job "": not known yet */
	bool job_given, rank_given;
	bool resuming; /* the end of the file was not reached yet */
	bool reported; /* worker is good */
	struct ls_wire_worker worker;
	uint64_t next; /* step, or LS_INFERRED_NONE */
	uint64_t opened_ns, read_ns; /* first reading; the one before this */
	uint64_t seen_ns; /* reading that had the last step of this attempt; 0: none */
	unsigned taken; /* lines of this attempt, up to LS_STEP_LOG_FIRST_MAX */
	uint64_t prefix, prefix_ns; /* of the worker that is followed; when last seen */
	bool warned;
	struct ls_source_log_stats stats;
	size_t pending;
	struct ls_step_line line[LS_STEP_LOG_PENDING_MAX];
	uint64_t duration_ns[LS_STEP_LOG_PENDING_MAX];
	struct ls_record record[LS_STEPS_PER_ITEM];
};

/* --- records -------------------------------------------------------------- */

/* Is there a ring of this worker? Then its marks say more than the log. */
static bool
log_is_marked(const struct source_log *s)
{
	const struct ls_step_ring *r;

	for (size_t i = 0;
		s->steps != NULL && (r = ls_source_step_ring(s->steps, i)) != NULL;
		i++) {
		if (r->worker.info.rank == s->who.rank &&
			strcmp(r->worker.info.job, s->who.job) == 0)
			return true;
	}
	return false;
}

static void
log_make_record(const struct source_log *s, const struct ls_step_line *l,
	uint64_t duration_ns, uint64_t end_ns, struct ls_record *r)
{
	double seconds = (double)l->duration_ns * 1e-9;

	*r = (struct ls_record){ .step = l->step, .duration_ns = duration_ns };
	r->t_begin_ns = end_ns > duration_ns ? (int64_t)(end_ns - duration_ns) : 0;
	if (!isnan(l->tokens_rate) && s->who.chips > 0) {
		r->work_mask = 1u << LS_WORK_TOKENS;
		r->work[LS_WORK_TOKENS] = l->tokens_rate * seconds * s->who.chips;
	}
}

static void
log_push(struct source_log *s, size_t count)
{
	uint64_t before = s->stats.records;
	int rc = ls_inferred_push(s->spool, s->worker.ring_id, s->record, count,
		&s->next, &s->stats.records, &s->stats.lost);

	if (rc == 0)
		return;
	s->stats.refused += count - (s->stats.records - before);
	ls_log(LS_LOG_WARN, "log", "spool refused records (%s); they become a gap",
		ls_err_text(rc));
}

/* Time since the last step was seen, or 0 where that says nothing about the steps. */
static uint64_t
log_spacing(const struct source_log *s, uint64_t now_mono_ns)
{
	uint64_t t = s->seen_ns != 0 && !s->resuming ? now_mono_ns - s->seen_ns : 0;

	return t < LS_PHASE_MAX_NS ? t : 0;
}

/*
 * Durations of the lines from `from` on. Lines without one share what the others leave of
 * the spacing. Where the lines and the spacing contradict each other, the spacing is right.
 * False: a duration is not known.
 */
static bool
log_settle_durations(struct source_log *s, size_t from, uint64_t now_mono_ns,
	bool *ret_off)
{
	uint64_t spacing = log_spacing(s, now_mono_ns), told = 0, share = 0, off, each;
	size_t i, n = s->pending - from, silent = 0;

	for (i = from; i < s->pending; i++) {
		told += s->line[i].duration_ns; /* 4,096 x 30 days fit */
		silent += s->line[i].duration_ns == 0;
	}
	off = spacing > told ? spacing - told : told - spacing;
	*ret_off = spacing != 0 && silent == 0 &&
		off > now_mono_ns - s->read_ns + spacing / 5;
	if (silent > 0 && spacing > told)
		share = (spacing - told) / silent;
	else if (silent > 0 && silent < n)
		share = told / (n - silent);
	for (i = from; i < s->pending; i++) {
		each = s->line[i].duration_ns;
		if (each == 0)
			each = share;
		else if (*ret_off)
			each = (uint64_t)((double)spacing *
				((double)each / (double)told));
		s->duration_ns[i] = each;
	}
	return silent == 0 || share > 0;
}

/* Marks the part of a step that is no baseline. */
static void
log_mark(struct source_log *s, const struct ls_step_line *l, bool off,
	struct ls_record *r)
{
	bool first = s->taken < LS_STEP_LOG_FIRST_MAX;
	enum ls_phase phase = first && off ? LS_PHASE_COMPILE : LS_PHASE_OTHER;

	s->taken += first;
	if (!off && (l->duration_ns != 0 || l->stands_for_more))
		return;
	r->phase_mask = 1u << phase;
	r->phase_ns[phase] =
		r->duration_ns > l->duration_ns ? r->duration_ns - l->duration_ns : 0;
}

/* Pushes the lines from `from` on, laid end to end so that the last one ends now. */
static void
log_push_lines(struct source_log *s, size_t from, uint64_t now_mono_ns)
{
	uint64_t end_ns, later = 0;
	size_t i, n = 0;
	bool off;

	if (from == s->pending)
		return;
	if (!log_settle_durations(s, from, now_mono_ns, &off)) {
		s->stats.first += s->pending - from;
		s->seen_ns = now_mono_ns; /* the next ones are measured from here */
		return;
	}
	for (i = from; i < s->pending; i++)
		later += s->duration_ns[i];
	for (i = from; i < s->pending; i++) {
		later -= s->duration_ns[i];
		end_ns = now_mono_ns > later ? now_mono_ns - later : 0;
		log_make_record(s, &s->line[i], s->duration_ns[i], end_ns,
			&s->record[n]);
		log_mark(s, &s->line[i], off, &s->record[n++]);
		if (n == LS_STEPS_PER_ITEM || i + 1 == s->pending) {
			log_push(s, n);
			n = 0;
		}
	}
	s->seen_ns = now_mono_ns;
}

/* Makes the worker that is reported: the attempt of this number. */
static void
log_name_worker(struct source_log *s, uint32_t attempt, uint64_t now_mono_ns)
{
	char name[LS_PATH_MAX_BYTES + LS_JOB_NAME_MAX_BYTES + 32];

	(void)snprintf(name, sizeof(name), "%s\n%s\n%d", s->path, s->who.job,
		(int)s->who.rank);
	memset(&s->worker, 0, sizeof(s->worker));
	s->worker.info = s->who;
	s->worker.info.attempt = (int32_t)attempt;
	s->worker.created_mono_ns = now_mono_ns;
	ls_inferred_id(s->spool, LS_STEP_LOG, name, attempt, s->worker.ring_id);
}

static void
log_begin_attempt(struct source_log *s, uint64_t now_mono_ns)
{
	int rc = 0;

	if (s->next == LS_INFERRED_NONE)
		return;
	rc = ls_inferred_end(s->spool, s->worker.ring_id, s->next, now_mono_ns);
	if (rc != 0)
		ls_log(LS_LOG_WARN, "log",
			"spool refused the end of an attempt (%s); the attempt stays "
			"open",
			ls_err_text(rc));
	s->stats.attempts++;
	s->next = LS_INFERRED_NONE;
	s->seen_ns = 0;
	s->taken = 0;
	log_name_worker(s, (uint32_t)s->worker.info.attempt + 1, now_mono_ns);
}

/* Takes over what is pending. */
static void
log_flush(struct source_log *s, uint64_t now_mono_ns)
{
	size_t from = 0;

	if (s->pending == 0)
		return;
	if (log_is_marked(s)) {
		s->stats.marked += s->pending;
	} else {
		if (s->next != LS_INFERRED_NONE &&
			s->line[s->pending - 1].step + 1 < s->next)
			log_begin_attempt(s, now_mono_ns);
		while (from < s->pending && s->next != LS_INFERRED_NONE &&
			s->line[from].step < s->next)
			from++; /* after a restart: they were taken before it */
		log_push_lines(s, from, now_mono_ns);
		s->reported = s->next != LS_INFERRED_NONE;
	}
	s->pending = 0;
}

/* --- lines ---------------------------------------------------------------- */

/* Is the line of the worker that is followed? */
static bool
log_is_ours(struct source_log *s, const struct ls_step_line *l, uint64_t now_mono_ns)
{
	if (l->prefix_rank >= 0)
		return l->prefix_rank == s->who.rank;
	if (s->prefix == 0 || now_mono_ns - s->prefix_ns >= LS_STEP_LOG_UNKNOWN_NS)
		s->prefix = l->prefix; /* the first, or after it fell silent another */
	if (l->prefix == s->prefix)
		s->prefix_ns = now_mono_ns;
	return l->prefix == s->prefix;
}

/* The step before this line, in this attempt; LS_INFERRED_NONE: not known. */
static uint64_t
log_step_before(const struct source_log *s)
{
	if (s->pending > 0)
		return s->line[s->pending - 1].step;
	return s->next != LS_INFERRED_NONE && s->next > 0 ? s->next - 1
							  : LS_INFERRED_NONE;
}

/*
 * A line of a step. Within a reading steps rise; one that does not ends what came
 * before it: an attempt, or, when going on after a restart, lines that are older than
 * the attempt.
 */
static void
log_take_step(struct source_log *s, const struct ls_step_line *l, uint64_t now_mono_ns)
{
	const struct ls_step_line *last =
		s->pending > 0 ? &s->line[s->pending - 1] : NULL;

	if (last != NULL && l->step <= last->step) {
		if (s->resuming)
			s->pending = 0;
		else
			log_flush(s, now_mono_ns);
	}
	if (s->pending == LS_STEP_LOG_PENDING_MAX) {
		if (s->resuming) { /* the oldest goes, and is a gap */
			memmove(&s->line[0], &s->line[1],
				(s->pending - 1) * sizeof(s->line[0]));
			s->pending--;
		} else {
			log_flush(s, now_mono_ns);
		}
	}
	/* In one reading after another: a step that is not above those taken over is
	 * another attempt. */
	if (!s->resuming && s->pending == 0 && s->next != LS_INFERRED_NONE &&
		l->step < s->next && !log_is_marked(s))
		log_begin_attempt(s, now_mono_ns);
	s->line[s->pending++] = *l;
}

/* A line: the step, and those that it stands for. */
static void
log_take(struct source_log *s, const struct ls_step_line *l, uint64_t now_mono_ns)
{
	uint64_t before = log_step_before(s);
	struct ls_step_line one = *l;

	if (!log_is_ours(s, l, now_mono_ns)) {
		s->stats.others++;
		return;
	}
	if (l->step == before && !s->resuming) {
		s->stats.repeated++;
		return;
	}
	if (l->stands_for_more && before != LS_INFERRED_NONE && l->step > before &&
		l->step - before <= LS_STEP_LOG_STRIDE_MAX)
		one.step = before + 1;
	for (; one.step <= l->step; one.step++)
		log_take_step(s, &one, now_mono_ns);
}

/* --- the reading ---------------------------------------------------------- */

/*
 * Does the bar move, and is it the training's? While it stands still a trainer shows others,
 * also without a name: one for each evaluation. Other programs have such bars, too, so it is
 * followed from the first line on that the trainer writes.
 */
static bool
log_bar_moves(struct source_log *s, const struct ls_step_line *l)
{
	if (s->bar_step == s->bar) {
		s->bar = l->bar;
		s->bar_step = 0;
		s->bar_named = false;
	}
	if (l->bar != s->bar || l->step == s->bar_step)
		return false;
	s->bar_step = l->step;
	return s->bar_named;
}

/* On the disk thread: keeps the lines of steps. */
static void
log_each(void *arg, const char *text, size_t len)
{
	struct source_log *s = arg;
	struct ls_step_line line;
	size_t n =
		len < LS_STEP_LOG_SHOWN_MAX_BYTES ? len : LS_STEP_LOG_SHOWN_MAX_BYTES;

	if (!ls_step_line_parse(s->rules, text, len, &line)) {
		for (size_t i = 0; i < sizeof(log_unfit) / sizeof(log_unfit[0]); i++) {
			if (memmem(text, len, log_unfit[i].part,
				    strlen(log_unfit[i].part)) == NULL)
				continue;
			s->unfit++;
			s->unfit_why = log_unfit[i].why;
			s->bar_named |= log_unfit[i].bars;
		}
		if (s->unknown[0] == '\0')
			(void)ls_text_escape(s->unknown, sizeof(s->unknown), text, n);
		return;
	}
	if (line.bar != 0 && !log_bar_moves(s, &line))
		return;
	s->step_bytes = ls_log_tail_get_stats(s->tail)->bytes;
	if (s->found_count == LOG_LINES_MAX)
		s->dropped++;
	else
		s->found[s->found_count++] = line;
}

/* On the disk thread: the path may be on a file system that does not answer. */
static void
log_work(void *arg)
{
	struct source_log *s = arg;

	s->found_count = 0;
	s->at_end = ls_log_tail_read(s->tail);
	if (s->disk != NULL) /* it may have taken long */
		s->now_mono_ns = ls_clock_mono_ns();
}

/* What a log without any step holds. */
static void
log_no_step(const struct source_log *s, char *why, size_t size)
{
	if (s->unfit > 0)
		(void)snprintf(why, size, "%llu lines are %s",
			(unsigned long long)s->unfit, s->unfit_why);
	else if (s->stats.others > 0)
		(void)snprintf(why, size,
			"several workers write into this log: none of %llu steps is of rank %d",
			(unsigned long long)s->stats.others, (int)s->who.rank);
	else
		(void)snprintf(why, size, "no step in %llu lines read%s%s%s",
			(unsigned long long)s->file.lines,
			s->unknown[0] != '\0' ? "; the first: \"" : "", s->unknown,
			s->unknown[0] != '\0' ? "\"" : "");
}

static void
log_warn_once(struct source_log *s)
{
	char why[256];

	if (s->warned || s->stats.lines > s->stats.others ||
		(s->file.lines < LS_STEP_LOG_UNKNOWN_LINES &&
			s->now_mono_ns - s->opened_ns < LS_STEP_LOG_UNKNOWN_NS))
		return;
	s->warned = true;
	log_no_step(s, why, sizeof(why));
	ls_log(LS_LOG_WARN, "log", "%s: %s; reading goes on", s->path, why);
}

/* On the loop again. */
static void
log_done(void *arg)
{
	struct source_log *s = arg;

	s->file = *ls_log_tail_get_stats(s->tail);
	s->stats.lines += s->found_count;
	s->stats.refused += s->dropped;
	s->dropped = 0;
	for (size_t i = 0; i < s->found_count && s->spool != NULL; i++)
		log_take(s, &s->found[i], s->now_mono_ns);
	log_warn_once(s);
	if (!s->at_end && s->resuming)
		return; /* lines that are pending may still be of an older attempt */
	log_flush(s, s->now_mono_ns);
	s->resuming = false;
	s->read_ns = s->now_mono_ns;
}

/* When it is known who this is: where was it? */
static int
log_open(struct source_log *s, uint64_t now_mono_ns)
{
	const struct ls_spool_ring *c = NULL;

	s->next = LS_INFERRED_NONE;
	s->opened_ns = s->read_ns = now_mono_ns;
	if (s->spool != NULL) {
		log_name_worker(s, 0, now_mono_ns);
		c = ls_inferred_settle(s->spool, LS_STEP_LOG, s->worker.ring_id,
			now_mono_ns);
	}
	if (c != NULL)
		log_name_worker(s, ls_inferred_attempt(c->id) + (c->end_seq != 0),
			now_mono_ns);
	if (c != NULL && c->end_seq == 0) {
		s->next = c->next;
		s->resuming = s->reported = true;
	}
	s->tail = ls_log_tail_new(s->path, s->resuming ? LS_STEP_LOG_BACK_BYTES : 0,
		log_each, s);
	return s->tail != NULL ? 0 : -ENOMEM;
}

/* --- the source ----------------------------------------------------------- */

static void
log_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_log *s = self;

	(void)into;
	if (!(due & LS_CADENCE_FAST) || s->who.job[0] == '\0' || s->who.rank < 0 ||
		s->job.busy)
		return;
	if (s->tail == NULL && log_open(s, now_mono_ns) != 0)
		return; /* next time */
	s->now_mono_ns = now_mono_ns;
	ls_disk_run(s->disk, &s->job);
}

static void
log_tell(const void *self, struct ls_doctor *d)
{
	const struct source_log *s = self;
	const struct ls_log_tail_stats *t = &s->file;
	char why[256];
	uint64_t silent = s->job.busy ? 0 : t->bytes - s->step_bytes,
		 for_ns = ls_disk_stalled_ns(s->disk, ls_clock_mono_ns());

	if (s->job.busy && for_ns == 0) {
		ls_doctor_add(d, LS_DOCTOR_WARN, "log", s->path,
			"its file system has not answered yet", LOG_RESPONDS);
	} else if (s->job.busy) {
		ls_doctor_addf(d, LS_DOCTOR_WARN, "log", s->path, LOG_RESPONDS,
			"has not answered for %.1f s", (double)for_ns / 1e9);
	} else if (s->tail == NULL) {
		ls_doctor_addf(d, LS_DOCTOR_WARN, "log", s->path,
			"give --step-log-job and --step-log-rank",
			"not read: %s is not known",
			s->who.job[0] == '\0' ? "the job" : "the rank");
	} else if (!t->open) {
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "log", s->path,
			"check --step-log, and that the agent may read the file",
			"cannot be read: %s",
			t->error == -LS_ERANGE ? "not a regular file"
					       : ls_err_text(t->error));
	} else if (s->stats.lines == s->stats.others) {
		log_no_step(s, why, sizeof(why));
		ls_doctor_add(d, LS_DOCTOR_WARN, "log", s->path, why,
			s->unfit == 0 && s->stats.others > 0
				? "set --step-log-rank to a worker that the log names"
				: LOG_FORMATS);
	} else if (s->stats.repeated >= LS_STEP_LOG_REPEATS_MIN) {
		ls_doctor_addf(d, LS_DOCTOR_WARN, "log", s->path,
			"give each worker a log of its own, or a prefix for its lines",
			"several workers write into this log: %llu lines repeat a step; %llu "
			"steps taken",
			(unsigned long long)s->stats.repeated,
			(unsigned long long)s->stats.records);
	} else if (silent >= LS_STEP_LOG_UNKNOWN_BYTES) {
		ls_doctor_addf(d, LS_DOCTOR_WARN, "log", s->path, LOG_FORMATS,
			"no step line seen in %llu MB",
			(unsigned long long)(silent / 1000000));
	} else if (t->skipped > 0) {
		ls_doctor_addf(d, LS_DOCTOR_WARN, "log", s->path,
			"log less in the job, or mark the steps in the job instead",
			"%llu steps taken, %llu missing; %llu MB were skipped to catch up",
			(unsigned long long)s->stats.records,
			(unsigned long long)s->stats.lost,
			(unsigned long long)(t->skipped / 1000000));
	} else if (s->stats.marked > 0 && log_is_marked(s)) {
		ls_doctor_add(d, LS_DOCTOR_OK, "log", s->path,
			"not used: the job sends marks", "");
	} else {
		ls_doctor_addf(d, LS_DOCTOR_OK, "log", s->path, "",
			"%llu steps taken, %llu missing",
			(unsigned long long)s->stats.records,
			(unsigned long long)s->stats.lost);
	}
}

static void
log_free(void *self)
{
	struct source_log *s = self;

	ls_log_tail_free(s->tail);
	ls_step_rules_free(s->rules);
	free(s);
}

int
ls_source_log_new(const struct ls_source_log_options *options,
	struct ls_source *ret_source)
{
	struct source_log *s = calloc(1, sizeof(*s));

	char why[128];

	if (s == NULL)
		return -ENOMEM;
	if (ls_step_rules_new(options->pattern != NULL ? options->pattern : "",
		    &s->rules, why, sizeof(why)) != 0 ||
		ls_text_copy(s->path, sizeof(s->path), options->path) != 0 ||
		ls_text_copy(s->who.job, sizeof(s->who.job), options->job) != 0) {
		ls_step_rules_free(s->rules);
		free(s);
		return -ENOMEM;
	}
	s->disk = options->disk;
	s->job = (struct ls_disk_job){ .work = log_work, .done = log_done, .arg = s };
	s->spool = options->spool;
	s->steps = options->steps;
	s->who.rank = options->rank;
	s->who.step_source = LS_STEP_LOG;
	s->who.step_confidence = LS_STEP_LOG_CONFIDENCE;
	s->job_given = options->job[0] != '\0';
	s->rank_given = options->rank >= 0;
	s->next = LS_INFERRED_NONE;
	*ret_source =
		(struct ls_source){ "log", s, NULL, log_read, log_tell, log_free };
	return 0;
}

void
ls_source_log_who(const struct ls_source *source, const char *job, const char *slice,
	int32_t rank, int32_t chips)
{
	struct source_log *s = source->self;

	if (chips > 0 && s->who.chips == 0)
		s->who.chips = s->worker.info.chips = chips;
	if (s->tail != NULL)
		return; /* the worker is known and has a ring id */
	if (!s->job_given && !ls_text_is_name(job, strlen(job), sizeof(s->who.job) - 1))
		return;
	if (!s->job_given)
		ls_ignore(ls_text_copy(s->who.job, sizeof(s->who.job),
			job)); /* it fits */
	if (!s->rank_given)
		s->who.rank = rank;
	if (slice[0] != '\0')
		ls_ignore(ls_text_copy(s->who.slice, sizeof(s->who.slice),
			slice)); /* else none */
}

const struct ls_wire_worker *
ls_source_log_worker(const struct ls_source *source)
{
	const struct source_log *s = source->self;

	return s->reported ? &s->worker : NULL;
}

const struct ls_source_log_stats *
ls_source_log_get_stats(const struct ls_source *source)
{
	const struct source_log *s = source->self;

	return &s->stats;
}
