# SPDX-License-Identifier: Apache-2.0
"""The writing side of a step ring: one file, created whole, mapped, and locked for life.

Layout: proto/ring/ring.h. All times are ns of CLOCK_MONOTONIC unless said.
"""

import errno
import fcntl
import mmap
import os
import struct
import sys
import time

from ._identity import (ENV_BYTES, FIELDS, HOST_BYTES, JOB_BYTES, ROLE_BYTES, SLICE_BYTES,
                        name_bytes)

MAGIC, VERSION = b"LSRING01", 1
EVENTS_AT, EVENTS_BYTES = 4096, 4096
HEADER_BYTES, SLOT_BYTES, SLOTS = EVENTS_AT + EVENTS_BYTES, 320, 4096
NO_END, ENDED, FAILED = 0, 1, 2  # flag of the end: none, clean, an exception
PHASES = 11
CHECKPOINT, COMPILE, GC = 6, 7, 8
BETWEEN_STEPS = PHASES  # phase of the live slot

# Places in the file, and in a record (a slot without its first and last word), in 8-byte words.
LIVE, HEAD, FIRST_SLOT, SLOT_WORDS = 3072 // 8, 3136 // 8, HEADER_BYTES // 8, SLOT_BYTES // 8
RECORD_WORDS = SLOT_WORDS - 2
STEP, BEGIN, DURATION, COUNTS, MASK, PHASE, BARRIER, WORK, PEER = 0, 1, 2, 3, 4, 5, 16, 24, 30
# The block of events, in words from its begin: a mask of the counters that are kept, the counters, and
# functions, each with compilations, ns and a name.
EVENTS, EVENTS_MEASURED, EVENTS_COUNTER, EVENTS_FUNCTION = EVENTS_AT // 8, 0, 1, 16
FUNCTIONS, FUNCTION_WORDS, FUNCTION_NAME_BYTES = 32, 14, 96


def _boot_id():
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))[:16].ljust(16, b"\0")
    except (OSError, ValueError):
        return bytes(16)  # the agent then trusts its own


def _header(identity, ring_id, slots, now, events):
    header = bytearray(HEADER_BYTES)
    struct.pack_into("<8s4I16s16s", header, 0, MAGIC, VERSION, HEADER_BYTES, SLOT_BYTES, slots,
                     ring_id, _boot_id())
    struct.pack_into("<QqII4i", header, 56, now, time.time_ns(), os.getpid(), 0,
                     identity.attempt, identity.rank, identity.world, identity.chips)
    header[96:104] = bytes(identity.source[field] for field in FIELDS)
    names = (name_bytes(identity.job, JOB_BYTES) + name_bytes(identity.slice, SLICE_BYTES) +
             name_bytes(identity.role, ROLE_BYTES) + name_bytes(identity.host, HOST_BYTES))
    header[104:104 + len(names)] = names
    header[512:512 + ENV_BYTES] = identity.env.ljust(ENV_BYTES, b"\0")
    header[EVENTS_AT:EVENTS_AT + len(events)] = events
    struct.pack_into("<QQIIQQ", header, LIVE * 8, 0, 0, BETWEEN_STEPS, 0, now, 0)
    return header


class Ring:
    """One open ring. The constructor raises OSError and then leaves nothing in the directory."""

    __slots__ = ("words", "slots", "head", "_fd", "_map")

    def __init__(self, directory, identity, now, slots=SLOTS, events=b""):
        if sys.byteorder != "little":
            raise OSError(errno.ENOSYS, "the ring is little-endian and written in place")
        size = HEADER_BYTES + slots * SLOT_BYTES
        ring_id = os.urandom(16)
        stem = os.path.join(directory, "%d-%s" % (os.getpid(), ring_id.hex()))
        self._fd = os.open(stem + ".tmp", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC |
                           os.O_NOFOLLOW, 0o600)
        try:
            # Every block, so that a full disk is an error here and no SIGBUS later.
            os.posix_fallocate(self._fd, 0, size)
            self._map = mmap.mmap(self._fd, size, mmap.MAP_SHARED |
                                  getattr(mmap, "MAP_POPULATE", 0))
            self._map[:HEADER_BYTES] = bytes(_header(identity, ring_id, slots, now,
                                                          bytes(events)))
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            os.fchmod(self._fd, 0o644)
            # Renamed when the header is complete: a reader never sees half of one.
            os.rename(stem + ".tmp", stem + ".ring")
        except BaseException:
            os.close(self._fd)
            os.unlink(stem + ".tmp")
            raise
        self.words = memoryview(self._map).cast("Q")
        self.slots = slots
        self.head = 0

    def live(self, sequence, step, phase, since):
        """Writes the live slot; sequence: even, another each time. Its twin goes first, itself last."""
        words = self.words
        words[LIVE] = sequence - 1
        words[LIVE + 4] = sequence
        words[LIVE + 1] = step
        words[LIVE + 2] = phase
        words[LIVE + 3] = since
        words[LIVE] = sequence

    def push(self, record):
        """Publishes one record: RECORD_WORDS words, a memoryview or array of format "Q"."""
        words, index = self.words, self.head + 1
        at = FIRST_SLOT + self.head % self.slots * SLOT_WORDS
        words[at] = 0
        words[at + SLOT_WORDS - 1] = index
        words[at + 1:at + SLOT_WORDS - 1] = record
        words[at] = index
        self.head = words[HEAD] = index

    def close(self, end=ENDED):
        """Leaves the flag of the end and closes; a forked child leaves none."""
        if end:
            struct.pack_into("<I", self._map, 76, end)
        self.words.release()
        self._map.close()
        os.close(self._fd)
