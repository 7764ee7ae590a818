/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <string.h>
#include "proto/base/text.h"
#include "proto/wire/wire_decode.h"

/* --- zoomed values -------------------------------------------------------- */

#define ZOOMED(field, max, why)                                                      \
	LS_WIRE_FIELD(NUMBER, Lockstep__Zoomed, field, struct ls_wire_zoomed, field, \
		max, why)

static const struct ls_wire_field series_zoomed[] = {
	ZOOMED(dictionary, 0, NULL),
	ZOOMED(t_mono_ns, LS_WIRE_TIME_MAX_NS, "time of zoomed values"),
	{ .kind = LS_FIELD_END },
};

static int
series_pack_zoomed(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	m->zoomed =
		ls_wire_messages(&lockstep__zoomed__descriptor, r->zoomed_count, arena);
	if (m->zoomed == NULL)
		return -ENOMEM;
	m->n_zoomed = r->zoomed_count;
	for (size_t i = 0; i < r->zoomed_count; i++) {
		const struct ls_wire_zoomed *from = &r->zoomed[i];

		if (from->count > LS_SERIES_PER_GROUP_MAX)
			return -LS_ELIMIT;
		ls_wire_put(series_zoomed, from, m->zoomed[i]);
		m->zoomed[i]->n_value = from->count;
		/* only read from */
		memcpy(&m->zoomed[i]->value, &from->value, sizeof(from->value));
	}
	return 0;
}

static int
series_check_zoomed(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	int rc = 0;

	for (size_t i = 0; i < m->n_zoomed && rc == 0; i++) {
		const Lockstep__Zoomed *z = m->zoomed[i];

		if (z->n_value == 0 || z->n_value > LS_SERIES_PER_GROUP_MAX)
			return ls_wire_fail(-LS_ELIMIT, "number of zoomed values",
				ret_why);
		rc = ls_wire_take(series_zoomed, z, &r->zoomed[i], ret_why);
		r->zoomed[i].count = z->n_value;
		r->zoomed[i].value = z->value;
	}
	r->zoomed_count = m->n_zoomed;
	return rc;
}

/* --- identity ------------------------------------------------------------- */

#define IDENTITY(kind, field, why)                                                     \
	LS_WIRE_FIELD(kind, Lockstep__Identity__Field, field, struct ls_wire_identity, \
		field, 0, why)

static const struct ls_wire_field series_identity[] = {
	IDENTITY(NAME, key, "key of an identity"),
	IDENTITY(TEXT, value, "value of an identity"),
	IDENTITY(TEXT, source, "source of an identity"),
	{ .kind = LS_FIELD_END },
};

/* A value comes from outside: one that would be refused is sent escaped. */
static char *
series_identity_value(const struct ls_wire_identity *from, struct ls_arena *arena)
{
	size_t len = strnlen(from->value, sizeof(from->value));
	char *safe;

	if (len == 0 || ls_text_is_name(from->value, len, sizeof(from->value) - 1))
		return ls_wire_text(from->value);
	safe = ls_arena_take(arena, sizeof(from->value));
	if (safe != NULL)
		(void)ls_text_escape(safe, sizeof(from->value), from->value, len);
	return safe;
}

static int
series_pack_identity(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	Lockstep__Identity *identity;

	if (!r->has_identity)
		return 0;
	identity = ls_arena_take(arena, sizeof(*identity));
	if (identity == NULL)
		return -ENOMEM;
	lockstep__identity__init(identity);
	identity->field = ls_wire_messages(&lockstep__identity__field__descriptor,
		r->identity_count, arena);
	if (identity->field == NULL)
		return -ENOMEM;
	identity->n_field = r->identity_count;
	for (size_t i = 0; i < r->identity_count; i++) {
		ls_wire_put(series_identity, &r->identity[i], identity->field[i]);
		identity->field[i]->value =
			series_identity_value(&r->identity[i], arena);
		if (identity->field[i]->value == NULL)
			return -ENOMEM;
	}
	m->identity = identity;
	return 0;
}

static int
series_check_identity(const Lockstep__Identity *m, struct ls_wire_report *r,
	const char **ret_why)
{
	int rc = 0;

	for (size_t i = 0; i < m->n_field && rc == 0; i++)
		rc = ls_wire_take(series_identity, m->field[i], &r->identity[i],
			ret_why);
	r->identity_count = m->n_field;
	return rc;
}

/* --- both ----------------------------------------------------------------- */

int
ls_wire_series_pack(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	int rc;

	if (r->zoomed_count > LS_GROUPS_MAX ||
		r->identity_count > LS_IDENTITY_FIELDS_MAX)
		return -LS_ELIMIT;
	rc = series_pack_zoomed(m, r, arena);
	if (rc == 0)
		rc = series_pack_identity(m, r, arena);
	return rc;
}

int
ls_wire_series_check(const Lockstep__Report *m, struct ls_wire_report *r,
	struct ls_arena *arena, const char **ret_why)
{
	size_t fields = m->identity != NULL ? m->identity->n_field : 0;
	int rc;

	if (m->n_zoomed > LS_GROUPS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many zoomed groups", ret_why);
	if (fields > LS_IDENTITY_FIELDS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many fields of an identity",
			ret_why);
	r->has_identity = m->identity != NULL;
	r->zoomed = ls_arena_take_array(arena, m->n_zoomed, sizeof(*r->zoomed));
	r->identity = ls_arena_take_array(arena, fields, sizeof(*r->identity));
	if (r->zoomed == NULL || r->identity == NULL)
		return ls_wire_fail(ls_arena_refused(arena) ? -LS_ELIMIT : -ENOMEM,
			"no memory for series", ret_why);
	rc = series_check_zoomed(m, r, ret_why);
	if (rc == 0 && r->has_identity)
		rc = series_check_identity(m->identity, r, ret_why);
	return rc;
}
