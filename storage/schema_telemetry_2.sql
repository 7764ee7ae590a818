-- telemetry/YYYYMMDD.db, version 2: adds counters as chunks, what of them is lost, and zooms.

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

-- One minute or less of one group of series of a host. `body` is what the agent made (proto/README.md,
-- "Chunk"). Ids are a sequence of their own, in order of arrival. Times are mapped as in step_block.
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
	body           BLOB NOT NULL
) STRICT;

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

-- A host was looked at more closely (event 0), longer than was said (1), or no more (2). `job` and `cause`
-- say why; until_us is when it ends unless renewed. Ids are of the sequence of step_block.
CREATE TABLE zoom (
	id       INTEGER PRIMARY KEY,
	t_us     INTEGER NOT NULL,
	host     TEXT NOT NULL,
	job      TEXT NOT NULL,
	event    INTEGER NOT NULL,
	cause    TEXT NOT NULL,
	until_us INTEGER NOT NULL
) STRICT;

-- What is on disk of the agent's numbered stream of chunks.
ALTER TABLE ledger ADD COLUMN chunk_seq INTEGER NOT NULL DEFAULT 0;
