# shellcheck shell=bash disable=SC2034,SC2119,SC2120  # used by those who source this
# lib.sh - packages and build, for quickstart, tests/run and tests/system. Sourced by bash.
# Sets: top (the checkout), build (default $top/build). Sources demo/deployment.sh.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${LOCKSTEP_BUILD:-$top/build}
# An operator's settings must not leak into a run that chooses its own.
for _v in $(compgen -v LOCKSTEP_); do
	case $_v in
	LOCKSTEP_BUILD | LOCKSTEP_SHARED | LOCKSTEP_NO_NET) ;;
	*) unset "$_v" ;;
	esac
done
unset _v

# shellcheck source=deploy/demo/deployment.sh
. "$top/deploy/demo/deployment.sh"

# --- packages -------------------------------------------------------------------------------------

# packages_missing FILE KIND: the packages of that kind which are not installed.
packages_missing() {
	local kind package rest
	while read -r kind package rest; do
		[ "$kind" = "$2" ] || continue
		dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q ' installed$' ||
			printf '%s\n' "$package"
	done <"$1"
}

# packages_install KIND FILE: lists missing packages with their reasons and installs them; prints nothing if none is missing.
packages_install() {
	local missing package kind name rest
	local -a sudo=()
	command -v dpkg-query >/dev/null ||
		die "not a Debian system: install what $2 lists, then use --no-install"
	missing=$(packages_missing "$2" "$1")
	[ -n "$missing" ] || return 0
	say "These packages are missing and will be installed with apt-get:"
	for package in $missing; do
		while read -r kind name rest; do
			[ "$kind $name" != "$1 $package" ] || say "  $(printf '%-20s %s' "$name" "$rest")"
		done <"$2"
	done
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || die "installing needs root or sudo (or --no-install)"
		sudo=(sudo)
	fi
	work_file apt.log
	# shellcheck disable=SC2086  # one word a package
	if ! {
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
			apt-get -q install -y --no-install-recommends $missing
	} </dev/null >"$ret_file" 2>&1; then
		tail -n 15 "$ret_file" >&2
		die "apt-get failed (above); install by hand, or try again"
	fi
}

# tools_unpack KIND FILE DIR: fetches the programs of that kind (in FILE, as PACKAGE/PATH), unpacks them into DIR without
# installing their packages, and extends PATH. Sets ret_missing to the names of those that cannot be fetched.
tools_unpack() {
	local kind tool rest
	ret_missing=''
	while read -r kind tool rest; do
		[ "$kind" = "$1" ] || continue
		PATH=$PATH:$(dirname "$3/${tool#*/}")
		! command -v "${tool##*/}" >/dev/null || continue
		say "Fetching ${tool##*/} ($rest) from package ${tool%%/*}, into $3."
		work_file "${tool%%/*}"
		mkdir -p "$3" "$ret_file"
		chmod a+rx "$work" && chmod a+rwx "$ret_file" # apt fetches as a user of its own
		(cd "$ret_file" && apt-get -q download "${tool%%/*}" && dpkg-deb -x ./*.deb "$3") \
			</dev/null >"$ret_file.log" 2>&1 || ret_missing+=${ret_missing:+ }${tool##*/}
	done <"$2"
}

# --- build ----------------------------------------------------------------------------------------

# build_tree DIR [CONFIGURE_ARGUMENT]...: configures DIR if needed, and builds it; DIR/build.log.
build_tree() {
	local dir=$1 tool
	shift
	for tool in autoreconf make pkg-config protoc-c; do
		command -v "$tool" >/dev/null || die "$tool not found: leave out --no-install"
	done
	mkdir -p "$dir" || die "cannot create $dir"
	if ! {
		if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
			(cd "$top" && autoreconf -i)
		fi &&
		if [ ! -f "$dir/Makefile" ] || [ "$top/configure" -nt "$dir/config.status" ] ||
			[ "$*" != "$(cat "$dir/.configured-with" 2>/dev/null)" ]; then
			(cd "$dir" && "$top/configure" -q "$@") && printf '%s' "$*" >"$dir/.configured-with"
		fi &&
		make -C "$dir" -j"$(nproc)" all
	} >"$dir/build.log" 2>&1; then
		tail -n 25 "$dir/build.log" >&2
		die "the build failed (above)"
	fi
}

