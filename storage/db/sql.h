/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql - values into statements, rows out of statements.
 *
 * Values and fields are lists in the order of the parameters and columns. Their
 * constructors check the types. Rows are read in one form everywhere: ls_sql_rows, then
 * a visit while ls_sql_next is true, then ls_sql_end. The visit puts its error into rc.
 *
 * Owner:   the thread of the connection.
 * Units:   none.
 * Errors:  those of ls_err_sqlite.
 * Limits:  none.
 * Source:  sqlite.org/c3ref/bind_blob.html, sqlite.org/c3ref/column_blob.html.
 */
#ifndef LS_STORAGE_SQL_H
#define LS_STORAGE_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

enum ls_sql_kind {
	LS_SQL_END, /* of a list */
	LS_SQL_NULL, /* of a field: the column is not read */
	LS_SQL_INT,
	LS_SQL_DOUBLE,
	LS_SQL_TEXT,
	LS_SQL_BLOB
};

/* A value of a parameter. Text and bytes are not copied: they live until the statement
 * has run. */
struct ls_sql_value {
	enum ls_sql_kind kind;
	int64_t number;
	double real;
	const void *data;
	size_t len;
};

#define LS_SQL_VALUES(...) \
	((const struct ls_sql_value[]){ __VA_ARGS__, { .kind = LS_SQL_END } })

static inline struct ls_sql_value
ls_sql_int(int64_t number)
{
	return (struct ls_sql_value){ .kind = LS_SQL_INT, .number = number };
}

static inline struct ls_sql_value
ls_sql_u64(uint64_t number)
{
	return ls_sql_int((int64_t)number);
}

/* 0 is stored as NULL. */
static inline struct ls_sql_value
ls_sql_int_or_null(int64_t number)
{
	return (struct ls_sql_value){ .kind = number != 0 ? LS_SQL_INT : LS_SQL_NULL,
		.number = number };
}

static inline struct ls_sql_value
ls_sql_double(double real)
{
	return (struct ls_sql_value){ .kind = LS_SQL_DOUBLE, .real = real };
}

/* NULL is stored as NULL. */
static inline struct ls_sql_value
ls_sql_text(const char *text)
{
	return (struct ls_sql_value){ .kind = LS_SQL_TEXT, .data = text };
}

/* Never NULL, also when empty. */
static inline struct ls_sql_value
ls_sql_blob(const void *data, size_t len)
{
	return (struct ls_sql_value){ .kind = LS_SQL_BLOB, .data = data, .len = len };
}

/* Where a column goes. */
struct ls_sql_field {
	enum ls_sql_kind kind;
	void *to;
	size_t size;
	uint64_t max; /* of a number, which must not be negative then; 0: any */
};

#define LS_SQL_FIELDS(...) \
	((const struct ls_sql_field[]){ __VA_ARGS__, { .kind = LS_SQL_END } })

static inline struct ls_sql_field
ls_sql_to_i64(int64_t *to)
{
	return (struct ls_sql_field){ LS_SQL_INT, to, sizeof(*to), 0 };
}

static inline struct ls_sql_field
ls_sql_to_u64(uint64_t *to)
{
	return (struct ls_sql_field){ LS_SQL_INT, to, sizeof(*to), 0 };
}

/* The low 32 bits. */
static inline struct ls_sql_field
ls_sql_to_i32(int32_t *to)
{
	return (struct ls_sql_field){ LS_SQL_INT, to, sizeof(*to), 0 };
}

static inline struct ls_sql_field
ls_sql_to_u32(uint32_t *to)
{
	return (struct ls_sql_field){ LS_SQL_INT, to, sizeof(*to), 0 };
}

static inline struct ls_sql_field
ls_sql_to_double(double *to)
{
	return (struct ls_sql_field){ LS_SQL_DOUBLE, to, sizeof(*to), 0 };
}

static inline struct ls_sql_field
ls_sql_to_text(char *to, size_t size)
{
	return (struct ls_sql_field){ LS_SQL_TEXT, to, size, 0 };
}

/* A column of exactly so many bytes. */
static inline struct ls_sql_field
ls_sql_to_blob(void *to, size_t size)
{
	return (struct ls_sql_field){ LS_SQL_BLOB, to, size, 0 };
}

/* A column that is not read here. */
static inline struct ls_sql_field
ls_sql_pass(void)
{
	return (struct ls_sql_field){ .kind = LS_SQL_NULL };
}

/* The columns of a row into fields, from the first column on. -LS_ECORRUPT: text,
 * bytes or a number that do not fit were not written by us. */
int ls_sql_read(sqlite3_stmt *stmt, const struct ls_sql_field *fields) LS_MUSTCHECK;

/* Binds values (NULL: none). */
int ls_sql_bind(sqlite3_stmt *stmt, const struct ls_sql_value *values) LS_MUSTCHECK;

/* Binds values and runs a statement without results. */
int ls_sql_run(sqlite3_stmt *stmt, const struct ls_sql_value *values) LS_MUSTCHECK;

/* The first column of the first row as an integer; 0 if there is none or it is null. */
int ls_sql_int_of(sqlite3 *db, const char *sql, const struct ls_sql_value *values,
	int64_t *ret_value) LS_MUSTCHECK;

/* Attaches the file at path, which exists, under a name. */
int ls_sql_attach(sqlite3 *db, const char *path, const char *name) LS_MUSTCHECK;

/* Rows being read. The reader sets rc to end the reading. */
struct ls_sql_rows {
	sqlite3_stmt *stmt;
	bool kept;
	int rc;
};

/* Rows of a statement that is prepared here and finalized by ls_sql_end. */
struct ls_sql_rows ls_sql_rows(sqlite3 *db, const char *sql,
	const struct ls_sql_value *values);

/* Rows of a prepared statement, which ls_sql_end resets. */
struct ls_sql_rows ls_sql_again(sqlite3_stmt *stmt, const struct ls_sql_value *values);

/* Steps to the next row; false at the end and after an error. */
bool ls_sql_next(struct ls_sql_rows *rows);

/* Ends the reading, at any row, and lets its snapshot go. Returns rc. */
int ls_sql_end(struct ls_sql_rows *rows) LS_MUSTCHECK;

#endif
