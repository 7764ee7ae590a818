#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# backup.sh: --backup of a state directory in use, and a collector that starts on the copy. Findings and records are the
# same, agents continue, and records that were acknowledged after the copy are a gap.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=900

# ids: of all findings, one a line, sorted.
ids() {
	lockstep findings --status all -o json |
		python3 -c 'import json, sys; print("".join(sorted(f["id"] + "\n" for f in json.load(sys.stdin)["items"])), end="")'
}

fresh 4
workload_start --device 10 --batch 32 --ranks 4 --steps "$steps" --slow 2:slow_input:8@50
check "step 300 is reached" step_wait 300
ids >"$work/before"
check "a directory in use is copied" \
	"$build/lockstep-collector" --state-dir "$work/state/collector" --backup "$work/copy"
lockstep export --job "$job" 2>/dev/null | facts count >"$work/records"
note "$(wc -l <"$work/before") findings, $(cat "$work/records") records when it was made"
check "the copy is sound" "$build/lockstep-collector" --state-dir "$work/copy" --check-db
check "step 500 is reached" step_wait 500
program_end "$collector_pid" TERM
result "$ret_status" "the collector ends well"
mv "$work/state/collector" "$work/gone"
mv "$work/copy" "$work/state/collector"
collector_start
ids >"$work/after"
missing=$(comm -23 "$work/before" "$work/after")
[ -z "$missing" ]
result $? "the copy has the findings of its time${missing:+, but not $missing}"
workload_wait
result "$ret_status" "the job ends well"
check "each record is there once, or told to be lost" records_wait lost 4 "$steps"
[ "$(facts gaps 0 <"$work/export.jsonl")" -gt 0 ]
result $? "what was acknowledged after the copy was made is a gap"
check "the agents go on: the last step is there" python3 -c '
import json, sys
last = {}
for line in open(sys.argv[1]):
    r = json.loads(line)
    if "t_begin" in r:
        last[r["rank"]] = max(last.get(r["rank"], 0), r["step"])
print(last)
sys.exit(set(last.values()) != {int(sys.argv[2]) - 1})' "$work/export.jsonl" "$steps"
"$build/lockstep-collector" --state-dir "$work/gone" --backup "$work/gone" >"$work/out" 2>&1
[ $? -eq 1 ] && [ -s "$work/out" ]
result $? "a directory that is not empty is refused"
tap_end
