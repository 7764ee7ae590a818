/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MEM_FIRST 16

int
ls_mem_grow(void **array, size_t count, size_t *capacity, size_t item_bytes)
{
	size_t wanted = *capacity == 0 ? MEM_FIRST : *capacity * 2;
	void *grown;

	LS_ASSERT(item_bytes > 0);
	if (count < *capacity)
		return 0;
	if (wanted < *capacity || wanted > SIZE_MAX / item_bytes)
		return -ENOMEM;
	grown = realloc(*array, wanted * item_bytes);
	if (grown == NULL)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}

int
ls_mem_reserve(void **data, size_t *size, size_t bytes)
{
	void *grown;

	if (bytes <= *size)
		return 0;
	if (bytes > SIZE_MAX / 2)
		return -ENOMEM;
	grown = realloc(*data, bytes + bytes / 2);
	if (grown == NULL)
		return -ENOMEM;
	*data = grown;
	*size = bytes + bytes / 2;
	return 0;
}

void *
ls_mem_copy(const void *data, size_t len)
{
	void *copy = malloc(len);

	return copy != NULL ? memcpy(copy, data, len) : NULL;
}
