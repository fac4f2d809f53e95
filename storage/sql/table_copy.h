// All rows of a database into another one, of the same or of another engine:
// table by table, in the order of keys, so that a copy that was interrupted
// goes on after the last row that is there. What tables there are and what
// columns they have is asked of the databases, so that a step of the schema
// need not be told here.

#ifndef OPTFARM_STORAGE_SQL_TABLE_COPY_H_
#define OPTFARM_STORAGE_SQL_TABLE_COPY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sql/database.h"

namespace optfarm::storage {

// How an engine is asked what is in a database. Constant statements.
struct SqlCatalog {
  // A row for each table: its name.
  const char* tables;
  // Of the table ?1 a row for each column, by name: name, kind (i integer,
  // d number, t text, b bytes, anything else: not known), place in the primary
  // key (0: none).
  const char* columns;
  // The last number that was given in the table ?1, column ?2; no row or NULL:
  // none.
  const char* last_number;
  // Makes ?3 that number. Null: one does it.
  const char* set_last_number;
  const char* set_last_number_too;
};

struct SqlColumn {
  std::string name;
  char kind = 'b';
  // Place in the primary key, from 1; 0: none.
  int key = 0;
  friend bool operator==(const SqlColumn&, const SqlColumn&) = default;
};

struct SqlTable {
  std::string name;
  // By name.
  std::vector<SqlColumn> columns;
};

// One database. OWNERSHIP: the caller's.
struct SqlSide {
  SqlDatabase* db = nullptr;
  const SqlCatalog* catalog = nullptr;
};

// The tables with records, in an order in which rows only refer to those of
// tables before. What a database keeps about itself is left out.
// ERRORS: Internal for a table that has no key or a column that is not known.
absl::StatusOr<std::vector<SqlTable>> RecordTables(const SqlSide& side);

// Copies the rows after the last one that `to` has, in transactions of some
// thousands, and sets what number comes next. `copied` is told how many after
// each. Returns how many were copied. REQUIRES: both have the table, and nobody
// else writes to either.
absl::StatusOr<int64_t> CopyRows(const SqlTable& table, const SqlSide& from,
                                 const SqlSide& to,
                                 const std::function<void(int64_t)>& copied);

absl::StatusOr<bool> HasRows(const SqlTable& table, const SqlSide& side);

struct TableDigest {
  int64_t rows = 0;
  // Of all values in the order of keys; the same with every engine.
  std::string sha256;
  friend bool operator==(const TableDigest&, const TableDigest&) = default;
};
absl::StatusOr<TableDigest> DigestOf(const SqlTable& table,
                                     const SqlSide& side);

// A copy that has begun and not ended is marked in its target: a server that
// opened it would lose what is still to come.
//
// What was marked, or "" when nothing was.
absl::StatusOr<std::string> UnfinishedCopyOf(const SqlSide& side);
absl::Status MarkUnfinished(const SqlSide& side, const std::string& source);
absl::Status MarkFinished(const SqlSide& side);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_TABLE_COPY_H_
