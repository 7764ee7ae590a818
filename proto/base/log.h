/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - one line per event on stderr, with a priority prefix `<N>` (sd-daemon(3)).
 *
 * Owner:   process-wide; callable from any thread (one write(2) per line).
 * Units:   none.
 * Errors:  never fails; a line that stderr refuses is lost.
 * Limits:  LS_LOG_LINE_MAX_BYTES a line; LS_LOG_BURST lines per call site in
 *          LS_LOG_WINDOW_NS, after which repeats are counted and the number suppressed
 *          is told.
 */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum ls_log_level {
	LS_LOG_ERR = 3,
	LS_LOG_WARN = 4,
	LS_LOG_INFO = 6,
	LS_LOG_DEBUG = 7
};

struct ls_log_site {
	_Atomic uint64_t window_start_ns;
	_Atomic uint32_t count;
	_Atomic uint32_t suppressed;
};

/* Sets the least urgent level that is printed. The only mutable global besides the
 * signal flag. */
void ls_log_set_level(enum ls_log_level level);

/* Level by name ("err" "warn" "info" "debug"); -LS_EUNKNOWN leaves *ret_level
 * untouched. */
int ls_log_level_parse(const char *name, enum ls_log_level *ret_level);

/* Use ls_log(). */
void ls_log_at(struct ls_log_site *site, enum ls_log_level level, const char *module,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Logs one line: err = an operator must act; warn = we go on, and the text ends with
 * what we do instead; info = life cycle; debug = the rest. Control bytes in the text
 * are escaped.
 */
#define ls_log(level, module, ...)                                        \
	do {                                                              \
		static struct ls_log_site ls_log_site_;                   \
		ls_log_at(&ls_log_site_, (level), (module), __VA_ARGS__); \
	} while (0)

#endif
