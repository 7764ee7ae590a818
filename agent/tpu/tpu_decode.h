/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu_decode - answers of libtpu's RuntimeMetricService: bytes to plain structs,
 * checked.
 *
 * What cannot be (a gauge that is no number, buckets that do not fit their options, an
 * ordinal that is none) is left out and counted, never guessed: the rest of the answer
 * stands.
 *
 * Owner:   pure functions; strings are copied into the caller's structs.
 * Units:   as libtpu sends them (proto/metrics.def has base units; tpu_metrics.def the
 *          factors).
 * Errors:  -LS_EPARSE, -LS_ELIMIT, -ENOMEM: nothing was given out then.
 * Limits:  LS_TPU_POINTS_MAX, LS_TPU_LABELS_MAX, LS_TPU_METRICS_MAX, LS_TPU_CORES_MAX;
 *          memory as in proto/wire/wire_decode.h.
 * Source:  proto/tpu_runtime.proto, rewritten from the fields of
 *          tpu.monitoring.runtime.
 */
#ifndef LS_AGENT_TPU_DECODE_H
#define LS_AGENT_TPU_DECODE_H

#include "agent/tpu/histogram.h"

enum ls_tpu_shape { LS_TPU_VALUE, LS_TPU_HISTOGRAM };

/* Keys are lower case, with '_' for all that is no letter or digit; values are escaped.
 */
struct ls_tpu_label {
	char key[LS_TPU_LABEL_KEY_MAX_BYTES];
	char value[LS_TPU_LABEL_VALUE_MAX_BYTES];
	bool is_number;
};

/* One value of a metric. A device's id or ordinal, in whatever spelling, has the key
 * "device". */
struct ls_tpu_point {
	enum ls_tpu_shape shape;
	bool is_counter; /* of VALUE: it only grows */
	size_t label_count;
	struct ls_tpu_label label[LS_TPU_LABELS_MAX]; /* sorted by key, each key once */
	double value; /* of VALUE: finite */
	struct ls_histogram histogram; /* of HISTOGRAM: checked */
};

/* What became of an answer. */
struct ls_tpu_answer {
	size_t points;
	size_t skipped; /* left out */
	const char *why; /* of the last one that was; NULL: none */
};

/* The sequencer that stands for a core, and what is queued on it. */
struct ls_tpu_core {
	uint16_t source; /* of the port that reported it, 0 by the decoder */
	int32_t core_id;
	int32_t chip_id; /* -1: not told */
	int32_t type; /* 1 TensorCore, 2 and 3 SparseCore, 0: not told */
	bool has_launch;
	int32_t launch_id;
	bool has_sequencer; /* the TensorCore's, else the first one told */
	int64_t run_id, pc, tracemark;
	uint64_t program; /* hash of the fingerprint; 0: none */
	uint32_t queued;
	uint64_t motion; /* hash of all that moves: equal means that nothing did */
	char error[LS_GRPC_TEXT_MAX_BYTES]; /* escaped; "" if none */
	char where[LS_TPU_WHERE_MAX_BYTES]; /* HLO location of the sequencer, escaped */
};

/* A field that proto/tpu_runtime.proto does not have. */
struct ls_tpu_unknown {
	const char *message; /* its name there */
	uint32_t number;
	size_t count, bytes; /* in one answer */
};

struct ls_tpu_status {
	char host[LS_HOST_NAME_MAX_BYTES]; /* escaped */
	size_t count;
	struct ls_tpu_core core[LS_TPU_CORES_MAX]; /* by core id, each once */
	size_t skipped;
	size_t unknown_count; /* those beyond the maximum are left out */
	struct ls_tpu_unknown unknown[LS_TPU_UNKNOWN_FIELDS_MAX];
};

/* Calls each(arg, point) for each value of a MetricResponse. */
int ls_tpu_decode_metric(const uint8_t *buf, size_t len,
	void (*each)(void *arg, const struct ls_tpu_point *p), void *arg,
	struct ls_tpu_answer *ret_answer) LS_MUSTCHECK;

/* Calls each(arg, name) for each name of a ListSupportedMetricsResponse; names are
 * ASCII without blanks. */
int ls_tpu_decode_list(const uint8_t *buf, size_t len,
	void (*each)(void *arg, const char *name), void *arg,
	struct ls_tpu_answer *ret_answer) LS_MUSTCHECK;

/* Fills in a GetTpuRuntimeStatusResponse. */
int ls_tpu_decode_status(const uint8_t *buf, size_t len,
	struct ls_tpu_status *ret_status) LS_MUSTCHECK;

/* Fills in the StallSummary of a file. The host stays empty. */
int ls_tpu_decode_stall(const uint8_t *buf, size_t len,
	struct ls_tpu_status *ret_status) LS_MUSTCHECK;

/* Writes a MetricRequest, or an empty request (name NULL); -LS_ELIMIT if it does not
 * fit. */
int ls_tpu_encode_request(const char *name, bool skip_aggregation, uint8_t *buf,
	size_t size, size_t *ret_len) LS_MUSTCHECK;

#endif
