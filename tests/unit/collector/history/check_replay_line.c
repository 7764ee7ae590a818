/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/replay_line.h"

#include "tests/support/harness.h"

#include <stdio.h>
#include <string.h>

#define HANG "{\"type\":\"hang\",\"job\":\"j\",\"step\":1,"
#define STEP \
	"{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":1,\"duration\":1,"

static struct ls_line line;
static char why[LS_LINE_WHY_BYTES];

static void
parse(const char *text)
{
	why[0] = '\0';
	ck_assert_msg(ls_line_parse(text, strlen(text), &line, why) == 0, "%s: %s",
		text, why);
}

/* What must be said of each line. */
static const struct {
	const char *line, *why;
} bad[] = {
	{ "nonsense", "not JSON" },
	{ "[1]", "not an object" },
	{ "17", "not an object" },
	{ "{\"a\":1,\"a\":2}", "duplicate" },
	{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
		"deeper" },
	{ "{\"type\":\"surprise\"}", "unknown type \"surprise\"" },
	{ "{\"type\":\"\\u001b[2J\"}", "\\x1b" },
	{ "{}", "\"host\" is missing" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"t_begin\":1,\"duration\":1}",
		"\"step\" is missing" },
	{ "{\"job\":\"j\",\"host\":\"a\\nb\",\"rank\":0,\"step\":1,\"t_begin\":1,\"duration\":1}",
		"\"host\" is not a name" },
	{ "{\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":1,\"duration\":1}",
		"\"job\" is missing" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":-1,\"step\":1,\"t_begin\":1,\"duration\":1}",
		"\"rank\" is not a whole" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1.5,\"t_begin\":1,\"duration\":1}",
		"\"step\" is not a whole" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":\"x\",\"duration\":1}",
		"\"t_begin\" is not a number" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":1}",
		"\"duration\" is missing" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":1,\"duration\":-1}",
		"\"duration\" is not within" },
	{ "{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":1,\"duration\":1e99}",
		"\"duration\" is not within" },
	{ STEP "\"uid\":-1}", "\"uid\" is not a whole" },
	{ STEP "\"uid\":4294967295}", "\"uid\" is not a whole" },
	{ STEP "\"phases\":3}", "\"phases\" is not an object" },
	{ STEP "\"phases\":{\"compute\":5}}", "impossible record" },
	{ STEP "\"work\":[]}", "\"work\" is not an object" },
	{ STEP "\"work\":{\"tokens\":-3}}", "\"tokens\" is not within" },
	{ STEP "\"sync_enter\":1.5}", "\"sync_exit\" is missing" },
	{ STEP "\"barriers\":{}}", "\"barriers\" is not a list" },
	{ STEP "\"barriers\":[{\"name\":\"x\"}]}", "barrier 1 has no known name" },
	{ STEP "\"barriers\":[1,2,3,4,5]}", "at most 4" },
	{ STEP "\"step_source\":\"guess\"}", "\"step_source\" is unknown" },
	{ STEP "\"step_source\":1}", "\"step_source\" is unknown" },
	{ STEP "\"step_confidence\":2}",
		"\"step_confidence\" is not a number from 0 to 1" },
	{ STEP "\"peers\":1}", "\"peers\" is not an object" },
	{ STEP "\"peers\":{\"h1\":2}}", "peer \"h1\" is not an object" },
	{ STEP "\"peers\":{\"h1\":{\"recv_wait\":-1}}}",
		"\"recv_wait\" is not within" },
	{ "{\"type\":\"counters\",\"job\":\"j\",\"host\":\"h\",\"t\":1}",
		"\"values\" is not an object" },
	{ "{\"type\":\"counters\",\"job\":\"j\",\"host\":\"h\",\"t\":1,\"values\":{\"job.threads\":\"x\"}}",
		"\"job.threads\" is not a number" },
	{ "{\"type\":\"counters\",\"job\":\"j\",\"host\":\"h\",\"values\":{}}",
		"\"t\" is missing" },
	{ "{\"type\":\"clock\",\"job\":\"j\",\"host\":\"h\",\"t\":1,\"uncertainty\":0}",
		"\"rank\" is missing" },
	{ "{\"type\":\"clock\",\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"t\":1}",
		"\"uncertainty\" is missing" },
	{ "{\"type\":\"close\",\"job\":\"j\",\"t\":1}", "\"step\" is missing" },
	{ "{\"type\":\"close\",\"job\":\"j\",\"step\":1,\"t\":1,\"missing\":7}",
		"\"missing\" is not a list" },
	{ "{\"type\":\"close\",\"job\":\"j\",\"step\":1,\"t\":1,\"missing\":[\"a\"]}",
		"\"missing\" is not a list" },
	{ "{\"type\":\"close\",\"job\":\"j\",\"step\":1,\"t\":1,\"missing\":[2147483648]}",
		"\"missing\" is not a list" },
	{ HANG "\"since\":1,\"t\":2,\"waiting\":1}", "\"why\" is unknown" },
	{ HANG "\"since\":1,\"t\":2,\"waiting\":1,\"why\":3}", "\"why\" is unknown" },
	{ HANG "\"since\":1,\"t\":2,\"waiting\":1,\"why\":\"bored\"}",
		"\"why\" is unknown" },
	{ HANG "\"since\":3,\"t\":2,\"waiting\":1,\"why\":\"gone\"}",
		"\"since\" is after" },
	{ HANG "\"t\":2,\"waiting\":1,\"why\":\"gone\"}", "\"since\" is missing" },
	{ HANG "\"since\":1,\"t\":2,\"why\":\"gone\"}", "\"waiting\" is missing" },
	{ HANG "\"since\":1,\"t\":2,\"waiting\":65537,\"why\":\"gone\"}",
		"\"waiting\" is not a whole" },
	{ HANG "\"since\":1,\"t\":2,\"waiting\":1,\"why\":\"gone\",\"ranks\":{}}",
		"\"ranks\" is not a list" },
};

LS_CASE(all);

LS_TEST_EACH(all, bad_line_says_what_is_wrong, bad)
{
	ck_assert_int_eq(ls_line_parse(bad[_i].line, strlen(bad[_i].line), &line, why),
		-LS_EPARSE);
	ck_assert_msg(strstr(why, bad[_i].why) != NULL, "%s: %s", bad[_i].line, why);
}

LS_TEST(all, step_line)
{
	parse("{\"type\":\"step\",\"job\":\"j\",\"attempt\":2,\"slice\":\"s\",\"host\":\"h\",\"rank\":3,"
	      "\"uid\":1000,\"role\":\"r\",\"world\":8,\"chips\":4,\"step\":9,\"t_begin\":1700000000.1234567,"
	      "\"duration\":0.5,\"phases\":{\"input_wait\":0.1},\"work\":{\"tokens\":512},"
	      "\"sync_enter\":1700000000.3,\"sync_exit\":1700000000.5}");
	ck_assert_int_eq(line.kind, LS_LINE_STEP);
	ck_assert_str_eq(line.who.job, "j");
	ck_assert_str_eq(line.who.slice, "s");
	ck_assert_str_eq(line.who.host, "h");
	ck_assert_str_eq(line.who.role, "r");
	ck_assert_int_eq(line.who.attempt, 2);
	ck_assert_int_eq(line.who.rank, 3);
	ck_assert_uint_eq(line.who.owner, 1001);
	ck_assert_int_eq(line.who.world, 8);
	ck_assert_int_eq(line.who.chips, 4);
	ck_assert_uint_eq(line.record.step, 9);
	/* whole microseconds */
	ck_assert_int_eq(line.record.t_begin_ns, 1700000000123457000);
	ck_assert_uint_eq(line.record.duration_ns, 500000000);
	ck_assert_uint_eq(line.record.phase_ns[LS_PHASE_INPUT_WAIT], 100000000);
	ck_assert_uint_eq(line.record.phase_mask, 1u << LS_PHASE_INPUT_WAIT);
	ck_assert_double_eq(line.record.work[LS_WORK_TOKENS], 512);
	ck_assert_uint_eq(line.record.barrier_count, 1);
	ck_assert_int_eq(line.record.barrier[0].enter_ns, 1700000000300000000);
	ck_assert_str_eq(line.unknown, "");
}

LS_TEST(all, step_line_of_a_log)
{
	parse(STEP "\"step_source\":\"log\",\"step_confidence\":0.9}");
	ck_assert_int_eq(line.who.step_source, LS_STEP_LOG);
	ck_assert_double_eq(line.who.step_confidence, 0.9);
	ck_assert_str_eq(line.unknown, "");
}

LS_TEST(all, least_step_line)
{
	parse("{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":0,\"t_begin\":0,\"duration\":0}");
	ck_assert_int_eq(line.who.attempt, 0);
	ck_assert_int_eq(line.who.step_source, LS_STEP_MARKER);
	ck_assert_int_eq(line.who.world, 0);
	ck_assert_str_eq(line.who.slice, "");
	ck_assert_uint_eq(line.record.barrier_count, 0);
	ck_assert_uint_eq(line.record.phase_mask, 0);
}

LS_TEST(all, barriers_of_a_step)
{
	parse(STEP "\"barriers\":[{\"name\":\"ici\",\"enter\":1.2,\"exit\":1.3},"
		   "{\"name\":\"dcn\",\"enter\":1.5,\"exit\":1.9}]}");
	ck_assert_uint_eq(line.record.barrier_count, 2);
	ck_assert_int_eq(line.record.barrier[1].kind, LS_BARRIER_DCN);
	ck_assert_int_eq(line.record.barrier[1].exit_ns, 1900000000);
}

LS_TEST(all, counters_line)
{
	parse("{\"type\":\"counters\",\"job\":\"j\",\"host\":\"h\",\"t\":2.5,\"values\":"
	      "{\"job.cpu_seconds_total\":1.5,\"host.load.1m\":null,\"host.cpu.count\":2}}");
	ck_assert_int_eq(line.kind, LS_LINE_COUNTERS);
	ck_assert_int_eq(line.who.rank, -1); /* of the host */
	ck_assert_int_eq(line.t_us, 2500000);
	ck_assert_uint_eq(line.count, 2); /* null: not measured */
	parse("{\"type\":\"counters\",\"job\":\"j\",\"host\":\"h\",\"rank\":7,\"t\":2,\"values\":{}}");
	ck_assert_int_eq(line.who.rank, 7);
}

LS_TEST(all, close_line)
{
	parse("{\"type\":\"close\",\"job\":\"j\",\"attempt\":1,\"step\":5,\"t\":3,\"expected\":4,"
	      "\"used\":2,\"missing\":[1,3]}");
	ck_assert_int_eq(line.kind, LS_LINE_CLOSE);
	ck_assert_int_eq(line.who.attempt, 1);
	ck_assert_uint_eq(line.step, 5);
	ck_assert_int_eq(line.t_us, 3000000);
	ck_assert_uint_eq(line.rank_count, 2);
	ck_assert_int_eq(line.ranks[1], 3);
	ck_assert_str_eq(line.unknown, "");
}

LS_TEST(all, hang_line)
{
	parse("{\"type\":\"hang\",\"job\":\"j\",\"attempt\":1,\"step\":5,\"since\":3,\"t\":14.5,"
	      "\"waiting\":6,\"why\":\"silent\",\"ranks\":[1,3]}");
	ck_assert_int_eq(line.kind, LS_LINE_HANG);
	ck_assert_str_eq(line.who.job, "j");
	ck_assert_int_eq(line.who.attempt, 1);
	ck_assert_uint_eq(line.step, 5);
	ck_assert_int_eq(line.since_us, 3000000);
	ck_assert_int_eq(line.t_us, 14500000);
	ck_assert_uint_eq(line.waiting, 6);
	ck_assert_int_eq(line.why, LS_HANG_SILENT);
	ck_assert_uint_eq(line.rank_count, 2);
	ck_assert_int_eq(line.ranks[1], 3);
	ck_assert_str_eq(line.unknown, "");
	parse("{\"type\":\"hang\",\"job\":\"j\",\"step\":0,\"since\":3,\"t\":3,\"waiting\":0,"
	      "\"why\":\"unknown\"}");
	ck_assert_uint_eq(line.rank_count, 0);
	ck_assert_int_eq(line.who.attempt, 0);
	ck_assert_int_eq(line.why, LS_HANG_UNKNOWN);
}

LS_TEST(all, clock_line)
{
	parse("{\"type\":\"clock\",\"job\":\"j\",\"attempt\":1,\"host\":\"h\",\"rank\":2,\"t\":3,"
	      "\"uncertainty\":0.000125}");
	ck_assert_int_eq(line.kind, LS_LINE_CLOCK);
	ck_assert_int_eq(line.who.rank, 2);
	ck_assert_int_eq(line.who.attempt, 1);
	ck_assert_int_eq(line.t_us, 3000000);
	ck_assert_double_eq(line.uncertainty_s, 0.000125);
}

LS_TEST(all, an_end_says_whose_and_when)
{
	parse("{\"type\":\"end\",\"job\":\"a\",\"attempt\":1,\"host\":\"h\",\"rank\":2,\"t\":3.5,\"how\":\"crashed\"}");
	ck_assert_int_eq(line.kind, LS_LINE_END);
	ck_assert_int_eq(line.who.rank, 2);
	ck_assert_int_eq(line.who.attempt, 1);
	ck_assert_int_eq(line.t_us, 3500000);
	ck_assert_int_eq(line.how, LS_END_CRASHED);
	parse("{\"type\":\"end\",\"job\":\"a\",\"host\":\"h\",\"rank\":2,\"t\":3,\"how\":\"ended\"}");
	ck_assert_int_eq(line.how, LS_END_ENDED);
}

LS_TEST_LOOP(all, lines_of_others, 0, 4)
{
	static const char *const types[] = { "gap", "job", "zoom", "lost" };
	char text[64];

	(void)snprintf(text, sizeof(text), "{\"type\":\"%s\",\"x\":1}", types[_i]);
	parse(text);
	ck_assert_int_eq(line.kind, LS_LINE_OTHER);
}

LS_TEST(all, first_unknown_key_is_kept)
{
	parse(STEP "\"\\u001bcolour\":1,\"zzz\":2}");
	ck_assert_str_eq(line.unknown, "\\x1bcolour");
	parse(STEP "\"phases\":{\"nap\":0.5}}");
	ck_assert_str_eq(line.unknown, "nap");
	parse(STEP "\"work\":{\"tea\":1}}");
	ck_assert_str_eq(line.unknown, "tea");
}
