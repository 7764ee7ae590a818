#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a step mark costs a Python training loop. Each line is "name value unit".

mark_python_ns        a phase mark in a tight loop, the least of several rounds
mark_python_paced_ns  median of one phase mark when marks are 2 ms apart (cold caches)
mark_python_datagram_paced_ns  median of a record's bytes sent as a Unix datagram to a sleeping reader, as far apart
mark_python_paced_ratio  the mark over the datagram
mark_python_step_ns   a whole step: begin, two phases, a barrier, work, end
hook_gc_ns            both calls of gc.callbacks for one collection, in a step
hook_compile_ns       one event of jax.monitoring that is the end of a compilation, in a step
hook_passed_ns        one event that is none of ours
"""

import os
import socket
import statistics
import sys
import tempfile
import time

TOP = os.environ.get("top_srcdir", os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(TOP, "agent", "client", "python"))
import lockstep  # noqa: E402  pylint: disable=wrong-import-position

RECORD_BYTES = 320  # a slot of the ring


def tight(rounds=9, marks=20000):
    """ns a mark."""
    best = float("inf")
    with lockstep.step(0):
        for _ in range(rounds):
            begin = time.perf_counter_ns()
            for _ in range(marks):
                lockstep.phase("compute")
            best = min(best, (time.perf_counter_ns() - begin) / marks)
    return best


def paced(marks=400):
    """ns, median."""
    times = []
    with lockstep.step(1):
        for _ in range(marks):
            time.sleep(0.002)
            begin = time.perf_counter_ns()
            lockstep.phase("compute")
            times.append(time.perf_counter_ns() - begin)
    return statistics.median(times)


def datagrams(count=400):
    """ns, median; the reader is a process, as the agent would be: a thread would share our lock."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    child = os.fork()
    if child == 0:
        ours.close()
        while theirs.recv(512):
            pass
        os._exit(0)  # pylint: disable=protected-access
    record, times = bytes(RECORD_BYTES), []
    for _ in range(count):
        time.sleep(0.002)
        begin = time.perf_counter_ns()
        ours.send(record)
        times.append(time.perf_counter_ns() - begin)
    ours.send(b"")
    os.waitpid(child, 0)
    return statistics.median(times)


def steps(rounds=9, count=3000):
    """ns a step."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        for i in range(count):
            with lockstep.step(i):
                lockstep.phase("input_wait")
                lockstep.phase("compute")
                with lockstep.sync_wait():
                    pass
                lockstep.work(tokens=4096)
        best = min(best, (time.perf_counter_ns() - begin) / count)
    return best


def least(call, rounds=9, count=5000):
    """ns a call, within a step."""
    best = float("inf")
    for i in range(rounds):
        with lockstep.step(i):
            begin = time.perf_counter_ns()
            for _ in range(count):
                call()
            best = min(best, (time.perf_counter_ns() - begin) / count)
    return best


def hooks():
    """Prints what the hooks cost."""
    hook = lockstep._marks.hooks  # pylint: disable=protected-access

    def collection():
        hook.on_gc("start", {})
        hook.on_gc("stop", {})

    print("hook_gc_ns %.0f ns" % least(collection))
    print("hook_compile_ns %.0f ns" % least(lambda: hook.on_duration(
        "/jax/core/compile/backend_compile_duration", 0.0, fun_name="jit(train_step)")))
    print("hook_passed_ns %.0f ns" % least(lambda: hook.on_duration("/jax/other", 0.0, some="kw")))


def main():
    """Prints the numbers."""
    with tempfile.TemporaryDirectory() as directory:
        if not lockstep.open(steps_dir=directory):
            sys.exit("bench_mark.py: no ring in " + directory)
        print("mark_python_ns %.0f ns" % tight())
        mark, datagram = paced(), datagrams()
        print("mark_python_paced_ns %.0f ns" % mark)
        print("mark_python_datagram_paced_ns %.0f ns" % datagram)
        print("mark_python_paced_ratio %.3f 1" % (mark / datagram))
        print("mark_python_step_ns %.0f ns" % steps())
        hooks()
        lockstep.close()


if __name__ == "__main__":
    main()
