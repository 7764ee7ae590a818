-- state.db, version 1: what is known about jobs and findings. Small, never pruned by the age of
-- telemetry. Nothing here must commit together with telemetry: a worker is on disk before the
-- first row that names it. Times are microseconds since the Unix epoch.

-- Facts about this state directory (clock anchor).
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
	id       INTEGER PRIMARY KEY,
	name     TEXT NOT NULL UNIQUE,
	first_us INTEGER NOT NULL
) STRICT;

-- One ring of one process: a rank of an attempt of a job, on its host.
CREATE TABLE worker (
	id       INTEGER PRIMARY KEY,
	ring_id  BLOB NOT NULL UNIQUE,
	job_id   INTEGER NOT NULL REFERENCES job (id),
	attempt  INTEGER NOT NULL,
	rank     INTEGER NOT NULL,
	world    INTEGER NOT NULL,
	chips    INTEGER NOT NULL,
	host     TEXT NOT NULL,
	slice    TEXT NOT NULL,
	role     TEXT NOT NULL,
	first_us INTEGER NOT NULL
) STRICT;
CREATE INDEX worker_by_job ON worker (job_id, attempt, rank);

-- The last state of each finding; `json` is the whole object (schema version 1), the rest is for
-- lists. `n` is the order of opening.
CREATE TABLE finding (
	n          INTEGER PRIMARY KEY,
	id         TEXT NOT NULL UNIQUE,
	job        TEXT NOT NULL,
	kind       TEXT NOT NULL,
	severity   TEXT NOT NULL,
	status     TEXT NOT NULL,
	opened_us  INTEGER NOT NULL,
	updated_us INTEGER NOT NULL,
	json       TEXT NOT NULL
) STRICT;

-- What happened to findings, in order.
CREATE TABLE finding_event (
	n        INTEGER PRIMARY KEY,
	id       TEXT NOT NULL,
	t_us     INTEGER NOT NULL,
	event    TEXT NOT NULL,
	severity TEXT NOT NULL,
	status   TEXT NOT NULL
) STRICT;
