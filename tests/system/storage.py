#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a collector has stored, beside what it acknowledged to lockstep-sim.

storage.py steps LEDGER           export lines on standard input: exit 0 if each acknowledged record (by its index
                                  in the ring, which is its step) is there exactly once, and no other
storage.py chunks LEDGER STATE SIM
                                  the day files below STATE, beside what the simulator printed last (SIM): exit 0 if
                                  each acknowledged chunk is there exactly once, and each loss that was told. The
                                  agents must all have been acknowledged everything.
storage.py wait URL red|green S   exit 0 as soon as /readyz answers 503 (200), 1 after S seconds; prints the answer
"""
import collections
import glob
import hashlib
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.request

DICTIONARIES = 2  # of the host's series and of its chips', one item each


def ledger_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def steps(ledger):
    stored = collections.defaultdict(collections.Counter)
    for line in sys.stdin:
        r = json.loads(line)
        if "step" in r and "t_begin" in r:
            stored[r["host"]][r["step"]] += 1
    bad = 0
    for a in ledger:
        seen, acked = stored[a["host"]], set(range(a["records_acked"]))
        missing, twice = acked - set(seen), [s for s in seen if seen[s] > 1]
        strange = [s for s in seen if s >= a["records_made"]]
        if missing or twice or strange:
            bad += 1
            print("%s: missing %s, twice %s, never made %s" % (
                a["host"], sorted(missing)[:5], sorted(twice)[:5], strange[:5]))
    count = sum(sum(c.values()) for c in stored.values())
    print("%d hosts, %d records stored, %d acknowledged, %d hosts wrong" % (
        len(ledger), count, sum(a["records_acked"] for a in ledger), bad))
    return 1 if bad or not count else 0


def rows_of(state, sql):
    for path in sorted(glob.glob(os.path.join(state, "telemetry", "*.db"))):
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        yield from db.execute(sql)
        db.close()


def bodies_of(state):
    """Host, dictionary, first and last time and body of all chunks; times are of the sender's own clock, +- 1 us."""
    for path in sorted(glob.glob(os.path.join(state, "telemetry", "*.db"))):
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        parts = b"".join(b for (b,) in db.execute("SELECT bytes FROM body_part ORDER BY id"))
        for host, dictionary, first, last, ref, offset, drift, at, size in db.execute(
                "SELECT h.name, c.dictionary, c.t_first_us, c.t_last_us, c.ref_mono_ns, c.offset_ns, c.drift_ppb, "
                "c.at, c.len FROM chunk c JOIN chunk_host h ON h.id = c.host_id"):
            first, last = (ref + (1000 * t - offset - ref) / (1 + drift / 1e9) for t in (first, last))
            yield host, dictionary, first, last, parts[at:at + size]
        db.close()


def wrong_of(rows):
    """What is wrong with the chunks of one group of a host; None: nothing."""
    rows = sorted(rows)
    if len({r[2] for r in rows}) != len(rows):
        return "a chunk twice"
    for before, after in zip(rows, rows[1:]):
        # On our time line two may overlap: after a restart a clock is known from one exchange, to half its time.
        # On the sender's a sample has one time, and chunks of a group follow each other.
        if after[0] <= before[1] + 2000:
            return "two chunks of one time: %d to %d, %d to %d" % (before[:2] + after[:2])
    return None


def chunks(ledger, state, total):
    found, items, samples = collections.defaultdict(list), collections.Counter(), 0
    bad = count = 0
    for host, dictionary, first, last, body in bodies_of(state):
        found[host, dictionary].append((first, last, hashlib.sha256(body).digest()))
        items[host] += 1
        count += 1
    for host, lost in rows_of(state, "SELECT h.name, l.samples FROM lost l JOIN chunk_host h ON h.id = l.host_id"):
        items[host] += 1
        samples += lost
    for (host, dictionary), rows in found.items():
        wrong = wrong_of(rows)
        if wrong:
            bad += 1
            print("%s, dictionary %x: %s" % (host, dictionary & (1 << 64) - 1, wrong))
    for a in ledger:
        if a["acked_chunk_seq"] + 1 != a["next_chunk_seq"] or (
                items[a["host"]] and items[a["host"]] + DICTIONARIES != a["acked_chunk_seq"]):
            bad += 1
            print("%s: %d chunks and losses stored, %d items acknowledged of %d" % (
                a["host"], items[a["host"]], a["acked_chunk_seq"], a["next_chunk_seq"] - 1))
    print("%d hosts, %d chunks stored, %d acknowledged; %d samples told lost, %d acknowledged; %d wrong" % (
        len(ledger), count, total["durable_chunks"], samples, total["lost_samples"], bad))
    return 1 if bad or not count or count != total["durable_chunks"] or samples > total["lost_samples"] else 0


def wait(url, colour, seconds):
    wanted, deadline = {"red": 503, "green": 200}[colour], time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url + "/readyz", timeout=5) as r:
                status, text = r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            status, text = e.code, e.read().decode()
        except OSError as e:
            status, text = 0, str(e)
        if status == wanted or time.monotonic() > deadline:
            print(status, text)
            return 0 if status == wanted else 1
        time.sleep(0.1)


def main():
    a = sys.argv[1:]
    if a[:1] == ["steps"] and len(a) == 2:
        return steps(ledger_of(a[1]))
    if a[:1] == ["chunks"] and len(a) == 4:
        return chunks(ledger_of(a[1]), a[2], ledger_of(a[3])[-1])
    if a[:1] == ["wait"] and len(a) == 4 and a[2] in ("red", "green"):
        return wait(a[1], a[2], float(a[3]))
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
