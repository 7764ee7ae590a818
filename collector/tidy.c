/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/tidy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "proto/base/queue.h"
#include "proto/limits.h"

struct ls_tidy {
	struct ls_writer *writer;
	struct ls_keeper *keeper;
	struct ls_packer *packer; /* the keeper's thread's */
	/* Told by that thread. */
	_Atomic uint64_t units, records, bytes, hot_bytes, refused, bad;
};

static int
tidy_push(void *arg, struct ls_write *m)
{
	struct ls_tidy *t = arg;

	return ls_writer_push(t->writer, m);
}

/* What the writer did with units comes first: the next one waits for it. */
static int
tidy_pack(void *arg, bool *ret_more)
{
	struct ls_tidy *t = arg;
	struct ls_packer_stats s;
	void *m;
	int rc;

	while (ls_queue_take(ls_writer_packed(t->writer), &m, 1) == 1) {
		ls_packer_told(t->packer, m);
		ls_write_free(m);
	}
	rc = ls_packer_turn(t->packer, ret_more);
	ls_packer_stats(t->packer, &s);
	t->units = s.units;
	t->records = s.records;
	t->bytes = s.bytes;
	t->hot_bytes = s.hot_bytes;
	t->refused = s.refused;
	t->bad = s.bad;
	return rc;
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
	const struct ls_keeper_work work[] = { { "packing the journal", tidy_pack, t } };
	int rc;

	if (t == NULL)
		return -ENOMEM;
	t->writer = writer;
	rc = ls_packer_new(&packing, &t->packer);
	if (rc == 0)
		rc = ls_keeper_open(work, sizeof(work) / sizeof(work[0]), &t->keeper);
	if (rc != 0) {
		ls_tidy_stop(t);
		return rc;
	}
	*ret_tidy = t;
	return 0;
}

void
ls_tidy_stop(struct ls_tidy *t)
{
	if (t == NULL)
		return;
	ls_keeper_close(t->keeper);
	ls_packer_free(t->packer);
	free(t);
}

void
ls_tidy_stats(struct ls_tidy *t, struct ls_tidy_stats *ret_stats)
{
	*ret_stats = (struct ls_tidy_stats){ 0 };
	if (t == NULL)
		return;
	ls_keeper_stats(t->keeper, &ret_stats->keeper);
	ret_stats->pack = (struct ls_packer_stats){ t->units, t->records, t->bytes, t->hot_bytes,
		t->refused, t->bad };
}
