#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kubernetes.sh: deploy/kubernetes, rendered by the real kustomize and the real Helm: the same objects, which decode strictly into
# the types of three Kubernetes versions. A real API server accepts them by kubectl and by Helm, its pod security holds what the
# README says of the pods, and a training job with the two lines of the example. No kubelet: no pod runs.
# Fetch: kubernetes
# Limit: 900 s
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
why=$(fetched kubernetes) || skip_all "$why"
command -v kubectl >/dev/null || skip_all "kubectl is not installed"
# In a network of its own every port is free.
if [ -z "${IN_OWN_NET:-}" ]; then
	unshare --net true 2>/dev/null || skip_all "no network namespaces here"
	IN_OWN_NET=1 exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$0" "$@"
fi
work_begin
manifests=$top/deploy/kubernetes
tools=$build/kubernetes
export KUBECONFIG=$work/kubeconfig HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm
helm() { "$tools/helm" "$@"; }

# --- rendered -------------------------------------------------------------------------------------

# rendered NAME COMMAND...: its output in $work/NAME.yaml, whose last line has an end.
# shellcheck disable=SC2317  # called by name
rendered() {
	local name=$1
	shift
	"$@" >"$work/$name.yaml" 2>"$work/$name.log" || { cat "$work/$name.log"; return 1; }
}
# shellcheck disable=SC2317
kustomized() { local part; for part; do kubectl kustomize "$manifests/$part" && echo --- || return; done; }
# shellcheck disable=SC2317
compared() { "$top/tests/unit/deploy/check_kubernetes.py" --compare "$1" "$work/$2.yaml"; }

version=1.$(awk '{ print $NF }' "$tools/versions")
note "$("$tools/kube-apiserver" --version), Helm $(helm version --short), $(kubectl version --client | tail -n 1)"
check "helm lint" helm lint --quiet "$manifests/chart"
for variant in plain:servicemonitor:platform=plain:serviceMonitor=true gke-tpu:podmonitoring:platform=gke-tpu:podMonitoring=true \
	tls::platform=gke-tpu,tls=true:; do
	IFS=: read -r variant part values value <<<"$variant"
	check "$variant: kustomize renders" rendered "kustomize-$variant" kustomized "overlays/$variant" ${part:+"parts/$part"}
	check "$variant: kustomize makes the golden objects" compared "$variant" "kustomize-$variant"
	check "$variant: Helm renders" rendered "helm-$variant" helm template lockstep "$manifests/chart" -n lockstep \
		--kube-version "$version" --set "$values${value:+,$value}"
	check "$variant: Helm makes the same objects" compared "$variant" "helm-$variant"
	check "$variant: Helm renders without its part" rendered "only-$variant" helm template lockstep "$manifests/chart" -n lockstep \
		--kube-version "$version" --set "$values"
done
for wrong in platform=gke agnet.conf=x collector.strage=1Gi image.tag= podMonitoring=maybe tls=maybe; do
	! helm template lockstep "$manifests/chart" --kube-version "$version" --set "$wrong" >"$work/log" 2>&1 && grep -q "the schema" "$work/log"
	result $? "Helm refuses the value $wrong"
done

# --- decoded --------------------------------------------------------------------------------------

# What JobSet makes of the example: a Job. And the pods that the controllers make of our objects.
kubectl kustomize "$manifests" >"$work/root.yaml"
python3 - "$manifests/examples/jobset.yaml" "$work" <<'PYTHON'
import sys

import yaml

example, work = sys.argv[1:]


def write(name, document):
    with open("%s/%s.yaml" % (work, name), "w", encoding="utf-8") as f:
        yaml.safe_dump(document, f)


with open(example, encoding="utf-8") as f:
    jobset = yaml.safe_load(f)
job = jobset["spec"]["replicatedJobs"][0]["template"]
write("job", {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": job["spec"]})
pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": job["spec"]["template"]["spec"]}
write("train", pod)
with open(work + "/root.yaml", encoding="utf-8") as f:
    for d in yaml.safe_load_all(f):
        if d["kind"] in ("DaemonSet", "StatefulSet"):
            spec = d["spec"]["template"]["spec"]
            spec["volumes"] += [{"name": c["metadata"]["name"], "emptyDir": {}} for c in d["spec"].get("volumeClaimTemplates", [])]
            write(d["metadata"]["name"], {**pod, "metadata": {"name": d["metadata"]["name"]}, "spec": spec})
PYTHON
sed 's/hostPID:/hostPid:/' "$work/root.yaml" >"$work/wrong.yaml"
for types in "$tools"/decode-*; do
	check "${types##*/decode-}: all objects decode strictly" "$types" "$work"/{root,only-plain,only-gke-tpu,only-tls,kustomize-tls,job}.yaml
	! "$types" "$work/wrong.yaml" >"$work/log" && grep -q hostPid "$work/log"
	result $? "${types##*/decode-}: a field in the wrong case is refused by name"
done

# --- applied --------------------------------------------------------------------------------------

openssl genrsa -out "$work/account.key" 2048 2>/dev/null
echo "test,admin,1,system:masters" >"$work/tokens"
run_behind "$work/etcd.log" "$tools/usr/bin/etcd" --data-dir "$work/etcd" --unsafe-no-fsync
etcd_pid=$ret_pid
run_behind "$work/apiserver.log" "$tools/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --cert-dir="$work/certificates" \
	--bind-address=127.0.0.1 --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/24 \
	--service-account-issuer=https://localhost --service-account-key-file="$work/account.key" \
	--service-account-signing-key-file="$work/account.key" --token-auth-file="$work/tokens" --authorization-mode=RBAC \
	--disable-admission-plugins=ServiceAccount
api_pid=$ret_pid
kubectl config set-cluster test --server=https://127.0.0.1:6443 --insecure-skip-tls-verify=true >/dev/null
kubectl config set-credentials admin --token=test >/dev/null
kubectl config set-context test --cluster=test --user=admin >/dev/null && kubectl config use-context test >/dev/null
# shellcheck disable=SC2317
serves() { alive "$api_pid" && [ "$(kubectl get --raw /readyz 2>&1)" = ok ]; }
check "the API server serves" until_true serves || { tail -n 5 "$work/apiserver.log" | sed 's/^/# /'; tap_end; }
note "$(kubectl version 2>/dev/null | grep Server)"

k() { kubectl --namespace lockstep "$@"; }
check "kubectl: the namespace" k apply -f "$manifests/base/namespace.yaml"
check "the API server knows ServiceMonitor" k create -f "$tools/servicemonitors.yaml"
check "and serves it" until_true k get servicemonitors
check "Helm installs" helm upgrade --install lockstep "$manifests/chart" -n lockstep --set platform=plain,serviceMonitor=true
generation() { k get daemonset lockstep-agent -o jsonpath='{.metadata.generation}'; }
before=$(generation)
check "Helm upgrades with another file" helm upgrade lockstep "$manifests/chart" -n lockstep --set platform=plain \
	--set-file "agent.conf=$top/deploy/config/agent.conf"
[ "$(generation)" -gt "$before" ]
result $? "which is a new revision of the agents"
check "Helm upgrades to TLS" helm upgrade lockstep "$manifests/chart" -n lockstep --set platform=plain,tls=true
check "Helm uninstalls" helm uninstall lockstep -n lockstep
! k get daemonsets,statefulsets,services,networkpolicies,configmaps -o name | grep -q lockstep
result $? "nothing is left of it"

check "kubectl apply -k deploy/kubernetes" k apply --validate=strict -k "$manifests"
check "overlays/tls over it" k apply --validate=strict -k "$manifests/overlays/tls"
check "and back" k apply --validate=strict -k "$manifests"
check "a second time nothing would change" k diff -k "$manifests"
check "parts/servicemonitor" k apply --validate=strict -k "$manifests/parts/servicemonitor"
! k apply --validate=strict -f "$work/wrong.yaml" >"$work/log" 2>&1 && grep -q hostPid "$work/log"
result $? "the API server refuses a field in the wrong case"

for level in baseline restricted; do
	kubectl create namespace "$level" >/dev/null && kubectl label namespace "$level" "pod-security.kubernetes.io/enforce=$level" >/dev/null
done
# admitted NAMESPACE POD: whether pod security lets this pod in.
admitted() { kubectl create --dry-run=server --namespace "$1" -f "$work/$2.yaml"; }
check "pod security: the agent's pod is let into the namespace" admitted lockstep lockstep-agent
check "pod security: the collector's pod satisfies restricted" admitted restricted lockstep-collector
for pod in lockstep-agent train; do
	! admitted baseline "$pod" >"$work/log" 2>&1 && grep -q 'violates PodSecurity.*hostPath' "$work/log"
	result $? "pod security: the pod $pod does not satisfy baseline, for its hostPath"
done
check "the job of examples/jobset.yaml" kubectl apply --validate=strict -f "$work/job.yaml"
check "kubectl delete -k deploy/kubernetes" k delete --wait=false -k "$manifests"
program_end "$api_pid" TERM
program_end "$etcd_pid" TERM
tap_end
