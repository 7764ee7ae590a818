#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults for night/faults.sh, drawn from a seed: one after the other, under a collector, real agents with a real job, and
simulated agents.

faults.py run BUILD WORK FAULTS SEED own|shared   own: mounts, network and /dev/shm are of this test alone
faults.py verify WORK                             what the collector stored, beside what was acknowledged and reported

Prints a line a result: `ok NAME`, `not NAME` or `skip NAME # REASON`; other lines are notes. In WORK: faults.log has each
fault; truth.json the records made, by ring, and the findings reported; ledger what simulated agents had acknowledged.
"""
import collections
import contextlib
import fcntl
import glob
import heapq
import json
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import resolve

PATIENCE_S = 120  # how long a test waits for what must come; how fast it comes is the machine's affair
AGENTS, SIMULATED = 3, 8
NEAR, FAR = "10.7.0.1", "10.7.0.2"  # the last agent is in a network namespace of its own, at the far end of the wire
CLOCKS = ("+0000\n", "+3600\n", "-3600\n")
FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") + [""])[0]
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../agent/client/python")
COMMIT = ("pwrite64", "fsync,fdatasync", "sendmsg")  # the calls of a commit
BURST = "import lockstep\nfor n in range(5000):\n    with lockstep.step(n):\n        pass"  # a ring holds 4,096


def tell(ok, name):
    print("ok" if ok else "not", name, flush=True)


def until_true(what, probe):
    deadline = time.monotonic() + PATIENCE_S
    while not probe():
        if time.monotonic() > deadline:
            raise TimeoutError("%s: not within %d s" % (what, PATIENCE_S))
        time.sleep(0.05)


def must(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise OSError("%s: %s" % (" ".join(command[:2]), " ".join(done.stdout.split())))


class Program:
    """A process, in a process group of its own, that dies with this one."""

    def __init__(self, work, name, *argv):
        self.name, self.argv, self.within, self.env, self.p = name, list(argv), [], {}, None
        self.died = []  # statuses of those that ended by themselves
        self.log, self.ports, self.state, self.clock = (os.path.join(work, end) for end in (
            name + ".log", name + ".ports", "state/" + name, name + ".clock"))

    def start(self):
        if os.path.exists(self.ports):
            os.unlink(self.ports)
        with open(self.log, "ab") as log:
            self.p = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.within, *self.argv], stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log, env=dict(os.environ, **self.env), start_new_session=True)

    def signal(self, number):
        if self.p.poll() is None:
            (os.killpg if number == signal.SIGKILL else os.kill)(self.p.pid, number)
        else:
            self.died.append(self.p.returncode)

    def end(self, number):
        self.signal(number)
        return self.p.wait(PATIENCE_S)

    def settled(self):
        """It serves, or has ended."""
        return os.path.exists(self.ports) and os.path.getsize(self.ports) > 0 or self.p.poll() is not None

    def remount(self, option):
        must("mount", "-o", "remount," + option, self.state)


class Wire(threading.Thread):
    """A link to another network namespace. It loses and delays packets, and cuts either direction."""

    def __init__(self, pid, seed):
        super().__init__(daemon=True)
        self.random, self.dropped = random.Random(seed), 0
        self.set()
        self.ends = [self.tun(b"near"), self.tun(b"far")]
        must("ip", "link", "set", "far", "netns", str(pid))
        for within, name, own, other in (([], "near", NEAR, FAR), (["nsenter", "-t", str(pid), "-n"], "far", FAR, NEAR)):
            must(*within, "ip", "addr", "add", own, "peer", other, "dev", name)
            must(*within, "ip", "link", "set", name, "up")
            must(*within, "ip", "link", "set", "lo", "up")

    def set(self, loss=0.0, delay_s=0.0, cut=(False, False)):
        self.loss, self.delay_s, self.cut = loss, delay_s, cut

    @staticmethod
    def tun(name):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", name, 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
        return fd

    def run(self):
        waiting = []  # when, tie break, to which end, packet
        for n in range(sys.maxsize):
            pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
            for fd in select.select(self.ends, [], [], pause)[0]:
                side, packet = self.ends.index(fd), os.read(fd, 65536)
                if self.cut[side] or self.random.random() < self.loss:
                    self.dropped += 1
                else:  # each has its own delay: packets pass each other
                    at = time.monotonic() + self.delay_s * self.random.uniform(0.5, 1.5)
                    heapq.heappush(waiting, (at, n, 1 - side, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, side, packet = heapq.heappop(waiting)
                os.write(self.ends[side], packet)


class Faults:
    def __init__(self, build, work, count, seed, own):
        self.work, self.count, self.random = work, count, random.Random(seed)
        self.rings, self.findings, self.missing = {}, {}, {}  # missing: what a fault needs, and why it is not here; None: of no use in this run
        self.wire = self.far = None
        self.listen = self.http = "0"
        self.phases = collections.Counter()
        self.old = os.path.join(build, "old/build")
        if seed % 2:
            self.missing["old"] = None  # they have no TLS: left out, and not skipped
        elif not os.path.exists(self.old):
            self.missing["old"] = "tests/fetch old was not run"

        def program(name, *argv):
            return Program(work, name, os.path.join(build, argv[0]), *argv[1:])
        keys = os.path.join(work, "keys")
        hosts = ["h%d" % i for i in range(AGENTS)]
        if seed % 2:
            must(os.path.join(build, "lockstep"), "keys", "init", keys, "127.0.0.1", NEAR)
            must(os.path.join(build, "lockstep"), "keys", "agent", keys, *hosts, *("sim%05d" % (i + 1) for i in range(SIMULATED)))
        keys = ["--keys", keys] if seed % 2 else []
        self.collector = program("collector", "lockstep-collector", "--retain-bytes", "0", "--pack-interval", "5s", "--insecure", *keys)
        self.agents = [program(h, "lockstep-agent", "--host-name", h, "--http", "127.0.0.1:0", *keys) for h in hosts]
        self.daemons = [self.collector] + self.agents
        self.sim = program("sim", "lockstep-sim", "--hosts", str(SIMULATED), "--steps-per-second", "5", "--accelerate", "20", "--series", "20",
                           "--slow", "3:0.5@30", "--ledger", os.path.join(work, "ledger"), "--log-level", "err", *keys)
        self.job = program("job", "lockstep-workload", "--ranks", str(AGENTS), "--steps", "0", "--device", "60", "--batch", "8",
                           "--job", "real", "--steps-root", os.path.join(work, "steps"))
        for h in hosts:
            os.makedirs(os.path.join(work, "steps", h))
        for d in self.daemons:
            os.makedirs(d.state, exist_ok=True)
            d.argv += ["--state-dir", d.state, "--port-file", d.ports]
        self.look(own)

    def look(self, own):
        """What this machine has."""
        if not os.path.ismount(self.collector.state):
            self.missing["disk"] = "no file system of our own can be mounted"
        try:
            must("strace", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true")
        except OSError as e:
            self.missing["strace"] = "no system call can be made to fail: %s" % e
        if not own or not FAKETIME:
            self.missing["faketime"] = "/dev/shm is not of this test alone" if FAKETIME else "no libfaketime here (package faketime)"
        else:
            for d in self.daemons:
                d.env = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": d.clock, "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
                         "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
                with open(d.clock, "w", encoding="ascii") as f:
                    f.write(CLOCKS[0])
        try:
            if not own:
                raise OSError("the network is not of this test alone")
            self.far = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sleep", "infinity"])
            until_true("a network namespace", lambda: os.readlink("/proc/%d/ns/net" % self.far.pid) != os.readlink("/proc/self/ns/net"))
            self.wire = Wire(self.far.pid, self.random.random())
            self.wire.start()
            self.agents[-1].within = ["nsenter", "-t", str(self.far.pid), "-n"]
        except OSError as e:
            self.missing["wire"] = str(e)

    # --- programs -------------------------------------------------------------

    def start(self, d, wait=True):
        """Starts a daemon. A collector has the ports it had before, and serves when this returns."""
        base = d.argv
        if d is self.collector:
            d.argv = base + ["--listen", "tcp://%s:%s" % ("0.0.0.0" if self.wire else "127.0.0.1", self.listen), "--http", "127.0.0.1:" + self.http]
        else:
            d.argv = base + ["--collector", "tcp://%s:%s" % (NEAR if d.within else "127.0.0.1", self.listen), "--steps-dir",
                             os.path.join(self.work, "steps", d.name)]
        d.start()
        d.argv = base
        if d is self.collector and wait:
            until_true("the collector serves", d.settled)
            if d.p.poll() is not None:
                raise OSError("the collector does not start: status %d" % d.p.poll())
            with open(d.ports, encoding="ascii") as f:
                self.listen, self.http = (word.split("=")[1] for word in f.read().split())

    def open_rings(self):
        """Opens rings, so that they are readable when an agent has removed their names; how many there were so far."""
        for path in glob.glob(os.path.join(self.work, "steps/*/*.ring")):
            if path not in self.rings:
                self.rings[path] = open(path, "rb")
        return len(self.rings)

    def start_job(self):
        wanted = self.open_rings() + AGENTS
        self.job.start()
        until_true("the job has rings", lambda: self.open_rings() >= wanted)

    def get(self, path):
        """The answer of the collector; None: it is not ready."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%s%s" % (self.http, path), timeout=30) as r:
                return r.read()
        except (OSError, ValueError):
            return None

    def remember(self):
        """Which findings the collector reports."""
        for f in json.loads(self.get("/api/v1/findings?limit=1000") or '{"items":[]}')["items"]:
            self.findings[f["id"]] = f["kind"]

    @contextlib.contextmanager
    def as_old(self, d):
        """What is started here is the daemon's program of the old commit."""
        today = d.argv[0]
        d.argv[0] = os.path.join(self.old, os.path.basename(today))
        try:
            yield
        finally:
            d.argv[0] = today

    # --- faults ---------------------------------------------------------------

    def hold(self, most_s=1.5):
        """The time of a fault. In a long run some outlast the 15 s for which an agent waits for an answer."""
        seconds = self.random.uniform(0.1, most_s)
        time.sleep(20 if self.count > 100 and self.random.random() < 0.02 else seconds)

    def agent(self):
        return self.random.choice(self.agents)

    def either(self):
        return self.random.choice([self.collector, self.agent()])

    def kill_agent(self, a):
        a.end(signal.SIGKILL)
        if self.random.random() < 0.25:
            for path in glob.glob(os.path.join(a.state, "*")):
                os.unlink(path)
        self.hold(0.5)
        self.start(a)

    def kill_collector(self):
        self.collector.end(signal.SIGKILL)
        if self.random.random() < 0.4:  # once more while it starts
            self.start(self.collector, wait=False)
            self.hold(0.3)
            self.collector.end(signal.SIGKILL)
        self.start(self.collector)

    def kill_at(self, d):
        """kill -9 within a commit: as a write, a sync or a message begins."""
        calls = self.random.choice(COMMIT)
        with self.strace(d, calls, "signal=SIGKILL:when=%d" % self.random.choice([1, 1, 2, 3, 5, 8])):
            try:
                d.p.wait(self.random.uniform(2, 8))
                self.phases["%s of the %s" % (calls, "collector" if d is self.collector else "agent")] += 1
            except subprocess.TimeoutExpired:
                d.signal(signal.SIGKILL)
            if d.p.wait(PATIENCE_S) != -signal.SIGKILL:
                d.died.append(d.p.returncode)
        self.start(d)

    def kill_job(self):
        self.job.end(signal.SIGKILL)
        self.start_job()

    def storm(self):
        for _ in range(3):
            for a in self.agents:
                a.signal(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
            for a in self.agents:
                a.p.wait(PATIENCE_S)
                self.start(a)
            self.hold(0.5)

    def stop(self, d):
        d.signal(signal.SIGSTOP)
        self.hold(2)
        d.signal(signal.SIGCONT)

    def overrun(self, a):
        """A worker makes more records than its ring holds, while its agent is stopped."""
        a.signal(signal.SIGSTOP)
        env = dict(os.environ, PYTHONPATH=CLIENT, LOCKSTEP_JOB="burst-" + a.name, LOCKSTEP_RANK="0", LOCKSTEP_WORLD="1",
                   LOCKSTEP_STEPS_DIR=os.path.join(self.work, "steps", a.name))
        subprocess.run([sys.executable, "-c", BURST], env=env, check=True)
        self.open_rings()
        a.signal(signal.SIGCONT)

    def limit(self, d, kind, most):
        before = resource.prlimit(d.p.pid, kind, (most, resource.prlimit(d.p.pid, kind)[1]))
        readers = self.readers()
        self.hold()
        for s in readers:
            s.close()
        if d.p.poll() is None:
            resource.prlimit(d.p.pid, kind, before)

    def descriptors(self, d):
        self.limit(d, resource.RLIMIT_NOFILE, len(os.listdir("/proc/%d/fd" % d.p.pid)) + self.random.randrange(3))

    def memory(self, d):
        with open("/proc/%d/statm" % d.p.pid, encoding="ascii") as f:
            size = int(f.read().split()[0]) * resource.getpagesize()
        self.limit(d, resource.RLIMIT_AS, size + self.random.randrange(4 << 20))

    def fill(self, d):
        """A disk that is as large as what is on it."""
        size = os.statvfs(d.state).f_blocks

        def shrink():
            s = os.statvfs(d.state)
            return subprocess.run(["mount", "-o", "remount,size=%d" % ((s.f_blocks - s.f_bfree) * s.f_frsize), d.state],
                                  stderr=subprocess.DEVNULL, check=False).returncode == 0  # not if it grew meanwhile
        until_true("the disk is full", shrink)
        self.hold()
        d.remount("size=%d" % (size * os.statvfs(d.state).f_frsize))

    def read_only(self, d):
        """A start on a disk that is read-only: refused or not, it does not crash."""
        d.end(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        d.remount("ro")
        self.start(d, wait=False)
        until_true("it starts or refuses", d.settled)
        status = d.p.poll()
        if status is None:
            self.hold()
            status = d.end(signal.SIGTERM)
        if status < 0:
            raise OSError("%s on a read-only disk: signal %d" % (d.name, -status))
        d.remount("rw")
        self.start(d)

    @staticmethod
    def strace(d, calls, injected):
        return subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "strace", "-f", "-qq", "-o", "/dev/null", "-p", str(d.p.pid), "-e",
                                 "trace=" + calls, "-e", "inject=%s:%s" % (calls, injected)], stderr=subprocess.DEVNULL)

    def errors(self, d):
        calls = self.random.choice(["fsync,fdatasync", "pwrite64", "fsync,fdatasync,pwrite64,ftruncate"])
        with self.strace(d, calls, "error=" + self.random.choice(["EIO", "ENOSPC", "EROFS"])) as tracer:
            self.hold()
            if tracer.poll() is not None and d.p.poll() is None:
                raise OSError("strace ended with status %d" % tracer.poll())
            tracer.send_signal(signal.SIGINT)

    def step_clock(self, d):
        with open(d.clock, "r+", encoding="ascii") as f:
            now = f.read()
            f.seek(0)
            f.write(self.random.choice([c for c in CLOCKS if c != now]))

    def link(self, **how):
        self.wire.set(**how)
        self.hold(2)
        self.wire.set()

    def half_open(self):
        """One side dies while nothing passes: the other does not hear of it."""
        self.wire.set(cut=(True, True))
        d = self.random.choice([self.collector, self.agents[-1]])
        d.end(signal.SIGKILL)
        self.start(d)
        self.hold(0.5)
        self.wire.set()

    def old_agent(self, a):
        """An agent of the old commit for a time, with the state of today's, and back."""
        a.end(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        with self.as_old(a):
            self.start(a)
        self.hold(3)
        a.end(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        self.start(a)

    def downgrade(self):
        """A collector of the old commit refuses the state of today's."""
        self.collector.end(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        with self.as_old(self.collector):
            self.start(self.collector, wait=False)
        until_true("it starts or refuses", self.collector.settled)
        if self.collector.p.poll() != 1:
            raise OSError("an old collector with today's state: status %s, not 1" % self.collector.p.poll())
        self.start(self.collector)

    def readers(self):
        """Clients that ask for much and read nothing, or do not even end their request."""
        found = []
        for path in 4 * ["/api/v1/jobs/real/export", "/api/v1/events", "/metrics", None]:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.settimeout(1)
            found.append(s)
            try:
                s.connect(("127.0.0.1", int(self.http)))
                s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode() if path else b"GET /api")
            except OSError:
                pass
        return found

    def slow_readers(self):
        readers, deadline = self.readers(), time.monotonic() + self.random.uniform(0.5, 2)
        while time.monotonic() < deadline:
            time.sleep(0.1)
            for s in select.select(readers, [], [], 0)[0]:
                try:
                    s.recv(1)
                except OSError:
                    pass
        for s in readers:
            s.close()

    def kinds(self):
        """Name, what it needs, and how."""
        uniform, c = self.random.uniform, self.collector
        return [
            ("kill -9 of an agent", None, lambda: self.kill_agent(self.agent())),
            ("kill -9 of the collector", None, self.kill_collector),
            ("kill -9 of an agent within a commit", "strace", lambda: self.kill_at(self.agent())),
            ("kill -9 of the collector within a commit", "strace", lambda: self.kill_at(c)),
            ("kill -9 of the job", None, self.kill_job),
            ("restart storm of agents", None, self.storm),
            ("SIGSTOP and SIGCONT", None, lambda: self.stop(self.either())),
            ("ring overrun", None, lambda: self.overrun(self.agent())),
            ("no free descriptors", None, lambda: self.descriptors(self.either())),
            ("no free memory", None, lambda: self.memory(self.either())),
            ("slow HTTP readers", None, self.slow_readers),
            ("full disk of the collector", "disk", lambda: self.fill(c)),
            ("full disk of an agent", "disk", lambda: self.fill(self.agent())),
            ("read-only disk of the collector", "disk", lambda: self.read_only(c)),
            ("read-only disk of an agent", "disk", lambda: self.read_only(self.agent())),
            ("failing writes or syncs of the collector", "strace", lambda: self.errors(c)),
            ("failing writes of an agent", "strace", lambda: self.errors(self.agent())),
            ("clock step of an hour", "faketime", lambda: self.step_clock(self.either())),
            ("half-open connection", "wire", self.half_open),
            ("partition", "wire", lambda: self.link(cut=self.random.choice([(True, True), (True, False), (False, True)]))),
            ("packet loss", "wire", lambda: self.link(loss=uniform(0.1, 0.5))),
            ("packet delay", "wire", lambda: self.link(delay_s=uniform(0.05, 0.5))),
            ("an agent of the old commit, and back", "old", lambda: self.old_agent(self.agent())),
            ("refused downgrade of the collector", "old", self.downgrade),
        ]

    # --- the run --------------------------------------------------------------

    def recover(self, kind):
        """Starts what has ended, as a service manager does, and waits until the collector is ready; what ended by itself."""
        ended = []
        for d in self.daemons:
            if d.p.poll() is not None:
                d.died.append(d.p.returncode)
                self.start(d)
            for status in d.died:
                print("%s ended with status %d at: %s" % (d.name, status, kind), flush=True)
                if status < 0 or kind != "no free memory":  # there it may give up, but not crash
                    ended.append("; %s, status %d at: %s" % (d.name, status, kind))
            d.died.clear()
        until_true("the collector is ready after: " + kind, lambda: self.get("/readyz") is not None)
        return ended

    def run(self):
        with contextlib.nullcontext() if "old" in self.missing else self.as_old(self.collector):
            self.start(self.collector)
        for a in self.agents:
            self.start(a)
        self.sim.argv += ["--connect", "tcp://127.0.0.1:" + self.listen]
        self.sim.start()
        self.start_job()
        died = self.recover("start")
        if "old" not in self.missing:
            until_true("the old collector reports a finding", lambda: self.remember() or self.findings)
            self.kill_collector()
            tell(True, "upgrade of the collector: %d findings before" % len(self.findings))
        kinds = [k for k in self.kinds() if k[1] not in self.missing]
        plan = self.random.sample(kinds, len(kinds))[:self.count]
        plan += [self.random.choice(kinds) for _ in range(self.count - len(plan))]
        times, began = collections.Counter(), time.monotonic()
        with open(os.path.join(self.work, "faults.log"), "w", encoding="utf-8", buffering=1) as log:
            for name, _, apply in plan:
                self.remember()
                log.write("%.1f %s\n" % (time.monotonic() - began, name))
                apply()
                died += self.recover(name)
                times[name] += 1
                self.hold(0.5)
        for name, need, _ in self.kinds():
            if need in self.missing:
                if self.missing[need]:
                    print("skip %s # %s" % (name, self.missing[need]), flush=True)
            elif self.count >= len(kinds) or times[name] > 0:
                tell(times[name] > 0, "%s: %d" % (name, times[name]))
        tell(not died, "no program ended by itself" + "".join(died[:5]))
        self.finish()

    def finish(self):
        """Everything that was made arrives, and all programs end."""
        status, rings = [(self.job.name, self.job.end(signal.SIGTERM))], {}
        for f in self.rings.values():
            head = os.pread(f.fileno(), 4096, 0)  # proto/FORMAT.md, "Step ring"
            rings[head[24:40].hex()] = struct.unpack_from("<Q", head, 3136)[0]
        until_true("every ring is stored and removed", lambda: not glob.glob(os.path.join(self.work, "steps/*/*.ring")))
        self.remember()
        status += [(p.name, p.end(signal.SIGTERM)) for p in [self.sim] + self.agents + [self.collector]]
        tell(not any(s for _, s in status), "every program ends well when told to" + "".join("; %s: %d" % s for s in status if s[1]))
        with open(os.path.join(self.work, "truth.json"), "w", encoding="ascii") as f:
            json.dump({"rings": rings, "findings": self.findings}, f)
        print("kills within a commit: " + ", ".join("%s %d" % p for p in sorted(self.phases.items())), flush=True)
        print("%d faults; the link dropped %d packets" % (self.count, self.wire.dropped if self.wire else 0), flush=True)

    def kill(self):
        for p in self.daemons + [self.sim, self.job]:
            if p.p and p.p.poll() is None:
                p.end(signal.SIGKILL)


def verify(work):
    """The state directory beside the truth, by a reader that shares no code with the product."""
    with open(os.path.join(work, "truth.json"), encoding="ascii") as f:
        truth = json.load(f)
    with open(os.path.join(work, "ledger"), encoding="ascii") as f:
        acked = {a["ring_id"]: a["records_acked"] for a in map(json.loads, f)}
    state = resolve.State(os.path.join(work, "state/collector"))
    damaged = glob.glob(os.path.join(work, "state/**/*damaged*"), recursive=True)
    tell(not damaged, "no file was set aside as damaged" + "".join("; " + d for d in damaged))
    tell(state.check(), "of each ring, what is stored and what is in gaps has no hole and no overlap")
    db = state.open("state.db")
    workers = {ring.hex(): worker for worker, ring in db.execute("SELECT id, ring_id FROM worker")}
    kept = {name.decode() for (name,) in db.execute("SELECT id FROM finding")}
    db.close()
    lost = twice = strange = 0
    for ring, count in list(acked.items()) + list(truth["rings"].items()):
        at = covered = 0
        for first, end in sorted(state.spans.get(workers.get(ring), [])):
            covered += max(0, min(end, count) - max(first, at))
            twice += max(0, min(at, end) - first)
            at = max(at, end)
        lost += count - covered
        strange += max(0, at - count) if ring in truth["rings"] else 0
    made = sum(truth["rings"].values())
    print("acknowledged: %d records of %d real workers and %d of %d simulated ones; %d stored, %d in gaps, %d lost, %d twice, %d never made" % (
        made, len(truth["rings"]), sum(acked.values()), len(acked), state.records, state.gaps, lost, twice, strange), flush=True)
    tell(made > 0 and sum(acked.values()) > 0 and lost + twice + strange == 0,
         "every acknowledged record is stored exactly once or is in a reported gap")
    if truth["findings"]:
        gone = ["; gone: %s %s" % f for f in truth["findings"].items() if f[0] not in kept]
        tell(not gone, "every reported finding is kept: %d" % len(truth["findings"]) + "".join(gone[:5]))
    else:
        print("skip every reported finding is kept # none was reported", flush=True)


def main():
    def end(number, _frame):
        sys.exit(128 + number)
    if sys.argv[1:2] == ["verify"] and len(sys.argv) == 3:
        return verify(sys.argv[2])
    if sys.argv[1:2] != ["run"] or len(sys.argv) != 7:
        sys.exit(__doc__)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    faults = Faults(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6] == "own")
    try:
        return faults.run()
    except (OSError, subprocess.SubprocessError) as e:
        tell(False, "the run comes to its end: %s" % e)
        return 1
    finally:
        faults.kill()


if __name__ == "__main__":
    sys.exit(main())
