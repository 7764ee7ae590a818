/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire_decode.h"

enum { SCAN_VARINT = 0, SCAN_FIXED64 = 1, SCAN_LENGTH = 2, SCAN_FIXED32 = 5 };

struct scan_in {
	const uint8_t *p, *end;
};

/* A varint of 64 bits at most; false: there is none. */
static bool
scan_varint(struct scan_in *in, uint64_t *ret_value)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && in->p < in->end; shift += 7) {
		uint8_t byte = *in->p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0) {
			*ret_value = v;
			return shift < 63 || byte <= 1;
		}
	}
	return false;
}

/* Skips a value of any type; *ret_v is that of a varint, or a length. Groups (types 3, 4)
 * were never in use. */
static bool
scan_skip(struct scan_in *in, unsigned wire, uint64_t *ret_v)
{
	if (wire == SCAN_VARINT)
		return scan_varint(in, ret_v);
	*ret_v = wire == SCAN_FIXED64 ? 8 : 4;
	if (wire == SCAN_LENGTH ? !scan_varint(in, ret_v)
				: wire != SCAN_FIXED64 && wire != SCAN_FIXED32)
		return false;
	if (*ret_v > (size_t)(in->end - in->p))
		return false;
	in->p += *ret_v;
	return true;
}

struct ls_wire_bytes
ls_wire_piece(struct ls_wire_bytes message, uint32_t field)
{
	struct scan_in in = { message.data, message.data + message.len };
	struct ls_wire_bytes piece = { 0 };
	uint64_t tag, v = 0;

	while (in.p < in.end && scan_varint(&in, &tag) &&
		scan_skip(&in, (unsigned)(tag & 7), &v))
		if (tag == (field << 3 | SCAN_LENGTH))
			piece = (struct ls_wire_bytes){ in.p - v, v };
	return piece;
}

bool
ls_wire_scan(const uint8_t *buf, size_t len, uint64_t *ret_seq, size_t *ret_kinds)
{
	struct scan_in in = { buf, buf + len };
	uint64_t tag, v = 0;

	*ret_seq = *ret_kinds = 0;
	while (in.p < in.end) {
		if (!scan_varint(&in, &tag) || tag >> 3 == 0 ||
			!scan_skip(&in, (unsigned)(tag & 7), &v))
			return false;
		if (tag == (1 << 3 | SCAN_VARINT))
			*ret_seq = v;
		*ret_kinds += tag >> 3 >= 2 && tag >> 3 <= 4;
	}
	return true;
}
