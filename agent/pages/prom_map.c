/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/prom_map.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAP_BLANKS " \t\r\n"
#define MAP_SUFFIX_MAX_BYTES 8 /* "_bucket" and its NUL */

struct ls_prom_map {
	bool take_all;
	size_t count;
	struct ls_prom_rule rule[LS_PROM_RULES_MAX];
};

/*
 * Names and units: the GKE device plugin's open source (ai-on-gke/tpu-device-plugin);
 * utilisation and duty are percents. Its grpc_tcp_* and bamm2_* counters add the total
 * at each cycle: not taken, libtpu has them. Orbax: names are the paths of its
 * jax.monitoring events with _ for /; gbytes are 2^30 bytes.
 * Grain: the names its Prometheus export allows; ns.
 */
static const char map_built_in[] =
	"duty_cycle chip.duty_cycle_ratio *0.01 accelerator_id:chip\n"
	"duty_cycle_node chip.duty_cycle_ratio *0.01 accelerator_id:chip\n"
	"memory_used chip.hbm.used_bytes accelerator_id:chip\n"
	"memory_used_node chip.hbm.used_bytes accelerator_id:chip\n"
	"memory_total chip.hbm.total_bytes accelerator_id:chip\n"
	"memory_total_node chip.hbm.total_bytes accelerator_id:chip\n"
	"tensorcore_utilization chip.tensorcore.utilization_ratio *0.01 accelerator_id:index\n"
	"tensorcore_utilization_node chip.tensorcore.utilization_ratio *0.01 accelerator_id:index\n"
	"memory_bandwidth_utilization chip.hbm.bandwidth_ratio *0.01 accelerator_id:index\n"
	"memory_bandwidth_utilization_node chip.hbm.bandwidth_ratio *0.01 accelerator_id:index\n"
	"jax_checkpoint_write_async_blocking_duration_secs job.checkpoint.blocking_seconds\n"
	"jax_checkpoint_write_async_total_duration_secs job.checkpoint.write_seconds\n"
	"jax_checkpoint_write_async_thread_duration_sec job.checkpoint.thread_seconds\n"
	"jax_orbax_write_gbytes_per_sec job.checkpoint.write_bytes_per_second *1073741824\n"
	"jax_orbax_read_total_duration_secs job.checkpoint.read_seconds\n"
	"jax_orbax_read_gbytes_per_sec job.checkpoint.read_bytes_per_second *1073741824\n"
	"grain_python_dataset_next_duration_ns job.input.next_seconds *1e-9\n"
	"grain_python_dataset_prefetch_buffer_ready_count job.input.prefetch_ready\n"
	"grain_python_dataset_source_read_time_ns job.input.source_read_seconds *1e-9\n"
	"grain_python_data_sources_bytes_read job.input.read_bytes\n";

/* --- rules ---------------------------------------------------------------- */

static bool
map_is_name(const char *s, bool dots)
{
	size_t n;

	for (n = 0; s[n] != '\0'; n++) {
		if (!((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') ||
			    s[n] == '_' || s[n] == ':' || (dots && s[n] == '.') ||
			    (n > 0 && s[n] >= '0' && s[n] <= '9')))
			return false;
	}
	return n > 0;
}

/* A label that is kept, perhaps with what its number is. */
static const char *
map_keep(struct ls_prom_rule *r, char *word)
{
	char *id = strchr(word, ':');

	if (r->keep_count == LS_PROM_KEEP_MAX)
		return "too many labels";
	r->keep[r->keep_count].id = LS_PROM_ID_NONE;
	if (id != NULL) {
		*id++ = '\0';
		if (strcmp(id, "chip") == 0)
			r->keep[r->keep_count].id = LS_PROM_ID_CHIP;
		else if (strcmp(id, "index") == 0)
			r->keep[r->keep_count].id = LS_PROM_ID_INDEX;
		else
			return "expected chip or index after the ':' of a label";
	}
	if (!map_is_name(word, false) || strlen(word) >= sizeof(r->keep[0].name))
		return "a label is not a name";
	memcpy(r->keep[r->keep_count++].name, word, strlen(word) + 1);
	return NULL;
}

static const char *
map_scale(struct ls_prom_rule *r, const char *word)
{
	char *end;

	r->scale = strtod(word, &end);
	return *word == '\0' || *end != '\0' || !isfinite(r->scale) || r->scale == 0
		? "the scale is not a number"
		: NULL;
}

/* One line; what is wrong with it, or NULL. */
static const char *
map_line(struct ls_prom_map *m, char *line)
{
	struct ls_prom_rule *r = &m->rule[m->count];
	const char *why = NULL;
	char *next, *from, *to, *word;

	line[strcspn(line, "#")] = '\0';
	from = strtok_r(line, MAP_BLANKS, &next);
	if (from == NULL)
		return NULL;
	to = strtok_r(NULL, MAP_BLANKS, &next);
	if (strcmp(from, "*") == 0 && to == NULL) {
		m->take_all = true;
		return NULL;
	}
	if (m->count == LS_PROM_RULES_MAX)
		return "too many rules";
	if (!map_is_name(from, false) || strlen(from) >= sizeof(r->from))
		return "the first word is not a name of a page";
	if (to == NULL)
		return "the second word is missing: a metric name, or - to ignore "
		       "the sample";
	*r = (struct ls_prom_rule){ .scale = 1 };
	memcpy(r->from, from, strlen(from) + 1);
	if (strcmp(to, "-") != 0) {
		if (!map_is_name(to, true) ||
			strlen(to) >= sizeof(r->to) - MAP_SUFFIX_MAX_BYTES)
			return "the second word is not the name of a lockstep metric";
		memcpy(r->to, to, strlen(to) + 1);
	}
	while (why == NULL && (word = strtok_r(NULL, MAP_BLANKS, &next)) != NULL)
		why = word[0] == '*' ? map_scale(r, word + 1) : map_keep(r, word);
	if (why == NULL)
		m->count++;
	return why;
}

/* The rules of a text, which is written into. */
static const char *
map_text(struct ls_prom_map *m, char *text, size_t *ret_line)
{
	const char *why = NULL;
	char *end;

	*ret_line = 0;
	while (why == NULL && text != NULL) {
		end = strchr(text, '\n');
		if (end != NULL)
			*end++ = '\0';
		++*ret_line;
		why = map_line(m, text);
		text = end;
	}
	return why;
}

static int
map_file(struct ls_prom_map *m, const char *file, char *ret_why, size_t why_bytes)
{
	char *text = calloc(1, LS_PROM_MAP_MAX_BYTES + 1);
	const char *why = NULL;
	size_t len = 0, line = 0;
	FILE *f = fopen(file, "re");
	int rc = 0;

	if (f == NULL || text == NULL)
		rc = -errno;
	else
		len = fread(text, 1, LS_PROM_MAP_MAX_BYTES + 1, f);
	if (rc == 0 && ferror(f))
		rc = -EIO;
	if (rc != 0) {
		(void)snprintf(ret_why, why_bytes, "%s", ls_err_text(rc));
	} else if (len > LS_PROM_MAP_MAX_BYTES) {
		(void)snprintf(ret_why, why_bytes, "more than %d bytes",
			LS_PROM_MAP_MAX_BYTES);
		rc = -LS_ELIMIT;
	} else if (strlen(text) != len) {
		(void)snprintf(ret_why, why_bytes, "a byte of 0");
		rc = -LS_EPARSE;
	} else if ((why = map_text(m, text, &line)) != NULL) {
		(void)snprintf(ret_why, why_bytes, "line %zu: %s", line, why);
		rc = m->count == LS_PROM_RULES_MAX ? -LS_ELIMIT : -LS_EPARSE;
	}
	if (f != NULL)
		(void)fclose(f); /* only read from */
	free(text);
	return rc;
}

int
ls_prom_map_new(const char *file, struct ls_prom_map **ret_map, char *ret_why,
	size_t why_bytes)
{
	struct ls_prom_map *m = calloc(1, sizeof(*m));
	char *built_in = malloc(sizeof(map_built_in));
	size_t line;
	int rc = 0;

	(void)snprintf(ret_why, why_bytes, "out of memory");
	if (m == NULL || built_in == NULL)
		rc = -ENOMEM;
	if (rc == 0 && file[0] != '\0')
		rc = map_file(m, file, ret_why, why_bytes);
	if (rc == 0) {
		memcpy(built_in, map_built_in, sizeof(map_built_in));
		if (map_text(m, built_in, &line) != NULL) {
			(void)snprintf(ret_why, why_bytes,
				"no room for the built-in rules: at most %d rules in "
				"total",
				LS_PROM_RULES_MAX);
			rc = -LS_ELIMIT;
		}
	}
	free(built_in);
	if (rc == 0)
		*ret_map = m;
	else
		ls_prom_map_free(m);
	return rc;
}

void
ls_prom_map_free(struct ls_prom_map *m)
{
	free(m);
}

/* --- taking --------------------------------------------------------------- */

/* What follows `from` in the name, if that makes it one of the family; else NULL. */
static const char *
map_suffix(const struct ls_prom_rule *r, const struct ls_prom_sample *s)
{
	size_t len = strlen(r->from);
	const char *suffix = s->name + len;
	bool spread = s->type == LS_PROM_HISTOGRAM || s->type == LS_PROM_SUMMARY;

	if (strncmp(s->name, r->from, len) != 0)
		return NULL;
	if (suffix[0] == '\0' ||
		(s->type == LS_PROM_COUNTER && strcmp(suffix, "_total") == 0))
		return suffix;
	if (spread &&
		(strcmp(suffix, "_sum") == 0 || strcmp(suffix, "_count") == 0 ||
			strcmp(suffix, "_bucket") == 0))
		return suffix;
	return NULL;
}

/* Taken as it is; false if there is no room for its name. */
static bool
map_take_all(const struct ls_prom_sample *s, struct ls_prom_taken *t)
{
	if (strlen(s->name) >= sizeof(t->name))
		return false;
	t->rule = NULL;
	memcpy(t->name, s->name, strlen(s->name) + 1);
	t->value = s->value;
	t->le_scale = 1;
	return true;
}

bool
ls_prom_map_take(const struct ls_prom_map *m, const struct ls_prom_sample *s,
	struct ls_prom_taken *ret_taken)
{
	const char *suffix = NULL;
	const struct ls_prom_rule *r = NULL;
	bool counted;

	for (size_t i = 0; i < m->count && suffix == NULL; i++) {
		r = &m->rule[i];
		suffix = map_suffix(r, s);
	}
	if (suffix == NULL)
		return m->take_all && map_take_all(s, ret_taken);
	if (r->to[0] == '\0')
		return false;
	counted = strcmp(suffix, "_count") == 0 || strcmp(suffix, "_bucket") == 0;
	ret_taken->rule = r;
	ret_taken->value = counted ? s->value : s->value * r->scale;
	ret_taken->le_scale = r->scale;
	(void)snprintf(ret_taken->name, sizeof(ret_taken->name), "%s%s", r->to, suffix);
	return true;
}
