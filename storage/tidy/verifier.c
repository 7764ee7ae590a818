/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/verifier.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "proto/base/clock.h"
#include "proto/limits.h"
#include "storage/db/days.h"
#include "storage/db/db.h"

struct ls_verifier {
	ls_write_push_fn *push;
	void *arg;
	uint64_t not_before_ns;
	atomic_bool suspect, stop;
	const char *dir;
};

struct ls_verifier *
ls_verifier_new(const char *dir, ls_write_push_fn *push, void *arg)
{
	struct ls_verifier *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->push = push;
	v->arg = arg;
	v->dir = dir;
	return v;
}

void
ls_verifier_free(struct ls_verifier *v)
{
	free(v);
}

static int
verifier_check(struct ls_verifier *v, int32_t day)
{
	sqlite3 *db = NULL;
	int rc = ls_db_open_day(v->dir, day, LS_DB_READ, &db);

	if (rc == 0)
		rc = ls_db_check_until(db, &v->stop);
	ls_db_close(db);
	return rc;
}

int
ls_verifier_step(struct ls_verifier *v, uint64_t now_ns)
{
	struct ls_days days;
	int rc;

	if (now_ns < v->not_before_ns || !atomic_exchange(&v->suspect, false))
		return 0;
	v->not_before_ns = now_ns + LS_VERIFY_AGAIN_NS;
	rc = ls_days_newest(v->dir, &days);
	while (rc == 0 && days.count > 0 && !v->stop) {
		int32_t day = days.day[--days.count];

		/* A day that cannot be read for another reason is not damaged. */
		if (verifier_check(v, day) == -LS_ECORRUPT)
			rc = ls_write_push_day(LS_WRITE_ASIDE, day, v->push, v->arg);
	}
	return rc;
}

int
ls_verifier_turn(void *arg, bool *ret_more)
{
	*ret_more = false;
	return ls_verifier_step(arg, ls_clock_mono_ns());
}

void
ls_verifier_suspect(struct ls_verifier *v)
{
	v->suspect = true;
}

void
ls_verifier_stop(struct ls_verifier *v)
{
	v->stop = true;
}
