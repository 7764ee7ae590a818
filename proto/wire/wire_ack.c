/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "proto/base/text.h"
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

_Static_assert((int)LS_ACK_RETRY == (int)LOCKSTEP__ACK__STATUS__RETRY, "wire value");
_Static_assert((int)LS_ACK_REJECT == (int)LOCKSTEP__ACK__STATUS__REJECT, "wire value");

#define ACK(kind, field, max, why) \
	LS_WIRE_FIELD(kind, Lockstep__Ack, field, struct ls_wire_ack, field, max, why)

static const struct ls_wire_field wire_ack[] = {
	ACK(ID, boot, 0, "boot in the ack"),
	ACK(NUMBER, status, LS_ACK_STATUS_COUNT - 1, "unknown status"),
	ACK(NUMBER, zoom_ns, LS_ZOOM_MAX_NS, "zoom is too long"),
	ACK(NUMBER, t_receive_mono_ns, LS_WIRE_TIME_MAX_NS, "time stamps of the ack"),
	ACK(NUMBER, t_send_mono_ns, LS_WIRE_TIME_MAX_NS, "time stamps of the ack"),
	ACK(NUMBER, acked_seq, 0, NULL),
	ACK(NUMBER, beat_ns, 0, NULL),
	ACK(NUMBER, retry_after_ns, 0, NULL),
	ACK(NUMBER, acked_chunk_seq, 0, NULL),
	ACK(FLAG, need_identity, 0, NULL),
	ACK(FLAG, need_all_workers, 0, NULL),
	ACK(NUMBER, malformed_seq, 0, NULL),
	ACK(NUMBER, malformed_chunk_seq, 0, NULL),
	{ .kind = LS_FIELD_END },
};

void
ls_wire_ack_init(struct ls_wire_ack *a)
{
	memset(a, 0, offsetof(struct ls_wire_ack, need));
}

int
ls_wire_ack_pack(const struct ls_wire_ack *a, uint8_t **ret_buf, size_t *ret_len)
{
	Lockstep__Ack m = LOCKSTEP__ACK__INIT;
	ProtobufCBinaryData need[LS_RINGS_MAX];
	uint64_t dictionary[LS_GROUPS_MAX];

	if (a->need_count > LS_RINGS_MAX || a->need_dictionary_count > LS_GROUPS_MAX)
		return -LS_ELIMIT;
	for (size_t i = 0; i < a->need_count; i++)
		need[i] = ls_wire_view(a->need[i], sizeof(a->need[i]));
	ls_wire_put(wire_ack, a, &m);
	m.version = LS_WIRE_VERSION;
	m.reason = ls_wire_text(a->reason);
	m.n_need_workers = a->need_count;
	m.need_workers = need;
	memcpy(dictionary, a->need_dictionary,
		a->need_dictionary_count * sizeof(dictionary[0]));
	m.n_need_dictionary = a->need_dictionary_count;
	m.need_dictionary = dictionary;
	return ls_wire_pack(&m.base, LS_ACK_MAX_BYTES, ret_buf, ret_len);
}

static int
wire_check_ack(const Lockstep__Ack *m, struct ls_wire_ack *a, const char **ret_why)
{
	int rc;

	if (m->version != LS_WIRE_VERSION)
		return ls_wire_fail(-LS_EVERSION,
			"the answer is not of version " LS_TEXT_OF(LS_WIRE_VERSION),
			ret_why);
	rc = ls_wire_take(wire_ack, m, a, ret_why);
	if (rc != 0)
		return rc;
	if (m->n_need_workers > LS_RINGS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many workers asked for", ret_why);
	if (m->n_need_dictionary > LS_GROUPS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many dictionaries asked for",
			ret_why);
	if (m->t_send_mono_ns < m->t_receive_mono_ns)
		return ls_wire_fail(-LS_ERANGE, "time stamps of the ack", ret_why);
	for (size_t i = 0; i < m->n_need_workers; i++) {
		if (!ls_wire_copy_bytes(a->need[i], sizeof(a->need[i]),
			    &m->need_workers[i]))
			return ls_wire_fail(-LS_EPARSE, "ring id asked for", ret_why);
	}
	/* cut: it is for a log line only */
	(void)snprintf(a->reason, sizeof(a->reason), "%s", m->reason);
	a->need_count = m->n_need_workers;
	a->need_dictionary_count = m->n_need_dictionary;
	for (size_t i = 0; i < m->n_need_dictionary; i++)
		a->need_dictionary[i] = m->need_dictionary[i];
	return 0;
}

int
ls_wire_ack_unpack(const uint8_t *buf, size_t len, struct ls_wire_ack *ret_ack,
	const char **ret_why)
{
	struct ls_wire_ack a = { 0 };
	struct ls_arena *arena = NULL;
	ProtobufCMessage *base;
	int rc;

	if (len > LS_ACK_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "ack is too long", ret_why);
	rc = ls_wire_unpack(&lockstep__ack__descriptor, buf, len, &arena, &base,
		ret_why);
	if (rc == 0)
		rc = wire_check_ack((const Lockstep__Ack *)base, &a, ret_why);
	ls_arena_free(arena);
	if (rc == 0)
		*ret_ack = a;
	return rc;
}
