#include "storage/sqlite_database.h"

#include <sqlite3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr int kBusyTimeoutMilliseconds = 10000;

constexpr char kSetUp[] =
    "PRAGMA journal_mode=WAL;"
    // What a large transaction left of the log is given back, 64 MiB at most
    // stay.
    "PRAGMA journal_size_limit=67108864;"
    "PRAGMA synchronous=FULL;"
    "PRAGMA foreign_keys=ON;"
    "PRAGMA trusted_schema=OFF;";

absl::StatusCode CodeOf(int result) {
  switch (result & 0xff) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kAlreadyExists;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_TOOBIG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::string_view AdviceOn(int result) {
  switch (result & 0xff) {
    case SQLITE_FULL:
      return "; free space on the server's disk and try again";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "; restore the database from a backup";
    default:
      return "";
  }
}

}  // namespace

SqliteStatement::SqliteStatement(SqliteDatabase& db, sqlite3_stmt* statement,
                                 absl::Status status)
    : db_(db), statement_(statement), status_(std::move(status)) {}

SqliteStatement::~SqliteStatement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteStatement::Note(int result) {
  if (result == SQLITE_OK || !status_.ok()) return;
  status_ = db_.ToStatus(result, "using");
}

void SqliteStatement::BindInt(int parameter, int64_t value) {
  if (status_.ok()) Note(sqlite3_bind_int64(statement_, parameter, value));
}

void SqliteStatement::BindDouble(int parameter, double value) {
  if (status_.ok()) Note(sqlite3_bind_double(statement_, parameter, value));
}

void SqliteStatement::BindText(int parameter, absl::string_view value) {
  if (!status_.ok()) return;
  // A null data pointer would bind NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  Note(sqlite3_bind_text64(statement_, parameter, data, value.size(),
                           SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::BindBlob(int parameter, absl::string_view value) {
  if (!status_.ok()) return;
  const char* data = value.data() == nullptr ? "" : value.data();
  Note(sqlite3_bind_blob64(statement_, parameter, data, value.size(),
                           SQLITE_TRANSIENT));
}

void SqliteStatement::BindNull(int parameter) {
  if (status_.ok()) Note(sqlite3_bind_null(statement_, parameter));
}

void SqliteStatement::BindTime(int parameter, absl::Time value) {
  if (value == absl::InfinitePast()) {
    BindNull(parameter);
  } else {
    BindInt(parameter, absl::ToUnixMicros(value));
  }
}

bool SqliteStatement::Step() {
  if (!status_.ok()) return false;
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE) Note(result);
  return false;
}

absl::Status SqliteStatement::Run() {
  while (Step()) {
  }
  return status_;
}

int64_t SqliteStatement::Int(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double SqliteStatement::Double(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string SqliteStatement::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return "";
  return std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

bool SqliteStatement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

absl::Time SqliteStatement::Time(int column) const {
  return IsNull(column) ? absl::InfinitePast()
                        : absl::FromUnixMicros(Int(column));
}

SqliteDatabase::SqliteDatabase(sqlite3* db, std::string path)
    : db_(db), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(
    const std::string& path) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
      nullptr);
  std::unique_ptr<SqliteDatabase> db(new SqliteDatabase(raw, path));
  if (result != SQLITE_OK) return db->ToStatus(result, "opening");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
  OPTFARM_RETURN_IF_ERROR(db->Run(kSetUp));
  return db;
}

SqliteDatabase::~SqliteDatabase() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

absl::Status SqliteDatabase::Run(const char* sql) {
  const int result = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : ToStatus(result, "using");
}

SqliteStatement SqliteDatabase::Prepare(const char* sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) {
    return SqliteStatement(*this, found->second, absl::OkStatus());
  }
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
  if (result != SQLITE_OK) {
    return SqliteStatement(*this, nullptr, ToStatus(result, "using"));
  }
  statements_[sql] = statement;
  return SqliteStatement(*this, statement, absl::OkStatus());
}

int64_t SqliteDatabase::Changes() const { return sqlite3_changes64(db_); }

int64_t SqliteDatabase::LastInsertId() const {
  return sqlite3_last_insert_rowid(db_);
}

absl::Status SqliteDatabase::ToStatus(int result,
                                      absl::string_view doing) const {
  const char* reason =
      db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(result);
  return absl::Status(CodeOf(result),
                      absl::StrCat(doing, " database '", path_, "': ", reason,
                                   AdviceOn(result)));
}

SqliteTransaction::SqliteTransaction(SqliteDatabase& db, Mode mode)
    : db_(db),
      status_(db.Run(mode == Mode::kWrite ? "BEGIN IMMEDIATE" : "BEGIN")),
      open_(status_.ok()) {}

SqliteTransaction::~SqliteTransaction() {
  if (!open_) return;
  // SQLite has already rolled back after some errors (a full disk); then this
  // fails, and that is fine.
  (void)db_.Run("ROLLBACK");
}

absl::Status SqliteTransaction::Commit() {
  OPTFARM_RETURN_IF_ERROR(status_);
  OPTFARM_RETURN_IF_ERROR(db_.Run("COMMIT"));
  open_ = false;
  return absl::OkStatus();
}

}  // namespace optfarm::storage
