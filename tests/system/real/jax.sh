#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# jax.sh: a real JAX job of four processes (jax.distributed, gloo collectives, tests/jax/train.py).
# One process is slowed by others in its cgroup and on its CPU, then one alone compiles anew in every step: each time
# it, and no other, must be named, and in the second run the cause, too.
# Alone: detection.
# Fetch: jax
# Limit: 480 s
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/jax/lib.sh
. "$(dirname "$0")/../../jax/lib.sh"

# shellcheck disable=SC2317  # called from a trap
jax_end() {
	local status=$?
	jax_stop
	(exit "$status")
	system_end
}
trap jax_end EXIT

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

work_begin
why=$(fetched jax) || skip_all "$why"

# --- one rank slowed by others in its cgroup ------------------------------------------------------

if cgroups_make; then
	fresh "$ranks"
	job_start --device 40 --steps 220
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
	check "and no other was ever named" judged --host h1 --rank 1
else
	skip "one rank slowed" "no CPU cgroup can be created here"
fi

# --- one rank alone compiles anew -----------------------------------------------------------------

fresh "$ranks"
job_start --device 40 --batch 1024 --steps 120 --odd-rank 2 --odd-from 100
finding_wait --host h2 --rank 2
result "$ret_status" "the rank that compiles anew is named"
note "$verdict"
check "and that this is the cause" cause_wait recompilation --host h2 --rank 2
check "its agent tells which function, and how often" functions_told 2 gradients 10
job_wait
result "$ret_status" "the job ends well"
tap_end
