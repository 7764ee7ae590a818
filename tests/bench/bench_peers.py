#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lockstep stores and takes in beside VictoriaMetrics and Prometheus, in one run on one machine.

Each line is "name value unit"; a figure is the median of --runs runs (5), each with a server of its own
that begins empty. What the figures mean, and what is fair about them: tests/MEASURED.md.

disk_bytes_per_sample_*      the 480 series of noisy40, 2,000 s of each: the day file of a collector as it
                             arrives, less an empty one; ..._rolled_up: the same when all its roll-ups are
                             in; ..._repacked: that, once its day is over; VictoriaMetrics after its
                             forced merge
disk_chunk_bytes_per_sample  of that, the encoded chunks
disk_ratio_entropy           lockstep's with its roll-ups over the entropy of the series
disk_ratio_victoria          over that of VictoriaMetrics, data and index; ..._victoria_data: data alone
durable_samples_per_core_s_* samples acknowledged over CPU seconds of the server process; lockstep: of
                             lockstep-sim, lockstep_noisy40: the series that the peers get
durable_ratio_*              lockstep's over a peer's; x1, x10, x60: points of a series in a peer's request
synced_requests_ratio_*      of requests one after the other: during how many the server synced a file
"""

import argparse
import contextlib
import datetime
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_lib as lib  # noqa: E402  pylint: disable=wrong-import-position

CONNECTIONS, SERIES = 4, 2000      # of a peer; series a request
TICKS = {1: 250, 10: 1000, 60: 1860}  # by points a request: 2, 8 and 14.9 M samples
AGENTS, COLUMNS, ROWS = 256, 120, 1980  # 60.8 M samples
SIM_HOSTS, SIM_SECONDS = 256, 8
WATCHED = 20                       # requests watched for syncs
# As the repacker asks: all chunks, none put off, no minute without its hour.
ROLLED_UP = """SELECT max(id) <= (SELECT chunk_id FROM rollup_done WHERE span_s = 0 AND t_us = 0)
    AND NOT EXISTS (SELECT 1 FROM rollup_done WHERE span_s = -1)
    AND NOT EXISTS (SELECT 1 FROM rollup_done d WHERE d.span_s = 60 AND NOT EXISTS
        (SELECT 1 FROM rollup_done e WHERE e.span_s = 3600 AND e.t_us = d.t_us - d.t_us % 3600000000)) FROM chunk"""
SYNCS = "fsync,fdatasync,sync_file_range,msync,syncfs,sync"


def feed(program, *words):
    """Runs a feeder; what it measured, and when its requests were sent and answered (ns)."""
    done = subprocess.run([os.path.join(lib.BUILD, "tests/bench", program)] + [str(w) for w in words],
                          stdout=subprocess.PIPE, text=True, check=False, timeout=900,
                          cwd=lib.TOP if os.path.isdir(os.path.join(lib.TOP, "..", "shared")) else None)
    if done.returncode != 0:
        raise SystemExit("%s: ended with status %d" % (program, done.returncode))
    lines = [line.split() for line in done.stdout.splitlines()]
    values = {w[0]: float(w[1]) for w in lines if w[0] != "report"}
    return values, [(int(w[1]), int(w[2])) for w in lines if w[0] == "report"]


def tree_bytes(*path):
    """Size of all files below."""
    return sum(os.path.getsize(os.path.join(where, name))
               for where, _, names in os.walk(os.path.join(*path)) for name in names)


# --- the servers --------------------------------------------------------------------------------------


class Lockstep:
    """A collector of this build."""

    name = "lockstep"

    def __init__(self, run):
        self.process, self.state, self.ports = lib.collector_in("lockstep-%s" % run)

    def send(self, agents, columns, ticks):
        """Agents that send chunks of minutes."""
        return feed("feed_series", "tcp://127.0.0.1:%d" % self.ports["ingest"], agents, columns, ticks)

    def day_bytes(self):
        """Of the day files, after the end: SQLite has checkpointed and removed its logs then."""
        lib.stop(self.process)
        days = os.path.join(self.state, "telemetry")
        names = os.listdir(days)
        if any(not n.endswith(".db") for n in names):
            raise SystemExit("the collector left " + " ".join(names))
        return tree_bytes(days), len(names)

    def closed_bytes(self):
        """Of its day with all roll-ups and after repacking, as if it had been yesterday's: the next has begun."""
        days = os.path.join(self.state, "telemetry")
        (today,) = os.listdir(days)
        yesterday = datetime.datetime.strptime(today, "%Y%m%d.db") - datetime.timedelta(days=1)
        closed = os.path.join(days, yesterday.strftime("%Y%m%d.db"))
        os.rename(os.path.join(days, today), closed)
        os.remove(self.state + ".port")  # else it seems to be ready at once
        process, _, _ = lib.collector_in(os.path.basename(self.state))
        for _ in range(600):
            with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % closed, uri=True)) as db:
                if db.execute(ROLLED_UP).fetchone()[0]:
                    break
            time.sleep(0.1)
        else:
            raise SystemExit("the collector does not roll the day up")
        lib.stop(process)
        rolled_up = os.path.getsize(closed)
        subprocess.run([os.path.join(lib.BUILD, "lockstep-collector"), "--repack", "--state-dir", self.state],
                       check=True, stdout=subprocess.DEVNULL)
        return rolled_up, os.path.getsize(closed)

    def watched(self):
        """Requests one after the other."""
        return self.send(1, COLUMNS, 60 * WATCHED)[1]

    def end(self):
        """No more of it."""
        lib.stop(self.process)
        lib.remove(self.state)


class Peer:
    """A server that takes remote write."""

    def __init__(self, run):
        self.port, self.state = lib.free_port(), os.path.join(lib.work, "%s-%s" % (self.name, run))
        os.mkdir(self.state)
        self.start_ms = (int(time.time()) - 2100) * 1000  # the last of it is measured about now
        self.process = lib.start(*self.command())
        for _ in range(200):
            try:
                lib.get(self.port, self.ready)
                return
            except (OSError, SystemExit):
                time.sleep(0.05)
        raise SystemExit(self.name + " does not start")

    def send(self, connections, series, points, begin, end):
        """Ticks begin to end of all series; the server must say that it took them all."""
        before = self.taken()
        values, times = feed("feed_remote", self.port, "/api/v1/write", connections, series, points, begin,
                             end, self.start_ms)
        for _ in range(100):
            if self.taken() - before == values["feed_samples"]:
                return values, times
            time.sleep(0.05)
        raise SystemExit("%s took %d samples of %d" % (self.name, self.taken() - before,
                                                       values["feed_samples"]))

    def metric(self, pattern):
        """Sum of the values of its own metrics whose line begins so."""
        page = lib.get(self.port, "/metrics").decode()
        return sum(float(v) for v in re.findall("^(?:%s) (\\S+)$" % pattern, page, re.M))

    def watched(self):
        """Requests one after the other."""
        self.send(1, SERIES, 1, 0, 1)
        return self.send(1, SERIES, 10, 1, 1 + 10 * WATCHED)[1]

    def end(self):
        """No more of it."""
        lib.stop(self.process)
        lib.remove(self.state)


class Victoria(Peer):
    """VictoriaMetrics, single node."""

    name, program, ready = "victoria", "victoria-metrics", "/health"

    def command(self):
        """As it comes, but for what would end it or leave the loopback."""
        return [lib.find_program(self.program), "-httpListenAddr=127.0.0.1:%d" % self.port,
                "-storageDataPath=" + self.state, "-retentionPeriod=100y"]

    def taken(self):
        """Samples so far."""
        return self.metric('vm_rows_inserted_total\\{type="promremotewrite"\\}')

    def merge(self):
        """Merges all it has, as its manual tells; bytes of data and of index after its end."""
        lib.get(self.port, "/internal/force_flush")
        lib.get(self.port, "/internal/force_merge")
        for _ in range(600):
            time.sleep(0.1)
            with open(self.process.log, encoding="utf-8", errors="replace") as f:
                if re.search("forced merge .*finished", f.read()):
                    break
        else:
            raise SystemExit("the forced merge does not end")
        time.sleep(1.5)  # its metrics are a second old
        parts = self.metric('vm_parts\\{type="storage/.*"\\}')
        lib.stop(self.process)
        sizes = tree_bytes(self.state, "data"), tree_bytes(self.state, "indexdb"), parts
        lib.remove(self.state)
        return sizes


class Prometheus(Peer):
    """Prometheus with its receiver of remote write."""

    name, program, ready = "prometheus", "prometheus", "/-/ready"

    def command(self):
        """It scrapes nothing, not even itself."""
        config = os.path.join(self.state, "prometheus.yml")
        with open(config, "w", encoding="ascii") as f:
            f.write("global: {}\n")
        return [lib.find_program(self.program), "--web.enable-remote-write-receiver",
                "--web.listen-address=127.0.0.1:%d" % self.port, "--config.file=" + config,
                "--storage.tsdb.path=" + os.path.join(self.state, "data")]

    def taken(self):
        """Samples so far."""
        return self.metric("prometheus_tsdb_head_samples_appended_total(?:\\{.*\\})?")


# --- what is measured ---------------------------------------------------------------------------------


def disk_lockstep(run, agents, suffix):
    """Bytes a sample of the day file, as it arrives; the 480 series are those of so many hosts."""
    empty, days = Lockstep("empty%s-%d" % (suffix, run)).day_bytes()
    server = Lockstep("disk%s-%d" % (suffix, run))
    values, _ = server.send(agents, 480 // agents, 2000)
    size, count = server.day_bytes()
    rolled_up, repacked = server.closed_bytes() if count == 1 else (float("nan"),) * 2  # not over midnight
    lib.remove(server.state)
    return {"disk_bytes_per_sample_lockstep" + suffix: (size - empty * count / days) / values["feed_samples"],
            "disk_bytes_per_sample_rolled_up" + suffix: (rolled_up - empty / days) / values["feed_samples"],
            "disk_bytes_per_sample_repacked" + suffix: (repacked - empty / days) / values["feed_samples"],
            "disk_chunk_bytes_per_sample" + suffix: values["feed_chunk_bytes_per_sample"]}


def disk_victoria(run):
    """The same series in VictoriaMetrics."""
    server = Victoria("disk-%d" % run)
    values, _ = server.send(1, 480, 60, 0, 2000)
    data, index, parts = server.merge()
    n = values["feed_samples"]
    return {"disk_bytes_per_sample_victoria_data": data / n, "disk_bytes_per_sample_victoria_index": index / n,
            "disk_bytes_per_sample_victoria": (data + index) / n, "disk_victoria_parts": parts}


def durable_sim(run, scale):
    """Saturated: simulated agents that send a minute as soon as the one before is acknowledged."""
    server = Lockstep("sim-%d" % run)
    before = lib.process_cpu_ns(server.process.pid)
    done = subprocess.run([os.path.join(lib.BUILD, "lockstep-sim"), "--connect",
                           "tcp://127.0.0.1:%d" % server.ports["ingest"], "--hosts", str(SIM_HOSTS),
                           "--saturate", "--duration", "%.1fs" % max(1, SIM_SECONDS * scale), "--log-level",
                           "err"], stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    used = lib.process_cpu_ns(server.process.pid) - before
    server.end()
    total = json.loads(done.stdout.splitlines()[-1])
    if total["event"] != "total" or total["durable_samples"] == 0 or total["rejects"] or total["bad_acks"]:
        raise SystemExit("lockstep-sim: " + done.stdout.splitlines()[-1])
    return {"durable_samples_per_core_s_lockstep": 1e9 * total["durable_samples"] / used,
            "durable_samples_lockstep": total["durable_samples"],
            "durable_samples_per_s_lockstep": total["durable_samples_per_s"]}


def durable_noisy40(run, scale):
    """The same with the series that the peers get: chunks alone."""
    server = Lockstep("durable-%d" % run)
    before = lib.process_cpu_ns(server.process.pid)
    values, _ = server.send(max(1, int(AGENTS * scale)), COLUMNS, ROWS)
    used = lib.process_cpu_ns(server.process.pid) - before
    server.end()
    return {"durable_samples_per_core_s_lockstep_noisy40": 1e9 * values["feed_samples"] / used,
            "durable_samples_lockstep_noisy40": values["feed_samples"],
            "durable_samples_per_s_lockstep_noisy40": values["feed_samples"] / values["feed_wall_s"],
            "durable_wire_bytes_per_sample_lockstep_noisy40": values["feed_wire_bytes_per_sample"]}


def durable_peer(peer, points, run, scale):
    """The same of a peer; its series are known before, as ours would be from the first minute on."""
    server = peer("durable-%d-x%d" % (run, points))
    server.send(CONNECTIONS, SERIES, 1, 0, 1)
    before = lib.process_cpu_ns(server.process.pid)
    values, _ = server.send(CONNECTIONS, SERIES, points, 1, 1 + max(2 * points, int(TICKS[points] * scale)))
    used = lib.process_cpu_ns(server.process.pid) - before
    server.end()
    name = "%s_x%d" % (peer.name, points)
    return {"durable_samples_per_core_s_" + name: 1e9 * values["feed_samples"] / used,
            "durable_samples_" + name: values["feed_samples"],
            "durable_samples_per_s_" + name: values["feed_samples"] / values["feed_wall_s"],
            "durable_wire_bytes_per_sample_" + name: values["feed_wire_bytes_per_sample"]}


def synced(kind):
    """During how many of some requests, one after the other, the server synced a file."""
    server, log = kind("watched"), os.path.join(lib.work, "syncs-" + kind.name)
    strace = lib.start("strace", "-f", "-qq", "-ttt", "-T", "-e", "trace=" + SYNCS, "-o", log, "-p",
                       str(server.process.pid))
    for _ in range(100):
        time.sleep(0.05)
        with open("/proc/%d/status" % server.process.pid, encoding="ascii") as f:
            if "TracerPid:\t0\n" not in f.read():
                break
    else:
        lib.skip("synced_requests_ratio_" + kind.name, "strace cannot attach here")
        server.end()
        return
    time.sleep(1)  # all threads, too
    requests = server.watched()
    strace.terminate()
    strace.wait()
    server.end()
    with open(log, encoding="ascii", errors="replace") as f:
        ends = [float(m[1]) + float(m[2]) for m in
                (re.search(r"^\d+\s+([\d.]+) .*<([\d.]+)>$", line) for line in f) if m]
    hit = sum(any(a <= 1e9 * e <= b for e in ends) for a, b in requests)
    lib.say("synced_requests_ratio_" + kind.name, "%.2f" % (hit / len(requests)), "1")
    lib.say("syncs_" + kind.name, len(ends), "1")


# --- all of it ----------------------------------------------------------------------------------------


def medians(runs, measure):
    """Of each figure that measure(run) gives."""
    all_of_them = [measure(i) for i in range(runs)]
    return {name: statistics.median(r[name] for r in all_of_them) for name in all_of_them[0]}


def unit_of(name):
    """By its name."""
    return ("samples/s" if "_per_core_s_" in name or "_per_s_" in name else
            "bytes" if "bytes_per_sample" in name else "1")


def tell(figures):
    """A line each."""
    for name, value in figures.items():
        lib.say(name, "%.0f" % value if unit_of(name) != "bytes" else "%.3f" % value, unit_of(name))
    return figures


def disk(runs, entropy, peers):
    """The same series here and there."""
    lib.note("disk_shape", "480 series x 2,000 samples in requests of 60 s; hosts of 40 series (12 of them), "
             "and the same as hosts of 120 (4, chunks of 60 series)")
    ours = tell(medians(runs, lambda run: disk_lockstep(run, 12, "")))
    ours.update(tell(medians(runs, lambda run: disk_lockstep(run, 4, "_120"))))
    lib.say("disk_entropy_bytes_per_sample", "%.2f" % entropy, "bytes")
    for suffix in ("", "_120"):
        for name, what in (("", "rolled_up"), ("_repacked", "repacked")):
            lib.say("disk_ratio_entropy" + name + suffix,
                    "%.3f" % (ours["disk_bytes_per_sample_" + what + suffix] / entropy), "1")
    if Victoria not in peers:
        return
    theirs = tell(medians(runs, disk_victoria))
    for suffix in ("", "_data"):
        for name, what in (("", "rolled_up"), ("_repacked", "repacked"), ("_120", "rolled_up_120"),
                           ("_repacked_120", "repacked_120")):
            lib.say("disk_ratio_victoria" + name + suffix,
                    "%.3f" % (ours["disk_bytes_per_sample_" + what] /
                              theirs["disk_bytes_per_sample_victoria" + suffix]), "1")


def durable(runs, scale, peers):
    """Saturated."""
    lib.note("durable_shape_lockstep", "lockstep-sim --saturate, %d hosts x 120 series; a request is a minute, "
             "2 chunks of 60 series x 60 rows, steps and live values; the next follows when all is on disk"
             % SIM_HOSTS)
    lib.note("durable_shape_lockstep_noisy40", "%d agents, the same chunks of noisy40, and nothing else" %
             (AGENTS * scale))
    lib.note("durable_shape_xN", "%d connections; a request is %d series x N points; x60 is the fair one: as "
             "many points of a series are gathered as in a chunk" % (CONNECTIONS, SERIES))
    ours = tell(medians(runs, lambda run: durable_sim(run, scale)))["durable_samples_per_core_s_lockstep"]
    tell(medians(runs, lambda run: durable_noisy40(run, scale)))
    for points in TICKS:
        for peer in peers:
            theirs = tell(medians(runs, lambda run, p=peer, n=points: durable_peer(p, n, run, scale)))
            name = "%s_x%d" % (peer.name, points)
            lib.say("durable_ratio_" + name, "%.1f" % (ours / theirs["durable_samples_per_core_s_" + name]),
                    "1")


def syncs(kinds):
    """Who syncs before an answer."""
    lib.note("synced_requests_ratio", "1: each answer came after a sync, that is: from the disk; 0: from memory")
    for kind in kinds:
        if lib.find_program("strace") is None:
            lib.skip("synced_requests_ratio_" + kind.name, "no strace")
        else:
            synced(kind)


def main():
    """What is there is compared; what is not, is said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=int(os.environ.get("BENCH_RUNS", "5")),
                        help="runs that the medians are of (5, or BENCH_RUNS)")
    parser.add_argument("--scale", type=float, default=1, help="part of the samples that is sent (1)")
    parser.add_argument("--only", choices=("disk", "durable", "syncs"), help="this part alone")
    options = parser.parse_args()
    peers = []
    for peer in (Victoria, Prometheus):
        if lib.find_program(peer.program) is None:
            lib.skip(peer.name, "not found: tests/fetch bench unpacks it below build/tools")
        else:
            peers.append(peer)
    probe = Lockstep("probe")
    values, _ = probe.send(1, 40, 60)
    probe.end()
    lib.say("peers_runs", options.runs, "1")
    lib.say("peers_series_recorded", int(values["feed_recorded"]), "bool")
    if options.only in ("disk", None):
        if values["feed_recorded"]:
            disk(options.runs, values["feed_entropy_bytes_per_sample"], peers)
        else:
            lib.skip("disk", "no data/series/noisy40.csv.gz in LOCKSTEP_SHARED or ../shared")
    if options.only in ("durable", None):
        durable(options.runs, options.scale, peers)
    if options.only in ("syncs", None):
        syncs([Lockstep] + peers)


main()
