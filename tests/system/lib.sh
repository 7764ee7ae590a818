# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# lib.sh - what the system tests share: TAP, and a fresh deployment of the built programs.
#
# Sourced by bash. A test ends with `tap_end`. Real programs, real processes, real time: these tests
# are run by tests/run, not by make check. On failure the logs are kept in build/test-logs/failed/.

# shellcheck source=deploy/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/lib.sh"
test_name=$(basename "$0" .sh)
tap_count=0
tap_failed=0

note() { printf '# %s\n' "$*"; }

# result STATUS NAME: one TAP line; status 0 = ok.
result() {
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		printf 'ok %d - %s\n' "$tap_count" "$2"
	else
		printf 'not ok %d - %s\n' "$tap_count" "$2"
		tap_failed=1
	fi
}

# check NAME COMMAND...: ok if the command succeeds; what it prints becomes notes. Returns the command's status.
check() {
	local name=$1 out status
	shift
	out=$("$@" 2>&1)
	status=$?
	[ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/# /'
	result "$status" "$name"
	return "$status"
}

# results SCRIPT ARGUMENT...: runs a Python script; its lines `ok NAME`, `not NAME` and `skip NAME # REASON` become TAP, others notes.
# Sets ret_status to its exit status.
results() {
	local word rest
	rm -f "$work/results"
	mkfifo "$work/results"
	run_behind "$work/results" python3 -B "$@"
	while read -r word rest; do
		case $word in
		ok) result 0 "$rest" ;;
		not) result 1 "$rest" ;;
		skip) skip "${rest%% # *}" "${rest#* # }" ;;
		*) note "$word $rest" ;;
		esac
	done <"$work/results"
	wait "$ret_pid"
	ret_status=$?
}

# skip NAME REASON: one TAP line for a test that this machine cannot run.
skip() {
	tap_count=$((tap_count + 1))
	printf 'ok %d - %s # SKIP %s\n' "$tap_count" "$1" "$2"
}

skip_all() { printf '1..0 # SKIP %s\n' "$*"; exit 0; }

# How long a test waits for what must come. How fast it comes is the machine's affair.
patience_s=120

# until_true COMMAND...: until the command succeeds; fails after patience_s. Prints what its last try printed.
until_true() {
	local deadline=$((SECONDS + patience_s)) out status=0
	until out=$("$@" 2>&1); do
		[ "$SECONDS" -lt "$deadline" ] || { status=1; break; }
		sleep 0.2
	done
	[ -z "$out" ] || printf '%s\n' "$out"
	return "$status"
}

# metric NAME...: the sum of these on the collector's /metrics, without their prefix lockstep_collector_: families over
# all labels, or NAME{labels}.
metric() {
	python3 -c '
import sys, urllib.request
text = urllib.request.urlopen(sys.argv[1] + "/metrics", timeout=60).read().decode()
wanted = {"lockstep_collector_" + name for name in sys.argv[2:]}
print(int(sum(float(l.rsplit(" ", 1)[1]) for l in text.splitlines()
    if not l.startswith("#") and {l.rsplit(" ", 1)[0], l.split("{")[0]} & wanted)))' "http://127.0.0.1:$http_port" "$@"
}

# metric_over COUNT NAME...: whether this sum is greater.
metric_over() {
	local count=$1
	shift
	[ "$(metric "$@")" -gt "$count" ]
}

# fetched NAME: true if tests/fetch has brought this; prints why not.
fetched() {
	local why="tests/fetch $1 was not run"
	[ ! -f "$build/fetched/$1" ] || why=$(cat "$build/fetched/$1")
	[ -z "$why" ] || { printf '%s: %s\n' "$1" "$why"; return 1; }
}

# tap_end: the last line of a test.
tap_end() {
	stop_all
	[ ! -f "$work/state/collector/state.db" ] ||
		check "all that is stored belongs to a known worker, without a hole" "$top/tests/system/resolve.py" "$work/state/collector"
	[ "${#unclean[@]}" -eq 0 ] || printf '# %s\n' "${unclean[@]}"
	result "${#unclean[@]}" "every program ends well when told to"
	printf '1..%d\n' "$tap_count"
	exit "$tap_failed"
}

system_end() {
	local status=$?
	if [ "$status" -ne 0 ] && [ -n "${work:-}" ]; then
		stop_all
		rm -rf "$build/test-logs/failed/$test_name"
		mkdir -p "$build/test-logs/failed" && cp -r "$work" "$build/test-logs/failed/$test_name" &&
			note "logs: $build/test-logs/failed/$test_name"
	fi
	(exit "$status")
	work_end
}
trap system_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for _p in lockstep lockstep-agent lockstep-collector lockstep-workload; do
	[ -x "$build/$_p" ] || die "$build/$_p is not there: build first (tests/run does)"
done
unset _p

facts() { "$top/tests/system/facts.py" "$@"; }

# fresh RANKS: a new collector and agents on new ports, nothing left of an earlier run.
fresh() {
	stop_all
	[ -z "${work:-}" ] || rm -rf "${work:?}"/*
	ingest_port=0
	http_port=0
	collector_start
	agents_start "$1"
}

# program_end PID SIGNAL: this end is wanted; sets ret_status to its exit status.
program_end() {
	local i
	kill -s "$2" "$1"
	wait "$1" 2>/dev/null
	ret_status=$?
	for i in "${!pids[@]}"; do
		[ "${pids[i]}" != "$1" ] || unset "pids[i]" "programs[i]"
	done
	pids=("${pids[@]}")
	programs=("${programs[@]}")
}

# workload_wait: until the job has ended; sets ret_status to its exit status.
workload_wait() {
	wait "$workload_pid"
	ret_status=$?
	[ "$ret_status" -eq 0 ] || tail -n 3 "$work/workload.log" | sed 's/^/# workload: /'
}

# step_wait STEP: until the collector has closed this step; fails when none has been closed for patience_s.
step_wait() {
	local last='' since=$SECONDS step
	while [ "$SECONDS" -lt $((since + patience_s)) ]; do
		step=$(job_field step)
		[ "$step" = '?' ] || [ "$step" -lt "$1" ] || return 0
		[ "$step" = "$last" ] || since=$SECONDS
		last=$step
		sleep 0.2
	done
	note "step $1 was not reached: at ${step:-?}"
	return 1
}

# finding_wait JUDGE_ARGUMENT...: until a finding of warning or above, or 4 s after the job's end;
# sets verdict and ret_status from deploy/demo/judge.py.
finding_wait() {
	local ended=
	while
		verdict=$(judged "$@")
		ret_status=$?
		[ "$ret_status" -eq 3 ]
	do
		if ! alive "$workload_pid"; then
			[ -n "$ended" ] || ended=$SECONDS
			[ "$SECONDS" -le $((ended + 4)) ] || return
		fi
		sleep 0.5
	done
}

# agree_wait: until a replay of an export has the steps and gives the findings there are, to the byte (tests/system/facts.py).
# What is compared is left in $work/live.json, export.jsonl and replay.json.
agree_wait() {
	local deadline=$((SECONDS + patience_s))
	while
		lockstep findings --status all -o json >"$work/live.json"
		lockstep export --job "$job" >"$work/export.jsonl"
		lockstep replay "$work/export.jsonl" -o json >"$work/replay.json" 2>"$work/replay.log"
		said=$(facts exact "$work/replay.json" "$work/export.jsonl" "$work/replay.log" <"$work/live.json")
		ret_status=$?
		[ "$ret_status" -ne 0 ] && [ "$SECONDS" -lt "$deadline" ]
	do
		sleep 0.5
	done
	note "${said//$'\n'/$'\n'# }"
	result "$ret_status" "live and replay agree"
}

# records_wait FACT...: until an export shows this fact (tests/system/facts.py). The last
# export is left in $work/export.jsonl either way, and what the fact says of it is printed.
records_wait() {
	local deadline=$((SECONDS + patience_s))
	while
		lockstep export --job "$job" >"$work/export.jsonl" 2>"$work/export.log"
		! facts "$@" <"$work/export.jsonl" >"$work/facts"
	do
		[ "$SECONDS" -lt "$deadline" ] || { cat "$work/facts"; return 1; }
		sleep 0.5
	done
	cat "$work/facts"
}
