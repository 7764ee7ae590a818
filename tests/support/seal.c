/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/seal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
	SEAL_HEADER_BYTES = 64,
	SEAL_HEADER_CRC = 60,
	SEAL_CRC = 0,
	SEAL_PAYLOAD_CRC = 4,
	SEAL_LEN = 8
};

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
		len = (size_t)r[SEAL_LEN] | (size_t)r[SEAL_LEN + 1] << 8 |
			(size_t)r[SEAL_LEN + 2] << 16 | (size_t)r[SEAL_LEN + 3] << 24;
		if (len <= size - at)
			seal_put(r + SEAL_PAYLOAD_CRC, r + record_bytes, len);
		seal_put(r + SEAL_CRC, r + SEAL_PAYLOAD_CRC,
			record_bytes - SEAL_PAYLOAD_CRC);
		if (len > size - at)
			return;
		at += len;
	}
}

void
seal_write(const char *path, const uint8_t *data, size_t size, size_t record_bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	uint8_t *sealed = NULL;

	if (size > 0 && data[0] == 's') {
		size--;
		sealed = malloc(size + 1);
		if (sealed == NULL)
			abort();
		memcpy(sealed, data + 1, size);
		seal_file(sealed, size, record_bytes);
		data = sealed;
	}
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)close(fd);
	free(sealed);
}

void
seal_body(uint8_t *body, size_t len)
{
	seal_put(body + len - 4, body, len - 4);
}
