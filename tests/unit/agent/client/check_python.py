#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python package lockstep: what it writes is what proto/ring/ring.h says. TAP on stdout."""

import fcntl
import gc
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

TOP = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../.."))
BUILD = os.environ.get("top_builddir", TOP)
sys.path.insert(0, os.path.join(TOP, "agent", "client", "python"))
sys.dont_write_bytecode = True
import lockstep  # noqa: E402  pylint: disable=wrong-import-position
from lockstep import _hooks, _identity, _recorder, _ring  # noqa: E402  pylint: disable=wrong-import-position

HEADER = 8192
MARKS = lockstep._marks
PHASES = ("input_wait h2d dispatch compute sync_wait collective checkpoint compile gc eval "
          "other").split()


class Slot:
    """One record, read as proto/ring/ring.h lays it out."""

    def __init__(self, data):
        (self.index, self.step, self.t_begin, self.duration, barriers, self.work_mask, peers,
         _zero) = struct.unpack_from("<QQqQ4B", data, 0)
        kinds = data[36:40]
        self.phase_mask = struct.unpack_from("<I", data, 40)[0]
        self.phases = dict(zip(PHASES, struct.unpack_from("<11Q", data, 48)))
        times = struct.unpack_from("<8q", data, 136)
        self.barriers = [(kinds[i], times[2 * i], times[2 * i + 1]) for i in range(barriers)]
        self.work = struct.unpack_from("<6d", data, 200)
        self.peers = [struct.unpack_from("<3I", data, 248 + 16 * i) for i in range(peers)]
        self.index_again = struct.unpack_from("<Q", data, 312)[0]


class Case(unittest.TestCase):
    """A test with a steps directory of its own."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.dir = self.directory.name
        for name in _identity.ENV_NAMES:
            os.environ.pop(name, None)
        os.environ["LOCKSTEP_STEPS_DIR"] = self.dir

    def tearDown(self):
        lockstep.close()
        self.directory.cleanup()

    def path(self):
        """Path of the only ring."""
        names = os.listdir(self.dir)
        self.assertEqual(len(names), 1, names)
        self.assertRegex(names[0], r"^%d-[0-9a-f]{32}\.ring$" % os.getpid())
        return os.path.join(self.dir, names[0])

    def read(self):
        """Bytes of the only ring, read in another process: closing it here would drop its lock."""
        return subprocess.run(["cat", self.path()], stdout=subprocess.PIPE, check=True).stdout

    def slots(self):
        """All records of the only ring, oldest first."""
        data = self.read()
        head, = struct.unpack_from("<Q", data, 3136)
        slots = []
        for index in range(max(0, head - 4096), head):
            slot = Slot(data[HEADER + index % 4096 * 320:][:320])
            self.assertEqual((slot.index, slot.index_again), (index + 1, index + 1))
            slots.append(slot)
        return slots

    def live(self):
        """(step, phase) of the live slot."""
        sequence, step, phase, _zero, _since, again = struct.unpack_from("<QQIIQQ", self.read(),
                                                                         3072)
        self.assertEqual(sequence, again)
        return step, phase


class Marks(Case):
    """The marks of a loop."""

    def setUp(self):
        super().setUp()
        self.assertTrue(lockstep.open())

    def test_phases_add_up_to_the_step(self):
        for i in range(3):
            with lockstep.step(10 + i):
                lockstep.phase("input_wait")
                with lockstep.phase("compute"):
                    lockstep.phase("h2d")
                with lockstep.sync_wait():
                    pass
        slots = self.slots()
        self.assertEqual([slot.step for slot in slots], [10, 11, 12])
        for slot in slots:
            self.assertEqual(sum(slot.phases.values()), slot.duration)
            self.assertEqual(len(slot.barriers), 1)
            kind, enter, leave = slot.barriers[0]
            self.assertEqual(kind, 0)
            self.assertTrue(slot.t_begin <= enter <= leave <= slot.t_begin + slot.duration)
        self.assertEqual(self.live(), (12, 11))

    def test_phase_scope_goes_back(self):
        with lockstep.step(0):
            lockstep.phase("dispatch")
            with lockstep.phase("compute"):
                with lockstep.phase("h2d"):
                    self.assertEqual(self.live(), (0, 1))
                self.assertEqual(self.live(), (0, 3))
            self.assertEqual(self.live(), (0, 2))
            with lockstep.sync_wait("dcn"):
                self.assertEqual(self.live(), (0, 4))
            self.assertEqual(self.live(), (0, 2))

    def test_input_around_the_loop_belongs_to_the_step(self):
        def loader():
            for i in range(3):
                time.sleep(0.005)
                yield i

        begin = time.monotonic_ns()
        for i in lockstep.input(loader()):
            with lockstep.step(i):
                pass
        slots = self.slots()
        self.assertEqual(len(slots), 3)
        for slot in slots:
            self.assertGreaterEqual(slot.phases["input_wait"], 4_000_000)
            self.assertEqual(sum(slot.phases.values()), slot.duration)
            self.assertGreaterEqual(slot.t_begin, begin)
            begin = slot.t_begin + slot.duration

    def test_input_inside_a_step(self):
        with lockstep.step(0):
            lockstep.phase("compute")
            for _ in lockstep.input([1, 2]):
                self.assertEqual(self.live(), (0, 3))
        slot = self.slots()[0]
        self.assertTrue(slot.phase_mask & 1)
        self.assertEqual(sum(slot.phases.values()), slot.duration)

    def test_errors_of_the_loader_are_passed_on(self):
        def loader():
            yield 1
            raise KeyError("theirs")

        with self.assertRaises(KeyError):
            for _ in lockstep.input(loader()):
                pass

    def test_work_and_peers_add_up_and_nonsense_is_ignored(self):
        with lockstep.step(0):
            lockstep.work(tokens=1000, batch=8)
            lockstep.work(tokens=24, nonsense=3)
            lockstep.work(tokens=-1)
            lockstep.work(tokens=float("inf"))
            lockstep.work(tokens="much")
            lockstep.peer("x")
            lockstep.peer(7, recv_wait=0.001)
            lockstep.peer(7, recv_wait=0.002)
            lockstep.peer(8, send_wait=0)
            for rank in range(20, 30):
                lockstep.peer(rank, 1, 1)
        slot = self.slots()[0]
        self.assertEqual(slot.work_mask, 0b101)
        self.assertEqual(slot.work[:3], (1024.0, 0.0, 8.0))
        self.assertEqual(slot.peers[:2], [(7, 3000, 2**32 - 1), (8, 2**32 - 1, 0)])
        self.assertEqual(len(slot.peers), 4)

    def test_step_that_raises_leaves_no_record(self):
        with self.assertRaises(ValueError):
            with lockstep.step(0):
                raise ValueError
        self.assertEqual(self.live(), (0, 11))
        with lockstep.step(1):
            pass
        self.assertEqual([slot.step for slot in self.slots()], [1])

    def test_marks_out_of_place_do_no_harm(self):
        lockstep.phase("nonsense")
        lockstep.phase(None)
        lockstep.work(tokens=1)
        lockstep.peer(1, 1, 1)
        with lockstep.sync_wait("nonsense"):
            pass
        with lockstep.phase("checkpoint"):
            self.assertEqual(self.live(), (0, 6))
        self.assertEqual(self.live(), (0, 11))
        with lockstep.step("x"):
            pass
        with lockstep.step(3):
            for _ in range(6):
                with lockstep.sync_wait("stage"):
                    pass
            with lockstep.step(4):
                pass
        slots = self.slots()
        self.assertEqual([slot.step for slot in slots], [3, 4])
        self.assertEqual([kind for kind, _, _ in slots[0].barriers], [2] * 4)

    def test_ring_wraps_around_and_a_burst_loses_nothing(self):
        for i in range(5000):
            with lockstep.step(i):
                pass
        self.assertEqual([slot.step for slot in self.slots()], list(range(904, 5000)))

    def test_collections_are_counted_apart(self):
        with lockstep.step(0):
            lockstep.phase("compute")
            gc.collect()
        slot = self.slots()[0]
        self.assertGreater(slot.phases["gc"], 0)
        self.assertEqual(sum(slot.phases.values()), slot.duration)

    def test_other_threads_are_ignored(self):
        def intruder():
            with lockstep.step(99):
                lockstep.phase("eval")

        with lockstep.step(0):
            thread = threading.Thread(target=intruder)
            thread.start()
            thread.join()
        slots = self.slots()
        self.assertEqual([slot.step for slot in slots], [0])
        self.assertEqual(slots[0].phases["eval"], 0)

    def test_emit_writes_a_complete_record(self):
        self.assertTrue(lockstep.emit({
            "step": 5, "t_begin": 100.5, "duration": 0.02,
            "phases": {"compute": 0.012, "sync_wait": 0.006}, "sync_enter": 100.513,
            "sync_exit": 100.519, "work": {"tokens": 32},
            "peers": {2: {"recv_wait": 0.001}}}))
        slot = self.slots()[0]
        self.assertEqual((slot.step, slot.t_begin, slot.duration),
                         (5, 100_500_000_000, 20_000_000))
        self.assertEqual(slot.phases["compute"], 12_000_000)
        self.assertEqual(slot.phase_mask, 0b11000)
        self.assertEqual(slot.barriers, [(0, 100_513_000_000, 100_519_000_000)])
        self.assertEqual(slot.peers, [(2, 1000, 2**32 - 1)])
        for bad in ({}, None, {"step": 1}, {"step": 1, "t_begin": float("nan"), "duration": 1},
                    {"step": 1, "t_begin": 1, "duration": -1},
                    {"step": 1, "t_begin": 1, "duration": 1, "phases": {"lunch": 1}}):
            self.assertFalse(lockstep.emit(bad))
        self.assertEqual(len(self.slots()), 1)


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self):
        self.now = time.monotonic_ns()

    def __call__(self):
        return self.now

    def go(self, ms):
        self.now += ms * 1_000_000


class Hooked(Case):
    """Hooks: a fake jax.monitoring, collections when we say so, a clock that does not run by itself."""

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.saved = [(module, module.monotonic_ns) for module in (lockstep, _recorder, _hooks)]
        for module, _ in self.saved:
            module.monotonic_ns = self.clock
        self.marks = lockstep._marks = _recorder.Recorder()
        self.names = ("_step_enter", "_step_exit", "_scope_enter", "_scope_exit", "_sync_enter",
                      "_sync_exit", "_input_enter", "_input_exit", "_input_end")
        self.old = [getattr(lockstep, name) for name in self.names]
        for name, method in zip(self.names, ("begin", "finish", "scope_enter", "scope_exit",
                                             "sync_enter", "sync_exit", "input_enter",
                                             "input_exit", "input_end")):
            setattr(lockstep, name, getattr(self.marks, method))
        self.durations, self.events = [], []
        self.assertTrue(lockstep.open())
        gc.callbacks.remove(self.marks.hooks.on_gc)  # only those that a test makes

    def tearDown(self):
        super().tearDown()
        for name, function in zip(self.names, self.old):
            setattr(lockstep, name, function)
        for module, function in self.saved:
            module.monotonic_ns = function
        sys.modules.pop("jax", None)
        sys.modules.pop("jax.monitoring", None)
        lockstep._marks = MARKS

    def import_jax(self):
        sys.modules["jax"] = types.ModuleType("jax")
        sys.modules["jax.monitoring"] = monitoring = types.ModuleType("jax.monitoring")
        monitoring.register_event_duration_secs_listener = self.durations.append
        monitoring.register_event_listener = self.events.append

    def compile(self, name, ms, stage="backend_compile"):
        """It has just ended and took so long."""
        for listener in self.durations:
            listener("/jax/core/compile/%s_duration" % stage, ms / 1e3, fun_name=name)

    def collect(self, ms):
        self.marks.hooks.on_gc("start", {})
        self.clock.go(ms)
        self.marks.hooks.on_gc("stop", {})

    def block(self):
        """The events block as proto/ring/ring_events.h lays it out: mask, counters, functions."""
        data = self.read()[4096:HEADER]
        words = struct.unpack_from("<16Q", data, 0)
        functions = {}
        for i in range(32):
            count, spent = struct.unpack_from("<QQ", data, 128 + 112 * i)
            if count:
                name = data[128 + 112 * i + 16:128 + 112 * i + 112].rstrip(b"\0").decode()
                functions[name] = (count, spent / 1e6)
        return words[0], words[1:11], functions

    def phases(self, slot):
        """ms of the phases that took any; they add up to the step."""
        self.assertEqual(sum(slot.phases.values()), slot.duration)
        return {name: spent / 1e6 for name, spent in slot.phases.items() if spent}

    def test_jax_imported_later_is_hooked_at_the_next_step(self):
        with lockstep.step(0):
            self.import_jax()
            self.compile("f", 1)
        with lockstep.step(1):
            self.clock.go(5)
            self.compile("f", 5)
        with lockstep.step(2):
            pass
        self.assertEqual((len(self.durations), len(self.events)), (1, 1))
        slots = self.slots()
        self.assertEqual([slot.phases["compile"] for slot in slots], [0, 5_000_000, 0])
        # What is hooked and did not happen took no time; before, nothing is known of it.
        self.assertEqual([slot.phase_mask >> 6 & 1 for slot in slots], [0, 0, 0])
        self.assertEqual([slot.phase_mask >> 7 & 1 for slot in slots], [0, 1, 1])
        self.assertEqual([slot.phase_mask >> 8 & 1 for slot in slots], [1, 1, 1])

    def test_the_innermost_counts(self):
        self.import_jax()
        with lockstep.step(0):
            lockstep.phase("dispatch")
            self.clock.go(3)
            self.clock.go(2)                            # f is traced from here ...
            self.clock.go(4)                            # ... and g within it from here
            self.collect(6)
            self.compile("g", 10, "jaxpr_trace")        # 4 and the collection
            self.clock.go(1)
            self.compile("f", 13, "jaxpr_trace")        # 2 + 10 + 1
            self.clock.go(7)
            self.compile("jit(f)", 7, "jaxpr_to_mlir_module")
            self.clock.go(20)
            self.compile("jit(f)", 20)
            self.clock.go(5)
        self.assertEqual(self.phases(self.slots()[0]), {"dispatch": 8, "gc": 6, "compile": 34})
        mask, counters, functions = self.block()
        self.assertEqual(mask, 0x33f)  # of checkpoints nothing is known
        self.assertEqual(counters, (1, 34_000_000, 0, 0, 1, 6_000_000, 0, 0, 0, 0))
        self.assertEqual(functions, {"f": (1, 34)})

    def test_nothing_is_counted_twice_though_clocks_differ_a_little(self):
        self.import_jax()
        with lockstep.step(0):
            self.clock.go(10)
            self.compile("g", 4.001, "jaxpr_trace")  # as told by a clock of another speed
            self.compile("f", 10.002, "jaxpr_trace")
            self.compile("f", 0)
            lockstep.phase("compute")
            self.compile("f", 8)                     # began before the phase, even before the step
            self.clock.go(1)
        self.assertEqual(self.phases(self.slots()[0]), {"compile": 10, "compute": 1})

    def test_collection_within_the_input_of_the_next_step(self):
        def loader():
            for _ in range(2):
                self.clock.go(3)
                self.collect(4)
                self.clock.go(1)
                yield None

        for i, _ in enumerate(lockstep.input(loader())):
            self.clock.go(2)  # between input and step: of the step
            with lockstep.step(i):
                self.clock.go(10)
            self.clock.go(50)  # of none
        for slot in self.slots():
            self.assertEqual(self.phases(slot), {"input_wait": 4, "gc": 4, "other": 12})

    def test_collection_within_a_barrier(self):
        with lockstep.step(0):
            with lockstep.sync_wait():
                self.clock.go(5)
                self.collect(2)
        slot = self.slots()[0]
        self.assertEqual(self.phases(slot), {"sync_wait": 5, "gc": 2})
        kind, enter, leave = slot.barriers[0]
        self.assertEqual(leave - enter, 7_000_000)

    def test_waits_for_checkpoints_and_not_what_goes_on_behind(self):
        self.import_jax()
        with lockstep.step(0):
            tell = self.durations[0]
            self.clock.go(30)
            tell("/jax/orbax/write/checkpoint_start_sync_duration_secs", 0.005)
            tell("/jax/checkpoint/write/async/blocking_duration_secs", 0.02)
            tell("/jax/checkpoint/write/async/total_duration_secs", 0.03)
            tell("/jax/checkpoint/write/gbytes_per_sec", 0.01)
            thread = threading.Thread(
                target=tell, args=("/jax/checkpoint/write/wait_for_prev_duration_secs", 0.01))
            thread.start()
            thread.join()
        with lockstep.step(1):
            pass
        slots = self.slots()
        self.assertEqual(self.phases(slots[0]), {"checkpoint": 20, "other": 10})
        self.assertEqual(slots[1].phase_mask >> 6 & 1, 1)
        mask, counters, _functions = self.block()
        self.assertEqual((mask, counters[6:8]), (0x3ff, (2, 20_000_000)))

    def test_compilations_of_other_threads_and_between_steps_are_of_no_step(self):
        self.import_jax()
        lockstep.open()
        self.compile("init", 99)
        self.clock.go(100)
        self.compile("init", 100)
        with lockstep.step(0):
            self.clock.go(9)
            thread = threading.Thread(target=self.compile, args=("behind", 9))
            thread.start()
            thread.join()
            self.clock.go(1)
        names = sorted(os.listdir(self.dir), key=lambda name: os.stat(
            os.path.join(self.dir, name)).st_mtime_ns)
        os.unlink(os.path.join(self.dir, names[0]))  # the ring before the second open
        self.assertEqual(self.phases(self.slots()[0]), {"other": 10})
        _mask, counters, functions = self.block()
        self.assertEqual(functions, {"init": (1, 100), "behind": (1, 9)})
        self.assertEqual(counters[0], 2)
        self.assertEqual(counters[9], 1)  # 99 ms when we had looked for 0: no sense

    def test_what_was_counted_before_there_is_a_ring_is_in_it(self):
        self.import_jax()
        lockstep.close()
        self.marks.look_for_jax()
        self.clock.go(50)
        self.compile("init", 50)
        os.unlink(self.path())
        lockstep.open()
        self.assertEqual(self.block()[2], {"init": (1, 50)})

    def test_names_of_functions(self):
        self.import_jax()
        with lockstep.step(0):
            self.clock.go(1)
            for name in ("jit(f)", "pmap(f)", "jit_f", "f", "<lambda>", "a(b", "x" * 200, "\x1b[m",
                         None, ""):
                self.compile(name, 0)
        functions = self.block()[2]
        self.assertEqual(functions.pop("f"), (4, 0))
        self.assertEqual(sorted(functions), sorted(["<lambda>", "a(b", "x" * 95, "_[m", "None",
                                                    "?"]))

    def test_functions_without_a_place_are_counted(self):
        self.import_jax()
        with lockstep.step(0):
            for i in range(40):
                self.compile("f%d" % i, 0)
        _mask, counters, functions = self.block()
        self.assertEqual((len(functions), counters[0], counters[8]), (32, 40, 8))

    def test_cache_hits_and_misses(self):
        self.import_jax()
        with lockstep.step(0):
            for name in ("hits", "hits", "misses"):
                self.events[0]("/jax/compilation_cache/cache_" + name, some="thing")
            self.events[0]("/jax/compilation_cache/tasks_using_cache")
            self.events[0](None)
        self.assertEqual(self.block()[1][2:4], (2, 1))

    def test_errors_are_swallowed_and_counted(self):
        self.import_jax()
        with lockstep.step(0):
            for bad in (float("nan"), float("inf"), -1, 1e30, "long", None):
                self.durations[0]("/jax/core/compile/backend_compile_duration", bad)
            self.events[0]([])  # cannot be a name
            self.durations[0]({}, 1)
            self.clock.go(1)
        self.assertEqual(self.phases(self.slots()[0]), {"other": 1})
        self.assertEqual(self.block()[1], (0, 0, 0, 0, 0, 0, 0, 0, 0, 8))

    def test_jax_of_another_kind_is_no_error_to_the_job(self):
        sys.modules["jax.monitoring"] = types.ModuleType("jax.monitoring")
        for i in range(2):
            with lockstep.step(i):
                pass
        mask, counters, _functions = self.block()
        self.assertEqual((mask & 1, counters[9]), (0, 1))
        self.assertEqual(self.slots()[1].phase_mask >> 7 & 1, 0)

    def test_jax_in_the_middle_of_its_import_is_left_alone(self):
        self.import_jax()
        sys.modules["jax.monitoring"].__spec__ = types.SimpleNamespace(_initializing=True)
        with lockstep.step(0):
            self.assertEqual(self.durations, [])
        sys.modules["jax.monitoring"].__spec__._initializing = False
        with lockstep.step(1):
            self.assertEqual(len(self.durations), 1)

    def test_many_collections_in_a_step_take_no_more_room(self):
        self.import_jax()
        with lockstep.step(0):
            for _ in range(1000):
                self.collect(1)
                self.clock.go(1)
            self.compile("f", 2000)
        self.assertLessEqual(len(self.marks.hooks.inner), 64)
        self.assertEqual(self.phases(self.slots()[0]), {"gc": 1000, "compile": 1000})

    def test_a_loop_is_input_and_steps(self):
        def loader():
            for name in "abcd":
                self.clock.go(2)
                yield name

        seen = []
        for i, batch in lockstep.loop(loader(), first=7):
            self.clock.go(3)
            seen.append((i, batch))
            if batch == "c":
                break
        self.clock.go(1000)
        with lockstep.step(20):
            self.clock.go(1)
        self.assertEqual(seen, [(7, "a"), (8, "b"), (9, "c")])
        slots = self.slots()
        self.assertEqual([slot.step for slot in slots], [7, 8, 20])  # 9 was left in the middle
        self.assertEqual(self.phases(slots[1]), {"input_wait": 2, "other": 3})
        self.assertEqual(self.phases(slots[2]), {"other": 1})

    def test_the_end_of_the_input_belongs_to_no_step(self):
        def loader():
            yield 1
            self.clock.go(500)

        for i in lockstep.input(loader()):
            with lockstep.step(i):
                self.clock.go(1)
        with lockstep.step(2):
            self.clock.go(1)
        self.assertEqual([slot.duration for slot in self.slots()], [1_000_000] * 2)

    def test_a_loop_that_raises_has_no_record_of_that_step(self):
        with self.assertRaises(KeyError):
            for i, _ in lockstep.loop(range(3)):
                if i == 1:
                    raise KeyError("theirs")
        gc.collect()  # the generator is closed when the traceback lets it go
        with lockstep.step(5):
            pass
        self.assertEqual([slot.step for slot in self.slots()], [0, 5])


class Life(Case):
    """Opening, ending, dying."""

    def test_clean_end_leaves_the_flag(self):
        lockstep.open()
        lockstep.close()
        lockstep.close()
        with lockstep.step(0):
            pass
        data = self.read()
        self.assertEqual(struct.unpack_from("<I", data, 76), (1,))
        self.assertEqual(struct.unpack_from("<Q", data, 3136), (0,))

    def test_lock_is_held_and_forked_children_have_no_ring(self):
        lockstep.open()
        with lockstep.step(0):
            pass
        path = self.path()
        child = os.fork()
        if child == 0:
            with lockstep.step(1):
                pass
            lockstep.close()
            code = 0
            with open(path, "r+b") as file:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
                    code = 1
                except OSError:
                    pass
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        data = self.read()
        self.assertEqual(struct.unpack_from("<Q", data, 3136), (1,))
        self.assertEqual(struct.unpack_from("<I", data, 76), (0,))
        self.assertEqual(os.stat(path).st_mode & 0o7777, 0o644)

    def test_exit_is_a_clean_end_and_a_signal_or_an_exception_is_not(self):
        code = ("import lockstep, os, sys\n"
                "for i in range(3):\n    with lockstep.step(i): pass\n"
                "if sys.argv[1:] == ['die']: os.kill(os.getpid(), 9)\n"
                "if sys.argv[1:] == ['exit']: sys.exit(1)\n"
                "if sys.argv[1:2] == ['step']:\n"
                "    try:\n        with lockstep.step(3): sys.exit(int(sys.argv[2]))\n"
                "    except SystemExit:\n"
                "        if sys.argv[3:] != ['caught']: raise\n"
                "    with lockstep.step(4): pass\n"
                "elif sys.argv[1:]: raise ValueError('no more memory')\n")
        env = dict(os.environ, PYTHONPATH=os.path.join(TOP, "agent", "client", "python"),
                   PYTHONDONTWRITEBYTECODE="1")
        # The status of sys.exit() is seen only where it leaves a step: see the README.
        for args, flag in (([], 1), (["die"], 0), (["raise"], 2), (["exit"], 1), (["step", "0"], 1),
                           (["step", "1"], 2), (["step", "1", "caught"], 1)):
            subprocess.run([sys.executable, "-c", code] + args, env=env, check=False,
                           stderr=subprocess.DEVNULL)
            name, = os.listdir(self.dir)
            with open(os.path.join(self.dir, name), "rb") as file:
                data = file.read()
            self.assertEqual(struct.unpack_from("<I", data, 76), (flag,), args)
            self.assertEqual(struct.unpack_from("<Q", data, 3136), (4 if args[2:] else 3,))
            os.unlink(os.path.join(self.dir, name))

    def test_jax_is_never_imported(self):
        code = ("import lockstep, sys\nlockstep.open()\n"
                "for i, _ in lockstep.loop(range(3)):\n    with lockstep.sync_wait(): pass\n"
                "sys.exit('jax' in sys.modules)\n")
        os.mkdir(os.path.join(self.dir, "path"))
        with open(os.path.join(self.dir, "path", "jax.py"), "w", encoding="ascii") as file:
            file.write("raise SystemExit('imported')\n")
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.pathsep.join(
            (os.path.join(TOP, "agent", "client", "python"), os.path.join(self.dir, "path"))))
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=env,
                                        check=False).returncode, 0)

    def test_no_directory_is_no_error(self):
        missing = os.path.join(self.dir, "missing")
        self.assertFalse(lockstep.open(steps_dir=missing))
        with lockstep.step(0):
            lockstep.phase("compute")
        os.mkdir(missing)
        with lockstep.step(1):
            pass
        self.assertEqual(os.listdir(missing), [])
        real = _recorder.monotonic_ns
        _recorder.monotonic_ns = lambda: real() + 10_000_000_000
        try:
            with lockstep.step(2):  # tried again after 10 s
                pass
        finally:
            _recorder.monotonic_ns = real
        self.assertEqual(len(os.listdir(missing)), 1)
        self.assertFalse(lockstep.open(steps_dir="/dev/null"))
        self.assertFalse(lockstep.open(steps_dir="/proc/self/fd"))
        self.assertFalse(lockstep.open(steps_dir=17))
        self.assertFalse(lockstep.emit({"step": 1, "t_begin": 1, "duration": 1}))

    def golden(self, name):
        """Bytes of a golden ring, and of the same made here; what a system makes up is taken over."""
        with open(os.path.join(TOP, "tests", "golden", name), "rb") as file:
            golden = file.read()
        identity = _identity.Identity({"job": "golden-run", "rank": 3, "world": 4,
                                       "role": "trainer", "host": "h3"},
                                      {"LOCKSTEP_ATTEMPT": "2", "MEGASCALE_SLICE_ID": "1",
                                       "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1"})
        identity.source["host"] = _identity.DEFAULT  # the golden ring took it from the system
        marks = _recorder.Recorder()
        hooks = marks.hooks
        hooks.set(_ring.EVENTS_MEASURED, 0x3ff & ~(1 << _hooks.CACHE_MISSES))
        for _ in range(13):
            hooks.add_function("train_step", 2_000_000_000)
        ring = _ring.Ring(self.dir, identity, 1_000_000_000, slots=2, events=hooks.block)
        marks.words = ring.words
        hooks.add_function("train_step", 5_250_000_000)  # the ring is there by now
        hooks.add_function("Trainer.update", 1)
        for i in set(range(10)) - {_hooks.CACHE_MISSES}:
            hooks.add(i, 100 + i)
        ring.live(2, 42, 3, 1_040_000_000)
        ring.push(_recorder.record_of({
            "step": 41, "t_begin": 1.0005, "duration": 0.02,
            "phases": {"input_wait": 0.001, "compute": 0.012, "sync_wait": 0.0065,
                       "other": 0.0005},
            "barriers": [{"name": "ici", "enter": 1.0135, "exit": 1.0185},
                         {"name": "dcn", "enter": 1.0186, "exit": 1.0201}],
            "work": {"tokens": 4096, "batch": 8},
            "peers": {2: {"recv_wait": 0.0049}, 0: {"send_wait": 0.00012}}}))
        data = bytearray(self.read())
        marks.words = None
        ring.close()
        data[24:56] = golden[24:56]  # ring id, boot id
        data[64:76] = golden[64:76]  # wall clock, pid
        return golden, data

    def test_bytes_are_those_of_the_golden_ring(self):
        golden, data = self.golden("ring_v1.bin")
        del data[4096:HEADER]  # this one has no events
        data[12:16] = golden[12:16]
        self.assertEqual(bytes(data), golden)

    def test_bytes_are_those_of_the_golden_ring_with_events(self):
        golden, data = self.golden("ring_v1_events.bin")
        self.assertEqual(bytes(data), golden)


class Who(Case):
    """Identity: the same as the C library's."""

    CASES = (
        {},
        {"LOCKSTEP_JOB": "a", "LOCKSTEP_ATTEMPT": "3", "LOCKSTEP_RANK": "1",
         "LOCKSTEP_WORLD": "8", "LOCKSTEP_ROLE": "r", "LOCKSTEP_SLICE": "s",
         "LOCKSTEP_CHIPS": "4", "LOCKSTEP_HOST": "h", "RANK": "5"},
        {"JOBSET_NAME": "llama", "JOBSET_RESTART_ATTEMPT": "2", "REPLICATED_JOB_NAME": "w",
         "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1", "TPU_WORKER_ID": "3",
         "TPU_WORKER_HOSTNAMES": "a,b,c,d", "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
         "JOB_COMPLETION_INDEX": "3", "RANK": "99"},
        {"TPU_WORKER_ID": "3", "LOCAL_WORLD_SIZE": "4", "RANK": "13", "WORLD_SIZE": "16"},
        {"MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1", "TPU_WORKER_ID": "3"},
        {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost",
         "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_CHIPS_PER_HOST_BOUNDS": "2,4,1"},
        {"JOB_COMPLETION_INDEX": "7"},
        {"SLURM_JOB_NAME": "train", "SLURM_JOB_ID": "8812", "SLURM_PROCID": "5",
         "SLURM_NTASKS": "8", "SLURM_RESTART_COUNT": "1"},
        {"SLURM_JOB_NAME": "x" * 200, "SLURM_JOB_ID": "1"},
        {"RANK": "9", "WORLD_SIZE": "4", "TORCHELASTIC_RESTART_COUNT": "1"},
        {"RANK": " 1", "WORLD_SIZE": "0x4", "SLURM_PROCID": "2", "LOCKSTEP_RANK": "65536",
         "TPU_CHIPS_PER_HOST_BOUNDS": "2,,1", "LOCKSTEP_CHIPS": "-1"},
        {"LOCKSTEP_JOB": "x" * 126 + "\u00e4\u00e4", "LOCKSTEP_ROLE": "a\x1b[31m\u0085z\udcff",
         "LOCKSTEP_SLICE": "s\nLOCKSTEP_RANK=9", "RANK": "9" * 30},
        {"TPU_WORKER_HOSTNAMES": "y" * 2048, "RANK": "1"},
        {"TPU_WORKER_ID": "3", "TPU_WORKER_HOSTNAMES": "," * 100000},
        {"LOCKSTEP_JOB": "", "JOBSET_NAME": "", "RANK": ""},
        # Kubeflow Trainer: two slices are two Jobs, JOB_COMPLETION_INDEX starts at 0 in each
        {"JOBSET_NAME": "ms", "JOB_COMPLETION_INDEX": "0", "JAX_PROCESS_ID": "2",
         "JAX_NUM_PROCESSES": "4"},
        # torchrun, several processes a host
        {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "TPU_WORKER_ID": "1",
         "TPU_WORKER_HOSTNAMES": "a,b", "TORCHELASTIC_RUN_ID": "run7"},
        {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "none"},
        # torch_xla, several processes a host; then without its own number, and of two slices
        {"CLOUD_TPU_TASK_ID": "5", "TPU_PROCESS_ADDRESSES": ",".join(["h:1"] * 8),
         "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"},
        {"TPU_PROCESS_ADDRESSES": ",".join(["h:1"] * 8), "TPU_WORKER_ID": "1",
         "TPU_WORKER_HOSTNAMES": "a,b"},
        {"CLOUD_TPU_TASK_ID": "3", "TPU_PROCESS_ADDRESSES": "a:1,b:1,c:1,d:1",
         "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1"},
        # a variable of Megascale is missing, or impossible
        {"MEGASCALE_NUM_SLICES": "2", "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"},
        {"MEGASCALE_SLICE_ID": "1", "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"},
        {"MEGASCALE_SLICE_ID": "0", "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"},
        {"MEGASCALE_SLICE_ID": "2", "MEGASCALE_NUM_SLICES": "2", "TPU_WORKER_ID": "1",
         "TPU_WORKER_HOSTNAMES": "a,b"},
        {"MEGASCALE_NUM_SLICES": "2", "JOB_COMPLETION_INDEX": "1"},
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0",
         "SLURM_NTASKS": "1"},
        {"PMI_RANK": "3", "PMI_SIZE": "4"},
        {"LWS_WORKER_INDEX": "2", "LWS_GROUP_SIZE": "4",
         "LWS_LEADER_ADDRESS": "serve-0.serve.default"},
        # a person says the rank, a launcher the world; a service link says none
        {"LOCKSTEP_RANK": "3", "JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "4"},
        {"LOCKSTEP_RANK": "tcp://10.43.1.40:7118"},
        {"JAX_PROCESS_ID": "x", "TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"},
    )

    def test_jax_is_asked_where_it_has_its_backends(self):
        class Bridge:
            ready = True

            @staticmethod
            def backends_are_initialized():
                return Bridge.ready

        class Jax:
            @staticmethod
            def process_index():
                return 3

            @staticmethod
            def process_count():
                return 4

        kept = dict(os.environ)
        modules = {"jax": Jax, "jax._src.xla_bridge": Bridge}
        with unittest.mock.patch.dict(sys.modules, modules):
            try:
                os.environ.update({"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b,c,d"})
                who = _identity.Identity()
                self.assertEqual((who.rank, who.world, who.source["rank"]), (3, 4, _identity.JAX))
                Bridge.ready = False
                who = _identity.Identity()
                self.assertEqual((who.rank, who.world, who.source["rank"]), (1, 4, _identity.TPU))
            finally:
                os.environ.clear()
                os.environ.update(kept)

    def test_the_same_as_the_c_library(self):
        tool = os.path.join(BUILD, "tests/unit/agent/client/print_identity")
        if not os.path.exists(tool):
            self.skipTest("tests/unit/agent/client/print_identity is not built")
        for case in self.CASES:
            with self.subTest(case=case):
                wanted = subprocess.run([tool], env=case, stdout=subprocess.PIPE,
                                        check=True).stdout
                who = _identity.Identity({}, case)

                def name(value, size):
                    return _identity.name_bytes(value, size).rstrip(b"\0")

                got = b"\n".join([
                    name(who.job, 128), b"%d" % who.attempt, b"%d" % who.rank,
                    b"%d" % who.world, name(who.role, 64), name(who.slice, 64),
                    b"%d" % who.chips, name(who.host, 128),
                    b" ".join(b"%d" % who.source[field] for field in _identity.FIELDS),
                    who.env])
                self.assertEqual(got, wanted)

    def test_secrets_stay_out(self):
        who = _identity.Identity({}, {"LOCKSTEP_TOKEN": "secret", "RANK": "1"})
        self.assertEqual(who.env, b"RANK=1\n")


class Tap(unittest.TestResult):
    """Prints one TAP line a test."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def _line(self, test, word, note=""):
        self.count += 1
        print("%s %d - %s%s" % (word, self.count, test.id().replace("__main__.", ""), note),
              flush=True)

    def addSuccess(self, test):
        self._line(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(test, "ok", " # SKIP " + reason)

    def _failed(self, test, err):
        for line in self._exc_info_to_string(err, test).splitlines():
            print("# " + line)
        self._line(test, "not ok")

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


def main():
    """Runs all tests."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = Tap()
    suite.run(result)
    print("1..%d" % result.count)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
