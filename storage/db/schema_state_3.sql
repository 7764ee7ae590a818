-- state.db, version 3: adds who each host is.

-- The last identity of each host; `json` is {"key":{"value":...,"source":...},...}.
CREATE TABLE host_identity (
	host     TEXT PRIMARY KEY,
	first_us INTEGER NOT NULL,
	last_us  INTEGER NOT NULL,
	json     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
