# SPDX-License-Identifier: Apache-2.0
"""Who this training process is: options, then environment, with the source of each field.

The rules are those of the C library (agent/client/identity.h); a test holds the two together.
"""

import os
import re
import sys

# Sources of a field: enum ls_ring_from in proto/ring/ring.h.
SOURCES = ("NONE", "API", "LOCKSTEP", "JOBSET", "MEGASCALE", "TPU", "TORCH", "SLURM", "DEFAULT",
           "JAX", "MPI", "XLA", "LWS", "REFUSED")
(NONE, API, LOCKSTEP, JOBSET, MEGASCALE, TPU, TORCH, SLURM, DEFAULT,
 JAX, MPI, XLA, LWS, REFUSED) = range(len(SOURCES))

FIELDS = ("job", "attempt", "rank", "world", "role", "slice", "chips", "host")
JOB_BYTES, SLICE_BYTES, ROLE_BYTES, HOST_BYTES = 128, 64, 64, 128
ENV_BYTES = 2048
WORKERS_MAX, SLICES_MAX, CHIPS_MAX, INT_MAX = 65536, 4096, 4096, 2**31 - 1

# What of the environment goes into the header, which everybody can read: names, never secrets.
ENV_NAMES = (
    "LOCKSTEP_JOB", "LOCKSTEP_ATTEMPT", "LOCKSTEP_RANK", "LOCKSTEP_WORLD", "LOCKSTEP_ROLE",
    "LOCKSTEP_SLICE", "LOCKSTEP_CHIPS", "LOCKSTEP_HOST", "JOBSET_NAME",
    "JOBSET_RESTART_ATTEMPT", "REPLICATED_JOB_NAME", "JOB_COMPLETION_INDEX",
    "MEGASCALE_SLICE_ID", "MEGASCALE_NUM_SLICES", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES",
    "TPU_ACCELERATOR_TYPE", "TPU_TOPOLOGY", "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_HOST_BOUNDS", "TPU_PROCESS_BOUNDS",
    "TPU_VISIBLE_CHIPS", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_JOB_NAME",
    "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NODEID", "SLURM_RESTART_COUNT", "NODE_NAME",
    "POD_NAME", "POD_NAMESPACE", "TPU_TOPOLOGY_WRAP", "TPU_RUNTIME_METRICS_PORTS",
    "TPU_SKIP_MDS_QUERY", "TPU_PROCESS_ADDRESSES", "LOCKSTEP_SHARD", "JAX_PROCESS_ID",
    "JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
    "CLOUD_TPU_TASK_ID", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS",
)


def _launchers():
    """The rules of launchers.def, which the C library includes: (source, rank, world, needs, form)."""
    path = os.path.join(os.path.dirname(__file__), "launchers.def")
    with open(path, encoding="utf-8") as rules:
        found = re.findall(r'^LS_LAUNCHER\((\w+), "(\w*)", "(\w*)", "(\w*)", (\w+)\)$', rules.read(), re.M)
    return [(SOURCES.index(row[0]),) + row[1:] for row in found]


def _jax_place():
    """Index and number of JAX's processes, where JAX has its backends already; else None.

    A call that would create the backends is never made.
    """
    try:
        jax, bridge = sys.modules.get("jax"), sys.modules.get("jax._src.xla_bridge")
        if jax is None or bridge is None or not bridge.backends_are_initialized():
            return None
        index, count = jax.process_index(), jax.process_count()
        return (index, count) if 0 <= index < count <= WORKERS_MAX and count > 1 else None
    except Exception:  # pylint: disable=broad-except  # another version of JAX: no harm to the job
        return None


def name_bytes(text, size):
    """UTF-8 of a name, cut to whole characters and padded to `size` bytes with NULs.

    What may not stand in a name (control characters, bytes that are not UTF-8) becomes "_".
    """
    out = b""
    for char in str(text):
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:  # an undecodable byte of the environment
            piece = b"_"
        elif code < 0x20 or code == 0x7F:
            piece = b"_"
        elif 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000:
            piece = b"_" * (2 if code < 0xA0 else 3)
        else:
            piece = char.encode("utf-8")
        if len(out) + len(piece) >= size:
            break
        out += piece
    return out.ljust(size, b"\0")


def _number(text, most):
    """The whole text as a number from 0 to `most`, or None."""
    if not text or not (text.isascii() and text.isdigit()):
        return None
    value = int(text[:20])
    return value if len(text) <= 20 and value <= most else None


def _bounds(text):
    """Product of "2,2,1", or None."""
    product = 1
    for part in (text or "").split(","):
        value = _number(part, CHIPS_MAX)
        if not value:
            return None
        product *= value
    return product if product <= CHIPS_MAX else None


class Identity:
    """Fields of a ring's header: attributes by the names of FIELDS; `source` by field."""

    def __init__(self, options=None, env=None):
        self._env = os.environ if env is None else env
        self.source = dict.fromkeys(FIELDS, NONE)
        self.job = self.role = self.slice = self.host = ""
        self.attempt = self.rank = self.world = self.chips = 0
        options = options or {}
        self._names(options)
        self._numbers(options)
        self.env = self._whitelisted()

    def _get(self, name):
        return self._env.get(name)

    def _offer(self, field, value, source):
        """Takes the value if it is one and no source before gave any."""
        if self.source[field] == NONE and value is not None and value != "":
            setattr(self, field, value)
            self.source[field] = source

    def _names(self, options):
        get, offer = self._get, self._offer
        offer("job", options.get("job"), API)
        offer("job", get("LOCKSTEP_JOB"), LOCKSTEP)
        offer("job", get("JOBSET_NAME"), JOBSET)
        if get("SLURM_JOB_ID"):
            # The number last, and never cut off: it is what makes the job unique.
            name = get("SLURM_JOB_NAME") or "slurm"
            half = JOB_BYTES // 2
            head = name_bytes(name, half).rstrip(b"\0").decode("utf-8")
            offer("job", head + "-" + get("SLURM_JOB_ID"), SLURM)
        offer("job", self._run(), LWS)
        offer("job", "default", DEFAULT)
        offer("role", options.get("role"), API)
        offer("role", get("LOCKSTEP_ROLE"), LOCKSTEP)
        offer("role", get("REPLICATED_JOB_NAME"), JOBSET)
        offer("slice", options.get("slice"), API)
        offer("slice", get("LOCKSTEP_SLICE"), LOCKSTEP)
        offer("slice", get("MEGASCALE_SLICE_ID"), MEGASCALE)
        offer("host", options.get("host"), API)
        offer("host", get("LOCKSTEP_HOST"), LOCKSTEP)
        offer("host", os.uname().nodename, DEFAULT)

    def _run(self):
        """torchrun's id, unless it is the default one; else the leader's pod of a LeaderWorkerSet."""
        run = self._get("TORCHELASTIC_RUN_ID")
        if run is not None and run != "none":
            return run
        return (self._get("LWS_LEADER_ADDRESS") or "").partition(".")[0]

    def _count(self, name):
        """Number of names in a list with commas; None if there is none, or more than a job has workers."""
        names = self._get(name)
        count = names.count(",") + 1 if names else 0
        return count if 0 < count <= WORKERS_MAX else None

    def _shares_host(self):
        """Does a host run several processes, each with chips of its own?"""
        hosts = self._count("TPU_WORKER_HOSTNAMES")
        return ((_number(self._get("LOCAL_WORLD_SIZE"), INT_MAX) or 0) > 1 or
                (hosts or 0) > 0 and (self._count("TPU_PROCESS_ADDRESSES") or 0) > hosts)

    def _launch(self, rule):
        """Rank and world by one launcher's variables; False: a variable is set and tells no rank in the job."""
        source, rank_name, world_name, needs, form = rule
        if not self._get(rank_name) or (needs and self._get(needs) is None):
            return True
        part = form in ("SLICE", "HOST")
        rank = _number(self._get(rank_name), WORKERS_MAX - 1)
        world = self._count(world_name) if part else _number(self._get(world_name), WORKERS_MAX)
        slices = _number(self._get("MEGASCALE_NUM_SLICES"), SLICES_MAX)
        here = _number(self._get("MEGASCALE_SLICE_ID"), SLICES_MAX)
        given = source
        if rank is None or (form in ("HOST", "JOB") and self._shares_host()):
            return False
        if form != "WHOLE" and ((slices or 0) > 1 or (here is not None and slices != 1)):
            if (not part or here is None or (slices is not None and here >= slices) or
                    (here > 0 and (world is None or world > WORKERS_MAX // (here + 1) or
                                   rank >= WORKERS_MAX - here * world))):
                return False  # where this slice begins is not known
            if here > 0:
                rank += here * world
                given = MEGASCALE
            known = (slices or 0) > 1 and world is not None and world <= WORKERS_MAX // slices
            world = world * slices if known else None
        if self.source["rank"] <= LOCKSTEP and world:
            self._offer("world", world, MEGASCALE if part and (slices or 0) > 1 else source)
        self._offer("rank", rank, given)
        return True

    def _place(self):
        """Rank and world, unless options gave them: by the first launcher that knows."""
        refused = False
        for rule in _launchers():
            if rule[0] == JAX and self.source["rank"] == NONE:
                self._jax()
            refused |= not self._launch(rule)
        self._offer("rank", 0, REFUSED if refused else DEFAULT)

    def _jax(self):
        """What JAX itself says, where it can be asked, wins over the environment."""
        place = _jax_place() if self._env is os.environ else None
        if place is not None:
            self._offer("world", place[1], JAX)
            self._offer("rank", place[0], JAX)

    def _numbers(self, options):
        offer, top = self._offer, WORKERS_MAX - 1

        def option(name, most):
            value = options.get(name)
            return value if isinstance(value, int) and 0 <= value <= most else None

        def env(name, most):
            return _number(self._get(name), most)

        offer("attempt", option("attempt", INT_MAX), API)
        offer("attempt", env("LOCKSTEP_ATTEMPT", INT_MAX), LOCKSTEP)
        offer("attempt", env("JOBSET_RESTART_ATTEMPT", INT_MAX), JOBSET)
        offer("attempt", env("TORCHELASTIC_RESTART_COUNT", INT_MAX), TORCH)
        offer("attempt", env("SLURM_RESTART_COUNT", INT_MAX), SLURM)
        offer("attempt", 0, DEFAULT)
        offer("rank", option("rank", top), API)
        offer("world", option("world", WORKERS_MAX), API)
        offer("world", env("LOCKSTEP_WORLD", WORKERS_MAX), LOCKSTEP)
        self._place()
        offer("chips", option("chips", CHIPS_MAX), API)
        offer("chips", env("LOCKSTEP_CHIPS", CHIPS_MAX), LOCKSTEP)
        offer("chips", _bounds(self._get("TPU_CHIPS_PER_PROCESS_BOUNDS")), TPU)
        offer("chips", _bounds(self._get("TPU_CHIPS_PER_HOST_BOUNDS")), TPU)
        if 0 < self.world <= self.rank:
            # The two come from different places and disagree: keep the one that names us.
            self.world = 0
            self.source["world"] = NONE

    def _whitelisted(self):
        """"KEY=VALUE\\n"...; what has control characters or does not fit is left out."""
        out = b""
        for name in ENV_NAMES:
            value = self._get(name)
            if value is None:
                continue
            data = os.fsencode(value)
            if any(byte < 0x20 or byte == 0x7F for byte in data):
                continue
            if len(name) + len(data) + 2 >= ENV_BYTES - len(out):
                continue
            out += name.encode() + b"=" + data + b"\n"
        return out
