#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# budget.sh: an agent above its budget slows down, says so everywhere, and its steps still arrive.
# Alone: it measures.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
work_begin
collector_start
agent_start 0 --budget-cpu-ratio 0.00002 --budget-memory 1MiB
agent_start 1 --budget-cpu-ratio 0
workload_start --ranks 2 --steps 0

# agent_metric RANK NAME: a line of its /metrics.
agent_metric() {
	python3 - "$work/agent-h$1.port" "$2" <<'PYTHON'
import sys
import urllib.request
with open(sys.argv[1], encoding="ascii") as f:
    port = int(f.read().split("=")[1])
for line in urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=5).read().decode().splitlines():
    if line.startswith(sys.argv[2] + " "):
        print(line.split()[1])
PYTHON
}

slowed_by_8() { [ "$(agent_metric 0 lockstep_agent_slowed)" = 8 ]; }
check "far above its budget an agent slows down by 8" until_true slowed_by_8
[ "$(agent_metric 0 lockstep_agent_sample_interval_seconds)" = 8 ] && [ "$(agent_metric 0 lockstep_agent_beat_seconds)" = 5 ]
result $? "it reads every 8 s and reports every 5 s"
[ "$(agent_metric 0 lockstep_agent_lean)" = 1 ]
result $? "above its memory it gives up optional work"
grep -q 'budget: exceeded in cpu memory.*slowed by 2, optional sources stopped' "$work/agent-h0.log"
result $? "the log says so"
[ "$(grep -c 'budget: ' "$work/agent-h0.log")" -le 4 ]
result $? "once a change"
"$build/lockstep" doctor --agent "http://127.0.0.1:$(sed 's/.*=//' "$work/agent-h0.port")" >"$work/doctor"
grep -q '^WARN  budget .*slowed by 8' "$work/doctor"
result $? "the doctor says so"
[ "$(agent_metric 1 lockstep_agent_slowed)" = 1 ] && ! grep -q 'budget: exceeded' "$work/agent-h1.log"
result $? "without a budget nothing is slowed"
step=$(job_field step)
check "steps of the slowed host still arrive" step_wait $((step + 100))
tap_end
