#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resolve.py DIR - an independent reader of a collector's state directory, while no collector runs.

It shares no code with the product: Python's sqlite3, and the byte formats of proto/FORMAT.md. It fails unless
  - state.db holds each worker id that a day's file names (journal, units, gaps, ends, positions);
  - of each ring, records and gaps follow each other from the first stored index up to the acknowledged one,
    without a hole and without an overlap.
Where a damaged file was set aside, holes are expected and only ids are checked. Exit status: 0 sound, 1 not, 2 usage.
"""
import datetime
import os
import re
import sqlite3
import struct
import sys
import zlib

M64 = (1 << 64) - 1
RICE_LIMIT = 20


class Damaged(Exception):
    pass


class Bits:
    """Bits of a packed body, lowest first."""

    def __init__(self, body, head):
        if zlib.crc32(body[:-4]) != struct.unpack("<I", body[-4:])[0]:
            raise Damaged("wrong checksum")
        self.value = int.from_bytes(body[head:-4], "little")
        self.left = 8 * (len(body) - head - 4)

    def take(self, n):
        self.left -= n
        if self.left < 0:
            raise Damaged("too short")
        v = self.value & ((1 << n) - 1)
        self.value >>= n
        return v

    def rice(self, k):
        q = 0
        while q < RICE_LIMIT and self.take(1) == 0:
            q += 1
        if q < RICE_LIMIT:
            return q << k | self.take(k)
        return self.take(self.take(6) + 1)


class Mean:
    """The k of a column, which follows the mean of its residuals."""

    def __init__(self, k):
        self.m = 32 << k if k > 0 else 0

    def read(self, bits):
        u = bits.rice((self.m * 11 >> 9).bit_length())
        self.m += min(u, self.m + 32) - (self.m >> 5)
        return u


def column(bits, n):
    if n == 0:
        return []
    kind = bits.take(2)
    if kind == 0:
        return [0] * n
    values = Mean(bits.take(7))
    if kind == 1:
        return [values.read(bits) for _ in range(n)]
    out, runs = [], Mean(4)
    while len(out) < n:
        out += [0] * runs.read(bits)
        if len(out) < n:
            out.append(values.read(bits) + 1)
    return out


def unfold(u):
    return u >> 1 ^ -(u & 1)


def step_runs(body):
    """(worker id, first index, count) of each run of a step_rows body."""
    if body[0] != 1:
        raise Damaged("step rows of version %d" % body[0])
    runs, records = struct.unpack_from("<II", body, 2)
    bits = Bits(body, 10)
    c_worker, _, _, c_count, _, c_index = [column(bits, runs) for _ in range(6)]
    c_step = iter(column(bits, records))
    follow, end, seen = {}, {}, {}  # by worker: who came next; index behind the last run; step and stride
    last = count = 0
    run_step = offset = 0
    known = False
    for i in range(runs):
        guess = follow.get(last, last + 1) if known else 0
        worker = (guess + unfold(c_worker[i])) & M64
        fresh = worker not in end
        if known:
            follow[last] = worker
        count = (count + unfold(c_count[i])) & M64
        first = None
        for _ in range(count):
            u = unfold(next(c_step))
            if worker in seen:
                step, stride = seen[worker]
                now = (step + stride + u) & M64
                seen[worker] = (now, now - step)
            else:
                now = (run_step + u) & M64
                seen[worker] = (now, 1)
            if first is None:
                first = run_step = now
        index = ((first + offset if fresh else end[worker]) + unfold(c_index[i])) & M64
        end[worker] = index + count
        offset = index - first
        last, known = worker, True
        yield worker, index, count


def hot_workers(body):
    """The workers that a hot_rows body names."""
    if body[0] != 1:
        raise Damaged("hot rows of version %d" % body[0])
    keys = struct.unpack_from("<I", body, 6)[0]
    bits = Bits(body, 18)
    for _ in range(keys):
        bits.take(7)
        for _ in range(bits.take(7)):
            bits.take(8)
    last = 0
    for u in column(bits, sum(column(bits, keys))):
        last = (last + unfold(u) + 1) & M64
        yield last


class Journal:
    """Entries of a journal body."""

    def __init__(self, body):
        if body[:4] != b"LSJ\x01" or zlib.crc32(body[8:]) != struct.unpack_from("<I", body, 4)[0]:
            raise Damaged("journal row")
        self.body, self.at, self.entries = body, 16, struct.unpack_from("<I", body, 8)[0]

    def number(self):
        v = shift = 0
        while True:
            b = self.body[self.at]
            self.at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def skip(self, numbers):
        for _ in range(numbers):
            self.number()

    def take(self, n):
        self.at += n
        return self.body[self.at - n:self.at]

    def read(self):
        """("steps", worker, first, count), ("hot", worker) and ("ring", ring id, worker, high)."""
        for _ in range(self.entries):
            kind = self.take(1)[0]
            self.skip(1)
            if kind == 0:
                self.skip(1)
                entry = ("steps", self.number(), self.number(), self.number())
                self.skip(8)
                self.take(self.number())
                yield entry
            elif kind == 1:
                self.skip(1)
                self.take(self.take(1)[0])
                yield ("hot", self.number())
                self.skip(1)
                n = self.take(1)[0]
                self.skip(n)
                self.take(8 * n)
            elif kind == 2:
                self.take(16)
                self.take(self.take(1)[0])
                self.skip(2)
            elif kind == 3:
                yield ("ring", bytes(self.take(16)), self.number(), self.number())
            else:
                raise Damaged("journal entry of kind %d" % kind)


class State:
    def __init__(self, path):
        self.path = path
        self.used = {}  # worker id: where it was met first
        self.spans = {}  # worker id: [(first, end)]
        self.high = {}  # ring id: (high, worker id, day)
        self.wrong = []
        self.records = self.gaps = 0
        self.damaged = any(".damaged" in name for _, _, names in os.walk(path) for name in names)

    def open(self, *name):
        db = sqlite3.connect("file:%s?mode=ro" % os.path.join(self.path, *name), uri=True)
        db.text_factory = bytes
        return db

    def use(self, worker, where):
        if worker != 0:
            self.used.setdefault(worker, where)

    def span(self, worker, first, count, where):
        self.use(worker, where)
        self.spans.setdefault(worker, []).append((first, first + count))

    def position(self, ring, worker, high, day):
        self.use(worker, day + " ring_high")
        if high >= self.high.get(ring, (0,))[0]:
            self.high[ring] = (high, worker, day)

    def journal(self, body, day):
        for entry in Journal(body).read():
            if entry[0] == "steps":
                self.records += entry[3]
                self.span(*entry[1:], day + " journal")
            elif entry[0] == "hot":
                self.use(entry[1], day + " journal")
            else:
                self.position(*entry[1:], day)

    def day(self, day):
        db = self.open("telemetry", day)
        for table, read in (("journal", lambda body: self.journal(body, day)),
                            ("step_rows", lambda body: self.runs(body, day)),
                            ("hot_rows", lambda body: [self.use(w, day + " hot_rows") for w in hot_workers(body)])):
            for number, body in db.execute("SELECT id, body FROM %s" % table):
                try:
                    read(bytes(body))
                except (Damaged, IndexError, struct.error) as e:
                    self.wrong.append("%s: %s %d cannot be read: %s" % (day, table, number, e))
        for worker, first, n in db.execute("SELECT worker_id, first_index, n FROM gap"):
            self.gaps += n
            self.span(worker, first, n, day + " gap")
        for (worker,) in db.execute("SELECT worker_id FROM worker_end"):
            self.use(worker, day + " worker_end")
        # Positions that an earlier day brought are of that day.
        for ring, worker, high, t_us in db.execute("SELECT ring_id, worker_id, high, t_us FROM ring_high"):
            of = datetime.datetime.fromtimestamp(t_us // 10**6, datetime.timezone.utc).strftime("%Y%m%d.db")
            self.position(bytes(ring), worker, high, of)
        db.close()

    def runs(self, body, day):
        for worker, first, count in step_runs(body):
            self.records += count
            self.span(worker, first, count, day + " step_rows")

    def check_ids(self, workers):
        for worker, where in sorted(self.used.items()):
            if worker not in workers:
                self.wrong.append("worker id %d of %s is not in state.db" % (worker, where))

    def check_rings(self, workers, days):
        by_ring = {}
        for worker, spans in self.spans.items():
            if worker in workers:
                by_ring.setdefault(workers[worker], []).extend(spans)
        for ring, (high, worker, day) in self.high.items():
            spans = sorted(by_ring.get(workers.get(worker, ring), []))
            at = spans[0][0] if spans else high if day not in days else 0
            for first, end in spans:
                if first != at:
                    self.wrong.append("ring %s (worker %d): %s from %d to %d" % (
                        ring.hex(), worker, "a hole" if first > at else "stored twice", min(first, at), max(first, at)))
                at = max(at, end)
            if at != high:
                self.wrong.append("ring %s (worker %d): acknowledged up to %d, readable up to %d" % (ring.hex(), worker, high, at))

    def check(self):
        days = sorted(n for n in os.listdir(os.path.join(self.path, "telemetry")) if re.fullmatch(r"\d{8}\.db", n))
        db = self.open("state.db")
        workers = {worker: bytes(ring) for worker, ring in db.execute("SELECT id, ring_id FROM worker")}
        db.close()
        for day in days:
            self.day(day)
        if not any(n.startswith("state.db.damaged") for n in os.listdir(self.path)):
            self.check_ids(workers)
        if not self.damaged:
            self.check_rings(workers, days)
        print("%d workers, %d rings, %d step records in %d day files%s" % (
            len(workers), len(self.high), self.records, len(days), "; a damaged file is set aside" if self.damaged else ""))
        for line in self.wrong[:20]:
            print(line)
        if len(self.wrong) > 20:
            print("%d more" % (len(self.wrong) - 20))
        return not self.wrong


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    return 0 if State(argv[1]).check() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
