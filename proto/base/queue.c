/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/queue.h"

#include "proto/base/clock.h"
#include "proto/base/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct ls_queue {
	/* guards all below but cb and cb_arg, which are set once */
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	void **items; /* ring */
	size_t capacity;
	size_t first;
	size_t count;
	size_t wanted; /* the consumer is woken when there are so many */
	bool closed;
	int wake_fd; /* eventfd for a consumer on a loop, or -1 */
	struct event *event;
	void (*cb)(void *arg);
	void *cb_arg;
};

static int
queue_init_sync(struct ls_queue *q)
{
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	if (rc != 0)
		return -rc;
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (rc == 0)
		rc = pthread_cond_init(&q->filled, &attr);
	(void)pthread_condattr_destroy(&attr); /* cannot fail on Linux */
	if (rc != 0)
		return -rc;
	rc = pthread_mutex_init(&q->mutex, NULL);
	if (rc != 0)
		(void)pthread_cond_destroy(&q->filled); /* nobody waits */
	return -rc;
}

struct ls_queue *
ls_queue_new(size_t capacity)
{
	struct ls_queue *q;

	LS_ASSERT(capacity > 0);
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->capacity = capacity;
	q->wanted = 1;
	q->wake_fd = -1;
	q->items = calloc(capacity, sizeof(*q->items));
	if (!q->items || queue_init_sync(q) != 0) {
		free(q->items);
		free(q);
		return NULL;
	}
	return q;
}

void
ls_queue_free(struct ls_queue *q, void (*free_item)(void *item))
{
	if (!q)
		return;
	for (size_t i = 0; free_item && i < q->count; i++)
		free_item(q->items[(q->first + i) % q->capacity]);
	if (q->event)
		event_free(q->event);
	if (q->wake_fd >= 0)
		(void)close(q->wake_fd); /* an eventfd holds nothing to lose */
	(void)pthread_cond_destroy(&q->filled); /* nobody waits any more */
	(void)pthread_mutex_destroy(&q->mutex);
	free(q->items);
	free(q);
}

/* Wakes the consumer, whichever way it waits. The mutex is held. */
static void
queue_wake(struct ls_queue *q)
{
	(void)pthread_cond_signal(&q->filled); /* cannot fail */
	if (q->wake_fd >= 0)
		(void)eventfd_write(q->wake_fd, 1); /* full: it is readable anyway */
}

int
ls_queue_push(struct ls_queue *q, void *item)
{
	int rc = 0;

	(void)pthread_mutex_lock(&q->mutex); /* fails only when misused */
	if (q->closed) {
		rc = -LS_ECLOSED;
	} else if (q->count == q->capacity) {
		rc = -LS_ELIMIT;
	} else {
		q->items[(q->first + q->count) % q->capacity] = item;
		if (++q->count == q->wanted)
			queue_wake(q);
	}
	(void)pthread_mutex_unlock(&q->mutex);
	return rc;
}

static size_t
queue_take_locked(struct ls_queue *q, void **items, size_t max)
{
	size_t n = q->count < max ? q->count : max;

	for (size_t i = 0; i < n; i++)
		items[i] = q->items[(q->first + i) % q->capacity];
	q->first = (q->first + n) % q->capacity;
	q->count -= n;
	return n;
}

size_t
ls_queue_take(struct ls_queue *q, void **items, size_t max)
{
	size_t n;

	(void)pthread_mutex_lock(&q->mutex);
	n = queue_take_locked(q, items, max);
	(void)pthread_mutex_unlock(&q->mutex);
	return n;
}

size_t
ls_queue_take_wait(struct ls_queue *q, void **items, size_t max, uint64_t timeout_ns)
{
	return ls_queue_take_many(q, items, max, 1, timeout_ns);
}

size_t
ls_queue_take_many(struct ls_queue *q, void **items, size_t max, size_t at_least,
	uint64_t timeout_ns)
{
	uint64_t now = ls_clock_mono_ns();
	/* A sum past the end of time would be a time long gone. */
	uint64_t due = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
	struct timespec ts = {
		.tv_sec = (time_t)(due / 1000000000),
		.tv_nsec = (long)(due % 1000000000),
	};
	size_t n;
	int rc = 0;

	LS_ASSERT(q->wake_fd < 0 && at_least > 0 && at_least <= q->capacity);
	(void)pthread_mutex_lock(&q->mutex);
	q->wanted = at_least;
	while (q->count < at_least && !q->closed && rc == 0)
		rc = pthread_cond_timedwait(&q->filled, &q->mutex, &ts);
	n = queue_take_locked(q, items, max);
	(void)pthread_mutex_unlock(&q->mutex);
	return n;
}

static void
queue_on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct ls_queue *q = arg;
	eventfd_t value;

	(void)what;
	(void)eventfd_read(fd, &value); /* empty: somebody else woke us, harmless */
	q->cb(q->cb_arg);
}

int
ls_queue_watch(struct ls_queue *q, struct ls_loop *loop, void (*cb)(void *arg),
	void *arg)
{
	struct event *ev;
	int fd;

	LS_ASSERT(q->wake_fd < 0);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	ev = event_new(ls_loop_base(loop), fd, EV_READ | EV_PERSIST, queue_on_wake, q);
	if (!ev || event_add(ev, NULL) != 0) {
		if (ev)
			event_free(ev);
		(void)close(fd); /* unused so far */
		return -ENOMEM;
	}
	q->cb = cb;
	q->cb_arg = arg;
	q->event = ev;
	(void)pthread_mutex_lock(&q->mutex);
	q->wake_fd = fd;
	if (q->count > 0 || q->closed)
		queue_wake(q);
	(void)pthread_mutex_unlock(&q->mutex);
	return 0;
}

void
ls_queue_close(struct ls_queue *q)
{
	(void)pthread_mutex_lock(&q->mutex);
	q->closed = true;
	queue_wake(q);
	(void)pthread_mutex_unlock(&q->mutex);
}

bool
ls_queue_is_done(struct ls_queue *q)
{
	bool done;

	(void)pthread_mutex_lock(&q->mutex);
	done = q->closed && q->count == 0;
	(void)pthread_mutex_unlock(&q->mutex);
	return done;
}

size_t
ls_queue_count(struct ls_queue *q)
{
	size_t n;

	(void)pthread_mutex_lock(&q->mutex);
	n = q->count;
	(void)pthread_mutex_unlock(&q->mutex);
	return n;
}

int
ls_queue_start_thread(pthread_t *ret_thread, const char *name, void *(*main)(void *),
	void *arg)
{
	sigset_t all, before;
	int rc;

	(void)sigfillset(&all); /* cannot fail */
	rc = pthread_sigmask(SIG_BLOCK, &all, &before);
	if (rc != 0)
		return -rc;
	rc = pthread_create(ret_thread, NULL, main, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* worked a moment ago */
	if (rc == 0)
		(void)pthread_setname_np(*ret_thread, name); /* else it has ours */
	return -rc;
}
