#include "storage/sqlite/database.h"

#include <sqlite3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/sqlite/durable_log.h"

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

class SqliteCursor final : public SqlCursor {
 public:
  // `statement` may be null: then `status` says why.
  SqliteCursor(const SqliteDatabase& db, sqlite3_stmt* statement,
               absl::Status status)
      : db_(db), statement_(statement), status_(std::move(status)) {}
  ~SqliteCursor() override { sqlite3_finalize(statement_); }
  SqliteCursor(const SqliteCursor&) = delete;
  SqliteCursor& operator=(const SqliteCursor&) = delete;

  bool usable() const { return statement_ != nullptr; }

  void BindInt(int parameter, int64_t value) override {
    if (status_.ok()) Note(sqlite3_bind_int64(statement_, parameter, value));
  }
  void BindDouble(int parameter, double value) override {
    if (status_.ok()) Note(sqlite3_bind_double(statement_, parameter, value));
  }
  void BindText(int parameter, absl::string_view value) override {
    if (!status_.ok()) return;
    // A null data pointer would bind NULL.
    const char* data = value.data() == nullptr ? "" : value.data();
    Note(sqlite3_bind_text64(statement_, parameter, data, value.size(),
                             SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  void BindBlob(int parameter, absl::string_view value) override {
    if (!status_.ok()) return;
    const char* data = value.data() == nullptr ? "" : value.data();
    Note(sqlite3_bind_blob64(statement_, parameter, data, value.size(),
                             SQLITE_TRANSIENT));
  }
  void BindNull(int parameter) override {
    if (status_.ok()) Note(sqlite3_bind_null(statement_, parameter));
  }

  void BindInts(int parameter, absl::Span<const int64_t> values) override {
    BindText(parameter, absl::StrCat("[", absl::StrJoin(values, ","), "]"));
  }

  absl::Status RunLater(absl::Status unless_one_row) override {
    while (Step()) {
    }
    if (status_.ok() && !unless_one_row.ok() && db_.Changes() != 1) {
      return unless_one_row;
    }
    return status_;
  }

  bool Step() override {
    if (!status_.ok()) return false;
    const int result = sqlite3_step(statement_);
    if (result == SQLITE_ROW) return true;
    if (result != SQLITE_DONE) Note(result);
    return false;
  }
  const absl::Status& status() const override { return status_; }

  int64_t Int(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }
  double Double(int column) const override {
    return sqlite3_column_double(statement_, column);
  }
  std::string Text(int column) const override {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    if (data == nullptr || size <= 0) return "";
    return std::string(static_cast<const char*>(data),
                       static_cast<size_t>(size));
  }
  bool IsNull(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }

  void Release() override {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    status_ = absl::OkStatus();
  }

 private:
  void Note(int result) {
    if (result == SQLITE_OK || !status_.ok()) return;
    status_ = db_.ToStatus(result, "using");
  }

  const SqliteDatabase& db_;
  sqlite3_stmt* const statement_;
  absl::Status status_;
};

SqliteDatabase::SqliteDatabase(sqlite3* db, std::string path)
    : db_(db), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(
    const std::string& path) {
  OPTFARM_RETURN_IF_ERROR(MakeLogDurable(path));
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
  cursors_.clear();
  sqlite3_close_v2(db_);
}

absl::Status SqliteDatabase::Run(const char* sql) {
  const int result = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : ToStatus(result, "using");
}

SqlCursor& SqliteDatabase::CursorOf(const char* sql, Rows) {
  std::unique_ptr<SqliteCursor>& cursor = cursors_[sql];
  if (cursor != nullptr && cursor->usable()) return *cursor;
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
  cursor = std::make_unique<SqliteCursor>(
      *this, statement,
      result == SQLITE_OK ? absl::OkStatus() : ToStatus(result, "using"));
  return *cursor;
}

int64_t SqliteDatabase::Changes() const { return sqlite3_changes64(db_); }

absl::Status SqliteDatabase::ToStatus(int result,
                                      absl::string_view doing) const {
  const char* reason =
      db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(result);
  return absl::Status(CodeOf(result),
                      absl::StrCat(doing, " database '", path_, "': ", reason,
                                   AdviceOn(result)));
}

absl::Status SqliteDatabase::Begin(Mode mode) {
  return Run(mode == Mode::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

absl::Status SqliteDatabase::Commit() { return Run("COMMIT"); }

void SqliteDatabase::RollBack() {
  // SQLite has already rolled back after some errors (a full disk); then this
  // fails, and that is fine.
  (void)Run("ROLLBACK");
}

}  // namespace optfarm::storage
