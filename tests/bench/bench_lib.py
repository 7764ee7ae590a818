# SPDX-License-Identifier: Apache-2.0
"""What the benches of whole programs share: a collector and an agent of this build, their use."""

import atexit
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TOP = os.path.abspath(os.environ.get("top_srcdir", os.path.join(os.path.dirname(__file__), "../..")))
BUILD = os.path.abspath(os.environ.get("top_builddir", "."))
PAGE = os.sysconf("SC_PAGESIZE")

work = tempfile.mkdtemp(prefix="lockstep-bench-")
_programs = []


def _end():
    for p in reversed(_programs):
        if p.poll() is None:
            p.send_signal(signal.SIGCONT)
            p.terminate()
    for p in reversed(_programs):
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    shutil.rmtree(work, ignore_errors=True)


atexit.register(_end)


def say(name, value, unit):
    """One line of a bench."""
    print("%s %s %s" % (name, value, unit), flush=True)


def note(name, text):
    """What one must know to read the lines of that name."""
    print("%s # %s" % (name, text), flush=True)


def skip(name, why):
    """A visible reason why a line is missing."""
    print("%s # SKIP %s" % (name, why), flush=True)


def start(*command, **options):
    """A program that is ended with us; its output goes into the work directory, as .log tells."""
    path = os.path.join(work, "log-%d" % len(_programs))
    with open(path, "wb") as log:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                             env={k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")},
                             **options)
    p.log = path
    _programs.append(p)
    return p


def ports(path):
    """What a --port-file says, once it is there."""
    for _ in range(200):
        try:
            with open(path, encoding="ascii") as f:
                words = f.read().split()
            if words:
                return {k: int(v) for k, v in (w.split("=") for w in words)}
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    raise SystemExit("no program wrote " + path)


def collector_in(name, *options):
    """Starts one with a state directory of this name; process, directory and ports."""
    file, state = os.path.join(work, name + ".port"), os.path.join(work, name)
    p = start(os.path.join(BUILD, "lockstep-collector"), "--listen", "tcp://127.0.0.1:0", "--http",
              "127.0.0.1:0", "--state-dir", state, "--port-file", file, *options)
    return p, state, ports(file)


def collector():
    """Starts one; its ingest port."""
    return collector_in("collector")[2]["ingest"]


def keys(name, hosts):
    """Certificates of a collector on loopback and of these hosts, in a directory of this name; the options that name it."""
    path = os.path.join(work, name)
    for words in (["init", path, "127.0.0.1"], ["agent", path, *hosts]):
        subprocess.run([os.path.join(BUILD, "lockstep"), "keys", *words], check=True)
    return "--keys", path


def agent(ingest, steps, *options, build=BUILD, name="bench"):
    """Starts one that reads the rings in `steps`; process and HTTP port."""
    file = os.path.join(work, name + ".port")
    p = start(os.path.join(build, "lockstep-agent"), "--collector", "tcp://127.0.0.1:%d" % ingest,
              "--host-name", name, "--state-dir", os.path.join(work, "agent-" + name), "--steps-dir", steps,
              "--http", "127.0.0.1:0", "--port-file", file, *options)
    return p, ports(file)["http"]


def get(port, path):
    """The body of a 200."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    c.request("GET", path)
    r = c.getresponse()
    body = r.read()
    c.close()
    if r.status != 200:
        raise SystemExit("%s: %d" % (path, r.status))
    return body


def get_json(port, path):
    """The same, parsed."""
    return json.loads(get(port, path))


def cpu_ns(pid):
    """CPU time of all threads that there are, as the scheduler counts it."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def process_cpu_ns(pid):
    """CPU time of a process, threads that have ended too: its clock, as clock_getcpuclockid gives it."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def stop(process):
    """Ends a program of ours as a service manager does; a failure if it ends badly."""
    process.terminate()
    if process.wait(60) != 0:
        raise SystemExit("%s: ended with status %d" % (process.args[0], process.returncode))


def remove(path):
    """What a program left, when no more is asked of it."""
    shutil.rmtree(path)


def free_port():
    """A TCP port that nobody has now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rss_bytes(pid):
    """Resident memory."""
    with open("/proc/%d/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[1]) * PAGE


def peak_bytes(pid):
    """The greatest that it was so far."""
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def find_program(name):
    """A program of PATH, or of a package that tests/run unpacked; None if it is nowhere."""
    tools = [os.path.join(BUILD, "tools", d) for d in ("usr/bin", "usr/sbin", "bin", "sbin")]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"] + tools))
