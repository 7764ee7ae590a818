# shellcheck shell=bash disable=SC2034,SC2119,SC2120  # used by those who source this
# lib.sh - what quickstart, tests/run and tests/system share: packages, build, a small deployment
# (collector, one agent a rank, a training workload) on free ports, and its complete removal.
#
# Sourced by bash. Sets: top (the checkout), build (default $top/build), work (made by work_begin).
# Everything started here is ended, and everything made here removed, by work_end; scripts run it
# from a trap on EXIT.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${LOCKSTEP_BUILD:-$top/build}
# An operator's settings must not leak into a run that chooses its own.
for _v in $(compgen -v LOCKSTEP_); do
	case $_v in
	LOCKSTEP_BUILD | LOCKSTEP_SHARED | LOCKSTEP_NO_NET) ;;
	*) unset "$_v" ;;
	esac
done
unset _v

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# --- packages -------------------------------------------------------------------------------------

# packages_missing FILE KIND: the packages of that kind which are not installed.
packages_missing() {
	local kind package rest
	while read -r kind package rest; do
		[ "$kind" = "$2" ] || continue
		dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q ' installed$' ||
			printf '%s\n' "$package"
	done <"$1"
}

# packages_install KIND FILE: says what is missing and why, installs it; nothing missing: silent.
packages_install() {
	local missing package kind name rest
	local -a sudo=()
	command -v dpkg-query >/dev/null ||
		die "not a Debian system: install what $2 lists, then use --no-install"
	missing=$(packages_missing "$2" "$1")
	[ -n "$missing" ] || return 0
	say "These packages are missing and will be installed with apt-get:"
	for package in $missing; do
		while read -r kind name rest; do
			[ "$kind $name" != "$1 $package" ] || say "  $(printf '%-20s %s' "$name" "$rest")"
		done <"$2"
	done
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || die "installing needs root or sudo (or --no-install)"
		sudo=(sudo)
	fi
	work_file apt.log
	# shellcheck disable=SC2086  # one word a package
	if ! {
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
			apt-get -q install -y --no-install-recommends $missing
	} </dev/null >"$ret_file" 2>&1; then
		tail -n 15 "$ret_file" >&2
		die "apt-get failed (above); install by hand, or try again"
	fi
}

# tools_unpack FILE DIR: programs of packages that had better not be installed ("tool" in FILE, as
# PACKAGE/PATH): fetched and unpacked into DIR, and put into PATH.
tools_unpack() {
	local kind tool rest
	while read -r kind tool rest; do
		[ "$kind" = tool ] || continue
		PATH=$PATH:$(dirname "$2/${tool#*/}")
		! command -v "${tool##*/}" >/dev/null || continue
		say "Fetching ${tool##*/} ($rest) from package ${tool%%/*}, into $2."
		work_file "${tool%%/*}"
		mkdir -p "$2" "$ret_file"
		chmod a+rx "$work" && chmod a+rwx "$ret_file" # apt fetches as a user of its own
		(cd "$ret_file" && apt-get -q download "${tool%%/*}" && dpkg-deb -x ./*.deb "$2") \
			</dev/null >"$ret_file.log" 2>&1 || say "That failed: what needs it will be skipped."
	done <"$1"
}

# --- build ----------------------------------------------------------------------------------------

# build_tree DIR [CONFIGURE_ARGUMENT]...: configures DIR if needed, and builds it; DIR/build.log.
build_tree() {
	local dir=$1 tool
	shift
	for tool in autoreconf make pkg-config protoc-c; do
		command -v "$tool" >/dev/null || die "$tool not found: leave out --no-install"
	done
	mkdir -p "$dir" || die "cannot make $dir"
	if ! {
		if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
			(cd "$top" && autoreconf -i)
		fi &&
		if [ ! -f "$dir/Makefile" ] || [ "$top/configure" -nt "$dir/config.status" ] ||
			[ "$*" != "$(cat "$dir/.configured-with" 2>/dev/null)" ]; then
			(cd "$dir" && "$top/configure" -q "$@") && printf '%s' "$*" >"$dir/.configured-with"
		fi &&
		make -C "$dir" -j"$(nproc)" all
	} >"$dir/build.log" 2>&1; then
		tail -n 25 "$dir/build.log" >&2
		die "the build failed (above)"
	fi
}

# --- a private place ------------------------------------------------------------------------------

pids=()          # what was started, in order; ended in reverse
programs=()      # and what each of them is
unclean=()       # programs that ended otherwise than well
collector_pid=
workload_pid=
agent_pids=()    # by rank
agent_within=()  # words before the command of an agent, % for its rank: another namespace
daemons=$build   # where collector and agent are
ready_seconds=20 # how long the collector may take to serve
keep=            # a directory to keep instead of a temporary one
ingest_port=0    # 0: any free one; known once the collector serves
http_port=0
job=

# work_begin: the directory that holds all state, logs and rings of this run.
work_begin() {
	[ -z "${work:-}" ] || return 0
	if [ -n "$keep" ]; then
		mkdir -p "$keep" || die "cannot make $keep"
		[ -z "$(ls -A "$keep")" ] || die "--keep $keep: is not empty"
		work=$(cd "$keep" && pwd)
	else
		work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep.XXXXXX") || die "cannot make a temporary directory"
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

# stop_all: ends the workload first, then agents, then the collector. What did not end well, now or
# before, unless its end was awaited by the caller, is added to `unclean`.
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

# work_end: everything stopped and removed; for `trap work_end EXIT`.
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

# run_behind LOG COMMAND...: starts it, sets ret_pid. It gets SIGTERM if this shell is killed.
run_behind() {
	local log=$1
	shift
	setpriv --pdeathsig TERM "$@" </dev/null >>"$log" 2>&1 &
	ret_pid=$!
	pids+=("$ret_pid")
	programs+=("${1##*/}")
}

lockstep() { "$build/lockstep" --server "http://127.0.0.1:$http_port" "$@"; }

# port_taken PORT: whether somebody listens there.
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# collector_start [OPTION]...: state in $work/state/collector; waits until it serves, and sets
# ingest_port and http_port to the ports it has. Started again, it takes the same.
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
			die "the collector ended at its start (its log is above)"
		}
		[ "$SECONDS" -lt "$deadline" ] || die "the collector is not ready after $ready_seconds s"
		sleep 0.05
	done
	IFS='= ' read -r _ ingest_port _ http_port <"$work/ports"
}

# agent_start RANK [OPTION]...: host h<RANK>, with $work/steps/h<RANK> and $work/state/h<RANK> of its own.
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

# judged OPTION...: the findings as deploy/judge.py sees them, with the truth of the workload, if it runs.
judged() {
	[ ! -d "$work/truth" ] || set -- --truth "$work/truth" "$@"
	lockstep findings --status all -o json | "$top/deploy/judge.py" "$@"
}

# judged_machine: what a verdict on standard input says of the machine, a line a finding.
judged_machine() {
	python3 -c '
import json, sys
for m in json.load(sys.stdin)["machine"]:
    print("%s is right: the machine slowed %s from step %d on (on a CPU or waiting for one "
          "%.1f ms a step, its peers %.1f); not our doing" %
          (m["id"], m["host"], m["onset_step"], 1e3 * m["own_s"], 1e3 * m["peers_s"]))'
}

# workload_start [OPTION]...: the training job; rank R is on host h<R>, and $work/truth/h<R> is told
# what the kernel says of each of its steps.
workload_start() {
	job=workload
	mkdir -p "$work/truth"
	run_behind "$work/workload.log" "$build/lockstep-workload" --job "$job" \
		--steps-root "$work/steps" --truth "$work/truth" "$@"
	workload_pid=$ret_pid
}

# job_field KEY...: of the one job in the collector, as lockstep status tells it; ? = not known.
job_field() {
	lockstep status -o json 2>/dev/null | json_field items 0 "$@"
}

# json_field KEY...: the value at this path of the JSON on standard input; ? = null or not there.
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
