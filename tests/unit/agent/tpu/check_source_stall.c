/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/source_stall.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/base/text.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

/* Core 3 of chip 1 at "all-reduce.7 ESC[1m", core 1 of chip 0 at "fusion.2". */
#define TWO_HEX                                                                      \
	"0a35080312310a08080310011a020801121d080118b424284d38b1094211616c6c2d726564" \
	"7563652e37201b5b316d18012202010228050a2c080112280a08080110001a020801121408" \
	"0118b424284d38b1094208667573696f6e2e321801220201022805"

static char dir[256];
static struct ls_source stall;
static struct ls_doctor doctor;
static uint64_t now;

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/stall", ls_test_tmpdir());
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(ls_source_stall_new(dir, NULL, &stall), 0);
}

static void
teardown(void)
{
	stall.free(stall.self);
}

/* A file of that age at second 2000000. */
static void
write_file(const char *name, const void *bytes, size_t len, int64_t age_s)
{
	struct timespec t[2] = { { .tv_sec = 2000000 - age_s },
		{ .tv_sec = 2000000 - age_s } };
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void
write_two(const char *name, int64_t age_s)
{
	uint8_t bytes[sizeof(TWO_HEX) / 2];

	ck_assert_int_eq(ls_text_unhex(bytes, sizeof(bytes), TWO_HEX), 0);
	write_file(name, bytes, sizeof(bytes), age_s);
}

/* What the doctor says after the next look. */
static const struct ls_doctor_check *
look(void)
{
	struct ls_sample sample;

	now += LS_STALL_LOOK_NS;
	stall.read(stall.self, LS_CADENCE_FAST, now, &sample);
	memset(&doctor, 0, sizeof(doctor));
	stall.tell(stall.self, &doctor);
	ck_assert_uint_gt(doctor.count, 0);
	return &doctor.check[0];
}

LS_CASE(source_stall, setup, teardown);

LS_TEST(source_stall, cores_of_a_summary_are_listed)
{
	char text[LS_IDENTITY_VALUE_MAX_BYTES];

	ck_assert_int_eq(look()->status, LS_DOCTOR_OK);
	write_two("tpu_stall_summary_1.pb", 60);
	ck_assert_int_eq(look()->status, LS_DOCTOR_WARN);
	ck_assert_uint_eq(doctor.count, 2);
	ck_assert_str_eq(doctor.check[0].subject,
		"tpu_stall_summary_1.pb 1970-01-24T03:32:20.000Z");
	ck_assert_ptr_nonnull(strstr(doctor.check[0].why, "core 1 of chip 0"));
	ck_assert_ptr_nonnull(strstr(doctor.check[0].why, "at fusion.2 (pc 4660"));
	ck_assert_ptr_nonnull(strstr(doctor.check[1].why, "at all-reduce.7 \\x1b[1m"));
	ls_source_stall_core(&stall, 0, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text,
		"1970-01-24T03:32:20.000Z core 1 of chip 0 stalled in program "));
	ls_source_stall_core(&stall, 1, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "at all-reduce.7 \\x1b[1m (pc 4660"));
	ls_source_stall_core(&stall, 2, text, sizeof(text));
	ck_assert_str_eq(text, "");
}

LS_TEST(source_stall, newest_file_counts)
{
	write_two("tpu_stall_summary_2.pb", 60);
	write_two("tpu_stall_summary_1.pb", 30);
	write_two("tpu_stall_summary_3.txt", 0);
	write_two("other.pb", 0);
	ck_assert_str_eq(look()->subject,
		"tpu_stall_summary_1.pb 1970-01-24T03:32:50.000Z");
	/* the same file, written again */
	write_file("tpu_stall_summary_1.pb", "\x0a\x7fxx", 4, 10);
	ck_assert_ptr_nonnull(strstr(look()->why, "cannot be read"));
}

/* A date to come, or one beyond all clocks, is no newest file for ever. */
LS_TEST(source_stall, file_of_the_future_does_not_count)
{
	write_two("tpu_stall_summary_1.pb", -4000000000);
	write_two("tpu_stall_summary_2.pb", -((int64_t)1 << 40));
	ck_assert_int_eq(look()->status, LS_DOCTOR_OK);
	write_two("tpu_stall_summary_3.pb", 30);
	ck_assert_ptr_nonnull(strstr(look()->subject, "summary_3.pb"));
}

LS_TEST(source_stall, file_that_is_removed_is_forgotten)
{
	write_two("tpu_stall_summary_1.pb", 60);
	ck_assert_int_eq(look()->status, LS_DOCTOR_WARN);
	tree_remove(dir, "tpu_stall_summary_1.pb");
	ck_assert_int_eq(look()->status, LS_DOCTOR_OK);
	ck_assert_uint_eq(doctor.count, 1);
	write_two("tpu_stall_summary_1.pb", 60);
	ck_assert_int_eq(look()->status, LS_DOCTOR_WARN);
}

/* A hostile file costs itself: it is named, and the next good one is read. */
LS_TEST(source_stall, damaged_file_is_named)
{
	static char large[LS_STALL_FILE_MAX_BYTES + 1];

	write_file("tpu_stall_summary_1.pb", "\x0a\x7fxx", 4, 90);
	ck_assert_ptr_nonnull(strstr(look()->why, "cannot be read"));
	write_file("tpu_stall_summary_2.pb", large, sizeof(large), 80);
	ck_assert_ptr_nonnull(strstr(look()->why, "cannot be read"));
	ck_assert_str_eq(doctor.check[0].subject,
		"tpu_stall_summary_2.pb 1970-01-24T03:32:00.000Z");
	tree_link(dir, "tpu_stall_summary_3.pb", "/dev/zero");
	ck_assert_ptr_nonnull(strstr(look()->why, "cannot be read"));
	tree_remove(dir, "tpu_stall_summary_3.pb");
	write_two("tpu_stall_summary_4.pb", 0);
	(void)look();
	ck_assert_uint_eq(doctor.count, 2);
}

LS_TEST(source_stall, named_pipe_does_not_block)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/tpu_stall_summary_1.pb", dir);
	ck_assert_int_eq(mkfifo(path, 0644), 0);
	ck_assert_ptr_nonnull(strstr(look()->why, "cannot be read"));
}

LS_TEST(source_stall, directory_that_is_not_there_is_named)
{
	ck_assert_int_eq(rmdir(dir), 0);
	ck_assert_int_eq(look()->status, LS_DOCTOR_WARN);
}
