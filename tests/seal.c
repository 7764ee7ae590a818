/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/seal.h"

#include <zlib.h>

enum { SEAL_HEADER_BYTES = 64, SEAL_HEADER_CRC = 60, SEAL_CRC = 0, SEAL_PAYLOAD_CRC = 4, SEAL_LEN = 8 };

static void
seal_put(uint8_t *dst, const uint8_t *from, size_t len)
{
	uint32_t sum = (uint32_t)crc32_z(0, from, len);
	unsigned i;

	for (i = 0; i < 4; i++)
		dst[i] = (uint8_t)(sum >> 8 * i);
}

void
seal_file(uint8_t *data, size_t size, size_t record_bytes)
{
	size_t at = SEAL_HEADER_BYTES, len;

	if (size < SEAL_HEADER_BYTES)
		return;
	seal_put(data + SEAL_HEADER_CRC, data, SEAL_HEADER_CRC);
	while (size - at >= record_bytes) {
		uint8_t *r = data + at;

		at += record_bytes;
		len = (size_t)r[SEAL_LEN] | (size_t)r[SEAL_LEN + 1] << 8 | (size_t)r[SEAL_LEN + 2] << 16 |
			(size_t)r[SEAL_LEN + 3] << 24;
		if (len <= size - at)
			seal_put(r + SEAL_PAYLOAD_CRC, r + record_bytes, len);
		seal_put(r + SEAL_CRC, r + SEAL_PAYLOAD_CRC, record_bytes - SEAL_PAYLOAD_CRC);
		if (len > size - at)
			return;
		at += len;
	}
}
