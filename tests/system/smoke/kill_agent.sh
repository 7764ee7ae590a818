#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill_agent.sh: kill -9 of agents. The job goes on. Records that are still in a ring are not lost, even if the
# agent's state is deleted. Records that the ring has overwritten become a gap.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=1100

# A short absence, and one that takes the spool with it.
fresh 4
workload_start --device 10 --batch 32 --ranks 4 --steps "$steps" --slow none
check "the job runs" step_wait 400
program_end "${agent_pids[1]}" KILL
program_end "${agent_pids[2]}" KILL
rm -rf "$work/state/h2"
sleep 2
agent_start 1
agent_start 2
workload_wait
result "$ret_status" "the job ends well"
check "each record is stored exactly once" records_wait once 4 "$steps"

# A long absence: one of two workers makes more steps than its ring holds, unseen.
fresh 2
job=burst
burst() { # RANK STEPS
	GO=$work/go LOCKSTEP_JOB=burst LOCKSTEP_RANK=$1 LOCKSTEP_WORLD=2 LOCKSTEP_STEPS_DIR=$work/steps/h$1 \
		PYTHONPATH=$top/agent/client/python python3 -c '
import lockstep, os, sys, time
for n in range(int(sys.argv[1])):
    with lockstep.step(n):
        time.sleep(0.001)
        with lockstep.sync_wait():
            time.sleep(0.0002)
    while n == 500 and not os.path.exists(os.environ["GO"]):
        time.sleep(0.01)   # until one agent is killed
' "$2"
}
burst 0 8000 &
first=$!
burst 1 8000 &
second=$!
check "both workers are seen" step_wait 400
program_end "${agent_pids[1]}" KILL
touch "$work/go"
wait "$first"
status=$?
wait "$second"
result $((status + $?)) "the workers end well without an agent"
agent_start 1
check "each record is stored once or reported as lost" records_wait lost 2 8000
[ "$(facts gaps 0 <"$work/export.jsonl")" -eq 0 ] && [ "$(facts gaps 1 <"$work/export.jsonl")" -gt 0 ]
result $? "the gap belongs to the host whose agent was dead"
[ "$(job_field data_quality gaps)" -gt 0 ]
result $? "the job reports the gap"
tap_end
