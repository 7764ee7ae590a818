/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { FRAME_LAST_WORD = 0x80 };

_Static_assert(LS_FRAME_LENGTH_BYTES == sizeof(uint64_t) &&
		LS_FRAME_ID_BYTES == sizeof(uint32_t),
	"numbers of the frame");

void
ls_frame_greet(enum ls_frame_side us, uint8_t *out)
{
	const uint8_t greeting[LS_FRAME_GREETING_BYTES] = { 0, 'S', 'P', 0, 0,
		(uint8_t)us, 0, 0 };

	memcpy(out, greeting, sizeof(greeting));
}

int
ls_frame_check_greeting(enum ls_frame_side them, const uint8_t *buf)
{
	static const uint8_t version[] = { 0, 'S', 'P', 0 };

	if (memcmp(buf, version, sizeof(version)) != 0 || buf[6] != 0 || buf[7] != 0)
		return -LS_EPARSE;
	return buf[4] == 0 && buf[5] == them ? 0 : -LS_EUNKNOWN;
}

int
ls_frame_length(const uint8_t *buf, size_t len, size_t max, size_t *ret_bytes)
{
	uint64_t message;

	if (len < LS_FRAME_LENGTH_BYTES)
		return -EAGAIN;
	memcpy(&message, buf, sizeof(message));
	message = be64toh(message);
	if (message > max)
		return -LS_ELIMIT;
	*ret_bytes = LS_FRAME_LENGTH_BYTES + (size_t)message;
	return 0;
}

int
ls_frame_route(const uint8_t *message, size_t len, size_t *ret_bytes)
{
	for (size_t at = 0;
		at < LS_FRAME_ROUTE_MAX_BYTES && len - at >= LS_FRAME_ID_BYTES;
		at += LS_FRAME_ID_BYTES) {
		if (message[at] & FRAME_LAST_WORD) {
			*ret_bytes = at + LS_FRAME_ID_BYTES;
			return 0;
		}
	}
	return -LS_EPARSE;
}

int
ls_frame_id(const uint8_t *message, size_t len, uint32_t *ret_id)
{
	uint32_t id;

	if (len < LS_FRAME_ID_BYTES || (message[0] & FRAME_LAST_WORD) == 0)
		return -LS_EPARSE;
	memcpy(&id, message, sizeof(id));
	*ret_id = be32toh(id);
	return 0;
}

void
ls_frame_put_length(uint8_t *out, size_t len)
{
	uint64_t bytes = htobe64(len);

	memcpy(out, &bytes, sizeof(bytes));
}

void
ls_frame_put_id(uint8_t *out, uint32_t id)
{
	id = htobe32(id | LS_FRAME_ID);
	memcpy(out, &id, sizeof(id));
}
