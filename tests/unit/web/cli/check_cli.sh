#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command `lockstep` against a real HTTP side that answers from fixtures: TAP on stdout.
# With an argument, writes the golden outputs there instead of comparing them.
set -u
src=${top_srcdir:-.}
bin=${top_builddir:-.}
write=${1:-}
tmp=$(mktemp -d)
server=
trap 'stop; rm -rf "$tmp"' EXIT
for v in $(env | sed -n 's/^\(LOCKSTEP_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
unset NO_COLOR TERM
n=0
failed=0

stop() { [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null; server=; }

serve() { serve_dir "$src/tests/golden/web/$1"; }

serve_dir() { # DIR
	stop
	rm -f "$tmp/port"
	"$bin/tests/unit/web/http/fake_server" "$1" >"$tmp/port" 2>"$tmp/server" &
	server=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -s "$tmp/port" ] && break
		sleep 0.1
	done
	LOCKSTEP_SERVER=http://127.0.0.1:$(cat "$tmp/port")
	export LOCKSTEP_SERVER
}

run() { # ARGUMENT...: leaves out, err, rc
	"$bin/lockstep" "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

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

golden() { # NAME RC ARGUMENT...
	name=$1
	want=$2
	shift 2
	run "$@"
	sed "s|$LOCKSTEP_SERVER|SERVER|" "$tmp/out" >"$tmp/norm"
	if [ -n "$write" ]; then
		cp "$tmp/norm" "$write/$name.txt"
	else
		diff "$src/tests/golden/cli/$name.txt" "$tmp/norm" >"$tmp/err" 2>&1 && [ $rc -eq "$want" ]
		result $? "$name: lockstep $*"
	fi
}

exits() { # RC PATTERN ARGUMENT...: pattern in stderr
	want=$1
	pattern=$2
	shift 2
	run "$@"
	[ $rc -eq "$want" ] && { [ -z "$pattern" ] || grep -q -- "$pattern" "$tmp/err"; }
	result $? "exit $want: lockstep $*"
}

serve run
golden status 0 status
golden status_job 0 status llama70b-run12
golden status_color 0 status llama70b-run12 --color always
golden jobs 0 jobs
golden findings 0 findings
golden findings_all 0 findings --status all
golden findings_host 0 findings --host t1v-n-ab12-w-49
golden findings_none 0 findings --job "eval nightly/7b"
golden findings_json 0 findings --severity info -o json
golden explain 0 explain F-7Q2K
golden explain_link 0 explain F-7Q2M
golden explain_cleared 0 explain F-7PZZ
golden hosts 0 hosts --job llama70b-run12
golden host 0 hosts t1v-n-ab12-w-17
golden series 0 series t1v-n-ab12-w-17
golden series_json 0 series t1v-n-ab12-w-17 -o json --limit 2
LC_ALL=C
export LC_ALL
golden query_host 0 query host.psi.cpu_some_ratio --host t1v-n-ab12-w-17
golden query_host_csv 0 query host.psi.cpu_some_ratio --host t1v-n-ab12-w-17 -o csv
golden query_host_jsonl 0 query host.psi.cpu_some_ratio --host t1v-n-ab12-w-17 -o jsonl
golden query_host_json 0 query host.psi.cpu_some_ratio --host t1v-n-ab12-w-17 -o json --from -1h --step 60
golden query_job 0 query host.psi.cpu_some_ratio --job llama70b-run12 --agg mean
golden query_job_csv 0 query host.psi.cpu_some_ratio --job llama70b-run12 -o csv
LC_ALL=C.UTF-8 golden query_job_utf8 0 query host.psi.cpu_some_ratio --job llama70b-run12
golden query_band 0 query host.psi.cpu_some_ratio --job llama70b-run12 --peers band --host t1v-n-ab12-w-17
golden query_band_csv 0 query host.psi.cpu_some_ratio --job llama70b-run12 --peers band -o csv
golden query_step 0 query --job llama70b-run12 --step 50259
golden query_step_csv 0 query --job llama70b-run12 --step 50259 -o csv
golden zoom 0 zoom t1v-n-ab12-w-17 --for 60
golden steps 0 steps --job llama70b-run12
golden steps_host 0 steps --job llama70b-run12 --host t1v-n-ab12-w-17
golden export 0 export --job llama70b-run12
golden export_csv 0 export --job llama70b-run12 -o csv
golden export_csv_counters 0 export --job llama70b-run12 -o csv --counters
half=$tmp/half # two hosts of a job are slow
cp -R "$src/tests/golden/web/run" "$half" && chmod -R u+w "$half"
sed '0,/"hosts": null/s//"hosts": ["a", "b"]/' "$src/tests/golden/web/run/findings.json" >"$half/findings.json"
serve_dir "$half"
run explain F-7Q1A
grep -q '  job, slow on a, b  ' "$tmp/out"
result $? 'a finding of a job names the hosts that are slow'
serve run
exits 1 '' status --exit-code
exits 1 '' status -o json --exit-code
exits 6 'is not known; set LOCKSTEP_WORLD' status 'eval nightly/7b' -o json --exit-code --fail-on info
exits 1 '' status llama70b-run12 -o json --exit-code --fail-on critical
exits 0 '' findings --exit-code --job llama70b-run12 --kind link --fail-on critical
exits 1 '' findings --exit-code -o json
exits 5 'no such host' findings --exit-code --host nobody
exits 2 'which job' hosts
golden help_steps 0 help steps
golden help_steps 0 --job x steps --help
exits 2 'no command'
exits 2 '--watch is not an option of lockstep steps' steps --watch
exits 2 '--watch is not an option of lockstep steps' --watch steps
exits 2 "did you mean 'steps'" help stepps
LOCKSTEP_WATCH=true exits 0 '' version
exits 2 "did you mean 'explain'" explian F-7Q2K
exits 2 'usage' explain
exits 2 'severity' findings --severity bad
exits 2 "'status' must be" findings --status bad
exits 2 'http://HOST:PORT' status --server ftp://localhost
exits 5 '404' explain F-NONE
exits 5 '404' status none
exits 5 'no such job' findings --job none
exits 5 '404' export --job none
exits 5 '404' hosts none
exits 5 '404' series none
exits 5 '404' zoom none
exits 5 '404' query x --host none
exits 5 '404' query x --job none
exits 5 '404' query --step 3 --job none
exits 2 'usage' query --job llama70b-run12
exits 2 "'from'" query x --host t1v-n-ab12-w-17 --from yesterday
exits 2 "'step'" query x --host t1v-n-ab12-w-17 --step 0
exits 2 "'step' must be a number" query x --job llama70b-run12 --step raw
exits 2 "'agg'" query x --job llama70b-run12 --agg median
exits 2 "'peers'" query x --host t1v-n-ab12-w-17 --peers band
exits 2 'whole number' query --step x --job llama70b-run12
exits 2 'for query and export' hosts -o csv
exits 2 'usage' zoom
exits 2 '' zoom t1v-n-ab12-w-17 --for 121
exits 0 'more rows exist' series t1v-n-ab12-w-17 --limit 2
exits 0 '' export --job llama70b-run12 --counters
exits 6 'within --wait' findings --wait 100ms --kind hang
exits 3 'no answer' status --server http://127.0.0.1:1 --timeout 2
exits 0 '' findings --wait 5 --severity critical
exits 0 '' export --job llama70b-run12 -f "$tmp/lines"
cmp -s "$tmp/lines" "$src/tests/golden/web/run/export.ndjson"
result $? 'an export is written whole'
echo before >"$tmp/lines"
for form in '' '-o csv'; do
	# shellcheck disable=SC2086  # an option and its value
	exits 5 'no job, host or finding' export --job none -f "$tmp/lines" $form
	[ "$(cat "$tmp/lines")" = before ]
	result $? "a refused export $form leaves its file as it was"
	exits 1 "$tmp/none/lines: No such file" export --job llama70b-run12 -f "$tmp/none/lines" $form
	exits 1 'No space left' export --job llama70b-run12 -f /dev/full $form
done

# What the API says is what -o json prints.
run explain F-7Q2K -o json
cp "$tmp/out" "$tmp/json"
run explain F-7Q2K -o json
cmp -s "$tmp/json" "$tmp/out" && grep -q '^{"schema_version":1,"id":"F-7Q2K".*}$' "$tmp/json"
result $? 'json is the object of the API'

# The metrics of fixtures, the hostile ones too, are what Prometheus takes.
metrics() { # DIR
	serve "$1"
	if command -v promtool >/dev/null && command -v curl >/dev/null; then
		curl -s "$LOCKSTEP_SERVER/metrics" | promtool check metrics >"$tmp/out" 2>"$tmp/err"
		result $? "promtool takes the metrics of $1"
	else
		n=$((n + 1))
		echo "ok $n - promtool takes the metrics of $1 # SKIP no promtool or no curl here"
	fi
}
[ -n "$write" ] || metrics run
[ -n "$write" ] || metrics hostile

# Certificates: no collector is asked.
keys=$tmp/keys
exits 2 'usage: lockstep keys' keys lamp "$keys"
exits 2 'usage: lockstep keys' keys agent "$keys"
exits 2 'usage: lockstep keys' keys revoke "$keys"
exits 1 'or use its directory (No such file' keys agent "$keys" h0
exits 0 '' keys init "$keys" localhost
exits 0 '' keys agent "$keys" h0 h1
exits 2 'is no name for a certificate' keys agent "$keys" h2 a/b h3
exits 0 '' keys revoke "$keys" h0 h1
exits 5 'has no certificate and no token' keys revoke "$keys" nobody
mv "$keys/ca.key" "$tmp/ca.key"
exits 0 '' keys token "$keys" reader read
exits 0 '' keys token "$keys" h0 read
exits 0 '' keys revoke "$keys" reader
cp "$keys/tokens" "$tmp/tokens"
exits 1 'nothing is revoked.*(No such file' keys revoke "$keys" h0
cmp -s "$tmp/tokens" "$keys/tokens" && [ -s "$tmp/tokens" ]
result $? 'without ca.key a token is revoked; of a name with a certificate, nothing'
mv "$tmp/ca.key" "$keys/ca.key"
exits 0 '' keys revoke "$keys" h0
[ ! -s "$keys/tokens" ]
result $? 'with ca.key both are'
(cd "$keys" && stat -c '%a %n' -- *.key *.pem) >"$tmp/out"
diff - "$tmp/out" >"$tmp/err" <<'TEXT'
600 ca.key
600 collector.key
600 h0.key
600 h1.key
600 h2.key
644 ca.pem
644 collector.pem
644 crl.pem
644 h0.pem
644 h1.pem
644 h2.pem
TEXT
result $? 'what comes before a wrong name is issued, what comes after is not; keys are their owner'"'"'s alone'

serve empty
exits 6 'no job has reported' status
exits 6 'no job has reported' findings
exits 6 'no job has reported' hosts
exits 6 'no job has reported' findings --exit-code --host h
exits 6 'no job has reported' status --exit-code -o json
serve bare
golden bare/status 0 status
golden bare/explain 0 explain F-BARE
golden bare/hosts 0 hosts
golden bare/steps 0 steps
golden bare/host 0 hosts h
exits 0 'no series' series h
# A verdict is of all jobs, and of all findings.
mkdir "$tmp/many"
python3 -c '
import json, sys
job = json.load(open(sys.argv[1]))[1]
judged = job["judged"]
print(json.dumps([dict(job, id="job%d" % i, judged=dict(judged, all=i < 1000, why=None)) for i in range(1001)]))
' "$src/tests/golden/web/run/jobs.json" >"$tmp/many/jobs.json"
echo '[]' >"$tmp/many/findings.json"
serve_dir "$tmp/many"
exits 6 'there are more jobs' status --exit-code
exits 6 'there are more jobs' findings --exit-code
serve run
exits 6 'older findings exist' findings --exit-code --fail-on critical --limit 1
serve identity
golden identity/explain 0 explain F-160V
golden identity/jobs 0 jobs
golden identity/status 0 status
run doctor --agent http://127.0.0.1:1
[ $rc -eq 1 ] && grep -q 'WARN  job  *train  *rank 0 is claimed by node0 and node2: ' "$tmp/out" &&
	grep -q 'WARN  job  *train  *node0 says that the job has 2 slices, node2 says 3: ' "$tmp/out"
result $? 'the doctor says what workers contradict each other about'
serve hostile
golden hostile/status 0 status
golden hostile/explain 0 explain F-HACK
golden hostile/hosts 0 hosts
golden hostile/host 0 hosts h
golden hostile/series 0 series h
golden hostile/query 0 query x --host h
golden hostile/query_csv 0 query x --host h -o csv
golden hostile/export_csv 0 export --job "$(printf 'job "x"\n</script>')" -o csv
run status
run explain F-HACK --color always
LC_ALL=C grep -q "$(printf '\033')\]" "$tmp/out"
[ $? -ne 0 ]
result $? 'no escape sequence of others reaches the terminal'
run jobs -o json
grep -q 'u009b' "$tmp/out" && ! LC_ALL=C grep -q "$(printf '\302[\200-\237]')" "$tmp/out"
result $? 'JSON in a pipe has no control character'
if python3 -c 'import pty; pty.openpty()' 2>"$tmp/err"; then
	LC_ALL=C grep -q '[^ -~[:space:]]' "$tmp/out" &&
		python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$bin/lockstep" jobs -o json </dev/null >"$tmp/out" 2>"$tmp/err" &&
		grep -q schema_version "$tmp/out" && ! LC_ALL=C grep -q '[^ -~[:space:]]' "$tmp/out"
	result $? 'JSON on a terminal is ASCII'
else
	n=$((n + 1))
	echo "ok $n - JSON on a terminal is ASCII # SKIP no terminal can be opened: $(tail -n 1 "$tmp/err")"
fi
stop

unset LOCKSTEP_SERVER
exits 2 'usage' replay
exits 1 '' replay "$tmp/none"
echo 'no json' >"$tmp/bad"
exits 1 '' replay "$tmp/bad"
[ -z "$write" ] || exit 0
echo "1..$n"
exit $failed
