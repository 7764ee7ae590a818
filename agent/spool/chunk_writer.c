/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/chunk_writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "agent/spool/losses.h"
#include "agent/spool/minute_file.h"
#include "proto/base/bytes.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/chunk/chunk.h"

/* A group of the series table, by its index there; at opening, one of the file. */
struct writer_group {
	uint32_t generation; /* 0: never read */
	uint64_t hash; /* of the dictionary of this generation */
	/* The chunk under way. */
	bool open;
	uint32_t id; /* in the minute file, never used twice */
	uint64_t offset; /* its first record is not before */
	char name[LS_GROUP_NAME_MAX_BYTES];
	size_t columns, rows;
	uint64_t samples, t_first, t_last;
};

struct ls_chunk_writer {
	struct ls_spool *spool;
	struct ls_series_table *table;
	struct ls_minute_file *file;
	struct ls_chunk_codec *codec;
	uint64_t next_seal_ns;
	uint32_t next_id;
	struct writer_group group[LS_GROUPS_MAX];
	struct ls_losses losses; /* not told yet */
	uint64_t told_refused;
	struct ls_chunk_writer_stats stats;
	/* The chunk being sealed: columns of as many rows as it has. */
	uint64_t *t_mono_ns; /* LS_CHUNK_ROWS_MAX */
	/* LS_SERIES_PER_GROUP_MAX * LS_CHUNK_ROWS_MAX: touched as far as used */
	double *value;
	bool *present;
	double zoom[LS_SERIES_MAX];
	uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
};

/* --- losses --------------------------------------------------------------- */

static enum ls_wire_lost_reason
writer_reason(int rc)
{
	switch (rc) {
	case -ENOBUFS:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return LS_LOST_SPOOL_FULL;
	case -LS_ECORRUPT:
	case -EIO:
		return LS_LOST_DAMAGED;
	default:
		return LS_LOST_UNKNOWN;
	}
}

static void
writer_lose(struct ls_chunk_writer *w, const char *group,
	enum ls_wire_lost_reason reason, uint64_t t_from, uint64_t t_to,
	uint64_t samples)
{
	struct ls_loss one = {
		.reason = reason, .t_from = t_from, .t_to = t_to, .samples = samples
	};

	ls_ignore(ls_text_copy(one.group, sizeof(one.group), group)); /* names fit */
	ls_losses_add(&w->losses, &one);
	w->stats.lost_samples += samples;
}

/* Losses become items; those that the spool refuses wait and grow in their line. */
static void
writer_tell_losses(struct ls_chunk_writer *w)
{
	uint64_t refused = ls_series_refused(w->table);
	struct ls_wire_chunk_item item;
	size_t i, left = 0;

	if (refused != w->told_refused)
		writer_lose(w, "", LS_LOST_SERIES_FULL, 0, 0,
			refused - w->told_refused);
	w->told_refused = refused;
	for (i = 0; i < w->losses.count; i++) {
		item = ls_loss_item(&w->losses.loss[i]);
		if (ls_spool_push_chunk(w->spool, &item) != 0)
			w->losses.loss[left++] = w->losses.loss[i];
	}
	w->losses.count = left;
}

/* --- sealing -------------------------------------------------------------- */

/* Rows of one group on their way from the file to columns. */
struct writer_fill {
	struct ls_chunk_writer *w;
	const struct writer_group *g;
	uint64_t after_ns; /* up to here it is in the spool; 0: nothing is */
	size_t stride, rows;
	uint64_t samples;
};

static double
writer_double(const uint8_t *p)
{
	uint64_t v = ls_bytes_get(p, sizeof(v));
	double d;

	memcpy(&d, &v, sizeof(d));
	return d;
}

static int
writer_fill_row(void *arg, const struct ls_minute_record *r)
{
	struct writer_fill *f = arg;
	struct ls_chunk_writer *w = f->w;
	const uint8_t *from = r->values;
	size_t c, at;

	if (r->type != LS_MINUTE_ROW || r->id != f->g->id || r->number <= f->after_ns)
		return 0;
	if (f->rows == f->stride || r->bits_len != (f->g->columns + 7) / 8)
		return -LS_ECORRUPT;
	w->t_mono_ns[f->rows] = r->number;
	for (c = 0; c < f->g->columns; c++) {
		at = c * f->stride + f->rows;
		w->present[at] = r->bits[c / 8] >> c % 8 & 1;
		w->value[at] = 0;
		if (!w->present[at])
			continue;
		w->value[at] = writer_double(from);
		from += 8;
		f->samples++;
	}
	f->rows++;
	return 0;
}

static uint64_t
writer_count(const struct ls_chunk_table *t)
{
	uint64_t n = 0;

	for (size_t c = 0; c < t->columns; c++) {
		for (size_t r = 0; r < t->rows; r++)
			n += t->present[c * t->stride + r];
	}
	return n;
}

/* Encodes and pushes; a table that is too long for one chunk becomes two. */
static void
writer_push(struct ls_chunk_writer *w, const struct writer_group *g,
	struct ls_chunk_table *t)
{
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_CHUNK,
		.hash = g->hash,
		.rows = (uint32_t)t->rows,
		.t_first_mono_ns = t->t_mono_ns[0],
		.t_last_mono_ns = t->t_mono_ns[t->rows - 1],
		.body = w->body };
	struct ls_chunk_table half = *t;
	int rc = ls_chunk_encode(w->codec, t, w->body, sizeof(w->body), &item.body_len);

	if (rc == -EMSGSIZE && t->rows > 1) {
		half.rows = t->rows / 2;
		writer_push(w, g, &half);
		half.t_mono_ns += half.rows;
		half.value += half.rows;
		half.present += half.rows;
		half.rows = t->rows - half.rows;
		writer_push(w, g, &half);
		return;
	}
	memcpy(item.group, g->name, sizeof(item.group));
	item.samples = writer_count(t);
	if (rc == 0)
		rc = ls_spool_push_chunk(w->spool, &item);
	if (rc != 0) {
		ls_log(LS_LOG_WARN, "chunk",
			"cannot keep %zu rows of %s (%s); they are reported as lost",
			t->rows, g->name, ls_err_text(rc));
		writer_lose(w, g->name, writer_reason(rc), item.t_first_mono_ns,
			item.t_last_mono_ns, item.samples);
		return;
	}
	w->stats.chunks++;
	w->stats.chunk_bytes += item.body_len;
}

/* Takes the rows of a group out of the file and into the spool, those later than
 * after_ns. */
static void
writer_seal_group(struct ls_chunk_writer *w, struct writer_group *g, uint64_t after_ns)
{
	struct writer_fill fill = {
		.w = w, .g = g, .after_ns = after_ns, .stride = g->rows
	};
	struct ls_chunk_table t;
	uint64_t end;
	int rc;

	g->open = false;
	if (g->rows == 0)
		return;
	rc = ls_minute_file_walk(w->file, g->offset, writer_fill_row, &fill, &end);
	if (fill.rows > 0) {
		t = (struct ls_chunk_table){ .rows = fill.rows,
			.columns = g->columns,
			.stride = fill.stride,
			.t_mono_ns = w->t_mono_ns,
			.value = w->value,
			.present = w->present };
		writer_push(w, g, &t);
	}
	if (rc != 0 && fill.samples < g->samples) {
		ls_log(LS_LOG_WARN, "chunk",
			"cannot read rows of %s (%s); they are reported as lost",
			g->name, ls_err_text(rc));
		writer_lose(w, g->name, writer_reason(rc), g->t_first, g->t_last,
			g->samples - fill.samples);
	}
}

/*
 * The minute file forgets rows only when their chunks are in the spool's file: until then
 * nothing is written to it.
 */
void
ls_chunk_writer_write(struct ls_chunk_writer *w)
{
	if (ls_spool_is_written(w->spool))
		ls_minute_file_write(w->file);
}

void
ls_chunk_writer_use_disk(struct ls_chunk_writer *w, struct ls_disk *disk)
{
	ls_minute_file_use_disk(w->file, disk);
}

/* Seals one group while others go on. */
static void
writer_seal_alone(struct ls_chunk_writer *w, struct writer_group *g)
{
	writer_seal_group(w, g, 0);
	/* Without this note a restart relies on the newest chunk in the spool. */
	ls_ignore(ls_minute_file_sealed(w->file, g->id));
}

void
ls_chunk_writer_seal(struct ls_chunk_writer *w)
{
	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		if (w->group[i].open)
			writer_seal_group(w, &w->group[i], 0);
	}
	ls_minute_file_clear(w->file);
	writer_tell_losses(w);
	ls_chunk_writer_write(w);
}

/* The first moment after now that is a whole minute of the monotonic clock, shifted by
 * the boot. */
static uint64_t
writer_next_seal(const struct ls_chunk_writer *w, uint64_t now_mono_ns)
{
	const uint8_t *boot = ls_spool_boot(w->spool);
	uint64_t shift = 0;

	for (unsigned i = 0; i < 8; i++)
		shift = shift << 8 | boot[i];
	shift %= LS_CHUNK_NS;
	return (now_mono_ns + LS_CHUNK_NS - shift) / LS_CHUNK_NS * LS_CHUNK_NS + shift;
}

void
ls_chunk_writer_turn(struct ls_chunk_writer *w, uint64_t now_mono_ns)
{
	if (now_mono_ns < w->next_seal_ns)
		return;
	ls_chunk_writer_seal(w);
	w->next_seal_ns = writer_next_seal(w, now_mono_ns);
}

/* --- rows ----------------------------------------------------------------- */

static void
writer_push_dictionary(struct ls_chunk_writer *w, const struct ls_series_group *view,
	uint64_t hash)
{
	struct ls_wire_chunk_item item = {
		.kind = LS_WIRE_DICTIONARY, .hash = hash, .series_count = view->count
	};
	int rc;

	/* names fit */
	ls_ignore(ls_text_copy(item.group, sizeof(item.group), view->name));
	memcpy(&item.series, &view->text, sizeof(item.series)); /* only read */
	rc = ls_spool_push_chunk(w->spool, &item);
	if (rc != 0)
		ls_log(LS_LOG_WARN, "chunk",
			"cannot keep the dictionary of %s (%s); it is sent when the "
			"collector asks for it",
			view->name, ls_err_text(rc));
}

/* Begins a chunk of a group. */
static int
writer_begin(struct ls_chunk_writer *w, struct writer_group *g,
	const struct ls_series_group *view)
{
	uint64_t offset = ls_minute_file_end(w->file);
	int rc;

	if (!ls_spool_dictionary_is_known(w->spool, g->hash))
		writer_push_dictionary(w, view, g->hash);
	rc = ls_minute_file_group(w->file, w->next_id, g->hash, view->count,
		view->name);
	if (rc != 0)
		return rc;
	g->open = true;
	g->id = w->next_id++;
	g->offset = offset;
	ls_ignore(ls_text_copy(g->name, sizeof(g->name), view->name)); /* names fit */
	g->columns = view->count;
	g->rows = 0;
	g->samples = 0;
	g->t_first = view->t_mono_ns;
	g->t_last = 0;
	return 0;
}

static int
writer_row(struct ls_chunk_writer *w, struct writer_group *g,
	const struct ls_series_group *view, uint64_t samples)
{
	int rc = g->open ? 0 : writer_begin(w, g, view);

	if (rc == 0 &&
		(view->t_mono_ns < g->t_last || view->t_mono_ns == 0 ||
			view->t_mono_ns > LS_WIRE_TIME_MAX_NS))
		rc = -LS_ERANGE;
	if (rc == 0)
		rc = ls_minute_file_row(w->file, g->id, view->t_mono_ns, view->value,
			view->present, view->count);
	if (rc != 0)
		return rc;
	g->rows++;
	g->samples += samples;
	g->t_last = view->t_mono_ns;
	w->stats.rows++;
	return 0;
}

/* A group was read. */
static void
writer_on_reading(void *arg, size_t index)
{
	struct ls_chunk_writer *w = arg;
	struct writer_group *g = &w->group[index];
	struct ls_series_group view;
	uint64_t samples = 0;
	int rc;

	if (!ls_series_look(w->table, index, &view) || view.count == 0)
		return;
	if (g->generation != view.generation) {
		if (g->open)
			writer_seal_alone(w, g);
		g->generation = view.generation;
		g->hash = ls_wire_dictionary_hash(view.name, view.text, view.count);
	}
	for (size_t i = 0; i < view.count; i++)
		samples += view.present[i];
	if (ls_minute_file_end(w->file) >
		LS_MINUTE_MAX_BYTES - 2 * LS_MINUTE_ROW_MAX_BYTES)
		ls_chunk_writer_seal(w); /* early: there is no room for another row */
	rc = writer_row(w, g, &view, samples);
	if (rc != 0)
		writer_lose(w, view.name, writer_reason(rc), view.t_mono_ns,
			view.t_mono_ns, samples);
	else if (g->rows == LS_CHUNK_ROWS_MAX)
		writer_seal_alone(w, g);
	ls_chunk_writer_write(w);
}

/* --- what an earlier process left ----------------------------------------- */

static struct writer_group *
writer_find(struct ls_chunk_writer *w, uint32_t id)
{
	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		if (w->group[i].open && w->group[i].id == id)
			return &w->group[i];
	}
	return NULL;
}

static int
writer_recover_group(struct ls_chunk_writer *w, const struct ls_minute_record *r)
{
	struct writer_group *g = NULL;

	for (size_t i = 0; i < LS_GROUPS_MAX && g == NULL; i++)
		g = w->group[i].open ? NULL : &w->group[i];
	if (g == NULL || writer_find(w, r->id) != NULL ||
		!ls_text_is_name(r->name, r->name_len, LS_GROUP_NAME_MAX_BYTES - 1))
		return -LS_ECORRUPT;
	*g = (struct writer_group){ .open = true,
		.id = r->id,
		.hash = r->number,
		.columns = r->columns,
		.offset = LS_MINUTE_HEADER_BYTES };
	memcpy(g->name, r->name, r->name_len);
	return 0;
}

static int
writer_recover_row(struct writer_group *g, const struct ls_minute_record *r)
{
	if (g == NULL || g->rows == LS_CHUNK_ROWS_MAX ||
		r->bits_len != (g->columns + 7) / 8 ||
		(g->columns % 8 != 0 &&
			r->bits[r->bits_len - 1] >> g->columns % 8 != 0) ||
		r->number < g->t_last || r->number == 0 ||
		r->number > LS_WIRE_TIME_MAX_NS)
		return -LS_ECORRUPT;
	if (g->rows++ == 0)
		g->t_first = r->number;
	g->t_last = r->number;
	g->samples += r->value_count;
	return 0;
}

static int
writer_recover(void *arg, const struct ls_minute_record *r)
{
	struct ls_chunk_writer *w = arg;
	struct writer_group *g = writer_find(w, r->id);

	switch (r->type) {
	case LS_MINUTE_GROUP:
		return writer_recover_group(w, r);
	case LS_MINUTE_ROW:
		return writer_recover_row(g, r);
	case LS_MINUTE_SEALED:
		if (g != NULL)
			g->open = false;
		return 0;
	}
	return -LS_ECORRUPT;
}

/* Seals the rows that are there, or reports what is lost with them. */
static void
writer_take_over(struct ls_chunk_writer *w, enum ls_minute_found found, bool damaged)
{
	struct writer_group *g;
	uint64_t end;

	if (found != LS_MINUTE_EMPTY &&
		ls_minute_file_walk(w->file, LS_MINUTE_HEADER_BYTES, writer_recover, w,
			&end) != 0)
		damaged = true;
	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		g = &w->group[i];
		if (g->open && found == LS_MINUTE_ROWS)
			writer_seal_group(w, g,
				ls_spool_chunk_newest(w->spool, g->hash));
		else if (g->open)
			writer_lose(w, g->name, LS_LOST_REBOOT, 0, 0, g->samples);
	}
	if (damaged) {
		ls_log(LS_LOG_WARN, "chunk",
			"minute file is damaged; its unreadable part is reported as "
			"lost");
		/* nobody knows how much it was */
		writer_lose(w, "", LS_LOST_DAMAGED, 0, 0, 0);
	}
	memset(w->group, 0, sizeof(w->group));
	ls_minute_file_clear(w->file);
	writer_tell_losses(w);
	ls_chunk_writer_write(w);
}

/* --- the rest ------------------------------------------------------------- */

int
ls_chunk_writer_new(const char *dir, const uint8_t kernel_boot_id[16],
	struct ls_spool *spool, struct ls_series_table *table, uint64_t now_mono_ns,
	struct ls_chunk_writer **ret_writer)
{
	const size_t cells = (size_t)LS_SERIES_PER_GROUP_MAX * LS_CHUNK_ROWS_MAX;
	struct ls_chunk_writer *w = calloc(1, sizeof(*w));
	enum ls_minute_found found;
	bool damaged;
	int rc = -ENOMEM;

	if (w == NULL)
		return -ENOMEM;
	w->spool = spool;
	w->table = table;
	w->codec = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	w->t_mono_ns = malloc(LS_CHUNK_ROWS_MAX * sizeof(*w->t_mono_ns));
	w->value = malloc(cells * sizeof(*w->value));
	w->present = malloc(cells * sizeof(*w->present));
	if (w->codec != NULL && w->t_mono_ns != NULL && w->value != NULL &&
		w->present != NULL)
		rc = ls_minute_file_open(dir, kernel_boot_id, &found, &damaged,
			&w->file);
	if (rc != 0) {
		ls_chunk_writer_free(w);
		return rc;
	}
	writer_take_over(w, found, damaged);
	w->next_seal_ns = writer_next_seal(w, now_mono_ns);
	ls_series_set_reader(table, writer_on_reading, w);
	*ret_writer = w;
	return 0;
}

void
ls_chunk_writer_free(struct ls_chunk_writer *w)
{
	if (w == NULL)
		return;
	ls_series_set_reader(w->table, NULL, NULL);
	if (w->file != NULL)
		ls_chunk_writer_write(w);
	ls_minute_file_close(w->file);
	ls_chunk_codec_free(w->codec);
	free(w->t_mono_ns);
	free(w->value);
	free(w->present);
	free(w);
}

void
ls_chunk_writer_need(struct ls_chunk_writer *w, uint64_t hash)
{
	struct ls_series_group view;

	if (ls_spool_dictionary_is_waiting(w->spool, hash))
		return;
	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		if (w->group[i].hash != hash || !ls_series_look(w->table, i, &view) ||
			view.generation != w->group[i].generation)
			continue;
		writer_push_dictionary(w, &view, hash);
		return;
	}
	w->stats.unknown_dictionaries++;
}

size_t
ls_chunk_writer_zoom(struct ls_chunk_writer *w, struct ls_wire_zoomed *ret_zoomed)
{
	struct ls_series_group view;
	size_t i, k, n = 0, used = 0;

	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (!ls_series_look(w->table, i, &view) || view.t_mono_ns == 0 ||
			view.count == 0 || view.generation != w->group[i].generation ||
			view.count > LS_SERIES_MAX - used)
			continue;
		ret_zoomed[n++] =
			(struct ls_wire_zoomed){ .dictionary = w->group[i].hash,
				.t_mono_ns = view.t_mono_ns,
				.count = view.count,
				.value = &w->zoom[used] };
		for (k = 0; k < view.count; k++)
			w->zoom[used++] = view.present[k] ? view.value[k] : (double)NAN;
	}
	return n;
}

const struct ls_chunk_writer_stats *
ls_chunk_writer_get_stats(const struct ls_chunk_writer *w)
{
	return &w->stats;
}
