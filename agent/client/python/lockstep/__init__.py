# SPDX-License-Identifier: Apache-2.0
"""lockstep - step marks for a training process: a ring file that the lockstep agent reads.

    import lockstep

    for i, batch in enumerate(lockstep.input(loader)):
        with lockstep.step(i):
            with lockstep.phase("compute"):
                grads = gradients(batch)
            with lockstep.sync_wait():
                grads = all_reduce(grads)
            lockstep.work(tokens=batch.tokens)

or, where steps are the turns of the loop: `for i, batch in lockstep.loop(loader):`.

No call blocks or raises into the training loop: where no ring can be made, marks do nothing, and
opening is tried again every 10 s. A forked child has no ring. One thread makes the marks, the one
that made the first; calls from others are ignored. Only the standard library is used.

Who the process is comes from open(), else from LOCKSTEP_JOB, _ATTEMPT, _RANK, _WORLD, _ROLE, _SLICE,
_CHIPS, _HOST, else from JOBSET_*, MEGASCALE_*, TPU_WORKER_ID, RANK and WORLD_SIZE, SLURM_*. The ring
goes to LOCKSTEP_STEPS_DIR, by default /run/lockstep/steps.

Collections of garbage are phase "gc"; compilations that JAX reports are phase "compile", waits for
checkpoints phase "checkpoint": taken out of the phase in which they happened. JAX is hooked at the
begin of the first step after the job has imported it; lockstep never imports it.

Units: seconds where an argument is a time; inside the ring ns of CLOCK_MONOTONIC.
Limits: 4 barriers and 4 peers a step; more are ignored. Source: proto/ring/ring.h.
"""

from _thread import get_ident
from time import monotonic_ns

from ._recorder import LIVE, LIVE_AGAIN, LIVE_PHASE, LIVE_SINCE, PHASES, Recorder, record_of

__all__ = ["open", "close", "loop", "step", "input", "phase", "sync_wait", "work", "peer", "emit"]

_marks = Recorder()


def _quiet(function):
    """A mark never raises into the training loop; one that fails is lost."""

    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:  # pylint: disable=broad-except
            return None

    wrapper.__doc__, wrapper.__name__ = function.__doc__, function.__name__
    return wrapper


@_quiet
def open(*, job=None, attempt=None, rank=None, world=None, role=None, slice=None, chips=None,
         host=None, steps_dir=None):  # pylint: disable=redefined-builtin,too-many-arguments
    """Opens the ring of this process; what is None comes from the environment.

    Returns True if there is a ring now; else it is tried again every 10 s. Marks are safe either way.
    """
    return _marks.open({"job": job, "attempt": attempt, "rank": rank, "world": world,
                           "role": role, "slice": slice, "chips": chips, "host": host,
                           "steps_dir": steps_dir})


@_quiet
def close():
    """Marks a clean end and closes the ring. Also done at exit."""
    _marks.close()


class _Step:
    """Context of one step; see step()."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        _step_enter(self.number)
        return self

    def __exit__(self, kind, value, trace):
        _step_exit(kind is None, value)
        return False


_step_enter, _step_exit = _quiet(_marks.begin), _quiet(_marks.finish)


def step(number):
    """Context manager around one step of the training loop: `with lockstep.step(i):`.

    Its record is published when the block ends; a block that raises leaves none. Input that
    lockstep.input() waited for just before belongs to the step.
    """
    return _Step(number)


class _Scope:
    """Context of a phase; see phase()."""

    __slots__ = ()

    def __enter__(self):
        _scope_enter()
        return self

    def __exit__(self, kind, value, trace):
        _scope_exit()
        return False


_scope = _Scope()
_scope_enter, _scope_exit = _quiet(_marks.scope_enter), _quiet(_marks.scope_exit)


def phase(name):
    """From now on the time belongs to phase `name`: input_wait h2d dispatch compute sync_wait
    collective checkpoint compile gc eval other.

    A plain mark, or a context manager that goes back to the phase before: `with
    lockstep.phase("compute"):`. An unknown name is ignored.
    """
    try:
        number = PHASES[name]
        marks = _marks
        if not marks.in_step:
            marks.mark(number)
            return _scope
        now = monotonic_ns()
        if marks.owner == get_ident():
            # Recorder.switch() without its calls: a mark comes with cold caches, and each counts.
            old = marks.phase
            spent = now - marks.since_ns
            if spent > 0:
                marks.times[old] += spent
            marks.mask |= 1 << old
            marks.before = old
            marks.phase = number
            marks.since_ns = now
            words = marks.words
            marks.sequence = sequence = marks.sequence + 2
            words[LIVE] = sequence - 1
            words[LIVE_AGAIN] = sequence
            words[LIVE_PHASE] = number
            words[LIVE_SINCE] = now
            words[LIVE] = sequence
    except Exception:  # pylint: disable=broad-except
        _marks.before = _marks.phase
    return _scope


class _Sync:
    """Context of a barrier; see sync_wait()."""

    __slots__ = ("kind", "before")

    def __init__(self, kind):
        self.kind = kind
        self.before = None

    def __enter__(self):
        self.before = _marks.phase
        _sync_enter(self.kind)
        return self

    def __exit__(self, kind, value, trace):
        _sync_exit(self.before)
        return False


_sync_enter, _sync_exit = _quiet(_marks.sync_enter), _quiet(_marks.sync_exit)


def sync_wait(kind="ici"):
    """Context manager around a barrier or collective: phase sync_wait, times of entry and exit kept.

    kind: "ici" within a slice, "dcn" between slices, "stage" of a pipeline, "other". The phase before
    goes on afterwards.
    """
    return _Sync(kind)


def input(loader):  # pylint: disable=redefined-builtin
    """Yields from `loader` and counts the time spent in it as phase input_wait.

    Around the loop or inside a step; what the loader raises is passed on.
    """
    iterator = iter(loader)
    try:
        while True:
            before = _input_enter()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                _input_exit(before)
            yield item
    finally:
        _input_end()


_input_enter, _input_exit, _input_end = (
    _quiet(_marks.input_enter), _quiet(_marks.input_exit), _quiet(_marks.input_end))


def loop(loader, first=0):
    """Input and steps in one: `for i, batch in lockstep.loop(loader):`, i from `first`.

    A step ends when the loop asks for the next batch; one that is left by break or an exception has no
    record.
    """
    number = first
    for batch in input(loader):
        with step(number):
            yield number, batch
        number += 1


def work(**amounts):
    """Work done in this step, added up over calls: tokens, sum_sq_len (squared sequence lengths),
    batch, expert_load_max, expert_load_mean. Unknown, negative and infinite ones are ignored.
    """
    for name, amount in amounts.items():
        _add_work(name, amount)


def peer(rank, recv_wait=None, send_wait=None):
    """Waits on one peer in this step, in seconds (None: not measured), added up over calls."""
    _add_peer(rank, recv_wait, send_wait)


_add_work, _add_peer = _quiet(_marks.add_work), _quiet(_marks.add_peer)


def emit(record):
    """Publishes one complete record, for loops that time themselves.

    A dict: step, t_begin and duration (seconds; t_begin of time.monotonic()), and optionally phases
    {name: seconds}, barriers [{"name", "enter", "exit"}] or sync_enter and sync_exit, work {name:
    amount}, peers {rank: {"recv_wait": s, "send_wait": s}}. Returns True if it was written; a
    malformed one is ignored.
    """
    try:
        words = record_of(record)
        if not _marks.ready(monotonic_ns()):
            return False
        _marks.ring.push(words)
        return True
    except Exception:  # pylint: disable=broad-except
        return False
