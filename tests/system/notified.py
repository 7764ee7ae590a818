#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a daemon as a service manager would: notified.py DIR PROGRAM [ARGUMENT]...

Exit 0 if it says READY=1 within 10 s, WATCHDOG=1 at least every second, survives SIGHUP, says
STOPPING=1 after SIGTERM and ends with status 0 within 5 s.
"""
import os
import signal
import socket
import subprocess
import sys
import time

directory, command = sys.argv[1], sys.argv[2:]
path = os.path.join(directory, "notify")
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(path)
environment = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC="2000000")
daemon = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)


def heard(word, seconds):
    """Whether a line `word` comes within so long."""
    end = time.monotonic() + seconds
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


expect(heard("READY=1", 10), "ready")
expect(all(heard("WATCHDOG=1", 1.5) for _ in range(3)), "watchdog")
daemon.send_signal(signal.SIGHUP)
time.sleep(0.5)
expect(daemon.poll() is None and heard("WATCHDOG=1", 1.5), "survives SIGHUP")
daemon.send_signal(signal.SIGTERM)
expect(heard("STOPPING=1", 2), "says that it stops")
try:
    expect(daemon.wait(5) == 0, "ends with status 0")
except subprocess.TimeoutExpired:
    expect(False, "ends within 5 s")
