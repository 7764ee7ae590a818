/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

_Static_assert((int)LS_ACK_RETRY == (int)LOCKSTEP__ACK__STATUS__RETRY, "wire value");
_Static_assert((int)LS_ACK_REJECT == (int)LOCKSTEP__ACK__STATUS__REJECT, "wire value");

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
	size_t i;

	if (a->need_count > LS_RINGS_MAX || a->need_dictionary_count > LS_GROUPS_MAX)
		return -LS_ELIMIT;
	for (i = 0; i < a->need_count; i++)
		need[i] = ls_wire_view(a->need[i], sizeof(a->need[i]));
	m.version = LS_WIRE_VERSION;
	m.boot = ls_wire_view(a->boot, sizeof(a->boot));
	m.acked_seq = a->acked_seq;
	m.status = (Lockstep__Ack__Status)a->status;
	m.reason = ls_wire_text(a->reason);
	m.t_receive_mono_ns = a->t_receive_mono_ns;
	m.t_send_mono_ns = a->t_send_mono_ns;
	m.beat_ns = a->beat_ns;
	m.retry_after_ns = a->retry_after_ns;
	m.n_need_workers = a->need_count;
	m.need_workers = need;
	m.acked_chunk_seq = a->acked_chunk_seq;
	memcpy(dictionary, a->need_dictionary,
		a->need_dictionary_count * sizeof(dictionary[0]));
	m.n_need_dictionary = a->need_dictionary_count;
	m.need_dictionary = dictionary;
	m.zoom_ns = a->zoom_ns;
	m.need_identity = a->need_identity;
	m.need_all_workers = a->need_all_workers;
	m.malformed_seq = a->malformed_seq;
	m.malformed_chunk_seq = a->malformed_chunk_seq;
	return ls_wire_pack(&m.base, LS_ACK_MAX_BYTES, ret_buf, ret_len);
}

static int
wire_check_ack(const Lockstep__Ack *m, struct ls_wire_ack *a, const char **ret_why)
{
	size_t i, n;

	if (m->version != LS_WIRE_VERSION)
		return ls_wire_fail(-LS_EVERSION, "unknown version of the ack",
			ret_why);
	if (!ls_wire_copy_bytes(a->boot, sizeof(a->boot), &m->boot))
		return ls_wire_fail(-LS_EPARSE, "boot in the ack", ret_why);
	if ((unsigned)m->status >= LS_ACK_STATUS_COUNT)
		return ls_wire_fail(-LS_ERANGE, "unknown status", ret_why);
	if (m->n_need_workers > LS_RINGS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many workers asked for", ret_why);
	if (m->n_need_dictionary > LS_GROUPS_MAX)
		return ls_wire_fail(-LS_ELIMIT, "too many dictionaries asked for",
			ret_why);
	if (m->zoom_ns > LS_ZOOM_MAX_NS)
		return ls_wire_fail(-LS_ERANGE, "zoom is too long", ret_why);
	if (!ls_wire_time_ok(m->t_receive_mono_ns) ||
		!ls_wire_time_ok(m->t_send_mono_ns) ||
		m->t_send_mono_ns < m->t_receive_mono_ns)
		return ls_wire_fail(-LS_ERANGE, "time stamps of the ack", ret_why);
	for (i = 0; i < m->n_need_workers; i++) {
		if (!ls_wire_copy_bytes(a->need[i], sizeof(a->need[i]),
			    &m->need_workers[i]))
			return ls_wire_fail(-LS_EPARSE, "ring id asked for", ret_why);
	}
	n = strlen(m->reason);
	if (n >= sizeof(a->reason))
		n = sizeof(a->reason) - 1; /* for a log line only */
	memcpy(a->reason, m->reason, n);
	a->acked_seq = m->acked_seq;
	a->status = (enum ls_wire_status)m->status;
	a->t_receive_mono_ns = m->t_receive_mono_ns;
	a->t_send_mono_ns = m->t_send_mono_ns;
	a->beat_ns = m->beat_ns;
	a->retry_after_ns = m->retry_after_ns;
	a->need_count = m->n_need_workers;
	a->acked_chunk_seq = m->acked_chunk_seq;
	a->need_dictionary_count = m->n_need_dictionary;
	for (i = 0; i < m->n_need_dictionary; i++)
		a->need_dictionary[i] = m->need_dictionary[i];
	a->zoom_ns = m->zoom_ns;
	a->need_identity = m->need_identity != 0;
	a->need_all_workers = m->need_all_workers != 0;
	a->malformed_seq = m->malformed_seq;
	a->malformed_chunk_seq = m->malformed_chunk_seq;
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
