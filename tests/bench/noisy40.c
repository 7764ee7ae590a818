/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/noisy40.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "proto/limits.h"

/* of the file, and of what is made */
static const uint64_t noisy40_start_ns = 1700000000000000000ull;

double *
noisy40_at(const struct noisy40 *d, size_t host, size_t column)
{
	return d->value + (host * NOISY40_COLUMNS + column) * NOISY40_TICKS;
}

/* --- made ones ------------------------------------------------------------ */

static double
noisy40_uniform(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

double
noisy40_normal(uint64_t *seed)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += noisy40_uniform(seed);
	return sum - 6;
}

/* Gauges of two decimals with noise, walks, and counters of bytes: a third of each. */
static void
noisy40_make(struct noisy40 *d)
{
	uint64_t seed = 88172645463325252u;

	for (size_t c = 0; c < NOISY40_COLUMNS; c++) {
		(void)snprintf(d->name[c], NOISY40_NAME, "made.series_%zu", c);
		d->chip[c] = -1;
	}
	for (size_t h = 0; h < NOISY40_HOSTS; h++)
		for (size_t c = 0; c < NOISY40_COLUMNS; c++) {
			double *v = noisy40_at(d, h, c), at = 1e9 * (double)(c + 1);

			for (size_t i = 0; i < NOISY40_TICKS; i++) {
				uint64_t jitter =
					(uint64_t)(4 * noisy40_uniform(&seed));

				d->t_ns[h * NOISY40_TICKS + i] = noisy40_start_ns +
					(i * 1000 + jitter) * 1000000;
				at += c % 3 == 0
					? 4e7 * (1 + 0.05 * noisy40_normal(&seed))
					: floor(2 * noisy40_normal(&seed)) * 512;
				v[i] = c % 3 == 2
					? round(5000 + 80 * noisy40_normal(&seed)) / 100
					: floor(at);
			}
		}
}

/* --- the file ------------------------------------------------------------- */

/* "host,t_ms,chip0.duty_percent,...,step_seconds,..." */
static bool
noisy40_head(struct noisy40 *d, char *line)
{
	char *rest = line, *word;
	size_t c = 0;

	line[strcspn(line, "\r\n")] = '\0';
	for (size_t i = 0; i < 2 && rest != NULL; i++)
		(void)strsep(&rest, ","); /* host, t_ms */
	while ((word = strsep(&rest, ",")) != NULL) {
		if (c == NOISY40_COLUMNS || strlen(word) >= NOISY40_NAME)
			return false;
		d->chip[c] = -1;
		if (strncmp(word, "chip", 4) == 0 && word[4] >= '0' && word[4] <= '9') {
			d->chip[c] = (int)strtol(word + 4, &word, 10);
			(void)snprintf(d->name[c], NOISY40_NAME, "chip%.40s", word);
		} else {
			(void)snprintf(d->name[c], NOISY40_NAME, "%s", word);
		}
		c++;
	}
	return c == NOISY40_COLUMNS;
}

/* One line; false when it is not what was promised. */
static bool
noisy40_line(struct noisy40 *d, const char *line, size_t number)
{
	size_t h = number / NOISY40_TICKS, i = number % NOISY40_TICKS, c;
	char *end;

	if (h >= NOISY40_HOSTS || strtoul(line, &end, 10) != h || *end != ',')
		return false;
	d->t_ns[number] = strtoull(end + 1, &end, 10) * 1000000;
	for (c = 0; c < NOISY40_COLUMNS && *end == ','; c++)
		noisy40_at(d, h, c)[i] = strtod(end + 1, &end);
	return c == NOISY40_COLUMNS;
}

static bool
noisy40_read(struct noisy40 *d, const char *path)
{
	gzFile f = gzopen(path, "rb");
	char line[4096];
	size_t n = 0;
	bool good;

	if (f == NULL)
		return false;
	good = gzgets(f, line, sizeof(line)) != NULL && noisy40_head(d, line);
	while (good && gzgets(f, line, sizeof(line)) != NULL)
		good = noisy40_line(d, line, n++);
	(void)gzclose(f); /* only read from */
	return good && n == (size_t)NOISY40_HOSTS * NOISY40_TICKS;
}

int
noisy40_open(struct noisy40 *ret_data)
{
	const size_t cells = (size_t)NOISY40_HOSTS * NOISY40_COLUMNS * NOISY40_TICKS;
	const char *shared = getenv("LOCKSTEP_SHARED");
	struct noisy40 d = { .t_ns = calloc((size_t)NOISY40_HOSTS * NOISY40_TICKS,
				     sizeof(*d.t_ns)),
		.value = calloc(cells, sizeof(*d.value)),
		.present = malloc(cells * sizeof(*d.present)) };
	char path[LS_PATH_MAX_BYTES];

	if (d.t_ns == NULL || d.value == NULL || d.present == NULL) {
		noisy40_close(&d);
		return -ENOMEM;
	}
	memset(d.present, true, cells * sizeof(*d.present));
	(void)snprintf(path, sizeof(path), "%s/data/series/noisy40.csv.gz",
		shared != NULL ? shared : "../shared");
	d.recorded = noisy40_read(&d, path);
	if (!d.recorded)
		noisy40_make(&d);
	*ret_data = d;
	return 0;
}

void
noisy40_close(struct noisy40 *d)
{
	free(d->t_ns);
	free(d->value);
	free(d->present);
	*d = (struct noisy40){ 0 };
}
