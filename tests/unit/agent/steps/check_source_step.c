/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_step.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "proto/base/text.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

static char root[256], dir[300], state[300];
static unsigned opens, lists; /* calls of openat, of getdents64 */
static const uint8_t kernel[16]; /* the rings of these tests have a boot id of zeros */
static struct ls_spool *spool;
static struct ls_source_step *step;
static struct step_ring ring;
static struct ls_wire_item got[600];
static size_t got_count;

int __real_openat(int dir_fd, const char *name, int flags, ...);
int __wrap_openat(int dir_fd, const char *name, int flags, ...);

int
__wrap_openat(int dir_fd, const char *name, int flags, ...)
{
	opens++;
	return __real_openat(dir_fd, name, flags);
}

ssize_t __real_getdents64(int fd, void *buf, size_t size);
ssize_t __wrap_getdents64(int fd, void *buf, size_t size);

ssize_t
__wrap_getdents64(int fd, void *buf, size_t size)
{
	lists++;
	return __real_getdents64(fd, buf, size);
}

static void
open_all(void)
{
	ck_assert_int_eq(ls_spool_open(state, LS_SPOOL_DEFAULT_BYTES, kernel, &spool),
		0);
	ck_assert_int_eq(ls_source_step_new(dir, kernel, spool, &step), 0);
}

static void
close_all(void)
{
	ls_source_step_free(step);
	ls_spool_close(spool);
	step = NULL;
	spool = NULL;
}

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	(void)snprintf(dir, sizeof(dir), "%s/steps", root);
	(void)snprintf(state, sizeof(state), "%s/state", root);
	tree_write(root, "steps/readme", "not a ring\n");
	memset(&ring, 0, sizeof(ring));
	ring.fd = -1;
	got_count = 0;
	open_all();
}

static void
teardown(void)
{
	size_t i;

	for (i = 0; i < got_count; i++)
		ls_wire_item_clear(&got[i]);
	close_all();
	step_ring_fini(&ring);
}

/* Takes what is in the spool, from the item after the last one taken, and acknowledges
 * it. */
static void
take(void)
{
	static uint8_t buf[LS_REPORT_ITEMS_BYTES];
	struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	const char *why;
	size_t n, i;

	do {
		ck_assert_int_eq(ls_spool_read(spool, buf, sizeof(buf), items,
					 LS_ITEMS_PER_REPORT_MAX, &n),
			0);
		for (i = 0; i < n; i++)
			ck_assert_int_eq(ls_wire_item_unpack(items[i].data,
						 items[i].len, &got[got_count++], &why),
				0);
		ls_spool_ack(spool, ls_spool_acked(spool) + n);
	} while (n > 0);
}

/* The items follow each other without a hole from index first to index end. */
static void
assert_whole(uint64_t first, uint64_t end)
{
	size_t i;

	for (i = 0; i < got_count; i++) {
		if (got[i].kind == LS_WIRE_END)
			continue;
		ck_assert_uint_eq(got[i].first_index, first);
		first += got[i].count;
	}
	ck_assert_uint_eq(first, end);
}

static uint64_t
lost(enum ls_wire_gap_reason reason)
{
	return ls_source_step_get_stats(step)->lost[reason];
}

static uint64_t
ignored(enum ls_step_ignored why)
{
	return ls_source_step_get_stats(step)->ignored[why];
}

static void
put(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		step_ring_put(&ring, from, from + 1);
}

LS_CASE(source_step, setup, teardown);

LS_TEST(source_step, unfinished_rings_go_and_are_counted)
{
	static const char name[] = "steps/7-000102030405060708090a0b0c0d0e0f.tmp";
	struct ls_source_step *looker;
	char path[600];

	tree_write(root, name, "");
	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	ck_assert_int_eq(ls_source_step_new(dir, kernel, NULL, &looker), 0);
	ls_source_step_read(looker, 1);
	ls_source_step_read(looker, 1 + LS_LEFTOVER_AGE_NS);
	ck_assert_int_eq(access(path, F_OK), 0); /* who only looks removes nothing */
	ls_source_step_free(looker);
	ls_source_step_read(step, 1);
	ls_source_step_read(step, LS_LEFTOVER_AGE_NS);
	ck_assert_int_eq(access(path, F_OK), 0);
	ls_source_step_read(step, LS_LEFTOVER_AGE_NS + LS_STEPS_RESCAN_NS);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->leftovers, 1);
}

LS_TEST(source_step, records_are_taken_over_once_and_in_order)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 3);
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(ls_source_step_count(step), 1);
	ck_assert_int_eq(ls_source_step_ring(step, 0)->pid, ring.holder);
	ck_assert_str_eq(ls_source_step_ring(step, 0)->worker.info.job, "job");
	ls_source_step_read(step, 2);
	put(3, 20); /* over the end of the ring */
	ls_source_step_read(step, 3);
	take();
	assert_whole(0, 20);
	ck_assert_uint_eq(
		ls_source_step_get_stats(step)->records + lost(LS_GAP_OVERRUN), 20);
	ck_assert_uint_eq(got[0].records[2].step, 2);
	ck_assert_uint_eq(got[0].records[2].duration_ns, 900);
}

LS_TEST(source_step, overwritten_records_are_a_gap)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 100);
	ls_source_step_read(step, 1);
	take();
	assert_whole(0, 100);
	ck_assert_int_eq((int)got[0].kind, (int)LS_WIRE_GAP);
	ck_assert_int_eq((int)got[0].reason, (int)LS_GAP_OVERRUN);
	/* One more than the ring has overwritten: the writer may be in that slot. */
	ck_assert_uint_eq(got[0].count, 85);
	ck_assert_uint_eq(lost(LS_GAP_OVERRUN), 85);
}

LS_TEST(source_step, senseless_slots_are_a_gap_among_good_ones)
{
	step_ring_make(&ring, dir, "a.ring", 1, 64);
	step_ring_lock(&ring);
	put(0, 10);
	step_ring_poke(&ring, LS_RING_HEADER_BYTES + 4 * LS_RING_SLOT_BYTES + 32, 255,
		1);
	step_ring_poke(&ring, LS_RING_HEADER_BYTES + 5 * LS_RING_SLOT_BYTES, 77, 8);
	step_ring_poke(&ring, LS_RING_HEADER_BYTES + 9 * LS_RING_SLOT_BYTES + 24,
		UINT64_MAX, 8);
	ls_source_step_read(step, 1);
	take();
	assert_whole(0, 10);
	ck_assert_uint_eq(got_count, 4);
	ck_assert_int_eq((int)got[1].reason, (int)LS_GAP_INVALID);
	ck_assert_uint_eq(got[1].count, 2);
	ck_assert_uint_eq(lost(LS_GAP_INVALID), 3);
}

LS_TEST(source_step, many_records_go_into_several_items)
{
	step_ring_make(&ring, dir, "a.ring", 1, 4096);
	step_ring_lock(&ring);
	put(0, 3000);
	ls_source_step_read(step, 1);
	take();
	assert_whole(0, 3000);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->records, 3000);
	ck_assert_uint_ge(got_count, 3000 / LS_STEPS_PER_ITEM);
}

LS_TEST(source_step, live_slot_is_at_hand)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET, 2, 8);
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET + 8, 77, 8);
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET + 16, LS_PHASE_COMPUTE, 4);
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET + 24, 5000, 8);
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET + 32, 2, 8);
	ls_source_step_read(step, 1);
	ck_assert(ls_source_step_ring(step, 0)->has_live);
	ck_assert_uint_eq(ls_source_step_ring(step, 0)->live.step, 77);
	/* being written: the last one holds */
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET, 3, 8);
	step_ring_poke(&ring, LS_RING_LIVE_OFFSET + 8, 78, 8);
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ls_source_step_ring(step, 0)->live.step, 77);
	step_ring_unlock(&ring);
	ls_source_step_read(step, 3);
	ls_source_step_read(step, 4);
	ck_assert(!ls_source_step_ring(step, 0)->has_live);
}

/* Lets the worker die and reads until its End is in the spool. */
static void
let_die(void)
{
	step_ring_unlock(&ring);
	ls_source_step_read(step, 8);
	ck_assert_int_eq(ls_source_step_ring(step, 0)->state, LS_RING_STATE_LIVE);
	ck_assert_int_eq(ls_source_step_ring(step, 0)->pid, 0);
	ls_source_step_read(step, 9);
	ck_assert_int_eq(ls_source_step_ring(step, 0)->state, LS_RING_STATE_DONE);
}

LS_TEST(source_step, crashed_worker_gets_an_end_and_its_ring_goes_when_acknowledged)
{
	struct stat st;

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 3);
	ls_source_step_read(step, 1);
	put(3, 5);
	let_die();
	ls_source_step_read(step, 10);
	ck_assert_int_eq(stat(ring.path, &st), 0);
	take();
	assert_whole(0, 5);
	ck_assert_int_eq((int)got[got_count - 1].kind, (int)LS_WIRE_END);
	ck_assert_int_eq((int)got[got_count - 1].how, (int)LS_END_CRASHED);
	ck_assert_uint_eq(got[got_count - 1].count, 5);
	ck_assert_uint_eq(got[got_count - 1].t_mono_ns, 9);
	ls_source_step_read(step, 11);
	ck_assert_int_ne(stat(ring.path, &st), 0);
	ck_assert_uint_eq(ls_source_step_count(step), 0);
	ls_source_step_read(step, 12);
	ck_assert_ptr_null(ls_spool_ring_at(spool, 0)); /* and its cursor with it */
}

/* By the mark that it left; of a kill for lack of memory the agent learns elsewhere. */
LS_TEST_LOOP(source_step, ended_worker_is_told_from_a_failed_and_a_killed_one, 0, 3)
{
	static const struct {
		unsigned flags;
		enum ls_end_how how;
	} rows[] = { { LS_RING_ENDED, LS_END_ENDED }, { LS_RING_FAILED, LS_END_FAILED },
		{ 0, LS_END_MEMORY } };

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	ls_source_step_read(step, 1);
	step_ring_poke(&ring, 76, rows[_i].flags, 4);
	ls_source_step_killed(step, 0);
	let_die();
	take();
	ck_assert_uint_eq(got_count, 1);
	ck_assert_int_eq((int)got[0].how, (int)rows[_i].how);
}

/* Rows about ranks with this text. */
static unsigned
rank_rows(const char *text)
{
	struct ls_doctor d = { 0 };
	unsigned n = 0;

	ls_source_step_tell(step, &d);
	for (size_t i = 0; i < d.count; i++)
		n += d.check[i].status == LS_DOCTOR_WARN &&
			strcmp(d.check[i].subject, "rank") == 0 &&
			strstr(d.check[i].why, text) != NULL;
	return n;
}

LS_TEST(source_step, rank_that_is_not_known_is_told_with_its_variable)
{
	static const char env[] = "LOCKSTEP_RANK=tcp://10.43.1.40:7118\n";

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_poke(&ring, 98, LS_RING_FROM_REFUSED, 1);
	for (size_t i = 0; i < sizeof(env); i++)
		step_ring_poke(&ring, LS_RING_ENV_OFFSET + i, (uint8_t)env[i], 1);
	step_ring_lock(&ring);
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(rank_rows("LOCKSTEP_RANK=tcp://10.43.1.40:7118 is no"), 1);
	ck_assert_str_eq(ls_source_step_ring(step, 0)->worker.info.refused_rank,
		"LOCKSTEP_RANK=tcp://10.43.1.40:7118");
}

/* The report's check refuses cut characters and controls. */
LS_TEST(source_step, refused_rank_is_cut_to_whole_characters)
{
	char env[160];
	const char *text,
		*umlauts =
			"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";

	(void)snprintf(env, sizeof(env), "LOCKSTEP_RANK=\x1b%s%s%s%s\n", umlauts,
		umlauts, umlauts, umlauts);
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_poke(&ring, 98, LS_RING_FROM_REFUSED, 1);
	for (size_t i = 0; env[i] != '\0'; i++)
		step_ring_poke(&ring, LS_RING_ENV_OFFSET + i, (uint8_t)env[i], 1);
	step_ring_lock(&ring);
	ls_source_step_read(step, 1);
	text = ls_source_step_ring(step, 0)->worker.info.refused_rank;
	ck_assert_int_eq(strncmp(text, "LOCKSTEP_RANK=\\x1b\xc3\xa4", 20), 0);
	ck_assert(ls_text_is_name(text, strlen(text), LS_REFUSED_RANK_MAX_BYTES - 1));
}

LS_TEST(source_step, processes_without_a_rank_are_counted)
{
	struct step_ring other = { .fd = -1 };

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_poke(&ring, 98, LS_RING_FROM_DEFAULT, 1);
	step_ring_poke(&ring, 84, 0, 4);
	step_ring_lock(&ring);
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(rank_rows(""), 0); /* it may be alone */
	step_ring_make(&other, dir, "b.ring", 2, 16);
	step_ring_poke(&other, 98, LS_RING_FROM_DEFAULT, 1);
	step_ring_poke(&other, 84, 0, 4);
	step_ring_lock(&other);
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ls_source_step_count(step), 2);
	ck_assert_int_eq(ls_source_step_ring(step, 0)->worker.info.rank, 0);
	ck_assert_int_eq(ls_source_step_ring(step, 1)->worker.info.rank, 1);
	ck_assert_uint_eq(rank_rows("taken for 1: no variable tells it"), 1);
	/* one that ended leaves its number to the next */
	step_ring_fini(&ring);
	step_ring_make(&ring, dir, "c.ring", 3, 16);
	step_ring_poke(&ring, 98, LS_RING_FROM_DEFAULT, 1);
	step_ring_poke(&ring, 84, 0, 4);
	step_ring_lock(&ring);
	ls_source_step_read(step, 3);
	ck_assert_int_eq(ls_source_step_ring(step, 2)->worker.info.rank, 0);
	step_ring_fini(&other);
}

LS_TEST(source_step, second_process_of_one_rank_is_a_worker_of_its_own)
{
	static const char env[] = "LOCKSTEP_RANK=0\n";
	struct step_ring other = { .fd = -1 }, next = { .fd = -1 };

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_make(&other, dir, "b.ring", 2, 16);
	step_ring_poke(&ring, 84, 0, 4);
	step_ring_poke(&other, 84, 0, 4);
	for (size_t i = 0; i < sizeof(env); i++) {
		step_ring_poke(&ring, LS_RING_ENV_OFFSET + i, (uint8_t)env[i], 1);
		step_ring_poke(&other, LS_RING_ENV_OFFSET + i, (uint8_t)env[i], 1);
	}
	step_ring_lock(&ring);
	step_ring_lock(&other);
	ls_source_step_read(step, 1);
	ck_assert_int_eq(ls_source_step_ring(step, 0)->worker.info.rank, 0);
	ck_assert_int_eq(ls_source_step_ring(step, 1)->worker.info.rank, 1);
	ck_assert_uint_eq(rank_rows("taken for 1: LOCKSTEP_RANK=0 is no rank"), 1);
	ck_assert_uint_eq(rank_rows(""), 1);
	/* the next attempt has its rank, though one of the last is still there */
	step_ring_make(&next, dir, "c.ring", 3, 16);
	step_ring_poke(&next, 84, 0, 4);
	step_ring_poke(&next, 80, 1, 4);
	step_ring_lock(&next);
	ls_source_step_read(step, 2);
	ck_assert_int_eq(ls_source_step_ring(step, 2)->worker.info.rank, 0);
	step_ring_fini(&other);
	step_ring_fini(&next);
}

LS_TEST(source_step, reading_goes_on_at_the_cursor_after_a_restart)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 3);
	ls_source_step_read(step, 1);
	close_all();
	put(3, 6);
	open_all();
	ls_source_step_read(step, 2);
	let_die();
	close_all();
	open_all();
	ls_source_step_read(step, 10); /* no second End */
	ls_source_step_read(step, 11);
	take();
	assert_whole(0, 6);
	ck_assert_uint_eq(got_count, 3);
	ls_source_step_read(step, 12);
	ck_assert_uint_eq(ls_source_step_count(step), 0);
}

LS_TEST(source_step, ring_that_went_away_gets_an_end)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 3);
	ls_source_step_read(step, 1);
	close_all();
	ck_assert_int_eq(unlink(ring.path), 0);
	open_all();
	ls_source_step_read(step, 2);
	take();
	ck_assert_uint_eq(got_count, 2);
	ck_assert_int_eq((int)got[1].kind, (int)LS_WIRE_END);
	ck_assert_int_eq((int)got[1].how, (int)LS_END_UNKNOWN);
	ck_assert_uint_eq(got[1].count, 3);
}

LS_TEST(source_step, what_is_no_ring_is_left_alone_and_counted)
{
	struct step_ring other;
	char path[400];

	step_ring_make(&ring, dir, "good.ring", 1, 16);
	tree_write(dir, "text.ring", "hello");
	(void)snprintf(path, sizeof(path), "%s/link.ring", dir);
	ck_assert_int_eq(symlink(ring.path, path), 0);
	(void)snprintf(path, sizeof(path), "%s/pipe.ring", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	step_ring_make(&other, dir, "short.ring", 2, 16);
	ck_assert_int_eq(ftruncate(other.fd, LS_RING_HEADER_BYTES), 0);
	step_ring_fini(&other);
	step_ring_make(&other, dir, "boot.ring", 3, 16);
	step_ring_poke(&other, 40, 1, 1);
	step_ring_fini(&other);
	step_ring_make(&other, dir, "twin.ring", 1, 16);
	step_ring_fini(&other);
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(ls_source_step_count(step), 1);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_REGULAR), 2);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_A_RING), 2);
	ck_assert_uint_eq(ignored(LS_STEP_OTHER_BOOT), 1);
	ck_assert_uint_eq(ignored(LS_STEP_DUPLICATE), 1);
}

/* Files of a ring's size. */
static void
make_junk(unsigned from, unsigned to)
{
	char name[32], path[400];

	for (; from < to; from++) {
		(void)snprintf(name, sizeof(name), "junk%u.ring", from);
		(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
		tree_write(dir, name, "junk");
		ck_assert_int_eq(truncate(path, 2 * LS_RING_HEADER_BYTES), 0);
	}
}

LS_TEST(source_step, unchanged_rejected_files_are_not_opened_again)
{
	enum { JUNK = 10 * LS_STEPS_RECHECK_MAX };
	struct step_ring other;
	unsigned i;

	make_junk(0, JUNK);
	step_ring_make(&other, dir, "boot.ring", 3, 16);
	step_ring_poke(&other, 40, 1, 1);
	step_ring_fini(&other);
	opens = 0;
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(opens, JUNK + 1);
	for (i = 2; i < 100; i++)
		ls_source_step_read(step, i);
	ck_assert_uint_eq(opens, JUNK + 1);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_A_RING), JUNK);
	ck_assert_uint_eq(ignored(LS_STEP_OTHER_BOOT), 1);
	ck_assert_ptr_nonnull(ls_source_step_get_stats(step)->example_why);
}

/* Sets the time of the directory's last change so many seconds back. */
static void
age_directory(time_t seconds)
{
	struct timespec t[2];

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &t[0]), 0);
	t[0].tv_sec -= seconds;
	t[1] = t[0];
	ck_assert_int_eq(utimensat(AT_FDCWD, dir, t, 0), 0);
}

LS_TEST(source_step, unchanged_directory_is_not_listed_again)
{
	unsigned i;

	tree_write(dir, "junk.ring", "junk");
	age_directory(100);
	ls_source_step_read(step, 1);
	lists = 0;
	for (i = 2; i < 20; i++)
		ls_source_step_read(step, i);
	ck_assert_uint_eq(lists, 0);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_A_RING), 1);
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	age_directory(50);
	ls_source_step_read(step, 20);
	ck_assert_uint_eq(ls_source_step_count(step), 1);
	lists = 0;
	ls_source_step_read(step, 20 + LS_STEPS_RESCAN_NS);
	ck_assert_uint_gt(lists, 0);
}

LS_TEST(source_step, directory_that_has_just_changed_is_listed_again)
{
	struct stat before;
	struct timespec t[2];

	age_directory(-3600); /* ahead: not yet past, however slow this machine is */
	ck_assert_int_eq(stat(dir, &before), 0);
	ls_source_step_read(step, 1);
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	t[0] = t[1] = before.st_mtim; /* within the resolution of the clock */
	ck_assert_int_eq(utimensat(AT_FDCWD, dir, t, 0), 0);
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ls_source_step_count(step), 1);
}

LS_TEST(source_step, rejected_file_that_becomes_a_ring_is_read)
{
	char path[400], name[32];
	unsigned i;

	for (i = 0; i < 4 * LS_STEPS_RECHECK_MAX; i++) {
		(void)snprintf(name, sizeof(name), "junk%u.ring", i);
		tree_write(dir, name, "junk");
	}
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	(void)snprintf(path, sizeof(path), "%s/a.ring", dir);
	step_ring_poke(&ring, 0, 0, 1); /* its magic */
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(ls_source_step_count(step), 0);
	step_ring_poke(&ring, 0, 'L', 1);
	ck_assert_int_eq(chmod(path, 0640), 0); /* a new change time on any clock */
	for (i = 1; i <= 6; i++)
		ls_source_step_read(step, 1 + i * LS_STEPS_RESCAN_NS);
	ck_assert_uint_eq(ls_source_step_count(step), 1);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_A_RING), 4 * LS_STEPS_RECHECK_MAX);
}

LS_TEST(source_step, duplicate_is_read_when_the_other_ring_is_gone)
{
	struct step_ring twin;

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	put(0, 3);
	ls_source_step_read(step, 1);
	step_ring_make(&twin, dir, "b.ring", 1, 16);
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ignored(LS_STEP_DUPLICATE), 1);
	take();
	ls_source_step_read(step, 3);
	ls_source_step_read(step, 4);
	ck_assert_uint_eq(ls_source_step_count(step), 0);
	ck_assert_uint_eq(ignored(LS_STEP_DUPLICATE), 0);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->removed, 2);
	step_ring_fini(&twin);
}

LS_TEST(source_step, finished_ring_is_removed_after_a_kill_before_its_removal)
{
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/a.ring", dir);
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	put(0, 3);
	ls_source_step_read(step, 1);
	ls_source_step_read(step, 2); /* its end */
	take();
	ck_assert_int_eq(access(path, F_OK), 0);
	close_all();
	open_all();
	ls_source_step_read(step, 3);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_uint_eq(ignored(LS_STEP_FINISHED), 0);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->removed, 1);
}

LS_TEST(source_step, too_many_rings_are_left_alone)
{
	struct step_ring many;
	char name[32];
	unsigned i;

	for (i = 0; i <= LS_RINGS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u.ring", i);
		step_ring_make(&many, dir, name, (uint8_t)i, 1);
		step_ring_fini(&many);
	}
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(ls_source_step_count(step), LS_RINGS_MAX);
	ck_assert_uint_eq(ignored(LS_STEP_TOO_MANY), 1);
}

/* Readings until the ring is found. */
static unsigned
scans_until_found(void)
{
	unsigned n = 0;

	for (; ls_source_step_count(step) == 0; n++) {
		ck_assert_uint_lt(n, 100);
		opens = 0;
		ls_source_step_read(step, n + 1);
		ck_assert_uint_le(opens, LS_STEPS_OPENS_MAX);
	}
	return n;
}

LS_TEST(source_step, ring_behind_thousands_of_junk_files_is_found)
{
	enum { JUNK = 4 * LS_STEPS_OWNER_OPENS_MAX };

	make_junk(0, JUNK);
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	make_junk(JUNK, 2 * JUNK);
	ck_assert_uint_le(scans_until_found(), 20);
	/* all are known now: a new ring is found at once */
	while (ignored(LS_STEP_NOT_A_RING) != 2 * JUNK)
		ls_source_step_read(step, 1);
	opens = 0;
	step_ring_fini(&ring);
	step_ring_make(&ring, dir, "b.ring", 2, 16);
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ls_source_step_count(step), 2);
	ck_assert_uint_le(opens, 1 + JUNK / 64);
}

LS_TEST(source_step, new_ring_is_read_at_once_whatever_lies_there)
{
	struct step_ring one;
	char name[32];
	unsigned i;

	make_junk(0, 8 * LS_STEPS_OWNER_OPENS_MAX);
	ls_source_step_read(step, 1);
	for (i = 1; i <= 8; i++) {
		(void)snprintf(name, sizeof(name), "%u.ring", i);
		step_ring_make(&one, dir, name, (uint8_t)i, 1);
		step_ring_fini(&one);
	}
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ls_source_step_count(step), 8);
}

LS_TEST(source_step, file_too_short_for_a_ring_is_not_opened)
{
	tree_write(root, "steps/a.ring", "short");
	opens = 0;
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(opens, 0);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_A_RING), 1);
}

/* Gives each junk file another name. */
static void
rename_junk(unsigned turn, unsigned count)
{
	char from[400], to[400];
	unsigned i;

	for (i = 0; i < count; i++) {
		(void)snprintf(from, sizeof(from), "%s/junk%u.ring", dir,
			i + turn * 10000);
		(void)snprintf(to, sizeof(to), "%s/junk%u.ring", dir,
			i + (turn + 1) * 10000);
		ck_assert_int_eq(rename(from, to), 0);
	}
}

LS_TEST(source_step, junk_that_is_renamed_costs_a_bounded_number_of_opens)
{
	enum { JUNK = 3 * LS_STEPS_OPENS_MAX };
	unsigned turn;

	make_junk(0, JUNK);
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	for (turn = 0; turn < 50; turn++) {
		opens = 0;
		ls_source_step_read(step, turn + 1);
		ck_assert_uint_le(opens, LS_STEPS_OWNER_OPENS_MAX);
		rename_junk(turn, JUNK);
	}
	/* of the same owner, and found all the same */
	ck_assert_uint_eq(ls_source_step_count(step), 1);
}

LS_TEST(source_step, owner_of_most_rings_gives_up_a_place)
{
	struct step_ring many;
	char name[32];
	unsigned i;

	if (geteuid() != 0)
		return; /* nobody else can make files of another owner */
	for (i = 1; i <= LS_RINGS_MAX + 1; i++) {
		(void)snprintf(name, sizeof(name), "%u.ring", i);
		step_ring_make(&many, dir, name, (uint8_t)i, 1);
		ck_assert_int_eq(fchown(many.fd, 12345, 12345), 0);
		step_ring_fini(&many);
	}
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(ignored(LS_STEP_TOO_MANY), 1);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->displaced, 0);
	step_ring_make(&ring, dir, "mine.ring", 200, 16);
	step_ring_lock(&ring);
	put(0, 5);
	ls_source_step_read(step, 2);
	ck_assert_uint_eq(ls_source_step_count(step), LS_RINGS_MAX);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->records, 5);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->displaced, 1);
	for (i = 3; i < 10; i++) /* nobody takes it back */
		ls_source_step_read(step, i);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->displaced, 1);
	ck_assert_uint_eq(ignored(LS_STEP_TOO_MANY), 2);
	put(5, 7);
	ls_source_step_read(step, 10);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->records, 7);
}

LS_TEST(source_step, some_descriptors_are_never_taken_by_rings)
{
	struct rlimit before, few;
	struct step_ring many;
	char name[32];
	int fd[LS_FDS_KEPT], i;

	close_all();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	fd[0] = dup(0);
	few = before;
	few.rlim_cur =
		(rlim_t)fd[0] + LS_FDS_KEPT + 8; /* spool, directory, four rings */
	(void)close(fd[0]);
	for (i = 0; i < 8; i++) {
		(void)snprintf(name, sizeof(name), "%d.ring", i);
		step_ring_make(&many, dir, name, (uint8_t)(i + 1), 1);
		step_ring_fini(&many);
	}
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	open_all();
	ls_source_step_read(step, 1);
	ck_assert_uint_ge(ls_source_step_count(step), 1);
	ck_assert_uint_eq(ls_source_step_count(step) + ignored(LS_STEP_TOO_MANY), 8);
	for (i = 0; i < LS_FDS_KEPT; i++) {
		fd[i] = dup(0);
		ck_assert_int_ge(fd[i], 0);
	}
	for (i = 0; i < LS_FDS_KEPT; i++)
		(void)close(fd[i]);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}

LS_TEST(source_step, ring_that_lies_about_its_head_is_not_believed)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 5);
	ls_source_step_read(step, 1);
	/* forward, as far as a ring may be: a gap */
	step_ring_poke(&ring, LS_RING_HEAD_OFFSET, LS_RING_HEAD_MAX, 8);
	ls_source_step_read(step, 2);
	take();
	assert_whole(0, LS_RING_HEAD_MAX);
	step_ring_poke(&ring, LS_RING_HEAD_OFFSET, 3, 8); /* back: broken */
	ls_source_step_read(step, 3);
	let_die();
	take();
	ck_assert_int_eq((int)got[got_count - 1].how, (int)LS_END_UNKNOWN);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->damaged, 1);
}

LS_TEST(source_step, impossible_number_of_records_is_never_a_gap)
{
	static struct ls_doctor d;
	struct step_ring poison = { .fd = -1 };

	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 5);
	step_ring_make(&poison, dir, "b.ring", 2, 16);
	step_ring_poke(&poison, LS_RING_HEAD_OFFSET, 1ull << 63, 8);
	ls_source_step_read(step, 1);
	ck_assert_uint_eq(ls_source_step_count(step), 1);
	ck_assert_uint_eq(ignored(LS_STEP_NOT_A_RING), 1);
	ls_source_step_tell(step, &d);
	ck_assert_str_eq(ls_source_step_get_stats(step)->example, "b.ring");
	ck_assert_str_eq(ls_source_step_get_stats(step)->example_why,
		"impossible number of records");
	/* the same of a ring that is read already */
	step_ring_poke(&ring, LS_RING_HEAD_OFFSET, LS_RING_HEAD_MAX + 1, 8);
	ls_source_step_read(step, 2);
	take();
	assert_whole(0, 5);
	ck_assert_uint_eq(lost(LS_GAP_OVERRUN), 0);
	ck_assert_uint_eq(ls_source_step_get_stats(step)->damaged, 1);
	step_ring_fini(&poison);
}

LS_TEST(source_step, ring_cut_short_while_it_is_read_does_no_harm)
{
	step_ring_make(&ring, dir, "a.ring", 1, 16);
	step_ring_lock(&ring);
	put(0, 5);
	ck_assert_int_eq(
		ftruncate(ring.fd, LS_RING_HEADER_BYTES + 16 * LS_RING_SLOT_BYTES), 0);
	ls_source_step_read(step, 1);
	put(5, 9);
	ck_assert_int_eq(ftruncate(ring.fd, LS_RING_HEADER_BYTES + 100), 0);
	ls_source_step_read(step, 2);
	ck_assert_int_eq(ftruncate(ring.fd, 10), 0);
	ls_source_step_read(step, 3);
	let_die();
	take();
	ck_assert_int_eq((int)got[got_count - 1].how, (int)LS_END_UNKNOWN);
	ck_assert_uint_eq(got[got_count - 1].count, 5);
}

LS_TEST(source_step, directory_may_come_late)
{
	struct ls_source_step *late;
	char missing[400];

	(void)snprintf(missing, sizeof(missing), "%s/not-yet", root);
	ck_assert_int_eq(ls_source_step_new(missing, kernel, NULL, &late), 0);
	ls_source_step_read(late, 1);
	ck_assert_uint_eq(ls_source_step_count(late), 0);
	ck_assert_int_eq(mkdir(missing, 0755), 0);
	step_ring_make(&ring, missing, "a.ring", 1, 16);
	put(0, 3);
	ls_source_step_read(late, 2);
	ck_assert_uint_eq(ls_source_step_count(late), 1);
	/* no spool: only looked at */
	ck_assert_uint_eq(ls_source_step_get_stats(late)->records, 0);
	ck_assert_ptr_null(ls_source_step_ring(late, 1));
	ls_source_step_free(late);
	ls_source_step_free(NULL);
}
