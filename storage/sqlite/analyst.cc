#include "storage/sqlite/analyst.h"

#include <sqlite3.h>

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr size_t kMaxSqlBytes = size_t{64} << 10;
constexpr int kBusyTimeoutMilliseconds = 5000;
// Virtual machine steps between two looks at the clock.
constexpr int kStepsBetweenLooks = 10'000;

constexpr absl::string_view kTables[] = {
    "results",     "measurements", "series",  "graphs",        "environments",
    "result_tags", "job_tags",     "devices", "schema_version"};
// A job's spec may name what only its owner should know.
constexpr absl::string_view kJobColumns[] = {"",
                                             "job_number",
                                             "job_id",
                                             "state",
                                             "name",
                                             "recipe_name",
                                             "model_sha256",
                                             "model_name",
                                             "create_time",
                                             "start_time",
                                             "end_time",
                                             "from_cache",
                                             "cached_from_job_id",
                                             "project"};

template <size_t N>
bool IsOneOf(absl::string_view word, const absl::string_view (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list),
                     [word](absl::string_view entry) {
                       return absl::EqualsIgnoreCase(entry, word);
                     });
}

absl::string_view ViewOf(const char* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text);
}

// Lower-case names of all tables and views there are.
using Names = absl::flat_hash_set<std::string>;

bool MayRead(const Names& existing, absl::string_view table,
             absl::string_view column) {
  if (IsOneOf(table, kTables)) return true;
  const std::string name = absl::AsciiStrToLower(table);
  if (name == "jobs") return IsOneOf(column, kJobColumns);
  // A WITH clause's own name, when no column of it is asked for.
  return column.empty() && !existing.contains(name) &&
         !absl::StartsWith(name, "sqlite_");
}

// Called by SQLite for everything that a statement would do.
int Authorize(void* existing, int action, const char* first, const char* second,
              const char* /*database*/, const char* /*view*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_READ:
      return MayRead(*static_cast<const Names*>(existing), ViewOf(first),
                     ViewOf(second))
                 ? SQLITE_OK
                 : SQLITE_DENY;
    case SQLITE_FUNCTION:
      // Reads and runs a file.
      return absl::EqualsIgnoreCase(ViewOf(second), "load_extension")
                 ? SQLITE_DENY
                 : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

struct Deadline {
  absl::Time time;
  bool passed = false;
};

int StopWhenLate(void* data) {
  auto* deadline = static_cast<Deadline*>(data);
  if (absl::Now() >= deadline->time) deadline->passed = true;
  return deadline->passed ? 1 : 0;
}

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

absl::StatusOr<Database> Open(const std::string& path) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  Database db(raw);
  if (result != SQLITE_OK) {
    return absl::UnavailableError(
        absl::StrCat("opening the database to read: ", sqlite3_errstr(result)));
  }
  sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
  sqlite3_exec(raw, "PRAGMA query_only=ON; PRAGMA trusted_schema=OFF", nullptr,
               nullptr, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_limit(raw, SQLITE_LIMIT_SQL_LENGTH, static_cast<int>(kMaxSqlBytes));
  sqlite3_limit(raw, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_limit(raw, SQLITE_LIMIT_COMPOUND_SELECT, 50);
  sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(raw, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
  return db;
}

int AddName(void* names, int columns, char** values, char** /*titles*/) {
  if (columns > 0) {
    static_cast<Names*>(names)->insert(
        absl::AsciiStrToLower(ViewOf(values[0])));
  }
  return 0;
}

absl::Status ToStatus(sqlite3* db, int result, const Deadline& deadline,
                      const SqlLimits& limits) {
  if (deadline.passed) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the query took longer than ", absl::FormatDuration(limits.max_time),
        "; ask for less, or allow it more time"));
  }
  const absl::string_view reason = ViewOf(sqlite3_errmsg(db));
  switch (result & 0xff) {
    case SQLITE_TOOBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat("the query makes a value that is too large: ", reason));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return absl::UnavailableError(absl::StrCat("the query: ", reason));
    case SQLITE_CORRUPT:
      return absl::DataLossError(absl::StrCat(
          "the query: ", reason, "; restore the database from a backup"));
    case SQLITE_AUTH:
      return absl::InvalidArgumentError(absl::StrCat(
          "the query is refused: ", reason,
          "; one SELECT from results, measurements, series, graphs, "
          "environments, result_tags, job_tags, jobs and devices is allowed"));
    default:
      return absl::InvalidArgumentError(absl::StrCat("the query: ", reason));
  }
}

absl::StatusOr<Statement> Prepare(sqlite3* db, const std::string& sql,
                                  const Deadline& deadline,
                                  const SqlLimits& limits) {
  if (sql.size() > kMaxSqlBytes || sql.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("the query has ", sql.size(),
                                                   " bytes; give one SELECT of "
                                                   "at most ",
                                                   kMaxSqlBytes,
                                                   " without NUL"));
  }
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int result = sqlite3_prepare_v3(
      db, sql.c_str(), static_cast<int>(sql.size()), 0, &raw, &rest);
  Statement statement(raw);
  if (result != SQLITE_OK) return ToStatus(db, result, deadline, limits);
  absl::string_view tail = absl::StripAsciiWhitespace(ViewOf(rest));
  while (absl::ConsumePrefix(&tail, ";")) {
    tail = absl::StripLeadingAsciiWhitespace(tail);
  }
  if (raw == nullptr || !tail.empty()) {
    return absl::InvalidArgumentError(
        "the query is not one statement; give one SELECT");
  }
  if (sqlite3_stmt_readonly(raw) == 0 || sqlite3_column_count(raw) == 0) {
    return absl::InvalidArgumentError(
        "the query is not a SELECT; nothing else is allowed");
  }
  return statement;
}

v1::SqlValue ValueOf(sqlite3_stmt* row, int column) {
  v1::SqlValue value;
  const auto bytes = [&](const void* data) {
    const int size = sqlite3_column_bytes(row, column);
    return std::string(static_cast<const char*>(data),
                       data == nullptr ? 0 : static_cast<size_t>(size));
  };
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      value.set_integer(sqlite3_column_int64(row, column));
      break;
    case SQLITE_FLOAT:
      value.set_real(sqlite3_column_double(row, column));
      break;
    case SQLITE_TEXT:
      value.set_text(bytes(sqlite3_column_text(row, column)));
      break;
    case SQLITE_BLOB:
      value.set_blob(bytes(sqlite3_column_blob(row, column)));
      break;
    default:
      break;
  }
  return value;
}

absl::Status ReadRows(sqlite3* db, sqlite3_stmt* statement,
                      const Deadline& deadline, const SqlLimits& limits,
                      v1::QuerySqlResponse& response) {
  const int columns = sqlite3_column_count(statement);
  for (int i = 0; i < columns; ++i) {
    response.add_columns(sqlite3_column_name(statement, i));
  }
  size_t bytes = response.ByteSizeLong();
  while (true) {
    const int result = sqlite3_step(statement);
    if (result == SQLITE_DONE) return absl::OkStatus();
    if (result != SQLITE_ROW) return ToStatus(db, result, deadline, limits);
    if (response.rows_size() >= limits.max_rows) break;
    v1::SqlRow row;
    for (int i = 0; i < columns; ++i) *row.add_values() = ValueOf(statement, i);
    bytes += row.ByteSizeLong() + 8;
    if (bytes > limits.max_bytes) {
      if (response.rows().empty()) {
        return absl::ResourceExhaustedError(
            absl::StrCat("one row of the answer has more than ",
                         limits.max_bytes, " bytes; ask for fewer columns"));
      }
      break;
    }
    *response.add_rows() = std::move(row);
  }
  response.set_truncated(true);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::QuerySqlResponse> RunReadOnlySql(const std::string& path,
                                                    const std::string& sql,
                                                    const SqlLimits& limits) {
  OPTFARM_ASSIGN_OR_RETURN(const Database db, Open(path));
  Names existing;
  if (sqlite3_exec(db.get(), "SELECT name FROM sqlite_schema", AddName,
                   &existing, nullptr) != SQLITE_OK) {
    return absl::UnavailableError(
        absl::StrCat("reading the database: ", sqlite3_errmsg(db.get())));
  }
  sqlite3_set_authorizer(db.get(), Authorize, &existing);
  Deadline deadline{absl::Now() + limits.max_time};
  sqlite3_progress_handler(db.get(), kStepsBetweenLooks, StopWhenLate,
                           &deadline);
  OPTFARM_ASSIGN_OR_RETURN(const Statement statement,
                           Prepare(db.get(), sql, deadline, limits));
  v1::QuerySqlResponse response;
  OPTFARM_RETURN_IF_ERROR(
      ReadRows(db.get(), statement.get(), deadline, limits, response));
  return response;
}

}  // namespace optfarm::storage
