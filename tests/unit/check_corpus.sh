#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzz target ($LS_FUZZERS, tests/fuzz/fuzz_<name>) over tests/corpus/<name>/. TAP on stdout.
set -u
src=${top_srcdir:-.}
build=${top_builddir:-.}
# shellcheck disable=SC2086  # a list of words
set -- ${LS_FUZZERS:?}
echo "1..$#"
n=0
for target in "$@"; do
	n=$((n + 1))
	name=${target#tests/fuzz/fuzz_}
	set -- "$src/tests/corpus/$name"/*
	if [ ! -e "$1" ]; then
		echo "not ok $n - $name: no corpus"
	elif out=$("$build/$target" "$@" 2>&1); then
		echo "ok $n - $name: $# files"
	else
		echo "not ok $n - $name"
		printf '%s\n' "$out" | sed 's/^/# /'
	fi
done
