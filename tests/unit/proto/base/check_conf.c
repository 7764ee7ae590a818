/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/conf.h"

#include "proto/base/text.h"
#include "tests/support/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct settings {
	char host_name[LS_CONF_VALUE_MAX_BYTES];
	char token[LS_CONF_VALUE_MAX_BYTES];
	char output[LS_CONF_VALUE_MAX_BYTES];
	bool insecure;
	int64_t rank;
	uint64_t beat_ns;
	uint64_t spool_bytes, keep_bytes;
	int64_t any;
};

#define AT(field) offsetof(struct settings, field)

static const struct ls_conf_option options[] = {
	{ "host-name", LS_CONF_STRING, AT(host_name), NULL, 0, 0, "NAME",
		"name of this host", 0 },
	{ "token", LS_CONF_STRING, AT(token), "", 0, 0, "TEXT", "bearer token",
		LS_CONF_SECRET },
	{ "output", LS_CONF_ENUM, AT(output), "text", 0, 0, "text|json",
		"form of output", 0 },
	{ "insecure", LS_CONF_BOOL, AT(insecure), "false", 0, 0, NULL, "no TLS", 0 },
	{ "rank", LS_CONF_INT, AT(rank), "0", -1, 100, "N", "rank", 0 },
	{ "beat", LS_CONF_DURATION, AT(beat_ns), "1s", 100000000, 60000000000, "TIME",
		"time between reports", LS_CONF_RELOAD },
	{ "spool-size", LS_CONF_SIZE, AT(spool_bytes), "64MiB", 1048576, INT64_MAX,
		"SIZE", "spool on disk", 0 },
	{ "keep", LS_CONF_SIZE, AT(keep_bytes), "auto", 0, 0, "SIZE|auto", "what stays",
		LS_CONF_AUTO },
	{ "any", LS_CONF_INT, AT(any), "5", 0, 0, "N", "any number", 0 },
};

static const struct ls_conf_program program = {
	.name = "lockstep-test",
	.section = "agent",
	.summary = "Tests the options.",
	.libraries = "libnone 1.0",
	.usage = "lockstep-test [OPTION]...",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static char err[256];
static struct settings got;
static enum ls_conf_action action;
static int kept;
static char words_copy[16][LS_CONF_VALUE_MAX_BYTES + 16];
static char *argv_copy[16];

/* Loads with these words behind the program's name; what came of it is in the variables
 * above. */
static int
load(const struct ls_conf_program *p, const char *const *words)
{
	static char name[] = "lockstep-test";
	int argc = 1;

	argv_copy[0] = name;
	for (; words[argc - 1]; argc++) {
		argv_copy[argc] = words_copy[argc];
		ck_assert_int_eq(ls_text_copy(words_copy[argc],
					 sizeof(words_copy[argc]), words[argc - 1]),
			0);
	}
	argv_copy[argc] = NULL;
	memset(&got, 0xee, sizeof(got));
	err[0] = '\0';
	return ls_conf_load(p, argc, argv_copy, &got, &action, &kept, err, sizeof(err));
}

#define LOAD(...) \
	load(&program, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static int
parse(const char *text)
{
	memset(&got, 0, sizeof(got));
	err[0] = '\0';
	return ls_conf_parse_file(&program, "a.conf", text, strlen(text), &got, err,
		sizeof(err));
}

static const char *
write_file(const char *text)
{
	static char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%.400s/test.conf", ls_test_tmpdir());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

static void
clear_environment(void)
{
	static const char *const names[] = { "LOCKSTEP_HOST_NAME", "LOCKSTEP_TOKEN",
		"LOCKSTEP_OUTPUT", "LOCKSTEP_INSECURE", "LOCKSTEP_RANK",
		"LOCKSTEP_BEAT", "LOCKSTEP_SPOOL_SIZE", "LOCKSTEP_ANY" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
}

LS_CASE(conf, clear_environment, clear_environment);

LS_TEST(conf, defaults_fill_every_option)
{
	ck_assert_int_eq(LOAD(), 0);
	ck_assert_int_eq(action, LS_CONF_RUN);
	ck_assert_int_eq(kept, 1);
	ck_assert_str_eq(got.host_name, "");
	ck_assert_str_eq(got.output, "text");
	ck_assert(!got.insecure);
	ck_assert_int_eq(got.rank, 0);
	ck_assert_uint_eq(got.beat_ns, 1000000000);
	ck_assert_uint_eq(got.spool_bytes, 64 * 1048576);
	ck_assert_int_eq(got.any, 5);
}

LS_TEST(conf, flags_take_values_in_both_forms)
{
	ck_assert_int_eq(LOAD("--host-name", "h1", "--rank=-1", "--insecure", "--beat",
				 "200ms", "--spool-size=2MiB"),
		0);
	ck_assert_str_eq(got.host_name, "h1");
	ck_assert_int_eq(got.rank, -1);
	ck_assert(got.insecure);
	ck_assert_uint_eq(got.beat_ns, 200000000);
	ck_assert_uint_eq(got.spool_bytes, 2097152);
}

LS_TEST(conf, flags_may_have_odd_values)
{
	ck_assert_int_eq(LOAD("--host-name", "--rank"), 0);
	ck_assert_str_eq(got.host_name, "--rank");
	ck_assert_int_eq(LOAD("--host-name=a=b"), 0);
	ck_assert_str_eq(got.host_name, "a=b");
	ck_assert_int_eq(LOAD("--host-name="), 0);
	ck_assert_str_eq(got.host_name, "");
}

LS_TEST(conf, last_flag_counts)
{
	ck_assert_int_eq(LOAD("--rank=1", "--insecure", "--rank=2", "--no-insecure"),
		0);
	ck_assert_int_eq(got.rank, 2);
	ck_assert(!got.insecure);
	ck_assert_int_eq(LOAD("--insecure=yes"), 0);
	ck_assert(got.insecure);
	ck_assert_int_eq(LOAD("--insecure=0"), 0);
	ck_assert(!got.insecure);
}

LS_TEST(conf, short_o_is_output)
{
	ck_assert_int_eq(LOAD("-o", "json"), 0);
	ck_assert_str_eq(got.output, "json");
	ck_assert_int_eq(LOAD("-ojson"), 0);
	ck_assert_str_eq(got.output, "json");
	ck_assert_int_eq(LOAD("-o"), -LS_EPARSE);
	ck_assert_str_eq(err, "command line: --output needs a value");
}

LS_TEST(conf, short_o_needs_an_option_output)
{
	struct ls_conf_program p = program;

	p.option_count = 2;
	ck_assert_int_eq(load(&p, (const char *const[]){ "-o", "json", NULL }),
		-LS_EUNKNOWN);
	ck_assert_str_eq(err, "command line: unknown option -o");
}

LS_TEST(conf, arguments_stay_in_argv)
{
	struct ls_conf_program p = program;
	static const char *const words[] = { "a", "--rank", "3", "-", "b", "--",
		"--rank", "--", NULL };

	p.allow_arguments = true;
	ck_assert_int_eq(load(&p, words), 0);
	ck_assert_int_eq(kept, 6);
	ck_assert_str_eq(argv_copy[0], "lockstep-test");
	ck_assert_str_eq(argv_copy[1], "a");
	ck_assert_str_eq(argv_copy[2], "-");
	ck_assert_str_eq(argv_copy[3], "b");
	ck_assert_str_eq(argv_copy[4], "--rank");
	ck_assert_str_eq(argv_copy[5], "--");
	ck_assert_int_eq(got.rank, 3);
}

LS_TEST(conf, arguments_are_refused_where_none_belong)
{
	ck_assert_int_eq(LOAD("x\x1b"), -LS_EUNKNOWN);
	ck_assert_str_eq(err, "command line: unexpected argument 'x\\x1b'");
}

LS_TEST(conf, unknown_flag_names_the_nearest)
{
	ck_assert_int_eq(LOAD("--hostname", "x"), -LS_EUNKNOWN);
	ck_assert_str_eq(err,
		"command line: unknown option --hostname; did you mean --host-name?");
	ck_assert_int_eq(LOAD("--hepl"), -LS_EUNKNOWN);
	ck_assert_str_eq(err,
		"command line: unknown option --hepl; did you mean --help?");
	ck_assert_int_eq(LOAD("--xyzzyplugh=1"), -LS_EUNKNOWN);
	ck_assert_str_eq(err, "command line: unknown option --xyzzyplugh");
	ck_assert_int_eq(LOAD("--no-rank"), -LS_EUNKNOWN);
	ck_assert_int_eq(LOAD("--no-insecure=1"), -LS_EUNKNOWN);
	ck_assert_int_eq(LOAD("--help=1"), -LS_EUNKNOWN);
	ck_assert_int_eq(LOAD("-x"), -LS_EUNKNOWN);
	ck_assert_str_eq(err, "command line: unknown option -x");
	ck_assert_int_eq(LOAD("--rank"), -LS_EPARSE);
	ck_assert_str_eq(err, "command line: --rank needs a value");
}

LS_TEST(conf, bad_values_say_why)
{
	ck_assert_int_eq(LOAD("--rank", "1x"), -LS_EPARSE);
	ck_assert_str_eq(err, "command line: --rank: '1x' is not a whole number");
	ck_assert_int_eq(LOAD("--rank", ""), -LS_EPARSE);
	ck_assert_int_eq(LOAD("--rank", " 1"), -LS_EPARSE);
	ck_assert_int_eq(LOAD("--rank", "-"), -LS_EPARSE);
	ck_assert_int_eq(LOAD("--rank", "101"), -LS_ERANGE);
	ck_assert_str_eq(err, "command line: --rank: must be -1 to 100");
	ck_assert_int_eq(LOAD("--rank", "-2"), -LS_ERANGE);
	ck_assert_int_eq(LOAD("--any", "9223372036854775808"), -LS_ERANGE);
	ck_assert_str_eq(err,
		"command line: --any: '9223372036854775808' is not a 64-bit number");
	ck_assert_int_eq(LOAD("--any", "-9223372036854775808"), 0);
	ck_assert_int_eq(LOAD("--beat", "soon"), -LS_EPARSE);
	ck_assert_str_eq(err,
		"command line: --beat: 'soon' is not a duration (like 200ms, 5s, 1h)");
	ck_assert_int_eq(LOAD("--beat", "2m"), -LS_ERANGE);
	ck_assert_str_eq(err, "command line: --beat: must be 100ms to 1m");
	ck_assert_int_eq(LOAD("--beat", "99999999d"), -LS_ERANGE);
	ck_assert_str_eq(err, "command line: --beat: '99999999d' is too large");
	ck_assert_int_eq(LOAD("--spool-size", "1MB"), -LS_EPARSE);
	ck_assert_str_eq(err,
		"command line: --spool-size: '1MB' is not a size (like 64MiB)");
	ck_assert_int_eq(LOAD("--spool-size", "1"), -LS_ERANGE);
	ck_assert_int_eq(LOAD("--output", "jso"), -LS_EPARSE);
	ck_assert_str_eq(err, "command line: --output: 'jso' is not one of text|json");
	ck_assert_int_eq(LOAD("--output", ""), -LS_EPARSE);
	ck_assert_int_eq(LOAD("--output", "text|json"), -LS_EPARSE);
	ck_assert_int_eq(LOAD("--insecure=perhaps"), -LS_EPARSE);
	ck_assert_str_eq(err,
		"command line: --insecure: 'perhaps' is neither true nor false");
}

LS_TEST(conf, long_value_is_refused)
{
	char value[LS_CONF_VALUE_MAX_BYTES + 1];

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	ck_assert_int_eq(LOAD("--host-name", value), -LS_ERANGE);
	ck_assert_str_eq(err, "command line: --host-name: longer than 511 bytes");
	value[sizeof(value) - 2] = '\0';
	ck_assert_int_eq(LOAD("--host-name", value), 0);
	ck_assert_str_eq(got.host_name, value);
}

LS_TEST(conf, order_is_default_file_environment_flag)
{
	const char *path = write_file("rank = 1\nany = 1\nhost_name = file\n");

	ck_assert_int_eq(setenv("LOCKSTEP_ANY", "2", 1), 0);
	ck_assert_int_eq(setenv("LOCKSTEP_HOST_NAME", "env", 1), 0);
	ck_assert_int_eq(LOAD("--host-name", "flag", "--config", path), 0);
	ck_assert_str_eq(got.output, "text");
	ck_assert_int_eq(got.rank, 1);
	ck_assert_int_eq(got.any, 2);
	ck_assert_str_eq(got.host_name, "flag");
}

LS_TEST(conf, environment_is_checked)
{
	ck_assert_int_eq(setenv("LOCKSTEP_BEAT", "5x", 1), 0);
	ck_assert_int_eq(LOAD(), -LS_EPARSE);
	ck_assert_str_eq(err,
		"environment LOCKSTEP_BEAT: '5x' is not a duration (like 200ms, "
		"5s, 1h)");
	ck_assert_int_eq(setenv("LOCKSTEP_BEAT", "", 1), 0);
	ck_assert_int_eq(LOAD(), 0);
	ck_assert_int_eq(setenv("LOCKSTEP_SPOOL_SIZE", "1GiB", 1), 0);
	ck_assert_int_eq(LOAD(), 0);
	ck_assert_uint_eq(got.spool_bytes, 1u << 30);
}

LS_TEST(conf, file_takes_comments_sections_and_indents)
{
	ck_assert_int_eq(parse("# a comment\n; another\n\nhost_name = h1 ; behind\r\n"
			       "[agent]\n  rank = 3\n\tinsecure: yes\n"
			       "[collector]\nlisten = tcp://x\n[lockstep]\nserver = y\n"
			       "[agent]\nany=7"),
		0);
	ck_assert_str_eq(got.host_name, "h1");
	ck_assert_int_eq(got.rank, 3);
	ck_assert(got.insecure);
	ck_assert_int_eq(got.any, 7);
}

LS_TEST(conf, empty_file_is_fine)
{
	ck_assert_int_eq(parse(""), 0);
	ck_assert_int_eq(parse("\n\n"), 0);
	ck_assert_int_eq(parse("\xef\xbb\xbfrank = 2\n"), 0);
	ck_assert_int_eq(got.rank, 2);
}

static const struct {
	const char *text;
	int rc;
	const char *err;
} bad_files[] = {
	{ "rank = 1\n\nhostname = x\n", -LS_EUNKNOWN,
		"a.conf:3: unknown key 'hostname'; did you mean 'host_name'?" },
	{ "[agent]\nhost-name = x\n", -LS_EUNKNOWN,
		"a.conf:2: unknown key 'host-name'; did you mean 'host_name'?" },
	{ "[agent]\nxyzzyplugh = x\n", -LS_EUNKNOWN,
		"a.conf:2: unknown key 'xyzzyplugh'" },
	{ "[agnet]\nrank = 1\n", -LS_EUNKNOWN,
		"a.conf:2: unknown section [agnet]; did you mean [agent]?" },
	{ "[x\x1b]\nrank = 1\n", -LS_EUNKNOWN, "a.conf:2: unknown section [x\\x1b]" },
	{ "rank = 1\nrank = 2\n", -LS_EPARSE, "a.conf:2: 'rank' is repeated" },
	{ "rank = x\n", -LS_EPARSE, "a.conf:1: rank: 'x' is not a whole number" },
	{ "rank = 200\n", -LS_ERANGE, "a.conf:1: rank: must be -1 to 100" },
	{ "rank =\n", -LS_EPARSE, "a.conf:1: rank: '' is not a whole number" },
	{ "any = 1\nrank\n", -LS_EPARSE, "a.conf:2: not 'key = value'" },
	{ "[agent\nany = 1\n", -LS_EPARSE, "a.conf:1: not 'key = value'" },
	{ "nonsense\nhostname = x\n", -LS_EPARSE, "a.conf:1: not 'key = value'" },
	{ "hostname = x\nnonsense\n", -LS_EUNKNOWN,
		"a.conf:1: unknown key 'hostname'; did you mean 'host_name'?" },
	{ "= 5\n", -LS_EUNKNOWN, "a.conf:1: unknown key ''" },
};

LS_TEST_EACH(conf, bad_file_names_line_and_reason, bad_files)
{
	ck_assert_int_eq(parse(bad_files[_i].text), bad_files[_i].rc);
	ck_assert_str_eq(err, bad_files[_i].err);
}

LS_TEST(conf, file_refuses_zero_bytes_and_long_lines)
{
	char text[1024];

	ck_assert_int_eq(ls_conf_parse_file(&program, "a", "rank = 1\nany\0 = 2\n", 18,
				 &got, err, sizeof(err)),
		-LS_EPARSE);
	ck_assert_str_eq(err, "a:2: line holds a zero byte");
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "host_name = ", 12);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(parse(text), -LS_ERANGE);
	ck_assert_str_eq(err, "a.conf:1: line is too long");
}

LS_TEST(conf, file_too_big_is_refused)
{
	char *text = calloc(1, LS_CONF_FILE_MAX_BYTES + 2);

	ck_assert_ptr_nonnull(text);
	memset(text, '\n', LS_CONF_FILE_MAX_BYTES + 1);
	ck_assert_int_eq(LOAD("--config", write_file(text)), -LS_ERANGE);
	ck_assert_ptr_nonnull(strstr(err, "longer than 262144 bytes"));
	text[LS_CONF_FILE_MAX_BYTES] = '\0';
	ck_assert_int_eq(LOAD("--config", write_file(text)), 0);
	free(text);
}

LS_TEST(conf, file_that_cannot_be_read_is_an_error)
{
	ck_assert_int_eq(LOAD("--config", "/nonexistent/x.conf"), -ENOENT);
	ck_assert_str_eq(err, "/nonexistent/x.conf: No such file or directory");
	ck_assert_int_eq(LOAD("--config", ls_test_tmpdir()), -EISDIR);
	ck_assert_int_eq(LOAD("--config"), -LS_EPARSE);
}

LS_TEST(conf, default_file_is_read_if_it_exists)
{
	struct ls_conf_program p = program;
	const char *const none[] = { NULL };

	p.default_file = "/nonexistent/x.conf";
	ck_assert_int_eq(load(&p, none), 0);
	ck_assert_int_eq(got.rank, 0);
	p.default_file = write_file("rank = 9\n");
	ck_assert_int_eq(load(&p, none), 0);
	ck_assert_int_eq(got.rank, 9);
	p.default_file = ls_test_tmpdir();
	ck_assert_int_eq(load(&p, none), -EISDIR);
}

/* Runs LOAD with stdout in a file; returns what it printed. */
static const char *
printed(const char *const *words, int want)
{
	static char text[8192];
	char path[512];
	int keep, fd;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.400s/out", ls_test_tmpdir());
	ck_assert_int_eq(fflush(stdout), 0);
	keep = dup(STDOUT_FILENO);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert(fd >= 0 && keep >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	n = load(&program, words);
	(void)fflush(stdout);
	ck_assert_int_ge(dup2(keep, STDOUT_FILENO), 0);
	(void)close(keep);
	ck_assert_int_eq(n, want);
	n = pread(fd, text, sizeof(text) - 1, 0);
	ck_assert_int_ge(n, 0);
	(void)close(fd);
	text[n] = '\0';
	return text;
}

#define PRINTED(...) printed((const char *const[]){ __VA_ARGS__, NULL }, 0)

LS_TEST(conf, help_tells_every_option)
{
	const char *text = PRINTED("--help");

	ck_assert_int_eq(action, LS_CONF_EXIT);
	ck_assert_ptr_nonnull(
		strstr(text, "Usage: lockstep-test [OPTION]...\nTests the options."));
	for (size_t i = 0; i < program.option_count; i++)
		ck_assert_ptr_nonnull(strstr(text, options[i].help));
	ck_assert_ptr_nonnull(strstr(text, "  --[no-]insecure\n"));
	ck_assert_ptr_nonnull(strstr(text, "  --beat TIME\n"));
	ck_assert_ptr_nonnull(strstr(text, "spool on disk (default 64MiB)\n"));
	ck_assert_ptr_nonnull(strstr(text,
		"time between reports (default 1s) (SIGHUP reloads it)\n"));
	ck_assert_ptr_nonnull(strstr(text, "name of this host\n"));
	ck_assert_ptr_nonnull(strstr(text, "--check-config"));
	ck_assert_ptr_nonnull(strstr(PRINTED("-h", "--nonsense"), "Usage:"));
}

LS_TEST(conf, version_tells_program_and_libraries)
{
	const char *text = PRINTED("--version");

	ck_assert_int_eq(action, LS_CONF_EXIT);
	ck_assert_str_eq(text,
		"lockstep-test " PACKAGE_VERSION "\nbuilt with libnone 1.0\n");
	ck_assert_ptr_nonnull(strstr(PRINTED("-V"), "lockstep-test "));
}

LS_TEST(conf, check_config_says_nothing_when_good)
{
	ck_assert_str_eq(PRINTED("--check-config"), "");
	ck_assert_int_eq(action, LS_CONF_CHECK);
	ck_assert_int_eq(LOAD("--check-config", "--rank=101"), -LS_ERANGE);
	ck_assert_ptr_nonnull(
		strstr(PRINTED("--check-config", "--print-config"), "rank = 0"));
	/* what it printed may still be wrong */
	ck_assert_int_eq(action, LS_CONF_CHECK);
}

LS_TEST(conf, auto_is_a_quantity_where_the_option_says_so)
{
	ck_assert_ptr_nonnull(strstr(PRINTED("--print-config"), "keep = auto\n"));
	ck_assert_uint_eq(got.keep_bytes, LS_CONF_AUTO_VALUE);
	ck_assert_ptr_nonnull(
		strstr(PRINTED("--print-config", "--keep", "0"), "keep = 0"));
	ck_assert_uint_eq(got.keep_bytes, 0);
	ck_assert_int_eq(LOAD("--spool-size", "auto"), -LS_EPARSE);
}

LS_TEST(conf, print_config_hides_secrets)
{
	const char *text = PRINTED("--print-config", "--token", "hunter2",
		"--beat=1500ms", "--any=-3", "--spool-size=3MiB", "--insecure");

	ck_assert_int_eq(action, LS_CONF_EXIT);
	ck_assert_str_eq(text,
		"[agent]\n"
		"host_name = \n"
		"# token is set (hidden)\n"
		"output = text\n"
		"insecure = true\n"
		"rank = 0\n"
		"beat = 1500ms\n"
		"spool_size = 3MiB\n"
		"keep = auto\n"
		"any = -3\n");
	ck_assert_int_eq(parse(text), 0);
	ck_assert_uint_eq(got.beat_ns, 1500000000);
	ck_assert_int_eq(got.any, -3);
	ck_assert_ptr_nonnull(
		strstr(PRINTED("--print-config"), "# token is not set\n"));
}
