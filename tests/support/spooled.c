/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/spooled.h"

#include <stdlib.h>
#include <string.h>
#include "collector/answer/view.h"
#include "tests/support/harness.h"

#define SPOOLED_BYTES 262144u

struct ls_wire_item
spooled_item(struct ls_spool *spool, size_t i)
{
	static uint8_t buf[SPOOLED_BYTES];
	struct ls_wire_bytes list[LS_TEST_ITEMS_MAX];
	struct ls_wire_item one;
	const char *why = "";
	size_t count = 0;

	ck_assert_int_eq(
		ls_spool_read(spool, buf, sizeof(buf), list, LS_TEST_ITEMS_MAX, &count),
		0);
	ck_assert_uint_lt(i, count);
	ck_assert_int_eq(ls_wire_item_unpack(list[i].data, list[i].len, &one, &why), 0);
	return one;
}

void
spooled_report(struct ls_spool *spool, const struct ls_wire_worker *w,
	struct ls_test_core *core, struct ls_test_agent *a, uint64_t now_ns)
{
	static uint8_t buf[SPOOLED_BYTES];
	struct ls_wire_bytes list[LS_TEST_ITEMS_MAX];
	uint8_t *copy;
	size_t i, count = 0;

	if (w != NULL)
		a->worker = *w;
	ck_assert_int_eq(
		ls_spool_read(spool, buf, sizeof(buf), list, LS_TEST_ITEMS_MAX, &count),
		0);
	for (i = 0; i < count; i++) {
		copy = malloc(list[i].len);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, list[i].data, list[i].len);
		a->items[i] = (struct ls_wire_bytes){ copy, list[i].len };
	}
	a->report.item_count = count;
	a->report.t_send_mono_ns = core->now_ns = now_ns;
	(void)ls_test_core_send(core, a, w != NULL);
	if (core->ack.status == LS_ACK_OK)
		ls_spool_ack(spool, core->ack.acked_seq);
}

void
spooled_one_job(struct ls_test_core *core, uint64_t now_ns, const char *id, int workers,
	int step, const char *source)
{
	json_t *findings = ls_test_core_findings(core), *page, *jobs;
	const json_t *job;

	/* that it got slower may be told, of nobody */
	for (size_t i = 0; i < json_array_size(findings); i++)
		ck_assert_str_eq(json_string_value(json_object_get(
					 json_array_get(findings, i), "kind")),
			"job_slow");
	json_decref(findings);
	ck_assert_int_eq(ls_view_jobs(core->engine, "", SIZE_MAX,
				 (int64_t)(now_ns / 1000), &page),
		0);
	jobs = json_object_get(page, "items");
	ck_assert_uint_eq(json_array_size(jobs), 1);
	job = json_array_get(jobs, 0);
	ck_assert_str_eq(json_string_value(json_object_get(job, "id")), id);
	ck_assert_int_eq(json_integer_value(json_object_get(job, "workers")), workers);
	ck_assert_int_ge(json_integer_value(json_object_get(job, "step")), step);
	ck_assert_int_ge(json_integer_value(json_object_get(job, "steps_closed")),
		step);
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(job, "data_quality"), "step_source")),
		source);
	json_decref(page);
}
