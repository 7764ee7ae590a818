#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes without a cluster: kustomization and chart make the objects of tests/golden/kubernetes, and these fit
together. TAP on stdout.

check_kubernetes.py --update: writes the golden files (needs kubectl).
check_kubernetes.py --compare VARIANT FILE: whether a rendered FILE has the objects of VARIANT; prints what differs.
"""
import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("1..0 # SKIP python3-yaml is not installed")
    sys.exit(0)

TOP = os.environ.get("top_srcdir") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
BUILD = os.environ.get("top_builddir") or os.path.join(TOP, "build")
SOURCE = os.path.join(TOP, "deploy/kubernetes")
GOLDEN = os.path.join(TOP, "tests/golden/kubernetes")
# Of each variant: what kustomize builds, and the values that make the same of the chart.
VARIANTS = {"plain": (["overlays/plain", "parts/servicemonitor"], {"platform": "plain", "serviceMonitor": True}),
            "gke-tpu": (["overlays/gke-tpu", "parts/podmonitoring"], {"platform": "gke-tpu", "podMonitoring": True}),
            "tls": (["overlays/tls"], {"platform": "gke-tpu", "tls": True})}
count = failures = 0


def ok(condition, name, why=""):
    global count, failures
    count += 1
    failures += not condition
    print("%sok %d - %s" % ("" if condition else "not ", count, name))
    if not condition and why:
        print("# " + why.rstrip().replace("\n", "\n# "))


def skip(name, why):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, name, why))


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def documents(text):
    return [d for d in yaml.safe_load_all(text) if d]


def canonical(docs):
    """One text for the same objects: sorted, without what only makes a changed file start a rolling restart."""
    for d in docs:
        template = d.get("spec", {}).get("template", {})
        annotations = template.get("metadata", {}).get("annotations", {})
        if annotations.pop("checksum/config", None) and not annotations:
            del template["metadata"]["annotations"]
        maps = [d["metadata"]] if d["kind"] == "ConfigMap" else \
            [v["configMap"] for v in template.get("spec", {}).get("volumes", []) if "configMap" in v]
        for m in maps:
            m["name"] = re.sub(r"-[a-z0-9]{10}$", "", m["name"])
    docs.sort(key=lambda d: (d["kind"], d["metadata"]["name"]))
    return yaml.dump_all(docs, Dumper=Dumper, width=1000)


class Dumper(yaml.SafeDumper):
    """Lines as lines; no anchors."""

    def ignore_aliases(self, data):
        return True


Dumper.add_representer(str, lambda dumper, s: dumper.represent_scalar("tag:yaml.org,2002:str", s, "|" if "\n" in s else None))


def kustomize(directory):
    return subprocess.run(["kubectl", "kustomize", os.path.join(SOURCE, directory)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def evaluated(expression, values, dot):
    """What the chart's templates use of Helm's language, and no more."""
    first, *pipes = expression.split(" | ")
    function, _, path = first.rpartition(" ")
    if path == ".Release.Namespace":
        result = "lockstep"
    elif path == ".":
        result = dot
    else:
        result = values
        for key in re.fullmatch(r"\.Values((?:\.\w+)+)", path)[1][1:].split("."):
            result = result[key]
    if function:
        result = {"toYaml": yaml.safe_dump}[function](result).rstrip()
    for pipe in pipes:
        if pipe == "sha256sum":
            result = hashlib.sha256(result.encode()).hexdigest()
        else:
            pad = "\n" + " " * int(re.fullmatch(r"nindent (\d+)", pipe)[1])
            result = "".join(pad + line for line in result.split("\n"))
    return result


def templated(text, values):
    """The template with these values. Where a line is an action alone, it is if, with, else, end, or it inserts lines."""
    out, stack = [], [(True, None)]  # whether these lines are used, and what . is
    for line in text.split("\n"):
        action = re.fullmatch(r"\s*\{\{- (if|with|else|end) ?(.*?) ?\}\}", line)
        used, dot = stack[-1]
        if not action:
            if used:
                out.append(re.sub(r"\{\{ (.*?) \}\}", lambda m, d=dot: str(evaluated(m[1], values, d)), line))
        elif action[1] == "end":
            stack.pop()
        elif action[1] == "else":
            stack[-1] = (stack[-2][0] and not used, dot)
        else:
            equal = re.fullmatch(r'eq (\S+) "(.*)"', action[2])
            result = evaluated(equal[1], values, dot) == equal[2] if equal else evaluated(action[2], values, dot)
            stack.append((used and bool(result), result))
    assert len(stack) == 1, "an action has no end"
    return re.sub(r"\s*\{\{- (.*?) \}\}", lambda m: evaluated(m[1], values, None), "\n".join(out))


def chart(changes):
    directory = os.path.join(SOURCE, "chart/templates")
    values = yaml.safe_load(text_of(SOURCE, "chart/values.yaml"))
    return "\n---\n".join(templated(text_of(directory, name), {**values, **changes}) for name in sorted(os.listdir(directory)))


def differences(variant, rendered):
    """Between a rendered text and the golden file. A chart cannot make the namespace that it is installed into."""
    docs = documents(rendered)
    golden = documents(text_of(GOLDEN, variant + ".yaml"))
    if not any(d["kind"] == "Namespace" for d in docs):
        golden = [d for d in golden if d["kind"] != "Namespace"]
    return "".join(difflib.unified_diff(canonical(golden).splitlines(True), canonical(docs).splitlines(True), variant, "rendered", n=2))


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def check_program(pod, config, name):
    """The daemon accepts its file and its arguments, and knows the options that its environment names."""
    container = pod["containers"][0]
    program = os.path.join(BUILD, os.path.basename(container["command"][0]))
    with tempfile.TemporaryDirectory() as directory:
        for file, text in config.items():
            with open(os.path.join(directory, file), "w", encoding="utf-8") as f:
                f.write(text)
        environment = {e["name"]: e.get("value", "10.0.0.1") for e in container.get("env", [])}
        words = []
        for word in [*container["args"], *environment.values()]:
            words.append(re.sub(r"\$\((\w+)\)", lambda m: environment[m[1]], word))
        arguments = [w.replace("/etc/lockstep", directory) for w in words[:len(container["args"])]]
        environment = dict(zip(environment, words[len(arguments):]))
        done = subprocess.run([program, *arguments, "--check-config"], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        ok(done.returncode == 0, name + ": the daemon accepts its configuration", done.stdout)
        told = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        ok(all("--" + e[9:].lower().replace("_", "-") + " " in told for e in environment if e.startswith("LOCKSTEP_")),
           name + ": its environment names real options")


def check_objects(variant):
    docs = documents(text_of(GOLDEN, variant + ".yaml"))
    objects = {(d["kind"], d["metadata"]["name"]): d for d in docs}
    agent, collector = objects["DaemonSet", "lockstep-agent"], objects["StatefulSet", "lockstep-collector"]
    policies = [d["spec"] for d in docs if d["kind"] == "NetworkPolicy"]

    def selects(selector, workload):
        return bool(selector) and selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()

    ok(len(objects) == len(docs) and all(d["metadata"].get("namespace") == "lockstep" for d in docs if d["kind"] != "Namespace"),
       variant + ": each object once, in one namespace")
    for workload in (agent, collector):
        short = workload["metadata"]["name"]
        name = "%s: %s" % (variant, short)
        pod = workload["spec"]["template"]["spec"]
        all_of = containers(pod)
        volumes = {v["name"]: v for v in pod["volumes"]}
        claims = {c["metadata"]["name"] for c in workload["spec"].get("volumeClaimTemplates", [])}
        own = [p for p in policies if selects(p["podSelector"]["matchLabels"], workload)]
        ports = {p["name"]: p["containerPort"] for p in pod["containers"][0]["ports"]}
        service = objects["Service", short]["spec"]
        ok(selects(workload["spec"]["selector"]["matchLabels"], workload), name + " selects its own pods")
        ok(selects(service["selector"], workload) and all(ports.get(p["targetPort"]) == p["port"] for p in service["ports"]),
           name + ": its service leads to its ports")
        ok({m["name"] for c in all_of for m in c["volumeMounts"]} == set(volumes) | claims, name + ": each mount has its volume")
        ok(pod["automountServiceAccountToken"] is False and not any(d["kind"].endswith(("Role", "RoleBinding")) for d in docs),
           name + ": no right and no token of the API server")
        ok(all(c["resources"]["limits"]["memory"] and c["resources"]["requests"]["cpu"] for c in all_of),
           name + ": resources are bounded")
        ok(all(c["securityContext"]["capabilities"]["drop"] == ["ALL"] and c["securityContext"]["readOnlyRootFilesystem"] is True
               and c["securityContext"]["allowPrivilegeEscalation"] is False for c in all_of)
           and {**pod["securityContext"], **pod["containers"][0]["securityContext"]}["runAsNonRoot"] is True
           and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name + ": no privilege it does not need")
        ok(not any("google.com/tpu" in c["resources"].get(k, {}) for c in all_of for k in ("requests", "limits")),
           name + ": takes no chips")
        probes = [pod["containers"][0].get(p, {}) for p in ("livenessProbe", "readinessProbe")]
        env = {e["name"]: e.get("value") for e in pod["containers"][0]["env"]}
        scheme = {"scheme": "HTTPS"} if "LOCKSTEP_HTTP_KEYS" in env else {}
        ok([p.get("httpGet") for p in probes] == [{"path": path, "port": "http", **scheme} for path in ("/healthz", "/readyz")]
           and not any("tcpSocket" in c.get(p, {}) for c in all_of for p in ("startupProbe", "livenessProbe", "readinessProbe")),
           name + ": asked whether it lives and is ready, over HTTP")
        ok(("--insecure" in pod["containers"][0]["args"]) == (not scheme) and any({"Ingress", "Egress"} <= set(p["policyTypes"]) for p in own)
           and all(rule.get("from") for p in own for rule in p.get("ingress", [])),
           name + ": beyond loopback only behind a network policy that names who may come")
        ok({p["port"] for p in own for rule in p.get("ingress", []) for p in rule["ports"]} >= set(ports.values()),
           name + ": and that lets them reach each port")
        maps = [v["configMap"]["name"] for v in volumes.values() if "configMap" in v]
        config = objects["ConfigMap", maps[0]]["data"]
        ok(list(config) == [short[9:] + ".conf"] and all(config[f] == text_of(SOURCE, "base", f) for f in config),
           name + ": its file is the one in base/")
        check_program(pod, config, name)
    ok(objects["Service", "lockstep-collector"]["spec"]["clusterIP"] == "None" and collector["spec"]["replicas"] == 1
       and collector["spec"]["serviceName"] == "lockstep-collector", variant + ": one collector, never two, with its headless service")
    ok(selects(objects["PodDisruptionBudget", "lockstep-collector"]["spec"]["selector"]["matchLabels"], collector),
       variant + ": the budget is the collector's")
    listen = {p["name"]: p["port"] for p in objects["Service", "lockstep-collector"]["spec"]["ports"]}
    ok("\ncollector = tcp://lockstep-collector:%d\n" % listen["ingest"] in objects["ConfigMap", "lockstep-agent"]["data"]["agent.conf"],
       variant + ": agents dial the service")
    dialled = [p for d in docs if d["kind"] == "NetworkPolicy" and selects(d["spec"]["podSelector"]["matchLabels"], agent)
               for rule in d["spec"].get("egress", []) for p in rule["ports"]]
    ok({8431, listen["ingest"]} <= {p["port"] for p in dialled}, variant + ": and may reach it, and libtpu")
    pod = agent["spec"]["template"]["spec"]
    ok(pod["hostPID"] is True and "hostNetwork" not in pod, variant + ": the agent sees the processes of training pods")
    steps = [(m["mountPath"], v["hostPath"]) for c in pod["containers"] for m in c["volumeMounts"] for v in pod["volumes"]
             if m["name"] == v["name"] == "steps"]
    job = documents(text_of(SOURCE, "examples/jobset.yaml"))[0]
    train = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    ok(steps == [(train["containers"][0]["volumeMounts"][0]["mountPath"], train["volumes"][0]["hostPath"])]
       and steps[0][0] == steps[0][1]["path"] == "/run/lockstep/steps", variant + ": training pods mount the agent's steps directory, and only that")
    scrapers = [d for d in docs if d["kind"] in ("PodMonitoring", "ServiceMonitor")]
    if variant == "tls":
        for workload, secret in ((agent, "lockstep-agent-keys"), (collector, "lockstep-collector-keys")):
            pod = workload["spec"]["template"]["spec"]
            at = {e["value"] for e in pod["containers"][0]["env"] if e["name"].endswith("_KEYS")}
            volume = next(v for v in pod["volumes"] if v["name"] == "keys")["secret"]
            ok(at == {m["mountPath"] for m in pod["containers"][0]["volumeMounts"] if m["name"] == "keys"}
               and volume == {"secretName": secret, "defaultMode": 0o440} and pod["securityContext"]["fsGroup"] == 7117,
               "tls: %s: reads keys that its group may read" % workload["metadata"]["name"])
        return
    ok(len(scrapers) == 1 and all(selects(scrapers[0]["spec"]["selector"]["matchLabels"], w)
                                  and scrapers[0]["spec"]["selector"]["matchLabels"].items() <= objects["Service", w["metadata"]["name"]]["metadata"]["labels"].items()
                                  for w in (agent, collector))
       and scrapers[0]["spec"]["endpoints"][0]["port"] == "http", variant + ": Prometheus scrapes agents and collector")
    if variant == "plain":
        ok("affinity" not in pod and "tolerations" not in pod, "plain: agents go to ordinary nodes")
        return
    term = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    ok(term == [{"matchExpressions": [{"key": "cloud.google.com/gke-tpu-accelerator", "operator": "Exists"}]}]
       and {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"],
       "gke-tpu: agents go to TPU nodes, and are let in there")
    env = {e["name"]: e for e in pod["containers"][0]["env"]}
    names = list(env)
    ok(env["HOST_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.hostIP"
       and env["LOCKSTEP_PROM"]["value"] == "device-plugin=http://$(HOST_IP):2112/metrics"
       and names.index("HOST_IP") < names.index("LOCKSTEP_PROM")  # else it is not substituted
       and 2112 in {p["port"] for p in dialled}, "gke-tpu: the device plugin is asked at the node's address")


def main():
    if sys.argv[1:2] == ["--compare"]:
        diff = differences(sys.argv[2], text_of(sys.argv[3]))
        print(diff, end="")
        return diff != ""
    if sys.argv[1:2] == ["--update"]:
        os.makedirs(GOLDEN, exist_ok=True)
        for variant, (directories, _) in VARIANTS.items():
            with open(os.path.join(GOLDEN, variant + ".yaml"), "w", encoding="utf-8") as f:
                f.write(canonical(documents("\n---\n".join(map(kustomize, directories)))))
    kubectl = shutil.which("kubectl")
    for variant, (directories, values) in VARIANTS.items():
        name = variant + ": kustomize makes the golden objects"
        if kubectl:
            diff = differences(variant, "\n---\n".join(map(kustomize, directories)))
            ok(not diff, name, diff)
        else:
            skip(name, "kubectl is not installed")
        diff = differences(variant, chart(values))
        ok(not diff, variant + ": the chart makes the same objects", diff)
        check_objects(variant)
    name = "kubectl apply -k deploy/kubernetes makes what overlays/gke-tpu makes"
    if kubectl:
        ok(canonical(documents(kustomize("."))) == canonical(documents(kustomize("overlays/gke-tpu"))), name)
    else:
        skip(name, "kubectl is not installed")
    unlisted = []
    for directory, _, files in os.walk(SOURCE):
        if "kustomization.yaml" in files:
            k = yaml.safe_load(text_of(directory, "kustomization.yaml"))
            listed = set(k["resources"]) | {p["path"] for p in k.get("patches", [])} | {f for g in k.get("configMapGenerator", []) for f in g["files"]}
            unlisted += [os.path.join(directory, f) for f in set(files) - listed - {"kustomization.yaml"}]
    ok(not unlisted, "each file is used", "\n".join(unlisted))
    slices = documents(text_of(SOURCE, "examples/jobset.yaml"))[0]["spec"]["replicatedJobs"][0]
    named = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in slices["template"]["spec"]["template"]["spec"]["containers"][0]["env"]}
    label = "metadata.labels['jobset.sigs.k8s.io/%s']"
    ok(slices["replicas"] > 1 and named == {"JOBSET_NAME": label % "jobset-name", "MEGASCALE_NUM_SLICES": label % "replicatedjob-replicas",
                                            "MEGASCALE_SLICE_ID": label % "job-index"}, "the example's pods know job, slices and their own slice")
    lines = [line.split("#")[0].strip() for line in text_of(SOURCE, "examples/jobset.yaml").split("\n") if re.search(r"# \(\d\)$", line)]
    ok(len(lines) == 2 and all(line in text_of(TOP, "deploy/README.md") for line in lines), "the README shows the two lines of the example")
    print("1..%d" % count)
    return failures != 0


sys.exit(main())
