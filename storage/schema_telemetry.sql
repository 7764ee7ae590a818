-- telemetry/YYYYMMDD.db, version 1: what was committed on one day (UTC). Times are microseconds
-- since the Unix epoch on the collector's time line, unless the name says mono_ns.
--
-- The ids of step_block, gap, worker_end, step_close and counters are one sequence: the order in
-- which the engine met them. Merged by id they replay what happened. Rows only ever append.

-- One accepted item of step records. `item` is the encoded Item as the agent made it; of its
-- records those from index first_index on count, n of them. Sender's monotonic ns m is
-- m + offset_ns + (m - ref_mono_ns) * drift_ppb / 1e9 in ns since the epoch, +- uncertainty_ns.
CREATE TABLE step_block (
	id             INTEGER PRIMARY KEY,
	worker_id      INTEGER NOT NULL,
	t_us           INTEGER NOT NULL,
	first_index    INTEGER NOT NULL,
	n              INTEGER NOT NULL,
	step_lo        INTEGER NOT NULL,
	step_hi        INTEGER NOT NULL,
	t_lo_us        INTEGER NOT NULL,
	t_hi_us        INTEGER NOT NULL,
	ref_mono_ns    INTEGER NOT NULL,
	offset_ns      INTEGER NOT NULL,
	drift_ppb      INTEGER NOT NULL,
	uncertainty_ns INTEGER NOT NULL,
	item           BLOB NOT NULL
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

-- Values of one beat, of a host (worker_id null) or of a worker: 10 bytes each, the metric id (u16)
-- and the value (f64), little-endian. read_us is when they were read.
CREATE TABLE counters (
	id        INTEGER PRIMARY KEY,
	host      TEXT NOT NULL,
	worker_id INTEGER,
	t_us      INTEGER NOT NULL,
	read_us   INTEGER NOT NULL,
	data      BLOB NOT NULL
) STRICT;

-- What is on disk of each agent's numbered stream, in the same transaction as the data.
CREATE TABLE ledger (
	boot BLOB NOT NULL,
	host TEXT NOT NULL,
	seq  INTEGER NOT NULL,
	t_us INTEGER NOT NULL,
	PRIMARY KEY (boot, host)
) STRICT, WITHOUT ROWID;

-- What is on disk of each ring: all records below index `high`, or the gaps that stand for them.
CREATE TABLE ring_high (
	ring_id   BLOB PRIMARY KEY,
	worker_id INTEGER NOT NULL,
	high      INTEGER NOT NULL,
	t_us      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
