#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# old.sh: the programs of an old commit (tests/fetch has it) beside those of today: agents to collectors, both ways, and the
# state directories of each with the programs of the other. No record is lost. An old collector may refuse a newer state
# directory, in words.
# Fetch: old
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=200
why=$(fetched old) || skip_all "$why"
old=$build/old/build
cli=$build
lockstep() { "$cli/lockstep" --server "http://127.0.0.1:$http_port" "$@"; }

# collector_of DIRECTORY, agent_of RANK DIRECTORY: the programs there.
collector_of() {
	cli=$1
	daemons=$1
	ingest_port=0
	http_port=0
	collector_start
}
agent_of() {
	daemons=$2
	agent_start "$1"
}

# job_run NAME: a job of two ranks on h0 and h1, to its end.
job_run() {
	workload_start --device 10 --batch 32 --ranks 2 --steps "$steps" --slow none --job "$1"
	job=$1
	workload_wait
	result "$ret_status" "job $job ends well"
}

agents_end() {
	local pid
	for pid in "${agent_pids[@]}"; do program_end "$pid" TERM; done
	agent_pids=()
}

# has JOB: all of its records are served.
has() {
	job=$1
	check "every record of job $1 is stored once" records_wait once 2 "$steps"
}

work_begin
note "old: $(cat "$build/old/commit")"
collector_of "$old"
agent_of 0 "$old"
agent_of 1 "$build"
note "old collector, an old and a new agent"
job_run first
has first
program_end "$collector_pid" TERM
job_run kept # without a collector
agents_end

note "new collector with the old state, each agent with the state and the spool of the other"
collector_of "$build"
has first
agent_of 0 "$build"
agent_of 1 "$old"
has kept
job_run second
has second
agents_end
program_end "$collector_pid" TERM

note "old collector with the new state"
cli=$old
rm -f "$work/ports"
run_behind "$work/collector.log" "$old/lockstep-collector" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 \
	--state-dir "$work/state/collector" --port-file "$work/ports"
collector_pid=$ret_pid
until [ -s "$work/ports" ] || ! alive "$collector_pid"; do sleep 0.05; done
if [ -s "$work/ports" ]; then
	IFS='= ' read -r _ ingest_port _ http_port <"$work/ports"
	for job in first kept second; do has "$job"; done
	program_end "$collector_pid" TERM
	result "$ret_status" "it works, and ends well"
else
	program_end "$collector_pid" TERM 2>/dev/null
	[ "$ret_status" -eq 1 ] && tail -n 3 "$work/collector.log" | grep -E 'version|newer|schema' >"$work/said"
	result $? "it refuses in words: $(head -n 1 "$work/said" 2>/dev/null)"
fi

note "new collector again: nothing is lost"
collector_of "$build"
for job in first kept second; do has "$job"; done
program_end "$collector_pid" TERM
result "$ret_status" "it ends well"
check "the files are sound" "$build/lockstep-collector" --state-dir "$work/state/collector" --check-db
tap_end
