#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lockstep-agent and lockstep-collector as programs: HTTP, doctor, options. TAP on stdout.
set -u
bin=${top_builddir:-.}
tmp=$(mktemp -d)
pids=
finish() {
	for pid in $pids; do kill "$pid" 2>/dev/null; done
	wait
	rm -rf "$tmp"
}
trap finish EXIT
for v in $(env | sed -n 's/^\(LOCKSTEP_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
unset NO_COLOR TERM
n=0
failed=0

result() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/out" "$tmp/err"
		failed=1
	fi
}

run() { # COMMAND...: leaves out, err, rc
	"$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# said RC PATTERN COMMAND...: this status, and the pattern in what it printed
said() {
	want=$1
	pattern=$2
	shift 2
	run "$@"
	[ $rc -eq "$want" ] && cat "$tmp/out" "$tmp/err" | grep -q -- "$pattern"
	result $? "exit $want: $(echo "$*" | sed "s|$tmp|TMP|g; s|$bin/||; s|:[0-9][0-9]*|:PORT|g")"
}

# until_true COMMAND...: tries it for two minutes.
until_true() {
	for _ in $(seq 1200); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

started() { # PORT_FILE: waits for the file
	until_true test -s "$1" || { echo "Bail out! no $1"; exit 1; }
}

mkdir -m 1777 "$tmp/steps" "$tmp/steps2"
"$bin/lockstep-collector" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 --state-dir "$tmp/c" \
	--port-file "$tmp/c.port" 2>"$tmp/c.log" &
collector=$!
pids=$collector
started "$tmp/c.port"
ingest=$(sed 's/^ingest=\([0-9]*\) .*/\1/' "$tmp/c.port")
web=$(sed 's/.*http=//' "$tmp/c.port")
printf '[agent]\nbudget_cpu_ratio = 0.5\n' >"$tmp/agent.conf"
"$bin/lockstep-agent" --config "$tmp/agent.conf" --collector "tcp://127.0.0.1:$ingest" --host-name h0 \
	--steps-dir "$tmp/steps" --state-dir "$tmp/a" --http 127.0.0.1:0 --port-file "$tmp/a.port" \
	2>"$tmp/a.log" &
agent=$!
pids="$pids $agent"
started "$tmp/a.port"
port=$(sed 's/.*=//' "$tmp/a.port")
url=http://127.0.0.1:$port

greeted() { "$bin/lockstep" doctor --agent "$url" | grep -q '^OK    uplink'; }
until_true greeted
said 0 'OK    uplink' "$bin/lockstep" doctor --agent "$url"
said 0 '^agent on h0, version ' "$bin/lockstep" doctor --agent "$url"
said 0 '^{"schema_version":1,"summary":{"ok":' "$bin/lockstep" doctor --agent "$url" -o json
said 1 'FAIL  agent .* no agent answers at this' "$bin/lockstep" doctor --agent http://127.0.0.1:1 \
	--steps-dir "$tmp/none"
said 1 'fix: systemctl start lockstep-agent' "$bin/lockstep" doctor --agent http://127.0.0.1:1
said 1 'fix: .* mkdir -p .*none && chmod 1777' "$bin/lockstep" doctor --agent http://127.0.0.1:1 \
	--steps-dir "$tmp/none"
said 1 '"source":"agent"' "$bin/lockstep" doctor --agent http://127.0.0.1:1 -o json
said 1 'is not a lockstep-agent' "$bin/lockstep" doctor --agent "http://127.0.0.1:$web"
said 2 'http://HOST:PORT' "$bin/lockstep" doctor --agent "ftp://127.0.0.1:$port"
said 2 'usage' "$bin/lockstep" doctor now
said 2 'without TLS or password' "$bin/lockstep-agent" --http 0.0.0.0:0
said 1 'no boot id' "$bin/lockstep-agent" --http 0.0.0.0:0 --insecure --proc-root "$tmp"
said 2 'ADDRESS:PORT' "$bin/lockstep-agent" --http nowhere
said 2 'numeric address' "$bin/lockstep-agent" --http host:1
said 2 'ratio of one core' "$bin/lockstep-agent" --budget-cpu-ratio much
said 2 'ratio of one core' "$bin/lockstep-agent" --budget-cpu-ratio nan

# What a start would refuse, --check-config refuses: with the same words and status, and without a start.
refused() { # PROGRAM PATTERN OPTION...
	program=$1
	pattern=$2
	shift 2
	said 2 "$pattern" "$bin/lockstep-$program" --check-config "$@"
	before=$(cat "$tmp/err")
	run "$bin/lockstep-$program" --state-dir "$tmp/none" --steps-dir "$tmp/none" "$@"
	[ $rc -eq 2 ] && [ "$before" = "$(cat "$tmp/err")" ] && [ ! -e "$tmp/none" ]
	result $? 'and so does a start'
}
accepted() { # COMMAND...: nothing to say
	run "$@"
	[ $rc -eq 0 ] && ! [ -s "$tmp/out" ] && ! [ -s "$tmp/err" ]
	result $? "accepted: $(echo "$*" | sed "s|$bin/||")"
}
accepted "$bin/lockstep-agent" --check-config
refused agent '--tpu-ports 8431,0: must be ports' --tpu-ports 8431,0
refused agent '--tpu-ports 8431,8431: must be ports' --tpu-ports 8431,8431
refused agent '--tpu-address tpu.example: is not a numeric' --tpu-address tpu.example
refused agent '--prom: x=ftp://h/: malformed' --prom x=ftp://h/
refused agent '--prom: a=http://h/: already present' --prom a=http://h/,a=http://h/
refused agent '--prom-map /nonexistent: ' --prom-map /nonexistent
refused agent '--collector 127.0.0.1:7117: is not of the form tcp' --collector 127.0.0.1:7117
refused agent '--collector tcp://host: is not of the form' --collector tcp://host
refused agent '--worker-id is not a number' --worker-id first
refused agent '--topology is not valid' --topology 4by4
refused agent '--job is not a usable name' --job "$(printf 'a\tb')"
refused agent '--metadata-address must be' --metadata-address metadata
refused agent '--step-log-rank -1: must be a number' --step-log-rank=-1
refused agent '--step-log-pattern: it has no group' --step-log-pattern='x([0-9]+)'
refused agent '--budget-cpu-ratio much: must be' --budget-cpu-ratio much
refused agent '--http nowhere: is not of the form' --http nowhere
refused agent '--http 0.0.0.0:1: this address can' --http 0.0.0.0:1
refused agent 'budget-memory' --budget-memory lots
said 2 'TPU_RUNTIME_METRICS_PORTS 8431;8432: must be' \
	env 'TPU_RUNTIME_METRICS_PORTS=8431;8432' "$bin/lockstep-agent" --check-config
accepted env 'TPU_RUNTIME_METRICS_PORTS=' "$bin/lockstep-agent" --check-config
accepted "$bin/lockstep-collector" --check-config
said 2 '--listen 127.0.0.1:1: is not of the form' "$bin/lockstep-collector" --check-config \
	--listen 127.0.0.1:1
said 2 '--http 0.0.0.0:1: this address can' "$bin/lockstep-collector" --check-config --http 0.0.0.0:1
accepted "$bin/lockstep" --check-config
said 2 '--server nowhere: is not of the form' "$bin/lockstep" --check-config --server nowhere

# An agent reads its sources itself where none runs; the collector's port is there.
said 0 'OK    uplink .* can be connected to' "$bin/lockstep-agent" --doctor --steps-dir "$tmp/steps" \
	--state-dir "$tmp/a" --collector "tcp://127.0.0.1:$ingest"
said 1 'FAIL  steps' "$bin/lockstep-agent" --doctor --steps-dir "$tmp/none" --state-dir "$tmp/a" \
	--collector "tcp://127.0.0.1:$ingest"

# And the keys of one that does not start, in its own words.
doctor_keys() { # STATUS WORDS
	said "$1" "$2" "$bin/lockstep-agent" --doctor --steps-dir "$tmp/steps" --state-dir "$tmp/a" --collector "tcp://127.0.0.1:$ingest" \
		--keys "$tmp/keys" --host-name w-1
}
doctor_keys 1 'FAIL  keys .*ca.pem: No such file or directory'
"$bin/lockstep" keys init "$tmp/keys" localhost
"$bin/lockstep" keys agent "$tmp/keys" w-1 w-2
doctor_keys 0 'OK    keys .*can be used'
chmod 604 "$tmp/keys/w-1.key"
doctor_keys 1 'FAIL  keys .*w-1.key: can be read by others; run chmod 600'
rm "$tmp/keys"/w-1.*
mv "$tmp/keys/w-2.pem" "$tmp/keys/agent.pem"
mv "$tmp/keys/w-2.key" "$tmp/keys/agent.key"
doctor_keys 1 'FAIL  keys .*names another host than w-1.*: lockstep keys agent DIR w-1'

if command -v curl >/dev/null && command -v promtool >/dev/null; then
	curl -s "$url/metrics" | promtool check metrics >"$tmp/out" 2>"$tmp/err"
	result $? "promtool takes the agent's metrics"
else
	n=$((n + 1))
	echo "ok $n - promtool takes the agent's metrics # SKIP no promtool or no curl here"
fi

# A second agent whose address is taken works without.
"$bin/lockstep-agent" --collector "tcp://127.0.0.1:$ingest" --host-name h1 --steps-dir "$tmp/steps2" \
	--state-dir "$tmp/b" --http "127.0.0.1:$port" >"$tmp/out" 2>"$tmp/err" &
second=$!
pids="$pids $second"
until_true grep -q 'cannot serve at' "$tmp/err" && until_true grep -q 'connected to' "$tmp/err"
result $? 'an address that is taken does not stop an agent'
kill "$second" && wait "$second"
result $? 'and it ends well'

cp "$tmp/a.log" "$tmp/out"
printf '[agent]\nbudget_cpu_ratio = a lot\n' >"$tmp/agent.conf"
kill -HUP "$agent"
until_true grep -q 'a lot.*keeping the current configuration' "$tmp/a.log"
result $? 'a bad budget at SIGHUP is refused'

kill "$collector" && wait "$collector"
until_true sh -c "! '$bin/lockstep' doctor --agent '$url'"
said 1 'FAIL  uplink .*connection lost' "$bin/lockstep" doctor --agent "$url"
kill "$agent" && wait "$agent"
result $? 'the agent ends well with HTTP clients around'
pids=
echo "1..$n"
exit $failed
