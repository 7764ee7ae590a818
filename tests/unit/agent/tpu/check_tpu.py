#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent against libtpu's metrics port, served by a gRPC that is not ours. TAP on stdout."""

import concurrent.futures
import itertools
import json
import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

TOP = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../.."))
BUILD = os.environ.get("top_builddir", TOP)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "tests/support"))
import fake_tpu as fake  # noqa: E402  pylint: disable=wrong-import-position

try:
    import grpc
except ImportError:
    grpc = None
    # Debian's package is for Debian's Python, which need not be the first one in PATH.
    DEBIAN = "/usr/bin/python3"
    if os.path.exists(DEBIAN) and not os.path.samefile(DEBIAN, sys.executable) \
            and not os.environ.get("LOCKSTEP_CHECK_TPU"):
        os.environ["LOCKSTEP_CHECK_TPU"] = "1"
        os.execv(DEBIAN, [DEBIAN, os.path.abspath(__file__)])

HBM = "tpu.runtime.hbm.memory.usage.bytes"
DUTY = "tpu.runtime.tensorcore.dutycycle.percent"
TIMING = "hlo.execution.timing.distribution.microseconds"


def once(ports, address="127.0.0.1"):
    """Series of one reading of the agent, what it logged, and how long it took."""
    with tempfile.TemporaryDirectory() as state:
        begin = time.monotonic()
        done = subprocess.run(
            [os.path.join(BUILD, "lockstep-agent"), "--once", "--host-name", "h",
             "--steps-dir", state, "--state-dir", state, "--log-level", "debug",
             "--tpu-address", address, "--tpu-ports", ports],
            capture_output=True, text=True, timeout=20, check=True)
    series = json.loads(done.stdout)["series"]
    chip = {k: v for k, v in series.items() if k.startswith(("chip.", "link.dcn", "link.mega", "link.coll"))}
    return chip, done.stderr, time.monotonic() - begin


@unittest.skipIf(grpc is None, "python3-grpcio is not installed")
class Served(unittest.TestCase):
    """Answers of a gRPC server."""

    def read(self, answers, status=None):
        """Series of a server that gives these answers."""
        tpu = fake.Tpu(answers, status)
        server, port = fake.serve(tpu)
        try:
            self.series, self.log, self.took = once(str(port))
        finally:
            server.stop(None)
        self.tpu = tpu
        return self.series

    def test_gauges_in_base_units(self):
        got = self.read({
            HBM: fake.metric(HBM, fake.gauge(fake.int_attr("device-id", 9), 8522039296),
                             fake.gauge(fake.int_attr("device_id", 12), 0)),
            DUTY: fake.metric(DUTY, fake.gauge(fake.int_attr("device-id", 9), 87.5))})
        self.assertEqual(got['chip.hbm.used_bytes{device="9"}'], 8522039296)
        self.assertEqual(got['chip.hbm.used_bytes{device="12"}'], 0)
        self.assertEqual(got['chip.tensorcore.duty_ratio{device="9"}'], 0.875)
        self.assertEqual(sorted(self.tpu.asked), [(HBM, b""), (DUTY, b"")])
        self.assertIn("up", self.log)

    def test_distributions_and_counters(self):
        collective = "megascale.collective_end_to_end_latencies.microsecond.cumulative.distribution"
        sent = "megascale.grpc_tcp_packets_sent.cumulative.count"
        got = self.read({
            TIMING: fake.metric(TIMING, fake.distribution(
                fake.list_attr(device_ordinal="9", core_type="TENSOR_CORE"), [1, 2, 4, 2, 1], 3.5,
                scale=1000.0)),
            collective: fake.metric(collective, fake.distribution(
                fake.list_attr(**{"input-size": "8MB+", "collective_type": "ALL_REDUCE"}),
                [0, 0, 7], 250.0)),
            sent: fake.metric(sent, fake.counter(fake.int_attr("device-id", 0), 1 << 30))})
        labels = 'core_type="TENSOR_CORE",device="9"'
        self.assertEqual(got["chip.enqueue_to_dequeue.count_total{%s}" % labels], 10)
        self.assertEqual(got["chip.enqueue_to_dequeue.seconds_total{%s}" % labels], 35e-6)
        self.assertEqual(got['chip.enqueue_to_dequeue.bucket_total{bucket="0.004",%s}' % labels], 4)
        self.assertEqual(got['chip.enqueue_to_dequeue.bucket_total{bucket="+Inf",%s}' % labels], 1)
        labels = 'collective_type="ALL_REDUCE",input_size="8MB+"'
        self.assertEqual(got["link.collective.count_total{%s}" % labels], 7)
        self.assertNotIn('link.collective.bucket_total{bucket="1e-06",%s}' % labels, got)
        self.assertEqual(got['link.dcn_tcp.packets_sent_total{device="0"}'], 1 << 30)

    def test_status_of_the_cores(self):
        got = self.read({HBM: fake.metric(HBM)},
                        fake.core(1, 8, 4, 1201, b"\x01\x02", 77, queue=(1202, 1203))
                        + fake.core(0, 8, 5, 1201, b"\x01\x02", 78) + fake.sub(1, "w0"))
        core = '{chip="8",core="%d"}'
        self.assertEqual(got["chip.core.launch_id" + core % 1], 4)
        self.assertEqual(got["chip.core.run_id" + core % 1], 1201)
        self.assertEqual(got["chip.core.queue_depth" + core % 1], 2)
        self.assertEqual(got["chip.core.tracemark" + core % 0], 78)
        self.assertEqual(got["chip.core.stalled" + core % 0], 0)
        self.assertEqual(got["chip.core.program" + core % 0], got["chip.core.program" + core % 1])

    def test_unknown_metrics_keep_a_name(self):
        got = self.read({
            "new.Thing/rate": fake.metric("x", fake.gauge(fake.list_attr(Kind="a\"b\x1b"), 2.5)),
            "new.sizes": fake.metric("x", fake.distribution(b"", [0, 3, 0], 1.5))})
        self.assertEqual([v for k, v in got.items() if k.startswith("chip.libtpu.new.thing_rate{")],
                         [2.5])
        self.assertFalse([k for k in got if "\x1b" in k])
        self.assertEqual(got["chip.libtpu.new.sizes.count_total"], 3)
        self.assertEqual(got["chip.libtpu.new.sizes.sum_total"], 4.5)

    def test_not_found_is_not_measured(self):
        got = self.read({HBM: grpc.StatusCode.NOT_FOUND,
                         DUTY: fake.metric(DUTY, fake.gauge(fake.int_attr("device-id", 9), 50.0)),
                         TIMING: grpc.StatusCode.INTERNAL})
        self.assertEqual(got, {'chip.tensorcore.duty_ratio{device="9"}': 0.5})
        self.assertNotIn("\x1b", self.log)

    def test_what_cannot_be_is_left_out_alone(self):
        device = fake.int_attr("device-id", 1)
        good = fake.gauge(fake.int_attr("device-id", 2), 25.0)
        got = self.read({
            DUTY: fake.metric(DUTY, fake.gauge(device, math.nan), good,
                              fake.gauge(fake.list_attr(device_ordinal="7x"), 1.0),
                              fake.gauge(fake.int_attr("device-id", -1), 1.0)),
            HBM: fake.metric(HBM, fake.gauge(device, math.inf)),
            "hlo.queue.size.gauge": fake.metric("q", fake.gauge(
                fake.list_attr(device_ordinal="7", core_type="t"), 3)),
            TIMING: fake.metric(
                TIMING, fake.distribution(device, [1, 2, 3], 1.0, buckets=2),
                fake.distribution(device, [1, 2, 3], 1.0, total=7),
                fake.distribution(device, [1] * 201, 1.0, growth=1.01),
                fake.distribution(device, [1, -1, 3], 1.0),
                fake.distribution(device, [1, 2, 3], math.nan),
                fake.distribution(device, [1, 2, 3], 1.0, growth=0.5),
                fake.distribution(device, [0, 0, 0], 0.0, total=0))})
        self.assertEqual(got['chip.tensorcore.duty_ratio{device="2"}'], 0.25)
        self.assertEqual(got['chip.queue.depth{core_type="t",device="7"}'], 3)
        self.assertFalse([k for k in got if "execution" in k and got[k]])
        self.assertFalse([k for k in got if 'device="1"' in k and got[k]])

    def test_unknown_fields_are_ignored(self):
        more = fake.num(99, 1) + fake.sub(100, b"\xff\x00") + fake.dbl(101, 1.0)
        got = self.read({DUTY: fake.sub(1, fake.sub(1, DUTY) + more + fake.sub(
            3, fake.int_attr("device-id", 3) + more + fake.sub(3, more + fake.dbl(1, 75.0)))) + more})
        self.assertEqual(got, {'chip.tensorcore.duty_ratio{device="3"}': 0.75})

    def test_answers_that_are_no_messages(self):
        got = self.read({HBM: b"\x0a\xff\xff\xff\xff\x0f", DUTY: b"not a valid message", TIMING: b"",
                         "deep": fake.sub(1, b"\x1b" * 2000)}, b"\xff" * 64)
        self.assertEqual(got, {})
        self.assertIn("up", self.log)

    def test_a_slow_answer_is_given_up_after_a_second(self):
        def slow():
            time.sleep(2.5)
            return b""

        got = self.read({HBM: slow, DUTY: fake.metric(DUTY, fake.gauge(
            fake.int_attr("device-id", 9), 87.5))})
        self.assertEqual(got, {'chip.tensorcore.duty_ratio{device="9"}': 0.875})
        self.assertGreater(self.took, 0.9)
        self.assertLess(self.took, 2.4)

    def test_an_answer_that_is_too_long_is_refused(self):
        got = self.read({HBM: b"\0" * 300000, DUTY: fake.metric(DUTY, fake.gauge(
            fake.int_attr("device-id", 9), 87.5))})
        self.assertEqual(got, {'chip.tensorcore.duty_ratio{device="9"}': 0.875})

    def test_no_metrics_yet(self):
        self.assertEqual(self.read({}), {})
        self.assertIn("not initialised", self.log)

    def test_too_many_names_and_values(self):
        answers = {"m%d" % i: fake.metric("m", *(fake.gauge(fake.int_attr("k", k), 1)
                                                 for k in range(300))) for i in range(100)}
        got = self.read(answers)
        self.assertLessEqual(len(got), 128)
        self.assertGreater(len(got), 100)

    def test_the_second_port_is_asked_for_what_the_first_one_misses(self):
        total = "tpu.runtime.hbm.memory.total.bytes"
        tpus = [fake.Tpu({total: fake.metric(total, fake.gauge(fake.int_attr("device-id", d), d))})
                for d in (8, 9)]
        servers = [fake.serve(tpu) for tpu in tpus]
        try:
            got, _log, _took = once(",".join(str(port) for _server, port in servers))
        finally:
            for server, _port in servers:
                server.stop(None)
        self.assertEqual(got['chip.hbm.total_bytes{device="8"}'], 8)
        self.assertEqual(tpus[0].asked, [(total, b"")])
        # Whichever comes up first is asked for its view of the node, the other one for itself.
        self.assertIn(tpus[1].asked, ([(total, b"\x10\x01")], [(total, b"")], []))
        self.assertEqual('chip.hbm.total_bytes{device="9"}' in got, bool(tpus[1].asked))

    def test_a_server_without_the_service(self):
        server = grpc.server(fake.futures.ThreadPoolExecutor(max_workers=1))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            got, log, _took = once(str(port))
        finally:
            server.stop(None)
        self.assertEqual(got, {})
        self.assertIn("unsupported: speaks gRPC, but has no RuntimeMetricService", log)


@unittest.skipIf(grpc is None, "python3-grpcio is not installed")
class Running(unittest.TestCase):
    """An agent that goes on."""

    def ask(self, path):
        """JSON of the agent's own HTTP."""
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.http, path), timeout=5) as got:
            return json.load(got)

    def series(self):
        """Values by their names."""
        return {one["text"]: one["value"] for one in self.ask("/api/v1/series")["items"]}

    def doctor(self):
        """Status and reason of the port."""
        return [(one["status"], one["why"], one["fix"]) for one in self.ask("/api/v1/doctor")["checks"]
                if one["source"] == "tpu" and one["subject"].startswith("port")]

    def until(self, what, seconds=10):
        """Waits until that is true, and returns it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                got = what()
            except OSError:
                got = None  # the agent is starting
            if got:
                return got
            time.sleep(0.1)
        try:
            doctor = self.doctor()
        except OSError as error:
            doctor = error
        return self.fail("in %d s it did not become so; %s" % (seconds, doctor))

    def test_steps_are_inferred_and_a_job_may_end_and_come_back(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.http = one.getsockname()[1]
        server, port = fake.serve(fake.plausible())
        with tempfile.TemporaryDirectory() as state:
            agent = subprocess.Popen(
                [os.path.join(BUILD, "lockstep-agent"), "--host-name", "h", "--steps-dir", state,
                 "--state-dir", state, "--http", "127.0.0.1:%d" % self.http,
                 "--collector", "tcp://127.0.0.1:1", "--tpu-ports", str(port)],
                stderr=subprocess.DEVNULL)
            try:
                series = self.until(lambda: (lambda s: (s.get("chip.steps.inferred_total") or 0) >= 5
                                             and s)(self.series()))
                # A step of 0.4 s, looked at once a second: two or three a look.
                self.assertAlmostEqual(series["chip.steps.inferred_seconds"], 0.4, delta=0.2)
                self.assertGreater(series["chip.steps.confidence_ratio"], 0.05)
                self.assertLess(series["chip.steps.confidence_ratio"], 0.5)
                for device in (404, 405, 412, 413):
                    self.assertEqual(
                        series['chip.core.stalled{chip="%d",core="%d"}' % (device, device)], 0)
                self.assertEqual(series['chip.tensorcore.duty_ratio{device="413"}'], 0.935)
                self.assertEqual([status for status, _why, _fix in self.doctor()], ["ok"])
                server.stop(None).wait()
                self.until(lambda: self.doctor()[0][0] == "warn")
                self.assertIn("nothing listens", self.doctor()[0][1])
                self.assertTrue(self.doctor()[0][2])
                self.until(lambda: self.series()['chip.core.stalled{chip="404",core="404"}'] is None)
                server, _port = fake.serve(fake.plausible(), port)
                self.until(lambda: self.doctor()[0][0] == "ok", 15)
                self.until(lambda: self.series()['chip.core.stalled{chip="404",core="404"}'] == 0)
            finally:
                agent.terminate()
                status = agent.wait(10)
                server.stop(None)
        self.assertEqual(status, 0)

    def collector(self, state, path):
        """JSON of the collector's HTTP."""
        with open(os.path.join(state, "ports"), encoding="ascii") as f:
            ports = dict(line.split("=") for line in f.read().split())
        if path is None:
            return ports["ingest"]
        with urllib.request.urlopen("http://127.0.0.1:%s%s" % (ports["http"], path), timeout=5) as got:
            return json.load(got)

    def test_a_job_without_marks_is_shown_by_the_collector(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.http = one.getsockname()[1]
        server, port = fake.serve(fake.plausible())
        with tempfile.TemporaryDirectory() as state:
            running = [subprocess.Popen(
                [os.path.join(BUILD, "lockstep-collector"), "--listen", "tcp://127.0.0.1:0",
                 "--http", "127.0.0.1:0", "--state-dir", os.path.join(state, "collector"),
                 "--port-file", os.path.join(state, "ports")], stderr=subprocess.DEVNULL)]
            try:
                ingest = self.until(lambda: self.collector(state, None))
                running.append(subprocess.Popen(
                    [os.path.join(BUILD, "lockstep-agent"), "--host-name", "h", "--steps-dir", state,
                     "--state-dir", os.path.join(state, "agent"), "--metadata-address", "off",
                     "--http", "127.0.0.1:%d" % self.http, "--job", "plain", "--worker-id", "0",
                     "--collector", "tcp://127.0.0.1:" + ingest, "--tpu-ports", str(port)],
                    stderr=subprocess.DEVNULL))
                job = self.until(lambda: [j for j in self.collector(state, "/api/v1/jobs")["items"]
                                          if (j["step"] or 0) >= 2], 25)[0]
                self.assertEqual(job["id"], "plain")
                self.assertEqual(job["workers"], 1)
                self.assertEqual(job["data_quality"]["step_source"], "runtime_status")
                later = self.until(lambda: [j for j in self.collector(state, "/api/v1/jobs")["items"]
                                            if j["step"] >= job["step"] + 4])[0]
                self.assertGreater(later["steps_closed"], 0)
                self.assertIn(("inferred steps", "ok"), [
                    (c["subject"], c["status"]) for c in self.ask("/api/v1/doctor")["checks"]])
            finally:
                ends = []
                for program in reversed(running):
                    program.terminate()
                    ends.append(program.wait(10))
                server.stop(None)
        self.assertEqual(ends, [0, 0])


def frame(kind, flags, stream, body):
    """A frame of HTTP/2."""
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def header(name, value):
    """A header field, literal and without indexing."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


SETTINGS = frame(4, 0, 0, b"")
HEADERS = header(b":status", b"200") + header(b"content-type", b"application/grpc")
OK = frame(1, 5, 1, header(b"grpc-status", b"0"))


class Raw(unittest.TestCase):
    """Bytes that no gRPC server would send."""

    def read(self, answer, greeting=SETTINGS, close=True):
        """What the agent makes of a server that says this."""
        listener = socket.create_server(("127.0.0.1", 0))
        stop = threading.Event()

        def run():
            while not stop.is_set():
                try:
                    peer, _address = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(greeting)
                    peer.settimeout(5)
                    got = b""
                    try:
                        while b"grpc" not in got and b"content-type" not in got:
                            piece = peer.recv(65536)
                            if not piece:
                                break
                            got += piece
                            if len(got) > 200:
                                break
                    except OSError:
                        pass
                    try:
                        peer.sendall(answer)
                        if not close:
                            stop.wait(5)
                    except OSError:
                        pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            got, log, took = once(str(listener.getsockname()[1]))
        finally:
            stop.set()
            listener.close()
            thread.join(5)
        self.assertEqual(got, {})
        self.assertLess(took, 6)
        return log

    def test_refused(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            got, log, took = once(str(unused.getsockname()[1]))
        self.assertEqual(got, {})
        self.assertIn("absent: nothing listens", log)
        self.assertLess(took, 1)

    def test_compressed(self):
        log = self.read(frame(1, 4, 1, HEADERS) + frame(0, 0, 1, b"\1\0\0\0\2ab") + OK, close=False)
        self.assertIn("answer is compressed", log)

    def test_huge_length(self):
        log = self.read(frame(1, 4, 1, HEADERS) + frame(0, 0, 1, b"\0\xff\xff\xff\xff") + OK, close=False)
        self.assertIn("answer is too long", log)

    def test_cut_message(self):
        log = self.read(frame(1, 4, 1, HEADERS) + frame(0, 0, 1, b"\0\0\0\0\x09ab") + OK, close=False)
        self.assertIn("answer is cut short", log)

    def test_truncated_frame(self):
        self.read(frame(1, 4, 1, HEADERS) + frame(0, 0, 1, b"\0\0\0\0\x09abcdefgh")[:12])

    def test_two_messages(self):
        log = self.read(frame(1, 4, 1, HEADERS) + frame(0, 0, 1, b"\0\0\0\0\0" * 2 + b"x") + OK,
                        close=False)
        self.assertIn("more than one answer", log)

    def test_no_status(self):
        log = self.read(frame(1, 5, 1, HEADERS), close=False)
        self.assertIn("answer without a status", log)

    def test_status_that_is_no_number(self):
        log = self.read(frame(1, 5, 1, HEADERS + header(b"grpc-status", b"ok")), close=False)
        self.assertIn("status that is not a number", log)

    def test_endless_headers(self):
        fields = b"".join(header(b"x%d" % i, b"v" * 100) for i in range(100))
        log = self.read(frame(1, 4, 1, HEADERS + fields), close=False)
        self.assertIn("headers are too long", log)

    def test_http_but_not_grpc(self):
        log = self.read(frame(1, 5, 1, header(b":status", b"404")), close=False)
        self.assertIn("answers HTTP/2, but not gRPC", log)

    def test_http_1(self):
        log = self.read(b"", greeting=b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
                        close=False)
        self.assertIn("unsupported", log)

    def test_frame_that_is_too_long(self):
        self.read(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 1000, close=False)

    def test_silence(self):
        log = self.read(b"", greeting=b"", close=False)
        self.assertIn("failing: connected, but it sends no reply", log)

    def test_off(self):
        got, log, took = once("")
        self.assertEqual(got, {})
        self.assertNotIn("port", log)
        self.assertLess(took, 1)

    def test_addresses_that_are_none(self):
        for ports, address in (("0", "127.0.0.1"), ("8431,", "127.0.0.1"), ("8431", "localhost"),
                               ("1,1", "::1"), ("99999", "127.0.0.1"), ("x", "127.0.0.1")):
            with self.subTest(ports=ports, address=address):
                with self.assertRaises(subprocess.CalledProcessError) as raised:
                    once(ports, address)
                self.assertEqual(raised.exception.returncode, 2)
                self.assertIn("--tpu-address localhost" if address == "localhost" else
                              "--tpu-ports " + ports, raised.exception.stderr)


class Doctor(unittest.TestCase):
    """What it says where no port is open."""

    def tell(self, chip, *options):
        """The doctor's lines on ports of a host with or without a chip."""
        with socket.socket() as probe:
            if not options and probe.connect_ex(("127.0.0.1", 8431)) == 0:
                self.skipTest("something listens on port 8431")
        with tempfile.TemporaryDirectory() as root:
            function = os.path.join(root, "sys/bus/pci/devices", "0000:00:05.0")
            os.makedirs(os.path.dirname(function))
            if chip:
                os.makedirs(function)
                for name, value in (("vendor", "0x1ae0"), ("device", "0x0063"), ("class", "0x120000")):
                    with open(os.path.join(function, name), "w", encoding="ascii") as f:
                        f.write(value + "\n")
            environment = {k: v for k, v in os.environ.items() if k != "TPU_RUNTIME_METRICS_PORTS"}
            done = subprocess.run(
                [os.path.join(BUILD, "lockstep-agent"), "--doctor", "--host-name", "h", "--steps-dir",
                 root, "--state-dir", root, "--sys-root", os.path.join(root, "sys"),
                 "--metadata-address", "off", *options],
                capture_output=True, text=True, timeout=20, check=False, env=environment)
        return [line for line in done.stdout.splitlines() if " tpu " in line]

    def test_a_closed_port_is_no_warning_without_chips(self):
        lines = self.tell(False)
        self.assertEqual([line.split()[0] for line in lines], ["-"])
        self.assertIn("no TPU chips", lines[0])

    def test_a_closed_port_is_a_warning_with_chips(self):
        self.assertEqual([line.split()[0] for line in self.tell(True)], ["WARN"])

    def test_a_closed_port_that_was_named_is_a_warning(self):
        self.assertEqual([line.split()[0] for line in self.tell(False, "--tpu-ports", "1")], ["WARN"])


def ip(*words):
    """Runs ip(8)."""
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=10, check=True)


@unittest.skipIf(grpc is None, "python3-grpcio is not installed")
class UnknownFields(unittest.TestCase):
    """Fields of a status that the agent does not know."""

    def test_doctor_lists_them_by_number(self):
        status = fake.core(0, 8, 4, 1201, b"\x01", 77, more=fake.sub(8, "recent"))
        server, port = fake.serve(fake.Tpu({HBM: fake.metric(HBM)}, status))
        try:
            with tempfile.TemporaryDirectory() as state:
                done = subprocess.run(
                    [os.path.join(BUILD, "lockstep-agent"), "--doctor", "--host-name", "h", "--steps-dir",
                     state, "--state-dir", state, "--metadata-address", "off", "--tpu-ports", str(port)],
                    capture_output=True, text=True, timeout=20, check=False)
        finally:
            server.stop(None)
        self.assertIn("number 8 of CoreState, 1 times, ", done.stdout)


@unittest.skipIf(grpc is None, "python3-grpcio is not installed")
class OtherNamespace(unittest.TestCase):
    """libtpu in a pod: a server in another network namespace of this node."""

    counts = itertools.count(1)

    def setUp(self):
        # The kernel removes a namespace and its devices some time after it is asked to.
        count = next(self.counts)
        self.name = "ls%d.%d" % (os.getpid(), count)
        self.subnet = "198.18.%d.%d" % (os.getpid() % 256, 4 * count)
        if os.geteuid() != 0:
            self.skipTest("a network namespace needs root")
        try:
            ip("netns", "add", self.name)
            self.addCleanup(ip, "netns", "del", self.name)
            ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0",
               "netns", self.name)
        except (OSError, subprocess.CalledProcessError) as why:
            self.skipTest("no network namespace: %s" % getattr(why, "stderr", why))
        ip("address", "add", self.address(1) + "/30", "dev", self.name)
        ip("link", "set", self.name, "up")
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "link", "set", "eth0", "up")

    def address(self, n):
        """The n-th of the test's subnet: 1 outside the namespace, 2 inside."""
        head, last = self.subnet.rsplit(".", 1)
        return "%s.%d" % (head, int(last) + n)

    def inside(self, *command):
        """A process in the namespace, as its first line says that it is ready."""
        process = subprocess.Popen(["ip", "netns", "exec", self.name, *command],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process

    def serve(self):
        """A server that listens on all addresses of the namespace."""
        return self.inside(sys.executable, os.path.join(TOP, "tests/support/fake_tpu.py"), "8431", "0.0.0.0")

    def agent(self):
        """A running agent; its /doctor, as a function of no arguments."""
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        port = os.path.join(state.name, "port")
        process = subprocess.Popen(
            [os.path.join(BUILD, "lockstep-agent"), "--host-name", "h", "--steps-dir", state.name,
             "--state-dir", state.name, "--collector", "tcp://127.0.0.1:1", "--http", "127.0.0.1:0",
             "--port-file", port, "--metadata-address", "off", "--log-level", "err"])
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        deadline = time.monotonic() + 120
        while not (os.path.exists(port) and os.path.getsize(port)) and time.monotonic() < deadline:
            time.sleep(0.05)
        with open(port, encoding="ascii") as f:
            url = "http://127.0.0.1:%s/api/v1/doctor" % f.read().strip().split("=")[-1]

        def doctor():
            with urllib.request.urlopen(url, timeout=30) as answer:
                return {c["subject"]: c for c in json.load(answer)["checks"]}
        return doctor

    def wait(self, doctor, condition):
        """Seconds until the doctor's checks meet the condition. How long that takes is the machine's affair."""
        begin = time.monotonic()
        while not condition(doctor()):
            self.assertLess(time.monotonic() - begin, 120)
            time.sleep(0.2)
        return time.monotonic() - begin

    def test_server_is_read_and_dropped_with_its_pod(self):
        ip("-n", self.name, "address", "add", self.address(2) + "/30", "dev", "eth0")
        doctor = self.agent()
        subject = "port %s:8431" % self.address(2)
        self.inside("sh", "-c", "echo up; exec sleep 600")  # the pod was there before its server
        time.sleep(6)
        self.assertNotIn(subject, doctor())
        server = self.serve()
        took = self.wait(doctor, lambda c: c.get(subject, {}).get("status") == "ok")
        print("# read %.1f s after the server listened" % took)
        series, _, _ = once("auto", "auto")
        self.assertEqual(series['chip.hbm.used_bytes{device="404"}'], 81604378624)
        server.kill()
        self.wait(doctor, lambda c: subject not in c)

    def test_address_that_is_not_of_this_node_is_not_dialled(self):
        ip("-n", self.name, "address", "add", "203.0.113.7/32", "dev", "lo")
        self.serve()
        series, log, _ = once("auto", "auto")
        self.assertEqual(series, {})
        self.assertNotIn("203.0.113.7", log)
        self.wait(self.agent(), lambda c: c.get("other namespaces", {}).get("status") == "warn")


class Tap(unittest.TestResult):
    """The outcome of one test as lines of TAP, without a number."""

    def __init__(self):
        super().__init__()
        self.notes, self.word, self.why = [], "ok", ""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.why = " # SKIP " + reason

    def _failed(self, test, err):
        self.notes += ["# " + line for line in self._exc_info_to_string(err, test).splitlines()]
        self.word = "not ok"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(subtest, err)


def run(test):
    """Runs this test; its outcome."""
    result = Tap()
    test.run(result)
    return result


def main():
    """Runs all tests, some at a time: what they do is to wait."""
    tests = [test for case in unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]) for test in case]
    good = True
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for number, (test, result) in enumerate(zip(tests, pool.map(run, tests)), 1):
            print("\n".join(result.notes + ["%s %d - %s%s" % (
                result.word, number, test.id().replace("__main__.", ""), result.why)]), flush=True)
            good = good and result.wasSuccessful()
    print("1..%d" % len(tests))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
