#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# record.sh [--steps RATIO] OUT [NAME...]: real jobs with real faults, recorded as labelled replay files.
#
# Every recording is a run of its own: a collector, an agent a rank, the job; slowed in its middle third,
# exported to OUT/NAME.jsonl.gz, and told of in OUT/labels.jsonl. One that fails or is skipped does not end
# the others; the last lines say what became of each. --list: the names; --steps 0.3: shorter ones.
# Network namespaces and CPU cgroups need root. README.md has more.
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")

# NAME FUNCTION STEPS ARGUMENT...: what is recorded. Four ranks each.
table() {
	cat <<'TEXT'
wl_clean_1        workload_run 900 none
wl_clean_2        workload_run 900 none --seed 2
wl_cpu_hog        workload_run 900 rank_hog 1:cpu_hog:1
wl_cpu_quota      workload_run 900 quota 0:cpu_quota:25
wl_slow_input     workload_run 900 slow_disk 3:slow_input:64
wl_pause          workload_run 900 sigstop 1:pause:200
wl_seconds_clean  workload_run 600 none --device 950
wl_slices_clean   workload_run 900 none --slices 2
wl_slices_hog     workload_run 900 rank_hog 3:cpu_hog:1 --slices 2
wl_hang           workload_hang 900 2
net_clean         net_run 800 none
net_delay         net_run 800 link_delay --delay 0.003
net_loss          net_run 800 link_loss --loss 0.06
net_rate          net_run 800 link_rate 40mbit
jax_clean         jax_run 600 none
jax_cpu_hog       jax_run 600 rank_hog 1 hogs
jax_compile       jax_run 600 recompilation 2 compile
jax_slow_input    jax_run 600 slow_disk 3 input --odd-mib 96
jax_fused_clean   jax_run 300 none -1 none --fused
jax_fused_cpu_hog jax_run 300 rank_hog 1 hogs --fused
jaxnet_delay      jax_net_run 600 link_delay --delay 0.003
jaxnet_loss       jax_net_run 600 link_loss --loss 0.06
jaxnet_rate       jax_net_run 600 link_rate 8mbit
TEXT
}

usage() {
	sed -n '3,9s/^# \{0,1\}//p' "$self"
}

# --- one recording, in a process of its own -------------------------------------------------------

# skipped WHY: this machine cannot make the recording.
skipped() {
	printf 'skipped: %s\n' "$*" >"$out/.$run.result"
	exit 77
}

# failed WHY
failed() {
	printf 'failed: %s\n' "$*" >"$out/.$run.result"
	exit 1
}

# step_now RANK: sets ret_step to the step this rank is in, as it told itself.
step_now() {
	local told
	read -r told _ < <(tail -n 1 "$work/truth/h$1" 2>/dev/null)
	ret_step=$((${told:--1} + 1))
}

# step_reached RANK STEP: waits for it.
step_reached() {
	while step_now "$1" && [ "$ret_step" -lt "$2" ]; do
		alive "$workload_pid" || failed "the job ended at step $ret_step, before $2"
		sleep 0.03
	done
}

# during RANK BEGIN END: what is to be done at the first and at the last step of the middle third;
# sets from and to as it was.
during() {
	step_reached "$1" $((steps / 3))
	"$2" || failed "the fault did not begin"
	step_now "$1"
	from=$ret_step
	step_reached "$1" $((2 * steps / 3))
	"$3" || failed "the fault did not end"
	step_now "$1"
	to=$ret_step
}

# settle: what the cgroup or the disk still owes from the run before is not to be seen in this one.
settle() { sleep 1; }

# keep_run COLLECTIVE NOTE [CAUSE SCOPE CULPRIT FROM TO ARGS]: exports, and writes file and label.
keep_run() {
	local records=0
	if ! records_wait once "$ranks" "$steps" >/dev/null; then
		grep -q ' 0 twice, 0 never made' "$work/facts" && [ -s "$work/export.jsonl" ] ||
			failed "the export: $(head -n 1 "$work/facts")"
		note "the export: $(head -n 1 "$work/facts")"
	fi
	read -r records _ <"$work/facts"
	if [ -n "$wire_pid" ]; then # only now: an agent sent its last records over it
		program_end "$wire_pid" TERM
		set -- "$1" "$2; wire: $(tail -n 1 "$work/wire.log")" "${@:3}"
	fi
	gzip -9n <"$work/export.jsonl" >"$out/.$run.gz" && mv "$out/.$run.gz" "$out/$run.jsonl.gz" ||
		failed "cannot write $out/$run.jsonl.gz"
	PYTHONPATH=$top/tests/record python3 - "$out/labels.jsonl" "$work/truth" "$run" "$ranks" "$steps" "$@" <<'PYTHON' || failed "cannot write the label"
import json, os, sys
import account
path, truth, run, hosts, steps, collective, note = sys.argv[1:8]
with open(os.path.join(os.path.dirname(path), run + ".truth.json"), "w", encoding="ascii") as f:
    json.dump(account.read_truth(truth), f)
faults = []
if len(sys.argv) > 8:
    cause, scope, culprit, begin, end, args = sys.argv[8:14]
    faults = [{"cause": cause, "scope": scope, "culprits": [culprit], "from_step": int(begin),
               "to_step": int(end), "args": json.loads(args)}]
lines = []
if os.path.exists(path):
    with open(path, encoding="utf-8") as f:
        lines = [line for line in f if line.strip() and json.loads(line)["run"] != run]
lines.append(json.dumps({"run": run, "file": run + ".jsonl.gz", "hosts": int(hosts),
                         "steps": int(steps), "collective": collective, "note": note,
                         "faults": faults}) + "\n")
with open(path + ".new", "w", encoding="utf-8") as f:
    f.writelines(lines)
os.replace(path + ".new", path)
PYTHON
	printf 'recorded: %s records%s\n' "$records" "${7:+, $3 of $5 from step $6 to $7}" >"$out/.$run.result"
}

# job_over: the end of lockstep-workload, which must be good.
job_over() {
	workload_wait
	[ "$ret_status" -eq 0 ] || failed "the job: $(tail -n 1 "$work/workload.log")"
}

# workload_run none|CAUSE RANK:KIND:AMOUNT [OPTION]...
workload_run() {
	local cause=$1 slow=none rank=''
	shift
	if [ "$cause" != none ]; then
		slow=$1@$((steps / 3))-$((2 * steps / 3))
		rank=${1%%:*}
		shift
	fi
	fresh "$ranks"
	recorded_start --job "$run" --ranks "$ranks" --steps "$steps" --slow "$slow" \
		--report "$work/report.json" "$@"
	job=$run
	job_over
	if [ "$cause" = none ]; then
		keep_run ring "lockstep-workload${*:+ $*}"
		return
	fi
	! grep -q '"cgroup": "none' "$work/report.json" || [ "$cause" != rank_hog ] ||
		skipped "no CPU cgroup: a hog slows its core-mates, too"
	from=$(json_field fault step <"$work/report.json")
	to=$(json_field fault end_step <"$work/report.json")
	[[ $from$to =~ ^[0-9]+$ ]] || failed "the fault did not begin and end: $from, $to"
	keep_run ring "lockstep-workload${*:+ $*}" "$cause" rank "h$rank" "$from" "$to" "{\"slow\": \"$slow\"}"
}

# rank_pid RANK: the process that has the ring of this rank mapped; sets ret_pid.
rank_pid() {
	for ret_pid in $(pgrep -P "$workload_pid"); do
		! grep -q "/steps/h$1/" "/proc/$ret_pid/maps" 2>/dev/null || return 0
	done
	return 1
}

# workload_hang RANK: stopped for 15 s in the middle of the run.
workload_hang() {
	fresh "$ranks"
	recorded_start --job "$run" --ranks "$ranks" --steps "$steps" --slow none
	job=$run
	step_reached "$1" $((steps / 2))
	rank_pid "$1" || failed "rank $1 has no process"
	kill -STOP "$ret_pid" || failed "rank $1 cannot be stopped"
	sleep 0.2 # what it was about to tell of the step before is told
	step_now "$1"
	from=$ret_step
	sleep 14.8
	kill -CONT "$ret_pid"
	job_over
	keep_run ring "lockstep-workload" hang rank "h$1" "$from" "$from" '{"seconds": 15}'
}

# --- JAX ------------------------------------------------------------------------------------------

hogs_start() {
	local _
	for _ in 1 2; do
		(beside "$odd" setpriv --pdeathsig TERM python3 -c 'while True: pass') &
		hogs+=("$!")
	done
}

hogs_stop() {
	kill "${hogs[@]}"
	wait "${hogs[@]}" 2>/dev/null
	hogs=()
}

jax_ready() {
	local why
	jax_job=$run
	"$top/tests/fetch" jax 2>/dev/null
	why=$(fetched jax) || skipped "$why"
	cgroups_make || {
		[ "${1:-}" != hogs ] || skipped "no CPU cgroup can be made here: a hog slows its core-mates, too"
		cgroups=()
	}
}

jax_over() {
	job_wait
	[ "$ret_status" -eq 0 ] || failed "the job: $(tail -qn 1 "$work"/train-h*.log | head -n 1)"
}

# jax_run none|CAUSE [RANK hogs|compile|input|none [OPTION]...]
jax_run() {
	local cause=$1 kind=${3:-none}
	local -a with=()
	odd=${2:--1}
	shift $(($# > 3 ? 3 : $#))
	jax_ready "$kind"
	case $kind in
	compile | input)
		from=$((steps / 3)) to=$((2 * steps / 3))
		[ "$kind" = input ] || to=$((from + steps / 10)) # a compilation takes as long as ten steps
		with=(--odd-rank "$odd" --odd-kind "$kind" --odd-from "$from" --odd-to "$to")
		;;
	esac
	fresh "$ranks"
	job_start --steps "$steps" "${with[@]}" "$@"
	[ "$kind" != hogs ] || during "$odd" hogs_start hogs_stop
	jax_over
	if [ "$cause" = none ]; then
		keep_run gloo "JAX, tests/jax/train.py${*:+ $*}"
	else
		keep_run gloo "JAX, tests/jax/train.py${*:+ $*}" "$cause" rank "h$odd" "$from" "$to" "{\"kind\": \"$kind\"}"
	fi
}

# --- between network namespaces -------------------------------------------------------------------

netns=ls$$-h          # and the number of the rank
bridge=lsb$$
subnet=198.18.$(($$ % 250 + 1)) # RFC 2544: for measurements, nobody's
net_made=''
wire_pid=''
wired=1               # the rank whose link is slowed

net_remove() {
	local r
	[ -n "$net_made" ] || return 0
	for ((r = 0; r < ranks; r++)); do
		ip netns del "$netns$r" 2>/dev/null
	done
	ip link del "$bridge" 2>/dev/null
	rm -f "$work"/hosts
	net_made=''
}

# net_attach RANK DEVICE: this device becomes eth0 of the rank's namespace. (9000 bytes as in a data
# centre: a wire that a program makes counts frames, not bytes.)
net_attach() {
	ip link set "$2" netns "$netns$1" &&
		ip -n "$netns$1" link set "$2" name eth0 mtu 9000 &&
		ip -n "$netns$1" address add "$subnet.$((10 + $1))/24" dev eth0 &&
		ip -n "$netns$1" link set eth0 up &&
		ip -n "$netns$1" link set lo up
}

net_plug() { ip link set "$1" mtu 9000 master "$bridge" up; }

# net_make [WIRE_OPTION]...: a namespace a rank, joined by a bridge, that of $wired by way of wire.py
# if there are options for it; then the collector, reached over the bridge, and an agent in each.
net_make() {
	local r why
	[ "$(id -u)" -eq 0 ] || skipped "network namespaces need root"
	command -v ip >/dev/null && command -v tc >/dev/null || skipped "no ip and tc (package iproute2)"
	[ -c /dev/net/tun ] || skipped "no /dev/net/tun"
	net_made=1
	why=$(ip link add "$bridge" type bridge 2>&1 && ip address add "$subnet.1/24" dev "$bridge" 2>&1 &&
		ip link set "$bridge" mtu 9000 up 2>&1) || skipped "no bridge: $why"
	if [ $# -gt 0 ]; then
		run_behind "$work/wire.log" "$here/wire.py" "lsx$$" "lsy$$" "$@"
		wire_pid=$ret_pid
		until grep -q ready "$work/wire.log"; do
			alive "$wire_pid" || skipped "no tap device: $(tail -n 1 "$work/wire.log")"
			sleep 0.1
		done
	fi
	for ((r = 0; r < ranks; r++)); do
		why=$(ip netns add "$netns$r" 2>&1) || skipped "no network namespace: $why"
		printf '%s h%d\n' "$subnet.$((10 + r))" "$r" >>"$work/hosts"
		if [ $# -gt 0 ] && [ "$r" -eq "$wired" ]; then
			net_attach "$r" "lsx$$" && net_plug "lsy$$" || failed "the wire cannot be put in"
			continue
		fi
		ip link add "lsv$$-$r" type veth peer name "lsw$$-$r" && net_attach "$r" "lsw$$-$r" &&
			net_plug "lsv$$-$r" || failed "no link for rank $r"
	done
	echo '127.0.0.1 localhost' >>"$work/hosts"
	collector_start --listen "tcp://$subnet.1:0" --insecure
	agent_within=(nsenter "--net=/run/netns/$netns%")
	for ((r = 0; r < ranks; r++)); do
		agent_start "$r" --collector "tcp://$subnet.1:$ingest_port"
	done
}

wire_bad() { kill -USR1 "$wire_pid"; }
wire_good() { kill -USR2 "$wire_pid"; }
# (A bucket of one frame: a larger one lets the bursts of a ring through.)
rate_bad() { tc -n "$netns$wired" qdisc add dev eth0 root tbf rate "$rate" burst 12kb latency 300ms; }
rate_good() { tc -n "$netns$wired" qdisc del dev eth0 root; }

# net_prepare CAUSE [RATE | WIRE_OPTION...]: the network, and what begins and ends the fault.
net_prepare() {
	fault_begin=wire_bad fault_end=wire_good
	if [ "$1" = link_rate ]; then
		rate=$2
		fault_begin=rate_bad fault_end=rate_good
		net_make
	elif [ "$1" = none ]; then
		net_make --delay 0 # the wire alone, in the link of one rank, must not be blamed
	else
		net_make "${@:2}"
	fi
	fault_args=$(printf '{"how": "%s"}' "${*:2}")
}

# net_run none|CAUSE [RATE | WIRE_OPTION...]: lockstep-workload, its ring over TCP.
net_run() {
	net_prepare "$@"
	recorded_start --job "$run" --ranks "$ranks" --steps "$steps" --slow none --netns "$netns"
	job=$run
	if [ "$1" != none ]; then
		during "$wired" "$fault_begin" "$fault_end"
		job_over
		keep_run ring "lockstep-workload over TCP" "$1" link "h$wired" "$from" "$to" "$fault_args"
	else
		job_over
		keep_run ring "lockstep-workload over TCP, h$wired behind a wire that does nothing"
	fi
}

# jax_net_run CAUSE RATE | WIRE_OPTION...: JAX with gloo, which binds to the address of the host's own name:
# so each rank has that, too.
jax_net_run() {
	jax_ready
	command -v unshare >/dev/null || skipped "no unshare (package util-linux)"
	net_prepare "$@"
	job_address=$subnet.10
	# shellcheck disable=SC2016  # for the inner shell
	rank_within=(nsenter "--net=/run/netns/$netns%" unshare --uts --mount
		sh -c 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"' h% "$work/hosts")
	job_start --steps "$steps"
	during "$wired" "$fault_begin" "$fault_end"
	jax_over
	keep_run gloo "JAX over TCP between namespaces" "$1" link "h$wired" "$from" "$to" "$fault_args"
}

record_end() {
	local status=$?
	jax_stop
	net_remove
	(exit "$status")
	system_end
}

# one NAME: in this process.
one() {
	local name function words
	run=$1
	while read -r name function steps words; do
		[ "$name" != "$run" ] || break
	done < <(table)
	# shellcheck source=tests/system/lib.sh
	. "$here/../system/lib.sh"
	# shellcheck source=tests/jax/lib.sh
	. "$here/../jax/lib.sh"
	# recorded_start OPTION...: a job whose ranks use their CPUs throughout, with the kernel's account of each rank.
	recorded_start() {
		mkdir -p "$work/truth"
		workload_start --device 0 --batch 320 --truth "$work/truth" "$@"
	}
	test_name=record-$run
	trap record_end EXIT
	work_begin
	steps=$(python3 -c 'import sys; print(max(90, int(float(sys.argv[1]) * int(sys.argv[2]))))' "$ratio" "$steps")
	settle
	# shellcheck disable=SC2086  # words
	"$function" $words
	exit 0
}

# --- all of them ----------------------------------------------------------------------------------

ratio=1
while :; do
	case ${1:-} in
	--list) table | cut -d' ' -f1; exit 0 ;;
	--help | -h) usage; exit 0 ;;
	--steps) ratio=$2; shift 2 ;;
	--one) out=$3; one "$2" ;;
	-*) usage >&2; exit 2 ;;
	*) break ;;
	esac
done
[ -n "${1:-}" ] || { usage >&2; exit 2; }
[[ $ratio =~ ^[0-9]*\.?[0-9]+$ ]] || { echo "record.sh: --steps $ratio: wanted is a ratio, like 0.5" >&2; exit 2; }
run_limit_seconds=$(awk "BEGIN { print int(900 * ($ratio > 1 ? $ratio : 1)) }")
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 1
shift
[ $# -gt 0 ] || mapfile -t all < <("$self" --list)
[ $# -gt 0 ] || set -- "${all[@]}"
for name; do
	"$self" --list | grep -qxF -- "$name" || { echo "record.sh: no recording $name; --list tells" >&2; exit 2; }
done

child=''
# shellcheck disable=SC2317  # called from a trap
stop_now() {
	trap - INT TERM HUP
	[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }
	exit 130
}
trap stop_now INT TERM HUP
results=()
bad=0
for name; do
	rm -f "$out/.$name.result"
	begun=$SECONDS
	timeout -k 30 "$run_limit_seconds" "$self" --steps "$ratio" --one "$name" "$out" </dev/null >"$out/.$name.log" 2>&1 &
	child=$!
	wait "$child"
	status=$?
	child=''
	case $status in
	124 | 137) echo "failed: not done after $run_limit_seconds s" >"$out/.$name.result" ;;
	esac
	result=$(cat "$out/.$name.result" 2>/dev/null || echo "failed: status $status: $(tail -n 1 "$out/.$name.log")")
	rm -f "$out/.$name.result"
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || bad=1
	[ "$status" -ne 0 ] || rm -f "$out/.$name.log"
	results+=("$(printf '%-18s %4d s  %s' "$name" $((SECONDS - begun)) "$result")")
	echo "${results[-1]}"
done
count() { printf '%s\n' "${results[@]}" | grep -c " $1: "; }
echo "$(count recorded) recorded, $(count skipped) skipped, $(count failed) failed in $out"
exit "$bad"
