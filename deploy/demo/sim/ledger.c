/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include "proto/base/text.h"

int
sim_ledger_line(FILE *out, const struct sim_agent *a)
{
	char host[LS_HOST_NAME_MAX_BYTES], boot[2 * LS_BOOT_BYTES + 1],
		ring[2 * LS_RING_ID_BYTES + 1];
	int n;

	sim_agent_name(host, a->name);
	ls_text_hex(boot, a->boot, sizeof(a->boot));
	ls_text_hex(ring, a->ring, sizeof(a->ring));
	n = fprintf(out,
		"{\"simulated\":true,\"host\":\"%s\",\"boot\":\"%s\",\"acked_seq\":%" PRIu64
		",\"acked_chunk_seq\":%" PRIu64 ",\"next_seq\":%" PRIu64
		",\"next_chunk_seq\":%" PRIu64
		",\"ring_id\":\"%s\",\"records_made\":%" PRIu64
		",\"records_acked\":%" PRIu64 "}\n",
		host, boot, a->steps.acked, a->chunks.acked, a->steps.next,
		a->chunks.next, ring, a->next_record, a->records_acked);
	return n < 0 ? -EIO : 0;
}
