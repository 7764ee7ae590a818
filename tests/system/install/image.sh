#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# image.sh: deploy/Containerfile builds the image, on a bare Debian 12 for debian:12. Its programs run as the pods of
# deploy/kubernetes/base, with the arguments, mounts, user, capabilities and read-only root of the manifests, and find the slow
# rank of a job. No kubelet: podman and runc start the containers.
# Fetch: image
# Limit: 1800 s
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
why=$(fetched image) || skip_all "$why"
[ -z "${LOCKSTEP_NO_NET:-}" ] || skip_all "the image takes packages from Debian's mirror, and LOCKSTEP_NO_NET is set"
for tool in podman runc curl; do
	command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done
python3 -c 'import yaml' 2>/dev/null || skip_all "python3-yaml is not installed"
work_begin
store=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-image.XXXXXX") || die "cannot create a temporary directory"
podman() {
	command podman --root "$store/root" --runroot "$store/run" --tmpdir "$store/tmp" --storage-driver vfs --cgroup-manager cgroupfs \
		--runtime runc "$@"
}
# shellcheck disable=SC2317  # called from a trap
image_end() {
	local status=$?
	for daemon in agent collector; do
		podman logs "$daemon" >"$work/$daemon.log" 2>&1
		podman rm --force "$daemon" >/dev/null 2>&1
	done
	podman rm --all --force >/dev/null 2>&1
	rm -rf "$store"
	(exit "$status")
	system_end
}
trap image_end EXIT

base() { tar -C "$build/roots/image" --exclude=./packages -c . | podman import -q - docker.io/library/debian:12; }
built() { podman build -q --pull-never --isolation chroot -f "$top/deploy/Containerfile" -t lockstep "$top" >"$work/image.log" 2>&1 || { tail -n 20 "$work/image.log"; return 1; }; }
check "a clean root stands for debian:12" base || tap_end
start=$SECONDS
check "the image is built" built || tap_end
note "$((SECONDS - start)) s, $(podman image inspect -f '{{.Size}}' lockstep) bytes"

# $work/pod/CONTAINER: what podman needs to run it as its manifest says, each word with a NUL. Volumes that the pods write are in
# $work/volumes/DAEMON; the collector's are its group's, which the kubelet sees to.
mkdir -p "$work/pod"
python3 - "$top/deploy/kubernetes/base" "$work" <<'PYTHON'
import os
import sys

import yaml

base, work = sys.argv[1:]


def words(daemon, pod, container):
    security = {**pod["securityContext"], **container["securityContext"]}
    yield "--user=%d:%d" % (security["runAsUser"], security.get("runAsGroup", 0))
    if security["readOnlyRootFilesystem"]:
        yield from ("--read-only", "--read-only-tmpfs=false")
    if not security["allowPrivilegeEscalation"]:
        yield "--security-opt=no-new-privileges"
    for change in "drop", "add":
        yield from ("--cap-%s=%s" % (change, name) for name in security["capabilities"].get(change, ()))
    if pod.get("hostPID"):
        yield "--pid=host"
    for mount in container["volumeMounts"]:
        source = {"config": base, "sys": "/sys", "dev": "/dev"}.get(mount["name"])
        if not source:
            source = "%s/volumes/%s/%s" % (work, daemon, mount["name"])
            os.makedirs(source, exist_ok=True)
            if "fsGroup" in security:
                os.chown(source, -1, security["fsGroup"])
                os.chmod(source, 0o2775)
        yield "--volume=%s:%s%s" % (source, mount["mountPath"], ":ro" if mount.get("readOnly") else "")
    if daemon == "agent":
        yield "--env=LOCKSTEP_HOST_NAME=node"
    yield from ("--entrypoint=" + container["command"][0], "lockstep", *container["command"][1:])
    yield from (a.replace("$(NAMESPACE)", "lockstep") for a in container["args"])


for daemon in "agent", "collector":
    with open("%s/%s.yaml" % (base, daemon), encoding="utf-8") as f:
        pods = [d["spec"]["template"]["spec"] for d in yaml.safe_load_all(f) if "template" in d["spec"]]
    for container in pods[0].get("initContainers", []) + pods[0]["containers"]:
        with open("%s/pod/%s" % (work, container["name"]), "w", encoding="utf-8") as f:
            f.writelines(word + "\0" for word in words(daemon, pods[0], container))
PYTHON

echo 127.0.0.1 localhost lockstep-collector >"$work/hosts"
# contained CONTAINER OPTION...
contained() {
	local -a words
	mapfile -d '' -t words <"$work/pod/$1"
	podman run --name "$1" --volume "$work/hosts:/etc/hosts:ro" --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "${@:2}" "${words[@]}"
}
# at_collector COMMAND...: where the ports are, as the kubelet's probes come.
at_collector() { nsenter -t "$(podman inspect -f '{{.State.Pid}}' collector)" -n "$@"; }
ready() { [ "$(at_collector curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$1/readyz")" = 200 ]; }
check "the collector starts" contained collector -d --network=none
check "the agent's directories are made" contained directories --network=none
check "the agent starts" contained agent -d --network=container:collector
check "the collector is ready" until_true ready 7118
check "the agent is ready" until_true ready 7119
for daemon in collector agent; do
	pid=$(podman inspect -f '{{.State.Pid}}' "$daemon")
	[ "$(awk '/^(Uid|Gid|CapPrm|CapBnd|NoNewPrivs):/ { printf "%s ", $2 }' "/proc/$pid/status")" = "7117 7117 0000000000000000 0000000000000000 1 " ]
	result $? "the $daemon has a user of its own and no privilege"
	! podman exec "$daemon" sh -c ': >/usr/x || : >/var/lib/x || : >/x' >"$work/written" 2>&1 && grep -q "Read-only" "$work/written"
	result $? "its root is read-only"
done
run_behind "$work/job.log" env PYTHONPATH="$top/agent/client/python" LOCKSTEP_STEPS_DIR="$work/volumes/agent/steps" \
	python3 -B "$top/tests/system/install/job.py"
found() { podman exec collector lockstep findings --job train -o json | python3 -c '
import json, sys
sys.exit(0 if any((f.get("subject") or {}).get("rank") == 3 for f in json.load(sys.stdin)["items"]) else 1)'; }
start=$SECONDS
check "the slow rank is found" until_true found
note "$((SECONDS - start)) s after the job began"
for daemon in agent collector; do
	check "the $daemon stops" podman stop -t 30 "$daemon"
	[ "$(podman inspect -f '{{.State.ExitCode}}' "$daemon")" = 0 ]
	result $? "with status 0"
done
program_end "$ret_pid" TERM
tap_end
