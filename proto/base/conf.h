/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - options of a program from one table: flag, file key, environment variable,
 * help.
 *
 * Order of precedence, least first: default, configuration file (INI, inih),
 * environment LOCKSTEP_<NAME>, command line. Names are written with dashes in flags
 * (--host-name), underscores in files (host_name) and in the environment
 * (LOCKSTEP_HOST_NAME). Unknown keys are errors that name the nearest valid one.
 * Durations take ns us ms s m h d (plain number: seconds), sizes take B KiB MiB GiB
 * (plain number: bytes).
 *
 * Owner:   the caller; no globals.
 * Units:   durations are stored in ns (uint64_t), sizes in bytes (uint64_t), integers
 *          in int64_t.
 * Errors:  -LS_EUNKNOWN, -LS_EPARSE, -LS_ERANGE, -errno; the message is in err_text.
 * Limits:  LS_CONF_VALUE_MAX_BYTES a value, LS_CONF_FILE_MAX_BYTES a file,
 *          LS_CONF_OPTIONS_MAX options; a line of a file as long as inih takes
 *          (Debian's: 197 bytes). Longer ones are errors.
 */
#ifndef LS_BASE_CONF_H
#define LS_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "proto/base/err.h"
#include "proto/limits.h"

enum ls_conf_type {
	LS_CONF_STRING, /* char[LS_CONF_VALUE_MAX_BYTES] */
	/* bool; as a flag: --name or --no-name; in a file: true/false/yes/no/1/0 */
	LS_CONF_BOOL,
	LS_CONF_INT, /* int64_t, min..max */
	LS_CONF_DURATION, /* uint64_t ns, min..max in ns */
	LS_CONF_SIZE, /* uint64_t bytes, min..max */
	/* char[LS_CONF_VALUE_MAX_BYTES]; unit holds the allowed words "a|b|c" */
	LS_CONF_ENUM
};

#define LS_CONF_SECRET 1u /* value is hidden by --print-config */
#define LS_CONF_RELOAD 2u /* may change at SIGHUP */
#define LS_CONF_AUTO 4u /* of a quantity: "auto" is LS_CONF_AUTO_VALUE */
#define LS_CONF_AUTO_VALUE UINT64_MAX
#define LS_CONF_ELSEWHERE 8u /* of another command: not shown, refused in argv */

/* One option. A program writes its table once as an X-macro (options.def) and builds
 * this from it. */
struct ls_conf_option {
	const char *name; /* with dashes */
	enum ls_conf_type type;
	size_t offset; /* in the caller's struct */
	const char *dflt; /* default, as text */
	int64_t min, max; /* both 0: any */
	/* metavar in --help: "URL", "DIR", "SECONDS", or the enum's words */
	const char *unit;
	const char *help;
	unsigned flags;
};

struct ls_conf_program {
	const char *name; /* "lockstep-agent" */
	/* section of the INI file: "agent" (keys before any section also count) */
	const char *section;
	const char *summary; /* one line for --help */
	const char *libraries; /* for --version; NULL: not printed */
	const char *usage; /* "lockstep-agent [OPTION]..." */
	/* read if it exists and --config is not given; may be NULL */
	const char *default_file;
	const struct ls_conf_option *options;
	size_t option_count;
	bool allow_arguments; /* words that are not options are left for the caller */
	/* the program as the first such word makes it ("": there is none); or NULL */
	const struct ls_conf_program *(*narrow)(void *arg, const char *word);
	void *narrow_arg;
};

enum ls_conf_action {
	LS_CONF_RUN, /* go on */
	/* --check-config: check what the table cannot, as a start would; exit 0 or 2 */
	LS_CONF_CHECK,
	LS_CONF_EXIT /* --help, --version, --print-config were served; exit 0 */
};

/*
 * Fills `into` (the caller's struct) from defaults, file, environment and argv.
 * Built-in flags: --help (-h) --version (-V) --config FILE --check-config
 * --print-config. Options are --name VALUE or --name=VALUE; -o VALUE is --output if the
 * program has that; -- ends them. The last of several counts. An empty environment
 * variable counts as not set. Arguments that are not options are left in
 * argv[1..*ret_argc-1]. On failure err_text holds one line that says what, where
 * (file:line, environment, command line) and the nearest valid name; the program exits
 * 2. What `into` holds then is not defined: to reload, load into a second struct.
 */
int ls_conf_load(const struct ls_conf_program *p, int argc, char **argv, void *into,
	enum ls_conf_action *ret_action, int *ret_argc, char *err_text,
	size_t err_size) LS_MUSTCHECK;

/*
 * Parses INI text alone (for --config, for the fuzz target and tests). `name` is used
 * in messages. Keys stand before any section or in the program's own; sections of the
 * other lockstep programs are passed over, so that one file may serve several; a key
 * given twice is an error.
 */
int ls_conf_parse_file(const struct ls_conf_program *p, const char *name,
	const char *text, size_t len, void *into, char *err_text,
	size_t err_size) LS_MUSTCHECK;

/* Writes --help of the program. */
void ls_conf_help(const struct ls_conf_program *p, FILE *out);

/* "1.5s", "200ms", "90" (seconds) to ns, at most INT64_MAX; -LS_EPARSE or -LS_ERANGE.
 */
int ls_conf_parse_duration(const char *text, uint64_t *ret_ns) LS_MUSTCHECK;

/* "64MiB", "1000" (bytes) to bytes, at most INT64_MAX; -LS_EPARSE or -LS_ERANGE. */
int ls_conf_parse_size(const char *text, uint64_t *ret_bytes) LS_MUSTCHECK;

/* RFC 3339, Unix seconds, or relative "-15m" (to now_us) to microseconds; -LS_EPARSE.
 */
int ls_conf_parse_time(const char *s, int64_t now_us, int64_t *ret_us) LS_MUSTCHECK;

/* Nearest of the words to `word` by edit distance, or NULL if none is near. */
const char *ls_conf_nearest(const char *word, const char *const *words, size_t count);

#endif
