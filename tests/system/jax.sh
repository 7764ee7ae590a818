#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# jax.sh: a real JAX job of four processes (jax.distributed, gloo collectives, tests/jax/train.py).
# One process is slowed by others in its cgroup and on its CPU, then one alone compiles anew in every step: each time
# it, and no other, must be named, and in the second run the cause, too.
#
# JAX comes from the Python package index into build/jax-venv, once. LOCKSTEP_NO_NET=1: only if it is there.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
venv=$build/jax-venv
ranks=4
cgroups=()
hogs=()
mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')

# venv_make: the virtual environment with what requirements.txt pins; prints why if it cannot be had.
venv_make() {
	local wanted=$top/tests/jax/requirements.txt
	cmp -s "$wanted" "$venv/installed.txt" && return 0
	[ -z "${LOCKSTEP_NO_NET:-}" ] || { echo "JAX is not installed, and LOCKSTEP_NO_NET is set"; return 1; }
	rm -rf "$venv"
	python3 -m venv "$venv" >"$work/venv.log" 2>&1 || {
		echo "python3 cannot make a virtual environment (package python3-venv)"
		return 1
	}
	timeout 300 "$venv/bin/pip" install -q --retries 1 --timeout 15 -r "$wanted" >>"$work/venv.log" 2>&1 || {
		echo "JAX cannot be had from the package index: $(tail -n 1 "$work/venv.log")"
		rm -rf "$venv"
		return 1
	}
	cp "$wanted" "$venv/installed.txt"
}

# cgroups_make: a CPU cgroup a rank, of equal weight, and that ten times the usual one: what slows a rank is
# to be what we start, and not what else runs here. Fails where that is not allowed.
cgroups_make() {
	local r mount base=''
	while read -r _ mount type options _; do
		case $type:,$options, in
		cgroup:*,cpu,*) base=$mount; break ;;
		cgroup2:*) echo +cpu 2>/dev/null >"$mount/cgroup.subtree_control" && base=$mount ;;
		esac
	done </proc/self/mounts
	[ -n "$base" ] || return 1
	for ((r = 0; r < ranks; r++)); do
		mkdir "$base/lockstep-jax-$$-h$r" 2>/dev/null || return 1
		cgroups[r]=$base/lockstep-jax-$$-h$r
		[ -w "${cgroups[r]}/cgroup.procs" ] || return 1
		echo 10240 2>/dev/null >"${cgroups[r]}/cpu.shares" ||
			echo 1000 2>/dev/null >"${cgroups[r]}/cpu.weight" || return 1
	done
}

# shellcheck disable=SC2317  # called from a trap
jax_end() {
	local status=$? group
	[ "${#hogs[@]}" -eq 0 ] || kill "${hogs[@]}" 2>/dev/null
	stop_all
	for group in "${cgroups[@]}"; do
		for _ in {1..50}; do rmdir "$group" 2>/dev/null && break; sleep 0.1; done
	done
	(exit "$status")
	system_end
}
trap jax_end EXIT

# beside RANK COMMAND...: on the CPU of that rank, and in its cgroup if there are any.
beside() {
	local group=${cgroups[$1]:-}
	taskset -cp "${cpus[$1 % ${#cpus[@]}]}" $BASHPID >/dev/null
	shift
	[ -z "$group" ] || echo $BASHPID >"$group/cgroup.procs"
	exec "$@"
}

# job_start [OPTION]...: the job; rank R is host h<R>.
job_start() {
	local r port
	job=jax
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	rank_pids=()
	rm -rf "$work/truth" && mkdir "$work/truth"
	for ((r = 0; r < ranks; r++)); do
		run_rank "$r" --coordinator "127.0.0.1:$port" --rank "$r" --world "$ranks" \
			--progress "$work/progress-h$r" --truth "$work/truth/h$r" "$@"
		rank_pids[r]=$ret_pid
	done
	workload_pid=${rank_pids[0]}
}

run_rank() {
	local r=$1
	shift
	(
		export LOCKSTEP_JOB=$job LOCKSTEP_RANK=$r LOCKSTEP_WORLD=$ranks LOCKSTEP_HOST=h$r
		export LOCKSTEP_STEPS_DIR=$work/steps/h$r LOCKSTEP_CHIPS=1
		export PYTHONPATH=$top/agent/client/python PYTHONDONTWRITEBYTECODE=1 JAX_PLATFORMS=cpu
		export XLA_FLAGS=--xla_cpu_multi_thread_eigen=false
		beside "$r" setpriv --pdeathsig TERM "$venv/bin/python" "$top/tests/jax/train.py" "$@" \
			</dev/null >>"$work/train-h$r.log" 2>&1
	) &
	ret_pid=$!
	pids+=("$ret_pid")
	programs+=("rank $r")
}

# progress_wait RANK STEP: until this rank has made this step.
progress_wait() {
	local deadline=$((SECONDS + 60)) step=0
	while [ "$SECONDS" -lt "$deadline" ] && alive "${rank_pids[$1]}"; do
		step=$(cat "$work/progress-h$1" 2>/dev/null)
		[ "${step:-0}" -lt "$2" ] || return 0
		sleep 0.1
	done
	note "rank $1 did not come to step $2: at ${step:-0}"
	return 1
}

# functions_told RANK FUNCTION COUNT: an agent beside that rank has it as a series, with at least this count,
# before the job has ended.
# shellcheck disable=SC2317  # called by name
functions_told() {
	while
		"$build/lockstep-agent" --once --steps-dir "$work/steps/h$1" --state-dir "$work/state/once" \
			2>/dev/null >"$work/once.json"
		! python3 -c '
import json, sys
series = json.load(sys.stdin)["series"]
for name, value in sorted(series.items()):
    if name.startswith("job.function."):
        print(name, value)
name = "job.function.compiles_total{function=\"%s\",job=\"jax\",rank=\"%s\"}" % (sys.argv[2], sys.argv[1])
sys.exit(not (series.get(name) or 0) >= int(sys.argv[3]))' "$@" <"$work/once.json" >"$work/functions"
	do
		alive "$workload_pid" || break
		sleep 0.5
	done
	cat "$work/functions"
	alive "$workload_pid"
}

# cause_wait CAUSE JUDGE_ARGUMENT...: until the finding has this cause; fails when the job has ended.
# shellcheck disable=SC2317  # called by name
cause_wait() {
	local cause=$1
	shift
	until [[ $(judged "$@") == *"\"cause\": \"$cause\""* ]]; do
		alive "$workload_pid" || { judged "$@"; return 1; }
		sleep 0.5
	done
}

# job_wait: until all ranks have ended; sets ret_status to the worst of them.
job_wait() {
	local r worst=0
	for ((r = 0; r < ranks; r++)); do
		wait "${rank_pids[r]}" 2>/dev/null
		ret_status=$?
		[ "$ret_status" -eq 0 ] || worst=$ret_status
		tail -n 1 "$work/train-h$r.log" | sed 's/^/# /'
	done
	ret_status=$worst
}

work_begin
why=$(venv_make) || skip_all "$why"

# --- one rank slowed by others in its cgroup ------------------------------------------------------

if cgroups_make; then
	fresh "$ranks"
	job_start --steps 300
	check "the job makes steps" progress_wait 1 100
	for _ in 1 2; do
		(beside 1 setpriv --pdeathsig TERM python3 -c 'while True: pass') &
		hogs+=("$!")
	done
	finding_wait --host h1 --rank 1
	result "$ret_status" "the rank with others in its cgroup is named"
	note "$verdict"
	job_wait
	result "$ret_status" "the job ends well, and has learned"
	kill "${hogs[@]}"
	hogs=()
	check "and it is the first that was ever named" judged --host h1 --rank 1
else
	printf 'ok %d - %s\n' $((++tap_count)) "one rank slowed # SKIP no CPU cgroup can be made here"
fi

# --- one rank alone compiles anew -----------------------------------------------------------------

fresh "$ranks"
job_start --batch 1024 --steps 120 --odd-rank 2 --odd-from 100
finding_wait --host h2 --rank 2
result "$ret_status" "the rank that compiles anew is named"
note "$verdict"
check "and that this is the cause" cause_wait recompilation --host h2 --rank 2
check "its agent tells which function, and how often" functions_told 2 gradients 10
job_wait
result "$ret_status" "the job ends well"
tap_end
