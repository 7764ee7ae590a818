/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/reference.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"

#define REFERENCE_ORDER 0x0102030405060708u

struct ls_reference {
	uint64_t key; /* of a job and its attempt, or of a worker of it */
	double value[LS_REFERENCE_VALUES];
};

/* Where the values of a worker are. */
enum reference_at {
#define LS_REFERENCE_WORKER(member, type, most) REFERENCE_##member,
#define LS_REFERENCE_SCALES(row) REFERENCE_##row,
#include "collector/engine/detect/reference.def"
	REFERENCE_CARRIED,
	REFERENCE_NAMED,
	REFERENCE_WORKER_COUNT
};
_Static_assert(REFERENCE_WORKER_COUNT <= LS_REFERENCE_VALUES, "LS_REFERENCE_VALUES");

/* Before the entries; in the byte order of this machine. */
struct reference_head {
	uint64_t order, version;
	uint64_t sum; /* hash of all that follows */
	int64_t t_us; /* when it was kept */
	uint64_t count; /* entries */
};

/* Of bytes of this length, a head at least. */
static uint64_t
reference_sum(const void *bytes, size_t len)
{
	const size_t from = offsetof(struct reference_head, t_us);

	return ls_hash(LS_HASH_START, (const char *)bytes + from, len - from);
}

/* Of another engine or another table it is another number. */
static uint64_t
reference_version(void)
{
	static const char text[] = LS_ENGINE_VERSION
#define LS_REFERENCE_JOB(member, type, most) " " #type " " #member
#define LS_REFERENCE_WORKER(member, type, most) ", " #type " " #member
#define LS_REFERENCE_SCALES(row) "; " #row
#include "collector/engine/detect/reference.def"
		;

	return ls_hash(LS_HASH_START, text, sizeof(text));
}

static uint64_t
reference_job_key(const struct ls_job *j)
{
	uint64_t key = ls_hash(LS_HASH_START, j->name, strlen(j->name) + 1);

	return ls_hash(key, &j->attempt, sizeof(j->attempt));
}

static uint64_t
reference_worker_key(const struct ls_job *j, const struct ls_engine_worker *w)
{
	uint64_t key =
		ls_hash(reference_job_key(j), &w->info.rank, sizeof(w->info.rank));

	return ls_hash(key, w->info.host, strlen(w->info.host));
}

/* Whether a stored value can become what it was: a damaged file says anything. */
static bool
reference_fits(double value, double most)
{
	return isinf(most) || (value >= 0 && value <= most && value == floor(value));
}

static bool
reference_job_fits(const double *v)
{
	bool fits = true;

#define LS_REFERENCE_JOB(member, type, most) fits = reference_fits(*v++, most) && fits;
#include "collector/engine/detect/reference.def"
	return fits;
}

static bool
reference_worker_fits(const double *v)
{
	bool fits = true;

#define LS_REFERENCE_WORKER(member, type, most) \
	fits = reference_fits(v[REFERENCE_##member], most) && fits;
#include "collector/engine/detect/reference.def"
	return fits && reference_fits(v[REFERENCE_NAMED], UINT16_MAX);
}

static void
reference_put_job(const struct ls_job *j, struct ls_reference *r)
{
	double *v = r->value;

	r->key = reference_job_key(j);
#define LS_REFERENCE_JOB(member, type, most) *v++ = (double)j->member;
#include "collector/engine/detect/reference.def"
}

static void
reference_put_worker(const struct ls_job *j, const struct ls_engine_worker *w,
	struct ls_reference *r)
{
	const struct ls_detect_worker *of = &j->detect.worker[w->slot];
	double *v = r->value;

	r->key = reference_worker_key(j, w);
#define LS_REFERENCE_WORKER(member, type, most) \
	v[REFERENCE_##member] = (double)of->member;
#define LS_REFERENCE_SCALES(row) \
	v[REFERENCE_##row] = ls_scales_said(&j->scales, row, w->slot);
#include "collector/engine/detect/reference.def"
	v[REFERENCE_CARRIED] = ls_scales_carried(&j->scales, w->slot);
	v[REFERENCE_NAMED] = j->scales.named[w->slot];
}

int
ls_engine_reference(const struct ls_engine *e, int64_t now_us, void **ret_bytes,
	size_t *ret_len)
{
	struct reference_head *h = calloc(1,
		sizeof(*h) +
			(e->job_count + e->worker_count) * sizeof(struct ls_reference));
	struct ls_reference *r;

	if (h == NULL)
		return -ENOMEM;
	*h = (struct reference_head){
		.order = REFERENCE_ORDER, .version = reference_version(), .t_us = now_us
	};
	r = (struct ls_reference *)(h + 1);
	for (size_t i = 0; i < e->job_count; i++) {
		const struct ls_job *j = &e->jobs[i];

		if (!j->detect.ready || j->replica.on || j->attempt < 0)
			continue; /* replicas are compared at equal load, and learn soon */
		reference_put_job(j, &r[h->count++]);
		for (size_t k = 0; k < j->count; k++)
			if (j->detect.worker[k].warm == LS_DETECT_WARM)
				reference_put_worker(j, &e->workers[j->slots[k]],
					&r[h->count++]);
	}
	if (h->count == 0) {
		free(h);
		return -LS_EABSENT;
	}
	*ret_len = sizeof(*h) + h->count * sizeof(*r);
	h->sum = reference_sum(h, *ret_len);
	*ret_bytes = h;
	return 0;
}

static int
reference_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct ls_reference *)a)->key;
	uint64_t y = ((const struct ls_reference *)b)->key;

	return (x > y) - (x < y);
}

int
ls_engine_reference_load(struct ls_engine *e, const void *bytes, size_t len,
	int64_t now_us)
{
	struct reference_head h;
	struct ls_reference *r;

	if (len < sizeof(h))
		return -LS_EPARSE;
	memcpy(&h, bytes, sizeof(h));
	if (h.order != REFERENCE_ORDER || h.version != reference_version())
		return -LS_EVERSION;
	if (h.sum != reference_sum(bytes, len) ||
		h.count != (len - sizeof(h)) / sizeof(*r) ||
		(len - sizeof(h)) % sizeof(*r) != 0)
		return -LS_EPARSE;
	if (h.t_us > now_us)
		return -LS_ERANGE;
	r = calloc(h.count + 1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	memcpy(r, (const char *)bytes + sizeof(h), len - sizeof(h));
	qsort(r, h.count, sizeof(*r), reference_compare);
	free(e->reference);
	e->reference = r;
	e->reference_count = h.count;
	e->reference_us = h.t_us;
	return 0;
}

/* Nothing of a run that began after it was kept; an attempt has another key. */
static const double *
reference_find(const struct ls_engine *e, const struct ls_job *j, uint64_t key)
{
	const struct ls_reference *r =
		e->reference_count == 0 || (j->again && j->run_us > e->reference_us)
		? NULL
		: bsearch(&(struct ls_reference){ .key = key }, e->reference,
			  e->reference_count, sizeof(*r), reference_compare);

	return r == NULL ? NULL : r->value;
}

/* Of what compares: the job, the role, the residual and the unit. */
static uint64_t
reference_past_key(const struct ls_job *j, const struct ls_engine_worker *w)
{
	uint32_t measured = 2 * j->scales.unit_data + j->scales.late;
	uint64_t key = ls_hash(LS_HASH_START, j->name, strlen(j->name) + 1);

	key = ls_hash(key, w->info.role, strlen(w->info.role) + 1);
	return ls_hash(key, &measured, sizeof(measured));
}

/* Where this key is, or the oldest one. */
static size_t
reference_past_at(const struct ls_engine_host *h, uint64_t key)
{
	size_t at = 0;

	while (at < LS_HOST_PAST - 1 && h->past[at].key != key)
		at++;
	return at;
}

void
ls_reference_keep(struct ls_engine *e, const struct ls_job *j)
{
	/* nothing is known of the processes that may have come since all ended */
	for (size_t i = 0; i < j->count && j->detect.judged > 0; i++) {
		const struct ls_engine_worker *w = &e->workers[j->slots[i]];
		bool named = j->scales.named[i] != 0;
		struct ls_past is = { .key = reference_past_key(j, w),
			.run_us = j->run_us,
			.usual = (float)ls_scales_usual(&j->scales, i),
			.excess = named
				? (float)ls_scales_said(&j->scales, LS_SCALES_EXCESS, i)
				: 0,
			.below =
				(float)ls_scales_said(&j->scales, LS_SCALES_BELOW, i) };
		struct ls_past *past = e->hosts[w->host].past;
		size_t at = reference_past_at(&e->hosts[w->host], is.key);

		if (isnan(is.usual))
			continue; /* earlier attempts know better */
		if (past[at].key == is.key && past[at].run_us == is.run_us) {
			is.usual = fmaxf(is.usual, past[at].usual);
			is.excess = 0;
		}
		memmove(past + 1, past, at * sizeof(*past));
		*past = is;
	}
}

void
ls_reference_worker(const struct ls_engine *e, struct ls_job *j,
	const struct ls_engine_worker *w)
{
	const double *v = reference_find(e, j, reference_worker_key(j, w));
	struct ls_detect_worker *of = &j->detect.worker[w->slot];
	uint64_t key = reference_past_key(j, w);
	const struct ls_engine_host *h = &e->hosts[w->host];
	const struct ls_past *past = &h->past[reference_past_at(h, key)];
	bool fits = v != NULL && reference_worker_fits(v);

	ls_scales_carry(&j->scales, w->slot,
		fits			   ? v[REFERENCE_CARRIED]
			: past->key == key ? (double)past->usual
					   : NAN);
	if (past->key == key && past->run_us != j->run_us && past->excess > 0)
		ls_scales_restore(&j->scales, w->slot, LS_SCALES_BORN,
			(double)past->excess, (double)past->usual, (double)past->below);
	if (!fits || !j->detect.ready)
		return;
#define LS_REFERENCE_WORKER(member, type, most) \
	of->member = (type)v[REFERENCE_##member];
#include "collector/engine/detect/reference.def"
	of->warm = LS_DETECT_WARM;
}

void
ls_reference_job(const struct ls_engine *e, struct ls_job *j, uint64_t step)
{
	const double *v = reference_find(e, j, reference_job_key(j));

	if (v == NULL || !reference_job_fits(v) || step <= (uint64_t)v[0])
		return;
#define LS_REFERENCE_JOB(member, type, most) j->member = (type)*v++;
#include "collector/engine/detect/reference.def"
	j->detect.ready = j->names_wait = true;
	j->scales.late = j->detect.mode == LS_MODE_LATENESS;
	for (size_t i = 0; i < j->count; i++)
		ls_reference_worker(e, j, &e->workers[j->slots[i]]);
}

void
ls_reference_names(const struct ls_engine *e, struct ls_job *j, uint64_t step)
{
	if (step <= j->detect.taught_step)
		return;
	j->names_wait = false;
	for (size_t i = 0; i < j->count; i++) {
		const double *v = reference_find(e, j,
			reference_worker_key(j, &e->workers[j->slots[i]]));

		if (v != NULL && reference_worker_fits(v) && v[REFERENCE_NAMED] > 0 &&
			v[REFERENCE_LS_SCALES_EXCESS] > 0 && j->scales.named[i] == 0)
			ls_scales_restore(&j->scales, i, (unsigned)v[REFERENCE_NAMED],
				v[REFERENCE_LS_SCALES_EXCESS],
				v[REFERENCE_LS_SCALES_USUAL],
				v[REFERENCE_LS_SCALES_BELOW]);
	}
}
