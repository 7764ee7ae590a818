#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh: the Debian packages are built and clean, and install in a clean root that systemd boots: with one line of
# configuration the services find the slow rank of a job that marks its steps with the packaged Python module. Stop, restart,
# reload, watchdog, an upgrade while they run, removal and purge.
# Fetch: service
# Limit: 900 s
# On a leash: what runs in the box ends with this script, however that ends.
[ "${1:-}" = --leashed ] || exec python3 -B "$(dirname "$0")/../leash.py" "$0" --leashed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
work_begin
root=$work/root
out=$work/packages
box=lockstep-$$
leader=''

why=$(fetched service) || skip_all "$why"
[ "$(id -u)" -eq 0 ] || skip_all "a clean root needs root"

check "packages, wheel and static agent are built" "$top/deploy/package" "$out" || tap_end
check "lintian finds nothing" lintian --fail-on error,warning --suppress-tags bad-distribution-in-changes-file "$out"/lockstep_*.changes
check "the wheel and the sdist install without a compiler or a network" env CC=false sh -c '
	for file in "$1"/lockstep-*.whl "$1"/lockstep-[0-9]*.tar.gz; do
		python3 -m venv "$2/venv" && "$2/venv/bin/pip" install -q --no-index "$file" &&
			(cd / && "$2/venv/bin/python" -c "import lockstep") && rm -rf "$2/venv" || exit 1
	done' sh "$out" "$work"

cp -a "$build/roots/service" "$root" && mkdir "$root/debs" && cp "$out"/*.deb "$root/debs" || die "cannot make a root"

# in_box COMMAND...: in the root, whether it is booted or not.
in_box() {
	if [ -n "$leader" ]; then
		nsenter -t "$leader" -a -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
	else
		systemd-nspawn -q -D "$root" --register=no --keep-unit --private-network --setenv=DEBIAN_FRONTEND=noninteractive "$@"
	fi
}
apt() { in_box env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"; }
files() { (cd "$out" && for name; do printf '/debs/%s\n' "$name"_*.deb; done); }

mapfile -t set < <(files lockstep lockstep-agent lockstep-collector lockstep-demo liblockstep-dev python3-lockstep)
check "they install where no systemd runs" apt install "${set[@]}"
in_box sh -c 'echo LOCKSTEP_COLLECTOR=tcp://127.0.0.1:7117 >>/etc/default/lockstep-agent'

# What the box prints goes to a log; its first process is the child of systemd-nspawn.
boot() {
	run_behind "$work/boot.log" systemd-nspawn -q -b -D "$root" --register=no --keep-unit --private-network --machine="$box" --console=pipe
	box_pid=$ret_pid
	until_true pgrep -P "$box_pid" >/dev/null || return
	leader=$(pgrep -P "$box_pid" | head -n 1)
	until_true active default.target
}
# shellcheck disable=SC2317  # called by name
not_alive() { ! kill -0 "$1" 2>/dev/null; }
active() { [ "$(in_box systemctl is-active "$1" 2>&1)" = active ]; }
boot >"$work/booted" 2>&1 || {
	tail -n 3 "$work/boot.log" | sed 's/^/# /'
	skip "the services" "systemd does not boot in a container here"
	tap_end
}
check "the collector is up from its package" until_true active lockstep-collector
check "the agent is up from its package" until_true active lockstep-agent

# systemd-nspawn puts a boot id of its own over the kernel's, which a service with protected tunables does not see.
in_box umount /proc/sys/kernel/random/boot_id
cp "$top/tests/system/install/job.py" "$root/job.py"
run_behind "$work/job.log" nsenter -t "$leader" -a -- python3 /job.py
job_pid=$ret_pid
found() { in_box lockstep findings --job train -o json | python3 -c '
import json, sys
sys.exit(0 if any((f.get("subject") or {}).get("rank") == 3 for f in json.load(sys.stdin)["items"]) else 1)'; }
start=$SECONDS
check "the slow rank is found" until_true found
note "$((SECONDS - start)) s after the job began"

stored() { in_box lockstep jobs -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["step"])'; }
main_pid() { in_box systemctl show -P MainPID "$1"; }
check "the collector stops" in_box systemctl stop lockstep-collector
check "the agent goes on without it" active lockstep-agent
check "the collector starts again" in_box systemctl start lockstep-collector
before=$(main_pid lockstep-collector)
check "the finding is still there" until_true found
for d in agent collector; do
	check "lockstep-$d reloads its configuration" in_box systemctl reload "lockstep-$d"
done
[ "$(main_pid lockstep-collector)" = "$before" ]
result $? "a reload is no restart"

[ "$before" -gt 1 ] && in_box kill -STOP "$before"
restarted() { ! in_box test "$(main_pid lockstep-collector)" = "$before" && active lockstep-collector; }
check "the watchdog ends a collector that stands still" until_true restarted

pid=$(main_pid lockstep-agent)
check "an upgrade while they run" apt install --reinstall "${set[@]}"
again() { [ "$(main_pid lockstep-agent)" != "$pid" ] && active lockstep-agent && active lockstep-collector; }
check "the services run again after it" until_true again
step=$(stored)
later() { [ "$(stored)" -gt "$step" ]; }
check "steps arrive after the upgrade" until_true later
in_box grep -q '^LOCKSTEP_COLLECTOR=' /etc/default/lockstep-agent
result $? "the operator's line is kept"
check "the static agent replaces the other" apt install "$(files lockstep-agent-static)"
check "it runs" until_true active lockstep-agent
check "everything is purged" apt purge lockstep lockstep-agent lockstep-agent-static lockstep-collector lockstep-demo liblockstep-dev python3-lockstep
static=$(files lockstep-agent-static)
cp "$top/deploy/tpu-vm/startup.sh" "$root/startup.sh"
cat >"$root/metadata.py" <<'PYTHON'
"""A metadata server: attributes from files named in the command line as NAME=VALUE."""
import http.server
import sys

VALUES = dict(a.split("=", 1) for a in sys.argv[1:])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        value = VALUES.get(self.path.rpartition("/")[2])
        self.send_response(404 if value is None or self.headers.get("Metadata-Flavor") != "Google" else 200)
        self.end_headers()
        self.wfile.write((value or "").encode())


http.server.HTTPServer(("127.0.0.1", 8099), Handler).serve_forever()
PYTHON
run_behind "$work/metadata.log" nsenter -t "$leader" -a -- python3 /metadata.py "lockstep-package=$static" lockstep-collector=tcp://127.0.0.1:7117
metadata_pid=$ret_pid
startup() { in_box env LOCKSTEP_METADATA=http://127.0.0.1:8099 /startup.sh; }
check "the start-up script of a TPU VM installs the agent" until_true startup
check "it runs" active lockstep-agent
in_box grep -qx LOCKSTEP_COLLECTOR=tcp://127.0.0.1:7117 /etc/default/lockstep-agent
result $? "it knows its collector"
pid=$(main_pid lockstep-agent)
check "the script runs again at the next boot" startup
[ "$(main_pid lockstep-agent)" = "$pid" ]
result $? "and changes nothing"
check "the static agent is purged" apt purge lockstep-agent-static
left=$(in_box find /etc /usr /lib /var/lib -name '*lockstep*' ! -path '/var/lib/dpkg/*' ! -path '/var/lib/systemd/*')
[ -z "$left" ]
result $? "nothing is left ${left//$'\n'/ }"
program_end "$job_pid" TERM
program_end "$metadata_pid" TERM
in_box systemctl poweroff
check "the system goes down" until_true not_alive "$box_pid"
program_end "$box_pid" TERM
tap_end
