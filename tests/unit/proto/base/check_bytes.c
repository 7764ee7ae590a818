/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/bytes.h"

#include <string.h>
#include "tests/support/harness.h"

LS_CASE(bytes);

LS_TEST(bytes, the_least_byte_is_first_and_no_other_is_touched)
{
	static const uint8_t want[] = { 0xff, 0x08, 0x07, 0x06, 0x05, 0xff };
	uint8_t b[6];

	memset(b, 0xff, sizeof(b));
	ls_bytes_put(b + 1, 0x0102030405060708, 4);
	ck_assert_mem_eq(b, want, sizeof(want));
	ck_assert_uint_eq(ls_bytes_get(b + 1, 4), 0x05060708);
	ck_assert_uint_eq(ls_bytes_get(b + 1, 1), 8);
}

LS_TEST(bytes, every_length_comes_back)
{
	uint8_t b[8];
	unsigned n;

	for (n = 1; n <= 8; n++) {
		uint64_t v = UINT64_MAX >> (64 - 8 * n);

		ls_bytes_put(b, v, n);
		ck_assert_uint_eq(ls_bytes_get(b, n), v);
		ls_bytes_put(b, v - 0x5a, n);
		ck_assert_uint_eq(ls_bytes_get(b, n), v - 0x5a);
	}
}

LS_TEST(bytes, the_checksum_is_that_of_gzip)
{
	ck_assert_uint_eq(ls_bytes_crc((const uint8_t *)"123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(ls_bytes_crc(NULL, 0), 0);
}
