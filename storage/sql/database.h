// One connection to a database that speaks SQL, whichever engine it is:
// statements with bound parameters, transactions that roll back by themselves,
// errors as Status. SQL text is always a constant of ours; values are always
// bound.
//
// Where the database is another process, each answer that is waited for takes
// as long as ten rows: what is written and not looked at is run with RunLater,
// and many rows are asked for in one statement.
//
// Statements are written once for all engines, in what they have in common:
// parameters are ?1, ?2 and so on; ON CONFLICT and RETURNING instead of words
// of one engine; a parameter that may be NULL is compared before it is asked
// whether it is ("a = ?1 OR ?1 IS NULL"), which tells its type; a list of
// numbers is "a IN (SELECT value FROM json_each(?1))", with nothing between.
// Hints for SQLite's planner (INDEXED BY, CROSS JOIN, a plus before a column)
// are left out where another engine runs the statement.

#ifndef OPTFARM_STORAGE_SQL_DATABASE_H_
#define OPTFARM_STORAGE_SQL_DATABASE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace optfarm::storage {

// What an engine does for a statement. Only SqlStatement and engines use it.
class SqlCursor {
 public:
  virtual ~SqlCursor() = default;

  virtual void BindInt(int parameter, int64_t value) = 0;
  virtual void BindDouble(int parameter, double value) = 0;
  virtual void BindText(int parameter, absl::string_view value) = 0;
  virtual void BindBlob(int parameter, absl::string_view value) = 0;
  virtual void BindNull(int parameter) = 0;
  virtual void BindInts(int parameter, absl::Span<const int64_t> values) = 0;
  virtual bool Step() = 0;
  virtual absl::Status RunLater(absl::Status unless_one_row) = 0;
  virtual const absl::Status& status() const = 0;
  virtual int64_t Int(int column) const = 0;
  virtual double Double(int column) const = 0;
  virtual std::string Text(int column) const = 0;
  virtual bool IsNull(int column) const = 0;
  // The statement is no longer used: forgets parameters and rows.
  virtual void Release() = 0;
};

// A prepared statement, borrowed from its database's cache and given back,
// reset, when it goes out of scope. Parameters and columns count from 1 and 0.
// Parameters that are not bound are NULL. The first error sticks: later calls
// do nothing, and status() tells it.
//
//   SqlStatement query = db.Prepare("SELECT name FROM t WHERE id = ?1");
//   query.BindInt(1, id);
//   while (query.Step()) names.push_back(query.Text(0));
//   OPTFARM_RETURN_IF_ERROR(query.status());
//
// THREADS: those of its database. OWNERSHIP: must not outlive the database.
class SqlStatement {
 public:
  explicit SqlStatement(SqlCursor& cursor) : cursor_(cursor) {}
  ~SqlStatement() { cursor_.Release(); }
  SqlStatement(const SqlStatement&) = delete;
  SqlStatement& operator=(const SqlStatement&) = delete;

  void BindInt(int parameter, int64_t value) {
    cursor_.BindInt(parameter, value);
  }
  void BindDouble(int parameter, double value) {
    cursor_.BindDouble(parameter, value);
  }
  void BindText(int parameter, absl::string_view value) {
    cursor_.BindText(parameter, value);
  }
  void BindBlob(int parameter, absl::string_view value) {
    cursor_.BindBlob(parameter, value);
  }
  void BindNull(int parameter) { cursor_.BindNull(parameter); }
  // Binds a list, which the statement asks for with json_each.
  void BindInts(int parameter, absl::Span<const int64_t> values) {
    cursor_.BindInts(parameter, values);
  }
  // Binds microseconds since 1970, or NULL for absl::InfinitePast().
  void BindTime(int parameter, absl::Time value);

  // Goes to the next row. False at the end and on an error.
  bool Step() { return cursor_.Step(); }
  // Runs a statement whose rows, if it has any, are not looked at.
  absl::Status Run();
  // Runs a statement without rows, at the latest with the next one that is
  // waited for, or before the transaction's Commit: an error may be told there.
  // Unless it changes exactly one row the error is `unless_one_row`, if that is
  // one. REQUIRES: a transaction; it is the last thing that is done with this
  // statement.
  absl::Status RunLater(absl::Status unless_one_row = absl::OkStatus()) {
    return cursor_.RunLater(std::move(unless_one_row));
  }
  const absl::Status& status() const { return cursor_.status(); }

  int64_t Int(int column) const { return cursor_.Int(column); }
  double Double(int column) const { return cursor_.Double(column); }
  // Text or blob bytes; empty for NULL.
  std::string Text(int column) const { return cursor_.Text(column); }
  bool IsNull(int column) const { return cursor_.IsNull(column); }
  // absl::InfinitePast() for NULL.
  absl::Time Time(int column) const;

 private:
  SqlCursor& cursor_;
};

// One connection.
// THREADS: one thread at a time.
class SqlDatabase {
 public:
  enum class Mode { kRead, kWrite };
  // How many rows a statement may have: kMany are not all fetched at once, for
  // statements without a LIMIT that are left early.
  enum class Rows { kFew, kMany };

  virtual ~SqlDatabase() = default;

  // REQUIRES: `sql` is a string constant (the cache is keyed by its address),
  // and no other SqlStatement of the same constant is alive. With Rows::kMany a
  // transaction is open.
  SqlStatement Prepare(const char* sql, Rows rows = Rows::kFew) {
    return SqlStatement(CursorOf(sql, rows));
  }

  // Rows changed by the last statement that ran; not of RunLater.
  virtual int64_t Changes() const = 0;

  // Statements run in this process: many small ones cost no more than one that
  // does their work.
  virtual bool IsInProcess() const { return true; }

  // Whether what ended the last transaction would perhaps not end the same
  // transaction, begun anew: it changed nothing.
  virtual bool MayRunAgain() const { return false; }

 private:
  friend class SqlTransaction;

  virtual SqlCursor& CursorOf(const char* sql, Rows rows) = 0;
  virtual absl::Status Begin(Mode mode) = 0;
  virtual absl::Status Commit() = 0;
  virtual void RollBack() = 0;
};

// Begins now; rolls back when it goes out of scope without Commit. A writing
// one has the only right to write; a reading one sees one state of the database
// throughout.
class SqlTransaction {
 public:
  using Mode = SqlDatabase::Mode;

  explicit SqlTransaction(SqlDatabase& db, Mode mode = Mode::kWrite)
      : db_(db), status_(db.Begin(mode)), open_(status_.ok()) {}
  ~SqlTransaction() {
    if (open_) db_.RollBack();
  }
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;

  // Whether it began. Nothing may be written when it did not.
  const absl::Status& status() const { return status_; }
  // ENSURES: on OK everything written since the constructor is durable; on an
  // error nothing of it is kept.
  absl::Status Commit();

 private:
  SqlDatabase& db_;
  absl::Status status_;
  bool open_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_DATABASE_H_
