#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# service.sh: both daemons under a service manager: ready, watchdog, reload, stop.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
work_begin
mkdir -p "$work/steps" "$work/a" "$work/c"

check "lockstep-collector is a good service" "$top/tests/system/notified.py" "$work/c" \
	"$build/lockstep-collector" --listen "tcp://127.0.0.1:0" \
	--http "127.0.0.1:0" --state-dir "$work/c"
# No collector answers: the agent must be well without one.
check "lockstep-agent is a good service without a collector" "$top/tests/system/notified.py" "$work/a" \
	"$build/lockstep-agent" --collector tcp://127.0.0.1:1 --host-name h0 \
	--steps-dir "$work/steps" --state-dir "$work/a"
tap_end
