/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"

void
ls_roller_names_fini(struct ls_roller_names *n)
{
	size_t i;

	for (i = 0; i < n->slots; i++)
		free(n->slot[i]);
	free(n->slot);
	memset(n, 0, sizeof(*n));
}

static size_t
names_hash(bool is_metric, const char *text, size_t len)
{
	uint64_t h = ls_hash(LS_HASH_START ^ is_metric, text, len);

	return (size_t)(h ^ h >> 32);
}

static struct ls_roller_name **
names_slot(struct ls_roller_name **slot, size_t slots, bool is_metric, const char *text,
	size_t len)
{
	size_t i = names_hash(is_metric, text, len) & (slots - 1);

	while (slot[i] != NULL &&
		(slot[i]->is_metric != is_metric || strlen(slot[i]->text) != len ||
			memcmp(slot[i]->text, text, len) != 0))
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

static int
names_grow(struct ls_roller_names *n)
{
	size_t slots = n->slots == 0 ? 256 : n->slots * 2, i;
	struct ls_roller_name **slot;

	if (2 * (n->count + 1) <= n->slots)
		return 0;
	slot = calloc(slots, sizeof(struct ls_roller_name *));
	if (slot == NULL)
		return -ENOMEM;
	for (i = 0; i < n->slots; i++) {
		struct ls_roller_name *name = n->slot[i];

		if (name != NULL)
			*names_slot(slot, slots, name->is_metric, name->text,
				strlen(name->text)) = name;
	}
	free(n->slot);
	n->slot = slot;
	n->slots = slots;
	return 0;
}

static int
names_add(struct ls_roller_names *n, bool is_metric, const char *text, size_t len,
	struct ls_roller_name **ret_name)
{
	struct ls_roller_name *name, **slot;
	int rc;

	if (n->count == LS_ROLLUP_NAMES_MAX)
		return -LS_ELIMIT;
	rc = names_grow(n);
	if (rc != 0)
		return rc;
	slot = names_slot(n->slot, n->slots, is_metric, text, len);
	if (*slot == NULL) {
		name = calloc(1, sizeof(*name) + len + 1);
		if (name == NULL)
			return -ENOMEM;
		name->is_metric = is_metric;
		memcpy(name->text, text, len);
		*slot = name;
		n->count++;
	}
	*ret_name = *slot;
	return 0;
}

int
ls_roller_names_put(struct ls_roller_names *n, bool is_metric, const char *text,
	uint32_t id)
{
	uint32_t *last = is_metric ? &n->last_metric : &n->last_labels;
	struct ls_roller_name *name;
	int rc = names_add(n, is_metric, text, strlen(text), &name);

	if (rc != 0)
		return rc;
	name->id = id;
	*last = id > *last ? id : *last;
	return 0;
}

int
ls_roller_names_id(struct ls_roller_names *n, bool is_metric, const char *text,
	size_t len, uint32_t *ret_id)
{
	uint32_t *last = is_metric ? &n->last_metric : &n->last_labels;
	struct ls_roller_name *name;
	int rc;

	if (n->slots > 0) {
		name = *names_slot(n->slot, n->slots, is_metric, text, len);
		if (name != NULL) {
			*ret_id = name->id;
			return 0;
		}
	}
	rc = names_add(n, is_metric, text, len, &name);
	if (rc != 0)
		return rc;
	name->id = ++*last;
	name->is_new = true;
	n->new_count++;
	*ret_id = name->id;
	return 0;
}
