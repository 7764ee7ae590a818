/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/identity/identity.h"
#include "proto/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every source sees every text; what is kept can always be shown and sent. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ls_wire_identity fields[LS_IDENTITY_FIELDS_MAX];
	static struct ls_doctor doctor;
	struct ls_identity *id = ls_identity_new();
	const char *text = (const char *)data;
	size_t n, i;
	unsigned item;
	json_t *o;

	if (id == NULL)
		return 0;
	for (item = 0; item < LS_METADATA_ITEM_COUNT; item++)
		ls_identity_metadata(id, (enum ls_metadata_item)item, text, size);
	ls_identity_labels(id, text, size);
	ls_identity_environ_begin(id);
	ls_identity_environ_add(id, text, size);
	(void)ls_identity_settle(id);
	n = ls_identity_fields(id, fields, LS_IDENTITY_FIELDS_MAX);
	for (i = 0; i < n; i++) {
		size_t len = strlen(fields[i].value);

		if (len > 0 &&
			!ls_text_is_name(fields[i].value, len,
				sizeof(fields[i].value) - 1))
			abort();
	}
	o = ls_identity_json(id);
	if (o == NULL || json_object_size(o) != n)
		abort();
	json_decref(o);
	memset(&doctor, 0, sizeof(doctor));
	ls_identity_tell(id, &doctor);
	ls_identity_free(id);
	return 0;
}
