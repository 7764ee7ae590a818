/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_names.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

void
ls_roller_names_fini(struct ls_roller_names *n)
{
	tdestroy(n->root, free);
	memset(n, 0, sizeof(*n));
}

static int
names_compare(const void *a, const void *b)
{
	const struct ls_roller_name *x = a, *y = b;

	return x->is_metric == y->is_metric ? strcmp(x->text, y->text)
					    : x->is_metric - y->is_metric;
}

int
ls_roller_names_get(struct ls_roller_names *n, bool is_metric, const char *text,
	size_t len, uint32_t id, uint32_t *ret_id)
{
	uint32_t *last = is_metric ? &n->last_metric : &n->last_labels;
	bool full = n->count == LS_ROLLUP_NAMES_MAX;
	struct ls_roller_name **place, *name = calloc(1, sizeof(*name) + len + 1);

	if (name == NULL)
		return -ENOMEM;
	name->is_metric = is_metric;
	memcpy(name->text, text, len);
	place = full ? tfind(name, &n->root, names_compare)
		     : tsearch(name, &n->root, names_compare);
	if (place == NULL || *place != name) {
		free(name);
		if (place == NULL)
			return full ? -LS_ELIMIT : -ENOMEM;
		*ret_id = (*place)->id;
		return 0;
	}
	n->count++;
	name->id = id;
	if (id == 0) {
		name->id = *last + 1;
		name->next = n->fresh;
		n->fresh = name;
	}
	*last = name->id > *last ? name->id : *last;
	*ret_id = name->id;
	return 0;
}
