/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items of the stream of chunks. Writing allocates nothing: the message points to what
 * the item has. A body of 100 KiB is not copied for reading.
 */
#include "config.h"
#include "proto/oneof.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/text.h"
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

_Static_assert((int)LS_LOST_SERIES_FULL == (int)LOCKSTEP__LOST__REASON__SERIES_FULL,
	"wire value");
_Static_assert((int)LS_LOST_REBOOT == (int)LOCKSTEP__LOST__REASON__REBOOT,
	"wire value");
_Static_assert((int)LS_LOST_DAMAGED == (int)LOCKSTEP__LOST__REASON__DAMAGED,
	"wire value");

#define CHUNK_BODY 5u /* the field of a chunk */

#define ITEM(kind, message, theirs, ours, max, why) \
	LS_WIRE_FIELD(kind, message, theirs, struct ls_wire_chunk_item, ours, max, why)

static const struct ls_wire_field chunk_dictionary[] = {
	ITEM(TEXT, Lockstep__Dictionary, group, group, 0, "group is not a name"),
	ITEM(NUMBER, Lockstep__Dictionary, hash, hash, 0, NULL),
	{ .kind = LS_FIELD_END },
};

static const struct ls_wire_field chunk_chunk[] = {
	ITEM(NUMBER, Lockstep__Chunk, dictionary, hash, 0, NULL),
	ITEM(NUMBER, Lockstep__Chunk, t_first_mono_ns, t_first_mono_ns, 0, NULL),
	ITEM(NUMBER, Lockstep__Chunk, t_last_mono_ns, t_last_mono_ns,
		LS_WIRE_TIME_MAX_NS, "times of a chunk"),
	ITEM(NUMBER, Lockstep__Chunk, rows, rows, 0, NULL),
	{ .kind = LS_FIELD_END },
};

static const struct ls_wire_field chunk_lost[] = {
	ITEM(TEXT, Lockstep__Lost, group, group, 0, "group is not a name"),
	ITEM(NUMBER, Lockstep__Lost, t_from_mono_ns, t_first_mono_ns,
		LS_WIRE_TIME_MAX_NS, "times of a loss"),
	ITEM(NUMBER, Lockstep__Lost, t_to_mono_ns, t_last_mono_ns, LS_WIRE_TIME_MAX_NS,
		"times of a loss"),
	ITEM(NUMBER, Lockstep__Lost, samples, samples, 0, NULL),
	ITEM(REASON, Lockstep__Lost, reason, reason, LS_LOST_REASON_COUNT - 1, NULL),
	{ .kind = LS_FIELD_END },
};

uint64_t
ls_wire_dictionary_hash(const char *group, const char *const *series, size_t count)
{
	uint64_t h = ls_hash(LS_HASH_START, group, strlen(group) + 1);

	for (size_t i = 0; i < count; i++)
		h = ls_hash(h, series[i], strlen(series[i]) + 1);
	return h;
}

/* --- writing -------------------------------------------------------------- */

int
ls_wire_chunk_item_pack(const struct ls_wire_chunk_item *item, uint8_t *buf,
	size_t size, size_t *ret_len)
{
	Lockstep__ChunkItem m = LOCKSTEP__CHUNK_ITEM__INIT;
	Lockstep__Dictionary dictionary = LOCKSTEP__DICTIONARY__INIT;
	Lockstep__Chunk chunk = LOCKSTEP__CHUNK__INIT;
	Lockstep__Lost lost = LOCKSTEP__LOST__INIT;
	size_t len;

	if (item->series_count > LS_SERIES_PER_GROUP_MAX)
		return -EMSGSIZE;
	m.seq = item->seq;
	switch (item->kind) {
	case LS_WIRE_DICTIONARY:
		ls_wire_put(chunk_dictionary, item, &dictionary);
		dictionary.n_series = item->series_count;
		/* only read from */
		memcpy(&dictionary.series, &item->series, sizeof(item->series));
		m.body_case = LOCKSTEP__CHUNK_ITEM__BODY_DICTIONARY;
		m.dictionary = &dictionary;
		break;
	case LS_WIRE_CHUNK:
		ls_wire_put(chunk_chunk, item, &chunk);
		chunk.body = ls_wire_view(item->body, item->body_len);
		m.body_case = LOCKSTEP__CHUNK_ITEM__BODY_CHUNK;
		m.chunk = &chunk;
		break;
	case LS_WIRE_LOST:
		ls_wire_put(chunk_lost, item, &lost);
		m.body_case = LOCKSTEP__CHUNK_ITEM__BODY_LOST;
		m.lost = &lost;
		break;
	}
	len = protobuf_c_message_get_packed_size(&m.base);
	if (len > size || len > LS_CHUNK_ITEM_MAX_BYTES)
		return -EMSGSIZE;
	*ret_len = protobuf_c_message_pack(&m.base, buf);
	return 0;
}

/* --- reading -------------------------------------------------------------- */

/* True if a series is there twice. Hashes are compared first: 512 series, 131,000
 * pairs. */
static bool
chunk_has_twin(const struct ls_wire_chunk_item *item)
{
	uint64_t hash[LS_SERIES_PER_GROUP_MAX];

	for (size_t i = 0; i < item->series_count; i++) {
		hash[i] = ls_wire_dictionary_hash(item->series[i], NULL, 0);
		for (size_t k = 0; k < i; k++)
			if (hash[k] == hash[i] &&
				strcmp(item->series[k], item->series[i]) == 0)
				return true;
	}
	return false;
}

static int
chunk_check_dictionary(const Lockstep__Dictionary *m, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	int rc = ls_wire_take(chunk_dictionary, m, item, ret_why);

	if (rc != 0)
		return rc;
	if (item->group[0] == '\0')
		return ls_wire_fail(-LS_ERANGE, "dictionary of no group", ret_why);
	if (m->n_series == 0)
		return ls_wire_fail(-LS_ERANGE, "dictionary without series", ret_why);
	if (m->n_series > LS_SERIES_PER_GROUP_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many series", ret_why);
	for (size_t i = 0; i < m->n_series; i++)
		if (!ls_text_is_name(m->series[i], strlen(m->series[i]),
			    LS_SERIES_TEXT_MAX_BYTES - 1))
			return ls_wire_fail(-LS_ERANGE, "series is not a name",
				ret_why);
	item->kind = LS_WIRE_DICTIONARY;
	item->series_count = m->n_series;
	item->series = (const char *const *)m->series;
	if (ls_wire_dictionary_hash(item->group, item->series, item->series_count) !=
		item->hash)
		return ls_wire_fail(-LS_ECORRUPT, "hash of a dictionary", ret_why);
	if (chunk_has_twin(item))
		return ls_wire_fail(-LS_EPARSE, "a series twice", ret_why);
	return 0;
}

static int
chunk_check_chunk(const Lockstep__Chunk *m, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	if (m->rows > LS_CHUNK_ROWS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "rows of a chunk", ret_why);
	if (m->rows == 0)
		return ls_wire_fail(-LS_ELIMIT, "chunk without rows", ret_why);
	if (m->t_first_mono_ns > m->t_last_mono_ns)
		return ls_wire_fail(-LS_ERANGE, "times of a chunk", ret_why);
	if (m->body.len == 0 || m->body.len > LS_CHUNK_BODY_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "size of a chunk", ret_why);
	item->kind = LS_WIRE_CHUNK;
	item->body = m->body.data;
	item->body_len = m->body.len;
	return ls_wire_take(chunk_chunk, m, item, ret_why);
}

static int
chunk_check_lost(const Lockstep__Lost *m, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	if (m->t_to_mono_ns != 0 && m->t_from_mono_ns > m->t_to_mono_ns)
		return ls_wire_fail(-LS_ERANGE, "times of a loss", ret_why);
	item->kind = LS_WIRE_LOST;
	return ls_wire_take(chunk_lost, m, item, ret_why);
}

static int
chunk_check(const Lockstep__ChunkItem *m, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	if (m->seq == 0)
		return ls_wire_fail(-LS_ERANGE, "item without a number", ret_why);
	item->seq = m->seq;
	switch (m->body_case) {
	case LOCKSTEP__CHUNK_ITEM__BODY_DICTIONARY:
		return chunk_check_dictionary(m->dictionary, item, ret_why);
	case LOCKSTEP__CHUNK_ITEM__BODY_CHUNK:
		return chunk_check_chunk(m->chunk, item, ret_why);
	case LOCKSTEP__CHUNK_ITEM__BODY_LOST:
		return chunk_check_lost(m->lost, item, ret_why);
	case LOCKSTEP__CHUNK_ITEM__BODY__NOT_SET:
	case LS_ONEOF_END(LOCKSTEP__CHUNK_ITEM__BODY):
		break;
	}
	return ls_wire_fail(-LS_EVERSION, "item of no known kind", ret_why);
}

int
ls_wire_chunk_item_unpack(const uint8_t *buf, size_t len,
	struct ls_wire_chunk_item *ret_item, const char **ret_why)
{
	struct ls_wire_chunk_item item = { 0 };
	ProtobufCMessage *m;
	uint64_t seq;
	size_t kinds;
	int rc;

	if (len > LS_CHUNK_ITEM_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "item is too long", ret_why);
	if (!ls_wire_scan(buf, len, &seq, &kinds))
		return ls_wire_fail(-LS_EPARSE, "not a valid message", ret_why);
	if (kinds > 1)
		return ls_wire_fail(-LS_EPARSE, "item of two kinds", ret_why);
	rc = ls_wire_unpack(&lockstep__chunk_item__descriptor, buf, len, &item.arena,
		&m, ret_why);
	if (rc == 0)
		rc = chunk_check((const Lockstep__ChunkItem *)m, &item, ret_why);
	if (rc != 0) {
		ls_wire_chunk_item_clear(&item);
		return rc;
	}
	if (item.kind == LS_WIRE_CHUNK) /* 100 KiB, which stay in the caller's buffer */
		item.body =
			ls_wire_piece(ls_wire_piece((struct ls_wire_bytes){ buf, len },
					      LOCKSTEP__CHUNK_ITEM__BODY_CHUNK),
				CHUNK_BODY)
				.data;
	*ret_item = item;
	return 0;
}

uint64_t
ls_wire_item_number(const uint8_t *buf, size_t len)
{
	uint64_t seq;
	size_t kinds;

	(void)ls_wire_scan(buf, len, &seq, &kinds); /* as far as it goes */
	return seq;
}

void
ls_wire_chunk_item_clear(struct ls_wire_chunk_item *item)
{
	ls_arena_free(item->arena);
	memset(item, 0, sizeof(*item));
}
