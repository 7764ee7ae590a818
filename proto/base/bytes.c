/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/bytes.h"

#include <endian.h>
#include <string.h>
#include <zlib.h>
#include "proto/base/err.h"

void
ls_bytes_put(uint8_t *p, uint64_t v, unsigned bytes)
{
	LS_ASSERT(bytes <= sizeof(v));
	v = htole64(v);
	memcpy(p, &v, bytes);
}

uint64_t
ls_bytes_get(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	LS_ASSERT(bytes <= sizeof(v));
	memcpy(&v, p, bytes);
	return le64toh(v);
}

uint32_t
ls_bytes_crc(const uint8_t *p, size_t len)
{
	return len == 0 ? 0 : (uint32_t)crc32_z(0, p, len);
}
