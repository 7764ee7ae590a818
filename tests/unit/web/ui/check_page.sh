#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page in a real browser, without a screen: TAP on stdout. Skipped where there is no chromium.
set -u
src=${top_srcdir:-.}
bin=${top_builddir:-.}
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
n=0
failed=0
browser=
for name in chromium chromium-browser google-chrome; do
	[ -n "$browser" ] || browser=$(command -v $name) || browser=
done
if [ -z "$browser" ]; then
	echo "1..0 # SKIP the page was not tested: no chromium here"
	exit 0
fi

result() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		grep CONSOLE "$tmp/log" | head -5 | sed 's/^/# /'
		failed=1
	fi
}

serve() { # DIR
	[ -z "$server" ] || kill "$server"
	rm -f "$tmp/port"
	"$bin/tests/unit/web/http/fake_server" "$src/tests/golden/web/$1" >"$tmp/port" 2>"$tmp/server" &
	server=$!
	until [ -s "$tmp/port" ] || ! kill -0 "$server" 2>/dev/null; do sleep 0.05; done
	origin=http://127.0.0.1:$(cat "$tmp/port")
}

# What the page is once it is drawn or says why not, and all that was said and asked on the way. On a busy machine the ten
# seconds of the browser's own time can end before the first answer has come: then the page is loaded again.
visit() { # PATH
	tries=0
	until
		rm -rf "$tmp/profile"
		timeout 300 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
			--disable-background-networking --disable-component-update --disable-sync \
			--host-resolver-rules='MAP * ~NOTFOUND , EXCLUDE 127.0.0.1' \
			--user-data-dir="$tmp/profile" --virtual-time-budget=10000 --enable-logging=stderr \
			--log-net-log="$tmp/net" --dump-dom "$origin$1" >"$tmp/dom" 2>"$tmp/log"
		tries=$((tries + 1))
		grep -q 'data-ready="1"\|id="notice" class="notice" role="alert">' "$tmp/dom" || [ "$tries" -eq 10 ]
	do :; done
}

shows() { # NAME TEXT...: each in the page
	label=$1
	shift
	for text in "$@"; do
		grep -qF -- "$text" "$tmp/dom" || { result 1 "$label: $text"; return; }
	done
	result 0 "$label"
}

quiet() {
	! grep -q CONSOLE "$tmp/log"
	result $? "$1: the console is empty"
}

serve run
visit /
shows 'the summary says how slow and at what cost' 'data-ready="1"' '2.84 s' '2.41 s' '38.8' \
	'of 256 chips' '97 min'
shows 'the finding is listed and explained' 'F-7Q2K' 't1v-n-ab12-w-17 delays every step by 0.43 s' \
	'host CPU contention' 'kubectl -n logging delete pod fluent-bit-x2k9p' 'worth it at once'
shows 'the heatmap is drawn' '<canvas' 'style="height: 382px;"' \
	'24 workers, worst first; steps 46,660 to 50,259, each column the worst of 30 steps.'
shows 'the chart and the workers are there' 'class="actual"' 'class="without"' 'Show more (20 of 64)'
shows 'what is not measured is said so' 'not measured'
quiet 'a run'
visit '/#/j/eval%20nightly%2F7b'
shows 'a worker that holds others up without a finding is suspected, a simulated job says so' 'suspected: ' '<bdi>sim00003</bdi>' \
	'slowest in 68' 'of the last steps, blame so far' 'simulated by lockstep-sim'
quiet 'a simulated job'
# Of what the browser asked (it asks its maker things too), what our page was the initiator of.
grep -F "\"initiator\":\"$origin\"" "$tmp/net" | grep -o '"url":"[a-z]*:[^"]*"' | sort -u >"$tmp/asked"
! grep -vF "\"$origin/" "$tmp/asked" >"$tmp/others"
result $? "nothing is asked of another origin $(head -3 "$tmp/others" | tr '\n' ' ')"
[ "$(wc -l <"$tmp/asked")" -gt 10 ]
result $? 'and what is asked was recorded'

visit '/#/f/F-7Q2M?metric=wait'
shows 'the address chooses finding and colour' 'aria-current="true"' 'link <bdi>t1v-n-ab12-w-48</bdi>'
visit '/f/F-7PZZ'
shows 'a link of an alert leads to its finding' 't1v-n-ab12-w-03 delayed every step' 'over at'
visit '/#/f/F-NONE'
shows 'what is not known is said so' 'Not known here'

serve hostile
visit /
shows 'hostile names are text' '&lt;img src=x onerror=alert(1)&gt;\x1b]0;own\x07$(rm -rf ~)`id`\x202e'
! grep -q '<img src="x"\|<img src=x' "$tmp/dom"
result $? 'and never elements'
quiet 'hostile names'

serve bare
visit /
shows 'a job of which nothing is known yet' 'data-ready="1"' 'possible step time: not known yet' \
	'No data yet: no complete step.'
quiet 'a bare job'

serve empty
visit /
shows 'no job at all' 'No data yet: no job has reported a step'
quiet 'no job'

# copied ORIGIN: the commands that a page of this origin copies.
copied() {
	mkdir -p "$tmp/ui" && cp "$src"/web/ui/*.js "$tmp/ui" && echo '{"type": "module"}' >"$tmp/ui/package.json"
	node --input-type=module -e 'globalThis.location = new URL(process.argv[1]);
		const { command, curl } = await import(process.argv[2]);
		console.log(command("explain", "F-1") + "\n" + curl(location.origin + "/api"));' "$1" "$tmp/ui/client.js" >"$tmp/copied" 2>"$tmp/log"
	cat >"$tmp/wanted"
	cmp -s "$tmp/copied" "$tmp/wanted"
}
if command -v node >/dev/null; then
	copied https://c:7118 <<'TEXT'
lockstep --server https://c:7118 --ca-file ca.pem --token-file TOKEN explain F-1
curl -s --cacert ca.pem -H "Authorization: Bearer $TOKEN" https://c:7118/api
TEXT
	result $? 'over HTTPS the copied commands name the CA and the token'
	copied http://127.0.0.1:7118 <<'TEXT'
lockstep explain F-1
curl -s http://127.0.0.1:7118/api
TEXT
	result $? 'at the default address they need neither'
else
	n=$((n + 1))
	echo "ok $n - the copied commands # SKIP no node here"
fi

echo "1..$n"
exit $failed
