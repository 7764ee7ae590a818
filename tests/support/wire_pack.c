/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/wire_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES 8192u /* first piece */

/* Packs the item, or the report if item is NULL. The copy is exact: a sanitizer sees
 * a read past the end. */
static int
pack(const struct ls_wire_item *item, const struct ls_wire_report *r, size_t size,
	uint8_t **ret_buf, size_t *ret_len)
{
	struct ls_arena *scratch = ls_arena_new(SCRATCH_BYTES, LS_REPORT_MAX_BYTES);
	uint8_t *buf = malloc(size), *fit = NULL;
	size_t len = 0;
	int rc = scratch != NULL && buf != NULL ? 0 : -ENOMEM;

	if (rc == 0)
		rc = item != NULL ? ls_wire_item_pack_to(item, scratch, buf, size, &len)
				  : ls_wire_report_pack_to(r, scratch, buf, size, &len);
	if (rc == 0)
		fit = malloc(len > 0 ? len : 1);
	if (rc == 0 && fit == NULL)
		rc = -ENOMEM;
	if (rc == 0) {
		memcpy(fit, buf, len);
		*ret_buf = fit;
		*ret_len = len;
	}
	ls_arena_free(scratch);
	free(buf);
	return rc;
}

int
ls_test_item_pack(const struct ls_wire_item *item, uint8_t **ret_buf, size_t *ret_len)
{
	return pack(item, NULL, LS_ITEM_MAX_BYTES, ret_buf, ret_len);
}

int
ls_test_report_pack(const struct ls_wire_report *r, uint8_t **ret_buf, size_t *ret_len)
{
	return pack(NULL, r, LS_REPORT_MAX_BYTES, ret_buf, ret_len);
}
