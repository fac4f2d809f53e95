// A thin wrapper of one SQLite connection: prepared statements with bound
// parameters, transactions that roll back by themselves, errors as Status. SQL
// text is always a constant of ours; values are always bound.

#ifndef OPTFARM_STORAGE_SQLITE_DATABASE_H_
#define OPTFARM_STORAGE_SQLITE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace optfarm::storage {

class SqliteDatabase;

// A prepared statement, borrowed from its database's cache and given back,
// reset, when it goes out of scope. Parameters and columns count from 1 and 0,
// as in SQLite. The first error sticks: later calls do nothing, and status()
// tells it.
//
//   SqliteStatement query = db.Prepare("SELECT name FROM t WHERE id = ?1");
//   query.BindInt(1, id);
//   while (query.Step()) names.push_back(query.Text(0));
//   OPTFARM_RETURN_IF_ERROR(query.status());
//
// THREADS: those of its database. OWNERSHIP: must not outlive the database.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase& db, sqlite3_stmt* statement,
                  absl::Status status);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  void BindInt(int parameter, int64_t value);
  void BindDouble(int parameter, double value);
  void BindText(int parameter, absl::string_view value);
  void BindBlob(int parameter, absl::string_view value);
  void BindNull(int parameter);
  // Binds microseconds since 1970, or NULL for absl::InfinitePast().
  void BindTime(int parameter, absl::Time value);

  // Goes to the next row. False at the end and on an error.
  bool Step();
  // Runs a statement that returns no rows.
  absl::Status Run();
  const absl::Status& status() const { return status_; }

  int64_t Int(int column) const;
  double Double(int column) const;
  // Text or blob bytes; empty for NULL.
  std::string Text(int column) const;
  bool IsNull(int column) const;
  // absl::InfinitePast() for NULL.
  absl::Time Time(int column) const;

 private:
  void Note(int result);

  SqliteDatabase& db_;
  sqlite3_stmt* const statement_;
  absl::Status status_;
};

// One connection.
// THREADS: one thread at a time.
class SqliteDatabase {
 public:
  // Opens `path`, makes it when absent, and sets WAL, synchronous=FULL, foreign
  // keys and a busy timeout.
  // ERRORS: DataLoss when it is no database; others as Run.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(
      const std::string& path);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  // Runs one or more constant statements without parameters or results.
  absl::Status Run(const char* sql);

  // REQUIRES: `sql` is a string constant (the cache is keyed by its address),
  // and no other SqliteStatement of the same constant is alive.
  SqliteStatement Prepare(const char* sql);

  // Rows changed by the last statement that ran.
  int64_t Changes() const;
  int64_t LastInsertId() const;

  // Turns an SQLite result code into a Status with SQLite's own message: FULL
  // ResourceExhausted, BUSY and LOCKED Unavailable, CONSTRAINT AlreadyExists,
  // CORRUPT and NOTADB DataLoss, IOERR Unavailable, otherwise Internal.
  absl::Status ToStatus(int result, absl::string_view doing) const;

 private:
  friend class SqliteStatement;
  SqliteDatabase(sqlite3* db, std::string path);

  sqlite3* const db_;
  const std::string path_;
  absl::flat_hash_map<const char*, sqlite3_stmt*> statements_;
};

// Begins now, writers with BEGIN IMMEDIATE; ROLLBACK when it goes out of scope
// without Commit. A reading one sees one state of the database throughout.
class SqliteTransaction {
 public:
  enum class Mode { kRead, kWrite };

  explicit SqliteTransaction(SqliteDatabase& db, Mode mode = Mode::kWrite);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  // Whether BEGIN worked. Nothing may be written when it did not.
  const absl::Status& status() const { return status_; }
  // ENSURES: on OK everything written since the constructor is durable; on an
  // error nothing of it is kept.
  absl::Status Commit();

 private:
  SqliteDatabase& db_;
  absl::Status status_;
  bool open_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_DATABASE_H_
