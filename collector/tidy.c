/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/tidy.h"

#include <errno.h>
#include <stdlib.h>
#include "proto/base/clock.h"
#include "proto/base/queue.h"
#include "proto/limits.h"

/* What the keeper's thread tells. */
struct tidy_told {
	struct ls_packer_stats pack;
	struct ls_roller_stats roll;
};

struct ls_tidy {
	struct ls_writer *writer;
	struct ls_keeper *keeper, *slow;
	struct ls_repacker *repacker; /* the slow keeper's */
	struct ls_verifier *verifier; /* likewise */
	/* The keeper's thread's. */
	struct ls_packer *packer;
	struct ls_query *query; /* the roller's */
	struct ls_roller *roller;
	struct ls_queue *told; /* the newest struct tidy_told, if nobody took it yet */
	struct tidy_told last; /* the loop's */
};

static int
tidy_push(void *arg, struct ls_write *m)
{
	struct ls_tidy *t = arg;

	return ls_writer_push(t->writer, m);
}

/* What the writer did with what it was given: the next unit, the next roll-ups wait for
 * it. */
static void
tidy_hear(struct ls_tidy *t)
{
	struct ls_write *m;
	void *item;

	while (ls_queue_take(ls_writer_packed(t->writer), &item, 1) == 1) {
		m = item;
		if (m->rc == -LS_ECORRUPT)
			ls_verifier_suspect(t->verifier);
		if (m->kind == LS_WRITE_PACK)
			ls_packer_told(t->packer, m);
		else if (m->kind == LS_WRITE_ROLLUP)
			ls_roller_told(t->roller, m->rc);
		else if (m->kind == LS_WRITE_REPLACE)
			ls_repacker_told(t->repacker, m->rc);
		ls_write_free(m);
	}
}

/* Says how far both are, in place of what was said and not heard. */
static void
tidy_tell(struct ls_tidy *t)
{
	struct tidy_told *told = malloc(sizeof(*told));
	void *old;

	if (told == NULL)
		return; /* next time */
	ls_packer_stats(t->packer, &told->pack);
	ls_roller_stats(t->roller, &told->roll);
	if (ls_queue_take(t->told, &old, 1) == 1)
		free(old);
	if (ls_queue_push(t->told, told) != 0)
		free(told); /* likewise */
}

static int
tidy_pack(void *arg, bool *ret_more)
{
	struct ls_tidy *t = arg;

	tidy_hear(t);
	return ls_packer_turn(t->packer, ret_more);
}

static int
tidy_roll(void *arg, bool *ret_more)
{
	struct ls_tidy *t = arg;
	struct ls_write *m = NULL;
	int rc;

	tidy_hear(t);
	rc = ls_roller_turn(t->roller, (int64_t)(ls_clock_wall_ns() / 1000), &m,
		ret_more);
	if (m != NULL && tidy_push(t, m) != 0) {
		ls_write_free(m);
		/* the writer is behind: it is made again */
		ls_roller_told(t->roller, -LS_ELIMIT);
	}
	if (rc == -LS_ECORRUPT)
		ls_verifier_suspect(t->verifier);
	tidy_tell(t); /* the last work of a round */
	return rc;
}

/* What the two keepers do. */
static int
tidy_keepers(struct ls_tidy *t)
{
	const struct ls_keeper_work quick[] = { { "packing the journal", tidy_pack, t },
		{ "making roll-ups", tidy_roll, t } };
	const struct ls_keeper_work slow[] = { { "repacking a day", ls_repacker_turn,
						       t->repacker },
		{ "checking days for damage", ls_verifier_turn, t->verifier } };
	int rc = ls_keeper_open(quick, sizeof(quick) / sizeof(quick[0]), &t->keeper);

	return rc == 0 ? ls_keeper_open(slow, sizeof(slow) / sizeof(slow[0]), &t->slow)
		       : rc;
}

int
ls_tidy_start(const char *dir, struct ls_writer *writer, uint64_t pack_interval_ns,
	struct ls_tidy **ret_tidy)
{
	struct ls_tidy *t = calloc(1, sizeof(*t));
	const struct ls_packer_options packing = {
		.dir = dir,
		.age_us = LS_PACK_AGE_US,
		.span_us = (int64_t)(pack_interval_ns / 1000),
		.events = LS_UNIT_EVENTS_MAX,
		.push = tidy_push,
		.arg = t,
	};
	int rc;

	if (t == NULL)
		return -ENOMEM;
	t->writer = writer;
	t->told = ls_queue_new(1);
	rc = t->told != NULL ? ls_packer_new(&packing, &t->packer) : -ENOMEM;
	if (rc == 0)
		rc = ls_query_open(dir, &t->query);
	if (rc == 0) {
		t->roller = ls_roller_new(t->query);
		t->repacker = ls_repacker_new(dir, tidy_push, t);
		t->verifier = ls_verifier_new(dir, tidy_push, t);
		rc = t->roller != NULL && t->repacker != NULL && t->verifier != NULL
			? tidy_keepers(t)
			: -ENOMEM;
	}
	if (rc == 0)
		*ret_tidy = t;
	else
		ls_tidy_stop(t);
	return rc;
}

void
ls_tidy_stop(struct ls_tidy *t)
{
	if (t == NULL)
		return;
	if (t->repacker != NULL)
		ls_repacker_stop(t->repacker);
	if (t->verifier != NULL)
		ls_verifier_stop(t->verifier);
	ls_keeper_close(t->slow);
	ls_keeper_close(t->keeper);
	ls_repacker_free(t->repacker);
	ls_verifier_free(t->verifier);
	ls_packer_free(t->packer);
	ls_roller_free(t->roller);
	ls_query_close(t->query);
	if (t->told != NULL)
		ls_queue_free(t->told, free);
	free(t);
}

void
ls_tidy_stats(struct ls_tidy *t, struct ls_tidy_stats *ret_stats)
{
	struct ls_keeper_stats slow;
	void *told;

	*ret_stats = (struct ls_tidy_stats){ 0 };
	if (t == NULL)
		return;
	ls_keeper_stats(t->keeper, &ret_stats->keeper);
	ls_keeper_stats(t->slow, &slow);
	ret_stats->repack_cpu_ns = slow.cpu_ns;
	ls_repacker_stats(t->repacker, &ret_stats->repack);
	if (ls_queue_take(t->told, &told, 1) == 1) {
		t->last = *(struct tidy_told *)told;
		free(told);
	}
	ret_stats->pack = t->last.pack;
	ret_stats->roll = t->last.roll;
}

void
ls_tidy_suspect(struct ls_tidy *t)
{
	if (t != NULL)
		ls_verifier_suspect(t->verifier);
}
