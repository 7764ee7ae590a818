/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/log.h"

#include "proto/base/clock.h"
#include "proto/base/err.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int log_level = LS_LOG_INFO;

void
ls_log_set_level(enum ls_log_level level)
{
	atomic_store(&log_level, (int)level);
}

int
ls_log_level_parse(const char *name, enum ls_log_level *ret_level)
{
	static const struct {
		const char *name;
		enum ls_log_level level;
	} levels[] = {
		{ "err", LS_LOG_ERR },
		{ "warn", LS_LOG_WARN },
		{ "info", LS_LOG_INFO },
		{ "debug", LS_LOG_DEBUG },
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(levels[i].name, name) == 0) {
			*ret_level = levels[i].level;
			return 0;
		}
	}
	return -LS_EUNKNOWN;
}

/*
 * True if this call may print; *ret_suppressed is then what was held back since the
 * last line. Two threads may both open a window: a few lines more or less in a burst do
 * not matter, and no suppressed line goes uncounted.
 */
static bool
log_allow(struct ls_log_site *site, uint64_t now, uint32_t *ret_suppressed)
{
	uint64_t start = atomic_load(&site->window_start_ns);

	if (now - start >= LS_LOG_WINDOW_NS &&
		atomic_compare_exchange_strong(&site->window_start_ns, &start, now))
		atomic_store(&site->count, 0);
	if (atomic_fetch_add(&site->count, 1) >= LS_LOG_BURST) {
		atomic_fetch_add(&site->suppressed, 1);
		return false;
	}
	*ret_suppressed = atomic_exchange(&site->suppressed, 0);
	return true;
}

void
ls_log_at(struct ls_log_site *site, enum ls_log_level level, const char *module,
	const char *fmt, ...)
{
	char text[LS_LOG_LINE_MAX_BYTES];
	char line[LS_LOG_LINE_MAX_BYTES];
	char tail[64] = "";
	int saved_errno = errno;
	uint32_t suppressed;
	size_t len, tail_len;
	ssize_t written;
	va_list ap;

	if ((int)level > atomic_load(&log_level))
		return;
	if (!log_allow(site, ls_clock_mono_ns(), &suppressed))
		return;
	if (suppressed > 0)
		(void)snprintf(tail, sizeof(tail), " [%u more like this before]",
			suppressed);
	tail_len = strlen(tail);

	errno = saved_errno; /* for %m */
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);

	len = (size_t)snprintf(line, sizeof(line), "<%d>%.32s: ", (int)level, module);
	len += ls_text_escape(line + len, sizeof(line) - len - tail_len - 1, text,
		strlen(text));
	memcpy(line + len, tail, tail_len);
	len += tail_len;
	line[len++] = '\n';
	written = write(STDERR_FILENO, line, len);
	(void)written; /* nobody is left to tell */
	errno = saved_errno;
}
