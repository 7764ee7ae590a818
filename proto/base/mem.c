/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MEM_FIRST 16

int
ls_mem_resize(void **array, size_t count, size_t item_bytes)
{
	void *sized;

	LS_ASSERT(count > 0 && item_bytes > 0);
	sized = count > SIZE_MAX / item_bytes ? NULL
					      : realloc(*array, count * item_bytes);
	if (sized == NULL)
		return -ENOMEM;
	*array = sized;
	return 0;
}

int
ls_mem_widen(void **array, size_t *count, size_t n, size_t item_bytes)
{
	int rc = n > *count ? ls_mem_resize(array, n, item_bytes) : 0;

	if (rc != 0 || n <= *count)
		return rc;
	memset((char *)*array + *count * item_bytes, 0, (n - *count) * item_bytes);
	*count = n;
	return 0;
}

int
ls_mem_grow(void **array, size_t count, size_t *capacity, size_t item_bytes)
{
	size_t wanted = *capacity == 0 ? MEM_FIRST : *capacity * 2;
	int rc;

	if (count < *capacity)
		return 0;
	rc = wanted < *capacity ? -ENOMEM : ls_mem_resize(array, wanted, item_bytes);
	if (rc == 0)
		*capacity = wanted;
	return rc;
}

int
ls_mem_reserve(void **data, size_t *size, size_t bytes)
{
	int rc;

	if (bytes <= *size)
		return 0;
	rc = bytes > SIZE_MAX / 2 ? -ENOMEM : ls_mem_resize(data, bytes + bytes / 2, 1);
	if (rc == 0)
		*size = bytes + bytes / 2;
	return rc;
}

void *
ls_mem_copy(const void *data, size_t len)
{
	void *copy = malloc(len);

	return copy != NULL ? memcpy(copy, data, len) : NULL;
}
