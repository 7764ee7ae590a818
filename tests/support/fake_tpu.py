#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libtpu serves on its metrics port, served by Debian's gRPC: for check_tpu.py, and to try by hand.

    tests/support/fake_tpu.py 8431 [ADDRESS]       serves until it is killed

The messages are built here byte by byte, from the field numbers of tpu.monitoring.runtime, and share no
code with the agent's decoder.
"""

import struct
import sys
import threading
import time
from concurrent import futures

SERVICE = "tpu.monitoring.runtime.RuntimeMetricService"


def varint(value):
    """A base 128 number; negative ones as 64 bits."""
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def num(field, value):
    """An integer field."""
    return varint(field << 3) + varint(value)


def dbl(field, value):
    """A double field."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def sub(field, body):
    """A message, string or bytes field."""
    if isinstance(body, str):
        body = body.encode()
    return varint(field << 3 | 2) + varint(len(body)) + body


def int_attr(key, value):
    """An Attribute with an integer."""
    return sub(1, sub(1, key) + sub(2, num(3, value)))


def list_attr(**pairs):
    """An Attribute with a list of strings and integers."""
    body = b"".join(sub(1, sub(1, key) + sub(2, num(3, v) if isinstance(v, int) else sub(1, v)))
                    for key, v in pairs.items())
    return sub(1, sub(1, "attributes") + sub(2, sub(6, body)))


def gauge(attr, value):
    """A Metric with a gauge."""
    body = num(2, value) if isinstance(value, int) else dbl(1, value)
    return sub(3, attr + sub(3, body))


def counter(attr, value):
    """A Metric with a counter."""
    return sub(3, attr + sub(4, num(2, value)))


def distribution(attr, counts, mean, buckets=None, growth=2.0, scale=1.0, total=None, start=5):
    """A Metric with a distribution of exponential buckets."""
    options = num(1, len(counts) - 2 if buckets is None else buckets) + dbl(2, growth) + dbl(3, scale)
    body = num(1, sum(counts) if total is None else total) + dbl(2, mean) + dbl(4, 1e6)
    body += sub(6, sub(2, options)) + sub(7, b"".join(varint(c) for c in counts))
    return sub(3, attr + sub(5, body) + sub(7, num(1, start)))


def metric(name, *points):
    """A MetricResponse."""
    return sub(1, sub(1, name) + sub(2, "what it is") + b"".join(points))


def core(core_id, chip, launch, run, program, mark, queue=(), kind=1, more=b""):
    """An entry of the map of cores."""
    body = sub(1, num(1, core_id) + num(2, chip) + sub(3, num(1, kind)))
    body += sub(2, num(1, 1) + num(3, 4660 + mark) + num(5, mark) + num(7, run))
    body += num(3, 1) + sub(4, program) + num(5, launch)
    body += b"".join(sub(6, num(1, q) + num(2, q)) for q in queue)
    return sub(2, sub(2, body + more) + num(1, core_id))  # the key behind its value


class Tpu:
    """Answers by metric name: bytes, a gRPC status, or a function."""

    def __init__(self, answers, status=None):
        self.answers = answers
        self.status = status
        self.asked = []
        self.lock = threading.Lock()

    def list(self, _request, _context):
        """ListSupportedMetrics."""
        return b"".join(sub(1, sub(1, name)) for name in self.answers)

    def get(self, request, context):
        """GetRuntimeMetric."""
        size = request[1]
        name = request[2:2 + size].decode()
        with self.lock:
            self.asked.append((name, request[2 + size:]))
        return self._say(self.answers[name], context)

    def runtime(self, _request, context):
        """GetTpuRuntimeStatus."""
        import grpc
        if self.status is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        return self._say(self.status, context)

    @staticmethod
    def _say(answer, context):
        if callable(answer):
            return answer()
        if not isinstance(answer, bytes):
            context.abort(answer, "no: \x1b[31m%")
        return answer


def serve(tpu, port=0, address="127.0.0.1"):
    """Starts a server; it and its port."""
    import grpc
    handler = grpc.method_handlers_generic_handler(SERVICE, {
        "ListSupportedMetrics": grpc.unary_unary_rpc_method_handler(tpu.list),
        "GetRuntimeMetric": grpc.unary_unary_rpc_method_handler(tpu.get),
        "GetTpuRuntimeStatus": grpc.unary_unary_rpc_method_handler(tpu.runtime)})
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8),
                         options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("%s:%d" % (address, port))
    server.start()
    return server, port


def plausible():
    """A v5p host that trains: four chips, two slices, a step of 0.4 s."""
    started = time.monotonic()
    devices = (404, 405, 412, 413)

    def steps():
        return int((time.monotonic() - started) / 0.4)

    def status():
        return b"".join(core(d, d, steps(), 1000 + steps(), b"\x01train", steps() % 7)
                        for d in devices) + sub(1, "w0")

    def timing():
        return metric("hlo.execution.timing.distribution.microseconds", *(distribution(
            list_attr(device_ordinal=str(d), core_type="TENSOR_CORE"),
            [0] * 18 + [steps(), steps() // 20] + [0] * 4, 400e3) for d in devices))

    def fixed(name, value):
        return metric(name, *(gauge(int_attr("device-id", d), value) for d in devices))

    names = {
        "tpu.runtime.hbm.memory.usage.bytes": 81604378624,
        "tpu.runtime.hbm.memory.total.bytes": 102803439616,
        "tpu.runtime.tensorcore.dutycycle.percent": 93.5}
    answers = {name: fixed(name, value) for name, value in names.items()}
    answers["hlo.queue.size.gauge"] = metric("hlo.queue.size.gauge", *(gauge(
        list_attr(device_ordinal=str(d), core_type="TENSOR_CORE"), 1) for d in devices))
    answers["hlo.execution.timing.distribution.microseconds"] = timing
    return Tpu(answers, status)


if __name__ == "__main__":
    try:
        import grpc  # noqa: F401  pylint: disable=unused-import
    except ImportError:
        sys.exit("fake_tpu.py: no gRPC for %s (Debian: python3-grpcio, for /usr/bin/python3)" % sys.executable)
    ADDRESS = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    SERVER, PORT = serve(plausible(), int(sys.argv[1]) if len(sys.argv) > 1 else 8431, ADDRESS)
    print("listening on %s:%d" % (ADDRESS, PORT), flush=True)
    SERVER.wait_for_termination()
