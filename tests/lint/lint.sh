#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint: what the style can be held to by measuring. Usage: lint.sh [SOURCE_TREE]
# Banned calls and undocumented public prototypes fail; long files and functions are only told.
set -eu
cd "${1:-.}"
out=$(find agent collector proto storage tests web deploy -name '*.[ch]' \
	! -name '*.pb-c.[ch]' ! -name ui_assets.c -type f | LC_ALL=C sort |
	xargs awk -f tests/lint/lint.awk)
[ -z "$out" ] || printf '%s\n' "$out"
if printf '%s\n' "$out" | grep -q '^fail:'; then
	echo "lint: failed"
	exit 1
fi
echo "lint: ok"
