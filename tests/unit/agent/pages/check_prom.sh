#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prometheus pages: what Prometheus' own promtool takes, we must take, and what a real node_exporter says
# we must read whole. TAP on stdout; skips what is not here.
set -u
src=${top_srcdir:-.}
bin=${top_builddir:-.}
tmp=$(mktemp -d)
exporter=
trap '[ -z "$exporter" ] || kill "$exporter" 2>/dev/null; rm -rf "$tmp"' EXIT
n=0
failed=0

result() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		head -3 "$tmp/err" | sed 's/^/# /'
		failed=1
	fi
}

# check_page FILE NAME: as many samples as lines that are no comments.
check_page() {
	"$bin/tests/unit/agent/pages/print_prom" <"$1" >"$tmp/out" 2>"$tmp/err" &&
		[ "$(wc -l <"$tmp/out")" -eq "$(grep -cv -e '^ *#' -e '^ *$' "$1")" ]
	result $? "$2"
}

if command -v promtool >/dev/null; then
	for page in "$src"/tests/corpus/prom_text/*; do
		# 1: it cannot be parsed; 3: it could be nicer
		promtool check metrics <"$page" >/dev/null 2>&1
		case $?,$(basename "$page") in
		*,long_line | *,many_labels) ;; # beyond our limits, which are said
		0,* | 3,*) check_page "$page" "what promtool takes is read: $(basename "$page")" ;;
		esac
	done
	[ "$n" -ge 4 ]
	result $? "promtool takes at least four pages of the corpus"
else
	n=$((n + 1))
	echo "ok $n - what promtool takes is read # SKIP no promtool here"
fi

exporter_at=
if command -v prometheus-node-exporter >/dev/null && command -v curl >/dev/null; then
	for port in 39117 39118 39119; do
		prometheus-node-exporter --web.listen-address=127.0.0.1:$port >"$tmp/err" 2>&1 &
		exporter=$!
		while :; do
			kill -0 $exporter 2>/dev/null || break
			curl -sf "http://127.0.0.1:$port/metrics" >"$tmp/page" && exporter_at=$port && break
			sleep 0.1
		done
		[ -z "$exporter_at" ] || break
	done
	[ "$(grep -c '^node_' "$tmp/page")" -gt 100 ]
	result $? "node_exporter says something"
	check_page "$tmp/page" "the page of a real node_exporter is read whole"
else
	n=$((n + 1))
	echo "ok $n - the page of a real node_exporter is read whole # SKIP no node_exporter or no curl here"
fi
echo "1..$n"
exit $failed
