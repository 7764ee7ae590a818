/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool_format.h"

#include <string.h>
#include "proto/base/bytes.h"

/* Offsets of proto/FORMAT.md, "Spool". */
enum {
	HEAD_VERSION = 8,
	HEAD_BOOT = 16,
	HEAD_KERNEL = 32,
	HEAD_BASE = 48,
	HEAD_CRC = 60
};
enum {
	REC_CRC = 0,
	REC_PAYLOAD_CRC = 4,
	REC_LEN = 8,
	REC_TYPE = 12,
	REC_NAME = 13,
	REC_SEQ = 16,
	REC_FIRST = 24,
	REC_COUNT = 32,
	REC_RING = 40,
	REC_HASH = 40,
	REC_LAST = 48
};

static const char spool_magic[8] = { 'L', 'S', 'S', 'P', 'O', 'O', 'L', '1' };
#define SPOOL_VERSION 2u
#define SPOOL_VERSION_MIN 1u

void
ls_spool_header_put(uint8_t dst[LS_SPOOL_HEADER_BYTES], const struct ls_spool_header *h)
{
	memset(dst, 0, LS_SPOOL_HEADER_BYTES);
	memcpy(dst, spool_magic, sizeof(spool_magic));
	ls_bytes_put(dst + HEAD_VERSION, SPOOL_VERSION, 4);
	memcpy(dst + HEAD_BOOT, h->boot, sizeof(h->boot));
	memcpy(dst + HEAD_KERNEL, h->kernel_boot_id, sizeof(h->kernel_boot_id));
	ls_bytes_put(dst + HEAD_BASE, h->base, 8);
	ls_bytes_put(dst + HEAD_CRC, ls_bytes_crc(dst, HEAD_CRC), 4);
}

int
ls_spool_header_get(const uint8_t *bytes, size_t len,
	struct ls_spool_header *ret_header)
{
	if (len < LS_SPOOL_HEADER_BYTES ||
		memcmp(bytes, spool_magic, sizeof(spool_magic)) != 0 ||
		ls_bytes_get(bytes + HEAD_VERSION, 4) < SPOOL_VERSION_MIN ||
		ls_bytes_get(bytes + HEAD_VERSION, 4) > SPOOL_VERSION)
		return -LS_EPARSE;
	if (ls_bytes_get(bytes + HEAD_CRC, 4) != ls_bytes_crc(bytes, HEAD_CRC) ||
		ls_bytes_get(bytes + HEAD_BASE, 8) == 0 ||
		ls_bytes_get(bytes + HEAD_BASE, 8) > LS_SPOOL_SEQ_MAX)
		return -LS_ECORRUPT;
	memcpy(ret_header->boot, bytes + HEAD_BOOT, sizeof(ret_header->boot));
	memcpy(ret_header->kernel_boot_id, bytes + HEAD_KERNEL,
		sizeof(ret_header->kernel_boot_id));
	ret_header->base = ls_bytes_get(bytes + HEAD_BASE, 8);
	return 0;
}

void
ls_spool_record_put(uint8_t dst[LS_SPOOL_RECORD_BYTES], const struct ls_spool_record *r)
{
	memset(dst, 0, LS_SPOOL_RECORD_BYTES);
	ls_bytes_put(dst + REC_PAYLOAD_CRC, ls_bytes_crc(r->payload, r->len), 4);
	ls_bytes_put(dst + REC_LEN, r->len, 4);
	dst[REC_TYPE] = (uint8_t)r->type;
	ls_bytes_put(dst + REC_SEQ, r->seq, 8);
	ls_bytes_put(dst + REC_FIRST, r->first_index, 8);
	ls_bytes_put(dst + REC_COUNT, r->count, 8);
	if (r->type < LS_SPOOL_DICTIONARY) {
		memcpy(dst + REC_RING, r->ring_id, sizeof(r->ring_id));
	} else {
		dst[REC_NAME] = r->name_len;
		ls_bytes_put(dst + REC_HASH, r->hash, 8);
		ls_bytes_put(dst + REC_LAST, r->t_last, 8);
	}
	ls_bytes_put(dst + REC_CRC, ls_bytes_crc(dst + 4, LS_SPOOL_RECORD_BYTES - 4),
		4);
}

int
ls_spool_record_peek(const uint8_t bytes[LS_SPOOL_RECORD_BYTES],
	struct ls_spool_record *ret_record)
{
	struct ls_spool_record r = { 0 };

	/* This part has its own checksum, so that a length can be believed before it is
	 * used. */
	if (ls_bytes_get(bytes + REC_CRC, 4) !=
		ls_bytes_crc(bytes + 4, LS_SPOOL_RECORD_BYTES - 4))
		return -LS_ECORRUPT;
	r.len = (size_t)ls_bytes_get(bytes + REC_LEN, 4);
	r.seq = ls_bytes_get(bytes + REC_SEQ, 8);
	r.first_index = ls_bytes_get(bytes + REC_FIRST, 8);
	r.count = ls_bytes_get(bytes + REC_COUNT, 8);
	if (bytes[REC_TYPE] < LS_SPOOL_STEPS || bytes[REC_TYPE] > LS_SPOOL_KNOWN ||
		r.seq > LS_SPOOL_SEQ_MAX || r.first_index > UINT64_MAX - r.count)
		return -LS_ECORRUPT;
	r.type = (enum ls_spool_type)bytes[REC_TYPE];
	if (r.type < LS_SPOOL_DICTIONARY) {
		memcpy(r.ring_id, bytes + REC_RING, sizeof(r.ring_id));
	} else {
		r.name_len = bytes[REC_NAME];
		r.hash = ls_bytes_get(bytes + REC_HASH, 8);
		r.t_last = ls_bytes_get(bytes + REC_LAST, 8);
	}
	if (r.len > (r.type < LS_SPOOL_DICTIONARY ? LS_ITEM_MAX_BYTES
						  : LS_SPOOL_PAYLOAD_MAX_BYTES) ||
		r.name_len >= LS_GROUP_NAME_MAX_BYTES || r.name_len > r.len)
		return -LS_ECORRUPT;
	*ret_record = r;
	return 0;
}

int
ls_spool_record_get(const uint8_t *bytes, size_t len,
	struct ls_spool_record *ret_record)
{
	struct ls_spool_record r;

	if (len < LS_SPOOL_RECORD_BYTES)
		return -LS_EPARSE;
	if (ls_spool_record_peek(bytes, &r) != 0)
		return -LS_ECORRUPT;
	if (r.len > len - LS_SPOOL_RECORD_BYTES)
		return -LS_EPARSE;
	r.payload = bytes + LS_SPOOL_RECORD_BYTES;
	if (r.len > 0 &&
		ls_bytes_get(bytes + REC_PAYLOAD_CRC, 4) !=
			ls_bytes_crc(r.payload, r.len))
		return -LS_ECORRUPT;
	*ret_record = r;
	return 0;
}
