#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# api_fuzz.sh [SEED [REQUESTS]]: schemathesis, driven by openapi.yaml, finds no fault in the API of a collector with data:
# no status, content type or body that the file does not document, no 5xx without a reason, and nothing refused that
# the file allows or taken that it does not. This collector asks for no token: http_keys.sh is for that.
#
# Fetch: schemathesis
# Limit: 600 s
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
seed=${1:-1}
requests=${2:-1000}
venv=$build/schemathesis-venv

work_begin
why=$(fetched schemathesis) || skip_all "$why"
ingest_port=0
http_port=0
collector_start
run_behind "$work/sim.log" "$build/lockstep-sim" --connect "tcp://127.0.0.1:$ingest_port" --hosts 16 \
	--steps-per-second 10 --accelerate 10 --log-level err
check "there is a job to ask for" step_wait 20
cd "$top/tests/fuzz/api" || die "no directory tests/fuzz/api"
"$venv/bin/schemathesis" run "$top/web/api/openapi.yaml" --url "http://127.0.0.1:$http_port" --seed "$seed" \
	--max-examples $((requests / 20)) --no-color --generation-database none \
	--request-timeout 60 --suppress-health-check all \
	--checks all --exclude-checks ignored_auth \
	>"$work/schemathesis.log" 2>&1
result $? "schemathesis finds nothing"
note "seed $seed: $(sed -n 's/^ *\([0-9]* generated.*\)/\1/p' "$work/schemathesis.log")"
alive "$collector_pid"
result $? "the collector lives"
tap_end
