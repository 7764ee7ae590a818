/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/frame.h"

#include <errno.h>
#include <string.h>

enum { FRAME_REQ = 0x30, FRAME_REP = 0x31, FRAME_WORD_BYTES = 4, FRAME_LAST_WORD = 0x80 };

void
ls_frame_greet(uint8_t *out)
{
	static const uint8_t greeting[LS_FRAME_GREETING_BYTES] = { 0, 'S', 'P', 0, 0, FRAME_REP, 0, 0 };

	memcpy(out, greeting, sizeof(greeting));
}

int
ls_frame_check_greeting(const uint8_t *buf)
{
	static const uint8_t version[] = { 0, 'S', 'P', 0 };

	if (memcmp(buf, version, sizeof(version)) != 0 || buf[6] != 0 || buf[7] != 0)
		return -LS_EPARSE;
	return buf[4] == 0 && buf[5] == FRAME_REQ ? 0 : -LS_EUNKNOWN;
}

int
ls_frame_length(const uint8_t *buf, size_t len, size_t max, size_t *ret_bytes)
{
	uint64_t message = 0;
	unsigned i;

	if (len < LS_FRAME_LENGTH_BYTES)
		return -EAGAIN;
	for (i = 0; i < LS_FRAME_LENGTH_BYTES; i++)
		message = message << 8 | buf[i];
	if (message > max)
		return -LS_ELIMIT;
	*ret_bytes = LS_FRAME_LENGTH_BYTES + (size_t)message;
	return 0;
}

int
ls_frame_route(const uint8_t *message, size_t len, size_t *ret_bytes)
{
	size_t at;

	for (at = 0; at < LS_FRAME_ROUTE_MAX_BYTES && len - at >= FRAME_WORD_BYTES; at += FRAME_WORD_BYTES) {
		if (message[at] & FRAME_LAST_WORD) {
			*ret_bytes = at + FRAME_WORD_BYTES;
			return 0;
		}
	}
	return -LS_EPARSE;
}

void
ls_frame_put_length(uint8_t *out, size_t len)
{
	unsigned i;

	for (i = 0; i < LS_FRAME_LENGTH_BYTES; i++)
		out[i] = (uint8_t)((uint64_t)len >> (56 - 8 * i));
}
