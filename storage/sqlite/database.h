// SQLite behind SqlDatabase.

#ifndef OPTFARM_STORAGE_SQLITE_DATABASE_H_
#define OPTFARM_STORAGE_SQLITE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/sql/database.h"

struct sqlite3;

namespace optfarm::storage {

class SqliteCursor;

// One connection. Writing transactions begin with BEGIN IMMEDIATE.
// THREADS: one thread at a time.
class SqliteDatabase final : public SqlDatabase {
 public:
  // Opens `path`, makes it when absent, and sets WAL, synchronous=FULL, foreign
  // keys and a busy timeout. The first connection makes durable what an earlier
  // process left in the log.
  // ERRORS: DataLoss when it is no database; others as Run.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(
      const std::string& path);
  ~SqliteDatabase() override;
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  // Runs one or more constant statements without parameters or results.
  absl::Status Run(const char* sql);

  int64_t Changes() const override;

  // Turns an SQLite result code into a Status with SQLite's own message: FULL
  // ResourceExhausted, BUSY and LOCKED Unavailable, CONSTRAINT AlreadyExists,
  // CORRUPT and NOTADB DataLoss, IOERR Unavailable, otherwise Internal.
  absl::Status ToStatus(int result, absl::string_view doing) const;

 private:
  SqliteDatabase(sqlite3* db, std::string path);

  SqlCursor& CursorOf(const char* sql, Rows rows) override;
  absl::Status Begin(Mode mode) override;
  absl::Status Commit() override;
  void RollBack() override;

  sqlite3* const db_;
  const std::string path_;
  absl::flat_hash_map<const char*, std::unique_ptr<SqliteCursor>> cursors_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_DATABASE_H_
