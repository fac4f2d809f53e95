// Statements as PostgreSQL wants them.

#ifndef OPTFARM_STORAGE_POSTGRES_DIALECT_H_
#define OPTFARM_STORAGE_POSTGRES_DIALECT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optfarm::storage {

struct PostgresText {
  std::string sql;
  // $1 is the parameter parameters[0] of the statement it was made of, and so
  // on: those that it has, which PostgreSQL wants without gaps.
  std::vector<int> parameters;
};

// A statement of storage/sql for PostgreSQL: ?7 becomes $1, and hints for
// SQLite's planner go, and a list of json_each becomes an array. What is
// between quotes stays.
PostgresText ToPostgres(absl::string_view sql);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_DIALECT_H_
