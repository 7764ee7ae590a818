/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_decode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "proto/oneof.h"
#include "proto/base/hash.h"
#include "proto/base/text.h"
#include "proto/tpu_runtime.pb-c.h"
#include "proto/wire/wire_decode.h"

/* --- labels --------------------------------------------------------------- */

/* Keys of a device that readers have seen; after decode_key. */
static bool
decode_is_device(const char *key)
{
	return strcmp(key, "device_id") == 0 || strcmp(key, "device_ordinal") == 0;
}

static void
decode_key(char *dst, const char *src)
{
	size_t i;

	for (i = 0; i + 1 < LS_TPU_LABEL_KEY_MAX_BYTES && src[i] != '\0'; i++) {
		char c = src[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		dst[i] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
	}
	dst[i] = '\0';
	if (decode_is_device(dst))
		(void)snprintf(dst, LS_TPU_LABEL_KEY_MAX_BYTES, "device");
}

/* True for "0" to "2147483647" without leading zeros: one device has one spelling. */
static bool
decode_is_ordinal(const char *s)
{
	size_t len = strlen(s), digits = strspn(s, "0123456789");

	if (len == 0 || len != digits || len > 10 || (len > 1 && s[0] == '0'))
		return false;
	return len < 10 || strcmp(s, "2147483647") <= 0;
}

/* Inserts a label in order of its key. NULL, or why it cannot be. */
static const char *
decode_insert(struct ls_tpu_point *p, const struct ls_tpu_label *l)
{
	size_t i;

	if (l->key[0] == '\0')
		return "attribute without a name";
	if (strcmp(l->key, "device") == 0 && !decode_is_ordinal(l->value))
		return "invalid ordinal";
	if (p->label_count == LS_TPU_LABELS_MAX)
		return "too many attributes";
	for (i = p->label_count; i > 0; i--) {
		int order = strcmp(l->key, p->label[i - 1].key);

		if (order == 0)
			return "repeated attribute";
		if (order > 0)
			break;
		p->label[i] = p->label[i - 1];
	}
	p->label[i] = *l;
	p->label_count++;
	return NULL;
}

static const char *
decode_text_label(struct ls_tpu_point *p, const char *key, const char *value)
{
	struct ls_tpu_label l = { .is_number = false };

	decode_key(l.key, key);
	(void)ls_text_escape(l.value, sizeof(l.value), value, strlen(value));
	return decode_insert(p, &l);
}

static const char *
decode_int_label(struct ls_tpu_point *p, const char *key, int64_t value)
{
	struct ls_tpu_label l = { .is_number = true };

	decode_key(l.key, key);
	(void)snprintf(l.value, sizeof(l.value), "%lld", (long long)value);
	return decode_insert(p, &l);
}

static const char *
decode_double_label(struct ls_tpu_point *p, const char *key, double value)
{
	struct ls_tpu_label l = { .is_number = true };

	decode_key(l.key, key);
	(void)snprintf(l.value, sizeof(l.value), "%.9g", value);
	return decode_insert(p, &l);
}

static const char *
decode_leaf(struct ls_tpu_point *p, const char *key, const Tpu__Leaf *v)
{
	if (key == NULL || v == NULL)
		return NULL; /* says nothing */
	switch (v->attr_case) {
	case TPU__LEAF__ATTR_STRING_ATTR:
		return decode_text_label(p, key, v->string_attr);
	case TPU__LEAF__ATTR_BOOL_ATTR:
		return decode_text_label(p, key, v->bool_attr ? "true" : "false");
	case TPU__LEAF__ATTR_INT_ATTR:
		return decode_int_label(p, key, v->int_attr);
	case TPU__LEAF__ATTR_DOUBLE_ATTR:
		return decode_double_label(p, key, v->double_attr);
	case TPU__LEAF__ATTR__NOT_SET:
	case LS_ONEOF_END(TPU__LEAF__ATTR):
		break;
	}
	return NULL;
}

static const char *
decode_attribute(struct ls_tpu_point *p, const Tpu__Attribute *a)
{
	const char *why = NULL;

	if (a == NULL || a->value == NULL)
		return NULL;
	switch (a->value->attr_case) {
	case TPU__VALUE__ATTR_STRING_ATTR:
		return decode_text_label(p, a->key != NULL ? a->key : "",
			a->value->string_attr);
	case TPU__VALUE__ATTR_BOOL_ATTR:
		return decode_text_label(p, a->key != NULL ? a->key : "",
			a->value->bool_attr ? "true" : "false");
	case TPU__VALUE__ATTR_INT_ATTR:
		return decode_int_label(p, a->key != NULL ? a->key : "",
			a->value->int_attr);
	case TPU__VALUE__ATTR_DOUBLE_ATTR:
		return decode_double_label(p, a->key != NULL ? a->key : "",
			a->value->double_attr);
	case TPU__VALUE__ATTR_KVLIST_ATTR:
		for (size_t i = 0;
			i < a->value->kvlist_attr->n_attributes && why == NULL; i++)
			why = decode_leaf(p, a->value->kvlist_attr->attributes[i]->key,
				a->value->kvlist_attr->attributes[i]->value);
		return why;
	case TPU__VALUE__ATTR__NOT_SET:
	case LS_ONEOF_END(TPU__VALUE__ATTR):
		break;
	}
	return NULL;
}

/* --- values --------------------------------------------------------------- */

static const char *
decode_gauge(struct ls_tpu_point *p, const Tpu__Gauge *g)
{
	p->shape = LS_TPU_VALUE;
	switch (g->value_case) {
	case TPU__GAUGE__VALUE_AS_DOUBLE:
		p->value = g->as_double;
		return isfinite(p->value) ? NULL : "gauge that is not a number";
	case TPU__GAUGE__VALUE_AS_INT:
		p->value = (double)g->as_int;
		return NULL;
	case TPU__GAUGE__VALUE_AS_BOOL:
		p->value = g->as_bool ? 1 : 0;
		return NULL;
	case TPU__GAUGE__VALUE_AS_STRING:
	case TPU__GAUGE__VALUE__NOT_SET:
	case LS_ONEOF_END(TPU__GAUGE__VALUE):
		break;
	}
	return "gauge without a number";
}

static const char *
decode_counter(struct ls_tpu_point *p, const Tpu__Counter *c)
{
	p->shape = LS_TPU_VALUE;
	p->is_counter = true;
	switch (c->value_case) {
	case TPU__COUNTER__VALUE_AS_DOUBLE:
		p->value = c->as_double;
		return isfinite(p->value) && p->value >= 0
			? NULL
			: "counter that is not a number";
	case TPU__COUNTER__VALUE_AS_INT:
		p->value = (double)c->as_int;
		return NULL;
	case TPU__COUNTER__VALUE__NOT_SET:
	case LS_ONEOF_END(TPU__COUNTER__VALUE):
		break;
	}
	return "counter without a number";
}

static int
decode_bounds(struct ls_histogram *h, const Tpu__BucketOptions *o)
{
	switch (o->options_case) {
	case TPU__BUCKET_OPTIONS__OPTIONS_EXPONENTIAL:
		return ls_histogram_exponential(h, o->exponential->num_finite_buckets,
			o->exponential->growth_factor, o->exponential->scale);
	case TPU__BUCKET_OPTIONS__OPTIONS_LINEAR:
		return ls_histogram_linear(h, o->linear->num_finite_buckets,
			o->linear->width, o->linear->offset);
	case TPU__BUCKET_OPTIONS__OPTIONS_EXPLICIT:
		if (o->explicit_->n_bounds >= LS_HISTOGRAM_BUCKETS_MAX)
			return -LS_ERANGE;
		h->buckets = o->explicit_->n_bounds + 1;
		for (size_t i = 0; i < o->explicit_->n_bounds; i++)
			h->bound[i] = o->explicit_->bounds[i];
		return 0;
	case TPU__BUCKET_OPTIONS__OPTIONS__NOT_SET:
	case LS_ONEOF_END(TPU__BUCKET_OPTIONS__OPTIONS):
		break;
	}
	return -LS_EABSENT;
}

static const char *
decode_histogram(struct ls_tpu_point *p, const Tpu__Distribution *d,
	const Tpu__Timestamp *start)
{
	struct ls_histogram *h = &p->histogram;

	p->shape = LS_TPU_HISTOGRAM;
	if (d->count == 0 && d->n_bucket_counts == 0)
		return "distribution that is empty";
	if (d->bucket_options == NULL || decode_bounds(h, d->bucket_options) != 0)
		return "distribution without bounds";
	if (d->n_bucket_counts != h->buckets)
		return "number of buckets that does not match their bounds";
	for (size_t i = 0; i < h->buckets; i++)
		h->count[i] = d->bucket_counts[i];
	h->total = d->count;
	h->mean = d->mean;
	h->has_range = d->has_max; /* a minimum of 0 is not sent */
	h->min = d->min;
	h->max = d->max;
	if (start != NULL) /* an identity: wraps for what is no time */
		h->start_ns = (uint64_t)start->seconds * 1000000000ull +
			(uint32_t)start->nanos;
	return ls_histogram_check(h) == 0 ? NULL : "inconsistent distribution";
}

static const char *
decode_point(struct ls_tpu_point *p, const Tpu__Point *m)
{
	const char *why = decode_attribute(p, m->attribute);

	if (why != NULL)
		return why;
	switch (m->measure_case) {
	case TPU__POINT__MEASURE_GAUGE:
		return decode_gauge(p, m->gauge);
	case TPU__POINT__MEASURE_COUNTER:
		return decode_counter(p, m->counter);
	case TPU__POINT__MEASURE_DISTRIBUTION:
		return decode_histogram(p, m->distribution, m->start_timestamp);
	case TPU__POINT__MEASURE__NOT_SET:
	case LS_ONEOF_END(TPU__POINT__MEASURE):
		break;
	}
	return "value of an unknown type";
}

static void
decode_skip(struct ls_tpu_answer *a, size_t count, const char *why)
{
	a->skipped += count;
	a->why = why;
}

int
ls_tpu_decode_metric(const uint8_t *buf, size_t len,
	void (*each)(void *arg, const struct ls_tpu_point *p), void *arg,
	struct ls_tpu_answer *ret_answer)
{
	struct ls_tpu_answer a = { 0 };
	struct ls_tpu_point p;
	struct ls_arena *arena = NULL;
	ProtobufCMessage *message;
	const Tpu__Metric *metric;
	const char *why;
	int rc = ls_wire_unpack(&tpu__metric_response__descriptor, buf, len, &arena,
		&message, NULL);

	if (rc != 0) {
		ls_arena_free(arena);
		return rc;
	}
	metric = ((const Tpu__MetricResponse *)message)->metric;
	for (size_t i = 0; metric != NULL && i < metric->n_metrics; i++) {
		if (a.points == LS_TPU_POINTS_MAX) {
			decode_skip(&a, metric->n_metrics - i,
				"more values than the maximum");
			break;
		}
		memset(&p, 0, sizeof(p));
		why = decode_point(&p, metric->metrics[i]);
		if (why != NULL) {
			decode_skip(&a, 1, why);
			continue;
		}
		a.points++;
		each(arg, &p);
	}
	ls_arena_free(arena);
	*ret_answer = a;
	return 0;
}

/* --- the list ------------------------------------------------------------- */

/* Printable ASCII without blanks, quotes and backslashes: it goes back into a request,
 * and into names. */
static bool
decode_name_ok(const char *s)
{
	size_t i;

	for (i = 0; s[i] != '\0'; i++) {
		if (s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' ||
			i >= LS_SERIES_NAME_MAX_BYTES - 1)
			return false;
	}
	return i > 0;
}

int
ls_tpu_decode_list(const uint8_t *buf, size_t len,
	void (*each)(void *arg, const char *name), void *arg,
	struct ls_tpu_answer *ret_answer)
{
	struct ls_tpu_answer a = { 0 };
	struct ls_arena *arena = NULL;
	ProtobufCMessage *message;
	const Tpu__ListResponse *list;
	int rc = ls_wire_unpack(&tpu__list_response__descriptor, buf, len, &arena,
		&message, NULL);

	if (rc != 0) {
		ls_arena_free(arena);
		return rc;
	}
	list = (const Tpu__ListResponse *)message;
	for (size_t i = 0; i < list->n_supported_metric; i++) {
		const char *name = list->supported_metric[i]->metric_name;

		if (name == NULL || !decode_name_ok(name)) {
			decode_skip(&a, 1, "invalid name");
			continue;
		}
		if (a.points == LS_TPU_METRICS_MAX) {
			decode_skip(&a, list->n_supported_metric - i,
				"more names than the maximum");
			break;
		}
		a.points++;
		each(arg, name);
	}
	ls_arena_free(arena);
	*ret_answer = a;
	return 0;
}

/* --- status --------------------------------------------------------------- */

/* Counts fields of a message that are not known here. */
static void
decode_unknown(struct ls_tpu_status *st, const ProtobufCMessage *m)
{
	size_t i, k;

	for (i = 0; i < m->n_unknown_fields; i++) {
		const ProtobufCMessageUnknownField *f = &m->unknown_fields[i];

		for (k = 0; k < st->unknown_count; k++) {
			if (st->unknown[k].number == f->tag &&
				st->unknown[k].message == m->descriptor->short_name)
				break;
		}
		if (k == LS_TPU_UNKNOWN_FIELDS_MAX)
			continue;
		if (k == st->unknown_count)
			st->unknown[st->unknown_count++] = (struct ls_tpu_unknown){
				.message = m->descriptor->short_name, .number = f->tag
			};
		st->unknown[k].count++;
		st->unknown[k].bytes += f->len;
	}
}

static void
decode_sequencer(struct ls_tpu_core *c, const Tpu__Sequencer *q)
{
	const int64_t moves[] = { q->sequencer_type, q->sequencer_index, q->pc, q->tag,
		q->tracemark, q->program_id, q->run_id };

	c->motion = ls_hash(c->motion, moves, sizeof(moves));
	if (c->has_sequencer && q->sequencer_type != 1)
		return;
	c->has_sequencer = true;
	c->run_id = q->run_id;
	c->pc = q->pc;
	c->tracemark = q->tracemark;
	if (q->hlo_location != NULL)
		(void)ls_text_escape(c->where, sizeof(c->where), q->hlo_location,
			strlen(q->hlo_location));
}

static void
decode_core(struct ls_tpu_status *st, struct ls_tpu_core *c, const Tpu__CoreState *s)
{
	int64_t moves[2];

	decode_unknown(st, &s->base);
	c->chip_id = s->core_id != NULL && s->core_id->has_chip_id ? s->core_id->chip_id
								   : -1;
	c->type = s->core_id != NULL && s->core_id->core_on_chip != NULL
		? s->core_id->core_on_chip->type
		: 0;
	c->has_launch = s->has_launch_id;
	c->launch_id = s->launch_id;
	/* below LS_GRPC_MESSAGE_MAX_BYTES */
	c->queued = (uint32_t)s->n_queued_program_info;
	c->motion = LS_HASH_START;
	for (size_t i = 0; i < s->n_sequencer_info; i++) {
		decode_unknown(st, &s->sequencer_info[i]->base);
		decode_sequencer(c, s->sequencer_info[i]);
	}
	if (s->program_fingerprint.len > 0)
		c->program = ls_hash(LS_HASH_START, s->program_fingerprint.data,
			s->program_fingerprint.len);
	for (size_t i = 0; i < s->n_queued_program_info; i++) {
		decode_unknown(st, &s->queued_program_info[i]->base);
		moves[0] = s->queued_program_info[i]->run_id;
		moves[1] = s->queued_program_info[i]->launch_id;
		c->motion = ls_hash(c->motion, moves, sizeof(moves));
	}
	c->motion = ls_hash(c->motion, &c->launch_id, sizeof(c->launch_id));
	c->motion = ls_hash(c->motion, &c->program, sizeof(c->program));
	if (s->error_message != NULL)
		(void)ls_text_escape(c->error, sizeof(c->error), s->error_message,
			strlen(s->error_message));
}

/* Inserts a core by its id; the last of several with one id counts, as in a map. */
static void
decode_insert_core(struct ls_tpu_status *st, const struct ls_tpu_core *c)
{
	size_t i = st->count;

	while (i > 0 && st->core[i - 1].core_id > c->core_id)
		i--;
	if (i > 0 && st->core[i - 1].core_id == c->core_id) {
		st->core[i - 1] = *c;
		return;
	}
	if (st->count == LS_TPU_CORES_MAX) {
		st->skipped++;
		return;
	}
	memmove(&st->core[i + 1], &st->core[i], (st->count - i) * sizeof(*c));
	st->core[i] = *c;
	st->count++;
}

static void
decode_cores(struct ls_tpu_status *st, Tpu__CoreEntry *const *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const Tpu__CoreEntry *e = entries[i];
		struct ls_tpu_core c = { .core_id = e->key };

		if (e->value == NULL || e->key < 0) {
			st->skipped++;
			continue;
		}
		decode_core(st, &c, e->value);
		decode_insert_core(st, &c);
	}
}

/* A message that holds cores: a status, or the summary of a stall. */
static int
decode_summary(const ProtobufCMessageDescriptor *type, const uint8_t *buf, size_t len,
	struct ls_tpu_status *ret_status)
{
	struct ls_arena *arena = NULL;
	ProtobufCMessage *message;
	int rc = ls_wire_unpack(type, buf, len, &arena, &message, NULL);

	if (rc == 0) {
		memset(ret_status, 0, sizeof(*ret_status));
		decode_unknown(ret_status, message);
	}
	if (rc == 0 && type == &tpu__stall_summary__descriptor) {
		const Tpu__StallSummary *s = (const Tpu__StallSummary *)message;

		decode_cores(ret_status, s->core_states, s->n_core_states);
	} else if (rc == 0) {
		const Tpu__StatusResponse *r = (const Tpu__StatusResponse *)message;

		if (r->host_name != NULL)
			(void)ls_text_escape(ret_status->host, sizeof(ret_status->host),
				r->host_name, strlen(r->host_name));
		decode_cores(ret_status, r->core_states, r->n_core_states);
	}
	ls_arena_free(arena);
	return rc;
}

int
ls_tpu_decode_status(const uint8_t *buf, size_t len, struct ls_tpu_status *ret_status)
{
	return decode_summary(&tpu__status_response__descriptor, buf, len, ret_status);
}

int
ls_tpu_decode_stall(const uint8_t *buf, size_t len, struct ls_tpu_status *ret_status)
{
	return decode_summary(&tpu__stall_summary__descriptor, buf, len, ret_status);
}

/* --- requests ------------------------------------------------------------- */

int
ls_tpu_encode_request(const char *name, bool skip_aggregation, uint8_t *buf,
	size_t size, size_t *ret_len)
{
	Tpu__MetricRequest m = TPU__METRIC_REQUEST__INIT;
	char copy[LS_SERIES_NAME_MAX_BYTES]; /* protobuf-c's fields are not const */

	if (name != NULL) {
		if (ls_text_copy(copy, sizeof(copy), name) != 0)
			return -LS_ELIMIT;
		m.metric_name = copy;
	}
	m.has_skip_node_aggregation = skip_aggregation;
	m.skip_node_aggregation = skip_aggregation;
	if (tpu__metric_request__get_packed_size(&m) > size)
		return -LS_ELIMIT;
	*ret_len = tpu__metric_request__pack(&m, buf);
	return 0;
}
