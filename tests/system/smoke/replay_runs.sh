#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# replay_runs.sh: the recorded real runs, held against their labels. They lie beside the checkout, in
# ../shared or in $LOCKSTEP_SHARED; where they are not, this says so.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
shared=${LOCKSTEP_SHARED:-$top/../shared}
runs=$shared/data/runs
score=$shared/tools/score_runs.py
if [ ! -f "$runs/labels.jsonl" ] || [ ! -f "$score" ]; then
	skip_all "no recorded runs in $shared (set LOCKSTEP_SHARED)"
fi

work_begin
python3 "$score" "$build/lockstep" "$runs" >"$work/score" 2>&1
sed 's/^/# /' "$work/score"
for run in rank_hog4 moving4 imbalance4 clean4 clean8 ckpt4; do
	grep -q "^$run  *right" "$work/score"
	result $? "$run is judged right"
done
tap_end
