# shellcheck shell=bash disable=SC2034,SC2119,SC2120  # used by the scripts that source this file
# deployment.sh - a small deployment on this machine: a collector, one agent for each rank and a training job,
# on free ports, and its complete removal. Sourced by bash.
#
# Needs: build (directory of the programs). Sets: work (made by work_begin). A script runs work_end from a trap
# on EXIT: it stops every program that was started here and removes every file that was created here.

demo_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# --- a private place ------------------------------------------------------------------------------

pids=()          # started processes, in order; stopped in reverse order
programs=()      # the program of each process
unclean=()       # programs that ended with an error
collector_pid=
workload_pid=
agent_pids=()    # by rank
agent_within=()  # words before the command of an agent, % for its rank: another namespace
daemons=${daemons:-$build}   # directory of collector and agent
ready_seconds=20 # how long the collector may take to serve
keep=            # a directory to keep instead of a temporary one
ingest_port=0    # 0: any free one; known once the collector serves
http_port=0
job=
# jobs of a minute are young: single steps decide, in the collector and in a replay
export LOCKSTEP_PATIENCE=${LOCKSTEP_PATIENCE:-0}

# work_begin: creates the directory for all state, logs and rings of this run.
work_begin() {
	[ -z "${work:-}" ] || return 0
	if [ -n "$keep" ]; then
		mkdir -p "$keep" || die "cannot create $keep"
		[ -z "$(ls -A "$keep")" ] || die "--keep $keep: the directory is not empty"
		work=$(cd "$keep" && pwd)
	else
		work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep.XXXXXX") || die "cannot create a temporary directory"
	fi
}

# work_file NAME: sets ret_file to a path below the work directory.
work_file() {
	work_begin
	ret_file=$work/$1
}

# alive PID
alive() { [ -n "$1" ] && kill -0 "$1" 2>/dev/null; }

# stop_pid PID [SECONDS]: SIGTERM, then SIGKILL after so long; sets ret_status to the exit status.
stop_pid() {
	local deadline=$((SECONDS + ${2:-6}))
	kill -TERM "$1" 2>/dev/null
	kill -CONT "$1" 2>/dev/null
	while alive "$1" && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	ret_status=$?
}

# stop_all: stops the workload, then the agents, then the collector. A program that ended with an error is
# added to `unclean`, unless the caller has waited for it.
stop_all() {
	local i
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		stop_pid "${pids[i]}"
		case $ret_status in
		0 | 127) ;; # 127: awaited before
		*) unclean+=("${programs[i]} ended with status $ret_status") ;;
		esac
	done
	pids=()
	programs=()
	agent_pids=()
	collector_pid=
	workload_pid=
}

# work_end: stops and removes everything; for `trap work_end EXIT`.
work_end() {
	local status=$?
	trap - EXIT
	trap '' INT TERM HUP
	stop_all
	if [ -n "${work:-}" ] && [ -z "$keep" ]; then
		rm -rf "$work"
	fi
	exit "$status"
}

# --- the programs ---------------------------------------------------------------------------------

# run_behind LOG COMMAND...: starts the command and sets ret_pid. The command gets SIGTERM if this shell is killed.
run_behind() {
	local log=$1
	shift
	setpriv --pdeathsig TERM "$@" </dev/null >>"$log" 2>&1 &
	ret_pid=$!
	pids+=("$ret_pid")
	programs+=("${1##*/}")
}

lockstep() { "$build/lockstep" --server "http://127.0.0.1:$http_port" "$@"; }

# port_taken PORT: true if a process listens on this port.
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# collector_start [OPTION]...: state in $work/state/collector; waits until it serves and sets
# ingest_port and http_port. A restart uses the same ports.
collector_start() {
	local deadline=$((SECONDS + ready_seconds)) _
	work_begin
	mkdir -p "$work/state/collector"
	rm -f "$work/ports"
	run_behind "$work/collector.log" "$daemons/lockstep-collector" \
		--listen "tcp://127.0.0.1:$ingest_port" --http "127.0.0.1:$http_port" \
		--state-dir "$work/state/collector" --port-file "$work/ports" "$@"
	collector_pid=$ret_pid
	until [ -s "$work/ports" ]; do
		alive "$collector_pid" || {
			tail -n 5 "$work/collector.log" >&2
			die "the collector ended at its start (log above)"
		}
		[ "$SECONDS" -lt "$deadline" ] || die "the collector is not ready after $ready_seconds s"
		sleep 0.05
	done
	IFS='= ' read -r _ ingest_port _ http_port <"$work/ports"
}

# agent_start RANK [OPTION]...: host h<RANK>, with its own $work/steps/h<RANK> and $work/state/h<RANK>.
agent_start() {
	local rank=$1
	shift
	mkdir -p "$work/steps/h$rank" "$work/state/h$rank"
	run_behind "$work/agent-h$rank.log" "${agent_within[@]//%/$rank}" "$daemons/lockstep-agent" \
		--collector "tcp://127.0.0.1:$ingest_port" --host-name "h$rank" \
		--steps-dir "$work/steps/h$rank" --state-dir "$work/state/h$rank" \
		--http 127.0.0.1:0 --port-file "$work/agent-h$rank.port" "$@"
	agent_pids[rank]=$ret_pid
}

# agents_start RANKS
agents_start() {
	local r
	for ((r = 0; r < $1; r++)); do agent_start "$r"; done
}

# judged OPTION...: the findings, judged by judge.py; its exit status.
judged() { lockstep findings --status all -o json | "$demo_dir/judge.py" "$@"; }

# workload_start [OPTION]...: the training job; rank R runs on host h<R>.
workload_start() {
	job=workload
	run_behind "$work/workload.log" "$build/lockstep-workload" --job "$job" \
		--steps-root "$work/steps" "$@"
	workload_pid=$ret_pid
}

# job_field KEY...: a field of the only job, from lockstep status; ? = unknown.
job_field() {
	lockstep status -o json 2>/dev/null | json_field items 0 "$@"
}

# json_field KEY...: the value at this path of the JSON on standard input; ? = null or absent.
json_field() {
	python3 -c '
import json, sys
try:
    v = json.load(sys.stdin)
    for k in sys.argv[1:]:
        v = v[int(k)] if isinstance(v, list) else v.get(k)
except (ValueError, LookupError, AttributeError):
    v = None
print("?" if v is None else v)' "$@"
}

# slice_of RANK RANKS SLICES: the name of its slice in the workload.
slice_of() { printf '%s\n' "$(($1 * $3 / $2))"; }
