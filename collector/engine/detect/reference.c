/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/reference.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/mem.h"

#define REFERENCE_ORDER 0x0102030405060708u

struct ls_reference {
	/* of a job and its attempt, or of a worker of it: even; of a host in a role, whatever attempt: odd */
	uint64_t key;
	int64_t t_us; /* when it was kept */
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

/* Where those of a host, and of how its job is measured, are. */
enum reference_past {
	REFERENCE_PAST_USUAL,
	REFERENCE_PAST_EXCESS,
	REFERENCE_PAST_BELOW
};
enum reference_shape { REFERENCE_SHAPE_UNIT, REFERENCE_SHAPE_LATE };

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

	return ls_hash(key, &j->attempt, sizeof(j->attempt)) & ~1ull;
}

static uint64_t
reference_worker_key(const struct ls_job *j, const struct ls_engine_worker *w)
{
	uint64_t key =
		ls_hash(reference_job_key(j), &w->info.rank, sizeof(w->info.rank));

	return ls_hash(key, w->info.host, strlen(w->info.host)) & ~1ull;
}

static uint64_t
reference_shape_key(const struct ls_job *j)
{
	return ls_hash(LS_HASH_START, j->name, strlen(j->name));
}

static uint64_t
reference_host_key(const struct ls_engine_host *h, uint64_t past_key)
{
	return ls_hash(past_key, h->name, strlen(h->name)) | 1;
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

static int
reference_compare_key(const void *a, const void *b)
{
	const struct ls_reference *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* By key, the newest first. */
static int
reference_compare(const void *a, const void *b)
{
	const struct ls_reference *x = a, *y = b;
	int by_key = reference_compare_key(a, b);

	return by_key != 0 ? by_key : (x->t_us < y->t_us) - (x->t_us > y->t_us);
}

static const struct ls_reference *
reference_get(const struct ls_engine *e, uint64_t key)
{
	return e->reference_count == 0
		? NULL
		: bsearch(&(struct ls_reference){ .key = key }, e->reference,
			  e->reference_count, sizeof(*e->reference),
			  reference_compare_key);
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

/* What the present attempt teaches of a worker's host; usual NaN: nothing. */
static struct ls_past
reference_taught(const struct ls_job *j, const struct ls_engine_worker *w)
{
	const struct ls_scales *s = &j->scales;

	return (struct ls_past){ .key = reference_past_key(j, w),
		.run_us = j->run_us,
		.usual = (float)ls_scales_usual(s, w->slot),
		.excess = s->named[w->slot] != 0
			? (float)ls_scales_said(s, LS_SCALES_EXCESS, w->slot)
			: 0,
		.below = (float)ls_scales_said(s, LS_SCALES_BELOW, w->slot) };
}

/* What was usual of a host. */
static void
reference_put_past(const struct ls_engine_host *h, const struct ls_past *past,
	int64_t t_us, struct ls_reference *r)
{
	*r = (struct ls_reference){ .key = reference_host_key(h, past->key),
		.t_us = t_us,
		.value = { [REFERENCE_PAST_USUAL] = (double)past->usual,
			[REFERENCE_PAST_EXCESS] = (double)past->excess,
			[REFERENCE_PAST_BELOW] = (double)past->below } };
}

/* A job, its workers, and what their hosts would keep if it ended now. */
static size_t
reference_put_all(const struct ls_engine *e, const struct ls_job *j,
	struct ls_reference *r)
{
	size_t n = 0;

	reference_put_job(j, &r[n++]);
	LS_WORKERS (e, j, w) {
		struct ls_past past = reference_taught(j, w);

		if (j->detect.worker[w->slot].warm == LS_DETECT_WARM)
			reference_put_worker(j, w, &r[n++]);
		if (!isnan(past.usual))
			reference_put_past(&e->hosts[w->host], &past, 0, &r[n++]);
	}
	return n;
}

int
ls_engine_reference(const struct ls_engine *e, int64_t now_us, void **ret_bytes,
	size_t *ret_len)
{
	size_t most = 2 * e->job_count + 2 * e->worker_count +
		LS_HOST_PAST * e->host_count + e->reference_count;
	struct reference_head *h =
		calloc(1, sizeof(*h) + most * sizeof(struct ls_reference));
	struct ls_reference *r;
	size_t n = 0;

	if (h == NULL)
		return -ENOMEM;
	r = (struct ls_reference *)(h + 1);
	LS_JOBS (e, j) {
		if (j->scales.unit_data > 0)
			r[n++] = (struct ls_reference){ .key = reference_shape_key(j),
				.value = { [REFERENCE_SHAPE_UNIT] = j->scales.unit_data,
					[REFERENCE_SHAPE_LATE] = j->scales.late } };
		/* replicas are compared at equal load, and learn soon */
		if (j->detect.ready && !j->replica.on && j->attempt >= 0)
			n += reference_put_all(e, j, &r[n]);
	}
	LS_EACH (struct ls_reference, one, r, n)
		one->t_us = now_us;
	/* older: what hosts know of attempts before, and of whom this life of the collector has not heard */
	LS_EACH (const struct ls_engine_host, host, e->hosts, e->host_count)
		LS_EACH (const struct ls_past, past, host->past, LS_HOST_PAST)
			if (past->key != 0)
				reference_put_past(host, past, now_us - 1, &r[n++]);
	LS_EACH (const struct ls_reference, old, e->reference, e->reference_count)
		if (now_us - old->t_us < LS_ENGINE_US(LS_REOPEN_S))
			r[n++] = *old;
	if (n == 0) {
		free(h);
		return -LS_EABSENT;
	}
	*h = (struct reference_head){ .order = REFERENCE_ORDER,
		.version = reference_version(),
		.t_us = now_us,
		.count = n };
	*ret_len = sizeof(*h) + n * sizeof(*r);
	h->sum = reference_sum(h, *ret_len);
	*ret_bytes = h;
	return 0;
}

/* Sorts by key and keeps the newest of each. Workers of one host in a role become one entry: the greatest usual, and none is named. */
static size_t
reference_sort(struct ls_reference *r, size_t n)
{
	size_t kept = 0;

	qsort(r, n, sizeof(*r), reference_compare);
	LS_EACH (const struct ls_reference, one, r, n) {
		struct ls_reference *last = kept > 0 ? &r[kept - 1] : NULL;

		if (one->t_us < 0)
			continue; /* no time */
		if (last == NULL || last->key != one->key) {
			r[kept++] = *one;
		} else if (last->t_us == one->t_us && (last->key & 1) != 0) {
			last->value[REFERENCE_PAST_USUAL] =
				fmax(last->value[REFERENCE_PAST_USUAL],
					one->value[REFERENCE_PAST_USUAL]);
			last->value[REFERENCE_PAST_EXCESS] = 0;
		}
	}
	return kept;
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
	free(e->reference);
	e->reference = r;
	e->reference_count = reference_sort(r, h.count);
	return 0;
}

/* Nothing of a run that began after it was kept; an attempt has another key. */
static const double *
reference_find(const struct ls_engine *e, const struct ls_job *j, uint64_t key)
{
	const struct ls_reference *r = reference_get(e, key);

	return r == NULL || (j->again && j->run_us > r->t_us) ? NULL : r->value;
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

/* What was usual of a host in earlier attempts, of this life or the one before; usual NaN: nothing is known. */
static struct ls_past
reference_past(const struct ls_engine *e, const struct ls_engine_host *h, uint64_t key)
{
	const struct ls_past *past = &h->past[reference_past_at(h, key)];
	const struct ls_reference *r = reference_get(e, reference_host_key(h, key));

	if (past->key == key)
		return *past;
	if (r == NULL)
		return (struct ls_past){ .usual = NAN };
	return (struct ls_past){ .usual = (float)r->value[REFERENCE_PAST_USUAL],
		.excess = (float)r->value[REFERENCE_PAST_EXCESS],
		.below = (float)r->value[REFERENCE_PAST_BELOW] };
}

void
ls_reference_shape(const struct ls_engine *e, struct ls_job *j)
{
	const struct ls_reference *r = reference_get(e, reference_shape_key(j));

	if (r == NULL || !reference_fits(r->value[REFERENCE_SHAPE_UNIT], UINT32_MAX))
		return;
	j->scales.unit_data = (uint32_t)r->value[REFERENCE_SHAPE_UNIT];
	j->scales.late = r->value[REFERENCE_SHAPE_LATE] > 0;
}

void
ls_reference_keep(struct ls_engine *e, const struct ls_job *j)
{
	/* nothing is known of the processes that may have come since all ended */
	if (j->detect.judged == 0)
		return;
	LS_WORKERS (e, j, w) {
		struct ls_past is = reference_taught(j, w),
			       *past = e->hosts[w->host].past;
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
	struct ls_past past = reference_past(e, &e->hosts[w->host], key);
	bool fits = v != NULL && reference_worker_fits(v);

	ls_scales_carry(&j->scales, w->slot,
		fits ? v[REFERENCE_CARRIED] : (double)past.usual);
	if ((!fits || past.run_us != 0) && past.run_us != j->run_us && past.excess > 0)
		ls_scales_restore(&j->scales, w->slot, LS_SCALES_BORN,
			(double)past.excess, (double)past.usual, (double)past.below);
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
	LS_WORKERS (e, j, w)
		ls_reference_worker(e, j, w);
}

void
ls_reference_names(const struct ls_engine *e, struct ls_job *j, uint64_t step)
{
	if (step <= j->detect.taught_step)
		return;
	j->names_wait = false;
	LS_WORKERS (e, j, w) {
		const double *v = reference_find(e, j, reference_worker_key(j, w));

		if (v != NULL && reference_worker_fits(v) && v[REFERENCE_NAMED] > 0 &&
			v[REFERENCE_LS_SCALES_EXCESS] > 0 &&
			j->scales.named[w->slot] == 0)
			ls_scales_restore(&j->scales, w->slot,
				(unsigned)v[REFERENCE_NAMED],
				v[REFERENCE_LS_SCALES_EXCESS],
				v[REFERENCE_LS_SCALES_USUAL],
				v[REFERENCE_LS_SCALES_BELOW]);
	}
}
