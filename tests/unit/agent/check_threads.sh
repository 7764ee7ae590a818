#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The threads of both daemons on a host of many CPUs, simulated by a preloaded sysconf: TAP on stdout.
set -u
bin=${top_builddir:-.}
tmp=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
for v in $(env | sed -n 's/^\(LOCKSTEP_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done

skip() { echo "1..0 # SKIP $1"; exit 0; }

cat >"$tmp/many.c" <<'TEXT'
#include <dlfcn.h>
#include <unistd.h>
static long many(const char *symbol, int name)
{
	long (*next)(int);
	*(void **)&next = dlsym(RTLD_NEXT, symbol);
	return name == _SC_NPROCESSORS_ONLN ? 240 : next(name);
}
long sysconf(int name) { return many("sysconf", name); }
/* What the sysconf of our programs calls. */
long __sysconf(int name) { return many("__sysconf", name); }
TEXT
cc=$(command -v cc || command -v gcc || command -v clang) || skip 'no C compiler'
"$cc" -D_GNU_SOURCE -shared -fPIC -o "$tmp/many.so" "$tmp/many.c" -ldl 2>/dev/null || skip 'cc makes no library'
# A sanitizer's runtime wants to be first and would be in the way.
if LC_ALL=C grep -aq __asan_init "$bin/lockstep-agent" || LC_ALL=C grep -aq __tsan_init "$bin/lockstep-agent"; then
	skip 'sanitized programs take no preloads'
fi

# threads PROGRAM OPTION...: how many it has once it serves; 0 if it ends before. Sets ret_threads.
threads() {
	rm -f "$tmp/port"
	LD_PRELOAD=$tmp/many.so "$@" --port-file "$tmp/port" 2>"$tmp/log" &
	pid=$!
	until [ -s "$tmp/port" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	ret_threads=$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
	kill "$pid"
	wait "$pid"
	pid=
}

# at_most N PROGRAM: the result of threads.
at_most() {
	n=$((n + 1))
	if [ "$ret_threads" -ge 2 ] && [ "$ret_threads" -le "$1" ]; then
		echo "ok $n - $2 has $ret_threads threads on 240 CPUs, at most $1"
	else
		echo "not ok $n - $2 has $ret_threads threads on 240 CPUs, at most $1"
		sed 's/^/# /' "$tmp/log"
	fi
}

n=1
printf '#include <stdio.h>\n#include <unistd.h>\nint main(void) { return printf("%%ld", sysconf(_SC_NPROCESSORS_ONLN)) < 0; }\n' >"$tmp/count.c"
"$cc" -o "$tmp/count" "$tmp/count.c"
if [ "$(LD_PRELOAD=$tmp/many.so "$tmp/count")" = 240 ]; then
	echo 'ok 1 - a program counts 240 CPUs'
else
	echo 'not ok 1 - a program counts 240 CPUs'
fi
mkdir "$tmp/steps"
threads "$bin/lockstep-collector" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 --state-dir "$tmp/c"
at_most 32 lockstep-collector
threads "$bin/lockstep-agent" --collector tcp://127.0.0.1:1 --http 127.0.0.1:0 \
	--state-dir "$tmp/a" --steps-dir "$tmp/steps"
at_most 12 lockstep-agent
echo 1..3
