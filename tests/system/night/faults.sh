#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# faults.sh [FAULTS [SEED]]: faults of process, disk, memory, clock and network, drawn from a seed, one after the other, under
# a collector, real agents with a real job, and simulated agents. Odd seeds: with TLS. Even seeds: the collector is upgraded
# from the old commit (tests/fetch has it), agents of the old commit take part, and a downgrade is refused. In the end every
# acknowledged record is stored exactly once or in a reported gap, and every finding that was reported is kept. It has mounts,
# a network and a /dev/shm of its own where the machine allows it.
# Fetch: old
if [ "${1:-}" != --inside ]; then
	for _own in -mn -Urmn; do
		if command -v ip >/dev/null && unshare "$_own" true 2>/dev/null; then exec unshare "$_own" --propagation private "$0" --inside own "$@"; fi
	done
	exec "$0" --inside shared "$@"
fi
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
own=$2
count=${3:-24}
seed=${4:-1}

# unmount: puts what is on the small file systems into the directories below them.
unmount() {
	local path
	for path in "$work"/state/*; do
		! mountpoint -q "$path" || { cp -r "$path" "$path.end" && umount -l "$path" && rmdir "$path" && mv "$path.end" "$path"; }
	done
}
trap 'status=$?; stop_all; unmount; (exit "$status"); system_end' EXIT

work_begin
if [ "$own" = own ]; then
	ip link set lo up
	mount -t tmpfs lockstep-test /dev/shm || own=shared
	for disk in collector:512 h0:16 h1:16 h2:16; do # MiB
		mkdir -p "$work/state/${disk%:*}"
		mount -t tmpfs -o "size=${disk#*:}m" lockstep-test "$work/state/${disk%:*}"
	done
fi
note "$count faults, seed $seed"
results "$top/tests/system/faults.py" run "$build" "$work" "$count" "$seed" "$own"
[ "$ret_status" -ne 0 ] || results "$top/tests/system/faults.py" verify "$work"
result "$ret_status" "the faults and the check came to their end: $SECONDS s"
unmount
check "the files are sound" "$build/lockstep-collector" --state-dir "$work/state/collector" --check-db
tap_end
