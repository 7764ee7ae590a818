/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata - asks the metadata server of the cloud who this machine is, without ever
 * blocking.
 *
 * One question after the other: http://ADDRESS/computeMetadata/v1/instance/... A server
 * that does not answer "Metadata-Flavor: Google" is not believed. All is asked again
 * every LS_METADATA_ROUND_NS; after a failure sooner, at doubling intervals.
 *
 * The address is a number (IPv4), never a name: looking a name up could stall the loop,
 * and the server has the same link-local number on every machine of Google's cloud.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns; bytes.
 * Errors:  -LS_ERANGE no numeric address, -ENOMEM; failures of the network are told and
 *          retried.
 * Limits:  LS_METADATA_BODY_MAX_BYTES an answer, one deadline a question.
 * Source:  cloud.google.com, "About VM metadata" (Metadata-Flavor, 169.254.169.254);
 *          GCE_METADATA_IP is honoured as by jax
 *          (jax/_src/clusters/cloud_tpu_cluster.py).
 */
#ifndef LS_AGENT_METADATA_H
#define LS_AGENT_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/collect/doctor.h"
#include "proto/base/err.h"

#define LS_METADATA_ADDRESS "169.254.169.254"

struct ls_loop;
struct ls_metadata;

enum ls_metadata_item {
#define LS_METADATA_ITEM(id, path) LS_METADATA_##id,
#include "agent/identity/metadata.def"
#undef LS_METADATA_ITEM
	LS_METADATA_ITEM_COUNT
};

struct ls_metadata_options {
	const char *address; /* "169.254.169.254", "127.0.0.1:8080" */
	uint64_t deadline_ns; /* of a question */
	uint64_t retry_ns; /* after a first failure */
	void *arg;
	/* An answer; text NULL: the server has no such item. */
	void (*answer)(void *arg, enum ls_metadata_item item, const char *text,
		size_t len);
	/* A round is over: all was asked, or the server failed. */
	void (*done)(void *arg);
};

/* Makes it and asks, as soon as the loop runs. */
int ls_metadata_new(struct ls_loop *loop, const struct ls_metadata_options *options,
	struct ls_metadata **ret_metadata) LS_MUSTCHECK;

/* Gives up what is under way. Accepts NULL. */
void ls_metadata_free(struct ls_metadata *m);

/* True after the first round, however it ended. */
bool ls_metadata_was_asked(const struct ls_metadata *m);

/* Whether an address is a number, with or without a port. */
bool ls_metadata_address_is_valid(const char *address);

/* Says whether it answers. m NULL: it is not asked, for the reason given. */
void ls_metadata_tell(const struct ls_metadata *m, const char *why_not,
	struct ls_doctor *d);

#endif
