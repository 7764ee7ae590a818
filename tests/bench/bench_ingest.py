#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What taking in costs the collector: a real one, and lockstep-sim as agents beside it.

Each host has 120 series at 1 Hz, hot values and a step record a second, and chunks once a minute; all of it is
durable when acknowledged. With --tls all is measured again (_nN_tls), with a certificate for each agent. Each line is
"name value unit", for each number of hosts (--hosts 1000,10000):

ingest_cpu_ratio_nN            CPU time of the collector's process, by its own clock, over the time
ingest_cpu_us_per_report_nN    the same for each report; _THREAD: of it, by kind of thread
ingest_rss_bytes_nN            resident memory at the end of that time; _peak: before the restart
ingest_reports_per_s_nN        reports sent
ingest_ack_p50_ms_nN, _p99_    from sending a report with items until they are on disk
ingest_chunks_per_s_nN         chunks acknowledged
ingest_beat_factor_nN          1; more if the collector still asks for a longer beat after PATIENCE: then fewer and larger reports came,
                               and what one costs compares with no other
ingest_retries_nN              answers "retry later" and exchanges without an answer
ingest_start_s_nN              from the first connection ever until all agents had an answer
ingest_reconnect_s_nN          after kill -9 and a start on the same state: from the first connection until all
                               agents had an answer; _p99: until 99 % had
ingest_restart_s_nN            from that start until the collector listens
ingest_tls_cpu_factor_nN       with TLS over without, CPU time for each report
ingest_cpu_growth, _rss_growth from the fewest to the most hosts, over the growth of hosts: 1 is a line through 0
machine_busy_ratio_nN          all CPUs of the machine meanwhile; machine_load: its load at the end
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_lib as lib  # noqa: E402  pylint: disable=wrong-import-position

FILES_BESIDE = 256  # descriptors of a process that are no agent's
MINUTE = 62         # from then on chunks come at an even rate
PATIENCE = 120      # for a storm to end
KINDS = (("writer", "writer"), ("reader", "reader"), ("keeper", "keeper"), ("nng:poll", "nng_poll"),
         ("nng:task", "nng_task"), ("nng:", "nng_other"))


def machine():
    """Busy and all CPU time so far, in ticks."""
    with open("/proc/stat", encoding="ascii") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return sum(v) - v[3] - v[4], sum(v)


def threads(pid):
    """CPU time so far by kind of thread, ns."""
    use = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        path = "/proc/%d/task/%s/" % (pid, tid)
        with open(path + "comm", encoding="utf-8") as f:
            comm = f.read().strip()
        with open(path + "schedstat", encoding="ascii") as f:
            ns = int(f.read().split()[0])
        kind = "loop" if int(tid) == pid else next((k for start, k in KINDS if comm.startswith(start)),
                                                   "other")
        use[kind] = use.get(kind, 0) + ns
    return use


def events(sim):
    """The lines that lockstep-sim has printed so far."""
    with open(sim.log, encoding="utf-8") as f:
        lines = f.read().split("\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith("{")]


def wait_for(sim, what, seconds):
    """Until what(events) is something; that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what(events(sim))
        if found:
            return found
        if sim.poll() is not None:
            break
        time.sleep(0.05)
    with open(sim.log, encoding="utf-8") as f:
        raise SystemExit("lockstep-sim: ended, or not in time:\n" + f.read()[-2000:])


def beat_factor(label):
    """How much longer beats are than the usual one, as the collector tells."""
    page = lib.get(lib.ports(os.path.join(lib.work, "port-" + label))["http"], "/metrics").decode()
    return next(line.split()[1] for line in page.split("\n")
                if line.startswith("lockstep_collector_beat_factor "))


def start_collector(label, port, keys):
    """On the state directory of this label; process, and seconds until it listens."""
    begin = time.monotonic()
    file = os.path.join(lib.work, "port-" + label)
    if os.path.exists(file):
        os.unlink(file)
    p = lib.start(os.path.join(lib.BUILD, "lockstep-collector"), "--listen", "tcp://127.0.0.1:%d" % port,
                  "--http", "127.0.0.1:0", "--state-dir", os.path.join(lib.work, "ingest-" + label),
                  "--port-file", file, *keys)
    lib.ports(file)
    return p, time.monotonic() - begin


def window(label, sim, pid, seconds, settle):
    """CPU and memory of one interval of lockstep-sim, after settling."""
    start = wait_for(sim, lambda e: [x for x in e if x["event"] == "start"], settle + PATIENCE)[0]
    lib.say("ingest_start_s_%s" % label, start["acked_p100_s"], "s")
    first = wait_for(sim, lambda e: [x for x in e[e.index(start):] if x["event"] == "interval" and
                                     x["t_s"] >= settle - 0.5], settle + PATIENCE)[0]
    while int(beat_factor(label)) > 1 and first["t_s"] < settle + PATIENCE:  # after a start of so many at once
        first = wait_for(sim, lambda e, t=first["t_s"]: [x for x in e if x["event"] == "interval" and x["t_s"] > t],
                         seconds + PATIENCE)[0]
    wall, cpu, by, busy = time.monotonic(), lib.process_cpu_ns(pid), threads(pid), machine()
    line = wait_for(sim, lambda e: [x for x in e if x["event"] == "interval" and x["t_s"] > first["t_s"]],
                    seconds + PATIENCE)[0]
    wall, cpu = time.monotonic() - wall, lib.process_cpu_ns(pid) - cpu
    after, busy = threads(pid), [b - a for a, b in zip(busy, machine())]
    reports = line["reports_per_s"] * wall
    ratio, rss = cpu * 1e-9 / wall, lib.rss_bytes(pid)
    lib.say("ingest_cpu_ratio_%s" % label, "%.3f" % ratio, "ratio")
    lib.say("ingest_cpu_us_per_report_%s" % label, "%.1f" % (cpu * 1e-3 / reports), "us")
    for kind in sorted(after):
        lib.say("ingest_cpu_us_per_report_%s_%s" % (kind, label),
                "%.1f" % ((after[kind] - by.get(kind, 0)) * 1e-3 / reports), "us")
    lib.say("ingest_rss_bytes_%s" % label, rss, "bytes")
    lib.say("ingest_reports_per_s_%s" % label, "%.0f" % line["reports_per_s"], "1/s")
    lib.say("ingest_ack_p50_ms_%s" % label, line["ack_ms"]["p50"], "ms")
    lib.say("ingest_ack_p99_ms_%s" % label, line["ack_ms"]["p99"], "ms")
    lib.say("ingest_chunks_per_s_%s" % label, "%.1f" % (line["durable_chunks"] / line["seconds"]), "1/s")
    lib.say("ingest_beat_factor_%s" % label, beat_factor(label), "times")
    lib.say("ingest_retries_%s" % label, line["retries"] + line["timeouts"], "answers")
    lib.say("machine_busy_ratio_%s" % label, "%.2f" % (busy[0] / max(busy[1], 1)), "ratio")
    return ratio, rss, cpu / reports


def storm(label, sim, collector, port, keys):
    """kill -9, and how long until all agents had an answer of the next collector."""
    lib.say("ingest_rss_bytes_peak_%s" % label, lib.peak_bytes(collector.pid), "bytes")
    collector.kill()
    collector.wait()
    collector, restart = start_collector(label, port, keys)
    lib.say("ingest_restart_s_%s" % label, "%.2f" % restart, "s")
    line = wait_for(sim, lambda e: [x for x in e if x["event"] == "reconnect"], PATIENCE)[0]
    lib.say("ingest_reconnect_s_%s" % label, line["acked_p100_s"], "s")
    lib.say("ingest_reconnect_p99_s_%s" % label, line["acked_p99_s"], "s")
    return collector


def measure(n, options, label, keys=()):
    """One number of hosts; ratio of CPU, memory, and CPU time for each report."""
    port = lib.free_port()
    collector, _ = start_collector(label, port, keys)
    sim = lib.start(os.path.join(lib.BUILD, "lockstep-sim"), "--connect", "tcp://127.0.0.1:%d" % port,
                    "--hosts", str(n), "--variants", "16", "--report", "%ds" % options.seconds, *keys)
    figures = window(label, sim, collector.pid, options.seconds, options.settle)
    if not options.no_storm:
        collector = storm(label, sim, collector, port, keys)
    sim.terminate()
    if sim.wait(60) != 0:
        raise SystemExit("lockstep-sim: ended with status %d" % sim.returncode)
    lib.stop(collector)
    lib.remove(os.path.join(lib.work, "ingest-" + label))
    return figures


def main():
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hosts", default="1000,10000", help="numbers of hosts, rising")
    parser.add_argument("--seconds", type=int, default=20, help="measured for so long")
    parser.add_argument("--settle", type=int, default=MINUTE, help="after so long")
    parser.add_argument("--tls", action="store_true", help="with keys on both sides, too")
    parser.add_argument("--no-storm", action="store_true", help="no restart")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    figures = {}
    for n in [int(x) for x in options.hosts.split(",")]:
        if n + FILES_BESIDE > hard:
            lib.skip("ingest_n%d" % n, "the limit of open files is %d (soft %d): ulimit -Hn" % (hard, soft))
            continue
        figures[n] = measure(n, options, "n%d" % n)
        if options.tls:
            keys = lib.keys("keys-%d" % n, ["sim%05d" % (i + 1) for i in range(n)])
            tls = measure(n, options, "n%d_tls" % n, keys)
            lib.say("ingest_tls_cpu_factor_n%d" % n, "%.2f" % (tls[2] / figures[n][2]), "ratio")
    if len(figures) > 1:
        few, many = min(figures), max(figures)
        for i, name in enumerate(("cpu", "rss")):
            lib.say("ingest_%s_growth" % name, "%.2f" % (
                figures[many][i] / figures[few][i] / (many / few)), "ratio")
    lib.say("machine_load", "%.1f" % os.getloadavg()[0], "processes")


if __name__ == "__main__":
    main()
