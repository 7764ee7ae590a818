/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_progress.h"

#include <string.h>

/* so that two looks far apart are no standstill */
#define PROGRESS_STILL_LOOKS 5u
#define PROGRESS_LAUNCHES_MAX 1000000 /* between two looks: more is another numbering */
#define PROGRESS_CERTAIN 2.0 /* launches at which the count is half believed */

/* The place of a core, made if it is new; NULL if there is no room (status holds no
 * more, several may). */
static struct ls_tpu_progress_core *
progress_core(struct ls_tpu_progress *p, int32_t id, bool *ret_is_new)
{
	size_t i = p->count;

	while (i > 0 && p->core[i - 1].now.core_id > id)
		i--;
	*ret_is_new = i == 0 || p->core[i - 1].now.core_id != id;
	if (!*ret_is_new)
		return &p->core[i - 1];
	if (p->count == LS_TPU_CORES_MAX)
		return NULL;
	memmove(&p->core[i + 1], &p->core[i], (p->count - i) * sizeof(p->core[0]));
	memset(&p->core[i], 0, sizeof(p->core[i]));
	p->count++;
	return &p->core[i];
}

/* Launches between two looks at a core; a number that fell, or one that was not told,
 * counts none. */
static uint32_t
progress_launches(const struct ls_tpu_core *was, const struct ls_tpu_core *is,
	bool *ret_reset)
{
	int64_t diff = (int64_t)is->launch_id - was->launch_id;

	*ret_reset = false;
	if (!was->has_launch || !is->has_launch)
		return 0;
	if (diff < 0 || diff > PROGRESS_LAUNCHES_MAX) {
		*ret_reset = true;
		return 0;
	}
	return (uint32_t)diff;
}

/* The core whose launches count as steps: the first TensorCore, or the first one of
 * all. */
static const struct ls_tpu_core *
progress_reference(const struct ls_tpu_status *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->core[i].type == 1)
			return &s->core[i];
	}
	return s->count > 0 ? &s->core[0] : NULL;
}

static size_t
progress_count(const struct ls_tpu_progress *p, uint64_t program)
{
	size_t i, n = 0;

	for (i = 0; i < p->looks; i++)
		n += p->look[i].program == program;
	return n;
}

/* The program of most looks; of two alike the one that it was. */
static void
progress_elect(struct ls_tpu_progress *p, uint64_t candidate)
{
	if (candidate != 0 && candidate != p->dominant &&
		(p->dominant == 0 ||
			progress_count(p, candidate) > progress_count(p, p->dominant)))
		p->dominant = candidate;
}

static void
progress_look(struct ls_tpu_progress *p, const struct ls_tpu_core *was,
	const struct ls_tpu_core *is, uint64_t now_ns)
{
	struct ls_tpu_look l = { .t_ns = now_ns, .program = is->program };

	if (was != NULL) {
		l.launches = progress_launches(was, is, &l.reset);
		l.counts = !l.reset && is->program != 0 && was->program == is->program;
	}
	p->look[p->next_look] = l;
	p->next_look = (p->next_look + 1) % LS_TPU_LOOKS_MAX;
	if (p->looks < LS_TPU_LOOKS_MAX)
		p->looks++;
	progress_elect(p, is->program);
	if (l.counts && is->program == p->dominant)
		p->steps += l.launches;
}

static void
progress_take(struct ls_tpu_progress_core *c, const struct ls_tpu_core *is, bool is_new,
	uint64_t now_ns)
{
	bool reset = false;

	if (is_new || is->motion != c->now.motion) {
		c->t_moved_ns = now_ns;
		c->still_looks = 0;
	} else if (c->still_looks < UINT32_MAX) {
		c->still_looks++;
	}
	if (!is_new)
		c->launches += progress_launches(&c->now, is, &reset);
	c->resets += reset;
	c->now = *is;
	c->t_seen_ns = now_ns;
}

/* True if a core of the same type moved while this one stood still. */
static bool
progress_others_move(const struct ls_tpu_progress *p,
	const struct ls_tpu_progress_core *c, uint64_t now_ns)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct ls_tpu_progress_core *o = &p->core[i];

		if (o != c && o->now.type == c->now.type &&
			o->t_moved_ns > c->t_moved_ns &&
			now_ns - o->t_moved_ns < LS_TPU_STALL_NS)
			return true;
	}
	return false;
}

static void
progress_judge(struct ls_tpu_progress *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->count; i++) {
		struct ls_tpu_progress_core *c = &p->core[i];
		bool has_work = c->now.program != 0 || c->now.queued > 0;

		c->stalled = has_work && c->still_looks >= PROGRESS_STILL_LOOKS &&
			c->t_seen_ns - c->t_moved_ns >= LS_TPU_STALL_NS &&
			(c->now.queued > 0 || progress_others_move(p, c, now_ns));
	}
}

/* True if a port with a lower core has told it lately: then that one's launches count
 * as steps. */
static bool
progress_is_led(const struct ls_tpu_progress *p, const struct ls_tpu_status *s,
	uint64_t now_ns)
{
	return s->count > 0 && p->count > 0 &&
		p->core[0].now.core_id < s->core[0].core_id &&
		now_ns - p->core[0].t_seen_ns < LS_TPU_STALL_NS;
}

/* True if another port has lately reported one of these cores. */
static bool
progress_is_foreign(const struct ls_tpu_progress *p, const struct ls_tpu_status *s,
	uint64_t now_ns)
{
	size_t i, k;

	for (i = 0, k = 0; i < s->count && k < p->count;) { /* both by core id */
		const struct ls_tpu_progress_core *c = &p->core[k];

		if (c->now.core_id == s->core[i].core_id &&
			c->now.source != s->core[i].source &&
			now_ns - c->t_seen_ns < LS_TPU_STALL_NS)
			return true;
		if (c->now.core_id < s->core[i].core_id)
			k++;
		else
			i++;
	}
	return false;
}

void
ls_tpu_progress_feed(struct ls_tpu_progress *p, const struct ls_tpu_status *status,
	uint64_t now_ns)
{
	const struct ls_tpu_core *reference =
		progress_is_led(p, status, now_ns) ? NULL : progress_reference(status);
	struct ls_tpu_progress_core *c;
	bool is_new;

	if (progress_is_foreign(p, status, now_ns)) {
		p->foreign++;
		return;
	}
	for (size_t i = 0; i < status->count; i++) {
		const struct ls_tpu_core *is = &status->core[i];

		c = progress_core(p, is->core_id, &is_new);
		if (c == NULL)
			continue; /* more cores than a host has */
		if (is == reference)
			progress_look(p, is_new ? NULL : &c->now, is, now_ns);
		progress_take(c, is, is_new, now_ns);
	}
	progress_judge(p, now_ns);
}

int
ls_tpu_progress_steps(const struct ls_tpu_progress *p, uint64_t now_ns,
	struct ls_tpu_steps *ret_steps)
{
	size_t start = p->looks < LS_TPU_LOOKS_MAX ? 0 : p->next_look;
	size_t i, looks = 0, dominant = 0, gaps = 0, resets = 0;
	uint64_t t_before = 0, ns = 0, launches = 0;
	double step_s, look_s;

	for (i = 0; i < p->looks; i++) {
		const struct ls_tpu_look *l = &p->look[(start + i) % LS_TPU_LOOKS_MAX];

		if (now_ns - l->t_ns > LS_TPU_STEPS_WINDOW_NS)
			continue;
		looks++;
		dominant += l->program == p->dominant;
		resets += l->reset;
		if (l->counts && l->program == p->dominant && t_before != 0) {
			ns += l->t_ns - t_before;
			launches += l->launches;
			gaps++;
		}
		t_before = l->t_ns;
	}
	if (p->dominant == 0 || launches == 0 || gaps == 0)
		return -LS_EABSENT;
	step_s = (double)ns / (double)launches;
	look_s = (double)ns / (double)gaps;
	ret_steps->steps = p->steps;
	ret_steps->step_ns = ns / launches;
	ret_steps->confidence = (double)dominant / (double)looks *
		((double)launches / ((double)launches + PROGRESS_CERTAIN)) *
		(step_s / (step_s + look_s)) / (1.0 + (double)resets);
	return 0;
}
