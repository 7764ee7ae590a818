#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leash.py COMMAND...: runs a command so that nothing of it is left, however it ends.

TMPDIR of the command is a new directory. When the command ends, or this process gets SIGINT, SIGTERM or SIGHUP, or its
parent dies, every process that descends from the command is killed and the directory is removed. Exit status: the
command's, or 128 + the signal.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 8  # from SIGTERM to SIGKILL


class Ended(Exception):
    """A signal asks for the end."""


def descendants():
    """Processes below this one. A subreaper inherits orphans, so none escapes by a double fork."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as f:
                    fields = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def wait_for(child):
    """The child's status. Orphans are reaped meanwhile: a container waits for those that its processes have left."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def kill_all():
    deadline = time.monotonic() + GRACE_S
    first = True
    while (left := descendants()):
        for pid in left:
            try:
                if first or time.monotonic() > deadline:
                    os.kill(pid, signal.SIGTERM if first else signal.SIGKILL)
                    os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        first = False
        time.sleep(0.05)
        reap()


def main():
    def end(number, _frame):
        raise Ended(number)

    parent = os.getppid()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    directory = tempfile.mkdtemp(prefix="lockstep-tests.")
    os.chmod(directory, 0o755)
    try:
        child = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *sys.argv[1:]],  # if this process is killed
                                 env=dict(os.environ, TMPDIR=directory), start_new_session=True)
        status = wait_for(child.pid)
        status = status if status >= 0 else 128 - status
    except Ended as signalled:
        status = 128 + signalled.args[0]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kill_all()
    shutil.rmtree(directory, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
