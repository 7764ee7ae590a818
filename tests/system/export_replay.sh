#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# export_replay.sh: what was found live is found again, with the same id, by a replay of the export.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

fresh 4
workload_start --ranks 4 --steps 900 --slow 1:cpu_hog:2@300
workload_wait
result "$ret_status" "the job ends well"
check "every record is exported" records_wait once 4 900
lockstep findings --status all -o json >"$work/live.json"
lockstep replay "$work/export.jsonl" -o json >"$work/replay.json"
result $? "the export replays"
check "live and replay agree" facts same "$work/replay.json" <"$work/live.json"
lockstep replay "$work/export.jsonl" -o json 2>/dev/null | cmp -s - "$work/replay.json"
result $? "two replays give the same bytes"
tap_end
