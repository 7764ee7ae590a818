#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Structure of deploy/kubernetes, without a cluster: TAP on stdout."""
import os
import sys

TOP = os.environ.get("top_srcdir", ".")
DIRECTORY = os.path.join(TOP, "deploy", "kubernetes")
try:
    import yaml
except ImportError:
    print("1..0 # SKIP python3-yaml is not installed")
    sys.exit(0)

count = failures = 0


def ok(condition, name):
    global count, failures
    count += 1
    failures += not condition
    print("%sok %d - %s" % ("" if condition else "not ", count, name))


def load(name):
    with open(os.path.join(DIRECTORY, name), encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


kustomization = load("kustomization.yaml")[0]
objects = {(d["kind"], d["metadata"]["name"]): d
           for name in kustomization["resources"] for d in load(name)}
agent = objects.get(("DaemonSet", "lockstep-agent"))
collector = objects.get(("StatefulSet", "lockstep-collector"))
service = objects.get(("Service", "lockstep-collector"))
policies = [d for (kind, _), d in objects.items() if kind == "NetworkPolicy"]
budget = objects.get(("PodDisruptionBudget", "lockstep-collector"))
configs = {g["name"]: g["files"] for g in kustomization["configMapGenerator"]}


def pod(workload):
    return workload["spec"]["template"]["spec"]


def labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def selects(selector, workload):
    return selector.items() <= labels(workload).items()


def volumes(workload):
    claims = workload["spec"].get("volumeClaimTemplates", [])
    return {v["name"] for v in pod(workload)["volumes"]} | {c["metadata"]["name"] for c in claims}


def containers(workload):
    return pod(workload).get("initContainers", []) + pod(workload)["containers"]


ok(("Namespace", kustomization["namespace"]) in objects, "the namespace is among the resources")
ok(agent and collector and service and budget and len(policies) == 2, "every object is there")
listed = set(kustomization["resources"]) | {"kustomization.yaml"}
ok({f for f in os.listdir(DIRECTORY) if f.endswith(".yaml")} == listed, "every file is a resource")
ok(all(os.path.isfile(os.path.join(DIRECTORY, f)) for fs in configs.values() for f in fs),
   "configuration files of the config maps exist")
for workload in (agent, collector):
    name = workload["metadata"]["name"]
    ok(selects(workload["spec"]["selector"]["matchLabels"], workload), name + ": selects its own pods")
    ok({m["name"] for c in containers(workload) for m in c["volumeMounts"]} <= volumes(workload),
       name + ": every mount has its volume")
    ok(all(v["configMap"]["name"] in configs for v in pod(workload)["volumes"] if "configMap" in v),
       name + ": every config map is generated")
    ok(all(i["name"] in {c["image"] for c in containers(workload)} for i in kustomization["images"]),
       name + ": its image is the one kustomize renames")
    ok(all(c["resources"]["limits"]["memory"] and c["resources"]["requests"]["cpu"]
           for c in containers(workload)), name + ": resources are bounded")
    ok(all(c["securityContext"]["capabilities"]["drop"] == ["ALL"]
           and c["securityContext"]["readOnlyRootFilesystem"] is True
           and c["securityContext"]["allowPrivilegeEscalation"] is False
           for c in containers(workload)), name + ": no privilege it does not need")
    ok(not any("google.com/tpu" in c["resources"].get(k, {}) for c in containers(workload)
               for k in ("requests", "limits")), name + ": takes no chips")
    ok(not any("tcpSocket" in c.get(p, {}) for c in containers(workload)
               for p in ("startupProbe", "livenessProbe", "readinessProbe")),
       name + ": no bare TCP probe")
ports = {p["name"]: p["containerPort"] for p in pod(collector)["containers"][0]["ports"]}
ok(all(ports.get(p["targetPort"]) == p["port"] for p in service["spec"]["ports"]),
   "the service leads to the collector's ports")
ok(selects(service["spec"]["selector"], collector), "the service selects the collector")
ok(collector["spec"]["serviceName"] == service["metadata"]["name"]
   and service["spec"]["clusterIP"] == "None", "the stateful set has its headless service")
ok(collector["spec"]["replicas"] == 1, "one collector, never two")
ok("--insecure" in pod(collector)["containers"][0]["args"], "beyond loopback only with --insecure")
ok(any(selects(p["spec"]["podSelector"]["matchLabels"], collector)
       and {"Ingress", "Egress"} <= set(p["spec"]["policyTypes"]) for p in policies),
   "and then a network policy stands before it")
ok(selects(budget["spec"]["selector"]["matchLabels"], collector), "the budget is the collector's")
term = pod(agent)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
ok(any(e["key"] == "cloud.google.com/gke-tpu-accelerator" for t in term["nodeSelectorTerms"]
       for e in t["matchExpressions"]), "agents go to TPU nodes")
ok(any(t["key"] == "google.com/tpu" for t in pod(agent)["tolerations"]), "and are let in there")
container = pod(agent)["containers"][0]
served = {p["name"]: p["containerPort"] for p in container["ports"]}
ok(container.get("livenessProbe", {}).get("httpGet") == {"path": "/healthz", "port": "http"},
   "the agent is asked whether it lives")
ok(container.get("readinessProbe", {}).get("httpGet") == {"path": "/readyz", "port": "http"},
   "and whether it is ready")
ok("--insecure" in container["args"] and any(
    selects(p["spec"]["podSelector"]["matchLabels"], agent)
    and all(r.get("from") for r in p["spec"]["ingress"]) for p in policies),
   "beyond loopback the agent, too, stands behind a network policy")
with open(os.path.join(DIRECTORY, "agent.conf"), encoding="utf-8") as f:
    ok("http = 0.0.0.0:%d" % served["http"] in f.read(), "the agent serves where its probes ask")
with open(os.path.join(DIRECTORY, "agent.conf"), encoding="utf-8") as f:
    ok("tcp://%s.%s.svc:%d" % (service["metadata"]["name"], kustomization["namespace"],
                               ports["ingest"]) in f.read(), "agents dial the service")
ok(pod(agent)["hostPID"] is True, "the agent sees the namespaces of training pods")
env = {e["name"]: e for e in container["env"]}
names = list(env)
ok(env["HOST_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.hostIP"
   and env["LOCKSTEP_PROM"]["value"] == "device-plugin=http://$(HOST_IP):2112/metrics"
   and names.index("HOST_IP") < names.index("LOCKSTEP_PROM"),  # else it is not substituted
   "the node's own pages are asked at the node's address")
egress = [e for p in policies if selects(p["spec"]["podSelector"]["matchLabels"], agent)
          for e in p["spec"]["egress"]]
ok({8431, 2112} <= {p["port"] for e in egress for p in e["ports"]},
   "and the network policy lets it ask both")
print("1..%d" % count)
sys.exit(failures != 0)
