/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_meta - the YAML beside an operation trace: how many workers of which kind.
 *
 * A mapping of names to plain values; dp_size and pp_size must be there. Names that are
 * not known are passed over with whatever they hold. Aliases are refused: they can make
 * little text large.
 *
 * Owner:   the caller.
 * Units:   counts.
 * Errors:  -LS_EPARSE with line and text, -errno from the file, -ENOMEM.
 * Limits:  LS_WHATIF_META_MAX_BYTES, LS_WHATIF_STAGES_MAX, LS_WHATIF_WORKERS_MAX.
 * Source:  proto/FORMAT.md, "Operation trace".
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_META_H
#define LS_COLLECTOR_WHATIF_WHATIF_META_H

#include <stddef.h>
#include <stdint.h>
#include "collector/whatif/whatif_trace.h"
#include "proto/limits.h"

struct ls_whatif_meta {
	char name[LS_JOB_NAME_MAX_BYTES]; /* trial_name; "" if there is none */
	uint32_t dp_size, dsp_size, pp_size, tp_size, vpp_size;
	uint32_t world_size; /* 0: not given */
};

/* Parses len bytes of text. */
int ls_whatif_meta_parse(const char *text, size_t len, struct ls_whatif_meta *ret_meta,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;

/* The same of a file. */
int ls_whatif_meta_read(const char *path, struct ls_whatif_meta *ret_meta,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;

#endif
