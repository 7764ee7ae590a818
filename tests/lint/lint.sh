#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint: the rules of style that a script can check. Usage: lint.sh [SOURCE_TREE]
# "fail:" lines: includes against the road (rooms.txt), circles of files, folders of more than 40 files, banned calls, public prototypes
# without a comment, C that clang-format 14 would change. "note:" lines: long files and functions.
set -eu
cd "${1:-.}"
sources=$(find agent collector proto storage tests web deploy -name '*.[ch]' \
	! -name '*.pb-c.[ch]' ! -name ui_assets.c ! -name 'schema_*.h' -type f | LC_ALL=C sort)
out=$(
	python3 tests/lint/rooms.py || :
	echo "$sources" | xargs awk -f tests/lint/lint.awk
	if clang-format --version 2>/dev/null | grep -q 'version 14'; then
		echo "$sources" | xargs -P 2 -n 40 clang-format --dry-run 2>&1 |
			sed -n 's/^\(.*\): warning: code should be clang-formatted.*/fail: \1: clang-format would change this/p' |
			sort -u || :
	else
		echo 'note: formats are not checked: clang-format 14 is not installed'
	fi
)
[ -z "$out" ] || printf '%s\n' "$out"
if printf '%s\n' "$out" | grep -q '^fail:'; then
	echo "lint: failed"
	exit 1
fi
echo "lint: ok"
