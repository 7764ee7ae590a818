/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/migrate.h"

#include <stdio.h>
#include "proto/base/log.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"

static const struct ls_migration migrate_state[] = {
	{
		1,
#include "storage/db/schema_state.h"
	},
	/* Where the records of a worker come from (enum ls_step_source), and how surely
	 * they are steps. */
	{ 2,
		"ALTER TABLE worker ADD COLUMN step_source INTEGER NOT NULL DEFAULT 0;"
		"ALTER TABLE worker ADD COLUMN step_confidence REAL NOT NULL DEFAULT 0;" },
	{
		3,
#include "storage/db/schema_state_3.h"
	},
	/* What a worker shares with others: the rack of its host, the shard of the
	 * input that it reads. */
	{ 4,
		"ALTER TABLE worker ADD COLUMN rack TEXT NOT NULL DEFAULT '';"
		"ALTER TABLE worker ADD COLUMN shard TEXT NOT NULL DEFAULT '';" },
	/* Is it of lockstep-sim? */
	{ 5, "ALTER TABLE worker ADD COLUMN simulated INTEGER NOT NULL DEFAULT 0;" },
	/* User of the ring's file: uid + 1; 0: not known. */
	{ 6, "ALTER TABLE worker ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;" },
};

static const struct ls_migration migrate_telemetry[] = {
	{
		4,
#include "storage/db/schema_telemetry.h"
	},
};

static const struct ls_migrations migrate_all[LS_SCHEMA_COUNT] = {
	[LS_SCHEMA_STATE] = { 0x4c537374 /* "LSst" */, migrate_state,
		sizeof(migrate_state) / sizeof(migrate_state[0]) },
	[LS_SCHEMA_TELEMETRY] = { 0x4c53746d /* "LStm" */, migrate_telemetry,
		sizeof(migrate_telemetry) / sizeof(migrate_telemetry[0]) },
};

const struct ls_migrations *
ls_migrations_of(enum ls_schema schema)
{
	return &migrate_all[schema];
}

/* Version of the file; an empty one is 0, one with tables but not of ours is refused.
 */
static int
migrate_version(sqlite3 *db, const struct ls_migrations *m, int64_t *ret_version)
{
	int64_t version, application, tables;
	int rc = ls_sql_int_of(db, "PRAGMA user_version", NULL, &version);

	if (rc == 0)
		rc = ls_sql_int_of(db, "PRAGMA application_id", NULL, &application);
	if (rc == 0)
		rc = ls_sql_int_of(db, "SELECT count(*) FROM sqlite_schema", NULL,
			&tables);
	if (rc != 0)
		return rc;
	if (application == 0 && version == 0 && tables == 0) {
		*ret_version = 0;
		return 0;
	}
	if (application != m->application_id || version < 1)
		return -LS_ECORRUPT;
	*ret_version = version;
	return 0;
}

static bool
migrate_knows(const struct ls_migrations *m, int64_t version)
{
	return version >= m->steps[0].to && version <= m->steps[m->count - 1].to;
}

static int
migrate_refuse(sqlite3 *db, const struct ls_migrations *m, int64_t version)
{
	if (version != 0) /* else being made */
		ls_log(LS_LOG_ERR, "storage",
			"%s has tables of version %lld; lockstep " PACKAGE_VERSION
			" needs one of version %lld to %lld",
			sqlite3_db_filename(db, "main"), (long long)version,
			(long long)m->steps[0].to,
			(long long)m->steps[m->count - 1].to);
	return -LS_EVERSION;
}

static int
migrate_set(sqlite3 *db, const char *pragma, int64_t value)
{
	char sql[64];

	(void)snprintf(sql, sizeof(sql), "PRAGMA %s = %lld", pragma, (long long)value);
	return ls_db_exec(db, sql);
}

int
ls_migrate(sqlite3 *db, const struct ls_migrations *m, bool *ret_fresh)
{
	int64_t version;
	int rc = migrate_version(db, m, &version);

	if (rc != 0)
		return rc;
	if (version != 0 && !migrate_knows(m, version))
		return migrate_refuse(db, m, version);
	if (ret_fresh != NULL)
		*ret_fresh = version == 0;
	if (version == 0)
		rc = migrate_set(db, "application_id", m->application_id);
	for (size_t i = 0; i < m->count && rc == 0; i++) {
		if (m->steps[i].to <= version)
			continue;
		rc = ls_db_exec(db, m->steps[i].sql);
		if (rc == 0)
			rc = migrate_set(db, "user_version", m->steps[i].to);
	}
	return rc;
}

int
ls_migrate_version(sqlite3 *db, const struct ls_migrations *m, int64_t *ret_version)
{
	int64_t version;
	int rc = migrate_version(db, m, &version);

	if (rc == 0 && !migrate_knows(m, version))
		rc = migrate_refuse(db, m, version);
	if (rc == 0)
		*ret_version = version;
	return rc;
}

int
ls_migrate_check(sqlite3 *db, const struct ls_migrations *m)
{
	int64_t version;
	int rc = ls_migrate_version(db, m, &version);

	return rc == 0 && version != m->steps[m->count - 1].to ? -LS_EVERSION : rc;
}
