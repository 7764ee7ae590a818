#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill_collector.sh [KILLS]: kill -9 of the collector in mid-run; no record is missing afterwards, none is
# stored twice, and what was stored before a kill is still there.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
kills=${1:-2}
steps=$((kills * 250 + 300))
RANDOM=1

fresh 4
workload_start --device 10 --batch 32 --ranks 4 --steps "$steps" --slow none
for ((i = 1; i <= kills; i++)); do
	check "step $((i * 250)) is reached" step_wait $((i * 250 - 1))
	lockstep export --job "$job" 2>/dev/null | facts count >"$work/before"
	program_end "$collector_pid" KILL
	sleep 0.$((RANDOM % 10))
	collector_start
	lockstep export --job "$job" >"$work/export.jsonl"
	note "$(cat "$work/before") records before kill $i, $(facts count <"$work/export.jsonl") after"
	[ "$(facts count <"$work/export.jsonl")" -ge "$(cat "$work/before")" ]
	result $? "kill $i takes nothing that was stored"
done
workload_wait
result "$ret_status" "the job ends well"
check "each record is stored exactly once" records_wait once 4 "$steps"
tap_end
