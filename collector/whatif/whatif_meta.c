/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_meta.h"
#include "proto/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* What has a number, and the greatest there may be. */
static const struct {
	const char *name;
	size_t offset;
	uint32_t max;
} meta_sizes[] = {
	{ "dp_size", offsetof(struct ls_whatif_meta, dp_size), LS_WHATIF_WORKERS_MAX },
	{ "dsp_size", offsetof(struct ls_whatif_meta, dsp_size),
		LS_WHATIF_WORKERS_MAX },
	{ "pp_size", offsetof(struct ls_whatif_meta, pp_size), LS_WHATIF_STAGES_MAX },
	{ "tp_size", offsetof(struct ls_whatif_meta, tp_size), LS_WHATIF_WORKERS_MAX },
	{ "vpp_size", offsetof(struct ls_whatif_meta, vpp_size), LS_WHATIF_STAGES_MAX },
	{ "world_size", offsetof(struct ls_whatif_meta, world_size),
		LS_WHATIF_WORLD_MAX },
};
#define META_SIZES (sizeof(meta_sizes) / sizeof(meta_sizes[0]))

struct meta_parser {
	yaml_parser_t yaml;
	yaml_event_t event;
	bool held; /* event is to be freed */
	struct ls_whatif_meta meta;
	unsigned given; /* bit i: meta_sizes[i]; one more: trial_name */
	struct ls_whatif_error *error;
};

/* The next event; what the library finds wrong is told with its line. */
static int
meta_next(struct meta_parser *p)
{
	if (p->held)
		yaml_event_delete(&p->event);
	p->held = yaml_parser_parse(&p->yaml, &p->event) == 1;
	if (p->held)
		return 0;
	if (p->yaml.error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	return ls_whatif_bad(p->error, p->yaml.problem_mark.line + 1, "no YAML: %s",
		p->yaml.problem != NULL ? p->yaml.problem : "it cannot be read");
}

static int
meta_bad(struct meta_parser *p, const char *text)
{
	return ls_whatif_bad(p->error, p->event.start_mark.line + 1, "%s", text);
}

static int
meta_expect(struct meta_parser *p, yaml_event_type_t type, const char *otherwise)
{
	int rc = meta_next(p);

	return rc == 0 && p->event.type != type ? meta_bad(p, otherwise) : rc;
}

static const char *
meta_text(const struct meta_parser *p)
{
	return (const char *)p->event.data.scalar.value;
}

/* --- values --------------------------------------------------------------- */

/* Reads over a value, of however many levels (libyaml bounds them). */
static int
meta_skip(struct meta_parser *p)
{
	size_t depth = 0;
	int rc = 0;

	for (;;) {
		rc = meta_next(p);
		if (rc != 0)
			return rc;
		if (p->event.type == YAML_ALIAS_EVENT)
			return meta_bad(p, "aliases are not supported");
		if (p->event.type == YAML_MAPPING_START_EVENT ||
			p->event.type == YAML_SEQUENCE_START_EVENT)
			depth++;
		if (p->event.type == YAML_MAPPING_END_EVENT ||
			p->event.type == YAML_SEQUENCE_END_EVENT)
			depth--;
		if (depth == 0)
			return 0;
	}
}

/* The value of a name, which may be given once. */
static int
meta_once(struct meta_parser *p, size_t which, const char *name)
{
	if ((p->given >> which & 1) != 0)
		return ls_whatif_bad(p->error, p->event.start_mark.line + 1,
			"%s is repeated", name);
	p->given |= 1u << which;
	return meta_next(p);
}

static int
meta_take_size(struct meta_parser *p, size_t which)
{
	uint32_t *field = (uint32_t *)((char *)&p->meta + meta_sizes[which].offset);
	uint64_t line = p->event.start_mark.line + 1;
	unsigned long v;
	int rc = meta_once(p, which, meta_sizes[which].name);

	if (rc != 0)
		return rc;
	if (p->event.type == YAML_SCALAR_EVENT && meta_text(p)[0] != '\0' &&
		p->event.data.scalar.length <= 9 &&
		strspn(meta_text(p), "0123456789") == p->event.data.scalar.length) {
		v = strtoul(meta_text(p), NULL, 10);
		if (v >= 1 && v <= meta_sizes[which].max) {
			*field = (uint32_t)v;
			return 0;
		}
	}
	return ls_whatif_bad(p->error, line,
		"%s must be a whole number from 1 to %" PRIu32, meta_sizes[which].name,
		meta_sizes[which].max);
}

static int
meta_take_name(struct meta_parser *p)
{
	int rc = meta_once(p, META_SIZES, "trial_name");

	if (rc != 0)
		return rc;
	if (p->event.type != YAML_SCALAR_EVENT ||
		!ls_text_is_name(meta_text(p), p->event.data.scalar.length,
			sizeof(p->meta.name) - 1))
		return meta_bad(p,
			"trial_name must be text of 1 to 127 bytes, without control characters");
	return ls_text_copy(p->meta.name, sizeof(p->meta.name), meta_text(p));
}

/* A name, which has just been read, and its value. */
static int
meta_take(struct meta_parser *p)
{
	if (p->event.type != YAML_SCALAR_EVENT)
		return meta_bad(p, "each name must be plain text");
	if (strlen(meta_text(p)) == p->event.data.scalar.length) {
		for (size_t i = 0; i < META_SIZES; i++) {
			if (strcmp(meta_text(p), meta_sizes[i].name) == 0)
				return meta_take_size(p, i);
		}
		if (strcmp(meta_text(p), "trial_name") == 0)
			return meta_take_name(p);
	}
	return meta_skip(p);
}

/* --- the whole ------------------------------------------------------------ */

static int
meta_check(struct meta_parser *p)
{
	struct ls_whatif_meta *m = &p->meta;
	uint64_t world;

	if (m->dp_size == 0 || m->pp_size == 0)
		return ls_whatif_bad(p->error, 0, "%s is missing",
			m->dp_size == 0 ? "dp_size" : "pp_size");
	if (m->vpp_size != 1)
		return ls_whatif_bad(p->error, 0,
			"vpp_size is %" PRIu32
			": pipelines with several chunks a stage are not replayed",
			m->vpp_size);
	if ((uint64_t)m->dp_size * m->pp_size > LS_WHATIF_WORKERS_MAX)
		return ls_whatif_bad(p->error, 0, "dp_size x pp_size is above %u",
			LS_WHATIF_WORKERS_MAX);
	world = (uint64_t)m->dp_size * m->pp_size * m->dsp_size; /* at most 2^32 */
	if (world > LS_WHATIF_WORLD_MAX || world * m->tp_size > LS_WHATIF_WORLD_MAX)
		return ls_whatif_bad(p->error, 0, "the sizes multiply to more than %u",
			LS_WHATIF_WORLD_MAX);
	world *= m->tp_size;
	if (m->world_size != 0 && m->world_size != world)
		return ls_whatif_bad(p->error, 0,
			"world_size is %" PRIu32
			", but dp_size x pp_size x tp_size x dsp_size is %" PRIu64,
			m->world_size, world);
	return 0;
}

static int
meta_document(struct meta_parser *p)
{
	int rc = meta_expect(p, YAML_STREAM_START_EVENT, "no YAML");

	if (rc == 0)
		rc = meta_expect(p, YAML_DOCUMENT_START_EVENT, "it is empty");
	if (rc == 0)
		rc = meta_expect(p, YAML_MAPPING_START_EVENT,
			"it must be lines of NAME: NUMBER");
	if (rc == 0)
		rc = meta_next(p);
	while (rc == 0 && p->event.type != YAML_MAPPING_END_EVENT) {
		rc = meta_take(p);
		if (rc == 0)
			rc = meta_next(p);
	}
	if (rc == 0)
		rc = meta_expect(p, YAML_DOCUMENT_END_EVENT,
			"text follows the last entry");
	if (rc == 0)
		rc = meta_expect(p, YAML_STREAM_END_EVENT, "a second document follows");
	return rc == 0 ? meta_check(p) : rc;
}

int
ls_whatif_meta_parse(const char *text, size_t len, struct ls_whatif_meta *ret_meta,
	struct ls_whatif_error *ret_error)
{
	struct meta_parser p = { .error = ret_error,
		.meta = { .dsp_size = 1, .tp_size = 1, .vpp_size = 1 } };
	int rc;

	if (len > LS_WHATIF_META_MAX_BYTES)
		return ls_whatif_bad(ret_error, 0, "it is longer than %d bytes",
			LS_WHATIF_META_MAX_BYTES);
	if (yaml_parser_initialize(&p.yaml) != 1)
		return -ENOMEM;
	yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, len);
	rc = meta_document(&p);
	if (p.held)
		yaml_event_delete(&p.event);
	yaml_parser_delete(&p.yaml);
	if (rc == 0)
		*ret_meta = p.meta;
	return rc;
}

int
ls_whatif_meta_read(const char *path, struct ls_whatif_meta *ret_meta,
	struct ls_whatif_error *ret_error)
{
	char *text = malloc(LS_WHATIF_META_MAX_BYTES + 1);
	FILE *f = fopen(path, "re");
	size_t len;
	int rc = 0;

	if (f == NULL || text == NULL) {
		rc = text == NULL ? -ENOMEM : -errno;
		goto out;
	}
	len = fread(text, 1, LS_WHATIF_META_MAX_BYTES + 1, f);
	rc = ferror(f) ? -EIO : ls_whatif_meta_parse(text, len, ret_meta, ret_error);
out:
	if (f != NULL)
		(void)fclose(f); /* only read */
	free(text);
	return rc;
}
