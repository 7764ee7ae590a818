#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sample configurations against the programs, units against systemd: TAP on stdout.
set -u
src=${top_srcdir:-.}
bin=${top_builddir:-.}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for v in $(compgen -v LOCKSTEP_); do unset "$v"; done
n=0
failed=0

result() { # STATUS NAME [LOG]
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		[ -z "${3:-}" ] || sed 's/^/# /' "$3"
		failed=1
	fi
}

skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

# Each sample as it is, then with every commented key in force: samples must not rot.
for d in agent collector; do
	for f in "$src/deploy/config/$d.conf" "$src/deploy/kubernetes/base/$d.conf"; do
		name=${f#"$src/deploy/"}
		extra=()
		[ "${name%/*}" != kubernetes/base ] || extra=(--insecure)
		"$bin/lockstep-$d" --config "$f" "${extra[@]}" --check-config >"$tmp/log" 2>&1
		result $? "$name is accepted" "$tmp/log"
		sed 's/^#\([a-z_]* = \)/\1/' "$f" >"$tmp/all.conf"
		"$bin/lockstep-$d" --config "$tmp/all.conf" "${extra[@]}" --check-config >"$tmp/log" 2>&1
		result $? "$name is accepted with all its keys" "$tmp/log"
	done
	echo 'no_such_key = 1' >"$tmp/bad.conf"
	"$bin/lockstep-$d" --config "$tmp/bad.conf" --check-config >"$tmp/log" 2>&1
	[ $? -eq 2 ] && grep -q no_such_key "$tmp/log"
	result $? "lockstep-$d refuses an unknown key by name with status 2" "$tmp/log"
done
timeout 20 "$bin/lockstep-collector" --config "$src/deploy/kubernetes/base/collector.conf" \
	--state-dir "$tmp" >"$tmp/log" 2>&1
[ $? -eq 2 ] && grep -q insecure "$tmp/log"
result $? "beyond loopback the collector refuses without --insecure" "$tmp/log"

# Units, with the programs of this build in place of the installed ones.
for d in agent:16 collector:11; do
	unit=lockstep-${d%:*}.service
	most=${d#*:}
	if ! command -v systemd-analyze >/dev/null; then
		skip "$unit verifies" "systemd-analyze is not installed"
		skip "$unit is hardened" "systemd-analyze is not installed"
		continue
	fi
	sed "s|^ExecStart=[^ ]*/|ExecStart=$(cd "$bin" && pwd)/|" "$bin/deploy/systemd/$unit" \
		>"$tmp/$unit"
	! grep -q '@[a-z]*@' "$tmp/$unit" &&
		systemd-analyze verify --man=no "$tmp/$unit" >"$tmp/log" 2>&1 && [ ! -s "$tmp/log" ]
	result $? "$unit verifies" "$tmp/log"
	systemd-analyze security --no-pager --offline=true --threshold="$most" "$tmp/$unit" \
		>"$tmp/log" 2>&1
	result $? "$unit: exposure at most ${most%?}.${most#?}" "$tmp/log"
done

# Manual pages and completions.
for page in "$bin"/deploy/manual/out/*.[18]; do
	if ! command -v mandoc >/dev/null; then
		skip "${page##*/} is good mdoc" "mandoc is not installed"
		continue
	fi
	mandoc -T lint -W warning "$page" >"$tmp/log" 2>&1
	result $? "${page##*/} is good mdoc" "$tmp/log"
done
for shell in bash:-n zsh:-n fish:--no-execute; do
	if ! command -v "${shell%:*}" >/dev/null; then
		skip "completions for ${shell%:*}" "${shell%:*} is not installed"
		continue
	fi
	for file in "$bin"/deploy/manual/out/*."${shell%:*}"; do
		"${shell%:*}" "${shell#*:}" "$file" || echo "${file##*/}"
	done >"$tmp/log" 2>&1
	[ ! -s "$tmp/log" ]
	result $? "completions for ${shell%:*} can be read" "$tmp/log"
done
# completes WANT WORD...: what bash offers for the last word.
completes() {
	local want=$1 # of the completion's own names
	shift
	(
		# shellcheck source=/dev/null
		. "$bin/deploy/manual/out/$1.bash"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		"_${1//-/_}"
		[ "${COMPREPLY[*]}" = "$want" ] || { echo "offers '${COMPREPLY[*]}', not '$want'"; exit 1; }
	) >"$tmp/log" 2>&1
	result $? "completion of: $*" "$tmp/log"
}
completes "status series steps" lockstep s
completes "--server --severity" lockstep findings --se
completes "--server" lockstep steps --se
completes "auto always" lockstep status --color a
completes "warn" lockstep-agent --log-level w

# The packages of kind run bring the libraries of all programs; the sanitizers' belong to the compiler.
name='packages.txt names the package of each library'
if [ "$(. /etc/os-release && echo "$ID $VERSION_ID")" = 'debian 12' ]; then
	for library in $(objdump -p "$bin"/lockstep{,-agent,-agent-tls,-collector,-sim,-workload} | awk '$1 == "NEEDED" { print $2 }' | sort -u); do
		package=$(dpkg -S "*-linux-gnu/$library" | sed -n '1s/:.*//p')
		grep -q "^run  *$package " "$src/deploy/packages.txt" || echo "$library: $package"
	done | grep -v ': \(libc6\|libgcc-s1\|lib[a-z]*san[0-9]*\)$' >"$tmp/log"
	[ ! -s "$tmp/log" ]
	result $? "$name" "$tmp/log"
else
	skip "$name" "not Debian 12"
fi

# One version everywhere.
version=$(sed -n 's/^AC_INIT(\[lockstep\], \[\(.*\)\])$/\1/p' "$src/configure.ac")
[ "$(sed -n '1s/^lockstep (\(.*\)) .*/\1/p' "$src/deploy/debian/changelog")" = "$version" ] &&
	grep -qx "version = \"$version\"" "$src/agent/client/python/pyproject.toml" &&
	"$bin/lockstep" --version | grep -qF "$version"
result $? "version $version: configure.ac, the packages and the Python module agree"
echo "1..$n"
exit $failed
