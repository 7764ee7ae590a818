-- telemetry/YYYYMMDD.db, version 4 (those before it were never released): what was committed on one
-- day (UTC). Times are microseconds since the Unix epoch on the collector's time line.
--
-- Events are what the engine met: step runs, hot counters, gap, worker_end, step_close, zoom, hang. Their ids are
-- one sequence, in the order in which it met them; merged by id they replay what happened.

-- One commit's step records, hot counters and positions (storage/README.md, "Journal"). `id` and `last_id`
-- are the least and greatest id of its events. Goes when a unit holds the same.
CREATE TABLE journal (
	id      INTEGER PRIMARY KEY,
	last_id INTEGER NOT NULL,
	t_us    INTEGER NOT NULL,
	records INTEGER NOT NULL,
	step_lo INTEGER NOT NULL,
	step_hi INTEGER NOT NULL,
	body    BLOB NOT NULL
) STRICT;

-- What rows of the journal from id to last_id became: rows of step_rows and hot_rows with ids in that range.
CREATE TABLE unit (
	id      INTEGER PRIMARY KEY,
	last_id INTEGER NOT NULL,
	t_us    INTEGER NOT NULL,
	records INTEGER NOT NULL
) STRICT;

-- Step records of one job, as columns ("Step rows"), in the order in which they came. job_id is that of
-- state.db.
CREATE TABLE step_rows (
	id      INTEGER PRIMARY KEY,
	last_id INTEGER NOT NULL,
	job_id  INTEGER NOT NULL,
	records INTEGER NOT NULL,
	step_lo INTEGER NOT NULL,
	step_hi INTEGER NOT NULL,
	t_lo_us INTEGER NOT NULL,
	t_hi_us INTEGER NOT NULL,
	body    BLOB NOT NULL
) STRICT;
CREATE INDEX step_rows_by_step ON step_rows (job_id, step_hi, step_lo);

-- Hot counters, as columns ("Hot rows").
CREATE TABLE hot_rows (
	id      INTEGER PRIMARY KEY,
	last_id INTEGER NOT NULL,
	n       INTEGER NOT NULL,
	body    BLOB NOT NULL
) STRICT;

-- Records that are lost, and why (proto/lockstep.proto, Gap.Reason).
CREATE TABLE gap (
	id          INTEGER PRIMARY KEY,
	worker_id   INTEGER NOT NULL,
	t_us        INTEGER NOT NULL,
	first_index INTEGER NOT NULL,
	n           INTEGER NOT NULL,
	reason      INTEGER NOT NULL
) STRICT;

-- A worker's process came to its end (End.How).
CREATE TABLE worker_end (
	id        INTEGER PRIMARY KEY,
	worker_id INTEGER NOT NULL,
	t_us      INTEGER NOT NULL,
	how       INTEGER NOT NULL,
	records   INTEGER NOT NULL
) STRICT;

-- A step was closed and judged; `missing` holds the ranks not judged, each 4 bytes little-endian.
CREATE TABLE step_close (
	id       INTEGER PRIMARY KEY,
	job      TEXT NOT NULL,
	attempt  INTEGER NOT NULL,
	step     INTEGER NOT NULL,
	t_us     INTEGER NOT NULL,
	expected INTEGER NOT NULL,
	used     INTEGER NOT NULL,
	missing  BLOB NOT NULL
) STRICT;

-- A host was looked at more closely (event 0), longer than was said (1), or no more (2). `job` and `cause`
-- say why; until_us is when it ends unless renewed.
CREATE TABLE zoom (
	id       INTEGER PRIMARY KEY,
	t_us     INTEGER NOT NULL,
	host     TEXT NOT NULL,
	job      TEXT NOT NULL,
	event    INTEGER NOT NULL,
	cause    TEXT NOT NULL,
	until_us INTEGER NOT NULL
) STRICT;

-- A job was seen standing still, by live slots, which are not stored: since when, in which step, how many
-- workers waited, why (0 not known, 1 all are in the collective, 2 those of `ranks` are not in it, 3 nor heard
-- of, 4 nor alive). `ranks` is like `missing` above.
CREATE TABLE hang (
	id       INTEGER PRIMARY KEY,
	job      TEXT NOT NULL,
	attempt  INTEGER NOT NULL,
	step     INTEGER NOT NULL,
	since_us INTEGER NOT NULL,
	t_us     INTEGER NOT NULL,
	waiting  INTEGER NOT NULL,
	why      INTEGER NOT NULL,
	ranks    BLOB NOT NULL
) STRICT;

-- What is on disk of each agent's numbered streams, but for what stands in the journal.
CREATE TABLE ledger (
	boot      BLOB NOT NULL,
	host      TEXT NOT NULL,
	seq       INTEGER NOT NULL,
	chunk_seq INTEGER NOT NULL,
	t_us      INTEGER NOT NULL,
	PRIMARY KEY (boot, host)
) STRICT, WITHOUT ROWID;

-- What is on disk of each ring: all records below index `high`, or the gaps that stand for them; but for
-- what stands in the journal.
CREATE TABLE ring_high (
	ring_id   BLOB PRIMARY KEY,
	worker_id INTEGER NOT NULL,
	high      INTEGER NOT NULL,
	t_us      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Hosts named in this file; ids are of this file alone.
CREATE TABLE chunk_host (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
) STRICT;

-- The names behind the columns of chunks. `hash` is that of the wire, as a signed number; `series` are
-- the texts, each with a NUL behind it. Every dictionary that a chunk of this file names is here: it is put
-- in again at its first use of a day (t_us), and copied forward for two days.
CREATE TABLE dictionary (
	hash   INTEGER PRIMARY KEY,
	t_us   INTEGER NOT NULL,
	family TEXT NOT NULL,
	series BLOB NOT NULL
) STRICT;

-- The bodies of chunks, one behind the other without a gap: a row of bytes, cut into parts of 16,852, which
-- fill their pages. Part N holds the bytes from (N - 1) * 16,852 on; behind the last body it is filled with zeros.
CREATE TABLE body_part (
	id    INTEGER PRIMARY KEY,
	bytes BLOB NOT NULL
) STRICT;

-- One minute or less of one group of series of a host; in a repacked day, up to ten. The `len` bytes from `at` on
-- are what the agent made (proto/FORMAT.md, "Chunk"), or in the same form. Ids are a sequence of their own, in order of
-- arrival. A sender's monotonic ns m is m + offset_ns + (m - ref_mono_ns) * drift_ppb / 1e9 in ns since
-- the epoch, +- uncertainty_ns.
CREATE TABLE chunk (
	id             INTEGER PRIMARY KEY,
	host_id        INTEGER NOT NULL,
	dictionary     INTEGER NOT NULL,
	t_us           INTEGER NOT NULL,
	t_first_us     INTEGER NOT NULL,
	t_last_us      INTEGER NOT NULL,
	n              INTEGER NOT NULL,
	ref_mono_ns    INTEGER NOT NULL,
	offset_ns      INTEGER NOT NULL,
	drift_ppb      INTEGER NOT NULL,
	uncertainty_ns INTEGER NOT NULL,
	at             INTEGER NOT NULL,
	len            INTEGER NOT NULL
) STRICT;
CREATE INDEX chunk_by_host ON chunk (host_id, t_first_us);

-- Values that were measured and are lost, and why (proto/lockstep.proto, Lost.Reason). Times null: not
-- known; family empty: likewise.
CREATE TABLE lost (
	id      INTEGER PRIMARY KEY,
	host_id INTEGER NOT NULL,
	t_us    INTEGER NOT NULL,
	family  TEXT NOT NULL,
	from_us INTEGER,
	to_us   INTEGER,
	samples INTEGER NOT NULL,
	reason  INTEGER NOT NULL
) STRICT;

-- Names and label sets of roll-ups; ids are of this file alone.
CREATE TABLE rollup_metric (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE rollup_labels (
	id   INTEGER PRIMARY KEY,
	text TEXT NOT NULL UNIQUE
) STRICT;

-- Least, greatest, sum and count of the samples of one metric in [t_us, t_us + span_s), of all hosts that
-- measured it ("Roll-ups"). Several rows of one metric and time add up: late samples come in a row of their own.
CREATE TABLE rollup (
	id        INTEGER PRIMARY KEY,
	metric_id INTEGER NOT NULL,
	span_s    INTEGER NOT NULL,
	t_us      INTEGER NOT NULL,
	n         INTEGER NOT NULL,
	body      BLOB NOT NULL
) STRICT;
CREATE INDEX rollup_by_metric ON rollup (metric_id, span_s, t_us);

-- How far roll-ups are: those of the minute t_us hold the samples of chunks up to chunk_id.
CREATE TABLE rollup_done (
	span_s   INTEGER NOT NULL,
	t_us     INTEGER NOT NULL,
	chunk_id INTEGER NOT NULL,
	PRIMARY KEY (span_s, t_us)
) STRICT, WITHOUT ROWID;

-- One row in a file whose chunks were merged after its day: how many they were before.
CREATE TABLE repacked (
	chunks INTEGER NOT NULL
) STRICT;
