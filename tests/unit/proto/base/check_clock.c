/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/clock.h"

#include "proto/base/err.h"
#include "tests/support/harness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

LS_CASE(clock);

LS_TEST(clock, clocks_move_forward)
{
	uint64_t mono = ls_clock_mono_ns();
	uint64_t cpu = ls_clock_cpu_ns();

	ck_assert_uint_gt(mono, 0);
	ck_assert_uint_ge(ls_clock_mono_ns(), mono);
	ck_assert_uint_gt(ls_clock_cpu_ns(), cpu);
	/* this was written later */
	ck_assert_int_gt(ls_clock_wall_ns(), 1700000000000000000);
}

/* Makes ROOT/sys/kernel/random/boot_id with that text; returns ROOT. */
static const char *
fake_proc(const char *text)
{
	static const char *const dirs[] = { "/sys", "/sys/kernel",
		"/sys/kernel/random" };
	const char *root = ls_test_tmpdir();
	char path[512];
	FILE *f;

	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%.400s%s", root, dirs[i]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	(void)snprintf(path, sizeof(path), "%.400s/sys/kernel/random/boot_id", root);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	return root;
}

LS_TEST(clock, boot_id_is_read)
{
	static const uint8_t want[LS_BOOT_ID_BYTES] = { 0x01, 0x23, 0x45, 0x67, 0x89,
		0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };
	uint8_t id[LS_BOOT_ID_BYTES];

	ck_assert_int_eq(
		ls_clock_boot_id(fake_proc("01234567-89ab-cdef-0123-456789abcdef\n"),
			id),
		0);
	ck_assert_mem_eq(id, want, sizeof(id));
	ck_assert_int_eq(ls_clock_boot_id("/proc", id), 0);
}

static const char *const malformed[] = {
	"",
	"\n",
	"01234567-89ab-cdef-0123-456789abcde\n",
	"01234567-89ab-cdef-0123-456789abcdef0\n",
	"01234567-89ab-cdef-0123-456789abcdeg\n",
	"01234567089ab0cdef001230456789abcdef\n",
	"0123456789abcdef0123456789abcdef\n",
	"\n01234567-89ab-cdef-0123-456789abcdef\n",
};

LS_TEST_EACH(clock, boot_id_refuses_malformed, malformed)
{
	uint8_t id[LS_BOOT_ID_BYTES] = { 42 };

	ck_assert_int_eq(ls_clock_boot_id(fake_proc(malformed[_i]), id), -LS_EPARSE);
	ck_assert_uint_eq(id[0], 42);
}

LS_TEST(clock, boot_id_tells_system_errors)
{
	char longest[5000];
	uint8_t id[LS_BOOT_ID_BYTES];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(ls_clock_boot_id(ls_test_tmpdir(), id), -ENOENT);
	ck_assert_int_eq(ls_clock_boot_id(longest, id), -ENAMETOOLONG);
}
