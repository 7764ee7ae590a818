#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Garbage for hostile.sh. The seed is fixed: a failure can be repeated.

hostile.py port PORT       what strangers send to the ingest port
hostile.py flood PORT      reports of 300 kB without pause on FLOODS connections, beside a peer with small reports;
                           fails if they are answered at once, or the peer is not
hostile.py http PORT       what strangers send to the HTTP port
hostile.py rings DIR OTHER [REAL]  files that are no rings, or lie; REAL: a ring to damage copies of, one of which
                           goes to the directory OTHER: of one ring in a directory only one file is read
"""
import concurrent.futures
import os
import random
import socket
import struct
import sys
import time

RANDOM = random.Random(7117)
# nng's stream protocol: header of a REQ peer, then messages of 8 bytes of length and a body that
# begins with the request id (its high bit set).
SP_REQ = b"\0SP\0\0\x30\0\0"
FLOODS = 4


def message(body, claimed=None):
    body = struct.pack(">I", 0x80000001) + body
    return struct.pack(">Q", len(body) if claimed is None else claimed) + body


def send(port, name, data, wait=0.3):
    """Sends, reads what comes for a moment, closes; a refused write is an answer too."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.settimeout(wait)
        try:
            s.sendall(data)
            s.recv(65536)
        except OSError:
            pass
    print("sent: %s (%d bytes)" % (name, len(data)))


def port(number):
    for length in (1, 7, 8, 9, 1000, 300000):
        send(number, "random bytes", RANDOM.randbytes(length))
    send(number, "an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    send(number, "half a header", SP_REQ[:4])
    send(number, "the header of another protocol", b"\0SP\0\0\x50\0\0" + message(b"x"))
    send(number, "a length of 4 GiB", SP_REQ + message(b"x", claimed=4 << 30))
    send(number, "a length of 2^64 - 1", SP_REQ + message(b"x", claimed=(1 << 64) - 1))
    send(number, "a length just above the maximum", SP_REQ + message(b"x", claimed=(1 << 20) + 5))
    send(number, "an empty report", SP_REQ + message(b""))
    for length in (1, 30, 5000):
        send(number, "a random report", SP_REQ + message(RANDOM.randbytes(length)))
    # Fields of the report (proto/lockstep.proto): version 1 and a host, then nonsense.
    send(number, "a report of another version", SP_REQ + message(b"\x08\x63\x12\x02h9"))
    send(number, "a report without a boot id", SP_REQ + message(b"\x08\x01\x12\x02h9"))
    send(number, "a report with a huge host", SP_REQ + message(b"\x08\x01\x12\xd0\x0f" + b"h" * 2000))
    send(number, "a truncated report", SP_REQ + message(b"\x08\x01\x12\x7fh9"))
    held = [socket.create_connection(("127.0.0.1", number)) for _ in range(200)]
    for s in held:
        s.close()
    print("sent: 200 connections that say nothing")


def report(host, size):
    """A first report of a host, with an unknown field of that size."""
    def field(number, data):
        out, n = bytearray(), len(data)
        for value in (number << 3 | 2, n):
            while value > 127:
                out.append(value & 127 | 128)
                value >>= 7
            out.append(value)
        return bytes(out) + data
    body = b"\x08\x01" + field(2, host) + field(3, host.ljust(16, b".")) + field(4, bytes(16)) + b"\x28\x01"
    return body + field(13, b"1") + field(100, bytes(size))


def answers(port, host, size, pause, stop):
    """How many reports of the host are answered until then."""
    count = 0
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(SP_REQ)
        try:
            s.recv(8, socket.MSG_WAITALL)
            while time.monotonic() < stop:
                s.sendall(message(report(host, size)))
                s.settimeout(max(0.01, stop - time.monotonic()))
                length = struct.unpack(">Q", s.recv(8, socket.MSG_WAITALL))[0]
                s.recv(length, socket.MSG_WAITALL)
                count += 1
                time.sleep(pause)
        except TimeoutError:
            pass
    return count


def flood(number):
    stop = time.monotonic() + 3
    with concurrent.futures.ThreadPoolExecutor(FLOODS + 1) as pool:
        quiet = pool.submit(answers, number, b"quiet", 10, 0.05, stop)
        floods = [pool.submit(answers, number, b"flood%d" % i, 300000, 0, stop) for i in range(FLOODS)]
        floods = [f.result() for f in floods]
    print("answers: %s to the flood, %d to the other peer" % (floods, quiet.result()))
    sys.exit(max(floods) > 2 or quiet.result() < 10)


def http(number):
    send(number, "random bytes", RANDOM.randbytes(4000))
    send(number, "a header without end", b"GET / HTTP/1.1\r\nX: " + b"a" * 100000)
    send(number, "a request of 60 kB", b"GET /" + b"a" * 60000 + b" HTTP/1.1\r\n\r\n")
    send(number, "a body that never comes",
         b"POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 4294967296\r\n\r\n")
    send(number, "a path that climbs", b"GET /../../../etc/passwd HTTP/1.0\r\n\r\n")
    send(number, "an unknown parameter", b"GET /api/v1/jobs?no=such HTTP/1.0\r\n\r\n")


def rings(directory, other, real=None):
    def put(name, data, into=directory):
        with open(os.path.join(into, name), "wb") as f:
            f.write(data)
    put("empty.ring", b"")
    put("random.ring", RANDOM.randbytes(50000))
    put("magic.ring", b"LSRING01" + RANDOM.randbytes(5000))
    # The right magic and version, and sizes that overflow.
    put("huge.ring", b"LSRING01" + struct.pack("<IIII", 1, 4096, 0xffffffff, 0xffffffff) + bytes(4072))
    put("newer.ring", b"LSRING01" + struct.pack("<IIII", 99, 4096, 320, 4096) + bytes(4072))
    if real:
        with open(real, "rb") as f:
            data = f.read()
        put("short.ring", data[:5000])
        put("headonly.ring", data[:4096])
        flipped = bytearray(data)
        for _ in range(3000):
            flipped[RANDOM.randrange(4096, len(flipped))] ^= 1 << RANDOM.randrange(8)
        put("flipped.ring", bytes(flipped))
        ahead = bytearray(data)
        ahead[3136:3144] = struct.pack("<Q", (1 << 64) - 1)
        put("ahead.ring", bytes(ahead), other)
    os.mkdir(os.path.join(directory, "directory.ring"))
    os.mkfifo(os.path.join(directory, "fifo.ring"))
    os.symlink("/dev/zero", os.path.join(directory, "zero.ring"))
    os.symlink("loop.ring", os.path.join(directory, "loop.ring"))
    os.symlink(os.path.join(os.path.dirname(directory.rstrip("/")), "precious"),
               os.path.join(directory, "link.ring"))
    with open(os.path.join(directory, "sparse.ring"), "wb") as f:
        f.truncate(1 << 40)
    for i in range(300):
        put("many%03d.ring" % i, b"LSRING01")
    print("made: %d entries" % len(os.listdir(directory)))


verb = sys.argv[1]
if verb == "rings":
    rings(*sys.argv[2:])
else:
    {"port": port, "http": http, "flood": flood}[verb](int(sys.argv[2]))
