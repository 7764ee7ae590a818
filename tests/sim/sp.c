/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/sim/sp.h"

#include <errno.h>
#include <string.h>
#include "proto/limits.h"

enum { SP_REQ = 0x30, SP_REP = 0x31, SP_LENGTH_BYTES = 8, SP_ID_BYTES = 4 };

void
sim_sp_greet(uint8_t out[SIM_SP_GREETING_BYTES])
{
	static const uint8_t greeting[] = { 0, 'S', 'P', 0, 0, SP_REQ, 0, 0 };

	memcpy(out, greeting, sizeof(greeting));
}

int
sim_sp_check_greeting(const uint8_t *buf, size_t len)
{
	static const uint8_t wanted[] = { 0, 'S', 'P', 0, 0, SP_REP, 0, 0 };

	/* What is wrong in part is wrong as a whole. */
	if (memcmp(buf, wanted, len < sizeof(wanted) ? len : sizeof(wanted)) != 0)
		return -LS_EPARSE;
	return len < sizeof(wanted) ? -EAGAIN : 0;
}

void
sim_sp_head(uint8_t out[SIM_SP_HEAD_BYTES], uint32_t id, size_t body_len)
{
	uint64_t len = (uint64_t)body_len + SP_ID_BYTES;
	unsigned i;

	id |= SIM_SP_ID;
	for (i = 0; i < SP_LENGTH_BYTES; i++)
		out[i] = (uint8_t)(len >> (56 - 8 * i));
	for (i = 0; i < SP_ID_BYTES; i++)
		out[SP_LENGTH_BYTES + i] = (uint8_t)(id >> (24 - 8 * i));
}

int
sim_sp_take(const uint8_t *buf, size_t len, struct sim_sp_answer *ret_answer)
{
	uint64_t frame = 0;
	uint32_t id = 0;
	unsigned i;

	if (len < SP_LENGTH_BYTES)
		return -EAGAIN;
	for (i = 0; i < SP_LENGTH_BYTES; i++)
		frame = frame << 8 | buf[i];
	if (frame < SP_ID_BYTES)
		return -LS_EPARSE;
	if (frame > LS_ACK_MAX_BYTES + SP_ID_BYTES)
		return -LS_ELIMIT;
	if (len - SP_LENGTH_BYTES < frame)
		return -EAGAIN;
	for (i = 0; i < SP_ID_BYTES; i++)
		id = id << 8 | buf[SP_LENGTH_BYTES + i];
	if ((id & SIM_SP_ID) == 0)
		return -LS_EPARSE;
	ret_answer->id = id;
	ret_answer->body = buf + SP_LENGTH_BYTES + SP_ID_BYTES;
	ret_answer->len = (size_t)frame - SP_ID_BYTES;
	ret_answer->used = (size_t)frame + SP_LENGTH_BYTES;
	return 0;
}
