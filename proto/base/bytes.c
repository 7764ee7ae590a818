/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/bytes.h"

#include <zlib.h>
#include "proto/base/err.h"

void
ls_bytes_put(uint8_t *p, uint64_t v, unsigned bytes)
{
	LS_ASSERT(bytes <= sizeof(v));
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

uint64_t
ls_bytes_get(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	LS_ASSERT(bytes <= sizeof(v));
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

uint32_t
ls_bytes_crc(const uint8_t *p, size_t len)
{
	return len == 0 ? 0 : (uint32_t)crc32_z(0, p, len);
}
