#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# export_replay.sh: a replay of the export gives the same findings with the same ids.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

export LOCKSTEP_PACK_INTERVAL=1s # so that most of what is exported is packed
fresh 4
workload_start --device 10 --batch 32 --ranks 4 --steps 900 --slow 1:cpu_hog:4@300
workload_wait
result "$ret_status" "the job ends well"
check "every record is exported" records_wait once 4 900
check "the journal is packed" until_true metric_over 0 packed_units_total
agree_wait
lockstep replay "$work/export.jsonl" -o json 2>/dev/null | cmp -s - "$work/replay.json"
result $? "two replays give the same bytes"
tap_end
