/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file: refused with a message, or every field within its
 * limits. */
#include "config.h"

#include "proto/base/conf.h"

#include <stdlib.h>
#include <string.h>

struct settings {
	char name[LS_CONF_VALUE_MAX_BYTES];
	char level[LS_CONF_VALUE_MAX_BYTES];
	bool insecure;
	int64_t rank;
	uint64_t beat_ns;
	uint64_t spool_bytes;
};

#define AT(field) offsetof(struct settings, field)

static const struct ls_conf_option options[] = {
	{ "name", LS_CONF_STRING, AT(name), NULL, 0, 0, "NAME", "", 0 },
	{ "level", LS_CONF_ENUM, AT(level), "info", 0, 0, "err|info", "", 0 },
	{ "insecure", LS_CONF_BOOL, AT(insecure), "false", 0, 0, NULL, "", 0 },
	{ "rank", LS_CONF_INT, AT(rank), "0", -5, 5, "N", "", 0 },
	{ "beat", LS_CONF_DURATION, AT(beat_ns), "1s", 1, 60000000000, "TIME", "", 0 },
	{ "spool-size", LS_CONF_SIZE, AT(spool_bytes), "1MiB", 1, INT64_MAX, "SIZE", "",
		0 },
};

static const struct ls_conf_program program = {
	.name = "fuzz",
	.section = "agent",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings s = { .level = "info", .beat_ns = 1, .spool_bytes = 1 };
	char err[200] = "";
	int rc = ls_conf_parse_file(&program, "fuzz", (const char *)data, size, &s, err,
		sizeof(err));

	if (rc == 0) {
		LS_ASSERT(memchr(s.name, '\0', sizeof(s.name)) != NULL);
		LS_ASSERT(strcmp(s.level, "err") == 0 || strcmp(s.level, "info") == 0);
		LS_ASSERT(s.rank >= -5 && s.rank <= 5);
		LS_ASSERT(s.beat_ns >= 1 && s.beat_ns <= 60000000000);
		LS_ASSERT(s.spool_bytes >= 1 && s.spool_bytes <= INT64_MAX);
	} else {
		LS_ASSERT(err[0] != '\0' && memchr(err, '\0', sizeof(err)) != NULL);
		for (const char *c = err; *c; c++)
			LS_ASSERT((unsigned char)*c >= ' ');
	}
	return 0;
}
