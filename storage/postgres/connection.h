// A thin wrapper of one connection to PostgreSQL: constant SQL with bound
// parameters, answers in binary, errors as Status, and an end to waiting for a
// server that does not answer.

#ifndef OPTFARM_STORAGE_POSTGRES_CONNECTION_H_
#define OPTFARM_STORAGE_POSTGRES_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

struct pg_conn;
struct pg_result;

namespace optfarm::storage {

// A bound value in PostgreSQL's binary form.
struct PostgresParameter {
  // OID; 0: what the statement makes of it.
  uint32_t type = 0;
  bool is_null = true;
  std::string bytes;

  static PostgresParameter Int(int64_t value);
  static PostgresParameter Double(double value);
  // PostgreSQL's texts are UTF-8 without zero bytes: what is not is replaced.
  static PostgresParameter Text(absl::string_view value);
  static PostgresParameter Blob(absl::string_view value);
  // An array.
  static PostgresParameter Ints(absl::Span<const int64_t> values);
};

// A statement on its way.
struct PostgresRequest {
  // May not have a value from outside in it.
  std::string sql;
  std::vector<PostgresParameter> parameters;
  // It comes again: its plan is kept, where the session is ours alone.
  bool keep_plan = false;
};

// Rows. Integers, numbers, texts, bytes and truth values can be read.
class PostgresResult {
 public:
  PostgresResult() = default;
  explicit PostgresResult(pg_result* result) : result_(result) {}

  int rows() const;
  // REQUIRES for these: the row and the column are there. NULL is 0 and "".
  int64_t Int(int row, int column) const;
  double Double(int row, int column) const;
  std::string Text(int row, int column) const;
  bool IsNull(int row, int column) const;
  // Rows that an INSERT, UPDATE or DELETE changed.
  int64_t Changes() const;
  // "COMMIT", "SELECT 3".
  std::string Tag() const;
  // The first column that none of the methods can read; -1: there is none.
  int UnreadableColumn() const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

// THREADS: one thread at a time.
class PostgresConnection {
 public:
  // `uri` is what libpq takes: "postgresql://...", or keys and values.
  // Passwords come from it, from PGPASSFILE, or from passfile in it. ERRORS:
  // Unavailable, also for a replica; InvalidArgument for a URI that is none.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Connect(
      const std::string& uri);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // Runs constant statements without parameters; the answer is the last one's.
  // Waits for at most `limit` for each.
  // ERRORS: by SQLSTATE: 53100 ResourceExhausted; class 23 AlreadyExists; a
  // lost connection, a timeout, a deadlock and a server that cannot answer now
  // Unavailable; damage DataLoss; 42501 PermissionDenied; class 22 and 54
  // InvalidArgument; otherwise Internal.
  absl::StatusOr<PostgresResult> Run(const char* sql, absl::Duration limit);
  // Runs one statement. `sql` may not have a value from outside in it.
  absl::StatusOr<PostgresResult> Query(
      const std::string& sql, absl::Span<const PostgresParameter> parameters,
      absl::Duration limit);
  // Runs statements one after another, sent together, up to the first that
  // fails; its error is what comes back. REQUIRES: a transaction, or one.
  absl::StatusOr<std::vector<PostgresResult>> QueryAll(
      absl::Span<const PostgresRequest> requests, absl::Duration limit);

  // It is of no use any more.
  bool lost() const { return lost_; }
  // The last error was one that may not come again: a deadlock, a serialization
  // failure.
  bool may_pass() const { return may_pass_; }
  // A transaction is open and has not failed.
  bool in_transaction() const;

 private:
  PostgresConnection(pg_conn* connection, std::string name);

  // What was sent and not answered yet.
  struct Sent {
    // Of a plan to keep: its key. Empty: the statement itself.
    std::string plan;
  };

  absl::StatusOr<PostgresResult> Answer(bool sent, absl::Duration limit);
  // What makes plans the same: the text and the types of the parameters.
  static std::string PlanKey(const PostgresRequest& request);
  bool Send(const PostgresRequest& request, std::vector<Sent>& sent);
  absl::StatusOr<std::vector<PostgresResult>> ReadAll(
      absl::Span<const Sent> sent, absl::Duration limit);
  // Whether statements may be prepared: the session is the server's process
  // itself, and not one of those that a pooler has for all. ERRORS: as Connect.
  absl::Status FindOutWhoAnswers();
  // False when it was lost, or the deadline has passed, which loses it too.
  bool WaitForAnswer(absl::Time deadline);
  // The same with a Status; `limit` is for its message.
  absl::Status AwaitAnswer(absl::Time deadline, absl::Duration limit);
  absl::Status ErrorOf(const pg_result* result);
  absl::Status Lost(absl::string_view why);

  pg_conn* const connection_;
  // "host/database", for messages.
  const std::string name_;
  bool lost_ = false;
  bool may_pass_ = false;
  bool keeps_plans_ = false;
  // Names of prepared statements by PlanKey.
  absl::flat_hash_map<std::string, std::string> plans_;
  int plans_made_ = 0;
};

// "host/database" of a URI, for people: without a password. Empty when it is no
// URI.
std::string PostgresName(const std::string& uri);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_CONNECTION_H_
