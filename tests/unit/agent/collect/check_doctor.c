/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/face/checks.h"
#include "agent/steps/source_step.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"
#include <sys/stat.h>

static struct ls_doctor d, back;
static char root[256];

static void
setup(void)
{
	memset(&d, 0, sizeof(d));
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
}

static const struct ls_doctor_check *
find(const char *source, const char *subject)
{
	size_t i;

	for (i = 0; i < d.count; i++) {
		if (strcmp(d.check[i].source, source) == 0 &&
			strstr(d.check[i].subject, subject) != NULL)
			return &d.check[i];
	}
	ck_abort_msg("no check of %s, %s", source, subject);
}

LS_CASE(doctor, setup, NULL);

LS_TEST(doctor, texts_are_cut_and_checks_are_counted)
{
	char text[1000];
	unsigned i;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < LS_DOCTOR_CHECKS_MAX + 3; i++)
		ls_doctor_add(&d, LS_DOCTOR_WARN, text, text, text, text);
	ck_assert_uint_eq(d.count, LS_DOCTOR_CHECKS_MAX);
	ck_assert_uint_eq(d.left_out, 3);
	ck_assert_uint_eq(strlen(d.check[0].source), sizeof(d.check[0].source) - 1);
	ck_assert_uint_eq(strlen(d.check[0].fix), sizeof(d.check[0].fix) - 1);
	ck_assert_uint_eq(ls_doctor_count(&d, LS_DOCTOR_WARN), LS_DOCTOR_CHECKS_MAX);
	ck_assert_uint_eq(ls_doctor_count(&d, LS_DOCTOR_FAIL), 0);
}

LS_TEST(doctor, json_is_read_back_as_it_was)
{
	json_t *object;

	ls_doctor_add(&d, LS_DOCTOR_OK, "a", "b", "c", "");
	ls_doctor_addf(&d, LS_DOCTOR_FAIL, "tpu", "port 8431", "open it", "%d refused",
		3);
	ls_doctor_add(&d, LS_DOCTOR_NONE, "x", "y", "z", "");
	object = ls_doctor_json(&d);
	ck_assert_int_eq(ls_doctor_parse(object, &back), 0);
	ck_assert_uint_eq(back.count, 3);
	ck_assert_int_eq(back.check[1].status, LS_DOCTOR_FAIL);
	ck_assert_str_eq(back.check[1].why, "3 refused");
	ck_assert_str_eq(back.check[1].fix, "open it");
	ck_assert_str_eq(back.check[0].fix, "");
	ck_assert_int_eq(json_integer_value(json_object_get(
				 json_object_get(object, "summary"), "fail")),
		1);
	json_decref(object);
}

LS_TEST(doctor, texts_from_outside_are_made_safe)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	json_t *object;

	ls_doctor_add(&d, LS_DOCTOR_WARN, "steps", "\033]0;x\007.ring", "\xff\xfe",
		"a\nb");
	object = ls_doctor_json(&d);
	ck_assert_ptr_nonnull(object);
	ls_doctor_print(&d, false, out);
	(void)fclose(out); /* memory only */
	ck_assert_ptr_null(memchr(text, '\033', len));
	ck_assert_ptr_null(memchr(text, '\xff', len));
	ck_assert_ptr_nonnull(strstr(text, "WARN  steps"));
	ck_assert_ptr_nonnull(strstr(text, "      fix: a\\x0ab\n"));
	json_decref(object);
	free(text);
}

LS_TEST(doctor, json_of_others_is_refused)
{
	static const char *const texts[] = { "{}", "[]", "3", "{\"checks\":3}",
		"{\"checks\":[3]}", "{\"checks\":[{}]}",
		"{\"checks\":[{\"status\":\"fine\"}]}",
		"{\"checks\":[{\"status\":7}]}" };
	size_t i;

	ck_assert_int_eq(ls_doctor_parse(NULL, &back), -LS_EPARSE);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *v = json_loads(texts[i], JSON_DECODE_ANY, NULL);

		ck_assert_msg(ls_doctor_parse(v, &back) == -LS_EPARSE, "%s", texts[i]);
		json_decref(v);
	}
}

LS_TEST(doctor, a_missing_steps_directory_fails_with_its_fix)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/none", root);
	ls_source_step_tell_dir(path, &d);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_FAIL);
	ck_assert_ptr_nonnull(strstr(d.check[0].fix, "chmod 1777"));
	ck_assert_ptr_nonnull(strstr(d.check[0].fix, "systemd-tmpfiles"));
}

LS_TEST(doctor, modes_of_the_steps_directory_are_judged)
{
	static const struct {
		mode_t mode;
		enum ls_doctor_status status;
	} modes[] = { { 01777, LS_DOCTOR_OK }, { 0777, LS_DOCTOR_WARN },
		{ 0755, LS_DOCTOR_WARN }, { 01776, LS_DOCTOR_WARN },
		{ 0555, LS_DOCTOR_FAIL } };
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		ck_assert_int_eq(chmod(root, modes[i].mode), 0);
		d.count = 0;
		ls_source_step_tell_dir(root, &d);
		ck_assert_msg(d.check[0].status == modes[i].status, "mode %o",
			(unsigned)modes[i].mode);
		ck_assert((d.check[0].fix[0] == '\0') ==
			(modes[i].status == LS_DOCTOR_OK));
	}
	ck_assert_int_eq(chmod(root, 0755), 0);
	tree_write(root, "file", "");
	d.count = 0;
	(void)strncat(root, "/file", sizeof(root) - strlen(root) - 1);
	ls_source_step_tell_dir(root, &d);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_FAIL);
}

LS_TEST(doctor, rings_that_cannot_be_used_are_named)
{
	static const uint8_t kernel[16];
	struct ls_source_step *s = NULL;
	struct step_ring ring;

	ck_assert_int_eq(chmod(root, 01777), 0);
	step_ring_make(&ring, root, "other.ring", 1, 16);
	step_ring_poke(&ring, 8, 99, 4); /* version */
	ck_assert_int_eq(ls_source_step_new(root, kernel, NULL, &s), 0);
	ls_source_step_read(s, 1000);
	ls_source_step_tell(s, &d);
	ck_assert_int_eq(find("steps", "rings")->status, LS_DOCTOR_NONE);
	ck_assert_int_eq(find("steps", "other.ring")->status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(strstr(find("steps", "other.ring")->why, "version"));
	ls_source_step_free(s);
	step_ring_fini(&ring);
}

LS_TEST(doctor, workers_of_other_pid_namespaces_are_told)
{
	static const uint8_t kernel[16];
	struct ls_source_step *s = NULL;
	struct step_ring ring;

	step_ring_make(&ring, root, "a.ring", 1, 16); /* nobody holds its lock */
	ck_assert_int_eq(ls_source_step_new(root, kernel, NULL, &s), 0);
	ls_source_step_read(s, 1000);
	ls_source_step_tell(s, &d);
	ck_assert_int_eq(find("steps", "rings")->status, LS_DOCTOR_OK);
	ck_assert_int_eq(find("steps", "processes")->status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(strstr(find("steps", "processes")->fix, "hostPID"));
	ls_source_step_free(s);
	step_ring_fini(&ring);
}

LS_TEST(doctor, spool_tells_of_damage_and_of_room)
{
	static const uint8_t kernel[16];
	struct ls_spool *spool = NULL;

	ck_assert_int_eq(ls_spool_open(root, LS_SPOOL_MIN_BYTES, kernel, &spool), 0);
	ls_checks_spool(spool, root, LS_SPOOL_MIN_BYTES, &d);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_OK);
	ls_spool_close(spool);
	tree_write(root, "spool.damaged", "x");
	ck_assert_int_eq(ls_spool_open(root, LS_SPOOL_MIN_BYTES, kernel, &spool), 0);
	d.count = 0;
	ls_checks_spool(spool, root, 10, &d); /* more than that is there */
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_WARN);
	ck_assert_int_eq(find("spool", "spool.damaged")->status, LS_DOCTOR_WARN);
	ls_spool_close(spool);
}

LS_TEST(doctor, state_directory_is_tried)
{
	ls_checks_state_dir(root, &d);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_OK);
	(void)strncat(root, "/none", sizeof(root) - strlen(root) - 1);
	ls_checks_state_dir(root, &d);
	ck_assert_int_eq(d.check[1].status, LS_DOCTOR_FAIL);
	ck_assert_ptr_nonnull(strstr(d.check[1].fix, "install -d"));
}

LS_TEST(doctor, collectors_that_cannot_be_reached_fail)
{
	static const char *const urls[] = { "tcp://127.0.0.1:1", "tcp://[::1]:1",
		"ipc:///x", "tcp://", "tcp://:", "127.0.0.1", "tcp://127.0.0.1:none",
		"" };
	size_t i;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		ls_checks_reach(urls[i], &d);
		ck_assert_msg(d.check[i].status == LS_DOCTOR_FAIL, "%s", urls[i]);
		ck_assert_str_ne(d.check[i].fix, "");
	}
}

LS_TEST(doctor, clock_is_told_once)
{
	ls_checks_clock(&d);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_str_eq(d.check[0].source, "clock");
}

LS_TEST(doctor, budget_tells_what_is_over)
{
	const struct ls_budget_limits limits = { 0.005, 1000, 1000 };
	struct ls_budget_reading now = { .t_mono_ns = 0 };
	struct ls_budget b;

	ls_budget_init(&b, &limits, &now);
	ls_checks_budget(&b, &d);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_NONE);
	now.t_mono_ns = LS_BUDGET_WINDOW_NS;
	(void)ls_budget_look(&b, &now);
	d.count = 0;
	ls_checks_budget(&b, &d);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_OK);
	now = (struct ls_budget_reading){ .t_mono_ns = 2 * LS_BUDGET_WINDOW_NS,
		.cpu_ns = LS_BUDGET_WINDOW_NS,
		.sent_bytes = 5000,
		.rss_bytes = 5000 };
	(void)ls_budget_look(&b, &now);
	d.count = 0;
	ls_checks_budget(&b, &d);
	ck_assert_int_eq(find("budget", "sampling")->status, LS_DOCTOR_WARN);
	ck_assert_int_eq(find("budget", "cpu")->status, LS_DOCTOR_WARN);
	ck_assert_int_eq(find("budget", "memory")->status, LS_DOCTOR_WARN);
	ck_assert_int_eq(find("budget", "bytes")->status, LS_DOCTOR_WARN);
}
