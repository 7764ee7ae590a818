/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/identity_state.h"

#include <stdio.h>
#include <string.h>
#include "proto/base/json.h"

#define TELL_VALUE_BYTES 64 /* of a value in a sentence */

/* The offers of other sources that differ from the one that won. */
static json_t *
tell_offer(const struct ls_identity_offer *o)
{
	return json_pack("{s:s, s:s}", "value", o->value, "source",
		ls_identity_source_name(o->source));
}

static json_t *
tell_others(const struct ls_identity *id, const struct ls_identity_offer *won)
{
	json_t *others = json_array();

	for (size_t i = 0; i < id->count; i++) {
		const struct ls_identity_offer *o = &id->offer[i];

		if (!o->several && strcmp(o->key, won->key) == 0 &&
			strcmp(o->value, won->value) != 0)
			ls_json_append(&others, tell_offer(o));
	}
	return others;
}

json_t *
ls_identity_json(const struct ls_identity *id)
{
	const char *keys[LS_IDENTITY_FIELDS_MAX];
	size_t n = ls_identity_keys(id, keys), i;
	json_t *all = json_object();

	for (i = 0; i < n; i++) {
		const struct ls_identity_offer *o = ls_identity_winner(id, keys[i]);
		json_t *one = tell_offer(o), *others = tell_others(id, o);

		if (json_array_size(others) > 0)
			ls_json_set(&one, "others", others);
		else
			json_decref(others);
		ls_json_set(&all, o->key, one);
	}
	return all;
}

/* --- the doctor ----------------------------------------------------------- */

static void
tell_conflict(const struct ls_identity_offer *won,
	const struct ls_identity_offer *other, struct ls_doctor *d)
{
	const char *option = ls_identity_option(ls_identity_field_of(won->key)),
		   *first = ls_identity_source_name(won->source),
		   *second = ls_identity_source_name(other->source), *fix;
	bool overrides = won->source == LS_IDENTITY_FROM_CONFIG;

	if (overrides)
		fix = ls_doctor_text(d, "nothing to do if %s is meant to override",
			option);
	else if (option[0] != '\0')
		fix = ls_doctor_text(d, "say which is right with %s, or correct %s",
			option, first);
	else
		fix = ls_doctor_text(d, "correct %s or %s: one of them is wrong", first,
			second);
	ls_doctor_addf(d, overrides ? LS_DOCTOR_NONE : LS_DOCTOR_WARN, "identity",
		ls_doctor_text(d, "conflict: %s", won->key), fix,
		"%s says \"%.*s\", %s says \"%.*s\"; the first is used", first,
		TELL_VALUE_BYTES, won->value, second, TELL_VALUE_BYTES, other->value);
}

/* The highest source against each that differs; an option overrides on purpose. */
static void
tell_conflicts(const struct ls_identity *id, struct ls_doctor *d)
{
	for (size_t i = 0; i < id->count; i++) {
		const struct ls_identity_offer *o = &id->offer[i];
		const struct ls_identity_offer *won = ls_identity_winner(id, o->key);

		if (!o->several && won != NULL && won != o &&
			o->source != LS_IDENTITY_FROM_MACHINE &&
			strcmp(won->value, o->value) != 0)
			tell_conflict(won, o, d);
	}
}

static void
tell_several(const struct ls_identity *id, struct ls_doctor *d)
{
	for (size_t i = 0; i < id->count; i++) {
		const struct ls_identity_offer *o = &id->offer[i];

		if (o->several)
			ls_doctor_addf(d, LS_DOCTOR_NONE, "identity",
				ls_doctor_text(d, "several: %s", o->key),
				"nothing to do if several jobs run here",
				"%s has several values, one of them \"%.*s\": it is not used for this host",
				ls_identity_source_name(o->source), TELL_VALUE_BYTES,
				o->value);
	}
}

static void
tell_refused(const struct ls_identity *id, struct ls_doctor *d)
{
	for (size_t i = 0; i < id->refused_count; i++) {
		const struct ls_identity_offer *o = &id->refused[i];
		const char *source = ls_identity_source_name(o->source);

		ls_doctor_addf(d, LS_DOCTOR_WARN, "identity",
			ls_doctor_text(d, "not valid: %s", o->key),
			ls_doctor_text(d, "correct the value in %s", source),
			"%s gives the invalid value \"%.*s\"", source, TELL_VALUE_BYTES,
			o->value);
	}
	if (id->left_out > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "identity", "limit",
			"compare the sources: they describe more than one host",
			"%llu values exceed a maximum and are not kept",
			(unsigned long long)id->left_out);
}

/* What in a job's environment keeps libtpu's metrics or the slice's facts from being
 * seen. */
static void
tell_hints(const struct ls_identity *id, struct ls_doctor *d)
{
	const char *ports = ls_identity_get(id, LS_IDENTITY_METRICS_PORTS);
	const char *addresses = ls_identity_get(id, LS_IDENTITY_PROCESS_ADDRESSES);
	const char *skip = ls_identity_get(id, LS_IDENTITY_SKIP_MDS);

	if (ports != NULL && ports[0] == '\0')
		ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", "TPU_RUNTIME_METRICS_PORTS",
			"empty in the job: libtpu opens no metrics port",
			"unset it in the job, or set TPU_RUNTIME_METRICS_PORTS=8431 (one port a "
			"chip: 8431,8432,...)");
	if (addresses != NULL && strcmp(addresses, "local") == 0)
		ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", "TPU_PROCESS_ADDRESSES",
			"\"local\" in the job: libtpu may open no metrics port",
			"unset TPU_PROCESS_ADDRESSES in the job");
	if (skip != NULL && strcmp(skip, "false") != 0 && strcmp(skip, "0") != 0 &&
		ls_identity_get(id, LS_IDENTITY_WORKER) == NULL)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "tpu", "TPU_SKIP_MDS_QUERY",
			"set TPU_WORKER_ID and TPU_WORKER_HOSTNAMES in the job, or --worker-id",
			"\"%.*s\" in the job, and no source gives the worker id",
			TELL_VALUE_BYTES, skip);
}

static void
tell_devices(const struct ls_identity *id, struct ls_doctor *d)
{
	bool matched = ls_identity_find(id, "chip.0.device") != NULL;

	if (id->device_count > 0)
		ls_doctor_addf(d, matched ? LS_DOCTOR_OK : LS_DOCTOR_WARN, "identity",
			"devices",
			matched ? ""
				: "devices and chips cannot be matched: another container may "
				  "hold some chips, or the generation is unknown",
			"libtpu reports %zu devices, PCI shows %zu chips",
			id->device_count, id->chip_count);
}

void
ls_identity_tell(const struct ls_identity *id, struct ls_doctor *d)
{
	tell_conflicts(id, d);
	tell_several(id, d);
	tell_refused(id, d);
	tell_hints(id, d);
	tell_devices(id, d);
}
