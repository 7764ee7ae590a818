#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wire between two tap devices: hands Ethernet frames on, and from SIGUSR1 to SIGUSR2 late, or not all.

usage: wire.py DEVICE DEVICE [--delay SECONDS] [--loss RATIO] [--seed N]

Both directions are treated alike. A kernel without netem has no other way to delay what is sent on
a link, below TCP, so that TCP's own round-trip times and retransmits tell of it. Prints `ready` when
it hands on, and at SIGTERM a line of what it did. Needs root.
"""

import argparse
import collections
import fcntl
import os
import random
import select
import signal
import struct
import sys
import time

TUNSETIFF = 0x400454ca  # linux/if_tun.h
IFF_TAP_NO_PI = 0x0002 | 0x1000
FRAME_MAX_BYTES = 65536
QUEUE_MAX_FRAMES = 4096  # a direction; what comes then is lost, as in a switch


def tap(name):
    """The open end of a tap device."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode("ascii"), IFF_TAP_NO_PI))
    return fd


class Wire:
    """Frames on their way, and what became of them."""

    def __init__(self, options):
        self.options = options
        self.ends = [tap(name) for name in options.device]
        self.ways = {self.ends[0]: collections.deque(), self.ends[1]: collections.deque()}
        self.other = {self.ends[0]: self.ends[1], self.ends[1]: self.ends[0]}
        self.chance = random.Random(options.seed)
        self.bad = False
        self.over = False
        self.count = collections.Counter()

    def take(self, end, now):
        """Everything that lies at this end."""
        way = self.ways[self.other[end]]
        while True:
            try:
                frame = os.read(end, FRAME_MAX_BYTES)
            except BlockingIOError:
                return
            self.count["frames"] += 1
            if self.bad and self.chance.random() < self.options.loss:
                self.count["lost"] += 1
            elif len(way) >= QUEUE_MAX_FRAMES:
                self.count["overrun"] += 1
            else:
                # Never before its predecessor: a wire keeps the order, also when the delay ends.
                due = now + (self.options.delay if self.bad else 0)
                way.append((max(due, way[-1][0]) if way else due, frame))

    def give(self, end, now):
        """Everything that is due at this end; when the next frame is, or None."""
        way = self.ways[end]
        while way and way[0][0] <= now:
            try:
                os.write(end, way[0][1])
            except OSError:
                self.count["refused"] += 1  # the device is down: the frame is lost
            way.popleft()
        return way[0][0] if way else None

    def run(self):
        """Until SIGTERM."""
        while not self.over:
            now = time.monotonic()
            due = [t for t in (self.give(end, now) for end in self.ends) if t is not None]
            wait = max(0, min(due) - now) if due else 1
            for end in select.select(self.ends, [], [], wait)[0]:
                self.take(end, time.monotonic())


def main():
    """Parses, and hands on."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("device", nargs=2)
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--loss", type=float, default=0.0, metavar="RATIO")
    parser.add_argument("--seed", type=int, default=1)
    wire = Wire(parser.parse_args())

    def on(signum, _frame):
        wire.bad = signum == signal.SIGUSR1
        wire.over = wire.over or signum == signal.SIGTERM

    for which in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        signal.signal(which, on)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # a wire does not wait for a CPU
    except PermissionError:
        pass
    print("ready", flush=True)
    wire.run()
    print("frames %d, lost %d, overrun %d, refused %d" %
          tuple(wire.count[k] for k in ("frames", "lost", "overrun", "refused")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
