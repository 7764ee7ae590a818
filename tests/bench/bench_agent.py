#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an agent uses, beside those of others, in one and the same minute on one machine.

Each line is "name value unit"; BENCH_SECONDS is the length of the run (60). BENCH_STATIC=0: without the static agent, whose
build takes a minute or more.

agent_cpu_ratio          lockstep-agent at 1 Hz, connected, a worker that marks a step a second, and four
                         chips of a libtpu that Debian's gRPC serves (fake_tpu.py; skipped without)
agent_rss_bytes          its resident memory at the end
agent_threads            its threads
agent_file_bytes         its program without symbols
static_agent_*           the same of an agent of ./configure --enable-static-agent, built for this bench, with the same
                         chips but without a worker (skipped without static libraries)
tls_agent_*              the same of an agent that uses TLS, with the same chips and worker
agent_series             series it has, of these of chips, and how many had a value at the end
node_exporter_*          prometheus-node-exporter, scraped once a second
collectd_*               collectd at an interval of a second, sending to a socket here
..._ratio_to_agent       their CPU time over that of the agent
machine_busy_ratio       all CPUs of the machine, so that one knows what else was going on
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_lib as lib  # noqa: E402  pylint: disable=wrong-import-position

sys.path.insert(0, os.path.join(lib.TOP, "agent", "client", "python"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "60"))
SETTLE = 5

COLLECTD = """
Interval 1
BaseDir "%(work)s"
PIDFile "%(work)s/collectd.pid"
TypesDB "%(types)s"
PluginDir "%(plugins)s"
<LoadPlugin network>
</LoadPlugin>
<Plugin network>
  Server "127.0.0.1" "%(port)d"
</Plugin>
%(load)s
"""
COLLECTD_PLUGINS = ["contextswitch", "cpu", "disk", "interface", "load", "memory", "protocols", "swap",
                    "vmem"]


def machine():
    """Busy and all CPU time so far, in ticks."""
    with open("/proc/stat", encoding="ascii") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return sum(v) - v[3] - v[4], sum(v)


def mark_steps(stop):
    """A training process, as far as the agent can tell."""
    import lockstep  # pylint: disable=import-outside-toplevel,import-error
    step = 0
    while not stop.wait(1):
        with lockstep.step(step):
            lockstep.phase("compute")
        step += 1


def node_exporter():
    """Starts it and scrapes it once a second, for ever; its process or None."""
    program = lib.find_program("prometheus-node-exporter")
    if program is None:
        lib.skip("node_exporter", "not found: tests/fetch bench unpacks it below build/tools")
        return None
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    p = lib.start(program, "--web.listen-address=127.0.0.1:%d" % port)

    def scrape():
        while True:
            time.sleep(1)
            try:
                lib.get(port, "/metrics")
            except OSError:
                if p.poll() is not None:
                    return
    threading.Thread(target=scrape, daemon=True).start()
    return p


def collectd():
    """Starts it; its process or None."""
    program = lib.find_program("collectd")
    if program is None:
        lib.skip("collectd", "not found: tests/fetch bench unpacks it below build/tools")
        return None
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(program))))
    plugins = os.path.join(root, "usr/lib/collectd")
    here = [x for x in COLLECTD_PLUGINS if os.path.exists(os.path.join(plugins, x + ".so"))]
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("127.0.0.1", 0))

    def drain():
        while True:
            sink.recv(65536)
    threading.Thread(target=drain, daemon=True).start()
    config = os.path.join(lib.work, "collectd.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write(COLLECTD % {"work": lib.work, "types": os.path.join(root, "usr/share/collectd/types.db"),
                            "plugins": plugins, "port": sink.getsockname()[1],
                            "load": "\n".join("LoadPlugin " + x for x in here)})
    p = lib.start(program, "-f", "-C", config)
    time.sleep(1)
    if p.poll() is not None:
        lib.skip("collectd", "does not start here")
        return None
    return p


def libtpu():
    """A gRPC server with four chips in a process of its own; options that lead the agent to it."""
    python = next((p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p) and
                   subprocess.call([p, "-c", "import grpc"], stderr=subprocess.DEVNULL) == 0), None)
    if python is None:
        lib.skip("agent_cpu_ratio with chips", "no python3-grpcio: the agent reads the host alone")
        return ["--tpu-ports", ""]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    lib.start(python, "-B", os.path.join(lib.TOP, "tests/support/fake_tpu.py"), str(port))
    time.sleep(2)
    return ["--tpu-ports", str(port)]


def static_agent(ingest, options):
    """Builds one and starts it; its process or None."""
    build, steps = os.path.join(lib.work, "static"), os.path.join(lib.work, "static-steps")
    os.mkdir(build)
    os.mkdir(steps)
    for command in ([os.path.abspath(os.path.join(lib.TOP, "configure")), "-q", "--enable-static-agent"],
                    ["make", "-s", "lockstep-agent"]):
        done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lib.skip("static_agent", "does not build here: " + (done.stderr.splitlines() or ["?"])[-1])
            return None
    return lib.agent(ingest, steps, *options, build=build, name="static")[0]


def tls_agent(steps, options):
    """An agent like ours, with TLS to a collector of its own; its process."""
    keys = lib.keys("keys", ["tls"])
    return lib.agent(lib.collector_in("collector-tls", *keys)[2]["ingest"], steps, *options, *keys, name="tls")[0]


def file_bytes(p):
    """The size of this process's program without symbols."""
    path = os.path.join(lib.work, "stripped")
    subprocess.run(["strip", "-o", path, "/proc/%d/exe" % p.pid], check=True)
    return os.path.getsize(path)


def main():
    """Runs all of them beside each other."""
    steps = os.path.join(lib.work, "steps")
    os.mkdir(steps)
    os.environ.update({"LOCKSTEP_STEPS_DIR": steps, "LOCKSTEP_JOB": "bench", "LOCKSTEP_RANK": "0",
                       "LOCKSTEP_WORLD": "1"})
    ingest, options = lib.collector(), libtpu()
    ours, port = lib.agent(ingest, steps, *options)
    tls = tls_agent(steps, options)
    static = static_agent(ingest, options) if os.environ.get("BENCH_STATIC", "1") != "0" else None
    stop = threading.Event()
    threading.Thread(target=mark_steps, args=(stop,), daemon=True).start()
    others = [(n, p) for n, p in (("node_exporter", node_exporter()), ("collectd", collectd())) if p]
    time.sleep(SETTLE)
    agents = [("agent", ours), ("tls_agent", tls)] + ([("static_agent", static)] if static else [])
    measured = agents + others
    busy = machine()
    begin = time.monotonic_ns()
    before = {name: lib.cpu_ns(p.pid) for name, p in measured}
    time.sleep(SECONDS)
    used = {name: lib.cpu_ns(p.pid) - before[name] for name, p in measured}
    window = time.monotonic_ns() - begin
    busy = [b - a for a, b in zip(busy, machine())]
    lib.say("machine_busy_ratio", "%.2f" % (busy[0] / busy[1]), "1")
    for name, p in measured:
        lib.say(name + "_cpu_ratio", "%.6f" % (used[name] / window), "1")
        lib.say(name + "_rss_bytes", lib.rss_bytes(p.pid), "bytes")
        lib.say(name + "_threads", len(os.listdir("/proc/%d/task" % p.pid)), "1")
    for name, p in agents:
        lib.say(name + "_file_bytes", file_bytes(p), "bytes")
    for name, _ in measured[1:]:
        lib.say(name + "_cpu_ratio_to_agent", "%.2f" % (used[name] / used["agent"]), "1")
    items = json.loads(lib.get(port, "/api/v1/series"))["items"]
    lib.say("agent_series", len(items), "1")
    lib.say("agent_series_of_chips", sum(1 for i in items if i["group"].startswith("tpu.")), "1")
    lib.say("agent_series_measured", sum(1 for i in items if i["value"] is not None), "1")
    slowed = [line for line in lib.get(port, "/metrics").decode().splitlines()
              if line.startswith("lockstep_agent_slowed ")]
    lib.say("agent_slowed", slowed[0].split()[1], "1")
    stop.set()


main()
