/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chips_state - what the files of the chips share.
 *
 * Owner:   the chips module.
 * Units:   none.
 * Errors:  none.
 * Limits:  as in chips.h.
 */
#ifndef LS_AGENT_CHIPS_STATE_H
#define LS_AGENT_CHIPS_STATE_H

#include <dirent.h>
#include "agent/identity/chips.h"

/* Who holds a node, as found by the pass under way. */
struct ls_chip_holder {
	pid_t first; /* 0: nobody */
	char command[LS_COMMAND_MAX_BYTES]; /* of the first */
};

struct ls_chips {
	char proc_root[LS_PATH_MAX_BYTES], dev_root[LS_PATH_MAX_BYTES];
	char pci_dir[LS_PATH_MAX_BYTES];
	int find_rc; /* of the last search */
	size_t count, left_out;
	struct ls_chip chip[LS_CHIPS_MAX];
	DIR *processes, *fds; /* where the search for owners stands */
	pid_t pid;
	size_t links; /* of this process */
	struct ls_chip before[LS_CHIPS_MAX]; /* as they were at the last search */
	struct ls_chip_holder holder[LS_CHIPS_MAX][LS_CHIP_NODES_MAX];
	size_t seen, denied; /* processes of this pass */
	size_t passes, last_seen, last_denied;
};

#endif
