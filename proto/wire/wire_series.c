/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <string.h>
#include "proto/base/text.h"
#include "proto/wire/wire_decode.h"

/* --- zoomed values -------------------------------------------------------- */

static int
series_pack_zoomed(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena)
{
	Lockstep__Zoomed *z = ls_arena_take_array(arena, r->zoomed_count, sizeof(*z));
	size_t i;

	m->zoomed = ls_arena_take_array(arena, r->zoomed_count, sizeof(*m->zoomed));
	if (z == NULL || m->zoomed == NULL)
		return -ENOMEM;
	m->n_zoomed = r->zoomed_count;
	for (i = 0; i < r->zoomed_count; i++) {
		const struct ls_wire_zoomed *from = &r->zoomed[i];

		if (from->count > LS_SERIES_PER_GROUP_MAX)
			return -LS_ELIMIT;
		lockstep__zoomed__init(&z[i]);
		z[i].dictionary = from->dictionary;
		z[i].t_mono_ns = from->t_mono_ns;
		z[i].n_value = from->count;
		/* only read from */
		memcpy(&z[i].value, &from->value, sizeof(from->value));
		m->zoomed[i] = &z[i];
	}
	return 0;
}

static int
series_check_zoomed(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why)
{
	size_t i;

	for (i = 0; i < m->n_zoomed; i++) {
		const Lockstep__Zoomed *z = m->zoomed[i];

		if (z->n_value == 0 || z->n_value > LS_SERIES_PER_GROUP_MAX)
			return ls_wire_fail(-LS_ELIMIT, "number of zoomed values",
				ret_why);
		if (!ls_wire_time_ok(z->t_mono_ns))
			return ls_wire_fail(-LS_ERANGE, "time of zoomed values",
				ret_why);
		r->zoomed[i].dictionary = z->dictionary;
		r->zoomed[i].t_mono_ns = z->t_mono_ns;
		r->zoomed[i].count = z->n_value;
		r->zoomed[i].value = z->value;
	}
	r->zoomed_count = m->n_zoomed;
	return 0;
}

/* --- identity ------------------------------------------------------------- */

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
	Lockstep__Identity__Field *f;
	size_t i;

	if (!r->has_identity)
		return 0;
	f = ls_arena_take_array(arena, r->identity_count, sizeof(*f));
	m->identity = ls_arena_take(arena, sizeof(*m->identity));
	if (f == NULL || m->identity == NULL)
		return -ENOMEM;
	lockstep__identity__init(m->identity);
	m->identity->field = ls_arena_take_array(arena, r->identity_count,
		sizeof(*m->identity->field));
	if (m->identity->field == NULL)
		return -ENOMEM;
	m->identity->n_field = r->identity_count;
	for (i = 0; i < r->identity_count; i++) {
		lockstep__identity__field__init(&f[i]);
		f[i].key = ls_wire_text(r->identity[i].key);
		f[i].value = series_identity_value(&r->identity[i], arena);
		f[i].source = ls_wire_text(r->identity[i].source);
		if (f[i].value == NULL)
			return -ENOMEM;
		m->identity->field[i] = &f[i];
	}
	return 0;
}

static int
series_check_identity(const Lockstep__Identity *m, struct ls_wire_report *r,
	const char **ret_why)
{
	size_t i;

	for (i = 0; i < m->n_field; i++) {
		const Lockstep__Identity__Field *f = m->field[i];
		struct ls_wire_identity *to = &r->identity[i];

		if (!ls_wire_name(to->key, sizeof(to->key), f->key, false))
			return ls_wire_fail(-LS_ERANGE, "key of an identity", ret_why);
		if (!ls_wire_name(to->value, sizeof(to->value), f->value, true))
			return ls_wire_fail(-LS_ERANGE, "value of an identity",
				ret_why);
		if (!ls_wire_name(to->source, sizeof(to->source), f->source, true))
			return ls_wire_fail(-LS_ERANGE, "source of an identity",
				ret_why);
	}
	r->identity_count = m->n_field;
	return 0;
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
