# shellcheck shell=bash disable=SC2034,SC2154
# lib.sh - a JAX job of several processes (train.py beside this), each in a CPU cgroup of its own where that
# is allowed.
#
# Sourced by bash, after tests/system/lib.sh. Sets: ranks, cpus; by job_start: job, rank_pids, workload_pid.
# tests/fetch jax brings JAX into build/jax-venv.

venv=$build/jax-venv
ranks=4
cgroups=()
hogs=()
jax_job=jax              # its name
rank_within=()           # words before the command of a rank, % for its number: another namespace
job_address=127.0.0.1    # of rank 0, for the others
mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')

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

# jax_stop: hogs, the job and all else ended, the cgroups removed.
jax_stop() {
	local group _
	[ "${#hogs[@]}" -eq 0 ] || kill "${hogs[@]}" 2>/dev/null
	hogs=()
	stop_all
	for group in "${cgroups[@]}"; do
		for _ in {1..50}; do rmdir "$group" 2>/dev/null && break; sleep 0.1; done
	done
	cgroups=()
}

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
	job=$jax_job
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	rank_pids=()
	rm -rf "$work/truth" && mkdir "$work/truth"
	for ((r = 0; r < ranks; r++)); do
		run_rank "$r" --coordinator "$job_address:$port" --rank "$r" --world "$ranks" \
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
		beside "$r" "${rank_within[@]//%/$r}" setpriv --pdeathsig TERM "$venv/bin/python" "$top/tests/jax/train.py" "$@" \
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
