#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a daemon as a service manager would: notified.py DIR PROGRAM [ARGUMENT]...

Exit 0 if it says READY=1, then WATCHDOG=1 again and again, survives SIGHUP, says STOPPING=1 after SIGTERM and ends with
status 0. How fast is the machine's affair: check_notify.c has the intervals.
"""
import os
import signal
import socket
import subprocess
import sys
import time

PATIENCE_S = 120
directory, command = sys.argv[1], sys.argv[2:]
path = os.path.join(directory, "notify")
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(path)
environment = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC="2000000")
daemon = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)


def heard(word):
    """Whether a line `word` comes."""
    end = time.monotonic() + PATIENCE_S
    while (left := end - time.monotonic()) > 0:
        manager.settimeout(left)
        try:
            if word in manager.recv(4096).decode().split("\n"):
                return True
        except socket.timeout:
            break
    return False


def expect(condition, what):
    print("%s: %s" % (what, "yes" if condition else "NO"))
    if not condition:
        daemon.kill()
        sys.exit(1)


expect(heard("READY=1"), "ready")
expect(all(heard("WATCHDOG=1") for _ in range(3)), "watchdog")
daemon.send_signal(signal.SIGHUP)
expect(heard("WATCHDOG=1") and heard("WATCHDOG=1") and daemon.poll() is None, "survives SIGHUP")
daemon.send_signal(signal.SIGTERM)
expect(heard("STOPPING=1"), "says that it stops")
try:
    expect(daemon.wait(PATIENCE_S) == 0, "ends with status 0")
except subprocess.TimeoutExpired:
    expect(False, "ends within %d s" % PATIENCE_S)
