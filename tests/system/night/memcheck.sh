#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# memcheck.sh [SECONDS]: collector and agents under valgrind while a job runs, with every source there can be here, every
# command, hostile bytes at the doors, and an agent and a collector that are told to end and
# come back. No invalid access, no use of what was never set, nothing definitely lost at the end.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
seconds=${1:-10}
command -v valgrind >/dev/null || skip_all "valgrind is not there"
work_begin
mkdir "$work/bin"
cat >"$work/bin/wrapped" <<SHELL
#!/bin/sh
name=\${0##*/}
exec valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \\
	--num-callers=20 --log-file="$work/valgrind-\$name-%p.log" "$build/\$name" "\$@"
SHELL
chmod +x "$work/bin/wrapped"
ln -s wrapped "$work/bin/lockstep-agent"
ln -s wrapped "$work/bin/lockstep-collector"
daemons=$work/bin
ready_seconds=120 # valgrind is slow

# reported: what valgrind says, if anything; fails if it does.
# shellcheck disable=SC2317  # called by name
reported() {
	local file bad=0
	for file in "$work"/valgrind-*.log; do
		[ ! -s "$file" ] || { bad=1; echo "${file##*/}:"; head -n 60 "$file"; }
	done
	return "$bad"
}

# ask_everything: each command, and each page of both daemons.
# shellcheck disable=SC2317  # called by name
ask_everything() {
	local agent path
	agent=http://127.0.0.1:$(sed 's/.*=//' "$work/agent-h0.port")
	lockstep zoom h0 --for 5 && lockstep status && lockstep jobs && lockstep hosts && lockstep hosts h0 &&
		lockstep series h0 && lockstep steps && lockstep findings --status all &&
		lockstep export --job "$job" --counters && 
		until_true "$build/lockstep" doctor --agent "$agent" || return 1 # it tells of a lost uplink until it has tried again
	for path in / /metrics /healthz /readyz /version /api/v1/jobs /api/v1/findings; do
		python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()' \
			"http://127.0.0.1:$http_port$path" || return 1
	done
}

# quietly COMMAND...: its output is of no interest, unless it fails.
# shellcheck disable=SC2317  # called by name
quietly() { "$@" >"$work/said" 2>&1 || { grep -h "^FAIL" "$work/said"; tail -n 5 "$work/said"; return 1; }; }

tpu=()
tpu_pid=
# Debian's package is for Debian's Python, which need not be the first one in PATH.
for python in python3 /usr/bin/python3 ''; do
	[ -z "$python" ] || ! "$python" -c 'import grpc' 2>/dev/null || break
done
if [ -n "$python" ]; then
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	run_behind "$work/fake_tpu.log" "$python" -B "$top/tests/support/fake_tpu.py" "$port"
	tpu_pid=$ret_pid
	tpu=(--tpu-ports "$port")
else
	note "python3-grpcio is not there: without libtpu's metrics"
fi
echo precious >"$work/precious"
collector_start
# Under valgrind both budgets are far away; what they do is for budget.sh.
free=(--budget-cpu-ratio 0 --budget-memory 0)
echo 'completed step: 1, seconds: 0.5' >"$work/train.log"
agent_start 0 "${free[@]}" "${tpu[@]}" --read-environ --step-log "$work/train.log" --step-log-job logged \
	--prom "self=http://127.0.0.1:$http_port/metrics"
agent_start 1 "${free[@]}"
workload_start --ranks 2 --steps 0 --slow 1:cpu_hog:1@100
end=$((SECONDS + seconds))
check "the job runs" step_wait 100
check "garbage in a steps directory" quietly \
	"$top/tests/system/hostile.py" rings "$work/steps/h0" "$work/steps/h0" "$(find "$work/steps/h1" -type f | head -n 1)"
check "garbage on the ingest port" quietly "$top/tests/system/hostile.py" port "$ingest_port"
check "garbage on the HTTP port" quietly "$top/tests/system/hostile.py" http "$http_port"
program_end "${agent_pids[1]}" TERM
result "$ret_status" "an agent ends well"
agent_start 1 "${free[@]}"
for ((n = 2; SECONDS < end; n++)); do
	echo "completed step: $n, seconds: 0.5" >>"$work/train.log"
	sleep 0.5
done
check "every command is answered" quietly ask_everything
program_end "$collector_pid" TERM
result "$ret_status" "the collector ends well"
collector_start
check "it comes back with what it had, and answers" quietly ask_everything
alive "$collector_pid" && alive "${agent_pids[0]}" && alive "${agent_pids[1]}"
result $? "all of them live"
# Status 1 of --doctor: it found something to mend here.
for way in --once --doctor; do
	"$work/bin/lockstep-agent" "$way" "${tpu[@]}" --host-name h1 --collector "tcp://127.0.0.1:$ingest_port" \
		--steps-dir "$work/steps/h1" --state-dir "$work/state/once" >"$work/said" 2>&1
	status=$?
	[ "$status" -eq 0 ] || [ "$way $status" = "--doctor 1" ]
	result $? "lockstep-agent $way ends well"
done
worst=0
for pid in "${agent_pids[@]}" "$collector_pid"; do
	program_end "$pid" TERM
	[ "$ret_status" -eq 0 ] || worst=$ret_status
done
result "$worst" "all of them end well"
[ "$(find "$work" -name 'valgrind-*.log' | wc -l)" -eq 7 ]
result $? "all seven programs ran under valgrind"
check "valgrind reports no error" reported
[ -z "$tpu_pid" ] || program_end "$tpu_pid" TERM # it knows no other end
tap_end
