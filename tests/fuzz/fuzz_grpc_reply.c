/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/tpu/grpc_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Up to the next NUL, or the end. */
static size_t
word(const uint8_t **data, size_t *size, const char **ret_word)
{
	const uint8_t *end = memchr(*data, 0, *size);
	size_t len = end != NULL ? (size_t)(end - *data) : *size;

	*ret_word = (const char *)*data;
	*data += len + (end != NULL);
	*size -= len + (end != NULL);
	return len;
}

/* 'h' name NUL value NUL: a header; 'd' length bytes: data; anything else is passed
 * over. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_grpc_reply reply;
	struct ls_grpc_answer answer;
	int rc = 0;

	ls_grpc_reply_init(&reply);
	while (size > 0) {
		uint8_t kind = *data++;
		const char *name, *value;
		size_t name_len, len;

		size--;
		if (kind == 'h') {
			name_len = word(&data, &size, &name);
			len = word(&data, &size, &value);
			rc = ls_grpc_reply_header(&reply, name, name_len, value, len);
		} else if (kind == 'd' && size > 0) {
			len = *data++;
			size--;
			if (len > size)
				len = size;
			rc = ls_grpc_reply_data(&reply, data, len);
			data += len;
			size -= len;
		}
		if (rc != reply.rc)
			abort();
	}
	ls_grpc_reply_finish(&reply, &answer);
	if (answer.text == NULL || strlen(answer.text) >= LS_GRPC_TEXT_MAX_BYTES ||
		(answer.rc == 0 && answer.status == LS_GRPC_OK &&
			(answer.message == NULL ||
				answer.len > LS_GRPC_MESSAGE_MAX_BYTES)))
		abort();
	ls_grpc_reply_fini(&reply);
	return 0;
}
