/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the series of noisy40 to a server that takes Prometheus's remote write (version
 * 1: a WriteRequest in protobuf, compressed as a snappy block, in an HTTP POST), each
 * request after the answer to the one before.
 *
 *   feed_remote PORT PATH CONNECTIONS SERIES POINTS FROM TO START_MS
 *
 * CONNECTIONS connections with SERIES series each (a multiple of 40); of each series
 * the ticks FROM to TO, POINTS of them a request; tick 0 is at START_MS, Unix time in
 * ms. Prints "name value unit", and for each request `report START END`: when it was
 * sent and answered, in ns of the wall clock. Ends with 1 if any request was refused.
 *
 * Source: the remote-write specification 1.0 of Prometheus; the snappy format
 *         description (block format).
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "tests/bench/noisy40.h"

enum { CONNECTIONS_MAX = 64, SERIES_MAX = 100000, LABELS_MAX = 256, POINT_MAX = 32 };
enum {
	SNAPPY_BLOCK = 65536,
	SNAPPY_HASH_BITS = 14,
	SNAPPY_MIN = 4,
	SNAPPY_LONGEST = 64
};
enum { HEAD_MAX = 512, ANSWER_MAX = 4096 };

struct feed {
	struct noisy40 data;
	const char *path;
	in_port_t port;
	size_t connections, series, points, from, to;
	int64_t start_ms;
};

struct feed_connection {
	const struct feed *feed;
	pthread_t thread;
	size_t number;
	int fd;
	uint8_t *raw, *packed; /* a request before and after compression */
	uint64_t samples, raw_bytes, packed_bytes;
	size_t times;
	uint64_t (*time)[2];
	const char *why;
	char answer[ANSWER_MAX];
};

static bool
feed_fail(struct feed_connection *c, const char *why)
{
	c->why = why;
	return false;
}

/* --- snappy --------------------------------------------------------------- */

static uint8_t *
snappy_varint(uint8_t *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

static uint8_t *
snappy_literal(uint8_t *to, const uint8_t *from, size_t len)
{
	if (len == 0)
		return to;
	if (len <= 60) {
		*to++ = (uint8_t)((len - 1) << 2);
	} else if (len <= 256) {
		*to++ = 60 << 2;
		*to++ = (uint8_t)(len - 1);
	} else {
		*to++ = 61 << 2;
		*to++ = (uint8_t)(len - 1);
		*to++ = (uint8_t)((len - 1) >> 8);
	}
	memcpy(to, from, len);
	return to + len;
}

/* len bytes from `back` bytes before: pieces of at most 64, the last not shorter than
 * 4. */
static uint8_t *
snappy_copy(uint8_t *to, size_t back, size_t len)
{
	while (len > 0) {
		size_t n = len <= SNAPPY_LONGEST ? len
			: len < SNAPPY_LONGEST + SNAPPY_MIN
			? SNAPPY_LONGEST - SNAPPY_MIN
			: SNAPPY_LONGEST;

		if (n < 12 && back < 2048) {
			*to++ = (uint8_t)(1 | (n - 4) << 2 | back >> 8 << 5);
			*to++ = (uint8_t)back;
		} else {
			*to++ = (uint8_t)(2 | (n - 1) << 2);
			*to++ = (uint8_t)back;
			*to++ = (uint8_t)(back >> 8);
		}
		len -= n;
	}
	return to;
}

static uint32_t
snappy_word(const uint8_t *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/* At most 64 KiB; the longer nothing repeats, the larger the steps of the search. */
static uint8_t *
snappy_block(uint8_t *to, const uint8_t *from, size_t len)
{
	uint16_t seen[1 << SNAPPY_HASH_BITS] = { 0 };
	size_t at = 1, done = 0, misses = 0;

	while (at + SNAPPY_MIN <= len) {
		uint32_t w = snappy_word(from + at),
			 hash = w * 0x9e3779b1u >> (32 - SNAPPY_HASH_BITS);
		size_t before = seen[hash], n = SNAPPY_MIN;

		seen[hash] = (uint16_t)at;
		if (snappy_word(from + before) != w || before >= at) {
			at += 1 + misses++ / 32;
			continue;
		}
		while (at + n < len && from[before + n] == from[at + n])
			n++;
		to = snappy_literal(to, from + done, at - done);
		to = snappy_copy(to, at - before, n);
		at = done = at + n;
		misses = 0;
	}
	return snappy_literal(to, from + done, len - done);
}

/* to has room for len + len / 6 + 32: what does not compress grows by a byte in 60 at
 * most. */
static size_t
snappy_pack(uint8_t *to, const uint8_t *from, size_t len)
{
	uint8_t *p = snappy_varint(to, len);

	for (size_t at = 0; at < len; at += SNAPPY_BLOCK)
		p = snappy_block(p, from + at,
			len - at < SNAPPY_BLOCK ? len - at : SNAPPY_BLOCK);
	return (size_t)(p - to);
}

/* --- a request ------------------------------------------------------------ */

static uint8_t *
feed_label(uint8_t *to, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);

	*to++ = 1 << 3 | 2;
	to = snappy_varint(to, n + v + 4); /* all of them are shorter than 128 */
	*to++ = 1 << 3 | 2;
	to = snappy_varint(to, n);
	memcpy(to, name, n);
	to += n;
	*to++ = 2 << 3 | 2;
	to = snappy_varint(to, v);
	memcpy(to, value, v);
	return to + v;
}

/* Series s of the connection: its labels, sorted by name. */
static size_t
feed_labels(const struct feed_connection *c, size_t s, uint8_t *to)
{
	const struct noisy40 *d = &c->feed->data;
	size_t column = s % NOISY40_COLUMNS, i;
	char name[NOISY40_NAME], text[32];
	uint8_t *p = to;

	(void)snprintf(name, sizeof(name), "%s", d->name[column]);
	for (i = 0; name[i] != '\0'; i++)
		name[i] = name[i] == '.' ? '_' : name[i];
	p = feed_label(p, "__name__", name);
	if (d->chip[column] >= 0) {
		(void)snprintf(text, sizeof(text), "%d", d->chip[column]);
		p = feed_label(p, "chip", text);
	}
	(void)snprintf(text, sizeof(text), "host-%04zu",
		(c->number * c->feed->series + s) / NOISY40_COLUMNS);
	p = feed_label(p, "host", text);
	return (size_t)(feed_label(p, "job", "train") - to);
}

static uint8_t *
feed_point(uint8_t *to, double value, int64_t t_ms)
{
	uint8_t *len = to + 1;

	*to = 2 << 3 | 2;
	to += 2;
	*to++ = 1 << 3 | 1;
	memcpy(to, &value, sizeof(value)); /* little endian, as protobuf wants it */
	to += sizeof(value);
	*to++ = 2 << 3;
	to = snappy_varint(to, (uint64_t)t_ms);
	*len = (uint8_t)(to - len - 1);
	return to;
}

static uint8_t *
feed_series(struct feed_connection *c, size_t s, size_t tick, size_t points,
	uint8_t *to)
{
	const struct feed *f = c->feed;
	const struct noisy40 *d = &f->data;
	size_t host = (c->number * f->series + s) / NOISY40_COLUMNS % NOISY40_HOSTS, i;
	const double *value = noisy40_at(d, host, s % NOISY40_COLUMNS) + tick;
	const uint64_t *t = d->t_ns + host * NOISY40_TICKS + tick;
	uint8_t *begin = to + 5, *p = begin; /* its length goes before it */
	uint8_t len[8];
	size_t n;

	p += feed_labels(c, s, p);
	for (i = 0; i < points; i++)
		p = feed_point(p, value[i],
			f->start_ms + (int64_t)(t[i] - d->t_ns[0]) / 1000000);
	*to++ = 1 << 3 | 2;
	n = (size_t)(snappy_varint(len, (uint64_t)(p - begin)) - len);
	memcpy(to, len, n);
	memmove(to + n, begin, (size_t)(p - begin));
	return to + n + (p - begin);
}

static size_t
feed_pack(struct feed_connection *c, size_t tick, size_t points)
{
	uint8_t *p = c->raw;

	for (size_t s = 0; s < c->feed->series; s++)
		p = feed_series(c, s, tick, points, p);
	c->samples += c->feed->series * points;
	c->raw_bytes += (uint64_t)(p - c->raw);
	return snappy_pack(c->packed, c->raw, (size_t)(p - c->raw));
}

/* --- HTTP ----------------------------------------------------------------- */

static bool
feed_write(struct feed_connection *c, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return feed_fail(c, "cannot be sent");
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* An answer without a body, as both servers give when they took it; any other is a
 * failure. */
static bool
feed_answer(struct feed_connection *c)
{
	size_t len = 0;

	do {
		ssize_t n =
			recv(c->fd, c->answer + len, sizeof(c->answer) - 1 - len, 0);

		if (n <= 0)
			return feed_fail(c, "no answer");
		len += (size_t)n;
		c->answer[len] = '\0';
	} while (strstr(c->answer, "\r\n\r\n") == NULL && len < sizeof(c->answer) - 1);
	return strncmp(c->answer, "HTTP/1.1 204 ", 13) == 0 || feed_fail(c, c->answer);
}

static bool
feed_send(struct feed_connection *c, size_t len)
{
	char head[HEAD_MAX];
	int n = snprintf(head, sizeof(head),
		"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
		"Content-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n"
		"Content-Length: %zu\r\n\r\n",
		c->feed->path, len);

	if (n < 0 || (size_t)n >= sizeof(head))
		return feed_fail(c, "the path is too long");
	c->packed_bytes += len;
	c->time[c->times][0] = (uint64_t)ls_clock_wall_ns();
	if (!feed_write(c, head, (size_t)n) || !feed_write(c, c->packed, len) ||
		!feed_answer(c))
		return false;
	c->time[c->times++][1] = (uint64_t)ls_clock_wall_ns();
	return true;
}

static void *
feed_run(void *arg)
{
	struct feed_connection *c = arg;
	const struct feed *f = c->feed;
	bool good = true;

	for (size_t tick = f->from; tick < f->to && good; tick += f->points) {
		size_t left = f->to - tick;

		good = feed_send(c,
			feed_pack(c, tick, left < f->points ? left : f->points));
	}
	return NULL;
}

/* --- all of them ---------------------------------------------------------- */

static bool
feed_open(struct feed_connection *c, const struct feed *f, size_t number)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(f->port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	size_t raw = f->series * (LABELS_MAX + f->points * POINT_MAX);
	const int yes = 1;

	c->feed = f;
	c->number = number;
	c->raw = malloc(raw);
	c->packed = malloc(raw + raw / 6 + 32);
	c->time = calloc((f->to - f->from) / f->points + 1, sizeof(*c->time));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->raw == NULL || c->packed == NULL || c->time == NULL)
		return feed_fail(c, "out of memory");
	if (c->fd < 0 ||
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0 ||
		connect(c->fd, (const struct sockaddr *)&to, sizeof(to)) != 0)
		return feed_fail(c, "cannot connect");
	return true;
}

static void
feed_print(const struct feed *f, const struct feed_connection *c, uint64_t took_ns)
{
	uint64_t samples = 0, raw = 0, packed = 0, requests = 0;
	size_t i, k;

	for (i = 0; i < f->connections; i++) {
		samples += c[i].samples;
		raw += c[i].raw_bytes;
		packed += c[i].packed_bytes;
		requests += c[i].times;
		for (k = 0; k < c[i].times; k++)
			printf("report %llu %llu\n",
				(unsigned long long)c[i].time[k][0],
				(unsigned long long)c[i].time[k][1]);
	}
	printf("feed_recorded %d bool\n", f->data.recorded);
	printf("feed_samples %llu 1\n", (unsigned long long)samples);
	printf("feed_requests %llu 1\n", (unsigned long long)requests);
	printf("feed_raw_bytes_per_sample %.3f bytes\n", (double)raw / (double)samples);
	printf("feed_wire_bytes_per_sample %.3f bytes\n",
		(double)packed / (double)samples);
	printf("feed_wall_s %.3f s\n", (double)took_ns * 1e-9);
}

static bool
feed_all(const struct feed *f, struct feed_connection *c)
{
	size_t i, started = 0;
	bool good = true;

	for (i = 0; i < f->connections && good; i++)
		good = feed_open(&c[i], f, i);
	for (i = 0; i < f->connections && good; i++, started++)
		good = pthread_create(&c[i].thread, NULL, feed_run, &c[i]) == 0;
	for (i = 0; i < started; i++)
		(void)pthread_join(c[i].thread,
			NULL); /* it was made, and is joined once */
	for (i = 0; i < f->connections; i++) {
		if (c[i].why != NULL) {
			char safe[ANSWER_MAX];

			(void)ls_text_escape(safe, sizeof(safe), c[i].why,
				strlen(c[i].why));
			(void)fprintf(stderr, "connection %zu: %s\n", i, safe);
		}
		good = good && c[i].why == NULL;
	}
	return good;
}

static size_t
feed_number(const char *text, size_t max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *end == '\0' && n <= max ? n : 0;
}

int
main(int argc, char **argv)
{
	struct feed f = { 0 };
	struct feed_connection *c;
	uint64_t begin;
	bool good;
	size_t i;

	if (argc == 9) {
		f.port = (in_port_t)feed_number(argv[1], 65535);
		f.path = argv[2];
		f.connections = feed_number(argv[3], CONNECTIONS_MAX);
		f.series = feed_number(argv[4], SERIES_MAX);
		f.points = feed_number(argv[5], NOISY40_TICKS);
		f.from = feed_number(argv[6], NOISY40_TICKS);
		f.to = feed_number(argv[7], NOISY40_TICKS);
		f.start_ms = strtoll(argv[8], NULL, 10);
	}
	if (f.port == 0 || f.connections == 0 || f.series == 0 ||
		f.series % NOISY40_COLUMNS != 0 || f.points == 0 || f.from >= f.to ||
		f.start_ms <= 0) {
		(void)fprintf(stderr,
			"usage: feed_remote PORT PATH CONNECTIONS SERIES POINTS FROM TO "
			"START_MS\n");
		return 2;
	}
	c = calloc(f.connections, sizeof(*c));
	if (c == NULL || noisy40_open(&f.data) != 0)
		return EXIT_FAILURE;
	for (i = 0; i < f.connections; i++)
		c[i].fd = -1;
	begin = ls_clock_mono_ns();
	good = feed_all(&f, c);
	if (good)
		feed_print(&f, c, ls_clock_mono_ns() - begin);
	for (i = 0; i < f.connections; i++) {
		if (c[i].fd >= 0)
			(void)close(c[i].fd); /* nothing is on its way any more */
		free(c[i].raw);
		free(c[i].packed);
		free(c[i].time);
	}
	free(c);
	noisy40_close(&f.data);
	return good && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
