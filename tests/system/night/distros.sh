#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# distros.sh [--check]: the release tarball builds in clean roots of Debian 11, 12 and 13. Agents and collectors of
# different roots speak with each other. The static agent of Debian 12 runs in all three roots and resolves names.
# `make check` runs in the root of Debian 11, the stand-in for Ubuntu 22.04; with --check in each root.
# Fetch: bullseye bookworm trixie
# Limit: 900 s
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
releases=(bullseye bookworm trixie)
static_release=bookworm
full=
case ${1:-} in
'') ;;
--check) full=1 ;;
*) die "unknown argument $1 (--check: also make check in each root)" ;;
esac

# The roots stay for the next run, without what was built there. Mounts are private to each command (in_root).
roots=$build/roots
distros_end() {
	local status=$? release
	stop_all
	for release in "${releases[@]}"; do
		rm -rf "$roots/$release/src"
		find "$roots/$release/tmp" -mindepth 1 -delete 2>/dev/null
	done
	rm -rf "${own:?}"
	(exit "$status")
	system_end
}
work_begin
own=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-distros.XXXXXX") || die "cannot create a temporary directory"
chmod 755 "$own"
trap distros_end EXIT
chmod 755 "$work"

# in_root RELEASE COMMAND...: runs the command in this root, with $work at its own path, and with a compiler cache that
# outlives the root; the shell becomes the command.
ccache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-tests/ccache
cat >"$own/in_root" <<SHELL
#!/bin/sh
root=$roots/\$1
mkdir -p "\$root/ccache" "$ccache/\$1"
export CCACHE_DIR=/ccache PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin
exec unshare --mount sh -c '
	mount --bind "$ccache/\$1" "\$0/ccache" && shift &&
	mount -t proc proc "\$0/proc" && mount -t sysfs -o ro sysfs "\$0/sys" &&
	mount --bind "$work" "\$0$work" && exec chroot "\$0" "\$@"' "\$root" "\$@"
SHELL
chmod +x "$own/in_root"
in_root() { "$own/in_root" "$@"; }

# root_fill RELEASE: the release tarball in its clean root.
# shellcheck disable=SC2317  # called by name
root_fill() {
	rm -rf "$roots/$1/src"
	mkdir -p "$roots/$1/src" "$roots/$1$work"
	tar -xzf "$own"/lockstep-*.tar.gz -C "$roots/$1/src" --strip-components=1
}

# root_build RELEASE DIRECTORY TARGET [CONFIGURE_ARGUMENT]...
# shellcheck disable=SC2317,SC2016  # called by name; expanded by the other shell
root_build() {
	local release=$1
	shift
	in_root "$release" sh -c 'mkdir "/src/$1" && cd "/src/$1" && target=$2 && shift 2 &&
		../configure -q --enable-werror "$@" && make -s V=0 -j"$(nproc)" "$target"' sh "$@" \
		>"$work/build-$release.log" 2>&1 || { tail -n 25 "$work/build-$release.log"; return 1; }
}

# root_check RELEASE: make check, with one choice of random numbers; prints what was counted.
# shellcheck disable=SC2317  # called by name
root_check() {
	local status
	in_root "$1" sh -c 'cd /src/build && make -s -j"$(nproc)" -k CPPFLAGS=-DLS_TEST_FEW check' >"$work/check-$1.log" 2>&1
	status=$?
	grep -E '^(# (TOTAL|PASS|SKIP|FAIL|ERROR):|FAIL:|ERROR:)' "$work/check-$1.log"
	return "$status"
}

# programs_of NAME RELEASE DIRECTORY: daemons of this root, for agent_start and collector_start.
programs_of() {
	local program
	mkdir -p "$own/bin/$1"
	for program in lockstep-agent lockstep-collector; do
		printf '#!/bin/sh\nexec "%s" "%s" "/src/%s/%s" "$@"\n' "$own/in_root" "$2" "$3" "$program" \
			>"$own/bin/$1/$program"
		chmod +x "$own/bin/$1/$program"
	done
}

rm -f "$build"/lockstep-*.tar.gz # of another version
make -C "$build" dist >"$work/dist.log" 2>&1 || { tail -n 25 "$work/dist.log"; die "make dist failed"; }
mv "$build"/lockstep-*.tar.gz "$own" || die "make dist made no tarball"

usable=()
for release in "${releases[@]}"; do
	why=$(fetched "$release") || {
		[ "$release" != bullseye ] || why="Ubuntu 22.04 has no stand-in today: $why"
		skip "$release: a clean root" "$why"
		continue
	}
	check "$release: a clean root" root_fill "$release" || continue
	check "$release: it builds without a warning" root_build "$release" build all || continue
	usable+=("$release")
	programs_of "$release" "$release" build
	[ -z "$full" ] && [ "$release" != bullseye ] || check "$release: make check" root_check "$release"
done
[ "${#usable[@]}" -gt 0 ] || tap_end

# The static agent resolves names with this server: it has an address for every name.
cat >"$work/dns.py" <<'PYTHON'
import socket
import sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], file=open(sys.argv[1], "w"), flush=True)
while True:
    query, peer = s.recvfrom(512)
    end = query.index(b"\0", 12) + 5
    a = query[end - 4:end] == b"\0\1\0\1"
    s.sendto(query[:2] + b"\x81\x80\0\1" + (b"\0\1" if a else b"\0\0") + b"\0\0\0\0" + query[12:end] +
             (b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if a else b""), peer)
PYTHON
static=()
if [[ " ${usable[*]} " = *" $static_release "* ]]; then
	if check "$static_release: the static agent builds" \
		root_build "$static_release" static lockstep-agent --enable-static-agent; then
		agent=$roots/$static_release/src/static/lockstep-agent
		strip "$agent"
		readelf -l "$agent" >"$work/elf"
		! grep -q INTERP "$work/elf"
		result $? "the static agent ($(stat -c %s "$agent") bytes) needs no library"
		run_behind "$work/dns.log" python3 "$work/dns.py" "$work/dns.port"
		dns_pid=$ret_pid
		until [ -s "$work/dns.port" ]; do sleep 0.1; done
		static=("${usable[@]}")
	fi
fi
for release in "${static[@]}"; do
	[ "$release" = "$static_release" ] || install -D "$agent" "$roots/$release/src/static/lockstep-agent"
	programs_of "static-$release" "$release" static
	echo "nameserver 127.0.0.1:$(cat "$work/dns.port")" >"$roots/$release/etc/resolv.conf"
done

# One collector at a time, and an agent of every root: one built there, and the static one.
for collector in "${usable[@]}"; do
	ingest_port=0
	http_port=0
	daemons=$own/bin/$collector
	collector_start
	n=0
	for release in "${usable[@]}"; do
		daemons=$own/bin/$release
		agent_start $((n++))
	done
	for release in "${static[@]}"; do
		daemons=$own/bin/static-$release
		agent_start $((n++)) --collector "tcp://collector.lockstep.test:$ingest_port"
	done
	workload_start --ranks "$n" --steps 0
	check "agents of ${usable[*]} (and ${#static[@]} static) report steps to a collector of $collector" step_wait 20
	lockstep hosts -o json >"$work/hosts.json"
	check "it knows all $n hosts" python3 -c '
import json, sys
hosts = {h["host"] for h in json.load(open(sys.argv[1]))["items"]}
print(*sorted(hosts))
sys.exit(len(hosts) != int(sys.argv[2]))' "$work/hosts.json" "$n"
	for pid in "${agent_pids[@]}" "$workload_pid"; do program_end "$pid" TERM; done
	program_end "$collector_pid" TERM
	agent_pids=()
	rm -rf "$work/state" "$work/steps"
done
[ "${#static[@]}" -eq 0 ] || program_end "$dns_pid" TERM # it has no other end
tap_end
